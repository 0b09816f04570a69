"""Modules of the zoo that transformers does not have, in plain torch and from diffusers.

Blocks of diffusion models, torch.nn's own attention, and the true U-Net and autoencoder of diffusers, each built
from a small configuration: a namespace that also names the attention implementation.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional

from architectures import HEAD_DIM, LAYERS

HIDDEN = 128

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


class DiffusersUNet(nn.Module):
    """UNet2DConditionModel of diffusers."""

    def __init__(self, config: Any) -> None:
        from diffusers import UNet2DConditionModel
        from diffusers.models.attention_processor import AttnProcessor

        super().__init__()
        self.config = config
        self.unet = UNet2DConditionModel(**config.options)
        if config._attn_implementation == "eager":
            self.unet.set_attn_processor(AttnProcessor())

    def forward(self, sample, timestep, context):
        return self.unet(sample, timestep, context, return_dict=False)[0]


class DiffusersVae(nn.Module):
    """One side of the AutoencoderKL of diffusers."""

    def __init__(self, config: Any) -> None:
        from diffusers import AutoencoderKL
        from diffusers.models.attention_processor import AttnProcessor

        super().__init__()
        self.config = config
        self.vae = AutoencoderKL(**config.options)
        if config._attn_implementation == "eager":
            self.vae.set_attn_processor(AttnProcessor())

    def forward(self, sample):
        if self.config.side == "decoder":
            return self.vae.decode(sample, return_dict=False)[0]
        return self.vae.encode(sample, return_dict=False)[0].mode()


_UNET = {
    "sample_size": 8,
    "block_out_channels": (64, 128),
    "layers_per_block": 1,
    "down_block_types": ("CrossAttnDownBlock2D", "DownBlock2D"),
    "up_block_types": ("UpBlock2D", "CrossAttnUpBlock2D"),
    "cross_attention_dim": 96,
    "attention_head_dim": (1, 2),  # diffusers takes it for the number of heads.
    "norm_num_groups": 8,
}
_VAE = {
    "sample_size": 16,
    "block_out_channels": (32, 64),
    "layers_per_block": 1,
    "down_block_types": ("DownEncoderBlock2D",) * 2,
    "up_block_types": ("UpDecoderBlock2D",) * 2,
    "norm_num_groups": 8,
}

PLAIN: dict[str, tuple[type, dict[str, Any]]] = {
    "unet": (UNet, {"width": HIDDEN, "layers": LAYERS}),
    "vae": (Vae, {"width": HEAD_DIM, "layers": LAYERS}),
    "activations": (Activations, {}),
    "torch-mha": (MultiHead, {}),
    "torch-encoder": (Encoder, {"norm_first": False}),
    "torch-encoder-pre": (Encoder, {"norm_first": True}),
    "diffusers-unet": (DiffusersUNet, {"options": _UNET}),
    "diffusers-vae-encoder": (DiffusersVae, {"options": _VAE, "side": "encoder"}),
    "diffusers-vae-decoder": (DiffusersVae, {"options": _VAE, "side": "decoder"}),
}
