#!/usr/bin/env python3
"""ascend-fuse beside its peers on the same exports in one run: sites found per kind, seconds, peak memory, and whether
ONNX Runtime still computes the same with the result.

    python3 bench/peers.py [--only 'llama-*'] [--tool build/ascend-fuse] [--json out.json]

Peers: the transformers optimizer of ONNX Runtime, with each model type that its documentation or name offers for the
architecture (the one that finds most counts), and onnxscript's optimize_for_ort. They get a venv of their own under build/.
A peer runs in a child that was forked after its imports: seconds are those of load, optimize and save, without imports;
megabytes are the child's peak with what it imported. Ours is a process of its own, start included.
"""

from __future__ import annotations

import argparse
import fnmatch
import importlib.util
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("onnx==1.23.2", "onnxruntime==1.31.1", "onnxscript==0.7.2", "numpy==2.4.6")
KINDS = ("rms_norm", "layer_norm", "group_norm", "gelu", "silu", "glu", "rotary", "attention")

# What a fused operator in a peer's result counts as. Operators that the exporter wrote count as well, as ours do.
KIND_OF = {
    "SimplifiedLayerNormalization": "rms_norm",
    "SkipSimplifiedLayerNormalization": "rms_norm",
    "RMSNormalization": "rms_norm",
    "LayerNormalization": "layer_norm",
    "SkipLayerNormalization": "layer_norm",
    "EmbedLayerNormalization": "layer_norm",
    "GroupNorm": "group_norm",
    "SkipGroupNorm": "group_norm",
    "GroupNormalization": "group_norm",
    "Gelu": "gelu",
    "FastGelu": "gelu",
    "BiasGelu": "gelu",
    "QuickGelu": "gelu",
    "Swish": "silu",
    "BiasSplitGelu": "glu",
    "RotaryEmbedding": "rotary",
    "Attention": "attention",
    "MultiHeadAttention": "attention",
    "GroupQueryAttention": "attention",
    "PackedAttention": "attention",
    "DecoderMaskedMultiHeadAttention": "attention",
}

# Model types of onnxruntime.transformers.optimizer; what is not listed tries those of DECODERS.
DECODERS = ("gpt2", "qwen3", "phi")
TYPES = {
    "bert": ("bert",), "roberta": ("bert",), "distilbert": ("bert",), "gpt2": ("gpt2",), "gpt-neox": ("gpt_neox", "gpt2"),
    "bart": ("bart",), "whisper-encoder": ("bart",), "whisper-decoder": ("bart",), "t5-gated": ("t5",), "t5-relu": ("t5",),
    "t5-decoder": ("t5",), "vit": ("vit", "bert"), "dinov2": ("vit", "bert"), "dinov2-swiglu": ("vit", "bert"),
    "clip-text": ("clip",), "clip-vision": ("clip",), "siglip": ("clip", "bert"), "swin": ("swin",), "convnext": ("vit", "bert"),
    "unet": ("unet",), "vae": ("vae",), "torch-mha": ("bert",), "torch-encoder": ("bert",), "torch-encoder-pre": ("bert",),
}  # fmt: skip


def enter_venv() -> None:
    """Starts again in a venv that has the peers, unless this Python has them."""
    if not all(importlib.util.find_spec(name) for name in ("onnx", "onnxruntime", "onnxscript")):
        venv = ROOT / "build" / "venv-peers"
        stamp = venv / "installed.txt"
        if not stamp.exists() or stamp.read_text() != "\n".join(PACKAGES):
            subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True)
            subprocess.run([str(venv / "bin" / "pip"), "install", "--quiet", *PACKAGES], check=True)
            stamp.write_text("\n".join(PACKAGES))
        if Path(sys.prefix) == venv:
            raise
        os.execv(str(venv / "bin" / "python"), [str(venv / "bin" / "python"), *sys.argv])


