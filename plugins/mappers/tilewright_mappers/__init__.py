"""Built-in mappers. Only names and options live here; a mapper is imported when it is built."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, PositiveInt

from tilewright.plugin import Capabilities, MapperSpec, Options, hookimpl, lazy

DIVIDING = Capabilities(imperfect_factors=False)
"""Of a mapper that moves prime factors only."""


class RandomOptions(Options):
    """Options of `random`."""

    batch: int = Field(default=8192, ge=1, le=1_000_000, description="mappings drawn and evaluated at once")


class TimeloopRandomOptions(Options):
    """Options of `timeloop_random`; the stop rules' numbers are those of Timeloop's documentation."""

    timeout: int = Field(default=1000, ge=0, description="stop after so many invalid mappings in a row; 0: never")
    victory: int = Field(default=500, ge=0, description="stop after so many valid mappings without a better; 0: never")
    batch: int = Field(default=4096, ge=1, le=1_000_000, description="most mappings evaluated at once")


class TimeloopHybridOptions(TimeloopRandomOptions):
    """Options of `timeloop_hybrid`."""

    permutations: int = Field(default=16, ge=1, description="orders of loops visited for one choice of factors")


class InterstellarOptions(Options):
    """Options of `interstellar`."""

    width: int = Field(default=256, ge=1, le=100_000, description="tilings followed at once from level to level")


class DMazeRunnerOptions(Options):
    """Options of `dmazerunner`; the thresholds are the fast ones of Sunstone's Table V."""

    array: float = Field(default=0.8, ge=0, le=1, description="least share of the compute units")
    inner: float = Field(default=0.8, ge=0, le=1, description="least share of the innermost memories")
    outer: float = Field(default=0.5, ge=0, le=1, description="least share of the other memories on the chip")
    reduction: bool = Field(default=False, description="unroll dimensions that have to be summed over, too")
    width: int = Field(default=256, ge=1, le=100_000, description="tilings followed at once from level to level")


class MarvelOptions(Options):
    """Options of `marvel`."""

    array: float = Field(
        default=0.8, ge=0, le=1, description="least share of the compute units that can be used at all"
    )
    memory: float = Field(default=0.8, ge=0, le=1, description="least share of the memories, halved once all is seen")
    width: int = Field(default=256, ge=1, le=100_000, description="tilings followed at once from level to level")


class LomaOptions(Options):
    """Options of `loma`."""

    limit: int = Field(default=6, ge=1, le=12, description="loop prime factors are merged until there are so many")
    unrollings: int = Field(default=8, ge=1, description="ways to fill the array that are tried")
    batch: int = Field(default=1024, ge=1, le=1_000_000, description="orders evaluated at once")


class SalsaOptions(Options):
    """Options of `salsa`; steps and temperatures are ZigZag's."""

    chains: int = Field(default=128, ge=1, le=100_000, description="orders annealed side by side")
    steps: int = Field(default=1000, ge=0, description="swaps of two loops per chain")
    temperature: float = Field(default=0.05, gt=0, description="of the first step")
    cooling: float = Field(default=0.999, gt=0, le=1, description="factor from step to step")
    unrollings: int = Field(default=8, ge=1, description="ways to fill the array that the chains are shared among")


class GammaOptions(Options):
    """Options of `gamma`."""

    population: int = Field(default=500, ge=2, le=100_000, description="mappings of one generation")
    generations: int = Field(default=200, ge=0, description="after the first")
    elite: float = Field(default=0.1, ge=0, lt=1, description="share of a generation that lives on")
    mutation: float = Field(default=0.5, ge=0, le=1, description="chance of each kind of mutation, per child")


class FactorFlowOptions(Options):
    """Options of `factorflow`."""

    search_objective: Literal["over_utilization", "plain"] = Field(
        default="over_utilization", description="what descends: the objective over the utilization, or the objective"
    )
    rounds: int = Field(default=1, ge=1, description="times through all blocks of loops, at most")
    ahead: int = Field(default=8, ge=0, description="second moves are tried after the best so many first ones")
    unrollings: int = Field(default=4, ge=0, description="starts with a full array, beside that with all outside")


