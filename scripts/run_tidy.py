#!/usr/bin/python3
"""Runs clang-tidy over formats/, threads/, kept/, fs/ and cli/: run_tidy.py [--jobs N] BUILD [ROOT]

BUILD is a configured build folder; ROOT, here by default, holds the sources and .clang-tidy. clang-tidy spends most of its time in the headers, for each file
anew. So the files of a folder are read as one, which includes them all, and take a quarter of that
time. A file whose own names clash with those of an earlier one is put into a further group.

Prints each finding once. Exits with 1 if there is one.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys

FLOORS = ("formats", "threads", "kept", "fs", "cli")
# These are of the files that are put together.
NOT_CHECKED = "-bugprone-suspicious-include"
WHERE = re.compile(r"^(\S+?):\d+:\d+: (?:fatal )?(?:error|warning): ")


def flags_of(root, commands, files):
    """All macros and include folders that one of the files is compiled with."""
    flags = ["-std=c++20", f"-I{root}"]
    for file in files:
        for word in shlex.split(commands[file]["command"]):
            if word.startswith("-I"):
                word = "-I" + os.path.join(commands[file]["directory"], word[2:])
            if word.startswith(("-I", "-D")) and word not in flags:
                flags.append(word)
    return [flag for flag in flags if flag != "-DNDEBUG"]


def place(root, line):
    """The file that a line of the compiler is about, from `root`; None for other lines."""
    found = WHERE.match(line)
    return os.path.relpath(os.path.join(root, found.group(1)), root) if found else None


def lines_of(root, *command):
    """Exit code and output of a command that is run in `root`."""
    done = subprocess.run(command, cwd=root, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True)
    return done.returncode, done.stdout.splitlines()


def findings(root, path, files, flags):
    """(first line, all lines) of each finding in these files, which are put together in `path`."""
    clashing = []
    while True:
        path.write_text("".join(f'#include "{file}"\n' for file in files))
        code, lines = lines_of(root, "clang++", "-fsyntax-only", "-ferror-limit=0", *flags, path)
        out = {place(root, line) for line in lines} & set(files[1:])
        if not code or not out:
            break
        clashing += [file for file in files if file in out]
        files = [file for file in files if file not in out]
    if not code:
        code, lines = lines_of(root, "clang-tidy", "--quiet", "--config-file=.clang-tidy",
                               f"--checks={NOT_CHECKED}", path, "--", *flags)
    found = []
    for line in lines:
        if place(root, line):
            found.append((line, [line]))
        elif found:
            found[-1][1].append(line)
    if code and not found:
        found.append((str(path), lines))
    return found + (findings(root, path, clashing, flags) if clashing else [])


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("root", nargs="?", type=pathlib.Path,
                        default=pathlib.Path(__file__).parents[1])
    options = parser.parse_args()
    root = options.root.resolve()
    commands = {}
    for command in json.loads((options.build / "compile_commands.json").read_text()):
        file = os.path.relpath(os.path.join(command["directory"], command["file"]), root)
        if file.startswith(FLOORS):
            commands[file] = command
    folders = {}
    for file in sorted(commands):
        folders.setdefault(os.path.dirname(file), []).append(file)
    work = options.build.resolve() / "tidy"
    work.mkdir(exist_ok=True)
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        runs = [pool.submit(findings, root, work / f"{folder.replace('/', '_')}.cc", files,
                            flags_of(root, commands, files))
                for folder, files in sorted(folders.items(), key=lambda each: -len(each[1]))]
        said = set()
        for run in runs:
            for finding, lines in run.result():
                if finding not in said:
                    print("\n".join(lines), flush=True)
                    said.add(finding)
    return 1 if said else 0


if __name__ == "__main__":
    sys.exit(main())
