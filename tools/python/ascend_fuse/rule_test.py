"""Tests of a user's rules: their goldens, and graphs that are made from the rules backwards, compared in numbers.

    ascend-fuse rules test my.rule

Goldens are the files *.onnxtxt beside the rules whose line `# RUN:` names them: what stands after `# GRAPH:` must come out.
Then each rule is turned round: graphs that it must match, with copies in between that say nothing, and graphs that differ
from them in one place. What is fused is expanded again and run in ONNX Runtime beside the graph as it was.

Exit codes: 0 all is well, 1 an error, 3 a golden differs, a rule misses a graph of its own, numbers differ, or nothing could be
tested.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

# What is missing is said here, as verification does.
try:
    import onnx
    import onnx.parser

    from ascend_fuse.backwards_oracle import Oracle, records
except ImportError as error:  # pragma: no cover
    if __name__ != "__main__":
        raise
    print(f"ascend-fuse: rules test needs the Python packages numpy, onnx and onnxruntime: {error}. Install them with: "
          "python3 -m pip install numpy onnx onnxruntime", file=sys.stderr)
    sys.exit(1)

_EXIT_NOT_MET = 3


@dataclass
class RuleOutcome:
    """What the graphs of one rule showed."""

    rule: str
    lowering: bool = False
    matched: int = 0
    by_other: dict[str, int] = field(default_factory=dict)
    fused_on: dict[str, int] = field(default_factory=dict)
    refused: int = 0  # of the graphs that differ in one place
    taken: int = 0
    compared: int = 0
    rejected: int = 0  # by ONNX Runtime, as generated
    missed: list[str] = field(default_factory=list)
    misses: list[str] = field(default_factory=list)  # the first of them with the reason
    wrong: list[str] = field(default_factory=list)
    not_compared: set[str] = field(default_factory=set)
    unbuilt: dict[str, int] = field(default_factory=dict)

    def faults(self) -> list[str]:
        """Returns a sentence for everything that is wrong."""
        # A lowering is refused by a target: its reason is told, and is not a fault.
        faults = [] if self.lowering else [f"not matched: {name}" for name in self.missed]
        faults += [f"wrong: {name}" for name in self.wrong]
        if not self.matched and not self.by_other and not faults:
            why = "; ".join(sorted(self.unbuilt, key=self.unbuilt.__getitem__, reverse=True)[:3]) or "no target takes it"
            faults.append(f"no graph could be made from it: {why}")
        return faults

    def lines(self) -> Iterator[str]:
        """Yields what a person reads."""
        yield f"rule {self.rule}"
        if self.matched:
            yield f"  {self.matched} graphs made from it, and matched"
        for rule, count in self.by_other.items():
            yield f"  {count} graphs made from it that {rule} matched"
        for target, count in self.fused_on.items():
            yield f"  {count} fused on {target}"
        if self.lowering and self.missed:
            yield f"  {len(self.missed)} that no target took, for example: {self.misses[0].split(': ', 1)[1]}"
        yield f"  {self.refused + self.taken} near misses: {self.refused} refused, {self.taken} taken"
        yield f"  numbers: {self.compared} graphs compared, {self.rejected} that ONNX Runtime does not run"
        for why in sorted(self.not_compared):
            yield f"  not compared: {why}"
        for fault in self.faults():
            yield f"  {fault}"


def _keep(folder: Path | None, name: str, data: bytes) -> str:
    """Writes a graph that shows a fault; where, as the end of a sentence."""
    if folder is None:
        return ""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / (re.sub(r"\W+", "_", name)[:120] + ".onnx")
    path.write_bytes(data)
    return f"; see {path}"


def test_rules(command: list[str], keep: Path | None) -> list[RuleOutcome]:
    """Runs `rules test --graphs` and compares what it writes. Raises RuntimeError with its sentence where it fails."""
    outcomes: dict[str, RuleOutcome] = {}
    oracle = Oracle()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stderr is not None
        try:
            for record in records(process.stdout):
                outcome = outcomes.setdefault(record["rule"], RuleOutcome(record["rule"]))
                if record["record"] == "summary":
                    for name in ("lowering", "matched", "by_other", "fused_on", "refused", "misses", "unbuilt"):
                        setattr(outcome, name, record[name])
                    outcome.taken = record["accepted"]
                    continue
                verdict = oracle.check(record)
                name = record["name"]
                if record["record"] == "missed":
                    outcome.missed.append(name + _keep(keep, name, record["models"][0]))
                if verdict.rejected:
                    outcome.rejected += 1
                elif verdict.wrong:
                    why = re.sub(r"^(\w+): \1 ", r"\1 ", verdict.wrong)
                    outcome.wrong.append(f"{name}: {why}{_keep(keep, name, record['models'][0])}")
                elif record["unexpanded"]:
                    outcome.not_compared.add(record["unexpanded"])
                elif record["models"][2]:
                    outcome.compared += 1
        finally:
            oracle.close()
        errors = process.stderr.read().decode()
    if process.returncode != 0:
        raise RuntimeError(errors.strip() or f"the program ended with {process.returncode}")
    return list(outcomes.values())


def goldens_of(rules: Path) -> list[Path]:
    """Returns the *.onnxtxt files beside a rule file whose line `# RUN:` names it."""
    return [path for path in sorted(rules.parent.glob("*.onnxtxt"))
            if re.search(rf"^# RUN:.*--rules={re.escape(rules.name)}(\s|$)", path.read_text(), re.MULTILINE)]


def check_golden(tool: str, path: Path) -> str:
    """Returns how the result of a golden differs from what stands after `# GRAPH:`, "" if in nothing."""
    text = path.read_text()
    flags = [word for line in re.findall(r"^# RUN:(.*)$", text, re.MULTILINE) for word in line.split()]
    flags = [re.sub(r"^(--(?:rules|target)=)(.*\.(?:rule|txtpb))$", rf"\1{path.parent}/\2", word) for word in flags]
    section = re.search(r"^# GRAPH:\n((?:#.*\n?)*)", text, re.MULTILINE)
    if section is None:
        return "there is no line # GRAPH:"
    expected = [line[1:].strip() for line in section[1].split("# REPORT:")[0].splitlines() if line[1:].strip()]
    with tempfile.TemporaryDirectory(prefix="ascend-fuse-golden-") as folder:
        before, after = Path(folder) / "before.onnx", Path(folder) / "after.onnx"
        try:
            onnx.save(onnx.parser.parse_model(text), str(before))
        except Exception as error:  # onnx has no common type of them
            return f"it is not a model: {error}"
        done = subprocess.run([tool, "optimize", str(before), "-o", str(after), "--quiet", *flags], capture_output=True, text=True)
        if done.returncode != 0:
            return done.stderr.strip()
        if expected == ["unchanged"]:
            expected = _nodes(tool, before)
        found = _nodes(tool, after)
    return "" if found == expected else f"expected {'; '.join(expected)}; found {'; '.join(found)}"


def _nodes(tool: str, model: Path) -> list[str]:
    """The nodes of a model as lines of its text."""
    done = subprocess.run([tool, "print", str(model)], capture_output=True, text=True, check=True)
    body = re.split(r"^.*\{$", done.stdout, maxsplit=1, flags=re.MULTILINE)[1].rpartition("}")[0]
    return [re.sub(r"^\[[^]]*\] ", "", line.strip()) for line in body.splitlines() if line.strip()]


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="ascend-fuse rules test", description=__doc__.splitlines()[0])
    parser.add_argument("files", type=Path, nargs="+")
    parser.add_argument("--tool", required=True)
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--graphs-command", nargs=argparse.REMAINDER, default=[])
    flags = parser.parse_args(arguments)
    goldens = failed = 0
    for rules in flags.files:
        for golden in goldens_of(rules):
            goldens += 1
            why = check_golden(flags.tool, golden)
            failed += bool(why)
            print(f"golden {golden.name}: {why or 'as expected'}", flush=True)
    try:
        outcomes = test_rules([flags.tool, *flags.graphs_command], flags.keep)
    except RuntimeError as error:
        print(error, file=sys.stderr)
        return 1
    for outcome in outcomes:
        print("\n".join(outcome.lines()), flush=True)
        failed += bool(outcome.faults())
    looked_at = f"{_count(goldens, 'golden')} and {_count(len(outcomes), 'rule')}"
    if failed:
        print(f"{looked_at}: {_count(failed, 'fault')}")
        return _EXIT_NOT_MET
    print(f"{looked_at}: no fault")
    return 0


if __name__ == "__main__":
    sys.exit(main())
