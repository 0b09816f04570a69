#!/usr/bin/env python3
"""Writes tests/zoo/surgery: models as small as they go, each with what a public surgery script for Ascend patches in a large one.

    python3 tools/zoo/surgery.py

Needs torch (tools/zoo/requirements.txt). tests/python/test_surgery.py optimizes them and looks for what the scripts patch.
"""

from __future__ import annotations

import io
import lzma
from pathlib import Path

import onnx
import torch
from torch import Tensor, nn
from torch.nn import functional as F

OUT = Path(__file__).resolve().parents[2] / "tests" / "zoo" / "surgery"


class PointPillars(nn.Module):
    """Boxes of which one number is written in place, and the direction of a box as the larger of two."""

    def __init__(self) -> None:
        super().__init__()
        self.boxes, self.directions = nn.Linear(32, 7), nn.Linear(32, 2)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        boxes, direction = self.boxes(x), self.directions(x).argmax(-1)
        result = torch.zeros_like(boxes)
        result[:, :, 0:6] = boxes[..., :6] * 2
        result[:, :, 6:7] = boxes[..., 6:] + direction.unsqueeze(-1) * 3.14
        return result, direction


class YoloHead(nn.Module):
    """The best boxes by GatherElements with a repeated column, and the expected distance over bins."""

    def forward(self, boxes: Tensor, scores: Tensor) -> Tensor:
        bins = boxes.view(1, 4, 16, 40).transpose(2, 1).softmax(1)
        distances = (bins * torch.arange(16.0).view(1, 16, 1, 1)).sum(1).transpose(1, 2)
        best = scores.amax(-1).topk(10)[1].unsqueeze(-1)
        return torch.cat([distances.gather(1, best.repeat(1, 1, 4)), scores.gather(1, best.repeat(1, 1, 3))], -1)


class DBNet(nn.Module):
    """Up by ConvTranspose, BatchNormalization and Relu, and by nearest Resize of computed sizes."""

    def __init__(self) -> None:
        super().__init__()
        self.up = nn.Sequential(nn.ConvTranspose2d(8, 8, 2, 2), nn.BatchNorm2d(8), nn.ReLU(), nn.ConvTranspose2d(8, 1, 2, 2), nn.Sigmoid())

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return self.up(x + F.interpolate(y, size=x.shape[2:], mode="nearest"))


