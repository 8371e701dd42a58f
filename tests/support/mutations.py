"""Inputs made from good ones by small damage: to texts, to the nodes of YAML, to bytes and to the graph of an ONNX model."""

import re
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import yaml
from onnx import ModelProto

MOST = 400_000
"""Characters of what is made."""
MAX_NODES = 20_000
ODD = [
    "", " ", "-1", "0", "1", "2", "3.5", "1e308", "1e400", "-0.0", "5e-324", ".nan", ".inf", "-.inf", "NaN", "Infinity",
    "null", "~", "true", "false", "[]", "{}", "''", '""', "[[]]", "[{}]", "{a: []}", "*a", "&a x", "!x", "!!int", "<<", "<<<",
    str(2**31), str(2**53 + 1), str(2**63), str(2**64), "9" * 400, "9" * 5000, "x" * 300, "x" * 9_999, "x" * 20_000,
    "\x1b[31m", "\x00", "\x85", "\u2028", "\u202e", "\ufeff", "\udcff", "é", "中", "[/]", "../../x", "/etc/passwd", "a: b", "- ",
    "#", "%", "@", "`", "|", ">", "?", ":", ",", ";", "=", "(", ")", "[", "]", "{", "}", '"', "'", "\\", "\t", "\n", "\r", "//", "/*",
    "{{", "{{ x }}",
    "(" * 200, "[" * 200, "{" * 200, "- " * 200, "a: " * 50, " " * 9_000, "K" * 9_000, "K=", "=4", "K=0", "K<=4", "1*M", "M + M", "2*",
    "max(", "log2(0)", "1/0", "2**99", "~All", "inf", "* x", "->", "+=", "Network", "Layer", "nest", "include problem x.yaml",
]  # fmt: skip
COSTLY = ["{% for i in range(9999) %}{% for j in range(9999) %}{% endfor %}{% endfor %}", "{{ 'a' * 999999999 }}"]
"""Templates that end only by a limit, which takes longest, and end the rendering process."""
WORD = re.compile(r"[A-Za-z_][\w.\-]*|[-+]?\d[\d.eE]*")


def mutated_text(random: Random, text: str) -> str:
    """One to three faults."""
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        text = random.choice(_FAULTS)(random, text)
        if len(text) > MOST:
            text = text[:MOST]
    return text


def _odd(random: Random) -> str:
    return random.choice(COSTLY if random.random() < 0.001 else ODD)


def _span(random: Random, text: str) -> tuple[int, int]:
    start = random.randrange(len(text) + 1)
    return start, min(len(text), start + int(random.expovariate(1 / 20)))


def _cut(random: Random, text: str) -> str:
    start, end = _span(random, text)
    return text[:start] + text[end:]


def _twice(random: Random, text: str) -> str:
    start, end = _span(random, text)
    return text[:end] + text[start:]


def _inserted(random: Random, text: str) -> str:
    start, end = _span(random, text)
    return text[:start] + _odd(random) + text[random.choice((start, end)) :]


def _word(random: Random, text: str) -> str:
    """A word or a number becomes something odd, or another of the text."""
    words = list(WORD.finditer(text))
    if not words:
        return _inserted(random, text)
    old = random.choice(words)
    new = random.choice(words)[0] if random.random() < 0.4 else _odd(random)
    return text[: old.start()] + new + text[old.end() :]


def _number(random: Random, text: str) -> str:
    numbers = list(re.finditer(r"\d+", text))
    if not numbers:
        return _word(random, text)
    old = random.choice(numbers)
    value = int(old[0][:15])
    new = random.choice(
        (value + 1, value - 1, value * 2, 0, -value, value * 10**9, value + 0.5, 10 ** random.randrange(400))
    )
    return text[: old.start()] + str(new) + text[old.end() :]


def _times(random: Random) -> int:
    """Return a number of repetitions, seldom one that only limits stop, because that takes longest."""
    return random.choice((300, 3000)) if random.random() < 0.02 else random.choice((1, 2, 10, 30))


def _lines(random: Random, text: str) -> str:
    """A line is left out, repeated a few or many times, indented, or changes places with another."""
    lines = text.split("\n")
    at, other = random.randrange(len(lines)), random.randrange(len(lines))
    what = random.randrange(5)
    if what == 0:
        del lines[at]
    elif what == 1:
        lines[at:at] = [lines[at]] * _times(random)
    elif what == 2:
        lines[at] = random.choice(("", " ", "  ", "\t")) + lines[at].lstrip()
    elif what == 3:
        lines[at], lines[other] = lines[other], lines[at]
    else:
        lines = lines[:at]
    return "\n".join(lines)


def _numbered(random: Random, text: str) -> str:
    """A line is repeated with other names in it."""
    lines = text.split("\n")
    at = random.randrange(len(lines))
    names = (rf"\g<1>{number}" for number in range(1 + _times(random)))
    lines[at : at + 1] = [re.sub(r"\b([A-Za-z]\w*)", name, lines[at], count=1) for name in names]
    return "\n".join(lines)


_FAULTS: Sequence[Callable[[Random, str], str]] = (
    _cut, _twice, _inserted, _inserted, _word, _word, _word, _number, _number, _lines, _lines, _numbered,
)  # fmt: skip


