"""Self-contained HTML pages of a mapped network, of two that it compares, or of an exploration.

matplotlib draws the charts as SVG, so that a page needs no library in the browser. The tables next to
them have all numbers; a short script sorts and filters these. Names are escaped, never markup.
"""
