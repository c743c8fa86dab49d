"""scripts/run_tidy.py reads the files of a folder as one, and misses nothing in them."""

import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).parents[2] / "scripts" / "run_tidy.py"


def tidy(files):
    """Exit code and output for a tree of these files."""
    with tempfile.TemporaryDirectory() as name:
        root = pathlib.Path(name).resolve()
        for path, text in {".clang-tidy": "Checks: -*,modernize-use-nullptr\n"
                                          "WarningsAsErrors: '*'\nHeaderFilterRegex: '(fs|cli)/.*'\n",
                           **files}.items():
            (root / path).parent.mkdir(exist_ok=True)
            (root / path).write_text(text)
        (root / "build").mkdir()
        (root / "build/compile_commands.json").write_text(json.dumps(
            [{"directory": str(root / "build"), "file": f"../{path}", "command": "c++ -DONE=1"}
             for path in files if path.endswith(".cc")]))
        done = subprocess.run([sys.executable, SCRIPT, root / "build", root], capture_output=True,
                              text=True)
        return done.returncode, done.stdout + done.stderr


@unittest.skipUnless(shutil.which("clang-tidy") and shutil.which("clang++"),
                     "clang and clang-tidy are not installed")
class Tidy(unittest.TestCase):
    def clean(self, name):
        return f"namespace {{\nint one() {{ return ONE; }}\n}}\nint {name}() {{ return one(); }}\n"

    def test_names_may_clash(self):
        self.assertEqual(tidy({f"fs/{name}.cc": self.clean(name) for name in "abc"}), (0, ""))

    def test_each_file_and_header_is_read_and_a_finding_printed_once(self):
        header = '#pragma once\ninline int* of_header() { return 0; }\n'
        use = '#include "fs/h.h"\n'
        code, said = tidy({"fs/h.h": header,
                           "fs/a.cc": use + self.clean("a"),
                           "fs/b.cc": use + self.clean("b") + "int* of_b() { return 0; }\n",
                           "cli/c.cc": use + "int* of_c() { return 0; }\n"})
        self.assertEqual(code, 1)
        for place in ("fs/h.h:2", "fs/b.cc:6", "cli/c.cc:2"):
            self.assertEqual(said.count(place), 1, said)

    def test_what_does_not_compile_is_found(self):
        for files in ({"fs/a.cc": "int a\n"}, {"fs/a.cc": "", "fs/b.cc": "int b\n"}):
            code, said = tidy(files)
            self.assertEqual(code, 1)
            self.assertIn("error: expected ';'", said)


if __name__ == "__main__":
    unittest.main()