class SunstoneOptions(Options):
    """Options of `sunstone`; inter and intra are the orders of its Table VI."""

    principles: Literal["sound", "paper"] = Field(
        default="sound", description="paper: the published rules and nothing else, with what they lose"
    )
    inter: Literal["bottom_up", "top_down"] | None = Field(
        default=None, description="which levels are decided first; sound without a word: both ways"
    )
    intra: Literal["unrolling_tiling_ordering", "tiling_unrolling_ordering", "ordering_tiling_unrolling"] | None = (
        Field(default=None, description="what of a level is decided first; sound without a word: several ways")
    )
    width: int = Field(default=50, ge=1, le=100_000, description="candidates that go on from one step to the next")
    tries: int = Field(default=500, ge=1, le=1_000_000, description="candidates made at one step")
    rounds: int = Field(default=2, ge=1, le=10, description="rounds, each with twice as many candidates as before")
    whole: int = Field(default=100_000, ge=0, description="spaces of so many factorisations are searched whole, too")


class QuickFlowOptions(Options):
    """Options of `quickflow`; hops, repeats and width are the paper's N, M and K."""

    search_objective: Literal["over_utilization", "plain"] | None = Field(
        default=None,
        description="what is lowered: the objective over the utilization, or the objective; else one after the other",
    )
    hops: tuple[PositiveInt, PositiveInt, PositiveInt] = Field(
        default=(4, 2, 4),
        description="moves of one local search (N), for unrolling, for memories, and for all together",
    )
    repeats: int = Field(
        default=1, ge=0, description="local searches from the best candidates where none was better (M)"
    )
    width: int = Field(default=32, ge=1, le=100_000, description="candidates that these start from (K)")
    follow: int = Field(default=32, ge=1, le=100_000, description="mappings that go on from one hop to the next")
    starts: int = Field(default=48, ge=1, le=100_000, description="ways to unroll that go on to the memories")
    finalists: int = Field(default=2, ge=1, description="tilings that the local search is run from")


class CosaOptions(Options):
    """Options of `cosa`."""

    objective_form: Literal["energy", "published"] = Field(
        default="energy",
        description="energy: that of the search, from words moved; published: the paper's weighted sum",
    )
    rounds: int = Field(default=4, ge=1, description="programs solved one after another, each around the best solution")
    nodes: int = Field(default=5000, ge=1, description="most nodes of the solver's tree, per program")
    gap: float = Field(
        default=0.01, ge=0, allow_inf_nan=False, description="to the solver's bound, as a difference of logarithms"
    )


class ExhaustiveOptions(Options):
    """Options of `exhaustive`."""

    limit: int = Field(default=10_000_000, ge=1, description="largest space it will enumerate")
    batch: int = Field(default=8192, ge=1, le=1_000_000, description="mappings evaluated at once")


class OptimalOptions(Options):
    """Options of `optimal`."""

    width: int | None = Field(
        default=None,
        ge=1,
        le=100_000_000,
        description="most states followed at once; past it a gap may be left. Without a number 275,000; 16,384 where windows may be ragged",
    )
    orders: int = Field(
        default=100_000,
        ge=1,
        description="most orders of the loops of one tiling that are evaluated where its bound is not its cost",
    )


