"""Twenty ONNX files that have every operator of the table of operations, as networks use them, in ONNX's text form.

Each body is a list of operators; `x` and what else is not made is an input. Names are `NAME: inputs -> what is not counted`.
"""

import re
from pathlib import Path

from onnx import parser

IMAGE = "float[2,8,16,16] x"
TOKENS = "float[2,12,64] x"

FILES: dict[str, tuple[str, str]] = {
    "arithmetic": (
        f"{IMAGE}, float[8,1,1] b, float[8,8,1,1] w",
        """
        h = Conv(x, w)  a = Add(h, b)  c = Sub(a, b)  d = Mul(c, b)  e = Div(d, b)  f = Pow(e, b)  g = Mod <fmod = 1> (f, b)
        i = Max(g, b)  j = Min(i, b)  k = Sum(j, a, c, d)  l = Mean(k, a, c)  m = Max(l, a, c)  n = Neg(m)  o = Abs(n)
        p = Sqrt(o)  q = Reciprocal(p)  r = Exp(q)  s = Log(r)  t = Sign(s)  u = Floor(t)  v = Ceil(u)  y = Round(v)
        """,
    ),
    "comparisons": (
        f"{IMAGE}, float[2,8,16,16] z, float[8,8,1,1] w",
        """
        h = Conv(x, w)  a = Equal(h, z)  b = Greater(h, z)  c = Less(h, z)  d = GreaterOrEqual(h, z)  e = LessOrEqual(h, z)
        f = And(a, b)  g = Or(c, d)  i = Xor(f, g)  j = Not(i)  k = And(j, e)  l = IsNaN(h)  m = IsInf(h)  n = Or(l, m)
        o = And(n, k)  y = Where(o, h, z)
        """,
    ),
    "whole_numbers": (
        "uint8[4,32] x, uint8[4,32] z, int8[32,16] w, int8[4,32] s",
        """
        a = BitwiseAnd(x, z)  b = BitwiseOr(a, z)  c = BitwiseXor(b, z)  d = BitwiseNot(c)  e = BitShift <direction = "LEFT"> (d, z)
        f = Cast <to = 3> (e)  g = MatMulInteger(f, w)  y = Cast <to = 1> (g)
        """,
    ),
    "angles": (
        "float[4,32] x, float[32,32] w",
        """
        h = MatMul(x, w)  a = Sin(h)  b = Cos(a)  c = Tan(b)  d = Asin(c)  e = Acos(d)  f = Atan(e)  g = Sinh(f)  i = Cosh(g)
        j = Asinh(i)  k = Acosh(j)  l = Atanh(k)  y = Erf(l)
        """,
    ),
    "activations": (
        f"{IMAGE}, float[8,8,1,1] w, float[8,1,1] s, float low, float high",
        """
        h = Conv(x, w)  a = Relu(h)  b = LeakyRelu(a)  c = PRelu(b, s)  d = Clip(c, low, high)  e = Sigmoid(d)  f = Tanh(e)
        g = HardSigmoid(f)  i = HardSwish(g)  j = Elu(i)  k = Selu(j)  l = Celu(k)  m = Softplus(l)  n = Softsign(m)
        o = Mish(n)  p = Gelu(o)  q = Swish(p)  r = ThresholdedRelu(q)  y = Shrink(r)
        """,
    ),
    "reductions": (
        "float[8,32,16] x, float[16,16] w",
        """
        h = MatMul(x, w)  axes = Constant <value_ints = [2]> ()  mean = ReduceMean(h, axes)  off = Sub(h, mean)
        square = Mul(off, off)  variance = ReduceMean(square, axes)  a = ReduceSum(h, axes)  b = ReduceMax(h, axes)
        c = ReduceMin(h, axes)  d = ReduceProd(h, axes)  e = ReduceL1(h, axes)  f = ReduceL2(h, axes)
        g = ReduceSumSquare(h, axes)  i = ReduceLogSum(h, axes)  j = ReduceLogSumExp(h, axes)
        k = ArgMax <axis = 2> (h)  l = ArgMin <axis = 2> (h)  one = Constant <value_int = 1> ()  m = CumSum(h, one)
        y = Sum(variance, a, b, c, d, e, f, g, i, j)
        """,
    ),
    "softmax": (
        "float[8,32,16] x, float[16,16] w",
        """
        h = MatMul(x, w)  a = Softmax <axis = -1> (h)  b = LogSoftmax <axis = 1> (a)  c = Hardmax <axis = -1> (b)
        top = ReduceMax <keepdims = 1> (c)  d = Sub(c, top)  e = Exp(d)  total = ReduceSum <keepdims = 1> (e)  y = Div(e, total)
        """,
    ),
    "norms": (
        f"{TOKENS}, float[64,64] w, float[64] s, float[64] b",
        """
        h = MatMul(x, w)  a = LayerNormalization <axis = -1> (h, s, b)  c = RMSNormalization <axis = -1> (a, s)
        two = Constant <value_float = 2.0> ()  eps = Constant <value_float = 0.00001> ()  axes = Constant <value_ints = [-1]> ()
        d = Pow(c, two)  e = ReduceMean(d, axes)  f = Add(e, eps)  g = Sqrt(f)  i = Div(c, g)  j = Mul(i, s)
        y = LpNormalization <axis = -1> (j)
        """,
    ),
    "norms_of_images": (
        f"{IMAGE}, float[8,8,3,3] w, float[8] s, float[8] b, float[8] m, float[8] v",
        """
        h = Conv <pads = [1,1,1,1]> (x, w)  a = BatchNormalization(h, s, b, m, v)  c = InstanceNormalization(a, s, b)
        d = GroupNormalization <num_groups = 4> (c, s, b)  e = MeanVarianceNormalization(d)  y = LRN <size = 5> (e)
        """,
    ),
    "pooling": (
        f"{IMAGE}, float[8,8,3,3] w, float[2,8,64] line, float[2,8,6,6,6] cube",
        """
        h = Conv <pads = [1,1,1,1]> (x, w)  a = MaxPool <kernel_shape = [2,2], strides = [2,2]> (h)
        b = AveragePool <kernel_shape = [3,3]> (a)  c = LpPool <kernel_shape = [2,2]> (b)  d = GlobalAveragePool(c)
        e = GlobalMaxPool(c)  f = GlobalLpPool(c)  g = MaxPool <kernel_shape = [4], strides = [4]> (line)
        i = AveragePool <kernel_shape = [2,2,2]> (cube)  y = Sum(d, e, f)
        """,
    ),
    "depthwise_residual": (
        f"{IMAGE}, float[48,8,1,1] up, float[48,1,3,3] window, float[8,48,1,1] down, float[12,48,1,1] s, float[48,12,1,1] e",
        """
        six = Constant <value_float = 6.0> ()  zero = Constant <value_float = 0.0> ()
        a = Conv(x, up)  b = Clip(a, zero, six)  c = Conv <group = 48, pads = [1,1,1,1]> (b, window)  d = Clip(c, zero, six)
        f = GlobalAveragePool(d)  g = Conv(f, s)  i = Relu(g)  j = Conv(i, e)  k = HardSigmoid(j)  l = Mul(d, k)
        m = Conv(l, down)  y = Add(m, x)
        """,
    ),
    "rotary": (
        "float[1,12,64] x, float[64,64] w, float[12,8] cosines, float[12,8] sines, int64[1,12] places, float[12,16] c, float[12,16] s",
        """
        h = MatMul(x, w)  four = Constant <value_ints = [1,12,4,16]> ()  a = Reshape(h, four)
        q = Transpose <perm = [0,2,1,3]> (a)  b = RotaryEmbedding(q, cosines, sines, places)
        low, high = Split <axis = -1, num_outputs = 2> (b)  turned = Neg(high)  both = Concat <axis = -1> (turned, low)
        d = Mul(b, c)  e = Mul(both, s)  y = Add(d, e)
        """,
    ),
    "dequantisation": (
        f"{IMAGE}, float[8,8,1,1] w",
        """
        scale = Constant <value_float = 0.1> ()  zero = Constant <value = int8 {3}> ()
        stored = Constant <value = int8[2,2,1,1] {1,2,3,4}> ()  halves = Slice(x, first, last, axis)
        first = Constant <value_ints = [0]> ()  last = Constant <value_ints = [2]> ()  axis = Constant <value_ints = [1]> ()
        a = QuantizeLinear(halves, scale, zero)  b = DequantizeLinear(a, scale, zero)  v = DequantizeLinear(stored, scale, zero)
        c = Conv(b, v)  d, ds, dz = DynamicQuantizeLinear(c)  y = DequantizeLinear(d, ds, dz)
        """,
    ),
    "integer_network": (
        "uint8[2,8,16,16] x, float s, uint8 z, int8[8,8,3,3] w, float ws, int8 wz",
        """
        a = QLinearConv(x, s, z, w, ws, wz, s, z)  b = com.microsoft.QLinearAdd(a, s, z, x2, s, z, s, z)
        x2 = com.microsoft.QLinearSigmoid(a, s, z, s, z)  c = com.microsoft.QLinearLeakyRelu(b, s, z, s, z)
        d = com.microsoft.QLinearMul(c, s, z, b, s, z, s, z)
        e = com.microsoft.QLinearAveragePool <kernel_shape = [2,2], strides = [2,2]> (d, s, z, s, z)
        f = com.microsoft.QLinearConcat <axis = 1> (s, z, e, s, z, e, s, z)
        y = com.microsoft.QLinearGlobalAveragePool(f, s, z, s, z)
        """,
    ),
    "experts": (
        "float[32,64] x, float[64,8] router, float[64,128] up, float[64,128] gate, float[128,64] down, float[32] share",
        """
        scores = MatMul(x, router)  p = Softmax <axis = -1> (scores)  k = Constant <value_ints = [2]> ()
        best, which = TopK <axis = -1> (p, k)  axes = Constant <value_ints = [-1]> ()  total = ReduceSum(best, axes)
        weight = Div(best, total)  a = MatMul(x, up)  b = MatMul(x, gate)  c = Sigmoid(b)  d = Mul(b, c)  e = Mul(d, a)
        f = MatMul(e, down)  g = Unsqueeze(share, axes)  y = Mul(f, g)
        """,
    ),
    "attention": (
        f"{TOKENS}, float[64,192] w, float[64,64] out, float[64] s, float[64] b, float[12,12] mask",
        """
        n = LayerNormalization(x, s, b)  qkv = MatMul(n, w)  q, k, v = Split <axis = -1, num_outputs = 3> (qkv)
        heads = Constant <value_ints = [2,12,4,16]> ()  q4 = Reshape(q, heads)  k4 = Reshape(k, heads)  v4 = Reshape(v, heads)
        qt = Transpose <perm = [0,2,1,3]> (q4)  kt = Transpose <perm = [0,2,3,1]> (k4)  vt = Transpose <perm = [0,2,1,3]> (v4)
        root = Constant <value_float = 4.0> ()  scores = MatMul(qt, kt)  scaled = Div(scores, root)  masked = Add(scaled, mask)
        p = Softmax(masked)  c = MatMul(p, vt)  ct = Transpose <perm = [0,2,1,3]> (c)
        flat = Constant <value_ints = [2,12,64]> ()  joined = Reshape(ct, flat)  o = MatMul(joined, out)  r = Add(o, x)
        whole = Attention <q_num_heads = 4, kv_num_heads = 2> (r, keys, values)  pairs = Constant <value_ints = [32,32]> ()
        keys, values = Split <axis = -1> (r, pairs)  y = Add(whole, r)
        """,
    ),
    "recurrent": (
        "float[6,2,16] x, float[1,64,16] w, float[1,64,16] r, float[1,48,16] wg, float[1,48,16] rg, float[1,16,16] v, float[1,16,16] rv",
        """
        a = LSTM <hidden_size = 16> (x, w, r)  axes = Constant <value_ints = [1]> ()  b = Squeeze(a, axes)
        c = GRU <hidden_size = 16> (b, wg, rg)  d = Squeeze(c, axes)  e = RNN <hidden_size = 16> (d, v, rv)  y = Squeeze(e, axes)
        """,
    ),
    "fused": (
        f"{TOKENS}, float[64,64] w, float[64] s, float[64] b, float[64,128] u, float[128] bu",
        """
        h = com.microsoft.FusedMatMul(x, w)  a = com.microsoft.SkipLayerNormalization(h, x, s, b)
        c = com.microsoft.BiasGelu(a, b)  d = com.microsoft.SkipSimplifiedLayerNormalization(c, x, s)
        e = com.microsoft.FastGelu(d)  f = com.microsoft.QuickGelu(e)  g = SimplifiedLayerNormalization <axis = -1> (f, s)
        i = MatMul(g, u)  j = com.microsoft.BiasSplitGelu(i, bu)  k = com.microsoft.BiasSoftmax <axis = 2, is_inner_broadcast = 1> (j, b)
        y = com.microsoft.BiasAdd(k, b, j)
        """,
    ),
    "segmentation": (
        f"{IMAGE}, float[8,8,3,3] w, float[8,8,2,2] u",
        """
        none = Constant <value_floats = [1.0,1.0,2.0,2.0]> ()  h = Conv <pads = [1,1,1,1]> (x, w)
        a = Resize <mode = "linear"> (h, , none)  b = Resize <mode = "nearest"> (a, , none)
        c = ConvTranspose <strides = [2,2]> (b, u)  d = Resize <mode = "cubic"> (h, , none)  e = Concat <axis = 1> (b, b)
        y = ArgMax <axis = 1> (c)
        """,
    ),
    "quantised_language_model": (
        "int64[1,12] x, uint8[100,32] table, float[100,1] ts, uint8[64,2,16] w, float[128] ws, float[64] s, "
        "float[1,2,4,16] keys, float[1,2,4,16] values, int32[1] lengths, int32 total, float[16,8] cosines, float[16,8] sines",
        """
        e = com.microsoft.GatherBlockQuantized <gather_axis = 0, quantize_axis = 1, block_size = 64> (table, x, ts)
        n = RMSNormalization(e, s)  a = com.microsoft.MatMulNBits <K = 64, N = 64, bits = 4, block_size = 32> (n, w, ws)
        four = Constant <value_ints = [64,32,32]> ()
        q, k, v = Split <axis = -1> (both, four)  both = Concat <axis = -1> (a, a)
        y = com.microsoft.GroupQueryAttention <num_heads = 4, kv_num_heads = 2, do_rotary = 1>
            (q, k, v, keys, values, lengths, total, cosines, sines)
        """,
    ),
}
"""Name -> inputs, and operators."""

