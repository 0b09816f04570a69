"""What the masks of a zoo model mean, as its architecture and the way it was exported say: nothing here is read from a graph,
and nothing from what the tool says.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

DECODERS = ("llama", "qwen3", "gemma", "gpt2", "qwen2", "phi", "phi3", "gpt-neox", "gptj", "opt")
# Every layer sees a window, and every other one.
WINDOWS = {"mistral": 1.0, "gemma2": 0.5, "gemma3": 0.5}
PADDED_ENCODERS = ("bert", "roberta", "distilbert")
# Their scores hold a number for each distance beside the mask.
BIASED = {"t5-decoder": True, "bloom": False}  # whether they read what an encoder says, too
# Those of other frameworks, each attention alike.
FRAMEWORKS = {
    "keras-grouped-attention": "causal_bottom_right",
    "flax-encoder-exact": "none", "paddle-encoder": "none", "paddle-encoder-relu": "none",
    "paddle-llama": "causal_bottom_right", "paddle-swin": "bias",
    "torchtune": "causal_bottom_right", "olmo2": "causal_bottom_right+padding", "stablelm": "causal_bottom_right+padding",
    "nemotron": "causal_bottom_right+padding", "glm4": "causal_bottom_right+padding", "persimmon": "causal_bottom_right+padding",
    "mpnet": "padding+bias", "deberta": "bias", "swinv2": "bias", "conformer": "bias",
    "x-transformers-rotary": "causal_bottom_right", "x-transformers-talking": "",
    # What one position may see is read from an input.
    "flax-causal": "explicit", "flax-gemma": "explicit", "flax-pairs": "explicit",
}
# No mask is an input of theirs, and none is made inside.
UNMASKED = ("vit", "clip-vision", "siglip", "dinov2", "dinov2-swiglu", "whisper-encoder", "unet", "vae", "torch-mha",
            "torch-encoder", "torch-encoder-pre", "segformer", "timm-davit", "vit-pytorch", "einops-attention",
            "flux", "sd3", "wan", "diffusers-unet", "diffusers-vae-encoder", "diffusers-vae-decoder")  # fmt: skip

# What is found where it is not the word that follows from the configuration, and why.
DECLINED = {
    # The query is [B, 2, 1, D] before one key: whether 2 are heads or queries, and so where a window ends, is the same to it.
    "gemma3-sdpa-decode-ts17-dynamic": Counter({"padding": 2}),
    "gemma3-sdpa-decode-ts17-static": Counter({"padding": 2}),
    # A Where of a mask of `total` keys and one of `past + seq`: which of the two is broadcast is not known.
    "opt-eager-past-ts17-dynamic-tf4442": Counter({"padding+explicit": 2}),
}


def expected_masks(entry: dict[str, Any]) -> Counter[str]:
    """Returns how many attentions of the manifest's entry have each word of the report."""
    count = entry["expected"]["attention"]
    architecture = entry["architecture"]
    # One query sees all keys of the past: only padding is left of the triangle.
    whole = "padding" if entry["mode"] == "decode" else "causal_bottom_right+padding"
    if architecture in DECODERS:
        return Counter({whole: count})
    if architecture == "clip-text":
        return Counter({"causal_bottom_right+padding": count})
    if architecture in WINDOWS:
        # One query sees no more than its window of the past either.
        windows = round(count * WINDOWS[architecture])
        return +Counter({"window+padding": windows, whole: count - windows})
    if architecture in BIASED:
        across = count // 2 if BIASED[architecture] else 0
        return +Counter({f"{whole}+bias": count - across, "none": across})
    if architecture == "bart-decoder":  # the mask is the decoder's own
        return Counter({whole: count // 2, "none": count // 2})
    if architecture == "whisper-decoder":  # it has no padding
        causal = 0 if entry["mode"] == "decode" else count // 2
        return +Counter({"causal_bottom_right": causal, "none": count - causal})
    if architecture in ("t5-relu", "t5-gated"):
        return Counter({"padding+bias": count})
    if architecture == "swin":  # distances in a window, and -100 between windows
        return Counter({"bias": count})
    if architecture in PADDED_ENCODERS:
        return Counter({"padding": count})
    if architecture == "bart":  # in each layer: of the encoder, of the decoder, and across
        return Counter({"padding": 2 * count // 3, "causal_bottom_right": count // 3})
    if architecture == "cohere2":  # one layer of each kind
        return Counter({"window": 1, "causal_bottom_right": 1})
    if architecture == "modernbert":  # the same, to both sides
        return Counter({"window": 1, "none": 1})
    if architecture == "timm-cait":  # one layer mixes its heads, so that nothing before that is read
        return Counter({"": 1, "none": 2})
    if architecture == "marian":  # in each layer: of the encoder, of the decoder, and across
        return Counter({"padding": 2, "causal_bottom_right": 1})
    if architecture in FRAMEWORKS:
        return Counter({FRAMEWORKS[architecture]: count})
    if architecture in UNMASKED:
        return Counter({"none": count})
    raise KeyError(architecture)
