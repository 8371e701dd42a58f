"""SQLite files of results: opened defensively, with a checksum in every row.

The cache of results and the stores of explorations are such files. A file from elsewhere may be damaged or hostile. It is
used only if its header and its schema are as expected. The size of a row and the time of a statement are bounded. A row is
used only if its checksum holds.
"""

from __future__ import annotations

import sqlite3
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from tilewright import digests
from tilewright.errors import InputError, OutputError, TilewrightError
from tilewright.files import made

LOCK_SECONDS = 60.0
"""Longest wait for another program that writes."""
STATEMENT_SECONDS = 60.0
"""Longest time of one statement, or between two rows."""
MAX_ROW_BYTES = 16 * 2**20
_POLL_SECONDS = 0.5
"""Longest wait inside SQLite, which does not notice Ctrl-C."""
_PROGRESS_STEPS = 100_000
_HEADER = b"SQLite format 3\0"
LOGS = ("wal", "journal")
"""Ends of the names of SQLite's logs, next to a file."""
_ERROR, _BUSY, _READONLY, _INTERRUPT, _IOERR, _CORRUPT, _FULL, _CANTOPEN = 1, 5, 8, 9, 10, 11, 13, 14
"""Primary result codes of SQLite."""
_HINTS = {
    _BUSY: "another program writes to it; wait for that one, or give another store",
    _READONLY: "give a store that can be written to, or copy this one to a folder of yours",
    _IOERR: "check free space, quotas and file size limits (ulimit -f); finished results stay in the store, and the same command continues with them",
    _CORRUPT: "if it was copied after a kill, copy the file that ends in -wal, too; else restore a copy, or give a new store",
    _FULL: "free some space; finished results stay in the store, and the same command continues with them",
    _CANTOPEN: "check that its folder exists and can be written to",
}


@dataclass(frozen=True)
class Table:
    """A table whose rows carry a checksum: its columns with their types, and those of the primary key."""

    name: str
    columns: Mapping[str, str]
    key: tuple[str, ...]

    @property
    def statement(self) -> str:
        """The statement that creates it."""
        columns = ", ".join(f"{name} {kind}" for name, kind in self.columns.items())
        return f"CREATE TABLE {self.name} ({columns}, checksum TEXT NOT NULL, PRIMARY KEY ({', '.join(self.key)})) WITHOUT ROWID"

    def stored(self, row: Mapping[str, Any]) -> list[Any]:
        """Return the values in the columns' order as SQLite returns them later, and their checksum."""
        values = [row.get(name) for name in self.columns]
        for at, (value, kind) in enumerate(zip(values, self.columns.values(), strict=True)):
            if kind.startswith("REAL") and value is not None:
                values[at] = float(value) + 0.0  # SQLite has no negative zero
        return [*values, self.checksum(values)]

    def checksum(self, values: Sequence[Any]) -> str:
        """Return the digest of a row of this table."""
        return digests.of_data([self.name, *values])

    def holds(self, row: Sequence[Any]) -> bool:
        """Return whether the last value is the checksum of the others."""
        *values, checksum = row
        with suppress(TypeError):  # a BLOB is nothing that is written here
            return bool(checksum == self.checksum(values))
        return False

    def told(self, row: Sequence[Any]) -> str:
        """Return the name of a row: its table, and its key, shortened."""
        values = dict(zip(self.columns, row, strict=False))
        key = ", ".join(f"{name} {str(values[name])[:8]!r}" for name in self.key)
        return f"table {self.name}, row with {key}"


