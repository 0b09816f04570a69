"""Modules of libraries for torch that the rest of the zoo does not have, in small, and the sites that their configurations make.

Each has the exporters that write it: TorchScript (`ts`) or dynamo (`dy`) with the opset, and `static` where the library's own code
looks at numbers, so that no dim can be a symbol.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from common import HEAD_DIM, LAYERS, VOCAB, Built, Input, counts
from torch.nn import functional

# torchvision of the index has kernels for CUDA, without which it does not load; timm and transformers want only its names.
for _name in ("nms", "qnms"):
    torch.library.define(f"torchvision::{_name}", "(Tensor boxes, Tensor scores, float threshold) -> Tensor")

WIDTH = 2 * HEAD_DIM
INNER = 192
IDS = Input("input_ids", ("batch", "seq"), "ids", VOCAB)
MASK = Input("attention_mask", ("batch", "seq"), "attention_mask")
STATES = Input("x", ("batch", "seq", WIDTH), "features")
TEXT = {"vocab_size": VOCAB, "hidden_size": WIDTH, "intermediate_size": INNER, "num_hidden_layers": LAYERS,
        "num_attention_heads": 2, "max_position_embeddings": 64}
DECODER = {**TEXT, "num_key_value_heads": 1, "pad_token_id": 0, "bos_token_id": 0, "eos_token_id": 0}
PIXELS = {"hidden_size": WIDTH, "intermediate_size": INNER, "num_hidden_layers": LAYERS, "num_attention_heads": 2}


class Flat(torch.nn.Module):
    """A module whose inputs have an order, and of which one tensor is the output."""

    def __init__(self, model: torch.nn.Module, names: list[str], options: dict[str, Any] | None = None):
        super().__init__()
        self.model = model
        self.names = names
        self.options = options or {}

    def forward(self, *inputs: torch.Tensor) -> torch.Tensor:
        return self.model(**dict(zip(self.names, inputs)), **self.options)[0]


def image(side: int) -> Input:
    return Input("pixel_values", ("batch", 3, side, side), "features")


def hugging_face(config: str, model: str, inputs: list[Input], options: dict[str, Any],
                 implementation: str = "eager", **expected: int) -> Callable[[], Built]:
    """A model of transformers by the names of its classes; `expected` are its sites."""

    def build() -> Built:
        import transformers

        settings = getattr(transformers, config)(**options)
        settings._attn_implementation = implementation
        module = getattr(transformers, model)._from_config(settings)
        fixed = {"use_cache": False} if model.endswith("CausalLM") else {}
        return Built(Flat(module, [i.name for i in inputs], fixed), inputs, counts(**expected))

    return build


def decoder(name: str, implementation: str = "eager", options: dict[str, Any] | None = None,
            **expected: int) -> Callable[[], Built]:
    settings = {**DECODER, **(options or {})}
    return hugging_face(f"{name}Config", f"{name}ForCausalLM", [IDS, MASK], settings, implementation, **expected)


def timm_model(name: str, side: int, options: dict[str, Any], **expected: int) -> Callable[[], Built]:
    def build() -> Built:
        import timm

        return Built(timm.create_model(name, pretrained=False, num_classes=8, **options), [image(side)], counts(**expected))

    return build


def x_transformers(options: dict[str, Any], **expected: int) -> Callable[[], Built]:
    def build() -> Built:
        from x_transformers import Decoder, TransformerWrapper

        layers = Decoder(dim=WIDTH, depth=LAYERS, heads=2, attn_dim_head=HEAD_DIM, **options)
        model = TransformerWrapper(num_tokens=VOCAB, max_seq_len=64, attn_layers=layers)
        return Built(model, [Input("x", (2, 6), "ids", VOCAB)], counts(**expected))

    return build


def simple_vit() -> Built:
    """Two norms of patches, two in a layer and a last one."""
    from vit_pytorch import SimpleViT

    model = SimpleViT(image_size=32, patch_size=8, num_classes=8, dim=WIDTH, depth=LAYERS, heads=2, mlp_dim=INNER, dim_head=HEAD_DIM)
    return Built(model, [image(32)], counts(layer_norm=3 + 2 * LAYERS, gelu=LAYERS, linear_activation=LAYERS, attention=LAYERS))


def conformer_block() -> Built:
    """A feed-forward block with SiLU at each end, an attention, and a convolution with a gate and a SiLU, each after a norm."""
    from conformer import ConformerBlock

    model = ConformerBlock(dim=WIDTH, dim_head=HEAD_DIM, heads=2, ff_mult=2, conv_expansion_factor=2, conv_kernel_size=7)
    return Built(model, [Input("x", ("batch", 10, WIDTH), "features")],
                 counts(layer_norm=5, silu=3, glu=1, linear_activation=2, attention=1))


class Einops(torch.nn.Module):
    """An attention over the places of an image in Einsums, after an RMSNorm over its channels by their length."""

    def __init__(self) -> None:
        super().__init__()
        self.gain = torch.nn.Parameter(torch.ones(1, HEAD_DIM, 1, 1))
        self.qkv = torch.nn.Conv2d(HEAD_DIM, 3 * HEAD_DIM, 1, bias=False)
        self.out = torch.nn.Conv2d(HEAD_DIM, HEAD_DIM, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        from einops import rearrange

        h = functional.normalize(x, dim=1) * self.gain * HEAD_DIM**0.5
        q, k, v = (rearrange(t, "b (h c) x y -> b h c (x y)", h=1) for t in self.qkv(h).chunk(3, dim=1))
        scores = torch.einsum("b h d i, b h d j -> b h i j", q * HEAD_DIM**-0.5, k)
        out = torch.einsum("b h i j, b h d j -> b h i d", scores.softmax(-1), v)
        return x + self.out(rearrange(out, "b h (x y) d -> b (h d) x y", x=x.shape[2], y=x.shape[3]))


class Torchtune(torch.nn.Module):
    """A decoder layer as torchtune has it: pairs turned as elements of a last axis of 2, keys repeated by expand and flatten."""

    def __init__(self) -> None:
        super().__init__()
        linear = lambda a, b: torch.nn.Linear(a, b, bias=False)  # noqa: E731
        self.norm1, self.norm2 = torch.nn.Parameter(torch.ones(256)), torch.nn.Parameter(torch.ones(256))
        self.q, self.k, self.v, self.o = linear(256, 256), linear(256, WIDTH), linear(256, WIDTH), linear(256, 256)
        self.w1, self.w2, self.w3 = linear(256, INNER), linear(INNER, 256), linear(256, INNER)
        angles = torch.outer(torch.arange(64.0), 10000.0 ** (-torch.arange(0, HEAD_DIM, 2) / HEAD_DIM))
        self.register_buffer("cache", torch.stack([angles.cos(), angles.sin()], -1), persistent=False)

    @staticmethod
    def normed(x: torch.Tensor, gain: torch.Tensor) -> torch.Tensor:
        h = x.float()
        return (h * torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + 1e-6) * gain).type_as(x)

    def turned(self, x: torch.Tensor) -> torch.Tensor:
        table = self.cache[: x.size(1)].view(1, x.size(1), 1, HEAD_DIM // 2, 2)
        cos, sin = table[..., 0], table[..., 1]
        pairs = x.float().reshape(*x.shape[:-1], -1, 2)
        a, b = pairs[..., 0], pairs[..., 1]
        return torch.stack([a * cos - b * sin, b * cos + a * sin], -1).flatten(3).type_as(x)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, tokens, _ = x.shape
        h = self.normed(x, self.norm1)
        q = self.turned(self.q(h).view(batch, tokens, 4, HEAD_DIM))
        k = self.turned(self.k(h).view(batch, tokens, 2, HEAD_DIM))
        v = self.v(h).view(batch, tokens, 2, HEAD_DIM)
        repeat = lambda t: t.unsqueeze(3).expand(batch, tokens, 2, 2, HEAD_DIM).flatten(2, 3)  # noqa: E731
        y = functional.scaled_dot_product_attention(
            q.transpose(1, 2), repeat(k).transpose(1, 2), repeat(v).transpose(1, 2), is_causal=True)
        x = x + self.o(y.transpose(1, 2).contiguous().view(batch, tokens, -1))
        h = self.normed(x, self.norm2)
        return x + self.w2(functional.silu(self.w1(h)) * self.w3(h))


def flux() -> Built:
    """A block of two streams (four norms of q and k, four LayerNorms, two GELUs) and one of one (two, one, one); SiLU of the
    embeddings of time and text, and of what they give, in all blocks the same."""
    import diffusers

    model = diffusers.FluxTransformer2DModel(
        patch_size=1, in_channels=16, num_layers=1, num_single_layers=1, attention_head_dim=HEAD_DIM, num_attention_heads=2,
        joint_attention_dim=32, pooled_projection_dim=32, guidance_embeds=False, axes_dims_rope=(16, 24, 24))
    inputs = [Input("hidden_states", (2, 16, 16), "features"), Input("encoder_hidden_states", (2, 5, 32), "features"),
              Input("pooled_projections", (2, 32), "features"), Input("timestep", (2,), "features"),
              Input("img_ids", (16, 3), "features"), Input("txt_ids", (5, 3), "features")]
    return Built(Flat(model, [i.name for i in inputs]), inputs, counts(
        rms_norm=6, layer_norm=6, gelu=3, silu=3, linear_activation=5, rotary=4, attention=2))


def sd3() -> Built:
    """Each of two blocks has norms of q and k of both streams, and four LayerNorms; the last one leaves the text after its
    attention, without a norm and a GELU, and one LayerNorm follows."""
    import diffusers

    model = diffusers.SD3Transformer2DModel(
        sample_size=8, patch_size=2, in_channels=4, num_layers=LAYERS, attention_head_dim=HEAD_DIM, num_attention_heads=2,
        joint_attention_dim=32, caption_projection_dim=WIDTH, pooled_projection_dim=32, out_channels=4, pos_embed_max_size=8,
        qk_norm="rms_norm")
    inputs = [Input("hidden_states", (2, 4, 8, 8), "features"), Input("encoder_hidden_states", (2, 5, 32), "features"),
              Input("pooled_projections", (2, 32), "features"), Input("timestep", (2,), "features")]
    return Built(Flat(model, [i.name for i in inputs]), inputs, counts(
        rms_norm=4 * LAYERS, layer_norm=4 * LAYERS, gelu=2 * LAYERS - 1, silu=3, linear_activation=2 * LAYERS + 1, attention=LAYERS))


def wan() -> Built:
    """A self attention with rotation and one with the text in each block, norms of q and k over all heads; three LayerNorms in a
    block and a last one; GELU in each block and of the text, SiLU of the time and of what it gives."""
    import diffusers

    model = diffusers.WanTransformer3DModel(
        patch_size=(1, 2, 2), num_attention_heads=2, attention_head_dim=HEAD_DIM, in_channels=4, out_channels=4, text_dim=32,
        freq_dim=64, ffn_dim=INNER, num_layers=LAYERS, cross_attn_norm=True, qk_norm="rms_norm_across_heads", rope_max_seq_len=32)
    inputs = [Input("hidden_states", (2, 4, 2, 8, 8), "features"), Input("timestep", (2,), "ids", 16),
              Input("encoder_hidden_states", (2, 5, 32), "features")]
    return Built(Flat(model, [i.name for i in inputs]), inputs, counts(
        rms_norm=4 * LAYERS, layer_norm=3 * LAYERS + 1, gelu=LAYERS + 1, silu=2, linear_activation=LAYERS + 3, rotary=2 * LAYERS,
        attention=2 * LAYERS))


def of_layers(after: int = 1, **each: int) -> dict[str, int]:
    """What each of the layers has, and norms after them."""
    norm = next(kind for kind in each if kind.endswith("norm"))
    return {kind: LAYERS * n + (after if kind == norm else 0) for kind, n in each.items()}


PLAIN_FEED = {"gelu": 1, "linear_activation": 1, "attention": 1}
GATED = {"glu": 1, "rotary": 2, "attention": 1}
_marian = {"vocab_size": VOCAB, "d_model": WIDTH, "encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 2,
           "decoder_attention_heads": 2, "encoder_ffn_dim": INNER, "decoder_ffn_dim": INNER, "max_position_embeddings": 64,
           "pad_token_id": 0, "bos_token_id": 0, "eos_token_id": 1, "decoder_start_token_id": 0}
# Norms after each of the two stages and after the embeddings of each; one more in an attention whose keys are fewer.
_segformer = {"num_encoder_blocks": 2, "depths": [1, 1], "sr_ratios": [2, 1], "hidden_sizes": [64, 128], "patch_sizes": [3, 3],
              "strides": [2, 2], "num_attention_heads": [1, 2], "mlp_ratios": [2, 2]}
_swinv2 = {"image_size": 32, "patch_size": 2, "embed_dim": 64, "depths": [LAYERS], "num_heads": [1], "window_size": 4}
_deberta = {**TEXT, "relative_attention": True, "pos_att_type": ["p2c", "c2p"], "position_buckets": 8,
            "norm_rel_ebd": "layer_norm", "share_att_key": True, "max_relative_positions": 16}

# Name: how it is built, and its exporters.
MODELS: dict[str, tuple[Callable[[], Built], tuple[str, ...]]] = {
    "olmo2": (decoder("Olmo2", **of_layers(rms_norm=4, **GATED)), ("ts17",)),
    # No rotation where all is attended to. Without a mask: beside a window padding leaves rows without keys, which mean nothing.
    "cohere2": (hugging_face("Cohere2Config", "Cohere2ForCausalLM", [IDS],
                             {**DECODER, "head_dim": HEAD_DIM, "sliding_window": 4,
                              "layer_types": ["sliding_attention", "full_attention"]}, "sdpa",
                             **{**of_layers(layer_norm=1, **GATED), "rotary": 2}), ("dy18",)),
    "stablelm": (decoder("StableLm", **of_layers(layer_norm=2, **GATED)), ("ts14",)),
    "nemotron": (decoder("Nemotron", **of_layers(layer_norm=2, linear_activation=1, rotary=2, attention=1)), ("ts11",)),
    "glm4": (decoder("Glm4", "sdpa", {"head_dim": HEAD_DIM}, **of_layers(rms_norm=4, **GATED)), ("dy23",)),
    "persimmon": (decoder("Persimmon", **of_layers(layer_norm=4, linear_activation=1, rotary=2, attention=1)), ("ts17",)),
    "modernbert": (hugging_face("ModernBertConfig", "ModernBertModel", [IDS],
                                {**TEXT, "pad_token_id": 0, "global_attn_every_n_layers": 2, "local_attention": 4}, "sdpa",
                                **of_layers(layer_norm=2, **GATED)), ("dy18",)),
    "mpnet": (hugging_face("MPNetConfig", "MPNetModel", [IDS, MASK], {**TEXT, "max_position_embeddings": 66},
                           **of_layers(layer_norm=2, **PLAIN_FEED)), ("ts17",)),
    # Its mask takes queries out too, so that rows of padding mean nothing: none is given.
    "deberta": (hugging_face("DebertaV2Config", "DebertaV2Model", [IDS], _deberta,
                             **of_layers(2, layer_norm=2, **PLAIN_FEED)), ("ts17",)),
    "marian": (hugging_face("MarianConfig", "MarianModel", [IDS, MASK, Input("decoder_input_ids", ("batch", 4), "ids", VOCAB)],
                            _marian, layer_norm=5, gelu=2, linear_activation=2, attention=3), ("ts17",)),
    "segformer": (hugging_face("SegformerConfig", "SegformerModel", [image(32)], _segformer,
                               layer_norm=9, gelu=2, attention=2), ("ts17",)),
    "swinv2": (hugging_face("Swinv2Config", "Swinv2Model", [image(32)], _swinv2,
                            **of_layers(2, layer_norm=2, gelu=1, linear_activation=2, attention=1)), ("ts17",)),
    "timm-cait": (timm_model("cait_xxs24_224", 32, {"img_size": 32, "patch_size": 8, "embed_dim": WIDTH, "depth": 1, "num_heads": 2},
                             layer_norm=7, gelu=3, linear_activation=3, attention=3), ("ts17",)),
    "timm-davit": (timm_model("davit_tiny", 64, {"depths": (1, 1), "embed_dims": (64, 128), "num_heads": (1, 2)},
                              layer_norm=11, gelu=4, linear_activation=4, attention=4), ("ts17",)),
    "x-transformers-rotary": (x_transformers({"rotary_pos_emb": True, "ff_swish": True, "ff_glu": True, "use_rmsnorm": True},
                                             **of_layers(rms_norm=2, **GATED)), ("dy18-static",)),
    "x-transformers-talking": (x_transformers({"attn_pre_talking_heads": True, "attn_post_talking_heads": True},
                                              **of_layers(layer_norm=2, **PLAIN_FEED)), ("dy18-static",)),
    "vit-pytorch": (simple_vit, ("ts17",)),
    "conformer": (conformer_block, ("ts17",)),
    "einops-attention": (lambda: Built(Einops(), [Input("x", ("batch", HEAD_DIM, 4, 4), "features")],
                                       counts(rms_norm=1, attention=1)), ("ts17",)),
    "torchtune": (lambda: Built(Torchtune(), [Input("x", ("batch", "seq", 256), "features")],
                                counts(rms_norm=2, glu=1, rotary=2, attention=1)), ("ts17", "dy18")),
    "flux": (flux, ("dy18-static",)),
    "sd3": (sd3, ("ts17-static",)),
    "wan": (wan, ("dy18-static",)),
}
