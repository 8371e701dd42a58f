"""Mapper `mindmappings`: gradient descent over a learned cost (Mind Mappings, Hegde et al., ASPLOS 2021)."""
