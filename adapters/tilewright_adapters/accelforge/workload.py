"""Conversion of an einsum of AccelForge's workload to a problem."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from tilewright.errors import NotConformableError, Reason
from tilewright.expressions import ExpressionError
from tilewright.plugin.edges import Access, Operation
from tilewright.schema.problem import Problem, parse_terms
from tilewright_adapters.accelforge.expressions import Scope, Tensors, Value
from tilewright_adapters.accelforge.files import AccessData, EinsumData, RenameData, RenamesData, Renaming, WorkloadData

ROLES = ("input", "weight", "output")
DEFAULT_BITS = 8
_ACCESS = re.compile(r"(?<!\w)([A-Za-z_]\w*+)\s*+\[([^\[\]]*+)\]")
_BOUND = re.compile(r"0\s*+<=\s*+([a-z_]\w*+)\s*+(<=?)\s*+(.++)")
CLIPPED = ": read with size"
"""Part of the warning about words outside of a tensor, which single einsums have."""
OTHER = "Other"
"""Key of `bits_per_value` for tensors that no other key names."""
_FACTOR = re.compile(r"(?<!\w)([a-z_]\w*+)\s*+\*\s*+(\d++)")


@dataclass(frozen=True)
class Einsum:
    """A converted einsum.

    `scope` holds names for its architecture's expressions, `others` the tensors of other einsums.
    `padded` has the sizes of tensors with fewer words than the projection touches.
    """

    problem: Problem
    scope: Scope
    warnings: tuple[str, ...]
    others: Tensors
    padded: Mapping[str, tuple[int, ...]]


def name_of(data: EinsumData) -> str:
    """Return the given name, or that of the result. Raises ValueError."""
    match = _ACCESS.match(data.einsum.strip()) if data.einsum is not None else None
    if data.name is None and match is None:
        raise ValueError(f"einsum without a name: {data.einsum or 'it has neither name nor einsum'}")
    return data.name or (match[1] if match else "")


def accesses(data: EinsumData, repeated: bool = False) -> tuple[AccessData, ...]:
    """Return the accesses of an einsum.

    Args:
        data: the einsum.
        repeated: whether a tensor may be read at two places; the first one is returned.

    Raises:
        NotConformableError: a tensor is read at two places.
        ValueError: the short form is malformed, or repeats values of the long form.
    """
    tensors: dict[str, dict[str, object]] = {}
    if data.einsum is not None:
        left, _, right = data.einsum.partition("=")
        for text, output in ((right, False), (left, True)):
            for name, inside in _ACCESS.findall(text):
                access = {"name": name, "projection": _projection(inside), "output": output}
                if tensors.setdefault(name, access) != access and not repeated:
                    where = name_of(data)
                    text = f"it reads {name} at two places" if not output else f"it reads its own result {name}"
                    raise NotConformableError("a problem", [Reason(code="repeated", where=where, message=text)])
        if not _ACCESS.fullmatch(left.strip()) or len(tensors) < 2:
            raise ValueError(f"cannot read the einsum '{data.einsum}'; expected one like Z[m] = A[m,k] * B[k]")
    for given in data.tensor_accesses:
        name = str(given.get("name"))
        if data.einsum is not None and name not in tensors:
            raise ValueError(f"tensor_accesses names {name}, but '{data.einsum}' has no such tensor")
        both = tensors.get(name, {}).keys() & given.keys() - {"name"}
        if both:
            raise ValueError(f"{', '.join(sorted(both))} of {name} is given both in the einsum and in tensor_accesses")
        tensors[name] = tensors.get(name, {}) | given
    result = tuple(AccessData.model_validate(fields) for fields in tensors.values())
    if sum(tensor.output for tensor in result) != 1:
        raise ValueError(f"the einsum has {sum(tensor.output for tensor in result)} outputs; expected 1")
    return result


def operation(data: EinsumData, problem: Problem | None) -> Operation:
    """Return an einsum with the names of its tensors and ranks; without a problem, it is no layer.

    Raises:
        ValueError: the einsum cannot be read.
    """
    every = accesses(data, repeated=problem is None)
    used = {access.name: Access(access.name, tuple(_ranks(access))) for access in every}
    result = next(access.name for access in every if access.output)
    operands = {name: access for name, access in used.items() if name != result}
    return Operation(name_of(data), operands, used[result], problem, data.is_copy_operation)


def read_einsum(data: WorkloadData, chosen: EinsumData, renames: RenamesData, numbers: Mapping[str, Value]) -> Einsum:
    """Convert an einsum to a problem.

    Raises:
        ValueError: something is missing, or it is no dense einsum.
    """
    name, used = name_of(chosen), accesses(chosen)
    every = frozenset(access.name for access in used)
    scope = Scope(every, dict(numbers) | _sets(data, used, every))
    _rename(scope, chosen.renames)
    for einsum in renames.einsums:
        if einsum.name in (name, "default"):
            _rename(scope, einsum.tensor_accesses)
    scope.bits = _bits(data, used, scope)
    projections = {access.name: _ranks(access) for access in used}
    plain = {name: size for name, size in (data.rank_sizes | chosen.rank_sizes).items() if not isinstance(size, str)}
    ranked = Scope(every, {**plain, **scope.names}, scope.bits)  # the size of a rank may use those of others
    sizes = _sizes(data, chosen, projections, ranked)
    cut = _clipped(data, chosen, projections, sizes, ranked)
    warnings = [text for texts, _ in cut.values() for text in texts]
    if chosen.n_instances * data.n_instances > 1:
        warnings.append(f"{name} runs {chosen.n_instances * data.n_instances} times; read as once")
    problem = Problem.model_validate(
        {
            "name": name,
            "dimensions": sizes,
            "tensors": [
                {
                    "name": access.name,
                    "role": _role(access, used, scope),
                    "projection": list(projections[access.name].values()),
                }
                for access in used
            ],
        }
    )
    for role in ROLES:
        scope.names.setdefault(role, frozenset(tensor.name for tensor in problem.tensors if tensor.role == role))
    return Einsum(
        problem, scope, tuple(warnings), _known(data) - every, {name: size for name, (_, size) in cut.items()}
    )


def roles_alone(numbers: Mapping[str, Value]) -> Scope:
    """Return the scope without a workload, in which roles represent tensors."""
    every = frozenset(ROLES)
    operands, nothing = frozenset(ROLES[:2]), Tensors()
    sets: dict[str, Value] = {role: frozenset([role]) for role in ROLES}
    sets |= {"All": every, "Tensors": every, "Inputs": operands, "Outputs": frozenset(["output"])}
    sets |= dict.fromkeys(("Nothing", "Intermediates", "Shared", "Persistent"), nothing)
    return Scope(every, dict(numbers) | sets, dict.fromkeys(ROLES, DEFAULT_BITS))


def _projection(text: str) -> list[str] | dict[str, str]:
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if any(":" in part for part in parts):
        return {
            rank.strip() if colon else rank.strip().upper(): value.strip() if colon else rank.strip()
            for rank, colon, value in (part.partition(":") for part in parts)
        }
    return parts


def _ranks(access: AccessData) -> dict[str, str]:
    """Return rank -> expression, with factors first."""
    if isinstance(access.projection, dict):
        return {rank: _FACTOR.sub(r"\2*\1", text) for rank, text in access.projection.items()}
    repeated = sorted({variable for variable in access.projection if access.projection.count(variable) > 1})
    if repeated:
        raise ValueError(f"{access.name} repeats {', '.join(repeated)}; name the ranks: {{M: m, M2: m}}")
    return {variable.upper(): variable for variable in access.projection}


def _sets(data: WorkloadData, used: Sequence[AccessData], every: Tensors) -> dict[str, Value]:
    outputs = frozenset(access.name for access in used if access.output)
    read, written, count = set[str](), set[str](), dict[str, int]()
    for einsum in data.einsums:
        try:
            tensors = accesses(einsum)
        except ValueError:  # another einsum, which cannot be read
            continue
        for access in tensors:
            (written if access.output else read).add(access.name)
            count[access.name] = count.get(access.name, 0) + 1
    unknown: dict[str, Value] = dict.fromkeys(count.keys() - every, Tensors())
    known: dict[str, Value] = {
        "All": every,
        "Tensors": every,
        "Nothing": Tensors(),
        "Inputs": every - outputs,
        "Outputs": outputs,
        "Intermediates": every & read & written,
        "Shared": frozenset(name for name in every if count[name] > 1),
        "Persistent": frozenset(access.name for access in used if access.persistent),
        **{name: frozenset([name]) for name in every},
    }
    return unknown | known


def _known(data: WorkloadData) -> Tensors:
    """Return all tensors, except those of einsums that cannot be read."""
    tensors = set[str]()
    for einsum in data.einsums:
        with suppress(ValueError):
            tensors |= {access.name for access in accesses(einsum)}
    return frozenset(tensors)


def _rename(scope: Scope, renames: Renaming) -> None:
    """Add names in order, because one may use another; existing names stay."""
    listed = renames if not isinstance(renames, dict) else [RenameData(name=k, source=v) for k, v in renames.items()]
    for rename in listed:
        if rename.name in scope.names:
            continue
        tensors = scope.tensors(rename.source)
        if rename.expected_count is not None and scope.number(rename.expected_count) != len(tensors):
            shown = ", ".join(sorted(tensors)) or "nothing"
            raise ExpressionError(
                f"{rename.name} is {rename.source}: {shown}, where {rename.expected_count} was expected"
            )
        scope.names[rename.name] = tensors


def _bits(data: WorkloadData, used: Sequence[AccessData], scope: Scope) -> dict[str, int]:
    bits: dict[str, int] = {}
    for text, value in data.bits_per_value.items():
        if text != OTHER:
            bits |= dict.fromkeys(scope.tensors(text), scope.whole(value))
    if OTHER in data.bits_per_value:
        others = scope.every - bits.keys()
        bits |= dict.fromkeys(others, scope.whole(data.bits_per_value[OTHER]))
    for access in used:
        if access.bits_per_value is not None:
            bits[access.name] = scope.whole(access.bits_per_value)
        if access.name not in bits:
            raise ValueError(
                f"{access.name} has no bits_per_value; write 'bits_per_value: {{All: 8}}' next to the einsums"
            )
    return bits


def _sizes(
    data: WorkloadData, chosen: EinsumData, projections: Mapping[str, Mapping[str, str]], scope: Scope
) -> dict[str, int]:
    used = [name for ranks in projections.values() for text in ranks.values() for name in parse_terms(text)]
    sizes: dict[str, int] = {}
    texts = [*data.iteration_space_shape.values(), *chosen.iteration_space_shape]
    for text in (part for statement in texts for part in re.split(r"\band\b", statement)):
        match = _BOUND.fullmatch(text.strip())
        if not match:
            raise ValueError(f"cannot read the range '{text}'; expected one like 0 <= m < 128")
        if match[1] in used:
            sizes[match[1]] = scope.whole(match[3]) + (match[2] == "<=")
    ranks = data.rank_sizes | chosen.rank_sizes
    for tensor in projections.values():
        for rank, text in tensor.items():
            terms = parse_terms(text)
            if rank in ranks and list(terms.values()) == [1]:
                sizes.setdefault(next(iter(terms)), scope.whole(ranks[rank]))
    missing = sorted(set(used) - set(sizes))
    if missing:
        raise ValueError(f"{', '.join(missing)} has no size; give a range in iteration_space_shape")
    return sizes


def _clipped(
    data: WorkloadData,
    chosen: EinsumData,
    projections: Mapping[str, Mapping[str, str]],
    sizes: Mapping[str, int],
    scope: Scope,
) -> dict[str, tuple[list[str], tuple[int, ...]]]:
    """Return tensors with fewer words than the projection touches, with warnings and their sizes."""
    ranks, clipped = data.rank_sizes | chosen.rank_sizes, {}
    for tensor, projection in projections.items():
        told, shape = [], []
        for rank, text in projection.items():
            most = 1 + sum(factor * (sizes[name] - 1) for name, factor in parse_terms(text).items())
            size = scope.whole(ranks[rank]) if rank in ranks else most
            if size < most:
                told.append(f"{tensor} has size {size} along {rank} but {text} needs {most}{CLIPPED} {most}")
            shape.append(min(size, most))
        if told:
            clipped[tensor] = (told, tuple(shape))
    return clipped


def _role(access: AccessData, used: Sequence[AccessData], scope: Scope) -> str:
    if access.output:
        return "output"
    for role in ("input", "weight"):
        named = scope.names.get(role)
        if isinstance(named, frozenset) and access.name in named:
            return role
    operands = [operand for operand in used if not operand.output]
    return "input" if access is operands[0] else "weight"
