"""Cost models against chips, RTL and vendors' models: generates benchmarks/silicon.md.

    python benchmarks/silicon.py                        # all sets whose measurements are kept here, and the page
    python benchmarks/silicon.py --sources FOLDER       # also those read from FOLDER/dosa and FOLDER/SCALE-SIM_Validation
    python benchmarks/silicon.py --sources FOLDER --fit # fit the architectures of these again
    python benchmarks/silicon.py --page                 # only the page, from benchmarks/silicon/*.csv

The checkouts are ucb-bar/dosa and yutation/SCALE-SIM_Validation; benchmarks/silicon/LICENSES.md has commits and licences.
"""

from __future__ import annotations

import argparse
import csv
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

import tilewright as tw
from tilewright.application.run.calibration import Errors, Measurement, Predictions
from tilewright.application.run.evaluation import build_model, evaluate
from tilewright.plugin import AlgorithmSpec, installed
from tilewright.reports import Report

sys.path.append(str(Path(__file__).parents[1] / "tests"))

FOLDER = Path(__file__).resolve().with_suffix("")
PAGE = FOLDER.with_suffix(".md")
RESULTS = FOLDER / "results.csv"
Row = dict[str, str]


@dataclass(frozen=True)
class Source:
    """A set of measurements. `fitted` and `missing` end with a full stop."""

    name: str
    title: str
    source: str
    conditions: str
    fitted: str
    missing: str


SOURCES = (
    Source(
        "gemmini", "Gemmini, RTL", "ucb-bar/dosa, `data/firesim_*`",
        "cycles of 16 x 16 lanes in FireSim, for given mappings",
        "The cache's bandwidth, and the cycles of requests and commands, on 66 rows of other layers "
        "([values](../docs/cycles.md#gemmini-against-rtl)). The rules were chosen with both sets in view.",
        "Misses by set of the cache, stores narrower than the bus, write-backs, partial hits ([effects](gemmini.md)).",
    ),
    Source(
        "tpu", "TPU v4, chip", "yutation/SCALE-SIM_Validation, `data/data_matmul6`",
        "mean time of a matrix product in JAX, at 1.05 GHz; sizes 128 to 1,024",
        "Bandwidth of HBM, the start of a kernel, filling and draining, on 128 rows.",
        "The compiler's tiles; they are not published.",
    ),
    Source(
        "scale_sim", "SCALE-Sim, simulator", "the same, `COMPUTE_REPORT*.csv` of `data_matmul5` and `6`",
        "cycles of 128 x 128 lanes, weight and input stationary. No recorded run is output stationary",
        "Nothing. Filling and draining take 3 x 128 - 2 cycles, which follows from the array.",
        "SCALE-Sim leaves out the last cycle, which is added here. Its stalls are zero in these runs.",
    ),
    Source(
        "nvdla", "NVDLA, vendor's sheet", "nvdla/hw, `perf/NVDLA_OpenSource_Performance.xlsx`",
        "DRAM words of convolutions of AlexNet, GoogLeNet and ResNet-50, 2,048 int8 MACs, buffer of 512 KB, no second memory",
        "Nothing. `optimal` searches the least DRAM traffic; convolutions with strides are those of `space_to_depth`.",
        "Winograd's filters are 16/9 as large, channels are rounded up to 16, pooling follows before results are written, "
        "element-wise operands are read, borders are not stored. `named` has these factors, tensor by tensor.",
    ),
    Source(
        "ethos_u", "Ethos-U55, vendor's model", "ethos-u-vela 5.2.0, by `python benchmarks/vela.py`",
        "cycles of single int8 convolutions of the same networks, 256 MACs, weights in flash, the rest in SRAM",
        "Nothing. Flash gives 1 byte per cycle, SRAM 8; `optimal` searches the shortest run of 256 free units.",
        "Vela's blocks of results are padded and fixed in shape, and strides do not fill the array. So its cycles are never fewer.",
    ),
    Source(
        "eyeriss", "Eyeriss, chip", "JSSC 2017, tables III and V",
        "AlexNet, batch of 4, 200 MHz, 16 bits. The chip's own mapping (table III) under `timeloop`",
        "Nothing.",
        "Filling and draining of each pass (time); run-length codes, which are named in the table, and zeros of results before pooling (DRAM).",
    ),
)  # fmt: skip


# ---- Eyeriss: the chip's own mapping


