"""Reasons why operations are not mapped, and estimates of their scalar operations.

The estimates only serve to show an operation's fraction of the work.
"""

from __future__ import annotations

import math
import re

from tilewright_frontends.mlir import affine
from tilewright_frontends.mlir.operators import builder_of
from tilewright_frontends.mlir.tree import WRAPPED, OpenShape, Operation
from tilewright_frontends.pt2.program import MOVES as OF_ATEN

STRUCTURE = frozenset(
    "constant const const_shape return yield func call module empty alloc alloca dealloc dealloc_tensor apply "
    "novalue entrypoint get_global global assume_alignment to_tensor to_buffer to_memref materialize_in_destination literal listconstruct "
    "index_label static_index_label dense_tensor_decl sptensor_decl fill_from_file print gettime print_elapsed_time".split()
)
"""Operations that declare or name something and do no work; they are not listed."""
MOVES = frozenset(
    "reshape transpose broadcast broadcast_in_dim dynamic_broadcast_in_dim slice dynamic_slice extract_slice insert_slice "
    "pad concatenate concat fill copy collapse_shape expand_shape gather scatter reverse tile identity cast "
    "iota real_dynamic_slice dynamic_update_slice squeeze expanddims expand_dims pack unpack split splitv concatv2 "
    "stridedslice shape subview reinterpret_cast view load store "
    "transfer_read transfer_write type_cast set_encoding unset_encoding".split()
)
CONTROL = frozenset("while if case scan for parallel".split())
REDUCTIONS = frozenset(
    "reduce reduce_window reduce_sum reduce_max reduce_min reduce_mean mean sum max_pool2d avg_pool2d maxpool avgpool argmax "
    "argmin".split()
)


SUSPECT = re.compile(r"dot|conv(?!ert)|matmul|[mv]m\b|einsum|gemm|attention|lstm|gru|rnn|linear|contract|custom_call")
"""Part of the name of an operation that may be or contain a product."""
FOREIGN = "an operator of another framework, which may contain a product"


def is_listed(operation: Operation) -> bool:
    """Return whether an unmapped operation is listed."""
    return operation.kind.lower() not in STRUCTURE and not operation.name.startswith("torch.constant.")


def explain(operation: Operation, shapes: list[OpenShape | None]) -> tuple[str, int | None]:
    """Return the reason, and the estimated scalar operations (None if unknown).

    `shapes` are those of operands, then of results.
    """
    kind = operation.kind.lower()
    if operation.name.startswith("torch."):
        kind = operation.name.split(".")[2] if operation.name.count(".") > 1 else kind
        if kind in OF_ATEN or kind in ("collapse", "split_dim"):
            return "moves or names data, computes nothing", 0
    if operation.name == "affine.for":
        return "not a product of tensors", affine.affine_operations(operation)
    if kind in MOVES and operation.name.lower() not in ("tosa.cast", "tf.cast"):
        return "moves or names data, computes nothing", 0
    if kind in CONTROL:
        return "control flow: its contents are not read", None
    elements = [_elements(shape) for shape in shapes]
    read, made = elements[: len(operation.operands)], elements[len(operation.operands) :]
    if kind in REDUCTIONS:
        return "a reduction without weights", read[0] if read else None
    if operation.regions and not operation.name.startswith(("stablehlo.", "linalg.")):
        return "its contents are not read", None
    if operation.name == WRAPPED:
        return f"{FOREIGN} ('{operation.attributes.get('name')}')", None
    if SUSPECT.search(kind) and builder_of(operation.name) is None:
        return "it may contain a product of tensors, and its form is not known", None
    counts = [count for count in made or read if count is not None]
    return "not a product of tensors over affine loops", max(counts, default=None)


def _elements(shape: OpenShape | None) -> int | None:
    if shape is None:
        return None
    sizes = [size for size in shape if size is not None]
    return math.prod(sizes) if len(sizes) == len(shape) else None
