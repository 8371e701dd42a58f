"""Each public function and class has an example in its docstring. `tox` runs the examples."""

import inspect
from typing import Any

import pytest

import tilewright
import tilewright.plugin
import tilewright.testing
from tilewright.schema.architecture import Architecture

MODULES = (tilewright, tilewright.plugin, tilewright.testing)
DESCRIBED = {
    f"{module.__name__}.{name}": getattr(module, name)
    for module in MODULES
    for name in module.__all__
    if inspect.isroutine(getattr(module, name)) or inspect.isclass(getattr(module, name))
}
WITHOUT = {
    *("calibrate", "convert", "diff_stats", "CalibrationReport", "RecordedReport"),
    *("GroupClaim", "NetworkClaim", "BranchMapper", "Cluster", "Route"),
}
"""Names whose examples need files or searches; the manual has them."""


@pytest.mark.parametrize("name", sorted(DESCRIBED))
def test_a_public_name_has_an_example(name: str) -> None:
    described: Any = DESCRIBED[name]
    assert (">>> " in (described.__doc__ or "")) == (name.rpartition(".")[2] not in WITHOUT)


def test_examples_are_no_part_of_schemas() -> None:
    assert ">>>" in (Architecture.__doc__ or "") and ">>>" not in str(Architecture.model_json_schema())