class Conformer(nn.Module):
    """The shift of relative positions: a Pad and views whose sizes are computed."""

    def forward(self, scores: Tensor) -> Tensor:
        batch, heads, queries, keys = scores.shape
        padded = torch.cat([torch.zeros_like(scores[..., :1]), scores], -1).view(batch, heads, keys + 1, queries)
        return padded[:, :, 1:].view_as(scores)[:, :, :, : keys // 2 + 1]


class Wav2Vec2(nn.Module):
    """Convolutions over time with a LayerNorm over channels after each, between Transposes."""

    def __init__(self) -> None:
        super().__init__()
        self.convs = nn.ModuleList([nn.Conv1d(1, 16, 10, 5), nn.Conv1d(16, 16, 3, 2)])
        self.norms = nn.ModuleList([nn.LayerNorm(16), nn.LayerNorm(16)])

    def forward(self, x: Tensor) -> Tensor:
        x = x.unsqueeze(1)
        for conv, norm in zip(self.convs, self.norms, strict=True):
            x = F.gelu(norm(conv(x).transpose(1, 2)).transpose(1, 2))
        return x.transpose(1, 2)


class TemporalShift(nn.Module):
    """Channels of the frames before and after, written into zeros."""

    def forward(self, x: Tensor) -> Tensor:
        frames = x.view(-1, 8, 16, 6, 6)
        shifted = torch.zeros_like(frames)
        shifted[:, :-1, :2] = frames[:, 1:, :2]
        shifted[:, 1:, 2:4] = frames[:, :-1, 2:4]
        shifted[:, :, 4:] = frames[:, :, 4:]
        return shifted.view(x.shape)


class Attention(nn.Module):
    """Query, key and value packed, as timm and torchvision compute them."""

    def __init__(self, width: int = 64) -> None:
        super().__init__()
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        batch, tokens, width = x.shape
        q, k, v = self.qkv(x).reshape(batch, tokens, 3, 4, width // 4).permute(2, 0, 3, 1, 4).unbind(0)
        scores = q @ k.transpose(-2, -1) * (width // 4) ** -0.5
        scores = scores if mask is None else scores + mask
        return self.out((scores.softmax(-1) @ v).transpose(1, 2).reshape(batch, tokens, width))


class ViT(nn.Module):
    """197 tokens."""

    def __init__(self) -> None:
        super().__init__()
        self.patches, self.first = nn.Conv2d(3, 64, 16, 16), nn.Parameter(torch.zeros(1, 1, 64))
        self.norm, self.attention = nn.LayerNorm(64), Attention()

    def forward(self, picture: Tensor) -> Tensor:
        x = self.patches(picture).flatten(2).transpose(1, 2)
        x = torch.cat([self.first.expand(x.shape[0], -1, -1), x], 1)
        return x + self.attention(self.norm(x))


class Swin(nn.Module):
    """Windows that are shifted by a roll, and back."""

    def __init__(self) -> None:
        super().__init__()
        self.attention = Attention()

    def forward(self, x: Tensor) -> Tensor:
        batch, height, width, channels = x.shape
        rolled = torch.roll(x, (-2, -2), (1, 2)).view(batch, height // 4, 4, width // 4, 4, channels)
        windows = self.attention(rolled.permute(0, 1, 3, 2, 4, 5).reshape(-1, 16, channels))
        back = windows.view(batch, height // 4, width // 4, 4, 4, channels).permute(0, 1, 3, 2, 4, 5)
        return x + torch.roll(back.reshape(x.shape), (2, 2), (1, 2))


class SegFormer(nn.Module):
    """Tokens to a picture and back, and classes by ArgMax of the picture made larger."""

    def __init__(self) -> None:
        super().__init__()
        self.reduce, self.classes = nn.Conv2d(64, 64, 2, 2), nn.Conv2d(64, 2, 1)

    def forward(self, x: Tensor) -> Tensor:
        batch, tokens, channels = x.shape
        picture = self.reduce(x.permute(0, 2, 1).reshape(batch, channels, 8, 8)).flatten(2).transpose(1, 2)
        picture = picture.permute(0, 2, 1).reshape(batch, channels, 4, 4)
        return self.classes(F.interpolate(picture, scale_factor=2, mode="bilinear", align_corners=False)).argmax(1)


class Bert(nn.Module):
    """A classifier of sentences: a mask of -3.4e38 by the types of the model, and the first token."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.attention, self.norm, self.head = nn.Embedding(50, 64), Attention(), nn.LayerNorm(64), nn.Linear(64, 2)

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        bias = (1.0 - mask[:, None, None, :].to(torch.float32)) * torch.finfo(torch.float32).min
        x = self.words(ids)
        return self.head(self.norm(x + self.attention(x, bias))[:, 0])


BATCH = {0: "batch"}
MODELS: dict[str, tuple[nn.Module, dict[str, Tensor], dict[str, dict[int, str]]]] = {
    "pointpillars": (PointPillars(), {"x": torch.randn(1, 30, 32)}, {}),
    "yolo": (YoloHead(), {"boxes": torch.randn(1, 64, 40), "scores": torch.rand(1, 40, 3)}, {}),
    "dbnet": (DBNet(), {"x": torch.randn(1, 8, 12, 12), "y": torch.randn(1, 8, 6, 6)},
              {"x": {2: "height", 3: "width"}, "y": {2: "low", 3: "narrow"}}),
    "conformer": (Conformer(), {"scores": torch.randn(2, 4, 6, 11)}, {"scores": {0: "batch", 2: "queries", 3: "keys"}}),
    "wav2vec2": (Wav2Vec2(), {"x": torch.randn(2, 400)}, {"x": {0: "batch", 1: "samples"}}),
    "tsm": (TemporalShift(), {"x": torch.randn(16, 16, 6, 6)}, {}),
    "vit": (ViT(), {"picture": torch.randn(2, 3, 224, 224)}, {"picture": BATCH}),
    "swin": (Swin(), {"x": torch.randn(2, 8, 8, 64)}, {"x": BATCH}),
    "segformer": (SegFormer(), {"x": torch.randn(2, 64, 64)}, {"x": BATCH}),
    "bert": (Bert(), {"ids": torch.randint(0, 50, (2, 16)), "mask": torch.ones(2, 16, dtype=torch.int64)},
             {"ids": {0: "batch", 1: "tokens"}, "mask": {0: "batch", 1: "tokens"}}),
}


def main() -> None:
    torch.manual_seed(0)
    OUT.mkdir(parents=True, exist_ok=True)
    for name, (model, inputs, dims) in MODELS.items():
        with torch.no_grad():
            for parameter in model.parameters():  # few different numbers: the file is small
                parameter.copy_(torch.round(torch.randn_like(parameter) * 8) / 64)
        buffer = io.BytesIO()
        torch.onnx.export(model.eval(), tuple(inputs.values()), buffer, opset_version=17, input_names=list(inputs), dynamic_axes=dims,
                          dynamo=False)
        exported = onnx.load_from_string(buffer.getvalue())
        (OUT / f"{name}.onnx.xz").write_bytes(lzma.compress(exported.SerializeToString(), preset=9))


if __name__ == "__main__":
    main()
