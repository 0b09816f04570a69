"""The architectures of the zoo: small configurations, modules with flat inputs, and expected counts.

Each architecture is a real Hugging Face module built from a small configuration. A decoder's cache
is made of flat tensors by a subclass of the module, so that module paths in the exported graph are
the ones that users see (`model.layers.0.self_attn`).

The expected number of fusion sites comes from the configuration alone: one function per family,
never from a graph. The counting is the report's: an activation inside a gated product counts as
`glu` only, q and k each count one `rotary`, and every call of a norm module counts one.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
import transformers
from transformers import DynamicCache

KINDS = (
    "rms_norm", "layer_norm", "group_norm", "gelu", "silu", "hard_swish", "mish", "glu", "rotary", "attention",
)
LAYERS = 2
HEAD_DIM = 64
VOCAB = 128
CLIP_EOS = 3

Counts = dict[str, int]
Shape = tuple[Any, ...]


@dataclass(frozen=True)
class Input:
    """A graph input: its shape in terms of batch, seq, past and total, and what its values mean."""

    name: str
    shape: Shape
    meaning: str
    vocab: int | None = None
    eos: int | None = None


@dataclass(frozen=True)
class Architecture:
    """How to build one architecture and what to expect in its graph."""

    make: Callable[[str], torch.nn.Module]
    expected: Callable[[Any], Counts]
    inputs: Callable[[str], list[Input]]
    outputs: Callable[[str], list[tuple[str, Shape]]]
    # Symbol values of the static export and of the example that is traced.
    sizes: dict[str, int] = field(default_factory=lambda: {"batch": 2, "seq": 5, "past": 7})


# ---- Modules with flat inputs and outputs --------------------------------------------------------


Tensors = tuple[torch.Tensor, ...]


def cache_of(past: Tensors) -> DynamicCache:
    """Returns a cache that holds k0, v0, k1, v1, ..."""
    pairs = tuple(zip(past[0::2], past[1::2]))
    if hasattr(DynamicCache, "from_legacy_cache"):
        return DynamicCache.from_legacy_cache(pairs)
    return DynamicCache(pairs)


def tensors_of(cache: Any) -> Tensors:
    """Returns k0, v0, k1, v1, ... of a cache, or of the pairs that some older modules have instead."""
    if isinstance(cache, tuple):
        pairs = cache
    elif hasattr(cache, "key_cache"):
        pairs = zip(cache.key_cache, cache.value_cache)
    else:
        pairs = ((layer.keys, layer.values) for layer in cache.layers)
    return tuple(tensor for pair in pairs for tensor in pair)


def takes_positions(base: type) -> bool:
    """True if a language model is told the positions; others count them from the mask."""
    return "position_ids" in inspect.signature(base.forward).parameters


def decoder_class(base: type) -> type:
    """Returns the causal language model with logits as its only output."""

    class WithoutCache(base):
        def forward(self, input_ids, attention_mask):
            return super().forward(input_ids=input_ids, attention_mask=attention_mask, use_cache=False).logits

    return _named_like(WithoutCache, base)


def cached_decoder_class(base: type) -> type:
    """Returns the causal language model of two layers with flat past and present."""
    assert LAYERS == 2, "forward spells out the tensors of two layers"

    def run(self: Any, ids: torch.Tensor, mask: torch.Tensor, positions: torch.Tensor | None, past: Tensors) -> Tensors:
        pairs = getattr(base, "_supports_cache_class", True) is False  # Some older modules know no cache class.
        result = base.forward(
            self,
            input_ids=ids,
            attention_mask=mask,
            past_key_values=tuple(zip(past[0::2], past[1::2])) if pairs else cache_of(past),
            use_cache=True,
            **({} if positions is None else {"position_ids": positions}),
        )
        return (result.logits, *tensors_of(result.past_key_values))

    if takes_positions(base):

        class WithCache(base):
            def forward(self, input_ids, attention_mask, position_ids, past_0_k, past_0_v, past_1_k, past_1_v):
                return run(self, input_ids, attention_mask, position_ids, (past_0_k, past_0_v, past_1_k, past_1_v))
    else:

        class WithCache(base):
            def forward(self, input_ids, attention_mask, past_0_k, past_0_v, past_1_k, past_1_v):
                return run(self, input_ids, attention_mask, None, (past_0_k, past_0_v, past_1_k, past_1_v))

    return _named_like(WithCache, base)


def first_output_class(base: type, *arguments: str, **fixed: Any) -> type:
    """Returns a module whose forward takes the named arguments and returns the first output only."""

    class FirstOutput(base):
        def forward(self, first, second=None, third=None):
            given = dict(zip(arguments, (first, second, third)))
            return super().forward(**given, **fixed, return_dict=True)[0]

    return _named_like(FirstOutput, base)


def _named_like(subclass: type, base: type) -> type:
    """Gives a subclass the name of its base, which is what the exported class hierarchy shows."""
    subclass.__name__ = base.__name__
    subclass.__qualname__ = base.__qualname__
    subclass.__module__ = base.__module__
    return subclass


# ---- Inputs and outputs --------------------------------------------------------------------------


def decoder_inputs(key_value_heads: int, positions: bool = True) -> Callable[[str], list[Input]]:
    def inputs(mode: str) -> list[Input]:
        if mode == "nocache":
            return [
                Input("input_ids", ("batch", "seq"), "ids", VOCAB),
                Input("attention_mask", ("batch", "seq"), "attention_mask"),
            ]
        seq = 1 if mode == "decode" else "seq"
        past = ("batch", key_value_heads, "past", HEAD_DIM)
        return [
            Input("input_ids", ("batch", seq), "ids", VOCAB),
            Input("attention_mask", ("batch", "total"), "attention_mask"),
            *([Input("position_ids", ("batch", seq), "position_ids")] if positions else []),
            *(Input(f"past.{i}.{kv}", past, "past") for i in range(LAYERS) for kv in "kv"),
        ]

    return inputs


def decoder_outputs(key_value_heads: int) -> Callable[[str], list[tuple[str, Shape]]]:
    def outputs(mode: str) -> list[tuple[str, Shape]]:
        logits = ("logits", ("batch", 1 if mode == "decode" else "seq", VOCAB))
        if mode == "nocache":
            return [logits]
        present = ("batch", key_value_heads, "total", HEAD_DIM)
        return [logits, *((f"present.{i}.{kv}", present) for i in range(LAYERS) for kv in "kv")]

    return outputs


def text_inputs(segments: bool = False, eos: int | None = None) -> Callable[[str], list[Input]]:
    def inputs(mode: str) -> list[Input]:
        shape = ("batch", "seq")
        result = [Input("input_ids", shape, "ids", VOCAB, eos), Input("attention_mask", shape, "attention_mask")]
        return result + ([Input("token_type_ids", shape, "segment_ids", 2)] if segments else [])

    return inputs


def fixed_input(name: str, shape: Shape, meaning: str) -> Callable[[str], list[Input]]:
    return lambda mode: [Input(name, shape, meaning)]


def fixed_output(name: str, shape: Shape) -> Callable[[str], list[tuple[str, Shape]]]:
    return lambda mode: [(name, shape)]


# ---- Expected counts, from configurations --------------------------------------------------------


def counts(**given: int) -> Counts:
    return {kind: given.get(kind, 0) for kind in KINDS}


def gated_decoder_counts(config: Any) -> Counts:
    """Llama, Qwen3, Gemma: two norms per layer and a final one, a gated MLP, rotated q and k."""
    layers = config.num_hidden_layers
    per_head_norms = 2 if config.model_type == "qwen3" else 0
    return counts(
        rms_norm=layers * (2 + per_head_norms) + 1, glu=layers, rotary=2 * layers, attention=layers
    )


def gpt2_counts(config: Any) -> Counts:
    layers = config.n_layer
    assert config.activation_function == "gelu_new"
    return counts(layer_norm=2 * layers + 1, gelu=layers, attention=layers)


def bert_counts(config: Any) -> Counts:
    """Two norms per layer and one after the embeddings; the pooler's tanh is no kind."""
    layers = config.num_hidden_layers
    assert config.hidden_act == "gelu"
    return counts(layer_norm=2 * layers + 1, gelu=layers, attention=layers)


