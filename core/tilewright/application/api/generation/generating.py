"""`generate`: a language model processes a prompt, and then generates tokens.

    prefill 4,096, decode 128, blocks of 16: the prefill, then 8 kinds of passes, for 4,112, 4,128, ..., 4,224 keys. A step with
    4,097 keys, its own included, reads 4,112, as steps 2 to 16 do: each kind is 16 steps.

All layers that do not depend on the context have one problem in all steps, and are searched once.
"""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass, replace
from typing import Unpack

from tilewright.application.api.call_arguments import checked, whole
from tilewright.application.api.generation.report import NAME, GenerationReport, Pass
from tilewright.application.api.load import Source, load_workload
from tilewright.application.api.mapping import searched_layers
from tilewright.application.api.mapping_report import MappingReport
from tilewright.application.api.plan import Plan, Sources, folder_of
from tilewright.application.api.settings import GenerateSettings
from tilewright.application.run.network import MappedLayer
from tilewright.application.run.vector_network import counted_vectors
from tilewright.errors import CallError, InputError
from tilewright.schema.workload import DistinctProblem, Kept, Workload

BLOCK = 16
"""Tokens in a block of the cache: the default of vLLM."""
MOST_BLOCKS = 8
"""Maximum number of blocks that the generated tokens fill; of more tokens, the blocks are larger."""


@dataclass(frozen=True)
class _Kind:
    """Passes with equal work: how often, from which decoding step on, and the workload of one."""

    name: str
    first: int
    steps: int
    tokens: int
    context: int
    workload: Workload


@checked
def generate(workload: Source, arch: Sources, **settings: Unpack[GenerateSettings]) -> GenerationReport:
    """Map the passes of a language model: the prefill of a prompt, and the decoding of tokens after it.

    This is the function behind `tilewright map --prefill N --decode N`. The first token follows from the prefill. A pass of
    decoding processes one token of each sequence, with the cached keys and values of all earlier ones.

    Args:
        workload: Name or file of a language model. Its frontend takes the sizes `seq` (tokens of a pass), `cache` (earlier
            tokens) and `batch`. It states the values in memory between tokens (`Workload.kept`).
        arch: As for `map`.
        **settings: Those of `GenerateSettings` (tilewright.application.api.settings).

    Raises:
        CallError, InputError, UnknownNameError: An argument is invalid, or the workload is no language model.
        PluginError: Mapper or model cannot be built.
        OutputError: The folder cannot be written to.

    Example:
        >>> import tilewright as tw
        >>> report = tw.generate("gpt2", "tpu_v1", prefill=8, decode=2, mapper="random", evaluations=20, cache=False)
        >>> [(one.name, one.steps, one.context) for one in report.passes]
        [('prefill', 1, 8), ('decode_16', 2, 16)]
    """
    prefill, decode, batch = settings["prefill"], settings["decode"], settings["batch"]
    block = _block(decode) if settings["kv_block"] is None else settings["kv_block"]
    batch = 1 if batch is None else batch
    whole(1, prefill=prefill, batch=batch, kv_block=block)
    whole(0, decode=decode)
    kinds, kept = _kinds(workload, prefill, decode, batch, block)
    joint = Workload.together(
        [kind.workload.model_copy(update={"name": kind.name}) for kind in kinds], [kind.steps for kind in kinds]
    ).model_copy(update={"name": kinds[0].workload.name})
    plan, configuration = Plan.of_one(joint, arch, settings)
    folder = folder_of(settings, joint, [(NAME.format(configuration.mapper_record.name), configuration)])
    layers = tuple(searched_layers(joint, plan, configuration, arch, settings["cluster"]))
    by_problem = {layer.problem.content_key: layer for layer in layers}
    passes = []
    for kind in kinds:
        problems = kind.workload.distinct()
        results = [_named(by_problem.get(problem.problem.content_key), problem) for problem in problems]
        vectors = counted_vectors(configuration.model, kind.workload, plan.architecture)
        done = tuple(layer for layer in results if layer is not None)
        report = MappingReport(kind.workload, configuration, done, vectors=vectors)
        passes.append(Pass(kind.name, kind.first, kind.steps, kind.tokens, kind.context, report))
    whole_run = MappingReport(joint, configuration, layers)
    return GenerationReport(whole_run, tuple(passes), batch, prefill, decode, block, kept).summarised(folder)


def _block(decode: int) -> int:
    """Return the size of blocks for this number of decoding steps."""
    block = BLOCK
    while decode > MOST_BLOCKS * block:
        block *= 2
    return block


def _kinds(source: Source, prefill: int, decode: int, batch: int, block: int) -> tuple[list[_Kind], tuple[Kept, Kept]]:
    """Return the prefill and the kinds of decoding steps in order, and the kept values after the prefill and at the end.

    Raises:
        CallError: The source is an object.
        InputError: It is no language model.
    """
    if not isinstance(source, str | os.PathLike):
        told = f"generate() reads a language model with several sizes; expected its name or file, not a {type(source).__name__}"
        raise CallError(told, hint="give a name such as llama3_8b, or a file")
    plain = load_workload(source)
    if plain.kept is None:
        raise InputError(
            f"{plain.name} is no language model with a cache",
            hint="leave prefill and decode out, or give a model that generates tokens, such as llama3_8b "
            "(`tilewright library workloads` lists networks)",
        )

    def sized(**sizes: int) -> tuple[Workload, Kept]:
        workload = load_workload(source, {"batch": batch, "sizes": sizes})
        assert workload.kept is not None
        return workload, workload.kept

    whole_prompt, start = sized(seq=prefill)
    kinds, done = [_Kind("prefill", 0, 1, prefill, prefill, whole_prompt)], 0
    steps = Counter(-(-(prefill + step) // block) * block for step in range(1, decode + 1))
    for keys, number in sorted(steps.items()):
        step = sized(seq=1, cache=keys - 1)[0]
        first, last = done + 1, kinds[-1]
        if (last.workload.layers, last.workload.vectors) == (step.layers, step.vectors) and done:
            first, number = last.first, number + kinds.pop().steps  # states, or a full window
        kinds.append(_Kind(f"decode_{keys}", first, number, 1, keys, step))
        done = first + number - 1
    return kinds, (start, sized(seq=1, cache=prefill + decode - 1)[1] if decode else start)


def _named(layer: MappedLayer | None, problem: DistinctProblem) -> MappedLayer | None:
    """Return the result of a search for an equal problem, with its names here."""
    if layer is None:
        return None
    report = None if layer.report is None else layer.report.model_copy(update={"problem": problem.problem.name})
    return replace(layer, distinct=problem, report=report)
