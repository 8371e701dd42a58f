"""Prefill and decoding of language models, on a model small enough to count by hand."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import tilewright as tw
from support.command import Command, command
from support.profiles import first
from tilewright.application.api.generation.generating import _block, _kinds
from tilewright.application.api.generation.report import WAYS
from tilewright.application.api.page import network
from tilewright.schema.architecture import Architecture
from tilewright_frontends.transformer_sizes import NETWORKS, Block, Network, StateSpace

BLOCK = Block(2, 8, 4, 16, shared=2, head=2, gated=True, cached=True)
SEARCH: dict[str, Any] = {"mapper": "random", "evaluations": 60, "cache": False, "progress": False}


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> str:
    """A model of two blocks with grouped heads, under the name of another one."""
    monkeypatch.setitem(NETWORKS, "gpt2", Network("", {"stack": (BLOCK, 0)}, 8, "", ("vocabulary", 32, True)))
    return "gpt2"


def machine(**more: object) -> Architecture:
    """tpu_v1 with a vector unit."""
    unit = {"name": "Vector", "lanes": 16, "memory": "UnifiedBuffer"}
    kinds = ("add", "multiply", "exponential", "compare", "divide", "convert")
    units = [unit | {"energy_pj": dict.fromkeys(kinds, 0.5)}]
    return tw.load(tw.load("tpu_v1", kind="architecture").model_dump() | {"units": units} | more, kind="architecture")


def test_passes_are_those_of_map_and_totals_their_sums(
    small: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(network, "network_page", lambda *_: "page")  # charts take seconds
    report = tw.generate(
        small, machine(clock_ghz=0.5), prefill=8, decode=3, batch=2, kv_block=2, folder=tmp_path, **SEARCH
    )
    assert [(phase.name, phase.steps, phase.context) for phase in report.passes] == [
        ("prefill", 1, 8),
        ("decode_10", 2, 10),
        ("decode_12", 1, 12),
    ]
    totals = []
    for each, sizes in zip(report.passes, ({"seq": 8}, {"seq": 1, "cache": 9}, {"seq": 1, "cache": 11}), strict=True):
        alone = tw.load(small, kind="workload", batch=2, sizes=sizes)
        expected = tw.map(alone, machine(clock_ghz=0.5), **SEARCH).data()
        assert each.report.data()["totals"] == expected["totals"]
        assert each.report.data()["timeline"] == expected["timeline"]
        totals.append(expected["totals"])
    matrix, sequential, overlapped = report.speeds
    for speed, key in ((matrix, "cycles"), (sequential, "sequential_cycles"), (overlapped, "overlapped_cycles")):
        first, *steps = [total[key] for total in totals]
        assert (speed.first_token_cycles, speed.total_cycles) == (first, first + 2 * steps[0] + steps[1])
        assert speed.token_cycles == (2 * steps[0] + steps[1]) / 3
        assert speed.first_token_seconds == pytest.approx(first / 0.5e9)
        assert speed.tokens_per_second == pytest.approx(2 * 3 / ((2 * steps[0] + steps[1]) / 0.5e9))
    first, *steps = [total["network_energy_pj"] for total in totals]
    assert sequential.prompt_token_pj == pytest.approx(first / 16)
    assert sequential.token_pj == pytest.approx((2 * steps[0] + steps[1]) / 6)
    assert overlapped.token_pj is None
    assert {path.name for path in tmp_path.iterdir()} >= {"generation.json", "generation.csv", "decode_12"}
    pages = [(tmp_path / phase.name / "report.html").is_file() for phase in report.passes]
    assert pages == [True, False, True]
    for show in (tw.page, tw.plot):
        with pytest.raises(tw.errors.InputError) as caught:
            show(tmp_path, tmp_path / "page.svg")
        assert caught.value.hint == f"each pass has a folder: {tmp_path / 'prefill'}"
    assert json.loads((tmp_path / "generation.json").read_text(encoding="utf-8")) == report.data()


def test_what_is_kept_is_as_counted_by_hand(small: str) -> None:
    """Two blocks keep two vectors of two heads of two for each token. Weights: 64 + 32 + 32 + 64 + 3 * 128 in a block."""
    report = tw.generate(small, machine(), prefill=8, decode=3, batch=2, **SEARCH)
    memory = report.memory
    assert (memory.cache_after_prefill, memory.cache, memory.states) == (2 * 2 * 2 * 4 * 8, 2 * 2 * 2 * 4 * 11, 0)
    assert memory.weights == 2 * 576 + 2 * 32 * 8
    assert memory.total_bytes == (memory.weights + memory.cache) * memory.value_bits // 8
    assert (memory.capacity_bytes, memory.fits) == (2**33, True)


KINDS: dict[str, tuple[Block | StateSpace, int, int, int]] = {
    "states": (StateSpace(2, 8, 16, 4, 2, 3), 0, 2 * 16 * (4 + 2), 2 * (8 * 32 + 16 * (3 + 10 + 8) + 2 * 16)),
    "window": (replace(BLOCK, window=4), 2 * 2 * 4 * 4, 0, 2 * 576),
    "experts": (replace(BLOCK, experts=4, active=2), 2 * 2 * 4 * 9, 0, 2 * (192 + 8 * 4 + 4 * 384)),
}
"""Blocks, and what two of them keep after nine tokens: values of the cache, states, and weights without the vocabulary."""


@pytest.mark.parametrize("kind", first(1, *KINDS))
def test_other_blocks_keep_states_or_a_window_and_all_experts(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    block, cache, states, weights = KINDS[kind]
    monkeypatch.setitem(NETWORKS, "gpt2", Network("", {"stack": (block, 0)}, 8, "", ("vocabulary", 32, True)))
    report = tw.generate("gpt2", machine(), prefill=8, decode=1, **SEARCH)
    memory = report.memory
    assert (memory.cache, memory.states, memory.weights - 2 * 32 * 8) == (cache, states, weights)
    assert [speed.counted for speed in report.speeds] == list(WAYS)
    for one, sizes in zip(report.passes, ({"seq": 8}, {"seq": 1, "cache": 15}), strict=True):
        alone = tw.map(tw.load("gpt2", kind="workload", sizes=sizes), machine(), **SEARCH)
        assert one.report.data()["totals"] == alone.data()["totals"]


@pytest.mark.parametrize(("room", "fits"), first(1, (1839, False), (1840, True)))
def test_weights_and_cache_have_to_fit_the_outermost_memory(small: str, room: int, fits: bool) -> None:
    """1,664 weights and 176 values of the cache."""
    report = tw.generate(small, machine().replace({"WeightsDRAM.capacity_words": room}), prefill=8, decode=3, **SEARCH)
    assert report.memory.fits is fits
    assert any("have no room in WeightsDRAM" in message for message in report.messages()) is not fits


def test_operators_have_a_place_below_the_roofline(small: str) -> None:
    report = tw.generate(small, machine(), prefill=8, decode=1, **SEARCH)
    rows = report.data()["operators"]
    for one in report.passes:
        own = [row for row in rows if row["pass"] == one.name]
        assert sum(row["cycles"] for row in own) == one.total("sequential_cycles")
        assert sum(row["share"] for row in own) == pytest.approx(1)
        up = next(row for row in own if row["name"] == "stack.mlp.up")
        assert up["words"] == up["macs_per_word"] ** -1 * 8 * 16 * one.tokens
    assert {row["unit"] for row in rows} == {"MAC", "Vector"}
    assert "operators of the first and the last pass" in str(report)


def test_without_decoding_there_is_the_prefill_alone(small: str) -> None:
    report = tw.generate(small, "tpu_v1", prefill=8, **SEARCH)
    (speed,) = report.speeds
    assert (speed.counted, speed.token_cycles, speed.total_cycles) == ("matrix layers", None, report["prefill"].cycles)
    assert any("has no vector unit" in message for message in report.messages())
    assert any("states no clock" in message for message in report.messages())


@pytest.mark.parametrize(
    ("prefill", "decode", "block", "expected"),
    [
        (4096, 128, 16, {4096 + 16 * each: 16 for each in range(1, 9)}),
        (4100, 20, 16, {4112: 12, 4128: 8}),
        (5, 3, 1, {6: 1, 7: 1, 8: 1}),
    ],
)
def test_steps_read_whole_blocks(prefill: int, decode: int, block: int, expected: dict[int, int]) -> None:
    kinds, _ = _kinds("llama3_8b", prefill, decode, 1, block)
    assert {each.context: each.steps for each in kinds[1:]} == expected
    for kind in kinds[1:]:
        (scores,) = (layer for layer in kind.workload.layers if layer.name.endswith(".scores"))
        assert scores.problem.dimensions["S"] == kind.context


def test_longer_outputs_have_larger_blocks() -> None:
    assert [_block(each) for each in (0, 128, 129, 1024)] == [16, 16, 32, 128]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("resnet50", "--prefill", 8), "resnet50 is no language model with a cache"),
        (("bert_base", "--prefill", 8, "--decode", 1), "bert_base is no language model with a cache"),
        (("llama3_8b", "--decode", 8), "a prompt, which is missing"),
        (("llama3_8b", "--prefill", 0), "'--prefill': expected a value greater than or equal to 1"),
        (("llama3_8b", "--prefill", 8, "--decode", -1), "'--decode': expected a value greater than or equal to 0"),
        (("llama3_8b", "--prefill", 8, "--size", "seq=4"), "--prefill excludes --size"),
        (("llama3_8b", "--prefill", 8, "--pareto", 4), "--prefill excludes --fuse, --graph, --pareto"),
        (("llama3_8b", "gpt2", "--prefill", 8), "one language model, not for 2"),
        (("llama3_8b/decoder.attention.q", "--prefill", 8), "is no language model"),
    ],
)
def test_wrong_calls_are_told(
    words: tuple[object, ...], told: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tilewright: Command = command(monkeypatch, capsys)
    ran = tilewright("map", *words, "--arch", "tpu_v1")
    assert ran.code == 2 and told in " ".join(ran.err.replace("│", " ").split())


def test_an_object_has_no_other_sizes() -> None:
    with pytest.raises(tw.errors.CallError, match="expected its name or file, not a Workload"):
        tw.generate(tw.load("gpt2", kind="workload"), "tpu_v1", prefill=8)
    with pytest.raises(tw.errors.InputError, match="decode must be a number of at least 0"):
        tw.generate("gpt2", "tpu_v1", prefill=8, decode=-1)
