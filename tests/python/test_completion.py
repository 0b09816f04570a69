"""Completions as the shells themselves make them: bash, zsh at a terminal, fish. Where a shell is missing its tests are skipped."""

from __future__ import annotations

import os
import pty
import re
import select
import shutil
import subprocess
import time
from pathlib import Path

import pytest
from conftest import TOOL, run_ok
from test_packages import COMMANDS, complete, flags_of

fish = pytest.mark.skipif(shutil.which("fish") is None, reason="fish is not installed: apt-get install fish")
zsh = pytest.mark.skipif(shutil.which("zsh") is None, reason="zsh is not installed: apt-get install zsh")


def fish_offers(line: str) -> set[str]:
    """What fish offers at the end of the line."""
    script = f'ascend-fuse completion fish | source; complete -C "{line}"'
    done = subprocess.run(["fish", "--no-config", "-c", script], capture_output=True, text=True,
                          env=dict(os.environ, PATH=f"{TOOL.parent}:{os.environ['PATH']}"))
    assert done.returncode == 0 and not done.stderr, done.stderr
    return {row.split("\t")[0] for row in done.stdout.splitlines()}


@fish
def test_fish() -> None:
    assert set(COMMANDS) <= fish_offers("ascend-fuse ")
    assert fish_offers("ascend-fuse opt") == {"optimize"}
    for command in COMMANDS:
        assert flags_of(command) - {"--help"} <= fish_offers(f"ascend-fuse {command} --"), command
    assert {"ascend910b", "ascend950"} <= fish_offers("ascend-fuse optimize --target ascend9")
    assert {"new", "test"} <= fish_offers("ascend-fuse rules ")
    assert fish_offers("ascend-fuse completion z") == {"zsh"}
    assert {"--config", "--explain-exit", "--version"} <= fish_offers("ascend-fuse --")


def zsh_completes(keys: str, load: str, folder: Path) -> str:
    """The words of the command line that zsh has after these keys, \\t among them, at a terminal."""
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(folder)
        os.environ.update(TERM="dumb", PS1="", ZDOTDIR=str(folder))
        os.execvp("zsh", ["zsh", "-f", "-i"])
    try:
        os.write(terminal, f"PROMPT=; {load}; ascend-fuse() {{ print -r -- \"GOT[$*]\" }}; print -r READY''NOW\n".encode())
        read_until(terminal, "READYNOW")
        for key in re.split("(\t)", keys):
            os.write(terminal, key.encode())
            time.sleep(0.3 if key == "\t" else 0.05)
        os.write(terminal, b"\n")
        return re.search(r"GOT\[(.*?)\]", read_until(terminal, r"GOT\[.*?\]"))[1]
    finally:
        os.kill(child, 9)
        os.waitpid(child, 0)
        os.close(terminal)


def read_until(terminal: int, pattern: str, seconds: float = 20) -> str:
    text, end = "", time.monotonic() + seconds
    while not re.search(pattern, text) and time.monotonic() < end:
        if select.select([terminal], [], [], 0.2)[0]:
            text += os.read(terminal, 65536).decode(errors="replace")
    assert re.search(pattern, text), text
    return text


@zsh
@pytest.mark.parametrize("how", ["read by source", "found in fpath"])
def test_zsh(tmp_path: Path, how: str) -> None:
    (tmp_path / "_ascend-fuse").write_text(run_ok("completion", "zsh").out)
    (tmp_path / "model.onnx").write_text("")
    init = "autoload -U compinit; compinit -u -D"
    load = f"{init}; source ./_ascend-fuse" if how == "read by source" else f"fpath=({tmp_path} $fpath); {init}"
    for keys, words in (("ascend-fuse optim\tmod\t --plug\t --target ascend310p\t", "optimize model.onnx --plugin --target ascend310p"),
                        ("ascend-fuse rul\tte\t --mut\t", "rules test --mutants"),
                        ("ascend-fuse completion zs\t", "completion zsh"),
                        ("ascend-fuse --expl\t", "--explain-exit")):
        assert " ".join(zsh_completes(keys, load, tmp_path).split()) == words, keys


@zsh
def test_zsh_has_every_command_and_flag() -> None:
    text = run_ok("completion", "zsh").out
    done = subprocess.run(["zsh", "-f", "-n"], input=text, capture_output=True, text=True)
    assert done.returncode == 0 and not done.stderr, done.stderr
    for command in COMMANDS:
        line = re.search(rf"^    {command}\) all=\((.*)\) ;;$", text, re.MULTILINE)[1]
        assert all(f"'{flag}:" in line for flag in flags_of(command)), command


def test_bash() -> None:
    assert complete(["ascend-fuse", "rules", ""]) >= {"new", "test"}
    assert complete(["ascend-fuse", "completion", ""]) == {"bash", "zsh", "fish"}
    assert {"--config", "--explain-exit"} <= complete(["ascend-fuse", "--"])
    assert "ascend950" in complete(["ascend-fuse", "targets", "ascend9"])
