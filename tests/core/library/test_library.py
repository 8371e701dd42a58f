"""The library's files: they load, their figures are those of the tables they name, their rules leave something."""

import json
import math
import re
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from support import DATA
from tilewright import library
from tilewright.errors import NoValidMappingError, UnknownNameError
from tilewright.mapspace.legality import legality
from tilewright.mapspace.skeleton import Skeleton, Slot
from tilewright.mapspace.space import MapSpace
from tilewright.schema.architecture import Architecture, Memory
from tilewright.schema.constraints import Constraints, Variant
from tilewright.schema.document import FileModel
from tilewright.schema.frozen import FrozenDict
from tilewright.schema.mapping import Entry, Mapping
from tilewright.schema.problem import Problem
from tilewright.schema.structure import recognise

ARCHITECTURES = library.names("architectures")
WORKLOADS = library.names("workloads")
CONSTRAINTS = [(arch, name) for arch in ARCHITECTURES for name in library.constraints_for(arch)]
FACTORFLOW = json.loads((DATA / "library/factorflow.json").read_text())["architectures"]


def layers(workload: str) -> dict[str, Problem]:
    return {layer.name: layer.problem for layer in library.workload(workload).layers}


def space(problem: Problem, architecture: Architecture, constraints: Constraints | None) -> MapSpace:
    rules = constraints.rules_for(problem, architecture) if constraints else None
    return MapSpace.of(problem, constraints.shape(architecture) if constraints else architecture, rules)


# -- the files ---------------------------------------------------------------------------------------------------


def test_what_comes_with_it() -> None:
    assert set(ARCHITECTURES) >= {
        *("eyeriss", "simba", "tpu_v1", "gemmini", "union_edge", "union_cloud"),
        *("sunstone_conventional", "sunstone_simba"),
    }
    assert set(WORKLOADS) >= {
        *("quickflow_convs", "factorflow_gemms", "sunstone_kernels", "sunstone_layers"),
        *("union_tensor_contractions", "union_dnn_layers"),
    }


def files() -> list[FileModel]:
    found: list[FileModel] = [library.architecture(name) for name in ARCHITECTURES]
    found += [library.workload(name) for name in WORKLOADS]
    return found + [library.constraints(arch, name) for arch, name in CONSTRAINTS]


@pytest.mark.parametrize("loaded", files(), ids=lambda each: f"{type(each).__name__}-{each.name}")
def test_every_file_round_trips_and_names_its_source(loaded: Any) -> None:
    assert type(loaded).from_yaml(loaded.to_yaml()) == loaded
    assert type(loaded).from_yaml(loaded.to_json()) == loaded
    assert re.search(r"FactorFlow|QuickFlow, Table|Union \(PACT 2021\)|Sunstone \(", loaded.source)


def test_no_file_is_left_out_and_each_has_its_own_name() -> None:
    known = {f"{arch}.{name}" for arch, name in CONSTRAINTS}

    assert set(library.names("constraints")) == known
    for name in ARCHITECTURES:
        assert library.architecture(name).name == name
    for name in WORKLOADS:
        assert library.workload(name).name == name
    for arch, name in CONSTRAINTS:
        found = library.constraints(arch, name)
        assert (found.architecture, found.name) == (arch, name)


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_at_most_one_dataflow_is_the_default(name: str) -> None:
    defaults = [each for each in library.constraints_for(name).values() if each.default]

    assert len(defaults) <= 1
    assert library.default_constraints(name) == (defaults[0] if defaults else None)


def test_the_published_dataflows() -> None:
    found = {name: library.default_constraints(name) for name in ARCHITECTURES}

    assert {name: each.name for name, each in found.items() if each} == {
        "eyeriss": "row_stationary",
        "simba": "channels",
        "tpu_v1": "weight_stationary",
        "gemmini": "weight_stationary",
    }


def test_summaries_name_everything() -> None:
    archs, works = library.architectures(), library.workloads()

    assert tuple(archs) == ARCHITECTURES and tuple(works) == WORKLOADS
    assert archs["eyeriss"].startswith("168 compute units; DRAM, GlobalBuffer, InRegister")
    assert works["quickflow_convs"].startswith("20 layers;")


def test_one_layer_of_a_workload() -> None:
    one = library.workload("quickflow_convs/XVI")

    assert [layer.problem for layer in one.layers] == [layers("quickflow_convs")["XVI"]]
    assert one.source == library.workload("quickflow_convs").source


