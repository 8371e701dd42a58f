"""Damaged stores: flipped bits and changed values, and their permitted effects."""

import json
import re
import sqlite3
from collections import Counter
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any
from unittest import mock

import tilewright as tw
from support.readers import Reader, complaint
from tilewright.application.api.page.exploration import exploration_page
from tilewright.application.exploration.records import ExplorationRecord
from tilewright.application.exploration.store import SCHEMA

FORMULA = "nk,km->nm; n=8 k=8 m=8"
SPACE: dict[str, Any] = {
    "kind": "space",
    "name": "small",
    "base": "eyeriss",
    "choices": {"GlobalBuffer.capacity_words": [64, 1024, 4096], "GlobalBuffer.read_energy_pj": [4, 6]},
    "limits": [],
}
DEEP = "[" * 5_000 + "]" * 5_000
ODD: tuple[Any, ...] = (
    None, "", "x", "{", "null", "[]", "{}", "0", "true", '"x"', "NaN", '{"a": 1e999}', '{"a": NaN}', DEEP, "[" * 100 + "]" * 100, "x" * 100_000,
    "\x1b[31m", "a\0b", "\ud800", 0, 1, -1, 2**62, -(2**63), 0.5, -0.0, 1e308, -1e308, 1e-320, float("inf"), float("-inf"), b"", b"\xff\xfe",
    "searched", "refused", "bounded",
)  # fmt: skip
"""Values in place of those of a column."""
ODD_JSON: tuple[Any, ...] = (
    None,
    True,
    0,
    -1,
    10**30,
    10**400,
    1e308,
    -1e308,
    0.5,
    "",
    "x",
    "\x1b[31m",
    [],
    {},
    [[]],
    {"a": {}},
    [None] * 9,
)
"""Values in place of those in a JSON text."""


def explored(store: Path) -> tw.ExplorationReport:
    """Explore, with what is in the store."""
    return tw.explore(FORMULA, SPACE, evaluations=40, store=store, bounds=False, progress=False)


@dataclass(frozen=True)
class Told:
    """Printed contents of an exploration, except times and names of files."""

    rows: str
    layers: str
    page: str

    @classmethod
    def of(cls, report: tw.ExplorationReport) -> "Told":
        """Raises AssertionError: a figure is no number."""
        assert str(report) and report.messages() is not None
        with mock.patch(
            "tilewright.application.api.page.exploration.chart", return_value=""
        ):  # charts take half a second
            page = exploration_page(report)
        layers = [{name: value for name, value in row.items() if name != "cpu_seconds"} for row in report.layer_rows()]
        page = re.sub("CPU seconds.*?</td>", "", page)
        return cls(json.dumps(report.data(), allow_nan=False), json.dumps(layers, allow_nan=False), page)


def flipped(random: Random, data: bytes) -> bytes:
    """One bit of a file, changed."""
    changed = bytearray(data)
    changed[random.randrange(len(changed))] ^= 1 << random.randrange(8)
    return bytes(changed)


def with_other_value(random: Random, store: Path, checksum: bool) -> None:
    """One value, or some, changed by SQL; with `checksum` the row says that it is sound, and records belong to their keys."""
    with closing(sqlite3.connect(store, isolation_level=None)) as base:
        base.execute("PRAGMA synchronous = OFF")
        base.text_factory = lambda data: data.decode("utf-8", "surrogateescape")
        for _ in range(random.choice((1, 1, 2))):
            table = SCHEMA.tables[random.choice(list(SCHEMA.tables))]
            columns = ", ".join(table.columns)
            rows = base.execute(f"SELECT {columns} FROM {table.name} ORDER BY {', '.join(table.key)}").fetchall()
            if not rows:
                continue
            before = dict(zip(table.columns, random.choice(rows), strict=True))
            row = dict(before)
            column = random.choice(list(table.columns))
            row[column] = _other(random, row[column])
            _set(base, table.name, before, {column: row[column]})
            if not checksum:
                continue
            for key in table.key:
                before[key] = row[key]
            after = base.execute(f"SELECT {columns} FROM {table.name} WHERE {_is(table.key)}", _bound([before[key] for key in table.key])).fetchall()  # fmt: skip
            for values in after[:1]:
                try:
                    sound = table.checksum(values)
                except TypeError:  # a BLOB has none
                    continue
                _set(base, table.name, dict(zip(table.columns, values, strict=True)), {"checksum": sound})
        if checksum:
            _rekey(base)


