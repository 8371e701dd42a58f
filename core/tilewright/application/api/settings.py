"""Settings of `map`, `front`, `compare`, `correlate` and `explore`, each defined once.

The signatures, docstrings and options of these functions and commands follow from the classes here,
and a test compares the table in docs/commands.md with them. Types are quoted, because the command
line reads this module before anything heavy is imported.
"""

import os
from collections.abc import Mapping as MappingOf
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal, Required, TypedDict

from tilewright.application.api.keywords import REQUIRED, Setting

if TYPE_CHECKING:
    from tilewright.application.api.load import Source
    from tilewright.plugin.costmodel import CostModel
    from tilewright.plugin.mapper import Mapper
    from tilewright.schema.objective import ObjectiveName

MARKED = "the one marked in `tilewright plugins`"

# fmt: off


class Inputs(TypedDict, total=False):
    """Settings of everything that chooses mappings."""

    constraints: Annotated["Source | None", Setting(
        None, "constraints on mappings; `none` allows everything that the hardware can do", "NAME|FILE|none",
        unset="the dataflow published for the architecture")]
    factors: Annotated["str | None", Setting(
        None, "perfect: every tile divides the enclosing one; ragged: the last tile of a dimension may be smaller; as_needed: "
        "ragged for layers with a size that few tiles divide, such as a prime", "perfect|ragged|as_needed", unset="as in the constraints, else perfect")]
    model_options: Annotated["MappingOf[str, Any] | None", Setting(
        None, "options of the cost models, or of one by its name", "[NAME.]KEY=VALUE", ("--model-option",))]
    progress: Annotated["bool | None", Setting(
        None, "whether to show a bar on stderr", flags=("--quiet",), unset="in terminals and notebooks")]
    notation: Annotated["str | None", Setting(
        None, "notation of other tools' input files", "NOTATION", ("--from",), unset="detected", plugins="adapter")]
    reading: Annotated["MappingOf[str, Any] | None", Setting(
        None, 'options of that notation\'s adapter, such as `{"set": {"architecture": "eyeriss_like"}}`',
        flags=("--set", "--dense", "--one-energy", "--dataflow"))]


class Searches(Inputs, total=False):
    """Settings of every search."""

    objective: Annotated["ObjectiveName | None", Setting(
        None, "metric to minimise: edp (energy x cycles), ed2p (energy x cycles^2), energy or cycles", "edp|ed2p|energy|cycles",
        unset="that of another tool's files, else edp")]
    uneven: Annotated["bool | None", Setting(
        None, "whether the tensors of one cluster may be kept at different loops (uneven mappings)",
        flags=("--uneven",), off="--even", unset="as in the constraints, or yes for a prover on AccelForge's or ZigZag's hardware")]
    expressible: Annotated["str | None", Setting(
        None, "notation whose files must express the mappings: `timeloop` has even ones that unroll a dimension along one axis",
        "NOTATION", plugins="adapter")]
    value_bits: Annotated['Literal["architecture", "network"]', Setting(
        "architecture", "whether the memories set the widths of values, or the network, such as 8 bits",
        "architecture|network")]
    seconds: Annotated["float | None", Setting(
        None, "time limit of each search, of one distinct layer", "S", least=0)]
    evaluations: Annotated["int | None", Setting(
        None, "maximum number of mappings per search", "N", least=1,
        unset="100,000; no limit with seconds, or if the mapper terminates on its own")]
    patience: Annotated["int | None", Setting(
        None, "stop a search after this many mappings without improvement", "N", least=1)]
    gap: Annotated["str | float | None", Setting(
        None, "end a proof once no mapping can be better by more than this, such as 5%", "PERCENT",
        unset="0 %: the best mapping is proved")]
    seed: Annotated["int", Setting(0, "seed of the search; equal seeds give equal results", "N", least=0)]
    mapper_options: Annotated["MappingOf[str, Any] | None", Setting(
        None, "options of the mappers, or of one by its name", "[NAME.]KEY=VALUE", ("--mapper-option",))]
    jobs: Annotated["int", Setting(1, "layers mapped in parallel, each in a process", "N", ("--jobs", "-j"), least=1)]
    cache: Annotated["bool | str | os.PathLike[str]", Setting(
        True, "whether to reuse and store results, or the folder for them", flags=("--no-cache",),
        option_help="search again, and store no results in the cache")]
    resume: Annotated["bool", Setting(
        False, "continue the run in the folder; finished layers come from the cache (explorations always continue)")]


class Folders(TypedDict, total=False):
    """Settings of what may write a folder."""

    folder: Annotated["str | os.PathLike[str] | None", Setting(
        None, "folder for mapping files, each written once it is found, and for summaries", "DIR", ("--output", "-o"))]
    force: Annotated["bool", Setting(False, "replace files of another workload's run in the folder")]


class Settings(Searches, Folders, total=False):
    """Settings of searches that may write a folder."""


class Plugins(TypedDict, total=False):
    """One mapper and one cost model."""

    mapper: Annotated["str | Mapper | None", Setting(
        None, "mapper of the search", "NAME", plugins="mapper",
        unset=f"{MARKED}, with a fallback for layers where it can prove nothing")]
    model: Annotated["str | CostModel | None", Setting(
        None, "cost model of the search", "NAME", plugins="cost model", unset=MARKED)]