def test_an_architecture_of_ones_own_has_no_constraints() -> None:
    assert library.constraints_for("mine") == {} and library.default_constraints("mine") is None


@pytest.mark.parametrize(
    ("ask", "expected"),
    [
        (lambda: library.architecture("eyeris"), ["'eyeris'", "did you mean 'eyeriss'?", "simba"]),
        (lambda: library.workload("quickflow_conv"), ["did you mean 'quickflow_convs'?", "union_dnn_layers"]),
        (lambda: library.workload("union_dnn_layers/BERT1"), ["did you mean 'BERT-1'?", "union_dnn_layers", "DLRM-3"]),
        (lambda: library.workload("nothing/I"), ["'nothing'", "quickflow_convs"]),
        (lambda: library.constraints("eyeriss", "row"), ["eyeriss", "row_stationary", "none"]),
        (lambda: library.architecture("../pyproject"), ["../pyproject", "eyeriss"]),
    ],
)
def test_unknown_names_are_answered_with_the_known_ones(ask: Any, expected: list[str]) -> None:
    with pytest.raises(UnknownNameError) as caught:
        ask()
    for words in expected:
        assert words in str(caught.value)


def test_importing_the_library_is_light() -> None:
    code = "import sys, tilewright.library as l; l.names('workloads'); print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()

    assert "tilewright.library" in loaded
    assert not {"numpy", "networkx", "onnx", "tilewright.schema.workload", "tilewright.schema.architecture"} & set(
        loaded
    )


# -- architectures -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "units"),
    [
        ("eyeriss", 14 * 12),
        ("simba", 16 * 4 * 4),
        ("tpu_v1", 256 * 256),
        ("gemmini", 16 * 16),
        ("union_edge", 256),
        ("union_cloud", 2048),
        ("sunstone_conventional", 32 * 32),
        ("sunstone_simba", 4 * 4 * 8 * 8),
    ],
)
def test_compute_units(name: str, units: int) -> None:
    assert library.architecture(name).compute_instances == units


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_every_memory_has_a_block_of_loops_or_a_sibling_with_one(name: str) -> None:
    architecture = library.architecture(name)
    entries = Skeleton.for_architecture(architecture).entries

    assert {memory for entry in entries for memory in entry.memories} == {each.name for each in architecture.memories}
    assert entries[-1].target == architecture.clusters[-1].name and entries[-1].steps


def bytes_of(memory: Memory) -> float:
    assert memory.capacity_words is not None
    return memory.capacity_words * memory.word_bits / 8


@pytest.mark.parametrize(
    ("name", "sizes"),  # Union, Table V; Sunstone (ISPASS 2023), Table IV
    [
        ("union_edge", {"L1": 512, "L2": 100 * 1024}),
        ("union_cloud", {"L1": 512, "L2": 800 * 1024}),
        ("sunstone_conventional", {"L1": 512, "L2": 3.1 * 2**20}),
        ("sunstone_simba", {"WeightL1": 32768, "OutputL1": 3072, "InputL1": 8192, "L2": 512 * 1024}),
    ],
)
def test_capacities_of_the_tables(name: str, sizes: dict[str, float]) -> None:
    memories = {memory.name: memory for memory in library.architecture(name).memories}

    assert {key: bytes_of(memories[key]) for key in sizes} == pytest.approx(sizes, rel=1e-5)


def test_union_noc_bandwidth_is_that_of_l2() -> None:
    for name, gigabytes in (("union_edge", 32), ("union_cloud", 256)):
        architecture = library.architecture(name)
        l2 = next(memory for memory in architecture.memories if memory.name == "L2")
        assert architecture.clock_ghz == 1 and l2.word_bits == 8
        assert (l2.read_bandwidth_words_per_cycle, l2.write_bandwidth_words_per_cycle) == (gigabytes, gigabytes)


OURS = {"eyeriss": "eyeriss", "simba": "simba", "gemmini": "gemmini", "tpu": "tpu_v1"}
ROLES = {"in": "input", "w": "weight", "out": "output"}


