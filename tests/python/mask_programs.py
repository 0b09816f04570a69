"""Programs that compute attention masks, one for each way in which exporters spell them (docs/sources/export-patterns.md 7.1, 7.2), as
ONNX text, each in random spellings that mean the same. `PROGRAMS` has them by name.

A program is over dims batch, seq, past and total = past + seq. Its first output is the mask: an additive one (float), or a
boolean one (true = attend)."""

import random
import re

HEADER = """<ir_version: 8, opset_import: ["" : {opset}]>
m (int64[batch, seq] ids, float[batch, 2, past, 4] past_k, float[batch, 2, seq, 4] new_k{inputs})
  => ({kind}[{dims}] mask{keys})
<{constants}>
{{
{lines}
}}
"""


class Builder:
    """Writes nodes; every method gives the name of what it computes."""

    def __init__(self, seed, plain=False):
        self.random = random.Random(seed)
        self.plain = plain  # the first spelling of everything
        self.lines = []
        self.constants = {}
        self.inputs = {}
        self.count = 0
        self.integer = "int64" if plain or self.random.random() < 0.7 else "int32"
        self.low = self.choose([-3.4028235e38, "-inf", -1e9, -65504.0, -1e4])

    def choose(self, items):
        return items[0] if self.plain else self.random.choice(items)

    def name(self):
        self.count += 1
        return f"v{self.count}"

    def node(self, op, *inputs, **attributes):
        name = self.name()
        written = ", ".join(f"{k} = {v}" for k, v in attributes.items())
        self.lines.append(f"  {name} = {op} {'<' + written + '>' if written else ''} ({', '.join(inputs)})")
        return name

    def constant(self, value, kind=None):
        kind = kind or self.integer
        values = value if isinstance(value, list) else [value]
        shape = f"[{len(values)}]" if isinstance(value, list) else ""
        return self.tensor(kind + shape, values)

    def tensor(self, kind, values):
        text = f"{kind} {{}} = {{{{{', '.join(str(v) for v in values)}}}}}"
        if text not in self.constants:
            self.constants[text] = self.name()
        return self.constants[text]

    def input(self, name, kind):
        self.inputs[name] = kind
        return name

    # --- dims and places ---

    def dim(self, value, axis):
        """A dim as a scalar of the program's integer type."""
        size = self.node("Gather", self.node("Shape", value), self.constant(axis, "int64"), axis=0)
        return size if self.integer == "int64" else self.node("Cast", size, to=6)

    def seq(self):
        return self.dim("ids", 1)

    def past(self):
        return self.choose([lambda: self.dim("past_k", 2), lambda: self.node("Sub", self.dim("k", 2), self.seq())])()

    def total(self):
        return self.choose([lambda: self.dim("k", 2), lambda: self.node("Add", self.dim("past_k", 2), self.seq())])()

    def arange(self, start, end):
        """start, start + 1, ... end - 1"""
        if start is None:
            zero = self.constant(0)
            return self.choose([
                lambda: self.node("Range", zero, end, self.constant(1)),
                lambda: self.node("Sub", self.node("Range", self.constant(3), self.node("Add", end, self.constant(3)),
                                                   self.constant(1)), self.constant(3)),
                lambda: self.node("Sub", self.node("CumSum", self.expand(self.constant([1]), [end]),
                                                   self.constant(0, "int32")), self.constant(1)),
            ])()
        return self.choose([
            lambda: self.node("Range", start, end, self.constant(1)),
            lambda: self.node("Add", self.arange(None, self.node("Sub", end, start)), start),
        ])()

    def shape(self, *dims):
        parts = [self.unsqueeze(d, [0]) if isinstance(d, str) else self.constant([d]) for d in dims]
        joined = self.node("Concat", *parts, axis=0)
        return joined if self.integer == "int64" else self.node("Cast", joined, to=7)

    def expand(self, x, dims):
        return self.node("Expand", x, self.shape(*dims))

    def unsqueeze(self, x, axes):
        return self.node("Unsqueeze", x, self.constant(axes, "int64"))

    def column(self, x, rank=2):
        """[n] as [.., n, 1]"""
        return self.choose([
            lambda: self.unsqueeze(x, [1] if rank == 2 else [0, 1, 3]),
            lambda: self.node("Reshape", x, self.constant([1] * (rank - 2) + [-1, 1], "int64")),
        ])()

    def row(self, x, rank=2):
        """[n] as [.., 1, n]"""
        return self.unsqueeze(x, list(range(rank - 1)))

    # --- logic ---

    def at_most(self, a, b):
        one = self.constant(1)
        return self.choose([
            lambda: self.node("LessOrEqual", a, b),
            lambda: self.node("GreaterOrEqual", b, a),
            lambda: self.node("Not", self.node("Greater", a, b)),
            lambda: self.node("Not", self.node("Less", b, a)),
            lambda: self.node("Less", a, self.node("Add", b, one)),
            lambda: self.node("Greater", self.node("Sub", b, a), self.constant(-1)),
            lambda: self.node("LessOrEqual", self.node("Neg", b), self.node("Neg", a)),
        ])()

    def greater(self, a, b):
        return self.negated(lambda: self.at_most(a, b), lambda: self.node("Greater", a, b))

    def negated(self, positive, direct):
        return self.choose([direct, lambda: self.node("Not", positive())])()

    def both(self, a, b):
        return self.choose([
            lambda: self.node("And", a, b),
            lambda: self.node("And", b, a),
            lambda: self.node("Not", self.node("Or", self.node("Not", a), self.node("Not", b))),
            lambda: self.node("And", self.node("And", self.tensor("bool", [1]), a), self.node("And", b, a)),
            lambda: self.node("Cast", self.node("Where", a, self.node("Cast", b, to=7), self.constant(0, "int64")), to=9),
            lambda: self.node("Cast", self.node("Mul", self.node("Cast", a, to=6), self.node("Cast", b, to=6)), to=9),
        ])()

    def either(self, a, b):
        return self.choose([
            lambda: self.node("Or", a, b),
            lambda: self.node("Not", self.node("And", self.node("Not", a), self.node("Not", b))),
            lambda: self.node("Xor", self.node("Xor", a, b), self.node("And", a, b)),
        ])()

    def additive(self, keep):
        """0 where keep, minus infinity elsewhere; or keep itself."""
        zero = self.constant(0.0, "float")
        low = self.constant(self.low, "float")

        def linear():
            if self.low == "-inf":
                return self.node("Where", keep, zero, low)
            kept = self.node("Cast", keep, to=1)
            return self.node("Mul", self.node("Sub", self.constant(1.0, "float"), kept), low)

        return self.choose([
            lambda: self.node("Where", keep, zero, low),
            lambda: self.node("Where", self.node("Not", keep), low, zero),
            linear,
        ])()

    def padding(self):
        """attention_mask [batch, total], 1 = keep, as it is."""
        return self.input("attention_mask", f"int64[batch, total]")

    def kept(self, x):
        """x != 0"""
        return self.choose([
            lambda: self.node("Cast", x, to=9),
            lambda: self.node("Not", self.node("Equal", x, self.constant(0, "int64"))),
            lambda: self.node("Greater", x, self.constant(0, "int64")),
        ])()

    def filled(self, value, dims):
        return self.choose([
            lambda: self.expand(self.constant(value, "float"), dims),
            lambda: self.node("ConstantOfShape", self.shape(*dims), value=f"float[1] {{{value}}}"),
        ])()

    def causal(self):
        """[seq, total]: j <= i + past"""
        start = self.past()
        q = self.arange(start, self.total())
        return self.at_most(self.row(self.arange(None, self.total())), self.column(q))

    def text(self, result, kind="float", dims="batch, 1, seq, total", opset=17):
        """The model; its keys are total, or without a second output seq."""
        declared = ", ".join(text.format(name) for text, name in self.constants.items())
        inputs = "".join(f", {kind} {name}" for name, kind in self.inputs.items())
        lines = ["  k = Concat <axis = 2> (past_k, new_k)"] + self.lines + [f"  mask = Identity ({result})"]
        if "total" in dims:  # an attention: what an error-free run proves of its dims
            lines += ["  kt = Transpose <perm = [0, 1, 3, 2]> (k)", "  scores = MatMul (new_k, kt)",
                      f"  used = {'Where (mask, scores, scores)' if kind == 'bool' else 'Add (scores, mask)'}"]
        return HEADER.format(opset=opset, inputs=inputs, kind=kind, dims=dims,
                             keys=", float[batch, 2, total, 4] k" if "total" in dims else "", constants=declared, lines="\n".join(lines))


