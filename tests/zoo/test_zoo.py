"""Tests of the zoo's own tools: seeded weights, the small form of models, and generated inputs."""

from __future__ import annotations

import sys
import tempfile
import unittest
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

FIRST_VALUE = "a038843f"  # Bytes of the first value of the parameter below.
REPOSITORY = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(REPOSITORY / "tools" / "zoo"), str(REPOSITORY / "tools" / "python")]
import covering  # noqa: E402
import fill  # noqa: E402
import weights  # noqa: E402
from ascend_fuse.inputs import make_inputs, padding_mask, positions_of  # noqa: E402


def model_of(*tensors: tuple[str, np.ndarray]) -> onnx.ModelProto:
    initializers = [numpy_helper.from_array(values, name) for name, values in tensors]
    output = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    graph = helper.make_graph([helper.make_node("Neg", [tensors[0][0]], ["y"])], "g", [], [output], initializers)
    return helper.make_model(graph)


class Weights(unittest.TestCase):
    parameter = weights.Parameter("layer.weight", (20, 30), 1.0, 0.1)

    def test_values_are_the_same_everywhere(self) -> None:
        values = weights.parameter_values(self.parameter, np.dtype("<f4"))
        self.assertAlmostEqual(float(values.mean()), 1.0, delta=0.02)
        self.assertAlmostEqual(float(values.std()), 0.1, delta=0.01)
        self.assertEqual(values.flat[0].tobytes().hex(), FIRST_VALUE)

    def test_parameters_come_back_from_the_small_form(self) -> None:
        values = weights.parameter_values(self.parameter, np.dtype("<f4"))
        half = values.astype("<f2")
        model = model_of(("w", values), ("t", values.T.copy()), ("h", half), ("up", half.astype("<f4")))
        small = weights.strip(model, [self.parameter])
        self.assertTrue(all(not t.raw_data for t in small.graph.initializer))
        self.assertEqual(weights.restore(small).SerializeToString(), model.SerializeToString())

    def test_parts_of_a_packed_projection_come_back(self) -> None:
        packed = weights.Parameter("in_proj_weight", (60, 30), 0.0, 1.0)
        values = weights.parameter_values(packed, np.dtype("<f4"))
        model = model_of(("k", values[20:40].copy()), ("v", values[40:].T.copy()), ("half", values[30:].copy()))
        small = weights.strip(model, [packed])
        self.assertTrue(all(not t.raw_data for t in small.graph.initializer))
        self.assertEqual(weights.restore(small).SerializeToString(), model.SerializeToString())

    def test_other_constants_are_kept(self) -> None:
        table = np.linspace(0, 1, 600, dtype=np.float32).reshape(20, 30)
        small = weights.strip(model_of(("table", table)), [self.parameter])
        self.assertEqual(small.graph.initializer[0].raw_data, table.tobytes())

    def test_a_wrong_weight_is_refused(self) -> None:
        values = weights.parameter_values(self.parameter, np.dtype("<f4"))
        small = weights.strip(model_of(("w", values)), [self.parameter])
        entry = next(p for p in small.metadata_props if p.key == weights.FILL_KEY)
        entry.value = entry.value.replace("layer.weight", "other.weight")
        with self.assertRaises(ValueError):
            weights.restore(small)


class Masks(unittest.TestCase):
    def test_left(self) -> None:
        self.assertEqual(padding_mask(2, 4, 4, "left").tolist(), [[0, 1, 1, 1], [0, 0, 1, 1]])

    def test_right_pads_new_tokens(self) -> None:
        self.assertEqual(padding_mask(1, 5, 3, "right").tolist(), [[1, 1, 1, 1, 0]])

    def test_right_of_a_decode_step_pads_the_past(self) -> None:
        self.assertEqual(padding_mask(1, 4, 1, "right").tolist(), [[1, 1, 0, 1]])

    def test_a_single_token_is_never_padding(self) -> None:
        for padding in ("left", "right"):
            self.assertEqual(padding_mask(2, 1, 1, padding).tolist(), [[1], [1]])

    def test_positions_follow_the_mask(self) -> None:
        mask = np.array([[0, 0, 1, 1, 1]])
        self.assertEqual(positions_of(mask, (1, 5)).tolist(), [[0, 0, 0, 1, 2]])
        self.assertEqual(positions_of(mask, (1, 2)).tolist(), [[1, 2]])


