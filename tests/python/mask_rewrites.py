"""Random changes of a program that keep what it computes: other comparisons, De Morgan, other types, and moves of data that
come back to where they began. Written without regard to what the analysis of masks can follow."""

import random

import numpy as np
import onnx
import onnx.helper
import onnx.numpy_helper
import onnx.parser
import onnx.shape_inference

BOOL, FLOAT, INT32, INT64 = (onnx.TensorProto.BOOL, onnx.TensorProto.FLOAT, onnx.TensorProto.INT32,
                             onnx.TensorProto.INT64)
NUMBERS = {FLOAT: np.float32, INT32: np.int32, INT64: np.int64, BOOL: np.bool_}
INTEGERS = (INT32, INT64)
END = 2**63 - 1  # of an axis, as exporters write it


class Rewriter:
    """Replaces nodes of one model by others; `kinds` has the element type and rank of each value."""

    def __init__(self, model, seed):
        self.random = random.Random(f"rewrite {seed}")
        self.graph = model.graph
        self.new = []
        self.count = 0
        inferred = onnx.shape_inference.infer_shapes(model, strict_mode=False).graph
        self.kinds = {}
        for value in (*inferred.input, *inferred.value_info, *inferred.output):
            tensor = value.type.tensor_type
            if tensor.elem_type and tensor.HasField("shape"):
                self.kinds[value.name] = (tensor.elem_type, len(tensor.shape.dim))
        for tensor in self.graph.initializer:
            self.kinds[tensor.name] = (tensor.data_type, len(tensor.dims))

    def name(self):
        self.count += 1
        return f"r{self.count}"

    def node(self, op, *inputs, output=None, **attributes):
        made = onnx.helper.make_node(op, inputs, [output or self.name()], **attributes)
        self.new.append(made)
        return made.output[0]

    def constant(self, value, kind):
        name = self.name()
        self.graph.initializer.append(onnx.numpy_helper.from_array(np.array(value, NUMBERS[kind]), name))
        return name

    def type_of(self, name):
        return self.kinds.get(name, (0, 0))[0]

    def rank_of(self, name):
        return self.kinds.get(name, (0, 0))[1]

    # --- nodes ---

    def comparison(self, op, a, b, output):
        """a <= b, a < b, a >= b or a > b; None where they are of no known type."""
        if op in ("GreaterOrEqual", "Greater"):
            op, a, b = {"GreaterOrEqual": "LessOrEqual", "Greater": "Less"}[op], b, a
        strict = op == "Less"
        ways = [
            lambda: self.node("Not", self.node("GreaterOrEqual" if strict else "Greater", a, b), output=output),
            lambda: self.node("Greater" if strict else "GreaterOrEqual", b, a, output=output),
        ]
        kind = self.type_of(a)
        if kind in INTEGERS:
            one = lambda: self.constant(self.random.choice([1, [1]]) if self.rank_of(a) or self.rank_of(b) else 1, kind)
            ways += [
                lambda: self.node("LessOrEqual", self.node("Add", a, one()), b, output=output) if strict
                else self.node("Less", a, self.node("Add", b, one()), output=output),
                lambda: self.node(op, self.node("Sub", a, b), self.constant(0, kind), output=output),
                lambda: self.node(op, self.node("Neg", b), self.node("Neg", a), output=output),
                lambda: self.node(op, *(self.node("Cast", x, to=FLOAT) for x in (a, b)), output=output),
                lambda: self.node(op, *(self.node("Add", x, self.constant(17, kind)) for x in (a, b)), output=output),
                lambda: self.node(op, *(self.node("Mul", x, self.constant(3, kind)) for x in (a, b)), output=output),
            ]
            if not strict:  # a <= b where the larger one is b
                ways.append(lambda: self.node("Equal", self.node("Max", a, b), b, output=output))
        return self.random.choice(ways)()

    def logic(self, op, a, b, output):
        other = "Or" if op == "And" else "And"
        fold = "Min" if op == "And" else "Max"
        ways = [
            lambda: self.node(op, b, a, output=output),
            lambda: self.node("Not", self.node(other, self.node("Not", a), self.node("Not", b)), output=output),
            lambda: self.node("Cast", self.node(fold, *(self.node("Cast", x, to=INT32) for x in (a, b))), to=BOOL, output=output),
            lambda: self.node(op, self.node(op, a, b), a, output=output),
            lambda: self.node("Xor", self.node("Xor", a, b), self.node(other, a, b), output=output),
        ]
        if op == "Or":
            ways.append(lambda: self.node("Greater", self.node("Add", *(self.node("Cast", x, to=FLOAT) for x in (a, b))),
                                          self.constant(0.5, FLOAT), output=output))
        return self.random.choice(ways)()

    def replaced(self, node):
        """Whether nodes that compute the same were made in place of it."""
        op, inputs, output = node.op_type, list(node.input), node.output[0]
        if op in ("Less", "LessOrEqual", "Greater", "GreaterOrEqual"):
            self.comparison(op, *inputs, output)
        elif op in ("And", "Or"):
            self.logic(op, *inputs, output)
        elif op == "Not":
            self.random.choice([
                lambda: self.node("Xor", inputs[0], self.constant(True, BOOL), output=output),
                lambda: self.node("Equal", inputs[0], self.constant(False, BOOL), output=output),
                lambda: self.node("Equal", self.node("Cast", inputs[0], to=INT32), self.constant(0, INT32), output=output),
            ])()
        elif op == "Where":
            self.node("Where", self.node("Not", inputs[0]), inputs[2], inputs[1], output=output)
        elif op == "Sub" and self.type_of(inputs[0]) in (FLOAT, *INTEGERS):
            self.node("Add", inputs[0], self.node("Neg", inputs[1]), output=output)
        elif op in ("Add", "Mul") and self.type_of(inputs[0]) in (FLOAT, *INTEGERS):
            self.node(op, inputs[1], inputs[0], output=output)
        elif op == "Cast" and self.type_of(inputs[0]) == BOOL and node.attribute[0].i in (FLOAT, *INTEGERS):
            to = node.attribute[0].i
            self.node("Where", inputs[0], self.constant(1, to), self.constant(0, to), output=output)
        else:
            return False
        return True

    # --- moves that come back ---

    def moved(self, x, output):
        """x, along another way."""
        kind, rank = self.kinds[x]
        ways = [
            lambda: self.node("Reshape", x, self.node("Shape", x), output=output, allowzero=1),
            lambda: self.node("Expand", x, self.node("Shape", x), output=output),
            lambda: self.node("Squeeze", self.node("Unsqueeze", x, self.constant([rank], INT64)),
                              self.constant([-1], INT64), output=output),
        ]
        if rank:
            axis = self.random.randrange(rank)
            size = lambda: self.node("Gather", self.node("Shape", x), self.constant([axis], INT64), axis=0)
            at = lambda: self.constant([axis], INT64)
            zero = lambda: self.constant([0], INT64)
            ways += [
                lambda: self.node("Slice", self.node("Concat", x, x, axis=axis), zero(), size(), at(), output=output),
                lambda: self.node("Gather", x, self.node("Range", self.constant(0, INT64), self.node("Squeeze", size()),
                                                         self.constant(1, INT64)), axis=axis, output=output),
                lambda: self.node("Slice", self.node("Slice", x, self.constant([-1], INT64), self.constant([-END], INT64), at(),
                                                     self.constant([-1], INT64)), self.constant([-1], INT64),
                                  self.constant([-END], INT64), at(), self.constant([-1], INT64), output=output),
            ]
            if kind in (FLOAT, *INTEGERS):
                pads = [0] * (2 * rank)
                pads[axis] = 2
                ways.append(lambda: self.node("Slice", self.node("Pad", x, self.constant(pads, INT64)), self.constant([2], INT64),
                                              self.constant([END], INT64), at(), output=output))
        if rank > 1:
            perm = self.random.sample(range(rank), rank)
            back = [perm.index(axis) for axis in range(rank)]
            ways.append(lambda: self.node("Transpose", self.node("Transpose", x, perm=perm), perm=back, output=output))
            ways.append(lambda: self.node("Reshape", self.node("Reshape", x, self.constant([-1], INT64)), self.node("Shape", x),
                                          output=output, allowzero=1))
        if kind in INTEGERS:
            other = INT64 if kind == INT32 else INT32
            ways.append(lambda: self.node("Cast", self.node("Cast", x, to=other), to=kind, output=output))
        return self.random.choice(ways)()

    def run(self, share):
        for node in list(self.graph.node):
            chance = self.random.random()
            if node.output[0] in ("k", "mask", "scores", "kt", "used") or chance > share:
                self.new.append(node)
            elif chance < 0.7 * share and self.replaced(node):
                pass
            elif self.kinds.get(node.output[0], (0, 0))[0] in NUMBERS:
                name = node.output[0]
                before = onnx.NodeProto.FromString(node.SerializeToString())
                before.output[0] = self.name()
                self.kinds[before.output[0]] = self.kinds[name]
                self.new.append(before)
                self.moved(before.output[0], name)
            else:
                self.new.append(node)
        del self.graph.node[:]
        self.graph.node.extend(self.new)


def rewritten(model, seed, share=0.25):
    """A copy with about `share` of the nodes spelled otherwise."""
    model = onnx.ModelProto.FromString(model.SerializeToString())
    Rewriter(model, seed).run(share)
    return model
