"""Store of exploration results: one SQLite file with documented tables (docs/spaces.md).

A result is one row with three keys: digests of machine, problem and method. Each result is written immediately in its own
transaction, so that a kill loses only the running searches. Several programs on one host may share a store: each claims a
search before it starts it. SQLite's log (WAL) does not work on network drives.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Literal, Self, TypeVar

from pydantic import ValidationError

from tilewright.application.database import Database, Schema, Table
from tilewright.application.exploration.claims import Claims
from tilewright.application.exploration.records import (
    ExplorationRecord,
    ExploredPoint,
    FoundLayer,
    StoredMachine,
    StoredPoint,
    memory_bits,
)
from tilewright.errors import InputError, UnknownNameError
from tilewright.schema.architecture import Architecture
from tilewright.schema.objective import Objective
from tilewright.schema.problem import Problem
from tilewright.version import __version__

CHECKPOINT_SECONDS = 30.0
"""Maximum time before results move from SQLite's log to the main file, while new ones arrive."""
_TEXT, _NEEDED, _INTEGER, _REAL = "TEXT", "TEXT NOT NULL", "INTEGER NOT NULL", "REAL"
SCHEMA = Schema(
    "store of explorations", application=0x7411E516, version=3, stays_open=True,
    rows=(
        Table("machines", {"machine": _NEEDED, "name": _NEEDED, "area_um2": _REAL, "architecture": _NEEDED}, ("machine",)),
        Table("problems", {"problem": _NEEDED, "name": _NEEDED, "macs": _INTEGER, "definition": _NEEDED}, ("problem",)),
        Table("methods", {"method": _NEEDED, "definition": _NEEDED}, ("method",)),
        Table(
            "results",
            {
                "machine": _NEEDED, "problem": _NEEDED, "method": _NEEDED, "energy_pj": _REAL, "cycles": "INTEGER", "utilization": _REAL,
                "lower_bound": _REAL, "stop": _TEXT, "evaluated": _INTEGER, "valid": _INTEGER, "cpu_seconds": "REAL NOT NULL", "binds": _TEXT,
                "places": _NEEDED, "mapping": _TEXT, "reason": _TEXT, "shared_from": _TEXT, "tilewright": _NEEDED, "written": _NEEDED,
            },
            ("machine", "problem", "method"),
        ),
        Table(
            "explorations",
            {
                "exploration": _NEEDED, "workload": _NEEDED, "space": _NEEDED, "strategy": _NEEDED, "objective": _NEEDED, "asked": _INTEGER,
                "method": _NEEDED, "record": _NEEDED, "begun": _NEEDED,
            },
            ("exploration",),
        ),
        Table(
            "layers",
            {"exploration": _NEEDED, "position": _INTEGER, "problem": _NEEDED, "name": _NEEDED, "count": _INTEGER},
            ("exploration", "position"),
        ),
        Table(
            "points",
            {"exploration": _NEEDED, "point": _INTEGER, "choices": _NEEDED, "outcome": _NEEDED, "machine": _TEXT, "reason": _TEXT},
            ("exploration", "point"),
        ),
    ),
    others=(
        "CREATE TABLE claims (machine TEXT NOT NULL, problem TEXT NOT NULL, method TEXT NOT NULL, owner TEXT NOT NULL, host TEXT NOT NULL, "
        "pid INTEGER NOT NULL, expires REAL NOT NULL, PRIMARY KEY (machine, problem, method)) WITHOUT ROWID",
        """CREATE VIEW explored AS
    SELECT p.exploration, e.workload, e.space, p.point, p.choices, m.area_um2,
           sum(l.count * r.energy_pj) AS energy_pj, sum(l.count * r.cycles) AS cycles
    FROM points p JOIN explorations e USING (exploration) JOIN machines m USING (machine) JOIN layers l USING (exploration)
         LEFT JOIN results r ON (r.machine, r.problem, r.method) = (p.machine, l.problem, e.method)
    WHERE p.outcome = 'searched' GROUP BY p.exploration, p.point HAVING count(r.energy_pj) = count(*)""",
    ),
    made="`tilewright explore --store FILE` writes a store to a new file; `report` also takes a folder of `tilewright map -o FOLDER`",
    mended="the command that wrote it, `tilewright explore` with the same words, takes damaged rows out and searches them again",
)  # fmt: skip
"""Version 1 had no checksums, version 2 no `shared_from`."""
Claimed = Literal["claimed", "claimed by another", "found"]
_FOUND = tuple(FoundLayer.model_fields)
_JSON = ("places", "mapping")
_KEY = "(machine, problem, method) = (?, ?, ?)"
Read = TypeVar("Read")


