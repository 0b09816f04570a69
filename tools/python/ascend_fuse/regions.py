"""Which part of an optimized model an error comes from: every place that was rewritten, by itself.

An optimized model keeps the names of the values that it still computes. Where such a value has another producer than
before, what lies between it and the nearest values of known names is a *region*: a fused site, expanded to standard
operators. All regions of a model are cut out into one model, whose inputs are the known values around them. It is run
on what the original computes there, so that a wrong region shows by itself, and shows at its own address: its inputs
are right whatever other regions do.
"""

from __future__ import annotations

import dataclasses
import hashlib
from typing import Any

import numpy as np
import onnx
from onnx import helper

SUFFIX = "@region"  # of a region's output: the name itself is the input of other regions
_NO_KEY = "no allowed key"
_MASK_INPUT = {
    "NPUPromptFlashAttention": 4,
    "NPUPromptFlashAttentionDirect": 4,
    "NPUFusedInferAttentionScore": 4,
    "NPUScaledMaskedSoftmax": 1,
}


@dataclasses.dataclass
class Region:
    """A value that is computed otherwise than in the original."""

    output: str
    inputs: list[str]  # known values that are not constants
    nodes: list[str]  # operators of the NPU nodes inside, as "NPURmsNorm"; without any, what the report names
    kinds: list[str] = dataclasses.field(default_factory=list)  # what the report calls it
    rules: list[str] = dataclasses.field(default_factory=list)
    module: str = ""
    masks: list[str] = dataclasses.field(default_factory=list)  # of attentions whose empty rows are don't-care
    tokens_first: bool = False  # the output is that of such an attention as [B, S, heads, head_dim]

    @property
    def name(self) -> str:
        what = "+".join(self.kinds) or "rewritten"
        return f"{what} {self.module or self.output}" + (f" -> {'+'.join(self.nodes)}" if self.nodes else "")


def _digest(*parts: bytes) -> bytes:
    digest = hashlib.blake2b(digest_size=16)
    for part in parts:
        digest.update(len(part).to_bytes(8, "little"))
        digest.update(part)
    return digest.digest()


def with_outputs(model, names):
    """Returns the model with these values as outputs, too."""
    result = onnx.ModelProto()
    result.CopyFrom(model)
    outputs = {value.name for value in result.graph.output}
    result.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names if name not in outputs)
    return result


def _is_npu(node) -> bool:
    return node.domain == "npu" or (node.domain in ("", "ai.onnx") and node.op_type.startswith("NPU"))


def _gives_tokens_first(kernel) -> bool:
    """Whether an attention gives [B, S, heads, head_dim]."""
    return any(a.name == "input_layout" and a.s in (b"BSND", b"BNSD_BSND") for a in kernel.attribute)


def _has_tokens_first(name: str, kernel, producers) -> bool:
    """Whether a value is what an attention gives, as [B, S, heads, head_dim], by itself or by the Transpose after it."""
    after = producers.get(name)
    if after is not None and after.op_type == "Transpose" and after.input[0] in kernel.output:
        return [list(a.ints) for a in after.attribute if a.name == "perm"] == [[0, 2, 1, 3]] and not _gives_tokens_first(kernel)
    return name in kernel.output and _gives_tokens_first(kernel)


def reads_of(node) -> list[str]:
    """Returns the names a node reads, those that its subgraphs take from outside included."""
    names = [name for name in node.input if name]
    for attribute in node.attribute:
        for graph in [attribute.g] if attribute.HasField("g") else list(attribute.graphs):
            own = {v.name for v in graph.input} | {t.name for t in graph.initializer}
            for inner in graph.node:
                names += [name for name in reads_of(inner) if name not in own]
                own |= set(inner.output)
            names += [v.name for v in graph.output if v.name not in own]
    return names


def _same(a, b) -> bool:
    def key(node):
        attributes = sorted(attribute.SerializeToString(deterministic=True) for attribute in node.attribute)
        return node.op_type, "" if node.domain == "ai.onnx" else node.domain, list(node.input), attributes

    return list(a.output) == list(b.output) and key(a) == key(b)


