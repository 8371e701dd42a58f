"""Self-contained HTML page of an exploration or a mapped network.

The page embeds the data as JSON, and Tilewright's script draws them as SVG. Names are set as text,
never as markup.
"""
