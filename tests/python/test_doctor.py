"""`doctor` on hosts that are made here: folders as CANN installs them, and an npu-smi that is a script."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from conftest import TOOL

NPU_SMI = """\
+------------------------------------------------------------------------------------------------+
| npu-smi 25.5.1                   Version: 25.5.1                                               |
+---------------------------+---------------+----------------------------------------------------+
| NPU   Name                | Health        | Power(W)    Temp(C)           Hugepages-Usage(page)|
| Chip                      | Bus-Id        | AICore(%)   Memory-Usage(MB)  HBM-Usage(MB)        |
+===========================+===============+====================================================+
{rows}
+---------------------------+---------------+----------------------------------------------------+
| NPU     Chip              | Process id    | Process name             | Process memory(MB)      |
+===========================+===============+====================================================+
| 0       0                 | 41520         | python3                  | 3162                    |
+===========================+===============+====================================================+
"""
ROW = """\
| {number}     {name:<16}    | OK            | 90.2        36                0    / 0             |
| 0                         | 0000:C1:00.0  | 0           0    / 0          3162 / 65536         |
+===========================+===============+====================================================+"""


@dataclass
class Host:
    root: Path
    variables: dict[str, str] = field(default_factory=dict)

    @property
    def programs(self) -> Path:
        folder = self.root / "programs"
        folder.mkdir(exist_ok=True)
        return folder

    def write(self, path: str, text: str) -> Path:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file

    def script(self, path: str, text: str) -> Path:
        file = self.write(path, f"#!/bin/sh\n{text}\n")
        file.chmod(0o755)
        return file

    def npus(self, *names: str) -> None:
        rows = "\n".join(ROW.format(number=i, name=name) for i, name in enumerate(names))
        self.write("smi.txt", NPU_SMI.format(rows=rows))
        self.script("programs/npu-smi", f"cat {self.root}/smi.txt")

    def run(self, *arguments: str) -> str:
        environment = {"PATH": f"{self.programs}:/usr/bin:/bin", "HOME": str(self.root / "home")} | self.variables
        done = subprocess.run([TOOL, "doctor", "--root", self.root, *arguments], env=environment, capture_output=True, text=True, timeout=30)
        assert done.returncode == 0 and done.stderr == "", done.stderr
        return done.stdout

    def look(self) -> dict:
        return json.loads(self.run("--json"))


@pytest.fixture
def host(tmp_path: Path) -> Host:
    made = Host(tmp_path)
    made.script("programs/python3", f'exec {sys.executable} "$@"')
    return made


TOOLKIT = "usr/local/Ascend/ascend-toolkit/8.1.RC1"
INFO = "package_name=Ascend-cann-toolkit\nversion={0}\ninnerversion=V100R001C21\narch=aarch64\nos=linux\n"


def toolkit(host: Host, version: str = "8.1.RC1", folder: str = TOOLKIT) -> Path:
    host.write(f"{folder}/aarch64-linux/ascend_toolkit_install.info", INFO.format(version))
    return host.root / folder


def test_a_host_with_nothing(host: Host) -> None:
    seen = host.look()
    assert (seen["cann"], seen["npu"], seen["atc"], seen["npu_smi"]) == ([], [], None, None)
    assert seen["options"] == {"target": None, "cann": None, "plugin": False}
    assert any("CANN was not found" in sentence for sentence in seen["advice"])
    text = host.run()
    assert "CANN          not found" in text and "- No NPU was found." in text


@pytest.mark.parametrize(("folder", "version", "option"), [
    ("usr/local/Ascend/ascend-toolkit/8.1.RC1", "8.1.RC1", "8.1"),
    ("usr/local/Ascend/cann-8.5.0", "8.5.0", "8.5"),
    ("usr/local/Ascend/cann", "9.0.0.alpha001", "9.0"),
    ("home/Ascend/ascend-toolkit/latest", "8.1.0", "8.1"),
])
def test_where_toolkits_are(host: Host, folder: str, version: str, option: str) -> None:
    where = toolkit(host, version, folder)
    seen = host.look()
    assert [(cann["folder"], cann["version"], cann["cann"]) for cann in seen["cann"]] == [(str(where), version, option)]
    assert f"--cann {option} fits CANN {version}." in seen["advice"]


def test_a_link_is_not_a_second_installation(host: Host) -> None:
    (toolkit(host).parent / "latest").symlink_to("8.1.RC1")
    assert len(host.look()["cann"]) == 1
    toolkit(host, "8.5.0", "usr/local/Ascend/cann-8.5.0")
    seen = host.look()
    assert [cann["cann"] for cann in seen["cann"]] == ["8.1", "8.5"] and any("2 installations" in s for s in seen["advice"])
    host.variables["ASCEND_HOME_PATH"] = str(host.root / "usr/local/Ascend/cann-8.5.0")
    assert host.look()["options"]["cann"] == "8.5"


def test_version_info_serves_where_the_toolkits_file_is_missing(host: Host) -> None:
    host.write(f"{TOOLKIT}/compiler/version.info", "Version=7.7.0.1.238\nversion_dir=8.1.RC1\ntimestamp=20250321\n")
    assert host.look()["cann"][0]["version"] == "8.1.RC1"


def test_a_release_without_data_says_which_there_are(host: Host) -> None:
    toolkit(host, "7.0.0")
    seen = host.look()
    assert seen["cann"][0]["cann"] is None and seen["options"]["cann"] is None
    assert any("no data of CANN 7.0.0" in s and "8.1" in s for s in seen["advice"])


@pytest.mark.parametrize(("name", "target"), [("910B3", "ascend910b"), ("310P3", "ascend310p"), ("910A", "ascend910")])
def test_the_npu_decides_the_target(host: Host, name: str, target: str) -> None:
    host.npus(name, name)
    toolkit(host)
    seen = host.look()
    assert seen["npu"] == [{"name": name, "soc_version": f"Ascend{name}", "target": target, "count": 2}]
    assert (seen["npu_smi"], seen["options"]["target"]) == ("25.5.1", target)
    assert f"For models of this host: `ascend-fuse optimize MODEL.onnx --target {target} --cann 8.1`." in seen["advice"]


def test_an_a3_is_asked_for_the_rest_of_its_name(host: Host) -> None:
    host.npus("Ascend910")
    host.write("board.txt", "        NPU ID                         : 0\n        Chip Name                      : Ascend910\n"
               "        NPU Name                       : 9391\n")
    host.script("programs/npu-smi", f'[ "$2" = -t ] && exec cat {host.root}/board.txt\ncat {host.root}/smi.txt')
    assert host.look()["npu"] == [{"name": "Ascend910_9391", "soc_version": "Ascend910_9391", "target": "ascend910_93", "count": 1}]


def test_a_chip_without_data(host: Host) -> None:
    host.npus("777Z")
    seen = host.look()
    assert seen["npu"][0]["target"] is None and any("no data of the NPU 777Z" in s for s in seen["advice"])


@pytest.mark.parametrize("script", ["sleep 60 & sleep 60", "exit 1", "yes"], ids=["hangs", "fails", "prints without end"])
def test_an_npu_smi_that_is_of_no_use(host: Host, script: str) -> None:
    host.script("programs/npu-smi", script)
    before = time.monotonic()
    seen = host.look()
    assert time.monotonic() - before < 12
    assert seen["npu_smi"] == "does not answer" and seen["npu"] == []


def test_atc_and_the_plugin(host: Host) -> None:
    folder = toolkit(host)
    host.script(f"{TOOLKIT}/bin/atc", "exit 0")
    seen = host.look()
    assert seen["atc"] == f"{folder}/bin/atc" and not seen["atc_in_path"]
    assert any("set_env.sh" in s for s in seen["advice"]) and not seen["options"]["plugin"]
    host.write(f"{TOOLKIT}/opp/vendors/ascend_fuse/framework/onnx/libascend_fuse_onnx_plugin.so", "")
    host.variables["PATH"] = f"{folder}/bin:{host.programs}:/usr/bin:/bin"
    seen = host.look()
    assert seen["atc_in_path"] and seen["options"]["plugin"] and "The op plugin is installed: --plugin adds nodes that need it." in seen["advice"]
    host.variables["ASCEND_CUSTOM_OPP_PATH"] = str(host.root / "mine")
    host.write("mine/framework/onnx/libascend_fuse_onnx_plugin.so", "")
    assert len(host.look()["op_plugin"]) == 2


def test_python_and_its_packages(host: Host) -> None:
    seen = host.look()
    assert set(seen["packages"]) == {"numpy", "onnx", "onnxruntime"} and seen["python_version"] == ".".join(map(str, sys.version_info[:3]))
    assert all(seen["packages"].values())  # those of the tests
    host.script("programs/python3", "exit 1")
    seen = host.look()
    assert seen["python"] is None and any("Python was not found" in s for s in seen["advice"])


def test_files_that_say_nothing(host: Host) -> None:
    host.write(f"{TOOLKIT}/aarch64-linux/ascend_toolkit_install.info", "\x00\xff not a file of this kind \x1b[31m\n==\n")
    host.write("usr/local/Ascend/driver/version.info", "Version=25.5.1\x1b[31m\n")
    seen = host.look()
    assert seen["cann"] == [] and "\x1b" not in host.run()
    assert os.path.basename(seen["driver"]).startswith("25.5.1")
