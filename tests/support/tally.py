"""Outcomes of a judge on many seeds, counted and printed."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable


def tally(outcome: Callable[[int], str], seeds: Iterable[int], things: str, every: int = 10) -> bool:
    """Print how many seeds have each outcome, and each wrong one; return whether there is one.

    Args:
        outcome: returns the outcome of a seed; a wrong one contains `WRONG`. Details follow a colon.
        every: seeds between two lines of progress.
    """
    counts, started = Counter[str](), time.process_time()
    for seed in seeds:
        text = outcome(seed)
        counts["WRONG" if "WRONG" in text else text.partition(": ")[0]] += 1
        if "WRONG" in text:
            print(f"seed {seed}: {text}", flush=True)
        if counts.total() % every == 0:
            print(f"{counts.total()} {things}, {time.process_time() - started:.0f} CPU s: {dict(counts)}", flush=True)
    print(dict(counts))
    return "WRONG" in counts
