"""Layers of a network as a group: the same operations on the same words, and edges that pair the words of reads."""

import itertools
import tempfile
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import tilewright as tw
from support.groups import figures
from support.networks import drawn
from support.onnx_models import save
from support.profiles import scaled
from tilewright.application.run.evaluation import build_model, evaluate_group
from tilewright.application.run.network_groups import NetworkGroup, group_of_layers
from tilewright.application.run.resident_group import resident_edge
from tilewright.errors import NotConformableError, UnknownNameError
from tilewright.mapspace.group_legality import group_legality, is_padded
from tilewright.schema.group import GroupMapping
from tilewright.schema.problem import Problem
from tilewright.schema.read import Read
from tilewright.schema.workload import Workload
from tilewright_frontends import TransformerOptions, nests
from tilewright_frontends.transformer_sizes import NETWORKS, Block, Network
from tilewright_frontends.transformers import TransformersFrontend

TIMELOOP, ORACLE = build_model("timeloop"), build_model("oracle")
ARCHITECTURE = tw.Architecture.model_validate(
    {
        "name": "small",
        "clusters": [
            {
                "name": "DRAM",
                "memories": [{"name": "DRAM", "technology": "dram", "read_energy_pj": 64, "write_energy_pj": 64}],
            },
            {"name": "Buffer", "memories": [{"name": "Buffer", "read_energy_pj": 1, "write_energy_pj": 1}]},
        ],
        "compute": {"energy_per_operation_pj": 0.5},
    }
)
Words = NDArray[np.int64]


def grouped(workload: Workload, *names: str) -> NetworkGroup:
    return group_of_layers(workload, names or [layer.name for layer in workload.layers], ARCHITECTURE)


def alone(workload: Workload, name: str) -> GroupMapping:
    """The layer as the network has it, as a group of its own."""
    layer = workload.layer(name).model_copy(update={"after": (), "reads": {}})
    network = workload.model_copy(update={"layers": (layer,)})
    made = group_of_layers(network, [name], ARCHITECTURE).group
    assert made.layers == (layer.problem,)
    return made


def words(problem: Problem, tensor: str, points: Words) -> list[tuple[int, ...]]:
    return [tuple(row) for row in (points @ problem.projection_matrix(problem.tensor(tensor)).T).tolist()]


def named_words(
    workload: Workload, made: NetworkGroup, layer: str, tensor: str
) -> dict[tuple[int, ...], tuple[int, ...]]:
    """Word in the group -> word in the network; each is the other's only one."""
    old, new = workload.layer(layer).problem, made.group.paths[layer].problem
    points = np.indices(new.sizes, dtype=np.int64).reshape(len(new.sizes), -1).T
    factors = np.zeros((len(new.sizes), len(old.sizes)), dtype=np.int64)
    for name, (origin, factor) in made.dimensions[layer].items():
        factors[new.dimension_names.index(name), old.dimension_names.index(origin)] = factor
    before = points @ factors
    assert len(np.unique(before, axis=0)) == len(points) == old.macs
    assert (before.max(axis=0) < old.sizes).all()
    pairs = set(zip(words(new, tensor, points), words(old, tensor, before), strict=True))
    names = dict(pairs)
    assert len(names) == len(pairs) == len(set(names.values()))
    return names


def paired(read: Read) -> set[tuple[tuple[int, ...], tuple[int, ...]]]:
    made, at = read.points()
    return set(
        zip(zip(*(a.tolist() for a in made), strict=True), zip(*(a.tolist() for a in at), strict=True), strict=True)
    )