def tril(size):
    return [int(j <= i) for i in range(size) for j in range(size)]


def m1(b):
    """A buffer of ones below the diagonal, rows total - seq to total of it."""
    buffer = b.choose([lambda: b.tensor("bool[1, 1, 16, 16]", tril(16)),
                       lambda: b.node("Cast", b.tensor("uint8[1, 1, 16, 16]", tril(16)), to=9)])()
    one = lambda x: b.unsqueeze(x, [0])
    axis = lambda a: b.constant([a], "int64" if b.integer == "int64" else "int32")
    rows = b.node("Slice", buffer, one(b.past()), one(b.total()), axis(2))
    keep = b.node("Slice", rows, axis(0), one(b.total()), axis(3))
    return b.text(b.additive(keep), dims="1, 1, seq, total"), "causal_bottom_right"


def m1b(b):
    """The same buffer from row 0, and the exclusive or of two of them."""
    window = [int(i - 3 < j <= i) for i in range(16) for j in range(16)]
    buffer = b.choose([
        lambda: b.tensor("bool[1, 1, 16, 16]", window),
        lambda: b.node("Xor", b.tensor("bool[1, 1, 16, 16]", tril(16)),
                       b.tensor("bool[1, 1, 16, 16]", [int(j <= i - 3) for i in range(16) for j in range(16)])),
    ])()
    one = lambda x: b.unsqueeze(x, [0])
    axis = lambda a: b.constant([a])
    rows = b.node("Slice", buffer, axis(0), one(b.seq()), axis(2))
    keep = b.node("Slice", rows, axis(0), one(b.total()), axis(3))
    return b.text(b.additive(keep), dims="1, 1, seq, total"), "window"


