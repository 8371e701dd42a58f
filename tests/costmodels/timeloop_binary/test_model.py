"""`timeloop_binary`: Timeloop as a program, well behaved or not."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tilewright as tw
from support import fake_timeloop
from support.processes import runs, soon
from support.recorded.timeloop import Case, cases
from tilewright.errors import PluginError
from tilewright.plugin.registry import installed
from tilewright.plugin.specs import CostModelSpec
from tilewright.reports import Report
from tilewright_costmodels import TimeloopBinaryOptions, TimeloopOptions
from tilewright_costmodels.timeloop.model import TimeloopModel
from tilewright_costmodels.timeloop_binary.model import TimeloopBinaryModel
from tilewright_costmodels.timeloop_binary.program import run
from tilewright_notations.timeloop.stats import Unreadable, read_stats

pytestmark = pytest.mark.process

CASES = cases()


def explain(case: Case, fake: str, seconds: float = 60) -> Report:
    model = TimeloopBinaryModel(TimeloopBinaryOptions(path=fake_timeloop.program(fake), seconds=seconds))
    return model.bind(case.problem, case.architecture).explain(case.mapping)


def figures(report: Report) -> object:
    levels = [(level.name, level.cycles, level.energy_pj, level.tensors) for level in report.levels]
    return report.valid, report.cycles, report.energy_pj, report.compute_energy_pj, report.utilization, levels


@pytest.mark.parametrize("case", [CASES[0], CASES[150], CASES[300]], ids=lambda case: case.id)
def test_a_program_that_evaluates_as_the_built_in_model_gives_the_same_report(case: Case) -> None:
    expected = TimeloopModel(TimeloopOptions()).bind(case.problem, case.architecture).explain(case.mapping)
    report = explain(case, "good")
    assert report.valid, report.reasons
    assert report.cycles == expected.cycles
    assert report.energy_pj == pytest.approx(expected.energy_pj)
    assert [level.tensors for level in report.levels] == [level.tensors for level in expected.levels]
    assert [level.name for level in report.levels] == [level.name for level in expected.levels]
    assert report.utilization == pytest.approx(expected.utilization)


def test_what_does_not_fit_is_rejected_without_starting_it(tmp_path: Path) -> None:
    case = CASES[0]
    memories = case.architecture.clusters[-1].memories
    small = tuple(memory.model_copy(update={"capacity_words": 1}) for memory in memories)
    last = case.architecture.clusters[-1].model_copy(update={"memories": small})
    architecture = case.architecture.model_copy(update={"clusters": (*case.architecture.clusters[:-1], last)})
    report = (
        TimeloopBinaryModel(TimeloopBinaryOptions(path=str(tmp_path / "absent"), seconds=60))
        .bind(case.problem, architecture)
        .explain(case.mapping)
    )
    assert not report.valid
    assert {reason.code for reason in report.reasons} == {"capacity"}


@pytest.mark.parametrize(
    ("fake", "code", "words"),
    [
        ("crashes", "crashed", "signal 6"),
        ("gives_up", "rejected", "product of all factors is 7"),
        ("fails_silently", "crashed", "exit code 3"),
        ("writes_nothing", "crashed", "last output: done"),
        ("prints_garbage", "unreadable", "no levels"),
        ("prints_half", "unreadable", "nothing about"),
        ("prints_nan", "unreadable", "is not a number"),
        ("adds_up_wrongly", "unreadable", "add up to"),
        ("knows_more_levels", "unreadable", "levels"),
    ],
)
def test_misbehaviour_is_a_row_with_a_reason(fake: str, code: str, words: str) -> None:
    report = explain(CASES[0], fake)
    assert not report.valid
    assert report.cycles is None and report.energy_pj is None
    (reason,) = report.reasons
    assert reason.code == code
    assert words in str(reason)


def test_every_bad_fake_was_tried() -> None:
    assert set(fake_timeloop.BAD) == {
        *("crashes", "gives_up", "fails_silently", "writes_nothing", "prints_garbage", "prints_half", "prints_nan"),
        *("adds_up_wrongly", "knows_more_levels", "hangs"),
    }


def test_one_that_hangs_is_stopped() -> None:
    report = explain(CASES[0], "hangs", seconds=0.5)  # comes back at all: the child sleeps for ten minutes
    assert [reason.code for reason in report.reasons] == ["timeout"]
    assert "0.5 s" in str(report.reasons[0])


def test_a_path_that_leads_nowhere_is_a_row_too(tmp_path: Path) -> None:
    case = CASES[0]
    model = TimeloopBinaryModel(TimeloopBinaryOptions(path=str(tmp_path / "nothing"), seconds=60))
    (reason,) = model.bind(case.problem, case.architecture).explain(case.mapping).reasons
    assert reason.code == "absent"


def test_absence_is_said_in_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(PluginError) as caught:
        installed().make(CostModelSpec, "timeloop_binary")
    assert caught.value.message == (
        f"cost model 'timeloop_binary' of tilewright {tw.__version__} needs timeloop-model, which is not installed"
    )
    assert caught.value.hint is not None and "path=" in caught.value.hint
    installed().make(CostModelSpec, "timeloop_binary", {"path": fake_timeloop.program("cheap")})


def test_it_is_found_on_the_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "timeloop-model").symlink_to(fake_timeloop.program("cheap"))
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    case = CASES[0]
    model = installed().make(CostModelSpec, "timeloop_binary")
    assert model.bind(case.problem, case.architecture).explain(case.mapping).valid


def test_a_program_gets_its_files_and_no_more(tmp_path: Path) -> None:
    script = tmp_path / "lists"
    script.write_text('#!/bin/sh\ncat "$@" > out\nls\n')
    script.chmod(0o755)
    ended = run(str(script), {"b.yaml": "two", "a.yaml": "one"}, "out", 60)
    assert (ended.code, ended.wrote) == (0, "twoone")
    assert ended.printed.split() == ["a.yaml", "b.yaml", "out"]


def test_only_the_end_of_what_a_program_prints_is_kept(tmp_path: Path) -> None:
    script = tmp_path / "talks"
    script.write_text("#!/bin/sh\nyes all work and no play | head -c 30000000\necho the end\n")
    script.chmod(0o755)
    printed = run(str(script), {}, "out", 60).printed
    assert printed.endswith("the end\n") and len(printed) == 2000


KILLED = """
import os, signal, sys, threading, time
from pathlib import Path
from tilewright_costmodels.timeloop_binary.program import run
def kill():
    while not list(Path(sys.argv[2]).glob("tilewright-*/begun")):
        time.sleep(0.05)
    os.kill(os.getpid(), int(sys.argv[3]))
