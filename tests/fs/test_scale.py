"""Large data sets cost no memory, and mounting reads no sample."""

import os
import pathlib
import unittest

import numpy as np

from mounting import MountTest, memory_of, mounts_at, unmount
from writers import write_ffrecord, write_sparse_ffrecord

MIB = 1 << 20


def bytes_read_by(pid):
    """How many bytes the process has read so far, from pages or disk."""
    text = pathlib.Path(f"/proc/{pid}/io").read_text()
    return int(text.split("rchar:")[1].split()[0])


class Scale(MountTest):
    def test_ten_million_samples(self):
        empty = self.folder / "empty.ffr"
        write_ffrecord(empty, [])
        mnt, process = self.mount_in_front(empty)
        empty_memory, empty_reads = memory_of(process.pid), bytes_read_by(process.pid)
        unmount(mnt)

        count, typed = 10_000_000, ("--dtype", "x=float32", "--shape", "x=25")
        source = self.folder / "big.ffr"
        write_sparse_ffrecord(source, count, 100)
        mnt, process = self.mount_in_front(*typed, source, name="big")
        header = 12 + 12 * count
        self.assertLess(bytes_read_by(process.pid) - empty_reads, header + header // 8)
        self.assertLess(memory_of(process.pid) - empty_memory, 64 * MIB)

        x = np.load(mnt / "train/x.npy", mmap_mode="r")
        self.assertEqual((x.dtype, x.shape), (np.float32, (count, 25)))
        for i in (0, 1, count // 2, count - 1):
            self.assertEqual(x[i].tobytes(), bytes(100))
        self.assertLess(memory_of(process.pid) - empty_memory, 64 * MIB)

    def test_listing_a_million_records(self):
        source = self.folder / "many.ffr"
        write_sparse_ffrecord(source, 1_000_000, 4)
        mnt = self.mount("--dtype", "x=int32", "--shape", "x=1", source)
        pid = self.daemon(mnt)
        before = memory_of(pid)
        seen = sum(1 for _ in os.scandir(mnt / "train/records"))
        self.assertEqual(seen, 1_000_000)
        self.assertLess(memory_of(pid) - before, 16 * MIB)
        self.assertEqual((mnt / "train/records/999999.bin").read_bytes(), bytes(4))

    def test_a_shuffled_view_has_no_list_of_its_rows(self):
        count = 100_000_000
        source = self.folder / "big.npy"
        with open(source, "wb") as out:
            np.lib.format.write_array_header_1_0(
                out, {"descr": "<i4", "fortran_order": False, "shape": (count, 1)})
            out.truncate(out.tell() + 4 * count)
        mnt = self.mount(f"npy:{source}")
        pid = self.daemon(mnt)
        self.assertTrue((mnt / "@part=0of2/train/x.npy").exists())
        before = memory_of(pid, "RssAnon")
        x = np.load(mnt / "@shuffle=1/train/x.npy", mmap_mode="r")
        self.assertEqual(x.shape, (count, 1))
        self.assertEqual((x[0, 0], x[-1, 0]), (0, 0))
        permutation = np.load(mnt / "@shuffle=1/train/perm.npy", mmap_mode="r")
        self.assertEqual(len(permutation), count)
        self.assertNotEqual(permutation[:8].tolist(), list(range(8)))
        self.assertLess(memory_of(pid, "RssAnon") - before, 16 * MIB)

    def test_memory_does_not_grow_with_records_read(self):
        rows = np.random.default_rng(10).integers(0, 255, (100_000, 1000), np.uint8)
        source = self.folder / "data.ffr"
        write_ffrecord(source, rows)
        mnt = self.mount(source)
        pid = self.daemon(mnt)
        x = np.load(mnt / "train/x.npy", mmap_mode="r")
        self.assertTrue(np.array_equal(x[:1000], rows[:1000]))
        before = memory_of(pid)
        self.assertTrue(np.array_equal(x, rows))
        self.assertLess(memory_of(pid) - before, 64 * MIB)
        self.assertTrue(mounts_at(mnt))


if __name__ == "__main__":
    unittest.main()
