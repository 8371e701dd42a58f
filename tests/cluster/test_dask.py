"""Searches on a Dask cluster: the same as here, whatever dies meanwhile. `tox run -e dask` runs them."""

import http.server
import importlib
import json
import os
import re
import shutil
import signal
import socketserver
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import cloudpickle  # type: ignore[import-untyped]
import pytest
import yaml

import tilewright as tw
from support.caches import entries
from tilewright.application.exploration.cluster import search_there
from tilewright.errors import ClusterError

distributed: Any = importlib.import_module("distributed")
FORMULA = "nk,km->nm; n=16 k=16 m=16"
SPACE: dict[str, Any] = {
    "kind": "space",
    "name": "small",
    "base": "eyeriss",
    "choices": {"GlobalBuffer.capacity_words": {"first": 128, "last": 4096, "plus": 128}},
}
RESULTS = "SELECT machine, problem, energy_pj, cycles, mapping, reason FROM results ORDER BY machine, problem"


@dataclass
class Local:
    """A scheduler and two workers, each a process of its own."""

    address: str
    scheduler: subprocess.Popen[bytes]
    workers: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def add_worker(self, **environment: str) -> None:
        words = ["distributed.cli.dask_worker", self.address, "--nthreads", "1", "--no-nanny", "--no-dashboard"]
        self.workers.append(
            subprocess.Popen([sys.executable, "-m", *words], stderr=subprocess.DEVNULL, env=os.environ | environment)
        )


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Local]:
    file = tmp_path / "scheduler.json"
    words = ["distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0", "--scheduler-file", str(file), "--no-dashboard"]  # fmt: skip
    with subprocess.Popen([sys.executable, "-m", *words], stderr=subprocess.DEVNULL) as scheduler:
        while not file.exists() and scheduler.poll() is None:
            time.sleep(0.05)
        local = Local(yaml.safe_load(file.read_text(encoding="utf-8"))["address"], scheduler)
        for _ in range(2):
            local.add_worker()
        try:
            with distributed.Client(local.address, set_as_default=False) as client:
                client.wait_for_workers(2, timeout=120)
            yield local
        finally:
            for process in (*local.workers, scheduler):
                process.kill()
                process.wait()


def explored(store: Path, **words: Any) -> tw.ExplorationReport:
    return tw.explore(FORMULA, SPACE, evaluations=300, store=store, bounds=False, progress=False, **words)


def rows(store: Path, statement: str = RESULTS) -> list[Any]:
    with closing(sqlite3.connect(store, timeout=30)) as base:
        return base.execute(statement).fetchall()


def counted(store: Path) -> int:
    if not store.exists() or not rows(store, "SELECT name FROM sqlite_master WHERE name = 'results'"):
        return 0
    return int(rows(store, "SELECT count(*) FROM results")[0][0])


def test_a_cluster_finds_the_same(cluster: Local, tmp_path: Path) -> None:
    report = explored(tmp_path / "there.sqlite", cluster=cluster.address)

    assert report.rows() == explored(tmp_path / "here.sqlite").rows()
    assert rows(tmp_path / "there.sqlite") == rows(tmp_path / "here.sqlite")


def test_map_finds_the_same_there(cluster: Local) -> None:
    words: dict[str, Any] = {"arch": "eyeriss", "evaluations": 300, "cache": False, "progress": False}

    assert tw.map("alexnet", cluster=cluster.address, **words).rows() == tw.map("alexnet", **words).rows()


