"""Attributes of hardware: each notation writes those of its table, and names and drops all others."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import pytest

from support.hardware_attributes import ATTRIBUTES, MAPPING, PLAIN, PROBLEM, path, stating
from tilewright.application.conversion.dropped import simplified
from tilewright.plugin.adapter import SIDECAR, InputSet, NotationTable
from tilewright.plugin.capabilities import Capabilities
from tilewright.plugin.registry import installed
from tilewright.plugin.specs import AdapterSpec, CostModelSpec
from tilewright.schema.architecture import Architecture, Compute, Memory, Network
from tilewright.schema.attribute import Attribute, attributes_of, droppable
from tilewright.schema.problem import Problem
from tilewright.schema.sparse import SparseMemory
from tilewright_adapters import loopnest, native, union
from tilewright_adapters.accelforge import write as accelforge
from tilewright_adapters.timeloop import attributes as timeloop
from tilewright_adapters.zigzag import write as zigzag
from tilewright_notations.directives import plan

TABLES: dict[str, NotationTable] = {
    "accelforge": accelforge.TABLE,
    "loopnest": loopnest.TABLE,
    "maestro": plan.TABLE,
    "tilewright": native.TABLE,
    "timeloop": timeloop.V3,
    "timeloop_v4": timeloop.V4,
    "union": union.TABLE,
    "zigzag": zigzag.TABLE,
}
CONDITIONS = {"allocation", "bandwidth", "buffering", "capacity", "widths"}
"""Codes of the conditions that adapters have for values that they can write otherwise."""


def test_every_adapter_has_a_table_of_attributes_that_exist() -> None:
    assert sorted(TABLES) == sorted(registration.name for registration in installed().of_kind(AdapterSpec))
    for table in TABLES.values():
        assert {*table.written, *table.beside} <= set(ATTRIBUTES) and not {*table.written} & {*table.beside}


def rows() -> list[str]:
    """Return the table of the manual: attributes that some cost model does not count, or some notation does not write."""
    specs = {registration.name: registration.spec.capabilities for registration in installed().of_kind(CostModelSpec)}
    whole = {"tilewright", "loopnest", "union"}
    parts = {"": attributes_of(Memory), "compute.": attributes_of(Compute), "network.": attributes_of(Network)}
    places = {field: place + field for place, attributes in reversed(parts.items()) for field in attributes}
    groups: dict[str, list[str]] = {}
    for field, attribute in {**parts[""], **parts["compute."], **parts["network."]}.items():
        needed = attribute.capability or ("sparse" if field == "sparse" else None)
        counting = ["–"] if needed is None else [f"`{name}`" for name, able in specs.items() if getattr(able, needed)]
        writing = [f"`{name}`" for name, table in TABLES.items() if field in table.written and name not in whole]
        if needed or len(writing) < len(TABLES.keys() - whole):
            row = f"{', '.join(counting)} | {', '.join(writing) or 'none'} |"
            groups.setdefault(row, []).append(f"`{places[field]}`")
    head = ["| attributes | cost models with their capability | notations that write them |", "| --- | --- | --- |"]
    return head + [f"| {', '.join(fields)} | {row}" for row, fields in groups.items()]


def test_the_manual_has_the_table() -> None:
    text = (Path(__file__).parents[2] / "docs/schemas.md").read_text(encoding="utf-8")
    assert "\n".join(rows()) in text


@pytest.mark.parametrize("field", ATTRIBUTES)
@pytest.mark.parametrize("name", sorted(TABLES))
def test_what_the_table_lacks_is_refused_and_dropped(name: str, field: str) -> None:
    table, spec = TABLES[name], installed().find(AdapterSpec, name).spec
    adapter = spec.factory(spec.options())
    plain = InputSet(PROBLEM, PLAIN, MAPPING)
    if not adapter.expressible(plain):  # ZigZag allocates memories by a rule of its own
        plain = replace(plain, mapping=None)
    given = replace(plain, architecture=stating(field))
    verdict, (_, dropped) = adapter.expressible(given), simplified(given, adapter.expressible)
    codes = {reason.code for reason in verdict.reasons}

    assert adapter.expressible(plain)
    if field not in table.written and field not in table.beside:
        assert set(table.refused(stating(field), PROBLEM)) == set(verdict.reasons) and len(codes) == 1
        if field in {*droppable(Memory), *droppable(Compute), *droppable(Network)}:
            assert [item.what for item in dropped] == [path(field)]
        else:
            assert path(field) not in [item.what for item in dropped]
        return
    assert codes <= CONDITIONS
    if verdict:
        files, others = adapter.render(given), adapter.render(plain)
        differ = {file for file in files if files[file] != others.get(file)}
        assert not dropped and bool(differ - {SIDECAR}) == (field in table.written)


@pytest.mark.parametrize("name", sorted(TABLES))
def test_formats_that_save_nothing_are_kept_or_refused(name: str, tmp_path: Path) -> None:
    idle = PLAIN.with_memories(
        lambda each: each.model_copy(update={"sparse": SparseMemory()}) if each.name == "C" else each
    )
    spec = installed().find(AdapterSpec, name).spec
    adapter, inputs = spec.factory(spec.options()), InputSet(PROBLEM, idle)
    if not adapter.expressible(inputs):
        assert "sparse" not in TABLES[name].written
        return
    files = [tmp_path / Path(name).name for name in adapter.render(inputs)]
    for file, text in zip(files, adapter.render(inputs).values(), strict=True):
        file.write_text(text, encoding="utf-8")
    assert adapter.parse(files).architecture == idle


class Refreshed(Memory):
    """A memory with an attribute that no notation and no cost model knows."""

    refresh_pj: Annotated[float, Attribute("refresh", "it is refreshed", capability="timing")] = 0.0


@pytest.mark.parametrize("name", sorted(TABLES))
def test_a_new_attribute_is_refused_by_all(name: str) -> None:

    def refreshed(refresh_pj: float) -> Architecture:
        new = Refreshed(**dict(PLAIN.memories[1]), refresh_pj=refresh_pj)
        return PLAIN.with_memories(lambda each: new if each.name == "B" else each)

    still, stated = refreshed(0.0), refreshed(0.5)
    spec = installed().find(AdapterSpec, name).spec
    verdicts = [spec.factory(spec.options()).expressible(InputSet(PROBLEM, each)) for each in (still, stated)]
    added = set(verdicts[1].reasons) - set(verdicts[0].reasons)
    assert [(reason.code, reason.where) for reason in added] == [("refresh", "B")]
    assert [item.field for item in Capabilities().uncounted(PROBLEM, stated)] == ["refresh_pj"]
    assert not list(Capabilities(timing=True).uncounted(PROBLEM, stated))


def test_a_problem_that_is_not_concerned_states_nothing() -> None:
    """Without strides tiles have no holes, and values as wide as a word are no widths of their own."""
    dense = PROBLEM.model_copy(
        update={
            "tensors": tuple(
                tensor.model_copy(update={"projection": PROBLEM.tensors[1].projection})
                if tensor.name == "I"
                else tensor
                for tensor in PROBLEM.tensors
            )
        }
    )
    wide = PLAIN.with_memories(lambda each: each.model_copy(update={"bits_per_value": {"output": each.word_bits}}))

    def fields(architecture: Architecture, problem: Problem | None) -> set[str]:
        return {item.field for item in architecture.stated(problem)} - {"capacity_words"}

    assert [fields(stating("footprint"), each) for each in (PROBLEM, None, dense)] == [{"footprint"}] * 2 + [set()]
    assert [fields(wide, each) for each in (PROBLEM, None)] == [set(), {"bits_per_value"}]
