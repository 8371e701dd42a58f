"""Union's notation: the paper's figures, typed in, give its results, and written files are read back."""

import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support import EXAMPLE_FILES
from support.command import Command
from support.notations import same
from tilewright.errors import InputError, NotConformableError
from tilewright.mapspace.legality import legality
from tilewright.plugin.adapter import InputSet
from tilewright.schema.constraints import Constraints
from tilewright.testing.strategies import architectures, mappings, problems
from tilewright_adapters.union import UnionAdapter

SMALL = """
problem:
  dimensions: [M, K]
  data-space:
    - {name: A, projection: [[[M]], [[K]]]}
    - {name: Z, projection: [[[M]]], read-write: true}
  instance: {M: 4, K: 2}
architecture:
  clusters:
    - {cluster: C1, memory: {name: L1, read_energy_pj: 1, write_energy_pj: 1}}
  compute: {energy_per_operation_pj: 1}
mapping:
  - target cluster: C1
    temporal_order: MK
    temporal_tile_sizes: 4, 2
    spatial_tile_sizes: 4, 2
  - target_cluster: C1
    temporal_order: KM
    temporal_tile_sizes: [1, 1]
    spatial_tile_sizes: [1, 1]
"""


def parse(folder: Path, *texts: str) -> InputSet:
    paths = [folder / f"{number}.yaml" for number in range(len(texts))]
    for path, text in zip(paths, texts, strict=True):
        path.write_text(text, encoding="utf-8")
    return UnionAdapter().parse(paths)


def there_and_back(inputs: InputSet, folder: Path) -> InputSet:
    return parse(folder, *UnionAdapter().render(inputs).values())


@pytest.mark.parametrize(("figure", "elements"), [("5", 8), ("7", 18), ("9a", 256), ("9b", 1024)])
def test_figures_use_the_elements_the_paper_says(tilewright: Command, figure: str, elements: int) -> None:
    file = EXAMPLE_FILES / f"union_figure_{figure}.yaml"
    inputs = UnionAdapter().parse([file])
    assert inputs.problem is not None and inputs.architecture is not None and inputs.mapping is not None
    assert legality(inputs.problem, inputs.architecture, inputs.mapping).reasons == ()
    assert math.prod(trips for _, spatial in inputs.mapping.factors() for trips in spatial.values()) == elements
    ran = tilewright("evaluate", "--from", "union", file, "--model", "timeloop", "--model", "maestro", "--json")
    assert ran.code == 0, ran.err
    timeloop, maestro = ran.data["results"]
    assert timeloop["valid"]
    inner = next(level for level in timeloop["levels"] if level["name"] == "L1")
    assert {counts["instances"] for counts in inner["tensors"].values()} == {elements}
    assert maestro["valid"] or all(reason["message"] for reason in maestro["reasons"])
    assert maestro["valid"] == (figure in ("5", "7", "9b"))


def test_figure_7_is_the_partition_it_is_named_after() -> None:
    inputs = UnionAdapter().parse([EXAMPLE_FILES / "union_figure_7.yaml"])
    assert inputs.mapping is not None
    unrolled = [{name for name, trips in spatial.items() if trips > 1} for _, spatial in inputs.mapping.factors()]
    assert unrolled == [set(), {"K"}, {"R"}, {"S"}, set()]
    assert [loop.dimension for loop in inputs.mapping.loops() if not loop.spatial] == ["P", "Q", "K"]
    assert "Y as P" in inputs.warnings[0]


RULES = EXAMPLE_FILES / "union_rules"


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("rule_1", "entry 2 on C2, dimension M: temporal tile of 2 exceeds the enclosing tile of 1 [nesting]"),
        ("rule_2", "MAC: 128 instances used, 64 exist [fanout]"),
        ("rule_3", "L2: the tiles need 12288 words, 8192 fit [capacity]"),
        ("rule_4", "dimension M: the tiles cover 32 iterations, the problem has 64 [coverage]"),
        ("together_m_n", "MAC: 512 instances used, 64 exist [fanout]"),
        ("virtual_tile", None),
        *((f"figure_4_{name}", None) for name in ("m_n", "n_m", "m_m", "mn_nk")),
    ],
)
def test_each_rule_of_the_paper_has_an_example(tilewright: Command, name: str, told: str | None) -> None:
    """What is legal uses all 64 elements for 64^3 / 64 cycles: all four readings of Figure 4, and a tile at a virtual cluster."""
    ran = tilewright(
        "evaluate", "--from", "union", RULES / "gemm_8x8.yaml", RULES / f"{name}.yaml", "--model", "timeloop", "--json"
    )
    (result,) = ran.data["results"]
    if told is None:
        assert result["valid"] and result["cycles"] == 4096 and result["utilization"] == 1
        assert "warning" not in ran.err
    else:
        reasons = [f"{reason['where']}: {reason['message']} [{reason['code']}]" for reason in result["reasons"]]
        assert told in reasons
        assert ("unrolls M x 8 and N x 8 over 8 sub-clusters: these are 64 at a time" in ran.err) == ("_m_n" in name)


