"""What the zoo holds: one table of the architectures, and from it every variant to export.

A variant is one model: an architecture and everything that decides what its graph looks like. What an exporter
cannot write is listed all the same, so that the table of the zoo says so.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

NEW, OLD = "5.23.0", "4.44.2"
EXPORTERS = {"ts14": ("torchscript", 14), "ts17": ("torchscript", 17), "dy18": ("dynamo", 18), "dy23": ("dynamo", 23)}

# The attention implementations that each architecture has, decoders first. Decoders are exported without a cache,
# with a past, and as a decode step on top of one.
DECODERS = {
    "llama": "sdpa eager",
    "qwen3": "sdpa eager",
    "gemma": "sdpa eager",
    "gpt2": "sdpa eager",
    "qwen2": "sdpa eager",
    "mistral": "sdpa eager",
    "gemma2": "eager",
    "gemma3": "sdpa eager",
    "phi": "sdpa eager",
    "phi3": "sdpa eager",
    "gpt-neox": "sdpa eager",
    "gptj": "eager",
    "opt": "sdpa eager",
    "bloom": "eager",
}
# Decoders of an encoder-decoder model; theirs without a cache has no mode in its id.
CROSS_DECODERS = {"t5-decoder": "sdpa eager", "bart-decoder": "sdpa eager", "whisper-decoder": "sdpa eager"}
OTHERS = {
    "bert": "sdpa eager",
    "t5-gated": "sdpa eager",
    "t5-relu": "sdpa eager",
    "vit": "sdpa eager",
    "clip-text": "sdpa eager",
    "whisper-encoder": "sdpa eager",
    "roberta": "sdpa eager",
    "distilbert": "sdpa eager",
    "bart": "sdpa eager",
    "clip-vision": "sdpa eager",
    "siglip": "sdpa eager",
    "dinov2": "sdpa eager",
    "dinov2-swiglu": "sdpa eager",
    "swin": "sdpa eager",
    "convnext": "eager",
    "unet": "sdpa eager",
    "vae": "sdpa eager",
    "diffusers-unet": "sdpa eager",
    "diffusers-vae-encoder": "sdpa eager",
    "diffusers-vae-decoder": "sdpa eager",
    "activations": "eager",
    "torch-mha": "sdpa",
    "torch-encoder": "sdpa",
    "torch-encoder-pre": "sdpa",
}
# What transformers refuses to build; one variant each: for the table.
REFUSED = {"gemma2": "sdpa", "gptj": "sdpa", "bloom": "sdpa", "convnext": "sdpa"}
# The decoders of the older transformers, whose masks are additive programs.
OLD_DECODERS = {
    "llama": "sdpa eager",
    "mistral": "sdpa eager",
    "gpt-neox": "sdpa eager",
    "gpt2": "sdpa eager",
    "opt": "eager",
}
# The model type that ONNX Runtime's optimizer knows an architecture by; its own conversions take gpt2 for Llama.
OPTIMIZER_TYPES = {
    "llama": "gpt2",
    "mistral": "gpt2",
    "qwen3": "qwen3",
    "gpt2": "gpt2",
    "phi": "phi",
    "gpt-neox": "gpt_neox",
    "bert": "bert",
    "roberta": "bert",
    "distilbert": "bert",
    "bart": "bart",
    "whisper-encoder": "bart",
    "t5-gated": "t5",
    "clip-text": "clip",
    "vit": "vit",
    "swin": "swin",
    "unet": "unet",
    "diffusers-unet": "unet",
    "diffusers-vae-decoder": "vae",
}
# The architectures in which the tool must find what their configurations say, whoever exported them.
PART_1 = ("llama", "qwen3", "gemma", "gpt2", "bert", "t5-gated", "t5-relu", "vit", "clip-text", "whisper-encoder")


@dataclass(frozen=True)
class Variant:
    """One model of the zoo: an architecture and everything that decides what its graph looks like."""

    architecture: str
    attention: str
    mode: str | None  # nocache, past or decode of a decoder; None for a model that has no such choice.
    exporter: str
    dims: str  # dynamic, static, or named: dynamic with names given by the user (dynamo only).
    dtype: str = "float32"
    transformers: str = NEW
    after: str | None = None  # What the export was put through: ortopt, onnxsim or onnxslim.

    @property
    def id(self) -> str:
        parts = [self.architecture, self.attention, self.mode, self.exporter, self.dims]
        parts.append("fp16" if self.dtype == "float16" else None)
        parts.append("tf4442" if self.transformers == OLD else None)
        parts.append(self.after)
        return "-".join(p for p in parts if p)

    @property
    def part(self) -> int:
        """1 for plain exports of the architectures in PART_1, and 2 for everything else."""
        return 1 if self.architecture in PART_1 and self.exporter != "dy23" and not self.after else 2


def variants() -> list[Variant]:
    """Returns every variant of the zoo, in the order of the manifest."""
    result: list[Variant] = []

    def add(names: str, attentions: str | None = None, modes: str | None = None,
            exporters: str = "ts14 ts17 dy18", dims: str = "dynamic static", **more: Any) -> None:
        """Adds every combination; without attentions and modes all that an architecture has."""
        for name in names.split():
            axes = ((attentions or attentions_of(name)).split(), modes_of(name) if modes is None else modes.split(),
                    exporters.split(), dims.split())
            for attention, mode, *rest in itertools.product(*axes):
                result.append(Variant(name, attention, None if mode == "none" else mode, *rest, **more))

    # Everything by TorchScript at opset 17 and by dynamo, dynamic and static. At opset 14 TorchScript writes the same
    # nodes but for LayerNormalization, and a decode step is a past with one token: of those not all combinations.
    add("llama", modes="nocache past decode")
    for name in (*DECODERS, *CROSS_DECODERS):
        by = "dy18" if name == "whisper-decoder" else "ts17 dy18"
        nocache = modes_of(name)[0]
        add(name, modes=f"{nocache} past", exporters=by)
        add(name, modes="decode", exporters=by, dims="dynamic")
        add(name, best_of(name), "decode", by, "static")
        if name != "whisper-decoder":
            add(name, best_of(name), nocache, "ts14")
            add(name, best_of(name), "past", "ts14", "dynamic")
    for name in OTHERS:
        add(name, exporters="ts17 dy18")
        add(name, best_of(name), exporters="ts14")
    add("gpt2", "eager", "nocache", "ts14")
    add("bert", "eager", exporters="ts14")
    add("qwen3", "sdpa", "past", "ts14", "static")

    # What cannot be had.
    for name, attention in REFUSED.items():
        add(name, attention, exporters="ts17", dims="dynamic", modes="nocache" if name in DECODERS else "none")
    add("whisper-decoder", "sdpa", "none", "ts14 ts17", "dynamic")

    # Names of dims that a user gives to dynamo.
    add("llama", "sdpa", "nocache past decode", "dy18", "named")
    add("qwen3 gpt2 mistral gemma3 phi gpt-neox", "sdpa", "past", "dy18", "named")
    add("bert whisper-decoder diffusers-unet vit", "sdpa", "none", "dy18", "named")

    # Half precision: of every kind of model one or more.
    add("llama", "sdpa", "nocache past", "ts17 dy18", dtype="float16")
    add("llama", "sdpa", "decode", "ts17 dy18", "dynamic", dtype="float16")
    add("qwen2", "sdpa", "nocache", "ts17 dy18", "dynamic", dtype="float16")
    add("qwen3 gpt2 mistral gemma phi gpt-neox opt", "sdpa", "past", "ts17 dy18", "dynamic", dtype="float16")
    add("llama gpt2", "eager", "past", "ts17 dy18", "dynamic", dtype="float16")
    add("vit bert", "sdpa", "none", "ts17 dy18", dtype="float16")
    add("clip-vision clip-text t5-gated whisper-encoder bart swin dinov2 unet vae diffusers-unet diffusers-vae-decoder",
        "sdpa", "none", "ts17 dy18", "dynamic", dtype="float16")
    add("convnext", "eager", "none", "ts17 dy18", "dynamic", dtype="float16")
    add("whisper-decoder", "sdpa", "none past", "dy18", "dynamic", dtype="float16")

    # Opset 23, with the operators RMSNormalization, RotaryEmbedding and Attention.
    add("llama qwen3 gemma mistral phi gpt2 gpt-neox", "sdpa", "nocache past decode", "dy23", "dynamic")
    add("llama", "sdpa", "past decode", "dy23", "static")
    add("llama", "eager", "past", "dy23", "dynamic")
    add("t5-decoder whisper-decoder", "sdpa", "none past", "dy23", "dynamic")
    add("bert vit t5-gated whisper-encoder clip-text siglip bart diffusers-unet", "sdpa", "none", "dy23", "dynamic")
    add("bert vit", "sdpa", "none", "dy23", "static")

    # The older transformers, by TorchScript.
    for name, attentions in OLD_DECODERS.items():
        add(name, attentions, "nocache past", "ts17", transformers=OLD)
        add(name, attentions, "decode", "ts17", "dynamic", transformers=OLD)
        add(name, attentions, "nocache", "ts14", "dynamic", transformers=OLD)
    add("bert", "sdpa eager", "none", "ts17", transformers=OLD)

    # Put through another tool, since people bring those models too.
    for after in ("ortopt", "onnxsim", "onnxslim"):
        add("llama gpt2", "sdpa", "nocache past", "ts17 dy18", "dynamic", after=after)
        add("llama gpt2", "sdpa", "past", "ts17", "static", after=after)
        add("bert vit", "sdpa", "none", "ts17 dy18", "dynamic", after=after)
        add("bert vit", "sdpa", "none", "ts17", "static", after=after)
        add("qwen3 mistral phi gpt-neox", "sdpa", "past", "ts17", "dynamic", after=after)
        add("roberta distilbert bart whisper-encoder t5-gated clip-text swin unet diffusers-unet diffusers-vae-decoder",
            "sdpa", "none", "ts17", "dynamic", after=after)
    for after in ("onnxsim", "onnxslim"):
        add("gemma3 phi3 opt", "sdpa", "nocache", "ts17", "dynamic", after=after)
        add("siglip dinov2 clip-vision torch-encoder t5-decoder", "sdpa", "none", "dy18", "dynamic", after=after)
    known = list(dict.fromkeys(result))
    assert len({v.id for v in known}) == len(known)
    return known


def attentions_of(name: str) -> str:
    """Returns the attention implementations of an architecture."""
    return {**DECODERS, **CROSS_DECODERS, **OTHERS}[name]


def best_of(name: str) -> str:
    """Returns the attention implementation that transformers takes by itself."""
    return attentions_of(name).split()[0]


def modes_of(name: str) -> list[str]:
    """Returns the modes of an architecture; `none` stands for no word in the id."""
    if name in DECODERS:
        return ["nocache", "past", "decode"]
    return ["none", "past", "decode"] if name in CROSS_DECODERS else ["none"]