def pre_norm_encoder_counts(config: Any) -> Counts:
    """ViT and CLIP: two norms per layer and a final one; quick_gelu counts as gelu."""
    layers = config.num_hidden_layers
    assert config.hidden_act in ("gelu", "quick_gelu")
    return counts(layer_norm=2 * layers + 1, gelu=layers, attention=layers)


def t5_counts(config: Any) -> Counts:
    """Two RMS norms per layer and a final one; ReLU is no kind."""
    layers = config.num_layers
    gated = config.feed_forward_proj.startswith("gated-")
    return counts(rms_norm=2 * layers + 1, glu=layers if gated else 0, attention=layers)


def whisper_counts(config: Any) -> Counts:
    """Two norms per layer and a final one; each of the two convolutions has a GELU of its own."""
    layers = config.encoder_layers
    assert config.activation_function == "gelu"
    return counts(layer_norm=2 * layers + 1, gelu=layers + 2, attention=layers)


# ---- Configurations ------------------------------------------------------------------------------


def _llama_config(attention: str) -> Any:
    return transformers.LlamaConfig(
        vocab_size=VOCAB,
        hidden_size=256,
        intermediate_size=192,
        num_hidden_layers=LAYERS,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=64,
        attn_implementation=attention,
    )


def _qwen3_config(attention: str) -> Any:
    return transformers.Qwen3Config(
        vocab_size=VOCAB,
        hidden_size=128,
        intermediate_size=192,
        num_hidden_layers=LAYERS,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=HEAD_DIM,
        max_position_embeddings=64,
        tie_word_embeddings=True,
        attn_implementation=attention,
    )


