"""`ascend-fuse precision`: models that go wrong in float16 at a known place are right with the list that it writes, and no list is
longer than twice the shortest one."""

from __future__ import annotations

import dataclasses
import itertools
import json
import os
import re
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from conftest import ROOT, TOOL, run_ok
from conftest import run as run_tool
from half_models import FINE, PLANTED, Builder, Planted, numbers
from onnx import TensorProto, helper, numpy_helper

sys.path.insert(0, str(ROOT / "tools" / "schema"))

import precision_schema  # noqa: E402
from ascend_fuse import atc_precision, half_numbers  # noqa: E402
from ascend_fuse.expanded import VerifyError  # noqa: E402
from ascend_fuse.half_comparison import verify_as_half  # noqa: E402
from ascend_fuse.half_run import Execution, Mode, Program, run  # noqa: E402
from ascend_fuse.half_search import Case, Search  # noqa: E402
from ascend_fuse.precision_analysis import analyse  # noqa: E402
from ascend_fuse.precision_model import PrecisionModel, opened  # noqa: E402
from ascend_fuse.precision_records import PrecisionReport  # noqa: E402


@dataclasses.dataclass
class Files:
    """A model and its inputs on disk."""

    model: Path
    data: Path


def saved(planted: Planted, folder: Path, name: str = "m") -> Files:
    files = Files(folder / f"{name}.onnx", folder / f"{name}.npz")
    onnx.save(planted.model, files.model)
    np.savez(files.data, **planted.feeds)
    return files


def fewest(files: Files, feeds: dict[str, np.ndarray]) -> int:
    """How many nodes the shortest list has: all lists are tried, short ones first."""
    with opened(files.model) as model:
        search = Search(Program(model), [Case("", feeds)], half_numbers.FLOAT16)
        nodes = [unit.index for unit in model.units if search.can_stay(unit)]
        return next(count for count in range(len(nodes) + 1) for kept in itertools.combinations(nodes, count) if search.right(kept))


def half_run(files: Files, feeds: dict[str, np.ndarray], keep: Path | None = None) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """The outputs in float32, and in float16 with a list of atc's."""
    with opened(files.model) as model:
        kept = frozenset(unit.index for unit in atc_precision.read_keep_list(str(keep), model)[0]) if keep else frozenset()
        a, b = run(Program(model), [Mode(), Mode(half_numbers.FLOAT16, kept)], feeds, {})
        return list(a.values()), list(b.values())


def error(pair: tuple[list[np.ndarray], list[np.ndarray]]) -> float:
    worst = 0.0
    for a, b in zip(*pair):
        if not np.array_equal(np.isfinite(a), np.isfinite(b)):
            return float("inf")
        worst = max(worst, float(np.max(np.abs(a - b)) / np.max(np.abs(a))))
    return worst


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_fault_is_mended_by_a_short_list(name: str, tmp_path: Path) -> None:
    planted = PLANTED[name]()
    files = saved(planted, tmp_path)
    keep = tmp_path / "keep.cfg"
    report = analyse(files.model, data=files.data, keep_dtype=str(keep))
    assert error(half_run(files, planted.feeds)) > 0.01
    assert error(half_run(files, planted.feeds, keep)) < 0.01
    shortest = fewest(files, planted.feeds)
    assert shortest == planted.fewest, "the model is not what its text says"
    assert keep.read_text().split() == [node.name for node in report.keep]
    assert len(report.keep) <= 2 * shortest
    assert report.ok and not report.simulations[0].ok and report.simulations[0].ok_with_list
    assert all(node.because for node in report.keep)
    assert f"{len(report.keep)} of {report.nodes} nodes in float32" in report.verdict


@pytest.mark.parametrize("name", FINE)
def test_a_model_that_is_fine_gets_no_list(name: str, tmp_path: Path) -> None:
    files = saved(FINE[name](), tmp_path)
    outputs = {option: tmp_path / option for option in ("keep_dtype", "modify_mixlist", "customize_dtypes")}
    report = analyse(files.model, data=files.data, **{option: str(path) for option, path in outputs.items()})
    assert report.keep == [] and report.simulations[0].ok
    assert "float16 is right on 1 input without a list" in report.to_text()
    assert outputs["keep_dtype"].read_text() == "" and outputs["customize_dtypes"].read_text() == ""
    assert json.loads(outputs["modify_mixlist"].read_text()) == {}
    assert all("--keep_dtype" not in line for line in report.atc)


