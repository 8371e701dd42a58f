"""Compiled legality rules, generalised from Union, section IV-D."""
