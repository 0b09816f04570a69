"""The models of Keras 3 and KerasHub, in small, and the sites that their configurations make.

A table of functions: each builds a module and says what is expected of its export. `export.py` beside it does the rest.
"""

from __future__ import annotations

import keras
import keras_hub
from common import HEAD_DIM, LAYERS, VOCAB, Built, Input, counts

WIDTH = 2 * HEAD_DIM
INNER = 160
IDS = Input("token_ids", ("batch", "seq"), "ids", VOCAB)
MASK = Input("padding_mask", ("batch", "seq"), "attention_mask")
SEGMENTS = Input("segment_ids", ("batch", "seq"), "segment_ids", 2)
COMMON = {"vocabulary_size": VOCAB, "num_layers": LAYERS, "hidden_dim": WIDTH, "intermediate_dim": INNER}
GROUPED = {**COMMON, "num_query_heads": 2, "num_key_value_heads": 1}
SEVERAL = {**COMMON, "num_heads": 2, "max_sequence_length": 32}


def bert() -> Built:
    """A norm after the embedding and two in each layer; the pooler is a linear with tanh."""
    module = keras_hub.models.BertBackbone(**SEVERAL)
    return Built(module, [IDS, MASK, SEGMENTS], counts(
        layer_norm=1 + 2 * LAYERS, gelu=LAYERS, linear_activation=LAYERS + 1, attention=LAYERS))


def distilbert() -> Built:
    module = keras_hub.models.DistilBertBackbone(**SEVERAL)
    return Built(module, [IDS, MASK], counts(layer_norm=1 + 2 * LAYERS, gelu=LAYERS, linear_activation=LAYERS, attention=LAYERS))


def gpt2() -> Built:
    module = keras_hub.models.GPT2Backbone(**SEVERAL)
    return Built(module, [IDS, MASK], counts(layer_norm=1 + 2 * LAYERS, gelu=LAYERS, linear_activation=LAYERS, attention=LAYERS))


def opt() -> Built:
    module = keras_hub.models.OPTBackbone(**SEVERAL)
    return Built(module, [IDS, MASK], counts(layer_norm=1 + 2 * LAYERS, linear_activation=LAYERS, attention=LAYERS))


def bart() -> Built:
    module = keras_hub.models.BartBackbone(**SEVERAL)
    inputs = [
        Input("encoder_token_ids", ("batch", "seq"), "ids", VOCAB),
        Input("encoder_padding_mask", ("batch", "seq"), "attention_mask"),
        Input("decoder_token_ids", ("batch", "seq"), "ids", VOCAB),
        Input("decoder_padding_mask", ("batch", "seq"), "attention_mask"),
    ]
    return Built(module, inputs, counts(
        layer_norm=2 + 2 * LAYERS + 3 * LAYERS, gelu=2 * LAYERS, linear_activation=2 * LAYERS, attention=3 * LAYERS))


def decoder(rotary: int = 2 * LAYERS, norms: int = 1 + 2 * LAYERS) -> dict[str, int]:
    """A decoder of the Llama family."""
    return counts(rms_norm=norms, glu=LAYERS, rotary=rotary, attention=LAYERS)


def llama() -> Built:
    return Built(keras_hub.models.LlamaBackbone(**GROUPED), [IDS, MASK], decoder())


def mistral() -> Built:
    return Built(keras_hub.models.MistralBackbone(**GROUPED, sliding_window=8), [IDS, MASK], decoder())


def qwen2() -> Built:
    return Built(keras_hub.models.QwenBackbone(**GROUPED), [IDS, MASK], decoder())


def qwen3() -> Built:
    """A norm of every query and of every key."""
    module = keras_hub.models.Qwen3Backbone(**GROUPED, head_dim=HEAD_DIM, sliding_window_size=None)
    return Built(module, [IDS, MASK], decoder(norms=1 + 4 * LAYERS))


def phi3() -> Built:
    return Built(keras_hub.models.Phi3Backbone(**GROUPED), [IDS, MASK], decoder())


def gemma() -> Built:
    return Built(keras_hub.models.GemmaBackbone(**GROUPED, head_dim=HEAD_DIM), [IDS, MASK], decoder())