def test_the_risk_of_each_planted_fault_is_seen_in_the_file(tmp_path: Path) -> None:
    expected = {"rms_norm": "square_sum", "layer_norm": "square_sum", "logits": "logits", "mask": "mask", "masked_row": "mask", "exp": "exp",
                "accumulation": "accumulation", "long_sum": "accumulation", "large_constant": "constant", "epsilon": "epsilon", "angles": "angle"}
    for name, construct in expected.items():
        report = analyse(saved(PLANTED[name](), tmp_path, name).model)
        assert construct in {risk.construct for risk in report.risks}, name
        assert report.runs.source == "" and "nothing was run" in report.verdict
    certain = {name: [risk.construct for risk in analyse(saved(PLANTED[name](), tmp_path, name).model).risks if risk.severity == "certain"]
               for name in ("mask", "masked_row", "epsilon", "large_constant", "rms_norm", "logits")}
    assert certain == {"mask": ["mask"], "masked_row": ["mask"], "epsilon": ["epsilon"], "large_constant": ["constant"], "rms_norm": [],
                       "logits": []}
    assert [risk.construct for risk in analyse(saved(FINE["fine_mlp"](), tmp_path).model).risks] == []


@pytest.mark.parametrize(("scales", "layers"), [((1, 1, 900), {2}), ((900, 900, 900), {0, 1, 2}), ((900, 1, 900), {0, 2})])
def test_layers_with_the_same_fault_are_treated_alike(scales: tuple[int, ...], layers: set[int], tmp_path: Path) -> None:
    b = Builder()
    x = b.input("x", numbers(2, 4, 32))
    for i, scale in enumerate(scales):
        large = b("Mul", x, b.constant(float(scale)))
        mean = b("ReduceMean", b("Pow", large, b.constant(2.0)), axes=[-1], keepdims=1)
        x = b("Div", large, b("Sqrt", b("Add", mean, b.constant(1e-3))))
        for node in b.nodes[i * 6:]:
            node.name = f"/layers.{i}/norm/{node.op_type}"
    files = saved(b.planted(x, 0), tmp_path)
    report = analyse(files.model, data=files.data)
    assert {node.name for node in report.keep} == {f"/layers.{i}/norm/{op}" for i in layers for op in ("Pow", "ReduceMean", "Add", "Sqrt")}


def test_it_is_said_where_the_conversion_of_constants_decides(tmp_path: Path) -> None:
    for name, decides in (("mask", True), ("masked_row", True), ("rms_norm", False), ("epsilon", False)):
        files = saved(PLANTED[name](), tmp_path, name)
        notes = analyse(files.model, data=files.data).notes
        assert any("if constants beyond 65504 become 65504" in note for note in notes) == decides, name


def test_a_constant_may_be_filled_into_a_shape(tmp_path: Path) -> None:
    """An upper triangle of the smallest float32, as exporters write it: 0 times infinity."""
    b = Builder()
    filled = b("Unsqueeze", b("ConstantOfShape", b.constant([8, 8], np.int64), value=numpy_helper.from_array(np.array([np.finfo(np.float32).min]))),
               b.constant([0], np.int64))
    mask = b("Mul", filled, b.input("masked", 1 - np.tril(np.ones((8, 8), np.float32))))
    planted = b.planted(b("Softmax", b("Add", b.input("x", numbers(2, 8, 8)), mask), axis=-1), 3)
    files = saved(planted, tmp_path)
    report = analyse(files.model, data=files.data)
    assert [(risk.construct, risk.severity, risk.ops) for risk in report.risks][0] == ("mask", "certain", ["Mul"])
    assert {node.op for node in report.keep} == {"ConstantOfShape", "Unsqueeze", "Mul"}
    assert any("if constants beyond 65504 become 65504" in note for note in report.notes)


# --- ATC's files ---


