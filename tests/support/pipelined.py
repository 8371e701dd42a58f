"""Random checks of `pipelined`: its closed form against events, and proofs under it against enumerations.

PYTHONPATH=tests python -m support.pipelined triples 10000 --seed 1
PYTHONPATH=tests python -m support.pipelined proofs 200 --seed 0
"""

from __future__ import annotations

import argparse
import itertools
import math
from collections import Counter
from random import Random

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

import tilewright as tw
from support.proofs.drawing import Document, draw
from support.schedule_simulation import Simulation
from tilewright.mapspace.batch import MappingBatch
from tilewright.schema.architecture import Architecture
from tilewright.schema.mapping import Mapping
from tilewright.schema.problem import Problem
from tilewright.testing.strategies import architectures, mappings, problems
from tilewright_costmodels import TimeloopOptions
from tilewright_costmodels.pipelined.model import PipelinedModel
from tilewright_costmodels.timeloop.model import TimeloopModel

MODEL, TIMELOOP = PipelinedModel(TimeloopOptions()), TimeloopModel(TimeloopOptions())

Case = tuple[Problem, Architecture, Mapping]


@st.composite
def cases(draw: st.DrawFn, timed: bool) -> Case:
    """Draw a triple of problem, architecture and mapping."""
    problem = draw(problems(max_dimensions=4, max_macs=300))
    architecture = draw(architectures(widths=True, timed=timed))
    return problem, architecture, draw(mappings(problem, architecture))


def untimed(architecture: Architecture) -> Architecture:
    """Return the architecture with neutral values, except for the latencies of networks, and limits of passing words."""
    architecture = MODEL.priced(architecture)
    changes: dict[str, object] = {f"{memory.name}.timing": {} for memory in architecture.memories}
    return architecture.replace(
        changes | {"compute.fill_drain_cycles": 0, "compute.start_cycles": 0, "compute.instruction": None}
    )


def simulated(problem: Problem, architecture: Architecture, mapping: Mapping) -> float:
    """Return the cycles of the events, with the words that `timeloop` counts."""
    counts = MODEL.bind(problem, architecture).count_accesses(MappingBatch.pack(problem, [mapping]))
    words = {
        (entry, name): (counts.reads[0, level, at], counts.fills[0, level, at], counts.updates[0, level, at])
        for level, entry in enumerate(counts.entries.tolist())
        for at, name in enumerate(problem.tensor_names)
    }
    return Simulation(problem, MODEL.priced(architecture), mapping, words, float(counts.compute_cycles[0])).run()


def check(problem: Problem, architecture: Architecture, mapping: Mapping) -> str:
    """Compare the closed form with the events; return which of the two run times is the longer one."""
    report = MODEL.bind(problem, architecture).explain(mapping)
    throughput = TIMELOOP.bind(problem, untimed(architecture)).explain(mapping)
    assert report.valid == throughput.valid
    if throughput.cycles is None:
        return "invalid"
    events = math.ceil(simulated(problem, architecture, mapping) - 1e-6)
    assert report.cycles == architecture.compute.start_cycles + max(throughput.cycles, events)
    return "schedule longer" if events > throughput.cycles else "throughput longer"


def triples(count: int, number: int) -> Counter[str]:
    """Compare so many distinct valid triples; return how many of them each run time decides."""
    outcomes, keys = Counter[str](), set[int]()

    def compare(case: Case) -> None:
        key = hash(tuple(model.model_dump_json() for model in case))
        if len(keys) < count and key not in keys:
            outcome = check(*case)
            outcomes[outcome] += 1
            if outcome != "invalid":
                keys.add(key)

    quick = settings(
        max_examples=500, deadline=None, database=None, suppress_health_check=list(HealthCheck), phases=[Phase.generate]
    )
    for part in itertools.count():
        if len(keys) >= count:
            return outcomes
        seed(f"{number}.{part}")(quick(given(cases(timed=True))(compare)))()
        print(dict(outcomes), flush=True)
    return outcomes


def timed(architecture: Document, rng: Random) -> Document:
    """Give most memories a timing, and some arrays a fill and drain, or instructions."""
    requests = {"along": list("KMCPQ"), "cycles": 2, "return_cycles": rng.choice((1, 2, 5))}
    memories = [memory for cluster in architecture["clusters"] for memory in cluster.get("memories", ())]
    for memory in memories:
        if rng.random() < 0.8:
            memory["timing"] = {
                "prefetch": rng.choice(("any", "next", "none")),
                "burst_words": rng.choice((1, 1, 3, 8)),
                "latency_cycles": rng.choice((0, 2, 20, 100)),
                "reload": rng.random() < 0.3,
                "step_cycles": rng.choice((0, 0, 5, 30)),
                "rows": rng.choice((None, None, {"words": 6, "miss_cycles": 9, "banks": rng.choice((1, 2))})),
                "requests": rng.choice((None, requests | {"words": rng.choice((2, 8))})),
            }
            if rng.random() < 0.2:
                memory["timing"] |= {"prefetch": "through", "reload": False, "step_cycles": 0}
    architecture["compute"]["fill_drain_cycles"] = rng.choice((0, 0, 5, 40))
    architecture["compute"]["start_cycles"] = rng.choice((0, 0, 50))
    if rng.random() < 0.3:
        names = rng.sample("NKCPQRSM", 4)
        moves = {"memory": rng.choice(memories)["name"], "dimensions": names, "iterations": rng.choice((2, 4))}
        paces = {"load_cycles": rng.choice((0, 12)), "issue_cycles": rng.choice((0, 6))}
        architecture["compute"]["instruction"] = moves | paces | {"cycles": rng.choice((3, 8))}
    return architecture


def proofs(count: int, number: int, most: int) -> Counter[str]:
    """Compare proofs of so many map spaces with at most `most` mappings, which are enumerated."""
    outcomes = Counter[str]()
    for index in itertools.count(number):
        if outcomes["compared"] >= count:
            return outcomes
        inputs = draw(index, "small", ragged=False)
        arch = timed(inputs.architecture, Random(index))
        space = tw.space(inputs.problem, arch=arch, constraints=inputs.constraints)
        if not 1 < space.size <= most:
            continue
        optimal, every = (
            tw.map(
                inputs.problem,
                arch=arch,
                constraints=inputs.constraints,
                mapper=mapper,
                model="pipelined",
                model_options=inputs.model_options,
                objective="cycles",
                cache=False,
            )
            .layers[0]
            .result
            for mapper in ("optimal", "exhaustive")
        )
        assert optimal is not None and every is not None and every.stop == "finished"
        if every.best is None:
            assert optimal.best is None, index
            outcomes["no valid mapping"] += 1
            continue
        assert optimal.lower_bound is not None and optimal.lower_bound <= every.value * (1 + 1e-9), index
        assert optimal.proved != "yes" or optimal.value == pytest.approx(every.value), index
        outcomes["compared"] += 1
        outcomes["proved"] += optimal.proved == "yes"
        if optimal.proved != "yes":
            print("gap: seed", index, optimal.lower_bound, every.value, flush=True)
        if outcomes["compared"] % 20 == 0:
            print(dict(outcomes), flush=True)
    return outcomes


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("triples", "proofs"))
    parser.add_argument("count", type=int, help="triples or map spaces")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--most", type=int, default=30_000, help="mappings of the largest space enumerated")
    given_words = parser.parse_args()
    done = (
        triples(given_words.count, given_words.seed)
        if given_words.what == "triples"
        else proofs(given_words.count, given_words.seed, given_words.most)
    )
    print("done", dict(done))