@pytest.mark.parametrize("variant", FACTORFLOW)
def test_hardware_is_factorflows(variant: str) -> None:
    """Level by level, the GEMM variant and the convolution variant alike."""
    architecture = library.architecture(OURS[variant.removesuffix("_conv")])
    levels = FACTORFLOW[variant]
    ours: list[dict[str, Any]] = []
    for cluster in architecture.clusters:
        ours += [{"memory": memory.name, "memory_object": memory} for memory in cluster.memories]
        if cluster.fanout.size > 1:
            ours.append({"fanout": cluster.fanout})

    assert len(ours) == len(levels) - 1
    for level, mine in zip(levels, ours, strict=False):
        if "fanout" in level:
            fanout = mine["fanout"]
            assert (fanout.size, fanout.multicast, fanout.reduction) == (
                level["size"],
                level["multicast"],
                level["reduction"],
            )
            continue
        memory = mine["memory_object"]
        assert memory.name == level["memory"]
        assert memory.capacity_words == level["size"]
        assert [memory.read_energy_pj, memory.write_energy_pj] == level["energy"]
        assert [memory.read_bandwidth_words_per_cycle, memory.write_bandwidth_words_per_cycle] == level["bandwidth"]
        assert set(memory.holds or ROLES.values()) == {ROLES[word] for word in level["stores"]}
        assert memory.multiple_buffering == level["buffering"]
    compute = architecture.compute
    assert [compute.energy_per_operation_pj, compute.cycles_per_operation] == [
        levels[-1]["compute"],
        levels[-1]["cycles"],
    ]


# -- constraints -------------------------------------------------------------------------------------------------

CONV = layers("quickflow_convs")["VIII"]  # every dimension but the batch is larger than 1
GEMM = layers("factorflow_gemms")["MB6"]
MTTKRP = layers("sunstone_kernels")["mttkrp_poisson1"]


def free(problem: Problem, slot: Slot) -> set[str]:
    """Dimensions larger than 1 that may take more than one trip in the slot."""
    able = {name for index, name in enumerate(problem.dimensions) if slot.highest[index] > 1}
    return {name for name in able if problem.dimensions[name] > 1}


@pytest.mark.parametrize("variant", FACTORFLOW)
def test_the_default_dataflow_allows_exactly_what_factorflow_allows(variant: str) -> None:
    is_conv = variant.endswith("_conv")
    problem = CONV if is_conv else GEMM
    architecture = library.architecture(OURS[variant.removesuffix("_conv")])
    found = space(problem, architecture, library.default_constraints(architecture.name))
    letter = {"M": "K"} if is_conv else {}
    memories = {entry.inside: free(problem, slot) for slot, entry in temporal(found)}
    splits = [free(problem, slot) for slot in found.slots if slot.spatial and slot.most != 1]
    levels = FACTORFLOW[variant]
    every = set(problem.dimensions) - {"N"} if is_conv else set(problem.dimensions)

    assert splits == [{letter.get(dim, dim) for dim in level["dims"]} for level in levels if "fanout" in level]
    compared = 0
    for level in levels:
        if level.get("memory") in memories:
            fixed = {letter.get(dim, dim) for dim, factor in level["fixed"].items() if factor == 1}
            assert memories[level["memory"]] == every - fixed, level["memory"]
            compared += 1
    assert compared == len(memories) >= 4


def temporal(found: MapSpace) -> list[tuple[Slot, Any]]:
    return [(slot, found.skeleton.entries[slot.entry]) for slot in found.slots if not slot.spatial]


def test_the_weight_register_of_eyeriss_steps_in_factorflows_order() -> None:
    level = next(level for level in FACTORFLOW["eyeriss_conv"] if level.get("memory") == "WRegister")
    rules = library.constraints("eyeriss", "row_stationary").rules_for(CONV, library.architecture("eyeriss"))
    assert rules is not None
    rule = next(rule for rule in rules.temporal if rule.memory == "WRegister")

    assert list(rule.order) == level["order"][:2] and set(rule.order) == set(rule.only or ())


@pytest.mark.parametrize("variant", ["gemmini", "tpu", "tpu_conv"])
def test_full_array_fixes_what_factorflow_fixes(variant: str) -> None:
    is_conv = variant.endswith("_conv")
    problem = layers("quickflow_convs")["II"] if is_conv else GEMM
    name = OURS[variant.removesuffix("_conv")]
    rules = library.constraints(name, "full_array").rules_for(problem, library.architecture(name))
    assert rules is not None
    fixed = [dict(level["fixed"]) for level in FACTORFLOW[variant] if "fanout" in level]
    letter = {"M": "K"} if is_conv else {}

    assert [fixed_trips(rule.factors) for rule in rules.spatial] == [
        {letter.get(dim, dim): factor for dim, factor in each.items()} for each in fixed
    ]
    register = next(level for level in FACTORFLOW[variant] if level.get("memory") == "Register")
    mine = next(rule for rule in rules.temporal if rule.memory == "Register")
    assert fixed_trips(mine.factors) == {dim: factor for dim, factor in register["fixed"].items() if factor > 1}