class Models(unittest.TestCase):
    manifest = fill.load_manifest()

    def test_the_covering_choice_is_of_this_zoo(self) -> None:
        chosen = covering.chosen_ids()
        self.assertLess(len(chosen), len(self.manifest["models"]) // 10)
        self.assertEqual(len(chosen), len(set(chosen)))
        entries = {entry["id"]: entry for entry in self.manifest["models"]}
        everything = set().union(*(covering.of_entry(entry) for entry in entries.values()))
        self.assertEqual(everything, set().union(*(covering.of_entry(entries[model_id]) for model_id in chosen)))

    def test_manifest_and_files_agree(self) -> None:
        files = {p.name for p in (fill.ZOO / "models").iterdir()}
        self.assertEqual(files, {f"{e['id']}.onnx.xz" for e in self.manifest["models"]})

    @pytest.mark.slow
    def test_inputs_obey_their_meaning(self) -> None:
        for entry in self.manifest["models"]:
            for binding in entry["bindings"]:
                with self.subTest(entry["id"], binding=binding["name"]):
                    self.check_inputs(entry, binding, make_inputs(entry, binding))

    def check_inputs(self, entry: dict, binding: dict, inputs: dict[str, np.ndarray]) -> None:
        self.assertEqual([s["name"] for s in entry["inputs"]], list(inputs))
        for spec in entry["inputs"]:
            values = inputs[spec["name"]]
            self.assertEqual(list(values.shape), binding["shapes"][spec["name"]])
            self.assertEqual(values.dtype.name, spec["dtype"])
            if "vocab" in spec:
                self.assertTrue(((values >= 0) & (values < spec["vocab"])).all())
            if "eos" in spec:
                self.assertTrue(((values == spec["eos"]).sum(axis=1) == 1).all())
            if spec["meaning"] == "attention_mask":
                self.assertTrue(np.isin(values, (0, 1)).all() and values.any(axis=1).all())
                self.assertEqual(bool((values == 0).any()), binding["padding"] != "none")

    def test_dynamic_models_have_varied_bindings(self) -> None:
        """Three bindings or more, among them B = 2 and B = 1, and lengths of queries and keys that differ."""
        for entry in self.manifest["models"]:
            with self.subTest(entry["id"]):
                self.check_bindings(entry, [b["shapes"] for b in entry["bindings"]])

    def check_bindings(self, entry: dict, shapes: list[dict]) -> None:
        self.assertGreaterEqual(len(shapes), 3)
        if entry["dims"] == "dynamic":
            self.assertLessEqual({1, 2}, {next(iter(s.values()))[0] for s in shapes})
            self.assertGreaterEqual(len({str(s) for s in shapes}), 3)
        # Each axis that is a symbol takes three values or more, but for the one token of a decode step.
        for spec in entry["inputs"]:
            for axis, dim in enumerate(spec["shape"]):
                if isinstance(dim, str):
                    self.assertGreaterEqual(len({s[spec["name"]][axis] for s in shapes}), 3, (spec["name"], dim))
        for s in shapes:
            queries = s.get("input_ids", s.get("hidden"))
            if "past.0.k" in s:
                self.assertGreater(s["past.0.k"][2], 0)
                if "attention_mask" in s:
                    self.assertEqual(s["attention_mask"][1], s["past.0.k"][2] + queries[1])
            for source in ("cross.0.k", "encoder_hidden_states", "memory", "decoder_input_ids", "context"):
                if source in s and queries:
                    axis = 2 if source == "cross.0.k" else 1
                    self.assertNotEqual(queries[1], s[source][axis], source)

    def test_filling_twice_writes_once(self) -> None:
        ids = [e["id"] for e in self.manifest["models"]][:2]
        with tempfile.TemporaryDirectory() as directory:
            self.assertEqual(fill.fill(Path(directory), ids), 2)
            self.assertEqual(fill.fill(Path(directory), ids), 0)
            model = onnx.load(Path(directory) / f"{ids[0]}.onnx")
            onnx.checker.check_model(model)
            self.assertNotIn(weights.FILL_KEY, [p.key for p in model.metadata_props])


if __name__ == "__main__":
    unittest.main()
