"""Checks that plugins add to the kit."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from tilewright.errors import UnknownPluginError
from tilewright.plugin.guard.calls import calling, described, fault
from tilewright.plugin.guard.hooks import manager_of
from tilewright.plugin.registry import Registration, installed
from tilewright.plugin.specs import PluginSpec
from tilewright.schema.document import suggestion
from tilewright.testing.kit import Check

CHECKS = "tilewright_checks"


def added_checks(registration: Registration, others: Iterable[str], known: Iterable[str]) -> tuple[Check, ...]:
    """Return the checks that plugins add for one: those of its distribution, and of `others`.

    Args:
        others: Names of plugins (entry points), or distributions, with checks for plugins of any distribution.
        known: Names of the kit's own checks, which none may have.

    Raises:
        UnknownPluginError: None of the others has this name.
        PluginError: A hook failed, or returned no checks, or a check has the name of another one.
    """
    entries = installed().implementers(CHECKS)
    wanted = set(others)
    names = {name for owner, _ in entries for name in (owner.name, owner.distribution or owner.name)}
    for name in sorted(wanted - names):
        listed = ", ".join(sorted(names)) or "none"
        raise UnknownPluginError(f"no plugin '{name}' adds checks{suggestion(name, sorted(names))}; known: {listed}")
    checks: list[Check] = []
    taken = dict.fromkeys(known, "the kit")
    for owner, module in entries:
        if owner.distribution != registration.distribution and not wanted & {owner.name, owner.distribution}:
            continue
        with calling(owner, CHECKS):
            answers = getattr(manager_of(module).hook, CHECKS)()
            given = [] if not answers else list(answers[0])
        for check in given:
            if not isinstance(check, Check) or not _is_whole(check):
                raise fault(owner, f"{CHECKS} returned {described(check)}; expected a whole tilewright.testing.Check")
            if check.name in taken:
                raise fault(owner, f"its check '{check.name}' has the name of one of {taken[check.name]}")
            taken[check.name] = owner.distribution or owner.name
            checks.append(replace(check, origin=taken[check.name]))
    return tuple(check for check in checks if isinstance(registration.spec, check.kinds))


def _is_whole(check: Any) -> bool:
    return (
        isinstance(check.name, str)
        and check.name.isidentifier()
        and callable(check.function)
        and isinstance(check.kinds, tuple)
        and all(isinstance(kind, type) and issubclass(kind, PluginSpec) for kind in check.kinds)
    )
