"""Words of padded tensors are counted coordinate by coordinate as by listing every tile of the loop nest."""

import itertools
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from support.profiles import scaled
from support.random_groups import random_group
from tilewright.mapspace.group_legality import group_legality
from tilewright.mapspace.group_padding import PaddedUse, padded_use
from tilewright.schema.group import GroupMapping
from tilewright.schema.mapping import Loop

WINDOWS = ("window", "convolutions")


def uses(group: GroupMapping) -> list[PaddedUse]:
    """Return the uses of padded operands that are counted by coordinates."""
    found = [padded_use(group, tensor, layer) for tensor, users in group.users.items() for layer in users]
    return [each for each in found if each and each.padded and each.obstacle() is None]


def tiles(use: PaddedUse, loops: list[Loop], tile: dict[str, int]) -> list[frozenset[tuple[int, ...]]]:
    """Return the words that exist in each tile, in order of time."""
    found = []
    for steps in itertools.product(*(range(each.trips) for each in loops)):
        start = dict.fromkeys(tile, 0)
        for loop, step in zip(loops, steps, strict=True):
            start[loop.dimension] += step * loop.tile
        names = sorted(use.tensor.dimensions)
        words = set()
        for point in itertools.product(*(range(start[at], start[at] + tile[at]) for at in names)):
            at = dict(zip(names, point, strict=True))
            word = tuple(sum(c * at[name] for name, c in rank.terms.items()) for rank in use.tensor.projection)
            if all(first <= part <= last for part, (first, last) in zip(word, use.exist, strict=True)):
                words.add(word)
        found.append(frozenset(words))
    return found


@scaled(2)
@given(st.integers(0, 2**32))
def test_words_that_a_keeper_fetches_are_those_that_its_tile_before_lacked(seed: int) -> None:
    group = random_group(seed, forms=WINDOWS, levels=(1,), padding=1)
    if not group_legality(group):
        return
    for use in uses(group):
        keepers, entries = use.path.keepers(use.tensor.name), use.path.mapping.entries
        for entry in keepers[1:]:
            cut = Random(seed).randint(0, entry)
            loops = [each for each in use.path.mapping.loops() if each.entry <= entry]
            all_tiles = tiles(use, loops, dict(entries[entry].temporal_tile_sizes))
            visit = 1
            for loop in loops:
                visit *= loop.trips if loop.entry >= cut else 1
            fetched = sum(
                len(tile - all_tiles[number - 1]) if number % visit else len(tile)
                for number, tile in enumerate(all_tiles)
            )
            assert use.moved(entry, entry, cut) == fetched
            assert use.tile_words(entry) == max(map(len, all_tiles))
        loops = list(use.path.mapping.loops())
        executed = tiles(use, loops, dict.fromkeys(entries[0].temporal_tile_sizes, 1))
        assert use.moved(keepers[-1], None, 0) == sum(map(len, executed))


def test_random_groups_have_padded_operands() -> None:
    groups = [random_group(seed, forms=WINDOWS, levels=(1,), padding=1) for seed in range(20)]
    assert any(uses(group) for group in groups if group_legality(group))
