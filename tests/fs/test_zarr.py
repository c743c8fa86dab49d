"""zarr stores through a mount: chunks that are cut, change, come or go while they are mounted."""

import errno
import json
import os
import unittest
import zipfile
import zlib

import numpy as np

from mounting import (PAGE, MountTest, daemons_of, npyfs, read_direct, read_range,
                      saved)

ROWS = 4 * PAGE  # of a chunk; elements are bytes, so that chunks are pages


class ZarrTest(MountTest):
    def setUp(self):
        super().setUp()
        self.store = self.folder / "s.zarr"
        self.arrays = {}
        random = np.random.default_rng(4)
        for name, compressor in (("plain", None), ("packed", {"id": "zlib"})):
            array = random.integers(0, 255, 3 * ROWS, np.uint8)
            folder = self.store / name
            folder.mkdir(parents=True)
            (folder / ".zarray").write_text(json.dumps({
                "zarr_format": 2, "shape": [len(array)], "chunks": [ROWS], "dtype": "|u1",
                "compressor": compressor, "filters": None, "order": "C", "fill_value": 0}))
            for number in range(3):
                chunk = array[number * ROWS:(number + 1) * ROWS].tobytes()
                (folder / str(number)).write_bytes(zlib.compress(chunk) if compressor else chunk)
            self.arrays[name] = array
        (self.store / ".zgroup").write_text('{"zarr_format": 2}')

    def mount_store(self):
        return self.mount(self.store, "--header-align", "4096")

    def page(self, mnt, name, number):
        return read_direct(mnt / f"{name}.npy", PAGE + number * PAGE, PAGE)


def read_nbytes_of(pid):
    """Bytes that a process has read, from wherever."""
    with open(f"/proc/{pid}/io", encoding="ascii") as lines:
        return int(dict(line.split(": ") for line in lines)["rchar"])