def gemma2() -> Built:
    module = keras_hub.models.GemmaBackbone(
        **GROUPED, head_dim=HEAD_DIM, use_post_ffw_norm=True, use_post_attention_norm=True, attention_logit_soft_cap=50,
        final_logit_soft_cap=30, use_sliding_window_attention=True, sliding_window_size=8)
    return Built(module, [IDS, MASK], decoder(norms=1 + 4 * LAYERS))


def gemma3() -> Built:
    module = keras_hub.models.Gemma3Backbone(
        **GROUPED, head_dim=HEAD_DIM, image_size=32, use_post_ffw_norm=True, use_post_attention_norm=True,
        use_sliding_window_attention=True, sliding_window_size=8)
    return Built(module, [IDS, MASK], decoder(norms=1 + 6 * LAYERS))


def gpt_neox() -> Built:
    module = keras_hub.models.GPTNeoXBackbone(**SEVERAL, rotary_percentage=0.25)
    return Built(module, [IDS, MASK], counts(
        layer_norm=1 + 2 * LAYERS, gelu=LAYERS, linear_activation=LAYERS, rotary=2 * LAYERS, attention=LAYERS))


def falcon() -> Built:
    module = keras_hub.models.FalconBackbone(**COMMON, num_attention_heads=2)
    return Built(module, [IDS, MASK], counts(layer_norm=1 + 2 * LAYERS, gelu=LAYERS, linear_activation=LAYERS, attention=LAYERS))


def bloom() -> Built:
    module = keras_hub.models.BloomBackbone(**COMMON, num_heads=2)
    return Built(module, [IDS, MASK], counts(layer_norm=2 + 2 * LAYERS, gelu=LAYERS, linear_activation=LAYERS, attention=LAYERS))


def t5() -> Built:
    """Encoder and decoder, with a gated product in both."""
    module = keras_hub.models.T5Backbone(**COMMON, num_heads=2, activation="gelu")
    inputs = [
        Input("encoder_token_ids", ("batch", "seq"), "ids", VOCAB),
        Input("encoder_padding_mask", ("batch", "seq"), "attention_mask"),
        Input("decoder_token_ids", ("batch", "seq"), "ids", VOCAB),
        Input("decoder_padding_mask", ("batch", "seq"), "attention_mask"),
    ]
    return Built(module, inputs, counts(rms_norm=2 + 5 * LAYERS, glu=2 * LAYERS, attention=3 * LAYERS))


def roformer() -> Built:
    """Norms without weights, after both sums; the embedding has one with."""
    module = keras_hub.models.RoformerV2Backbone(**COMMON, num_heads=2, head_size=HEAD_DIM)
    return Built(module, [IDS, SEGMENTS], counts(
        rms_norm=1 + 2 * LAYERS, linear_activation=LAYERS, rotary=2 * LAYERS, attention=LAYERS))


def esm() -> Built:
    module = keras_hub.models.ESM2Backbone(**COMMON, num_heads=2, use_pre_layer_norm=False)
    return Built(module, [IDS], counts(
        layer_norm=1 + 2 * LAYERS, gelu=LAYERS, linear_activation=LAYERS, rotary=2 * LAYERS, attention=LAYERS))


def vit() -> Built:
    module = keras_hub.models.ViTBackbone((32, 32, 3), (8, 8), LAYERS, 2, WIDTH, INNER)
    pixels = Input("images", ("batch", 32, 32, 3), "pixels")
    return Built(module, [pixels], counts(layer_norm=1 + 2 * LAYERS, gelu=LAYERS, linear_activation=LAYERS, attention=LAYERS))


def dinov2() -> Built:
    module = keras_hub.models.DINOV2Backbone(8, LAYERS, WIDTH, 2, INNER, image_shape=(32, 32, 3), position_embedding_shape=(32, 32, 3), use_mask_token=False)
    pixels = Input("images", ("batch", 32, 32, 3), "pixels")
    return Built(module, [pixels], counts(layer_norm=1 + 2 * LAYERS, gelu=LAYERS, linear_activation=LAYERS, attention=LAYERS))


