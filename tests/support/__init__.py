"""What several test modules share: random inputs, programs that stand for others, a literal walk."""

from pathlib import Path

ROOT = Path(__file__).parents[2]
DATA = ROOT / "tests/data"
EXAMPLE_FILES = ROOT / "examples"