NOT_COUNTED = {
    "segmentation": {"Resize": "it interpolates otherwise than linearly"},
    "dequantisation": {"DequantizeLinear": "its result follows from sizes and constants"},
}
"""Name -> operators that are not counted, and why. All others are layers, vector layers, or move words."""


def text_of(name: str) -> str:
    """Return a file in ONNX's text form, its operators in an order of execution."""
    inputs, body = FILES[name]
    calls = re.findall(r"[\w, ]+? = [\w.]+\s*(?:<[^>]*>)?\s*\([^)]*\)", body)
    waiting = [call.strip() for call in calls]
    made = {word.rpartition(" ")[2] for word in inputs.split(", ")}
    lines = list[str]()
    every = {result.strip() for call in waiting for result in call.partition("=")[0].split(",")}
    while waiting:
        ready = [call for call in waiting if not (set(re.findall(r"\w+", call.rpartition("(")[2])) & every) - made]
        lines.append(ready[0])
        waiting.remove(ready[0])
        made |= {result.strip() for result in ready[0].partition("=")[0].split(",")}
    head = '<ir_version: 10, opset_import: ["" : 24, "com.microsoft" : 1]>'
    return "\n".join([head, f"net ({inputs}) => (float y) {{", *(f"  {line}" for line in lines), "}"])


def write(name: str, folder: Path) -> Path:
    """Write a file, and return its path."""
    path = folder / f"{name}.onnx"
    model = parser.parse_model(text_of(name))
    model.graph.output[0].type.tensor_type.ClearField("shape")
    for number, node in enumerate(model.graph.node):
        node.name = f"{node.op_type}_{number}"
    path.write_bytes(model.SerializeToString())
    return path
