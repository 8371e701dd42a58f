"""What only a process of its own shows."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tilewright_sick.commands import Sick

WHERE = ("nk,km->nm; n=4 k=5 m=6", "--arch", "eyeriss", "--no-cache", "--json")
LAYERS = Path(__file__).parents[4] / "examples" / "three_layers.workload.yaml"


@pytest.mark.parametrize("fault", ["print", "close stdout", "lose stdout", "write", "close 1"])
def test_json_is_json(process: Sick, fault: str) -> None:
    listed = process(f"import {fault}", "plugins", "list", "--json", TILEWRIGHT_PLUGIN_SECONDS="30")
    assert listed.code == 0 and len(listed.data["plugins"]) > 10


@pytest.mark.parametrize(
    ("fault", "said"), [("leave", "ended with exit code 0"), ("endless", r"sent nothing for 2\d\.\d s, and was ended")]
)
def test_what_ends_the_program_while_it_is_imported_is_named_and_harms_nobody(
    process: Sick, fault: str, said: str
) -> None:
    for _ in range(2):
        listed = process(f"import {fault}", "plugins", "list", "--json", TILEWRIGHT_PLUGIN_SECONDS="5")
        assert listed.code == 0 and len(listed.data["plugins"]) > 10
        (broken,) = [line for line in listed.data["broken"] if "tilewright-sick" in line]
        assert "tilewright-sick/sick 1.0 failed at import: " in broken and re.search(f"its import {said}", broken)
    assert not [line for line in process("", "plugins", "list", "--json").data["broken"] if "tilewright-sick" in line]
    off = process(f"import {fault}", "plugins", "list", "--json", TILEWRIGHT_DISABLE="tilewright-sick/sick")
    assert off.code == 0 and off.data["plugins"]


@pytest.mark.parametrize("place", ["mapper.step", "costmodel.evaluate_batch"])
def test_exit_0_in_the_middle_is_no_success(process: Sick, place: str) -> None:
    ran = process(f"{place} exit 0", "map", *WHERE, "--mapper", "sick", "--model", "sick", "--evaluations", 50)
    assert ran.code == 3 and len(ran.blame) == 1 and ran.data["layers"][0]["error"]


@pytest.mark.parametrize("place", ["mapper.step", "costmodel.evaluate_batch"])
@pytest.mark.parametrize("jobs", [1, 2])
def test_what_ends_the_program_in_the_middle_ends_its_process_alone(process: Sick, place: str, jobs: int) -> None:
    words = ("--mapper", "sick", "--model", "sick", "--evaluations", 50)
    ran = process(
        f"{place} leave", "map", LAYERS, *WHERE[1:], *words, "--jobs", jobs, seconds=300, TILEWRIGHT_PLUGIN_SECONDS="60"
    )
    assert ran.code == 3 and all(
        "it ended with exit code 0, 2 times (mapper 'sick' of tilewright-sick 1.0" in each["error"]
        for each in ran.data["layers"]
    )


@pytest.mark.parametrize("place", ["mapper.step", "costmodel.evaluate_batch"])
def test_code_in_c_that_runs_on_is_ended_in_its_process(process: Sick, place: str) -> None:
    words = ("map", LAYERS, *WHERE[1:], "--mapper", "sick", "--model", "sick", "--seconds", 0.2, "--jobs", 3)
    ran = process(f"{place} endless", *words, seconds=300, TILEWRIGHT_PLUGIN_SECONDS="3")
    errors = [layer["error"] for layer in ran.data["layers"]]
    # on a loaded host the limit of the call may end it first
    assert ran.code == 3 and all(
        "it sent nothing for" in error or "took too long and was ended" in error for error in errors
    )
    assert all("'sick' of tilewright-sick 1.0" in error for error in errors)


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_mapper_that_runs_on_is_ended_in_its_process(process: Sick, jobs: int) -> None:
    words = ("map", LAYERS, *WHERE[1:], "--mapper", "sick", "--seconds", 0.2, "--jobs", jobs)
    started = time.monotonic()
    ran = process("mapper.step spin", *words, TILEWRIGHT_PLUGIN_SECONDS="60")
    assert ran.code == 3 and time.monotonic() - started < 90
    failed = "mapper 'sick' of tilewright-sick 1.0 failed: search took too long and was ended after"
    assert failed in ran.err and all(failed in layer["error"] for layer in ran.data["layers"])


@pytest.mark.parametrize("limit", [("--seconds", 5), ("--evaluations", 1000)])
def test_a_cost_model_that_hangs_is_ended_and_the_best_mapping_is_kept(process: Sick, limit: tuple[str, int]) -> None:
    words = ("map", *WHERE, *limit, "--mapper", "random", "--model", "sick")
    ran = process("costmodel.evaluate_batch hang later", *words, TILEWRIGHT_PLUGIN_SECONDS="5")
    assert ran.code == 3
    assert (
        "cost model 'sick' of tilewright-sick 1.0 failed: evaluate_batch took too long and was ended after" in ran.err
    )
    (layer,) = ran.data["layers"]
    assert layer["best"]["valid"] and layer["best"]["edp"] > 0 and layer["search"]["stop"] == "failed"
    assert 0 < layer["search"]["evaluated"] < 1000 and layer["search"]["wall_seconds"] < 60


def test_the_line_and_the_traceback_of_the_plugin_are_shown(process: Sick) -> None:
    words = ("map", *WHERE, "--mapper", "sick", "--evaluations", 50)
    ran = process("mapper.step error", *words)
    assert "search raised ValueError: so many lines at " in ran.err and "faults.py:" in ran.err
    again = _unchecked("mapper.step error", *words, "--traceback")
    assert "Traceback (most recent call last)" in again.stderr and "raise make()" in again.stderr


def _unchecked(sick: str, *words: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tilewright", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, env={**os.environ, "TILEWRIGHT_SICK": sick})


def test_ctrl_c_stays_ctrl_c(tmp_path: Path) -> None:
    words, asleep = ("map", *WHERE, "--mapper", "sick"), tmp_path / "asleep"
    run = subprocess.Popen(
        [sys.executable, "-c", "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
         "from tilewright.application.cli import main; main()", *map(str, words)],
        env={**os.environ, "TILEWRIGHT_SICK": "mapper.step sleep", "TILEWRIGHT_SICK_ASLEEP": str(asleep)},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    until = time.monotonic() + 120
    while not asleep.exists() and time.monotonic() < until:
        time.sleep(0.1)
    run.send_signal(signal.SIGINT)
    out, err = run.communicate(timeout=30)
    assert run.returncode == 130 and "Traceback" not in err and "cancelled" in out
