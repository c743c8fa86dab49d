"""tap.py reports every test once, and fails where one of them did."""

import pathlib
import subprocess
import sys
import tempfile
import textwrap
import unittest

RUNNER = pathlib.Path(__file__).with_name("tap.py")


def run(body, *arguments):
    """Exit code and lines of the runner over a file of one class with this body."""
    text = "import sys\nimport unittest\n\n\nclass Tests(unittest.TestCase):\n"
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "test_it.py")
        path.write_text(text + textwrap.indent(textwrap.dedent(body), "    "))
        done = subprocess.run([sys.executable, RUNNER, path, *arguments], capture_output=True,
                              text=True)
        return done.returncode, done.stdout.splitlines()


class Tap(unittest.TestCase):
    def test_success_and_skip(self):
        self.assertEqual(run("""
            def test_a(self):
                pass

            @unittest.skip("why")
            def test_b(self):
                pass
            """), (0, ["ok 1 - Tests.test_a", "ok 2 - Tests.test_b # SKIP why", "1..2"]))

    def test_failure_and_error(self):
        code, lines = run("""
            def test_a(self):
                self.fail("no")

            def test_b(self):
                raise ValueError

            def test_c(self):
                for i in range(3):
                    with self.subTest(i=i):
                        self.assertNotEqual(i, 1)
            """)
        self.assertEqual(code, 1)
        self.assertEqual(lines, ["not ok 1 - Tests.test_a", "not ok 2 - Tests.test_b",
                                 "not ok 3 - Tests.test_c (i=1)", "1..3"])

    def test_an_expected_failure_is_counted(self):
        self.assertEqual(run("""
            @unittest.expectedFailure
            def test_a(self):
                self.fail("no")
            """), (0, ["ok 1 - Tests.test_a", "1..1"]))

    def test_an_unexpected_success_is_a_failure(self):
        self.assertEqual(run("""
            @unittest.expectedFailure
            def test_a(self):
                pass
            """), (1, ["not ok 1 - Tests.test_a", "1..1"]))

    def test_no_test_is_a_failure(self):
        self.assertEqual(run("pass"), (1, ["1..0"]))

    def test_a_class_that_cannot_be_set_up_is_a_failure(self):
        code, lines = run("""
            @classmethod
            def setUpClass(cls):
                raise OSError

            def test_a(self):
                pass
            """)
        self.assertEqual((code, lines[-1]), (1, "1..1"))
        self.assertTrue(lines[0].startswith("not ok 1 "), lines)

    def test_arguments_are_the_file_s(self):
        self.assertEqual(run("""
            def test_a(self):
                self.assertEqual(sys.argv[1:], ["x", "y"])
            """, "x", "y"), (0, ["ok 1 - Tests.test_a", "1..1"]))


if __name__ == "__main__":
    unittest.main()