def test_the_files_have_the_formats_of_atc(tmp_path: Path) -> None:
    files = saved(PLANTED["masked_row"](), tmp_path)
    outputs = {option: tmp_path / option for option in ("keep_dtype", "modify_mixlist", "customize_dtypes")}
    report = analyse(files.model, data=files.data, **{option: str(path) for option, path in outputs.items()})
    assert outputs["keep_dtype"].read_text() == "/m/Where_0\n/m/Add_2\n/m/Softmax_3\n"
    assert json.loads(outputs["modify_mixlist"].read_text()) == {"black-list": {"to-add": ["Add", "SelectV2", "SoftmaxV2"]}}
    assert outputs["customize_dtypes"].read_text() == (
        "/m/Where_0::InputDtype:,float32,float32,OutputDtype:float32\n"
        "/m/Add_2::InputDtype:float32,float32,OutputDtype:float32\n"
        "/m/Softmax_3::InputDtype:float32,OutputDtype:float32\n")
    assert [re.sub(r"=\S*/", "=", line) for line in report.atc] == [
        "atc --model=m.onnx --framework=5 --output=m --precision_mode=force_fp16 --keep_dtype=keep_dtype --soc_version=${SOC_VERSION}",
        "atc --model=m.onnx --framework=5 --output=m --precision_mode=allow_mix_precision --modify_mixlist=modify_mixlist"
        " --soc_version=${SOC_VERSION}",
        "atc --model=m.onnx --framework=5 --output=m --precision_mode=force_fp16 --customize_dtypes=customize_dtypes"
        " --soc_version=${SOC_VERSION}"]


def test_what_cannot_be_named_in_a_file_is_said(tmp_path: Path) -> None:
    planted = PLANTED["rms_norm"]()
    planted.model.graph.node[0].name = "scope:0/Pow"
    planted.model.graph.node[3].name = "long" * 300
    report = analyse(saved(planted, tmp_path).model, data=saved(planted, tmp_path).data, customize_dtypes=str(tmp_path / "c.cfg"))
    assert (tmp_path / "c.cfg").read_text() == "/m/Add_2::InputDtype:float32,float32,OutputDtype:float32\n"
    assert not report.files[0].ok and "with these alone float16 is still wrong" in report.to_text()
    assert "3 nodes cannot be named in this file" in report.files[0].notes[0]  # a colon, a plugin of several operators, a long line
    planted.model.graph.node[0].name = "two\nlines"
    report = analyse(saved(planted, tmp_path).model, data=saved(planted, tmp_path).data, keep_dtype=str(tmp_path / "k.cfg"))
    assert "rename the node" in report.files[0].notes[0]


def test_a_node_without_a_name_has_that_of_atcs_parser(tmp_path: Path) -> None:
    planted = PLANTED["mask"]()
    for node in planted.model.graph.node:
        node.name = ""
    files = saved(planted, tmp_path)
    report = analyse(files.model, data=files.data)
    assert [node.name for node in report.keep] == ["Mul_1"]  # the second of the nodes without a name


def test_names_are_those_of_the_written_file(tmp_path: Path) -> None:
    """A norm that overflows becomes one node, which computes in float32 inside; another fault keeps its node's name."""
    b = Builder()
    x = b.input("x", numbers(2, 8, 64, scale=900))
    normed = b("Mul", b("Div", x, b("Sqrt", b("Add", b("ReduceMean", b("Pow", x, b.constant(2.0)), axes=[-1], keepdims=1), b.constant(1e-6)))),
               b.constant(np.ones(64)))
    planted = b.planted(b("Sqrt", b("Mul", b("Abs", normed), b.constant(1e6))), 2)
    files = saved(planted, tmp_path)
    written = Files(tmp_path / "fused.onnx", files.data)
    run_ok("optimize", files.model, "-o", written.model, "--quiet")
    tool = str(TOOL)
    before = analyse(files.model, data=files.data, tool=tool)
    after = analyse(written.model, data=files.data, tool=tool, keep_dtype=str(tmp_path / "k.cfg"))
    assert {node.op for node in before.keep} == {"Pow", "ReduceMean", "Add", "Sqrt", "Mul"}
    assert {node.op for node in after.keep} == {"Mul", "Sqrt"}
    names = {node.name for node in onnx.load(written.model).graph.node}
    assert set((tmp_path / "k.cfg").read_text().split()) <= names


def test_a_list_may_name_types_of_operators(tmp_path: Path) -> None:
    planted = PLANTED["exp"]()
    files = saved(planted, tmp_path)
    (tmp_path / "k.cfg").write_text("OpType::Exp\nOpType::ReduceSum\n/m/Log_2\n")
    assert error(half_run(files, planted.feeds, tmp_path / "k.cfg")) < 0.01


# --- chips ---


