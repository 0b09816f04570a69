"""A session of ONNX Runtime that runs a graph as it is written: the oracle of verify and of the tests."""

from __future__ import annotations

import functools
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

from ascend_fuse.exact_products import PRODUCTS, make_exact


def plain_session(model: bytes | str | Path, threads: int = 0, reuse: bool = True) -> onnxruntime.InferenceSession:
    """Returns a session of a file or of a serialized model, with every graph optimization off: its fusions err.

    Products of uint8 and int8 are those of ONNX on every processor (ascend_fuse.exact_products). With 0 threads ONNX
    Runtime chooses how many. Without `reuse` every tensor has a buffer of its own. Raises what
    ONNX Runtime raises where it cannot load the model.
    """
    source = model if isinstance(model, bytes) else str(model)
    options = _options(threads, reuse)
    if saturates():
        source = _exact(source, options)
    return onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])


@functools.cache
def saturates() -> bool:
    """Returns whether ONNX Runtime saturates sums of products of uint8 and int8 here, which a product shows."""
    graph = helper.make_graph(
        [helper.make_node("MatMulInteger", ["a", "b"], ["y"])], "probe", [helper.make_tensor_value_info("a", TensorProto.UINT8, [1, 16])],
        [helper.make_tensor_value_info("y", TensorProto.INT32, [1, 16])], [numpy_helper.from_array(np.full((16, 16), 127, np.int8), "b")])
    model = helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)])
    session = onnxruntime.InferenceSession(model.SerializeToString(), _options(1, True), providers=["CPUExecutionProvider"])
    return bool((session.run(None, {"a": np.full((1, 16), 255, np.uint8)})[0] != 16 * 255 * 127).any())


def _options(threads: int, reuse: bool) -> onnxruntime.SessionOptions:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = threads
    options.enable_mem_reuse = reuse
    options.log_severity_level = 4
    return options


def _exact(source: bytes | str, options: onnxruntime.SessionOptions) -> bytes | str:
    """Returns a model whose products do not saturate: the same one where there are none of them."""
    content = source if isinstance(source, bytes) else Path(source).read_bytes()
    if not any(name.encode() in content for name in PRODUCTS):
        return source
    try:
        model = onnx.load_model_from_string(content)
    except Exception:  # ONNX Runtime says what is wrong
        return source
    if not make_exact(model):
        return source
    if not isinstance(source, bytes):
        options.add_session_config_entry("session.model_external_initializers_file_folder_path", str(Path(source).resolve().parent))
    return model.SerializeToString()


class EndedBySignal(RuntimeError):
    """A run ended its process."""


def run_elsewhere(model: str | Path, feeds: dict[str, np.ndarray]) -> None:
    """Runs a file in a process of its own. Raises EndedBySignal where this ends the process: kernels of ONNX Runtime
    divide by a dim that is 0, for one."""
    with tempfile.TemporaryDirectory() as folder:
        names = list(feeds)
        np.savez(f"{folder}/feeds.npz", *feeds.values())
        ended = subprocess.run([sys.executable, "-m", "ascend_fuse.session", str(model), f"{folder}/feeds.npz", *names],
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode
    if ended < 0:
        raise EndedBySignal(f"ONNX Runtime was ended by signal {-ended}")


if __name__ == "__main__":
    arrays = list(np.load(sys.argv[2]).values())
    plain_session(sys.argv[1]).run(None, dict(zip(sys.argv[3:], arrays)))
