"""Densities and sparse hardware: files come back, and what contradicts itself is refused."""

import base64
import io
import math
import pickle
import tracemalloc
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from tilewright.errors import InputError
from tilewright.reports import AccessCounts, LevelReport, Report, SparseCounts, TensorCounts
from tilewright.schema.architecture import Architecture
from tilewright.schema.density import MAX_WORDS, Density
from tilewright.schema.frozen import FrozenDict
from tilewright.schema.problem import Problem
from tilewright.schema.sparse import MetadataStorage, RankFormat, Saving
from tilewright.schema.unmatched import unmatched
from tilewright.schema.workload import Workload
from tilewright.testing.strategies import architectures, problems, sparse

MEMORY = """
name: a
clusters:
  - name: D
    memories:
      - name: D
        read_energy_pj: 1
        write_energy_pj: 1
        sparse:
          formats:
            A: {ranks: [{format: UOP, payload_bits: 4}, {format: CP, flatten: [[M, K]]}]}
            weight: [{format: B, flatten: all}]
          actions:
            - {skip: B, when_empty: [A]}
            - best_of: [{gate: A, when_empty: [B]}, {gate: B, when_empty: [A]}]
          metadata: {width_bits: 8}
compute: {energy_per_operation_pj: 1, sparse: {gate: true}}
"""
PROBLEM = """
name: g
dimensions: {M: 4, N: 4, K: 4}
tensors:
  - {name: A, role: input, projection: [M, K], density: 0.25}
  - {name: B, role: weight, projection: [K, N], density: {distribution: banded, band_width: 2}}
  - {name: Z, role: output, projection: [M, N]}
"""


@given(st.data())
def test_files_come_back(data: st.DataObject) -> None:
    problem, architecture = data.draw(sparse(data.draw(problems()), data.draw(architectures())))
    assert Problem.from_yaml(problem.to_yaml()) == problem == Problem.from_yaml(problem.to_json())
    assert (
        Architecture.from_yaml(architecture.to_yaml()) == architecture == Architecture.from_yaml(architecture.to_json())
    )
    assert hash(Architecture.from_yaml(architecture.to_yaml())) == hash(architecture)


def test_a_density_is_part_of_the_work_and_a_dense_problem_keeps_its_key() -> None:
    dense = Problem.from_yaml(
        PROBLEM.replace(", density: 0.25", "").replace(", density: {distribution: banded, band_width: 2}", "")
    )
    sparse = Problem.from_yaml(PROBLEM)
    assert sparse.sparse_tensors == ("A", "B") and dense.sparse_tensors == ()
    assert sparse.content_key != dense.content_key
    assert dense.content_key == "c1d59a2725b3f8ed7aa5cbd40a9d6683ca6fb21b3a9ddeed2fa840bd7999470a"
    assert sparse.replace({"tensors.A.density": 0.5}).tensor("A").density != sparse.tensor("A").density
    assert "density: 0.25" in sparse.to_yaml()


