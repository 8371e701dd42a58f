"""What tests of adapters share."""

from pathlib import Path

from tilewright.plugin.adapter import InputSet
from tilewright.schema.report import Report
from tilewright_costmodels.timeloop.model import TimeloopModel

PARTS = ("problem", "architecture", "mapping", "constraints")


def same(one: InputSet, other: InputSet) -> bool:
    """Equal in all that is kept; warnings may differ."""
    return all(getattr(one, part) == getattr(other, part) for part in PARTS)


def price(inputs: InputSet) -> Report:
    """By the model `timeloop`."""
    assert inputs.problem and inputs.architecture and inputs.mapping
    return TimeloopModel().bind(inputs.problem, inputs.architecture).explain(inputs.mapping)


def edit(path: Path, old: str, new: str) -> None:
    """Change the first place in a file that says `old`."""
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
