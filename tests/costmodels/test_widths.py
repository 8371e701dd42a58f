"""Values that are wider or narrower than a word: `Memory.bits_per_value`."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.application.run.evaluation import bind, build_model, evaluate
from tilewright.errors import NotConformableError
from tilewright.plugin.registry import installed
from tilewright.plugin.specs import CostModelSpec
from tilewright.reports import Report
from tilewright.schema.architecture import Architecture, Memory
from tilewright.schema.frozen import FrozenDict
from tilewright.schema.mapping import Mapping
from tilewright.schema.problem import Problem
from tilewright.testing.strategies import architectures, mappings, problems

COUNTING = ("timeloop", "oracle")
ROLES = ("input", "weight", "output")
Case = tuple[Problem, Architecture, Mapping]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    problem, architecture = draw(problems(max_macs=200)), draw(architectures(roomy=False))
    return problem, architecture, draw(mappings(problem, architecture))


def changed(architecture: Architecture, change: Any) -> Architecture:
    """With other fields of every memory."""
    return architecture.model_copy(
        update={
            "clusters": tuple(
                cluster.model_copy(
                    update={"memories": tuple(memory.model_copy(update=change(memory)) for memory in cluster.memories)}
                )
                for cluster in architecture.clusters
            )
        }
    )


def wide(memory: Memory, times: int) -> FrozenDict[str, int]:
    return FrozenDict(dict.fromkeys(ROLES, times * memory.word_bits))


def figures(report: Report) -> tuple[object, ...]:
    return report.valid, [reason.code for reason in report.reasons], report.energy_pj, report.cycles


@pytest.mark.parametrize("model", COUNTING)
@given(case=cases())
def test_values_as_wide_as_a_word_change_nothing(model: str, case: Case) -> None:
    problem, architecture, mapping = case
    said = changed(architecture, lambda memory: {"bits_per_value": wide(memory, 1)})

    assert evaluate(build_model(model), problem, said, mapping) == evaluate(
        build_model(model), problem, architecture, mapping
    )


@pytest.mark.parametrize("model", COUNTING)
@given(case=cases(), times=st.sampled_from([2, 4]))
def test_wider_values_are_narrower_memories(model: str, case: Case, times: int) -> None:
    """Doubling all widths and capacities in words changes no figure.

    Values of two words then fill memories, blocks and ports of twice as many words. Factor three
    would change Timeloop's rounding of cycles.
    """

    def larger(memory: Memory) -> dict[str, Any]:
        grown = {
            name: None if (value := getattr(memory, name)) is None else value * times
            for name in ("read_bandwidth_words_per_cycle", "write_bandwidth_words_per_cycle")
        }
        usable = memory.usable_words
        room = {"capacity_words": None if usable is None else max(1, usable * times), "multiple_buffering": 1.0}
        return {"bits_per_value": wide(memory, times), "block_words": memory.block_words * times, **grown, **room}

    problem, plain, mapping = case
    if any(memory.usable_words == 0 for memory in plain.memories):
        return
    ours = evaluate(build_model(model), problem, changed(plain, larger), mapping)
    theirs = evaluate(build_model(model), problem, plain, mapping)

    assert figures(ours) == figures(theirs)


def test_capacity_is_told_in_words() -> None:
    """4 sums of 24 bits and 4 operands of 16 bits require 10 words; the memory has 9."""
    problem = Problem.model_validate(
        {
            "name": "copy",
            "dimensions": {"N": 4},
            "tensors": [
                {"name": "I", "role": "input", "projection": ["N"]},
                {"name": "O", "role": "output", "projection": ["N"]},
            ],
        }
    )
    energies = {"read_energy_pj": 1, "write_energy_pj": 1}
    architecture = Architecture.model_validate(
        {
            "name": "two",
            "clusters": [
                {"name": "DRAM", "memories": [{"name": "DRAM", **energies}]},
                {"name": "B", "memories": [{"name": "B", "capacity_words": 9, "bits_per_value": {"output": 24}, **energies}]},
            ],
            "compute": {"energy_per_operation_pj": 1},
        }
    )  # fmt: skip
    whole = {"N": 4}
    mapping = Mapping.model_validate(
        {
            "entries": [
                {"target": "DRAM", "temporal_order": ["N"], "temporal_tile_sizes": whole, "spatial_tile_sizes": whole, "keep": ["I", "O"]},
                {"target": "B", "temporal_order": ["N"], "temporal_tile_sizes": whole, "spatial_tile_sizes": whole, "keep": ["I", "O"]},
                {"target": "B", "temporal_order": ["N"], "temporal_tile_sizes": {"N": 1}, "spatial_tile_sizes": {"N": 1}, "keep": None},
            ],
        }
    )  # fmt: skip

    refused = evaluate(build_model("timeloop"), problem, architecture, mapping)
    taken = evaluate(build_model("timeloop"), problem, architecture.replace({"B.capacity_words": 10}), mapping)

    assert [str(reason.message) for reason in refused.reasons] == ["the tiles need 10 words, 9 fit"]
    assert taken.valid and [(level.used_words, level.capacity_words) for level in taken.levels] == [(8, None), (10, 10)]


@pytest.mark.parametrize("name", sorted(each.spec.name for each in installed().of_kind(CostModelSpec)))
@given(case=cases())
def test_who_does_not_count_widths_refuses_them(name: str, case: Case) -> None:
    problem, architecture, _ = case
    model = build_model(name)
    said = changed(architecture, lambda memory: {"bits_per_value": wide(memory, 2)})
    if model.capabilities.value_widths or model.model is None:
        return
    with pytest.raises(NotConformableError) as refused:
        bind(model, problem, said)
    assert {reason.where for reason in refused.value.reasons if reason.code == "widths"} == {
        memory.name for memory in architecture.memories
    }


@pytest.mark.parametrize("name", sorted(each.spec.name for each in installed().of_kind(CostModelSpec)))
@given(case=cases())
def test_who_does_not_count_shared_bandwidth_refuses_it(name: str, case: Case) -> None:
    problem, architecture, _ = case
    model = build_model(name)
    said = changed(architecture, lambda memory: {"shared_bandwidth_words_per_cycle": 2.0})
    if model.capabilities.shared_bandwidth or model.model is None:
        return
    with pytest.raises(NotConformableError) as refused:
        bind(model, problem, said)
    assert {reason.where for reason in refused.value.reasons if reason.code == "shared_bandwidth"} == {
        memory.name for memory in architecture.memories
    }
