"""The committed operator table is what tools/schema/generate.py writes from the pinned packages."""

import pathlib
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools" / "schema"))
import generate  # noqa: E402


class SchemaTableTest(unittest.TestCase):
    def test_committed_table_is_current(self):
        try:
            fresh = generate.generate()
        except ImportError as error:
            self.skipTest(str(error))
        committed = (ROOT / "ir" / "ops.txtpb").read_text()
        for expected, found in zip(fresh.splitlines(), committed.splitlines()):
            self.assertEqual(expected, found)
        self.assertEqual(fresh, committed)


if __name__ == "__main__":
    unittest.main()
