"""Exit codes and sentences of the program: 0 done, 1 an error, 2 wrong usage, 3 a requirement is not met."""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOOL = pathlib.Path(os.environ.get("ASCEND_FUSE_BUILD", ROOT / "build")) / "ascend-fuse"


@unittest.skipUnless(TOOL.exists(), f"{TOOL} is not built")
class CommandLineTest(unittest.TestCase):
    def run_tool(self, *arguments, **options):
        return subprocess.run([str(TOOL), *arguments], capture_output=True, text=True, check=False, **options)

    def expect(self, code, sentence, *arguments):
        run = self.run_tool(*arguments)
        self.assertEqual(run.returncode, code, run.stderr)
        self.assertIn(sentence, run.stderr)
        self.assertEqual(run.stdout, "")

    def test_wrong_usage(self):
        self.expect(2, "A subcommand is required")
        self.expect(2, "bogus is not a command; there are optimize, list, analyze, check, expand, verify, precision, diff, report, reduce, print, rules, targets, plugin, explain, doctor, man, completion", "bogus")
        self.expect(2, "model is required", "optimize")
        self.expect(2, "there are ascend310b, ascend310p, ascend910", "optimize", "m.onnx", "--target", "h100")
        self.expect(2, "there are 2026.07, 8.1", "optimize", "m.onnx", "--cann", "1")
        self.expect(2, "ATC's words are force_fp16", "list", "m.onnx", "--precision-mode", "half")
        self.expect(2, "no emission style is called Q", "optimize", "m.onnx", "--style", "Q")
        self.expect(2, "the kinds are rms_norm, layer_norm", "optimize", "m.onnx", "--require", "attention,norms")
        for dim in ("seq", "seq=", "=3", "seq=a b", "seq=seq", "seq=3..1", "seq=1..", "seq=-1", "seq=1..8:", "seq=1..8:0", "seq=5..7:8", "seq=8:2"):
            self.expect(2, f"--dim {dim}: expected name=N", "optimize", "m.onnx", "--dim", dim)

    def test_missing_files(self):
        self.expect(1, "/nowhere/m.onnx", "optimize", "/nowhere/m.onnx")
        self.expect(1, "/nowhere/m.onnx", "print", "/nowhere/m.onnx")
        self.expect(1, "/nowhere/m.onnx", "expand", "/nowhere/m.onnx")
        self.expect(1, "/nowhere/a.rule cannot be read", "list", "m.onnx", "--rules", "/nowhere/a.rule")

    def test_help_and_version(self):
        for command in ("optimize", "list", "expand", "verify", "print", "rules", "explain"):
            run = self.run_tool(command, "--help")
            self.assertEqual(run.returncode, 0)
            self.assertIn("Usage: ascend-fuse " + command, run.stdout)
        self.assertIn("ascend-fuse", self.run_tool("--version").stdout)

    def test_verify_says_that_python_is_missing(self):
        run = self.run_tool("verify", "a.onnx", "b.onnx", env={"PATH": "/nowhere"})
        self.assertEqual(run.returncode, 1)
        self.assertIn("python3 was not found", run.stderr)

    def test_verify_of_a_program_alone_says_that_the_package_is_missing(self):
        with tempfile.TemporaryDirectory() as folder:
            program = shutil.copy(TOOL, folder)
            run = subprocess.run([program, "verify", "a.onnx", "b.onnx"], capture_output=True, text=True, env={"PATH": os.environ["PATH"]})
        self.assertEqual(run.returncode, 1)
        self.assertRegex(run.stderr, "^ascend-fuse: this command runs in the Python package ascend_fuse, which /.*python3.* does not have: pip install")
        self.assertEqual(run.stderr.count("\n"), 1)

    def test_verify_of_a_program_alone_finds_an_installed_package(self):
        with tempfile.TemporaryDirectory() as folder:
            program = shutil.copy(TOOL, folder)
            package = ROOT / "tools" / "python"
            run = subprocess.run([program, "verify", "/nowhere/a.onnx", "/nowhere/b.onnx"], capture_output=True, text=True,
                                 env={"PATH": os.path.dirname(sys.executable), "PYTHONPATH": str(package)})
        self.assertEqual(run.returncode, 1)
        self.assertIn("/nowhere/a.onnx", run.stderr)
        self.assertNotIn("Traceback", run.stderr)


if __name__ == "__main__":
    unittest.main()