def check_words(workload: Workload, made: NetworkGroup) -> None:
    """Each edge pairs exactly the words that the reads pair, and each read is an edge or is told."""
    group = made.group
    assert group_legality(group)
    reads = {(layer, operand, read.maker): read for layer, operand, read in workload.edges}
    names = {problem.name for problem in group.layers}
    told = {(read.maker, read.reader, read.operand) for read in made.left_out}
    kept = {
        (maker, layer, operand)
        for edge in group.edges
        if (maker := group.maker(edge.tensor)) is not None
        for layer, operand in edge.layers.items()
        if layer != maker
    }
    assert not kept & told
    assert kept | told >= {(maker, layer, operand) for layer, operand, maker in reads if {layer, maker} <= names}
    for edge in group.edges:
        shifts = {layer: edge.offsets.get(layer) for layer in edge.layers}
        own = {
            layer: {
                tuple(a - b for a, b in zip(new, shifts[layer] or (0,) * len(new), strict=True)): old
                for new, old in named_words(workload, made, layer, tensor).items()
            }
            for layer, tensor in edge.layers.items()
        }
        if edge.sizes is not None:
            exist = set(itertools.product(*map(range, edge.sizes)))
            own = {layer: {at: old for at, old in found.items() if at in exist} for layer, found in own.items()}
        maker = group.maker(edge.tensor)
        if maker is not None:
            for layer, tensor in edge.layers.items():
                if layer != maker:
                    pairs = {(old, own[layer][at]) for at, old in own[maker].items() if at in own[layer]}
                    used = set(own[layer].values())  # a stride leaves words out
                    assert pairs == {pair for pair in paired(reads[layer, tensor, maker]) if pair[1] in used}
            continue
        first, *others = edge.layers.items()
        if first[1] in workload.layer(first[0]).inputs:
            assert all(set(words.items()) == set(own[first[0]].items()) for words in own.values())
            continue
        for layer, tensor in others:
            outer = workload.layer(layer).reads[tensor][0].maker
            ours, theirs = (dict(paired(reads[at, name, outer])) for at, name in (first, (layer, tensor)))
            expected = {(ours[word], theirs[word]) for word in ours}
            pairs = {(old, own[layer][at]) for at, old in own[first[0]].items() if at in own[layer]}
            mine, others_words = set(own[first[0]].values()), set(own[layer].values())
            assert pairs == {pair for pair in expected if pair[0] in mine and pair[1] in others_words}


def check_counts(workload: Workload, made: NetworkGroup) -> None:
    """The group costs what its layers cost alone. Words of padding are not moved."""
    counted = evaluate_group(TIMELOOP, made.group)
    if {reason.code for reason in counted.reasons} == {"padding"}:  # only an execution counts strides with padding
        counted = evaluate_group(ORACLE, made.group)
    assert counted.valid, counted.reasons
    singles = [evaluate_group(TIMELOOP, alone(workload, problem.name)) for problem in made.group.layers]
    assert counted.macs == sum(single.macs for single in singles)
    if any(is_padded(made.group, edge.tensor) for edge in made.group.edges):
        return
    assert counted.cycles == sum(float(single.cycles or 0) for single in singles)
    assert counted.energy_pj == pytest.approx(sum(float(single.energy_pj or 0) for single in singles), rel=1e-12)

    def moved(report: Any) -> dict[tuple[str, str, str], tuple[float, ...]]:
        return {
            (row.level, row.layer, row.tensor): (row.reads.total, row.fills.total, row.updates.total)
            for row in report.accesses
        }

    group, rows = made.group, dict[tuple[str, str, str], tuple[float, ...]]()
    for single in singles:
        for (level, layer, tensor), row in moved(single).items():
            rows[level, layer, group.paths[layer].names[tensor.removeprefix(f"{layer}.")]] = row
    assert moved(counted) == rows


def attention(workload: Workload, prefix: str, parts: str = "q k v scores context out") -> NetworkGroup:
    return grouped(workload, *(f"{prefix}.{part}" for part in parts.split()))