def test_a_worker_and_then_the_client_are_killed(cluster: Local, tmp_path: Path) -> None:
    store, space = tmp_path / "there.sqlite", tmp_path / "space.yaml"
    space.write_text(yaml.safe_dump(SPACE), encoding="utf-8")
    words = ["explore", FORMULA, "--space", str(space), "--store", str(store), "--evaluations", "300", "--no-bounds"]
    with subprocess.Popen([sys.executable, "-m", "tilewright", *words, "--cluster", cluster.address]) as client:
        while counted(store) < 2 and client.poll() is None:
            time.sleep(0.01)
        os.kill(cluster.workers[0].pid, signal.SIGKILL)
        while counted(store) < 8 and client.poll() is None:
            time.sleep(0.01)
        client.kill()
    assert client.returncode == -signal.SIGKILL, "it ended before it was killed"
    left = rows(store, "SELECT * FROM results")

    explored(store, cluster=cluster.address)  # by the worker that is left
    explored(tmp_path / "here.sqlite")
    assert 8 <= len(left) < 32 and set(left) <= set(rows(store, "SELECT * FROM results"))
    assert rows(store) == rows(tmp_path / "here.sqlite")


def test_what_workers_die_of_costs_only_itself(cluster: Local, tmp_path: Path) -> None:
    cloudpickle.register_pickle_by_value(sys.modules[__name__])  # workers do not have this module
    stop = threading.Event()

    def revive() -> None:
        while not stop.wait(0.2):
            for worker in [each for each in cluster.workers if each.poll() is not None]:
                cluster.workers.remove(worker)
                cluster.add_worker()

    reviving = threading.Thread(target=revive)
    reviving.start()
    try:
        report = tw.explore(
            FORMULA, SPACE | {"choices": {"GlobalBuffer.capacity_words": [128, 256, 512, 1024]}}, mapper=Deadly(),
            evaluations=20, cluster=cluster.address, bounds=False, progress=False,
        )  # fmt: skip
    finally:
        stop.set()
        reviving.join()
    failed = [point for point in report.points if point.told]

    assert 1 <= len(failed) <= 2 and all("KilledWorker" in str(each.told) for each in failed)
    assert {each.values["GlobalBuffer.capacity_words"] for each in report.found} >= {128} and len(report.points) == 4


class Deadly:
    """A mapper that ends the process where the buffer has 512 words."""

    def search(self, task: Any, run: Any) -> Any:
        import os

        import numpy as np

        if task.architecture.clusters[1].memories[0].capacity_words == 512:
            os._exit(9)
        yield task.space.sample(np.random.default_rng(0), 20)