def test_a_chip_without_infinities_saturates(tmp_path: Path) -> None:
    planted = PLANTED["mask"]()
    files = saved(planted, tmp_path)
    assert analyse(files.model, data=files.data, target="Ascend910B4").keep
    report = analyse(files.model, data=files.data, target="Ascend310P3")
    assert report.saturates and report.keep == [] and report.simulations[0].ok  # 0 times the largest number is 0
    assert [s.half for s in report.simulations] == ["float16"], "310P has no bfloat16"
    with pytest.raises(VerifyError, match="the chips are ascend310p"):
        analyse(files.model, target="gpu")


def test_what_a_chip_cannot_keep_is_not_listed(tmp_path: Path) -> None:
    planted = PLANTED["logits"]()
    files = saved(planted, tmp_path)
    report = analyse(files.model, data=files.data, target="ascend310p", keep_dtype=str(tmp_path / "k.cfg"))
    assert not report.ok and report.keep == [] and report.files == [] and not (tmp_path / "k.cfg").exists()
    assert "no list of nodes makes it right" in report.verdict
    assert any("MatMul /m/MatMul_0 leaves float16 and cannot stay float32: the cube unit" in note for note in report.notes)


# --- constants, types, islands, candidates ---


def weights_model(folder: Path, weight: np.ndarray, external: bool = False) -> Path:
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"], name="/m/MatMul")]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", 1, [2, weight.shape[0]])],
                              [helper.make_tensor_value_info("y", 1, None)], [numpy_helper.from_array(weight, "w")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, folder / "w.onnx", save_as_external_data=external, location="w.bin", size_threshold=0)
    return folder / "w.onnx"


@pytest.mark.parametrize("external", [False, True])
def test_constants_that_half_types_do_not_hold(external: bool, tmp_path: Path) -> None:
    weight = numbers(64, 64, scale=0.1)
    weight[0, :3] = [7e4, np.nan, 3.4e38]
    weight[1:60] *= 1e-9
    found = analyse(weights_model(tmp_path, weight, external)).constants
    assert [(f.half, f.effect, f.count) for f in found] == [
        ("float16", "nan", 1), ("float16", "overflows", 2), ("float16", "vanishes", 59 * 64), ("bfloat16", "nan", 1), ("bfloat16", "overflows", 1)]
    assert analyse(weights_model(tmp_path, weight, external), weights=False).constants == []
    assert analyse(weights_model(tmp_path, numbers(64, 64), external)).constants == []


def test_weights_that_could_be_smaller(tmp_path: Path) -> None:
    weight, = analyse(weights_model(tmp_path, numbers(64, 128))).candidates
    assert (weight.bytes, weight.saved_float16, weight.saved_bfloat16) == (32768, 16384, 16384)
    assert weight.saved_int8 == 32768 - 8192 - 2 * 128 and 0.002 < weight.int8_error < 0.02
    outlier = numbers(64, 128)
    outlier[0, :] = 900
    weight, = analyse(weights_model(tmp_path, outlier)).candidates
    assert weight.saved_int8 == 0 or weight.int8_error <= 0.02
    outlier[0, :] = 7e4
    weight, = analyse(weights_model(tmp_path, outlier), target="ascend310p").candidates
    assert weight.saved_float16 == 0 and weight.saved_bfloat16 == 0


def test_types_casts_and_islands(tmp_path: Path) -> None:
    nodes = []
    for layer in range(2):
        m, x = f"/model/layers.{layer}/norm", "x" if layer == 0 else "/model/layers.0/norm/out"
        nodes += [helper.make_node("Cast", [x], [f"{m}/up"], name=f"{m}/Cast", to=TensorProto.FLOAT),
                  helper.make_node("Mul", [f"{m}/up", f"{m}/up"], [f"{m}/square"], name=f"{m}/Mul"),
                  helper.make_node("Sqrt", [f"{m}/square"], [f"{m}/root"], name=f"{m}/Sqrt"),
                  helper.make_node("Cast", [f"{m}/root"], [f"{m}/down"], name=f"{m}/Cast_1", to=TensorProto.FLOAT16)]
        nodes += [helper.make_node("Relu", [f"{m}/{a}"], [f"{m}/{b}"], name=f"{m}/{b}") for a, b in itertools.pairwise(("down", "a", "b", "c", "out"))]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT16, [2, 8])],
                              [helper.make_tensor_value_info("/model/layers.1/norm/out", TensorProto.FLOAT16, [2, 8])])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), tmp_path / "m.onnx")
    report = analyse(tmp_path / "m.onnx", seeded=True)
    assert {row.of: row.types for row in report.types_by_operator} == {
        "Relu": {"float16": 8}, "Cast": {"float32": 2, "float16": 2}, "Mul": {"float32": 2}, "Sqrt": {"float32": 2}}
    assert {row.of: row.types for row in report.types_by_module} == {"model.layers.*.norm": {"float16": 10, "float32": 6}}
    assert {c.types: c.count for c in report.casts} == {"float16 -> float32": 2, "float32 -> float16": 2}
    island, = report.islands
    assert (island.module, island.count, island.operators, island.casts_in, island.casts_out) == (
        "model.layers.*.norm", 2, ["Mul", "Sqrt"], 2, 2)
    assert report.keep == [] and report.simulations[0].ok