class Clusters(TypedDict, total=False):
    """Computers that search."""

    cluster: Annotated["str | None", Setting(
        None, "address of a Dask scheduler (extra dask), such as tcp://host:8786; its workers search instead of local "
        "processes", "ADDRESS")]


class MapSettings(Plugins, Settings, Clusters, total=False):
    """Settings of `map`."""

    sensitivity: Annotated["float | None", Setting(
        None, "percent by which each bandwidth and each capacity is enlarged, one at a time, to tell what it would change",
        "PERCENT")]
    algorithms: Annotated["str | Sequence[str] | None", Setting(
        None, "algorithms to map for each layer; all steps of all alternatives are mapped",
        "NAME,...", plugins="algorithm")]
    movement: Annotated['Literal["counted", "none"]', Setting(
        "counted", "whether totals include the cost of tensors that algorithms rearrange in memory", "counted|none")]
    algorithm_options: Annotated["MappingOf[str, Any] | None", Setting(
        None, "options of the algorithms, or of one by its name", "[NAME.]KEY=VALUE", ("--algorithm-option",))]


class FrontSettings(Plugins, Settings, total=False):
    """Settings of `front`."""

    points: Annotated["int", Setting(
        8, "maximum number of points per layer", "N", ("--pareto",), least=2,
        option_help="report up to N Pareto-optimal mappings per layer (energy, cycles)")]


class GenerateSettings(Plugins, Settings, Clusters, total=False):
    """Settings of `generate`."""

    prefill: Required[Annotated["int", Setting(
        REQUIRED, "tokens of the prompt of a language model (vLLM: input length)", "N", least=1)]]
    decode: Annotated["int", Setting(0, "decoding steps after it (vLLM: output length - 1)", "N", least=0)]
    batch: Annotated["int | None", Setting(None, "sequences at a time", "N", least=1, unset="1")]
    kv_block: Annotated["int | None", Setting(
        None, "tokens in a block of the cache; steps read whole blocks (vLLM: block size)", "N", least=1,
        unset="16; more for more than 128 steps")]


class CompareSettings(Settings, total=False):
    """Settings of `compare`."""

    mappers: Required[Annotated["str | Sequence[str | Mapper]", Setting(
        REQUIRED, "mappers to compare", "A,B,...", plugins="mapper")]]
    models: Annotated["str | Sequence[str | CostModel] | None", Setting(
        None, "cost models, each used by every mapper", "X,Y,...", plugins="cost model", unset=MARKED)]


class CorrelateSettings(Inputs, Folders, total=False):
    """Settings of `correlate`."""

    models: Required[Annotated["str | Sequence[str | CostModel]", Setting(
        REQUIRED, "cost models to compare, two or more", "A,B,...", plugins="cost model")]]
    samples: Annotated["int", Setting(1000, "mappings per layer, drawn at random; at most 100,000", "N", least=2)]
    seed: Annotated["int", Setting(0, "seed of the samples; equal seeds give equal mappings", "N", least=0)]
    seconds: Annotated["float | None", Setting(
        None, "time limit for each distinct layer, whose last mappings are then left out", "S", least=0)]
    objective: Annotated["ObjectiveName | None", Setting(
        None, "figure that the printed tables compare: edp (energy x cycles), ed2p (energy x cycles^2), energy or cycles",
        "edp|ed2p|energy|cycles", unset="that of another tool's files, else edp")]
    worst: Annotated["int", Setting(
        1, "mappings that are written per layer and pair of models: those with the most unusual ratio", "N", least=0)]


class ExploreSettings(Plugins, Searches, Clusters, total=False):
    """Settings of `explore`."""

    arch: Annotated["Source | None", Setting(
        None, "in place of a space: an architecture, whose fields `vary` varies", "ARCH", plugins="architecture")]
    vary: Annotated["MappingOf[str, Any] | None", Setting(
        None, "values of a field of the architecture, such as `GlobalBuffer.capacity=32KiB,64KiB`, `DRAM.bandwidth=8GB/s,16GB/s` or "
        "`Row.fanout=8,16`; of several fields, all combinations, without skipping by bounds", "FIELD=A,B,...", ("--vary",))]
    weights: Annotated["Sequence[int] | None", Setting(
        None, "executions of each of several networks", "N,N,...", unset="once each")]
    strategy: Annotated["str | None", Setting(
        None, "choice and order of the points", "NAME", plugins="strategy", unset=MARKED)]
    strategy_options: Annotated["MappingOf[str, Any] | None", Setting(
        None, "options of the strategy", "KEY=VALUE", ("--strategy-option",))]
    points: Annotated["int | None", Setting(
        None, "maximum number of points, each tried once; drawn at random with the seed, unless the strategy chooses "
        "them", "N", unset="all, in order", least=1)]
    bounds: Annotated["bool", Setting(
        True, "whether to skip points that are dominated in energy, cycles and area, by bounds from the cost model's "
        "relaxation", flags=("--no-bounds",), option_help="also search points whose bounds are dominated")]
    store: Annotated["str | os.PathLike[str] | None", Setting(
        None, "SQLite file for results; stored ones are not searched again", "FILE", unset="a file in the cache")]
    retry: Annotated["bool", Setting(False, "repeat searches that failed before")]