@dataclass(frozen=True)
class Schema:
    """Contents of a kind of file, and messages about it.

    Attributes:
        noun: what the user calls such a file.
        application: SQLite's application_id.
        version: SQLite's user_version.
        rows: tables with checksums.
        others: statements that create what has none.
        made: hint of how such a file is made.
        mended: hint of how a damaged row is searched again.
        stays_open: a program keeps the file open while others write. The file has a log (WAL), which needs a local disk, and
            all its pages are checked first. Otherwise a file is opened for each call, and no call waits for the disk. A kill
            then leaves a whole file; a power failure may damage it.
    """

    noun: str
    application: int
    version: int
    rows: tuple[Table, ...]
    others: tuple[str, ...] = ()
    made: str | None = None
    mended: str | None = None
    stays_open: bool = False

    @cached_property
    def tables(self) -> Mapping[str, Table]:
        """Tables with checksums by their names."""
        return {table.name: table for table in self.rows}

    @property
    def statements(self) -> tuple[str, ...]:
        """The statements that create all of it."""
        return (*(table.statement for table in self.rows), *self.others)

    @cached_property
    def parts(self) -> frozenset[tuple[str, str, str]]:
        """(type, name, statement) of everything in such a file, as SQLite words it."""
        with closing(sqlite3.connect(":memory:")) as base:
            for statement in self.statements:
                base.execute(statement)
            return frozenset(base.execute("SELECT type, name, sql FROM sqlite_master").fetchall())


