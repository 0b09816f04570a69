"""Modules of Paddle, in small, and the sites that their configurations make."""

from __future__ import annotations

from collections.abc import Callable

import paddle
import paddle.nn.functional as F
from common import HEAD_DIM, LAYERS, VOCAB, Built, Input, counts
from paddle import nn

HEADS = 2
WIDTH = HEADS * HEAD_DIM
INNER = 160
STATES = Input("x", ("batch", "seq", WIDTH), "features")
IDS = Input("ids", ("batch", "seq"), "ids", VOCAB)


class Encoder(nn.Layer):
    """Paddle's own encoder, with the norms before or after."""

    def __init__(self, before: bool, activation: str):
        super().__init__()
        layer = nn.TransformerEncoderLayer(WIDTH, HEADS, INNER, dropout=0.0, activation=activation, normalize_before=before)
        self.encoder = nn.TransformerEncoder(layer, LAYERS)

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        return self.encoder(x)


def encoder(before: bool = False, activation: str = "gelu") -> Built:
    return Built(Encoder(before, activation), [STATES], counts(
        layer_norm=2 * LAYERS, gelu=LAYERS * (activation == "gelu"), linear_activation=LAYERS, attention=LAYERS))


class RmsNorm(nn.Layer):
    """As PaddleNLP has it."""

    def __init__(self):
        super().__init__()
        self.weight = self.create_parameter([WIDTH])

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        variance = x.astype("float32").pow(2).mean(-1, keepdim=True)
        return paddle.rsqrt(variance + 1e-6) * x * self.weight


def turned(x: paddle.Tensor, cos: paddle.Tensor, sin: paddle.Tensor) -> paddle.Tensor:
    first, second = paddle.chunk(x, 2, axis=-1)
    return x * cos + paddle.concat([-second, first], axis=-1) * sin


class Llama(nn.Layer):
    """A decoder as PaddleNLP has it: tables in buffers, heads behind positions, keys repeated by Tile."""

    def __init__(self, length: int = 32):
        super().__init__()
        linear = lambda n, m: nn.Linear(n, m, bias_attr=False)  # noqa: E731
        self.embedding = nn.Embedding(VOCAB, WIDTH)
        self.norms = nn.LayerList([RmsNorm() for _ in range(2 * LAYERS + 1)])
        self.q, self.o = (nn.LayerList([linear(WIDTH, WIDTH) for _ in range(LAYERS)]) for _ in range(2))
        self.k, self.v = (nn.LayerList([linear(WIDTH, HEAD_DIM) for _ in range(LAYERS)]) for _ in range(2))
        self.gate, self.up = (nn.LayerList([linear(WIDTH, INNER) for _ in range(LAYERS)]) for _ in range(2))
        self.down = nn.LayerList([linear(INNER, WIDTH) for _ in range(LAYERS)])
        frequencies = 1.0 / (10000.0 ** (paddle.arange(0, HEAD_DIM, 2, dtype="float32") / HEAD_DIM))
        angles = paddle.outer(paddle.arange(length, dtype="float32"), frequencies)
        angles = paddle.concat([angles, angles], axis=-1)[None, :, None, :]
        self.register_buffer("cos", angles.cos())
        self.register_buffer("sin", angles.sin())

    def attend(self, q: paddle.Tensor, k: paddle.Tensor, v: paddle.Tensor) -> paddle.Tensor:
        k, v = (paddle.tile(t.unsqueeze(-2), [1, 1, 1, HEADS, 1]).reshape([0, 0, HEADS, HEAD_DIM]) for t in (k, v))
        q, k, v = (t.transpose([0, 2, 1, 3]) for t in (q, k, v))
        scores = paddle.matmul(q / HEAD_DIM**0.5, k.transpose([0, 1, 3, 2]))
        length = q.shape[2]
        mask = paddle.triu(paddle.full([length, length], -1e4, dtype="float32"), diagonal=1)
        weights = F.softmax(scores + mask, axis=-1)
        return paddle.matmul(weights, v).transpose([0, 2, 1, 3]).reshape([0, 0, WIDTH])

    def forward(self, ids: paddle.Tensor) -> paddle.Tensor:
        x = self.embedding(ids)
        length = ids.shape[1]
        cos, sin = self.cos[:, :length], self.sin[:, :length]
        for i in range(LAYERS):
            h = self.norms[2 * i](x)
            q = turned(self.q[i](h).reshape([0, 0, HEADS, HEAD_DIM]), cos, sin)
            k = turned(self.k[i](h).reshape([0, 0, 1, HEAD_DIM]), cos, sin)
            v = self.v[i](h).reshape([0, 0, 1, HEAD_DIM])
            x = x + self.o[i](self.attend(q, k, v))
            h = self.norms[2 * i + 1](x)
            x = x + self.down[i](F.silu(self.gate[i](h)) * self.up[i](h))
        return self.norms[2 * LAYERS](x)


