"""Mappings that ZigZag's own searches found on its accelerators: which have a form here, and with which ports."""

from collections import Counter

from support.zigzag_files import RUNS, searched
from tilewright.mapspace.legality import legality
from tilewright.notations.operand_loops import unsaid


def test_most_have_a_form_here() -> None:
    found: Counter[str] = Counter()
    for _, inputs in searched(RUNS[::8]):
        if inputs is None:
            found["crossed"] += 1
            continue
        assert inputs.problem and inputs.architecture and inputs.mapping
        parts = (inputs.problem, inputs.architecture, inputs.mapping)
        codes = {reason.code for reason in (*legality(*parts).reasons, *unsaid(*parts))}
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
    assert len(registers.ports) == 4
