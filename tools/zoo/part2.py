"""The second part of the zoo: more architectures, in the same form as `architectures.py`.

What transformers does not have (blocks of diffusion models, torch.nn's own attention) is written
here in plain torch. Expected counts come from the configurations alone.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import torch
import transformers
from torch import nn
from torch.nn import functional

import architectures as first
from architectures import HEAD_DIM, LAYERS, VOCAB, Architecture, Input, counts

HIDDEN = 128
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

# ---- Blocks in plain torch -----------------------------------------------------------------------


class Attention(nn.Module):
    """Attention without a mask, as diffusers writes it: heads of 64, no bias on q, k and v."""

    def __init__(self, width: int, heads: int, fused: bool, source: int | None = None) -> None:
        super().__init__()
        self.heads, self.fused = heads, fused
        self.to_q = nn.Linear(width, width, bias=False)
        self.to_k = nn.Linear(source or width, width, bias=False)
        self.to_v = nn.Linear(source or width, width, bias=False)
        self.to_out = nn.Linear(width, width)

    def forward(self, x: torch.Tensor, context: torch.Tensor | None = None) -> torch.Tensor:
        context = x if context is None else context
        batch, _, width = x.shape
        q, k, v = (
            t.view(batch, -1, self.heads, width // self.heads).transpose(1, 2)
            for t in (self.to_q(x), self.to_k(context), self.to_v(context))
        )
        if self.fused:
            y = functional.scaled_dot_product_attention(q, k, v)
        else:
            scores = torch.matmul(q, k.transpose(-1, -2)) * (width // self.heads) ** -0.5
            y = torch.matmul(scores.softmax(dim=-1), v)
        return self.to_out(y.transpose(1, 2).reshape(batch, -1, width))


class ResBlock(nn.Module):
    def __init__(self, width: int, embedding: int | None = None) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.GroupNorm(8, width, eps=1e-6), nn.GroupNorm(8, width, eps=1e-6)
        self.conv1, self.conv2 = nn.Conv2d(width, width, 3, padding=1), nn.Conv2d(width, width, 3, padding=1)
        self.time = nn.Linear(embedding, width) if embedding else None

    def forward(self, x: torch.Tensor, embedding: torch.Tensor | None = None) -> torch.Tensor:
        y = self.conv1(functional.silu(self.norm1(x)))
        if self.time is not None:
            y = y + self.time(functional.silu(embedding))[:, :, None, None]
        return x + self.conv2(functional.silu(self.norm2(y)))


class TransformerBlock(nn.Module):
    """GroupNorm, then self attention, cross attention and a GEGLU feed-forward, each after a LayerNorm."""

    def __init__(self, width: int, fused: bool) -> None:
        super().__init__()
        self.norm = nn.GroupNorm(8, width, eps=1e-6)
        self.norm1, self.norm2, self.norm3 = (nn.LayerNorm(width) for _ in range(3))
        self.attn1 = Attention(width, width // HEAD_DIM, fused)
        self.attn2 = Attention(width, width // HEAD_DIM, fused, source=96)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(2 * width, width)

    def forward(self, x: torch.Tensor, context: torch.Tensor) -> torch.Tensor:
        batch, width, height, columns = x.shape
        y = self.norm(x).permute(0, 2, 3, 1).reshape(batch, height * columns, width)
        y = y + self.attn1(self.norm1(y))
        y = y + self.attn2(self.norm2(y), context)
        value, gate = self.up(self.norm3(y)).chunk(2, dim=-1)
        y = y + self.down(value * functional.gelu(gate))
        return x + y.reshape(batch, height, columns, width).permute(0, 3, 1, 2)


class UNet(nn.Module):
    def __init__(self, config: Any) -> None:
        super().__init__()
        self.config, width = config, config.width
        self.time1, self.time2 = nn.Linear(32, 64), nn.Linear(64, 64)
        self.conv_in, self.conv_out = nn.Conv2d(4, width, 3, padding=1), nn.Conv2d(width, 4, 3, padding=1)
        self.resnets = nn.ModuleList(ResBlock(width, 64) for _ in range(config.layers))
        fused = config._attn_implementation == "sdpa"
        self.attentions = nn.ModuleList(TransformerBlock(width, fused) for _ in range(config.layers))
        self.norm = nn.GroupNorm(8, width)

    def forward(self, sample, time, context):
        embedding = self.time2(functional.silu(self.time1(time)))
        x = self.conv_in(sample)
        for resnet, attention in zip(self.resnets, self.attentions):
            x = attention(resnet(x, embedding), context)
        return self.conv_out(functional.silu(self.norm(x)))


class Vae(nn.Module):
    def __init__(self, config: Any) -> None:
        super().__init__()
        self.config, width = config, config.width
        self.conv_in, self.conv_out = nn.Conv2d(4, width, 3, padding=1), nn.Conv2d(width, 3, 3, padding=1)
        self.resnets = nn.ModuleList(ResBlock(width) for _ in range(config.layers))
        self.norm, self.norm_out = nn.GroupNorm(8, width), nn.GroupNorm(8, width)
        self.attention = Attention(width, 1, config._attn_implementation == "sdpa")

    def forward(self, sample):
        x = self.resnets[0](self.conv_in(sample))
        y = self.norm(x).flatten(2).transpose(1, 2)
        x = x + self.attention(y).transpose(1, 2).reshape(x.shape)
        return self.conv_out(functional.silu(self.norm_out(functional.interpolate(self.resnets[1](x), scale_factor=2.0))))


class Activations(nn.Module):
    """Convolutions with batch norm, each followed by an activation of its own: SiLU, Hardswish, Mish, GELU."""

    def __init__(self, config: Any) -> None:
        super().__init__()
        self.config = config
        kinds = [nn.SiLU(), nn.Hardswish(), nn.Mish(), nn.GELU(approximate="tanh")]
        convs = [nn.Conv2d(8, 8, 3, padding=1) for _ in kinds]
        self.blocks = nn.Sequential(*(nn.Sequential(c, nn.BatchNorm2d(8), k) for c, k in zip(convs, kinds)))

    def forward(self, sample):
        return self.blocks(sample)


class MultiHead(nn.Module):
    """torch.nn.MultiheadAttention as self attention with weights and as cross attention without."""

    def __init__(self, config: Any) -> None:
        super().__init__()
        self.config = config
        self.norm1, self.norm2 = nn.LayerNorm(HIDDEN), nn.LayerNorm(HIDDEN)
        self.self_attn = nn.MultiheadAttention(HIDDEN, 2, batch_first=True)
        self.cross_attn = nn.MultiheadAttention(HIDDEN, 2, batch_first=True)

    def forward(self, hidden, memory):
        x = self.norm1(hidden)
        hidden = hidden + self.self_attn(x, x, x, need_weights=True)[0]
        return hidden + self.cross_attn(self.norm2(hidden), memory, memory, need_weights=False)[0]


class Encoder(nn.Module):
    def __init__(self, config: Any) -> None:
        super().__init__()
        self.config = config
        layer = nn.TransformerEncoderLayer(
            HIDDEN, 2, 192, activation="gelu", batch_first=True, norm_first=config.norm_first
        )
        final = nn.LayerNorm(HIDDEN) if config.norm_first else None
        self.encoder = nn.TransformerEncoder(layer, LAYERS, final, enable_nested_tensor=False)

    def forward(self, hidden):
        return self.encoder(hidden)


PLAIN: dict[str, tuple[type, dict[str, Any]]] = {
    "unet": (UNet, {"width": HIDDEN, "layers": LAYERS}),
    "vae": (Vae, {"width": HEAD_DIM, "layers": LAYERS}),
    "activations": (Activations, {}),
    "torch-mha": (MultiHead, {}),
    "torch-encoder": (Encoder, {"norm_first": False}),
    "torch-encoder-pre": (Encoder, {"norm_first": True}),
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
    """A norm followed by SiLU is a group_norm only; the time embedding has a SiLU once and in each ResBlock.

    Both of its linears are followed by one.
    """
    n = config.layers
    return counts(group_norm=3 * n + 1, layer_norm=3 * n, silu=n + 1, glu=n, linear_activation=2, attention=2 * n)


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
    if mode:
        return first.decoder_class(base) if mode == "nocache" else first.cached_decoder_class(base)
    if name == "t5-decoder":
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
    "whisper-decoder": [_IDS, Input("encoder_hidden_states", ("batch", 24, HIDDEN), "features")],
    "bart": [_IDS, _MASK, Input("decoder_input_ids", ("batch", "source"), "ids", VOCAB)],
    "unet": [
        Input("sample", ("batch", 4, "seq", 8), "features"),
        Input("time", ("batch", 32), "features"),
        Input("context", ("batch", "source", 96), "features"),
    ],
    "vae": [Input("sample", ("batch", 4, "seq", 8), "features")],
    "activations": [Input("sample", ("batch", 8, 8, 8), "features")],
    "torch-mha": [Input("hidden", ("batch", "seq", HIDDEN), "features"), Input("memory", _STATES, "features")],
    "torch-encoder": [Input("hidden", ("batch", "seq", HIDDEN), "features")],
    "torch-encoder-pre": [Input("hidden", ("batch", "seq", HIDDEN), "features")],
}


def _architecture(name: str) -> Architecture:
    heads = {"qwen2": 2, "mistral": 2, "phi3": 2, "gemma2": 1, "gemma3": 1}.get(name, 2)
    decoder = name in HUGGING_FACE and HUGGING_FACE[name][1].endswith("ForCausalLM")
    if decoder:
        inputs, outputs = first.decoder_inputs(heads), first.decoder_outputs(heads)
    else:
        inputs = lambda mode: INPUTS.get(name, _PIXELS)  # noqa: E731
        shape = ("batch", "source" if name == "bart" else "seq", HIDDEN) if name in INPUTS else ("batch",)
        shape = ("batch",) if name in ("unet", "vae", "activations") else shape
        outputs = first.fixed_output("output", shape)
    return Architecture(_make(name), EXPECTED[name], inputs, outputs)


ARCHITECTURES = {name: _architecture(name) for name in (*HUGGING_FACE, *PLAIN)}