@pytest.mark.parametrize("batch", [1, 2])
def test_heads_of_an_attention_are_axes(batch: int) -> None:
    network = tw.load("bert_base", "workload", batch=batch)
    made = attention(network, "encoder.attention")
    edges = {edge.tensor.removeprefix("encoder.attention."): edge for edge in made.group.edges}
    assert edges.keys() == {"q.A", "q.Z", "k.Z", "v.Z", "scores.Z", "context.Z"} and not made.left_out
    assert edges["q.A"].layers == {f"encoder.attention.{name}": "A" for name in "qkv"}
    assert not any(edge.offsets or edge.sizes for edge in edges.values())
    q = made.group.paths["encoder.attention.q"].problem
    assert {name: q.dimensions[name] for name in q.dimensions if name.startswith("N")} == {"N_64": 12, "N_1": 64}
    assert made.dimensions[q.name]["N_64"] == ("N", 64) and made.dimensions[q.name]["K"] == ("K", 1)
    assert [str(rank) for rank in q.tensor("B").projection] == ["K", "N_64", "N_1"] and q.operation is None
    rows = {tensor: {dimension for _, dimension in own} for tensor, own in made.rows.items()}
    assert rows["encoder.attention.scores.Z"] == {"S"}  # the softmax needs its row
    check_counts(network, made)


def test_grouped_queries_have_two_axes_and_results_that_leave_are_no_edges() -> None:
    network = tw.load("llama3_8b", "workload", sizes={"seq": 256})
    made = attention(network, "decoder.attention")
    q, out = (made.group.paths[f"decoder.attention.{name}"].problem for name in ("q", "out"))
    assert {"N_512": 8, "N_128": 4, "N_1": 128}.items() <= q.dimensions.items()
    assert {"K_512": 8, "K_128": 4, "K_1": 128}.items() <= out.dimensions.items()
    assert [edge.tensor.split(".", 2)[-1] for edge in made.group.edges] == ["q.Z", "scores.Z", "context.Z", "q.A"]
    assert {str(read) for read in made.left_out} == {
        f"decoder.attention.{reader}.B reads decoder.attention.{name}: the network returns the result of decoder.attention.{name}"
        for name, reader in (("k", "scores"), ("v", "context"))
    }
    assert ("decoder.attention.k", "decoder.attention.scores") in made.apart
    check_counts(network, made)


def test_a_gate_joins_two_results() -> None:
    network = tw.load("mixtral_8x7b", "workload", sizes={"seq": 8})
    made = attention(network, "decoder.mlp", "up gate down")
    assert [(dict(edge.layers), edge.added) for edge in made.group.edges] == [
        ({"decoder.mlp.up": "Z"}, ("decoder.mlp.gate",)),
        ({"decoder.mlp.gate": "Z", "decoder.mlp.down": "A"}, ()),
        ({"decoder.mlp.up": "A", "decoder.mlp.gate": "A"}, ()),
    ]
    assert not made.apart and not made.left_out
    check_counts(network, made)


def test_a_gate_is_no_edge_where_vector_units_multiply() -> None:
    network = tw.load("mixtral_8x7b", "workload", sizes={"seq": 8})
    names = [f"decoder.mlp.{name}" for name in ("up", "gate", "down")]
    made = group_of_layers(network, names, ARCHITECTURE, sums=False)
    assert [edge.layers for edge in made.group.edges] == [{"decoder.mlp.up": "A", "decoder.mlp.gate": "A"}]
    assert made.apart == {(f"decoder.mlp.{name}", "decoder.mlp.down") for name in ("up", "gate")}
    assert "several layers make A: decoder.mlp.up, decoder.mlp.gate" in str(made.left_out[0])


def test_an_mlp_reads_its_input_once_for_both_of_its_first_products() -> None:
    network = tw.load("llama3_8b", "workload", sizes={"seq": 8})
    made = attention(network, "decoder.mlp", "up gate down")
    *_, edge = made.group.edges
    assert edge.layers == {"decoder.mlp.up": "A", "decoder.mlp.gate": "A"}
    assert not made.left_out
    check_counts(network, made)


def test_every_layer_of_a_resnet_keeps_its_dimensions_and_padding() -> None:
    network = tw.load("resnet50", "workload")
    made = grouped(network)
    assert [problem.dimensions for problem in made.group.layers] == [
        layer.problem.dimensions for layer in network.layers
    ]
    assert len(made.group.edges) == 48
    padded = [edge for edge in made.group.edges if edge.offsets]
    assert len(padded) == 16 and all(set(edge.offsets.values()) == {(0, 0, 1, 1)} for edge in padded)
    added = {edge.tensor: edge.added for edge in made.group.edges if edge.added}
    assert added["n10.Outputs"] == ("n12",) and added["n12.Outputs"] == ("n22",)  # sums of residual connections
    assert not any("n10, n12" in str(read) for read in made.left_out)
    last = [read for read in made.left_out if "n146, n148" in str(read)]
    assert last  # pooling reads these, too, and it is unknown which words


