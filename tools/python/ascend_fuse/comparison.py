"""The comparison of one output, or of one rewritten place, under one binding; and what all of them say together."""

from __future__ import annotations

import dataclasses
import json

import numpy as np

_TINY = 1e-30


@dataclasses.dataclass
class Comparison:
    """One output under one binding."""

    binding: str
    output: str
    shape: list[int] = dataclasses.field(default_factory=list)
    dtype: str = ""
    cosine: float = 0.0
    max_abs: float = 0.0
    max_rel: float = 0.0
    excluded: int = 0  # padded positions
    compared: int = 0  # elements
    ok: bool = False
    because: str = ""


@dataclasses.dataclass
class RegionComparison(Comparison):
    """One rewritten place under one binding; `output` is the value that it gives."""

    kinds: list[str] = dataclasses.field(default_factory=list)
    rules: list[str] = dataclasses.field(default_factory=list)
    nodes: list[str] = dataclasses.field(default_factory=list)
    module: str = ""

    @property
    def group(self) -> str:
        return "+".join(self.kinds or ["rewritten"]) + (f" -> {'+'.join(self.nodes)}" if self.nodes else "")


@dataclasses.dataclass
class Result:
    original: str
    optimized: str
    tolerance: float
    comparisons: list[Comparison] = dataclasses.field(default_factory=list)
    notes: list[str] = dataclasses.field(default_factory=list)
    undecided: list[Comparison] = dataclasses.field(default_factory=list)
    regions: list[RegionComparison] = dataclasses.field(default_factory=list)
    max_rel_means: str = "max |a - b| / max(max |a| over the tensor, 1e-30), a being the original"

    @property
    def ok(self) -> bool:
        return bool(self.comparisons) and all(c.ok for c in (*self.comparisons, *self.regions))

    def to_json(self) -> str:
        return json.dumps({"ok": self.ok, **dataclasses.asdict(self)}, indent=1)

    def to_text(self) -> str:
        rows = [("binding", "output", "type and shape", "cosine", "max abs", "max rel", "")]
        for c in self.comparisons:
            shape = f"{c.dtype}{c.shape}"
            if c.because and not c.dtype:
                rows.append((c.binding, c.output, "", "", "", "", f"NOT EQUAL: {c.because}"))
                continue
            verdict = "ok" if c.ok else f"NOT EQUAL: {c.because}"
            if c.excluded:
                verdict += f" (excluded {c.excluded} padded positions)"
            rows.append(
                (
                    c.binding,
                    c.output,
                    shape,
                    f"{c.cosine:.9f}",
                    f"{c.max_abs:.3g}",
                    f"{c.max_rel:.3g}",
                    verdict,
                )
            )
        widths = [max(len(row[i]) for row in rows) for i in range(6)]
        lines = []
        for row in rows:
            left = [row[i].ljust(widths[i]) for i in range(3)]
            right = [row[i].rjust(widths[i]) for i in range(3, 6)]
            lines.append("  ".join(left + right + [row[6]]).rstrip())
        lines += self._region_lines()
        lines += [f"note: {note}" for note in self.notes]
        lines.append(f"max rel is {self.max_rel_means}")
        bad = sum(not c.ok for c in (*self.comparisons, *self.regions))
        count = len(self.comparisons) + len(self.regions)
        if not self.comparisons:
            lines.append("NOTHING WAS COMPARED")
        elif bad:
            lines.append(
                f"NOT EQUAL: {bad} of {count} comparisons are outside the tolerance of"
                f" {self.tolerance:g}"
            )
        else:
            lines.append(
                f"equal: {count} comparisons within the tolerance of {self.tolerance:g}"
            )
        return "\n".join(lines) + "\n"

    def _region_lines(self) -> list[str]:
        """One line a kind of region, with its worst; one for every region that is not equal."""
        groups: dict[str, list[RegionComparison]] = {}
        for region in self.regions:
            groups.setdefault(region.group, []).append(region)
        rows = []
        for group, members in groups.items():
            worst = max(members, key=lambda c: c.max_rel)
            places = len({c.output for c in members})
            rows.append((f"{places} x {group}", f"max rel {worst.max_rel:.3g}", f"at {worst.output}, {worst.binding}"))
        widths = [max((len(row[i]) for row in rows), default=0) for i in range(2)]
        lines = ["regions, fed with what the original computes"] if rows else []
        lines += [f"  {a.ljust(widths[0])}  {b.ljust(widths[1])}  {c}" for a, b, c in rows]
        for region in self.regions:
            if not region.ok:
                place = f" ({region.module})" if region.module else ""
                lines.append(f"  NOT EQUAL: {region.group} at {region.output}{place}, {region.binding}: {region.because}")
        return lines


