"""Attentions of ONNX Runtime with lengths, caches and rotations of their own, taken apart: what is written computes what
ONNX Runtime's own kernels do, wherever those define it."""

import onnx
import onnx.helper
import onnx.reference
import onnxruntime
import numpy as np
import pytest
from conftest import run_ok

FLOAT, INT32 = onnx.TensorProto.FLOAT, onnx.TensorProto.INT32
H, G, D, PLACES = 4, 2, 16, 64  # heads of the query, of the key, channels, rows of the rotary tables


def model_of(op, inputs, outputs, **attributes):
    """The operator alone; `inputs`: name, element type, shape, or None where one is left out."""
    names = [given[0] if given else "" for given in inputs]
    node = onnx.helper.make_node(op, names, [name for name, _ in outputs], name="attention", domain="com.microsoft", **attributes)
    make = onnx.helper.make_tensor_value_info
    graph = onnx.helper.make_graph([node], "g", [make(*given) for given in inputs if given],
                                   [make(name, FLOAT, shape) for name, shape in outputs])
    opsets = [onnx.helper.make_opsetid("", 17), onnx.helper.make_opsetid("com.microsoft", 1)]
    return onnx.helper.make_model(graph, opset_imports=opsets, ir_version=8)


def grouped(past, packed=False, channels=D, turned=D, more=(), **attributes):
    """`turned`: how many channels of each head are rotated; `more`: the inputs after the tables."""
    width = (H + 2 * G) * channels if packed else H * channels
    rows = None if packed else ("key", FLOAT, ["B", "S", G * channels])
    inputs = [("query", FLOAT, ["B", "S", width]), rows, rows and ("value", FLOAT, ["B", "S", G * channels])]
    cache = ["B", G, "P", channels]
    inputs += [("past_key", FLOAT, cache), ("past_value", FLOAT, cache)] if past else [None, None]
    inputs += [("seqlens_k", INT32, ["B"]), ("total", INT32, [])]
    if attributes.get("do_rotary"):
        inputs += [("cos", FLOAT, [PLACES, turned // 2]), ("sin", FLOAT, [PLACES, turned // 2])]
    elif more:
        inputs += [None, None]
    inputs += more
    present = ["B", G, "T", channels]
    outputs = [("y", ["B", "S", H * channels]), ("present_key", present), ("present_value", present)]
    return model_of("GroupQueryAttention", inputs, outputs, num_heads=H, kv_num_heads=G, **attributes)


def run_both(model, tmp_path, feeds, target="ascend910b", flags=()):
    """What the model computes, and what is written instead of it, expanded."""
    onnx.save(model, tmp_path / "m.onnx")
    run_ok("optimize", tmp_path / "m.onnx", "-o", tmp_path / "o.onnx", "--target", target, "--quiet", *flags)
    run_ok("expand", tmp_path / "o.onnx", "-o", tmp_path / "e.onnx")
    expanded = onnx.load(tmp_path / "e.onnx")
    assert all(node.domain in ("", "ai.onnx") for node in expanded.graph.node)
    sessions = [onnxruntime.InferenceSession(m.SerializeToString(), providers=["CPUExecutionProvider"]) for m in (model, expanded)]
    return [session.run(None, feeds) for session in sessions]


def feeds_of(model, dims, lengths=None, total=None):
    generator = np.random.default_rng(3)
    feeds = {}
    width = next((value.type.tensor_type.shape.dim[1].dim_value for value in model.graph.input if value.name == "cos"), D // 2)
    angles = np.arange(PLACES)[:, None] * 0.3 ** np.arange(width)[None]
    for value in model.graph.input:
        shape = [dims.get(d.dim_param, d.dim_value) for d in value.type.tensor_type.shape.dim]
        feeds[value.name] = generator.standard_normal(shape).astype(np.float32)
    known = {"seqlens_k": np.array(lengths, np.int32) - 1 if lengths else None, "total": None if total is None else np.array(total, np.int32),
             "cos": np.cos(angles).astype(np.float32), "sin": np.sin(angles).astype(np.float32),
             "mask": np.array([[1] * n + [0] * (dims["T"] - n) for n in lengths], np.int32) if lengths and "T" in dims else None}
    if "places" in feeds:
        known["places"] = np.arange(feeds["places"].size).reshape(feeds["places"].shape) * 3
    return {name: known.get(name, value) if known.get(name) is not None else value for name, value in feeds.items()}


# queries, past, lengths by batch, attributes of the operator
GROUPED = {
    "prompt": (3, 0, [3], {}),
    "prompts_of_two_lengths": (4, 0, [4, 2], {}),
    "decode": (1, 4, [5, 5], {}),
    "decode_of_two_lengths": (1, 4, [5, 3], {}),
    "further_prompt": (3, 4, [7], {}),
    "further_prompt_in_a_longer_cache": (3, 8, [7], {}),
    "decode_in_a_longer_cache": (1, 8, [5, 3], {}),
    "window": (3, 4, [7], {"local_window_size": 3}),
    "window_of_a_prompt": (5, 0, [5], {"local_window_size": 2}),
    "window_of_two_lengths": (1, 6, [7, 4], {"local_window_size": 3}),
    "rotary": (3, 4, [7], {"do_rotary": 1}),
    "rotary_of_two_lengths": (1, 4, [5, 3], {"do_rotary": 1}),
    "rotary_of_prompts": (4, 0, [4, 2], {"do_rotary": 1}),
    "rotary_of_pairs": (1, 4, [5, 3], {"do_rotary": 1, "rotary_interleaved": 1}),
    "scale_and_cap": (3, 4, [7], {"scale": 0.3, "softcap": 2.0}),
    "packed": (3, 4, [7], {"packed": True, "do_rotary": 1}),
    "rotary_of_a_part": (3, 4, [7], {"do_rotary": 1, "channels": 32, "turned": 16}),
    "rotary_of_pairs_of_a_part": (1, 4, [5, 3], {"do_rotary": 1, "rotary_interleaved": 1, "packed": True, "channels": 32, "turned": 16}),
    "rotary_at_given_places": (3, 4, [7], {"do_rotary": 1, "more": [("places", onnx.TensorProto.INT64, ["B", "S"])]}),
    "smooth_softmax": (3, 4, [7], {"smooth_softmax": 1}),
    "sinks": (1, 4, [5, 3], {"more": [None, None, ("sinks", FLOAT, [H])]}),
    "sinks_in_a_window": (3, 4, [7], {"local_window_size": 3, "softcap": 2.0, "more": [None, None, ("sinks", FLOAT, [H])]}),
}


@pytest.mark.parametrize("name,opset", [*((name, 17) for name in GROUPED), ("decode_of_two_lengths", 11), ("rotary_of_prompts", 11)])
def test_group_query_attention(tmp_path, name, opset):
    """At opset 11 Max and Min take no int64."""
    queries, past, lengths, attributes = GROUPED[name]
    model = grouped(past=True, **attributes)
    model.opset_import[0].version = opset
    feeds = feeds_of(model, {"B": len(lengths), "S": queries, "P": past}, lengths, max(lengths))
    expected, found = run_both(model, tmp_path, feeds)
    for batch, length in enumerate(lengths):
        rows = min(queries, length)  # queries after the end of a short prompt mean nothing
        np.testing.assert_allclose(found[0][batch, :rows], expected[0][batch, :rows], atol=2e-3)
        for was, now in zip(expected[1:], found[1:]):
            assert was.shape == now.shape
            np.testing.assert_allclose(now[batch, :, :length], was[batch, :, :length], atol=1e-5)


def test_group_query_attention_without_a_cache_is_causal(tmp_path):
    model = grouped(past=False)
    feeds = feeds_of(model, {"B": 2, "S": 4}, [4, 4], 4)
    expected, found = run_both(model, tmp_path, feeds)
    for was, now in zip(expected, found):
        np.testing.assert_allclose(now, was, atol=2e-3)
    text = run_ok("list", tmp_path / "m.onnx", "--target", "ascend910b").out
    assert "mask causal_bottom_right" in text, text


def test_group_query_attention_with_a_bias(tmp_path):
    model = grouped(past=False, more=[None, ("bias", FLOAT, [1, H, "S", "S"])])
    feeds = feeds_of(model, {"B": 2, "S": 4}, [4, 4], 4)
    for was, now in zip(*run_both(model, tmp_path, feeds)):
        np.testing.assert_allclose(now, was, atol=2e-3)


def test_sinks_are_left_with_a_sentence(tmp_path):
    onnx.save(grouped(past=True, smooth_softmax=1), tmp_path / "m.onnx")
    assert "(a sink), and kernels of ATC take none" in run_ok("list", tmp_path / "m.onnx", "--target", "ascend910b").out


# What the mask of one axis holds for two batches of 5 keys each.
LENGTHS = {"ends": [5, 3], "ends_and_starts": [5, 4, 0, 1], "lengths_and_rows": [5, 3, 0, 5, 10, 0, 5, 8]}


@pytest.mark.parametrize("op,name", [("Attention", name) for name in LENGTHS] + [("MultiHeadAttention", "ends"),
                                                                                  ("MultiHeadAttention", "lengths_and_rows")])
@pytest.mark.parametrize("causal", [0, 1])
def test_lengths_as_masks(tmp_path, op, name, causal):
    count = len(LENGTHS[name])
    rows = ["B" if name == "ends" else 2, "S", H * D]
    mask = ("lengths", INT32, ["B" if name == "ends" else count])
    x = [("x", FLOAT, rows)]
    whole = op == "Attention"
    inputs = x + ([("w", FLOAT, [H * D, 3 * H * D]), ("b", FLOAT, [3 * H * D]), mask] if whole else
                  [("k", FLOAT, rows), ("v", FLOAT, rows), None, mask])
    model = model_of(op, inputs, [("y", rows)], num_heads=H, unidirectional=causal)
    feeds = feeds_of(model, {"B": 2, "S": 5})
    feeds["lengths"] = np.array(LENGTHS[name], np.int32)
    if whole:
        feeds["w"] *= 0.1
    (expected,), (found,) = run_both(model, tmp_path, feeds)
    starts = LENGTHS[name][2:] if name == "ends_and_starts" else [0, 0]
    for batch, start in enumerate(starts):  # a query before the start has no key
        np.testing.assert_allclose(found[batch, start:], expected[batch, start:], atol=2e-3)


@pytest.mark.parametrize("mask", [False, True])
def test_embeddings_and_their_lengths(tmp_path, mask):
    ids = ["B", "S"]
    tables = [("words", FLOAT, [50, 32]), ("table", FLOAT, [64, 32]), ("kinds", FLOAT, [2, 32]), ("gain", FLOAT, [32]), ("shift", FLOAT, [32])]
    model = model_of("EmbedLayerNormalization", [("ids", INT32, ids), ("segments", INT32, ids), *tables, *([("kept", INT32, ids)] if mask else [])],
                     [("y", ["B", "S", 32]), ("lengths", ["B"])])
    model.graph.output[1].type.tensor_type.elem_type = INT32
    feeds = feeds_of(model, {"B": 2, "S": 5})
    kept = np.array([[1, 1, 1, 0, 0], [1, 0, 1, 0, 2]], np.int32)
    feeds["ids"], feeds["segments"] = np.arange(10, dtype=np.int32).reshape(2, 5), kept % 2
    if mask:
        feeds["kept"] = kept
    expected, found = run_both(model, tmp_path, feeds)
    np.testing.assert_allclose(found[0], expected[0], atol=2e-3)
    assert np.array_equal(found[1], expected[1]) and expected[1].tolist() == ([3, 2] if mask else [0, 0])


@pytest.mark.parametrize("attributes,sentence", [
    ({"more": [None, ("bias", FLOAT, [1, 1, "S", "T"])]}, "an attention_bias beside a cache is taken apart by no rule"),
    ({"causal": 0}, "that is not causal is taken apart by no rule"),
    ({"sliding_window_cache": 1, "local_window_size": 4}, "with sliding_window_cache is taken apart by no rule"),
])
def test_what_is_not_taken_apart_says_so(tmp_path, attributes, sentence):
    onnx.save(grouped(past=True, **attributes), tmp_path / "m.onnx")
    assert sentence in run_ok("list", tmp_path / "m.onnx", "--target", "ascend910b").out


def decoder(across):
    rows = ["B", H, "T", D] if across else ["B", 1, H * D]
    inputs = [("query", FLOAT, ["B", 1, H * D]), ("key", FLOAT, rows), ("value", FLOAT, rows), ("mask", INT32, ["B", "T"]), None]
    if not across:
        inputs += [("past_key", FLOAT, ["B", H, "P", D]), ("past_value", FLOAT, ["B", H, "P", D])]
    outputs = [("y", ["B", 1, H * D])]
    outputs += [] if across else [("present_key", ["B", H, "T", D]), ("present_value", ["B", H, "T", D])]
    return model_of("DecoderMaskedMultiHeadAttention", inputs, outputs, num_heads=H)


def test_decoder_masked_multi_head_attention_across(tmp_path):
    model = decoder(across=True)
    feeds = feeds_of(model, {"B": 2, "T": 5}, [5, 3])
    for was, now in zip(*run_both(model, tmp_path, feeds)):
        np.testing.assert_allclose(now, was, atol=2e-3)


def test_decoder_masked_multi_head_attention_with_a_cache(tmp_path):
    """ONNX Runtime's kernel takes only caches that are written in place: of others MultiHeadAttention says the same."""
    model = decoder(across=False)
    feeds = feeds_of(model, {"B": 2, "P": 4, "T": 5}, [5, 3])
    onnx.save(model, tmp_path / "m.onnx")
    run_ok("optimize", tmp_path / "m.onnx", "-o", tmp_path / "o.onnx", "--quiet")
    run_ok("expand", tmp_path / "o.onnx", "-o", tmp_path / "e.onnx")
    node = model.graph.node[0]
    node.op_type = "MultiHeadAttention"
    node.input[:] = ["query", "key", "value", "", "mask", "", "past_key", "past_value"]
    expanded = onnx.load(tmp_path / "e.onnx")
    sessions = [onnxruntime.InferenceSession(m.SerializeToString(), providers=["CPUExecutionProvider"]) for m in (model, expanded)]
    for was, now in zip(*(session.run(None, feeds) for session in sessions)):
        np.testing.assert_allclose(now, was, atol=2e-3)


def onnx_attention(opset, mask, keys=7):
    """The operator of ONNX with a mask of so many keys, or of M."""
    kind, length = mask
    make = onnx.helper.make_tensor_value_info
    inputs = [make("q", FLOAT, [2, H, "S", D]), make("k", FLOAT, [2, G, keys, D]), make("v", FLOAT, [2, G, keys, D]),
              make("mask", kind, ["S", length])]
    node = onnx.helper.make_node("Attention", ["q", "k", "v", "mask"], ["y"])
    graph = onnx.helper.make_graph([node], "g", inputs, [make("y", FLOAT, [2, H, "S", D])])
    return onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", opset)], ir_version=11)


@pytest.mark.parametrize("target", ["ascend910b", "ascend310b"])
@pytest.mark.parametrize("kind", [FLOAT, onnx.TensorProto.BOOL], ids=["added", "kept"])
@pytest.mark.parametrize("opset,declared,given", [(24, 4, 4), (24, "M", 4), (24, "M", 7), (24, 1, 1), (24, "M", 1), (23, "M", 7)])
def test_a_mask_of_fewer_keys_leaves_out_the_others(tmp_path, opset, declared, given, kind, target):
    """From opset 24 on; before, the mask is broadcast. ONNX Runtime refuses such masks: onnx itself says what is right."""
    model = onnx_attention(opset, (kind, declared))
    onnx.save(model, tmp_path / "m.onnx")
    run_ok("optimize", tmp_path / "m.onnx", "-o", tmp_path / "o.onnx", "--target", target, "--quiet")
    run_ok("expand", tmp_path / "o.onnx", "-o", tmp_path / "e.onnx")
    feeds = feeds_of(model, {"S": 3, "M": given})
    if kind != FLOAT:
        feeds["mask"] = feeds["mask"] < 0.7
    expected = onnx.reference.ReferenceEvaluator(model).run(None, feeds)[0]
    expanded = onnx.load(tmp_path / "e.onnx")
    assert "Attention" not in [node.op_type for node in expanded.graph.node]
    session = onnxruntime.InferenceSession(expanded.SerializeToString(), providers=["CPUExecutionProvider"])
    # Rows without any key are 0 in ours, and not a number in onnx.
    np.testing.assert_allclose(session.run(None, feeds)[0], np.nan_to_num(expected), atol=2e-3)


def multi_head(queries, keys, past=0, mask=0, cached=False, bias=False, **attributes):
    """MultiHeadAttention of so many queries and new keys, with a mask of this rank."""
    all_keys = past + keys if isinstance(keys, int) else keys
    rows = ["B", H, keys, D] if cached else ["B", keys, H * D]
    masks = {0: None, 2: ("padding", INT32, ["B", all_keys]), 3: ("padding", INT32, ["B", queries, all_keys])}
    inputs = [("query", FLOAT, ["B", queries, H * D]), ("key", FLOAT, rows), ("value", FLOAT, rows), None, masks[mask],
              ("bias", FLOAT, [1, H, queries, all_keys]) if bias else None]
    if past:
        inputs += [("past_key", FLOAT, ["B", H, past, D]), ("past_value", FLOAT, ["B", H, past, D])]
    outputs = [("y", ["B", queries, H * D])]
    outputs += [(name, ["B", H, all_keys, D]) for name in ("present_key", "present_value")] if past else []
    return model_of("MultiHeadAttention", inputs, outputs, num_heads=H, **attributes)


def self_attention(mask, **attributes):
    inputs = [("x", FLOAT, ["B", "S", 24]), ("w", FLOAT, [24, 3 * H * D]), ("c", FLOAT, [3 * H * D])]
    inputs.append(("padding", INT32, ["B", "S"] if mask == 2 else ["B", "S", "S"]))
    return model_of("Attention", inputs, [("y", ["B", "S", H * D])], num_heads=H, **attributes)


def masked_feeds(model, dims):
    feeds = feeds_of(model, dims)
    if "padding" in feeds:  # the first key is always there, so that every query has one
        feeds["padding"] = (feeds["padding"] < 0.5).astype(np.int32)
        feeds["padding"][..., 0] = 1
    return feeds


CHIPS = ["ascend310b", "ascend310p", "ascend910", "ascend910b", "ascend910_93", "ascend950"]
# A mask whose filter value takes no key out of the softmax, and a causal mask of more keys than queries, of which ONNX
# Runtime's last query sees all.
RUNTIME_MASKS = {
    "weak": multi_head("S", "T", mask=2, mask_filter_value=-1.0),
    "weak_by_query": multi_head("S", "T", mask=3, mask_filter_value=-1.0),
    "weak_and_bias": multi_head(3, 5, mask=2, bias=True, mask_filter_value=-2.0),
    "weak_with_past": multi_head(3, 3, past=2, mask=2, mask_filter_value=-1.0),
    "weak_causal": multi_head(4, 4, mask=2, mask_filter_value=-1.0, unidirectional=1),
    "weak_cached": multi_head("S", "T", mask=2, cached=True, mask_filter_value=-1.0),
    "none": multi_head("S", "T", mask=2, mask_filter_value=0.0),
    "raising": multi_head("S", "T", mask=2, mask_filter_value=2.0),
    "strong": multi_head("S", "T", mask=2, mask_filter_value=-1e30),
    "not_written": multi_head("S", "T", mask=2),
    "self_weak": self_attention(2, mask_filter_value=-1.0),
    "self_weak_by_query": self_attention(3, mask_filter_value=-1.0, unidirectional=1),
    "self_strong": self_attention(2, mask_filter_value=-1e30, unidirectional=1),
    "more_keys": multi_head(3, 5, unidirectional=1),
    "more_keys_in_some_runs": multi_head("S", "T", unidirectional=1),
    "more_keys_with_past": multi_head(3, 5, past=2, unidirectional=1),
    "more_keys_masked": multi_head(3, 5, mask=2, unidirectional=1),
    "more_keys_weakly_masked": multi_head(3, 5, mask=3, unidirectional=1, mask_filter_value=-1.0),
    "more_keys_cached": multi_head(3, 5, cached=True, unidirectional=1),
    "one_query": multi_head(1, 5, unidirectional=1),
    "more_queries": multi_head(5, 3, unidirectional=1),
    "as_many_cached": multi_head(4, 4, cached=True, unidirectional=1),
}


@pytest.mark.parametrize("plugin", [False, True], ids=["stock", "plugin"])
@pytest.mark.parametrize("target", CHIPS)
@pytest.mark.parametrize("name", RUNTIME_MASKS)
def test_masks_of_onnx_runtime(tmp_path, name, target, plugin):
    model = RUNTIME_MASKS[name]
    newer = ["--cann", "2026.07"] if plugin and target in ("ascend950", "ascend910_93") else []
    for dims in ({"B": 2, "S": 3, "T": 5}, {"B": 1, "S": 4, "T": 4}):
        for was, now in zip(*run_both(model, tmp_path, masked_feeds(model, dims), target, [*newer, *(["--plugin"] if plugin else [])])):
            np.testing.assert_allclose(now, was, atol=2e-3)


def test_a_causal_mask_of_as_many_keys_is_still_read_as_one(tmp_path):
    onnx.save(multi_head("S", "S", unidirectional=1), tmp_path / "m.onnx")
    assert "mask causal_bottom_right" in run_ok("list", tmp_path / "m.onnx", "--target", "ascend910b").out


@pytest.mark.parametrize("past", [False, True])
def test_keys_and_values_of_two_widths_have_no_cache_in_one_tensor(tmp_path, past):
    """ONNX Runtime refuses a past, and writes a present whose middle is whatever was in memory."""
    inputs = [("x", FLOAT, ["B", "S", 24]), ("w", FLOAT, [24, 96]), ("c", FLOAT, [96]), None]
    inputs += [("past", FLOAT, [2, "B", 2, "P", 20])] if past else []
    model = model_of("Attention", inputs, [("y", ["B", "S", 16]), ("present", [2, "B", 2, "T", "d"])], num_heads=2,
                     qkv_hidden_sizes=[40, 40, 16])
    onnx.save(model, tmp_path / "m.onnx")
    for target in CHIPS:
        text = run_ok("list", tmp_path / "m.onnx", "--target", target).out
        assert "here keys have 40 channels and values 16" in text, text
