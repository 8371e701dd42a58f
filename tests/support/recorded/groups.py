"""Compare groups with AccelForge's recorded LoopTrees and optima, folder by folder.

cd tests && python -m support.recorded.groups FOLDER/* [--tenth]

A folder has `arch.yaml`, `workload.yaml` and `recorded.json`. With `mapping.yaml`, the record has counts and peaks
of an independent execution, or why there is none: `oracle` and `timeloop` have to agree. Without it, the record is
the optimum of a search: `fuse` has to find one that costs no more when executed. `--tenth` limits its CPU time to less than
a tenth of the recorded one. Where nothing may be fused, the optimum without fusion is compared.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from support.group_searches import search_group
from tilewright.application.run.evaluation import BuiltModel, build_model, evaluate_group
from tilewright.errors import TilewrightError
from tilewright.reports import Report
from tilewright.schema.group import GroupMapping
from tilewright.schema.objective import CYCLES, EDP, ENERGY
from tilewright_adapters.accelforge import AccelForgeAdapter
from tilewright_mappers.fused import limits as fused_limits

MODELS = {
    "oracle": build_model("oracle", {"max_operations": 10**6}),
    "timeloop": build_model("timeloop", {"link_transfers": False}),
}


def words_of(group: GroupMapping, report: Report) -> list[list[Any]]:
    """Return memory, layer, tensor, and the words that are read and written, where any are."""
    memories, rows = {memory.name: memory for memory in group.architecture.memories}, []
    for access in report.accesses:
        name = access.tensor.rpartition(".")[2]
        width = memories[access.level].words_of(group.paths[str(access.layer)].problem.tensor(name))
        reads, writes = access.reads.total * width, (access.fills.total + access.updates.total) * width
        rows += [[access.level, access.layer, name, reads, writes]] if reads or writes else []
    return sorted(rows)


def reads_of_sums(group: GroupMapping, report: Report) -> dict[tuple[str, str, str], int]:
    """Return memory, layer, result -> words that the record does not read where units have no adder.

    There, several units write partial sums of one word in one step. An update reads the sum before it, but for the
    first one of each word. The record elides the reads of all updates in the first step.
    """
    reads = dict[tuple[str, str, str], int]()
    for access in report.accesses:
        path = group.paths[str(access.layer)]
        tensor = path.problem.tensor(access.tensor.rpartition(".")[2])
        if not tensor.is_output or not access.updates.total:
            continue
        fanouts = {cluster.name: cluster.fanout for cluster in group.architecture.clusters}
        cluster = group.architecture.cluster_of(access.level).name
        at = next(k for k in path.keepers(tensor.name) if path.mapping.entries[k].target == cluster)
        last = next((k for k in path.keepers(tensor.name) if k > at), len(path.mapping.entries))
        units = math.prod(
            loop.trips
            for loop in path.mapping.loops()
            if loop.spatial
            and at <= loop.entry < last
            and loop.dimension not in tensor.dimensions
            and not fanouts[path.mapping.entries[loop.entry].target].reduction
        )
        words = access.updates.total - access.reads.total
        if units > 1:
            reads[access.level, str(access.layer), tensor.name] = words * (units - 1)
    return reads


def differences(group: GroupMapping, report: Report, record: dict[str, Any]) -> list[str]:
    """Return what of a valid report differs from the recorded execution, but for `reads_of_sums`."""
    more = reads_of_sums(group, report)
    stay, peaks = record["execution"]["stay"], {level.name: level.used_words for level in report.levels}
    expected = sorted(
        [
            memory,
            layer,
            tensor,
            round(row.get("read", 0) - row.get("of_reads_drains", 0)) + more.get((memory, layer, tensor), 0),
            round(row.get("write", 0)),
        ]
        for memory, tensors in stay["accesses"].items()
        for tensor, layers in tensors.items()
        for layer, row in layers.items()
        if row.get("read", 0) - row.get("of_reads_drains", 0) or row.get("write")
    )
    wrong = [str(row) for row in expected if row not in words_of(group, report)]
    wrong += [
        f"{name}: peak {peaks.get(name)}, not {most}"
        for name, most in stay["peak_words"].items()
        if peaks.get(name) != most
    ]
    reading = {memory.name: memory.read_energy_pj for memory in group.architecture.memories}
    energy = stay["energy_pj_without_drains"] + sum(words * reading[memory] for (memory, *_), words in more.items())
    if abs((report.energy_pj or 0) - energy) > 1e-6 * energy:
        wrong.append(f"{report.energy_pj} pJ, not {energy}")
    cycles = record["figures"]["cycles"], _cycles_without_drains(record)
    if (
        not more
        and record["execution"]["visit"].get("same")
        and all(abs((report.cycles or 0) - count) > 1 for count in cycles)
    ):
        wrong.append(f"{report.cycles} cycles, not {cycles[0]}, or {cycles[1]} without drains")
    return wrong


def _cycles_without_drains(record: dict[str, Any]) -> float:
    """Return the recorded cycles without the time of sums that are read where they leave, if reads bind the memories."""
    stay, total = record["execution"]["stay"]["accesses"], 0.0
    for layer, row in record["figures"]["per_einsum"].items():
        bounds = []
        for name, cycles in row["cycles"].items():
            parts = [layers[layer] for layers in stay.get(name, {}).values() if layer in layers]
            reads, drains = (sum(part.get(key, 0) for part in parts) for key in ("read", "of_reads_drains"))
            bounds.append(cycles * (1 - drains / reads) if reads else cycles)
        total += max(bounds)
    return total


def sought(folder: Path, record: dict[str, Any], tenth: bool = False) -> str:
    """Return the outcome of a search of our own, and print it beside the recorded one.

    Args:
        tenth: limit the CPU time to less than a tenth of the recorded one.
    """
    nodes = [
        f"  - !Storage {{component: DRAM, tensors: [{', '.join(_tensors(record))}]}}",
        "  - !Sequential",
        "    nodes:",
    ]
    for einsum in record["workload"]["einsums"]:
        used = {
            at
            for tensor in einsum["tensors"]
            for at in re.findall("[a-z]\\w*", " ".join(tensor["projection"].values()))
        }
        nodes += ["    - !Nested", "      nodes:"]
        nodes += [f"      - !Temporal {{rank_variable: {at}, tile_shape: 1}}" for at in sorted(used)]
        nodes += [f"      - !Compute {{einsum: {einsum['name']}, component: MAC}}"]
    with tempfile.TemporaryDirectory() as made:
        Path(made, "mapping.yaml").write_text("mapping:\n  nodes:\n" + "\n".join(nodes))
        group = (
            AccelForgeAdapter()
            .parse([folder / "arch.yaml", folder / "workload.yaml", Path(made, "mapping.yaml")])
            .group
        )
    assert group is not None
    objective = {"ENERGY": ENERGY, "LATENCY": CYCLES}.get(record["objective"], EDP)
    point = record["points"][0]
    stay = point["execution"].get("stay") or {}
    told, executed = point["figures"]["energy_pj"], stay.get("energy_pj_without_drains")
    theirs = {ENERGY: executed or told, CYCLES: point["figures"]["cycles"]}.get(objective, point.get("edp_pj_cycles"))
    said = f"told {told:,.0f} pJ, {'executed' if executed else stay.get('why', 'not executed')}"
    buffer, may_fuse = group.architecture.memories[-1], "nothing may be fused" not in record["note"]
    limit = record["all"]["cpu_s"] / 11 if tenth else None
    peak = max(buffer.usable_words or 0, (stay.get("peak_words") or {}).get(buffer.name, 0))
    for words in dict.fromkeys((buffer.usable_words, peak)):
        arch = group.architecture.replace({f"{buffer.name}.capacity_words": words})
        started = time.process_time()
        with patch.object(fused_limits, "time", SimpleNamespace(monotonic=time.process_time)):  # as the recorded times
            result = search_group(group.model_copy(update={"architecture": arch}), objective, limit)
        seconds = time.process_time() - started
        mapping = result.group if may_fuse else result.unfused
        report = evaluate_group(MODELS["oracle"], mapping)
        if report.of(objective) is None:  # too large to execute
            report = evaluate_group(MODELS["timeloop"], mapping)
        ours = report.of(objective)
        print(
            f"{folder.name}: {ours or math.inf:,.0f} by {objective} in {words} words, {seconds:.2f} CPU s, "
            f"{'proved' if result.proved else f'at least {result.bound:,.0f}' if may_fuse else 'without fusion'}, "
            f"counted by {report.model}; recorded {theirs:,.0f} in {peak} words ({said}) in {record['all']['cpu_s']} CPU s"
        )
        if ours is not None and ours <= theirs * (1 + 1e-6):
            return (
                "no worse" if words == buffer.usable_words else "no worse in the words that the recorded mapping needs"
            )
    return "differs"


def outcome_of(model: BuiltModel, group: GroupMapping, record: dict[str, Any]) -> tuple[str, list[str]]:
    """Return the outcome of a model on a recorded mapping, and the differences from its execution."""
    report, stay = evaluate_group(model, group), (record.get("execution") or {}).get("stay") or {}
    codes = ",".join(sorted({reason.code for reason in report.reasons}))
    if codes == "alive" and stay.get("executed"):
        peaks = stay["peak_words"]
        larger = group.architecture.with_memories(
            lambda memory: memory.model_copy(update={"capacity_words": peaks.get(memory.name, memory.capacity_words)})
        )
        group = group.model_copy(update={"architecture": larger})
        report = evaluate_group(model, group)
        codes += ", as its execution needs more words; with these"
    elif codes:
        return f"refused: {codes}", []
    if not stay.get("executed"):
        return "no recorded execution", []
    wrong = differences(group, report, record) if report.valid else [str(report.reasons[0])]
    outcome = "differs" if wrong else "equal, but for reads of sums" if reads_of_sums(group, report) else "equal"
    return f"refused: {codes} {outcome}" if codes else outcome, wrong


def _tensors(record: dict[str, Any]) -> list[str]:
    return list(
        dict.fromkeys(tensor["name"] for einsum in record["workload"]["einsums"] for tensor in einsum["tensors"])
    )


def main() -> int:
    """Print the outcome of each folder and model; 1 where a figure differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", type=Path, nargs="+")
    parser.add_argument("--tenth", action="store_true", help="limit each search to a tenth of the recorded time")
    arguments, outcomes = parser.parse_args(), Counter[str]()
    for folder in arguments.folders:
        record = json.loads((folder / "recorded.json").read_text())
        stay = (record.get("execution") or {}).get("stay") or {}
        if not (folder / "mapping.yaml").exists():
            try:
                outcomes[f"fuse, {sought(folder, record, arguments.tenth)}"] += 1
            except TilewrightError as error:
                print(f"{folder.name}: not covered: {str(error)[:160]!r}")
                outcomes["fuse, not covered"] += 1
            continue
        files = [folder / f"{name}.yaml" for name in ("arch", "workload", "mapping")]
        try:
            group = AccelForgeAdapter().parse(files).group
            assert group is not None
        except TilewrightError as error:
            print(f"{folder.name}: not read: {str(error).splitlines()[0][:160]}")
            outcomes["not read" + (" by AccelForge and us" if record.get("valid") is False else "")] += 1
            continue
        for name, model in MODELS.items():
            outcome, wrong = outcome_of(model, group, record)
            print(*(f"{folder.name}, {name}: {text}" for text in wrong), sep="\n", end="\n" if wrong else "")
            outcomes[f"{name}, {outcome}"] += 1
            if outcome != "equal":
                print(f"{folder.name}, {name}: {outcome} (recorded: {stay.get('why', record.get('said', 'executed'))})")
    print(*(f"{count} {outcome}" for outcome, count in sorted(outcomes.items())), sep="\n")
    return any("differs" in outcome for outcome in outcomes)


if __name__ == "__main__":
    sys.exit(main())
