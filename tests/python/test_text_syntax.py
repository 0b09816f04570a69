"""Our reading and writing of ONNX text against the official parser and printer of the onnx package.

The models are every text that ours and theirs both must understand. ASCEND_FUSE_BUILD names the build folder.
"""

import os
import pathlib
import subprocess
import unittest

try:
    import numpy
    import onnx
    import onnx.parser
    import onnx.printer
except ImportError:
    onnx = None

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOOL = pathlib.Path(os.environ.get("ASCEND_FUSE_BUILD", ROOT / "build")) / "tests" / "text_tool"
HEADER = '<ir_version: 8, opset_import: ["" : 17, "npu" : 1]>\n'

MODELS = {
    "empty": HEADER + "g () => () {}",
    "header": '<ir_version: 10, opset_import: ["" : 23], producer_name: "p\\"q", producer_version: "1">\n'
    "g (float x) => (float x) {}",
    "rms_norm": HEADER + """
# A comment.
llama (float16[B, S, 64] x, float16[64] gamma) => (float16[B, S, 64] y)
<float two = {2}, float eps = {0.000001}, float[B, S, 64] h>
{
  h = Cast <to = 1> (x)
  [sq] sq = Pow (h, two)
  ms = ReduceMean <axes = [-1]> (sq)
  ve = Add (ms, eps)
  "a/b" = Sqrt (ve)
  rstd = Reciprocal ("a/b")
  hn = Mul (h, rstd)
  n = Cast <to = 10> (hn)
  y = Mul (gamma, n)
}""",
    "attributes": HEADER + """
g (float[N] x) => (y) {
  a = Op <i = 3, neg = -4, f = 2.5, e = 1e-7, s = "a \\"b\\" \\\\ c", is = [1, -2], fs = [1.5, 2.0],
          ss = ["u", ""], none : ints = [], nof : floats = [], typed : float = 2, inf = inf, ninf = -inf> (x)
  b = Op <t = int64[2] {1, -2}, u = float {1.5}, named = float[2] w {1.0, 2.0}, ty = float[N, 3], p = seq(int64[])> (a)
  y = a.b.Op (b, , x, "")
}""",
    "constants": HEADER + """
g () => () <
  float[2, 3] f = {1, 2.5, -0.1, 1e30, -1e-30, 0.333333343}, double d = {0.1}, int8[2] i8 = {-128, 127},
  uint8[1] u8 = {255}, int16[1] i16 = {-32768}, uint16[1] u16 = {65535}, int32[1] i32 = {-2147483648},
  int64[2] i64 = {-9223372036854775808, 9223372036854775807}, uint32[1] u32 = {4294967295},
  uint64[1] u64 = {18446744073709551615}, bool[2] b = {0, 1}, float16[2] h = {15360, 64512},
  bfloat16[1] bf = {16256}, float8e4m3fn[1] f8 = {56}, string[2] s = {"a", "b\\"c"}, float[0] none = {},
  float[4] w = ["location": "w.bin", "offset": "16", "length": "16"]> {}""",
    "bodies": HEADER + """
g (bool c, float[2] x) => (float[2] y) {
  y = If (c) <then_branch = yes () => (float[2] z) <float one = {1}> { z = Add (x, one) },
              else_branch = no () => (float[2] z) { [inner] z = Loop (x) <body = deep (q) => (q) {}> }>
}""",
    "types": HEADER + """
g (seq(float[2]) a, map(int64, float[N]) b, optional(float[]) c, sparse_tensor(float[2]) d, float[?, "s15 + s70", 3] e,
   untyped) => (f) { f = Op (a, b, c, d, e, untyped) }""",
    "functions": HEADER + """
g (float[N] x) => (y) { y = local.pkg.Norm <eps = 0.5> (x) }
<domain: "local.pkg", opset_import: ["" : 17]>
Norm <axis, eps : float = 0.000001> (x) => (y)
{
  e = Constant <value_float : float = @eps> ()
  y = Add (x, e)
}""",
    "quoted": HEADER + '"main graph" (float["batch size"] "x:0") => ("y.1") { ["n/1"] "y.1" = Relu ("x:0") }',
}


def run(mode, text):
    done = subprocess.run([TOOL, mode], input=text.encode(), capture_output=True, check=False)
    if done.returncode != 0:
        raise AssertionError(f"{done.stderr.decode()}\nin\n{text}")
    return done.stdout


def canonical(model):
    """The message with constants as raw bytes, and without what text cannot tell: empty strings that are set."""

    def tensor(t):
        if t.data_location == onnx.TensorProto.EXTERNAL or t.data_type == onnx.TensorProto.STRING:
            return
        array = onnx.numpy_helper.to_array(t)
        name = t.name
        t.CopyFrom(onnx.numpy_helper.from_array(numpy.asarray(array), name))

    def node(n):
        for field in ("name", "domain", "overload"):
            if n.HasField(field) and getattr(n, field) == "":
                n.ClearField(field)
        for a in n.attribute:
            attribute(a)

    def attribute(a):
        if a.type == onnx.AttributeProto.FLOAT:
            a.ClearField("i")  # the official parser leaves the 2 of `a : float = 2` there as well
        if a.HasField("t"):
            tensor(a.t)
            if a.t.HasField("name") and not a.t.name:
                a.t.ClearField("name")
        if a.HasField("g"):
            graph(a.g)

    def graph(g):
        for t in g.initializer:
            tensor(t)
        for n in g.node:
            node(n)

    graph(model.graph)
    for function in model.functions:
        for n in function.node:
            node(n)
        for a in function.attribute_proto:
            attribute(a)
    return model


@unittest.skipIf(onnx is None, "the onnx package is not installed")
@unittest.skipIf(not TOOL.exists(), f"{TOOL} is not built")
class TextSyntaxTest(unittest.TestCase):
    maxDiff = None

    def test_we_read_text_as_the_official_parser_does(self):
        for name, text in MODELS.items():
            with self.subTest(name):
                official = canonical(onnx.parser.parse_model(text))
                ours = canonical(onnx.load_from_string(run("encode", text)))
                self.assertEqual(str(official), str(ours))

    def test_the_official_parser_reads_our_text(self):
        for name, text in MODELS.items():
            with self.subTest(name):
                printed = run("print", text).decode()
                official = canonical(onnx.parser.parse_model(text))
                again = canonical(onnx.parser.parse_model(printed))
                self.assertEqual(str(official), str(again), printed)

    def test_we_read_the_official_printer(self):
        for name, text in MODELS.items():
            if name in ("constants", "functions"):  # it leaves out float16 elements and attribute defaults
                continue
            with self.subTest(name):
                official = onnx.parser.parse_model(text)
                printed = onnx.printer.to_text(official)
                ours = canonical(onnx.load_from_string(run("encode", printed)))
                self.assertEqual(str(canonical(official)), str(ours), printed)


if __name__ == "__main__":
    unittest.main()