def _gemma_config(attention: str) -> Any:
    return transformers.GemmaConfig(
        vocab_size=VOCAB,
        hidden_size=128,
        intermediate_size=192,
        num_hidden_layers=LAYERS,
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=HEAD_DIM,
        max_position_embeddings=64,
        attn_implementation=attention,
    )


def _gpt2_config(attention: str) -> Any:
    return transformers.GPT2Config(
        vocab_size=VOCAB,
        n_positions=64,
        n_embd=128,
        n_layer=LAYERS,
        n_head=2,
        bos_token_id=0,
        eos_token_id=0,
        attn_implementation=attention,
    )


def _bert_config(attention: str) -> Any:
    return transformers.BertConfig(
        vocab_size=VOCAB,
        hidden_size=128,
        intermediate_size=192,
        num_hidden_layers=LAYERS,
        num_attention_heads=2,
        max_position_embeddings=64,
        attn_implementation=attention,
    )


def _t5_config(feed_forward: str) -> Callable[[str], Any]:
    def config(attention: str) -> Any:
        return transformers.T5Config(
            vocab_size=VOCAB,
            d_model=128,
            d_kv=HEAD_DIM,
            d_ff=192,
            num_layers=LAYERS,
            num_heads=2,
            relative_attention_num_buckets=8,
            relative_attention_max_distance=16,
            feed_forward_proj=feed_forward,
            attn_implementation=attention,
        )

    return config


def _vit_config(attention: str) -> Any:
    return transformers.ViTConfig(
        hidden_size=128,
        intermediate_size=192,
        num_hidden_layers=LAYERS,
        num_attention_heads=2,
        image_size=32,
        patch_size=8,
        num_labels=10,
        attn_implementation=attention,
    )


def _clip_config(attention: str) -> Any:
    return transformers.CLIPTextConfig(
        vocab_size=VOCAB,
        hidden_size=128,
        intermediate_size=192,
        projection_dim=64,
        num_hidden_layers=LAYERS,
        num_attention_heads=2,
        max_position_embeddings=32,
        bos_token_id=1,
        eos_token_id=CLIP_EOS,
        attn_implementation=attention,
    )


