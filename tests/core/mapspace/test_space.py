"""Map spaces against brute force: counted, enumerated, sampled, walked, and asked who belongs."""

import itertools
import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

import tilewright as tw
from support.map_spaces import rules
from support.profiles import scaled
from tilewright.errors import InputError, InvalidMappingError, NoValidMappingError
from tilewright.mapspace import looporders
from tilewright.mapspace import space as mapspace
from tilewright.mapspace.candidates import Candidates
from tilewright.mapspace.factoring import perfect, ragged
from tilewright.mapspace.legality import legal, legality
from tilewright.mapspace.skeleton import Skeleton
from tilewright.mapspace.space import MapSpace
from tilewright.schema.architecture import Architecture
from tilewright.schema.constraints import Cutting, Variant
from tilewright.schema.frozen import FrozenDict
from tilewright.schema.mapping import Mapping
from tilewright.schema.problem import Problem
from tilewright.testing.strategies import architectures, problems

Key = tuple[object, ...]


def key(mapping: Mapping) -> Key:
    """Return the identity of a mapping: its loops in order, their tiles, and the kept tensors."""
    loops = tuple((loop.entry, loop.spatial, loop.dimension, loop.trips, loop.tile) for loop in mapping.loops())
    return loops, tuple(entry.keep if entry.keep is None else frozenset(entry.keep) for entry in mapping.entries)


# -- brute force: straight from the rules, without tables -------------------------------------------------------


