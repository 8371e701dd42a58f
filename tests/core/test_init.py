"""The front door: what `import tilewright` offers, and what it costs."""

import subprocess
import sys
from importlib.metadata import version

import pytest

import tilewright as tw


def test_dir_is_all_sorted() -> None:
    assert dir(tw) == tw.__all__ == sorted(set(tw.__all__))
    assert tw.__version__ == version("tilewright")


@pytest.mark.parametrize("name", tw.__all__)
def test_every_name_is_there(name: str) -> None:
    assert getattr(tw, name) is getattr(tw, name)
    assert name.startswith("__") or getattr(tw, name).__doc__


def test_other_names_are_not() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'mapp'"):
        tw.mapp  # noqa: B018


def test_importing_it_imports_nothing_heavy() -> None:
    """Neither what numbers need, nor what schemas or tables need."""
    program = "import sys, tilewright; print(' '.join(sys.modules))"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    heavy = {"numpy", "numba", "pydantic", "yaml", "networkx", "rich", "typer", "pandas", "tilewright.errors"}

    assert heavy & set(ran.stdout.split()) == set()


def test_a_function_stays_one_when_rooms_are_imported() -> None:
    """No package of core has the name of a function: importing it would take the function's place."""
    program = "import tilewright as tw, tilewright.application.cli, tilewright.testing; print([n for n in tw.__all__ if n in tw.__dict__])"
    clean = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert set(clean.stdout.strip("[]\n").replace("'", "").split(", ")) <= {"errors", "library"}
