"""Build of the distribution, and its wheel in an empty environment: `python tests/support/candidate.py`.

The wheel is built from the source distribution. Nothing of the checkout is on the path of the programs that run.
"""

import os
import subprocess
import sys
import tempfile
import venv
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[2]
FORMULA = "nk,km->nm; n=4 k=5 m=6"
COMMANDS = (
    ("--version",),
    ("plugins",),
    ("library", "archs"),
    ("map", FORMULA, "--arch", "simba", "-o", "run"),
    ("verify", "--certificate", "run/001_einsum.certificate.yaml"),
    ("map", "alexnet", "--arch", "eyeriss", "--mapper", "random", "--evaluations", "50"),
    ("evaluate", "run/001_einsum.yaml", "--model", "maestro,oracle"),
)
"""Commands that need the library, kernels, templates of pages and the onnx package."""
CHECK = """
import importlib.metadata, pathlib, sys
import tilewright as tw
folder = pathlib.Path(tw.__file__).parent
assert pathlib.Path(sys.prefix).resolve() in folder.resolve().parents, folder
assert (folder / "py.typed").is_file() and tw.__version__ == importlib.metadata.version("tilewright")
assert tw.load("eyeriss").name == "eyeriss"
"""


def built(folder: Path) -> Path:
    """Return the wheel in a folder, built there from the source distribution."""
    subprocess.run([sys.executable, "-m", "build", "-q", "--outdir", str(folder), str(ROOT)], check=True)
    (wheel,) = folder.glob("*.whl")
    return wheel


def programs(folder: Path) -> Path:
    """Return the folder of the programs of a new environment."""
    venv.create(folder, with_pip=True)
    return folder / ("Scripts" if os.name == "nt" else "bin")


def main() -> None:
    """Build, install and try; the first failure ends it."""
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        wheel, there = built(folder / "dist"), programs(folder / "environment")
        work = folder / "work"
        work.mkdir()

        def run(program: str, words: Sequence[str]) -> None:
            print(f"+ {program} {' '.join(words)}", flush=True)
            subprocess.run([str(there / program), *words], cwd=work, env=environment, check=True)

        run("python", ["-m", "pip", "install", "-q", str(wheel)])
        run("python", ["-m", "pip", "check"])
        run("python", ["-c", CHECK])
        for words in COMMANDS:
            run("tilewright", words)


if __name__ == "__main__":
    main()