class Store:
    """An open store; without a path one that is gone with this program.

    Args:
        make: create the file if it is absent, take damaged rows out, and allow changes. Otherwise nothing is written, and a
            damaged row is an error.

    Attributes:
        repaired: a line for each damaged row that was taken out.

    Raises:
        InputError: the file is no store, is damaged, or is of another version; it is closed again.
        OutputError: it cannot be created.
    """

    def __init__(self, path: str | os.PathLike[str] | None = None, *, make: bool = True) -> None:
        self.path = None if path is None else Path(path)
        self._base = Database(self.path, SCHEMA, write=make)
        self._claims = Claims(self._base)
        self._moved = time.monotonic()
        self.repaired: tuple[str, ...] = ()
        try:
            if self.path is not None:
                self._check(repair=make)
        except BaseException:
            self._base.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._claims.release()
        finally:
            self._base.close()

    def _check(self, repair: bool) -> None:
        """Check every row. Raises InputError: one is damaged and `repair` is false, or it cannot be taken out."""
        damaged = list(self._base.damaged())
        if not damaged:
            return
        if not repair:
            raise self._base.wrong(damaged[0][0].name, damaged[0][1])
        with self._base.changing():
            for table, row in damaged:
                self._base.take_out(table, row)
                if table.name == "layers":  # its exploration is incomplete without it
                    self._base.run("DELETE FROM explorations WHERE exploration = ?", str(row[0]))
        left = next(self._base.damaged(), None)
        if left is not None:
            raise self._base.wrong(left[0].name, left[1])
        self.repaired = tuple(table.told(row) for table, row in damaged)

    # methods that write

    def begin(self, asked: ExplorationRecord, problems: Mapping[str, Problem]) -> None:
        """Write an exploration and its problems; again is as good as once.

        Args:
            problems: by their keys.

        Raises:
            OutputError: the store cannot be written to.
        """
        with self._base.changing():
            self._put_new("methods", method=asked.method, definition=json.dumps(asked.model_dump(mode="json")["methods"]))  # fmt: skip
            for key, problem in problems.items():
                self._put_new("problems", problem=key, name=problem.name, macs=problem.macs, definition=problem.model_dump_json())  # fmt: skip
            self._put_new(
                "explorations", exploration=asked.key, workload=asked.workload, space=str(asked.space.get("name")),
                strategy=asked.strategy, objective=asked.objective.name, asked=asked.asked, method=asked.method,
                record=asked.model_dump_json(), begun=_now(),
            )  # fmt: skip
            for position, layer in enumerate(asked.layers):
                self._put_new("layers", exploration=asked.key, position=position, problem=layer.problem, name=layer.name, count=layer.count)  # fmt: skip

    def keep_machine(self, key: str, architecture: Architecture) -> None:
        """Write a machine under its key. Raises OutputError."""
        self._put_new("machines", machine=key, name=architecture.name, area_um2=architecture.area_um2, architecture=architecture.model_dump_json())  # fmt: skip

    def keep(self, machine: str, problem: str, method: str, result: FoundLayer, *, replace: bool = False) -> None:
        """Write a result and end its claim. A failure is replaced, another result stays unless `replace`. Raises OutputError."""
        data = result.model_dump(mode="json")
        row = {name: json.dumps(data[name]) if name in _JSON and data[name] is not None else data[name] for name in _FOUND}  # fmt: skip
        key = machine, problem, method
        with self._base.changing():
            if replace or not self._base.run(f"SELECT 1 FROM results WHERE {_KEY} AND reason IS NULL", *key):
                self._base.put("results", machine=machine, problem=problem, method=method, **row, tilewright=__version__, written=_now())  # fmt: skip
            self._claims.end(*key)
        if time.monotonic() > self._moved + CHECKPOINT_SECONDS:
            self.checkpoint()

    def judge(self, exploration: str, point: ExploredPoint) -> None:
        """Write what became of a point, in place of what was written before. Raises OutputError."""
        self._base.put(
            "points", exploration=exploration, point=point.index, choices=json.dumps(dict(point.values)),
            outcome=point.outcome, machine=point.machine, reason=point.reason,
        )  # fmt: skip

    def checkpoint(self) -> None:
        """Move everything written so far from SQLite's log to the file. Raises OutputError."""
        self._moved = time.monotonic()
        if self.path is not None:
            self._base.checkpoint()

    def _put_new(self, table: str, /, **row: Any) -> None:
        """Write a row unless its key is there: rows under digests never change."""
        key = SCHEMA.tables[table].key
        where = " AND ".join(f"{name} = ?" for name in key)
        if not self._base.run(f"SELECT 1 FROM {table} WHERE {where}", *(row[name] for name in key)):
            self._base.put(table, **row)

    # who searches what

    def claim(self, machine: str, problem: str, method: str, *, retry: bool = False) -> Claimed:
        """Claim a search for this program, unless its result is there or another program has it.

        Args:
            retry: a failure that is there is no result.

        Raises:
            OutputError: the store cannot be written to.
        """
        if self.path is None:
            return "claimed"
        with self._base.changing():
            there = self._base.run(f"SELECT reason IS NULL FROM results WHERE {_KEY}", machine, problem, method)
            if there and (there[0][0] or not retry):
                return "found"
            return "claimed" if self._claims.take(machine, problem, method) else "claimed by another"

    def is_claimed(self, machine: str, problem: str, method: str) -> bool:
        """Return whether another program has claimed a search, and is alive."""
        return self._claims.by_another(machine, problem, method)

    # what is read

    def find(self, machine: str, problem: str, method: str, objective: Objective) -> FoundLayer | None:
        """Return what was found for a problem on a machine by a method, or None. Raises InputError: the row is damaged."""
        rows = self._base.rows("results", _KEY, machine, problem, method)
        return self._read("results", rows[0], partial(_found, objective)) if rows else None

    def explorations(self) -> list[ExplorationRecord]:
        """Return all that were begun, the last one last. Raises InputError."""
        rows = self._base.rows("explorations", "TRUE ORDER BY begun, exploration")
        return [self._read("explorations", row, _record) for row in rows]

    def one(self, named: str | None = None) -> ExplorationRecord:
        """Return the exploration whose key begins so, or the last one. Raises InputError, UnknownNameError."""
        known = self.explorations()
        matches = [exploration for exploration in known if named is None or exploration.key.startswith(named)]
        if not matches or (named is not None and len(matches) > 1):
            told = "; ".join(
                f"{exploration.key[:8]}: {exploration.workload} on {exploration.space.get('name')}"
                for exploration in known
            )
            raise UnknownNameError(f"{len(matches)} explorations in {self.path} are called '{named or ''}'; it has {told or 'none'}")  # fmt: skip
        return matches[-1]

    def points(self, asked: ExplorationRecord) -> tuple[ExploredPoint, ...]:
        """Return what became of its points so far, in their order. Raises InputError."""
        problems = {layer.problem for layer in asked.layers}
        there: dict[str, dict[str, FoundLayer]] = {}
        searched = "SELECT machine FROM points WHERE exploration = ? AND outcome = 'searched'"
        for row in self._base.rows("results", f"method = ? AND machine IN ({searched})", asked.method, asked.key):
            if row["problem"] in problems:
                there.setdefault(row["machine"], {})[row["problem"]] = self._read(
                    "results", row, partial(_found, asked.objective)
                )
        of_points = "machine IN (SELECT machine FROM points WHERE exploration = ?)"
        machines = {
            row["machine"]: self._read("machines", row, _machine)
            for row in self._base.rows("machines", of_points, asked.key)
        }

        def point(row: Mapping[str, Any]) -> ExploredPoint:
            one = StoredPoint(
                index=row["point"], values=json.loads(row["choices"]), outcome=row["outcome"], reason=row["reason"],
                machine=row["machine"],
            )  # fmt: skip
            if one.index >= asked.size or set(one.values) != set(asked.choices):
                raise ValueError("it is no point of the exploration's space")
            if one.machine not in machines and (one.machine is not None or one.outcome == "searched"):
                raise ValueError("its machine is absent")
            layers = []
            if one.outcome == "searched":
                known = there.get(one.machine or "", {})
                layers = [(layer, known.get(layer.problem, FoundLayer(reason="not in the store"))) for layer in asked.layers]  # fmt: skip
            point = ExploredPoint(
                one.index, dict(one.values), one.outcome, one.reason, one.machine, None, tuple(layers)
            )
            return point if one.machine is None else replace(point, **dict(machines[one.machine]))

        rows = self._base.rows("points", "exploration = ? ORDER BY point", asked.key)
        return tuple(self._read("points", row, point) for row in rows)

    def architecture(self, machine: str) -> Architecture:
        """Return a machine. Raises InputError: it is not there, or damaged."""
        return self._one("machines", machine, lambda row: Architecture.model_validate_json(row["architecture"]))

    def problem(self, key: str) -> Problem:
        """Return a problem. Raises InputError: it is not there, or damaged."""
        return self._one("problems", key, lambda row: Problem.model_validate_json(row["definition"]))

    def _one(self, table: str, key: str, make: Callable[[Mapping[str, Any]], Read]) -> Read:
        name = SCHEMA.tables[table].key[0]
        rows = self._base.rows(table, f"{name} = ?", key)
        if not rows:
            raise InputError(f"store {self.path} has no {name} {key[:8]}")
        return self._read(table, rows[0], make)

    def _read(self, table: str, row: Mapping[str, Any], make: Callable[[Mapping[str, Any]], Read]) -> Read:
        """Return what a row says. Raises InputError: it says what cannot be, though its checksum holds."""
        try:
            return make(row)
        except (ValueError, TypeError, RecursionError) as error:  # of pydantic, json and those that freeze data
            told = f"{error.error_count()} faults" if isinstance(error, ValidationError) else str(error)
            raise self._base.wrong(table, list(row.values()), f"it is none that Tilewright writes: {told}") from None


def _record(row: Mapping[str, Any]) -> ExplorationRecord:
    record = ExplorationRecord.model_validate_json(row["record"])
    if record.key != row["exploration"]:
        raise ValueError("its record is that of another exploration")
    return record


def _found(objective: Objective, row: Mapping[str, Any]) -> FoundLayer:
    data = {name: row[name] for name in _FOUND}
    for name in _JSON:
        data[name] = None if data[name] is None else json.loads(data[name])
    return FoundLayer.model_validate(data).checked(objective)


def _machine(row: Mapping[str, Any]) -> StoredMachine:
    machine = Architecture.model_validate_json(row["architecture"])
    return StoredMachine(area_um2=row["area_um2"], memory_bits=memory_bits(machine))


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
