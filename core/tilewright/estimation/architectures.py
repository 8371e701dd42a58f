"""Architectures whose files give sizes instead of energies: what is left out is asked of estimators, and written in as literals.

A figure that stands in the file always wins. Literals are those of one instance and one access, with six digits.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any, TypeVar

from tilewright.errors import InputError, NotEstimatedError
from tilewright.estimation.asking import Answer, Estimators, Question, current
from tilewright.plugin.estimator import Attribute
from tilewright.schema.architecture import Architecture, Compute, Memory
from tilewright.schema.component import Component, Estimated
from tilewright.schema.document import Document, Path_, validate

Part = TypeVar("Part", Memory, Compute)

ENERGIES = {
    "memory": {"read_energy_pj": "read", "write_energy_pj": "write"},
    "compute": {"energy_per_operation_pj": "compute"},
}
"""Figure of a part -> the action that takes it."""


def read_architecture(document: Document, estimators: Estimators | None = None) -> Architecture:
    """An architecture with all its energies.

    Args:
        estimators: who is asked; by default those that `using` says.

    Raises:
        InputError: a fault of the file, or a component that nobody can estimate; with the place.
        PluginError: an estimator that was named failed.
    """
    parts = list(_described(document.data))
    if not parts:
        return validate(Architecture, document)
    draft = validate(Architecture, Document(_with_zeros(document.data), document.source, document.marks, document.tags))
    asked = current() if estimators is None else estimators
    clusters = list(draft.clusters)
    compute = draft.compute
    for path in parts:
        given = _at(document.data, path)
        try:
            if path == ("compute",):
                compute = _completed(compute, given, draft, asked)
                continue
            _, cluster, _, index = path
            assert isinstance(cluster, int) and isinstance(index, int)
            memories = list(clusters[cluster].memories)
            memories[index] = _completed(memories[index], given, draft, asked)
            clusters[cluster] = clusters[cluster].model_copy(update={"memories": tuple(memories)})
        except InputError as error:
            raise InputError(error.message, location=document.locate((*path, "component")), hint=error.hint) from None
        except NotEstimatedError as error:
            told = f"{given.get('name', 'compute')}: {error.headline}"
            lines = "".join(f"\n  - {reason}" for reason in error.reasons) if len(error.reasons) > 1 else ""
            raise InputError(
                told + lines,
                location=document.locate((*path, "component")),
                hint="give its energies, other sizes, or another estimator",
            ) from None
    return draft.model_copy(update={"clusters": tuple(clusters), "compute": compute})


def _described(data: Any) -> Iterator[Path_]:
    """Where parts stand that have a component, and no estimates yet."""
    if not isinstance(data, dict):
        return
    clusters = data.get("clusters")
    for number, cluster in enumerate(clusters if isinstance(clusters, list) else []):
        memories = cluster.get("memories") if isinstance(cluster, dict) else None
        for index, memory in enumerate(memories if isinstance(memories, list) else []):
            if _is_described(memory):
                yield "clusters", number, "memories", index
    if _is_described(data.get("compute")):
        yield ("compute",)


def _is_described(part: Any) -> bool:
    return isinstance(part, dict) and part.get("component") is not None and not part.get("estimates")


def _at(data: Any, path: Path_) -> dict[str, Any]:
    for step in path:
        data = data[step]
    assert isinstance(data, dict)
    return data


def _with_zeros(data: dict[str, Any]) -> dict[str, Any]:
    """The same with 0 for every energy that is to be estimated, so that all else is checked first."""
    copy = dict(data)
    for path in _described(data):
        *way, last = path
        parent: Any = copy
        for step in way:
            parent[step] = parent[step].copy()
            parent = parent[step]
        figures = ENERGIES["compute" if path == ("compute",) else "memory"]
        parent[last] = dict.fromkeys(figures, 0.0) | parent[last]
    return copy


def _completed(part: Part, given: dict[str, Any], architecture: Architecture, estimators: Estimators) -> Part:
    """With what was left out. Raises InputError, NotEstimatedError, PluginError."""
    component = part.component
    assert component is not None
    node = component.technology_nm or architecture.technology_nm
    if node is None:
        raise InputError(
            f"component {component.name} needs a technology node",
            hint="add technology_nm: 45, in nanometres, to the architecture or to the component",
        )
    if isinstance(part, Memory):
        offered, macro, energies = _sizes_of_memory(part, component), part.instances_per_macro, ENERGIES["memory"]
    else:
        offered, macro, energies = _sizes_of_compute(part), 1, ENERGIES["compute"]

    def ask(action: str) -> Answer:
        return estimators.ask(
            Question(component.name, component.attributes, action, node, offered, component.estimator)
        )

    found = {figure: ask(action) for figure, action in energies.items() if figure not in given}
    literals = {figure: rounded(answer.estimate.energy_pj / macro) for figure, answer in found.items()}
    of_all = next(iter(found.values()), None)
    if of_all is None and "area_um2" not in given:
        with suppress(NotEstimatedError):  # every energy is given: nothing has to be known
            of_all = ask(next(iter(energies.values())))
    if of_all is not None:
        for figure, value in _of_all_actions(part, of_all, macro, architecture.clock_ghz).items():
            if figure not in given:
                found[figure], literals[figure] = of_all, rounded(value)
    return part.model_copy(update={**literals, "estimates": tuple(records(list(found.items()), macro))})


def _of_all_actions(part: Memory | Compute, answer: Answer, macro: int, clock_ghz: float | None) -> dict[str, float]:
    """Area, and leakage in pJ per cycle where there is a clock; a compute unit's is not counted by any model."""
    area, leakage = answer.estimate.area_um2, answer.estimate.leakage_w
    found = {} if area is None else {"area_um2": area / macro}
    if leakage and clock_ghz and isinstance(part, Memory):
        found["leakage_pj_per_cycle"] = leakage / macro * 1e3 / clock_ghz  # W over GHz is nJ
    return found


