"""Conversion of AccelForge's nodes to an architecture: memories in clusters, fanouts between them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, get_args

from tilewright.errors import InputError, NotConformableError, Reason
from tilewright.estimation.architectures import records, rounded
from tilewright.estimation.asking import Answer
from tilewright.expressions import ExpressionError
from tilewright.schema.architecture import Architecture, Cluster, Compute, Fanout, Memory
from tilewright.schema.constraints import UnsearchedRule
from tilewright.schema.document import Document, suggestion, validate
from tilewright.schema.frozen import FrozenDict
from tilewright.schema.problem import Problem, Tensor
from tilewright.schema.vector import Operation, Unit
from tilewright.values import Model
from tilewright_adapters.accelforge.components import Action, calls_per_second, component_of, plain, same
from tilewright_adapters.accelforge.expressions import Scope, Tensors, Value
from tilewright_adapters.accelforge.files import (
    ActionData,
    ComponentData,
    ComputeData,
    ContainerData,
    MemoryData,
    SpatialData,
    TensorsData,
)
from tilewright_adapters.faults import placed

IN_TURN = "sum(a.n_calls / a.throughput for a in actions)"
SEPARATE_PORTS = "max(a.n_calls / a.throughput for a in actions)"
_NODES: dict[str, type[Model]] = {"Memory": MemoryData, "Container": ContainerData, "Compute": ComputeData}
_DEMANDS = {
    "tile_shape": ("bounds on the tiles in", False),
    "no_refetch_from_above": ("tensors that are fetched once into", False),
    "no_resend_to_below": ("tensors that are sent once from", False),
    "tensor_order_options": ("orders of the tensors in", False),
    "force_memory_hierarchy_order": ("tiles of inner memories outside those of outer ones, for", True),
}
"""Demands of a memory on mappings that no constraint has: a clause, and whether they allow more mappings."""


@dataclass
class ClusterDraft:
    """A cluster under construction.

    `shared`: tensors that one read may serve; None if there is no fanout below.
    """

    name: str | None = None
    memories: list[Memory] = field(default_factory=list)
    holding: Tensors = frozenset()
    size: int = 1
    axis: str = "X"
    shared: Tensors | None = None


@dataclass
class Hardware:
    """Result of reading the nodes.

    Attributes:
        architecture: the architecture.
        cluster_of: memory -> cluster.
        unrolled_at: (node, dimension of its fanout) -> outer cluster; None if the fanout is 1.
        shared: cluster -> tensors that one read may serve.
        keeps: memory -> tensors that it must keep, and tensors that it may keep.
        reused: cluster -> tensors that its loops must not index, and minimum utilization.
        unsearched: demands on mappings that no constraint has.
        warnings: content that an architecture cannot express.
    """

    architecture: Architecture
    cluster_of: dict[str, str]
    unrolled_at: dict[tuple[str, str], str | None]
    shared: dict[str, Tensors]
    keeps: dict[str, tuple[Tensors, Tensors]]
    reused: dict[str, tuple[Tensors, float]]
    unsearched: tuple[UnsearchedRule, ...]
    warnings: list[str]


def read_hardware(
    document: Document,
    name: str,
    scope: Scope,
    problem: Problem | None,
    common: Mapping[str, object],
    narrowest: Mapping[str, int] | None = None,
) -> Hardware:
    """Convert a list of nodes. Raises InputError.

    Args:
        document: the list of nodes.
        name: name of the architecture.
        scope: names in expressions.
        problem: the problem, if there is one.
        common: attributes for all component models.
        narrowest: node -> bits of a word, at most, so that all einsums of a network have one word.
    """
    walk = _Walk(scope, problem, common, narrowest or {})
    for node in _flat(document):
        walk.node(node)
    return walk.finished(document, name)


def _flat(nodes: Document) -> Iterator[Document]:
    if not isinstance(nodes.data, list):
        raise InputError("an architecture has a list of nodes", location=nodes.locate(()))
    for index in range(len(nodes.data)):
        node = nodes.at(index)
        if node.tags.get((), "") == "!Hierarchical" and isinstance(node.data, dict) and "nodes" in node.data:
            yield from _flat(node.at("nodes"))
        else:
            yield node


class _Walk:
    def __init__(
        self, scope: Scope, problem: Problem | None, common: Mapping[str, object], narrowest: Mapping[str, int]
    ) -> None:
        self.scope, self.problem, self.common = scope, problem, common
        self.narrowest = narrowest
        self.drafts: list[ClusterDraft] = []
        self.unrolled: dict[tuple[str, str], int | None] = {}
        self.keeps: dict[str, tuple[Tensors, Tensors]] = {}
        self.reused: dict[int, tuple[Tensors, float]] = {}
        self.unsearched: list[UnsearchedRule] = []
        self.memories: list[tuple[Document, MemoryData, Tensors, int]] = []
        self.compute: tuple[Document, ComputeData] | None = None
        self.pairwise: list[tuple[Document, ComputeData, str, int]] = []
        """Compute nodes of einsums of two tensors, with the memory above, and the nodes for an instance of it."""
        self.warnings: list[str] = []

    def node(self, node: Document) -> None:
        kind = node.tags.get((), "").removeprefix("!")
        if kind not in _NODES:
            hint = f"supported: {', '.join('!' + tag for tag in (*_NODES, 'Hierarchical'))}{suggestion(kind, _NODES)}"
            raise InputError(
                f"node !{kind} is not supported: a chain of clusters cannot express it",
                location=node.locate(()),
                hint=hint,
            )
        data = validate(_NODES[kind], node)
        assert isinstance(data, ContainerData)
        try:
            if isinstance(data, ComponentData) and not self.scope.truth(data.enabled):
                if isinstance(data, ComputeData) and self.memories and _takes_pairs(data, self.scope):
                    _, memory, _, above = self.memories[-1]
                    sizes = [draft.size for draft in self.drafts[above:-1]]
                    copies = math.prod((*sizes, *(self.scope.whole(spatial.fanout) for spatial in data.spatial)))
                    self.pairwise.append((node, data, memory.name, copies))
                return
            if self.compute is not None:
                self.follows(data.name, self.compute[1].name)
            named = data.name if not isinstance(data, ComputeData) else None
            for number, spatial in enumerate(data.spatial, 1):
                inside = named if number == len(data.spatial) else f"{data.name}.{spatial.name}"
                if self.fanout(node, data.name, spatial) and inside is not None:
                    self.drafts.append(ClusterDraft(inside))
            if isinstance(data, MemoryData):
                self.memory(node, data)
            if isinstance(data, ComputeData):
                self.compute = (node, data)
        except ExpressionError as error:
            missing = None if self.problem else "tensor names are known only with the workload; add its file"
            raise InputError(f"{data.name}: {error}", location=node.locate(()), hint=missing) from None

    def follows(self, name: str, compute: str) -> None:
        """Raise an error on a node behind the compute node; one on the einsum, if another einsum may use another node."""
        text = f"{name} follows the compute node {compute}; expected it to be last"
        if self.problem is None:
            raise ExpressionError(text)
        reason = Reason(code="compute", where=self.problem.name, message=text)
        raise NotConformableError("an architecture", [reason])

    def fanout(self, place: Document, node: str, data: SpatialData) -> bool:
        """Add a fanout to the innermost cluster; return whether its size exceeds 1."""
        size = self.scope.whole(data.fanout)
        self.unrolled[node, data.name] = len(self.drafts) - 1 if size > 1 else None
        if size == 1:
            return False
        if not self.drafts:
            raise ExpressionError("the outermost node has several instances; expected a memory outside it")
        draft = self.drafts[-1]
        reuse = self.scope.tensors(data.reuse) if data.reuse is not None else Tensors()
        draft.size = size
        draft.axis = data.name if data.name in ("X", "Y") else "XY"[len(self.reused) % 2]
        draft.shared = self.scope.every if data.reuse is None else reuse
        if data.may_reuse is not None:
            draft.shared = self.scope.tensors(data.may_reuse)
        least = float(self.scope.number(data.min_usage))
        if least:
            least /= float(self.scope.number(data.usage_scale)) or 1.0
        self.reused[len(self.drafts) - 1] = (reuse, least)
        if data.loop_bounds:
            self.warn(f"loop_bounds of {node} are ignored")
            self.leave(place, "loop_bounds", f"bounds on the loops over {data.name} of {node}")
        return True

    def memory(self, node: Document, data: MemoryData) -> None:
        keep, may = self.kept(data.tensors)
        self.scope.names[data.name] = keep
        held = keep | may
        if not held:
            self.warn(f"{data.name} keeps none of these tensors: ignored")
            return
        if not self.drafts or self.drafts[-1].holding & held:
            self.drafts.append(ClusterDraft())
        self.drafts[-1].holding |= held
        self.keeps[data.name] = (keep, held)
        for word, (why, missing) in _DEMANDS.items():
            told = getattr(data.tensors, word)
            if told != TensorsData.model_fields[word].default:
                self.leave(node, word, f"{why} {data.name}", missing=missing)
        self.memories.append((node, data, held, len(self.drafts) - 1))

    def kept(self, data: TensorsData) -> tuple[Tensors, Tensors]:
        keep = self.scope.tensors(data.keep) if data.keep is not None else Tensors()
        may = self.scope.every if data.keep is None else Tensors()
        if data.may_keep is not None:
            may = self.scope.tensors(data.may_keep)
        back = self.scope.tensors(data.back) if data.back is not None else Tensors()
        return keep | back, may

    def finished(self, document: Document, name: str) -> Hardware:
        if self.compute is None:
            raise InputError("no !Compute is enabled; expected one", location=document.locate(()))
        node, data = self.compute
        with _component(data.name, node):
            compute, hertz = self.computing(data)
        for place, memory, held, at in self.memories:
            with _component(memory.name, place):
                self.drafts[at].memories.append(self.built(memory, held, hertz, outermost=at == 0))
        if not self.drafts:
            raise InputError("no memory keeps any tensor", location=document.locate(()))
        names, units = self.names(), list[Unit]()
        for place, data, above, copies in self.pairwise:
            with _component(data.name, place):
                units += self.unit(data, above, copies, hertz)
        with placed(document.locate(())):
            architecture = Architecture(
                name=name,
                clock_ghz=None if hertz is None else hertz / 1e9,
                clusters=tuple(
                    Cluster(name=names[index], memories=tuple(draft.memories), fanout=self.between(draft))
                    for index, draft in enumerate(self.drafts)
                ),
                compute=compute,
                units=tuple(units),
            )
        return Hardware(
            architecture,
            {memory.name: names[at] for _, memory, _, at in self.memories},
            {key: None if at is None else names[at] for key, at in self.unrolled.items()},
            {names[at]: draft.shared for at, draft in enumerate(self.drafts) if draft.shared is not None},
            self.keeps,
            {names[at]: fanout for at, fanout in self.reused.items()},
            tuple(self.unsearched),
            self.warnings,
        )

    def leave(self, place: Document, name: str, why: str, *, missing: bool = False) -> None:
        """Add a demand on mappings that no constraint has."""
        where = str(place.locate(()))
        self.unsearched.append(UnsearchedRule(name=name, where=where, why=why, missing=missing))

    def warn(self, text: str) -> None:
        """Add a warning unless it is there already."""
        if text not in self.warnings:
            self.warnings.append(text)

    def names(self) -> list[str]:
        names: list[str] = []
        for draft in self.drafts:
            name = draft.name or ".".join(memory.name for memory in draft.memories)
            names.append(name if name not in names else f"{name}_{len(names)}")
        return names

    def between(self, draft: ClusterDraft) -> Fanout:
        if draft.shared is None:
            return Fanout()
        outputs = self.scope.tensors("Outputs")
        return Fanout(
            size=draft.size,
            axis=draft.axis,
            multicast=bool(draft.shared - outputs),
            reduction=bool(draft.shared & outputs),
        )

    def computing(self, data: ComputeData) -> tuple[Compute, float | None]:
        """Return the compute unit, and its operations per second (None: no limit)."""
        action = self.action(data, "compute", 1, None)
        self.leaks(data)
        energy, rate = action.energy_pj, action.rate
        compute = Compute(
            name=data.name,
            energy_per_operation_pj=energy,
            word_bits=self.narrowest.get(data.name, min(self.scope.bits.values())),
            **self.estimated(data, [("energy_per_operation_pj", action.answer)] if action.answer else []),
        )
        return compute, None if math.isinf(rate) else rate

    def unit(self, data: ComputeData, memory: str, copies: int, hertz: float | None) -> Iterator[Unit]:
        """Yield the vector unit of a compute node that einsums of two tensors take. All its operations cost the same."""
        action = self.action(data, "compute", 1, None)
        self.leaks(data)
        if hertz is None or math.isinf(action.rate):
            self.warn(f"{data.name} is ignored: a vector unit needs a throughput, and so does the compute node")
            return
        rate = copies * action.rate / hertz
        lanes, kinds = max(1, round(rate)), get_args(Operation)
        cycles = {} if rate == lanes else dict.fromkeys(kinds, lanes / rate)
        energies = FrozenDict(dict.fromkeys(kinds, action.energy_pj))
        yield Unit(name=data.name, lanes=lanes, memory=memory, energy_pj=energies, cycles=FrozenDict(cycles))

    def built(self, data: MemoryData, held: Tensors, hertz: float | None, outermost: bool) -> Memory:
        widths = self.widths(data, held)
        bits = self.narrowest.get(data.name, min(widths.values()))
        size = self.scope.number(data.size)
        if size < min(widths.values()):
            raise ExpressionError(f"size is {size} bits; expected at least one value of {min(widths.values())} bits")
        if data.values_per_action or any(action.values_per_action for action in data.actions):
            raise ExpressionError("values_per_action is not supported; give bits_per_action")
        self.leaks(data)
        named = f"{data.name} {data.component_class}".lower()
        ways = {}
        answers: list[tuple[str, Answer]] = []
        for way in ("read", "write"):
            given = self.given(data, way).bits_per_action
            access = self.scope.number(next((width for width in (given, data.bits_per_action) if width is not None), 1))
            if access <= 0:
                raise ExpressionError(f"bits_per_action {access}")
            if (
                (len(set(widths.values())) > 1 or bits < min(widths.values()))
                and access == int(access)
                and access % bits
                and bits % access
            ):
                bits = math.gcd(bits, int(access))  # a word must divide every access
            action = self.action(data, way, access, size)
            energy, rate = action.energy_pj, action.rate
            if hertz is None and self.timed(data) is not None:
                self.warn(
                    f"total_latency of {data.name} is ignored, because compute has no throughput: taken as unlimited"
                )
                rate = math.inf
            answers += [(f"{way}_energy_pj", action.answer)] if action.answer else []
            block = int(access // bits) if access >= bits and access % bits == 0 else 1
            per_second = rate * access / bits
            if not math.isinf(rate) and hertz is None:
                raise ExpressionError(
                    "it has a throughput, but compute has none, so cycles are undefined; give compute a throughput"
                )
            ways[way] = (
                (block, bits),
                energy * (block * bits / access),
                None if math.isinf(rate) or hertz is None else per_second / hertz,
            )
        if ways["read"][0] != ways["write"][0]:
            raise ExpressionError("reads and writes move different numbers of words; expected the same bits_per_action")
        reads, writes = ways["read"][2], ways["write"][2]
        shared = reads if not self.ported(data) and reads == writes else None
        if not self.ported(data) and reads != writes and None not in (reads, writes):
            self.warn(
                f"reads and writes of {data.name} take turns in AccelForge, each at a throughput of its own; "
                "here they run at the same time"
            )
        return Memory(
            name=data.name,
            technology="dram"
            if outermost or any(word in named for word in ("dram", "ddr", "hbm"))
            else "register"
            if "reg" in named
            else "sram",
            capacity_words=None if math.isinf(size) else int(size // bits),
            word_bits=bits,
            bits_per_value=FrozenDict({name: width for name, width in widths.items() if width != bits}),
            holds=self.holds(held),
            read_energy_pj=ways["read"][1],
            write_energy_pj=ways["write"][1],
            read_bandwidth_words_per_cycle=reads,
            write_bandwidth_words_per_cycle=writes,
            shared_bandwidth_words_per_cycle=shared,
            block_words=ways["read"][0][0],
            **self.estimated(data, answers),
        )

    def estimated(self, data: ComponentData, answers: list[tuple[str, Answer]]) -> dict[str, Any]:
        """Return area and estimate records; empty if nothing was estimated."""
        if not answers:
            return {}
        area = answers[0][1].estimate.area_um2
        if area is not None:
            answers = [*answers, ("area_um2", answers[0][1])]
        scale = float(self.scope.number(data.area_scale))
        return {"area_um2": None if area is None else rounded(area * scale), "estimates": tuple(records(answers))}

    def ported(self, data: MemoryData) -> bool:
        """Return whether reads and writes run at the same time."""
        return data.total_latency is not None and same(data.total_latency, SEPARATE_PORTS)

    def timed(self, data: ComponentData) -> float | None:
        """Return actions per second in total, if `total_latency` defines them."""
        return None if data.total_latency is None else calls_per_second(data.total_latency, self.scope)

    def widths(self, data: MemoryData, held: Tensors) -> dict[str, int]:
        """Return tensor -> bits of its values in this memory."""
        bits = {name: self.scope.bits[name] for name in sorted(held)}
        for text, value in data.bits_per_value.items():
            bits |= {name: self.scope.whole(value) for name in self.scope.tensors(text) & held}
        for text, scale in data.bits_per_value_scale.items():
            for name in sorted(self.scope.tensors(text) & held):
                scaled = bits[name] * self.scope.number(scale)
                if scaled < 1 or scaled != int(scaled):
                    raise ExpressionError(f"bits_per_value_scale gives {name} {scaled:g} bits; expected a whole number")
                bits[name] = int(scaled)
        return bits

    def holds(self, held: Tensors) -> tuple[str, ...] | None:
        """Return the tensors as roles if these are equivalent, otherwise as names."""
        if held == self.scope.every:
            return None
        if self.problem is None:
            return tuple(role for role in ("input", "weight", "output") if role in held)
        roles = dict.fromkeys(tensor.role for tensor in self.problem.tensors if tensor.name in held)
        meant = {tensor.name for tensor in self.problem.tensors if tensor.role in roles}
        return tuple(roles) if meant == held else tuple(n for n in self.problem.tensor_names if n in held)

    def given(self, data: ComponentData, name: str) -> ActionData:
        return next((action for action in data.actions if action.name == name), ActionData(name=name))

    def action(self, data: ComponentData, name: str, access_bits: float, size_bits: float | None) -> Action:
        """Return energy and rate of an action on `access_bits` bits. Raises ExpressionError."""
        given, number = self.given(data, name), self.scope.number
        dummy, answer = plain(data.component_class) == "dummy", None
        scale = number(given.energy_scale) * number(data.energy_scale) * number(data.actions_scale)
        if given.energy is not None or dummy:
            energy = _picojoules(number(0 if given.energy is None else given.energy) * scale)
        elif data.component_class is None:
            raise ExpressionError(f"no energy for '{name}'; give actions with energy")
        else:
            component = component_of(data, self.common, self.scope, size_bits)
            answer = component.ask(name)
            energy = rounded(answer.estimate.energy_pj * scale * access_bits / component.width)
        rate: float
        timed = self.timed(data)
        if timed is not None:
            return Action(energy, timed / number(data.actions_scale), answer)
        if data.total_latency is not None and not any(
            same(data.total_latency, form) for form in (IN_TURN, SEPARATE_PORTS)
        ):
            self.warn(f"total_latency of {data.name} is ignored: the throughputs apply")
        if given.throughput is None and given.latency is not None:
            rate = 1 / number(given.latency) if number(given.latency) else math.inf
        elif given.throughput is None and not dummy and answer is None:
            raise ExpressionError(f"no throughput for '{name}'; give one, or inf")
        else:
            rate = number(math.inf if given.throughput is None else given.throughput)
        if given.throughput is None and given.latency is None and answer is not None:
            self.warn(f"throughput of {data.name} is not estimated: taken as unlimited")
        rate *= number(given.throughput_scale) * number(data.throughput_scale) * number(data.n_parallel_instances)
        rate /= number(given.latency_scale) * number(data.latency_scale) * number(data.actions_scale)
        if not (rate > 0 and 0 <= energy < math.inf):
            raise ExpressionError(f"'{name}' has energy {energy:g} pJ and throughput {rate:g}")
        return Action(energy, rate, answer)

    def leaks(self, data: ComponentData) -> None:
        if data.leak_power is not None and self.scope.number(data.leak_power) > 0:
            self.warn(f"leakage of {data.name} is not counted")


def _takes_pairs(data: ComputeData, scope: Scope) -> bool:
    """Return whether a compute node is enabled for an einsum of one operand and a result."""
    pair = frozenset(("input", "output"))
    sets: dict[str, Value] = {role: pair & {role} for role in ("input", "weight", "output")}
    sets |= {"All": pair, "Tensors": pair, "Inputs": pair & {"input"}, "Outputs": pair & {"output"}}
    numbers = {name: value for name, value in scope.names.items() if not isinstance(value, frozenset)}
    nothing = {name: Tensors() for name, value in scope.names.items() if isinstance(value, frozenset)}
    try:
        return Scope(pair, {**numbers, **nothing, **sets}, dict.fromkeys(pair, 8)).truth(data.enabled)
    except ExpressionError:
        return False


@contextmanager
def _component(name: str, node: Document) -> Iterator[None]:
    """Convert errors in a component to InputError with its name and location."""
    with placed(node.locate(())):
        try:
            yield
        except ExpressionError as error:
            raise InputError(f"{name}: {error}") from None


def _picojoules(joules: float) -> float:
    """Convert decimal digits exactly."""
    return float(Decimal(repr(float(joules))).scaleb(12))


def tensors_of(shared: Mapping[str, Tensors], cluster: str, tensors: Sequence[Tensor]) -> tuple[str, ...]:
    """Return operands that the fanout sends to each sub-cluster separately.

    Empty if the fanout cannot multicast any operand.
    """
    may = shared.get(cluster)
    if may is None:
        return ()
    operands = [tensor.name for tensor in tensors if not tensor.is_output]
    return tuple(name for name in operands if name not in may) if set(operands) & may else ()