class Database:
    """An open file of a schema, or one in memory without a path.

    Args:
        write: create the file if it is absent, and allow changes.

    Raises:
        InputError: the file is of no such schema, damaged, or of another version. It is left unchanged.
        OutputError: it cannot be created, or another program keeps it locked.
    """

    def __init__(self, path: Path | None, schema: Schema, *, write: bool) -> None:
        self.path, self.schema, self.write = path, schema, write
        self._until = 0.0
        if path is not None:
            _check_file(path, schema, write)
        with self.errors():
            self._open()
            try:
                self._protect()
                self._check_schema()
                if schema.stays_open and path is not None:
                    self._check_pages()
            except BaseException:
                self._base.close()
                raise

    def close(self) -> None:
        """Close it. The last program that does moves what is in the log to the file."""
        self._base.close()

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Raise SQLite's errors as errors for the user, with the next step."""
        try:
            yield
        except UnicodeDecodeError as error:  # in the text of SQLite's own message
            raise self._damaged(error.object[:100].decode("utf-8", "backslashreplace")) from None
        except OverflowError:
            raise InputError(
                f"store {self.path}: an integer beyond 2^63 cannot be stored", hint="use smaller sizes"
            ) from None
        except sqlite3.Error as error:
            raise self._told(error) from None

    def _told(self, error: sqlite3.Error) -> TilewrightError | KeyboardInterrupt:
        code = _code(error)
        if code == _INTERRUPT and time.monotonic() < self._until:
            return KeyboardInterrupt()  # in the progress handler, whose exceptions SQLite drops
        if code == _INTERRUPT:
            return self._damaged(f"a statement took longer than {STATEMENT_SECONDS:g} s")
        if code == _ERROR or not isinstance(error, sqlite3.OperationalError):  # the statements themselves are right
            return self._damaged(str(error))
        return OutputError(f"store {self.path or 'in memory'}: {error}", hint=_HINTS.get(code))

    def _damaged(self, what: str) -> InputError:
        return InputError(f"store {self.path} is damaged: {what}", hint=_HINTS[_CORRUPT])

    # how it is opened

    def _open(self) -> None:
        if self.path is None:
            self._base = _connection(":memory:")
            return
        where = self.path.absolute().as_uri()
        self._base = _connection(f"{where}?mode={'rwc' if self.write else 'rw'}")
        if self.write:
            return
        try:
            self._rows("SELECT count(*) FROM sqlite_master")
            return
        except BaseException as error:
            self._base.close()
            if _code(error) not in (_CANTOPEN, _READONLY):
                raise
        for log in (self.path.with_name(f"{self.path.name}-{end}") for end in LOGS):
            if log.exists() and log.stat().st_size:
                raise InputError(
                    f"store {self.path} cannot be read where it is: its latest results are in {log.name}, and its folder cannot be written to",
                    hint=f"copy {self.path.name} and {log.name} to a folder of yours",
                )
        self._base = _connection(f"{where}?immutable=1")  # it cannot change meanwhile

    def _protect(self) -> None:
        """Bound what a hostile file can make SQLite do."""
        base = self._base
        base.text_factory = _decoded
        base.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_ROW_BYTES)
        base.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
        base.setlimit(sqlite3.SQLITE_LIMIT_TRIGGER_DEPTH, 0)
        base.set_progress_handler(self._is_late, _PROGRESS_STEPS)
        if sys.version_info >= (3, 12):
            base.setconfig(sqlite3.SQLITE_DBCONFIG_DEFENSIVE, True)
        for pragma in ("trusted_schema = OFF", "cell_size_check = ON", "mmap_size = 0"):
            base.execute(f"PRAGMA {pragma}")
        if not self.write:
            base.execute("PRAGMA query_only = ON")

    def _is_late(self) -> bool:
        return time.monotonic() > self._until

    def _check_schema(self) -> None:
        """Create the tables of a new file. Raises InputError: the file has others."""
        parts = self._parts()
        if not parts and self.write:
            with self.changing():
                if not self._parts():  # another program may just have created them
                    for statement in self.schema.statements:
                        self.run(statement)
                    self.run(f"PRAGMA application_id = {self.schema.application}")
                    self.run(f"PRAGMA user_version = {self.schema.version}")
            parts = self._parts()
        if not parts:
            raise InputError(f"store {self.path} is empty", hint=self.schema.made)
        if parts != self.schema.parts:
            odd = sorted({(kind, name) for kind, name, _ in parts ^ self.schema.parts}, key=str)
            names = ", ".join(f"{kind} {name}" for kind, name in odd[:5])
            raise InputError(
                f"{self.path} is no store as Tilewright writes it: unexpected, absent or changed: {names}",
                hint="restore a copy, or give a new store",
            )
        if self.write and self.path is not None:
            for pragma in (
                ("journal_mode = WAL", "synchronous = NORMAL") if self.schema.stays_open else ("synchronous = OFF",)
            ):
                self.run(f"PRAGMA {pragma}")

    def _parts(self) -> frozenset[tuple[str, str, str]]:
        return frozenset(self.run("SELECT type, name, sql FROM sqlite_master LIMIT 100"))

    def _check_pages(self) -> None:
        self._until = time.monotonic() + 10 * STATEMENT_SECONDS
        told = [str(row[0]) for row in self._base.execute("PRAGMA quick_check(3)").fetchall()]
        if told != ["ok"]:
            raise self._damaged("; ".join(told))

    # what is read and written

    def run(self, statement: str, *values: object) -> list[Any]:
        """Return the rows of a statement. It waits for a program that writes, and Ctrl-C ends the wait."""
        with self.errors():
            return self._rows(statement, *values)

    def _rows(self, statement: str, *values: object) -> list[Any]:
        """Do what `run` does. Raises sqlite3.Error."""
        end = time.monotonic() + LOCK_SECONDS
        while True:
            self._until = time.monotonic() + STATEMENT_SECONDS
            try:
                return self._base.execute(statement, values).fetchall()
            except sqlite3.OperationalError as error:
                if _code(error) != _BUSY or self._base.in_transaction or time.monotonic() > end:
                    raise

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Hold a transaction that writes; an exception undoes it."""
        self.run("BEGIN IMMEDIATE")
        try:
            yield
            self.run("COMMIT")
        except BaseException:
            if self._base.in_transaction:
                self._base.rollback()
            raise

    def put(self, table_name: str, /, **row: Any) -> None:
        """Write a row, in place of one with the same key."""
        table = self.schema.tables[table_name]
        values = table.stored(row)
        columns = ", ".join((*table.columns, "checksum"))
        self.run(f"INSERT OR REPLACE INTO {table.name} ({columns}) VALUES ({', '.join('?' * len(values))})", *values)

    def rows(self, name: str, where: str = "TRUE", *values: object) -> list[dict[str, Any]]:
        """Return rows of a table by column. Raises InputError: a checksum does not hold."""
        table, rows = self.schema.tables[name], []
        for row in self.run(f"SELECT {', '.join(table.columns)}, checksum FROM {name} WHERE {where}", *values):
            if not table.holds(row):
                raise self.wrong(name, row)
            rows.append(dict(zip(table.columns, row, strict=False)))
        return rows

    def wrong(self, name: str, row: Sequence[Any], what: str = "its checksum does not hold") -> InputError:
        """Return the error of a damaged row."""
        return InputError(
            f"store {self.path} is damaged: {self.schema.tables[name].told(row)}: {what}",
            hint=self.schema.mended,
        )

    def damaged(self) -> Iterator[tuple[Table, list[Any]]]:
        """Yield (table, row) of every row whose checksum does not hold."""
        for table in self.schema.rows:
            with self.errors():
                self._until = time.monotonic() + STATEMENT_SECONDS
                for row in self._base.execute(f"SELECT {', '.join(table.columns)}, checksum FROM {table.name}"):
                    self._until = time.monotonic() + STATEMENT_SECONDS
                    if not table.holds(row):
                        yield table, list(row)

    def take_out(self, table: Table, row: Sequence[Any]) -> None:
        """Delete a row, inside a transaction. Its key is compared as bytes: it may be no text."""
        keys = dict(zip(table.columns, row, strict=False))
        where = " AND ".join(f"CAST({name} AS BLOB) = ?" for name in table.key)
        values = [keys[name] for name in table.key]
        data = [
            value if isinstance(value, bytes) else str(value).encode("utf-8", "surrogateescape") for value in values
        ]
        self.run(f"DELETE FROM {table.name} WHERE {where}", *data)

    def checkpoint(self) -> None:
        """Move what is in the log to the file, as far as other programs' reading allows."""
        self.run("PRAGMA wal_checkpoint(PASSIVE)")