def count_sites(path: Path) -> Counter[str]:
    """Sites by kind in a result of a peer, local functions included."""
    import onnx

    model = onnx.load(str(path), load_external_data=False)
    counts: Counter[str] = Counter()
    for nodes in [model.graph.node, *(function.node for function in model.functions)]:
        for node in nodes:
            kind = KIND_OF.get(node.op_type)
            attributes = {attribute.name: attribute for attribute in node.attribute}
            if node.op_type == "QuickGelu" and "alpha" in attributes and attributes["alpha"].f == 1:
                kind = "silu"
            if node.op_type == "GroupQueryAttention" and "do_rotary" in attributes and attributes["do_rotary"].i:
                counts["rotary"] += 2
            if kind:
                counts[kind] += 1
    return counts


def forked(work: Callable[[], None]) -> tuple[str, float]:
    """Runs `work` in a forked child. Returns its error (empty: none) and its peak in megabytes."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        code = 0
        try:
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, 1)
            os.dup2(null, 2)
            work()
        except BaseException as error:  # noqa: BLE001
            last = traceback.format_exception_only(error)[-1].strip().splitlines()
            os.write(write, (last[0] if last else type(error).__name__)[:300].encode())
            code = 1
        os._exit(code)
    os.close(write)
    message = b""
    while chunk := os.read(read, 4096):
        message += chunk
    os.close(read)
    _, status, usage = os.wait4(child, 0)
    error = message.decode(errors="replace") or ("" if status == 0 else f"ended with status {status}")
    return error, usage.ru_maxrss / 1024


def run_peer(name: str, entry: dict[str, Any], source: Path, target: Path) -> dict[str, Any]:
    """One peer on one model: counts, seconds, megabytes, or its error."""

    def onnxscript_work() -> None:
        import onnx_ir
        from onnxscript.rewriter.ort_fusions import optimize_for_ort

        model, _ = optimize_for_ort(onnx_ir.load(str(source)))
        onnx_ir.save(model, str(target))

    def onnxruntime_work(model_type: str) -> None:
        from onnxruntime.transformers import optimizer

        optimizer.optimize_model(str(source), model_type, opt_level=0).save_model_to_file(str(target))

    if name == "onnxscript":
        attempts: list[Callable[[], None]] = [onnxscript_work]
    else:
        types = TYPES.get(entry["architecture"], DECODERS)
        attempts = [lambda model_type=model_type: onnxruntime_work(model_type) for model_type in types]
    best: dict[str, Any] | None = None
    failed: dict[str, Any] = {}
    kept = target.with_suffix(".best.onnx")
    for work in attempts:
        target.unlink(missing_ok=True)
        start = time.perf_counter()
        error, megabytes = forked(work)
        seconds = time.perf_counter() - start
        if error or not target.exists():
            failed = {"error": error or "wrote nothing", "counts": {}, "seconds": seconds, "megabytes": megabytes}
            continue
        counts = count_sites(target)
        if best is None or counts.total() > sum(best["counts"].values()):
            best = {"counts": dict(counts), "seconds": seconds, "megabytes": megabytes}
            target.replace(kept)
    if best is None:
        return failed
    kept.replace(target)
    return best


class Runner:
    """Runs commands from a child forked while this process is small: the peak memory that the kernel reports of a command
    starts at that of the process that forked it."""

    def __init__(self) -> None:
        mine, theirs = socket.socketpair()
        if os.fork() == 0:
            mine.close()
            with theirs.makefile("rw") as stream:
                for line in stream:
                    command = json.loads(line)
                    null = os.open(os.devnull, os.O_WRONLY)
                    start = time.perf_counter()
                    child = os.posix_spawn(command[0], command, os.environ,
                                           file_actions=[(os.POSIX_SPAWN_DUP2, null, 1), (os.POSIX_SPAWN_DUP2, null, 2)])  # fmt: skip
                    _, status, usage = os.wait4(child, 0)
                    os.close(null)
                    print(json.dumps([status, time.perf_counter() - start, usage.ru_maxrss / 1024]), file=stream, flush=True)
            os._exit(0)
        theirs.close()
        self.stream = mine.makefile("rw")

    def run(self, command: list[str]) -> tuple[int, float, float]:
        """Status, seconds and peak megabytes of a command."""
        print(json.dumps(command), file=self.stream, flush=True)
        status, seconds, megabytes = json.loads(self.stream.readline())
        return status, seconds, megabytes


def run_ours(runner: Runner, tool: Path, source: Path, target: Path) -> dict[str, Any]:
    """ascend-fuse optimize for ascend910b: found, and of those what is fused or left to GE in the form it wants."""
    report = target.with_suffix(".json")
    command = [str(tool), "optimize", str(source), "-o", str(target), "--target", "ascend910b", "--report", str(report)]
    status, seconds, megabytes = runner.run(command)
    if status != 0:
        return {"error": f"status {status}", "counts": {}, "seconds": seconds, "megabytes": megabytes}
    sites = json.loads(report.read_text())["summary"]["sites"]
    return {
        "counts": {kind: int(row.get("found", 0)) for kind, row in sites.items()},
        "done": {kind: int(row.get("fused", 0)) + int(row.get("by_ge", 0)) for kind, row in sites.items()},
        "seconds": seconds,
        "megabytes": megabytes,
    }


def difference(entry: dict[str, Any], source: Path, target: Path) -> float | str:
    """Largest difference of an output, relative to its largest value, over the bindings without padding; or the error."""
    import numpy as np

    sys.path[:0] = [str(ROOT / "tools" / "python")]
    from ascend_fuse.inputs import make_inputs
    from ascend_fuse.session import plain_session

    try:
        before = plain_session(source, threads=1)
        after = plain_session(target, threads=1)
        worst = 0.0
        bindings = [binding for binding in entry["bindings"] if binding.get("padding", "none") == "none"]
        for binding in bindings or entry["bindings"][:1]:
            inputs = make_inputs(entry, binding)
            # strict: an output that is missing or renamed is an error, and the types must be the same.
            for output, expected in zip(before.get_outputs(), before.run(None, inputs), strict=True):
                actual = after.run([output.name], inputs)[0]
                if actual.shape != expected.shape:
                    return f"{output.name} has another shape"
                scale = float(np.max(np.abs(expected.astype(np.float64)), initial=0.0)) or 1.0
                error = np.abs(actual.astype(np.float64) - expected.astype(np.float64))
                worst = max(worst, float(np.max(np.nan_to_num(error, nan=np.inf), initial=0.0)) / scale)
        return worst
    except Exception as error:  # noqa: BLE001
        return str(error).splitlines()[0][:200]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="*", help="models, as a pattern of their ids")
    parser.add_argument("--tool", type=Path, default=ROOT / "build" / "ascend-fuse")
    parser.add_argument("--json", type=Path, help="write every model's figures there")
    options = parser.parse_args()
    enter_venv()
    runner = Runner()

    sys.path[:0] = [str(ROOT / "tools" / "zoo")]
    import fill
    import onnx_ir  # noqa: F401  (imported here so that no child pays for it)
    import onnxscript.rewriter.ort_fusions  # noqa: F401
    from onnxruntime.transformers import optimizer  # noqa: F401

    entries = [entry for entry in fill.load_manifest()["models"] if fnmatch.fnmatch(entry["id"], options.only)]
    zoo = ROOT / "build" / "zoo"
    zoo.mkdir(parents=True, exist_ok=True)
    fill.fill(zoo, fill.select([options.only] if options.only != "*" else []))

    names = ("ascend-fuse", "onnxruntime", "onnxscript")
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="ascend_fuse_peers_") as folder:
        for entry in entries:
            source = zoo / f"{entry['id']}.onnx"
            row: dict[str, Any] = {key: entry[key] for key in ("id", "exporter", "opset", "expected")}
            for name in names:
                target = Path(folder) / f"{name}.onnx"
                target.unlink(missing_ok=True)
                if name == "ascend-fuse":
                    row[name] = run_ours(runner, options.tool, source, target)
                    if "error" not in row[name]:
                        expanded = target.with_suffix(".expanded.onnx")
                        subprocess.run([str(options.tool), "expand", str(target), "-o", str(expanded)],
                                       check=True, capture_output=True)  # fmt: skip
                        row[name]["difference"] = difference(entry, source, expanded)
                else:
                    row[name] = run_peer(name, entry, source, target)
                    if "error" not in row[name]:
                        row[name]["difference"] = difference(entry, source, target)
            rows.append(row)
            print(f"\r{len(rows)}/{len(entries)}", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n")
    print_tables(rows, names)


def print_tables(rows: list[dict[str, Any]], names: tuple[str, ...]) -> None:
    """Sites per kind and per exporter, then cost and soundness, as Markdown."""

    # A peer's count above the expected one (LayerNormalization where an activation is) must not make up for another model.
    def found(row: dict[str, Any], name: str, kind: str, field: str = "counts") -> int:
        return min(row[name].get(field, {}).get(kind, 0), row["expected"].get(kind, 0))

    print(f"{len(rows)} models.\n")
    print("| kind | expected | ascend-fuse: found | fused or by GE, ascend910b | onnxruntime | onnxscript |")
    print("|---|---|---|---|---|---|")
    for kind in KINDS:
        figures = [sum(row["expected"].get(kind, 0) for row in rows)]
        figures += [sum(found(row, names[0], kind, field) for row in rows) for field in ("counts", "done")]
        figures += [sum(found(row, name, kind) for row in rows) for name in names[1:]]
        print(f"| {kind} | {' | '.join(map(str, figures))} |")
    print("\n| exporter, opset | models | sites expected | ascend-fuse | onnxruntime | onnxscript |\n|---|---|---|---|---|---|")
    for exporter, opset in sorted({(row["exporter"], row["opset"]) for row in rows}, key=lambda pair: (pair[0] != "torchscript", *pair)):
        of = [row for row in rows if (row["exporter"], row["opset"]) == (exporter, opset)]
        figures = [len(of), sum(row["expected"].get(kind, 0) for row in of for kind in KINDS)]
        figures += [sum(found(row, name, kind) for row in of for kind in KINDS) for name in names]
        print(f"| {exporter}, {opset} | {' | '.join(map(str, figures))} |")
    print("\n| | ascend-fuse | onnxruntime | onnxscript |\n|---|---|---|---|")
    lines: dict[str, Callable[[str], Any]] = {
        "models with every expected site": lambda name: sum(
            all(found(row, name, kind) == row["expected"].get(kind, 0) for kind in KINDS) for row in rows
        ),
        "models with no site": lambda name: sum(not any(found(row, name, kind) for kind in KINDS) for row in rows),
        "seconds, all models": lambda name: f"{sum(row[name]['seconds'] for row in rows):.1f}",
        "seconds, slowest model": lambda name: f"{max(row[name]['seconds'] for row in rows):.2f}",
        "peak megabytes": lambda name: f"{max(row[name]['megabytes'] for row in rows):.0f}",
        "the tool failed": lambda name: sum("error" in row[name] for row in rows),
        "ONNX Runtime refuses the result": lambda name: sum(isinstance(row[name].get("difference"), str) for row in rows),
        "an output is off by more than 1 % of its largest value": lambda name: sum(
            isinstance(row[name].get("difference"), float) and row[name]["difference"] > 1e-2 for row in rows
        ),
    }
    for title, figure in lines.items():
        print(f"| {title} | {' | '.join(str(figure(name)) for name in names)} |")


if __name__ == "__main__":
    main()
