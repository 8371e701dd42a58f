"""ZigZag's results: the layer and the mapping of `LAYER_complete.json`."""

import json
import math
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

import pytest

from support import DATA
from support.notations import evaluated
from support.zigzag_files import SEARCHED
from tilewright.application.conversion.conversion import write_files
from tilewright.errors import InputError
from tilewright.plugin.adapter import InputSet
from tilewright.schema.document import dump_yaml
from tilewright_adapters.zigzag import ZigZagAdapter

RESULTS: list[dict[str, Any]] = json.loads((DATA / "zigzag/results.json").read_text())["results"]


def parse(folder: Path, accelerator: str, result: object, **others: object) -> InputSet:
    files = {
        "accelerator.yaml": dump_yaml(SEARCHED["accelerators"][accelerator]),
        "a_complete.json": json.dumps(result),
    }
    return ZigZagAdapter().parse(
        write_files(folder, files | {f"{name}.yaml": dump_yaml(o) for name, o in others.items()})
    )


@pytest.mark.parametrize(
    "run", RESULTS, ids=lambda run: f"{run['result']['inputs']['layer']['name']}-{run['accelerator']}"
)
def test_the_mapping_of_a_search_is_evaluated(tmp_path: Path, run: dict[str, Any]) -> None:
    said, outputs = run["result"]["inputs"], run["result"]["outputs"]
    inputs = parse(tmp_path, run["accelerator"], run["result"])
    assert inputs.problem and inputs.mapping
    assert dict(inputs.problem.dimensions) == said["layer"]["loop_dimensions"]
    steps = [(loop.dimension, loop.trips) for loop in inputs.mapping.loops() if not loop.spatial]
    loops = [text.strip("()").split(", ") for level in said["temporal_mapping"]["O"] for text in level]
    alike = [(name, [int(count) for _, count in group]) for name, group in groupby(loops, itemgetter(0))]
    assert steps[::-1] == [(name, math.prod(counts)) for name, counts in alike]  # adjacent loops of a dimension are one
    report = evaluated(inputs)
    energy = outputs["energy"]["energy_total"]
    assert report.valid and report.energy_pj == pytest.approx(
        energy, rel=0.3 if "G" in inputs.problem.dimensions else 0.02
    )
    assert report.cycles == math.prod(trips for _, trips in steps)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda said: said["temporal_mapping"]["W"][0].pop(), "do not have the same loops"),
        (lambda said: said["temporal_mapping"]["O"][0].append(said["temporal_mapping"]["O"][1].pop(0)), "keep the loops"),
        (lambda said: said["accelerator"]["mem_size_dict"].update(I2=[64, 10**10]), "another accelerator, tpu_like: bits"),
        (lambda said: said["accelerator"]["operational_array"]["dimensions"].update(D1=64), "sizes of the array"),
        (lambda said: said.update(layer=[0, 1]), "no layer with a mapping"),
        (lambda said: said["temporal_mapping"]["O"].append(["K 3"]), "'K 3' is not a loop"),
    ],
)  # fmt: skip
def test_what_does_not_agree_is_refused(tmp_path: Path, change: Any, message: str) -> None:
    result = json.loads(json.dumps(RESULTS[0]["result"]))
    change(result["inputs"])
    with pytest.raises(InputError, match=message) as caught:
        parse(tmp_path, "tpu_like", result)
    assert caught.value.location is not None and "a_complete.json" in caught.value.location.source


def test_the_layer_of_a_workload_file_counts_and_a_second_mapping_is_refused(tmp_path: Path) -> None:
    result = RESULTS[3]["result"]
    said = result["inputs"]["layer"]
    layer = {
        "id": 7,
        "name": said["name"],
        "operator_type": "Conv",
        "equation": said["equation"],
        "dimension_relations": said["equation_relations"],
        "loop_dims": list(said["loop_dimensions"]),
        "loop_sizes": list(said["loop_dimensions"].values()),
        "operand_precision": said["operand_precision"],
        "pr_loop_dims": ["IX", "IY"],
        "pr_loop_sizes": [14, 14],
        "padding": [[1, 1], [1, 1]],
    }
    other = layer | {"id": 8, "name": "other"}
    inputs = parse(tmp_path, "tpu_like", result, workload=[other, layer])
    assert inputs.problem and inputs.problem.name == "padded/dw" and any("padding" in text for text in inputs.warnings)
    with pytest.raises(InputError, match="a mapping and a result"):
        parse(tmp_path, "tpu_like", result, mapping=[{"name": "default", "spatial_mapping": {"D1": ["K, 4"]}}])
