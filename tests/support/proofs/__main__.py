"""Check proofs on many random tasks.

cd tests && python -m support.proofs 2000 --start 1 --kind window --links off --save wrong
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
import time
from collections import Counter
from pathlib import Path

from support.proofs.checking import check, check_each, check_uneven
from support.proofs.drawing import KINDS, draw
from support.proofs.sparse import draw_sparse


def main() -> int:
    """Read the arguments, check the tasks, and print their outcomes; 1 where a proof is wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("count", type=int, help="tasks")
    parser.add_argument("--start", type=int, default=0, help="first seed")
    parser.add_argument("--kind", choices=(*KINDS, "alike", "batch", "passing"), help="family of sizes; any by default")
    parser.add_argument("--sparse", choices=("any", "simple"), help="sparse hardware; simple: constant savings")
    parser.add_argument("--links", choices=("on", "off"), help="link transfers; either by default")
    parser.add_argument("--first-fills", action="store_true", help="first writes of outputs are fills")
    parser.add_argument("--factors", choices=("perfect", "ragged"), help="either by default")
    parser.add_argument("--uneven", action="store_true", help="all orders of storage entries")
    parser.add_argument("--each", type=int, default=0, help="states per stage, to compare each mapping with its bound")
    parser.add_argument("--capped", action="store_true", help="limit the cycles, and minimise energy")
    parser.add_argument("--relaxed", action="store_true", help="undercounted states dominate in every pass")
    parser.add_argument("--parts", action="store_true", help="one fanout of each task is searched in parts")
    parser.add_argument("--objective", help="such as ed2p; any of four by default")
    parser.add_argument("--width", type=int, default=0, help="states kept per stage; a small number leaves gaps")
    parser.add_argument("--gap", type=float, default=0.0, help="gap at which a proof may end, such as 0.05")
    parser.add_argument("--limit", type=int, default=400_000, help="mappings of the largest space enumerated")
    parser.add_argument("--save", type=Path, help="folder for the inputs of wrong proofs")
    arguments = parser.parse_args()
    fixed = {"link_transfers": arguments.links == "on"} if arguments.links else {}
    fixed |= {"first_fills": True} if arguments.first_fills else {}
    ragged = None if arguments.factors is None else arguments.factors == "ragged"
    counts: Counter[str] = Counter()
    started = time.monotonic()
    for seed in range(arguments.start, arguments.start + arguments.count):
        if arguments.sparse:
            inputs = draw_sparse(seed, simple=arguments.sparse == "simple" or None, **fixed)
        else:
            inputs = draw(seed, arguments.kind, ragged=ragged, **fixed)
        if arguments.objective:
            inputs = dataclasses.replace(inputs, objective=arguments.objective)
        options = {"width": arguments.width, "orders": 1} if arguments.width else {}
        options |= {"gap": arguments.gap} if arguments.gap else {}
        if arguments.each:
            verdict = check_each(inputs, arguments.each)
        elif arguments.uneven:
            verdict = check_uneven(inputs, arguments.limit)
        else:
            verdict = check(
                inputs,
                arguments.limit,
                capped=arguments.capped,
                relaxed=arguments.relaxed,
                parts=arguments.parts,
                **options,
            )
        counts["wrong" if verdict.wrong else verdict.status] += 1
        if verdict.wrong:
            print(seed, *verdict.wrong, sep="\n  ", flush=True)
            if arguments.save:
                arguments.save.mkdir(parents=True, exist_ok=True)
                text = json.dumps(dataclasses.asdict(inputs) | dataclasses.asdict(verdict), indent=1)
                (arguments.save / f"{seed}.json").write_text(text)
        if sum(counts.values()) % 100 == 0:
            print(f"{sum(counts.values())} tasks, {time.monotonic() - started:.0f} s: {dict(counts)}", flush=True)
    print(dict(counts))
    return bool(counts["wrong"])


if __name__ == "__main__":
    sys.exit(main())