def llama() -> Built:
    return Built(Llama(), [IDS], counts(rms_norm=1 + 2 * LAYERS, glu=LAYERS, rotary=2 * LAYERS, attention=LAYERS))


class Groups(nn.Layer):
    """GroupNorm alone and with SiLU."""

    def __init__(self):
        super().__init__()
        self.first, self.second, self.third = nn.Conv2D(4, 32, 3, padding=1), nn.Conv2D(32, 32, 3, padding=1), nn.Conv2D(32, 8, 3, padding=1)
        self.norm1, self.norm2 = nn.GroupNorm(8, 32), nn.GroupNorm(4, 32)

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        return self.third(self.norm2(self.second(F.silu(self.norm1(self.first(x))))))


def groups() -> Built:
    return Built(Groups(), [Input("x", ("batch", 4, 16, 16), "pixels")], counts(group_norm=2))


class Windows(nn.Layer):
    """A block of Swin with shifted windows: a bias of relative positions and a mask of 0 and -100 per window."""

    def __init__(self, size: int = 8, window: int = 4, shift: int = 2):
        super().__init__()
        self.size, self.window, self.shift = size, window, shift
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, INNER), nn.Linear(INNER, WIDTH)
        self.table = self.create_parameter([(2 * window - 1) ** 2, HEADS])
        places = paddle.stack(paddle.meshgrid(paddle.arange(window), paddle.arange(window))).flatten(1)
        relative = (places[:, :, None] - places[:, None, :]).transpose([1, 2, 0]) + window - 1
        self.register_buffer("index", (relative[..., 0] * (2 * window - 1) + relative[..., 1]).flatten())
        image = paddle.zeros([1, size, size, 1])
        slices = (slice(0, -window), slice(-window, -shift), slice(-shift, None))
        for number, (rows, columns) in enumerate((r, c) for r in slices for c in slices):
            image[:, rows, columns, :] = float(number)
        areas = self.windows(image, 1).reshape([-1, window * window])
        mask = areas.unsqueeze(1) - areas.unsqueeze(2)
        self.register_buffer("mask", paddle.where(mask != 0, paddle.full_like(mask, -100.0), paddle.zeros_like(mask)))

    def windows(self, x: paddle.Tensor, channels: int) -> paddle.Tensor:
        n, w = self.size // self.window, self.window
        return x.reshape([-1, n, w, n, w, channels]).transpose([0, 1, 3, 2, 4, 5]).reshape([-1, w * w, channels])

    def attend(self, x: paddle.Tensor) -> paddle.Tensor:
        n = self.window**2
        q, k, v = self.qkv(x).reshape([-1, n, 3, HEADS, HEAD_DIM]).transpose([2, 0, 3, 1, 4])
        scores = paddle.matmul(q * HEAD_DIM**-0.5, k.transpose([0, 1, 3, 2]))
        bias = paddle.index_select(self.table, self.index).reshape([n, n, HEADS]).transpose([2, 0, 1])
        scores = scores + bias.unsqueeze(0)
        count = self.mask.shape[0]
        scores = scores.reshape([-1, count, HEADS, n, n]) + self.mask.unsqueeze(1).unsqueeze(0)
        weights = F.softmax(scores.reshape([-1, HEADS, n, n]), axis=-1)
        return self.out(paddle.matmul(weights, v).transpose([0, 2, 1, 3]).reshape([-1, n, WIDTH]))

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        n, w = self.size // self.window, self.window
        h = self.norm1(x).reshape([-1, self.size, self.size, WIDTH])
        h = self.attend(self.windows(paddle.roll(h, [-self.shift, -self.shift], axis=[1, 2]), WIDTH))
        h = h.reshape([-1, n, n, w, w, WIDTH]).transpose([0, 1, 3, 2, 4, 5]).reshape([-1, self.size, self.size, WIDTH])
        x = x + paddle.roll(h, [self.shift, self.shift], axis=[1, 2]).reshape([-1, self.size**2, WIDTH])
        return x + self.down(F.gelu(self.up(self.norm2(x))))


def windows() -> Built:
    states = Input("x", ("batch", 64, WIDTH), "features")
    return Built(Windows(), [states], counts(layer_norm=2, gelu=1, linear_activation=1, attention=1))


MODELS: dict[str, Callable[[], Built]] = {
    "paddle-encoder": encoder,
    "paddle-encoder-relu": lambda: encoder(before=True, activation="relu"),
    "paddle-llama": llama,
    "paddle-group-norm": groups,
    "paddle-swin": windows,
}
