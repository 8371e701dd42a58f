"""Experiments of published papers: Sunstone and its thesis, Union, CoSA, QuickFlow; AccelForge's and ZigZag's explorations.

    python benchmarks/papers.py --list
    python benchmarks/papers.py all --quick                   # within 10 minutes; writes benchmarks/papers/*.csv and benchmarks/papers.md
    python benchmarks/papers.py sunstone_fig_7 -o results     # writes results/*.csv, results/*.svg and results.md

Each experiment prints its figures next to the paper's claim. The same command continues an interrupted run: results of searches
are in the cache, and those of explorations in the store.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from benchmarks.experiments import EXPERIMENTS, page
from benchmarks.experiments.framework import Experiment, Run, load, plot, save

FOLDER = Path(__file__).resolve().with_suffix("")
"""Kept results; docs/papers.md sums them up."""


def perform(experiment: Experiment, run: Run, folder: Path) -> None:
    """Measure one experiment, write its files and print its section. If a module is missing, say so and keep earlier files."""
    if experiment.missing:
        print(f"\n{experiment.name} is not measured: {experiment.missing}", file=sys.stderr, flush=True)
        return
    started = time.process_time()
    rows = list(experiment.measure(run))
    used = max(time.process_time() - started, sum(float(row.get("cpu_seconds") or 0) for row in rows))
    save(folder / f"{experiment.name}.csv", rows)
    rows = load(folder / f"{experiment.name}.csv")
    plot(folder / f"{experiment.name}.svg", experiment.chart(rows))
    page.record(folder, experiment.name, "quick" if run.quick else "full", used)
    (mine,) = (row for row in load(folder / page.RUNS) if row["experiment"] == experiment.name)
    print(f"\n## {experiment.paper}\n\n{page.section(experiment, rows, mine)}", flush=True)


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="experiments, or all")
    parser.add_argument("--list", action="store_true", help="list the experiments")
    parser.add_argument("--quick", action="store_true", help="small budgets; each section says what that leaves out")
    parser.add_argument("--page", action="store_true", help="measure nothing, generate the page from the results")
    parser.add_argument("-o", "--output", type=Path, default=FOLDER, help="folder of results; the page is FOLDER.md")
    parser.add_argument("--store", type=Path, default=Path("papers.sqlite"), help="store of the explorations")
    given = parser.parse_args(words)
    if given.list:
        print(page.listing(EXPERIMENTS.values()))
        return
    names = list(EXPERIMENTS) if given.names == ["all"] else given.names
    unknown = [name for name in names if name not in EXPERIMENTS]
    if unknown or not (names or given.page):
        parser.error(f"unknown: {', '.join(unknown) or 'nothing is named'}; --list shows the experiments")
    given.output.mkdir(parents=True, exist_ok=True)
    try:
        for name in names:
            perform(EXPERIMENTS[name], Run(given.quick, given.store), given.output)
    except KeyboardInterrupt:
        print("interrupted; the same command continues", file=sys.stderr)
        sys.exit(130)
    print(f"\nwritten: {page.write(EXPERIMENTS, given.output)}")


if __name__ == "__main__":
    main()
