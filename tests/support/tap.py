#!/usr/bin/python3
"""Runs unittest files and reports each test in TAP, which is what meson counts.

usage: tap.py FILE.py [ARGUMENT...]; the arguments are the file's own (sys.argv[1:] when it loads)
"""

import importlib.util
import pathlib
import sys
import traceback
import unittest


class TapResult(unittest.TestResult):
    def __init__(self):
        super().__init__()
        self.count = 0
        self.bad = 0

    def say(self, ok, test, directive="", details=""):
        self.count += 1
        self.bad += not ok
        name = test.id().split(".", 1)[-1].replace("#", "")
        print("ok" if ok else "not ok", self.count, "-", name + directive)
        for line in details.splitlines():
            print(line, file=sys.stderr)
        sys.stdout.flush()

    def addSuccess(self, test):
        self.say(True, test)

    def addExpectedFailure(self, test, error):
        self.say(True, test)

    def addUnexpectedSuccess(self, test):
        self.say(False, test, details=f"{test.id()}: succeeds, expected a failure")

    def addSkip(self, test, reason):
        self.say(True, test, f" # SKIP {reason}")

    def addFailure(self, test, error):
        self.say(False, test, details="".join(traceback.format_exception(*error)))

    def addError(self, test, error):
        self.addFailure(test, error)

    def addSubTest(self, test, subtest, error):
        if error is not None:
            self.say(False, subtest, details="".join(traceback.format_exception(*error)))


def main():
    path = pathlib.Path(sys.argv[1]).resolve()
    del sys.argv[0]
    sys.path[:0] = [str(path.parent), str(pathlib.Path(__file__).parent)]
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    result = TapResult()
    unittest.defaultTestLoader.loadTestsFromModule(module).run(result)
    print(f"1..{result.count}")
    return 1 if result.bad or not result.count else 0


if __name__ == "__main__":
    sys.exit(main())
