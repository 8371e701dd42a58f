"""The rules of legality (Union, section IV-D, generalised), compiled."""
