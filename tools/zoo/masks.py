"""What the masks of a zoo model mean, as far as its architecture and the way it was exported say: nothing here is read from
a graph, and nothing from what the tool says.

Not derived, and so not compared: decoders beside an encoder whose mask input is sometimes that of the encoder (t5-decoder,
bart-decoder, whisper-decoder), Swin's windows (their number depends on the picture), torch-mha and torch-encoder (their
masks are arguments of the exporter's script), BLOOM (its triangle is added to ALiBi in several ways), diffusers, and models
whose scores hold a bias beside the mask in a form that differs by release (the encoders of T5)."""

from __future__ import annotations

from collections import Counter
from typing import Any

DECODERS = ("llama", "qwen3", "gemma", "gpt2", "qwen2", "phi", "phi3", "gpt-neox", "gptj", "opt")
# Every layer sees a window, and every other one.
WINDOWS = {"mistral": 1.0, "gemma2": 0.5, "gemma3": 0.5}
PADDED_ENCODERS = ("bert", "roberta", "distilbert")
PICTURES = ("vit", "clip-vision", "siglip", "dinov2", "dinov2-swiglu", "whisper-encoder", "unet", "vae")


def agrees(found: str, expected: str) -> bool:
    """Whether a word of the report is the expected one, or declines a part of it: that is "explicit" then. What is declined
    are lengths that a model leaves apart, as that of a padding mask which is only at run time that of the keys."""
    parts, wanted = set(found.split("+")), set(expected.split("+"))
    return parts == wanted or ("explicit" in parts and parts - {"explicit"} <= wanted)


def expected_masks(entry: dict[str, Any]) -> Counter[str] | None:
    """Returns how many attentions of the manifest's entry have each word of the report; None where it cannot be derived."""
    count = entry["expected"]["attention"]
    architecture = entry["architecture"]
    # One query sees all keys of the past: only padding is left of the triangle.
    whole = "padding" if entry["mode"] == "decode" else "causal_bottom_right+padding"
    if architecture in DECODERS:
        return Counter({whole: count})
    if architecture == "clip-text":
        return Counter({"causal_bottom_right+padding": count})
    if architecture in WINDOWS:
        # Of one query a window has an edge that is a matter of the key alone, as padding is.
        windows = 0 if entry["mode"] == "decode" else round(count * WINDOWS[architecture])
        return +Counter({"window+padding": windows, whole: count - windows})
    if architecture in PADDED_ENCODERS:
        return Counter({"padding": count})
    if architecture == "bart":  # in each layer: of the encoder, of the decoder, and across
        return Counter({"padding": 2 * count // 3, "causal_bottom_right": count // 3})
    if architecture in PICTURES:
        return Counter({"none": count})
    return None
