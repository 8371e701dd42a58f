"""The library's files: they load, come back, name their sources and have their own names."""

import re
import subprocess
import sys
from typing import Any

import pytest

from support.recorded.library import layers
from tilewright import library
from tilewright.errors import UnknownNameError
from tilewright.schema.document import FileModel

ARCHITECTURES = library.names("architectures")
WORKLOADS = library.names("workloads")
CONSTRAINTS = [(arch, name) for arch in ARCHITECTURES for name in library.constraints_for(arch)]


def test_what_comes_with_it() -> None:
    assert set(ARCHITECTURES) >= {
        *("eyeriss", "simba", "tpu_v1", "gemmini", "union_edge", "union_cloud"),
        *("sunstone_conventional", "sunstone_simba", "sunstone_edge", "sunstone_edge_unified", "sunstone_datacenter"),
        *("cosa_simba", "cosa_simba_8x8", "cosa_simba_large_buffers", "cosa_k80", "diannao"),
        *("eyeriss_gating", "eyeriss_v2_pe", "sparse_tensor_core", "scnn", "extensor_like", "dstc"),
    }
    assert set(WORKLOADS) >= {
        *("quickflow_convs", "factorflow_gemms", "sunstone_kernels", "sunstone_layers"),
        *(
            "union_tensor_contractions",
            "union_dnn_layers",
            "mobilenetv2",
            "efficientnet_b0",
            "sunstone_mobilenetv2_layers",
        ),
        *("cosa_alexnet_layers", "cosa_resnext50_layers", "cosa_deepbench"),
    }


def files() -> list[FileModel]:
    found: list[FileModel] = [library.architecture(name) for name in ARCHITECTURES]
    found += [library.workload(name) for name in WORKLOADS]
    return found + [library.constraints(arch, name) for arch, name in CONSTRAINTS]


@pytest.mark.parametrize("loaded", files(), ids=lambda each: f"{type(each).__name__}-{each.name}")
def test_every_file_round_trips_and_names_its_source(loaded: Any) -> None:
    assert type(loaded).from_yaml(loaded.to_yaml()) == loaded
    assert type(loaded).from_yaml(loaded.to_json()) == loaded
    assert re.search(
        r"FactorFlow|(MobileNetV2|EfficientNet-B0) \(|QuickFlow, Table|Union \(PACT 2021\)|(Sunstone|CoSA|Sparseloop) \(",
        loaded.source,
    )


def test_no_file_is_left_out_and_each_has_its_own_name() -> None:
    known = {f"{arch}.{name}" for arch, name in CONSTRAINTS}

    assert set(library.names("constraints")) == known
    for name in ARCHITECTURES:
        assert library.architecture(name).name == name
    for name in WORKLOADS:
        assert library.workload(name).name == name
    for arch, name in CONSTRAINTS:
        found = library.constraints(arch, name)
        assert (found.architecture, found.name) == (arch, name)


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_at_most_one_dataflow_is_the_default(name: str) -> None:
    defaults = [each for each in library.constraints_for(name).values() if each.default]

    assert len(defaults) <= 1
    assert library.default_constraints(name) == (defaults[0] if defaults else None)


def test_the_published_dataflows() -> None:
    found = {name: library.default_constraints(name) for name in ARCHITECTURES}

    assert {name: each.name for name, each in found.items() if each} == {
        "eyeriss": "row_stationary",
        "eyeriss_gating": "row_stationary",
        "simba": "channels",
        "tpu_v1": "weight_stationary",
        "gemmini": "weight_stationary",
        "diannao": "neurons_by_synapses",
        "cosa_k80": "thread_blocks",
    }


def test_summaries_name_everything() -> None:
    archs, works = library.architectures(), library.workloads()

    assert tuple(archs) == ARCHITECTURES and tuple(works) == WORKLOADS
    assert archs["eyeriss"].startswith("168 compute units; DRAM, GlobalBuffer, InRegister")
    assert works["quickflow_convs"] == "20 layers; a list without a total"
    assert works["mobilenetv2"] == "53 layers; a network of 300,774,272 unit operations"


def test_one_layer_of_a_workload() -> None:
    one = library.workload("quickflow_convs/XVI")

    assert [layer.problem for layer in one.layers] == [layers("quickflow_convs")["XVI"]]
    assert one.source == library.workload("quickflow_convs").source


def test_an_architecture_of_ones_own_has_no_constraints() -> None:
    assert library.constraints_for("mine") == {} and library.default_constraints("mine") is None


@pytest.mark.parametrize(
    ("ask", "expected"),
    [
        (lambda: library.architecture("eyeris"), ["'eyeris'", "did you mean 'eyeriss'?", "simba"]),
        (lambda: library.workload("quickflow_conv"), ["did you mean 'quickflow_convs'?", "union_dnn_layers"]),
        (lambda: library.workload("union_dnn_layers/BERT1"), ["did you mean 'BERT-1'?", "union_dnn_layers", "DLRM-3"]),
        (lambda: library.workload("nothing/I"), ["'nothing'", "quickflow_convs"]),
        (lambda: library.constraints("eyeriss", "row"), ["eyeriss", "row_stationary", "none"]),
        (lambda: library.architecture("../pyproject"), ["../pyproject", "eyeriss"]),
    ],
)
def test_unknown_names_are_answered_with_the_known_ones(ask: Any, expected: list[str]) -> None:
    with pytest.raises(UnknownNameError) as caught:
        ask()
    for words in expected:
        assert words in str(caught.value)


def test_importing_the_library_is_light() -> None:
    code = "import sys, tilewright.library as l; l.names('workloads'); print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()

    assert "tilewright.library" in loaded
    assert not {"numpy", "networkx", "onnx", "tilewright.schema.workload", "tilewright.schema.architecture"} & set(
        loaded
    )
