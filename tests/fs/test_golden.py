"""The cases of tests/data/FORMAT/cases.json: a test for each, which mounts it and compares.

usage: tap.py test_golden.py FORMAT

A case is an object:
  name          "format/what"
  args          arguments of `npyfs mount` before the mount point; {in} is the case's own folder
  cwd           where to mount from, relative to cases.json; else the folder of cases.json, or,
                with `files`, the case's own folder
  files         {name: file | {"text"} | {"hex"}}: made in the case's own folder; a *.sparse.json is
                the recipe of a large file of mostly zeroes
  fails         the mount is refused with exit code `rc` (1), and stderr holds the words of `says`
  may_fail      it is refused like that, or mounts and the rest holds
  stderr_has    words on stderr of a mount that succeeds
  expected      folder of the .npy files (and a subset of attrs.json) that must appear
  only          no other .npy is listed
  nodes         file {node: attributes}: a subset of attrs.* of the root (node ""), of
                <group>/attrs.json and <array>.attrs.json; what JSON lacks is escaped in it
  tolerance     {array: by how much its values may differ}, as decoders of jpeg do
  values        arrays of which only shape and values count;  loose: the byte order may differ, too
  optional      arrays that may be missing or answer EIO; where they read they are the expected ones
  unreadable    arrays that are missing, or whose first and last byte of data answer EIO
  eio           {array: [[first, last], ...]}: rows that answer EIO; the others read, unless they
                share a page with one of these
  readable      {array: [[first, last], ...]}: rows that must read
  eio_at        {array: [offset in the data, ...]}: bytes that answer EIO
  spots         {array: {dtype, shape, at: [[offset in the data, hex], ...], data_at}}
  records, records_eio    files with the bytes they hold; files that answer EIO
  count         {folder: number of names in it};  absent: paths that must not exist
  must_not_exist          names that must not have been made anywhere
"""

import errno
import json
import math
import os
import pathlib
import sys
import unittest

import numpy as np

from mounting import PAGE, MountTest, mounts_at, npyfs, read_range, saved

DATA = pathlib.Path(__file__).parents[1] / "data"
KNOWN = set("name args cwd files fails rc says may_fail stderr_has expected only eio readable eio_at "
            "spots records records_eio count absent must_not_exist optional "
            "unreadable nodes values loose tolerance".split())


def make_file(path, what, base):
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(what, dict):
        path.write_bytes(what["text"].encode() if "text" in what else bytes.fromhex(what["hex"]))
    elif not what.endswith(".sparse.json"):
        path.write_bytes((base / what).read_bytes())
    else:
        recipe = json.loads((base / what).read_text())
        with open(path, "wb") as out:
            out.truncate(recipe["size"])
            for piece in recipe["pieces"]:
                out.seek(piece["offset"])
                out.write(bytes.fromhex(piece["hex"]))


def arrays_below(folder):
    """Names of all .npy files outside records/, attrs.npy aside."""
    found = set()
    for at, folders, files in os.walk(folder):
        if "records" in folders:
            folders.remove("records")
        found |= {os.path.relpath(os.path.join(at, name), folder)
                  for name in files if name.endswith(".npy")}
    return found - {"attrs.npy"}


def header_of(path):
    """(dtype, shape, offset of the data) of a C-ordered .npy file."""
    with open(path, "rb") as file:
        version = np.lib.format.read_magic(file)
        read = {(1, 0): np.lib.format.read_array_header_1_0,
                (2, 0): np.lib.format.read_array_header_2_0}[version]
        shape, fortran_order, dtype = read(file)
        assert not fortran_order or len(shape) < 2, path
        return dtype, shape, file.tell()


def readable(path, nbytes=-1):
    try:
        with open(path, "rb", buffering=0) as file:
            file.read(nbytes)
        return True
    except OSError:
        return False


def rows_in(ranges):
    return [row for first, last in ranges for row in range(first, last + 1)]


ANY = object()  # what neither JSON nor plain data can hold: not compared


def unescape(value):
    """What the escapes of an attributes file stand for."""
    if isinstance(value, list):
        return [unescape(item) for item in value]
    if not isinstance(value, dict):
        return value
    for mark, read in {"__float__": float, "__bytes__": bytes.fromhex,
                       "__complex__": lambda parts: complex(*parts), "__ref__": lambda _: ANY,
                       "__datetime__": lambda _: ANY, "__empty__": lambda _: None}.items():
        if mark in value:
            return read(value[mark])
    if "__ndarray__" in value:
        return unescape(value["data"])
    return {name: unescape(item) for name, item in value.items()}


