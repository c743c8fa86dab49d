#!/usr/bin/python3
"""Fails if an #include or a forward declaration points up, or files are opened past a Storage:
check_floors.py [ROOT]

A file may include, and declare types of, its own floor and those below it:

    formats/bytes, formats/format.h, formats/payloads, formats/archives, formats/<name>,
    formats/registry, formats/tables, formats/arrays, threads, kept, index, fs, cli

(what lies in formats/ itself is on the floor of format.h, but for the registry). One format does not include another. FUSE is known in fs/ only, threads and locks in threads/, kept/
and fs/. In formats/ and cli/ the file system is known to the local storage and to those that LOOKS_AT_FILES names.
"""

import pathlib
import re
import sys

from check_names import declared_types, types_of

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^">]+)[">]', re.MULTILINE)
ROOMS = ("formats", "threads", "kept", "index", "fs", "cli")
FLOORS = ("formats/bytes", "formats/format.h", "formats/payloads", "formats/archives",
          "formats/<name>", "formats/registry", "formats/tables", "formats/arrays", "threads", "kept", "index", "fs", "cli")
# What is above the formats, and below what a user types.
OF_DAEMON = ("threads", "kept", "index", "fs")
FUSE = re.compile(r"fuse3?[/_.]")
THREADS = {"atomic", "barrier", "condition_variable", "future", "latch", "mutex", "pthread.h",
           "semaphore", "shared_mutex", "stop_token", "thread"}
# The one bit that remembers a change is set by whichever thread sees it first.
# libhdf5 answers one question at a time, in a child process that readers wait for.
# What is remembered of is numbered whichever thread makes it.
# Memory is kept for whichever thread takes some next, as malloc does.
# A store's open files are handed from reader to reader.
# Descriptors are shared by all readers; to take one that is open needs no lock.
# Paused decoders are handed from reader to reader, without a lock.
ALLOWED = {("formats/bytes/block_memory.cc", "mutex"),
           ("formats/bytes/byte_source.h", "atomic"),
           ("formats/bytes/descriptor_pool.cc", "mutex"),
           ("formats/bytes/descriptor_pool.h", "atomic"),
           ("formats/bytes/paused_decoders.h", "atomic"),
           ("formats/bytes/serial.cc", "atomic"),
           ("formats/hdf5/child_process.h", "mutex"),
           ("formats/bytes/local_storage.cc", "mutex")}

# What opens, lists or looks at files: elsewhere that goes through formats/bytes/storage.h, so that
# archives, and one day URLs, can stand in their place.
FILES = re.compile(r"""<(?:filesystem|sys/stat\.h|dirent\.h|glob\.h)>|std::filesystem
                       |\bFileSource::open\(
                       |(?<![\w>])::(?:open|openat|fopen|stat|lstat|fstat|access|realpath|readlink|opendir|glob)\(""",
                   re.VERBOSE)
LOOKS_AT_FILES = {
    "formats/bytes/byte_source.cc": "FileSource: the local storage's sources",
    "formats/bytes/confinement.cc": "the local storage's check of what a descriptor has open",
    "formats/bytes/local_storage.cc": "the local storage",
    "formats/bytes/regular_file.cc": "the local storage's descriptors",
    "formats/bytes/regular_file.h": "the local storage's descriptors",
    "formats/bytes/spool.cc": "a nameless file of npyfs's own, to be written and read",
    "formats/hdf5/child_file.cc": "a child process that has one descriptor and nothing else",
    "cli/load.cc": "where a data set was named",
    "cli/expand.cc": "glob(3): patterns of local paths",
    "cli/keep.cc": "whether a source lies in the cache folder",
    "cli/mount.cc": "the mountpoint, and whether it hides a source",
    "cli/mount_table.cc": "the mountpoint's real path",
    "cli/umount.cc": "the mountpoint and its daemon",
}


def floor_of(path):
    """The floor of a path relative to the root; None for what is on none."""
    parts = path.split("/")
    if parts[0] in ROOMS and parts[0] != "formats":
        return parts[0]
    if parts[0] != "formats":
        return None
    if len(parts) == 2:
        return "formats/registry" if parts[1].startswith("registry.") else "formats/format.h"
    if parts[1] in ("bytes", "payloads", "archives", "tables", "arrays"):
        return f"formats/{parts[1]}"
    return "formats/<name>"


def points_up(path, target):
    """Why a file may not know the other one; empty where it may."""
    floor, above = floor_of(path), floor_of(target)
    if FLOORS.index(above) > FLOORS.index(floor):
        return f"which is above {floor}"
    if floor == above == "formats/<name>" and target.split("/")[1] != path.split("/")[1]:
        return "which is another format"
    return ""


def faults_of(path, text, homes):
    """What is wrong with the includes and declarations of one file, as lines of text. `homes`: which
    file defines a type."""
    floor = floor_of(path)
    if floor is None:
        yield f"{path}: is on no floor"
        return
    for match in INCLUDE.finditer(text):
        bracket, name = match.groups()
        place = f"{path}:{text.count(chr(10), 0, match.start()) + 1}: includes {name}"
        if floor != "fs" and FUSE.match(name):
            yield f"{place}, but only fs/ knows FUSE"
        if floor not in OF_DAEMON and name in THREADS and (path, name) not in ALLOWED:
            yield f"{place}, but only threads/, kept/ and fs/ know threads and locks"
        if bracket != '"' and name.split("/")[0] not in ROOMS:
            continue
        target = floor_of(name)
        if target is None:
            yield f"{place}, which is on no floor"
        elif why := points_up(path, name):
            yield f"{place}, {why}"
    if floor not in OF_DAEMON:
        found = FILES.search(re.sub(r"//[^\n]*", "", text))
        if found and path not in LOOKS_AT_FILES:
            yield f"{path}: has {found.group()}, but only storages know files (LOOKS_AT_FILES)"
        if not found and path in LOOKS_AT_FILES:
            yield f"{path}: looks at no files any more; take it out of LOOKS_AT_FILES"
    for name, line in declared_types(text):
        if name in homes and (why := points_up(path, homes[name])):
            yield f"{path}:{line}: declares {name} of {homes[name]}, {why}"


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parents[1])
    files = sorted(p for room in ROOMS for p in (root / room).rglob("*") if p.suffix in (".h", ".cc"))
    texts = {path.relative_to(root).as_posix(): path.read_text() for path in files}
    homes = {name: path for path, text in texts.items() for name, _ in types_of(text)
             if floor_of(path) is not None}
    faults = [fault for path, text in texts.items() for fault in faults_of(path, text, homes)]
    for fault in faults:
        print(fault)
    if not files:
        print(f"{root}: no sources found")
    return 1 if faults or not files else 0


if __name__ == "__main__":
    sys.exit(main())
