"""Faster compilation of kernels with numba's own passes.

By default numba generates machine code for every function, and again for every function that calls
it. Here inlined functions are compiled only as part of their callers.
"""

# mypy: disable-error-code="attr-defined, no-untyped-call"
from __future__ import annotations

from typing import Any

from numba import _dynfunc
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler, Flags
from numba.core.compiler_machinery import register_pass
from numba.core.typed_passes import NativeLowering


class _ComparedFlags(Flags):
    """Compiler options that compare the values that were set.

    numba compares defaults as well, which takes a hundred thousand calls in a large kernel.
    """

    def __hash__(self) -> int:
        return len(self._values)

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Flags) and bool(self._values == other._values))


class _Unfinished(JITCodeLibrary):
    """Code library of an inlined function, without machine code of its own.

    LLVM optimises the code together with the callers.
    """

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True


@register_pass(mutates_CFG=True, analysis_only=False)
class _PartLowering(NativeLowering):
    """Lowering as in numba, but without an entry point in memory."""

    _name = "part_lowering"

    def run_pass(self, state: Any) -> bool:
        state.library = library = _Unfinished(state.targetctx.codegen(), state.func_id.func_qualname)
        state.flags.no_compile = True
        NativeLowering.run_pass(self, state)
        part = state.cr.fndesc
        entry = _dynfunc.make_function(part.lookup_module(), part.qualname, "", 0, state.cr.env, (library,))
        state.targetctx.insert_user_function(entry, part, [library])
        state["cr"] = state.cr._replace(cfunc=entry)
        return True


class KernelCompiler(Compiler):
    """Compiler of functions that Python calls."""

    def __init__(
        self, typing: Any, target: Any, library: Any, args: Any, result: Any, flags: Flags, names: Any
    ) -> None:
        super().__init__(typing, target, library, args, result, _ComparedFlags(flags), names)


class PartCompiler(KernelCompiler):
    """Compiler of functions that only compiled functions call."""

    def define_pipelines(self) -> list[Any]:
        (pipeline,) = super().define_pipelines()
        pipeline.passes = [
            (_PartLowering if stage is NativeLowering else stage, what) for stage, what in pipeline.passes
        ]
        pipeline.finalize()
        return [pipeline]