def factorings_of(size: int, places: int) -> Iterator[tuple[int, ...]]:
    if places == 0:
        if size == 1:
            yield ()
        return
    for factor in range(1, size + 1):
        if size % factor == 0:
            for rest in factorings_of(size // factor, places - 1):
                yield factor, *rest


def tilings_of(size: int, places: int, factors: Cutting) -> Iterator[tuple[tuple[int, int], ...]]:
    """Yield (trips, tile) of all slots, outermost first.

    A tile divides the one it is cut from, unless that is a whole dimension that may be ragged.
    """

    def inside(outer: int, places: int) -> Iterator[tuple[tuple[int, int], ...]]:
        if places == 0:
            if outer == 1:
                yield ()
            return
        for tile in range(1, outer + 1):
            if outer % tile == 0 or (factors == "ragged" and outer == size):
                for rest in inside(tile, places - 1):
                    yield (-(-outer // tile), tile), *rest

    return inside(size, places)


def factor_allowed(only: tuple[str, ...] | None, name: str, trips: int) -> bool:
    return trips == 1 or only is None or name in only


def allowed(space: MapSpace, entry: int, spatial: bool, trips: dict[str, int]) -> bool:
    slot = space.skeleton.entries[entry]
    size = space.architecture.cluster(slot.target).fanout.size
    used = math.prod(trips.values())
    if spatial and used > size:
        return False
    rules = (
        [rule for rule in space.rules.spatial if rule.cluster == slot.target]
        if spatial
        else [rule for rule in space.rules.temporal if rule.memory == slot.inside]
    )
    for rule in rules:
        for name, count in trips.items():
            bound = rule.factors.get(name)
            if not factor_allowed(rule.only, name, count):
                return False
            if bound is not None and not bound.min <= count <= (bound.max or count):
                return False
    for rule in space.rules.spatial:
        if spatial and rule.cluster == slot.target and not rule.min_utilization * size - 1e-6 <= used:
            return False
        if spatial and rule.cluster == slot.target and not used <= max(1, rule.max_utilization * size + 1e-6):
            return False
    return True


def keep_choices(space: MapSpace) -> list[list[tuple[int, str] | None]]:
    """Per (entry, tensor) that may be kept: the alternatives."""
    choices: list[list[tuple[int, str] | None]] = []
    for index, entry in enumerate(space.skeleton.entries):
        for tensor in space.problem.tensors if entry.holds else ():
            for memory in space.architecture.memories:
                if memory.name in entry.memories and memory.may_hold(tensor):
                    said = [
                        word
                        for rule in space.rules.keep
                        if rule.memory == memory.name
                        for word in ("keep", "bypass", "free")
                        if {tensor.name, tensor.role} & set(getattr(rule, word))
                    ]
                    wanted = sum(memory.may_hold(each) for each in space.problem.tensors)
                    cramped = memory.usable_words is not None and memory.usable_words < wanted
                    word = (said or ["free" if cramped else "keep"])[0] if index else "keep"
                    kept = (index, tensor.name)
                    choices.append([None] if word == "bypass" else [kept] if word == "keep" else [kept, None])
    return choices


def brute_force(space: MapSpace) -> tuple[set[Key], set[Key]]:
    """(all mappings, all factorisations) as keys."""
    names = space.problem.dimension_names
    places = [(index, False) for index, entry in enumerate(space.skeleton.entries) if entry.steps and index]
    places += [(index, True) for index, entry in enumerate(space.skeleton.entries) if entry.unrolls]
    places.sort()
    every: set[Key] = set()
    shapes: set[Key] = set()
    tilings = (list(tilings_of(size, len(places), space.factors)) for size in space.problem.sizes)
    for chosen_tiles in itertools.product(*tilings):
        loops_of = {
            place: {name: tiling[i] for name, tiling in zip(names, chosen_tiles, strict=True)}
            for i, place in enumerate(places)
        }
        trips = {place: {name: loop[0] for name, loop in loops.items()} for place, loops in loops_of.items()}
        if not all(allowed(space, *place, trips[place]) for place in places):
            continue
        shapes.add(tuple(chosen_tiles))
        orders = []
        for index, spatial in places:
            loops = [name for name in names if trips[index, spatial][name] > 1]
            inside = space.skeleton.entries[index].inside
            rules = [rule for rule in space.rules.temporal if not spatial and rule.has_order and rule.memory == inside]
            rule, first, last = (rules[0].order, rules[0].outermost, rules[0].innermost) if rules else ((), (), ())
            first, last = (tuple(name for name in part if name in loops) for part in (first, last))
            orders.append(
                [
                    order
                    for order in ([tuple(loops)] if spatial else itertools.permutations(loops))
                    if [name for name in order if name in rule] == [name for name in rule if name in order]
                    and order[: len(first)] == first
                    and order[len(order) - len(last) :] == last
                ]
            )
        for chosen in itertools.product(*orders):
            nest = tuple(
                (index, spatial, name, *loops_of[index, spatial][name])
                for (index, spatial), order in zip(places, chosen, strict=True)
                for name in order
            )
            for kept in itertools.product(*keep_choices(space)):
                keeps = tuple(
                    frozenset(pair[1] for pair in kept if pair and pair[0] == index) if entry.holds else None
                    for index, entry in enumerate(space.skeleton.entries)
                )
                every.add((nest, keeps))
    return every, shapes


# -- small random spaces -------------------------------------------------------------------------------------------


EITHER: st.SearchStrategy[Cutting] = st.sampled_from(["perfect", "ragged"])


@st.composite
def spaces(draw: st.DrawFn, most: int = 3000, factors: st.SearchStrategy[Cutting] = EITHER) -> MapSpace:
    cutting = draw(factors)
    problem = draw(problems(max_dimensions=3, max_macs=48 if cutting == "perfect" else 30, max_operands=2))
    architecture = draw(architectures(max_clusters=3, roomy=draw(st.booleans())))
    slots = sum(
        (entry.steps and index > 0) + entry.unrolls
        for index, entry in enumerate(Skeleton.for_architecture(architecture).entries)
    )
    first = (list(itertools.islice(tilings_of(size, slots, cutting), most + 1)) for size in problem.sizes)
    assume(math.prod(len(each) for each in first) <= most)
    space = MapSpace.of(problem, architecture, draw(rules(problem, architecture)), factors=cutting)
    assume(space.size <= 2 * most)
    return space


@pytest.mark.exhaustive
@scaled(2.5)
@given(spaces())
def test_size_and_enumeration_are_brute_force(space: MapSpace) -> None:
    every, shapes = brute_force(space)
    batches = list(space.enumerate(chunk=100))
    found = [mapping for batch in batches for mapping in batch]
    assert {key(mapping) for mapping in found} == every
    assert len(set(found)) == len(found) == space.size == len(every)
    assert space.factorizations == len(shapes)
    assert all(len(batch) <= 100 for batch in batches)
    for batch in batches:
        assert (legal(space.problem, space.architecture, batch.batch()) == batch.fits()).all()
    for mapping in found[:20]:
        verdict = legality(space.problem, space.architecture, mapping)
        assert {reason.code for reason in verdict.reasons} <= {"capacity"}
        assert space.contains(mapping)


@given(spaces(), st.integers(0, 100))
def test_samples_are_in_the_space(space: MapSpace, seed: int) -> None:
    if not space.size:
        with pytest.raises(NoValidMappingError, match="is empty"):
            space.sample(np.random.default_rng(seed), 1)
        return
    batch = space.sample(np.random.default_rng(seed), 30)
    assert len(batch) == 30
    for mapping in batch:
        assert space.contains(mapping), space.contains(mapping)
    again = space.sample(np.random.default_rng(seed), 30)
    assert list(batch) == list(again)


@given(spaces(most=400), st.integers(0, 100), st.data())
def test_contains_is_membership(space: MapSpace, seed: int, data: st.DataObject) -> None:
    """Mappings of a space without rules, perfect or ragged, belong to the one with rules just when it enumerates them."""
    free = MapSpace.of(space.problem, space.architecture, rules=None, factors=data.draw(EITHER))
    members = {key(mapping) for batch in space.enumerate() for mapping in batch}
    for mapping in free.sample(np.random.default_rng(seed), 40):
        assert bool(space.contains(mapping)) == (key(mapping) in members), space.contains(mapping)


@given(spaces(most=400, factors=st.just("perfect")), st.integers(0, 100))
def test_neighbours_are_all_that_move_one_prime(space: MapSpace, seed: int) -> None:
    assume(space.size)
    batch = space.sample(np.random.default_rng(seed), 4)
    found, origin = space.neighbours(batch)
    assert len(found) == len(origin)
    inside = [b.trips[i] for b in space.enumerate() for i in range(len(b))]
    every = {trips.tobytes(): trips for trips in inside}
    moved = found.trips
    for row, mapping in enumerate(batch):
        mine = np.flatnonzero(origin == row)
        here = batch.trips[row]
        wanted = {data for data, trips in every.items() if one_prime_apart(here, trips)}
        assert {moved[index].tobytes() for index in mine} == wanted
        assert len(mine) == len(wanted)
        alone, _ = space.neighbours(mapping)
        assert {key(m) for m in alone} == {key(found[int(index)]) for index in mine}
    for mapping in found:
        assert space.contains(mapping), space.contains(mapping)


@given(spaces(most=400, factors=st.just("ragged")), st.integers(0, 100))
def test_ragged_neighbours_are_all_that_grow_one_slot_and_shrink_another(space: MapSpace, seed: int) -> None:
    assume(space.size)
    batch = space.sample(np.random.default_rng(seed), 4)
    found, origin = space.neighbours(batch)
    inside = {b.trips[i].tobytes() for b in space.enumerate() for i in range(len(b))}
    for row in range(len(batch)):
        here = batch.trips[row]
        wanted = {after.tobytes() for after in grown(space, here)} & inside - {here.tobytes()}
        assert {found.trips[index].tobytes() for index in np.flatnonzero(origin == row)} == wanted
    for mapping in found:
        assert space.contains(mapping), space.contains(mapping)


def grown(space: MapSpace, trips: np.ndarray) -> Iterator[np.ndarray]:
    """One slot takes one trip more, or a prime factor, and another the fewest that cover the dimension."""
    for dim, size in enumerate(space.problem.sizes):
        primes = {
            p for p in range(2, size + 1) if (p <= 3 or size % p == 0) and not any(p % d == 0 for d in range(2, p))
        }
        for source, target in itertools.permutations(range(len(trips)), 2):
            for wanted in {trips[target, dim] + 1, *(trips[target, dim] * p for p in primes)}:
                chain = trips[:, dim].copy()
                chain[target] = wanted
                chain[source] = next(
                    n for n in range(1, size + 1) if math.prod([*chain[:source], n, *chain[source + 1 :]]) >= size
                )
                if chain[source] < trips[source, dim] and wanted <= space.slots[target].highest[dim]:
                    if (
                        not space.slots[target].spatial
                        or wanted * np.delete(trips[target], dim).prod() <= space.slots[target].most
                    ):
                        after = trips.copy()
                        left = size
                        for slot in reversed(range(len(chain))):
                            after[slot, dim] = min(chain[slot], left)
                            left = -(-left // after[slot, dim])
                        yield after


def one_prime_apart(one: np.ndarray, other: np.ndarray) -> bool:
    """One dimension differs, by one prime, in two slots."""
    slot, dim = np.nonzero(one != other)
    if len(slot) != 2 or dim[0] != dim[1]:
        return False
    a, b = (sorted((int(one[s, dim[0]]), int(other[s, dim[0]]))) for s in slot)
    ratio = a[1] // a[0]
    return a[1] % a[0] == 0 and b[1] == b[0] * ratio and len(list(factorings_of(ratio, 2))) == 2


ONE_UNIT = MapSpace.of(
    tw.load("nk,km->nm; n=1 k=2 m=1", kind="problem"),
    Architecture.model_validate(
        {
            "name": "one_unit",
            "clusters": [{"name": "all", "memories": [{"name": "M", "read_energy_pj": 1, "write_energy_pj": 1}]}],
            "compute": {"energy_per_operation_pj": 1},
        }
    ),
    None,
    factors="ragged",
)


@given(spaces(most=400))
@example(ONE_UNIT)
def test_other_ways_of_computing_give_the_same(space: MapSpace) -> None:
    """Tables replaced by prime powers, Python's integers for int64, and orders drawn without a list."""
    plain = {key(mapping) for batch in space.enumerate() for mapping in batch}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(perfect, "PRIMEWISE_ROWS", 0)
        patch.setattr(perfect, "MAX_EXACT", 1)
        patch.setattr(ragged, "MAX_EXACT", 1)
        patch.setattr(mapspace, "MAX_EXACT", 1)
        patch.setattr(looporders, "MAX_LISTED", 0)
        other = replace(space)
        assert {key(mapping) for batch in other.enumerate(7) for mapping in batch} == plain
        assert (other.size, other.factorizations) == (space.size, space.factorizations)
        if space.size:
            for mapping in other.sample(np.random.default_rng(0), 10):
                assert space.contains(mapping)


# -- fixed spaces --------------------------------------------------------------------------------------------------

GEMM = Problem.from_yaml(
    """
name: gemm
dimensions: {M: 4, N: 6, K: 2}
tensors:
- {name: A, role: input, projection: [M, K]}
- {name: B, role: weight, projection: [K, N]}
- {name: Z, role: output, projection: [M, N]}
"""
)
ARRAY = Architecture.from_yaml(
    """
name: array
clusters:
- {name: D, memories: [{name: D, read_energy_pj: 64, write_energy_pj: 64}]}
- name: G
  memories: [{name: G, capacity_words: 8, read_energy_pj: 2, write_energy_pj: 2}]
  fanout: {size: 4}
compute: {energy_per_operation_pj: 1}
"""
)


def space_of(factors: Cutting = "perfect", **written: Any) -> MapSpace:
    return MapSpace.of(GEMM, ARRAY, Variant.model_validate(written), factors=factors)


UNIFORM = [
    space
    for factors in ("perfect", "ragged")
    for space in (
        space_of(factors),
        space_of(
            factors,
            temporal=[{"memory": "D", "order": ["N", "K", "M"]}, {"memory": "G", "factors": {"N": {"max": 3}}}],
            spatial=[{"cluster": "G", "min_utilization": 0.5}],
            keep=[{"memory": "G", "free": ["A", "output"]}],
        ),
    )
]


def chi_square(counts: list[int], categories: int) -> float:
    """How many standard deviations above its mean the statistic of a uniform draw is."""
    mean = sum(counts) / categories
    missing = categories - len(counts)
    statistic = (sum((count - mean) ** 2 for count in counts) + missing * mean**2) / mean
    return (statistic - (categories - 1)) / math.sqrt(2 * (categories - 1))


@pytest.mark.parametrize("space", UNIFORM, ids=["perfect", "perfect, rules", "ragged", "ragged, rules"])
@pytest.mark.parametrize("listed", [7, 0])
@pytest.mark.parametrize("primewise_rows", [50_000, 0])
def test_samples_are_uniform(
    space: MapSpace, listed: int, primewise_rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Over factorisations, and over the orders and keeps of each factorisation."""
    monkeypatch.setattr(looporders, "MAX_LISTED", listed)
    monkeypatch.setattr(perfect, "PRIMEWISE_ROWS", primewise_rows)
    space = replace(space)
    members = [row for batch in space.enumerate() for row in rows(batch)]
    variants = Counter(shape for shape, _ in members)
    drawn = Counter(rows(space.sample(np.random.default_rng(11), 100_000)))
    shapes: Counter[bytes] = Counter()
    for (shape, _), count in drawn.items():
        shapes[shape] += count
    assert set(drawn) <= set(members)
    assert chi_square(list(shapes.values()), space.factorizations) < 4
    deviations = [chi_square([drawn[m] for m in members if m[0] == shape], n) for shape, n in variants.items() if n > 1]
    assert abs(sum(deviations)) / math.sqrt(len(deviations)) < 4


def rows(drawn: Candidates) -> list[tuple[bytes, bytes]]:
    """(factorisation, all else) of every mapping."""
    n = len(drawn)
    rest = np.concatenate([drawn.orders.reshape(n, -1), drawn.keeps.reshape(n, -1).astype(np.int8)], axis=1)
    return [(trips.tobytes(), other.tobytes()) for trips, other in zip(drawn.trips, rest, strict=True)]


CONV = Problem.from_yaml(
    """
name: conv
dimensions: {N: 1, K: 256, C: 128, P: 56, Q: 56, R: 3, S: 3}
tensors:
- {name: I, role: input, projection: [N, C, P + R, Q + S]}
- {name: W, role: weight, projection: [K, C, R, S]}
- {name: O, role: output, projection: [N, K, P, Q]}
"""
)


def ordered_pairs(power: int, places: int) -> int:
    """Ways to place `power` equal primes over places."""
    return math.comb(power + places - 1, power)


def test_size_in_closed_form() -> None:
    """Without a fanout, factorisations are binomials; with one loop each slot, orders are too."""
    flat = Architecture.from_yaml(
        """
name: flat
clusters:
- {name: D, memories: [{name: D, read_energy_pj: 1, write_energy_pj: 1}]}
- {name: G, memories: [{name: G, read_energy_pj: 1, write_energy_pj: 1}]}
- {name: L, memories: [{name: L, read_energy_pj: 1, write_energy_pj: 1}]}
compute: {energy_per_operation_pj: 1}
"""
    )
    space = MapSpace.of(CONV, flat, rules=None)
    powers = [8, 7, 3, 1, 3, 1, 1, 1]  # 256, 128, 56 = 2**3 * 7 twice, 3, 3
    assert space.factorizations == math.prod(ordered_pairs(power, 3) for power in powers)
    only_k = space_rules_of(CONV, flat, temporal=[{"memory": m, "only": ["K"]} for m in ("D", "G")])
    rest = 5  # dimensions that step in L whatever K does
    inside = [k for k in range(9)]
    wanted = sum((9 - k) * math.factorial(rest + (k > 0)) for k in inside)
    assert only_k.size == wanted


def space_rules_of(problem: Problem, architecture: Architecture, **written: object) -> MapSpace:
    return MapSpace.of(problem, architecture, Variant.model_validate(written))


def test_numbers_beyond_int64() -> None:
    """A space of 2**89 factorisations is counted exactly, sampled, and enumerated from its start."""
    problem = Problem.from_yaml(
        """
name: large
dimensions: {M: 27720, N: 27720, K: 27720, L: 27720}
tensors:
- {name: A, role: input, projection: [M, K, L]}
- {name: Z, role: output, projection: [M, N]}
"""
    )
    clusters = "".join(
        f"- {{name: C{i}, memories: [{{name: C{i}, read_energy_pj: 1, write_energy_pj: 1}}]}}\n" for i in range(9)
    )
    chain = Architecture.from_yaml(f"name: chain\nclusters:\n{clusters}compute: {{energy_per_operation_pj: 1}}\n")
    space = MapSpace.of(problem, chain, rules=None)
    each = ordered_pairs(3, 9) * ordered_pairs(2, 9) * ordered_pairs(1, 9) ** 3  # 2**3 * 3**2 * 5 * 7 * 11
    assert space.factorizations == each**4 > 2**89
    for batch in (space.sample(np.random.default_rng(0), 50), next(space.enumerate(50))):
        assert len(set(batch)) == len(batch) == 50
        assert all(space.contains(mapping) for mapping in batch)


def test_capacity_is_no_part_of_the_space() -> None:
    space = space_of()
    fit = np.concatenate([part.fits() for part in space.enumerate()])
    assert len(fit) == space.size and 0 < fit.sum() < len(fit)


@pytest.mark.parametrize(
    ("written", "message"),
    [
        (
            {"temporal": [{"memory": m, "factors": {"M": 3}} for m in ("D", "G")]},
            "dimension M: no factorisation of 4 satisfies the rules: the loops inside D must have exactly 3",
        ),
        (
            {"spatial": [{"cluster": "G", "only": ["K"], "min_utilization": 1}]},
            "the spatial unrolling of G must use at least 4 sub-clusters, at most 2",
        ),
        (
            {"spatial": [{"cluster": "G", "factors": {"N": 3, "K": 2}}]},
            "the spatial unrolling of G must use at least 6",
        ),
    ],
)
@pytest.mark.parametrize("factors", ["perfect", "ragged"])
def test_an_empty_space_says_why(written: dict[str, Any], message: str, factors: Cutting) -> None:
    space = space_of(factors, **written)
    assert space.size == 0 and list(space.enumerate()) == []
    with pytest.raises(NoValidMappingError, match=message):
        space.sample(np.random.default_rng(0), 1)


def test_rules_about_nothing_are_refused() -> None:
    siblings = Architecture.from_yaml(
        """
name: siblings
clusters:
- name: D
  memories:
  - {name: DI, holds: [input, output], read_energy_pj: 1, write_energy_pj: 1}
  - {name: DW, holds: [weight], read_energy_pj: 1, write_energy_pj: 1}
- {name: G, memories: [{name: G, read_energy_pj: 1, write_energy_pj: 1}]}
compute: {energy_per_operation_pj: 1}
"""
    )
    with pytest.raises(InputError, match="no loops are directly inside memory DI.*\n.*DW, G"):
        space_rules_of(GEMM, siblings, temporal=[{"memory": "DI", "only": ["M"]}])
    with pytest.raises(InputError, match="unrolls M over cluster D, which has one sub-cluster"):
        space_rules_of(GEMM, siblings, spatial=[{"cluster": "D", "factors": {"M": 2}}])
    with pytest.raises(InputError, match="two rules order"):
        space_of(temporal=[{"memory": "D", "order": ["M", "N"]}, {"memory": "D", "order": ["N", "K"]}])


def test_a_tensor_without_a_home_is_an_error() -> None:
    homeless = Architecture.from_yaml(
        """
name: homeless
clusters:
- {name: D, memories: [{name: D, holds: [input], read_energy_pj: 1, write_energy_pj: 1}]}
compute: {energy_per_operation_pj: 1}
"""
    )
    with pytest.raises(InputError, match="no memory that may hold B"):
        MapSpace.of(GEMM, homeless, rules=None).sample(np.random.default_rng(0), 1)


POINT = Mapping.from_yaml(
    """
entries:
- {target: D, keep: [A, B, Z], temporal_tile_sizes: {M: 4, N: 6, K: 2}}
- {target: G, keep: [A, B, Z], temporal_tile_sizes: {M: 4, N: 6, K: 2}}
- {target: G, temporal_tile_sizes: {M: 2, N: 2, K: 1}, spatial_tile_sizes: {M: 1, N: 1, K: 1}, temporal_order: [M, N, K]}
"""
)


def point_with(index: int, **changes: object) -> Mapping:
    entries = [
        entry.model_copy(update=changes) if number == index else entry for number, entry in enumerate(POINT.entries)
    ]
    return Mapping(entries=tuple(entries))


def tiles(m: int, n: int, k: int) -> FrozenDict[str, int]:
    return FrozenDict({"M": m, "N": n, "K": k})


@pytest.mark.parametrize(
    ("mapping", "code"),
    [
        (point_with(2, spatial_order=("N", "M", "K")), "loop_order"),
        (point_with(1, unicast=("A",)), "unicast"),
        (point_with(1, keep=("A", "B")), "keeps"),
        (point_with(2, temporal_tile_sizes=tiles(1, 2, 2)), "factors"),
        (point_with(2, temporal_tile_sizes=tiles(3, 1, 1), spatial_tile_sizes=tiles(1, 1, 1)), "perfect"),
        (point_with(1, spatial_tile_sizes=tiles(2, 6, 2)), "split"),
        (point_with(0, spatial_tile_sizes=tiles(4, 3, 2)), "fanout"),
        (point_with(0, keep=("A", "B")), "keeps"),
        (Mapping(entries=POINT.entries[:1]), "skeleton"),
    ],
    ids=[
        "spatial order",
        "unicast",
        "keep",
        "spatial bounds",
        "imperfect",
        "stray unrolling",
        "first",
        "bypass of the outermost memory",
        "entries",
    ],
)
def test_what_is_no_member_is_told_why(mapping: Mapping, code: str) -> None:
    space = space_of(spatial=[{"cluster": "G", "only": ["M", "N"], "min_utilization": 1}])
    assert space.contains(POINT)
    verdict = space.contains(mapping)
    assert code in {reason.code for reason in verdict.reasons}, verdict
    with pytest.raises(InvalidMappingError):
        space.neighbours(mapping)


def test_loops_the_rules_forbid_are_told() -> None:
    space = space_of(temporal=[{"memory": "G", "order": ["K", "M"]}, {"memory": "D", "only": []}])
    reasons = [str(reason) for reason in space.contains(POINT).reasons]
    assert reasons == ["the loops inside G: M, K are in an order that the space does not allow [loop_order]"]


@given(spaces())
def test_plain_mappings_are_in_the_space(space: MapSpace) -> None:
    for mapping in space.plain():
        assert space.contains(mapping) or not legality(space.problem, space.architecture, mapping)


def test_plain_mappings_of_a_deep_machine_need_no_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(perfect, "factorizations", None)  # no table is made
    clusters = [
        {"name": f"C{at}", "memories": [{"name": f"M{at}", "read_energy_pj": 1, "write_energy_pj": 1}]}
        for at in range(40)
    ]
    deep = Architecture.model_validate(
        {"name": "deep", "clusters": clusters, "compute": {"energy_per_operation_pj": 1}}
    )
    plain = list(MapSpace.of(GEMM, deep, rules=None).plain())
    assert len(plain) == 40 and all(legality(GEMM, deep, mapping) for mapping in plain)
