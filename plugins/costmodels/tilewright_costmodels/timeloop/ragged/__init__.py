"""Tiles that do not divide: sizes and numbers of their pieces, and the words that move."""
