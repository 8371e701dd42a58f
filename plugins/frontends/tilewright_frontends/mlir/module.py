"""Functions of a module, followed in call order: its layers and unmapped operations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from tilewright.errors import InputError
from tilewright.plugin.edges import with_returned
from tilewright.schema.document import suggestion
from tilewright.schema.origin import Origin
from tilewright.schema.workload import Layer, Unmapped, Workload
from tilewright_frontends.aliases import Aliases
from tilewright_frontends.mlir import affine, aten, buffers, comet, loops, moves, onnx_dialect
from tilewright_frontends.mlir.bodies import MOVED
from tilewright_frontends.mlir.operators import builder_of
from tilewright_frontends.mlir.tree import Block, OpenShape, Operation, Value, within
from tilewright_frontends.mlir.unmapped import CONTROL, explain, is_listed
from tilewright_frontends.mlir.vectors import WITH_BODY, unordered, vector_of
from tilewright_frontends.mlir.widths import with_widths
from tilewright_frontends.nests import Shape, Unsupported, refusing, unique_name
from tilewright_frontends.onnx import edges
from tilewright_frontends.products import Parts, Product, connected
from tilewright_frontends.pt2.moves import passed_on
from tilewright_frontends.vectors import Vectors, uncounted
from tilewright_frontends.views import REPEATED, View, passed

MAX_OPERATIONS = 200_000
"""Maximum number of operations over all calls."""
SHOWN = 20
"""Maximum number of reasons in a message."""


def read_workload(module: Operation, name: str, source: str, batch: int | None, sizes: Mapping[str, int]) -> Workload:
    """Return the workload of a module: the layers of its entries and of the functions they call.

    Entries are the public functions that no other function calls, or the private ones if there are none.
    A function called several times contributes its layers each time.

    Args:
        module: the module.
        name: name of the workload.
        source: name of the file, for messages.
        batch: size of the first dimension of every argument that leaves it open.
        sizes: sizes of open dimensions, named `argument_axis`, such as `arg0_2`.

    Raises:
        InputError: an operation is malformed, a size is missing or unknown, a function calls
            itself, or nothing can be mapped.
    """
    top = module.regions[0] if module.regions else Block((), ())
    bodies = list(_functions(top))
    functions = {function.text("sym_name"): function for function in bodies}
    called = {_callee(operation) for function in bodies for operation in within(function)}
    names = Counter(function.text("sym_name") for function in bodies)
    if several := [name for name, count in names.items() if count > 1 and name in called]:
        raise InputError(
            f"{source}: it has {names[several[0]]} functions called '{several[0]}', and calls one of them",
            hint="put each module of a split file into a file of its own",
        )
    uncalled = [operation for operation in bodies if operation.text("sym_name") not in called and operation.regions]
    entries = [
        operation for operation in uncalled if operation.attributes.get("sym_visibility") != "private"
    ] or uncalled
    reader = _Reader(source, functions)
    shapes = _argument_shapes(source, entries, batch, sizes)
    returned = set[str]()
    for entry in entries:
        call, block = _Call(shapes=dict(shapes)), entry.regions[0]
        reader.run(block, call, (entry.text("sym_name"),))
        ends = (*block.operations[-1].operands, *block.arguments) if block.operations else ()
        returned.update(call.before(ends))
    if not entries:
        reader.run(top, _Call(), ())
    if not reader.layers:
        lowered = any(unmapped.operator.startswith(onnx_dialect.LOWERED) for unmapped in reader.unmapped)
        raise InputError(_nothing(source, reader.unmapped), hint=onnx_dialect.EMIT if lowered else None)
    return Workload(
        name=name,
        source=f"{Path(source).name}: MLIR module",
        layers=with_returned(reader.layers, returned),
        unmapped=tuple(reader.unmapped),
        vectors=unordered(reader.vectors.layers) if reader.buffers else reader.vectors.every(),
    )


def _functions(block: Block) -> Iterator[Operation]:
    """Yield the functions in a block and in the modules there; a split file has several modules."""
    for operation in block.operations:
        if operation.kind == "func" and isinstance(operation.attributes.get("sym_name"), str):
            yield operation
        elif operation.kind == "module":
            for region in operation.regions:
                yield from _functions(region)


def _callee(operation: Operation) -> str | None:
    if operation.kind.lower().endswith("call") or operation.kind == "composite":
        for key in ("callee", "f", "decomposition"):
            callee = operation.attributes.get(key)
            if isinstance(callee, str):
                return callee
    return None


def _nothing(source: str, unmapped: Sequence[Unmapped]) -> str:
    reasons = [f"  {source}:{part.reason.replace(': ', f': {part.operator}: ', 1)}" for part in unmapped[:SHOWN]]
    rest = [f"  and {len(unmapped) - SHOWN} more"] if len(unmapped) > SHOWN else []
    return "\n".join([f"{source}: it has no tensor product over affine loops", *reasons, *rest])


def _argument_shapes(
    source: str, entries: Sequence[Operation], batch: int | None, sizes: Mapping[str, int]
) -> dict[Value, OpenShape]:
    """Return the shapes of the entries' arguments, with sizes for open dimensions.

    Raises:
        InputError: a size belongs to no open dimension.
    """
    arguments = [
        (f"arg{number}", argument, argument.shape)
        for entry in entries
        for number, argument in enumerate(entry.regions[0].arguments)
        if argument.shape is not None
    ]
    known = dict.fromkeys(
        f"{name}_{axis}" for name, _, shape in arguments for axis, size in enumerate(shape) if size is None
    )
    for name in sizes:
        if name not in known:
            listed = f"it has: {', '.join(known)}" if known else "all its sizes are fixed"
            raise InputError(f"{source} has no dynamic dimension called '{name}'; {listed}{suggestion(name, known)}")
    if batch is not None and not any(name.endswith("_0") for name in known):
        raise InputError(f"{source}: every argument fixes its first dimension, so --batch has no effect; omit it")
    return {
        argument: tuple(
            size if size is not None else sizes.get(f"{name}_{axis}", None if axis else batch)
            for axis, size in enumerate(shape)
        )
        for name, argument, shape in arguments
    }


@dataclass
class _Call:
    """Values within one call of a function.

    `origins` maps a value to the layers that it depends on, looking through unmapped operations.
    `shapes` holds shapes that the types leave open. `makers` maps a value to the operation that
    produces it. `times` is how often the operations are executed, in loops with a known number of
    iterations. `views` maps a value to its words that layers make; those of a buffer are its words so far. `aliases` are
    buffers that may share memory, and `written` those that operations changed.
    """

    origins: dict[Value, tuple[str, ...]] = field(default_factory=dict)
    shapes: dict[Value, OpenShape] = field(default_factory=dict)
    makers: dict[Value, Operation] = field(default_factory=dict)
    times: int = 1
    views: dict[Value, tuple[View, ...]] = field(default_factory=dict)
    aliases: Aliases[Value] = field(default_factory=Aliases)
    written: dict[Value, None] = field(default_factory=dict)

    def shape(self, value: Value) -> OpenShape | None:
        return self.shapes.get(value, value.shape)

    def before(self, values: Sequence[Value]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(layer for value in values for layer in self.origins.get(value, ())))

    def learn(self, operation: Operation) -> None:
        """Infer shapes of an elementwise operation's results from its operands."""
        if operation.kind.lower() not in moves.ELEMENTWISE:
            return
        for result in operation.results:
            shape = self.shape(result)
            for operand in operation.operands:
                other = self.shape(operand)
                if shape is not None and other is not None and len(other) == len(shape):
                    shape = tuple(a if a is not None else b for a, b in zip(shape, other, strict=True))
                    self.shapes[result] = shape

    def assign(self, tensor: Value, values: Sequence[Value]) -> None:
        """Note a tensor that gets the words of values, or of none that layers make."""
        views = tuple(view for value in values for view in self.views.get(value, ()))
        if old := self.origins.get(tensor):
            told = "a tensor is written more than once"
            views = passed(view.without(told) for view in (*self.views.get(tensor, ()), *views))
        self.views[tensor] = views
        self.origins[tensor] = tuple(dict.fromkeys((*(old or ()), *self.before(values))))

    def change(self, value: Value, views: Sequence[View], before: Sequence[str], whole: bool) -> None:
        """Note what an operation writes into a buffer, and into all that share its memory.

        Args:
            value: the buffer.
            views: the new words that layers make.
            before: layers that the new words depend on.
            whole: whether no earlier word is left.
        """
        group = self.aliases.of(value)
        for member in group:
            old = self.views.get(member, ())
            told = "a buffer is written more than once, or under several names"
            exact = len(group) == 1 and (whole or not old)
            self.views[member] = tuple(views) if exact else passed(view.without(told) for view in (*old, *views))
            kept = () if whole and len(group) == 1 else self.origins.get(member, ())
            self.origins[member] = tuple(dict.fromkeys((*kept, *before)))
            self.written[member] = None


