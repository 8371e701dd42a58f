"""COMET's language: products with their labels, chains pair by pair, and what is refused by name and line."""

import itertools
import re
from pathlib import Path

import numpy as np
import pytest

import tilewright as tw
from benchmarks import comet as checkout
from support.profiles import first
from tilewright.errors import InputError
from tilewright.schema.problem import Problem
from tilewright.schema.workload import Workload
from tilewright_frontends import CometOptions
from tilewright_frontends.comet import CometFrontend

ROOT = Path(__file__).parents[2]
TABLE = checkout.expected()
REFERENCE = re.compile(r"(?:transpose\()?([A-Za-z]\w*)\[([\w,]+)\]")


def written(folder: Path, body: str) -> str:
    path = folder / "program.ta"
    path.write_text(f"def main() {{\n{body}\n}}\n", encoding="utf-8")
    return str(path)


def program(statement: str, sizes: str) -> str:
    """A program with one statement."""
    labels = [size.split("=") for size in sizes.split()]
    tensors = dict(REFERENCE.findall(statement))
    lines = [f"IndexLabel [{label}] = [{size}];" for label, size in labels]
    lines += [f"Tensor<double> {name}([{of}], {{Dense}});" for name, of in tensors.items()]
    lines += [f"{name}[{of}] = 1.5;  # filled" for name, of in tensors.items()]
    return "\n".join([*lines, f"{statement};", f"print({next(iter(tensors))});"])


def load(source: str, **sizes: int) -> Workload:
    return CometFrontend(CometOptions(sizes=sizes)).load(source)


def macs(workload: Workload) -> dict[str, int]:
    return {layer.name: layer.problem.macs for layer in workload.layers}


def equation(problem: Problem) -> str:
    labels = [
        "".join(dimension for rank in tensor.projection for dimension in rank.terms) for tensor in problem.tensors
    ]
    return f"{','.join(labels[:-1])}->{labels[-1]}"


def counted(statement: str, sizes: str) -> list[int]:
    """Multiplications of a chain: every pair of words that meet, pair of factors by pair of factors, from the left."""
    ranges = {label: range(int(size)) for label, size in (part.split("=") for part in sizes.split())}
    (result, *factors) = [labels.split(",") for _, labels in REFERENCE.findall(statement)]
    counts, left = [], factors[0]
    for place, right in enumerate(factors[1:], 2):
        union = list(dict.fromkeys((*left, *right)))
        counts.append(sum(1 for _ in itertools.product(*(ranges[label] for label in union))))
        later = {label for labels in (result, *factors[place:]) for label in labels}
        left = [label for label in union if label in later]
    return counts


@pytest.mark.parametrize("path", first(0, *TABLE), ids=lambda path: Path(str(path)).name)
def test_comets_own_products_have_the_multiplications_counted_by_hand(path: str, tmp_path: Path) -> None:
    """The table has the statements of COMET's 29 files with dense products, of which three transpose an operand."""
    statement, sizes, wanted = TABLE[path]
    assert counted(statement, sizes) == wanted
    assert [layer.problem.macs for layer in load(written(tmp_path, program(statement, sizes))).layers] == wanted


@pytest.mark.exhaustive
def test_a_checkout_is_compared_file_by_file(tmp_path: Path) -> None:
    assert (len(TABLE), sum("transpose" not in statement for statement, _, _ in TABLE.values())) == (29, 26)
    for path, (statement, sizes, _) in TABLE.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(f"def main() {{ {program(statement, sizes)} }}", encoding="utf-8")
    (tmp_path / "sparse.ta").write_text("def main() { Tensor<double> A([8], CSR); }", encoding="utf-8")
    rows = list(checkout.compared(tmp_path))
    assert len(rows) == 30
    for path, kind, counts, wanted in rows:
        assert (kind, counts) == ((checkout.PRODUCTS, wanted) if path in TABLE else (checkout.SPARSE, [])), path


