"""Searches on a Dask cluster: the same as here, whatever dies meanwhile. `tox run -e dask` runs them."""

import importlib
import os
import signal
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
from tilewright.errors import InputError

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

    def add_worker(self) -> None:
        words = ["distributed.cli.dask_worker", self.address, "--nthreads", "1", "--no-nanny", "--no-dashboard"]
        self.workers.append(subprocess.Popen([sys.executable, "-m", *words], stderr=subprocess.DEVNULL))


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
    failed = [each for each in report.points if each.told]

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


def test_nobody_at_the_address_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tilewright.exploration.cluster.PATIENCE", 0.5)
    with pytest.raises(InputError, match="no Dask scheduler answers at tcp://127.0.0.1:1"):
        explored(tmp_path / "none.sqlite", cluster="tcp://127.0.0.1:1")
