"""Versions of the plugin interface: those that this host accepts, and what changed with each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tilewright.version import __version__


@dataclass(frozen=True)
class Change:
    """Change of the interface by one version, and the first release that has it."""

    release: str
    meaning: str


CHANGES: Mapping[int, Change] = {
    1: Change("0.1", "the first interface"),
}
"""Version of the plugin interface -> what it changed; the manual prints this table."""
INTERFACE = max(CHANGES)
"""Newest version of the plugin interface that this host accepts."""
OLDEST_INTERFACE = 1
"""Oldest version of the plugin interface that this host accepts."""


class InterfaceError(ValueError):
    """A plugin was written for an interface that this host does not accept.

    `upgrade` names the distribution to upgrade; None: the plugin's own.
    """

    def __init__(self, message: str, upgrade: str | None) -> None:
        super().__init__(message)
        self.upgrade = upgrade


def changes_since(interface: int) -> list[str]:
    """Return what changed after a version of the interface, one sentence per version, oldest first."""
    return [
        f"interface {version} (Tilewright {change.release}): {change.meaning}"
        for version, change in sorted(CHANGES.items())
        if version > interface
    ]


def check_interface(name: object, interface: int) -> None:
    """Check whether this host accepts plugins for a version of the interface.

    Raises:
        InterfaceError: It is too new or too old. For an old one, the message lists what changed since.
    """
    versions = f"{OLDEST_INTERFACE} to {INTERFACE}" if OLDEST_INTERFACE < INTERFACE else f"{INTERFACE}"
    message = f"'{name}' was written for interface {interface}; Tilewright {__version__} accepts {versions}"
    if interface > INTERFACE:
        raise InterfaceError(message, upgrade="tilewright")
    if interface < OLDEST_INTERFACE:
        raise InterfaceError(f"{message}; changed since: {'; '.join(changes_since(interface))}", upgrade=None)
