"""Store: what explorations found, in one SQLite file that anybody can read (docs/spaces.md tells its tables).

A result is one row under what decides it: machine, problem and method, each by its content. It is written as soon as it is
there, in a transaction of its own, so that who is killed loses what was in hand and nothing else. Several programs on one
machine may use a store at once; on a network's disk SQLite's log (WAL) does not work.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

from pydantic import ValidationError

from tilewright.errors import InputError, OutputError, UnknownNameError
from tilewright.exploration.records import ExplorationRecord, ExploredPoint, FoundLayer
from tilewright.files import made
from tilewright.schema.architecture import Architecture
from tilewright.schema.problem import Problem
from tilewright.version import __version__

VERSION = 1
_OURS = 0x7411E516
"""SQLite's application_id."""
_PATIENCE = 60.0
"""Seconds that a writer waits for another one."""
_TABLES = """
CREATE TABLE IF NOT EXISTS machines (machine TEXT PRIMARY KEY, name TEXT NOT NULL, area_um2 REAL, architecture TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS problems (problem TEXT PRIMARY KEY, name TEXT NOT NULL, macs INTEGER NOT NULL, definition TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS methods (method TEXT PRIMARY KEY, definition TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS results (
    machine TEXT NOT NULL, problem TEXT NOT NULL, method TEXT NOT NULL,
    energy_pj REAL, cycles INTEGER, utilization REAL, lower_bound REAL, stop TEXT, evaluated INTEGER NOT NULL, valid INTEGER NOT NULL,
    cpu_seconds REAL NOT NULL, binds TEXT, places TEXT NOT NULL, mapping TEXT, reason TEXT,
    tilewright TEXT NOT NULL, written TEXT NOT NULL,
    PRIMARY KEY (machine, problem, method)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS explorations (
    exploration TEXT PRIMARY KEY, workload TEXT NOT NULL, space TEXT NOT NULL, strategy TEXT NOT NULL, objective TEXT NOT NULL,
    asked INTEGER NOT NULL, method TEXT NOT NULL, record TEXT NOT NULL, begun TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS layers (
    exploration TEXT NOT NULL, position INTEGER NOT NULL, problem TEXT NOT NULL, name TEXT NOT NULL, count INTEGER NOT NULL,
    PRIMARY KEY (exploration, position)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS points (
    exploration TEXT NOT NULL, point INTEGER NOT NULL, choices TEXT NOT NULL, outcome TEXT NOT NULL, machine TEXT, reason TEXT,
    PRIMARY KEY (exploration, point)) WITHOUT ROWID;
CREATE VIEW IF NOT EXISTS explored AS
    SELECT p.exploration, e.workload, e.space, p.point, p.choices, m.area_um2,
           sum(l.count * r.energy_pj) AS energy_pj, sum(l.count * r.cycles) AS cycles
    FROM points p JOIN explorations e USING (exploration) JOIN machines m USING (machine)
         JOIN layers l USING (exploration) JOIN results r ON (r.machine, r.problem, r.method) = (p.machine, l.problem, e.method)
    WHERE p.outcome = 'searched' GROUP BY p.exploration, p.point HAVING count(r.energy_pj) = count(*);
"""
_FOUND = tuple(FoundLayer.model_fields)
_JSON = ("places", "mapping")


