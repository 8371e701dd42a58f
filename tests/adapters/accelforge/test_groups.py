"""Group mappings in AccelForge's files: what is written is read again, with the same costs, and the rest is refused."""

import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import tilewright as tw
from support import EXAMPLE_FILES
from support.groups import ORACLE, TIMELOOP, figures
from support.random_groups import random_group
from tilewright.application.conversion.conversion import write_files
from tilewright.application.run.evaluation import BuiltModel, evaluate_group
from tilewright.errors import InputError, NotConformableError
from tilewright.mapspace.group_legality import group_legality
from tilewright.plugin.adapter import SIDECAR, InputSet
from tilewright.schema.group import GroupMapping
from tilewright_adapters.accelforge import AccelForgeAdapter

ADAPTER = AccelForgeAdapter()
PRODUCTS = EXAMPLE_FILES / "two_products.yaml"


def written(group: GroupMapping, folder: Path) -> list[Path]:
    return write_files(folder, ADAPTER.render(InputSet(group=group)))


def counts(model: BuiltModel, group: GroupMapping) -> Counter[Any] | None:
    """Return a group's figures without names, which differ in AccelForge's files; None if the model refuses the group.

    Without memories that hold nothing, which have no node there.
    """
    report = evaluate_group(model, group)
    return Counter(row for row in figures(report).values() if row != (0, 1)) if report.valid else None


def is_written(group: GroupMapping, folder: Path) -> bool:
    """Return whether AccelForge can express a group; then check what is read again, with and without Tilewright's own file."""
    if not ADAPTER.expressible(InputSet(group=group)):
        return False
    files = written(group, folder)
    assert ADAPTER.parse(files).group == group
    plain = ADAPTER.parse([file for file in files if file.name != SIDECAR]).group
    assert plain is not None and not group_legality(plain).reasons
    assert counts(ORACLE, plain) == counts(ORACLE, group) is not None
    both = counts(TIMELOOP, plain), counts(TIMELOOP, group)
    assert None in both or both[0] == both[1]  # it refuses some orders of memories
    return True


def suitable(seed: int) -> GroupMapping:
    """Return a random group, mostly expressible in AccelForge's files."""
    data = random_group(seed, seed % 3 > 0, inner=0.3).to_data()
    for cluster in data["architecture"]["clusters"]:
        for memory in cluster["memories"]:
            for key in ("update_energy_pj", "leakage_pj_per_cycle", "shared_bandwidth_words_per_cycle"):
                memory.pop(key, None)
            if "B" in memory.get("bits_per_value", {}):  # read with narrower words
                del memory["bits_per_value"]

    return GroupMapping.model_validate(data)


@pytest.mark.parametrize("seeds", [range(30), pytest.param(range(30, 600), marks=pytest.mark.exhaustive)])
def test_random_groups_come_back_with_the_same_counts(tmp_path: Path, seeds: range) -> None:
    legal = [(seed, group) for seed in seeds if group_legality(group := suitable(seed))]
    done = sum(is_written(group, tmp_path / str(seed)) for seed, group in legal)
    assert 3 * done > len(legal) > len(seeds) // 3


def test_tensors_and_loops_have_names_of_the_group(tmp_path: Path) -> None:
    files = {file.name: file.read_text() for file in written(tw.load(PRODUCTS, "group_mapping"), tmp_path)}
    mapping = files["mapping.yaml"]
    assert mapping.count("- !Sequential") == 1 and mapping.count("- !Nested") == 2
    assert mapping.index("tensors: [Hidden]") < mapping.index("!Sequential") < mapping.index("tensors: [up_Inputs]")
    # M and N of up are coordinates of Hidden, and so M and K of down
    assert "0 <= n_up < 32" in files["workload.yaml"] and "projection: [n_up, n_down]" in files["workload.yaml"]
    assert is_written(tw.load(PRODUCTS, "group_mapping"), tmp_path / "again")


def test_a_changed_file_makes_the_other_one_stale(tmp_path: Path) -> None:
    files = written(tw.load(PRODUCTS, "group_mapping"), tmp_path)
    arch = tmp_path / "arch.yaml"
    arch.write_text(arch.read_text().replace("12800", "12816"))
    with pytest.raises(InputError, match="this sidecar was written for other AccelForge files"):
        ADAPTER.parse(files)


def test_names_that_accelforge_cannot_read_come_back(tmp_path: Path) -> None:
    text = re.sub(r"\bup\b", "layer/1", PRODUCTS.read_text().replace("Hidden", "all"))
    group = GroupMapping.from_yaml(text)
    assert is_written(group, tmp_path)
    workload = (tmp_path / "workload.yaml").read_text()
    assert "name: layer_1" in workload and "name: T0" in workload and "all" not in workload


def test_what_accelforge_cannot_express_is_refused_with_reasons() -> None:
    def reasons(group: GroupMapping) -> str:
        with pytest.raises(NotConformableError) as caught:
            ADAPTER.render(InputSet(group=group))
        return str(caught.value)

    assert "loop over P" in (told := reasons(tw.load(EXAMPLE_FILES / "two_convolutions.yaml", "group_mapping")))
    assert "loop over P inside the branches [halo]" in told
    products = tw.load(PRODUCTS, "group_mapping")
    softmax = {"name": "softmax", "operator": "Exp", "tensor": "Hidden"}
    assert "leave out softmax [vectors]" in reasons(
        GroupMapping.model_validate(products.to_data() | {"vectors": [softmax]})
    )
    zeros = products.to_data()
    zeros["edges"][0]["zeros"] = True
    assert "AccelForge has no padding: make them words of the tensor [padding]" in reasons(
        GroupMapping.model_validate(zeros)
    )
    unfit = products.model_copy(update={"architecture": products.architecture.replace({"Buffer.capacity_words": 80})})
    assert "words, 80 fit [alive]" in reasons(unfit)
