"""A long run: worker processes take seeds, every graph leaves one line in a file, and a second call goes on after the first.

A worker that crashes or hangs costs the seed that it had, which is a finding.
"""

from __future__ import annotations

import collections
import dataclasses
import json
import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

Record = dict[str, Any]
PER_WORKER = 250  # seeds, so that no process grows old
MOST_FINDINGS = 4  # of one kind and seed that are recorded


def examine(seed: int, edge: bool = True) -> Record:
    """Everything about one seed, as a line of the file; without `edge` no dim is 0."""
    from fuzz import configuration, inputs, oracles, plan

    started = time.monotonic()
    chosen = plan.choose(seed)
    if not edge:
        chosen["edge"] = "none"
    record: Record = {"seed": seed, "generator": plan.GENERATOR, "constructs": plan.constructs(chosen)}
    try:
        subject = oracles.Subject(chosen)
    except oracles.Unusable as error:
        return {**record, "unusable": str(error)[:200]}
    stage("results")
    examiner = oracles.Examiner(subject)
    for one in configuration.choose(seed, subject.graph, inputs.padding(chosen)):
        examiner.examine(one)
    result = examiner.result
    kept: collections.Counter[str] = collections.Counter()
    findings = []
    for finding in result.findings:
        kept[finding.kind] += 1
        if kept[finding.kind] <= MOST_FINDINGS:
            findings.append(dataclasses.asdict(finding))
    return {**record, "nodes": dict(result.nodes), "evaluated": dict(result.evaluated), "refusals": dict(result.refusals), "runs": result.runs,
            "comparisons": result.comparisons, "nearest": round(result.nearest, 4), "findings": findings, "counts": dict(kept),
            "bindings": len(subject.feeds), "seconds": round(time.monotonic() - started, 3)}


def stage(name: str) -> None:
    """Told to the parent, so that it knows what a crash belongs to."""
    if WORKING:
        print(json.dumps({"stage": name}), flush=True)


WORKING = False


def work(seeds: Iterable[int], edge: bool) -> None:
    """A worker: one line before each seed and one after it."""
    import onnxruntime

    global WORKING
    WORKING = True
    onnxruntime.set_default_logger_severity(4)
    for seed in seeds:
        print(json.dumps({"begin": seed}), flush=True)
        try:
            record = examine(seed, edge)
        except Exception as error:  # a mistake of the fuzzer itself: it is seen, and the run goes on
            record = {"seed": seed, "mistake": f"{type(error).__name__}: {error}"[:300]}
        print(json.dumps(record), flush=True)


class Worker:
    """A process with its seeds. `records` yields what it wrote, and what became of it."""

    def __init__(self, seeds: list[int], limit: float):
        self.left, self.limit = list(seeds), limit
        self.without_edge: list[int] = []  # ONNX Runtime ends the process on the original where a dim is 0

    def records(self) -> Iterator[Record]:
        while self.left or self.without_edge:
            edge = bool(self.left)
            if not edge:
                self.left, self.without_edge = self.without_edge, []
            command = [sys.executable, "-m", "fuzz", "worker", *map(str, self.left), *([] if edge else ["--no-edge"])]
            process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=os.environ)
            lines: queue.Queue[str | None] = queue.Queue()
            threading.Thread(target=self._read, args=(process, lines), daemon=True).start()
            yield from self._follow(process, lines, edge)

    def _read(self, process: subprocess.Popen[str], lines: queue.Queue[str | None]) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            lines.put(line)
        lines.put(None)

    def _follow(self, process: subprocess.Popen[str], lines: queue.Queue[str | None], edge: bool) -> Iterator[Record]:
        current: int | None = None
        reached = "original"
        while True:
            try:
                line = lines.get(timeout=self.limit)
            except queue.Empty:
                process.kill()
                process.wait()
                yield self._lost(current, "hang", f"no end in {self.limit:g} s", reached)
                return
            if line is None:
                code = process.wait()
                if current is not None and reached == "original" and edge:
                    self.left.remove(current)
                    self.without_edge.append(current)
                elif current is not None:
                    yield self._lost(current, "crash", f"the process ended with {code}", reached)
                elif code or self.left:
                    raise RuntimeError(f"a worker ended with {code} before its first seed")
                return
            record = json.loads(line)
            if "begin" in record:
                current, reached = record["begin"], "original"
            elif "stage" in record:
                reached = record["stage"]
            else:
                self.left.remove(record["seed"])
                current = None
                yield record

    def _lost(self, seed: int | None, kind: str, sentence: str, reached: str) -> Record:
        if seed is None:
            raise RuntimeError(f"a worker was lost before its first seed: {sentence}")
        self.left.remove(seed)
        if reached == "original":
            return {"seed": seed, "unusable": f"{kind} of ONNX Runtime on the original"}
        return {"seed": seed, "findings": [{"kind": kind, "configuration": "", "sentence": sentence, "binding": ""}], "counts": {kind: 1}}


def read(path: Path) -> list[Record]:
    """The lines of a file of records; a line that a killed run left half is dropped."""
    records = []
    if path.exists():
        for line in path.read_text().splitlines():
            try:
                records.append(json.loads(line))
            except ValueError:
                continue
    return records


def run(path: Path, first: int, count: int, jobs: int, limit: float, seconds: float, say: Any = print) -> int:
    """Takes the seeds that the file does not have yet; returns how many findings there are."""
    done = {r["seed"] for r in read(path)}
    todo = [seed for seed in range(first, first + count) if seed not in done]
    chunks: queue.Queue[list[int]] = queue.Queue()
    for start in range(0, len(todo), PER_WORKER):
        chunks.put(todo[start : start + PER_WORKER])
    end = time.monotonic() + seconds
    lock, totals = threading.Lock(), collections.Counter[str]()
    with path.open("a") as file:

        def take() -> None:
            while time.monotonic() < end:
                try:
                    seeds = chunks.get_nowait()
                except queue.Empty:
                    return
                for record in Worker(seeds, limit).records():
                    with lock:
                        file.write(json.dumps(record) + "\n")
                        file.flush()
                        totals["graphs"] += 1
                        for finding in record.get("findings", [])[:1]:
                            totals["findings"] += 1
                            say(f"seed {record['seed']}: {finding['kind']}: {finding['sentence'][:200]} [{finding['configuration']}]", flush=True)
                    if time.monotonic() >= end:
                        return

        threads = [threading.Thread(target=take) for _ in range(jobs)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    say(f"{totals['graphs']} graphs, {totals['findings']} with findings; {path} has {len(read(path))} of them", flush=True)
    return totals["findings"]
