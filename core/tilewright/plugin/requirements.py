"""Requirements of the distributions of plugins that the installed versions do not meet."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass


@dataclass(frozen=True)
class Unmet:
    """Requirement of a distribution, with the version that is installed instead; None: there is none."""

    distribution: str
    requirement: str
    installed: str | None

    def __str__(self) -> str:
        instead = f"{self.installed} is installed" if self.installed else "which is not installed"
        return f"{self.distribution} requires {self.requirement}, {instead}"

    @property
    def hint(self) -> str:
        """The command that installs a version of the distribution with all that it requires."""
        return f"python -m pip install --upgrade {self.distribution}"


def unmet_requirements(distributions: Iterable[str]) -> list[Unmet]:
    """Return the direct requirements of distributions that the installed versions do not meet, by name.

    Those of extras are not considered, since metadata do not tell which extras are used. A distribution that is not
    installed has none.
    """
    return [
        unmet
        for distribution in sorted(set(distributions))
        for text in _requires(distribution)
        for unmet in _judge(distribution, text)
    ]


def _requires(distribution: str) -> list[str]:
    with suppress(importlib.metadata.PackageNotFoundError):
        return importlib.metadata.requires(distribution) or []
    return []


def _judge(distribution: str, text: str) -> Iterator[Unmet]:
    """Yield a requirement if it is not met. Those that cannot be read are left to pip."""
    from packaging.requirements import Requirement

    with suppress(ValueError):  # of requirements, markers and versions that packaging cannot read
        requirement = Requirement(text)
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": ""}):
            return
        version = _installed(requirement.name)
        if version is None or not requirement.specifier.contains(version, prereleases=True):
            yield Unmet(distribution, f"{requirement.name}{requirement.specifier}", version)


def _installed(distribution: str) -> str | None:
    """Return the installed version of a distribution, or None."""
    with suppress(importlib.metadata.PackageNotFoundError):
        return importlib.metadata.version(distribution)
    return None