class Regions:
    """The regions of an optimized model.

    original, expanded, optimized: models whose weights need not be loaded. `expanded` is `optimized` without NPU nodes;
    report: the JSON report of the fusion, which gives the regions their kinds and modules, or None. `listed`: it is that of `list`
    for some target instead, which has the sites, and may leave those that are fused here.
    """

    def __init__(self, original, expanded, optimized, report: dict[str, Any] | None = None, listed: bool = False):
        self.original, self.expanded = original, expanded
        before = {name: node for node in original.graph.node for name in node.output if name}
        inputs = {value.name for value in original.graph.input}
        self._constants = {tensor.name for tensor in expanded.graph.initializer}
        constant_before = {tensor.name for tensor in original.graph.initializer}
        self._known = (set(before) | inputs) - self._constants - constant_before
        self._producers = {name: node for node in expanded.graph.node for name in node.output if name}
        npu = {name: node for node in optimized.graph.node for name in node.output if name}
        sites: dict[str, list[dict[str, Any]]] = {}
        not_fused: dict[str, list[dict[str, Any]]] = {}  # by that target
        for site in (report or {}).get("sites", []):
            if site.get("state") == "fused" or listed:
                for name in site["outputs"]:
                    (sites if site["state"] == "fused" else not_fused).setdefault(name, []).append(site)
        no_key = [_NO_KEY in text for site in (report or {}).get("sites", []) for text in site.get("assumptions", [])]
        self._npu = npu
        self._optimized = optimized
        self.regions: list[Region] = []
        for node in expanded.graph.node:
            for name in node.output:
                if name not in self._known or name not in before or _same(before[name], node):
                    continue
                reads = self._cone(name, self._producers, {})
                kernels = self._kernels(name, npu)
                own = sites.get(name) or (self._sites_inside(name, reads, before, sites) if kernels else []) or not_fused.get(name, [])
                # A form that ATC does not read, written in another one, is not a site; nor are dims of a turned tensor, nor what
                # reads an equal value after tidying.
                adapted = report is not None and not own and (not kernels or bool(report.get("tidied"))
                                                              or before[name].op_type == "Shape")
                # An Attention in standard operators: ONNX Runtime's kernel gives 0 where a float mask leaves no key, and
                # the operator's definition an average. The outputs are compared without such rows.
                if adapted and before[name].op_type == "Attention" and len(before[name].input) > 3:
                    continue
                dont_care = report is None or any(_NO_KEY in text for site in own for text in site.get("assumptions", [])) or (
                    listed and any(no_key))
                self.regions.append(
                    Region(
                        name,
                        reads,
                        sorted({kernel.op_type for kernel in kernels} or {site["emitted_op"] for site in own})
                        or [node.op_type] * adapted,
                        sorted({site["kind"] for site in own}) or ["adapted"] * adapted,
                        sorted({site["rule"] for site in own}) or ["adapted"] * adapted,
                        own[0]["module"] if own else "",
                        [
                            kernel.input[_MASK_INPUT[kernel.op_type]]
                            for kernel in kernels
                            if dont_care and len(kernel.input) > _MASK_INPUT.get(kernel.op_type, len(kernel.input))
                        ],
                        any(_has_tokens_first(name, kernel, npu) for kernel in kernels),
                    )
                )
        self._collect()

    def _sites_inside(self, name, reads, before, sites) -> list[dict[str, Any]]:
        """The sites between `reads` and `name` in the original whose outputs the result computes in another layout only."""
        found, seen, values = [], set(reads), [name]
        while values:
            value = values.pop()
            if value in seen or value not in before:
                continue
            seen.add(value)
            if value not in self._producers:
                found += sites.get(value, [])
            values += reads_of(before[value])
        return found

    def _collect(self) -> None:
        """Finds the nodes of the regions and of their masks."""
        self._nodes: dict[int, Any] = {}  # of all regions, by identity
        for region in self.regions:
            self._cone(region.output, self._producers, self._nodes)
        self._masks = sorted({mask for region in self.regions for mask in region.masks})
        self._mask_nodes: dict[int, Any] = {}  # of masks that the expanded model has no more, being equal to others
        for mask in self._masks:
            if mask in self._known or mask in self._constants:
                continue
            if mask in self._producers:
                self._cone(mask, self._producers, self._nodes)
            elif mask in self._npu:
                self._cone(mask, self._npu, self._mask_nodes)

    def restrict(self, outputs: set[str]) -> None:
        """Leaves out all regions but those that give one of the outputs."""
        self.regions = [region for region in self.regions if region.output in outputs]
        self._collect()

    def fingerprints(self) -> dict[str, bytes]:
        """Returns for each region, by its output, a digest of what it computes from which known values.

        Regions of equal digests, in optimized models of one original, are the same nodes over the same constants and the
        same known values, and are compared under the same mask: what one gives, the other gives.
        """
        digests = self._digests(self.expanded)
        masks = self._digests(self._optimized) if self._masks else {}
        result = {}
        for region in self.regions:
            parts = [digests[region.output]]
            parts += [name.encode() + digests.get(name, masks.get(name, b"")) for name in region.masks]
            result[region.output] = _digest(*parts)
        return result

    def _digests(self, model) -> dict[str, bytes]:
        """Returns for every value of a model a digest of its computation, which begins at known values."""
        unchanged = {tensor.name for tensor in self.original.graph.initializer}
        opsets = sorted((entry.domain.replace("ai.onnx", ""), entry.version) for entry in model.opset_import)
        made: dict[str, bytes] = {}
        for tensor in model.graph.initializer:
            content = b"" if tensor.name in unchanged else tensor.SerializeToString(deterministic=True)
            made[tensor.name] = _digest(tensor.name.encode() if tensor.name in unchanged else b"", content)
        for node in model.graph.node:
            parts = [repr(opsets).encode(), node.domain.replace("ai.onnx", "").encode(), node.op_type.encode()]
            parts += sorted(attribute.SerializeToString(deterministic=True) for attribute in node.attribute)
            for name in (*node.input, *([] if not node.attribute else reads_of(node))):
                parts.append(name.encode() if name in self._known else made.get(name, b""))
            for i, name in enumerate(node.output):
                made[name] = _digest(*parts, str(i).encode())
        return made

    def _cone(self, name: str, producers, nodes: dict[int, Any]) -> list[str]:
        """Collects what computes a value from known ones, and returns those."""
        reads: list[str] = []
        seen: set[str] = set()
        waiting = [producers[name]]
        while waiting:
            node = waiting.pop()
            if id(node) in seen:
                continue
            seen.add(id(node))
            nodes[id(node)] = node
            for value in reads_of(node):
                if value in self._known:
                    if value not in reads:
                        reads.append(value)
                elif value in producers:
                    waiting.append(producers[value])
        return reads

    def _kernels(self, name: str, producers) -> list[Any]:
        if name not in producers:
            return []
        nodes: dict[int, Any] = {}
        self._cone(name, producers, nodes)
        return [node for node in nodes.values() if _is_npu(node)]

    @property
    def probes(self) -> list[str]:
        """Values of the original that the regions read or give, its inputs left out."""
        names = {region.output for region in self.regions}
        nodes = [*self._nodes.values(), *self._mask_nodes.values()]
        names |= {name for node in nodes for name in reads_of(node) if name in self._known}
        names |= {mask for mask in self._masks if mask in self._known}
        return sorted(names - {value.name for value in self.original.graph.input})

    def probed_original(self):
        """Returns the original with all probes as outputs."""
        return with_outputs(self.original, self.probes)

    def region_model(self, values: dict[str, np.ndarray]):
        """Returns the model of all regions. `values` has a value of the original for every probe and input."""
        nodes = []
        used: set[str] = set()
        for node in self.expanded.graph.node:  # in order
            if id(node) not in self._nodes:
                continue
            copy = onnx.NodeProto()
            copy.CopyFrom(node)
            for i, name in enumerate(copy.output):
                if name in self._known:
                    copy.output[i] = name + SUFFIX
            nodes.append(copy)
            used |= set(reads_of(node))
        made = {name for node in nodes for name in node.output}
        for node in self._optimized.graph.node:
            if id(node) in self._mask_nodes and not made.intersection(node.output):
                copy = onnx.NodeProto()
                copy.CopyFrom(node)
                copy.domain = ""
                nodes.append(copy)
                made |= set(node.output)
                used |= set(reads_of(node))
        inputs = [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.asarray(values[name]).dtype), None)
            for name in sorted(used & self._known)
        ]
        masks = [mask for mask in self._masks if mask in made]
        outputs = [onnx.ValueInfoProto(name=region.output + SUFFIX) for region in self.regions]
        outputs += [onnx.ValueInfoProto(name=mask) for mask in masks]
        constants = {tensor.name: tensor for tensor in self._optimized.graph.initializer if tensor.name in used - made}
        constants.update({tensor.name: tensor for tensor in self.expanded.graph.initializer if tensor.name in used})
        graph = helper.make_graph(nodes, "regions", inputs, outputs, list(constants.values()))
        return helper.make_model(graph, opset_imports=self.expanded.opset_import, ir_version=self.expanded.ir_version)

    def compared(self, values: dict[str, np.ndarray], found: dict[str, np.ndarray]):
        """Yields (region, original value, region's value, where it matters or None) for one run of both."""
        masks = dict(found)
        constants = {tensor.name: tensor for tensor in self.expanded.graph.initializer}
        for mask in self._masks:
            if mask in values:
                masks[mask] = values[mask]
            elif mask not in masks and mask in constants:
                masks[mask] = onnx.numpy_helper.to_array(constants[mask])
        for region in self.regions:
            a, b = np.asarray(values[region.output]), np.asarray(found[region.output + SUFFIX])
            care = None
            queries = 1 if region.tokens_first and a.ndim == 4 else -2  # the axis of the output
            # [S, T] or [B or 1, 1, S, T], true = masked; the output is [B, heads, S, head_dim] or [B heads, S, head_dim]
            for name in region.masks:
                mask = masks.get(name)
                if mask is not None and np.ndim(mask) == 2:
                    mask = np.asarray(mask)[None, None]
                if mask is None or np.ndim(mask) != 4 or a.ndim not in (3, 4):
                    continue
                mask = np.asarray(mask)[:, :, : a.shape[queries]]  # of padded queries the first are the output's
                if mask.shape[2] not in (1, a.shape[queries]):
                    continue
                rows = ~np.all(mask != 0, axis=-1, keepdims=True)
                if queries == 1:
                    rows = rows.swapaxes(1, 2)
                if a.ndim == 3 and a.shape[0] % rows.shape[0] == 0:
                    rows = np.repeat(rows[:, 0], a.shape[0] // rows.shape[0], axis=0)
                care = rows if care is None else care & rows
            yield region, a, b, None if care is None or care.all() else np.broadcast_to(care, a.shape)
