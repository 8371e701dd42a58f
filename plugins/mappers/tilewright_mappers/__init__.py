"""Built-in mappers: names and options. A mapper is imported when it is built."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, PositiveInt

from tilewright.plugin import Capabilities, FrozenDict, GroupMapperSpec, MapperSpec, Options, hookimpl, lazy

DIVIDING = Capabilities(imperfect_factors=False)
"""Capabilities of a mapper that moves prime factors only."""
JOINT = Capabilities(several_machines=True)
"""Capabilities of a mapper that asks only whether tiles fit."""


class RandomOptions(Options):
    """Options of `random`."""

    batch: int = Field(default=8192, ge=1, le=1_000_000, description="mappings drawn and evaluated at once")


class TimeloopRandomOptions(Options):
    """Options of `timeloop_random`; the defaults are those of Timeloop's documentation."""

    timeout: int = Field(default=1000, ge=0, description="stop after this many invalid mappings in a row; 0: never")
    victory: int = Field(
        default=500, ge=0, description="stop after this many valid mappings without a better one; 0: never"
    )
    batch: int = Field(default=4096, ge=1, le=1_000_000, description="maximum mappings evaluated at once")


class TimeloopHybridOptions(TimeloopRandomOptions):
    """Options of `timeloop_hybrid`."""

    permutations: int = Field(default=16, ge=1, description="loop orders tried per choice of factors")


class InterstellarOptions(Options):
    """Options of `interstellar`."""

    width: int = Field(default=256, ge=1, le=100_000, description="tilings kept from level to level")


class DMazeRunnerOptions(Options):
    """Options of `dmazerunner`; the thresholds are the fast ones of Sunstone's Table V."""

    array: float = Field(default=0.8, ge=0, le=1, description="minimum fraction of the compute units in use")
    inner: float = Field(default=0.8, ge=0, le=1, description="minimum fraction of the innermost memories in use")
    outer: float = Field(default=0.5, ge=0, le=1, description="minimum fraction of the other on-chip memories in use")
    reduction: bool = Field(default=False, description="also unroll dimensions that need a reduction")
    width: int = Field(default=256, ge=1, le=100_000, description="tilings kept from level to level")


class MarvelOptions(Options):
    """Options of `marvel`."""

    array: float = Field(default=0.8, ge=0, le=1, description="minimum fraction of the compute units that can be used")
    memory: float = Field(
        default=0.8, ge=0, le=1, description="minimum fraction of the memories, halved when no tiling above it is left"
    )
    width: int = Field(default=256, ge=1, le=100_000, description="tilings kept from level to level")


class LomaOptions(Options):
    """Options of `loma`."""

    limit: int = Field(default=6, ge=1, le=12, description="maximum loop prime factors; more are merged")
    unrollings: int = Field(default=8, ge=1, description="unrollings that fill the array, tried at most")
    batch: int = Field(default=1024, ge=1, le=1_000_000, description="orders evaluated at once")


class SalsaOptions(Options):
    """Options of `salsa`; steps and temperatures are ZigZag's."""

    chains: int = Field(default=128, ge=1, le=100_000, description="orders annealed in parallel")
    steps: int = Field(default=1000, ge=0, description="swaps of two loops per chain")
    temperature: float = Field(default=0.05, gt=0, description="temperature of the first step")
    cooling: float = Field(default=0.999, gt=0, le=1, description="factor from step to step")
    unrollings: int = Field(
        default=8, ge=1, description="unrollings that fill the array, over which chains are distributed"
    )


class GammaOptions(Options):
    """Options of `gamma`."""

    population: int = Field(default=500, ge=2, le=100_000, description="mappings per generation")
    generations: int = Field(default=200, ge=0, description="generations after the first")
    elite: float = Field(default=0.1, ge=0, lt=1, description="fraction of a generation that survives")
    mutation: float = Field(default=0.5, ge=0, le=1, description="probability of each kind of mutation, per child")


class FactorFlowOptions(Options):
    """Options of `factorflow`."""

    search_objective: Literal["over_utilization", "plain"] = Field(
        default="over_utilization", description="value to lower: objective / utilization, or the objective"
    )
    rounds: int = Field(default=1, ge=1, description="maximum passes over all blocks of loops")
    ahead: int = Field(default=8, ge=0, description="best first moves after which second moves are tried")
    unrollings: int = Field(
        default=4, ge=0, description="starts with a full array, besides the start with all factors outside"
    )


