"""Mapper `cosa`: a mixed-integer program (CoSA, Huang et al., ISCA 2021)."""