_WITH_C = yaml.__with_libyaml__
_LOADER = yaml.CSafeLoader if _WITH_C else yaml.SafeLoader
_DUMPER: Any = yaml.CSafeDumper if _WITH_C else yaml.SafeDumper


class _Node(_DUMPER):  # type: ignore[misc]
    """YAML writer that writes nodes unchanged."""

    def ignore_aliases(self, data: object) -> bool:
        return True


def mutated_yaml(random: Random, text: str) -> str:
    """A fault in the nodes, or where they do not make a document, in the text."""
    try:
        root = yaml.compose(text, _LOADER)
        nodes: list[yaml.Node] = []
        _listed(root, nodes)
        for _ in range(random.choice((1, 1, 2, 3))):
            _node_fault(random, nodes)
        _listed(root, [])
        return str(yaml.serialize(root, Dumper=_Node))[:MOST]
    except (yaml.YAMLError, RecursionError, ValueError, TypeError):
        return mutated_text(random, text)


def _listed(node: yaml.Node | None, nodes: list[yaml.Node]) -> None:
    if node is None:
        raise ValueError("nothing")
    nodes.append(node)
    if len(nodes) > MAX_NODES:
        raise ValueError("too many")
    if isinstance(node, yaml.SequenceNode):
        for part in node.value:
            _listed(part, nodes)
    elif isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            _listed(key, nodes)
            _listed(value, nodes)


def _node_fault(random: Random, nodes: list[yaml.Node]) -> None:
    node, other = random.choice(nodes), random.choice(nodes)
    if isinstance(node, yaml.ScalarNode):
        node.value = _odd(random)
        node.tag = "tag:yaml.org,2002:float" if re.fullmatch(r"-?[\d.e]+", node.value) else "tag:yaml.org,2002:str"
    elif node.value:
        at, what = random.randrange(len(node.value)), random.randrange(5)
        if what == 0:
            del node.value[at]
        elif what == 1:
            node.value[at:at] = [node.value[at]] * _times(random)
        elif what == 2:
            random.shuffle(node.value)
        elif what == 3:
            node.value = []
        else:
            node.value[at] = (node.value[at][0], other) if isinstance(node, yaml.MappingNode) else other


def mutated_bytes(random: Random, data: bytes) -> bytes:
    """Bytes changed, cut out or put in."""
    changed = bytearray(data)
    for _ in range(random.choice((1, 1, 2, 5))):
        at = random.randrange(len(changed) + 1)
        what = random.randrange(4)
        if what == 0:
            changed[at : at + 1] = bytes([random.randrange(256)])
        elif what == 1:
            del changed[at : at + random.randrange(1, 30)]
        elif what == 2:
            changed[at:at] = random.randbytes(random.randrange(1, 12))
        else:
            changed[at:at] = changed[at : at + random.randrange(1, 60)]
    return bytes(changed)


SIZES = [0, 1, 2, 3, 5, -1, 7, 1000, 2**20, 2**31, 2**40, 2**62, -(2**63), 2**63 - 1]


def mutated_model(random: Random, data: bytes) -> bytes:
    """A fault in the graph of an ONNX model."""
    if random.random() < 0.3:
        return mutated_bytes(random, data)
    model = ModelProto()
    model.ParseFromString(data)
    for _ in range(random.choice((1, 1, 2, 4))):
        _graph_fault(random, model)
    return bytes(model.SerializeToString())


def _graph_fault(random: Random, model: ModelProto) -> None:
    graph = model.graph
    node = random.choice(graph.node)
    names = [value for item in graph.node for value in (*item.input, *item.output)] + ["", "absent"]
    what = random.randrange(9)
    if what == 0:
        node.op_type = random.choice([random.choice(graph.node).op_type, *OPERATORS])
    elif what == 1 and node.input:
        node.input[random.randrange(len(node.input))] = random.choice(names)
    elif what == 2 and node.output:
        node.output[random.randrange(len(node.output))] = random.choice(names)
    elif what == 3 and node.attribute:
        attribute = random.choice(node.attribute)
        attribute.i = random.choice(SIZES)
        if attribute.ints:
            attribute.ints[random.randrange(len(attribute.ints))] = random.choice(SIZES)
        attribute.s = _odd(random).encode(errors="ignore")
    elif what == 4:
        values = [
            value for value in (*graph.input, *graph.output, *graph.value_info) if value.type.tensor_type.shape.dim
        ]
        if values:
            dimension = random.choice(random.choice(values).type.tensor_type.shape.dim)
            dimension.dim_value = random.choice(SIZES)
    elif what == 5 and graph.initializer:
        tensor = random.choice(graph.initializer)
        if tensor.dims:
            tensor.dims[random.randrange(len(tensor.dims))] = random.choice(SIZES)
    elif what == 6:
        graph.node.append(node)
    elif what == 7:
        graph.node.remove(node)
        if not graph.node:
            graph.node.append(node)
    else:
        node.name = _odd(random).encode(errors="ignore").decode()


OPERATORS = (
    "Conv ConvTranspose Gemm MatMul Einsum Add Relu Reshape Shape Gather Concat Slice Expand Tile Split Transpose If Loop Scan "
    "Range ConstantOfShape Resize Pad Unsqueeze Squeeze MaxPool Nonsense Flatten Softmax ReduceMax ReduceSum Sub Mul Div Sum Attention"
).split()