def dinov3() -> Built:
    module = keras_hub.models.DINOV3Backbone(8, LAYERS, WIDTH, 2, INNER, image_shape=(32, 32, 3), use_mask_token=False)
    pixels = Input("pixel_values", ("batch", 32, 32, 3), "pixels")
    return Built(module, [pixels], counts(
        layer_norm=1 + 2 * LAYERS, gelu=LAYERS, linear_activation=LAYERS, rotary=2 * LAYERS, attention=LAYERS))


def swin() -> Built:
    """Two stages: a norm of the patches, two in each block, one of the merging, one at the end."""
    module = keras_hub.models.SwinTransformerBackbone((64, 64, 3), HEAD_DIM, (2, 2), (1, 2), 4)
    pixels = Input("images", ("batch", 64, 64, 3), "pixels")
    return Built(module, [pixels], counts(layer_norm=3 + 8, gelu=4, linear_activation=4, attention=4))


def sequence(*layers: keras.layers.Layer, shape: tuple[int | None, ...]) -> keras.Model:
    x = keras.Input(shape)
    y = x
    for layer in layers:
        y = layer(y)
    return keras.Model(x, y)


def attention_layer(causal: bool, grouped: bool, flash: bool = False) -> keras.Model:
    x = keras.Input((None, WIDTH))
    layer = (keras.layers.GroupQueryAttention(HEAD_DIM, 2, 1) if grouped
             else keras.layers.MultiHeadAttention(2, HEAD_DIM, flash_attention=flash))
    return keras.Model(x, layer(x, x, use_causal_mask=causal))


STATES = Input("x", ("batch", "seq", WIDTH), "features")


def layers_attention() -> Built:
    return Built(attention_layer(True, False), [STATES], counts(attention=1))


def layers_grouped_attention() -> Built:
    return Built(attention_layer(True, True), [STATES], counts(attention=1))


def layers_group_norm() -> Built:
    """GroupNormalization with the channels last, alone, with SiLU, and without weights."""
    layers = keras.layers
    module = sequence(
        layers.Conv2D(32, 3, padding="same"), layers.GroupNormalization(8), layers.Conv2D(32, 3, padding="same"),
        layers.GroupNormalization(8), layers.Activation("silu"), layers.Conv2D(32, 3, padding="same"),
        layers.GroupNormalization(4, center=False, scale=False), layers.Conv2D(8, 3, padding="same"),
        shape=(16, 16, 4))
    return Built(module, [Input("x", ("batch", 16, 16, 4), "pixels")], counts(group_norm=3))


def layers_norms() -> Built:
    """LayerNormalization and RMSNormalization, with and without weights, and UnitNormalization, which is not one."""
    layers = keras.layers
    module = sequence(
        layers.Dense(WIDTH), layers.LayerNormalization(), layers.Dense(WIDTH), layers.RMSNormalization(), layers.Dense(WIDTH),
        layers.LayerNormalization(center=False, scale=False), layers.Dense(WIDTH), layers.LayerNormalization(center=False),
        layers.Dense(WIDTH, activation="gelu"), layers.Dense(WIDTH, activation="silu"), shape=(None, WIDTH))
    return Built(module, [STATES], counts(layer_norm=3, rms_norm=1, gelu=1, silu=1, linear_activation=2))


MODELS = {
    "kerashub-bert": bert, "kerashub-distilbert": distilbert, "kerashub-gpt2": gpt2, "kerashub-opt": opt, "kerashub-bart": bart,
    "kerashub-llama": llama, "kerashub-mistral": mistral, "kerashub-qwen2": qwen2, "kerashub-qwen3": qwen3,
    "kerashub-phi3": phi3, "kerashub-gemma": gemma, "kerashub-gemma2": gemma2, "kerashub-gemma3": gemma3,
    "kerashub-gpt-neox": gpt_neox, "kerashub-falcon": falcon, "kerashub-bloom": bloom, "kerashub-t5": t5,
    "kerashub-roformer": roformer, "kerashub-esm": esm, "kerashub-vit": vit, "kerashub-dinov2": dinov2,
    "kerashub-dinov3": dinov3, "kerashub-swin": swin, "keras-attention": layers_attention,
    "keras-grouped-attention": layers_grouped_attention, "keras-group-norm": layers_group_norm, "keras-norms": layers_norms,
}