@scaled(0.3)
@given(st.integers(0, 2**32))
def test_groups_of_random_networks_pair_the_words_of_their_reads(seed: int) -> None:
    random = Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        network = tw.load(save(drawn(random), Path(folder)), "workload")
    first = random.randrange(len(network.layers))
    last = random.randint(first + 1, len(network.layers))
    chosen = [layer.name for layer in network.layers[first:last]]
    try:
        made = grouped(network, *chosen)
    except NotConformableError as error:
        assert {reason.code for reason in error.reasons} <= {"count", "reads"}
        return
    check_words(network, made)
    if sum(problem.macs for problem in made.group.layers) < 20_000:
        check_counts(network, made)
        report, executed = evaluate_group(TIMELOOP, made.group), evaluate_group(ORACLE, made.group)
        holes = any(problem.is_strided for problem in made.group.layers)  # timeloop counts boxes with them
        assert executed.valid and (holes or not report.valid or figures(report) == figures(executed))


def network_of(*layers: dict[str, Any]) -> Workload:
    return Workload.model_validate({"name": "net", "layers": list(layers)})


def product(
    name: str, rows: int, inner: int, columns: int, reads: dict[str, Any] | None = None, value: str | None = None
) -> dict[str, Any]:
    """A layer Z[M, N] += A[M, K] * B[K, N]. `reads` are its words of A: maker, sizes, made, read. `value` is A's name."""
    problem = nests.gemm(name, (rows, inner), (inner, columns)).model_dump()
    layer = {"problem": problem, "after": [reads["maker"]] if reads else [], "reads": {"A": [reads]} if reads else {}}
    return layer | ({"inputs": {"A": value}} if value else {})


def words_of(maker: str, made: str, read: str, **sizes: int) -> dict[str, Any]:
    return {"maker": maker, "sizes": sizes, "made": made.split(", "), "read": read.split(", ")}


def test_different_splits_of_one_result_have_their_common_refinement() -> None:
    """One reader takes 24 columns as 4 x 6 turned, the other one as 2 x 12 turned."""
    network = network_of(
        product("a", 3, 5, 24),
        product("b", 3, 24, 2, words_of("a", "m, 6*g + d", "m, 4*d + g", m=3, g=4, d=6)),
        product("c", 3, 24, 2, words_of("a", "m, 12*g + d", "m, 2*d + g", m=3, g=2, d=12)),
    )
    made = grouped(network)
    assert {name: size for name, size in made.group.paths["a"].problem.dimensions.items() if name[0] == "N"} == {
        "N_12": 2,
        "N_6": 2,
        "N_1": 6,
    }
    assert [edge.layers.keys() for edge in made.group.edges] == [{"a", "b", "c"}] and not made.left_out
    check_words(network, made)
    check_counts(network, made)


def test_splits_that_do_not_nest_are_left_out_by_name() -> None:
    network = network_of(
        product("a", 3, 5, 24),
        product("b", 3, 24, 2, words_of("a", "m, 6*g + d", "m, 4*d + g", m=3, g=4, d=6)),
        product("c", 3, 24, 2, words_of("a", "m, 8*g + d", "m, 3*d + g", m=3, g=3, d=8)),
    )
    made = grouped(network)
    assert not made.group.edges and made.apart == {("a", "b"), ("a", "c")}
    assert {str(read) for read in made.left_out} == {
        f"{name}.A reads a: N of a has parts of 6 and of 8, which do not nest" for name in "bc"
    }
    assert made.group.layers == tuple(layer.problem for layer in network.layers)


