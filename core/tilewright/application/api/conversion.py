"""`convert`: files of one notation, written in another; `full_mapping` and `full_group`: all loops and tiles."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tilewright.application.api.call_arguments import checked
from tilewright.application.api.evaluation import Files, Mapped, inputs_by, paths_of
from tilewright.application.api.load import Source
from tilewright.application.conversion.conversion import Conversion
from tilewright.application.conversion.conversion import convert as convert_files
from tilewright.errors import InputError, InvalidMappingError
from tilewright.mapspace.group_legality import group_legality
from tilewright.mapspace.group_loops import full_group as full_form
from tilewright.mapspace.legality import legality
from tilewright.plugin.adapter import InputSet
from tilewright.plugin.registry import installed
from tilewright.schema.group import GroupMapping
from tilewright.schema.group.full import FullGroup
from tilewright.schema.mapping.full import FullMapping


@checked
def convert(
    files: Files,
    source: str | None = None,
    target: str | None = None,
    *,
    lossy: bool = False,
    reading: Mapping[str, Any] | None = None,
) -> Conversion:
    """Convert files of one notation into another, as `tilewright convert` does.

    Args:
        files: All files of one input set.
        source, target: Names of installed adapters, or `tilewright` for Tilewright's YAML files.
            The default source is the notation that can read the files.
        lossy: Drop parts that the target cannot express, where that is possible, and list them.
        reading: Options of the reading adapter, such as `{"set": {"architecture": "eyeriss_like"}}`.

    Returns:
        The converted texts. `save(folder)` writes them under the file names that the target tool expects.

    Raises:
        CallError, InputError, UnknownPluginError: An argument or a file is invalid.
        NotConformableError: The target cannot express the inputs; every reason is listed.
        PluginError: An adapter crashed or cannot be built.
    """
    if target is None:
        raise InputError(
            "no target notation is given", hint="add target='NAME' (--to NAME); `tilewright plugins` lists adapters"
        )
    return convert_files(paths_of(files), source, target, installed(), lossy=lossy, reading=reading)


@checked
def full_mapping(
    mapping: Mapped | Files,
    problem: Source | None = None,
    arch: Source | None = None,
    *,
    notation: str | None = None,
    reading: Mapping[str, Any] | None = None,
) -> FullMapping:
    """Return all loops and tiles of a mapping, as `tilewright convert --full` does.

    Args:
        mapping, problem, arch: As for `evaluate`.
        notation: Notation of the files, one of the adapters in `tilewright plugins`. Default: detected.
        reading: Options of the notation's adapter.

    Returns:
        The full form. `to_json` writes it; `tilewright schema full_mapping` prints its schema.

    Raises:
        CallError, InputError, UnknownNameError: An argument or a file is invalid, or contains a group mapping or directives.
        InvalidMappingError: The mapping is not legal; every broken rule is listed.

    Example:
        >>> import tilewright as tw
        >>> layer = tw.map("nk,km->nm; n=8 k=8 m=8", "eyeriss", mapper="random", evaluations=50, cache=False).layers[0]
        >>> full = tw.full_mapping(layer)
        >>> sorted(full.dimensions.items())
        [('k', 8), ('m', 8), ('n', 8)]
    """
    full = full_form_of(inputs_by(mapping, problem, arch, notation, reading))
    if isinstance(full, FullGroup):
        raise InputError(f"'{full.name}' is a group mapping", hint="full_group(...) has its loops and tiles")
    return full


@checked
def full_group(
    group: GroupMapping | Files, *, notation: str | None = None, reading: Mapping[str, Any] | None = None
) -> FullGroup:
    """Return all loops and tiles of a group mapping, and which layers share them.

    Args:
        group: Group mapping, or files that contain one.
        notation: Notation of the files, one of the adapters in `tilewright plugins`. Default: detected.
        reading: Options of the notation's adapter.

    Returns:
        The full form. `to_json` writes it; `tilewright schema full_group_mapping` prints its schema.

    Raises:
        CallError, InputError, UnknownNameError: An argument or a file is invalid, or contains no group mapping.
        InvalidMappingError: The group mapping is not legal; every broken rule is listed.

    Example:
        >>> import tilewright as tw
        >>> layer = tw.map("nk,km->nm; n=8 k=8 m=8", "eyeriss", mapper="random", evaluations=50, cache=False).layers[0]
        >>> group = tw.GroupMapping.of(layer.mapping.problem, layer.mapping.architecture, layer.mapping)
        >>> [layer.name for layer in tw.full_group(group).layers]
        ['einsum']
    """
    full = full_form_of(inputs_by(group, None, None, notation, reading))
    if isinstance(full, FullMapping):
        raise InputError(
            f"this is a mapping of '{full.problem}', not of a group", hint="full_mapping(...) has its loops"
        )
    return full


def full_form_of(inputs: InputSet) -> FullMapping | FullGroup:
    """Return all loops and tiles of inputs that were read already; see `full_mapping` and `full_group`."""
    if inputs.group is not None:
        if reasons := group_legality(inputs.group).reasons:
            raise InvalidMappingError(reasons)
        return full_form(inputs.group)
    if inputs.directives is not None:
        raise InputError(
            "these files contain directives, not mappings", hint="tilewright convert FILES --to tilewright"
        )
    assert inputs.problem is not None and inputs.architecture is not None and inputs.mapping is not None
    if reasons := legality(inputs.problem, inputs.architecture, inputs.mapping).reasons:
        raise InvalidMappingError(reasons)
    return FullMapping.of(inputs.mapping, inputs.problem, inputs.architecture)
