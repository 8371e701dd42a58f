"""Workloads by the frontends that recognise their source."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tilewright.errors import InputError, TilewrightError
from tilewright.plugin.guard.processes import warn_once
from tilewright.plugin.registry import DISABLE, Registration, installed
from tilewright.plugin.specs import FrontendSpec
from tilewright.schema.workload import Workload


def loaded(source: str, readers: Sequence[Registration], options: Mapping[str, Any]) -> Workload:
    """Return the workload that frontends load from a source. Those of third parties are named.

    Args:
        source: a file, a formula or a name.
        readers: the frontends that recognise it, at least one.
        options: options of the frontend.

    Raises:
        InputError: no frontend reads it, or several do with different results.
        PluginError: all frontends failed.
    """
    if len(readers) == 1:
        _note(source, readers)
        return installed().make(FrontendSpec, readers[0].long_name, options).load(source)
    workloads, errors = dict[str, Workload](), list[TilewrightError]()
    for registration in readers:
        try:
            made = installed().make(FrontendSpec, registration.long_name, options)
            workloads[registration.long_name] = made.load(source)
        except TilewrightError as error:
            errors.append(error)
    _note(source, [reader for reader in readers if reader.long_name in workloads] or readers)
    if not workloads:
        raise errors[0]
    first, *others = workloads.values()
    if any(other != first for other in others):
        raise InputError(
            f"{source}: {' and '.join(workloads)} read it, with different results",
            hint=f"{DISABLE}={next(iter(workloads))} switches one of them off",
        )
    return first


def _note(source: str, readers: Sequence[Registration]) -> None:
    """Tell that frontends of third parties read a source."""
    if not all(reader.builtin for reader in readers):
        warn_once(f"note: {source} is read by {' and '.join(str(reader.owner) for reader in readers)}")