def same(got, wanted, text):
    """`text`: got is from JSON, where NaN, infinities, bytes and complex numbers have no one form."""
    if isinstance(wanted, list):
        return isinstance(got, list) and len(got) == len(wanted) and all(
            same(*pair, text) for pair in zip(got, wanted))
    if isinstance(wanted, dict):
        return isinstance(got, dict) and got.keys() == wanted.keys() and all(
            same(got[name], wanted[name], text) for name in wanted)
    if isinstance(wanted, float) and not math.isfinite(wanted):
        return got is None if text else got == wanted or (got != got and wanted != wanted)
    if isinstance(wanted, bytes) and text:
        return isinstance(got, str)
    if isinstance(wanted, complex) and text:
        return True
    return wanted is ANY or got == wanted


class GoldenTest(MountTest):
    def check(self, case, base):
        self.assertLessEqual(set(case), KNOWN, "this runner does not know how to check that")
        own = self.folder / "in"
        own.mkdir()
        for name, what in case.get("files", {}).items():
            make_file(own / name, what, base)
        cwd = base / case["cwd"] if "cwd" in case else own if "files" in case else base
        mnt = self.mount_point()
        done = npyfs("mount", *(a.replace("{in}", str(own)) for a in case["args"]), mnt, cwd=cwd,
                     env={**os.environ, "XDG_CACHE_HOME": str(self.folder / "cache")})
        try:
            if case.get("fails") or case.get("may_fail") and done.returncode:
                self.check_refusal(case, mnt, done)
            else:
                self.assertEqual(done.returncode, 0, done.stderr)
                self.check_tree(case, base, mnt, done.stderr)
                self.assertTrue(mounts_at(mnt), "the mount is gone")
        finally:
            for name in case.get("must_not_exist", []):
                for folder in (base, cwd, pathlib.Path("/")):
                    self.assertFalse(os.path.lexists(folder / name), f"{folder / name} was made")

    def check_refusal(self, case, mnt, done):
        self.assertEqual(done.returncode, case.get("rc", 1), done.stderr)
        self.assertEqual(mounts_at(mnt), [])
        self.assertTrue(done.stderr.strip(), "nothing on stderr")
        for word in case.get("says", []):
            self.assertIn(word.lower(), done.stderr.lower())

    def check_tree(self, case, base, mnt, said):
        for word in case.get("stderr_has", []):
            self.assertIn(word.lower(), said.lower())
        expected = base / case["expected"] if case.get("expected") else None
        wanted = arrays_below(expected) if expected else set()
        by_row = set(case.get("eio", {})) | set(case.get("readable", {}))
        optional = {name for name in case.get("optional", []) if not readable(mnt / name)}
        near = case.get("tolerance", {})
        inexact = set(case.get("values", [])) | set(case.get("loose", [])) | set(near)
        for name in sorted(wanted - by_row - optional - inexact):
            self.check_array(mnt / name, expected / name)
        for name, tolerance in near.items():
            self.check_near(mnt / name, expected / name, tolerance)
        for name in sorted(inexact - optional - set(near)):
            self.check_values(mnt / name, expected / name, name in case.get("loose", []))
        for name in case.get("unreadable", []):
            self.check_unreadable(mnt / name)
        for name in sorted(by_row):
            self.check_rows(mnt / name, expected / name if name in wanted else None,
                            rows_in(case.get("eio", {}).get(name, [])),
                            case.get("readable", {}).get(name))
        for name, offsets in case.get("eio_at", {}).items():
            data_at = header_of(mnt / name)[2]
            for offset in offsets:
                self.assert_errno(errno.EIO, read_range, mnt / name, data_at + offset, 1)
        for name, spots in case.get("spots", {}).items():
            self.check_spots(mnt / name, spots)
        if case.get("only"):
            self.assertLessEqual(arrays_below(mnt), wanted | by_row | set(case.get("spots", {}))
                                 | set(case.get("optional", [])))
        for name, golden in case.get("records", {}).items():
            self.assertEqual((mnt / name).read_bytes(), (base / golden).read_bytes(), name)
        for name in case.get("records_eio", []):
            self.assert_errno(errno.EIO, (mnt / name).read_bytes)
        for name, count in case.get("count", {}).items():
            names = os.listdir(mnt / name)
            self.assertEqual((len(names), len(set(names))), (count, count), name)
        for name in case.get("absent", []):
            self.assertFalse(os.path.lexists(mnt / name), f"{name} must not exist")
        if "nodes" in case:
            self.check_nodes(mnt, json.loads((base / case["nodes"]).read_text()))
        attributes = expected / "attrs.json" if expected else None
        self.check_attributes(
            mnt, json.loads(attributes.read_text()) if attributes and attributes.exists() else {})

    def check_array(self, path, golden):
        wanted = saved(np.load(golden))
        self.assertEqual(golden.read_bytes(), wanted, "the golden file is not what np.save writes")
        self.assertEqual(path.stat().st_size, len(wanted), f"{path}: size")
        got = path.read_bytes()
        self.assertEqual(got[:128], wanted[:128], f"{path}: header")
        self.assertTrue(got == wanted, f"{path} differs from {golden}")
        mapped = np.load(path, mmap_mode="r")
        self.assertTrue(mapped.tobytes() == np.load(golden).tobytes(), f"{path}: memmap differs")

    def check_near(self, path, golden, tolerance):
        wanted = np.load(golden)
        got = path.read_bytes()
        begin = len(got) - wanted.nbytes
        self.assertEqual(got[:begin], saved(wanted)[:begin], f"{path}: header")
        values = np.load(path, mmap_mode="r")
        self.assertLessEqual(np.abs(values.astype(np.float64) - wanted).max(), tolerance, path)

    def check_values(self, path, golden, same_type):
        got, wanted = np.load(path), np.load(golden)
        self.assertEqual(got.shape, wanted.shape, path)
        if same_type:
            self.assertEqual((got.dtype.kind, got.dtype.itemsize),
                             (wanted.dtype.kind, wanted.dtype.itemsize), path)
        np.testing.assert_array_equal(got, wanted, str(path))

    def check_nodes(self, mnt, nodes):
        for node, wanted in nodes.items():
            wanted = {name: unescape(value) for name, value in wanted.items()}
            wanted = {name: value for name, value in wanted.items() if value is not ANY}
            if node == "":
                self.check_attributes(mnt, wanted, exact=False)
            elif wanted:
                beside = mnt / f"{node}.attrs.json"
                path = beside if beside.exists() else mnt / node / "attrs.json"
                got = json.loads(path.read_text())
                for name, value in wanted.items():
                    self.assertTrue(same(got.get(name), value, text=True), f"{path}: {name}")

    def check_unreadable(self, path):
        if not path.exists():
            return
        size = path.stat().st_size
        data_at = header_of(path)[2] if readable(path, 128) else 0
        if data_at < size:
            for offset in (data_at, size - 1):
                self.assert_errno(errno.EIO, read_range, path, offset, 1)

    def check_rows(self, path, golden, bad, readable):
        """`bad` rows answer EIO; of the others those in `readable` (None: all) equal the golden."""
        array = np.load(golden) if golden else None
        if array is not None:
            dtype, shape, data_at = array.dtype, array.shape, len(saved(array)) - array.nbytes
            if bad:
                self.assertEqual(path.stat().st_size, len(saved(array)), f"{path}: size")
        else:
            dtype, shape, data_at = header_of(path)
        nbytes = dtype.itemsize * math.prod(shape[1:])

        def pages(row):
            first = data_at + row * nbytes
            return set(range(first // PAGE, (first + nbytes - 1) // PAGE + 1))

        lost = set().union(*map(pages, bad))
        for row in bad:
            self.assert_errno(errno.EIO, read_range, path, data_at + row * nbytes, nbytes)
        checked = 0
        for row in rows_in(readable) if readable is not None else set(range(shape[0])) - set(bad):
            if pages(row) & lost:
                continue
            got = read_range(path, data_at + row * nbytes, nbytes)
            if array is not None:
                self.assertEqual(got, array[row].tobytes(), f"{path}: row {row}")
            checked += 1
        self.assertTrue(checked or lost)

    def check_spots(self, path, spots):
        dtype, shape, data_at = header_of(path)
        self.assertEqual((dtype.str, list(shape)), (spots["dtype"], spots["shape"]))
        self.assertEqual(data_at, spots.get("data_at", data_at))
        self.assertEqual(path.stat().st_size, data_at + dtype.itemsize * math.prod(shape))
        for offset, digits in spots["at"]:
            got = read_range(path, data_at + offset, len(digits) // 2)
            self.assertEqual(got.hex(), digits.lower(), f"{path}: {offset}")

    def check_attributes(self, mnt, wanted, exact=True):
        listed = json.loads((mnt / "attrs.json").read_text())
        pickled = np.load(mnt / "attrs.npy", allow_pickle=True)
        self.assertEqual((pickled.shape, pickled.dtype, type(pickled[()])), ((), object, dict))
        for attributes in (listed, pickled[()]):
            text = attributes is listed
            for name, value in wanted.items():
                got = attributes.get(name)
                self.assertTrue(got == value if exact else same(got, value, text), name)
        self.assertEqual(set(listed), set(pickled[()]))


def case_test(case, base, later):
    def test(self):
        if later:
            self.skipTest(f"later: {later}")
        self.check(case, base)
    return test


class Golden(GoldenTest):
    """Filled below with a test for each case."""


class EveryCase(unittest.TestCase):
    def test_later_names_only_cases_that_exist(self):
        for name in LATER:
            if name.split("/")[0] == FORMAT:
                self.assertIn(name, CASES)


FORMAT = sys.argv[1]
BASE = DATA / FORMAT
LATER = json.loads((DATA / "later.json").read_text())
CASES = {case["name"]: case for case in json.loads((BASE / "cases.json").read_text())}
for _name, _case in CASES.items():
    setattr(Golden, "test_" + _name.split("/", 1)[1], case_test(_case, BASE, LATER.get(_name)))