def m1c(b):
    """1e4 * (1 - buffer) subtracted from what it multiplies: the part that is added."""
    buffer = b.tensor("float[1, 1, 16, 16]", [float(x) for x in tril(16)])
    one = lambda x: b.unsqueeze(x, [0])
    rows = b.node("Slice", buffer, one(b.past()), one(b.total()), b.constant([2]))
    keep = b.node("Slice", rows, b.constant([0]), one(b.total()), b.constant([3]))
    masked = b.node("Mul", b.constant(10000.0, "float"), b.node("Sub", b.constant(1.0, "float"), keep))
    return b.text(b.node("Neg", masked), dims="1, 1, seq, total"), "causal_bottom_right"


def m2(b):
    """transformers to 4.37: a triangle after zeros of the past."""
    seq = b.seq()
    r = b.arange(None, seq)
    below = b.choose([
        lambda: b.node("Less", b.row(r), b.node("Reshape", b.node("Add", r, b.constant(1)), b.shape(seq, 1))),
        lambda: b.at_most(b.row(r), b.column(r)),
    ])()
    full = b.filled(b.low, [seq, seq])
    block = b.node("Where", below, b.constant(0.0, "float"), full)
    wide = b.node("Concat", b.filled(0.0, [seq, b.past()]), block, axis=-1)
    mask = b.expand(b.unsqueeze(wide, [0, 1]), [b.dim("ids", 0), 1, seq, b.total()])
    return b.text(mask), "causal_bottom_right"


def m3(b):
    """triu_ of minus infinity."""
    seq = b.seq()
    mask = b.node("Trilu", b.filled(b.low, [seq, b.total()]), b.constant(1, "int64"), upper=1)
    return b.text(mask, dims="seq, total"), "causal_top_left"


def m4(b, window=0, gemma=False, with_padding=True, copies=True):
    """transformers 4.38 to 4.52: a triangle times what lies after the cache position."""
    low = -3.4028235e38 if b.low == "-inf" else b.low
    lowest = b.constant(low, "float")
    seq, past = b.seq(), b.past()
    longer = b.choose([lambda: b.total(), lambda: b.node("Add", b.total(), b.constant(1))])()
    t = b.filled(low, [seq, longer])
    if b.choose([True, False]) or b.plain:
        t = b.node("Trilu", t, b.constant(1, "int64"), upper=1)
    cache = b.column(b.arange(past, b.total()))
    row = b.arange(None, longer)
    behind = b.greater(row, cache)
    if window:
        behind = b.either(behind, b.at_most(row, b.node("Sub", cache, b.constant(window))))
        t = b.filled(low, [seq, longer])
    m = b.node("Mul", t, b.node("Cast", behind, to=1))
    e = b.expand(b.unsqueeze(m, [0, 1]), [b.dim("ids", 0), 1, -1, -1] if False else [b.dim("ids", 0), 1, 1, 1])
    if gemma:
        ones = b.expand(b.tensor("bool", [1]), [seq, longer])
        lower = b.node("Trilu", b.node("Cast", ones, to=6), b.constant(-3, "int64"), upper=0)
        e = b.node("Where", b.node("Cast", lower, to=9), lowest, e)
    cut = [b.constant([0]), b.unsqueeze(b.total(), [0]), b.constant([3])]
    if with_padding:
        am = b.unsqueeze(b.padding(), [1, 2])
        part = b.node("Slice", e, *cut)
        both = b.node("Add", part, b.node("Cast", am, to=1))
        w = b.node("Where", b.node("Equal", both, b.constant(0.0, "float")), lowest, part)
        if copies and b.choose([True, False]):
            whole = b.node("Transpose", w, perm="[3, 1, 2, 0]")
            base = b.node("Transpose", e, perm="[3, 1, 2, 0]")
            places = b.unsqueeze(b.arange(None, b.total()), [-1])
            places = places if b.integer == "int64" else b.node("Cast", places, to=7)
            w = b.node("Transpose", b.node("ScatterND", base, places, whole), perm="[3, 1, 2, 0]")
            w = b.node("Slice", w, *cut)
        e = w
    else:
        e = b.node("Slice", e, *cut)
    edge = "window" if window or gemma else "causal_bottom_right"
    return b.text(e), edge + ("+padding" if with_padding else "")


