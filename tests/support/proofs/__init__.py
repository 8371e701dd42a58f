"""An independent judge of proofs: random inputs as documents, and an enumeration that shares no code with map spaces.

`python -m support.proofs --help` (in `tests/`) runs it on as many inputs as wanted.
"""