class Store:
    """An open store, made if it is not there; without a path one that is gone with this program.

    Raises:
        InputError: the file is something else, or of a later version; it is closed again.
        OutputError: it cannot be made.
    """

    def __init__(self, path: str | os.PathLike[str] | None = None, *, make: bool = True) -> None:
        self.path = None if path is None else Path(path)
        if self.path is not None and not make and not self.path.is_file():
            raise InputError(f"there is no store {self.path}", hint="tilewright explore --store FILE makes one")
        if self.path is not None and make:
            made(self.path.parent)
        with self._told():
            self._base = sqlite3.connect(
                ":memory:" if self.path is None else self.path, timeout=_PATIENCE, isolation_level=None
            )
            try:
                self._prepare()
            except BaseException:
                self._base.close()
                raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._base.close()

    def _prepare(self) -> None:
        """Its tables; another program's file is left as it is."""
        (ours,), (version,), (tables,) = (
            self._base.execute(text).fetchone()
            for text in ("PRAGMA application_id", "PRAGMA user_version", "SELECT count(*) FROM sqlite_master")
        )
        if tables and ours != _OURS:
            raise InputError(f"{self.path} is no store of explorations", hint="give another file, or a new one")
        if tables and version != VERSION:
            raise InputError(f"{self.path} is a store of version {version}; this program reads version {VERSION}")
        self._base.execute("PRAGMA journal_mode = WAL")
        self._base.execute("PRAGMA synchronous = NORMAL")
        if not tables:
            with self._base:
                self._base.execute("BEGIN IMMEDIATE")
                for statement in _TABLES.split(";\n"):
                    self._base.execute(statement)
                self._base.execute(f"PRAGMA application_id = {_OURS}")
                self._base.execute(f"PRAGMA user_version = {VERSION}")

    @contextmanager
    def _told(self) -> Iterator[None]:
        """What SQLite says, as errors of ours."""
        try:
            yield
        except sqlite3.DatabaseError as error:
            kind = OutputError if isinstance(error, sqlite3.OperationalError) else InputError
            raise kind(f"store {self.path or 'in memory'}: {error}") from None

    # what is written

    def begin(self, asked: ExplorationRecord, problems: Mapping[str, Problem]) -> None:
        """An exploration and what it speaks of; again is as good as once. `problems`: by their keys. Raises OutputError."""
        with self._told(), self._base:
            self._base.execute("BEGIN IMMEDIATE")
            self._put("methods", method=asked.method, definition=json.dumps(asked.model_dump(mode="json")["methods"]))
            for key, problem in problems.items():
                self._put(
                    "problems", problem=key, name=problem.name, macs=problem.macs, definition=problem.model_dump_json()
                )
            self._put(
                "explorations", exploration=asked.key, workload=asked.workload, space=str(asked.space.get("name")),
                strategy=asked.strategy, objective=asked.objective, asked=asked.asked, method=asked.method,
                record=asked.model_dump_json(), begun=_now(),
            )  # fmt: skip
            for position, each in enumerate(asked.layers):
                self._put("layers", exploration=asked.key, position=position, problem=each.problem, name=each.name, count=each.count)  # fmt: skip

    def keep_machine(self, key: str, architecture: Architecture) -> None:
        """Raises OutputError."""
        with self._told():
            self._put("machines", machine=key, name=architecture.name, area_um2=architecture.area_um2, architecture=architecture.model_dump_json())  # fmt: skip

    def keep(self, machine: str, problem: str, method: str, found: FoundLayer) -> None:
        """A result; a failure makes room for it, another result stays. Raises OutputError."""
        data = found.model_dump(mode="json")
        row = {name: json.dumps(data[name]) if name in _JSON and data[name] is not None else data[name] for name in _FOUND}  # fmt: skip
        with self._told(), self._base:
            self._base.execute("BEGIN IMMEDIATE")
            self._base.execute(
                "DELETE FROM results WHERE (machine, problem, method) = (?, ?, ?) AND reason IS NOT NULL",
                (machine, problem, method),
            )
            self._put("results", machine=machine, problem=problem, method=method, **row, tilewright=__version__, written=_now())  # fmt: skip

    def judge(self, exploration: str, point: ExploredPoint) -> None:
        """What became of a point, in the place of what was said before. Raises OutputError."""
        with self._told():
            self._base.execute(
                "INSERT OR REPLACE INTO points VALUES (?, ?, ?, ?, ?, ?)",
                (exploration, point.index, json.dumps(dict(point.values)), point.outcome, point.machine, point.reason),
            )

    def _put(self, table: str, **row: Any) -> None:
        names, marks = ", ".join(row), ", ".join("?" * len(row))
        self._base.execute(f"INSERT OR IGNORE INTO {table} ({names}) VALUES ({marks})", tuple(row.values()))

    # what is read

    def find(self, machine: str, problem: str, method: str) -> FoundLayer | None:
        """What is known of a problem on a machine by a method; None: nothing. Raises InputError: the row is damaged."""
        rows = self._rows(
            f"SELECT {', '.join(_FOUND)} FROM results WHERE (machine, problem, method) = (?, ?, ?)",
            machine, problem, method,
        )  # fmt: skip
        return self._found(rows[0]) if rows else None

    def explorations(self) -> list[ExplorationRecord]:
        """All that were begun, the last one last. Raises InputError."""
        rows = self._rows("SELECT record FROM explorations ORDER BY begun, exploration")
        try:
            return [ExplorationRecord.model_validate_json(text) for (text,) in rows]
        except ValidationError as error:
            raise InputError(f"store {self.path} is damaged: {error.error_count()} faults in explorations") from None

    def one(self, named: str | None = None) -> ExplorationRecord:
        """The exploration whose key begins so, or the last one. Raises InputError, UnknownNameError."""
        known = self.explorations()
        found = [each for each in known if named is None or each.key.startswith(named)]
        if not found or (named is not None and len(found) > 1):
            told = "; ".join(f"{each.key[:8]}: {each.workload} on {each.space.get('name')}" for each in known)
            raise UnknownNameError(f"{len(found)} explorations in {self.path} are called '{named or ''}'; it has {told or 'none'}")  # fmt: skip
        return found[-1]

    def points(self, asked: ExplorationRecord) -> tuple[ExploredPoint, ...]:
        """What became of its points so far, in their order. Raises InputError."""
        layers = {each.problem: each for each in asked.layers}
        there: dict[str, dict[str, FoundLayer]] = {}
        for machine, problem, *row in self._rows(
            f"SELECT machine, problem, {', '.join(f'r.{name}' for name in _FOUND)} FROM results r WHERE method = ? AND machine IN "
            "(SELECT machine FROM points WHERE exploration = ? AND outcome = 'searched')",
            asked.method, asked.key,
        ):  # fmt: skip
            if problem in layers:
                there.setdefault(machine, {})[problem] = self._found(row)
        found = []
        for index, choices, outcome, machine, reason, area in self._rows(
            "SELECT point, choices, outcome, machine, reason, area_um2 FROM points LEFT JOIN machines USING (machine) "
            "WHERE exploration = ? ORDER BY point",
            asked.key,
        ):
            known = there.get(machine, {}) if outcome == "searched" else {}
            of_layers = tuple((layer, known.get(layer.problem, FoundLayer(reason="not in the store"))) for layer in asked.layers)  # fmt: skip
            found.append(
                ExploredPoint(index, json.loads(choices), outcome, reason, machine, area, of_layers if outcome == "searched" else ())
            )  # fmt: skip
        return tuple(found)

    def architecture(self, machine: str) -> Architecture:
        """Raises InputError: it is not there, or damaged."""
        rows = self._rows("SELECT architecture FROM machines WHERE machine = ?", machine)
        if not rows:
            raise InputError(f"store {self.path} has no machine {machine[:8]}")
        try:
            return Architecture.model_validate_json(rows[0][0])
        except ValidationError as error:
            raise InputError(f"store {self.path} is damaged: {error.error_count()} faults in a machine") from None

    def _found(self, row: Any) -> FoundLayer:
        data = dict(zip(_FOUND, row, strict=True))
        try:
            for name in _JSON:
                data[name] = None if data[name] is None else json.loads(data[name])
            return FoundLayer.model_validate(data)
        except ValueError:  # of pydantic and of json
            raise InputError(f"store {self.path} is damaged: a result is none") from None

    def _rows(self, statement: str, *values: object) -> list[Any]:
        with self._told():
            return self._base.execute(statement, values).fetchall()


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