class SunstoneOptions(Options):
    """Options of `sunstone`; inter and intra are the orders of its Table VI."""

    principles: Literal["sound", "paper"] = Field(
        default="sound", description="paper: only the published rules, with their losses"
    )
    inter: Literal["bottom_up", "top_down"] | None = Field(
        default=None, description="levels decided first; default: both directions with sound, bottom_up with paper"
    )
    intra: Literal["unrolling_tiling_ordering", "tiling_unrolling_ordering", "ordering_tiling_unrolling"] | None = (
        Field(default=None, description="decision order in a level; default: several with sound, the first with paper")
    )
    width: int = Field(default=50, ge=1, le=100_000, description="candidates kept per step")
    tries: int = Field(default=500, ge=1, le=1_000_000, description="candidates made per step")
    rounds: int = Field(default=2, ge=1, le=10, description="rounds, each with twice as many candidates")
    whole: int = Field(default=100_000, ge=0, description="maximum factorisations of a space that is also enumerated")


class QuickFlowOptions(Options):
    """Options of `quickflow`; hops, repeats and width are the paper's N, M and K."""

    search_objective: Literal["over_utilization", "plain"] | None = Field(
        default=None,
        description="value to lower: objective / utilization, or the objective; default: both in sequence",
    )
    hops: tuple[PositiveInt, PositiveInt, PositiveInt] = Field(
        default=(4, 2, 4),
        description="moves of one local search (N): unrolling, memories, both",
    )
    repeats: int = Field(
        default=1, ge=0, description="further local searches from the best candidates if none was better (M)"
    )
    width: int = Field(default=32, ge=1, le=100_000, description="candidates that these start from (K)")
    follow: int = Field(default=32, ge=1, le=100_000, description="mappings kept from hop to hop")
    starts: int = Field(default=48, ge=1, le=100_000, description="unrollings kept for the memories")
    finalists: int = Field(default=2, ge=1, description="tilings that the last local searches start from")


Weight = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class CosaOptions(Options):
    """Options of `cosa`."""

    objective_form: Literal["energy", "published", "balanced"] = Field(
        default="energy",
        description="energy: the search objective, from words moved; published: the paper's weighted sum; "
        "balanced: its difference of traffic and compute",
    )
    utilization_weight: Weight = Field(default=0.1, description="weight of the utilization of memories (paper: w_U)")
    compute_weight: Weight = Field(default=10.0, description="weight of the compute steps (w_C)")
    traffic_weight: Weight = Field(default=1.0, description="weight of the words through the outermost fanout (w_T)")
    utilization_of: FrozenDict[str, Weight] = Field(
        default=FrozenDict(),
        description="factor by tensor or role of the utilization, such as {weight: 2}; others have 1",
    )
    traffic_of: FrozenDict[str, Weight] = Field(
        default=FrozenDict(), description="factor by tensor or role of the traffic; others have 1"
    )
    inner_preference: Weight = Field(
        default=0.04, description="published: traffic less per level that is outside a factor, as in the authors' code"
    )
    rounds: int = Field(default=4, ge=1, description="programs solved in sequence, each around the best solution")
    nodes: int = Field(default=5000, ge=1, description="maximum nodes of the solver's tree, per program")
    gap: float = Field(
        default=0.01, ge=0, allow_inf_nan=False, description="gap to the solver's bound, as a difference of logarithms"
    )


class MindMappingsOptions(Options):
    """Options of `mindmappings`."""

    starts: int = Field(default=256, ge=1, le=100_000, description="random mappings that descend, 256 at a time")
    rounds: int = Field(default=7, ge=0, description="projections of every start that are evaluated")
    steps: int = Field(default=5, ge=1, le=10_000, description="gradient steps between two projections")
    rate: float = Field(
        default=1.0, gt=0, allow_inf_nan=False, description="length of a step, in log2 of trips and loop positions"
    )
    mappings: int = Field(default=100_000, ge=100, le=10_000_000, description="mappings in the training set")
    epochs: int = Field(default=15, ge=1, le=10_000, description="passes over the training set")
    width: int = Field(default=128, ge=1, le=4096, description="units of each of the three hidden layers")
    model: str = Field(default="timeloop", description="cost model that evaluates the training set")
    keep: bool = Field(default=True, description="store trained surrogates in the cache folder, and reuse them")