def fixed_trips(factors: Any) -> dict[str, int]:
    assert all(bound.min == bound.max for bound in factors.values())
    return {name: bound.min for name, bound in factors.items()}


def test_full_array_takes_full_layers_and_refuses_others() -> None:
    tpu, full = library.architecture("tpu_v1"), library.constraints("tpu_v1", "full_array")
    convs = layers("quickflow_convs")

    assert space(convs["II"], tpu, full).factorizations > 0
    empty = space(convs["XII"], tpu, full)
    assert empty.factorizations == 0
    with pytest.raises(NoValidMappingError, match="XII"):
        empty.sample(np.random.default_rng(0), 1)


@pytest.mark.parametrize(("arch", "name"), CONSTRAINTS)
def test_rules_for_convolutions_products_and_others(arch: str, name: str) -> None:
    architecture, found = library.architecture(arch), library.constraints(arch, name)
    transposed = layers("quickflow_convs")["XVI"]
    rules = {problem.name: found.rules_for(problem, architecture) for problem in (CONV, transposed, GEMM)}

    if found.aspect:
        assert set(rules.values()) == {None}
        assert found.shape(architecture).compute_instances == architecture.compute_instances
        assert found.shape(architecture).clusters[1].fanout.size == found.aspect["C3"]
    else:
        assert all(isinstance(each, Variant) for each in rules.values())
        assert rules[CONV.name] == rules[transposed.name] != rules[GEMM.name]
    assert found.rules_for(MTTKRP, architecture) is None


def test_aspect_ratios_are_those_of_the_paper() -> None:
    """Union, section V-B."""
    for arch, rows in (("union_edge", (1, 2, 4, 8, 16)), ("union_cloud", (1, 2, 4, 8, 16, 32))):
        shapes = [each.aspect for each in library.constraints_for(arch).values() if each.aspect]
        units = library.architecture(arch).compute_instances
        assert sorted(shape["C3"] for shape in shapes) == list(rows)
        assert all(shape["C3"] * shape["C2"] == units for shape in shapes)


def all_in_dram(problem: Problem, architecture: Architecture) -> Mapping:
    """Every loop stands right inside DRAM; below, all tiles are single iterations."""
    whole, ones = dict(problem.dimensions), dict.fromkeys(problem.dimensions, 1)
    entries = []
    for index, entry in enumerate(Skeleton.for_architecture(architecture).entries):
        cluster = architecture.cluster(entry.target)
        memories = [memory for memory in cluster.memories if memory.name in entry.memories]
        held = tuple(each.name for each in problem.tensors if any(memory.may_hold(each) for memory in memories))
        sizes = ones if index else whole
        entries.append(
            Entry(
                target=entry.target,
                keep=held if entry.holds else None,
                temporal_order=problem.dimension_names,
                temporal_tile_sizes=FrozenDict(sizes),
                spatial_tile_sizes=FrozenDict(sizes),
            )
        )
    return Mapping(entries=tuple(entries))


ORDINARY = [name for name in CONSTRAINTS if not name[1].startswith(("full_array", "aspect_"))]


@pytest.mark.parametrize(("arch", "name"), ORDINARY)
@pytest.mark.parametrize("workload", WORKLOADS)
def test_dataflows_leave_every_layer_a_mapping(arch: str, name: str, workload: str) -> None:
    """The space is not empty; for layers that the architecture was made for, one mapping of it is surely legal."""
    architecture, constraints = library.architecture(arch), library.constraints(arch, name)
    for problem in layers(workload).values():
        found = space(problem, architecture, constraints)
        assert found.factorizations > 0, problem.name
        assert all(bound == 1 for slot in found.slots for bound in slot.lowest), problem.name
        if recognise(problem):
            verdict = legality(problem, architecture, all_in_dram(problem, architecture))
            assert verdict, verdict


@pytest.mark.parametrize("arch", ["eyeriss", "simba", "tpu_v1", "gemmini"])
@pytest.mark.parametrize("layer", layers("quickflow_convs"))
def test_random_mappings_obey_the_dataflow(arch: str, layer: str) -> None:
    problem, architecture = layers("quickflow_convs")[layer], library.architecture(arch)
    found = space(problem, architecture, library.default_constraints(arch))

    for mapping in found.sample(np.random.default_rng(1), 3):
        for loop in mapping.loops():
            slot = next(slot for slot in found.slots if (slot.entry, slot.spatial) == (loop.entry, loop.spatial))
            assert loop.trips <= slot.highest[problem.dimension_names.index(loop.dimension)]


