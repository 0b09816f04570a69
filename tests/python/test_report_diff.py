"""`ascend-fuse report diff`: what got worse between two reports, for a pipeline."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from conftest import run, run_ok


@pytest.fixture(scope="module")
def kept(zoo: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("kept") / "kept.json"
    run_ok("analyze", zoo / "llama-sdpa-past-ts17-dynamic.onnx", "--json", path, "--quiet")
    return path


def changed(kept: Path, path: Path, change: Any) -> Path:
    analysis = json.loads(kept.read_text())
    change(analysis)
    path.write_text(json.dumps(analysis))
    return path


def test_the_same_is_not_worse(kept: Path) -> None:
    assert run_ok("report", "diff", kept, kept).out == "nothing got worse or better\n"


def test_a_site_that_is_left_is_worse(kept: Path, tmp_path: Path) -> None:
    def leave(analysis: Any) -> None:
        for site in analysis["report"]["sites"]:
            if site["kind"] == "attention":
                site.update(state="left", because="the mask is a bias", emitted_op="")

    now = changed(kept, tmp_path / "now.json", leave)
    done = run("report", "diff", kept, now)
    assert done.code == 3
    assert done.out == "worse   2 x attention model.layers.*.self_attn was fused and is left: the mask is a bias\n"
    back = run_ok("report", "diff", now, kept)
    assert back.out == "better  2 x attention model.layers.*.self_attn was left and is fused as npu.NPUPromptFlashAttention\n"


def test_numbers_of_an_analysis_are_compared(kept: Path, tmp_path: Path) -> None:
    def grow(analysis: Any) -> None:
        analysis["after"]["kernels"] += 7
        analysis["after"]["bytes"]["value"] *= 1.5
        analysis["memory"]["after"]["peak"]["value"] /= 2
        analysis["complexity"]["level"] = "high"

    kernels = json.loads(kept.read_text())["after"]["kernels"]
    done = run("report", "diff", kept, changed(kept, tmp_path / "now.json", grow))
    assert done.code == 3
    assert f"worse   kernels: {kernels} before, {kernels + 7} now" in done.out
    assert "worse   bytes moved: " in done.out
    assert "worse   the migration was low and is high" in done.out
    assert "better  the peak of activations: " in done.out


def test_what_atc_rejects_is_worse(kept: Path, tmp_path: Path) -> None:
    def refuse(analysis: Any) -> None:
        analysis["report"]["findings"].append({"code": "no-parser", "effect": "no_parser", "certain": True, "op": "Xor9", "node": "n",
                                               "because": "ATC has no parser for it"})

    done = run("report", "diff", kept, changed(kept, tmp_path / "now.json", refuse))
    assert done.code == 3
    assert done.out == "worse   ATC rejects or misreads 1 more Xor9 (no-parser), n: ATC has no parser for it\n"


def test_a_report_and_an_analysis_are_compared_by_their_sites(zoo: Path, kept: Path, tmp_path: Path) -> None:
    run_ok("list", zoo / "llama-sdpa-past-ts17-dynamic.onnx", "--json", tmp_path / "list.json", "--quiet")
    assert run("report", "diff", tmp_path / "list.json", kept).code == 0


def test_reports_of_optimize(zoo: Path, tmp_path: Path) -> None:
    reports = {}
    for name, options in (("all", []), ("less", ["--skip", "rotary"])):
        reports[name] = tmp_path / f"{name}.json"
        run_ok("optimize", zoo / "llama-sdpa-past-ts17-dynamic.onnx", "-o", tmp_path / "out.onnx", "--quiet", "--json", reports[name], *options)
    assert run("report", "diff", reports["less"], reports["all"]).code == 0
    done = run("report", "diff", reports["all"], reports["less"])
    assert done.code == 3 and "4 x rotary that was fused is not there now" in done.out


def test_wrong_files(kept: Path, tmp_path: Path) -> None:
    (tmp_path / "no.json").write_text("{")
    assert "not a report" in run("report", "diff", kept, tmp_path / "no.json").err
    assert run("report", "diff", kept, tmp_path / "missing.json").code == 1
    assert run("report").code == 2