@hookimpl
def tilewright_plugins() -> list[MapperSpec]:
    """The built-in mappers."""
    return [
        MapperSpec(
            name="random",
            summary="Uniform random mappings until the budget is spent.",
            factory=lazy("tilewright_mappers.random", "Random"),
            options=RandomOptions,
        ),
        MapperSpec(
            name="exhaustive",
            summary="Every different mapping; proves its best the best of the space.",
            factory=lazy("tilewright_mappers.exhaustive", "Exhaustive"),
            options=ExhaustiveOptions,
            ends=True,
            proof_version=1,
        ),
        MapperSpec(
            name="optimal",
            summary="The best mapping, proved: a walk over tile shapes from the inside out, cut by bounds.",
            factory=lazy("tilewright_mappers.optimal.mapper", "Optimal"),
            starts_with=("quickflow", "sunstone"),
            options=OptimalOptions,
            ends=True,
            proof_version=2,  # 1 proved too much in rare spaces: see "Versions" in docs/optimal.md
        ),
        MapperSpec(
            name="timeloop_random",
            summary="Timeloop's random search: uniform, until its timeout or victory condition.",
            factory=lazy("tilewright_mappers.timeloop_random", "TimeloopRandom"),
            capabilities=DIVIDING,
            options=TimeloopRandomOptions,
            ends=True,
        ),
        MapperSpec(
            name="timeloop_hybrid",
            summary="Timeloop's hybrid search: random factors, their loop orders one after another.",
            factory=lazy("tilewright_mappers.timeloop_hybrid", "TimeloopHybrid"),
            capabilities=DIVIDING,
            options=TimeloopHybridOptions,
            ends=True,
        ),
        MapperSpec(
            name="factorflow",
            summary="Greedy moves of prime factors from everything outside, for each order of one block of loops.",
            factory=lazy("tilewright_mappers.factorflow", "FactorFlow"),
            options=FactorFlowOptions,
            ends=True,
        ),
        MapperSpec(
            name="loma",
            summary="All orders of the loops' prime factors, cut among the memories from the inside.",
            factory=lazy("tilewright_mappers.loma", "Loma"),
            capabilities=DIVIDING,
            options=LomaOptions,
            ends=True,
        ),
        MapperSpec(
            name="salsa",
            summary="Simulated annealing over the order of the loops' prime factors.",
            factory=lazy("tilewright_mappers.salsa", "Salsa"),
            capabilities=DIVIDING,
            options=SalsaOptions,
            ends=True,
        ),
        MapperSpec(
            name="gamma",
            summary="Genetic search: crossover and mutation of factors, orders and what is kept.",
            factory=lazy("tilewright_mappers.gamma", "Gamma"),
            options=GammaOptions,
            ends=True,
        ),
        MapperSpec(
            name="interstellar",
            summary="Channels over the array, then every tiling with every reusing order, level by level.",
            factory=lazy("tilewright_mappers.interstellar", "Interstellar"),
            capabilities=DIVIDING,
            options=InterstellarOptions,
        ),
        MapperSpec(
            name="dmazerunner",
            summary="Every tiling that fills array and memories above thresholds, with the orders that reuse.",
            factory=lazy("tilewright_mappers.dmazerunner", "DMazeRunner"),
            capabilities=DIVIDING,
            options=DMazeRunnerOptions,
        ),
        MapperSpec(
            name="marvel",
            summary="The least off-chip traffic first, then the best mapping of that tile on the chip.",
            factory=lazy("tilewright_mappers.marvel", "Marvel"),
            capabilities=DIVIDING,
            options=MarvelOptions,
        ),
        MapperSpec(
            name="local",
            summary="One greedy pass: most parallel, memories filled from inside; no search.",
            factory=lazy("tilewright_mappers.local", "Local"),
            ends=True,
        ),
        MapperSpec(
            name="sunstone",
            summary="Orders by reuse, tiles that fill memories, unrolling that fills arrays; then repair.",
            factory=lazy("tilewright_mappers.sunstone.mapper", "Sunstone"),
            options=SunstoneOptions,
            ends=True,
        ),
        MapperSpec(
            name="quickflow",
            summary="Factors first, their orders in one shot; local beam search over moves of one prime factor.",
            factory=lazy("tilewright_mappers.quickflow.mapper", "QuickFlow"),
            options=QuickFlowOptions,
            ends=True,
        ),
        MapperSpec(
            name="cosa",
            summary="A mixed-integer program, solved by HiGHS; its solutions are evaluated, their loops reordered.",
            factory=lazy("tilewright_mappers.cosa.mapper", "Cosa"),
            capabilities=DIVIDING,
            options=CosaOptions,
            needs=("highspy",),
            hint="pip install 'highspy>=1.9'",
            ends=True,
        ),
    ]
