"""Page: one HTML file that shows an exploration or a mapped network, without anything from elsewhere.

The data stand in the page as JSON, and a script of ours draws them as SVG; every name is set as text, never as markup.
"""