def m5(b, window=0, packed=False):
    """transformers from 4.53 on: comparisons of places, and the padding gathered by batch and place."""
    q = b.column(b.arange(b.past(), b.total()), 4)
    kv = b.row(b.arange(None, b.total()), 4)
    keep = b.at_most(kv, q)
    if window:
        keep = b.both(keep, b.greater(kv, b.node("Sub", q, b.constant(window))))
    batch = b.arange(None, b.dim("ids", 0))
    am = b.padding()
    size = b.shape(b.dim("ids", 0), 1, 1, b.total())
    places = [b.expand_to(b.unsqueeze(batch, [1, 2, 3]), size), b.expand_to(kv, size)]
    def gather_nd(x):
        index = b.node("Concat", *[b.unsqueeze(p, [-1]) for p in places], axis=-1)
        return b.node("GatherND", x, index if b.integer == "int64" else b.node("Cast", index, to=7))
    def gather_flat(x):
        width = b.dim("attention_mask", 1)
        flat = b.node("Add", b.node("Mul", b.unsqueeze(batch, [1, 2, 3]), width), kv)
        return b.node("Gather", b.node("Reshape", x, b.constant([-1], "int64")), flat, axis=0)
    def direct(x):
        return b.unsqueeze(x, [1, 2])
    look = b.choose([gather_nd, gather_flat, direct])
    keep = b.both(keep, look(b.kept(am)))
    if packed:
        zeros = b.expand(b.constant([0]), [b.dim("ids", 0), b.total()])
        keep = b.both(keep, b.node("Equal", look(zeros), look(zeros)))
    word = ("window" if window else "causal_bottom_right") + "+padding"
    if b.choose([True, False]):
        keep = b.expand(keep, [b.dim("ids", 0), 1, b.seq(), b.total()])
    if b.choose([False, True]):
        return b.text(keep, kind="bool"), word
    return b.text(b.additive(keep)), word


def m6(b):
    """is_causal of SDPA."""
    ones = b.filled(1.0, [b.seq(), b.total()])
    lower = b.node("Trilu", ones, upper=0)
    zero = b.node("Equal", lower, b.constant(0.0, "float"))
    return b.text(b.node("Where", zero, b.constant(b.low, "float"), b.constant(0.0, "float")), dims="seq, total"), "causal_top_left"


def m7(b):
    """BERT as a decoder: a prefix of ones before the triangle, times the padding."""
    seq = b.seq()
    r = b.arange(None, seq)
    below = b.at_most(b.node("Tile", b.row(r, 3), b.shape(b.dim("ids", 0), seq, 1)), b.column_of(r))
    kind = b.choose([7, 1])
    below = b.node("Cast", below, to=kind)
    ones = b.expand(b.constant([1.0] if kind == 1 else [1], "float" if kind == 1 else "int64"), [b.dim("ids", 0), seq, b.past()])
    wide = b.node("Concat", ones, below, axis=-1)
    am = b.padding()
    am = am if kind == 7 else b.node("Cast", am, to=1)
    both = b.node("Mul", b.unsqueeze(wide, [1]), b.unsqueeze(am, [1, 2]))
    both = both if kind == 1 else b.node("Cast", both, to=1)
    low = -3.4028235e38 if b.low == "-inf" else b.low
    inverse = b.node("Sub", b.constant(1.0, "float"), both)
    return b.text(b.node("Mul", inverse, b.constant(low, "float"))), "causal_bottom_right+padding"


def m8(b):
    """TensorFlow: i >= j - total + seq."""
    i = b.column(b.arange(None, b.seq()))
    j = b.row(b.arange(None, b.total()))
    keep = b.at_most(b.node("Add", b.node("Sub", j, b.total()), b.seq()), i)
    return b.text(b.additive(keep), dims="seq, total"), "causal_bottom_right"


def m8b(b):
    """band_part of TensorFlow: a count over all elements, split into row and column."""
    seq, total = b.seq(), b.total()
    count = b.node("Mul", seq, total)
    ones = b.expand(b.constant([1]), [count])
    index = b.node("CumSum", ones, b.constant(0, "int32"), exclusive=1)
    index = b.node("Reshape", index, b.shape(seq, total))
    row, column = b.node("Div", index, total), b.node("Mod", index, total)
    keep = b.node("Not", b.node("Greater", b.node("Sub", column, row), b.constant(0)))
    return b.text(b.additive(keep), dims="seq, total"), "causal_top_left"