class ExhaustiveOptions(Options):
    """Options of `exhaustive`."""

    limit: int = Field(default=10_000_000, ge=1, description="largest space to enumerate")
    batch: int = Field(default=8192, ge=1, le=1_000_000, description="mappings evaluated at once")


class OptimalOptions(Options):
    """Options of `optimal`."""

    width: int | None = Field(
        default=None,
        ge=1,
        le=100_000_000,
        description="maximum states kept per stage; a smaller value can leave a gap [default: 300,000; 16,384 with ragged windows]",
    )
    orders: int = Field(
        default=100_000,
        ge=1,
        description="maximum loop orders evaluated of one undercounted tiling",
    )
    memory: int = Field(
        default=1024, ge=1, le=1_000_000, description="maximum MiB of the states of a proof; less can leave a gap"
    )
    gap: float = Field(
        default=0.0, ge=0, le=10, description="end once no mapping costs less than the best one divided by 1 + gap"
    )
    narrow_gap: float = Field(
        default=0.0,
        ge=0,
        le=10,
        description="leave out the widest pass, which takes most of the time, at this gap or if the bound stopped rising",
    )


@hookimpl
def tilewright_plugins() -> list[MapperSpec | GroupMapperSpec]:
    """Return the built-in mappers."""
    return [
        MapperSpec(
            name="random",
            summary="Uniform random mappings until the budget is spent.",
            factory=lazy("tilewright_mappers.random", "Random"),
            interface=1,
            capabilities=JOINT,
            options=RandomOptions,
        ),
        MapperSpec(
            name="exhaustive",
            summary="Every distinct mapping; proves the best one.",
            factory=lazy("tilewright_mappers.exhaustive", "Exhaustive"),
            interface=1,
            capabilities=JOINT,
            options=ExhaustiveOptions,
            ends=True,
            proof_version=1,
        ),
        MapperSpec(
            name="optimal",
            default_for=("search",),
            summary="The best mapping, with a proof: a staged search over tile shapes, pruned by bounds.",
            factory=lazy("tilewright_mappers.optimal.mapper", "Optimal"),
            interface=1,
            starts_with=("quickflow", "sunstone"),
            options=OptimalOptions,
            ends=True,
            limits_itself=True,
            narrow_option="narrow_gap",
            gap_reasons={
                "gap_by_width": "stages have more states than are kept; --mapper-option width=N keeps N",
                "gap_by_memory": "its states do not fit the memory; --mapper-option memory=N allows N MiB",
                "gap_by_request": "it ended at the gap that was asked for; a smaller --gap lets the proof go on",
                "gap_by_narrow": "no wider pass was made; --gap 0%, without narrow_gap, lets the proof go on",
                "gap_by_time": "the time ended; more --seconds let the proof go on",
                "gap_by_evaluations": "the evaluations were used up; more --evaluations let the proof go on",
                "gap_by_orders": "some tilings have more loop orders than are tried; --mapper-option orders=N tries N of each",
                "gap_by_undercounting": "bounds count too few words of sliding windows or forwarding; no option closes the gap",
                "gap_by_rounding": "mappings that differ by rounding alone are not told apart; no option closes the gap",
            },
            proof_version=6,  # 1 to 3 could prove too high a bound: see "Versions" in docs/optimal.md
        ),
        MapperSpec(
            name="timeloop_random",
            summary="Timeloop's random search: uniform, until its timeout or victory condition.",
            factory=lazy("tilewright_mappers.timeloop_random", "TimeloopRandom"),
            interface=1,
            capabilities=DIVIDING,
            options=TimeloopRandomOptions,
            ends=True,
        ),
        MapperSpec(
            name="timeloop_hybrid",
            summary="Timeloop's hybrid search: random factors, their loop orders in sequence.",
            factory=lazy("tilewright_mappers.timeloop_hybrid", "TimeloopHybrid"),
            interface=1,
            capabilities=DIVIDING,
            options=TimeloopHybridOptions,
            ends=True,
        ),
        MapperSpec(
            name="factorflow",
            summary="Greedy moves of prime factors, restarted for each loop order of one block.",
            factory=lazy("tilewright_mappers.factorflow", "FactorFlow"),
            interface=1,
            options=FactorFlowOptions,
            ends=True,
        ),
        MapperSpec(
            name="loma",
            summary="All orders of the loops' prime factors, allocated to the memories from inside.",
            factory=lazy("tilewright_mappers.loma", "Loma"),
            interface=1,
            capabilities=DIVIDING,
            options=LomaOptions,
            ends=True,
        ),
        MapperSpec(
            name="salsa",
            summary="Simulated annealing over the order of the loops' prime factors.",
            factory=lazy("tilewright_mappers.salsa", "Salsa"),
            interface=1,
            capabilities=DIVIDING,
            options=SalsaOptions,
            ends=True,
        ),
        MapperSpec(
            name="gamma",
            summary="Genetic search: crossover and mutation of factors, orders and storage.",
            factory=lazy("tilewright_mappers.gamma", "Gamma"),
            interface=1,
            options=GammaOptions,
            ends=True,
        ),
        MapperSpec(
            name="interstellar",
            summary="Channels across the array, then every tiling with every reusing order, level by level.",
            factory=lazy("tilewright_mappers.interstellar", "Interstellar"),
            interface=1,
            capabilities=DIVIDING,
            options=InterstellarOptions,
        ),
        MapperSpec(
            name="dmazerunner",
            summary="Tilings that fill array and memories above thresholds, with reusing orders.",
            factory=lazy("tilewright_mappers.dmazerunner", "DMazeRunner"),
            interface=1,
            capabilities=DIVIDING,
            options=DMazeRunnerOptions,
        ),
        MapperSpec(
            name="marvel",
            summary="Minimum off-chip traffic first, then the best on-chip mapping of that tile.",
            factory=lazy("tilewright_mappers.marvel", "Marvel"),
            interface=1,
            capabilities=DIVIDING,
            options=MarvelOptions,
        ),
        MapperSpec(
            name="local",
            summary="One greedy pass: maximum unrolling, memories filled from inside; no search.",
            factory=lazy("tilewright_mappers.local", "Local"),
            interface=1,
            ends=True,
        ),
        MapperSpec(
            name="sunstone",
            summary="Orders by reuse, tiles that fill memories, unrolling that fills arrays; then repair.",
            factory=lazy("tilewright_mappers.sunstone.mapper", "Sunstone"),
            interface=1,
            capabilities=JOINT,
            options=SunstoneOptions,
            ends=True,
        ),
        MapperSpec(
            name="quickflow",
            default_for=("fallback",),
            summary="Factors first, their orders in one shot; local beam search over single prime factors.",
            factory=lazy("tilewright_mappers.quickflow.mapper", "QuickFlow"),
            interface=1,
            options=QuickFlowOptions,
            ends=True,
        ),
        MapperSpec(
            name="cosa",
            summary="A mixed-integer program, solved by HiGHS; solutions are evaluated with other loop orders.",
            factory=lazy("tilewright_mappers.cosa.mapper", "Cosa"),
            interface=1,
            capabilities=DIVIDING,
            options=CosaOptions,
            needs=("highspy",),
            hint="pip install highspy",
            ends=True,
            figures=("utilization", "compute", "traffic", "total"),
        ),
        MapperSpec(
            name="mindmappings",
            summary="Gradient descent over a neural network that predicts costs, from random mappings.",
            factory=lazy("tilewright_mappers.mindmappings.mapper", "MindMappings"),
            interface=1,
            capabilities=DIVIDING,
            options=MindMappingsOptions,
            needs=("jax",),
            hint="pip install jax",
            ends=True,
        ),
        GroupMapperSpec(
            name="loop_trees",
            default_for=("fusion",),
            summary="The best group mapping of layers on two memories, with a proof: a search over trees of shared loops.",
            factory=lazy("tilewright_mappers.fused.group", "FusedGroupMapper"),
            interface=1,
            space="layers in the file's order, tiles that divide, each for one layer or all users of a tensor, halos kept, "
            "no recomputation",
            proof_version=3,
        ),
    ]
