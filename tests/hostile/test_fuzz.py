"""Mutated inputs of every reader: each is read soundly or refused with one message, soon and with little memory.

`--mutations N` says how many for each reader; those of a seed are always the same.
"""

from pathlib import Path
from random import Random

import pytest

from support.readers import NAMES, complaint, readers

pytestmark = pytest.mark.hostile


@pytest.fixture
def mutations(request: pytest.FixtureRequest) -> int:
    return int(request.config.getoption("--mutations"))


def test_every_reader_is_named() -> None:
    assert set(readers()) == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_good_inputs_are_read(name: str, tmp_path: Path) -> None:
    reader = readers()[name]
    assert reader.inputs
    for files in reader.inputs:
        assert complaint(reader, files, tmp_path / "input") is None
        for file, content in files.items():
            (tmp_path / file).write_bytes(content)


@pytest.mark.parametrize("name", NAMES)
def test_mutated_inputs_are_read_or_refused(name: str, tmp_path: Path, mutations: int) -> None:
    reader, wrong = readers()[name], dict[str, int]()
    for seed in range(mutations):
        found = complaint(reader, reader.mutated(Random(f"{name} {seed}")), tmp_path / "input")
        if found is not None:
            wrong.setdefault(found, seed)
    assert not wrong, "\n".join(f"seed {seed}: {text}" for text, seed in wrong.items())
