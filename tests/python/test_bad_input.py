"""Files that are no models, broken models, and places that cannot be written to.

Whatever comes in: an exit code, never a signal; one sentence on stderr that names the file; no output and no
temporary file left; bounded time.
"""

from __future__ import annotations

import os
import random
import stat
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from conftest import Result, run, run_ok
from onnx import TensorProto, helper, numpy_helper

SECONDS = 10 if "asan" not in os.environ.get("ASCEND_FUSE_BUILD", "") else 60
ZOO_MODEL = "llama-sdpa-past-ts17-dynamic"
FLIPPED = ("llama-sdpa-past-ts17-dynamic", "gpt2-sdpa-nocache-dy18-dynamic", "t5-gated-sdpa-ts14-static",
           "llama-sdpa-nocache-ts17-static-tf4442")
# A quarter of them in --quick.
FLIPS = [pytest.param(seed, marks=[pytest.mark.slow] if seed >= 100 else []) for seed in range(400)]


def files_of(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def refuse(path: Path, *says: str, folder: Path | None = None, commands: tuple[str, ...] = ("optimize", "list", "expand", "print")) -> None:
    """Requires that each command refuses the file with one sentence that names it and holds the words."""
    before = files_of(folder or path.parent)
    for command in commands:
        arguments = [command, path]
        if command in ("optimize", "expand"):
            arguments += ["-o", path.parent / "out.onnx"]
        check_refusal(run(*arguments, timeout=SECONDS), path, says)
        assert files_of(folder or path.parent) == before, command


def check_refusal(result: Result, path: Path, says: tuple[str, ...] = ()) -> None:
    assert result.code == 1, f"exit code {result.code}: {result.err}"
    assert result.err.startswith("ascend-fuse: "), result.err
    assert result.err.count("\n") == 1 and result.err.endswith("\n"), result.err
    assert len(result.err) < 600, result.err
    assert path.name in result.err, result.err
    for words in says:
        assert words in result.err, result.err


def value(name: str, shape: tuple[int | str, ...] = (2, 2)) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)


def model_of(nodes: list[onnx.NodeProto], initializers: list[onnx.TensorProto] | None = None,
             functions: list[onnx.FunctionProto] | None = None, outputs: tuple[str, ...] = ("y",)) -> onnx.ModelProto:
    graph = helper.make_graph(nodes, "g", [value("x")], [value(name) for name in outputs], initializers or [])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("local", 1)]
    return helper.make_model(graph, opset_imports=opsets, functions=functions or [])


def write(path: Path, model: onnx.ModelProto) -> Path:
    path.write_bytes(model.SerializeToString())
    return path


def node(op: str, inputs: list[str], outputs: list[str], **attributes: object) -> onnx.NodeProto:
    return helper.make_node(op, inputs, outputs, name=outputs[0] + "_node", **attributes)


# Files that are not models.


def test_empty_file(tmp_path: Path) -> None:
    (tmp_path / "m.onnx").touch()
    refuse(tmp_path / "m.onnx", "empty")