def test_rows_and_filter_rows_change_together_at_any_stride() -> None:
    """Seven rows of the input make three of the output at stride 2. A tile of three rows makes one, from one filter row each."""
    inputs = UnionAdapter().parse([RULES / "together_stride_2.yaml"])
    assert inputs.problem is not None and inputs.mapping is not None
    assert dict(inputs.problem.dimensions) == {"N": 1, "K": 4, "C": 1, "P": 3, "Q": 3, "R": 3, "S": 3}
    assert [str(rank) for rank in inputs.problem.tensor("Inputs").projection] == ["N", "C", "2*P + R", "2*Q + S"]
    unrolled = [{name for name, trips in spatial.items() if trips > 1} for _, spatial in inputs.mapping.factors()]
    assert unrolled == [set(), {"K"}, {"R"}, {"S"}, set()]


@pytest.mark.parametrize(
    ("window", "rows", "size", "coordinate"),
    [
        ("H - 2*R", 9, 5, "P + 2*R"),
        ("(H - 2*R) / 2", 9, 3, "2*P + 2*R"),
        ("(H-R)/3", 9, 3, "3*P + R"),
        ("L - R", 9, 7, "L_out + R"),
    ],
)
def test_windows_have_strides_and_dilations(folder: Path, window: str, rows: int, size: int, coordinate: str) -> None:
    row = window.strip("(")[0]
    text = f"""
problem:
  operation: CONV1D
  dimensions: [{row}, R]
  data-space:
    - {{name: I, projection: [{row}]}}
    - {{name: W, projection: [R]}}
    - {{name: O, projection: ["{window}"], read-write: true}}
  instance: {{{row}: {rows}, R: 3}}
"""
    problem = parse(folder, text).problem
    assert problem is not None and problem.operation == "conv1d"
    assert list(problem.dimensions.values()) == [size, 3] and str(problem.tensor("I").projection[0]) == coordinate


@pytest.mark.parametrize(
    ("word", "operation"), [("CONV1D", "conv1d"), ("Gemm", "gemm"), ("Tc", "contraction"), ("Odd", "Odd")]
)
def test_operations_are_read_in_upper_and_lower_case(folder: Path, word: str, operation: str) -> None:
    problem = parse(folder, SMALL.replace("problem:", f"problem:\n  operation: {word}")).problem
    assert problem is not None and problem.operation == operation
    assert same(there_and_back(InputSet(problem=problem), folder), InputSet(problem=problem))


def test_files_may_be_one_or_several(folder: Path) -> None:
    whole = parse(folder, SMALL)
    parts = [
        "problem:" + SMALL.split("problem:")[1].split("architecture:")[0],
        "architecture:" + SMALL.split("architecture:")[1],
    ]
    assert same(parse(folder, *parts), whole)
    assert not any("null" in text for text in UnionAdapter().render(whole).values())  # what the file leaves out
    assert whole.mapping is not None and whole.architecture is not None
    assert whole.architecture.clusters[0].fanout.size == 1
    assert [entry.keep for entry in whole.mapping.entries] == [("A", "Z"), None]


@given(data=st.data())
def test_any_mapping_comes_back(folder: Path, data: st.DataObject) -> None:
    problem, architecture = (
        data.draw(problems(max_operands=4)),
        data.draw(architectures(widths=True, roomy=False, unlinked=True)),
    )
    inputs = InputSet(problem, architecture, data.draw(mappings(problem, architecture)))
    assert UnionAdapter().expressible(inputs)
    assert same(there_and_back(inputs, folder), inputs)