@pytest.mark.parametrize(
    ("density", "message"),
    [
        ("2", "less than or equal to 1"),
        ("-0.5", "greater than or equal to 0"),
        ("x", "expected keys and values"),
        ("{distribution: uniform}", "a uniform density needs 'density'"),
        ("{distribution: banded, density: 1}", "a banded density needs 'band_width'"),
        ("{density: 1, band_width: 3}", "a structured density has no 'band_width'"),
        ("{distribution: poisson, density: 1}", "'structured', 'uniform', 'banded' or 'data'"),
    ],
)
def test_a_density_that_cannot_be_is_refused(density: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as raised:
        Problem.from_yaml(PROBLEM.replace("0.25", density))
    assert "tensors[0].density" in str(raised.value)


def test_only_square_matrices_are_banded() -> None:
    with pytest.raises(InputError, match=r"<text>:6.*a banded tensor must be a square matrix \(B is 4 x 5\)"):
        Problem.from_yaml(PROBLEM.replace("N: 4", "N: 5"))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("skip: B, when_empty: [A]", "skip: B", "'skip' needs 'when_empty'"),
        ("skip: B, when_empty: [A]", "skip: B, gate: A, when_empty: [A]", "found gate and skip"),
        ("skip: B, when_empty: [A]", "when_empty: [A]", "found none"),
        ("{gate: B, when_empty: [A]}]", "{skip: B, when_empty: [A]}]", "must be of one kind"),
        ("- best_of:", "- when_empty: [A]\n              best_of:", "'best_of' has no 'when_empty'"),
        ("format: UOP,", "format: B,", "no message"),
        (
            "{format: CP, flatten: [[M, K]]}",
            "{format: CP}, {format: UB}",
            r"rank 2 \(UB\) is not compressed, but rank 1 \(CP\)",
        ),
        ("format: UOP, ", "format: UB, ", "UB has the memory's default bits"),
        ("width_bits: 8", "width_bits: 2", "4 bits of metadata or payload do not fit in accesses of 2 bits"),
        ("metadata: {width_bits: 8}", "decompresses: true", "rank 0 of A needs a wider metadata.width_bits"),
        ("flatten: all", "flatten: most", "flatten: expected 'all'"),
        ("format: UOP", "format: U", "'UOP', 'CP', 'B', 'RLE' or 'UB'"),
        ("gate: true", "gates: true", "unknown key 'gates'; did you mean 'gate'"),
    ],
)
def test_sparse_hardware_that_cannot_be_is_refused(old: str, new: str, message: str) -> None:
    text = MEMORY.replace(old, new)
    assert text != MEMORY
    if message == "no message":
        assert Architecture.from_yaml(text).sparse_parts == ("D", "MAC")
        return
    with pytest.raises(InputError, match=message):
        Architecture.from_yaml(text)


def test_bits_grow_to_divide_an_access() -> None:
    storage = MetadataStorage(width_bits=30, default_bits=5)
    ranks = [RankFormat(format="CP", metadata_bits=bits) for bits in (0, 4, 7, 11)]
    assert [storage.bits_of(rank)[0] for rank in ranks] == [0, 5, 10, 15]
    assert storage.bits_of(RankFormat(format="B")) == (1, 5) and storage.bits_of(RankFormat(format="UB")) == (5, 5)
    with pytest.raises(ValueError, match="31 bits"):
        storage.bits_of(RankFormat(format="CP", payload_bits=31))


def test_roles_mean_every_tensor_of_theirs_and_names_take_precedence() -> None:
    tensors = Problem.from_yaml(PROBLEM).tensors
    memory = Architecture.from_yaml(MEMORY).memories[0].sparse
    assert memory is not None
    formats = {tensor.name: memory.format_of(tensor) for tensor in tensors}
    assert formats["Z"] is None and formats["A"] != formats["B"]
    assert formats["B"] is not None and formats["B"].ranks[0].format == "B" and formats["B"].is_compressed
    saving = Saving(gate="output", when_empty=("input", "weight"))
    assert list(saving.on(tensors)) == [Saving(gate="Z", when_empty=("A", "B"))]
    assert (
        list(Saving(gate="input", when_empty=("input",)).on(tensors)) == []
    )  # a role does not condition a tensor on itself
    assert list(Saving(gate="A", when_empty=("A",)).on(tensors)) == [Saving(gate="A", when_empty=("A",))]
    assert list(Saving(gate="X", when_empty=("A",)).on(tensors)) == []
    best = Saving(best_of=(saving, Saving(gate="X", when_empty=("A",))))
    assert list(best.on(tensors)) == [Saving(best_of=(Saving(gate="Z", when_empty=("A", "B")),))]
    assert (best.kind, best.names) == ("gate", ("output", "input", "weight", "X", "A"))


def test_names_that_no_problem_has_are_told() -> None:
    architecture = Architecture.from_yaml(MEMORY.replace("gate: A", "gate: Ax"))
    (told,) = unmatched([Problem.from_yaml(PROBLEM)], architecture)
    assert "memory D of a has sparse parts of tensor 'Ax', which does not exist" in told


