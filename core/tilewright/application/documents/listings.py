"""Documents of listings and files: `plugins`, `library`, `convert`, and errors."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from tilewright.documents import Document, OriginData, Output
from tilewright.errors import Reason
from tilewright.schema.workload import Content


class Place(Document):
    """Location in a file, counted from 1."""

    source: str
    """Path of the file, or a description of the text."""
    line: int | None
    """Line; None if unknown."""
    column: int | None
    """Column; None if unknown."""


class ErrorData(Document):
    """Error of a command."""

    code: str
    """Stable code of the kind of error."""
    message: str
    """The error in words."""
    hint: str | None
    """Next step: what to type or change."""
    reasons: list[Reason]
    """Reasons of a refusal."""
    exit_code: int
    """Exit code of the command."""
    location: Place | None = None
    """Place in a file; None if there is none."""


class ErrorOutput(Output):
    """Document that every command prints with `--json` if it fails."""

    kind: Literal["error_output"] = "error_output"
    """Kind of document."""
    error: ErrorData
    """The error."""


class RunRecord(Output):
    """`run.json`, which names the run to which a folder belongs."""

    kind: Literal["run"] = "run"
    """Kind of document."""
    work: str
    """Workload, mapper and model in words."""
    content: str
    """Key of the work: equal for equal work."""
    run: str
    """Key of the run: equal for equal work with equal settings."""


class PluginRow(Document):
    """Installed plugin."""

    kind: str
    """Kind of plugin, such as `mapper`."""
    name: str
    """Name of the plugin."""
    distribution: str
    """Distribution that contains it."""
    version: str
    """Version of the distribution."""
    interface: int
    """Version of the plugin interface for which it was written."""
    summary: str
    """Purpose in one line."""
    default_for: list[str]
    """Tasks for which it is used if the user names no plugin of its kind."""
    missing: list[str]
    """Packages that it needs, and that are not installed."""
    hint: str | None
    """Command that installs them."""


class HooksRow(Document):
    """Module that does more than register plugins."""

    name: str
    """Name of the module."""
    distribution: str | None
    """Distribution that contains it."""
    version: str | None
    """Version of the distribution."""
    does: list[str]
    """Purpose in one line."""


class UnmetRow(Document):
    """Requirement of a plugin's distribution that is not met."""

    distribution: str
    """Distribution of the plugin."""
    requirement: str
    """The requirement."""
    installed: str | None
    """Version that is installed instead; None: there is none."""
    hint: str
    """Command that installs what is required."""


class PluginsOutput(Output):
    """Result of `plugins list --json`."""

    kind: Literal["plugins_output"] = "plugins_output"
    """Kind of document."""
    plugins: list[PluginRow]
    """Installed plugins."""
    hooks: list[HooksRow]
    """Modules that do more than register plugins."""
    broken: list[str]
    """Plugins that failed to load, with the reason."""
    unmet: list[UnmetRow]
    """Requirements that are not met."""


class PluginDetails(PluginRow):
    """Options and limits of a plugin."""

    needs: list[str]
    """Packages that it needs."""
    capabilities: dict[str, Any]
    """Declared capability -> its value."""
    options: dict[str, Any]
    """Option -> its JSON schema, with default and description."""
    starts_with: list[str]
    """Mappers that run first in the same search."""
    approximations: dict[str, str]
    """Code -> count that is approximate."""
    conventions: dict[str, str]
    """Topic -> rule of a cost model."""


class PluginOutput(Output):
    """Result of `plugins show NAME --json`."""

    kind: Literal["plugin_output"] = "plugin_output"
    """Kind of document."""
    plugins: list[PluginDetails]
    """Plugins of that name, one of each kind."""


class OutcomeRow(Document):
    """Result of one conformance check of one plugin."""

    kind: str
    """Kind of plugin."""
    plugin: str
    """The plugin, with its distribution."""
    check: str
    """Name of the check."""
    status: Literal["passed", "failed", "expected failure", "unexpected pass"]
    """Result of the check."""
    message: str
    """Why it failed."""