# --- the run itself ---


def test_rounding_is_that_of_the_types() -> None:
    import ml_dtypes

    array = np.concatenate([np.random.default_rng(1).uniform(-1, 1, 10000) * 10.0**e for e in range(-40, 39, 6)]).astype(np.float32)
    array = np.concatenate([array, np.array([0, np.inf, -np.inf, np.nan, 65519.996, 65520, 3.39e38, 3.4e38], np.float32)])
    with np.errstate(over="ignore"):
        assert np.array_equal(half_numbers.FLOAT16.rounded(array), array.astype(np.float16).astype(np.float32), equal_nan=True)
        assert np.array_equal(half_numbers.BFLOAT16.rounded(array), array.astype(ml_dtypes.bfloat16).astype(np.float32), equal_nan=True)
    for half in (half_numbers.FLOAT16, half_numbers.BFLOAT16):
        r = half_numbers.range_of(array, half)
        rounded = half.rounded(array)
        assert r.over == np.count_nonzero(np.isinf(rounded) & np.isfinite(array))
        assert r.to_zero == np.count_nonzero((rounded == 0) & (array != 0))
        assert (r.nan, r.infinite, r.count) == (1, 2, array.size)


def test_memory_holds_what_is_still_read(tmp_path: Path) -> None:
    """Fifty layers one after another: never more than a few values are there."""
    b = Builder()
    value = b.input("x", numbers(4, 16))
    for _ in range(50):
        value = b("Relu", b("Add", value, b.constant(0.01)))
    files = saved(b.planted(value, 0), tmp_path)
    most = 0
    with opened(files.model) as model:
        def look(_: object, __: str, executions: list[Execution]) -> None:
            nonlocal most
            most = max(most, len(executions[0].values))
        run(Program(model), [Mode()], b.inputs, {}, look)
    assert most <= 3


def test_scalars_stay_arrays(tmp_path: Path) -> None:
    """Of rank 0, in every mode: numpy likes to make numbers of them."""
    b = Builder()
    x = b.input("x", np.array(300, np.float32))
    planted = b.planted(b("Mul", b("Mul", x, x), b.constant(1e6)), 0)
    files = saved(planted, tmp_path)
    for half in (half_numbers.FLOAT16, half_numbers.BFLOAT16):
        for saturates, clips in itertools.product((False, True), repeat=2):
            with opened(files.model) as model:
                a, = run(Program(model), [Mode(half, saturates=saturates, clips_constants=clips)], planted.feeds, {})
            assert all(isinstance(array, np.ndarray) for array in a.values())
    assert not analyse(files.model, data=files.data, target="ascend310p").simulations[0].ok


def test_two_branches_may_name_their_constants_alike(tmp_path: Path) -> None:
    text = """<ir_version: 8, opset_import: ["" : 17]>
    g (float[4] x, bool c) => (float[4] y) {
      y = If (c) <then_branch = t () => (float[4] a) <float k = {2}> { a = Mul (x, k) },
                  else_branch = e () => (float[4] b) <float k = {3}> { b = Mul (x, k) }>
    }"""
    onnx.save(onnx.parser.parse_model(text), tmp_path / "m.onnx")
    x = np.array([1, 2, 3, 4], np.float32)
    with opened(tmp_path / "m.onnx") as model:
        program = Program(model)
        for condition, factor in ((True, 2), (False, 3), (True, 2)):
            for found in run(program, [Mode(), Mode(half_numbers.FLOAT16)], {"x": x, "c": np.array(condition)}, {}):
                assert np.array_equal(found["y"], factor * x)


