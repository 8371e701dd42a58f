"""Reads of a workload as text."""

from tilewright.schema.read import Index
from tilewright.schema.workload import Workload


def edges(workload: Workload) -> list[str]:
    """Each read as `layer.operand = maker[words] at [words]`, with `via` and `whole`, or `?` and the reason of a cut."""
    return [
        f"{layer}.{operand} = {read.maker}"
        + (f"? {read.cut}" if read.cut else f"[{_words(read.made)}] at [{_words(read.read)}]")
        + (f" via {' '.join(read.through)}" if read.through and not read.cut else "")
        + (f" whole {' '.join(read.whole)}" if read.whole else "")
        for layer, operand, read in workload.edges
    ]


def _words(indices: tuple[Index, ...] | None) -> str:
    return ", ".join(map(str, indices or ()))
