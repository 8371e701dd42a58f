"""Searches that are ended at random moments: what is finished is there, nothing runs on, and the run can go on.

`TILEWRIGHT_KILLS=200` in the environment ends so many instead of six.
"""

import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from random import Random

import pytest

import tilewright as tw
from support.caches import entries
from support.command import INTERRUPTIBLE
from support.processes import runs, soon

pytestmark = pytest.mark.hostile
SHORT_SAMPLE = 1

HEARS = "from here on Ctrl-C is Tilewright's"
PROGRAM = INTERRUPTIBLE.replace("main()", f"print({HEARS!r}, flush=True); main()")
KILLS = int(os.environ.get("TILEWRIGHT_KILLS", "6"))
WAYS = [(number, jobs) for number in ("SIGINT", "SIGTERM", "SIGKILL") for jobs in (1, 2)]
EVALUATIONS = 2_000
KEEPS = ("SIGINT", "SIGTERM")
"""The signals that end a search with the best mapping so far, in the folder alone."""


@dataclass(frozen=True)
class Run:
    """A run's own place: its mapping files, its cache, and what it said."""

    place: Path

    @property
    def files(self) -> dict[str, str]:
        """Mapping files that are there."""
        return {path.name: path.read_text("utf-8") for path in (self.place / "out").glob("[0-9]*.yaml")}

    @property
    def kept(self) -> int:
        """Layers in the cache."""
        return len(entries(self.place / "cache"))

    def gone_through(self) -> tuple[tw.MappingReport, str]:
        """The run to its end, in this process, from where it is; its table and its CSV."""
        report = tw.map(
            "squeezenet", "eyeriss", mapper="random", evaluations=EVALUATIONS, progress=False, resume=True,
            cache=self.place / "cache", folder=self.place / "out",
        )  # fmt: skip
        return report, str(report).partition("\n\n")[0] + (self.place / "out" / "summary.csv").read_text("utf-8")

    def begun(self, jobs: int) -> subprocess.Popen[str]:
        """The same run by the command line, in a process of its own."""
        words = [
            "map", "squeezenet", "--arch", "eyeriss", "--mapper", "random", "--evaluations", str(EVALUATIONS),
            "--jobs", str(jobs), "-o", str(self.place / "out"),
        ]  # fmt: skip
        with (self.place / "said.txt").open("w") as said:
            return subprocess.Popen(
                [sys.executable, "-c", PROGRAM, *words],
                env={**os.environ, "TILEWRIGHT_CACHE": str(self.place / "cache")}, stdout=said, stderr=said, text=True,
            )  # fmt: skip

    def processes(self) -> list[int]:
        """Those that have this run's cache in their environment and have not ended."""
        mark, found = f"TILEWRIGHT_CACHE={self.place / 'cache'}\0".encode(), []
        for path in Path("/proc").glob("[0-9]*"):
            try:
                if mark in (path / "environ").read_bytes() and runs(int(path.name)):
                    found.append(int(path.name))
            except OSError:  # it ended meanwhile, or is another user's
                pass
        return found


@dataclass(frozen=True)
class Whole:
    """What a run that nobody ends leaves, and how long it may take on this machine, busy as it is."""

    run: Run
    table: str
    seconds: float


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Whole:
    run = Run(tmp_path_factory.mktemp("undisturbed"))
    _, table = run.gone_through()  # the kernels are compiled now
    started = time.monotonic()
    assert Run(tmp_path_factory.mktemp("measured")).begun(1).wait() == 0
    return Whole(run, table, 60 + 10 * (time.monotonic() - started))


@pytest.mark.parametrize(("number", "jobs"), WAYS)
def test_what_is_finished_is_there_whatever_ends_the_run(
    number: str, jobs: int, tmp_path: Path, undisturbed: Whole
) -> None:
    whole = undisturbed.run
    for kill in range(-(-KILLS // len(WAYS))):
        random = Random(f"{number} {jobs} {kill}")
        run = Run(tmp_path / str(kill))
        run.place.mkdir()
        kept = killed(run, number, jobs, random, undisturbed)

        files = run.files
        under_way = sum(files[name] != whole.files[name] for name in files)
        assert under_way <= (jobs if number in KEEPS else 0)
        if jobs == 1:  # otherwise the second process may be ahead of the workload's order
            fewest = -1 if number in KEEPS else 0  # the best so far may have been the best
            assert fewest <= kept - len(files) + under_way <= 1, f"{kept} layers finished, {len(files)} files"

        report, again = run.gone_through()
        assert sum(layer.cached for layer in report.layers) == kept
        assert again == undisturbed.table and run.files == whole.files


def killed(run: Run, number: str, jobs: int, random: Random, undisturbed: Whole) -> int:
    """Layers that a run had finished when it was ended: while it started, or when some were done.

    After Ctrl-C the first process prints what it has.
    """
    process = run.begun(jobs)
    wanted = random.randrange(-1, len(undisturbed.run.files))
    assert soon(lambda: run.kept >= wanted or process.poll() is not None, undisturbed.seconds)
    time.sleep(random.uniform(0, 3 if wanted < 0 else 0.3))
    process.send_signal(signal.Signals[number])
    process.wait(undisturbed.seconds)

    assert soon(lambda: not run.processes(), 30), f"after {wanted} layers: {run.processes()} run on"
    said = (run.place / "said.txt").read_text("utf-8")
    if HEARS in said:  # before that Python starts, and shows its own traceback
        assert "Traceback" not in said, said
        assert number != "SIGINT" or process.returncode in (0, 130)
    return run.kept
