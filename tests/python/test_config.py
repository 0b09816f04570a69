"""ascend-fuse.toml and variables of the environment: which of them wins, what is an error, and that no run is silent about it."""

from __future__ import annotations

import json
import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest
from conftest import ROOT, TOOL, run_ok


@dataclass
class Here:
    """A folder with a model and a config file, in which the program runs."""

    folder: Path
    model: Path

    def write(self, text: str, name: str = "ascend-fuse.toml") -> Path:
        path = self.folder / name
        path.write_text(text)
        return path

    def run(self, *arguments: object, **variables: str) -> subprocess.CompletedProcess[str]:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("ASCEND_FUSE_")} | variables
        return subprocess.run([TOOL, *map(str, arguments)], cwd=self.folder, env=environment, capture_output=True, text=True,
                              errors="replace")

    def target(self, *arguments: object, **variables: str) -> dict[str, object]:
        done = self.run("list", self.model, "--json", "-", *arguments, **variables)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)["target"]


@pytest.fixture
def here(zoo: Path, tmp_path: Path) -> Here:
    return Here(tmp_path, zoo / "llama-sdpa-past-ts17-dynamic.onnx")


def test_flags_win_over_variables_and_these_over_the_file(here: Here) -> None:
    assert here.target()["chip"] == "ascend910b"
    here.write('target = "ascend310p"\ncann = "8.5"\n')
    assert (here.target()["chip"], here.target()["cann"]) == ("ascend310p", "8.5")
    assert here.target(ASCEND_FUSE_TARGET="ascend910_93")["chip"] == "ascend910_93"
    assert here.target("--target", "ascend950", "--cann", "2026.07", ASCEND_FUSE_TARGET="ascend910_93")["chip"] == "ascend950"
    assert here.target(ASCEND_FUSE_NO_CONFIG="1", ASCEND_FUSE_TARGET="ascend910_93")["chip"] == "ascend910b"


def test_stderr_says_which_file_was_read(here: Here) -> None:
    assert here.run("list", here.model).stderr == ""
    here.write("strict = true\n")
    assert here.run("list", here.model).stderr == "ascend-fuse: options from ascend-fuse.toml\n"
    assert here.run("list", here.model, "--quiet").stderr == ""
    other = here.write('target = "ascend310p"\n', "other.toml")
    for arguments in (("--config", other, "list", here.model), ("list", here.model, "--config", other), ("list", here.model, f"--config={other}")):
        done = here.run(*arguments)
        assert done.stderr == f"ascend-fuse: options from {other}\n" and "target ascend310p" in done.stdout


def test_only_the_current_folder_is_looked_at(here: Here) -> None:
    here.write('target = "ascend310p"\n')
    below = here.folder / "below"
    below.mkdir()
    assert Here(below, here.model).target()["chip"] == "ascend910b"


def test_lists_switches_comments_and_sections(here: Here) -> None:
    here.write("""\
# of all commands
dim = ["batch=1..8",   # a comment
       'seq=1..2048',
       "past=0..4096"]
plugin = true
limit = 3

[optimize]
limit = 0   # of this command alone
""")
    report = json.loads(here.run("list", here.model, "--json", "-").stdout)
    assert set(report["target"]["dims"]) == {"batch=1..8", "seq=1..2048", "past=0..4096"} and report["target"]["plugin"]
    done = here.run("optimize", here.model, "-o", "o.onnx", "--quiet")
    assert done.returncode == 0 and (here.folder / "o.onnx").read_bytes() == here.model.read_bytes()
    assert here.target("--dim", "seq=7")["dims"] == ["seq=7"]  # a flag replaces the list
    here.write("plugin = true\n[list]\nplugin = false\n")
    assert not here.target()["plugin"]
    here.write('require = "glu,attention"\nplugin = false\n')
    assert here.run("list", here.model).returncode == 3


