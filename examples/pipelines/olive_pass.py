"""A pass of Olive. A workflow finds it by Olive's package configuration, which has one more entry.

python olive_pass.py model.onnx folder    # a workflow with this pass alone
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from olive.hardware import AcceleratorSpec
from olive.model import ONNXModelHandler
from olive.model.utils import resolve_onnx_path
from olive.passes import Pass
from olive.passes.pass_config import BasePassConfig, PassConfigParam

import ascend_fuse


class AscendFuse(Pass):
    """Ascend NPU nodes in place of the subgraphs that the chip has fused kernels for."""

    @classmethod
    def _default_config(cls, accelerator_spec: AcceleratorSpec) -> dict[str, PassConfigParam]:
        return {
            "target": PassConfigParam(type_=str, default_value="ascend910b", description="The chip."),
            "cann": PassConfigParam(type_=str, default_value="8.1", description="The CANN version."),
            "require": PassConfigParam(type_=list[str], default_value=[], description="Kinds of which none may be left."),
        }

    def _run_for_config(self, model: ONNXModelHandler, config: type[BasePassConfig], output_model_path: str) -> ONNXModelHandler:
        output = resolve_onnx_path(output_model_path)
        result = ascend_fuse.optimize(model.model_path, target=config.target, cann=config.cann, require=config.require)
        result.save(output, copy_data=True)  # data files lie beside the model, wherever Olive wants it
        Path(output).with_suffix(".report.json").write_text(result.report.to_json())
        return ONNXModelHandler(model_path=output)


# What Olive knows of a pass: an entry of olive_config.json, here beside those that come with Olive.
ENTRY = {"module_path": "olive_pass.AscendFuse", "supported_providers": ["*"], "supported_accelerators": ["*"],
         "supported_precisions": ["*"], "supported_algorithms": [], "supported_quantization_encodings": [], "run_on_target": False}


def main(source: str, folder: str) -> None:
    from olive.package_config import OlivePackageConfig
    from olive.workflows import run

    packages = json.loads(Path(OlivePackageConfig.get_default_config_path()).read_text())
    packages["passes"]["AscendFuse"] = ENTRY
    run({
        "input_model": {"type": "ONNXModel", "model_path": source},
        "passes": {"fuse": {"type": "AscendFuse", "config": {"target": "ascend910b", "require": ["rms_norm"]}}},
        "output_dir": folder,
        "evaluate_input_model": False,
    }, package_config=packages)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