def eyeriss_chip() -> tw.Architecture:
    """Return the chip: 168 units, of which a mapping uses R x e x r x t; filters pass the buffer."""

    def memory(name: str, **given: Any) -> dict[str, Any]:
        return {"name": name, "word_bits": 16, "read_energy_pj": 1.0, "write_energy_pj": 1.0, **given}

    clusters = [
        {"name": "DRAM", "memories": [memory("DRAM", technology="dram")]},
        {
            "name": "Chip",
            "memories": [memory("Buffer", holds=["input", "output"], capacity_words=51200)],
            "fanout": {"size": 168},
        },
        {
            "name": "PE",
            "memories": [
                memory("Inputs", holds=["input"], capacity_words=12),
                memory("Filters", holds=["weight"], capacity_words=224),
                memory("Sums", holds=["output"], capacity_words=24),
            ],
        },
    ]
    compute = {"energy_per_operation_pj": 1.0, "word_bits": 16}
    return tw.Architecture.model_validate({"name": "eyeriss_chip", "clusters": clusters, "compute": compute})


def convolution(name: str, sizes: dict[str, int], stride: int) -> tw.Problem:
    tensors = [
        {"name": "I", "role": "input", "projection": ["N", "C", f"{stride}*P + R", f"{stride}*Q + S"]},
        {"name": "W", "role": "weight", "projection": ["K", "C", "R", "S"]},
        {"name": "O", "role": "output", "projection": ["N", "K", "P", "Q"]},
    ]
    return tw.Problem.model_validate({"name": name, "operation": "conv2d", "dimensions": sizes, "tensors": tensors})


def eyeriss_layer(row: Row) -> tuple[tw.Problem, dict[str, int]]:
    """Return a group of the layer, and the parameters of its mapping."""
    of = {name: int(value) for name, value in row.items() if name in "groups N K C P R stride m n e p q r t".split()}
    sizes = {name: of[name] for name in "NKC"} | {"P": of["P"], "Q": of["P"], "R": of["R"], "S": of["R"]}
    return convolution(row["layer"].lower(), sizes, of["stride"]), of


def row_stationary(problem: tw.Problem, of: dict[str, int]) -> tw.Mapping:
    """Return the mapping of table III's parameters: a pass has n images, p t filters and q r channels, and e rows of results."""
    sizes = dict(problem.dimensions)
    buffered = sizes | {"N": of["n"], "K": of["m"], "P": of["e"], "C": of["q"] * of["r"]}
    step = buffered | {"N": 1, "K": of["p"] * of["t"], "Q": 1}
    unit = step | {"K": of["p"], "C": of["q"], "P": 1, "R": 1}

    def entry(target: str, outside: dict[str, int], inside: dict[str, int], **given: Any) -> dict[str, Any]:
        return {"target": target, "temporal_tile_sizes": outside, "spatial_tile_sizes": inside, **given}

    ones = dict.fromkeys(sizes, 1)
    entries = [
        entry("DRAM", sizes, sizes, keep=["I", "W", "O"]),
        entry("Chip", buffered, buffered, keep=["I", "O"], temporal_order=["N", "K", "P", "C"]),
        entry("Chip", step, unit, temporal_order=["K", "N", "Q"]),
        entry("PE", unit, unit, keep=["I", "W", "O"]),
        entry("PE", ones, ones, temporal_order=["C", "S", "K"]),
    ]
    return tw.Mapping.model_validate({"entries": entries})


def words(report: Report, level: str, tensor: str, *actions: str) -> float:
    """Return accesses of a tensor at a level."""
    assert report.valid, report.reasons
    return sum(
        float(row[action] or 0)
        for row in report.rows()
        if row["level"] == level and row["tensor"] == tensor
        for action in actions
    )