# -- workloads ---------------------------------------------------------------------------------------------------

TABLE_I = """
name  I   II  III IV V   VI  VII VIII IX  X  XI  XII XIII XIV XV  XVI XVII XVIII XIX XX
C     128 512 3   64 128 256 256 576  3   72 64  24  16   128 256 128 576  256   72  256
K     256 512 64  64 128 256 512 576  96  72 256 88  16   128 256 256 576  256   72  256
P     56  28  112 56 28  14  7   7    176 28 56  28  224  112 56  32  7    14    28  56
R     3   3   7   3  3   3   3   5    3   3  1   1   3    9   3   4   5    3     3   5
N     1   1   1   1  1   1   1   1    1   1  1   1   1    1   1   1   1    64    128 32
s     1   1   2   1  1   1   2   1    2   2  1   1   3    4   2   1   1    1     2   2
d     1   1   1   1  1   1   1   1    1   1  1   1   4    3   3   1   1    1     1   3
"""


def test_the_twenty_convolutions_are_table_i_of_quickflow() -> None:
    rows = {row.split()[0]: row.split()[1:] for row in TABLE_I.strip().splitlines()}
    table = [
        dict(zip(rows, column, strict=True)) | {"Q": column[3], "S": column[4]}
        for column in zip(*rows.values(), strict=True)
    ]
    found = layers("quickflow_convs")

    assert list(found) == [row["name"] for row in table] and len(table) == 20
    for row in table:
        problem = found[row["name"]]
        assert problem.dimensions == {name: int(row[name]) for name in "NKCPQRS"}
        transposed = row["name"] in ("XVI", "XVII")
        window = problem.output if transposed else problem.tensor("Inputs")
        assert [rank.terms for rank in window.projection[-2:]] == [
            {"P": int(row["s"]), "R": int(row["d"])},
            {"Q": int(row["s"]), "S": int(row["d"])},
        ]
        structure = recognise(problem)
        assert structure and structure.kind == ("conv_transpose" if transposed else "conv")
        assert problem.operation == ("conv_transpose2d" if transposed else "conv2d")


def test_contractions_are_as_much_work_as_their_matrix_products() -> None:
    """Union, Table III: both columns of sizes, and TTGT changes neither work nor footprint (section V-A)."""
    found = layers("union_tensor_contractions")
    sizes = {"intensli2": (64, 16), "ccsd7": (64, 16), "ccsd-t4": (32, 16)}
    products = {
        "intensli2_64": (262144, 64, 64),
        "intensli2_16": (4096, 16, 16),
        "ccsd7_64": (4096, 64, 4096),
        "ccsd7_16": (256, 16, 256),
        "ccsd-t4_32": (32768, 32768, 32),
        "ccsd-t4_16": (4096, 4096, 16),
    }

    assert set(products) == {f"{name}_{size}" for name, both in sizes.items() for size in both}
    assert set(found) == {*products, *(f"{name}_ttgt" for name in products)}
    for name, (m, n, k) in products.items():
        native, product = found[name], found[f"{name}_ttgt"]
        assert set(native.sizes) == {int(name.partition("_")[2])}
        assert product.dimensions == {"M": m, "N": n, "K": k}
        assert native.macs == product.macs == m * n * k
        for one, other in zip(native.tensors, product.tensors, strict=True):
            assert native.tensor_words(one) == product.tensor_words(other)


def test_contractions_are_those_of_table_iii() -> None:
    found = layers("union_tensor_contractions")

    assert {name: str(found[name]).partition(";")[0] for name in ("intensli2_16", "ccsd7_16", "ccsd-t4_16")} == {
        "intensli2_16": "C[a, b, c, d] += A[d, b, e, a] * B[e, c]",
        "ccsd7_16": "C[a, b, c] += A[a, d, e, c] * B[e, b, d]",
        "ccsd-t4_16": "C[a, b, c, d, e, f] += A[d, f, g, b] * B[g, e, a, c]",
    }


