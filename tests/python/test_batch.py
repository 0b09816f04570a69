"""`optimize` of several models: the same bytes as one by one, endings that do not stop others, names that must not meet."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

import numpy as np
import onnx
import pytest
from conftest import MISH_RULE, TOOL, run, run_ok
from onnx import TensorProto, helper, numpy_helper

MODELS = ["llama-sdpa-past-ts17-dynamic", "bert-sdpa-ts17-dynamic", "qwen2-sdpa-past-dy18-dynamic", "clip-text-sdpa-ts14-dynamic",
          "gpt2-sdpa-nocache-dy18-dynamic", "t5-gated-sdpa-ts14-static"]


@pytest.fixture
def models(zoo: Path, tmp_path: Path) -> list[Path]:
    """Six models in a folder and in one below it."""
    below = tmp_path / "in" / "below"
    below.mkdir(parents=True)
    return [Path(shutil.copy(zoo / f"{name}.onnx", below if i % 2 else below.parent)) for i, name in enumerate(MODELS)]


def written(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def without_times(report: bytes) -> dict[str, object]:
    return {name: value for name, value in json.loads(report).items() if name != "passes"}


@pytest.mark.parametrize("jobs", [1, 3])
def test_each_model_as_if_it_were_alone(models: list[Path], tmp_path: Path, jobs: int) -> None:
    several, alone = tmp_path / "several", tmp_path / "alone"
    alone.mkdir()
    done = run_ok("optimize", *models, "-o", several, "-j", jobs, "--plugin", "--target", "ascend310p")
    for model in models:
        output = alone / f"{model.stem}.ascend310p.onnx"
        run_ok("optimize", model, "-o", output, "--plugin", "--target", "ascend310p", "--json", output.with_suffix(".json"))
    one, other = written(several), written(alone)
    assert list(one) == list(other) and len([name for name in one if name.endswith(".onnx")]) == len(models)
    for name, content in one.items():
        if name.endswith(".json"):
            assert without_times(content) == without_times(other[name]), name
        else:
            assert content == other[name], name
    table = done.out.splitlines()
    assert [line.split()[0] for line in table[1:-1]] == [str(model) for model in models]
    assert re.fullmatch(rf"6 of 6 models written; .* s, {jobs} threads?, .* models/s", table[-1])


def test_a_folder_keeps_its_folders(models: list[Path], tmp_path: Path) -> None:
    folder = tmp_path / "in"
    run_ok("optimize", folder, "-o", folder / "out")
    expected = {path.relative_to(folder).with_suffix(ending) for path in models for ending in (".ascend910b.onnx", ".ascend910b.json")}
    first = written(folder / "out")
    assert {name for name in first if not name.endswith(".merged.data")} == set(map(str, expected))
    run_ok("optimize", folder, "-o", folder / "out")  # which is not read, although it lies in the folder
    again = written(folder / "out")
    assert [name for name in first if not name.endswith(".json") and first[name] != again[name]] == []
    assert list(first) == list(again)


def test_an_output_folder_for_one_model(models: list[Path], tmp_path: Path) -> None:
    run_ok("optimize", models[0], "-o", f"{tmp_path}/new/", "--quiet")
    (tmp_path / "there").mkdir()
    run_ok("optimize", models[0], "-o", tmp_path / "there", "--quiet")
    assert (tmp_path / "new" / f"{MODELS[0]}.ascend910b.onnx").exists()
    assert (tmp_path / "there" / f"{MODELS[0]}.ascend910b.onnx").exists()


def test_without_a_folder_each_is_written_beside_its_model(models: list[Path]) -> None:
    run_ok("optimize", *models[:2])
    for model in models[:2]:
        assert model.with_suffix(".ascend910b.onnx").exists() and model.with_suffix(".ascend910b.json").exists()


def test_a_failure_stops_no_other(models: list[Path], tmp_path: Path) -> None:
    broken, missing = tmp_path / "broken.onnx", tmp_path / "missing.onnx"
    broken.write_bytes(b"this is not a model")
    out = tmp_path / "out"
    result = run("optimize", broken, *models[:2], missing, "-o", out, "--json", tmp_path / "all.json")
    assert result.code == 1
    assert "2 of 4 models written, 2 ended with 1" in result.out
    assert all(re.search(rf"^ascend-fuse: .*{re.escape(str(path))}", result.err, re.MULTILINE) for path in (broken, missing))
    assert {path.name for path in out.glob("*.onnx")} == {f"{name}.ascend910b.onnx" for name in MODELS[:2]}
    summary = json.loads((tmp_path / "all.json").read_text())
    assert summary["exit_code"] == 1 and [row["exit_code"] for row in summary["models"]] == [1, 0, 0, 1]
    assert summary["models"][1]["nodes"]["before"] > summary["models"][1]["nodes"]["after"]
    assert Path(summary["models"][1]["report"]).exists() and str(missing) in summary["models"][3]["sentences"][0]


def test_a_requirement_is_one_of_each_model(models: list[Path], tmp_path: Path) -> None:
    llama, bert = models[:2]
    result = run("optimize", llama, bert, "-o", tmp_path / "out", "--require", "layer_norm", "--json", "-")
    summary = json.loads(result.out)
    assert result.code == 3 and [row["exit_code"] for row in summary["models"]] == [3, 0]
    assert f"{llama}: --require layer_norm: no layer_norm was found" in result.err
    assert {path.name for path in (tmp_path / "out").glob("*.onnx")} == {f"{bert.stem}.ascend910b.onnx"}
    assert json.loads((tmp_path / "out" / f"{llama.stem}.ascend910b.json").read_text())["sites"]


def test_outputs_that_meet_are_refused_before_anything_is_written(models: list[Path], tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    shutil.copy(models[0], other)
    result = run("optimize", models[0], other / models[0].name, "-o", tmp_path / "out")
    assert result.code == 2 and f"{models[0]} and {other / models[0].name} would both be written to" in result.err
    assert run("optimize", models[0], models[0], "-o", tmp_path / "out").code == 2
    beside = models[0].with_suffix(".ascend910b.onnx")
    shutil.copy(models[1], beside)
    result = run("optimize", models[0], beside)
    assert result.code == 2 and f"{models[0]} would be written over {beside}" in result.err
    assert not (tmp_path / "out").exists() and beside.read_bytes() == models[1].read_bytes()


@pytest.mark.parametrize(("flags", "sentence"), [
    (("--report", "r.html"), "--report .html"),
    (("--atc-script", "atc.sh"), "--atc-script .sh"),
    (("--weights", "all.bin"), "one file cannot hold the weights of several models"),
    (("--dump", "passes"), "--dump takes one model"),
    (("-j", "0"), "0 not in range"),
])
def test_flags_that_name_one_file(models: list[Path], tmp_path: Path, flags: tuple[str, ...], sentence: str) -> None:
    result = run("optimize", *models[:2], "-o", tmp_path / "out", *flags)
    assert result.code == 2 and sentence in result.err
    assert not (tmp_path / "out").exists()


def test_an_ending_asks_for_a_file_beside_each(models: list[Path], tmp_path: Path) -> None:
    run_ok("optimize", *models[:2], "-o", tmp_path / "out", "--report", ".html", "--atc-script", ".sh", "--quiet")
    for name in MODELS[:2]:
        files = {ending: tmp_path / "out" / f"{name}.ascend910b{ending}" for ending in (".onnx", ".json", ".html", ".sh")}
        assert files[".html"].read_text().startswith("<!DOCTYPE html>")
        assert str(files[".onnx"]) in files[".sh"].read_text() or files[".onnx"].name in files[".sh"].read_text()


def test_folders_that_cannot_serve(models: list[Path], tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    result = run("optimize", tmp_path / "empty", "-o", tmp_path / "out")
    assert result.code == 1 and "there is no .onnx file in this folder" in result.err
    result = run("optimize", tmp_path / "in")
    assert result.code == 2 and "name it with -o" in result.err
    result = run("optimize", *models[:2], "-o", models[2])
    assert result.code == 2 and "several models need a folder" in result.err


def with_data(folder: Path, seed: int) -> Path:
    """y = x + w, with w in a data file whose size is the same for all seeds."""
    folder.mkdir()
    weight = numpy_helper.from_array(np.random.default_rng(seed).normal(size=(64, 64)).astype(np.float32), "w")
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [64, 64]) for name in "xy"]
    graph = helper.make_graph([helper.make_node("Add", ["x", "w"], ["y"])], "g", values[:1], values[1:], [weight])
    path = folder / f"m{seed}.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), path, save_as_external_data=True,
              location="weights.bin", size_threshold=0)
    return path


def test_data_files_of_one_name_never_stand_for_each_other(tmp_path: Path) -> None:
    """Two models whose weights are another file of the same name and size: the second must not get the weights of the first."""
    one, two = with_data(tmp_path / "one", 1), with_data(tmp_path / "two", 2)
    result = run("optimize", one, two, "-o", tmp_path / "out", "--copy-data", "-j", "1")
    assert result.code == 1 and "there is another file" in result.err
    assert {path.name for path in (tmp_path / "out").glob("*.onnx")} == {"m1.ascend910b.onnx"}
    os.utime(tmp_path / "out" / "weights.bin")
    run_ok("optimize", one, "-o", tmp_path / "out", "--copy-data")  # the same bytes, with another time
    run_ok("optimize", one, "-o", tmp_path / "out")
    result = run("optimize", two, "-o", tmp_path / "out")
    assert result.code == 1 and "there is another file" in result.err


def test_rules_of_a_user_are_those_of_all_models(models: list[Path], tmp_path: Path) -> None:
    (tmp_path / "mish.rule").write_text(MISH_RULE)
    run_ok("optimize", *models, "-o", tmp_path / "several", "--rules", tmp_path / "mish.rule", "-j", "3", "--quiet")
    (tmp_path / "alone").mkdir()
    for model in models:
        output = tmp_path / "alone" / f"{model.stem}.ascend910b.onnx"
        run_ok("optimize", model, "-o", output, "--rules", tmp_path / "mish.rule", "--quiet")
        assert output.read_bytes() == (tmp_path / "several" / output.name).read_bytes()


def test_control_c_leaves_nothing_half(zoo: Path, tmp_path: Path, control_c: None) -> None:
    out = tmp_path / "out"
    process = subprocess.Popen([TOOL, "optimize", zoo, "-o", out, "-j", "2"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    while process.poll() is None and len(list(out.glob("*.onnx"))) < 3:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=30)
    assert process.returncode == -signal.SIGINT
    assert not list(out.glob(".ascend-fuse-*"))
    for path in out.glob("*.onnx"):
        onnx.load(path, load_external_data=False)
