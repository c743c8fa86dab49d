#!/usr/bin/python3
"""Counts test cases: count_tests.py [--failed WHY] LOGS...

LOGS are the meson-logs folders of build folders. Prints what failed, a line per folder, and last
the sum, "N passed, N failed, N skipped". Exits with 1 if anything failed or nothing passed.
"""

import argparse
import json
import pathlib
import sys
import xml.etree.ElementTree as ElementTree

GOOD = {"OK", "SKIP", "EXPECTEDFAIL"}


def count(logs):
    passed, skipped, failed = 0, 0, []
    for suite in ElementTree.parse(logs / "testlog.junit.xml").getroot():
        for case in suite.iter("testcase"):
            name = f"{suite.get('name')}: {case.get('name')}"
            if case.find("failure") is not None or case.find("error") is not None:
                failed.append(name)
            elif case.find("skipped") is not None or case.get("status") == "notrun":
                skipped += 1
            else:
                passed += 1
    # A program that died (or ran out of time) after its last case has no failed case of its own.
    for line in (logs / "testlog.json").read_text().splitlines():
        test = json.loads(line)
        name = test["name"].split(" / ")[-1]
        if test["result"] not in GOOD and not any(name in case for case in failed):
            failed.append(f"{name}: {test['result']}")
    return passed, failed, skipped


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--failed", metavar="WHY", help="counts as one more failure")
    parser.add_argument("logs", nargs="*", type=pathlib.Path)
    options = parser.parse_args()
    passed, failed, skipped = 0, [], 0
    for logs in options.logs:
        p, f, s = count(logs)
        print(f"{logs.parent.name}: {p} passed, {len(f)} failed, {s} skipped")
        passed, failed, skipped = passed + p, failed + f, skipped + s
    if options.failed:
        failed.append(options.failed)
    for name in failed:
        print(f"FAILED {name}")
    print(f"{passed} passed, {len(failed)} failed, {skipped} skipped")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
