"""Run the authors' Sunstone (github.com/compstruct/sunstone, commit f016d3d) on layers of Figure 6.11 and Table VI, and record it.

    PYTHONHASHSEED=0 python benchmarks/authors.py CLONE        # writes benchmarks/experiments/authors.csv

The program runs in this process, by the stages of its Eyeriss-like example. Each layer is searched three times: with one worker,
with eight as in the example, and with one worker and without its bound between levels.
A row has the mapping of eight workers: trips of the loops inside L1, of the array, inside L2 and outside.
"""

from __future__ import annotations

import concurrent.futures
import csv
import inspect
import sys
import types
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from benchmarks.experiments.framework import problems

RECORD = Path(__file__).with_name("experiments") / "authors.csv"
LEVELS = ("L1", "array", "L2", "DRAM")
UNBOUNDED = 600_000
"""Tiles of L2 that a search without the bound may need at most."""
FIGURE = {
    "conv2": ("sunstone_layers", "resnet18_conv2_x"),
    "conv10": ("sunstone_layers", "resnet18_conv4_x"),
    "conv15": ("sunstone_layers", "resnet18_conv5_x"),
    "3x3 early": ("sunstone_layers", "incv3_inf_3x3_early"),
    "1x7 deep": ("sunstone_layers", "incv3_inf_1x7_deep"),
    "b2-pw1": ("sunstone_mobilenetv2_layers", "b2_pw1"),
    "b6-pw1": ("sunstone_mobilenetv2_layers", "b5_pw1"),
}
"""Layers of Figure 6.11, at their own batch."""
RESNET = ("conv1", "conv2_x", "conv3_1", "conv3_x", "conv4_1", "conv4_x", "conv5_1", "conv5_x")
"""Layers of Table VI, at batch 1."""


class InTurn:
    """Pool of processes that does its work here, so that calls can be counted."""

    def __init__(self, max_workers: int | None = None) -> None: ...

    def __enter__(self) -> InTurn:
        return self

    def __exit__(self, *_: object) -> None: ...

    def map(self, function: Callable[[Any], Any], given: Iterable[Any]) -> list[Any]:
        return [function(one) for one in given]


class Authors:
    """The authors' program with counters; `search` gives one row."""

    def __init__(self, clone: Path) -> None:
        sys.modules.setdefault("scipy", types.ModuleType("scipy"))  # it is imported and not used
        sys.modules.setdefault("scipy.special", types.ModuleType("scipy.special"))
        sys.path[:0] = [str(clone / part) for part in (".", "src", "commons", "examples/eyeriss_like")]
        concurrent.futures.ProcessPoolExecutor = InTurn  # type: ignore[assignment, misc]
        import cnn_optimizer_wrapper as wrapper  # type: ignore[import-not-found]
        from hardware.eyeriss import acc_eyeriss_like  # type: ignore[import-not-found]
        from software.cnns import Problem  # type: ignore[import-not-found]
        from src import generic_optimizers as optimizers  # type: ignore[import-not-found]

        self.wrapper, self.machine, self.layer, self.optimizers = wrapper, acc_eyeriss_like(), Problem, optimizers
        self.counts: dict[str, int] = {}
        self.workers = 1
        for name in ("get_cost_edp", "enumerate_tiles"):
            setattr(optimizers, name, self._counted(name, getattr(optimizers, name)))
        self.bounded = optimizers.alpha_beta_thrd_task
        text = inspect.getsource(self.bounded).replace("def alpha_beta_thrd_task", "def without_bound")
        exec(text.replace("break", "pass"), optimizers.__dict__)
        first, last = wrapper.tls_sptl_tmprl, wrapper.tls_tmprl_alpha_beta_mlt_thrd
        wrapper.tls_sptl_tmprl = self._counted("tiles", first, len)
        wrapper.tls_tmprl_alpha_beta_mlt_thrd = lambda *a, **k: last(*a, **{**k, "threads": self.workers})

    def _counted(
        self, name: str, function: Callable[..., Any], size: Callable[[Any], int] | None = None
    ) -> Callable[..., Any]:
        def counted(*args: Any, **options: Any) -> Any:
            given = function(*args, **options)
            self.counts[name] = self.counts.get(name, 0) + (1 if size is None else size(given[0]))
            return given

        return counted

    def search(self, sizes: dict[str, int]) -> dict[str, Any]:
        bounds = {"n": "N", "c": "C", "m": "K", "r": "R", "s": "S", "p": "P", "q": "Q"}
        row: dict[str, Any] = {}
        for workers, bounded in ((1, True), (8, True), (1, False)):
            if not bounded and row["l2_tiles_1"] * row["l1_tiles"] > UNBOUNDED * row["l1_searched_1"]:
                row["l2_tiles_unbounded"] = None
                continue
            self.workers, self.counts = workers, {}
            self.optimizers.alpha_beta_thrd_task = self.bounded if bounded else self.optimizers.without_bound
            layer = self.layer(**{name: sizes.get(dimension, 1) for name, dimension in bounds.items()})
            tile, _ = self.wrapper.CNNOptimizer(layer, self.machine).solve(
                access_energies=self.machine.access_energies, EDP_flag=True
            )
            searched = self.counts["get_cost_edp"] - self.counts["tiles"]
            if not bounded:
                row["l2_tiles_unbounded"] = searched
                continue
            row |= {"l1_tiles": self.counts["tiles"], f"l1_searched_{workers}": self.counts["enumerate_tiles"]}
            row |= {f"l2_tiles_{workers}": searched}
        trips = [{("K" if name == "M" else name): size for name, size in level.items()} for level in tile.subtiles]
        return row | {
            level: " ".join(f"{name}{size}" for name, size in part.items() if size > 1)
            for level, part in zip(LEVELS, trips, strict=True)
        }


def measured(clone: Path) -> Iterator[dict[str, Any]]:
    authors = Authors(clone)
    for label, (workload, name) in FIGURE.items():
        sizes = dict(problems(workload, [name])[name].dimensions)
        yield {"figure": "6.11", "layer": label, **authors.search(sizes)}
    for name in RESNET:
        sizes = dict(problems("sunstone_layers", [f"resnet18_{name}"])[f"resnet18_{name}"].dimensions) | {"N": 1}
        yield {"figure": "Table VI", "layer": name, **authors.search(sizes)}


def main() -> None:
    rows = list(measured(Path(sys.argv[1]).resolve()))
    with RECORD.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    print(f"written: {RECORD}")


if __name__ == "__main__":
    main()
