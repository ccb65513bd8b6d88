"""How functions are compiled with Numba: each once, and nothing that is not used.

By itself Numba optimises every function and turns it into machine code that Python can call, also one that only
other compiled functions call; these then optimise it again. Here a function has two forms, made when needed:

- as a *part* of other compiled code it is typed and lowered, and no more;
- as an *entry*, which Python calls, it is linked with its parts, optimised together with them and kept on disk.

An entry keeps its parts to itself. While entries could share a copy of a part, answers of code that had just been
compiled and of the same code from the disk differed in their last bits now and then; since they cannot, tests find
the same bits.

LLVM takes much longer for one large function than for the same code in several, so that parts may stay apart from
their callers. An array that is made in compiled code brings a dozen of Numba's functions with it. Those in a
NamedTuple are passed one by one, so that few large ones are better than many.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from llvmlite import binding as llvm
from numba.core import event
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase
from numba.core.compiler_lock import global_compiler_lock
from numba.core.compiler_machinery import PassManager
from numba.core.registry import CPUDispatcher
from numba.core.typed_passes import (
    IRLegalization,
    NativeLowering,
    NoPythonBackend,
    NopythonTypeInference,
    PreLowerStripPhis,
)
from numba.core.untyped_passes import (
    DeadBranchPrune,
    FixupArgs,
    GenericRewrites,
    IRProcessing,
    ReconstructSSA,
    RewriteSemanticConstants,
    TranslateByteCode,
)

from hinge.runtime import clock, interrupt
from hinge.runtime.code_cache import CodeCache

_Library: Any = JITCodeLibrary  # without types
_NumbasCompiler: Any = CompilerBase
_PassManager: Any = PassManager
_Dispatcher: Any = CPUDispatcher

# What is done to a function, in this order. Numba's own list is twice as long: it looks in each function for
# closures, `with`, loops over tuples and expressions of whole arrays, which ours do not contain.
_PASSES: tuple[Any, ...] = (
    TranslateByteCode, FixupArgs, IRProcessing, RewriteSemanticConstants, DeadBranchPrune, GenericRewrites,
    ReconstructSSA, NopythonTypeInference, PreLowerStripPhis, IRLegalization, NativeLowering, NoPythonBackend,
)  # fmt: skip

# A person at a terminal is told why nothing happens when compiling has taken this long.
_SILENT_SECONDS = 0.5


class _PartLibrary(_Library):  # type: ignore[misc]
    """The code of a part: never optimised on its own, never turned into machine code."""

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True


class _ApartLibrary(_PartLibrary):
    """The code of a part that is not to be merged with its callers'."""

    def add_ir_module(self, ir_module: Any) -> None:
        """Take the code of a function, and forbid LLVM to inline it."""
        for function in ir_module.functions:
            if not function.is_declaration and "alwaysinline" not in function.attributes:
                function.attributes.add("noinline")
        super().add_ir_module(ir_module)


class _EntryLibrary(_Library):  # type: ignore[misc]
    """The code of an entry and its parts, which nobody else can see."""

    def finalize(self) -> None:
        """Link, optimise and turn into machine code."""
        self._own_globals = {value.name for value in self._final_module.global_variables}
        super().finalize()

    def _optimize_final_module(self) -> None:
        for value in self._final_module.global_variables:
            # Each function has a place for objects of Python, which ours do not use. Those of parts may go, or
            # whoever loads the code from the disk would have to import the modules that they belong to.
            if value.linkage == llvm.Linkage.common and value.name not in self._own_globals:
                value.linkage = llvm.Linkage.linkonce_odr
        for function in self._final_module.functions:
            if function.linkage == llvm.Linkage.linkonce_odr:
                function.linkage = llvm.Linkage.internal
        super()._optimize_final_module()

    def serialize_using_object_code(self) -> Any:
        """Return what is kept on disk: the machine code, and in place of code to inline the names it defines."""
        self._ensure_finalized()
        names = (
            f.name
            for f in self._final_module.functions
            if not f.is_declaration and f.linkage == llvm.Linkage.external
        )
        text = "\n".join(f'define void @"{name}"() {{ ret void }}' for name in names)
        return self.name, "object", (self._get_compiled_object(), llvm.parse_assembly(text).as_bitcode())


