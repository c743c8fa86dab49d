#!/usr/bin/python3
"""Fails if an #include points up: check_floors.py [ROOT]

A file may include its own floor and those below it:

    formats/bytes, formats/format.h, formats/payloads, formats/archives, formats/<name>,
    formats/registry, formats/arrays, fs, cli

(what lies in formats/ itself is on the floor of format.h, but for the registry). One format does not include another. FUSE, threads and locks are known in fs/ only.
"""

import pathlib
import re
import sys

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^">]+)[">]', re.MULTILINE)
ROOMS = ("formats", "fs", "cli")
FLOORS = ("formats/bytes", "formats/format.h", "formats/payloads", "formats/archives",
          "formats/<name>", "formats/registry", "formats/arrays", "fs", "cli")
FUSE = re.compile(r"fuse3?[/_.]")
THREADS = {"atomic", "barrier", "condition_variable", "future", "latch", "mutex", "pthread.h",
           "semaphore", "shared_mutex", "stop_token", "thread"}
# The one bit that remembers a change is set by whichever thread sees it first.
# libhdf5 answers one question at a time, in a child process that readers wait for.
# Sources of chunks are numbered whichever thread makes them.
# Memory is kept for whichever thread takes some next, as malloc does.
# A store's open files are handed from reader to reader.
# Paused decoders are handed from reader to reader, without a lock.
ALLOWED = {("formats/bytes/block_memory.cc", "mutex"),
           ("formats/bytes/byte_source.h", "atomic"),
           ("formats/bytes/chunk_source.cc", "atomic"),
           ("formats/bytes/paused_decoders.h", "atomic"),
           ("formats/hdf5/child_process.h", "mutex"),
           ("formats/zarr/directory_store.cc", "mutex")}


def floor_of(path):
    """The floor of a path relative to the root; None for what is on none."""
    parts = path.split("/")
    if parts[0] in ("fs", "cli"):
        return parts[0]
    if parts[0] != "formats":
        return None
    if len(parts) == 2:
        return "formats/registry" if parts[1].startswith("registry.") else "formats/format.h"
    if parts[1] in ("bytes", "payloads", "archives", "arrays"):
        return f"formats/{parts[1]}"
    return "formats/<name>"


def faults_of(path, text):
    """What is wrong with the includes of one file, as lines of text."""
    floor = floor_of(path)
    if floor is None:
        yield f"{path}: is on no floor"
        return
    for match in INCLUDE.finditer(text):
        bracket, name = match.groups()
        place = f"{path}:{text.count(chr(10), 0, match.start()) + 1}: includes {name}"
        if floor != "fs" and FUSE.match(name):
            yield f"{place}, but only fs/ knows FUSE"
        if floor != "fs" and name in THREADS and (path, name) not in ALLOWED:
            yield f"{place}, but only fs/ knows threads and locks"
        if bracket != '"' and name.split("/")[0] not in ROOMS:
            continue
        target = floor_of(name)
        if target is None:
            yield f"{place}, which is on no floor"
        elif FLOORS.index(target) > FLOORS.index(floor):
            yield f"{place}, which is above {floor}"
        elif floor == target == "formats/<name>" and name.split("/")[1] != path.split("/")[1]:
            yield f"{place}, which is another format"


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parents[1])
    files = sorted(p for room in ROOMS for p in (root / room).rglob("*") if p.suffix in (".h", ".cc"))
    faults = [fault for path in files
              for fault in faults_of(path.relative_to(root).as_posix(), path.read_text())]
    for fault in faults:
        print(fault)
    if not files:
        print(f"{root}: no sources found")
    return 1 if faults or not files else 0


if __name__ == "__main__":
    sys.exit(main())
