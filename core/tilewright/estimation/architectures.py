"""Completion of architectures whose files give sizes instead of energies.

Missing values are estimated and stored as literals. A value in the file always takes precedence.
Literals hold for one instance and one access, with six digits.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeVar

from tilewright.errors import InputError, NotEstimatedError
from tilewright.estimation.asking import Answer, Estimators, Question, current
from tilewright.plugin.estimator import Attribute
from tilewright.schema.architecture import Architecture, Compute, Memory
from tilewright.schema.component import SIZES, Component, Estimated
from tilewright.schema.document import Document, Path_, validate

Part = TypeVar("Part", Memory, Compute)

ENERGIES = {
    "memory": {"read_energy_pj": "read", "write_energy_pj": "write"},
    "compute": {"energy_per_operation_pj": "compute"},
}
"""Kind of part -> {field: action whose energy the field holds}."""


def read_architecture(document: Document, estimators: Estimators | None = None) -> Architecture:
    """Read an architecture and estimate its missing energies.

    Args:
        document: the parsed file.
        estimators: the estimators to query; None for those set by `using`.

    Raises:
        InputError: the file is invalid, or no estimator knows a component; with its location.
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


def changed(architecture: Architecture, changes: Mapping[str, Mapping[str, Any]]) -> Architecture:
    """Return a copy with other values of memories, by memory and field; what was estimated is estimated again.

    Raises:
        InputError: a value is invalid, or no estimator knows the new part.
        PluginError: an estimator that was named failed.
    """
    old, new = architecture.to_data(), architecture.to_data()
    for cluster in new["clusters"]:
        for memory in cluster.get("memories", ()):
            memory |= changes.get(memory["name"], {})
    return read_architecture(Document(without_outdated(old, new), architecture.name))


def without_outdated(old: Mapping[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """Return an architecture's data without values that were estimated for other sizes, so that they are estimated again.

    Args:
        old: data whose values were estimated.
        new: data with changed values, of the same clusters and memories.
    """
    elsewhere = any(old.get(name) != new.get(name) for name in ("technology_nm", "clock_ghz"))
    for before, after in zip(_parts(old), _parts(new), strict=True):
        if after.get("component") is None or not after.get("estimates"):
            continue
        if elsewhere or any(before.get(name) != after.get(name) for name in SIZES):
            for estimate in _dicts(after.pop("estimates")):
                for name in estimate.get("figures") or ():
                    if before.get(name) == after.get(name):
                        after.pop(name, None)
    return new


def _parts(data: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the memories and the compute unit of an architecture's data; what has another form is left out."""
    memories = [memory for cluster in _dicts(data.get("clusters")) for memory in _dicts(cluster.get("memories"))]
    return [*memories, *_dicts([data.get("compute")])]


def _dicts(parts: Any) -> list[dict[str, Any]]:
    return [part for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []


def _described(data: Any) -> Iterator[Path_]:
    """Yield the paths of parts that have a component and no estimates yet."""
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
    """Return a copy with 0 for every energy to be estimated, so that all else is validated first."""
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
    """Return the part with its missing values estimated.

    Raises:
        InputError: the technology node is missing, or a size contradicts the part.
        NotEstimatedError: no estimator answers.
        PluginError: an estimator that was named failed.
    """
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

    answers = {figure: ask(action) for figure, action in energies.items() if figure not in given}
    literals = {figure: rounded(answer.estimate.energy_pj / macro) for figure, answer in answers.items()}
    of_all = next(iter(answers.values()), None)
    if of_all is None and "area_um2" not in given:
        with suppress(NotEstimatedError):  # all energies are given, so an estimate is optional
            of_all = ask(next(iter(energies.values())))
    if of_all is not None:
        for figure, value in _of_all_actions(part, of_all, macro, architecture.clock_ghz).items():
            if figure not in given:
                answers[figure], literals[figure] = of_all, rounded(value)
    return part.model_copy(update={**literals, "estimates": tuple(records(list(answers.items()), macro))})


def _of_all_actions(part: Memory | Compute, answer: Answer, macro: int, clock_ghz: float | None) -> dict[str, float]:
    """Return area in um2 and, if there is a clock, leakage in pJ per cycle.

    No cost model counts the leakage of compute units, so only memories get it.
    """
    area, leakage = answer.estimate.area_um2, answer.estimate.leakage_w
    figures = {} if area is None else {"area_um2": area / macro}
    if leakage and clock_ghz and isinstance(part, Memory):
        figures["leakage_pj_per_cycle"] = leakage / macro * 1e3 / clock_ghz  # W / GHz = nJ
    return figures


def _sizes_of_memory(memory: Memory, component: Component) -> dict[str, Attribute]:
    """Return sizes derived from a memory: `width_bits` of one access and `size_bits`, if limited.

    Raises:
        InputError: the component gives another width than the accesses have.
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
    """Return sizes derived from a compute unit: operands are words, sums have twice as many bits."""
    bits = compute.word_bits
    return {"width_bits": bits, "multiplier_bits": bits, "adder_bits": 2 * bits}


def records(answers: Sequence[tuple[str, Answer]], macro: int = 1) -> Iterator[Estimated]:
    """Yield one record per estimator, from (field, answer) pairs.

    Args:
        answers: the field and the answer that it was taken from.
        macro: number of instances that one estimate covers.
    """
    for answer in dict.fromkeys(reply for _, reply in answers):
        told = answer.estimate
        by = [pair for pair in answers if _who(pair[1]) == _who(answer)]
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
    """Return the value with six significant digits, more than any estimate's accuracy."""
    return float(f"{value:.6g}")
