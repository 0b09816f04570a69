"""The proof itself is tested: equal models pass, every kind of wrong model is found out."""

import io
import json
import lzma
import os
import pathlib
import shutil
import stat
import sys
import tempfile
import unittest
import unittest.mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tools" / "python"), str(ROOT / "tools" / "zoo")]

try:
    import numpy as np
    import onnx
    import onnxruntime  # noqa: F401
    from onnx import TensorProto, helper, numpy_helper
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(0) if __name__ == "__main__" else None
    raise unittest.SkipTest(str(error))

import manifest_file  # noqa: E402
from ascend_fuse import comparison, guess_inputs, verification as verify  # noqa: E402


def language_model(
    scale=1.0,
    mask_scale=0.0,
    output_type=TensorProto.FLOAT,
    names=("input_ids", "attention_mask"),
    extra_output=False,
):
    """Embedding, a sum with the mask, a matmul: enough for ids, padding and several outputs."""
    rng = np.random.default_rng(7)
    table = numpy_helper.from_array(rng.standard_normal((11, 8)).astype(np.float32), "table")
    weight = numpy_helper.from_array((rng.standard_normal((8, 8)) * scale).astype(np.float32), "weight")
    factor = numpy_helper.from_array(np.float32(mask_scale), "factor")
    axes = numpy_helper.from_array(np.array([2], dtype=np.int64), "axes")
    nodes = [
        helper.make_node("Gather", ["table", names[0]], ["embedded"]),
        helper.make_node("Cast", [names[1]], ["mask_f"], to=TensorProto.FLOAT),
        helper.make_node("Unsqueeze", ["mask_f", "axes"], ["mask_3"]),
        # Only padded positions (mask 0) get the extra term.
        helper.make_node("Sub", ["one", "mask_3"], ["padding"]),
        helper.make_node("Mul", ["padding", "factor"], ["term"]),
        helper.make_node("Add", ["embedded", "term"], ["shifted"]),
        helper.make_node("MatMul", ["shifted", "weight"], ["hidden"]),
        helper.make_node("Cast", ["hidden"], ["logits"], to=output_type),
    ]
    one = numpy_helper.from_array(np.float32(1), "one")
    shape = ["batch", "seq"]
    outputs = [helper.make_tensor_value_info("logits", output_type, [*shape, 8])]
    if extra_output:
        outputs.append(helper.make_tensor_value_info("hidden", TensorProto.FLOAT, [*shape, 8]))
    graph = helper.make_graph(
        nodes,
        "lm",
        [helper.make_tensor_value_info(n, TensorProto.INT64, shape) for n in names],
        outputs,
        [table, weight, factor, axes, one],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


class VerifyTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def save(self, model, name):
        path = pathlib.Path(self.folder.name) / name
        onnx.save(model, str(path))
        return path

    def verify(self, a, b, **options):
        return verify.verify_models(self.save(a, "a.onnx"), self.save(b, "b.onnx"), **options)

    def test_equal_models_pass_under_several_bindings(self):
        result = self.verify(language_model(), language_model())
        self.assertTrue(result.ok, result.to_text())
        self.assertGreaterEqual(len(result.comparisons), 4)
        self.assertGreater(len({tuple(c.shape) for c in result.comparisons}), 2)
        self.assertTrue(all(c.max_abs == 0 and abs(c.cosine - 1) < 1e-12 for c in result.comparisons))
        self.assertIn("input_ids: ids, attention_mask: attention_mask", result.to_text())
        self.assertIn("the optimized model has no NPU nodes", result.to_text())

    def test_wrong_weights_are_found(self):
        result = self.verify(language_model(), language_model(scale=1.001))
        self.assertFalse(result.ok)
        for c in result.comparisons:
            self.assertAlmostEqual(c.max_rel, 0.001, delta=2e-5)
            self.assertIn("more than 0.0001", c.because)
        self.assertIn("NOT EQUAL", result.to_text())
        self.assertTrue(self.verify(language_model(), language_model(scale=1.001), tolerance=0.01).ok)

    def test_wrong_sign_is_found(self):
        result = self.verify(language_model(), language_model(scale=-1))
        self.assertTrue(all(c.cosine < -0.99 for c in result.comparisons))
        self.assertFalse(result.ok)

    def test_padding_counts_unless_the_report_says_otherwise(self):
        a, b = language_model(mask_scale=0), language_model(mask_scale=5)
        self.assertFalse(self.verify(a, b).ok)
        report = {"sites": [{"assumptions": ["rows with no allowed key are don't-care"]}]}
        result = self.verify(a, b, report=report)
        self.assertTrue(result.ok, result.to_text())
        self.assertGreater(sum(c.excluded for c in result.comparisons), 0)
        self.assertIn("padded positions)", result.to_text())
        self.assertFalse(self.verify(a, b, report={"sites": [{"assumptions": ["batch is at most 9"]}]}).ok)
        # Positions that matter are still compared.
        self.assertFalse(self.verify(a, language_model(scale=1.1, mask_scale=5), report=report).ok)

    def test_changed_types_and_outputs_are_found(self):
        result = self.verify(language_model(), language_model(output_type=TensorProto.FLOAT16))
        self.assertFalse(result.ok)
        self.assertIn("type float32 became float16", result.to_text())
        result = self.verify(language_model(extra_output=True), language_model())
        self.assertFalse(result.ok)
        self.assertIn("no such output", result.to_text())
        result = self.verify(language_model(), language_model(names=("ids", "attention_mask")))
        self.assertFalse(result.ok)
        self.assertIn("inputs were", result.to_text())

    def test_a_model_that_does_not_agree_with_itself_is_called_so(self):
        model = language_model()
        model.graph.node.append(helper.make_node("RandomUniformLike", ["hidden"], ["noise"], name="drop", dtype=1))
        model.graph.node.append(helper.make_node("Add", ["hidden", "noise"], ["noisy"]))
        model.graph.output.append(helper.make_tensor_value_info("noisy", TensorProto.FLOAT, ["batch", "seq", 8]))
        other = onnx.ModelProto.FromString(model.SerializeToString())
        other.graph.node[-2].attribute.append(helper.make_attribute("seed", 5.0))
        result = self.verify(model, other)
        self.assertFalse(result.ok)
        self.assertIn("the original itself gives another noisy in every run (it computes RandomUniformLike at drop)",
                      result.to_text())
        self.assertEqual({c.output for c in result.comparisons if c.ok}, {"logits"})

    def test_dims_that_were_bound_are_kept_to(self):
        result = self.verify(language_model(), language_model(), dims=["batch=1"])
        self.assertTrue(result.ok)
        self.assertTrue(all("batch=1" in c.binding or c.binding.startswith("b1") for c in result.comparisons))

    def test_an_optimized_model_that_refuses_a_binding_is_wrong(self):
        b = language_model()
        wrong = numpy_helper.from_array(np.zeros((2, 5, 8), dtype=np.float32), "wrong")
        b.graph.initializer.append(wrong)
        b.graph.node[-1].input[0] = "more"
        b.graph.node.insert(7, helper.make_node("Add", ["hidden", "wrong"], ["more"]))
        result = self.verify(language_model(), b)
        self.assertFalse(result.ok)
        self.assertIn("refuses what the original accepts", result.to_text())

    def test_npu_nodes_need_the_tool(self):
        b = language_model()
        b.graph.node[-1].op_type = "NPURmsNorm"
        with self.assertRaisesRegex(verify.VerifyError, "1 NPU nodes; --tool"):
            self.verify(
                language_model(), b, tool=None if shutil.which("ascend-fuse") is None else "/nowhere"
            )

    def fake_tool(self, body):
        path = pathlib.Path(self.folder.name) / "tool.sh"
        path.write_text("#!/bin/sh\n" + body)
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return path

    def test_npu_nodes_are_expanded_by_the_tool(self):
        b = language_model()
        b.graph.node[-1].op_type = "NPURmsNorm"
        good = self.save(language_model(), "good.onnx")
        result = self.verify(
            language_model(), b, tool=self.fake_tool(f'test "$1" = expand && cp {good} "$4"\n')
        )
        self.assertTrue(result.ok, result.to_text())
        self.assertIn("1 NPU nodes were expanded", result.to_text())
        with self.assertRaisesRegex(verify.VerifyError, "exit code 1: no rule"):
            self.verify(language_model(), b, tool=self.fake_tool("echo no rule >&2; exit 1\n"))
        with self.assertRaisesRegex(verify.VerifyError, "left 1 NPU nodes"):
            self.verify(language_model(), b, tool=self.fake_tool('test "$1" = list || cp "$2" "$4"\n'))
        with self.assertRaisesRegex(verify.VerifyError, "cannot be started"):
            self.verify(language_model(), b, tool="/nowhere/ascend-fuse")

    def test_errors_are_sentences(self):
        with self.assertRaisesRegex(verify.VerifyError, "does not exist"):
            verify.verify_models("/nowhere/a.onnx", "/nowhere/b.onnx")
        with self.assertRaisesRegex(verify.VerifyError, "no bindings"):
            self.verify(language_model(), language_model(), bindings=[])
        entry = guess_inputs.guess_entry(language_model())
        binding = {"name": "bad", "shapes": {"input_ids": [2, 3], "attention_mask": [2, 4]}}
        with self.assertRaisesRegex(verify.VerifyError, "refuses binding bad"):
            self.verify(language_model(), language_model(), entry=entry, bindings=[binding])

    @unittest.mock.patch("sys.stdout", new_callable=io.StringIO)
    @unittest.mock.patch("sys.stderr", new_callable=io.StringIO)
    def test_command_line(self, *_):
        a, b = self.save(language_model(), "a.onnx"), self.save(language_model(scale=2), "b.onnx")
        out = pathlib.Path(self.folder.name) / "result.json"
        self.assertEqual(verify.main([str(a), str(a), "--json", str(out)]), 0)
        self.assertTrue(json.loads(out.read_text())["ok"])
        self.assertEqual(verify.main([str(a), str(b), "--json", str(out)]), 3)
        self.assertFalse(json.loads(out.read_text())["ok"])
        self.assertEqual(verify.main([str(a), "/nowhere/b.onnx"]), 1)
        self.assertEqual(
            verify.main(
                [
                    str(a),
                    str(a),
                    "--bindings",
                    '[{"batch": 4, "seq": 2, "padding": "left"}]',
                    "--json",
                    str(out),
                ]
            ),
            0,
        )
        self.assertEqual([c["shape"] for c in json.loads(out.read_text())["comparisons"]], [[4, 2, 8]])


class CompareTest(unittest.TestCase):
    def compare(self, a, b, care=None):
        return comparison.compare("", "y", np.asarray(a), np.asarray(b), 1e-4, care)

    def test_numbers(self):
        c = self.compare([1.0, 100.0], [1.001, 100.0])
        self.assertTrue(c.ok)  # relative to the largest value
        self.assertAlmostEqual(c.max_rel, 1e-5, delta=1e-8)
        self.assertFalse(self.compare([1.0, 100.0], [1.1, 100.0]).ok)
        self.assertTrue(self.compare([0.0], [0.0]).ok)
        self.assertFalse(self.compare([0.0], [1e-6]).ok)

    def test_nan_and_infinity_keep_their_places(self):
        nan, inf = float("nan"), float("inf")
        self.assertTrue(self.compare([nan, 1, inf], [nan, 1, inf]).ok)
        self.assertFalse(self.compare([nan, 1], [0, 1]).ok)
        self.assertFalse(self.compare([1, 1], [nan, 1]).ok)
        self.assertFalse(self.compare([inf, 1], [-inf, 1]).ok)

    def test_integers_are_exact(self):
        self.assertTrue(self.compare([1, 2], [1, 2]).ok)
        self.assertFalse(self.compare([1, 2], [1, 3]).ok)
        self.assertFalse(self.compare([True], [False]).ok)

    def test_nothing_left_to_compare_is_no_proof(self):
        self.assertFalse(self.compare([[1.0]], [[2.0]], np.array([[False]])).ok)
        self.assertTrue(self.compare(np.zeros((0, 3)), np.zeros((0, 3))).ok)

    def test_care_masks(self):
        mask = np.array([[0, 0, 1, 1, 1], [1, 1, 1, 0, 0]], dtype=bool)
        hidden = comparison.care_mask("logits", (2, 2, 8), mask, 2)
        self.assertEqual(hidden.tolist(), [[[True], [True]], [[False], [False]]])
        cache = comparison.care_mask("present.0.key", (2, 4, 5, 8), mask, 2)
        self.assertEqual(cache[:, 0, :, 0].tolist(), mask.tolist())
        scores = comparison.care_mask("attentions.0", (2, 4, 2, 5), mask, 2)
        self.assertEqual(scores.shape, (2, 1, 2, 1))
        self.assertIsNone(comparison.care_mask("pooled", (2, 8), mask, 2))
        self.assertIsNone(comparison.care_mask("loss", (), mask, 2))


class GuessTest(unittest.TestCase):
    def entry(self, *inputs, nodes=(), initializers=()):
        values = [helper.make_tensor_value_info(*i) for i in inputs]
        graph = helper.make_graph(list(nodes), "g", values, [], list(initializers))
        return guess_inputs.guess_entry(helper.make_model(graph))

    def meanings(self, entry):
        return {s["name"]: s["meaning"] for s in entry["inputs"]}

    def test_decoder_with_past(self):
        entry = self.entry(
            ("input_ids", 7, ["s1", "s2"]),
            ("attention_mask", 7, ["s3", "s4"]),
            ("position_ids", 7, ["s1", "s2"]),
            ("past_key_values.0.key", 1, ["s1", 2, "s5", 64]),
            ("past_key_values.0.value", 10, ["s1", 2, "s6", 64]),
        )
        self.assertEqual(
            list(self.meanings(entry).values()), ["ids", "attention_mask", "position_ids", "past", "past"]
        )
        bindings = guess_inputs.guess_bindings(entry)
        self.assertIn(2, [b["shapes"]["input_ids"][0] for b in bindings])
        self.assertIn(1, [b["shapes"]["input_ids"][1] for b in bindings])  # a decode step
        self.assertEqual({b["padding"] for b in bindings}, {"left", "right", "none"})
        for binding in bindings:
            shapes = binding["shapes"]
            self.assertEqual(
                shapes["attention_mask"][1], shapes["input_ids"][1] + shapes["past_key_values.0.key"][2]
            )
            arrays = guess_inputs.make_inputs(entry, binding)
            self.assertEqual(arrays["past_key_values.0.value"].dtype, np.float16)
            self.assertTrue(set(np.unique(arrays["attention_mask"])) <= {0, 1})
            self.assertTrue((arrays["attention_mask"].sum(axis=1) > 0).all())

    def test_names_say_where_the_batch_is(self):
        entry = self.entry(
            ("x", TensorProto.FLOAT, ["seq", "batch", 160]),
            ("keep", TensorProto.BOOL, ["batch_1", 1, "seq", "seq"]),
            ("position_ids", TensorProto.INT64, ["batch", "seq"]),
        )
        for binding in guess_inputs.guess_bindings(entry):
            seq, batch, _ = binding["shapes"]["x"]
            self.assertEqual(binding["shapes"]["keep"], [batch, 1, seq, seq])
            self.assertEqual(binding["shapes"]["position_ids"], [batch, seq])

    def test_a_decode_step_has_one_token(self):
        entry = self.entry(
            ("input_ids", 7, ["b", 1]),
            ("attention_mask", 7, ["b", "total"]),
            ("past.0.k", 1, ["b", 2, "past", 64]),
        )
        bindings = guess_inputs.guess_bindings(entry)
        self.assertGreater(len(bindings), 2)
        for binding in bindings:
            self.assertEqual(binding["shapes"]["attention_mask"][1], 1 + binding["shapes"]["past.0.k"][2])
            self.assertIn("_s1_", binding["name"])

    def test_expressions(self):
        entry = self.entry(
            ("input_ids", 7, ["batch", "seq"]),
            ("attention_mask", 7, ["batch", "past + seq"]),
            ("past.0.k", 1, ["batch", 2, "past", 64]),
        )
        for binding in guess_inputs.guess_bindings(entry):
            self.assertEqual(
                binding["shapes"]["attention_mask"][1],
                binding["shapes"]["input_ids"][1] + binding["shapes"]["past.0.k"][2],
            )

    def test_encoder_decoder_lengths_differ(self):
        entry = self.entry(
            ("decoder_input_ids", 7, ["b", "t"]),
            ("encoder_hidden_states", 1, ["b", "s", 32]),
            ("encoder_attention_mask", 7, ["b", "s"]),
        )
        for binding in guess_inputs.guess_bindings(entry):
            self.assertNotEqual(
                binding["shapes"]["decoder_input_ids"][1], binding["shapes"]["encoder_hidden_states"][1]
            )

    def test_vocabulary_is_read_from_the_table(self):
        table = numpy_helper.from_array(np.zeros((5, 3), dtype=np.float32), "table")
        nodes = [
            helper.make_node("Cast", ["words"], ["w"], to=7),
            helper.make_node("Gather", ["table", "w"], ["y"]),
        ]
        entry = self.entry(("words", 6, ["b", "t"]), nodes=nodes, initializers=[table])
        self.assertEqual(entry["inputs"][0]["meaning"], "ids")
        self.assertEqual(entry["inputs"][0]["vocab"], 5)
        arrays = guess_inputs.make_inputs(entry, guess_inputs.guess_bindings(entry)[0])
        self.assertLess(arrays["words"].max(), 5)
        self.assertEqual(arrays["words"].dtype, np.int32)

    def test_other_meanings(self):
        entry = self.entry(
            ("pixel_values", 1, ["b", 3, "h", "w"]),
            ("attention_mask", 9, ["b", 1, "q", "k"]),
            ("mask", 1, ["b", 1, "q", "k"]),
            ("cache_position", 7, ["q"]),
            ("use_cache_branch", 9, [1]),
            ("token_type_ids", 7, ["b", "q"]),
            ("inputs_embeds", 1, ["b", "q", 8]),
            ("seqlens_k", 6, ["b"]),
        )
        self.assertEqual(
            list(self.meanings(entry).values()),
            [
                "pixels",
                "keep_mask",
                "additive_mask",
                "cache_position",
                "flag",
                "segment_ids",
                "features",
                "count",
            ],
        )
        for binding in guess_inputs.guess_bindings(entry):
            arrays = guess_inputs.make_inputs(entry, binding)
            self.assertEqual(len(arrays), 8)
            self.assertTrue(arrays["attention_mask"].any(axis=-1).all())
            self.assertTrue(np.isfinite(arrays["mask"]).all())

    def test_static_shapes_differ_in_padding_only(self):
        entry = self.entry(("input_ids", 7, [2, 6]), ("attention_mask", 7, [2, 6]))
        bindings = guess_inputs.guess_bindings(entry)
        self.assertEqual([b["padding"] for b in bindings], ["left", "none", "right"])
        self.assertTrue(all(b["shapes"]["input_ids"] == [2, 6] for b in bindings))

    def test_a_refused_batch_is_tried_with_one(self):
        table = numpy_helper.from_array(np.zeros((5, 3), dtype=np.float32), "table")
        wide = numpy_helper.from_array(np.array([1, -1], dtype=np.int64), "wide")
        nodes = [
            helper.make_node("Gather", ["table", "ids"], ["e"]),
            helper.make_node("Squeeze", ["e", "axis"], ["y"]),
        ]
        axis = numpy_helper.from_array(np.array([0], dtype=np.int64), "axis")
        graph = helper.make_graph(
            nodes,
            "g",
            [helper.make_tensor_value_info("ids", 7, ["b", "t"])],
            [helper.make_tensor_value_info("y", 1, None)],
            [table, wide, axis],
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "m.onnx")
            onnx.save(model, path)
            result = verify.verify_models(path, path)
        self.assertTrue(result.ok)
        self.assertIn("(batch 1) was used", result.to_text())

    def traced(self, sizes):
        """What verify says of a model that reshapes its input to `sizes`."""
        shape = numpy_helper.from_array(np.array(sizes, dtype=np.int64), "shape")
        graph = helper.make_graph(
            [helper.make_node("Reshape", ["x", "shape"], ["y"])],
            "g",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", "seq", 32])],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, sizes)],
            [shape],
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "m.onnx")
            onnx.save(model, path)
            return verify.verify_models(path, path)

    def test_sizes_that_a_trace_made_constant_are_tried(self):
        result = self.traced([2, 9, 4, 8])
        self.assertTrue(result.ok)
        self.assertIn("(batch 2, length 9, as traced) was used", result.to_text())

    def test_dims_of_the_report_are_bound(self):
        def model(batch):
            dims = [batch, "seq", 4]
            graph = helper.make_graph(
                [helper.make_node("Relu", ["x"], ["y"])], "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, dims)],
                [helper.make_tensor_value_info("y", TensorProto.FLOAT, dims)])
            return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)

        with tempfile.TemporaryDirectory() as folder:
            paths = [os.path.join(folder, name) for name in ("a.onnx", "b.onnx")]
            for path, batch in zip(paths, ("batch", 3)):
                onnx.save(model(batch), path)
            for dims, ok in ((["batch=3"], True), (["batch=3", "seq=1..4"], True), (["batch=2"], False), ([], False), (["seq=3"], False)):
                result = verify.verify_models(*paths, bindings=[{"name": "b", "shapes": {"x": [3, 4, 4]}, "padding": "none", "seed": 1}],
                                              report={"target": {"dims": dims}})
                self.assertEqual(result.ok, ok, dims)

    def test_sizes_of_a_bias_are_tried(self):
        nodes = [helper.make_node("MatMul", ["q", "k"], ["s"]), helper.make_node("Add", ["s", "bias"], ["z"]),
                 helper.make_node("MatMul", ["z", "k"], ["y"])]
        graph = helper.make_graph(
            nodes, "g", [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", "n", "n"]) for name in "qk"],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
            [numpy_helper.from_array(np.ones((13, 13), np.float32), "bias")])
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "m.onnx")
            onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
            result = verify.verify_models(path, path)
        self.assertTrue(result.ok)
        self.assertIn("(dims 13, as constants have them) was used", result.to_text())

    def test_guessed_sizes_keep_to_the_dims_that_were_bound(self):
        entry = self.entry(("x", TensorProto.FLOAT, ["batch", "seq", 8]), ("k", TensorProto.FLOAT, ["batch", "keys", 8]))
        binding = guess_inputs.guess_bindings(entry)[0]
        for dims, shapes in (
            (["batch=1", "seq=1"], [1, 1]),
            (["seq=16..64:16"], [binding["shapes"]["x"][0], 16]),
            (["seq=1..3"], [binding["shapes"]["x"][0], 3]),
            (["other=3"], binding["shapes"]["x"][:2]),
        ):
            self.assertEqual(guess_inputs.within(entry, binding, dims)["shapes"]["x"], [*shapes, 8], dims)
        made = guess_inputs.within(entry, binding, ["seq=9", "keys=seq"])
        self.assertEqual([made["shapes"][name][1] for name in ("x", "k")], [9, 9])

    def test_a_model_that_takes_nothing_is_told_how_to_bind(self):
        with self.assertRaisesRegex(verify.VerifyError, r"""--bindings '\[\{"batch": 1, "seq": 1\}\]'"""):
            self.traced([7, 13])

    def test_the_zoo_is_guessed_as_its_exporters_described_it(self):
        for described in manifest_file.load()["models"][::6]:
            packed = (ROOT / "tests" / "zoo" / "models" / f"{described['id']}.onnx.xz").read_bytes()
            guessed = guess_inputs.guess_entry(onnx.load_from_string(lzma.decompress(packed)))
            for key in ("name", "meaning", "shape", "dtype", "vocab"):
                self.assertEqual(
                    [s.get(key) for s in guessed["inputs"]],
                    [s.get(key) for s in described["inputs"]],
                    described["id"],
                )

    def test_strings_cannot_be_guessed(self):
        with self.assertRaisesRegex(guess_inputs.CannotGuess, "'text'"):
            self.entry(("text", 8, ["b"]))


if __name__ == "__main__":
    unittest.main()
