"""Files: whole or not at all; folders of one run; disks that are full and homes that are not there."""

import itertools
import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.errors import InputError, OutputError
from tilewright.files import LOCK, MARK, RunFolder, _Lock, file_name, read_text, turn_on_host, write_text

pytestmark = pytest.mark.process

LIMITED = """
import resource, signal, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv.pop(1)), resource.RLIM_INFINITY))
from tilewright.application.cli import main
main()
"""
"""Command line with a limit on the bytes of a file, as on a full disk."""
HOMELESS = """
import pwd
def unknown(number): raise KeyError(number)
pwd.getpwuid = unknown
from tilewright.application.cli import main
main()
"""
"""The command line of a user whom the system does not know."""


def run(code: str, *words: object, **environment: str) -> subprocess.CompletedProcess[str]:
    kept = {
        name: value for name, value in os.environ.items() if name not in ("HOME", "XDG_CACHE_HOME", "TILEWRIGHT_CACHE")
    }
    # else Python keeps the part of a compiled module that a limit leaves room for
    kept["PYTHONDONTWRITEBYTECODE"] = "1"
    command = [sys.executable, "-c", code, *map(str, words)]
    return subprocess.run(command, env=kept | environment, capture_output=True, text=True, timeout=300)


def test_a_text_takes_the_place_of_the_old_one_with_its_permissions(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    write_text(path, "one")
    path.chmod(0o640)
    write_text(path, "two\n")
    assert (path.read_bytes(), path.stat().st_mode & 0o777, len(list(tmp_path.iterdir()))) == (b"two\n", 0o640, 1)
    assert read_text(path) == "two\n"


def test_what_cannot_be_written_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    write_text(path, "old")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    try:
        with pytest.raises(OutputError, match="cannot write .*a.txt: File too large"):
            write_text(path, "new" * 1000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert path.read_text() == "old" and list(tmp_path.iterdir()) == [path]
    with pytest.raises(OutputError, match="No such file or directory"):
        write_text(tmp_path / "absent" / "a.txt", "")
    with pytest.raises(OutputError):
        write_text(tmp_path / ("n" * 300), "")


@given(st.lists(st.text(max_size=300), min_size=1, max_size=3))
def test_names_of_files_are_plain_and_short(words: list[str]) -> None:
    name = file_name("001", *words)
    assert name.isascii() and "/" not in name and len(name) <= 255 and name.startswith("001_")


def test_a_folder_belongs_to_one_run(tmp_path: Path) -> None:
    def claimed(content: str, run: str, resume: bool = False, force: bool = False) -> RunFolder:
        folder = RunFolder(tmp_path / "out")
        folder.acquire(f"{content} by x", content, run, resume=resume, force=force)
        return folder

    names = {"001_a.yaml", "summary.json", MARK}
    first = claimed("net", "1")
    for name in names - {MARK}:
        first.write(name, "{}")
    (first.path / "notes.txt").write_text("mine")

    def there() -> set[str]:
        return {path.name for path in first.path.iterdir()} - {"notes.txt"}

    claimed("net", "1")
    claimed("net", "1", resume=True)
    assert there() == names
    for resume in (False, True):
        with pytest.raises(InputError, match="files of another run: net by x"):
            claimed("other", "2", resume=resume)
    with pytest.raises(InputError, match="another run"):
        claimed("net", "3", resume=True)
    assert there() == names
    claimed("net", "3")
    assert there() == {MARK}
    first.write("002_b.yaml", "{}")
    claimed("other", "4", force=True)
    assert there() == {MARK} and (first.path / "notes.txt").read_text() == "mine"


HOLDER = """
import sys
from tilewright.files import RunFolder, _Lock
_Lock.locks_folders = sys.argv[2] == "True"
folder = RunFolder(sys.argv[1])
folder.acquire("net by x", "net", "1")
print("held", flush=True)
sys.stdin.read()
"""


@pytest.fixture(params=[True, False], ids=["folder", "file"])
def locks_folders(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether the system locks folders, or a file in them, as on Windows."""
    monkeypatch.setattr(_Lock, "locks_folders", request.param)
    return bool(request.param)


def test_a_running_process_owns_its_folder(tmp_path: Path, locks_folders: bool) -> None:
    """Even a run of the same work, and even --force, waits for its end; a kill ends it."""
    words = [sys.executable, "-c", HOLDER, str(tmp_path), str(locks_folders)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None and holder.stdout.readline() == "held\n"
        try:
            for content, run, force in (("net", "1", False), ("net", "2", False), ("other", "3", True)):
                with pytest.raises(InputError, match="another process writes its files to .*: net by x"):
                    RunFolder(tmp_path).acquire(f"{content} by y", content, run, force=force)
            assert json.loads((tmp_path / MARK).read_text())["run"] == "1"
        finally:
            holder.kill()
    RunFolder(tmp_path).acquire("net by x", "net", "2")
    assert json.loads((tmp_path / MARK).read_text())["run"] == "2"


def test_one_process_may_acquire_its_folder_again(tmp_path: Path, locks_folders: bool) -> None:
    """As `report.save` does in the folder that `map` wrote."""
    first, second = RunFolder(tmp_path), RunFolder(tmp_path)
    for folder in (first, second):
        folder.acquire("net by x", "net", "1")
    names = {MARK} if locks_folders else {MARK, LOCK}
    assert {path.name for path in tmp_path.iterdir()} == names


@pytest.mark.parametrize("damage", ["a folder", "SQL" * 400])
def test_a_file_that_cannot_be_locked_is_told(tmp_path: Path, damage: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_Lock, "locks_folders", False)
    if damage == "a folder":
        (tmp_path / LOCK).mkdir()
    else:
        (tmp_path / LOCK).write_text(damage)
    with pytest.raises(OutputError, match="cannot lock the folder"):
        RunFolder(tmp_path).acquire("net", "net", "1")


@pytest.mark.parametrize("damage", ["", "[]", "{", "null"])
def test_a_damaged_mark_is_another_runs(tmp_path: Path, damage: str) -> None:
    (tmp_path / MARK).write_text(damage)
    with pytest.raises(InputError, match="another run: unknown"):
        RunFolder(tmp_path).acquire("net", "net", "1")
    RunFolder(tmp_path).acquire("net", "net", "1", force=True)
    assert json.loads((tmp_path / MARK).read_text())["run"] == "1"


MAP = ("map", "union_dnn_layers", "--arch", "eyeriss", "--evaluations", 20)


def test_a_full_disk_is_one_message_with_everything_done_kept(tmp_path: Path) -> None:
    """The summary has no room; the mapping files have."""
    ran = run(LIMITED, 6000, *MAP, "-o", tmp_path / "out", TILEWRIGHT_CACHE=str(tmp_path / "cache"), HOME=str(tmp_path))
    assert ran.returncode == 2 and "Traceback" not in ran.stderr
    assert ran.stderr.count("error:") == 1 and "summary.json: File too large" in ran.stderr
    assert "total" in ran.stdout
    files = sorted(path.name for path in (tmp_path / "out").iterdir())
    layers = [name for name in files if name.endswith(".yaml") and not name.endswith(".certificate.yaml")]
    assert len(layers) == 9 and "summary.json" not in files
    assert not [name for name in files if name.endswith(".part")]


def test_a_folder_that_cannot_be_made_is_told_before_the_search(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    ran = run(LIMITED, 10**9, *MAP, "-o", tmp_path / "file" / "out", HOME=str(tmp_path))
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr.startswith("error: cannot create the folder") and "Traceback" not in ran.stderr


def test_without_a_home_nothing_is_kept_and_that_is_told() -> None:
    ran = run(HOMELESS, "map", "nk,km->nm; n=4 k=4 m=4", "--arch", "eyeriss", "--evaluations", 20)
    assert ran.returncode == 0 and "Traceback" not in ran.stderr
    assert "results are not cached: there is no home directory" in ran.stderr and "TILEWRIGHT_CACHE" in ran.stderr


def test_a_layer_of_a_file_without_layers_is_one_message(tmp_path: Path) -> None:
    (tmp_path / "nest.txt").write_text("nest M=2")
    with pytest.raises(InputError, match=r"nest.txt is read as a whole: it has no layers, so 'conv1' is not one"):
        read_text(tmp_path / "nest.txt/conv1")


def test_one_process_of_a_host_has_its_turn_at_a_time(tmp_path: Path) -> None:
    code = (
        "import time\nfrom tilewright.files import turn_on_host\n"
        "with turn_on_host('test', 60):\n    began = time.time(); time.sleep(0.3); print(began, time.time())\n"
    )
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    runs = [
        subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, env=environment)
        for _ in "abc"
    ]
    turns = sorted(tuple(map(float, run.communicate()[0].split())) for run in runs)
    assert all(before[1] <= after[0] for before, after in itertools.pairwise(turns)) and len(turns) == 3


def test_nobody_waits_where_no_folder_can_be_locked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "absent"))
    with turn_on_host("test", 60):
        assert not (tmp_path / "absent").exists()
