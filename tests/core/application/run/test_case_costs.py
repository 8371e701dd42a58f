"""Cases of a layer with less room: the search with all room serves those in which its mapping fits."""

from collections.abc import Iterator, Sequence

import pytest

import tilewright as tw
from support.tiled_groups import TIMELOOP
from tilewright.application.run.case_costs import CaseCosts
from tilewright.application.run.group_search import branch_table
from tilewright.application.run.network import LayerSearch, MappedLayer
from tilewright.application.run.resident_cases import Case
from tilewright.schema.workload import DistinctProblem

PROBLEM = tw.load("O[m,n] += I[m,k] * W[k,n]; m=8 n=8 k=8", "problem")
MACHINE = tw.Architecture.model_validate(
    {
        "name": "small",
        "clusters": [
            {"name": name, "memories": [{"name": name, "read_energy_pj": pj, "write_energy_pj": pj} | more]}
            for name, pj, more in (
                ("DRAM", 100, {}),
                ("SRAM", 2, {"capacity_words": 1000}),
                ("RF", 0.1, {"capacity_words": 4}),
            )
        ],
        "compute": {"energy_per_operation_pj": 0.2},
    }
)


@pytest.mark.parametrize(("left", "searches"), [(1000, 1), (200, 1), (40, 2), (0, 2)])
def test_less_room_is_searched_only_if_the_mapping_with_all_room_does_not_fit(left: int, searches: int) -> None:
    table, asked = branch_table(MACHINE, TIMELOOP), list[LayerSearch]()

    def search(some: Sequence[LayerSearch]) -> Iterator[MappedLayer]:
        asked.extend(some)
        return table.search(some)

    key, assigned = PROBLEM.content_key, DistinctProblem(PROBLEM, (PROBLEM.name,), 1)
    width = next(memory.word_bits for memory in MACHINE.memories if memory.name == "SRAM")
    case = Case(key, frozenset(), (1000 - left) * width)
    shared, alone = (CaseCosts(table.configuration, one, {key: assigned}) for one in (search, table.search))
    shared.ask([case])
    assert len(asked) == searches
    alone.costs[Case(key, frozenset(), 0)] = shared.costs[Case(key, frozenset(), 0)]
    alone._fit = lambda case: None  # type: ignore[method-assign]
    alone.ask([case])
    one, other = shared.costs[case], alone.costs[case]
    assert one.layer is not None and other.layer is not None
    assert one.value == pytest.approx(other.value) and one.layer.architecture == other.layer.architecture
    assert one.bound <= other.bound * (1 + 1e-9)