def test_a_part_of_a_result_is_read_at_an_offset() -> None:
    """One product makes queries and keys of two heads; each reader takes one of them."""
    network = network_of(
        product("qk", 3, 5, 8),
        product("b", 3, 4, 2, words_of("qk", "m, 2*h + d", "m, 2*d + h", m=3, h=2, d=2)),
        product("c", 3, 4, 2, words_of("qk", "m, 2*h + d + 4", "m, 2*h + d", m=3, h=2, d=2)),
    )
    made = grouped(network)
    (edge,) = made.group.edges
    assert edge.offsets == {"c": (0, -1, 0, 0)}
    check_words(network, made)
    check_counts(network, made)


def test_inputs_that_layers_read_alike_are_in_common() -> None:
    network = network_of(
        product("before", 3, 5, 8),
        product("q", 3, 8, 4, {"maker": "before"}),
        product("k", 3, 8, 4, {"maker": "before"}),
        product("other", 3, 8, 4, {"maker": "before", "through": ["norm"]}),
    )
    made = grouped(network, "q", "k", "other")
    assert not made.rows
    assert [edge.layers for edge in made.group.edges] == [{"q": "A", "k": "A"}]
    check_words(network, made)
    check_counts(network, made)


def test_inputs_of_one_name_are_in_common_and_split_together() -> None:
    """The rows of q are 3 x 2 for its reader, so those of its input are, and those of k."""
    network = network_of(
        product("q", 6, 3, 4, value="x"),
        product("k", 6, 3, 4, value="x"),
        product("s", 2, 12, 5, words_of("q", "2*h + m, n", "m, 4*h + n", h=3, m=2, n=4)),
    )
    made = grouped(network)
    assert [edge.layers for edge in made.group.edges] == [{"q": "Z", "s": "A"}, {"q": "A", "k": "A"}]
    assert {"M_2": 3, "M_1": 2}.items() <= made.group.paths["k"].problem.dimensions.items() and not made.left_out
    check_words(network, made)
    check_counts(network, made)


def test_one_layer_that_takes_a_result_otherwise_sends_it_through_the_outermost_memory() -> None:
    cut = {"maker": "a", "cut": "a pooling"}
    network = network_of(product("a", 3, 5, 4), product("b", 3, 4, 4, {"maker": "a"}), product("c", 3, 4, 4, cut))
    made = grouped(network)
    assert [str(read) for read in made.left_out] == [
        "b.A reads a: c reads it, too: a pooling",
        "c.A reads a: a pooling",
    ]
    assert [str(read) for read in grouped(network, "a", "b").left_out] == ["b.A reads a: c is not among the layers"]


def test_a_shared_loop_around_a_result_that_is_no_edge_is_refused() -> None:
    """The rules of groups see no edge between a and c, so a search may put both into one loop."""
    reads = {"A": [{"maker": "b"}], "B": [{"maker": "a", "cut": "a pooling"}]}
    network = network_of(
        product("a", 4, 5, 6, value="x"),
        product("b", 4, 5, 6, value="x"),
        product("c", 4, 6, 2) | {"after": ["a", "b"], "reads": reads},
    )
    made = grouped(network)
    assert made.apart == {("a", "c")} and not made.broken(made.group)
    data = made.group.to_data()
    data["axes"] = {"M": {"a": "M", "b": "M", "c": "M"}}
    data["tree"]["entries"].append({"target": "Buffer", "keep": ["a.A"], "temporal_tile_sizes": {"M": 2}})
    shared = GroupMapping.model_validate(data)
    assert group_legality(shared)
    (reason,) = made.broken(shared)
    assert str(reason) == (
        "c reads a: it is unknown which words a step of M reads; loop over M inside the branches [unfinished]"
    )
    data["tree"]["branches"] = [data["tree"]["branches"][place] for place in (1, 2, 0)]
    assert "c runs before a; exchange the branches" in str(made.broken(GroupMapping.model_validate(data))[0])


def test_a_result_of_an_earlier_repetition_is_an_input() -> None:
    later = {"maker": "b", "sizes": {}}
    network = network_of(
        product("a", 4, 6, 6, later) | {"count": 2}, product("b", 4, 6, 6, {"maker": "a"}) | {"count": 2}
    )
    made = grouped(network)
    assert [str(read) for read in made.left_out] == ["a.A reads b: b runs later, so it is an earlier result"]
    assert [edge.layers for edge in made.group.edges] == [{"a": "Z", "b": "A"}] and not made.apart


