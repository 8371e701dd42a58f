"""Common code of adapters' tests."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from support.command import Command
from tilewright.application.conversion.conversion import write_files
from tilewright.errors import InputError
from tilewright.plugin.adapter import Adapter, InputSet
from tilewright.reports import Report
from tilewright_costmodels import TimeloopOptions
from tilewright_costmodels.timeloop.model import TimeloopModel

BOARD = """
name: board
clusters:
- {name: Far, memories: [{name: Far, read_energy_pj: 2, write_energy_pj: 3}], fanout: {size: 4}}
- {name: Near, memories: [{name: Near, capacity_words: 9, read_energy_pj: 1, write_energy_pj: 1}]}
compute: {energy_per_operation_pj: 1}
"""
PARTS = ("problem", "architecture", "mapping", "constraints")


def same(one: InputSet, other: InputSet) -> bool:
    """Equal in all that is kept; warnings may differ."""
    return all(getattr(one, part) == getattr(other, part) for part in PARTS)


def evaluated(inputs: InputSet) -> Report:
    """By the model `timeloop`."""
    assert inputs.problem and inputs.architecture and inputs.mapping
    return TimeloopModel(TimeloopOptions()).bind(inputs.problem, inputs.architecture).explain(inputs.mapping)


def edit(path: Path, old: str, new: str) -> None:
    """Change the first place in a file that says `old`."""
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


def costs_the_same_as_a_loop_nest(tilewright: Command, notation: str, files: Sequence[Path], folder: Path) -> None:
    """Check that the files cost the same when evaluated directly and through `loopnest` and back."""
    before = tilewright("evaluate", "--from", notation, *files, "--model", "timeloop", "--json")
    assert before.code == 0, before.err
    there = tilewright("convert", *files, "--from", notation, "--to", "loopnest", "-o", folder / "nest")
    assert there.code == 0, there.err
    nest = folder / "nest/loopnest.txt"
    back = tilewright("convert", nest, "--from", "loopnest", "--to", notation, "-o", folder / "back")
    assert back.code == 0, back.err
    after = tilewright("evaluate", "--from", notation, *(folder / "back").iterdir(), "--model", "timeloop", "--json")
    (result,) = before.data["results"]
    assert after.data["results"] == [result]


def with_sidecar(adapter: Adapter, inputs: InputSet, folder: Path) -> tuple[list[Path], InputSet]:
    """Return files of inputs whose problem has a note, which only the sidecar file can store."""
    assert inputs.problem is not None
    noted = replace(inputs, problem=inputs.problem.model_copy(update={"source": "a note"}), warnings=())
    paths = write_files(folder, adapter.render(noted))
    assert "tilewright.yaml" in [path.name for path in paths] and same(adapter.parse(paths), noted)
    return paths, noted


def is_refused_as_stale(adapter: Adapter, paths: Sequence[Path], title: str) -> None:
    with pytest.raises(InputError, match=f"written for other {title} files") as caught:
        adapter.parse(paths)
    assert caught.value.location is not None and caught.value.location.line is not None