def eyeriss(rows: Sequence[Row]) -> Iterator[dict[str, Any]]:
    """Yield the figures of each layer. A 64-bit packet of the run-length code has three words that are not zero.

    A result is as sparse as the input of the next layer; the last layer's results count as dense.
    """
    zeros = [float(row["zeros_percent"]) / 100 for row in rows]
    for at, row in enumerate(rows):
        problem, of = eyeriss_layer(row)
        report = evaluate(build_model("timeloop", None), problem, eyeriss_chip(), row_stationary(problem, of))
        mb = 2e-6 * of["groups"]
        stored = {
            name: min(1.0, (1 - zero) * 4 / 3) for name, zero in (("I", zeros[at]), ("O", ([*zeros, 0.0])[at + 1]))
        }
        # borders are zeros, which cost nothing
        inner = (of["P"] / (of["P"] + of["R"] - 1)) ** 2 if of["stride"] == 1 else 1.0
        moved = {name: mb * words(report, "DRAM", name, "reads", "updates") for name in "IWO"}
        yield {
            "layer": row["layer"],
            "chip_units": row["units"],
            "units": of["R"] * of["e"] * of["r"] * of["t"],
            "chip_ms": row["processing_ms"],
            "ms": f"{(report.cycles or 0) * of['groups'] / 200e3:.2f}",
            "chip_buffer_mb": row["buffer_mb"],
            "buffer_mb": f"{mb * (words(report, 'Buffer', 'I', 'reads') + words(report, 'Buffer', 'O', 'reads', 'updates')) + moved['O']:.1f}",
            "chip_dram_mb": row["dram_mb"],
            "dram_mb": f"{sum(moved.values()):.2f}",
            "coded_dram_mb": f"{moved['I'] * inner * stored['I'] + moved['W'] + moved['O'] * stored['O']:.2f}",
        }


def passes(row: Row) -> tuple[tw.Problem, tw.Mapping]:
    """Return two passes of a layer over eight columns of one image, which `oracle` can execute."""
    problem, of = eyeriss_layer(row)
    of |= {"m": of["p"] * of["t"], "n": 1}
    sizes = {"N": 1, "K": of["m"], "C": 2 * of["q"] * of["r"], "P": of["e"], "Q": 8}
    problem = convolution(f"{problem.name}_passes", dict(problem.dimensions) | sizes, of["stride"])
    return problem, row_stationary(problem, of)


# ---- NVDLA: least DRAM traffic


def nvdla_2048() -> tw.Architecture:
    """Return 2,048 MACs with a convolution buffer. Only accesses to DRAM cost energy."""

    def memory(name: str, energy: float = 0.0, **given: Any) -> dict[str, Any]:
        return {"name": name, "word_bits": 8, "read_energy_pj": energy, "write_energy_pj": energy, **given}

    clusters = [
        {"name": "DRAM", "memories": [memory("DRAM", 1.0, technology="dram")]},
        {
            "name": "Core",
            "memories": [memory("CBUF", holds=["input", "weight"], capacity_words=2**19)],
            "fanout": {"size": 128},
        },
        {"name": "Cell", "memories": [memory("Sums", holds=["output"])], "fanout": {"size": 16, "axis": "Y"}},
    ]
    compute = {"energy_per_operation_pj": 0.0, "word_bits": 8}
    return tw.Architecture.model_validate({"name": "nvdla2048", "clusters": clusters, "compute": compute})


def best(
    problem: tw.Problem, architecture: tw.Architecture, objective: Literal["energy", "cycles"]
) -> tuple[tw.Mapping, Report]:
    """Return the mapping that `optimal` finds, and its report."""
    (layer,) = tw.map(
        problem, architecture, mapper="optimal", objective=objective, seconds=20, constraints="none", cache=False
    ).layers
    assert layer.mapping is not None and layer.report is not None
    return layer.mapping, layer.report


def least_traffic(problem: tw.Problem) -> tuple[tw.Mapping, Report]:
    """Return the mapping with the least DRAM traffic on NVDLA, and its report."""
    return best(problem, nvdla_2048(), "energy")


def at_stride_1(problem: tw.Problem) -> tw.Problem:
    """Return the problem, with strides as channels."""
    if not problem.is_strided:
        return problem
    (alternative,) = installed().make(AlgorithmSpec, "space_to_depth").alternatives(problem)
    return alternative.steps.layers[0].problem


def kind_of(sizes: dict[str, int]) -> str:
    """Return the kind of a convolution in the page's table."""
    if sizes["stride"] > 1:
        return "stride"
    if sizes["winograd"]:
        return "Winograd"
    return "pointwise" if sizes["R"] == 1 else "other"


