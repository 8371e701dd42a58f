"""Reports of explorations, made up; the tables of a page."""

from html.parser import HTMLParser

import numpy as np

import tilewright as tw
from tilewright.application.exploration.records import ExplorationRecord, ExploredPoint, FoundLayer, LayerRecord
from tilewright.schema.frozen import FrozenDict
from tilewright.schema.objective import EDP


def made_up(points: int, layers: int = 3, name: str = "network") -> tw.ExplorationReport:
    """Return a report of `points` points with random figures; every tenth point has no machine."""
    rng = np.random.default_rng(1)
    works = tuple(LayerRecord(problem=f"key{at}", name=f"{name}_{at}", count=at + 1, macs=1000) for at in range(layers))
    space = {"name": "made_up", "choices": {"words": [1, 2, 4], "rows": [8, 16], "kind": ["a", "b"]}}
    record = ExplorationRecord(
        workload=name, layers=works, space=FrozenDict(space), size=points, strategy="grid", asked=points,
        objective=EDP, method="m", methods=FrozenDict({"mapper": {"name": "random"}, "seed": 0}),
    )  # fmt: skip

    def layer() -> FoundLayer:
        energies = rng.uniform(1e3, 1e6, 4)
        return FoundLayer(
            energy_pj=float(energies.sum()),
            cycles=int(rng.integers(100, 10_000)),
            binds="DRAM reads",
            places=FrozenDict(dict(zip(("DRAM", "GLB", "RF", "compute"), map(float, energies), strict=True))),
        )

    made = []
    for index in range(points):
        values = {"words": 2 ** int(index % 3), "rows": 8 + 8 * (index % 2), "kind": "ab"[index % 2]}
        if index % 10 == 9:
            made.append(ExploredPoint(index, values, "refused", "words < 4: 4 < 4 does not hold"))
        else:
            area = float(rng.uniform(1e5, 1e6))
            made.append(
                ExploredPoint(index, values, "searched", None, f"m{index}", area, tuple((work, layer()) for work in works))
            )  # fmt: skip
    return tw.ExplorationReport(record, tuple(made))


class Tables(HTMLParser):
    """Rows of the tables of a page, by identifier."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.rows: dict[str, list[list[str]]] = {}
        self.name = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "table":
            self.name = dict(attrs).get("id") or ""
        if tag == "tr" and self.name:
            self.rows.setdefault(self.name, []).append([])
        if tag in ("td", "th") and self.name:
            self.rows[self.name][-1].append("")

    def handle_data(self, data: str) -> None:
        if self.name and self.rows.get(self.name):
            self.rows[self.name][-1][-1] += data.strip()

    def handle_endtag(self, tag: str) -> None:
        if tag == "table":
            self.name = ""