def test_a_report_has_the_counts_of_sparse_hardware() -> None:
    sparse = SparseCounts(
        dense=AccessCounts(reads=8, fills=4), gated=AccessCounts(reads=3), stored_words=2, average_instances=0.5
    )
    counts = TensorCounts(reads=5, fills=4, updates=0, instances=1, tile_words=4, energy_pj=1.0, sparse=sparse)
    level = LevelReport(name="D", instances=1, cycles=4, energy_pj=1.0, tensors=FrozenDict({"A": counts}))
    report = Report(
        model="m", problem="g", valid=True, macs=8, cycles=4, energy_pj=1.0, edp=4.0, levels=(level,),
        actual_operations=5, gated_operations=3, skipped_operations=0,
    )  # fmt: skip
    assert Report.model_validate_json(report.model_dump_json()) == report
    (row,) = report.rows()
    assert {
        "reads": 5,
        "dense_reads": 8,
        "gated_reads": 3,
        "skipped_fills": 0,
        "stored_words": 2,
    }.items() <= row.items()
    problem, architecture = Problem.from_yaml(PROBLEM), Architecture.from_yaml(MEMORY)
    assert report.on(architecture, problem).levels[0].used_words == 2
    dense = level.model_copy(update={"tensors": FrozenDict({"A": counts.model_copy(update={"sparse": None})})})
    assert "sparse" not in report.model_copy(update={"levels": (dense,)}).rows()[0]


DATA = PROBLEM.replace("0.25", "{data: a.npy}")


def test_actual_data_are_read_next_to_the_problem_and_kept_as_positions(tmp_path: Path) -> None:
    values = np.arange(16, dtype=np.float32).reshape(4, 4) % 3
    np.save(tmp_path / "a.npy", np.asfortranarray(values))
    (tmp_path / "problem.yaml").write_text(DATA)
    found = Problem.from_file(tmp_path / "problem.yaml")
    density = found.tensor("A").density
    assert density is not None and density.data is not None
    np.testing.assert_array_equal(density.data.array, values != 0)
    assert str(density) == "0.625 of actual data"
    again = Problem.from_yaml(found.to_yaml())  # needs no file
    assert again == found and hash(again) == hash(found) and pickle.loads(pickle.dumps(found)) == found
    given = found.model_dump(mode="json")
    given["tensors"][0]["density"] = {"data": values * -7}
    assert Problem.model_validate(given).content_key == found.content_key
    given["tensors"][0]["density"] = {"data": values * 0}
    assert Problem.model_validate(given).content_key != found.content_key


def test_data_of_any_length_come_back() -> None:
    values = np.random.default_rng(0).random(200_000) < 0.5
    density = Density.model_validate({"data": values})
    assert density.data is not None and max(map(len, density.data.packed)) <= 8000
    assert Density.model_validate(density.model_dump(mode="json")) == density
    assert density.data.fraction == values.mean()


