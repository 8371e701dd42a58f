"""Mappings that ZigZag's own searches found on its accelerators: which have a form here, and with which ports."""

from collections import Counter

import pytest

from support.zigzag_files import RUNS, searched
from tilewright.mapspace.legality import legality
from tilewright_notations.operand_loops import inexpressible, widths


def test_most_have_a_form_here() -> None:
    found: Counter[str] = Counter()
    for _, inputs in searched(RUNS[::8]):
        if inputs is None:
            found["crossed"] += 1
            continue
        assert inputs.problem and inputs.architecture and inputs.mapping
        parts = (inputs.problem, inputs.architecture, inputs.mapping)
        codes = {reason.code for reason in (*legality(*parts).reasons, *inexpressible(*parts))}
        found[" ".join(sorted(codes)) or "form"] += 1
    assert found == {"form": 20, "crossed": 1}


def test_ports_are_read() -> None:
    run = next(each for each in RUNS if each["accelerator"] == "gemm_l1_l3")
    ((_, inputs),) = searched([run])
    assert inputs is not None and inputs.architecture is not None
    far, near, registers = inputs.architecture.memories
    (whole,) = far.ports
    assert whole.moves["output"] == ("fills", "reads", "updates", "drains") and whole.words_per_cycle == 64
    assert [dict(port.moves) for port in near.ports] == [
        {"input": ("reads",)},
        {"weight": ("reads",)},
        {"output": ("reads", "updates")},
        {"input": ("fills",), "weight": ("fills",), "output": ("fills", "drains")},
    ]
    assert [port.words_per_cycle for port in near.ports] == [64, 64, 256, 64]
    # an access of full width costs the same, so a word costs a quarter at the port that is four times as wide
    assert [port.read_energy_factor for port in near.ports] == [1, 1, 0.25, 1]
    assert [port.write_energy_factor for port in near.ports] == [1, 1, 0.25, 1]
    assert len(registers.ports) == 4


@pytest.mark.parametrize(("size", "expected"), [(9, [1.8, 2]), (8, [2, 2]), (10, [2, 2]), (3, [1.5, 2])])
def test_the_first_unrolling_is_a_fraction_as_if_it_were_alone(size: int, expected: list[float]) -> None:
    run = next(each for each in RUNS if each["accelerator"] == "edge_tpu_like")
    run = run | {
        "sizes": {"B": 1, "K": 8, "C": 8, "OY": 1, "OX": size, "FY": 1, "FX": 1},
        "spatial": {"D1": ["K, 8"], "D2": ["C, 8"], "D3": ["OX, 2"], "D4": ["OX, 2"]},
        "ordering": [["OX", -(-size // 4)]],
    }
    ((_, inputs),) = searched([run])
    assert inputs is not None and inputs.problem and inputs.mapping

    found = widths(inputs.problem, inputs.mapping)

    assert [width for (_, name), width in sorted(found.items()) if name == "OX"] == expected