@pytest.mark.parametrize(
    "statement",
    first(
        2,
        "D[i,l] = A[i,j] * (B[j,k] * C[k,l])",
        "i0[i,a] = v[c,d,m,n] * t2[i,n,a,d] * t1[m,c]",
        "D[i,l] = transpose(A[j,i],{i,j}) * B[j,k] * C[k,l]",
        "C[i,j] = A[i,k,j] * B[k,j] * E[j]",
        "C[k] = A[i,j] * (B[j,k] * A[i,j])",
    ),
)
def test_the_layers_of_a_chain_compute_the_statement(statement: str, tmp_path: Path) -> None:
    """Executed on numbers, layer by layer, they give the sum of products that the labels state."""
    sizes = {label: 2 + place % 4 for place, label in enumerate("iajbkclmdnef")}
    workload = load(written(tmp_path, program(statement, " ".join(f"{k}={v}" for k, v in sizes.items()))))
    (target, of), *factors = REFERENCE.findall(statement)
    random = np.random.default_rng(0)
    values = {name: random.random([sizes[k] for k in labels.split(",")]) for name, labels in factors}
    wanted = np.einsum(
        f"{','.join(labels.replace(',', '') for _, labels in factors)}->{of.replace(',', '')}",
        *(values[name] for name, _ in factors),
    )
    for part in workload.unmapped:  # the transposed operand
        values[part.name] = values["A"].T
    for layer in workload.layers:
        names = [tensor.name for tensor in layer.problem.operands]
        given = [
            values[name if name in values else name.removesuffix("_2")] for name in names
        ]  # A * A: the second is A_2
        values[layer.name] = np.einsum(equation(layer.problem), *given)
    assert np.allclose(values[target], wanted)


def test_sums_ranges_and_functions(tmp_path: Path) -> None:
    """[0:16:2] has 8 values. 2.0 * X is a vector operation; SUM, the transpose and the sum are no products."""
    path = str(ROOT / "tests/data/comet/sums.ta")
    workload = load(path, k=4)
    assert macs(workload) == {"C_1": 256, "C_3": 256, "G": 256}
    assert [(part.operator, part.operations) for part in workload.unmapped] == [
        ("Mul", 64), ("Add", 32), ("transpose", 0), ("ReduceSum", 64),
    ]  # fmt: skip
    first_layer, second, last = workload.layers
    assert str(first_layer.problem) == "C_1[i, k] += X[i, j] * W[j, k]; i=8 k=4 j=8"
    assert [tensor.role for tensor in first_layer.problem.tensors] == ["input", "weight", "output"]
    assert (first_layer.problem.operation, first_layer.after, second.after) == ("gemm", (), ())
    assert last.after == ("C_1", "C_3") and last.origin is not None and last.origin.line == 11
    assert [(layer.operator, layer.before) for layer in workload.vectors] == [
        ("Mul", ("C_3",)), ("Add", ("G",)), ("ReduceSum", ()),
    ]  # fmt: skip
    assert tw.load(f"{path}/G", "problem", sizes={"k": 4}).macs == 256


def test_reads_pass_through_transpositions_and_end_where_a_tensor_is_written_again(tmp_path: Path) -> None:
    head = program("C[i,k] = A[i,j] * B[j,k]", "i=2 j=3 k=4 l=5").partition("print")[0]
    head += "Tensor<double> E([k, i], Dense); Tensor<double> F([k, l], Dense); Tensor<double> D([i, l], Dense);\n"
    turned = load(written(tmp_path, head + "E[k,i] = transpose(C[i,k],{k,i}); D[i,l] = E[k,i] * F[k,l]; print(C);"))
    (read,) = turned.layers[1].reads["E"]
    assert read.cut is None
    assert [[dict(index.terms) for index in side or ()] for side in (read.read, read.made)] == [
        [{"x0": 1}, {"x1": 1}],
        [{"x1": 1}, {"x0": 1}],
    ]
    assert [layer.returned for layer in turned.layers] == [True, False]
    for between in ("C[i,k] = 0.0;", "C[i,k] += A[i,j] * B[j,k];"):
        again = load(written(tmp_path, head + f"{between} D[i,l] = C[i,k] * F[k,l];"))
        assert all(read.cut for read in again.layers[-1].reads["C"])


def test_operations_have_names_of_their_own(tmp_path: Path) -> None:
    """Variables are called like a tensor, and a tensor like an intermediate result."""
    body = """
      IndexLabel [i, j] = [4];
      Tensor<float> A([i, j], Dense);  Tensor<float> C([i, j], Dense);  Tensor<float> C_1([i, j], Dense);
      C[i, j] = A[i, j] * A[j, i] + C_1[i, j];
      var C = SUM(C[i, j]);  var C = SUM(C[i, j]);
    """
    workload = load(written(tmp_path, body))
    names = [*(layer.name for layer in workload.layers), *(part.name for part in workload.unmapped)]
    assert names == ["C_2", "C", "C_3", "C_4"]
    assert [layer.name for layer in workload.vectors] == ["C", "C_3", "C_4"]


