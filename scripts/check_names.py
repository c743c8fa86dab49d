#!/usr/bin/python3
"""Fails if one name in namespace npyfs is defined by two files: check_names.py [ROOT]

A class, struct, union or enum that lies in the namespace itself is one thing in the whole program.
Two files that each define another one by the same name still compile and link, and which of their
functions is called is then up to the linker. What lies in an anonymous namespace or within another
class is its file's own.
"""

import pathlib
import re
import sys

ROOMS = ("formats", "threads", "kept", "fs", "cli")
# What is no code: a brace in it opens nothing.
SKIPPED = re.compile(r'''//[^\n]*|/\*.*?\*/|R"([^(\s]*)\(.*?\)\1"|"(?:[^"\\\n]|\\.)*"'''
                     r"""|(?<![0-9A-Fa-f])'(?:[^'\\\n]|\\.)+'|^[ \t]*#(?:[^\n\\]|\\.)*""",
                     re.DOTALL | re.MULTILINE)
NAMESPACE = re.compile(r"(?:inline\s+)?namespace(?:\s+([\w:]+))?\s*$")
TYPE = re.compile(r"(?:template\s*<.*>\s*)?(?:class|struct|union|enum(?:\s+(?:class|struct))?)\s+"
                  r"(?:\w+\s*\((?:[^()]|\([^()]*\))*\)\s*|\[\[.*?\]\]\s*)*(\w+(?:\s*<[^{]*>)?)\s*(?:final\s*)?"
                  r"(?::(?!:).*)?$", re.DOTALL)

DECLARED = re.compile(r"(?:template\s*<.*>\s*)?(?:class|struct|union|enum(?:\s+(?:class|struct))?)\s+"
                      r"(\w+)\s*(?::\s*[\w:]+)?$", re.DOTALL)


def statements(text):
    """What stands in namespace npyfs itself before each `{` and each `;`: its words, that
    character, and the offset of the words, in the text without what is no code."""
    text = SKIPPED.sub(lambda match: re.sub(r"[^\n]", " ", match.group()), text)
    scopes = []
    head = 0  # where what stands before the next brace begins
    for match in re.finditer(r"[{};]", text):
        before, at = text[head:match.start()].strip(), head
        head = match.end()
        if match.group() == "}":
            if scopes:
                scopes.pop()
            continue
        if scopes == ["npyfs"]:
            yield before, match.group(), text.index(before, at)
        if match.group() == "{":
            namespace = NAMESPACE.match(before)
            scopes.append((namespace.group(1) or "") if namespace else None)


def types_of(text):
    """The types that a file defines in namespace npyfs itself: their names and lines."""
    for before, end, at in statements(text):
        if end == "{" and not NAMESPACE.match(before) and (found := TYPE.match(before)):
            line = text.count("\n", 0, at + found.start(1)) + 1
            yield re.sub(r"\s+", "", found.group(1)), line


def declared_types(text):
    """The types that a file declares in namespace npyfs itself and leaves to others to define."""
    for before, end, at in statements(text):
        if end == ";" and (found := DECLARED.match(before)):
            yield found.group(1), text.count("\n", 0, at + found.start(1)) + 1


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parents[1])
    files = sorted(p for room in ROOMS for p in (root / room).rglob("*") if p.suffix in (".h", ".cc"))
    places = {}
    for path in files:
        for name, line in types_of(path.read_text()):
            places.setdefault(name, []).append(f"{path.relative_to(root).as_posix()}:{line}")
    faults = [f"{found[-1]}: npyfs::{name} is defined in {found[0]}, too"
              for name, found in sorted(places.items()) if len(found) > 1]
    for fault in faults:
        print(fault)
    if not places:
        print(f"{root}: no types found")
    return 1 if faults or not places else 0


if __name__ == "__main__":
    sys.exit(main())