def _code(error: BaseException) -> int:
    """Return SQLite's primary result code of an error, or 0."""
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF


def _connection(where: str) -> sqlite3.Connection:
    return sqlite3.connect(where, timeout=_POLL_SECONDS, isolation_level=None, uri=True)


def _decoded(data: bytes) -> str:
    """Text that is no UTF-8 fails its checksum, and is still text."""
    return data.decode("utf-8", "surrogateescape")


def is_of_another_program(path: Path, schema: Schema) -> bool:
    """Return whether a file is an SQLite file with another application_id. Raises OSError."""
    header = _header(path) if path.is_file() else b""
    return header.startswith(_HEADER) and not _is_stamped(header, schema)


def _is_stamped(header: bytes, schema: Schema) -> bool:
    return int.from_bytes(header[68:72]) == schema.application


def _header(path: Path) -> bytes:
    with open(path, "rb") as file:
        return file.read(100)


def _check_file(path: Path, schema: Schema, write: bool) -> None:
    """Raises InputError: the path names no such file, by its header; SQLite has not touched the file then."""
    text = str(path)
    if "\0" in text or path.name.startswith(":"):
        raise InputError(
            f"store {text!r}: this is no name of a file", hint="give a path such as results.sqlite; --no-cache without --store keeps nothing"
        )  # fmt: skip
    if write:
        made(path.parent)
    try:
        if not path.exists():
            if write:
                return
            raise InputError(f"there is no store {path}", hint=schema.made)
        if not path.is_file():
            raise InputError(f"store {path} is no regular file", hint="give a path such as results.sqlite")
        header = _header(path)
    except OSError as error:
        raise InputError(f"cannot read store {path}: {error.strerror}") from None
    if not header and write:
        return
    if len(header) < 100 or not header.startswith(_HEADER):
        what = "is empty" if not header else "is not a database"
        raise InputError(f"store {path} {what}", hint=schema.made)
    if not _is_stamped(header, schema):
        raise InputError(f"{path} is no {schema.noun}", hint=schema.made)
    version = int.from_bytes(header[60:64])
    if version != schema.version:
        raise InputError(
            f"{path} is a store of version {version}; this program reads version {schema.version}",
            hint="export it with the Tilewright that wrote it; for new results give a new store",
        )