def test_layers_of_union_table_iv() -> None:
    found = layers("union_dnn_layers")
    convolutions = {
        "ResNet50-1": {"N": 32, "K": 64, "C": 64, "P": 56, "Q": 56, "R": 1, "S": 1},
        "ResNet50-2": {"N": 32, "K": 64, "C": 64, "P": 56, "Q": 56, "R": 3, "S": 3},
        "ResNet50-3": {"N": 32, "K": 512, "C": 1024, "P": 14, "Q": 14, "R": 1, "S": 1},
    }
    connected = {
        "DLRM-1": (512, 1024, 1024),  # N, NIN, NON
        "DLRM-2": (512, 1024, 64),
        "DLRM-3": (512, 2048, 2048),
        "BERT-1": (256, 768, 768),
        "BERT-2": (256, 3072, 768),
        "BERT-3": (256, 768, 3072),
    }

    assert list(found) == [*convolutions, *connected]
    for name, dimensions in convolutions.items():
        assert found[name].dimensions == dimensions
    for name, (batch, inputs, outputs) in connected.items():
        assert found[name].dimensions == {"M": outputs, "K": inputs, "N": batch}


def test_products_of_factorflow() -> None:
    expected = {
        "KQV": (3072, 1024, 4096),
        "KTQ": (4096, 64, 4096),
        "VScores": (64, 4096, 4096),
        "Out": (1024, 1024, 4096),
        "FF1": (4096, 1024, 4096),
        "FF2": (1024, 4096, 4096),
        "MB1": (8192, 8192, 8192),
        "MB2": (1024, 8192, 1024),
        "MB3": (8, 8192, 8),
        "MB4": (8, 1024, 8192),
        "MB5": (8192, 1024, 8),
        "MB6": (512, 256, 256),
    }

    found = layers("factorflow_gemms")
    assert {name: tuple(each.dimensions[dim] for dim in "MKN") for name, each in found.items()} == expected
    for problem in found.values():
        structure = recognise(problem)
        assert structure and structure.kind == "gemm"
        assert structure.parts == {dim: (dim,) for dim in "MKN"}


def test_kernels_of_sunstone() -> None:
    """Definitions of the thesis' Table 6.1, tensors of Table 6.2, ranks of section 6.4."""
    found = layers("sunstone_kernels")
    definitions = {
        "mttkrp": "Z[i, j] += A[i, k, l] * B[k, j] * C[l, j]",
        "ttmc": "Z[i, l, m] += A[i, j, k] * B[j, l] * C[k, m]",
        "sddmm": "Z[i, j] += A[i, j] * B[i, k] * C[k, j]",
        "mmc": "Z[i, l] += A[i, j] * B[j, k] * C[k, l]",
        "tcl": "Z[l, m, n] += A[i, j, k] * B[i, l] * C[j, m] * D[k, n]",
    }
    tensors = {"nell2": (12092, 9184, 28818), "netflix": (480189, 17770, 2048), "poisson1": (256, 256, 256)}
    matrices = {"bcsstk17": (10974, 10974), "cant": (62451, 62451)}

    for name, problem in found.items():
        kind = name.partition("_")[0]
        assert str(problem).partition(";")[0] == definitions[kind]
        assert problem.operation == kind
        assert recognise(problem) is None
    for name, shape in tensors.items():
        for kind, ranks in (("mttkrp", 32), ("ttmc", 8 * 8)):
            problem = found[f"{kind}_{name}"]
            assert problem.macs == math.prod(shape) * ranks
            assert problem.tensor_words(problem.tensor("A")) == math.prod(shape)
    for name, shape2 in matrices.items():
        assert found[f"sddmm_{name}"].macs == math.prod(shape2) * 512
    assert {name.partition("_")[0] for name in found} == set(definitions)


def test_a_weight_update_is_as_much_work_as_its_inference() -> None:
    found = layers("sunstone_layers")
    updates = [name for name in found if "_wu_" in name]

    assert len(updates) == 4 and sum(name.startswith("resnet18") for name in found) == 11
    for name in updates:
        inference, update = found[name.replace("_wu_", "_inf_")].dimensions, found[name].dimensions
        assert found[name].macs == found[name.replace("_wu_", "_inf_")].macs
        assert {dim: update[dim] for dim in "NCPQRS"} == {
            **{"N": inference["C"], "C": inference["N"]},
            **{"P": inference["R"], "Q": inference["S"], "R": inference["P"], "S": inference["Q"]},
        }


def test_strided_layers_are_the_same_sizes_as_the_repositorys() -> None:
    found = layers("sunstone_layers")
    for name in ("resnet18_conv1", "resnet18_conv3_1"):
        strided = found[f"{name}_stride2"]
        assert strided.dimensions == found[name].dimensions
        assert str(strided.tensor("Inputs").projection[-1]) == "2*Q + S"
