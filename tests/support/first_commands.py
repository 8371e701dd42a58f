"""The first commands of the README, in a folder of their own: `python tests/support/first_commands.py`."""

import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[2]


def main() -> None:
    """Run them with the installed program; the first one that fails ends it."""
    commands = re.findall(r"^tilewright (.*)", (ROOT / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert commands
    with tempfile.TemporaryDirectory() as folder:
        for words in commands:
            subprocess.run([Path(sys.executable).parent / "tilewright", *shlex.split(words)], cwd=folder, check=True)


if __name__ == "__main__":
    main()