def test_widths_are_noted_unless_all_are_single_precision(tmp_path: Path) -> None:
    text = program("C[i,k] = A[i,j] * B[j,k]", "i=2 j=3 k=4")
    bits = [
        [tensor.bits for tensor in load(written(tmp_path, changed)).layers[0].problem.tensors]
        for changed in (text, text.replace("double", "float"), text.replace("double", "float", 1))
    ]
    assert bits == [[64, 64, 64], [None, None, None], [64, 64, 32]]


DECLARED = "IndexLabel [i, j] = [4]; IndexLabel k = [?]; Tensor<double> A([i, j], Dense);\n"


@pytest.mark.parametrize(
    ("body", "told"),
    first(
        3,
        ("Tensor<double> S([4, 4], {CSR});", "3:26: tensor S is sparse: its format is CSR"),
        ("A[i, j] = A[i, j] @(min,+) A[i, j];", "3:19: the operator @(min,+) is neither"),
        ("for i in range(3): A[i, j] = 1; end", "3:1: the statement 'for' is not read"),
        ("Tensor<double> S([4, 4], {D, CU});", "its format is D, CU"),
        ("A[i, j]<M, push> = A[i, j] * A[i, j];", "3:8: a mask of A"),
        ("A[i, j] = other(3);", "3:11: the function other is not read"),
        ("B[i, j] = A[i, j];", "no tensor is called B"),
        ("A[i] = A[i, j] * A[i, j];", "3:1: A has 2 axes, and 1 labels here"),
        ("A[i, i] = A[i, j] * A[i, j];", "label i is repeated in the result"),
        ("A[i, j] = A[i, i] * A[i, i];", "label j is in the result only"),
        ("A[i, j] = A[i, q] * A[q, j];", "no label is called q"),
        ("A[i, k] = A[i, j] * A[j, k];", "the sizes of the labels k are open\n  hint: give them: --size k=N"),
        ("IndexLabel l = [8]; A[i, l] = A[i, j] * A[j, l];", "axis 1 of A has the size 4, and its label l 8"),
        ("A[i, j] = A[i, j] + A[i, i];", "the operator @(+) has A[i, i] and A[i, j]; expected the same labels"),
        ("A[i, j] = A[i, j] * ;", "3:21: expected a tensor such as A[i, j], found ';'"),
        ("A[i, j] = A[i, j] .* A[i, j];", "it has no product of tensors\n"),
        ("A[i, j] = transpose(A[i, j], {i, k}) * A[i, j];", "transpose gives i, k; expected an order of i, j"),
        ("A[i, j] = " + "(" * 60 + "A[i, j]", "more than 50 nested brackets"),
        ("A[i, j] = A[i, j]" + " + A[i, j]" * 300 + ";", "more than 200 operators"),
        ("var a = SUM(A[i, j] * A[i, j]);", "SUM of an expression; expected a tensor"),
        ("Tensor<half> B([i], Dense);", "elements are half; expected double, float, int"),
        ("IndexLabel l = [3:3];", "3:17: the range has 0 values"),
        ("print(A)", "expected ';' after a statement, found '}'"),
        ("A[i, j] = $;", "3:11: unexpected '$'"),
    ),
)
def test_what_is_not_read_is_refused_by_name_and_line(body: str, told: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        load(written(tmp_path, DECLARED + body))
    assert told in str(caught.value)


def test_a_size_that_no_label_leaves_open_is_refused(tmp_path: Path) -> None:
    source = written(tmp_path, DECLARED + "A[i, j] = A[i, k] * A[k, j];")
    assert macs(load(source, k=4)) == {"A": 64}
    with pytest.raises(InputError, match="label i has the size 4"):
        load(source, i=3)
    with pytest.raises(InputError, match="has no label 'm'; it has: i, j, k"):
        load(source, m=3)


@pytest.mark.parametrize(("name", "wanted"), [("intensli2", 64**5), ("ccsd7", 64**5), ("ccsd-t4", 32**7)])
def test_the_contractions_of_unions_table_3_are_examples(name: str, wanted: int) -> None:
    """They are the problems of the library, which are named after the table."""
    problem = tw.load(ROOT / f"examples/comet/{name}.ta", "problem")
    listed = tw.load(f"union_tensor_contractions/{name}_{'32' if name == 'ccsd-t4' else '64'}", "problem")
    assert problem.macs == listed.macs == wanted
    assert equation(problem).lower() == equation(listed).lower()