def _sizes_of_memory(memory: Memory, component: Component) -> dict[str, Attribute]:
    """What follows from a memory: `width_bits` of one access, `size_bits` where its capacity is limited.

    Raises:
        InputError: the component says another width than the accesses have.
    """
    bits = memory.word_bits * memory.instances_per_macro
    width = memory.block_words * bits
    given = component.attributes.get("width_bits")
    if given is not None and given != width:
        raise InputError(
            f"width_bits is {given}, but an access of {memory.name} moves {width} bits",
            hint="set block_words (and word_bits) to what one access moves, and leave width_bits out",
        )
    size: dict[str, Attribute] = {} if memory.capacity_words is None else {"size_bits": memory.capacity_words * bits}
    return {"width_bits": width} | size


def _sizes_of_compute(compute: Compute) -> dict[str, Attribute]:
    """Operands are words; sums have twice as many bits."""
    bits = compute.word_bits
    return {"width_bits": bits, "multiplier_bits": bits, "adder_bits": 2 * bits}


def records(answers: Sequence[tuple[str, Answer]], macro: int = 1) -> Iterator[Estimated]:
    """Who said which figures, (figure, answer) each: one for each estimator.

    Args:
        macro: instances that share what was estimated.
    """
    for answer in dict.fromkeys(each for _, each in answers):
        told = answer.estimate
        by = [each for each in answers if _who(each[1]) == _who(answer)]
        if by[0][1] is answer:
            yield Estimated(
                figures=tuple(figure for figure, _ in by),
                estimator=answer.estimator,
                version=answer.version,
                leakage_w=None if told.leakage_w is None else rounded(told.leakage_w / macro),
                **told.accuracy.model_dump(),
            )


def _who(answer: Answer) -> tuple[object, ...]:
    return answer.estimator, answer.version, answer.estimate.accuracy


def rounded(value: float) -> float:
    """Six digits: more would be pretence."""
    return float(f"{value:.6g}")