def _whisper_config(attention: str) -> Any:
    return transformers.WhisperConfig(
        vocab_size=VOCAB,
        num_mel_bins=16,
        d_model=128,
        encoder_layers=LAYERS,
        decoder_layers=LAYERS,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        encoder_ffn_dim=192,
        decoder_ffn_dim=192,
        max_source_positions=24,
        max_target_positions=32,
        pad_token_id=0,
        bos_token_id=0,
        eos_token_id=0,
        decoder_start_token_id=0,
        attn_implementation=attention,
    )


CONFIGURATIONS: dict[str, Callable[[str], Any]] = {
    "llama": _llama_config,
    "qwen3": _qwen3_config,
    "gemma": _gemma_config,
    "gpt2": _gpt2_config,
    "bert": _bert_config,
    "t5-gated": _t5_config("gated-gelu"),
    "t5-relu": _t5_config("relu"),
    "vit": _vit_config,
    "clip-text": _clip_config,
    "whisper-encoder": _whisper_config,
}


def module_class(architecture: str, mode: str) -> type:
    """Returns the module to export, with flat inputs and outputs."""
    decoders = {
        "llama": "LlamaForCausalLM",
        "qwen3": "Qwen3ForCausalLM",
        "gemma": "GemmaForCausalLM",
        "gpt2": "GPT2LMHeadModel",
    }
    if architecture in decoders:
        base = getattr(transformers, decoders[architecture])
        return decoder_class(base) if mode == "nocache" else cached_decoder_class(base)
    text = ("input_ids", "attention_mask")
    if architecture == "bert":
        return first_output_class(transformers.BertModel, *text, "token_type_ids")
    if architecture.startswith("t5-"):
        return first_output_class(transformers.T5EncoderModel, *text)
    if architecture == "vit":
        return first_output_class(transformers.ViTForImageClassification, "pixel_values")
    if architecture == "clip-text":
        return first_output_class(transformers.CLIPTextModelWithProjection, *text)
    if architecture == "whisper-encoder":
        from transformers.models.whisper.modeling_whisper import WhisperEncoder

        return first_output_class(WhisperEncoder, "input_features")
    raise ValueError(f"unknown architecture '{architecture}'")


def _architecture(name: str, expected: Callable, inputs: Callable, outputs: Callable, **more: Any) -> Architecture:
    return Architecture(CONFIGURATIONS[name], expected, inputs, outputs, **more)


_HIDDEN = fixed_output("last_hidden_state", ("batch", "seq", 128))

ARCHITECTURES: dict[str, Architecture] = {
    "llama": _architecture("llama", gated_decoder_counts, decoder_inputs(2), decoder_outputs(2)),
    "qwen3": _architecture("qwen3", gated_decoder_counts, decoder_inputs(2), decoder_outputs(2)),
    "gemma": _architecture("gemma", gated_decoder_counts, decoder_inputs(1), decoder_outputs(1)),
    "gpt2": _architecture("gpt2", gpt2_counts, decoder_inputs(2), decoder_outputs(2)),
    "bert": _architecture("bert", bert_counts, text_inputs(segments=True), _HIDDEN),
    "t5-gated": _architecture("t5-gated", t5_counts, text_inputs(), _HIDDEN),
    "t5-relu": _architecture("t5-relu", t5_counts, text_inputs(), _HIDDEN),
    "vit": _architecture(
        "vit",
        pre_norm_encoder_counts,
        fixed_input("pixel_values", ("batch", 3, 32, 32), "pixels"),
        fixed_output("logits", ("batch", 10)),
    ),
    "clip-text": _architecture(
        "clip-text",
        pre_norm_encoder_counts,
        text_inputs(eos=CLIP_EOS),
        fixed_output("text_embeds", ("batch", 64)),
    ),
    "whisper-encoder": _architecture(
        "whisper-encoder",
        whisper_counts,
        fixed_input("input_features", ("batch", 16, 48), "features"),
        fixed_output("last_hidden_state", ("batch", 24, 128)),
    ),
}