def test_layers_that_cannot_be_one_group_are_told() -> None:
    network = network_of(
        product("a", 3, 5, 4),
        product("b", 3, 4, 4) | {"after": None},
        product("c", 3, 4, 4, {"maker": "a"}) | {"count": 2},
        product("d", 3, 4, 4, {"maker": "c"}),
    )
    with pytest.raises(NotConformableError) as caught:
        grouped(network)
    assert [str(reason) for reason in caught.value.reasons] == [
        "c: it and a have different counts, 2 and 1 [count]",
        "b: the workload does not state whose results it reads [reads]",
    ]
    with pytest.raises(NotConformableError, match="d: b runs before it, and is not among the layers"):
        grouped(network, "a", "d")
    with pytest.raises(NotConformableError, match="a layer is named twice"):
        grouped(network, "a", "a")
    with pytest.raises(UnknownNameError, match="net has no layer 'e'"):
        grouped(network, "e")


def test_tensors_start_where_the_architecture_may_hold_them() -> None:
    data = ARCHITECTURE.model_dump(mode="json")
    data["clusters"][0]["memories"][0]["holds"] = ["weight", "output"]
    network = network_of(product("a", 3, 5, 4))
    made = group_of_layers(network, ["a"], tw.Architecture.model_validate(data)).group
    assert [(entry.target, entry.keep) for entry in made.tree.entries] == [
        ("DRAM", ("a.B", "a.Z")),
        ("Buffer", ("a.A",)),
    ]
    data["clusters"][1]["memories"][0]["holds"] = ["weight"]
    with pytest.raises(NotConformableError, match="no memory may hold it for all its layers"):
        group_of_layers(network, ["a"], tw.Architecture.model_validate(data))


@pytest.mark.parametrize(
    ("rows", "read", "offset"),
    [
        (4, "x + 1", (1,)),  # one row of padding in front, and one behind
        (6, "x", (0,)),  # the window reads rows 0 to 3; row 4 and 5 of the result take the place of padding
    ],
)
def test_padding_in_place_of_words_is_no_edge(rows: int, read: str, offset: tuple[int, ...]) -> None:
    made = {"dimensions": {"M": rows, "K": 2}, "tensors": [*tensors("A", "K"), *tensors("Z", "M", role="output")]}
    window = {"dimensions": {"P": 4, "R": 3}, "tensors": [*tensors("I", "P + R"), *tensors("O", "P", role="output")]}
    network = network_of(
        {"problem": made | {"name": "a"}, "after": []},
        {
            "problem": window | {"name": "b"},
            "after": ["a"],
            "reads": {"I": [{"maker": "a", "sizes": {"x": 4}, "made": ["x"], "read": [read]}]},
        },
    )
    made_group, edge = grouped(network), resident_edge(network, "a", "T")
    if rows == 4:
        assert (
            made_group.group.edges[0].offsets == {"b": offset} and edge is not None and edge["offsets"] == {"b": offset}
        )
        check_words(network, made_group)
        return
    assert str(made_group.left_out[0]) == "b.I reads a: I has padding in place of words of a, along coordinate 0"
    assert edge is None


def tensors(name: str, *ranks: str, role: str = "input") -> list[dict[str, Any]]:
    return [{"name": name, "role": role, "projection": list(ranks)}]


def test_a_search_fuses_heads_of_a_network_and_an_execution_finds_every_word(monkeypatch: pytest.MonkeyPatch) -> None:
    block = Block(1, 8, 4, 6, shared=2, head=2)
    monkeypatch.setitem(NETWORKS, "small", Network("", {"stack": (block, 0)}, 4, "", ("head", 4, True)))
    network = TransformersFrontend(TransformerOptions(batch=1)).load("small")
    small = ARCHITECTURE.replace({"Buffer.capacity_words": 40})
    names = [f"stack.attention.{name}" for name in ("scores", "context", "out")]
    made = group_of_layers(network, names, small)
    fused = tw.fuse(made.group, objective="energy")
    assert fused.proved and fused.fused.of(fused.objective) < fused.unfused.of(fused.objective)  # type: ignore[operator]
    executed = evaluate_group(ORACLE, fused.mapping)
    assert executed.valid and executed.energy_pj == pytest.approx(fused.fused.energy_pj)
    assert not made.broken(fused.mapping)
    assert {"K_4": 2, "K_2": 2, "K_1": 2}.items() <= made.group.paths[names[-1]].problem.dimensions.items()