def test_branches_and_loops_run(tmp_path: Path) -> None:
    text = """<ir_version: 8, opset_import: ["" : 17]>
    g (float[4] x, bool c) => (float[4] y, float[4] z) <int64 n = {3}, bool yes = {1}, float million = {1000000.0}> {
      y = If (c) <then_branch = t () => (float[4] a) { big = Mul (x, million)  a = Sqrt (big) },
                  else_branch = e () => (float[4] b) { b = Neg (x) }>
      z = Loop (n, yes, x) <body = l (int64 i, bool k, float[4] s) => (bool go, float[4] d) { go = Identity (k)  d = Add (s, x) }>
    }"""
    onnx.save(onnx.parser.parse_model(text), tmp_path / "m.onnx")
    x = np.array([1, 2, 3, 4], np.float32)
    with opened(tmp_path / "m.onnx") as model:
        program = Program(model)
        for condition, expected in ((True, np.sqrt(x * 1e6)), (False, -x)):
            a, b = run(program, [Mode(), Mode(half_numbers.FLOAT16)], {"x": x, "c": np.array(condition)}, {})
            assert np.allclose(a["y"], expected) and np.array_equal(a["z"], 4 * x)
            assert np.isinf(b["y"]).all() == condition


def test_a_run_in_float32_is_that_of_the_whole_model(tmp_path: Path) -> None:
    from ascend_fuse.session import plain_session

    for name, make in {**PLANTED, **FINE}.items():
        planted = make()
        files = saved(planted, tmp_path, name)
        whole = plain_session(files.model).run(None, planted.feeds)
        with opened(files.model) as model:
            alone = run(Program(model), [Mode()], planted.feeds, {})[0]
        for a, b in zip(whole, alone.values()):
            assert np.allclose(a, b, rtol=1e-5, atol=1e-6), name


def test_single_nodes_run_as_in_onnx_runtime() -> None:
    """The backend tests of the onnx package: types are those that come out, numbers those of a whole session."""
    import warnings

    import backend_tests
    from ascend_fuse.session import plain_session

    ran = 0
    refused: dict[str, str] = {}
    for folder in sorted(backend_tests.suite("node").iterdir())[::3]:
        model = onnx.load(folder / "model.onnx")
        try:
            tensors = [onnx.load_tensor(path) for path in sorted(folder.glob("test_data_set_0/input_*.pb"))]
            feeds = {value.name: numpy_helper.to_array(tensor) for value, tensor in zip(model.graph.input, tensors, strict=True)}
            whole = plain_session(model.SerializeToString()).run(None, feeds)
        except Exception:  # not every one is run by ONNX Runtime, or has tensors only
            continue
        if model.functions or not all(isinstance(array, np.ndarray) for array in whole):
            continue
        prepared = PrecisionModel(folder / "model.onnx", model, model)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                found = run(Program(prepared), [Mode(), Mode(half_numbers.FLOAT16)], feeds, {})[0]
            except VerifyError as error:  # ONNX Runtime takes some new operators apart in a whole session only
                refused[folder.name] = str(error)
                continue
        ran += 1
        for (name, array), expected in zip(found.items(), whole):
            if expected.dtype.kind in "fiub":
                assert np.allclose(array.astype(np.float64), expected.astype(np.float64), rtol=3e-3, atol=3e-3, equal_nan=True), folder.name
                assert "ai_onnx_ml" in folder.name or prepared.types[name] == helper.np_dtype_to_tensor_dtype(expected.dtype), folder.name
    assert ran > 400
    new = re.compile("test_(causal_conv_with_state|linear_attention)_")
    assert not {name: error for name, error in refused.items() if not new.match(name)}


# --- the command ---


@pytest.fixture(autouse=True)
def this_python(monkeypatch: pytest.MonkeyPatch) -> None:
    """The command finds the Python that has the packages of the tests."""
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")