class _Compiler(_NumbasCompiler):  # type: ignore[misc]
    def define_pipelines(self) -> list[Any]:
        """Return the one way in which a function is compiled."""
        passes = _PassManager("hinge")
        for each in _PASSES:
            passes.add_pass(each, each.__name__)
        passes.finalize()
        return [passes]


class _PartCompiler(_Compiler):
    library = _PartLibrary

    def compile_extra(self, func: Any) -> Any:
        state = self.state
        state.library = self.library(state.targetctx.codegen(), func.__qualname__)
        state.flags.no_compile = True
        key = object()  # what a caller finds it by, in place of a function that Python can call
        result = super().compile_extra(func)._replace(entry_point=key)
        state.targetctx.insert_user_function(key, result.fndesc, [result.library])
        return result


class _ApartCompiler(_PartCompiler):
    library = _ApartLibrary


class _EntryCompiler(_Compiler):
    def compile_extra(self, func: Any) -> Any:
        self.state.library = _EntryLibrary(self.state.targetctx.codegen(), func.__qualname__)
        self.state.library.enable_object_caching()
        return super().compile_extra(func)


@contextmanager
def _without_collections() -> Iterator[None]:
    """Let Python not look for garbage: compiling makes millions of objects, and next to none of it."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


class _Part(_Dispatcher):  # type: ignore[misc]
    """A function as other compiled code calls it."""

    def add_overload(self, cres: Any) -> None:
        """Remember a compiled form, without a way for Python to call it."""
        self.overloads[tuple(cres.signature.args)] = cres


class Function(_Dispatcher):  # type: ignore[misc]
    """A compiled function: called from Python an entry, from compiled code a part of its caller.

    Parameters
    ----------
    function : callable
        The function in Python.
    options : dict
        Options of Numba.
    is_apart : bool
        Whether its code stays apart from its callers'. LLVM takes much longer for one large function than for the
        same code in several.
    """

    def __init__(self, function: Any, options: dict[str, Any], is_apart: bool = False) -> None:
        options = {"nopython": True, "no_cfunc_wrapper": True, **options}
        super().__init__(function, targetoptions=options, pipeline_class=_EntryCompiler)
        self._part: _Part | None = None
        self._part_compiler = _ApartCompiler if is_apart else _PartCompiler
        self._has_cache = False

    def _compile_for_args(self, *args: Any, **kws: Any) -> Any:
        """Compile what Python calls with arguments of new types, or fetch it from the disk."""
        with global_compiler_lock, clock.standing_still(), _without_collections():
            if not self._has_cache:
                self._has_cache = True
                # In place of Numba's own cache, which ends a fit when a file is damaged. Where no folder can be
                # written there is none: a read-only install of a user without a home.
                with suppress(RuntimeError):
                    self._cache = CodeCache(self.py_func)
            return super()._compile_for_args(*args, **kws)

    def _compilation_chain_init_hook(self) -> None:
        """Do nothing: types of other packages, which Numba looks for here, concern no function of ours."""

    def _as_part(self) -> _Part:
        if self._part is None:  # whoever asks compiles, and holds the lock
            options = {**self.targetoptions, "no_cpython_wrapper": True}
            self._part = _Part(self.py_func, targetoptions=options, pipeline_class=self._part_compiler)
        return self._part

    def get_call_template(self, args: Any, kws: Any) -> Any:
        """Answer the type inference of a compiled caller."""
        return self._as_part().get_call_template(args, kws)

    def get_overload(self, sig: Any) -> Any:
        """Return the key of the part that a compiled caller asks for."""
        return self._as_part().get_overload(sig)


class Passes(event.Listener):  # type: ignore[misc]
    """Lets Ctrl-C end a compilation before its next pass, and tells a person at a terminal what takes so long."""

    def __init__(self) -> None:
        self._has_told = False

    def on_start(self, event: Any) -> None:
        if interrupt.pressed():
            raise interrupt.Cancelled
        if not self._has_told and clock.stands_still() and clock.compiled_seconds() > _SILENT_SECONDS:
            self._has_told = True
            if sys.stderr is not None and sys.stderr.isatty():
                sys.stderr.write("hinge: compiling, once on this computer\n")
                sys.stderr.flush()

    def on_end(self, event: Any) -> None:
        """Nothing to do."""


event.register("numba:run_pass", Passes())  # type: ignore[no-untyped-call]