def _layer(name: str, *made: tuple[str, ...], count: int = 1, **reads: Any) -> dict[str, Any]:
    """Return a product of 4 x 4 words, which reads the sum of some results."""
    ranks = {"I": ["m", "k"], "W": ["k", "n"], "O": ["m", "n"]}
    tensors = [
        {"name": own, "role": role, "projection": ranks[own]}
        for own, role in zip("IWO", ("input", "weight", "output"), strict=True)
    ]
    read = [{"maker": maker} | reads.get(maker, {}) for (maker,) in made]
    return {
        "problem": {"name": name, "dimensions": {"m": 4, "n": 4, "k": 4}, "tensors": tensors},
        "after": [maker for (maker,) in made],
        "reads": {"I": read} if read else {},
        "count": count,
    }


TURNED = {"made": ["j", "i"], "read": ["i", "j"], "sizes": {"i": 4, "j": 4}}
ROWS = {"made": ["i", "j"], "read": ["i", "j"], "sizes": {"i": 4, "j": 4}, "whole": ["j"]}


@pytest.mark.parametrize(
    "layers",
    [
        [_layer("c", ("a",), ("b",)), _layer("d", ("a",), ("b",), b=TURNED)],
        [_layer("c", ("a",), ("b",)), _layer("d", ("a",), ("b",), a=ROWS)],
        [_layer("c", ("a",), ("b",), a={"through": ["Relu"]}), _layer("d", ("a",), ("b",))],
    ],
)
def test_a_sum_that_its_readers_see_in_two_ways_is_no_edge(layers: list[dict[str, Any]]) -> None:
    network = Workload.model_validate({"name": "net", "layers": [_layer("a"), _layer("b"), *layers]})
    made = grouped(network)
    assert not made.group.edges
    assert made.apart == {(maker, reader) for maker in "ab" for reader in "cd"}


@pytest.mark.parametrize("read", [{}, {"a": TURNED}])
def test_a_layer_that_reads_a_result_does_not_add_it(read: dict[str, Any]) -> None:
    layers = [_layer("a"), _layer("b", ("a",), **read), _layer("c", ("a",), ("b",))]
    made = grouped(Workload.model_validate({"name": "net", "layers": layers}))
    assert not made.group.edges and {("a", "c"), ("b", "c")} <= made.apart


def test_a_sum_with_an_earlier_iteration_is_no_edge() -> None:
    layers = [_layer("a", count=2), _layer("c", ("a",), ("c",), count=2)]
    made = grouped(Workload.model_validate({"name": "net", "layers": layers}))
    assert not made.group.edges and made.apart == {("a", "c")}


def test_a_sum_that_layers_outside_read_is_no_edge() -> None:
    layers = [*map(_layer, "abc"), _layer("d", ("a",), ("b",), ("c",)), _layer("z", ("a",), ("b",))]
    made = grouped(Workload.model_validate({"name": "net", "layers": layers}), *"abcd")
    assert not made.group.edges and made.apart == {(maker, "d") for maker in "abc"}


def test_a_chain_of_sums_adds_one_result_after_the_other() -> None:
    layers = [*map(_layer, "ab"), _layer("x", ("a",), ("b",)), _layer("c"), _layer("y", ("a",), ("b",), ("c",))]
    made = grouped(Workload.model_validate({"name": "net", "layers": layers}))
    assert {edge.tensor: edge.added for edge in made.group.edges} == {"a.O": ("b",), "b.O": ("c",), "c.O": ()}
    assert not made.left_out