def nvdla(rows: Iterable[Row]) -> Iterator[dict[str, Any]]:
    """Yield the figures of each convolution, in KB."""
    for row in rows:
        of = {name: int(row[name]) for name in "C H W K R S stride P Q elementwise winograd".split()}
        sizes = {"N": 1} | {name: of[name] for name in "KCPQRS"}
        problem = at_stride_1(convolution(row["layer"].replace(" ", "_"), sizes, of["stride"]))
        _, report = least_traffic(problem)
        times = {
            tensor.name: words(report, "DRAM", tensor.name, "reads", "updates") / problem.tensor_words(tensor)
            for tensor in problem.tensors
        }
        sheet = {"I": float(row["input_kb"]), "W": float(row["weight_kb"]), "O": float(row["output_kb"])}
        named = sum(times[name] * kb for name, kb in sheet.items()) + of["elementwise"] * sheet["O"]
        yield {
            "network": row["network"],
            "layer": row["layer"],
            "kind": kind_of(of),
            "sheet_kb": row["dram_kb"],
            "dram_kb": f"{sum(times[tensor.name] * problem.tensor_words(tensor) for tensor in problem.tensors) / 1024:.2f}",
            "named_kb": f"{named:.2f}",
        }


# ---- Ethos-U: the shortest run


def ethos_u55_256() -> tw.Architecture:
    """Return 256 MACs beside flash and SRAM. Inputs may take 24 KiB of its buffers, sums 4,096 words."""

    def memory(name: str, **given: Any) -> dict[str, Any]:
        return {"name": name, "word_bits": 8, "read_energy_pj": 1.0, "write_energy_pj": 1.0, **given}

    outside = [
        memory("Flash", holds=["weight"], read_bandwidth_words_per_cycle=1.0),
        memory("SRAM", holds=["input", "output"], shared_bandwidth_words_per_cycle=8.0),
    ]
    inside = [
        memory("Inputs", holds=["input"], capacity_words=24576),
        memory("Sums", holds=["output"], capacity_words=4096),
        memory("Weights", holds=["weight"]),
    ]
    clusters = [{"name": "Chip", "memories": outside}, {"name": "NPU", "memories": inside, "fanout": {"size": 256}}]
    compute = {"energy_per_operation_pj": 1.0, "word_bits": 8}
    return tw.Architecture.model_validate({"name": "ethos_u55_256", "clusters": clusters, "compute": compute})


def ethos_u(rows: Iterable[Row]) -> Iterator[dict[str, Any]]:
    """Yield Vela's cycles and the least ones."""
    for row in rows:
        of = {name: int(row[name]) for name in "C K R P stride".split()}
        sizes = {"N": 1, "K": of["K"], "C": of["C"], "P": of["P"], "Q": of["P"], "R": of["R"], "S": of["R"]}
        problem = convolution(row["layer"].replace(" ", "_"), sizes, of["stride"])
        _, report = best(problem, ethos_u55_256(), "cycles")
        limit = max(report.limits, key=lambda limit: limit.cycles)
        yield {
            "network": row["network"],
            "layer": row["layer"],
            "vela_cycles": row["cycles"],
            "cycles": report.cycles,
            "limit": limit.title,
        }


# ---- cycles of given mappings


def cycles(name: str, architecture: tw.Architecture, rows: Sequence[Measurement]) -> dict[str, Any]:
    """Return the errors of `pipelined`."""
    predictions = Predictions(build_model("pipelined", None), architecture, (), rows)
    return summary(name, np.exp(predictions.errors(())), predictions.measured)


def summary(name: str, factors: Any, measured: Any) -> dict[str, Any]:
    """Return a line of the page's table, from predicted by measured figures."""
    errors = Errors.of(np.log(np.asarray(factors, dtype=np.float64)), np.asarray(measured, dtype=np.float64))
    rank = "" if errors.spearman is None else f"{errors.spearman:.3f}"
    equal = int((np.abs(np.asarray(factors) - 1) < 1e-9).sum())
    figures = {"mean": errors.mean, "median": errors.median, "worst": errors.worst}
    return {
        "set": name, "rows": errors.rows, "equal": equal, **{key: f"{value:.3f}" for key, value in figures.items()}, "spearman": rank
    }  # fmt: skip


def given(rows: Iterable[tuple[str, tw.Problem, tw.Mapping, float]]) -> list[Measurement]:
    return [Measurement(problem, mapping, measured, where) for where, problem, mapping, measured in rows]


def gemmini(folder: Path, fit: bool) -> Iterator[dict[str, Any]]:
    """Yield the errors of 222 rows that the fit of benchmarks/silicon/gemmini.arch.yaml did not see, and of its own."""
    from support import gemmini as source

    if fit:
        with tempfile.TemporaryDirectory() as text:
            source.main(folder / "dosa", Path(text))
            fitted(Path(text) / "gemmini.arch.yaml", Path(text) / "train.csv", "gemmini", source.FITTED)
    architecture = tw.load(FOLDER / "gemmini.arch.yaml", "architecture")
    for name, which in (("gemmini fit", "train"), ("gemmini", "test")):
        rows = (
            (which, problem, mapping, took) for _, problem, mapping, took in source.measured(folder / "dosa", which)
        )
        yield cycles(name, architecture, given(rows))