def test_rules_of_the_file(here: Here) -> None:
    here.write("rule my_mish <kind = mish> (x) => (y)\nmatch { y = Mul (x, Tanh (Softplus (x))) }\nemit { y = ascend_fuse.Mish (x) }\n"
               "rule my_npu_mish <kind = mish> (x) => (y)\nmatch { y = ascend_fuse.Mish (x) }\nemit { y = npu.NPUMish (x) }\n", "m.rule")
    here.write('rules = ["m.rule"]\n')
    assert "my_mish" in here.run("rules").stdout
    here.write("")
    assert "my_mish" not in here.run("rules").stdout and "my_mish" in here.run("rules", ASCEND_FUSE_RULES="m.rule").stdout
    here.write('[rules.test]\ncount = 1\nmutants = 0\nseed = 3\n')
    assert here.run("rules", "test", "m.rule", "--graphs").returncode == 0


@pytest.mark.parametrize(("text", "sentence"), [
    ('target = "ascend310p"\ncannn = "x"\n', "ascend-fuse.toml:2: cannn is not an option of any command; did you mean cann?"),
    ("[optimise]\nstrict = true\n", "there is no command optimise for the section [optimise]; did you mean optimize?"),
    ("[check]\nstrict = true\n", "ascend-fuse.toml:2: strict is not an option of ascend-fuse check"),
    ("zzzzzzzzzz = 1\n", "zzzzzzzzzz is not an option of any command\n"),
    ("target = ascend310p\n", 'ascend-fuse.toml:1: a text stands in quotes: "ascend310p"'),
    ('target = "ascend310p\n', "ascend-fuse.toml:1: a quotation mark is missing"),
    ('rules = ["a#b.rule"]\n', "a value cannot have a # in it"),
    ("strict\n", "ascend-fuse.toml:1: expected key = value"),
    ("strict = yes\n", "a text stands in quotes"),
    ('strict = "yes"\n', "ascend-fuse.toml:1: strict takes true or false"),
    ("strict = true\nstrict = false\n", "ascend-fuse.toml:2: strict stands here twice"),
    ('dim = ["seq=1"\n', "the list is not closed"),
    ("limit = 1.5\n", "ascend-fuse.toml:1: "),
    ('target = ["ascend310p", "ascend950"]\n', "ascend-fuse.toml:1: "),
    ("help = true\n", "help is not an option"),
    ('target = "tpu"\n', "there are ascend310b"),
    ('dim = "seq="\n', "--dim seq=: expected name=N"),
])
def test_what_is_wrong_is_named_with_its_line(here: Here, text: str, sentence: str) -> None:
    here.write(text)
    done = here.run("list", here.model)
    assert done.returncode == 2 and sentence in done.stderr, done.stderr
    assert done.stdout == ""


def test_a_file_that_is_not_there(here: Here) -> None:
    done = here.run("--config", "nowhere.toml", "list", here.model)
    assert done.returncode == 1 and "nowhere.toml" in done.stderr


def test_every_option_of_every_command_is_a_key(here: Here) -> None:
    page = (ROOT / "docs" / "command-line.md").read_text()
    sections = dict(re.findall(r"^## ascend-fuse (.*)\n((?:(?!^## ).*\n?)*)", page, re.MULTILINE))
    assert len(sections) > 15
    for command, text in sections.items():
        for flag in re.findall(r"^\| `(?:-\w,)?--([a-z-]+)", text, re.MULTILINE):
            here.write(f'[{command.replace(" ", ".")}]\n{flag} = "x"\n')
            assert "is not an option" not in here.run("list", here.model).stderr, (command, flag)


def test_documents_and_help_do_not_read_it(here: Here) -> None:
    here.write("nonsense")
    for arguments in (("man",), ("completion", "bash"), ("--help",), ("--version",), ("optimize", "--help"), ("--explain-exit",)):
        assert here.run(*arguments).returncode == 0


def test_what_exit_codes_mean() -> None:
    text = run_ok("--explain-exit").out
    assert re.findall(r"^(\d)  ", text, re.MULTILINE) == ["0", "1", "2", "3", "4"]
    assert run_ok("--explain-exit", "4").out in text
    assert "signal 9" in run_ok("--explain-exit", "137").out
    man = run_ok("man").out.replace("\\-", "-")
    for code, meaning in re.findall(r"^(\d)  (.*)", text, re.MULTILINE):
        assert f".TP\n{code}\n{meaning}." in man
    for wrong in ("5", "x", "1000", "-1"):
        done = subprocess.run([TOOL, "--explain-exit", wrong], capture_output=True, text=True)
        assert done.returncode == 2 and "is not an exit code of this program" in done.stderr
