"""The library's workloads: their sizes are those of the tables they name."""

import math

import pytest

from support.recorded.library import layers
from tilewright.schema.structure import recognise

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


def test_networks_have_the_operations_of_their_papers() -> None:
    """MobileNetV2, Table 4: 300 million; the counts are those of each network's blocks."""
    found = layers("sunstone_mobilenetv2_layers")
    repeats = {3: 1, 5: 2, 8: 3, 12: 2, 15: 2}
    blocks = (1, 2, 3, 4, 5, 7, 8, 11, 12, 14, 15, 17)
    parts = {(number, part): found.get(f"b{number}_{part}") for number in blocks for part in ("pw1", "dw", "pw2")}
    alike = {4: 3, 7: 5, 11: 8, 14: 12, 17: 15}  # a block whose first layers are those of an earlier one
    total = sum(found[name].macs for name in ("conv1", "conv_last", "classifier"))
    for (number, part), problem in parts.items():
        problem = problem or parts[alike.get(number, number), part]
        assert problem is not None or (number, part) == (1, "pw1")
        total += repeats.get(number, 1) * (problem.macs if problem else 0)
    assert total == pytest.approx(300e6, rel=0.01)
    for name, problem in found.items():
        structure = recognise(problem)
        assert structure is not None and ("G" in structure.parts) == name.endswith("_dw")


def test_networks_of_cosa() -> None:
    alexnet, resnext = layers("cosa_alexnet_layers"), layers("cosa_resnext50_layers")

    assert sum(each.macs for each in alexnet.values()) == pytest.approx(714e6, rel=0.01)
    assert len(resnext) == 25 and resnext["conv4_group"].dimensions["G"] == 32
    assert resnext["conv4_group"].macs == 512 * 14 * 14 * 16 * 9
    assert len(layers("cosa_deepbench")) == 76
