"""Sizes without useful divisors, and what `map` says about them."""

from pathlib import Path

import pytest

import tilewright as tw
from tilewright.schema.divisors import has_few_divisors
from tilewright.schema.workload import Layer, Workload


def test_few_divisors_are_those_of_a_large_prime_times_at_most_four() -> None:
    assert [n for n in range(1, 80) if has_few_divisors(n)] == [
        17, 19, 23, 29, 31, 34, 37, 38, 41, 43, 46, 47, 51, 53, 57, 58, 59, 61, 62, 67, 68, 69, 71, 73, 74, 76, 79
    ]  # fmt: skip


@pytest.mark.parametrize("factors", ["perfect", "ragged", "as_needed"])
def test_a_prime_size_is_named_with_its_divisors(factors: str) -> None:
    report = tw.map(
        "mk,kn->mn; m=197 k=4 n=4", "eyeriss", mapper="random", factors=factors, evaluations=100, cache=False
    )
    note = "note: tiles that divide 197 (m of einsum) are 1, 197; --factors as_needed allows others in such layers"
    assert (note in report.messages()) == (factors == "perfect")


def test_as_needed_is_ragged_only_in_layers_with_such_a_size(caplog: pytest.LogCaptureFixture) -> None:
    layers = tuple(
        Layer(problem=tw.load(f"mk,kn->mn; m={m} k=4 n=4", "problem").model_copy(update={"name": f"m{m}"}), after=())
        for m in (197, 192)
    )
    network = Workload(name="net", content="layers", layers=layers)
    with caplog.at_level("WARNING", "tilewright"):
        report = tw.map(network, "eyeriss", mapper="optimal", factors="as_needed", cache=False, progress=False)
    assert "few tiles divide 197 (m of m197): tiles of m197 may be ragged" in caplog.text and "192" not in caplog.text
    best = [layer.result for layer in report.layers]
    assert all(each is not None and each.proved == "yes" for each in best)
    for layer, factors in zip(layers, ("ragged", "perfect"), strict=True):
        alone = tw.map(layer.problem, "eyeriss", mapper="optimal", factors=factors, cache=False, progress=False)
        result = report.layers[layers.index(layer)].result
        assert alone.layers[0].result is not None and result is not None
        assert result.value == alone.layers[0].result.value
        space = tw.space(layer.problem, "eyeriss", factors="as_needed")
        assert space.factors == factors and space.size == tw.space(layer.problem, "eyeriss", factors=factors).size


@pytest.mark.parametrize(
    ("size", "told"), [(197, "with ragged tiles, and with spatial order"), (192, "better, with spatial")]
)
def test_the_sentence_of_a_proof_names_ragged_tiles(size: int, told: str, tmp_path: Path) -> None:
    text = f"mk,kn->mn; m={size} k=4 n=4"
    report = tw.map(
        text, "eyeriss", mapper="optimal", factors="as_needed", cache=False, folder=tmp_path, progress=False
    )
    assert told in str(report)
    (certificate,) = tmp_path.glob("*.certificate.yaml")
    assert ("with ragged tiles" in certificate.read_text()) == (size == 197)
    assert tw.verify_certificate(certificate).right


def test_a_mapper_without_ragged_tiles_refuses_the_layer() -> None:
    layer = tw.map(
        "mk,kn->mn; m=197 k=4 n=4", "eyeriss", mapper="cosa", factors="as_needed", cache=False, progress=False
    ).layers[0]
    assert layer.error is not None and "ragged tiles are not accepted" in str(layer.error)
    assert layer.error.hint is not None and "--factors perfect" in layer.error.hint
