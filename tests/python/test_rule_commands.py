"""What a user has for rules: `rules --check`, `rules new`, `rules test`, `explain --rule --at`, and --limit bisected."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import onnx
import onnx.parser
import pytest
from conftest import BUILD, ROOT, TOOL, Result, run, run_ok

GOLDEN = ROOT / "tests" / "golden" / "user_rules"
FEW = ("--count", 4, "--mutants", 3)


def model(path: Path, nodes: str, weights: str = "") -> Path:
    """Writes y = ... of x [B, 8, 16]."""
    onnx.save(onnx.parser.parse_model(f"""<ir_version: 8, opset_import: ["" : 17]>
        g (float[B, 8, 16] x) => (float[B, 8, 16] y) {weights} {{ {nodes} }}"""), path)
    return path


def outcome_of(*arguments: object) -> Result:
    """Runs `rules test`, which finds the Python of the tests."""
    environment = dict(os.environ, PATH=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    done = subprocess.run([str(TOOL), "rules", "test", *map(str, arguments)], env=environment, capture_output=True, text=True)
    return Result(done.returncode, done.stdout, done.stderr)


def passed(*arguments: object) -> Result:
    """The same, and it must find no fault."""
    result = outcome_of(*arguments)
    assert result.code == 0, result.out + result.err
    return result


# --- rules --check ---


def test_check_says_what_is_in_a_file() -> None:
    lines = run_ok("rules", "--check", GOLDEN / "l1_norm.rule").out.splitlines()
    assert [line.split(": ", 1)[1] for line in lines[:-1]] == [
        "l1_norm: recogniser of kind l1_norm, ends in Mul, makes ascend_fuse.L1Norm",
        "npu_l1_norm: lowering of kind l1_norm, ends in ascend_fuse.L1Norm, makes npu.NPUL1Norm",
        "npu_l1_norm_reference: reference of kind npu_l1_norm_reference, ends in npu.NPUL1Norm, makes Mul",
    ]
    assert lines[0].startswith(f"{GOLDEN / 'l1_norm.rule'}:2: ") and lines[-1] == "3 rules, no mistake"


def test_check_names_the_place_of_a_mistake(tmp_path: Path) -> None:
    rule = tmp_path / "wrong.rule"
    rule.write_text("rule wrong (x) => (y)\nmatch { y = Relu (Reluu (x)) }\nemit { y = Relu (x) }\n")
    result = run("rules", "--check", rule)
    assert result.code == 1 and result.out == "" and f"{rule}:2:19: unknown operator or definition 'Reluu'" in result.err
    assert run("rules", "--check", tmp_path / "none.rule").code == 1


def test_check_says_that_a_built_in_rule_is_replaced(tmp_path: Path) -> None:
    rule = tmp_path / "mine.rule"
    rule.write_text("rule mish (x) => (y)\nmatch { y = Mul (x, Tanh (Softplus (x))) }\nemit { y = ascend_fuse.Mine (x) }\n"
                    "rule npu_mine <kind = mish> (x) => (y)\nmatch { y = ascend_fuse.Mine (x) }\nemit { y = npu.NPUMish (x) }\n")
    assert "makes ascend_fuse.Mine, in place of the built-in rule\n" in run_ok("rules", "--check", rule).out


@pytest.mark.parametrize("name", sorted(f"{path.parent.name}/{path.name}" for path in (ROOT / "patterns" / "rules").glob("*/*.rule")))
def test_every_file_that_ships_is_a_file_of_a_user(name: str, tmp_path: Path) -> None:
    copy = tmp_path / Path(name).name
    shutil.copy(ROOT / "patterns" / "rules" / name, copy)
    assert "no mistake" in run_ok("rules", "--check", copy).out


def test_a_definition_cannot_hide_a_function(tmp_path: Path) -> None:
    rule = tmp_path / "hides.rule"
    rule.write_text("def rotation (x, s) = Add (x, s)\nrule mine (x) => (y)\nmatch { y = Relu (Relu (x)) }\nemit { y = Relu (x) }\n")
    assert f"{rule}:1:5: 'rotation' is a function" in run("rules", "--check", rule).err


# --- rules new ---


def test_new_writes_a_rule_that_works(tmp_path: Path) -> None:
    run_ok("rules", "new", "my_rule", "-o", tmp_path / "rules")
    names = ["my_rule.onnxtxt", "my_rule.rule", "my_rule_near_miss.onnxtxt"]
    assert sorted(path.name for path in (tmp_path / "rules").iterdir()) == names
    text = (tmp_path / "rules" / "my_rule.rule").read_text()
    assert "NAME" not in text and text.count("#") > 10
    assert run_ok("rules", "--check", tmp_path / "rules" / "my_rule.rule").out.endswith("1 rule, no mistake\n")
    out = passed(tmp_path / "rules" / "my_rule.rule", *FEW).out
    assert out.splitlines()[:2] == ["golden my_rule.onnxtxt: as expected", "golden my_rule_near_miss.onnxtxt: as expected"]
    assert out.endswith("2 goldens and 1 rule: no fault\n") and re.search(r"numbers: [1-9]\d* graphs compared", out)
    result = run("rules", "new", "my_rule", "-o", tmp_path / "rules")
    assert result.code == 1 and "is there already" in result.err


@pytest.mark.parametrize(("name", "why"), [("My-Rule", "cannot be the name"), ("", "cannot be the name"), ("mish", "built-in rule mish")])
def test_new_refuses_a_name(name: str, why: str, tmp_path: Path) -> None:
    result = run("rules", "new", name, cwd=tmp_path)
    assert result.code == 2 and why in result.err and not list(tmp_path.iterdir())


# --- rules test ---


def test_a_chain_of_rules_is_tested_by_its_reference() -> None:
    out = passed(GOLDEN / "l1_norm.rule", "--target", GOLDEN / "l1_chip.txtpb", *FEW).out
    assert "golden l1_norm.onnxtxt: as expected" in out
    for rule in ("l1_norm", "npu_l1_norm"):
        section = out.split(f"rule {rule}\n")[1].split("rule ")[0]
        assert re.search(r"^  [1-9]\d* fused on ", section, re.MULTILINE), section
        assert re.search(r"numbers: [1-9]\d* graphs compared", section), section


def test_what_is_not_compared_is_said(tmp_path: Path) -> None:
    """A reference rule that does not know the form that the lowering makes."""
    head, reference = (GOLDEN / "l1_norm.rule").read_text().split("# What that node computes")
    rule = tmp_path / "l1_norm.rule"
    rule.write_text(f"{head}# What that node computes{reference.replace('<epsilon>', '<epsilon = 5>').replace(', epsilon)', ', 5)')}")
    out = passed(rule, "--target", GOLDEN / "l1_chip.txtpb", *FEW).out
    assert "not compared: " in out and "npu.NPUL1Norm" in out


def test_a_wrong_rule_is_found_by_its_numbers(tmp_path: Path) -> None:
    rule = tmp_path / "wrong.rule"
    rule.write_text("rule wrong <kind = mish> (x) => (y)\nmatch { y = Mul (x, Tanh (Sigmoid (x))) }\nemit { y = Mish (x) }\n")
    result = outcome_of(rule, *FEW, "--keep", tmp_path / "kept")
    assert result.code == 3 and re.search(r"  wrong: .*relative error", result.out), result.out + result.err
    kept = sorted((tmp_path / "kept").iterdir())
    assert kept and {"Tanh", "Sigmoid"} <= {node.op_type for node in onnx.load(kept[0]).graph.node}


def test_a_golden_that_differs_is_found(tmp_path: Path) -> None:
    run_ok("rules", "new", "my_rule", "-o", tmp_path)
    golden = tmp_path / "my_rule_near_miss.onnxtxt"
    golden.write_text(golden.read_text().replace("addend = {2}", "addend = {1}"))
    result = outcome_of(tmp_path / "my_rule.rule", "--count", 1, "--mutants", 0)
    assert result.code == 3 and re.search(r"golden my_rule_near_miss.onnxtxt: expected .*Exp.*; found y = NPUMish \(x\)", result.out), result.out


def test_a_rule_with_a_mistake_is_not_tested(tmp_path: Path) -> None:
    rule = tmp_path / "wrong.rule"
    rule.write_text("rule wrong (x) => (y)\nmatch { y = Reluu (x) }\n")
    result = run("rules", "test", rule)
    assert result.code == 1 and "unknown operator" in result.err


# --- explain --rule --at ---


@pytest.fixture
def rational(tmp_path: Path) -> list[object]:
    nodes = "e = Exp (x) u = Add (e, one) v = Mul (u, u) a = Sub (v, one) b = Add (v, {}) q = Div (a, b) y = Mul (x, q)"
    constants = "<float one = {1}, float two = {2}>"
    model(tmp_path / "fits.onnx", nodes.format("one"), constants)
    model(tmp_path / "near.onnx", nodes.format("two"), constants)
    return [tmp_path, ("--rule", "rational_mish", "--rules", GOLDEN / "rational_mish.rule")]


def test_explain_shows_what_each_part_met(rational: list[object]) -> None:
    folder, flags = rational
    out = run_ok("explain", folder / "fits.onnx", *flags, "--at", "y").out
    assert "before recognise, from Mul y\n" in out and out.endswith("it matches: 7 nodes\n")
    steps = re.findall(r"^  \d+:\d+ +(\S+) +(.*)$", out, re.MULTILINE)
    assert steps[0] == ("Mul", "y") and ("Exp", "e") in steps and ("1", "one = 1") in steps
    # From a node inside it finds the end.
    assert run_ok("explain", folder / "fits.onnx", *flags, "--at", "e").out.split("\n", 1)[1] == out.split("\n", 1)[1]


def test_explain_shows_where_it_ended_and_why(rational: list[object]) -> None:
    folder, flags = rational
    out = run_ok("explain", folder / "near.onnx", *flags, "--at", "y").out
    assert re.search(r"^it ends at \d+:\d+: expected the constant 1, found two = 2$", out, re.MULTILINE), out
    assert "other ways ended earlier\n" in out and out.count("after the other rules have recognised") == 1
    # A node after which the rule can end nowhere.
    path = model(folder / "relu.onnx", "y = Relu (x)")
    assert "the rule ends in Mul, and neither Relu y nor what follows it is one" in run_ok("explain", path, *flags, "--at", "y").out


def test_explain_shows_conditions_and_definitions(zoo: Path) -> None:
    llama = zoo / "llama-sdpa-past-ts17-dynamic.onnx"
    out = run_ok("explain", llama, "--rule", "rms_norm", "--at", "/model/layers.0/input_layernorm/Pow").out
    assert re.search(r"^it matches: \d+ nodes$", out, re.MULTILINE), out
    assert re.search(r"^  \d+:\d+ +dtype \(y\) = dtype \(x\) +holds$", out, re.MULTILINE), out
    assert re.search(r"^  \d+:\d+ +axis = trailing_axes \(over\) +-1$", out, re.MULTILINE), out
    assert re.search(r"\? +left out$", out, re.MULTILINE) and re.search(r"^  defs.rule:\d+:\d+ ", out, re.MULTILINE), out
    assert re.search(r"^  \d+:\d+ +weighted\? +tried as ", out, re.MULTILINE), "the largest match, with the weight"
    # A lowering is looked at after its recogniser.
    out = run_ok("explain", llama, "--rule", "npu_rms_norm", "--at", "/model/layers.0/input_layernorm/Mul_1_output_0").out
    assert "before lower, from RMSNormalization" in out and "it matches" in out


def test_explain_asks_for_what_it_needs(rational: list[object]) -> None:
    folder, flags = rational
    path = folder / "fits.onnx"
    for words, code, why in [
        ((path, "--rule", "rational_mish"), 2, "MODEL --rule NAME --at NODE"),
        (("--rule", "rational_mish", "--at", "y"), 2, "MODEL --rule NAME --at NODE"),
        ((path, *flags, "--at", "nowhere"), 1, "no node or value nowhere"),
        ((path, "--rule", "rms_nrom", "--at", "y"), 1, "no rule is called rms_nrom; there are rms_norm"),
        ((path, "--rule", "zzz", "--at", "y"), 1, "`ascend-fuse rules` lists them"),
        ((folder / "none.onnx", *flags, "--at", "y"), 1, "none.onnx"),
    ]:
        result = run("explain", *words)
        assert (result.code, result.out) == (code, "") and why in result.err, result


# --- --limit, bisected ---


def test_bisecting_finds_the_rewrite(tmp_path: Path) -> None:
    path = model(tmp_path / "m.onnx", "s = Softplus (x) t = Tanh (s) a = Mul (x, t) b = Relu (a) "
                 "e = Softplus (b) f = Tanh (e) g = Mul (b, f) y = Relu (g)")
    # "Good" is a model with at most one Mish: the second one does harm.
    check = tmp_path / "check.sh"
    check.write_text("#!/bin/sh\n[ $(ascend-fuse print $1 | grep -c NPUMish) -le 1 ]\n")
    check.chmod(0o755)
    environment = dict(os.environ, PATH=f"{BUILD}:{os.environ['PATH']}")
    command = ["bash", ROOT / "examples" / "bisect.sh", path, check]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    found = re.match(r"good with --limit (\d), not with --limit (\d); between them:\n", done.stdout)
    assert done.returncode == 0 and found and int(found[2]) == int(found[1]) + 1 and "NPUMish" in done.stdout, done.stdout + done.stderr
    check.write_text("#!/bin/sh\n")
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.stdout == "all rewrites are good\n", done.stdout + done.stderr
    check.write_text("#!/bin/sh\nfalse\n")
    assert subprocess.run(command, env=environment, capture_output=True, text=True).returncode == 1
