"""Draw the pictures of the manual: `python docs/pictures.py` writes `docs/pictures/`.

They are the library's architectures, and the mapping and the charts that pages show.
The README's picture is drawn by the commands above it.
"""

import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import tilewright as tw

FOLDER = Path(__file__).parent / "pictures"


def main(folder: Path = FOLDER) -> None:
    """Write all pictures into a folder."""
    folder.mkdir(exist_ok=True)
    for name in tw.library.names("architectures"):
        tw.draw(tw.load(name, "architecture"), folder / f"{name}.svg")
    layer = tw.map("quickflow_convs/V", arch="eyeriss", progress=False).layers[0]
    assert layer.mapping is not None
    tw.draw(layer.mapping, folder / "tutorial-mapping.svg", report=layer.report)
    network = tw.map("quickflow_convs", arch="eyeriss", mapper="quickflow", evaluations=2000, progress=False)
    network.plot.energy().save(folder / "energy.svg")
    draw_mappers(folder)


def draw_mappers(folder: Path) -> None:
    """Write the README's picture by the commands that it shows."""
    readme = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
    commands = re.findall(r"^tilewright (.*\bcompared_mappers\b.*)$", readme, re.MULTILINE)
    with tempfile.TemporaryDirectory() as scratch:
        for words in commands:
            subprocess.run([sys.executable, "-m", "tilewright", *shlex.split(words)], cwd=scratch, check=True)
        shutil.copy(Path(scratch) / "mappers.svg", folder)


if __name__ == "__main__":
    main()
