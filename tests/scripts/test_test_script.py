"""scripts/test.sh does what its options say, and installs nothing where it only has to speak."""

import os
import pathlib
import subprocess
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).parents[2] / "scripts" / "test.sh"


class Options(unittest.TestCase):
    """On a machine where every package is missing and apt-get cannot install any."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        for name, does in (("dpkg-query", "exit 1"), ("sudo", 'exec "$@"'),
                           ("apt-get", f'echo "$@" >>"{self.folder}/installed"; exit 1')):
            program = self.folder / name
            program.write_text(f"#!/bin/sh\n{does}\n")
            program.chmod(0o755)

    def run_script(self, *options):
        path = f"{self.folder}:{os.environ['PATH']}"
        return subprocess.run([SCRIPT, *options], env={**os.environ, "PATH": path},
                              stdin=subprocess.DEVNULL, capture_output=True, text=True)

    def was_asked_to_install(self):
        return (self.folder / "installed").exists()

    def test_help_is_all_that_help_does(self):
        for option in ("--help", "-h"):
            done = self.run_script(option)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            for shown in ("--sanitize", "--ci", "N passed, N failed, N skipped"):
                self.assertIn(shown, done.stdout)
            self.assertNotIn("set -u", done.stdout)
        self.assertFalse(self.was_asked_to_install())

    def test_wrong_usage_exits_with_2(self):
        usage = self.run_script("--help").stdout
        for options in (["--wrong"], ["wrong"], ["--ci", "--wrong"], ["--sanitize", "--threads"]):
            done = self.run_script(*options)
            self.assertEqual((done.returncode, done.stdout, done.stderr), (2, "", usage), options)
        self.assertFalse(self.was_asked_to_install())

    def test_what_cannot_be_installed_is_a_failure(self):
        done = self.run_script("--format")
        self.assertEqual(done.returncode, 1)
        self.assertIn("packages are missing", done.stderr)
        self.assertTrue(self.was_asked_to_install())


if __name__ == "__main__":
    unittest.main()