class _Reader:
    """Collector of layers and unmapped operations, in order."""

    def __init__(self, source: str, functions: Mapping[str, Operation]) -> None:
        self.source, self.functions = source, functions
        self.layers: list[Layer] = []
        self.unmapped: list[Unmapped] = []
        self.taken: set[str] = set()
        self.vectors = Vectors()
        self.buffers = False
        self.met = 0

    def run(self, block: Block, call: _Call, stack: tuple[str, ...]) -> None:
        """Read one call. `stack`: the functions being called."""
        for operation in block.operations:
            self.met += 1
            if self.met > MAX_OPERATIONS:
                raise InputError(f"{self.source}: its calls unfold into more than {MAX_OPERATIONS:,} operations")
            callee = _callee(operation)
            if callee is not None and callee in self.functions and self.functions[callee].regions:
                self._call(operation, callee, call, stack)
            elif iterations := loops.iterations(operation, call.makers.get):
                self._loop(operation, iterations, call, stack)
            else:
                self._read(operation, call)

    def _call(self, operation: Operation, callee: str, call: _Call, stack: tuple[str, ...]) -> None:
        if callee in stack:
            raise InputError(f"{self.source}:{operation.at}: function {callee} calls itself")
        regions = self.functions[callee].regions
        inner = _Call(times=call.times)
        arguments = [*zip(regions[0].arguments, operation.operands, strict=False)]
        for place, (argument, operand) in enumerate(arguments):
            for other, before in arguments[:place]:
                if operand.buffer and before in call.aliases.of(operand):
                    inner.aliases.join(argument, other)
        self._inside(regions[0], inner, operation, call, (*stack, callee))
        for argument, operand in arguments:
            if argument in inner.written:
                call.change(operand, inner.views.get(argument, ()), inner.origins.get(argument, ()), whole=True)

    def _loop(self, operation: Operation, iterations: int, call: _Call, stack: tuple[str, ...]) -> None:
        """Read the body of a loop once; its layers count as often as it has iterations."""
        inner = _Call(
            dict(call.origins),
            dict(call.shapes),
            dict(call.makers),
            call.times * iterations,
            dict(call.views),
            call.aliases,
        )
        self._inside(operation.regions[-1], inner, operation, call, stack)
        for value in inner.written:
            call.origins[value] = inner.origins.get(value, ())
            call.views[value] = inner.views.get(value, ())
            call.written[value] = None

    def _inside(self, block: Block, inner: _Call, operation: Operation, call: _Call, stack: tuple[str, ...]) -> None:
        """Read a block with the operation's operands as arguments, and relate its results."""
        arguments, operands = block.arguments, operation.operands
        if operation.name in loops.COUNTED:
            operands = operands[len(loops.bounds(operation)) :]
            arguments = arguments[len(arguments) - len(operands) :]
        again = inner.times > call.times  # the body may get what another iteration made, and forward it

        def carried(views: Sequence[View]) -> tuple[View, ...]:
            return passed(view.without(REPEATED) for view in views) if again else tuple(views)

        for argument, operand in zip(arguments, operands, strict=False):
            self.vectors.add(None, (operand,), (argument,))
            inner.origins[argument] = call.origins.get(operand, ())
            inner.views[argument] = carried(call.views.get(operand, ()))
            if argument.buffer and again:
                inner.aliases.join(argument, operand)
            shape = call.shape(operand)
            if shape is not None and argument.shape is not None and len(shape) == len(argument.shape):
                inner.shapes[argument] = tuple(
                    a if a is not None else b for a, b in zip(argument.shape, shape, strict=True)
                )
        self.run(block, inner, stack)
        ends = block.operations[-1:]
        for result, returned in zip(operation.results, ends[0].operands if ends else (), strict=False):
            self.vectors.add(None, (returned,), (result,))
            call.origins[result] = inner.origins.get(returned, ())
            call.views[result] = carried(inner.views.get(returned, ()))
            if result.buffer:
                for value in (returned, *(operand for operand in operation.operands if operand.buffer)):
                    call.aliases.join(result, value)
            known_shape = inner.shape(returned)
            if known_shape is not None:
                call.shapes[result] = known_shape

    def _read(self, operation: Operation, call: _Call) -> None:
        if assigned := comet.assigned(operation):
            call.assign(*assigned)
            self.vectors.add(None, assigned[1], assigned[:1])
            return
        inner = [operand for inner_operation in within(operation) for operand in inner_operation.operands]
        before = call.before([*operation.operands, *inner])
        self.buffers |= any(value.buffer for value in (*operation.operands, *operation.results))
        call.learn(operation)
        call.makers |= dict.fromkeys(operation.results, operation)
        parts, values, reason = self._parts(operation, call)
        products = [part for part in parts if isinstance(part, Product)]
        if products:
            self._connect(operation, parts, values, call)
            return
        name = operation.title
        if is_listed(operation):
            shapes = [call.shape(value) for value in (*operation.operands, *operation.results)]
            said, operations = explain(operation, shapes)
            for part in parts:
                if isinstance(part, Unmapped):
                    reason, operations = part.reason, part.operations
            if operations is None and (inside := self._products_within(operation)):
                said = f"{said}; they have {', '.join(inside)}"
            name = self._leave(operation, reason or said, operations, call)
            place = self._origin(operation)
            vector = vector_of(operation, name, call.shape, call.makers.get, call.times, place)
            is_onnx = operation.name.startswith(onnx_dialect.PREFIX) and not onnx_dialect.is_product(operation.name)
            if vector == MOVED:  # such as a `linalg.generic` that transposes
                self.unmapped[-1] = self.unmapped[-1].model_copy(
                    update={"reason": f"{operation.at}: {MOVED}", "operations": 0}
                )
            elif (reason is None or is_onnx or operation.name in WITH_BODY) and operation.kind.lower() not in CONTROL:
                self.unmapped[-1] = uncounted(self.unmapped[-1], vector)
            self.vectors.add(vector, [*operation.operands, *inner], operation.results)
        else:
            self.vectors.add(None, operation.operands, operation.results)
        moved = self._passed(operation, name, [*operation.operands, *inner], call, reason or "")
        call.views |= {value: moved[value] for value in operation.results if value in moved}
        call.origins |= dict.fromkeys(operation.results, before)
        for first, second in buffers.shared(operation):
            call.aliases.join(first, second)
        for value in buffers.changed(operation):
            views = (
                moved[value]
                if value in moved
                else passed(
                    view.without(f"{operation.name} '{name}' changes a buffer")
                    for operand in (*operation.operands, *inner)
                    for view in call.views.get(operand, ())
                )
            )
            call.change(value, views, before, whole=value in moved)

    def _connect(self, operation: Operation, parts: Parts, values: Mapping[str, Value], call: _Call) -> None:
        """Add the layers of an operation, and what of it is none."""
        views = {name: call.views.get(value, ()) for name, value in values.items()}
        shapes = {
            name: shape for name, value in values.items() if (shape := moves.fixed(call.shape(value))) is not None
        }
        results = [name for name in values if values[name] in operation.results]
        read = [name for name in values if name not in results]
        told = [
            part.model_copy(update={"reason": f"{operation.at}: {part.reason}", "operator": operation.name})
            if isinstance(part, Unmapped)
            else replace(part, problem=with_widths(part, values))
            for part in parts
        ]
        with refusing(f"{self.source}:{operation.at}: {operation.name} is malformed"):
            connection = connected(
                told,
                read,
                views,
                shapes,
                lambda names: call.before([values[name] for name in names if name in values]),
                self.taken,
                call.times,
                self._origin(operation),
                self.vectors,
                operation.results,
                operation.operands,
            )
        self.layers += connection.layers
        self.unmapped += connection.unmapped
        written = [part.values[-1] for part in parts if isinstance(part, Product) and part.values[-1] in values]
        for name in written:
            if values[name].buffer:
                call.change(values[name], connection.views[name], (connection.last,), whole=False)
        for name in results:
            call.views[values[name]] = connection.views.get(name, ()) if name in written else ()
            call.origins[values[name]] = (connection.last,)

    def _passed(
        self, operation: Operation, name: str, read: Sequence[Value], call: _Call, reason: str
    ) -> dict[Value, tuple[View, ...]]:
        """Return the views of the results of an operation that is no layer, and of buffers that it fills."""
        known = {value: call.views[value] for value in read if call.views.get(value)}
        if not known:
            return {}
        if operation.name.startswith(aten.PREFIX) and call.times == 1 and not operation.regions:
            node, values = aten.call(operation, lambda value: moves.fixed(call.shape(value)), call.makers.get)
            named = passed_on(node, name, {label: known.get(value, ()) for label, value in values.items()})
            return {values[label]: views for label, views in named.items()}
        if operation.name.startswith(onnx_dialect.PREFIX) and not operation.regions:
            shapes = [call.shape(value) for value in (*operation.operands, *operation.results)]
            graph = onnx_dialect.graph(operation, shapes, call.makers.get, operation.title, self.source)
            given = {f"x{place}": known.get(value, ()) for place, value in enumerate(operation.operands)}
            views = edges.results(graph, graph.nodes[0], name, given, reason, call.times) if graph.nodes else {}
            return {value: views[f"y{place}"] for place, value in enumerate(operation.results) if f"y{place}" in views}
        return moves.passed_on(operation, name, read, call.views, call.shape, call.makers.get, call.times)

    def _origin(self, operation: Operation) -> Origin:
        return Origin(node=operation.said, file=Path(self.source).name, line=operation.line, column=operation.column)

    def _leave(self, operation: Operation, reason: str, operations: int | None, call: _Call) -> str:
        """Note an operation that is no layer. Return its name."""
        name = unique_name(operation.title, self.taken)
        self.unmapped.append(
            Unmapped(
                name=name,
                operator=operation.name,
                reason=f"{operation.at}: {reason}",
                operations=None if operations is None else operations * call.times,
                origin=self._origin(operation),
            )
        )
        return name

    def _products_within(self, operation: Operation) -> list[str]:
        """Return the kinds of products in the regions of an operation and in the functions called there."""
        names, waiting, called = dict[str, None](), [operation], set[str]()
        while waiting:
            for inner in within(waiting.pop()):
                callee = _callee(inner)
                if callee is not None and callee in self.functions and callee not in called:
                    called.add(callee)
                    waiting.append(self.functions[callee])
                if (
                    builder_of(inner.name)
                    or aten.operator_of(inner.name) is not None
                    or onnx_dialect.is_product(inner.name)
                ):
                    names[inner.name] = None
        return list(names)

    def _parts(self, operation: Operation, call: _Call) -> tuple[Parts, dict[str, Value], str | None]:
        """Return the products of an operation, its values by their names there, and why it has none, if it is known."""
        if operation.name.startswith(onnx_dialect.PREFIX) and not operation.regions:
            return *self._onnx(operation, call), None
        with refusing(f"{self.source}:{operation.at}: {operation.name} is malformed"):
            try:
                return *self._products(operation, call), None
            except Unsupported as error:
                return [], {}, str(error)

    def _onnx(self, operation: Operation, call: _Call) -> tuple[Parts, dict[str, Value]]:
        """Return the products of an operator of ONNX. Infer the shapes of its results."""
        if not is_listed(operation):
            return [], {}
        shapes = [call.shape(value) for value in (*operation.operands, *operation.results)]
        where = f"{self.source}:{operation.at}"
        with refusing(f"{where}: {operation.name} is malformed"):
            graph = onnx_dialect.graph(operation, shapes, call.makers.get, operation.title, where)
            known_shapes = [graph.shapes.get(f"y{place}") for place in range(len(operation.results))]
            known = zip(operation.results, known_shapes, strict=True)
            call.shapes |= {value: shape for value, shape in known if shape is not None}
            if onnx_dialect.is_product(operation.name):
                self._shapes(operation, call)
            parts = onnx_dialect.parts(graph, graph.nodes[0], operation.title) if graph.nodes else []
        return parts, _named(operation)

    def _products(self, operation: Operation, call: _Call) -> tuple[Parts, dict[str, Value]]:
        """Return the products of an operation, and its values by their names there; none if it is no tensor product.

        Raises:
            Unsupported: its form is not mapped.
            ArithmeticError, LookupError, TypeError, ValueError: it contradicts itself.
        """
        name = operation.title
        if operation.name == "affine.for":
            product, values = affine.affine_nest(operation, name)
            return [product], values
        if aten.operator_of(operation.name) is not None:
            return aten.parts(operation, self._shapes(operation, call), name, call.makers.get)
        builder = affine.linalg_nest if affine.has_maps(operation) else builder_of(operation.name)
        if builder is None:
            return [], {}
        if builder is not affine.linalg_nest and None in [call.shape(value) for value in operation.operands[:2]]:
            sparse = operation.name.startswith(comet.PREFIX)
            raise Unsupported("an operand is sparse" if sparse else "the shape of an operand is not known")
        return [builder(operation, self._shapes(operation, call), name)], _named(operation)

    def _shapes(self, operation: Operation, call: _Call) -> list[Shape]:
        """Return the shapes of operands and results; a scalar has an empty shape.

        Raises:
            InputError: a size is open.
        """
        shapes: list[Shape] = []
        for place, value in enumerate((*operation.operands, *operation.results)):
            shape = call.shape(value) or ()
            if any(size is None for size in shape):
                known = " x ".join("?" if size is None else str(size) for size in shape)
                which = f"operand {place}" if place < len(operation.operands) else "the result"
                raise InputError(
                    f"{self.source}:{operation.at}: {which} of {operation.name} has an open shape, {known}",
                    hint="give --batch N, or --size arg0_0=N for axis 0 of the first argument; or print fixed shapes",
                )
            shapes.append(tuple(size for size in shape if size is not None))
        return shapes


def _named(operation: Operation) -> dict[str, Value]:
    """Return the operands as `x0`, `x1`, ... and the results as `y0`, ..."""
    named = {f"x{place}": value for place, value in enumerate(operation.operands)}
    return named | {f"y{place}": value for place, value in enumerate(operation.results)}