def _other(random: Random, value: Any) -> Any:
    data = _json(value)
    if data and random.random() < 0.7:
        at: Any = data
        while isinstance(at, dict | list) and at:
            key = random.choice(list(at)) if isinstance(at, dict) else random.randrange(len(at))
            if not isinstance(at[key], dict | list) or not at[key] or random.random() < 0.3:
                if random.random() < 0.2:
                    del at[key]
                else:
                    at[key] = random.choice(ODD_JSON)
                break
            at = at[key]
        return json.dumps(data)
    if isinstance(value, str) and value and random.random() < 0.3:
        at = random.randrange(len(value))
        return value[:at] + random.choice(("", "0", "x", "é")) + value[at + 1 :]
    return random.choice(ODD)


def _json(value: Any) -> Any:
    """The data that a text says; None: it says none, such as one that was changed before."""
    if not isinstance(value, str) or value[:1] not in ("{", "["):
        return None
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return None


def _set(base: sqlite3.Connection, table: str, row: dict[str, Any], changes: dict[str, Any]) -> None:
    key = SCHEMA.tables[table].key
    values = _bound([*changes.values(), *(row[name] for name in key)])
    try:
        base.execute(f"UPDATE {table} SET {', '.join(f'{name} = ?' for name in changes)} WHERE {_is(key)}", values)
    except (sqlite3.IntegrityError, UnicodeEncodeError):  # no NULL, no second row of a key
        return


def _is(names: tuple[str, ...]) -> str:
    return " AND ".join(f"{name} IS ?" for name in names)


def _bound(values: list[Any]) -> list[Any]:
    """Text that is no UTF-8 as the bytes that it is."""
    return [value if not isinstance(value, str) or value.isascii() else _text(value) for value in values]


def _text(value: str) -> Any:
    try:
        value.encode()
    except UnicodeEncodeError:
        return value.encode("utf-8", "surrogatepass")
    return value


def _rekey(base: sqlite3.Connection) -> None:
    """Give explorations the keys of their records."""
    for key, text in base.execute("SELECT exploration, record FROM explorations").fetchall():
        try:
            new = ExplorationRecord.model_validate_json(text).key
        except (ValueError, TypeError):
            continue
        if new == key:
            continue
        for name in ("explorations", "layers", "points"):
            table = SCHEMA.tables[name]
            rows = base.execute(
                f"SELECT {', '.join(table.columns)} FROM {name} WHERE exploration = ?", (key,)
            ).fetchall()
            for values in rows:
                row = dict(zip(table.columns, values, strict=True))
                row["exploration"] = new
                try:
                    sound = table.checksum(list(row.values()))
                    _set(
                        base,
                        name,
                        dict(zip(table.columns, values, strict=True)),
                        {"exploration": new, "checksum": sound},
                    )
                except TypeError:
                    continue


class Trials:
    """Faults of one sound store: how often it was read as before, refused, read otherwise, or worse.

    Args:
        resumed: an exploration goes on with every n-th of them.
    """

    def __init__(self, folder: Path, resumed: int = 1) -> None:
        self.folder, self.resumed = folder, resumed
        self.store = folder / "sound.sqlite"
        self.sound = Told.of(explored(self.store))
        self.data = self.store.read_bytes()
        self.counts: Counter[str] = Counter()
        self.wrong: dict[str, int] = {}

    def try_one(self, seed: int, data: bytes, same: bool) -> None:
        """Read a store with a fault, and explore with it.

        Args:
            same: what is read has to be that of the sound store, if it is not refused.
        """
        for what in ("read", "resumed") if seed % self.resumed == 0 else ("read",):
            outcome = [f"{what}: refused"]

            def read(paths: list[Path], what: str = what, outcome: list[str] = outcome) -> None:
                figures = Told.of(tw.explored(paths[0]) if what == "read" else explored(paths[0]))
                outcome[0] = f"{what}: as before" if figures == self.sound else f"{what}: otherwise"
                assert not same or figures == self.sound, "other figures"

            reader = Reader([], read)
            told = complaint(reader, {"fault.sqlite": data}, self.folder / "fault")
            if told is not None:
                self.wrong.setdefault(f"{what}: {told}", seed)
                outcome[0] = f"{what}: WRONG"
            self.counts[outcome[0]] += 1

    def flips(self, number: int, first: int = 0) -> None:
        """Flip `number` bits, each in a copy of a sound store."""
        for seed in range(first, first + number):
            self.try_one(seed, flipped(Random(f"flip {seed}"), self.data), same=True)

    def values(self, number: int, first: int = 0) -> None:
        """Change `number` values, half of them with valid checksums."""
        for seed in range(first, first + number):
            path = self.folder / "changed.sqlite"
            path.write_bytes(self.data)
            checksum = seed % 2 == 1
            with_other_value(Random(f"value {seed}"), path, checksum)
            self.try_one(seed, path.read_bytes(), same=not checksum)