threading.Thread(target=kill).start()
run(sys.argv[1], {}, "out", 60)
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_nothing_is_left_of_it_when_our_process_is_killed(tmp_path: Path, number: int) -> None:
    script = tmp_path / "sleeps"
    script.write_text("#!/bin/sh\necho $$ > ../pid\ntouch begun\nexec sleep 600\n")
    script.chmod(0o755)
    command = [sys.executable, "-c", KILLED, str(script), str(tmp_path), str(int(number))]
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    assert subprocess.run(command, env=environment, timeout=120).returncode == -number
    pid = int((tmp_path / "pid").read_text())
    assert soon(lambda: not list(tmp_path.glob("tilewright-*")) and not runs(pid))


@given(st.data())
def test_damaged_statistics_are_never_a_crash(data: st.DataObject) -> None:
    text = sample()
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, min(len(text), start + 200)))
    damaged = text[:start] + data.draw(st.text(max_size=20)) + text[end:]
    try:
        read_stats(damaged)
    except Unreadable as error:
        assert str(error)


def sample() -> str:
    files = {"map.yaml": "mapping:\n  - {target: DRAM, type: bypass, keep: [A, B], bypass: []}\n"}
    wrote = run(fake_timeloop.program("cheap"), files, "timeloop-model.stats.txt", 60).wrote
    assert wrote is not None
    return wrote


def test_older_and_newer_statistics_are_read() -> None:
    old = """Level 0
-------
=== MACC ===

    SPECS
    -----
    Word bits            : 8
    Energy-per-op        : 0.60 pJ

    STATS
    -----
    Cycles               : 48
    Energy (total)       : 28.94 pJ

Level 1
-------
=== Buffer ===

    SPECS
    -----
    Shared:
        Technology           : SRAM
        Leakage energy (total)          : 2.50 pJ

    STATS
    -----
    Cycles               : 48
    Weights:
        Actual scalar reads (per-instance)                          : 56
        Energy (total)                           : 21.42 pJ

Networks
--------
Network 0
---------
Buffer <==> MACC

    NETWORK STATS
    -------------
    Weights:
        Ingresses                               : 48
            @multicast 1: 48
        Energy (total)                          : 1.50 pJ
        Link transfer energy (total)            : 0.50 pJ

Summary Stats
-------------
Utilization: 100.00%
Cycles: 48
Energy: 0.00 uJ
"""
    stats = read_stats(old)
    assert stats.cycles == 48
    assert stats.levels[0].fields["Energy (total)"] == "28.94"
    assert stats.levels[1].title == "Buffer"
    assert stats.levels[1].tensors["Weights"]["Actual scalar reads (per-instance)"] == "56"
    ((upper, network),) = stats.networks
    assert upper == "Buffer" and network.tensors["Weights"]["Ingresses"] == "48"
