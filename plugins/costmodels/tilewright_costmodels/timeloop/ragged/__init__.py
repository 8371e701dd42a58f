"""Tiles that do not divide: their pieces, and the words that move."""