def test_text_file(tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_text("This is the text of a letter, not a model.\n" * 20)
    refuse(tmp_path / "m.onnx")


def test_html_page_of_a_failed_download(tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_text("<!DOCTYPE html><html><head><title>404</title></head></html>")
    refuse(tmp_path / "m.onnx")


def test_git_lfs_pointer(tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_text("version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 12\n")
    refuse(tmp_path / "m.onnx")


def test_zeros(tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_bytes(bytes(10000))
    refuse(tmp_path / "m.onnx")


def test_random_bytes(tmp_path: Path) -> None:
    for seed in range(20):
        (tmp_path / "m.onnx").write_bytes(random.Random(seed).randbytes(5000))
        refuse(tmp_path / "m.onnx", commands=("optimize",))


def test_directory(tmp_path: Path) -> None:
    (tmp_path / "m.onnx").mkdir()
    refuse(tmp_path / "m.onnx", "directory")


def test_missing_file(tmp_path: Path) -> None:
    refuse(tmp_path / "m.onnx", "No such file")


def test_fifo(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "m.onnx")
    refuse(tmp_path / "m.onnx")


# Models cut short or damaged.


@pytest.mark.parametrize("part", range(64))
def test_truncated(zoo: Path, tmp_path: Path, part: int) -> None:
    data = (zoo / f"{ZOO_MODEL}.onnx").read_bytes()
    (tmp_path / "m.onnx").write_bytes(data[: len(data) * part // 64])
    refuse(tmp_path / "m.onnx", commands=("optimize",))


@pytest.mark.parametrize("seed", FLIPS)
def test_flipped_bytes(zoo: Path, tmp_path: Path, seed: int) -> None:
    """Flips 1 to 4 bytes, most of them where the graph is and not in the weights after it."""
    rng = random.Random(seed)
    data = bytearray((zoo / f"{FLIPPED[seed % len(FLIPPED)]}.onnx").read_bytes())
    for _ in range(rng.randint(1, 4)):
        graph = min(len(data), 150_000)
        at = rng.randrange(len(data)) if rng.random() < 0.2 else rng.randrange(graph)
        data[at] ^= 1 << rng.randrange(8) if rng.random() < 0.7 else rng.randrange(1, 256)
    path = tmp_path / "m.onnx"
    path.write_bytes(data)
    result = run("optimize", path, "-o", tmp_path / "out.onnx", "--quiet", timeout=SECONDS)
    if result.code == 4:  # a model still, with an operator that ATC has no parser for
        assert "not written: ATC" in result.err, result.err
    elif result.code != 0:
        check_refusal(result, path)
    if result.code != 0:
        assert files_of(tmp_path) == {"m.onnx"}
        return
    assert files_of(tmp_path) == {"m.onnx", "out.onnx"}
    again = run("optimize", tmp_path / "out.onnx", "-o", tmp_path / "again.onnx", "--quiet", timeout=SECONDS)
    assert again.code == 0, again.err
    assert (tmp_path / "again.onnx").read_bytes() == (tmp_path / "out.onnx").read_bytes(), "a second run changes the file"


def field(number: int, wire: int, payload: bytes) -> bytes:
    """One protobuf field."""
    key = number << 3 | wire
    return (bytes([key]) if key < 128 else bytes([key & 127 | 128, key >> 7])) + payload


def length_delimited(number: int, payload: bytes) -> bytes:
    length = len(payload)
    size = b""
    while length >= 128:
        size += bytes([length & 127 | 128])
        length >>= 7
    return field(number, 2, size + bytes([length]) + payload)


@pytest.mark.parametrize("data", [
    pytest.param(field(7, 0, b"\x05"), id="graph-is-a-number"),
    pytest.param(length_delimited(1, b"8") + length_delimited(7, b""), id="ir-version-is-text"),
    pytest.param(length_delimited(7, field(1, 0, b"\x01")), id="node-is-a-number"),
    pytest.param(length_delimited(7, length_delimited(1, field(1, 5, b"abcd"))), id="input-name-is-a-float"),
    pytest.param(length_delimited(7, length_delimited(5, length_delimited(2, b"1"))), id="data-type-is-text"),
    pytest.param(field(7, 2, b"\xff\xff\xff\xff\xff\xff\xff\xff\x7f"), id="length-beyond-the-file"),
    pytest.param(field(7, 2, b"\xff" * 11), id="length-without-end"),
    pytest.param(field(7, 3, b""), id="group"),
    pytest.param(field(7, 7, b"\x00"), id="wire-type-7"),
    pytest.param(b"\x00\x01", id="field-number-0"),
])
def test_wrong_wire_format(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "m.onnx").write_bytes(data)
    refuse(tmp_path / "m.onnx")


# Graphs that are not graphs.


def test_cycle(tmp_path: Path) -> None:
    nodes = [node("Add", ["x", "b"], ["a"]), node("Relu", ["a"], ["b"]), node("Relu", ["b"], ["y"])]
    refuse(write(tmp_path / "m.onnx", model_of(nodes)), "cycle")


def test_node_that_reads_itself(tmp_path: Path) -> None:
    refuse(write(tmp_path / "m.onnx", model_of([node("Add", ["x", "y"], ["y"])])), "cycle")


def test_missing_tensor(tmp_path: Path) -> None:
    refuse(write(tmp_path / "m.onnx", model_of([node("Add", ["x", "nothing"], ["y"])])), "nothing")


def test_node_without_an_input_that_it_needs(tmp_path: Path) -> None:
    """Found by optimize_fuzz: what follows the channels of a rotation asked for the input of this Neg."""
    nodes = [node("Neg", [], ["n"]), node("Add", ["x", "n"], ["y"])]
    refuse(write(tmp_path / "m.onnx", model_of(nodes)), "has no input X, which Neg needs", commands=("optimize", "list", "expand", "check"))
    nodes = [node("Add", ["x", ""], ["y"])]
    refuse(write(tmp_path / "m.onnx", model_of(nodes)), "has no input B", commands=("optimize",))
    nodes = [node("Gelu", [], ["y"])]  # which is of opset 20
    refuse(write(tmp_path / "m.onnx", model_of(nodes)), "has no input X, which Gelu needs", commands=("optimize", "check"))


def test_node_without_the_output_that_it_gives(tmp_path: Path) -> None:
    """Found by optimize_fuzz beside an attention: its probabilities had a second MatMul without a name for what it computes."""
    for outputs in ([], [""]):
        nodes = [node("Neg", ["x"], ["y"]), helper.make_node("MatMul", ["x", "y"], outputs, name="nothing")]
        says = "'nothing' (MatMul) has no output Y, which MatMul gives"
        refuse(write(tmp_path / "m.onnx", model_of(nodes)), says, commands=("optimize", "list", "expand", "check"))
    nodes = [node("Neg", ["x"], ["y"]), helper.make_node("Split", ["y"], [], axis=0)]
    refuse(write(tmp_path / "m.onnx", model_of(nodes)), "has no output outputs, which Split gives", commands=("optimize",))
    for outputs in ([""], ["", "z"]):  # nobody asks for the part, which ONNX Runtime takes; written for another opset it has no name
        nodes = [helper.make_node("Split", ["x"], outputs, axis=0, num_outputs=len(outputs)), node("Gelu", ["x"], ["y"])]
        model = model_of(nodes)
        model.opset_import[0].version = 20
        write(tmp_path / "m.onnx", model)
        run_ok("optimize", "m.onnx", "-o", "n.onnx", cwd=tmp_path)
        assert onnx.load(tmp_path / "n.onnx").opset_import[0].version < 20


def test_reader_that_gives_nothing(tmp_path: Path) -> None:
    """Found by optimize_fuzz: what reads the probabilities of an attention was asked for its output."""
    nodes = [node("Transpose", ["x"], ["t"]), node("MatMul", ["x", "t"], ["s"]), node("Softmax", ["s"], ["p"]),
             helper.make_node("Print", ["p"], [], domain="of.somebody"), node("MatMul", ["p", "x"], ["y"])]
    model = model_of(nodes)
    model.opset_import.append(helper.make_opsetid("of.somebody", 1))
    write(tmp_path / "m.onnx", model)
    run_ok("optimize", "m.onnx", "-o", "n.onnx", "--force", cwd=tmp_path)


@pytest.mark.parametrize("imports", [{}, {"low": 17}, {"": 0}, {"": -3}])
def test_operators_of_no_version(tmp_path: Path, imports: dict[str, int]) -> None:
    """Found by optimize_fuzz: nothing was known of the operators of such a model, not even that this one has an input."""
    model = model_of([node("Softmax", ["x"], ["y"])])
    del model.opset_import[:]
    model.opset_import.extend(helper.make_opsetid(domain, version) for domain, version in imports.items())
    refuse(write(tmp_path / "m.onnx", model), "says no version of those", commands=("optimize", "list", "analyze", "expand", "check"))


def test_functions_bring_their_versions(tmp_path: Path) -> None:
    """A model that calls nothing but functions imports no operators of ONNX itself."""
    body = helper.make_function("local", "F", ["a"], ["b"], [node("Relu", ["a"], ["b"])], [helper.make_opsetid("", 17)])
    model = model_of([helper.make_node("F", ["x"], ["y"], domain="local")], functions=[body])
    del model.opset_import[0]
    write(tmp_path / "m.onnx", model)
    run_ok("optimize", "m.onnx", "-o", "n.onnx", cwd=tmp_path)
    assert {entry.domain: entry.version for entry in onnx.load(tmp_path / "n.onnx").opset_import}[""] == 17


def test_missing_output(tmp_path: Path) -> None:
    refuse(write(tmp_path / "m.onnx", model_of([node("Relu", ["x"], ["z"])])), "y")


def test_value_computed_twice(tmp_path: Path) -> None:
    nodes = [node("Relu", ["x"], ["y"]), helper.make_node("Abs", ["x"], ["y"], name="second")]
    refuse(write(tmp_path / "m.onnx", model_of(nodes)), "'y'")


def test_value_that_is_an_input_too(tmp_path: Path) -> None:
    refuse(write(tmp_path / "m.onnx", model_of([node("Relu", ["y"], ["x"]), node("Abs", ["x"], ["y"])])), "'x'")


def test_two_weights_of_one_name(tmp_path: Path) -> None:
    weights = [numpy_helper.from_array(np.ones((2, 2), np.float32), "w")] * 2
    refuse(write(tmp_path / "m.onnx", model_of([node("Add", ["x", "w"], ["y"])], weights)), "'w'")


def function(name: str, calls: str) -> onnx.FunctionProto:
    return helper.make_function("local", name, ["a"], ["b"], [helper.make_node(calls, ["a"], ["b"], domain="local")],
                                [helper.make_opsetid("", 17), helper.make_opsetid("local", 1)])


@pytest.mark.parametrize("functions", [[("f", "f")], [("f", "g"), ("g", "f")]], ids=["itself", "each-other"])
def test_local_functions_that_call_themselves(tmp_path: Path, functions: list[tuple[str, str]]) -> None:
    """They are refused, or left alone: never expanded without end."""
    call = helper.make_node("f", ["x"], ["y"], domain="local", name="call")
    path = write(tmp_path / "m.onnx", model_of([call], functions=[function(*pair) for pair in functions]))
    for command in ("optimize", "expand"):
        result = run(command, path, "-o", tmp_path / "out.onnx", "--quiet", timeout=SECONDS)
        if result.code == 0:
            assert (tmp_path / "out.onnx").read_bytes() == path.read_bytes()
        elif result.code == 4:
            assert "ATC knows no local functions" in result.err and files_of(tmp_path) == {"m.onnx"}
        else:
            check_refusal(result, path)


@pytest.mark.parametrize("depth", [100, 20000])
def test_deeply_nested_bodies(tmp_path: Path, depth: int) -> None:
    graph = b""
    for _ in range(depth):
        attribute = length_delimited(1, b"then_branch") + length_delimited(6, graph) + field(20, 0, b"\x05")
        graph = length_delimited(1, length_delimited(4, b"If") + length_delimited(5, attribute))
    path = tmp_path / "m.onnx"
    path.write_bytes(length_delimited(7, graph))
    refuse(path)


def test_long_chain(tmp_path: Path) -> None:
    count = 20000
    nodes = [node("Relu", [f"v{i}" if i else "x"], [f"v{i + 1}" if i + 1 < count else "y"]) for i in range(count)]
    path = write(tmp_path / "m.onnx", model_of(nodes))
    result = run("optimize", path, "-o", tmp_path / "out.onnx", "--quiet", timeout=SECONDS)
    assert result.code == 0, result.err
    # All of it but the import that no node needs.
    assert onnx.load(tmp_path / "out.onnx").graph == onnx.load(path).graph


# Weights that are not what they say.


def weight(**fields: object) -> onnx.TensorProto:
    tensor = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[2, 2])
    for name, content in fields.items():
        if isinstance(content, list):
            getattr(tensor, name)[:] = content
        else:
            setattr(tensor, name, content)
    return tensor


@pytest.mark.parametrize("tensor", [
    pytest.param(weight(raw_data=b"12345"), id="too-few-bytes"),
    pytest.param(weight(raw_data=bytes(64)), id="too-many-bytes"),
    pytest.param(weight(raw_data=bytes(16), dims=[-2, -2]), id="negative-dims"),
    pytest.param(weight(raw_data=bytes(16), dims=[1 << 62, 4]), id="elements-overflow"),
])
def test_weight_that_contradicts_itself(tmp_path: Path, tensor: onnx.TensorProto) -> None:
    path = write(tmp_path / "m.onnx", model_of([node("Add", ["x", "w"], ["y"])], [tensor]))
    result = run("optimize", path, "-o", tmp_path / "out.onnx", timeout=SECONDS)
    check_refusal(result, path, ("w",))
    assert files_of(tmp_path) == {"m.onnx"}


def external(folder: Path, location: str, offset: str = "0", length: str = "16") -> Path:
    tensor = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[2, 2], data_location=TensorProto.EXTERNAL)
    for key, text in (("location", location), ("offset", offset), ("length", length)):
        entry = tensor.external_data.add()
        entry.key, entry.value = key, text
    return write(folder / "m.onnx", model_of([node("Add", ["x", "w"], ["y"])], [tensor]))


def in_model_folder(tmp_path: Path) -> Path:
    folder = tmp_path / "model"
    folder.mkdir()
    (tmp_path / "secret.bin").write_bytes(bytes(64))
    return folder


def test_external_data_missing(tmp_path: Path) -> None:
    refuse(external(tmp_path, "weights.bin"), "weights.bin", commands=("optimize",))


def test_external_data_too_short(tmp_path: Path) -> None:
    (tmp_path / "weights.bin").write_bytes(bytes(8))
    refuse(external(tmp_path, "weights.bin"), "weights.bin", commands=("optimize",))


@pytest.mark.parametrize(("offset", "length"), [("-4", "16"), ("9223372036854775807", "16"), ("0", "-1"), ("0", "8"),
                                                ("abc", "16"), ("0", "99999999999999999999")])
def test_external_data_with_wrong_numbers(tmp_path: Path, offset: str, length: str) -> None:
    (tmp_path / "weights.bin").write_bytes(bytes(64))
    refuse(external(tmp_path, "weights.bin", offset, length), "w", commands=("optimize",))


def test_external_data_is_a_directory(tmp_path: Path) -> None:
    (tmp_path / "weights.bin").mkdir()
    refuse(external(tmp_path, "weights.bin"), "weights.bin", commands=("optimize",))


LEAVES: dict[str, Callable[[Path], str]] = {
    "absolute": lambda folder: str(folder.parent / "secret.bin"),
    "parent": lambda folder: "../secret.bin",
    "inner-parent": lambda folder: "sub/../../secret.bin",
    "empty": lambda folder: "",
}


@pytest.mark.parametrize("location", LEAVES.values(), ids=LEAVES.keys())
def test_external_data_outside_the_folder(tmp_path: Path, location: Callable[[Path], str]) -> None:
    folder = in_model_folder(tmp_path)
    (folder / "sub").mkdir()
    refuse(external(folder, location(folder)), "w", commands=("optimize",))


@pytest.mark.parametrize("through", ["file", "folder"])
def test_external_data_behind_a_link_out_of_the_folder(tmp_path: Path, through: str) -> None:
    folder = in_model_folder(tmp_path)
    if through == "file":
        (folder / "weights.bin").symlink_to(tmp_path / "secret.bin")
        path = external(folder, "weights.bin")
    else:
        (folder / "sub").symlink_to(tmp_path)
        path = external(folder, "sub/secret.bin")
    refuse(path, commands=("optimize",))


# Places that cannot be written to.


@pytest.fixture
def good(tmp_path: Path) -> Path:
    (tmp_path / "model").mkdir()
    weights = [numpy_helper.from_array(np.ones((2, 2), np.float32), "w")]
    return write(tmp_path / "model" / "m.onnx", model_of([node("Add", ["x", "w"], ["y"])], weights))


def test_output_folder_that_does_not_exist(good: Path, tmp_path: Path) -> None:
    result = run("optimize", good, "-o", tmp_path / "nowhere" / "out.onnx")
    check_refusal(result, tmp_path / "nowhere")
    assert not (tmp_path / "nowhere").exists()


def test_output_is_a_folder(good: Path, tmp_path: Path) -> None:
    """The model is written into the folder; the data of an expanded one needs a name."""
    (tmp_path / "out").mkdir()
    run_ok("optimize", good, "-o", tmp_path / "out")
    assert [path.suffix for path in sorted((tmp_path / "out").iterdir())] == [".json", ".onnx"]
    check_refusal(run("expand", good, "-o", tmp_path / "out"), tmp_path / "out")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_output_folder_without_permission(good: Path, tmp_path: Path) -> None:
    folder = tmp_path / "closed"
    folder.mkdir(mode=stat.S_IRUSR | stat.S_IXUSR)
    check_refusal(run("optimize", good, "-o", folder / "out.onnx"), folder)


def test_output_on_a_full_device(good: Path) -> None:
    result = run("optimize", good, "-o", "/dev/full", "--quiet")
    assert result.code in (0, 1), result.err  # A device is not replaced by a file.
    assert stat.S_ISCHR(os.stat("/dev/full").st_mode)


def test_report_to_a_full_device(good: Path, tmp_path: Path) -> None:
    check_refusal(run("optimize", good, "-o", tmp_path / "out.onnx", "--json", "/dev/full"), Path("/dev/full"))


def test_output_over_the_input(zoo: Path, tmp_path: Path) -> None:
    data = (zoo / f"{ZOO_MODEL}.onnx").read_bytes()
    (tmp_path / "m.onnx").write_bytes(data)
    assert run("optimize", tmp_path / "m.onnx", "-o", tmp_path / "other.onnx", "--quiet").code == 0
    assert run("optimize", tmp_path / "m.onnx", "-o", tmp_path / "m.onnx", "--quiet").code == 0
    assert (tmp_path / "m.onnx").read_bytes() == (tmp_path / "other.onnx").read_bytes() != data
    assert files_of(tmp_path) == {"m.onnx", "other.onnx"}


def external_good(folder: Path) -> Path:
    (folder / "weights.bin").write_bytes(np.arange(4, dtype=np.float32).tobytes())
    return external(folder, "weights.bin")


def test_output_beside_external_data_refers_to_it(tmp_path: Path) -> None:
    path = external_good(tmp_path)
    result = run("optimize", path, "-o", tmp_path / "out.onnx", "--quiet")
    assert result.code == 0, result.err
    assert files_of(tmp_path) == {"m.onnx", "weights.bin", "out.onnx"}
    assert onnx.load(tmp_path / "out.onnx", load_external_data=False).graph.initializer[0].external_data
    assert onnx.load(tmp_path / "out.onnx").graph.initializer[0].raw_data == (tmp_path / "weights.bin").read_bytes()


def test_output_elsewhere_with_external_data_is_complete(tmp_path: Path) -> None:
    folder, other = tmp_path / "model", tmp_path / "other"
    folder.mkdir()
    other.mkdir()
    path = external_good(folder)
    result = run("optimize", path, "-o", other / "out.onnx", "--quiet")
    if result.code:
        check_refusal(result, other / "out.onnx", ("weights.bin",))
        assert files_of(other) == set()
        return
    (folder / "weights.bin").rename(folder / "gone.bin")
    loaded = onnx.load(other / "out.onnx")  # Refuses data that is not there.
    assert loaded.graph.initializer[0].raw_data == np.arange(4, dtype=np.float32).tobytes()
