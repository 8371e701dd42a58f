"""Sections that plugins add to reports and pages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import TypeAdapter

from tilewright.errors import TilewrightError
from tilewright.plugin.guard.calls import Owner, calling, described, fault
from tilewright.plugin.guard.hooks import ask_each
from tilewright.plugin.guard.processes import warn_once
from tilewright.plugin.hook_data import Section
from tilewright.plugin.registry import installed
from tilewright.tables import Column, Table, numbers

HOOK = "tilewright_sections"
_silenced: set[str] = set()
"""Plugins whose hook failed in this process."""
_ANSWER = TypeAdapter(list[Section])
MAX_SECTIONS = 100
"""Maximum number of sections of one plugin."""


@dataclass(frozen=True)
class AddedSection:
    """A section with its plugin."""

    section: Section
    owner: Owner

    @property
    def title(self) -> str:
        return f"{self.section.title} ({self.owner.distribution or self.owner.name})"

    @property
    def table(self) -> Table | None:
        """The table; None without columns."""
        section = self.section
        if not section.columns:
            return None
        cells = list(zip(*section.rows, strict=True)) or [()] * len(section.columns)
        table = Table(*(_column(name, values) for name, values in zip(section.columns, cells, strict=True)))
        for row in section.rows:
            table.add_row(*row)
        return table

    def printed(self) -> list[Table | str]:
        """Return the section for a printed report; empty if it is for pages only."""
        table = self.table
        text = "" if self.section.safe else self.section.text
        if table is None and not text:
            return []
        return ["", self.title, *([text] if text else []), *([table] if table else [])]


def added_sections(kind: Literal["network", "exploration"], data: Mapping[str, Any]) -> list[AddedSection]:
    """Return the sections of all plugins. One whose hook fails, or returns anything else, is named and left out.

    Args:
        data: The JSON document of the run.
    """
    answers, complaints = ask_each(
        installed().implementers(HOOK), HOOK, [{"kind": kind, "data": data}], "for a report", _silenced
    )
    sections: list[AddedSection] = []
    for owner, answer in answers:
        try:
            with calling(owner, HOOK):
                sections += [AddedSection(_checked(section), owner) for section in _answered(answer, owner)]
        except TilewrightError as error:
            _silenced.add(str(owner))
            complaints.append(error.message)
    for line in complaints:
        warn_once(line)
    return sections


def are_added() -> bool:
    """Return whether a plugin adds sections."""
    return bool(installed().implementers(HOOK))


def _answered(answer: object, owner: Owner) -> Sequence[Section]:
    """Return the sections in an answer. Raises PluginError and ValidationError."""
    if not isinstance(answer, Sequence) or isinstance(answer, str | bytes):
        raise fault(owner, f"{HOOK} returned {described(answer)}; expected a list of Section")
    if len(answer) > MAX_SECTIONS:
        raise fault(owner, f"{HOOK} returned {len(answer):,} sections; at most {MAX_SECTIONS} are shown")
    return _ANSWER.validate_python(answer)


def _checked(section: Section) -> Section:
    """Return the section; raise ValueError if its rows do not fit its columns."""
    for row in section.rows:
        if len(row) != len(section.columns):
            raise ValueError(f"section '{section.title}' has {len(section.columns)} columns and a row of {len(row)}")
    return section


def _column(name: str, values: Sequence[object]) -> Column:
    return numbers(name) if values and not any(isinstance(value, str) for value in values) else Column(name)
