"""Prefill and decoding of language models: `tw.generate`."""