def _saved(values: np.ndarray[Any, Any]) -> bytes:
    """The bytes of a NumPy file."""
    stream = io.BytesIO()
    np.save(stream, values)
    return stream.getvalue()


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (None, r"there is no file .*a\.npy"),
        (b"no array", r"a\.npy is not a NumPy file of numbers"),
        (b"\x93NUMPY\x01\x00\x02\x00{\n", r"a\.npy is not a NumPy file of numbers"),
        (np.ones((4, 5)), r"data of A are 4 x 5 values; expected 4 x 4, an axis for each of M, K"),
        (np.array([["x"] * 4] * 4), r"expected numbers.*found values of type <U1"),
        (np.array([[None] * 4] * 4), r"a\.npy is not a NumPy file of numbers"),
        (np.array([[0.0, math.nan, 1.0, 0.0]] * 4), r"some values are no numbers \(NaN\)"),
        (_saved(np.ones((4, 4))).replace(b"NUMPY\x01\x00", b"NUMPY\x09\x09"), r"a\.npy is not a NumPy file of numbers"),
        (_saved(np.ones((4, 4))).replace(b"(4, 4), ", b"(4, -1),"), r"a\.npy is not a NumPy file of numbers"),
        (_saved(np.ones((4, 4))).replace(b"(4, 4), ", b"(4, True"), r"a\.npy is not a NumPy file of numbers"),
        (_saved(np.ones((4, 4)))[:-8], r"a\.npy is not a NumPy file of numbers"),
    ],
    ids=["missing", "other", "header", "shape", "text", "objects", "nan", "version", "negative", "flag", "short"],
)
def test_data_that_cannot_be_read_are_refused(values: Any, message: str, tmp_path: Path) -> None:
    if isinstance(values, bytes):
        (tmp_path / "a.npy").write_bytes(values)
    elif values is not None:
        np.save(tmp_path / "a.npy", values, allow_pickle=True)
    (tmp_path / "problem.yaml").write_text(DATA)
    with pytest.raises(InputError, match=message) as raised:
        Problem.from_file(tmp_path / "problem.yaml")
    assert "problem.yaml:5:" in str(raised.value)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("{shape: [4, 4], packed: [eJwDAAAAAAE=]}", "has no 16 bits"),
        ("{shape: [4, 4], packed: ['%%']}", "has no 16 bits"),
        ("{shape: [4, 3], packed: [eJz7/x8ABAEB/w==]}", "has no 12 bits"),
        ("{shape: [999999, 999999], packed: []}", "expected at most"),
        ("3", "a NumPy array, or the path"),
    ],
)
def test_packed_data_that_cannot_be_are_refused(data: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Problem.from_yaml(PROBLEM.replace("0.25", f"{{data: {data}}}"))


def _bomb(tensors: int, side: int) -> dict[str, Any]:
    """A small document with large tensors of zeros, all different."""
    found: list[dict[str, Any]] = [{"name": "Z", "role": "output", "projection": ["M"]}]
    for number in range(tensors):
        bits = bytes([128 + number]) + bytes(side * side // 8 - 1)
        text = base64.b64encode(zlib.compress(bits, 9)).decode()
        data = {"shape": [side, side], "packed": [text[at : at + 8000] for at in range(0, len(text), 8000)]}
        found.append({"name": f"T{number}", "role": "input", "projection": ["M", "K"], "density": {"data": data}})
    return {"name": "bomb", "dimensions": {"M": side, "K": side}, "tensors": found}


def test_the_actual_data_of_a_document_have_a_limit() -> None:
    side = 2**12
    largest = MAX_WORDS // side**2
    assert Problem.model_validate(_bomb(largest, side)).tensors[1].density
    message = f"{MAX_WORDS + side**2:,} values of actual data; expected at most {MAX_WORDS:,} in total"
    with pytest.raises(ValidationError, match=message):
        Problem.model_validate(_bomb(largest + 1, side))
    parts = [_bomb(count, side) | {"name": f"n{count}"} for count in (largest, 1)]
    layers = [{"problem": part} for part in parts]
    assert len(Workload.model_validate({"name": "net", "layers": layers}).layers) == 2  # equal data count once
    parts[1]["tensors"][1] = _bomb(largest + 1, side)["tensors"][-1]
    with pytest.raises(ValidationError, match=message):
        Workload.model_validate({"name": "net", "layers": layers})


def test_bits_stay_packed() -> None:
    side = 2**12
    tracemalloc.start()
    try:
        problem = Problem.model_validate(_bomb(4, side))
        held, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < 2**20 and peak < 2 * side**2 / 8 + 2**22
    density = problem.tensors[2].density
    assert density is not None and density.data is not None
    assert density.data.fraction == 2 / side**2 and density.data.array.sum() == 2


@pytest.mark.parametrize("value", [np.broadcast_to(np.int8(1), (2**14, 2**13))])
def test_arrays_that_are_too_large_are_refused_before_they_are_packed(value: Any) -> None:
    with pytest.raises(ValidationError, match="expected at most"):
        Density.model_validate({"data": value})