def test_the_command(tmp_path: Path) -> None:
    planted = PLANTED["rms_norm"]()
    files = saved(planted, tmp_path)
    text = run_ok("precision", files.model, "--data", files.data, "--keep-dtype", tmp_path / "keep.cfg").out
    assert "these stay float32" in text and f"wrote {tmp_path}/keep.cfg: --keep_dtype, 4 nodes" in text
    data = json.loads(run_ok("precision", files.model, "--data", files.data, "--json", "-").out)
    assert [node["name"] for node in data["keep"]] == (tmp_path / "keep.cfg").read_text().split()
    (tmp_path / "folder").mkdir()
    for name in ("a", "b"):
        np.savez(tmp_path / "folder" / f"{name}.npz", x=numbers(2, 8, 64, scale=1.0 if name == "a" else 900))
    data = json.loads(run_ok("precision", files.model, "--data", tmp_path / "folder", "--json", "-").out)
    assert data["runs"]["cases"] == ["a.npz", "b.npz"] and len(data["keep"]) == 4
    assert "right on 1 input" in run_ok("precision", files.model, "--seeded").out, "generated numbers are around 1"
    assert run_tool("precision", saved(PLANTED["logits"](), tmp_path, "l").model, "--data", tmp_path / "l.npz", "--target", "ascend310p").code == 3


@pytest.mark.parametrize(("flags", "sentence"), [
    (["--data", "none.npz"], "none.npz cannot be read as .npz"),
    (["--data", "other.npz"], "has no array for the input x; it has y"),
    (["--data", "double.npz"], "x is float64, and the model takes float32"),
    (["--data", "empty"], "empty has no .npz file"),
    (["--target", "gpu"], "the chips are"),
    (["--seeded", "--keep-dtype", "no/such/folder/k.cfg"], "k.cfg cannot be written"),
])
def test_errors_are_sentences(flags: list[str], sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = saved(FINE["fine_norm"](), tmp_path)
    np.savez(tmp_path / "other.npz", y=np.zeros(3))
    np.savez(tmp_path / "double.npz", x=np.zeros((2, 8, 64)))
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path)
    done = run_tool("precision", files.model, *flags)
    assert done.code == 1 and sentence in done.err and "Traceback" not in done.err


def test_data_may_be_arrays(tmp_path: Path) -> None:
    planted = PLANTED["rms_norm"]()
    files = saved(planted, tmp_path)
    small = {name: array / 900 for name, array in planted.feeds.items()}
    assert len(analyse(files.model, data=planted.feeds).keep) == 4
    assert analyse(files.model, data=small).keep == []
    report = analyse(files.model, data=[small, planted.feeds])
    assert report.runs.cases == ["data 0", "data 1"] and len(report.keep) == 4
    with pytest.raises(VerifyError, match="data 1 has no array for the input x"):
        analyse(files.model, data=[small, {}])


def test_verify_as_half(tmp_path: Path) -> None:
    b = Builder()
    x = b.input("features", numbers(2, 8, 64))
    mean = b("ReduceMean", b("Pow", b("Mul", x, b.constant(900.0)), b.constant(2.0)), axes=[-1], keepdims=1)
    files = saved(b.planted(b("Sqrt", b("Add", mean, b.constant(1e-6))), 4), tmp_path)
    keep = tmp_path / "keep.cfg"
    analyse(files.model, seeded=True, keep_dtype=str(keep))
    wrong = run_tool("verify", files.model, files.model, "--as-half")
    assert wrong.code == 3 and "NaN or infinity" in wrong.out and "error by module" in wrong.out
    right = run_ok("verify", files.model, files.model, "--as-half", "--keep-dtype", keep).out
    assert "equal: 1 comparison" in right and "without it max rel is inf" in right
    assert "give one of them" in run_tool("verify", files.model, files.model, "--as-half", "--as-atc").err
    keep.write_text("/m/Nothing\n")
    assert "names what is not in" in run_tool("verify", files.model, files.model, "--as-half", "--keep-dtype", keep).err
    assert verify_as_half(files.model, files.model, tolerance=1.0, keep_dtype="").ok is False, "infinities are never within a tolerance"


def test_an_optimized_export_in_half(zoo: Path, tmp_path: Path) -> None:
    """NPU nodes are computed as documented; the names in the list and in the report are those of the written file."""
    model = zoo / "llama-sdpa-past-ts17-dynamic.onnx"
    run_ok("optimize", model, "-o", tmp_path / "fused.onnx", "--quiet")
    text = run_ok("verify", model, tmp_path / "fused.onnx", "--as-half").out
    assert "equal: 25 comparisons within the tolerance of 0.01" in text and "model.layers.1.mlp" in text
    data = json.loads(run_ok("precision", tmp_path / "fused.onnx", "--seeded", "--json", "-").out)
    assert data["keep"] == [] and data["simulations"][0]["ok"] and 0 < data["simulations"][0]["outputs"][0]["max_rel"] < 0.01
    assert any(row["of"] == "npu.NPURmsNorm" and row["types"]["float32"] for row in data["types_by_operator"])