def products(folder: Path, fit: bool) -> Iterator[dict[str, Any]]:
    """Yield the errors of the TPU's rows that the fit did not see, of its own, and of SCALE-Sim's recorded runs."""
    from support import tpu as source

    checkout = folder / "SCALE-SIM_Validation"
    _, seen, unseen = source.measured(checkout)
    if fit:
        with tempfile.TemporaryDirectory() as text:
            source.main(checkout, Path(text))
            fitted(Path(text) / "tpu.arch.yaml", Path(text) / "train.csv", "tpu")
    architecture = tw.load(FOLDER / "tpu.arch.yaml", "architecture")
    yield cycles("tpu fit", architecture, given(seen))
    yield cycles("tpu", architecture, given(unseen))
    simulated = []
    for number in (5, 6):
        data = checkout / f"data/data_matmul{number}"
        sizes = [{name: int(row[name]) for name in "MNK"} for row in read(data / "scale_sim_gemm_topology.csv")]
        for suffix, stationary in (("", "B"), ("_is", "A")):
            for size, row in zip(sizes, read(data / f"COMPUTE_REPORT{suffix}.csv"), strict=True):
                total = float(row[" Total Cycles"]) + 1
                simulated.append(("", source.problem_of(size), source.mapping_of(size, stationary=stationary), total))
    yield cycles("scale_sim", source.scale_sim(), given(simulated))


def fitted(first: Path, train: Path, name: str, parameters: Sequence[str] | None = None) -> None:
    """Fit an architecture, and keep it."""
    report = tw.calibrate(first, train, parameters=parameters)
    print(report, flush=True)
    report.save(FOLDER / f"{name}.arch.yaml")


# ---- the page


def read(file: Path) -> list[Row]:
    with file.open(newline="", encoding="utf-8") as text:
        return list(csv.DictReader(text))


def write(file: Path, rows: Sequence[dict[str, Any]]) -> None:
    with file.open("w", newline="", encoding="utf-8") as text:
        table = csv.DictWriter(text, rows[0], lineterminator="\n")
        table.writeheader()
        table.writerows(rows)


OTHER = "CONV3, as CONV4"
"""Name of CONV3 with parameters of CONV4's mapping."""


def kept() -> dict[str, list[dict[str, Any]]]:
    """Return the figures of the sets whose measurements are kept here."""
    chip, sheet = read(FOLDER / "eyeriss.csv"), read(FOLDER / "nvdla.csv")
    (other, _) = eyeriss([chip[2] | {name: chip[3][name] for name in "qrt"}, chip[3]])
    return {
        "eyeriss_rows": [*eyeriss(chip), other | {"layer": OTHER}],
        "nvdla_rows": list(nvdla(sheet)),
        "ethos_u_rows": list(ethos_u(read(FOLDER / "ethos_u.csv"))),
    }


def summaries(
    eyeriss_rows: Sequence[Row], nvdla_rows: Sequence[Row], ethos_u_rows: Sequence[Row]
) -> list[dict[str, Any]]:
    """Return the lines of the page's table that follow from those of layers."""
    lines, printed = [], [row for row in eyeriss_rows if row["layer"] != OTHER]
    for key, title in (
        ("units", "active units"),
        ("ms", "time"),
        ("buffer_mb", "buffer accesses"),
        ("coded_dram_mb", "DRAM, coded"),
    ):
        theirs = "chip_dram_mb" if key == "coded_dram_mb" else f"chip_{key}"
        factors = [float(row[key]) / float(row[theirs]) for row in printed]
        lines.append(summary(f"eyeriss {title}", factors, [float(row[theirs]) for row in printed]))
    for key, title in (("dram_kb", "DRAM, as counted"), ("named_kb", "DRAM, named")):
        factors = [float(row[key]) / round(float(row["sheet_kb"]), 2) for row in nvdla_rows]
        lines.append(summary(f"nvdla {title}", factors, [float(row["sheet_kb"]) for row in nvdla_rows]))
    measured = [float(row["vela_cycles"]) for row in ethos_u_rows]
    factors = [float(row["cycles"]) / cycles for row, cycles in zip(ethos_u_rows, measured, strict=True)]
    return [*lines, summary("ethos_u", factors, measured)]


