# SPDX-License-Identifier: Apache-2.0
#
# attrs.npy as numpy loads it. Usage: test_attrs.py PRINT_ATTRS CASES_JSON

import io
import json
import math
import subprocess
import sys
import unittest

try:
    import numpy as np
except ImportError:
    np = None

PRINT_ATTRS, CASES = sys.argv[1:3]


def from_marks(value):
    """What JSON can express of a case's value; None for a dict entry it cannot."""
    if isinstance(value, dict):
        if "__float__" in value:
            return float(value["__float__"])
        if any(key.startswith("__") for key in value):
            return None
        return {key: from_marks(item) for key, item in value.items()}
    if isinstance(value, list):
        return [from_marks(item) for item in value]
    return value


def load(text):
    npy = subprocess.run([PRINT_ATTRS], input=text.encode(), stdout=subprocess.PIPE, check=True)
    return np.load(io.BytesIO(npy.stdout), allow_pickle=True)


@unittest.skipIf(np is None, "needs numpy")
class Attrs(unittest.TestCase):
    def assert_same(self, found, expected):
        # repr tells 1 from 1.0 from True, -0.0 from 0.0, and keeps the order of keys.
        self.assertEqual(repr(found), repr(expected))

    def check(self, expected):
        array = load(json.dumps(expected))
        self.assertEqual((array.shape, array.dtype), ((), np.dtype(object)))
        self.assert_same(array[()], expected)

    def test_cases(self):
        with open(CASES, encoding="utf-8") as file:
            cases = json.load(file)
        for name, case in cases.items():
            with self.subTest(name):
                self.check(from_marks(case))

    def test_integers_at_every_edge(self):
        edges = [sign * (2**bits) + step for bits in range(0, 1020) for sign in (1, -1)
                 for step in (-1, 0, 1)]
        self.check({"edges": edges})

    def test_floats(self):
        self.check({"floats": [0.1, -0.0, 5e-324, 1.7976931348623157e308, 1e16, 1e-5, math.pi,
                               math.inf, -math.inf, math.nan]})

    def test_long_text(self):
        self.check({"x" * 300: "y" * 70000, "\U0001f3b5": "\x00\n\"\\"})

    def test_many_entries(self):
        self.check({str(i): [i] * 3 for i in range(5000)})


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
