"""Modules of Flax (NNX) and plain JAX, in small, and the sites that their configurations make."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
from common import HEAD_DIM, LAYERS, VOCAB, Built, Input, counts
from flax import nnx

HEADS = 2
WIDTH = HEADS * HEAD_DIM
INNER = 160
STATES = Input("x", ("batch", "seq", WIDTH), "features")
POSITIONS = Input("positions", ("batch", "seq"), "position_ids")
IDS = Input("ids", ("batch", "seq"), "ids", VOCAB)


class Feed(nnx.Module):
    """Two linears with an activation between them."""

    def __init__(self, activation: Callable, rngs: nnx.Rngs):
        self.up = nnx.Linear(WIDTH, INNER, rngs=rngs)
        self.down = nnx.Linear(INNER, WIDTH, rngs=rngs)
        self.activation = activation

    def __call__(self, x: jax.Array) -> jax.Array:
        return self.down(self.activation(self.up(x)))


class Gated(nnx.Module):
    """A gated product between three linears."""

    def __init__(self, activation: Callable, rngs: nnx.Rngs):
        self.gate = nnx.Linear(WIDTH, INNER, use_bias=False, rngs=rngs)
        self.up = nnx.Linear(WIDTH, INNER, use_bias=False, rngs=rngs)
        self.down = nnx.Linear(INNER, WIDTH, use_bias=False, rngs=rngs)
        self.activation = activation

    def __call__(self, x: jax.Array) -> jax.Array:
        return self.down(self.activation(self.gate(x)) * self.up(x))


class Encoder(nnx.Module):
    """Flax' own attention, LayerNorm as Flax has it (the variance by moments) or not, GELU."""

    def __init__(self, fast: bool, masked: bool, approximate: bool):
        rngs = nnx.Rngs(0)
        self.masked = masked
        norm = lambda: nnx.LayerNorm(WIDTH, use_fast_variance=fast, rngs=rngs)  # noqa: E731
        self.norms1 = nnx.List([norm() for _ in range(LAYERS)])
        self.norms2 = nnx.List([norm() for _ in range(LAYERS)])
        self.attention = nnx.List([
            nnx.MultiHeadAttention(HEADS, WIDTH, decode=False, deterministic=True, rngs=rngs) for _ in range(LAYERS)])
        self.feed = nnx.List([Feed(lambda h: nnx.gelu(h, approximate=approximate), rngs) for _ in range(LAYERS)])
        self.last = norm()

    def __call__(self, x: jax.Array, positions: jax.Array | None = None) -> jax.Array:
        mask = nnx.make_attention_mask(positions, positions, jnp.greater_equal) if self.masked else None
        for norm1, attention, norm2, feed in zip(self.norms1, self.attention, self.norms2, self.feed):
            x = x + attention(norm1(x), mask=mask)
            x = x + feed(norm2(x))
        return self.last(x)


def encoder(fast: bool = True, masked: bool = False, approximate: bool = True) -> Built:
    return Built(Encoder(fast, masked, approximate), [STATES, POSITIONS][:1 + masked], counts(
        layer_norm=1 + 2 * LAYERS, gelu=LAYERS, linear_activation=LAYERS, attention=LAYERS))