CLI = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from tilewright.application.exploration import cluster
cluster.PATIENCE, cluster.LOST_SECONDS, cluster.LOOK_SECONDS = (float(each) for each in sys.argv.pop(1).split(","))
from tilewright.__main__ import main
main()
"""


def begun(cluster: Local, folder: Path, *words: str, limits: str = "30,60,1") -> subprocess.Popen[str]:
    """`explore` on a cluster, in a process of its own."""
    space = folder / "space.yaml"
    space.write_text(yaml.safe_dump(SPACE), encoding="utf-8")
    command = [
        "explore",
        FORMULA,
        "--space",
        str(space),
        "--store",
        str(folder / "there.sqlite"),
        "--evaluations",
        "300",
    ]
    return subprocess.Popen(
        [sys.executable, "-c", CLI, limits, *command, "--no-bounds", "--cluster", cluster.address, *words],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def wait_for_rows(client: subprocess.Popen[str], store: Path, number: int) -> None:
    while counted(store) < number and client.poll() is None:
        time.sleep(0.01)
    assert client.poll() is None, client.communicate()


def test_a_lost_scheduler_is_one_message_and_results_are_kept(cluster: Local, tmp_path: Path) -> None:
    client = begun(cluster, tmp_path, "--json")
    wait_for_rows(client, tmp_path / "there.sqlite", 3)
    cluster.scheduler.kill()
    out, err = client.communicate(timeout=120)

    assert client.returncode == 2 and "Traceback" not in err and err.count("error:") == 1
    assert f"the Dask scheduler at {cluster.address} is lost" in err and "the same command continues" in err
    assert json.loads(out)["error"]["code"] == "cluster"
    left = rows(tmp_path / "there.sqlite", "SELECT * FROM results")
    assert 3 <= len(left) < 32 and not rows(tmp_path / "there.sqlite", "SELECT * FROM claims")
    explored(tmp_path / "there.sqlite")
    explored(tmp_path / "here.sqlite")
    assert set(left) <= set(rows(tmp_path / "there.sqlite", "SELECT * FROM results"))
    assert rows(tmp_path / "there.sqlite") == rows(tmp_path / "here.sqlite")


def test_map_keeps_what_was_found_before_the_scheduler_was_lost(cluster: Local, tmp_path: Path) -> None:
    over = threading.Event()

    def lose() -> None:
        while not entries(tmp_path / "cache") and not over.wait(0.01):
            pass
        cluster.scheduler.kill()

    losing = threading.Thread(target=lose)
    losing.start()
    try:
        report = tw.map(
            "resnet50", "eyeriss", evaluations=2_000, cache=tmp_path / "cache", progress=False, cluster=cluster.address
        )
    finally:
        over.set()
        losing.join()

    failed = [layer for layer in report.layers if layer.error is not None]
    assert len(report.layers) == 24 and 1 <= len(failed) <= 23
    assert {layer.error.code for layer in failed if layer.error} == {"cluster"} and "is lost" in str(report)


def test_lost_workers_are_waited_for_within_a_limit(cluster: Local, tmp_path: Path) -> None:
    client = begun(cluster, tmp_path, limits="30,2,0.5")
    wait_for_rows(client, tmp_path / "there.sqlite", 3)
    for worker in cluster.workers:
        worker.kill()
    _, err = client.communicate(timeout=120)

    assert client.returncode == 2 and "Traceback" not in err
    assert f"the Dask scheduler at {cluster.address} had no workers for 2 s" in err and "dask worker" in err
    assert 3 <= counted(tmp_path / "there.sqlite") < 32


def test_interrupts_end_the_wait_for_lost_workers(cluster: Local, tmp_path: Path) -> None:
    client = begun(cluster, tmp_path)
    wait_for_rows(client, tmp_path / "there.sqlite", 3)
    for worker in cluster.workers:
        worker.kill()
    time.sleep(2)
    client.send_signal(signal.SIGINT)
    out, err = client.communicate(timeout=60)

    assert client.returncode in (1, 130) and "Traceback" not in err and "small: " in out
    assert 3 <= counted(tmp_path / "there.sqlite") < 32


def test_no_workers_are_waited_for_within_a_limit(cluster: Local, tmp_path: Path) -> None:
    for worker in cluster.workers:
        worker.kill()
        worker.wait()
    with begun(cluster, tmp_path, limits="1,60,1") as client:
        _, err = client.communicate(timeout=60)
    assert client.returncode == 2 and f"the Dask scheduler at {cluster.address} had no workers for 1 s" in err

    client = begun(cluster, tmp_path)
    time.sleep(10)
    client.send_signal(signal.SIGINT)
    _, err = client.communicate(timeout=60)
    assert client.returncode == 130 and err.strip().endswith("interrupted") and "Traceback" not in err


def other_version(folder: Path, *, without: str | None = None) -> str:
    """A folder with Tilewright whose code differs, or lacks a module."""
    assert tw.__file__ is not None
    shutil.copytree(Path(tw.__file__).parent, folder / "tilewright", ignore=shutil.ignore_patterns("__pycache__"))
    if without is None:
        with (folder / "tilewright" / "version.py").open("a") as file:
            file.write("# changed\n")
    else:
        (folder / "tilewright" / without).unlink()
    return str(folder)


def with_workers(cluster: Local, number: int) -> None:
    with distributed.Client(cluster.address, set_as_default=False) as client:
        client.wait_for_workers(number, timeout=120)


def test_a_worker_that_differs_is_refused_by_name(
    cluster: Local, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    cluster.add_worker(PYTHONPATH=other_version(tmp_path / "other"))
    with_workers(cluster, 3)
    with caplog.at_level("WARNING", "tilewright"):
        explored(tmp_path / "there.sqlite", cluster=cluster.address)
    explored(tmp_path / "here.sqlite")

    (told,) = [record.getMessage() for record in caplog.records if "refused" in record.getMessage()]
    assert re.fullmatch(r"warning: worker tcp://\S+ is refused: other code of tilewright; install the same .*", told)
    assert rows(tmp_path / "there.sqlite") == rows(tmp_path / "here.sqlite")


@pytest.mark.parametrize(
    ("without", "why"),
    [(None, "other code of tilewright"), ("exploration/cluster.py", "cannot prove what it runs: .*No module named")],
)
def test_where_all_workers_differ_nothing_is_searched(
    without: str | None, why: str, cluster: Local, tmp_path: Path
) -> None:
    for worker in cluster.workers:
        worker.kill()
        worker.wait()
    cluster.add_worker(PYTHONPATH=other_version(tmp_path / "other", without=without))
    with_workers(cluster, 1)

    with pytest.raises(
        ClusterError, match=rf"(?s)all workers of .* are refused:.*tcp://.*{why}.*hint: install the same"
    ):
        explored(tmp_path / "none.sqlite", cluster=cluster.address)
    assert counted(tmp_path / "none.sqlite") == 0


def test_a_worker_proves_itself_again_before_each_search(cluster: Local) -> None:
    """One that joined between two looks, too, and one that the client believes in."""
    with distributed.Client(cluster.address, set_as_default=False) as client:
        proof = (["tilewright"], ["tilewright"]), {"tilewright": "0.0.1", "code of tilewright": "none"}
        kind, (worker, why) = client.submit(search_there, b"no search", *proof).result(timeout=120)

    assert kind == "differs" and worker.startswith("tcp://")
    assert why == f"tilewright {tw.__version__} there, 0.0.1 here; other code of tilewright"


def test_workers_that_differ_may_come_and_go(cluster: Local, tmp_path: Path) -> None:
    client = begun(cluster, tmp_path)
    wait_for_rows(client, tmp_path / "there.sqlite", 2)
    cluster.add_worker(PYTHONPATH=other_version(tmp_path / "other"))
    client.communicate(timeout=200)

    explored(tmp_path / "here.sqlite")
    assert client.returncode == 0 and rows(tmp_path / "there.sqlite") == rows(tmp_path / "here.sqlite")


class Silent(socketserver.BaseRequestHandler):
    """A server that takes connections and says nothing."""

    def handle(self) -> None:
        time.sleep(60)


class Http(http.server.BaseHTTPRequestHandler):
    """A server that is no scheduler."""

    def log_message(self, format: str, *words: Any) -> None:
        pass


@pytest.mark.parametrize("kind", ["nobody", "silent", "http", "no address", "no protocol", "empty"])
def test_what_is_no_scheduler_is_told(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tilewright.application.exploration.cluster.PATIENCE", 1.0)
    monkeypatch.setattr("tilewright.application.exploration.cluster.CLOSING_SECONDS", 1.0)
    handler: type[socketserver.BaseRequestHandler] = Http if kind == "http" else Silent
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads, server.block_on_close = True, False
        threading.Thread(target=server.serve_forever, daemon=True).start()
        port = server.server_address[1]
        address = {
            "nobody": "tcp://127.0.0.1:1", "no address": "not an address", "no protocol": f"udp-x://127.0.0.1:{port}", "empty": "",
        }.get(kind, f"tcp://127.0.0.1:{port}")  # fmt: skip
        try:
            with pytest.raises(ClusterError, match="no Dask scheduler answers at") as error:
                explored(tmp_path / "none.sqlite", cluster=address)
        finally:
            server.shutdown()
    assert error.value.exit_code == 2 and "dask scheduler" in str(error.value.hint)