class PluginCheckOutput(Output):
    """Result of `plugins check NAME --json`."""

    kind: Literal["plugin_check_output"] = "plugin_check_output"
    """Kind of document."""
    checks: list[OutcomeRow]
    """Conformance checks."""


class PluginNewOutput(Output):
    """Result of `plugins new KIND NAME --json`."""

    kind: Literal["plugin_new_output"] = "plugin_new_output"
    """Kind of document."""
    plugin_kind: str
    """Kind of plugin."""
    name: str
    """Name of the plugin."""
    distribution: str
    """Name of the distribution."""
    folder: str
    """Folder of the package."""
    files: list[str]
    """Paths of its files."""
    next: list[str]
    """Commands to type next."""


class LibraryArchitecture(Document):
    """Architecture of the library."""

    name: str
    """Name of the architecture."""
    compute_units: int
    """Compute units."""
    memories: list[str]
    """Memories, outermost first."""
    constraints: list[str]
    """Constraints for it."""
    dataflow: str | None
    """Constraints that apply by default."""
    models: list[str]
    """Cost models that fit."""
    source: str | None
    """Origin of its figures."""


class LibraryWorkload(Document):
    """Workload of the library or of a frontend."""

    name: str
    """Name of the workload."""
    source: str | None
    """Origin of its layers."""


class LibraryOutput(Output):
    """Result of `library`, `library archs` and `library workloads` with `--json`."""

    kind: Literal["library_output"] = "library_output"
    """Kind of document."""
    archs: list[LibraryArchitecture]
    """Architectures."""
    workloads: list[LibraryWorkload]
    """Workloads."""


class ListedLayer(Document):
    """Layer of a workload."""

    name: str
    """Name of the layer."""
    count: int
    """Number of executions."""
    macs: int
    """Operations of one execution."""
    dimensions: dict[str, int]
    """Dimension -> its size."""
    stride: str | None
    """Strides of windows, such as `2` or `2x1`; None if all are 1."""
    dilation: str | None
    """Dilations of windows, such as `2` or `2x1`; None if all are 1."""
    after: list[str] | None
    """Layers whose results it reads; None if that is unknown."""
    origin: OriginData | None
    """Place in the network's file."""


class LayersOutput(Output):
    """Result of `library layers WORKLOAD --json`."""

    kind: Literal["layers_output"] = "layers_output"
    """Kind of document."""
    workload: str
    """Name of the workload."""
    source: str | None
    """Origin of its layers."""
    content: Content
    """Whether the workload is a whole network or a list of layers."""
    layers: list[ListedLayer]
    """Layers in the order of execution."""


class WrittenFile(Document):
    """File of a conversion."""

    name: str
    """Name of the file."""
    path: str | None
    """Where it was written; None if it was not."""
    text: str
    """Its content."""


class DroppedRow(Document):
    """Part that the target notation cannot express."""

    what: str
    """Stable code of the kind of part."""
    message: str
    """The parts, and what replaces them."""


class ConvertOutput(Output):
    """Result of `convert --json`."""

    _optional = ("route", "adapters", "files", "warnings", "dropped", "error")
    kind: Literal["convert_output"] = "convert_output"
    """Kind of document."""
    source: str | None = Field(
        validation_alias="from",
        serialization_alias="from",
        description="Notation of the files; None if it was not found.",
    )
    to: str = Field(description="Target notation.")
    refused: bool
    """Whether the target notation cannot express the content; most keys are then absent."""
    reasons: list[Reason]
    """Reasons of the refusal."""
    route: list[str] | None = None
    """Source notation, core schemas, target notation."""
    adapters: list[str] | None = None
    """Adapters that read and wrote."""
    files: list[WrittenFile] | None = None
    """Files in the target notation."""
    warnings: list[str] | None = None
    """Content that the reader could not represent."""
    dropped: list[DroppedRow] | None = None
    """Content that was removed, with `--lossy`."""
    error: ErrorData | None = None
    """The refusal as an error."""