def tables(positions: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Cosines and sines for positions [B, T], for x [B, T, heads, channels]."""
    wavelengths = 10000.0 ** (jnp.arange(0, HEAD_DIM, 2) / HEAD_DIM)
    angles = positions[..., None].astype(jnp.float32) / wavelengths[None, None, :]
    return jnp.cos(angles)[:, :, None, :], jnp.sin(angles)[:, :, None, :]


def turn_halves(x: jax.Array, positions: jax.Array) -> jax.Array:
    """As Gemma and MaxText have it: two halves, tables half as wide."""
    cos, sin = tables(positions)
    first, second = jnp.split(x, 2, axis=-1)
    return jnp.concatenate([first * cos - second * sin, second * cos + first * sin], axis=-1)


def turn_whole(x: jax.Array, positions: jax.Array) -> jax.Array:
    """As Hugging Face has it in Flax: x cos + rotated x sin."""
    cos, sin = (jnp.concatenate([t, t], axis=-1) for t in tables(positions))
    half = x.shape[-1] // 2
    return x * cos + jnp.concatenate([-x[..., half:], x[..., :half]], axis=-1) * sin


def turn_pairs(x: jax.Array, positions: jax.Array) -> jax.Array:
    """As GPT-J has it: even and odd channels, stacked and flattened."""
    cos, sin = tables(positions)
    even, odd = x[..., ::2], x[..., 1::2]
    return jnp.stack([even * cos - odd * sin, odd * cos + even * sin], axis=-1).reshape(x.shape)


class Decoder(nnx.Module):
    """A decoder of the Llama family, by Einsum (Gemma) or by the function of JAX."""

    def __init__(self, turn: Callable, einsum: bool, gate: Callable):
        rngs = nnx.Rngs(0)
        self.turn, self.einsum = turn, einsum
        linear = lambda n: nnx.Linear(WIDTH, n, use_bias=False, rngs=rngs)  # noqa: E731
        norm = lambda: nnx.RMSNorm(WIDTH, epsilon=1e-6, rngs=rngs)  # noqa: E731
        self.embedding = nnx.Embed(VOCAB, WIDTH, rngs=rngs)
        self.q, self.o = (nnx.List([linear(WIDTH) for _ in range(LAYERS)]) for _ in range(2))
        self.k, self.v = (nnx.List([linear(HEAD_DIM) for _ in range(LAYERS)]) for _ in range(2))
        self.norms = nnx.List([norm() for _ in range(2 * LAYERS + 1)])
        self.feed = nnx.List([Gated(gate, rngs) for _ in range(LAYERS)])

    def attend(self, q: jax.Array, k: jax.Array, v: jax.Array, positions: jax.Array) -> jax.Array:
        if not self.einsum:
            return jax.nn.dot_product_attention(q, k, v, mask=(positions[:, None, :] <= positions[:, :, None])[:, None])
        q = q.reshape(*q.shape[:2], 1, HEADS, HEAD_DIM) * HEAD_DIM**-0.5
        scores = jnp.einsum("BTKGH,BSKH->BTKGS", q, k)
        mask = positions[:, None, :] <= positions[:, :, None]
        probabilities = jax.nn.softmax(jnp.where(mask[:, :, None, None, :], scores, -2.3819763e38), axis=-1)
        return jnp.einsum("BTKGS,BSKH->BTKGH", probabilities, v).reshape(*q.shape[:2], HEADS, HEAD_DIM)

    def __call__(self, ids: jax.Array, positions: jax.Array) -> jax.Array:
        x = self.embedding(ids)
        for i in range(LAYERS):
            h = self.norms[2 * i](x)
            q = self.turn(self.q[i](h).reshape(*x.shape[:2], HEADS, HEAD_DIM), positions)
            k = self.turn(self.k[i](h).reshape(*x.shape[:2], 1, HEAD_DIM), positions)
            v = self.v[i](h).reshape(*x.shape[:2], 1, HEAD_DIM)
            x = x + self.o[i](self.attend(q, k, v, positions).reshape(x.shape))
            x = x + self.feed[i](self.norms[2 * i + 1](x))
        return self.norms[2 * LAYERS](x)


def decoder(turn: Callable, einsum: bool = False, gate: Callable = nnx.silu) -> Built:
    return Built(Decoder(turn, einsum, gate), [IDS, POSITIONS], counts(
        rms_norm=1 + 2 * LAYERS, glu=LAYERS, rotary=2 * LAYERS, attention=LAYERS))


class Images(nnx.Module):
    """GroupNorm with the channels last between convolutions, alone and with SiLU."""

    def __init__(self, fast: bool):
        rngs = nnx.Rngs(0)
        conv = lambda i, o: nnx.Conv(i, o, (3, 3), rngs=rngs)  # noqa: E731
        self.first, self.second, self.third = conv(4, 32), conv(32, 32), conv(32, 8)
        self.norm1 = nnx.GroupNorm(32, num_groups=8, use_fast_variance=fast, rngs=rngs)
        self.norm2 = nnx.GroupNorm(32, num_groups=4, use_fast_variance=fast, rngs=rngs)

    def __call__(self, x: jax.Array) -> jax.Array:
        x = nnx.silu(self.norm1(self.first(x)))
        return self.third(self.norm2(self.second(x)))


def images(fast: bool = True) -> Built:
    return Built(Images(fast), [Input("x", ("batch", 16, 16, 4), "pixels")], counts(group_norm=2))


MODELS: dict[str, Callable[[], Built]] = {
    "flax-encoder": encoder,
    "flax-encoder-exact": lambda: encoder(fast=False, approximate=False),
    "flax-causal": lambda: encoder(masked=True),
    "flax-llama": lambda: decoder(turn_whole),
    "flax-gemma": lambda: decoder(turn_halves, einsum=True, gate=nnx.gelu),
    "flax-pairs": lambda: decoder(turn_pairs),
    "flax-group-norm": images,
    "flax-group-norm-exact": lambda: images(fast=False),
}
