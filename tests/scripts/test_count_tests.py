"""scripts/count_tests.py counts cases, and the failures that have none."""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).parents[2] / "scripts" / "count_tests.py"
PASS = '<testcase name="a"/>'
SKIP = '<testcase name="b"><skipped/></testcase>'
FAIL = '<testcase name="c"><failure/></testcase>'


def count(cases, result="OK", *options):
    """Exit code and last line for one program with these cases and this result."""
    with tempfile.TemporaryDirectory() as folder:
        logs = pathlib.Path(folder, "meson-logs")
        logs.mkdir()
        logs.joinpath("testlog.junit.xml").write_text(
            f'<testsuites><testsuite name="npyfs.t">{cases}</testsuite></testsuites>')
        logs.joinpath("testlog.json").write_text(
            json.dumps({"name": "npyfs:unit / t", "result": result}) + "\n")
        done = subprocess.run([sys.executable, SCRIPT, *options, logs], capture_output=True,
                              text=True)
        return done.returncode, done.stdout.splitlines()[-1]


class CountTests(unittest.TestCase):
    def test_cases(self):
        self.assertEqual(count(PASS + PASS + SKIP), (0, "2 passed, 0 failed, 1 skipped"))
        self.assertEqual(count(PASS + FAIL, "FAIL"), (1, "1 passed, 1 failed, 0 skipped"))

    def test_a_program_that_died_is_a_failure(self):
        self.assertEqual(count(PASS, "ERROR"), (1, "1 passed, 1 failed, 0 skipped"))
        self.assertEqual(count(PASS, "TIMEOUT"), (1, "1 passed, 1 failed, 0 skipped"))

    def test_nothing_run_is_not_a_pass(self):
        self.assertEqual(count(""), (1, "0 passed, 0 failed, 0 skipped"))
        self.assertEqual(count(SKIP), (1, "0 passed, 0 failed, 1 skipped"))

    def test_a_failed_build_is_a_failure(self):
        self.assertEqual(count(PASS, "OK", "--failed", "the build failed"),
                         (1, "1 passed, 1 failed, 0 skipped"))


if __name__ == "__main__":
    unittest.main()
