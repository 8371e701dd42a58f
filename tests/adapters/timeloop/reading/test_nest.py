"""The loop nest that Timeloop prints."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.recorded.timeloop import cases
from tilewright.errors import InputError
from tilewright.plugin.adapter import InputSet
from tilewright.schema.document import parse_document
from tilewright.schema.mapping import Mapping
from tilewright.schema.problem import Problem
from tilewright_adapters.timeloop import TimeloopAdapter
from tilewright_adapters.timeloop.reading.nest import is_nest, parse_nest

PRINTED = """\
DRAM [ Weights:864 (864) Inputs:151875 (151875) Outputs:401408 (401408) ]
-------------------------------------------------------------------------
| for P in [0:8)
|   for Q in [0:5,3)

inter_PE_spatial [ ]
--------------------
|     for C in [0:3) (Spatial-Y)
|       for S in [0:2) (Spatial-Y)
|         for M in [0:4) (Spatial-X)

spad [ Inputs:3 (3) ]
registers [ Weights:24 ]
------------------------
|                 for R in [0:3)
|                     << Compute >>
"""


def test_levels_become_directives() -> None:
    assert is_nest(PRINTED) and is_nest("\n" + PRINTED) and not is_nest("Buffer and Arithmetic Levels\n")
    document = parse_nest(PRINTED, "x.map.txt")
    assert document.data["mapping"] == [
        {"target": "DRAM", "type": "dataspace", "keep_only": ["Weights", "Inputs", "Outputs"]},
        {"target": "DRAM", "type": "temporal", "factors": ["Q=5,3", "P=8"], "permutation": ["Q", "P"]},
        {"target": "inter_PE_spatial", "type": "dataspace", "bypass": ["*"]},
        {
            "target": "inter_PE_spatial",
            "type": "spatial",
            "factors": ["M=4", "S=2", "C=3"],
            "permutation": ["M", "S", "C"],
            "split": 1,
        },
        {"target": "spad", "type": "dataspace", "keep_only": ["Inputs"]},
        {"target": "registers", "type": "dataspace", "keep_only": ["Weights"]},
        {"target": "registers", "type": "temporal", "factors": ["R=3"], "permutation": ["R"]},
    ]
    assert str(document.locate(("mapping", 3, "factors"))) == "x.map.txt:6"


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [("for P in [0:8)", "for P in [1:8)", 3), ("Inputs:3 (3)", "Inputs", 12), ("| for P", "x for P", 3)],
)
def test_lines_of_something_else_are_named(old: str, new: str, line: int) -> None:
    with pytest.raises(InputError, match=f"x.map.txt:{line}: "):
        parse_nest(PRINTED.replace(old, new), "x.map.txt")


def printed(problem: Problem, mapping: Mapping, axes: dict[str, str]) -> str:
    """A mapping as Timeloop prints it."""
    lines: list[str] = []
    loops: list[str] = []
    for entry, (steps, unrolled) in zip(mapping.entries, mapping.factors(), strict=True):
        loops += [f"for {name} in [0:{steps[name]})" for name in entry.temporal_order if steps[name] > 1]
        if entry.keep is not None:
            lines += [f"| {loop}" for loop in loops]
            loops = []
            sizes = [
                f"{name}:{problem.tile_words(problem.tensor(name), entry.temporal_tile_sizes)}" for name in entry.keep
            ]
            lines += ["", f"{entry.target} [ {' '.join(sizes)}{' ' if sizes else ''}] ", "-----"]
        axis = axes[entry.target]
        names = entry.spatial_order or problem.dimension_names
        loops += [f"for {name} in [0:{unrolled[name]}) (Spatial-{axis})" for name in names if unrolled[name] > 1]
    return "\n".join([*lines, *(f"| {loop}" for loop in loops), "|   << Compute >>", ""])


@given(st.sampled_from(cases()))
def test_a_printed_nest_is_the_mapping_that_was_printed(case: object) -> None:
    """Loops, tiles and kept tensors are equal; Timeloop prints no order of loops with one iteration."""
    problem, architecture, mapping = case.problem, case.architecture, case.mapping  # type: ignore[attr-defined]
    adapter = TimeloopAdapter()
    files = adapter.render(InputSet(problem=problem, architecture=architecture, mapping=mapping))
    axes = {cluster.name: cluster.fanout.axis for cluster in architecture.clusters}
    nest = printed(problem, mapping, axes)
    documents = [
        parse_document(text, source=name) for name, text in files.items() if name not in ("map.yaml", "tilewright.yaml")
    ]
    whole = [*documents, parse_document(files["map.yaml"], source="map.yaml")]
    found = adapter.read([*documents, parse_nest(nest, "x.map.txt")]).mapping
    expected = adapter.read(whole).mapping
    assert found is not None and expected is not None
    assert list(found.loops()) == list(expected.loops())
    assert [entry.keep for entry in found.entries] == [entry.keep for entry in expected.entries]
    assert [e.temporal_tile_sizes for e in found.entries] == [e.temporal_tile_sizes for e in expected.entries]


def test_a_report_is_no_nest(tmp_path: Path) -> None:
    path = tmp_path / "stats.txt"
    path.write_text("Buffer and Arithmetic Levels\n")
    with pytest.raises(InputError, match="diff-stats"):
        TimeloopAdapter().parse([path])