def table(rows: Sequence[Row], columns: dict[str, str]) -> str:
    """Return a Markdown table. `columns`: keys -> titles."""
    sides = ["---" if at == 0 else "---:" for at in range(len(columns))]
    lines = [[*columns.values()], sides, *([str(row[key]) for key in columns] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def page() -> str:
    """Return the page from the kept results."""
    results, chip, sheet = read(RESULTS), read(FOLDER / "eyeriss_rows.csv"), read(FOLDER / "nvdla_rows.csv")
    kinds: list[Row] = []
    for kind in ("pointwise", "Winograd", "other", "stride"):
        mine = [row for row in sheet if row["kind"] == kind]
        equal = sum(abs(float(row["named_kb"]) - float(row["sheet_kb"])) < 0.01 for row in mine)
        counted = sum(abs(float(row["dram_kb"]) - float(row["sheet_kb"])) < 0.01 for row in mine)
        kinds.append({"kind": kind, "rows": str(len(mine)), "counted": str(counted), "named": str(equal)})
    sections = [
        f"## {one.title}\n\n* Source: {one.source}.\n* Conditions: {one.conditions}.\n* Fitted: {one.fitted}\n* Missing: {one.missing}"
        for one in SOURCES
    ]
    figures = {
        "set": "set",
        "rows": "rows",
        "equal": "equal",
        "mean": "mean",
        "median": "median",
        "worst": "worst",
        "spearman": "Spearman",
    }
    layers = {
        "layer": "layer", "chip_units": "units, chip", "units": "here", "chip_ms": "ms, chip", "ms": "here",
        "chip_buffer_mb": "buffer MB, chip", "buffer_mb": "here", "chip_dram_mb": "DRAM MB, chip", "dram_mb": "dense", "coded_dram_mb": "coded",
    }  # fmt: skip
    counts = {"kind": "convolutions", "rows": "rows", "counted": "equal as counted", "named": "equal, factors named"}
    return (
        "\n\n".join(
            [
                "# Against silicon",
                "Cost models beside chips, RTL, a simulator and a vendor's model. `python benchmarks/silicon.py` generates this page; "
                "[the sources](silicon/LICENSES.md) have their licences.",
                "An error is the factor between predicted and measured figures, at least 1. `mean` is the geometric mean. "
                "Lines that end in `fit` are rows of the fit; no fit saw the others.",
                table(results, figures),
                *sections,
                "### Layers of AlexNet\n\n" + table(chip, layers),
                "Buffer accesses are reads of inputs, and reads and writes of partial sums; the chip's table leaves out writes of inputs. "
                "With the parameters that table III prints for CONV3 (q 4, r 1, t 4) there are more; with those of CONV4 (q 3, r 2, t 2) there are as many. "
                "`coded` has 4/3 words for each word of inputs and results that is not zero: three runs of 5 bits and words of 16 in a packet of 64. "
                "`oracle` executes two passes of each layer over eight columns, and counts what `timeloop` counts.",
                "### Convolutions of NVDLA's sheet\n\n" + table(kinds, counts),
                "In the other row (GoogLeNet's 5b, combined), the sheet reads inputs again, because weights of 507 KB fill its buffer. "
                "The mapping here reads each word once. `oracle` counts the same DRAM words on small convolutions of each kind. Where the sheet's traffic limits the cycles, it counts 1,000 bytes in a KB, so cycles are 2.4 % fewer than bytes by bandwidth.",
                "## Left out\n\n"
                "* Eyeriss' VGG-16: the mapping's parameters are not in a text that can be cited.\n"
                "* TPU v1, Simba, MAERI: no text with figures of layers was found.\n"
                "* DOSA's other arrays: not run.",
            ]
        )
        + "\n"
    )


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sources", type=Path, metavar="FOLDER", help="folder with the checkouts")
    parser.add_argument("--fit", action="store_true", help="fit the architectures again")
    parser.add_argument("--page", action="store_true", help="only the page")
    options = parser.parse_args(arguments)
    if not options.page:
        rows = kept()
        for name, lines in rows.items():
            write(FOLDER / f"{name}.csv", lines)
        old = read(RESULTS) if RESULTS.is_file() else []
        new: list[dict[str, Any]] = [row for row in old if row["set"].split()[0] not in ("eyeriss", "nvdla", "ethos_u")]
        if options.sources is not None:
            new = [*gemmini(options.sources, options.fit), *products(options.sources, options.fit)]
        write(RESULTS, [*new, *summaries(**rows)])
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