def m9(b):
    """Keras 3: sums of ones compared."""
    ones = b.expand(b.constant([1]), [1, b.seq(), b.total()])
    row = b.node("CumSum", ones, b.constant(-2, "int32"))
    column = b.node("CumSum", ones, b.constant(-1, "int32"))
    return b.text(b.additive(b.at_most(column, row)), dims="1, seq, total"), "causal_top_left"


def m10(b):
    """Paddle: (tril(ones) - 1) * 1e4"""
    lower = b.node("Trilu", b.filled(1.0, [b.seq(), b.total()]), upper=0)
    mask = b.node("Mul", b.node("Add", lower, b.constant(-1.0, "float")), b.constant(10000.0, "float"))
    return b.text(mask, dims="seq, total"), "causal_top_left"


def m11(b):
    """The body of ONNX's Attention with is_causal and a cache."""
    q = b.node("Add", b.column(b.arange(None, b.seq())), b.past())
    masked = b.greater(b.row(b.arange(None, b.total())), q)
    return b.text(b.node("Where", masked, b.constant("-inf", "float"), b.constant(0.0, "float")), dims="seq, total"), "causal_bottom_right"


def trilu_of_diagonal(b):
    """tril (diagonal = total - seq), as a tensor; optimum's, written out."""
    offset = b.node("Sub", b.total(), b.seq())
    if b.choose([True, False]):
        ones = b.filled(1.0, [b.seq(), b.total()])
        k = offset if b.integer == "int64" else b.node("Cast", offset, to=7)
        lower = b.node("Trilu", ones, k, upper=0)
    else:
        columns = b.expand_to(b.row(b.arange(None, b.total())), b.shape(b.seq(), b.total()))
        kept = b.at_most(columns, b.node("Add", b.column(b.arange(None, b.seq())), offset))
        lower = b.node("Cast", kept, to=1)
    return b.text(b.additive(b.node("Cast", lower, to=9)), dims="seq, total"), "causal_bottom_right"


def m12(b):
    """BLOOM, MPT: the triangle written into a slice of zeros."""
    seq = b.seq()
    r = b.arange(None, seq)
    masked = b.node("Less", b.column(r), b.row(r))
    zeros = b.expand(b.tensor("bool", [0]), [seq, b.total()])
    if b.choose([True, False]):
        places = b.unsqueeze(b.arange(b.past(), b.total()), [-1])
        places = places if b.integer == "int64" else b.node("Cast", places, to=7)
        flipped = b.node("ScatterND", b.node("Transpose", b.node("Cast", zeros, to=6), perm="[1, 0]"), places,
                         b.node("Transpose", b.node("Cast", masked, to=6), perm="[1, 0]"))
        whole = b.node("Cast", b.node("Transpose", flipped, perm="[1, 0]"), to=9)
    else:
        size = b.shape(seq, seq, 1)
        rows = b.expand_to(b.unsqueeze(r, [1, 2]), size)
        columns = b.expand_to(b.unsqueeze(b.arange(b.past(), b.total()), [0, 2]), size)
        places = b.node("Concat", rows, columns, axis=-1)
        places = places if b.integer == "int64" else b.node("Cast", places, to=7)
        whole = b.node("Cast", b.node("ScatterND", b.node("Cast", zeros, to=6), places, b.node("Cast", masked, to=6)), to=9)
    if b.choose([False, True]):
        am = b.unsqueeze(b.kept(b.padding()), [1, 2])
        whole = b.either(whole, b.node("Not", am))
        return b.text(b.additive(b.node("Not", whole))), "causal_bottom_right+padding"
    return b.text(b.additive(b.node("Not", whole)), dims="seq, total"), "causal_bottom_right"


def m13(b):
    """A static cache: the offset is data."""
    position = b.input("cache_position", "int64[seq]")
    position = position if b.integer == "int64" else b.node("Cast", position, to=6)
    keep = b.at_most(b.row(b.arange(None, b.total())), b.column(position))
    return b.text(b.additive(keep), dims="seq, total"), "explicit"


def m14(b):
    """Llama 4: chunks."""
    q = b.column(b.arange(b.past(), b.total()))
    kv = b.row(b.arange(None, b.total()))
    three = b.constant(3)
    keep = b.both(b.node("Equal", b.node("Div", kv, three), b.node("Div", q, three)), b.at_most(kv, q))
    return b.text(b.additive(keep), dims="seq, total"), "causal_bottom_right+chunk"


