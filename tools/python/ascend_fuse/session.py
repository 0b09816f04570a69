"""A session of ONNX Runtime that runs a graph as it is written: the oracle of verify and of the tests."""

from __future__ import annotations

from pathlib import Path

import onnxruntime


def plain_session(model: bytes | str | Path, threads: int = 0, reuse: bool = True) -> onnxruntime.InferenceSession:
    """Returns a session of a file or of a serialized model, with every graph optimization off: its fusions err.

    With 0 threads ONNX Runtime chooses how many. Without `reuse` every tensor has a buffer of its own. Raises what
    ONNX Runtime raises where it cannot load the model.
    """
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = threads
    options.enable_mem_reuse = reuse
    options.log_severity_level = 4
    source = model if isinstance(model, bytes) else str(model)
    return onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])