@pytest.mark.parametrize("names", ["MNK", ["MN", "K"], ["MN"], ["Y", "R"], ["n", "o"], ["true", "N"]])
def test_odd_dimension_names_come_back(folder: Path, names: list[str]) -> None:
    inputs = parse(folder, SMALL)
    assert inputs.problem and inputs.mapping
    from tilewright.schema.mapping import Mapping
    from tilewright.schema.problem import Problem

    sizes = {name: 2 for name in names}
    tensors = [
        {"name": "A", "role": "input", "projection": [" + ".join(names)]},
        {"name": "Z", "role": "output", "projection": list(names)},
    ]
    problem = Problem.model_validate({"name": "odd", "operation": "conv2d", "dimensions": sizes, "tensors": tensors})
    order = list(reversed(names))
    ones = dict.fromkeys(names, 1)
    entries = [
        {"target": "C1", "keep": ["A", "Z"], "temporal_order": order, "temporal_tile_sizes": sizes},
        {"target": "C1", "temporal_order": order, "temporal_tile_sizes": ones},
    ]
    mapping = Mapping.model_validate({"entries": entries})
    odd = InputSet(problem, inputs.architecture, mapping)
    assert same(there_and_back(odd, folder), odd)


def test_constraints_come_back(folder: Path) -> None:
    constraints = Constraints.model_validate(
        {"name": "still", "aspect": {"a-b": 2}, "variants": [{"keep": [{"memory": "L1", "keep": ["weight"]}]}]}
    )
    assert there_and_back(InputSet(constraints=constraints), folder).constraints == constraints


def test_a_mapping_alone_is_refused(folder: Path) -> None:
    inputs = parse(folder, SMALL)
    with pytest.raises(NotConformableError, match=r"without the problem \[incomplete\]"):
        UnionAdapter().render(InputSet(mapping=inputs.mapping))


@pytest.mark.parametrize(
    ("old", "new", "line", "said"),
    [
        ("temporal_tile_sizes: 4, 2", "temporal_tile_sizes: 4, 2, 1", 13, "has 3 numbers; expected 2, for M, K"),
        ("temporal_tile_sizes: 4, 2", "temporal_tile_sizes: 4, two", 15, "expected a whole number"),
        ("target cluster: C1", "target cluster: C2", 13, "unknown cluster 'C2'"),
        ("temporal_order: MK", "temporal_order: MM", 13, "temporal_order must list every dimension once"),
        ("instance: {M: 4, K: 2}", "instance: {M: 4}", 3, "look at K"),
        ("instance", "instances", 7, "unknown key 'instances'"),
        ("{cluster: C1, memory", "{cluster: C1, virtual: true, memory", 10, "is virtual"),
        ("read-write: true", "role: input", 3, "exactly one tensor must have role output"),
        ("temporal_order: MK", "temporal_order: MK\n    temporal-order: MK", 15, "'temporal_order' is repeated"),
        ("mapping:", "layout:", 13, "unknown key 'layout'"),
        ("instance: {M: 4", "instance: {M: 0", 7, "greater than or equal to 1"),
    ],
)  # fmt: skip
def test_faults_have_lines(folder: Path, old: str, new: str, line: int, said: str) -> None:
    assert old in SMALL
    with pytest.raises(InputError) as caught:
        parse(folder, SMALL.replace(old, new, 1))
    assert said in str(caught.value) and f"0.yaml:{line}:" in str(caught.value)


def test_a_window_without_output_is_told(folder: Path) -> None:
    text = (EXAMPLE_FILES / "union_figure_7.yaml").read_text().replace("1, 2, 1, 3, 3, 3, 3", "1, 2, 1, 2, 3, 3, 3")
    with pytest.raises(InputError, match="2 of Y with 3 of R make no output"):
        parse(folder, text)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            "1, 2, 1, 3, 3, 3, 3",
            "1, 2, 1, 4, 3, 3, 3",
            "4 of Y with 3 of R leave rows over at stride 2\n  hint: write 3 or 5",
        ),
        ("(X - S)/2", "(Y - S)/2", "Y has two windows; '(Y - S)/2' is the second"),
        ("(X - S)/2", "(X - S)/0", "multiplies or divides by zero"),
    ],
)
def test_faulty_windows_are_told(folder: Path, old: str, new: str, said: str) -> None:
    text = (RULES / "together_stride_2.yaml").read_text(encoding="utf-8")
    with pytest.raises(InputError) as caught:
        parse(folder, text.replace(old, new, 1))
    assert said in str(caught.value)
