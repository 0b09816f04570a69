"""The second part of the zoo: more architectures, in the same form as `architectures.py`.

What transformers does not have (blocks of diffusion models, torch.nn's own attention) is in `plain.py`. Expected
counts come from the configurations alone.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import torch
import transformers

import architectures as first
from architectures import HEAD_DIM, LAYERS, VOCAB, Architecture, Input, counts
from plain import HIDDEN, PLAIN

TEXT = {"vocab_size": VOCAB, "hidden_size": HIDDEN, "intermediate_size": 192, "num_hidden_layers": LAYERS,
        "num_attention_heads": 2, "max_position_embeddings": 64}
GROUPED = {**TEXT, "hidden_size": 256, "num_attention_heads": 4, "num_key_value_heads": 2}
PIXELS = {"hidden_size": HIDDEN, "intermediate_size": 192, "num_hidden_layers": LAYERS,
          "num_attention_heads": 2, "image_size": 32, "patch_size": 8}
NO_IDS = {"bos_token_id": 0, "eos_token_id": 0, "pad_token_id": 0}

# ---- Configurations of transformers' modules: class of the configuration, class of the module, options


def _t5() -> dict[str, Any]:
    return {"vocab_size": VOCAB, "d_model": HIDDEN, "d_kv": HEAD_DIM, "d_ff": 192, "num_layers": LAYERS,
            "num_heads": 2, "relative_attention_num_buckets": 8, "relative_attention_max_distance": 16}


def _bart() -> dict[str, Any]:
    both = {"layers": LAYERS, "attention_heads": 2, "ffn_dim": 192}
    sides = {f"{side}_{key}": value for side in ("encoder", "decoder") for key, value in both.items()}
    return {"vocab_size": VOCAB, "d_model": HIDDEN, "max_position_embeddings": 64, **sides}


HUGGING_FACE: dict[str, tuple[str, str, dict[str, Any]]] = {
    "qwen2": ("Qwen2Config", "Qwen2ForCausalLM", GROUPED),
    "mistral": ("MistralConfig", "MistralForCausalLM", {**GROUPED, "sliding_window": 4}),
    "gemma2": ("Gemma2Config", "Gemma2ForCausalLM",
               {**TEXT, "num_key_value_heads": 1, "head_dim": HEAD_DIM, "sliding_window": 4,
                "query_pre_attn_scalar": HEAD_DIM}),
    "gemma3": ("Gemma3TextConfig", "Gemma3ForCausalLM",
               {**TEXT, "num_key_value_heads": 1, "head_dim": HEAD_DIM, "sliding_window": 4,
                "query_pre_attn_scalar": HEAD_DIM, "layer_types": ["sliding_attention", "full_attention"]}),
    "phi": ("PhiConfig", "PhiForCausalLM", TEXT),
    "phi3": ("Phi3Config", "Phi3ForCausalLM",
             {**GROUPED, **NO_IDS, "original_max_position_embeddings": 64}),
    "gpt-neox": ("GPTNeoXConfig", "GPTNeoXForCausalLM", TEXT),
    "gptj": ("GPTJConfig", "GPTJForCausalLM",
             {"vocab_size": VOCAB, "n_positions": 64, "n_embd": HIDDEN, "n_layer": LAYERS, "n_head": 2,
              "rotary_dim": 32, "bos_token_id": 0, "eos_token_id": 0}),
    "opt": ("OPTConfig", "OPTForCausalLM",
            {"vocab_size": VOCAB, "hidden_size": HIDDEN, "word_embed_proj_dim": HIDDEN, "ffn_dim": 192,
             "num_hidden_layers": LAYERS, "num_attention_heads": 2, "max_position_embeddings": 64}),
    "bloom": ("BloomConfig", "BloomForCausalLM",
              {"vocab_size": VOCAB, "hidden_size": HIDDEN, "n_layer": LAYERS, "n_head": 2}),
    "roberta": ("RobertaConfig", "RobertaModel", {**TEXT, "max_position_embeddings": 66}),
    "distilbert": ("DistilBertConfig", "DistilBertModel",
                   {"vocab_size": VOCAB, "dim": HIDDEN, "hidden_dim": 192, "n_layers": LAYERS, "n_heads": 2,
                    "max_position_embeddings": 64}),
    "t5-decoder": ("T5Config", "T5Model", _t5()),
    "bart": ("BartConfig", "BartModel", _bart()),
    "bart-decoder": ("BartConfig", "BartModel", _bart()),
    "whisper-decoder": ("WhisperConfig", "WhisperModel",
                        {**_bart(), **NO_IDS, "num_mel_bins": 16, "max_source_positions": 24,
                         "max_target_positions": 32, "decoder_start_token_id": 0}),
    "clip-vision": ("CLIPVisionConfig", "CLIPVisionModelWithProjection", {**PIXELS, "projection_dim": 64}),
    "siglip": ("SiglipVisionConfig", "SiglipVisionModel", PIXELS),
    "dinov2": ("Dinov2Config", "Dinov2Model", {k: v for k, v in PIXELS.items() if k != "intermediate_size"}),
    "dinov2-swiglu": ("Dinov2Config", "Dinov2Model",
                      {**{k: v for k, v in PIXELS.items() if k != "intermediate_size"}, "use_swiglu_ffn": True}),
    "swin": ("SwinConfig", "SwinModel",
             {"image_size": 32, "patch_size": 2, "embed_dim": 64, "depths": [2, 1], "num_heads": [1, 2],
              "window_size": 4}),
    "convnext": ("ConvNextConfig", "ConvNextModel",
                 {"num_stages": 2, "hidden_sizes": [32, 64], "depths": [1, 1]}),
}

# ---- Expected counts -----------------------------------------------------------------------------


def decoder_counts(norm: str, norms: int, after: int = 1, **each: int) -> Callable[[Any], first.Counts]:
    """`norms` per layer and `after` others, and per layer what `each` names."""

    def expected(config: Any) -> first.Counts:
        layers = config.num_hidden_layers
        return counts(**{norm: norms * layers + after}, **{k: n * layers for k, n in each.items()})

    return expected


def swin_counts(config: Any) -> first.Counts:
    """Two norms per layer, one per merging, one after the embeddings and a final one."""
    layers, stages = sum(config.depths), len(config.depths)
    return counts(
        layer_norm=2 * layers + (stages - 1) + 2, gelu=layers, linear_activation=layers, attention=layers
    )


def convnext_counts(config: Any) -> first.Counts:
    """One norm per layer, one per downsampling, one after the embeddings and a final one."""
    layers, stages = sum(config.depths), len(config.depths)
    return counts(layer_norm=layers + (stages - 1) + 2, gelu=layers, linear_activation=layers)


def unet_counts(config: Any) -> first.Counts:
    """A norm followed by SiLU is a group_norm only.

    The time embedding has a SiLU inside, and every ResBlock takes SiLU of it: one value, which exporters compute once. Both follow a linear.
    """
    n = config.layers
    return counts(group_norm=3 * n + 1, layer_norm=3 * n, silu=2, glu=n, linear_activation=2, attention=2 * n)


def diffusers_unet_counts(config: Any) -> first.Counts:
    """Two norms per ResBlock, each followed by SiLU; the two SiLUs of the time embedding as above.

    A transformer has a GroupNorm, three LayerNorms, two attentions and a GEGLU. The middle has two ResBlocks and one
    transformer; a block on the way up has one layer more than on the way down.
    """
    options = config.options
    n, down, up = options["layers_per_block"], options["down_block_types"], options["up_block_types"]
    resnets = n * len(down) + 2 + (n + 1) * len(up)
    blocks = n * sum("CrossAttn" in b for b in down) + 1 + (n + 1) * sum("CrossAttn" in b for b in up)
    return counts(group_norm=2 * resnets + blocks + 1, layer_norm=3 * blocks, silu=2, glu=blocks,
                  linear_activation=2, attention=2 * blocks)


def diffusers_vae_counts(config: Any) -> first.Counts:
    """Two norms per ResBlock, one of the attention in the middle and a final one; all SiLUs follow a norm."""
    n, blocks = config.options["layers_per_block"], len(config.options["up_block_types"])
    resnets = (n + 1 if config.side == "decoder" else n) * blocks + 2
    return counts(group_norm=2 * resnets + 2, attention=1)


_gated = decoder_counts("rms_norm", 2, glu=1, rotary=2, attention=1)
_post_norm = decoder_counts("layer_norm", 2, gelu=1, linear_activation=1, attention=1)
_cross = {"attention": 2 * LAYERS}

EXPECTED: dict[str, Callable[[Any], first.Counts]] = {
    "qwen2": _gated,
    "mistral": _gated,
    "phi3": _gated,
    "gemma2": decoder_counts("rms_norm", 4, glu=1, rotary=2, attention=1),
    "gemma3": decoder_counts("rms_norm", 6, glu=1, rotary=2, attention=1),
    "phi": decoder_counts("layer_norm", 1, gelu=1, linear_activation=1, rotary=2, attention=1),
    "gptj": decoder_counts("layer_norm", 1, gelu=1, linear_activation=1, rotary=2, attention=1),
    "gpt-neox": decoder_counts("layer_norm", 2, gelu=1, linear_activation=1, rotary=2, attention=1),
    "opt": decoder_counts("layer_norm", 2, linear_activation=1, attention=1),  # ReLU
    "bloom": decoder_counts("layer_norm", 2, after=2, gelu=1, linear_activation=1, attention=1),
    "roberta": _post_norm,
    "distilbert": _post_norm,
    "t5-decoder": lambda c: counts(
        rms_norm=3 * c.num_decoder_layers + 1,
        linear_activation=c.num_decoder_layers,  # ReLU
        attention=2 * c.num_decoder_layers,
    ),
    "bart": lambda c: counts(
        layer_norm=2 * c.encoder_layers + 3 * c.decoder_layers + 2,
        gelu=c.encoder_layers + c.decoder_layers,
        linear_activation=c.encoder_layers + c.decoder_layers,
        attention=c.encoder_layers + 2 * c.decoder_layers,
    ),
    "bart-decoder": lambda c: counts(
        layer_norm=3 * c.decoder_layers + 1,
        gelu=c.decoder_layers,
        linear_activation=c.decoder_layers,
        attention=2 * c.decoder_layers,
    ),
    "whisper-decoder": lambda c: counts(
        layer_norm=3 * c.decoder_layers + 1,
        gelu=c.decoder_layers,
        linear_activation=c.decoder_layers,
        attention=2 * c.decoder_layers,
    ),
    "clip-vision": decoder_counts("layer_norm", 2, after=2, gelu=1, linear_activation=1, attention=1),
    # The pooling head of SigLIP has a norm, an attention and an MLP of its own.
    "siglip": lambda c: counts(
        layer_norm=2 * c.num_hidden_layers + 2,
        gelu=c.num_hidden_layers + 1,
        linear_activation=c.num_hidden_layers + 1,
        attention=c.num_hidden_layers + 1,
    ),
    "dinov2": decoder_counts("layer_norm", 2, gelu=1, linear_activation=1, attention=1),
    "dinov2-swiglu": decoder_counts("layer_norm", 2, glu=1, attention=1),
    "swin": swin_counts,
    "convnext": convnext_counts,
    "unet": unet_counts,
    "vae": lambda c: counts(group_norm=2 * c.layers + 2, attention=1),
    "diffusers-unet": diffusers_unet_counts,
    "diffusers-vae-encoder": diffusers_vae_counts,
    "diffusers-vae-decoder": diffusers_vae_counts,
    "activations": lambda c: counts(silu=1, hard_swish=1, mish=1, gelu=1),
    "torch-mha": lambda c: counts(layer_norm=2, attention=2),
    "torch-encoder": lambda c: counts(
        layer_norm=2 * LAYERS, gelu=LAYERS, linear_activation=LAYERS, attention=LAYERS
    ),
    "torch-encoder-pre": lambda c: counts(
        layer_norm=2 * LAYERS + 1, gelu=LAYERS, linear_activation=LAYERS, attention=LAYERS
    ),
}

# ---- Modules, inputs and outputs -----------------------------------------------------------------


def _side_class(base: type, side: str, *arguments: str) -> type:
    """Returns a module that runs only one side (`decoder`) of a model."""

    class OneSide(base):
        def forward(self, first, second=None, third=None):
            given = dict(zip(arguments, (first, second, third)))
            return getattr(self, side)(**given, use_cache=False, return_dict=True)[0]

    return first._named_like(OneSide, base)


def _cached_side_class(base: type, masked: bool) -> type:
    """Returns a module that runs the decoder on top of a past; keys and values of the cross attention are given.

    The states of the encoder then only say that there is a cross attention: their values go unused.
    """

    def run(self, input_ids, mask, past, cross):
        cache = transformers.EncoderDecoderCache(first.cache_of(past), first.cache_of(cross))
        states = cross[0].transpose(1, 2).flatten(2)
        given = {} if mask is None else {"attention_mask": mask}
        result = self.decoder(
            input_ids, **given, encoder_hidden_states=states, past_key_values=cache, use_cache=True, return_dict=True
        )
        return (result[0], *first.tensors_of(cache.self_attention_cache))

    if masked:

        class Cached(base):
            def forward(self, ids, mask, past_0_k, past_0_v, past_1_k, past_1_v, cross_0_k, cross_0_v, cross_1_k, cross_1_v):
                past, cross = (past_0_k, past_0_v, past_1_k, past_1_v), (cross_0_k, cross_0_v, cross_1_k, cross_1_v)
                return run(self, ids, mask, past, cross)
    else:

        class Cached(base):
            def forward(self, ids, past_0_k, past_0_v, past_1_k, past_1_v, cross_0_k, cross_0_v, cross_1_k, cross_1_v):
                past, cross = (past_0_k, past_0_v, past_1_k, past_1_v), (cross_0_k, cross_0_v, cross_1_k, cross_1_v)
                return run(self, ids, None, past, cross)

    return first._named_like(Cached, base)


def _pooled_class(base: type) -> type:
    """Returns a module whose output is the pooled one, since the heads before it count."""

    class Pooled(base):
        def forward(self, pixel_values):
            return super().forward(pixel_values=pixel_values, return_dict=True).pooler_output

    return first._named_like(Pooled, base)


def module_class(name: str, mode: str) -> type:
    """Returns the module to export, with flat inputs and outputs."""
    torch.backends.mha.set_fastpath_enabled(False)  # Its fused operators have no ONNX form.
    if name in PLAIN:
        return PLAIN[name][0]
    base = getattr(transformers, HUGGING_FACE[name][1])
    if mode and name.endswith("-decoder"):
        return _cached_side_class(base, masked=name != "whisper-decoder")
    if mode:
        return first.decoder_class(base) if mode == "nocache" else first.cached_decoder_class(base)
    if name in ("t5-decoder", "bart-decoder"):
        return _side_class(base, "decoder", "input_ids", "attention_mask", "encoder_hidden_states")
    if name == "whisper-decoder":
        return _side_class(base, "decoder", "input_ids", "encoder_hidden_states")
    if name == "bart":
        return first.first_output_class(base, "input_ids", "attention_mask", "decoder_input_ids", use_cache=False)
    if name in ("roberta", "distilbert"):
        return first.first_output_class(base, "input_ids", "attention_mask")
    if name in ("siglip", "convnext"):
        return _pooled_class(base)
    return first.first_output_class(base, "pixel_values")


def _make(name: str) -> Callable[[str], Any]:
    def make(attention: str) -> Any:
        if name in PLAIN:
            return SimpleNamespace(**PLAIN[name][1], _attn_implementation=attention)
        config, _, options = HUGGING_FACE[name]
        return getattr(transformers, config)(**options, attn_implementation=attention)

    return make


_IDS, _MASK = Input("input_ids", ("batch", "seq"), "ids", VOCAB), Input("attention_mask", ("batch", "seq"), "attention_mask")
_STATES = ("batch", "source", HIDDEN)
_PIXELS = [Input("pixel_values", ("batch", 3, 32, 32), "pixels")]

INPUTS: dict[str, list[Input]] = {
    "roberta": [_IDS, _MASK],
    "distilbert": [_IDS, _MASK],
    "t5-decoder": [_IDS, _MASK, Input("encoder_hidden_states", _STATES, "features")],
    "bart-decoder": [_IDS, _MASK, Input("encoder_hidden_states", _STATES, "features")],
    "whisper-decoder": [_IDS, Input("encoder_hidden_states", ("batch", 24, HIDDEN), "features")],
    "bart": [_IDS, _MASK, Input("decoder_input_ids", ("batch", "source"), "ids", VOCAB)],
    "unet": [
        Input("sample", ("batch", 4, "seq", 8), "features"),
        Input("time", ("batch", 32), "features"),
        Input("context", ("batch", "source", 96), "features"),
    ],
    "vae": [Input("sample", ("batch", 4, "seq", 8), "features")],
    "diffusers-unet": [
        Input("sample", ("batch", 4, "height", 8), "features"),
        Input("timestep", ("batch",), "features"),
        Input("context", ("batch", "source", 96), "features"),
    ],
    "diffusers-vae-encoder": [Input("sample", ("batch", 3, "height", 16), "features")],
    "diffusers-vae-decoder": [Input("sample", ("batch", 4, "seq", 8), "features")],
    "activations": [Input("sample", ("batch", 8, 8, 8), "features")],
    "torch-mha": [Input("hidden", ("batch", "seq", HIDDEN), "features"), Input("memory", _STATES, "features")],
    "torch-encoder": [Input("hidden", ("batch", "seq", HIDDEN), "features")],
    "torch-encoder-pre": [Input("hidden", ("batch", "seq", HIDDEN), "features")],
}


def _cross_decoder_inputs(name: str) -> Callable[[str], list[Input]]:
    """Returns the inputs of a decoder whose cross attention reads states, or keys and values that are given."""

    def inputs(mode: str) -> list[Input]:
        if not mode:
            return INPUTS[name]
        ids = Input("input_ids", ("batch", 1 if mode == "decode" else "seq"), "ids", VOCAB)
        mask = [] if name == "whisper-decoder" else [Input("attention_mask", ("batch", "total"), "attention_mask")]
        caches = [
            Input(f"{which}.{i}.{kv}", ("batch", 2, length, HEAD_DIM), "past")
            for which, length in (("past", "past"), ("cross", "states"))
            for i in range(LAYERS)
            for kv in "kv"
        ]
        return [ids, *mask, *caches]

    return inputs


def _cross_decoder_outputs(mode: str) -> list[tuple[str, first.Shape]]:
    states = ("output", ("batch", 1 if mode == "decode" else "seq", HIDDEN))
    present = ("batch", 2, "total", HEAD_DIM)
    return [states, *((f"present.{i}.{kv}", present) for i in range(LAYERS) for kv in "kv" if mode)]


def _architecture(name: str) -> Architecture:
    heads = 1 if name in ("gemma2", "gemma3") else 2
    if name in HUGGING_FACE and HUGGING_FACE[name][1].endswith("ForCausalLM"):
        module = getattr(transformers, HUGGING_FACE[name][1], None)  # The older transformers lacks some.
        positions = module is not None and first.takes_positions(module)
        return Architecture(
            _make(name), EXPECTED[name], first.decoder_inputs(heads, positions), first.decoder_outputs(heads)
        )
    if name.endswith("-decoder") and name in HUGGING_FACE:
        return Architecture(_make(name), EXPECTED[name], _cross_decoder_inputs(name), _cross_decoder_outputs)
    shape: tuple[Any, ...] = ("batch",)
    if name in INPUTS and INPUTS[name][0].shape[1:2] == ("seq",):
        shape = ("batch", "source" if name == "bart" else "seq", HIDDEN)
    return Architecture(
        _make(name), EXPECTED[name], lambda mode: INPUTS.get(name, _PIXELS), first.fixed_output("output", shape)
    )


ARCHITECTURES = {name: _architecture(name) for name in (*HUGGING_FACE, *PLAIN)}