# ONNX Runtime computes a Sigmoid from 0.5 on, so that its results are that of float32 near 0.5 however small they are: two units there.
NOISE_OF_SIGMOID = 2.0**-23
# Nodes that give what their first input has, elsewhere.
MOVE = {"Flatten", "Identity", "Reshape", "Slice", "Squeeze", "Transpose", "Unsqueeze"}


def noise_of(model) -> dict[str, float]:
    """By how much float32 results of `model` may differ however small they are: those of Sigmoids, and moved ones."""
    noise: dict[str, float] = {}
    for node in model.graph.node:
        if node.op_type == "Sigmoid" or node.op_type in MOVE and node.input[0] in noise:
            noise.update((output, NOISE_OF_SIGMOID) for output in node.output)
    return noise


def compare(binding: str, output: str, a, b, tolerance: float, care=None, noise: float = 0.0) -> Comparison:
    """Compares two arrays; `care` is False where any value will do, and broadcasts to them. Differences up to `noise` are none."""
    a, b = np.asarray(a), np.asarray(b)
    result = Comparison(binding, output, list(a.shape), str(a.dtype))
    if a.shape != b.shape:
        result.because = f"shape {list(a.shape)} became {list(b.shape)}"
        return result
    if a.dtype != b.dtype:
        result.because = f"type {a.dtype} became {b.dtype}"
        return result
    if care is not None:
        result.excluded = int(care.size - np.count_nonzero(care))
        full = np.broadcast_to(care, a.shape)
        a, b = a[full], b[full]
    result.compared = int(a.size)
    if a.size == 0:
        result.cosine, result.ok = 1.0, result.excluded == 0
        result.because = "" if result.ok else "every position is padding, so nothing was compared"
        return result
    if not np.issubdtype(a.dtype, np.floating):
        different = int(np.count_nonzero(a != b))
        if np.issubdtype(a.dtype, np.number):
            result.max_abs = float(np.max(np.abs(a.astype(np.float64) - b.astype(np.float64))))
        result.max_rel = 1.0 if different else 0.0
        result.cosine = 1.0 if not different else 0.0
        result.ok = different == 0
        result.because = "" if result.ok else f"{different} of {a.size} elements differ"
        return result
    a, b = a.astype(np.float64).ravel(), b.astype(np.float64).ravel()
    finite = np.isfinite(a)
    if not np.array_equal(finite, np.isfinite(b)) or not np.array_equal(
        a[~finite], b[~finite], equal_nan=True
    ):
        result.max_abs = result.max_rel = float("inf")
        result.because = (
            f"NaN or infinity in other places: {int(np.count_nonzero(~finite))} before,"
            f" {int(np.count_nonzero(~np.isfinite(b)))} after"
        )
        return result
    a, b = a[finite], b[finite]
    norms = float(np.linalg.norm(a)) * float(np.linalg.norm(b))
    result.cosine = float(np.dot(a, b) / norms) if norms > 0 else float(not np.any(a) and not np.any(b))
    result.max_abs = float(np.max(np.abs(a - b))) if a.size else 0.0
    result.max_rel = result.max_abs / max(float(np.max(np.abs(a))) if a.size else 0.0, _TINY)
    result.ok = result.max_rel <= tolerance or result.max_abs <= noise
    if not result.ok:
        result.because = f"max rel {result.max_rel:.3g} is more than {tolerance:g}"
    return result


def care_mask(output: str, shape: tuple[int, ...], mask, queries: int):
    """Returns which positions of an output matter when padded queries do not: None for all of them.

    An output over the new tokens ([B, S_q, ...], or scores [B, heads, S_q, S_kv]) loses the padded
    ones of the last S_q columns of the mask; keys and values ([B, heads, S_kv, head_dim]) lose all
    padded columns.
    """
    if mask is None or not shape or shape[0] != mask.shape[0]:
        return None
    rows, total = mask.shape
    lowered = output.lower()
    new = mask[:, total - queries :] if queries <= total else mask
    if len(shape) == 4 and shape[3] == total and shape[2] == queries and not _is_cache(lowered):
        keep = new.reshape(rows, 1, queries, 1)
    elif len(shape) == 4 and shape[2] == total and (_is_cache(lowered) or total != shape[1]):
        keep = mask.reshape(rows, 1, total, 1)
    elif len(shape) >= 2 and shape[1] == new.shape[1]:
        keep = new.reshape(rows, new.shape[1], *([1] * (len(shape) - 2)))
    else:
        return None
    return None if np.all(keep != 0) else keep != 0


def _is_cache(name: str) -> bool:
    return any(word in name for word in ("present", "past", "key", "value", "cache"))
