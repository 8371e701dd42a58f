"""The library's architectures: their figures are those of the tables they name."""

from typing import Any

import pytest

import tilewright as tw
from support.recorded.cosa import ARCHITECTURE as COSA
from support.recorded.library import FACTORFLOW, OURS, ROLES
from tilewright import library
from tilewright.mapspace.skeleton import Skeleton
from tilewright.schema.architecture import Memory

ARCHITECTURES = library.names("architectures")


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
        ("sunstone_edge", 14 * 12),
        ("sunstone_edge_unified", 16 * 16),
        ("sunstone_datacenter", 32 * 32),
        ("diannao", 16 * 16),
        ("cosa_simba", 4 * 4 * 64),
        ("cosa_simba_8x8", 8 * 8 * 64),
        ("cosa_simba_large_buffers", 4 * 4 * 64),
        ("cosa_k80", 13 * 1024),
        ("eyeriss_gating", 14 * 12),
        ("eyeriss_v2_pe", 1),
        ("sparse_tensor_core", 4 * 16 * 16),
        ("scnn", 8 * 8 * 4 * 4),
        ("extensor_like", 128),
        ("dstc", 8 * 16),
    ],
)
def test_compute_units(name: str, units: int) -> None:
    assert library.architecture(name).compute_instances == units


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_every_memory_has_a_block_of_loops_or_a_sibling_with_one(name: str) -> None:
    architecture = library.architecture(name)
    entries = Skeleton.for_architecture(architecture).entries

    assert {memory for entry in entries for memory in entry.memories} == {each.name for each in architecture.memories}
    innermost = architecture.clusters[-1]
    assert (entries[-1].target, entries[-1].steps) == (innermost.name, bool(innermost.memories))


def bytes_of(memory: Memory) -> float:
    assert memory.capacity_words is not None
    return memory.capacity_words * memory.word_bits / 8


@pytest.mark.parametrize(
    ("name", "sizes"),  # Union, Table V; Sunstone (ISPASS 2023), Table IV; its thesis, Table 6.3; DianNao
    [
        ("union_edge", {"L1": 512, "L2": 100 * 1024}),
        ("union_cloud", {"L1": 512, "L2": 800 * 1024}),
        ("sunstone_conventional", {"L1": 512, "L2": 3.1 * 2**20}),
        ("sunstone_simba", {"WeightL1": 32768, "OutputL1": 3072, "InputL1": 8192, "L2": 512 * 1024}),
        ("sunstone_edge", {"WeightL1": 384, "OutputL1": 32, "InputL1": 24, "L2": 108 * 1024}),
        ("sunstone_edge_unified", {"L1": 512, "L2": 128 * 1024}),
        ("sunstone_datacenter", {"WeightL1": 384, "OutputL1": 32, "InputL1": 24, "L2": 3.1 * 2**20}),
        ("diannao", {"NBin": 2048, "SB": 32768, "NBout": 2048}),
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


def test_cosas_baseline_is_what_its_schedules_were_recorded_for() -> None:
    def figures(architecture: Any) -> list[Any]:
        fields = {"capacity_words", "word_bits", "holds", "read_energy_pj", "read_bandwidth_words_per_cycle"}
        return [(memory.name, memory.model_dump(include=fields)) for memory in architecture.memories]

    assert figures(library.architecture("cosa_simba")) == figures(COSA)
    assert library.architecture("cosa_simba").compute_instances == COSA.compute_instances
    baseline, large = (
        {memory.name: memory.capacity_words or 0 for memory in library.architecture(name).memories}
        for name in ("cosa_simba", "cosa_simba_large_buffers")
    )
    assert {name: large[name] // words for name, words in baseline.items() if words} == {
        **dict.fromkeys(("InputBuffer", "WeightBuffer", "AccumulationBuffer"), 2),
        **{"GlobalBuffer": 8, "Registers": 1},
    }


def test_a_block_of_threads_has_the_limits_of_cuda() -> None:
    """48 KiB of shared memory, 65,536 registers, 255 of a thread, 192 cores that serve all threads (compute capability 3.7)."""
    machine = library.architecture("cosa_k80")
    assert bytes_of(machine.memories[1]) == 48 * 1024
    points = [point.architecture for point in tw.architecture_space("cosa_k80_blocks").points()]
    sizes = {each.clusters[1].fanout.size: each for each in (*points, machine) if each is not None}
    assert list(sizes) == [64, 128, 192, 256, 384, 512, 768, 1024]
    for threads, each in sizes.items():
        registers = each.memories[-1].capacity_words
        assert registers is not None and registers <= 255 and threads * registers <= 65536
        assert 192 * (each.compute.cycles_per_operation - 1) < threads <= 192 * each.compute.cycles_per_operation
    assert sizes[1024].memories[-1].capacity_words == machine.memories[-1].capacity_words == 64


def test_threads_and_blocks_add_up_nothing_together() -> None:
    """A reduction over the channels of a product stays in a thread: at most 2 x 3 of 13 x 1,024 threads work."""
    report = tw.map("mk,kn->mn; m=2 k=4096 n=3", arch="cosa_k80", mapper="quickflow", evaluations=200, progress=False)
    (layer,) = report.layers
    assert layer.mapping is not None
    assert {loop.dimension for loop in layer.mapping.loops() if loop.spatial} <= {"m", "n"}
