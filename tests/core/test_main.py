"""The program: Ctrl-C is one message and one exit code, whenever it comes."""

import subprocess
import sys

import pytest

PRESSED = """
import atexit, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from tilewright.__main__ import main
when = sys.argv.pop(1)

def press(event, arguments):
    if event == "import" and arguments[0] == when:
        signal.raise_signal(signal.SIGINT)
    if event == "import" and arguments[0] == "tilewright.application.cli" and when == "the end":
        atexit.register(signal.raise_signal, signal.SIGINT)

sys.addaudithook(press)
if when == "the very end":
    atexit.register(signal.raise_signal, signal.SIGINT)
main()
"""
"""The command line, and Ctrl-C when the module is imported that is the first word."""


@pytest.mark.parametrize(
    "when", ["tilewright.application.cli", "typer", "tilewright.application.cli.verify", "pydantic", "numba"]
)
def test_ctrl_c_while_it_starts(when: str) -> None:
    words = [when, "map", "resnet50/n0", "--arch", "eyeriss"]
    ran = subprocess.run([sys.executable, "-c", PRESSED, *words], capture_output=True, text=True)
    assert (ran.returncode, ran.stdout, ran.stderr) == (130, "", "interrupted\n")


def test_ctrl_c_while_it_ends() -> None:
    ran = subprocess.run([sys.executable, "-c", PRESSED, "the end", "--version"], capture_output=True, text=True)
    assert (ran.returncode, ran.stderr) == (130, "interrupted\n") and ran.stdout.startswith("tilewright ")


def test_ctrl_c_when_all_is_done() -> None:
    ran = subprocess.run([sys.executable, "-c", PRESSED, "the very end", "--version"], capture_output=True, text=True)
    assert (ran.returncode, ran.stderr) == (0, "") and ran.stdout.startswith("tilewright ")


def test_it_runs_as_a_module() -> None:
    ran = subprocess.run([sys.executable, "-m", "tilewright", "--help"], capture_output=True, text=True)
    assert ran.returncode == 0 and "compare" in ran.stdout


SHOWN = ("--version",), ("--help",), ("library", "show", "eyeriss"), ("library", "archs", "--json"), ("map", "absent", "--arch", "eyeriss", "--json")  # fmt: skip
"""Commands that print in different ways; the last one prints an error."""


@pytest.mark.parametrize(
    ("to", "words"),
    [
        pytest.param(to, words, id=f"{to}-{' '.join(words)}", marks=() if number % 3 == at else pytest.mark.process)
        for at, to in enumerate((">&-", ">/dev/full", ">&- 2>&-"))
        for number, words in enumerate(SHOWN)
    ],
)
def test_a_stdout_that_takes_nothing_is_an_error(to: str, words: tuple[str, ...]) -> None:
    script = f'exec "$@" {to}'
    ran = subprocess.run(
        ["sh", "-c", script, "sh", sys.executable, "-m", "tilewright", *words], capture_output=True, text=True
    )
    said = "" if "2>&-" in to else "error: "
    assert ran.returncode == 2 and ran.stderr.startswith(said) and ran.stderr.count("error:") == bool(said)
    assert "Traceback" not in ran.stderr and ("cannot write to stdout: " in ran.stderr) == (
        said != "" and words[0] != "map"
    )


def test_no_file_gets_the_number_of_a_closed_stdout() -> None:
    """Else it would get what libraries print."""
    program = "import os; from tilewright.application.cli.streams import stdout_for_results\nwith stdout_for_results(): print(os.open('/', 0), file=__import__('sys').stderr)"
    ran = subprocess.run(["sh", "-c", 'exec "$@" >&-', "sh", sys.executable, "-c", program], capture_output=True, text=True)  # fmt: skip
    assert ran.returncode == 0 and int(ran.stderr) > 2