def m15(b):
    """Prefix LM: the first keys are seen by all."""
    q = b.column(b.arange(b.past(), b.total()))
    kv = b.row(b.arange(None, b.total()))
    if b.choose([True, False]):
        prefix = b.input("prefix", "int64[1]")
        prefix = prefix if b.integer == "int64" else b.node("Cast", prefix, to=6)
    else:
        prefix = b.constant([2])
    keep = b.either(b.at_most(kv, q), b.node("Less", kv, prefix))
    return b.text(b.additive(keep), dims="seq, total"), "prefix"


def m15b(b):
    """Blocks of images: keys of the query's own block."""
    q = b.column(b.arange(b.past(), b.total()))
    kv = b.row(b.arange(None, b.total()))
    block = b.input("block", "int64[total]")
    of_query = b.node("Gather", block, q, axis=0)
    of_key = b.node("Gather", block, kv, axis=0)
    same = b.node("And", b.node("Equal", of_query, of_key), b.node("Greater", of_query, b.constant(-1, "int64")))
    return b.text(b.additive(b.either(b.at_most(kv, q), same)), dims="seq, total"), "explicit"


def m16(b):
    """ModernBERT: |i - j| <= w"""
    q = b.column(b.arange(None, b.seq()))
    kv = b.row(b.arange(None, b.seq()))
    distance = b.node("Abs", b.node("Sub", q, kv))
    keep = b.at_most(distance, b.constant(2))
    return b.text(b.additive(keep), dims="seq, seq"), "window"


def m17(b):
    """Segments: equal numbers of query and key."""
    segment = b.input("segment", "int64[batch, seq]")
    same = b.node("Equal", b.unsqueeze(segment, [1, 3]), b.unsqueeze(segment, [1, 2]))
    return b.text(b.additive(same), dims="batch, 1, seq, seq"), "explicit"


def m18(b):
    """Any constant."""
    values = [b.random.randint(0, 1) for _ in range(256)]
    buffer = b.tensor("bool[16, 16]", values)
    one = lambda x: b.unsqueeze(x, [0])
    keep = b.node("Slice", b.node("Slice", buffer, b.constant([0]), one(b.seq()), b.constant([0])), b.constant([0]),
                  one(b.total()), b.constant([1]))
    return b.text(b.additive(keep), dims="seq, total"), "explicit"


def m19(b):
    """A bias of relative places (T5), with the triangle added."""
    bias = b.input("bias", "float[1, 1, seq, total]")
    return b.text(b.node("Add", bias, b.additive(b.causal()))), "causal_bottom_right+bias"


def m20(b):
    """Decode: one query sees all keys."""
    kv = b.row(b.arange(None, b.total()))
    last = b.unsqueeze(b.node("Sub", b.total(), b.constant(1)), [0])
    keep = b.at_most(kv, b.column(last))
    return b.text(b.additive(keep), dims="1, total"), "none"


def d1(b):
    """BERT: (1 - mask) * min"""
    am = b.node("Cast", b.unsqueeze(b.padding(), [1, 2]), to=1)
    low = -3.4028235e38 if b.low == "-inf" else b.low
    mask = b.choose([
        lambda: b.node("Mul", b.node("Sub", b.constant(1.0, "float"), am), b.constant(low, "float")),
        lambda: b.node("Mul", b.node("Sub", am, b.constant(1.0, "float")), b.constant(-low, "float")),
        lambda: b.node("Mul", b.constant(low, "float"), b.node("Add", b.node("Neg", am), b.constant(1.0, "float"))),
    ])()
    return b.text(mask, dims="batch, 1, 1, total"), "padding"


def d2(b):
    """_expand_mask: the fill where the inverted mask is not 0, else the inverted mask."""
    am = b.expand(b.unsqueeze(b.padding(), [1, 2]), [b.dim("ids", 0), 1, b.seq(), b.total()])
    inverse = b.node("Sub", b.constant(1.0, "float"), b.node("Cast", am, to=1))
    low = b.constant(b.low, "float")
    mask = b.node("Where", b.node("Cast", inverse, to=9), low, inverse)
    if b.choose([False, True]) and b.low != "-inf":
        mask = b.node("Add", mask, b.additive(b.causal()))
        return b.text(mask), "causal_bottom_right+padding"
    return b.text(mask), "padding"


def d3(b):
    """DistilBERT: the fill where the mask is 0."""
    am = b.unsqueeze(b.padding(), [1, 2])
    zero = b.node("Equal", am, b.constant(0, "int64"))
    return b.text(b.node("Where", zero, b.constant(b.low, "float"), b.constant(0.0, "float")), dims="batch, 1, 1, total"), "padding"


