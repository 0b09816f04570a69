"""ascend_fuse: the Python side of the tool that fuses exported ONNX models into Ascend NPU nodes."""