class Whole(ZarrTest):
    def test_what_the_kernel_does_not_keep_is_held(self):
        folder = self.store / "long"
        folder.mkdir()
        chunk, count = 1 << 20, 24
        (folder / ".zarray").write_text(json.dumps({
            "zarr_format": 2, "shape": [count * chunk], "chunks": [chunk], "dtype": "|u1",
            "compressor": {"id": "zlib"}, "filters": None, "order": "C", "fill_value": 0}))
        array = np.random.default_rng(5).integers(0, 255, count * chunk, np.uint8)
        for number in range(count):
            (folder / str(number)).write_bytes(
                zlib.compress(array[number * chunk:(number + 1) * chunk].tobytes(), 1))
        mnt = self.mount_store()
        (daemon,) = daemons_of(mnt)
        read = [read_nbytes_of(daemon)]
        for _ in range(2):
            pieces = [read_direct(mnt / "long.npy", PAGE + at, 256 << 10)
                      for at in range(0, count * chunk, 256 << 10)]
            self.assertEqual(b"".join(pieces), array.tobytes())
            read.append(read_nbytes_of(daemon))
        self.assertGreater(read[1] - read[0], count * chunk // 2)
        self.assertLess(read[2] - read[1], count * chunk // 2)

    def test_read_and_map(self):
        mnt = self.mount_store()
        for name, array in self.arrays.items():
            path = mnt / f"{name}.npy"
            self.assertTrue(np.array_equal(np.load(path), array), name)
            self.assertTrue(np.array_equal(np.load(path, mmap_mode="r")[ROWS - 5:ROWS + 5],
                                           array[ROWS - 5:ROWS + 5]), name)

    def test_a_missing_chunk_is_the_fill_value(self):
        for name in self.arrays:
            (self.store / name / "1").unlink()
        mnt = self.mount_store()
        for name, array in self.arrays.items():
            array[ROWS:2 * ROWS] = 0
            self.assertTrue(np.array_equal(np.load(mnt / f"{name}.npy"), array), name)

    def test_a_cut_chunk_fails_alone(self):
        for name in self.arrays:
            os.truncate(self.store / name / "1", 1000)
        mnt = self.mount_store()
        for name, array in self.arrays.items():
            self.assert_errno(errno.EIO, self.page, mnt, name, 4)
            self.assertEqual(self.page(mnt, name, 3), array[3 * PAGE:4 * PAGE].tobytes())
            self.assertEqual(self.page(mnt, name, 8), array[8 * PAGE:9 * PAGE].tobytes())
            self.assertIn(f"{name}/1", (mnt / ".npyfs/errors").read_text())


class Changes(ZarrTest):
    def check(self, change):
        for name in self.arrays:
            with self.subTest(name):
                mnt = self.mount_store()
                before = self.page(mnt, name, 0)
                change(self.store / name)
                # What npyfs has not read yet is not what was mounted.
                self.assert_errno(errno.ESTALE, self.page, mnt, name, 4)
                self.assert_errno(errno.ESTALE, self.page, mnt, name, 0)
                self.assertEqual(before, self.arrays[name][:PAGE].tobytes())
                other = next(iter(set(self.arrays) - {name}))
                self.assertEqual(self.page(mnt, other, 0), self.arrays[other][:PAGE].tobytes())
                self.assertIn(name, (mnt / ".npyfs/errors").read_text())
                # As it is now, for the next.
                self.doCleanups()
                self.setUp()

    def test_overwritten(self):
        self.check(lambda folder: (folder / "1").write_bytes((folder / "0").read_bytes()))

    def test_replaced_by_an_old_file(self):
        def change(folder):
            new = self.folder / "new"
            new.write_bytes((folder / "0").read_bytes())
            os.utime(new, ns=(10**18, 10**18))
            os.rename(new, folder / "1")
        self.check(change)

    def test_of_a_chunk_that_is_held_stays_as_it_was_read(self):
        mnt = self.mount_store()
        array = self.arrays["packed"]
        self.assertEqual(self.page(mnt, "packed", 0), array[:PAGE].tobytes())
        (self.store / "packed" / "0").write_bytes(zlib.compress(bytes(ROWS)))
        # All of one block, whenever it is asked for; what has to be read anew is the next test's.
        for page in (1, 2, 3, 0):
            self.assertEqual(self.page(mnt, "packed", page),
                             array[page * PAGE:(page + 1) * PAGE].tobytes())
        self.assertEqual(self.page(mnt, "packed", 4), array[4 * PAGE:5 * PAGE].tobytes())

    def test_of_another_size(self):
        self.check(lambda folder: os.truncate(folder / "1", 1000))

    def test_a_chmod_is_no_change(self):
        mnt = self.mount_store()
        for name, array in self.arrays.items():
            for number in range(3):
                os.chmod(self.store / name / str(number), 0o400)
            (self.store / name / "README").write_text("no chunk")
            self.assertTrue(np.array_equal(np.load(mnt / f"{name}.npy"), array), name)
        self.assertEqual((mnt / ".npyfs/errors").read_text(), "")

    def test_taken_away(self):
        self.check(lambda folder: (folder / "1").unlink())

    def test_the_array_grows(self):
        def change(folder):
            metadata = json.loads((folder / ".zarray").read_text())
            metadata["shape"][0] += 5
            (folder / ".zarray").write_text(json.dumps(metadata))
        self.check(change)


class Archives(ZarrTest):
    def zipped(self, method, prefix="s.zarr/"):
        path = self.folder / "s.zip"
        with zipfile.ZipFile(path, "w", method) as archive:
            if prefix:
                archive.mkdir(prefix.rstrip("/"))
            for file in sorted(self.store.rglob("*")):
                if file.is_file():
                    archive.write(file, prefix + str(file.relative_to(self.store)))
        return path

    def test_members_may_lie_in_a_folder(self):
        for method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            for prefix in ("", "s.zarr/", "a/b/"):
                with self.subTest(prefix, method=method):
                    mnt = self.mount(self.zipped(method, prefix))
                    for name, array in self.arrays.items():
                        self.assertEqual((mnt / f"{name}.npy").read_bytes(), saved(array))
                    self.doCleanups()
                    self.setUp()

    def test_deflated_chunks_say_what_they_cost(self):
        for method, storage in ((zipfile.ZIP_STORED, "mapped"),
                                (zipfile.ZIP_DEFLATED, f"deflated chunks of {ROWS}, a read inflates "
                                                       f"whole ones ({ROWS} bytes)")):
            about = json.loads(npyfs("info", "--json", self.zipped(method)).stdout)
            stored = {array["name"]: array["storage"] for array in about["arrays"]}
            self.assertEqual(stored["plain"], storage)

    def test_a_damaged_member_fails_alone(self):
        path = self.zipped(zipfile.ZIP_STORED)
        with zipfile.ZipFile(path) as archive:
            begin = archive.getinfo("s.zarr/plain/1").header_offset
        with open(path, "r+b") as file:
            file.seek(begin + 3 * PAGE)
            file.write(b"other")
        mnt = self.mount(path, "--header-align", "4096")
        for page in range(4, 8):
            self.assert_errno(errno.EIO, self.page, mnt, "plain", page)
        self.assertEqual(self.page(mnt, "plain", 8), self.arrays["plain"][8 * PAGE:9 * PAGE].tobytes())
        self.assertEqual(self.page(mnt, "packed", 4),
                         self.arrays["packed"][4 * PAGE:5 * PAGE].tobytes())


class Attributes(ZarrTest):
    # What Python's json writes and reads, and other readers refuse.
    ODD = {"half": "\ud800", "pair": "\U0001f3b5", "infinite": 1e400, "large": 10**200, "long": "x" * (3 << 20)}

    def test_odd_values_hide_nothing(self):
        text = json.dumps(self.ODD).replace("Infinity", "1e400")
        (self.store / ".zattrs").write_text(text)
        self.assertEqual(json.loads(text), self.ODD)
        mnt = self.mount_store()
        self.assertEqual(np.load(mnt / "attrs.npy", allow_pickle=True)[()], self.ODD)
        self.assertEqual(json.loads((mnt / "attrs.json").read_bytes()),
                         {**self.ODD, "half": "\ufffd", "infinite": None})


class Texts(ZarrTest):
    def test_packed_ones_far_longer_than_their_number(self):
        # 4.2 MB in one chunk of two texts, and in one of 2000.
        for name, texts in (("few", ["short", "y" * 2_100_000] * 2),
                            ("many", [f"{i:02000d}" for i in range(2000)])):
            with self.subTest(name):
                folder = self.folder / f"{name}.zarr"
                folder.mkdir()
                chunk = len(texts) // 2 if name == "few" else len(texts)
                (folder / ".zarray").write_text(json.dumps({
                    "zarr_format": 2, "shape": [len(texts)], "chunks": [chunk], "dtype": "|O",
                    "compressor": {"id": "zlib", "level": 1}, "fill_value": "", "order": "C",
                    "filters": [{"id": "vlen-utf8"}]}))
                for number in range(len(texts) // chunk):
                    items = [text.encode() for text in texts[number * chunk:][:chunk]]
                    stored = len(items).to_bytes(4, "little") + b"".join(
                        len(item).to_bytes(4, "little") + item for item in items)
                    (folder / str(number)).write_bytes(zlib.compress(stored, 1))
                mnt = self.mount(folder, name=name)
                [path] = [file for file in mnt.glob("**/*.npy") if file.name != "attrs.npy"]
                shown = np.load(path, mmap_mode="r")
                self.assertEqual(shown.dtype, f"<U{max(map(len, texts))}")
                self.assertEqual(shown.tolist(), texts)


class Sizes(ZarrTest):
    def test_a_header_of_another_alignment(self):
        mnt = self.mount(self.store)
        for name, array in self.arrays.items():
            self.assertEqual((mnt / f"{name}.npy").read_bytes(), saved(array))
            self.assertEqual(read_range(mnt / f"{name}.npy", 0, 6), b"\x93NUMPY")


if __name__ == "__main__":
    unittest.main()