def d7(b):
    """key_padding_mask of nn.MultiheadAttention: true = masked."""
    masked = b.unsqueeze(b.input("padded", "bool[batch, total]"), [1, 2])
    mask = b.node("Where", masked, b.constant(b.low, "float"), b.constant(0.0, "float"))
    if b.choose([True, False]):
        triangle = b.node("Trilu", b.filled(b.low, [b.seq(), b.total()]), b.constant(1, "int64"), upper=1)
        return b.text(b.node("Add", triangle, mask)), "causal_top_left+padding"
    return b.text(mask, dims="batch, 1, 1, total"), "padding"


def d8(b):
    """Merged by Add: minus infinity where both mask, and clamped to the smallest number again."""
    am = b.node("Where", b.unsqueeze(b.kept(b.padding()), [1, 2]), b.constant(0.0, "float"), b.constant(b.low, "float"))
    mask = b.node("Add", b.additive(b.causal()), am)
    if b.choose([False, True]):
        mask = b.node("Max", mask, b.constant(-3.4028235e38, "float"))
    return b.text(mask), "causal_bottom_right+padding"


def d9(b):
    """Merged by Min."""
    am = b.node("Where", b.unsqueeze(b.kept(b.padding()), [1, 2]), b.constant(0.0, "float"), b.constant(b.low, "float"))
    return b.text(b.node("Min", am, b.additive(b.causal()))), "causal_bottom_right+padding"


def d10(b):
    """DeBERTa: padded rows too."""
    am = b.input("mask_of_both", "int64[batch, seq]")
    both = b.node("Mul", b.unsqueeze(am, [1, 2]), b.unsqueeze(am, [1, 3]))
    return b.text(b.additive(b.node("Cast", both, to=9)), dims="batch, 1, seq, seq"), "padding+query_padding"


def d11(b):
    """_unmask_unattended: a row without any key attends to all."""
    am = b.unsqueeze(b.kept(b.padding()), [1, 2])
    low = -3.4028235e38 if b.low == "-inf" else b.low
    keep = b.both(b.causal(), am)
    mask = b.node("Where", keep, b.constant(0.0, "float"), b.constant(low, "float"))
    full = b.node("ReduceMin", b.node("Cast", b.node("Equal", mask, b.constant(low, "float")), to=6), axes="[-1]", keepdims=1)
    mask = b.node("Mul", mask, b.node("Cast", b.node("Not", b.node("Cast", full, to=9)), to=1))
    return b.text(mask), "explicit"


def d13(b):
    """Mask2Former: a mask of the user's by query, where a row without any key is opened."""
    masked = b.input("given", "bool[batch, 1, seq, total]")
    count = b.node("ReduceSum", b.node("Cast", masked, to=7), b.constant([-1], "int64"), keepdims=1)
    total = b.node("Gather", b.node("Shape", "k"), b.constant(2, "int64"), axis=0)
    masked = b.node("And", masked, b.node("Not", b.node("Equal", count, total)))
    return b.text(b.additive(b.node("Not", masked))), "explicit"


def d14(b):
    """A mask of the user's."""
    return b.choose([
        lambda: (b.text(b.input("given", "bool[batch, 1, seq, total]"), kind="bool"), "explicit"),
        lambda: (b.text(b.input("given", "float[batch, 1, seq, total]")), "bias"),
    ])()


def d15(b):
    """Lengths."""
    lengths = b.input("lengths", "int64[batch]")
    lengths = lengths if b.integer == "int64" else b.node("Cast", lengths, to=6)
    keep = b.greater(b.unsqueeze(lengths, [1, 2, 3]), b.row(b.arange(None, b.total()), 4))
    return b.text(b.additive(keep), dims="batch, 1, 1, total"), "padding"


def log_of_mask(b):
    keep = b.node("Cast", b.causal(), to=1)
    return b.text(b.node("Log", keep), dims="seq, total"), "causal_bottom_right"


def padded_triangle(b):
    """A triangle with a Pad of zeros for the past before it."""
    seq = b.seq()
    block = b.node("Trilu", b.filled(b.low, [seq, seq]), b.constant(1, "int64"), upper=1)
    zero = b.constant([0], "int64")
    past = b.unsqueeze(b.past(), [0])
    past = past if b.integer == "int64" else b.node("Cast", past, to=7)
    pads = b.node("Concat", zero, past, zero, zero, axis=0)
    return b.text(b.node("Pad", block, pads), dims="seq, total"), "causal_bottom_right"


def swin(b):
    """-100 is a bias."""
    return b.text(b.node("Where", b.causal(), b.constant(0.0, "float"), b.constant(-100.0, "float")), dims="seq, total"), "bias"


def _expand_to(self, x, shape):
    return self.node("Expand", x, shape)


def _column_of(self, x):
    return self.unsqueeze(x, [0, 2])


Builder.expand_to = _expand_to
Builder.column_of = _column_of

