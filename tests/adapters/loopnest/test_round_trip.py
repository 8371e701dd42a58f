"""Loop nests as text: every mapping survives a round trip, and errors name their line."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support import EXAMPLE_FILES
from tilewright.errors import InputError, NotConformableError
from tilewright.plugin.adapter import InputSet
from tilewright.schema.constraints import Constraints
from tilewright.schema.frozen import FrozenDict
from tilewright.schema.mapping import Entry, Mapping
from tilewright.testing.strategies import architectures, mappings, problems
from tilewright_adapters.loopnest import FILE, LoopNestAdapter
from tilewright_adapters.native import NativeAdapter

PARTS = ("problem", "architecture", "mapping")
NAMES = st.sampled_from(["A", "B", "true", "null", "hold", "nothing", "for", "a-b", "x.y", "_"])


@st.composite
def any_mappings(draw: st.DrawFn) -> Mapping:
    """Draw any mapping of the schema, legal or not: unusual names, growing tiles, unknown tensors."""
    dimensions = draw(st.lists(st.sampled_from(["M", "N", "K", "for", "in", "x"]), min_size=1, unique=True))
    sizes = st.fixed_dictionaries({name: st.integers(1, 20) for name in dimensions}).map(FrozenDict)
    entries = st.builds(
        Entry,
        target=NAMES,
        keep=st.none() | st.lists(NAMES, max_size=3).map(tuple),
        temporal_order=st.permutations(dimensions).map(tuple),
        temporal_tile_sizes=sizes,
        spatial_tile_sizes=sizes,
        spatial_order=st.none() | st.permutations(dimensions).map(tuple),
        unicast=st.lists(NAMES, max_size=2).map(tuple),
    )
    return Mapping(entries=tuple(draw(st.lists(entries, min_size=1, max_size=5))))


def there_and_back(inputs: InputSet, folder: Path) -> InputSet:
    adapter = LoopNestAdapter()
    (text,) = adapter.render(inputs).values()
    (folder / FILE).write_text(text, encoding="utf-8")
    return adapter.parse([folder / FILE])


def same(one: InputSet, other: InputSet) -> bool:
    return all(getattr(one, part) == getattr(other, part) for part in PARTS)


@given(data=st.data())
def test_any_lawful_mapping_comes_back(folder: Path, data: st.DataObject) -> None:
    problem, architecture = (
        data.draw(problems(max_operands=4)),
        data.draw(architectures(widths=True, roomy=False, unlinked=True)),
    )
    inputs = InputSet(problem, architecture, data.draw(mappings(problem, architecture)))
    assert same(there_and_back(inputs, folder), inputs)


@given(mapping=any_mappings())
def test_any_mapping_at_all_comes_back(folder: Path, mapping: Mapping) -> None:
    assert there_and_back(InputSet(mapping=mapping), folder).mapping == mapping


@given(data=st.data())
def test_names_and_notes_come_back(folder: Path, data: st.DataObject) -> None:
    texts = st.text(min_size=1, max_size=12)
    problem = data.draw(problems()).model_copy(
        update={"name": data.draw(texts), "source": data.draw(texts), "operation": data.draw(texts)}
    )
    architecture = data.draw(architectures(widths=True)).model_copy(update={"source": data.draw(texts)})
    assert same(there_and_back(InputSet(problem, architecture), folder), InputSet(problem, architecture))


@pytest.mark.parametrize("name", ["eyeriss", "simba", "tpu_v1", "gemmini", "union_cloud"])
def test_the_librarys_architectures_come_back(folder: Path, name: str) -> None:
    from tilewright.library import architecture

    inputs = InputSet(architecture=architecture(name))
    assert same(there_and_back(inputs, folder), inputs)


def test_memories_stand_beside_the_loops() -> None:
    inputs = NativeAdapter().parse(
        [EXAMPLE_FILES / f"{name}.yaml" for name in ("gemm.mapping", "gemm.problem", "small.arch")]
    )
    text = LoopNestAdapter().render(inputs)[FILE]
    (line,) = (line for line in text.splitlines() if line.strip().startswith("for N in 16 x 1"))
    assert line.split("#")[1].split() == ["Inputs:Buffer", "Weights:WeightRegister", "Outputs:SumRegister"]
    assert "spatial for K in 16 x 1" in text and "along X, 16 there" in text


def test_by_reference(tmp_path: Path) -> None:
    (tmp_path / "gemm.problem.yaml").write_text((EXAMPLE_FILES / "gemm.problem.yaml").read_text())
    (tmp_path / "nest.txt").write_text(
        "include problem gemm.problem.yaml\ninclude architecture eyeriss # the library's\n"
    )
    inputs = LoopNestAdapter().parse([tmp_path / "nest.txt"])
    assert inputs.problem is not None and inputs.problem.name == "gemm64"
    assert inputs.architecture is not None and inputs.architecture.name == "eyeriss"


def test_constraints_are_refused_with_a_reason() -> None:
    inputs = InputSet(constraints=Constraints(name="still"))
    assert [reason.code for reason in LoopNestAdapter().expressible(inputs).reasons] == ["constraints", "nothing"]
    with pytest.raises(NotConformableError, match="constraints still"):
        LoopNestAdapter().render(inputs)


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("nest M=8\nfor M in 3 x 2\nat A", 2, "8 iterations of M in tiles of 2 are 4 steps, not 3"),
        ("nest M=8\n\nfor K in 4 x 2\nat A", 3, "no dimension 'K'"),
        ("nest M=8\nfor M in 4 x 2\nfor M in 2 x 1\nat A", 3, "two loops of 'M'"),
        ("nest M=8\nfor M in four x 2", 2, "cannot read the loop"),
        ("nest M=8\nat A\nfor M in 8 x 1", 3, "the last loops have no cluster"),
        ("nest M=8\nspatial for M in 8 x 1", 2, "must follow the 'at' line"),
        ("nest M=8 N=8\nat A\nspatial for N in 8 x 1\nspatial for M in 8 x 1\nat B", 5, "spatial_order N, M"),
        ("nest M=8 N=8\nfor M in 8 x 1\nfor N in 8 x 1\nat A: order N, M", 4, "'order' lists N, M"),
        ("nest M=8\nat A: holds B", 2, "did you mean 'hold'"),
        ("nest M=0", 1, "expected 'nest' with dimensions and sizes"),
        ("nest M=8\ntensor A input [M]", 2, "no line 'tensor'"),
        ("at A", 1, "'at' must follow a problem, architecture or nest line"),
        ("loop M", 1, "unknown keyword 'loop'"),
        ("problem p\n dimensions M=2\n tensor A input [M]\n tensor Z output [K]", 4, "uses dimension K"),
        ("problem p\n dimensions M=two\n tensor A output [M]", 2, "expected a whole number"),
        ("problem p\n dimensions M=2\n tensor A output M", 3, "a name, a role and coordinates"),
        ('problem "p', 1, "cannot read"),
        ("architecture a\n cluster C\n  memory L read_energy=1", 3, "did you mean 'read_energy_pj'"),
        ("architecture a\n memory L", 2, "'memory' must follow a cluster line"),
        ("\ninclude architecture eyeris", 2, "did you mean 'eyeriss'"),
        ("nest M=1\nat A\nnest M=1\nat A", 3, "mapping is repeated"),
    ],
)  # fmt: skip
def test_faults_have_lines(tmp_path: Path, text: str, line: int, said: str) -> None:
    (tmp_path / "nest.txt").write_text(text)
    with pytest.raises(InputError) as caught:
        LoopNestAdapter().parse([tmp_path / "nest.txt"])
    assert said in str(caught.value)
    assert f"nest.txt:{line}" in str(caught.value)