def test_an_input_beyond_the_range_is_seen(tmp_path: Path) -> None:
    """A mask that is given: what reads it stays float32."""
    b = Builder()
    mask = b.input("mask", np.where(np.tril(np.ones((8, 8), bool)), np.float32(0), np.finfo(np.float32).min))
    b.inputs["mask"][0] = np.finfo(np.float32).min
    files = saved(b.planted(b("Softmax", b("Add", b.input("x", numbers(2, 8, 8)), mask), axis=-1), 2), tmp_path)
    report = analyse(files.model, data=files.data)
    assert report.ranges[0].node == "(input)" and report.ranges[0].value == "mask"
    assert [node.op for node in report.keep] == ["Add", "Softmax"]


def test_the_schema_is_that_of_the_records() -> None:
    path = ROOT / "tools" / "schema" / "precision.schema.json"
    assert path.read_text() == precision_schema.generate(), "PYTHONPATH=tools/python python3 tools/schema/precision_schema.py writes it anew"


def conforms(data: object, schema: dict, definitions: dict) -> bool:
    """As much of JSON Schema as the file uses."""
    schema = definitions[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema
    if "anyOf" in schema:
        return any(conforms(data, one, definitions) for one in schema["anyOf"])
    if "enum" in schema:
        return data in schema["enum"]
    kinds = {"string": str, "integer": int, "number": (int, float), "boolean": bool, "array": list, "object": dict}
    if not isinstance(data, kinds[schema["type"]]) or (isinstance(data, bool) and schema["type"] != "boolean"):
        return False
    if isinstance(data, list):
        return all(conforms(item, schema["items"], definitions) for item in data)
    if isinstance(data, dict) and "properties" in schema:
        return set(data) == set(schema["required"]) and all(conforms(v, schema["properties"][k], definitions) for k, v in data.items())
    if isinstance(data, dict):
        return all(conforms(item, schema["additionalProperties"], definitions) for item in data.values())
    return True


def test_reports_conform_to_the_schema(tmp_path: Path) -> None:
    schema = json.loads(precision_schema.generate())
    for name in ("mask", "rms_norm", "angles"):
        files = saved(PLANTED[name](), tmp_path, name)
        for report in (analyse(files.model), analyse(files.model, data=files.data, keep_dtype=str(tmp_path / "k"))):
            data = json.loads(report.to_json())
            assert conforms(data, schema, schema["$defs"])
    assert not conforms({**data, "more": 1}, schema, schema["$defs"]) and not conforms({**data, "nodes": "7"}, schema, schema["$defs"])
    assert conforms(json.loads(PrecisionReport().to_json()), schema, schema["$defs"])


def test_an_error_that_adds_up_gets_no_list(tmp_path: Path) -> None:
    """A hundred products one after another: each rounds, none is to blame."""
    b = Builder()
    value = b.input("x", np.abs(numbers(4, 32)))
    for i in range(100):
        value = b("MatMul", value, b.constant(np.linalg.qr(numbers(32, 32, seed=i))[0]))
    files = saved(b.planted(value, 0), tmp_path)
    report = analyse(files.model, data=files.data, tolerance=1e-3)
    assert not report.simulations[0].ok and report.keep == []
    assert "rounding adds up over 102 nodes" in report.verdict and report.runs.trials < 5


def test_local_functions_are_inlined(tmp_path: Path) -> None:
    text = """<ir_version: 8, opset_import: ["" : 17, "local" : 1]>
    g (float[4] x) => (float[4] y) { h = local.norm (x)  y = Relu (h) }
    <domain: "local", opset_import: ["" : 17]>
    norm (a) => (b) { two = Constant <value = float {2}> ()  big = Pow (a, two)  b = Sqrt (big) }"""
    onnx.save(onnx.parser.parse_model(text), tmp_path / "m.onnx")
    np.savez(tmp_path / "f.npz", x=np.array([1, 10, 100, 1000], np.float32))
    report = analyse(tmp_path / "m.onnx", data=tmp_path / "f.npz", tool=TOOL)
    assert [node.op for node in report.keep] == ["Pow", "Sqrt"] and any("local functions" in note for note in report.notes)
