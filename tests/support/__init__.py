"""Common code of test modules: random inputs, replacements of programs, a literal loop visit."""

from pathlib import Path

ROOT = Path(__file__).parents[2]
DATA = ROOT / "tests/data"
EXAMPLE_FILES = ROOT / "examples"