PROGRAMS = {
    "m1": m1, "m1b": m1b, "m1c": m1c, "m2": m2, "m3": m3, "m4": m4,
    "m4_without_padding": lambda b: m4(b, with_padding=False),
    "m4w": lambda b: m4(b, window=3), "m4g": lambda b: m4(b, gemma=True),
    "m5": m5, "m5_window": lambda b: m5(b, window=3), "m5p": lambda b: m5(b, packed=True),
    "m6": m6, "m7": m7, "m8": m8, "m8b": m8b, "m9": m9, "m10": m10, "m11": m11, "m12": m12, "m13": m13, "m14": m14, "m15": m15,
    "m15b": m15b, "m16": m16, "m17": m17, "m18": m18, "m19": m19, "m20": m20,
    "d1": d1, "d2": d2, "d3": d3, "d7": d7, "d8": d8, "d9": d9, "d10": d10, "d11": d11, "d13": d13, "d14": d14, "d15": d15,
    "log": log_of_mask, "pad": padded_triangle, "trilu": trilu_of_diagonal, "swin": swin,
}


def where_masked(b, masked, op, other, kind="int32"):
    """`masked` where a key is masked and 0 elsewhere, in integers, with `op` and another number after it."""
    x = b.node("Where", b.causal(), b.constant(0, kind), b.constant(masked, kind))
    return b.node(op, x, x if other is None else b.constant(other, kind))


def below_zero(b, x):
    return b.node("Where", b.node("Less", x, b.constant(0, "int8")), b.constant(0.0, "float"), b.constant(-1e9, "float"))


# Programs that mean something else than they would if integers did not end: nothing of them may be wrong.
WRAPPING = {
    "sum": lambda b: b.node("Cast", where_masked(b, -2147483648, "Add", None), to=1),
    "product": lambda b: b.node("Cast", where_masked(b, -65536, "Mul", 65536), to=1),
    "long_product": lambda b: b.node("Cast", where_masked(b, -4294967296, "Mul", 4294967296, "int64"), to=1),
    "difference": lambda b: b.node("Cast", where_masked(b, -2147483648, "Sub", 1), to=1),
    "bytes": lambda b: below_zero(b, where_masked(b, 100, "Mul", 2, "int8")),
    "cast": lambda b: below_zero(b, b.node("Cast", where_masked(b, 200, "Add", 0), to=3)),
    "negative": lambda b: b.node("Cast", b.node("Neg", b.node("Abs", where_masked(b, -2147483648, "Add", 0))), to=1),
}


def write_wrapping(name):
    """The program as text."""
    builder = Builder(name, plain=True)
    return builder.text(WRAPPING[name](builder), dims="seq, total")


def write(name, seed, plain=False):
    """The program in one of its spellings: text, and the word for what it means."""
    builder = Builder(f"{name} {seed}", plain)
    return PROGRAMS[name](builder)


def mutate(text, seed):
    """The program with one thing changed: an operator, the order of its operands, a constant. It may not run any more."""
    chance = random.Random(seed)
    lines = text.split("\n")
    others = {"Less": "LessOrEqual", "LessOrEqual": "Less", "Greater": "GreaterOrEqual", "GreaterOrEqual": "Greater",
              "And": "Or", "Or": "And", "Add": "Sub", "Sub": "Add", "Max": "Min", "Min": "Max"}
    for _ in range(50):
        at = chance.randrange(len(lines))
        line = lines[at]
        node = re.match(r"  (\w+) = (\w+) (<.*> |)\s*\((\w+), (\w+)(.*)\)$", line)
        if line.startswith("<") and "int64" in line and "ir_version" not in line:
            numbers = list(re.finditer(r"(int64|int32) (\w+) = \{(-?\d+)\}", line))
            if not numbers:
                continue
            number = chance.choice(numbers)
            changed = f"{number[1]} {number[2]} = {{{int(number[3]) + chance.choice([-1, 1])}}}"
            lines[at] = line[:number.start()] + changed + line[number.end():]
        elif node and node[2] in others and chance.random() < 0.6:
            lines[at] = f"  {node[1]} = {others[node[2]]} {node[3]} ({node[4]}, {node[5]}{node[6]})"
        elif node and node[2] in others or node and node[2] in ("Equal", "Range", "Mul"):
            lines[at] = f"  {node[1]} = {node[2]} {node[3]} ({node[5]}, {node[4]}{node[6]})"
        elif node and node[2] == "Where" and node[6].startswith(", "):
            lines[at] = f"  {node[1]} = Where {node[3]} ({node[4]}, {node[6][2:]}, {node[5]})"
        elif "upper = " in line:
            lines[at] = re.sub("upper = [01]", f"upper = {chance.randrange(2)}", line)
        else:
            continue
        return "\n".join(lines)
    return text
