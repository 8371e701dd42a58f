"""Round-trip guarantee over every pair of notations.

A mapping converted through both comes back equal and costs the same. Otherwise it is refused, and the
reason names the feature that the notation cannot express.
"""

from itertools import permutations
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st

from support import accelforge_inputs
from support.notations import PARTS, evaluated, same
from support.profiles import scaled
from support.zigzag_files import files
from tilewright.application.conversion.conversion import write_files
from tilewright.application.conversion.recognition import recognised
from tilewright.errors import InputError, NotConformableError
from tilewright.plugin.adapter import Adapter, InputSet
from tilewright.plugin.registry import installed
from tilewright.plugin.specs import AdapterSpec
from tilewright.schema.document import dump_yaml
from tilewright.testing.strategies import architectures, mappings, problems

"""Random mappings per ordered pair of adapters."""
NOTATIONS = [
    registration.spec.name
    for registration in installed().of_kind(AdapterSpec)
    if registration.distribution == "tilewright" and not registration.spec.missing()
]
PAIRS = list(permutations(NOTATIONS, 2))
COMPLETE = {"tilewright", "loopnest", "union"}
"""Notations that refuse no lawful mapping."""


@st.composite
def inputs(draw: st.DrawFn) -> InputSet:
    """A mapping with its problem and architecture; cramped memories and odd orders included."""
    problem = draw(problems(max_dimensions=5, max_macs=400, max_operands=3))
    architecture = draw(architectures(roomy=draw(st.booleans()), widths=True))
    return InputSet(problem, architecture, draw(mappings(problem, architecture)))


@st.composite
def inputs_of_zigzag(draw: st.DrawFn, folder: Path) -> InputSet:
    """Mappings as ZigZag has them, for few others suit it; read from its files."""
    paths = write_files(folder, {name: dump_yaml(data) for name, data in draw(files()).items()})
    try:
        found = installed().make(AdapterSpec, "zigzag").parse(paths)
    except InputError:
        reject()
    return InputSet(*(getattr(found, part) for part in PARTS))


def through(adapter: Adapter, given_: InputSet, folder: Path) -> InputSet | None:
    """Written and read again; None where it is refused, as it must be: with reasons, twice the same."""
    verdict = adapter.expressible(given_)
    if verdict:
        return adapter.parse(write_files(folder, adapter.render(given_)))
    assert all(reason.code and reason.message for reason in verdict.reasons)
    with pytest.raises(NotConformableError) as caught:
        adapter.render(given_)
    assert caught.value.reasons == verdict.reasons
    return None


@pytest.mark.exhaustive
@pytest.mark.parametrize(("first", "second"), PAIRS, ids=[f"{a}-{b}" for a, b in PAIRS])
@settings(scaled(0.2), suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
@given(data=st.data())
def test_two_notations_agree(first: str, second: str, folder: Path, data: st.DataObject) -> None:
    kinds = [inputs()]
    if "zigzag" in (first, second):
        kinds.append(inputs_of_zigzag(folder / "read"))
    if "accelforge" in (first, second):
        kinds.append(accelforge_inputs.inputs(max_macs=400))
    original = data.draw(st.one_of(kinds))
    here = through(installed().make(AdapterSpec, first), original, folder / first)
    if here is None:
        assert first not in COMPLETE
        return
    there = through(
        installed().make(AdapterSpec, second), InputSet(*(getattr(here, part) for part in PARTS)), folder / second
    )
    if there is None:
        assert second not in COMPLETE
        return
    assert same(there, original)
    assert evaluated(there) == evaluated(original)


@pytest.mark.parametrize("notation", NOTATIONS)
@settings(scaled(0.2), suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
@given(data=st.data())
def test_what_is_written_is_recognised(notation: str, folder: Path, data: st.DataObject) -> None:
    kinds = {"zigzag": inputs_of_zigzag(folder / "read"), "accelforge": accelforge_inputs.inputs(max_macs=400)}
    adapter, original = installed().make(AdapterSpec, notation), data.draw(kinds.get(notation, inputs()))
    if not adapter.expressible(original):
        return
    paths = write_files(folder / notation, adapter.render(original))
    found, said = recognised(paths, installed())
    assert found.spec.name.partition("_")[0] == notation.partition("_")[0] and same(said, original)


@pytest.mark.parametrize("notation", NOTATIONS)
def test_every_notation_refuses_nothing_at_all(notation: str) -> None:
    assert through(installed().make(AdapterSpec, notation), InputSet(), Path("nowhere")) is None
