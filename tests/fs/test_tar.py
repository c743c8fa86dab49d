"""Tar shards through a mount: compressed ones, what is kept of them, and what a read of them costs."""

import io
import os
import re
import shutil
import signal
import subprocess
import tarfile
import unittest

import numpy as np

from mounting import MountTest, memory_of, npyfs, unmount, wait_for_exit

COUNT = 40
PACKERS = {"gz": ["gzip", "-nc"], "zst": ["zstd", "-qc"], "xz": ["xz", "-c"], "bz2": ["bzip2", "-c"],
           "lz4": ["lz4", "-qc"]}


def npy_bytes(array):
    out = io.BytesIO()
    np.save(out, array)
    return out.getvalue()


def write_shard(path, arrays):
    with tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as shard:
        for number, array in enumerate(arrays):
            payload = npy_bytes(array)
            info = tarfile.TarInfo(f"{number:04d}.npy")
            info.size = len(payload)
            shard.addfile(info, io.BytesIO(payload))


class Compressed(MountTest):
    """Four MiB of arrays that hardly compress, in one frame."""

    def setUp(self):
        super().setUp()
        random = np.random.default_rng(3)
        self.rows = random.integers(0, 255, (COUNT, 100, 1024), np.uint8)
        self.plain = self.folder / "a.tar"
        write_shard(self.plain, self.rows)
        self.spool = self.folder / "spool"

    def packed(self, kind):
        if shutil.which(PACKERS[kind][0]) is None:
            self.skipTest(f"{PACKERS[kind][0]} is not installed")
        path = self.folder / f"a.tar.{kind}"
        path.write_bytes(subprocess.run([*PACKERS[kind], self.plain], check=True,
                                        stdout=subprocess.PIPE).stdout)
        return path

    def check_random_reads(self, mnt):
        x = np.load(mnt / "train/x.npy", mmap_mode="r")
        for number in np.random.default_rng(4).permutation(COUNT):
            np.testing.assert_array_equal(x[number], self.rows[number])

    def test_every_packing_reads_at_random(self):
        for kind in PACKERS:
            with self.subTest(kind):
                mnt = self.mount("--cache-size", "16M", self.packed(kind), name=kind)
                self.check_random_reads(mnt)

    def left_beside_arrays(self):
        """What the cache folder shows but for kept arrays (HEX.npy, HEX.npy.part, HEX.map)."""
        return [name for name in os.listdir(self.spool)
                if not re.fullmatch(r"[0-9a-f]{32}\.(npy|npy\.part|map)", name)]

    def test_decoded_shards_are_not_seen_while_mounted_nor_after_a_crash(self):
        mnt = self.mount("--cache-dir", self.spool, "--cache-size", "1M", self.packed("zst"))
        self.check_random_reads(mnt)
        self.assertEqual(self.left_beside_arrays(), [])
        daemon = self.daemon(mnt)
        os.kill(daemon, signal.SIGKILL)
        wait_for_exit(daemon)
        unmount(mnt)
        self.assertEqual(self.left_beside_arrays(), [])

    def test_arrays_of_compressed_shards_are_kept(self):
        for kind in PACKERS:
            with self.subTest(kind):
                packed = self.packed(kind)
                self.spool.mkdir(mode=0o700, exist_ok=True)
                done = npyfs("fill", "--quiet", "--cache-dir", self.spool / kind, packed)
                self.assertEqual(done.returncode, 0, done.stderr)
                kept = [np.load(path, mmap_mode="r") for path in (self.spool / kind).glob("*.npy")]
                self.assertEqual([array.shape for array in kept], [self.rows.shape])
                np.testing.assert_array_equal(kept[0], self.rows)

    def test_info_says_what_a_random_read_costs(self):
        self.assertIn("gzip, a random read inflates up to 4050 KiB",
                      npyfs("info", self.packed("gz")).stdout)
        costly = npyfs("info", "--cache-size", "8M", self.packed("zst"))
        self.assertIn("zstd, a random read decodes up to 4050 KiB", costly.stdout)
        self.assertEqual(costly.stderr.count("--cache-dir"), 1, costly.stderr)
        kept = npyfs("info", "--cache-dir", self.spool, self.packed("zst"))
        self.assertIn(f"kept decoded in {self.spool}", kept.stdout)
        self.assertEqual(kept.stderr, "")

    def test_a_cache_directory_that_cannot_be_is_refused(self):
        refused = npyfs("info", "--cache-dir", self.folder / "no/such", self.plain)
        self.assertEqual(refused.returncode, 1)
        self.assertIn("no/such", refused.stderr)


class Plain(MountTest):
    def setUp(self):
        super().setUp()
        if shutil.which("tar") is None:
            self.skipTest("tar is not installed")

    def test_what_gnu_tar_passes_over_is_passed_over(self):
        rows = np.arange(12, dtype=np.int32).reshape(3, 4)
        write_shard(self.folder / "whole.tar", rows)
        members = subprocess.run(["tar", "tf", self.folder / "whole.tar"], check=True, capture_output=True,
                                 text=True).stdout
        whole = (self.folder / "whole.tar").read_bytes().rstrip(b"\0")
        whole += bytes(-len(whole) % 512)
        for name, zeroes, garbage in [("a", 1024, b"garbage" * 1000), ("b", 1024, b"\n"),
                                      ("c", 9 * 512, b"\xff" * 512), ("d", 512, b"garbage" * 1000)]:
            with self.subTest(name):
                shard = self.folder / f"{name}.tar"
                shard.write_bytes(whole + bytes(zeroes) + garbage)
                listed = subprocess.run(["tar", "tf", shard], check=True, capture_output=True, text=True)
                self.assertEqual(listed.stdout, members)
                mnt = self.mount(shard, name=name)
                np.testing.assert_array_equal(np.load(mnt / "train/x.npy"), rows)
                self.assertEqual(len(os.listdir(mnt / "train/records")), len(members.splitlines()))
                self.assertIn(f"{name}.tar at byte {len(whole) + zeroes}: what follows", self.said)
                self.assertEqual(len(self.said.splitlines()), 1)

    def test_holes_cost_nothing_however_large(self):
        nbytes = 1 << 40
        with open(self.folder / "k.bin", "wb") as sparse:
            sparse.truncate(nbytes)
            sparse.seek(nbytes // 2)
            sparse.write(b"middle")
        for form in [("--format=gnu",), ("--format=posix", "--sparse-version=0.0"),
                     ("--format=posix", "--sparse-version=0.1"),
                     ("--format=posix", "--sparse-version=1.0")]:
            with self.subTest(form):
                subprocess.run(["tar", "-C", self.folder, "-Scf", self.folder / "s.tar", *form, "k.bin"],
                               check=True)
                mnt = self.mount(self.folder / "s.tar", name=form[-1][-3:])
                self.assertEqual(self.said, "")
                before = memory_of(self.daemon(mnt))
                x = np.load(mnt / "train/x.npy", mmap_mode="r")
                self.assertEqual(x.shape, (1, nbytes))
                begin, end = nbytes // 2 - 5000, nbytes // 2 + 5000
                with tarfile.open(self.folder / "s.tar") as tar, tar.extractfile("k.bin") as member:
                    member.seek(begin)
                    self.assertEqual(x[0, begin:end].tobytes(), member.read(end - begin))
                self.assertFalse(x[0, -(1 << 26):].any())
                with open(mnt / "train/records/k.bin", "rb") as record:
                    self.assertEqual(record.seek(-2, os.SEEK_END), nbytes - 2)
                    self.assertEqual(record.read(), b"\0\0")
                self.assertLess(memory_of(self.daemon(mnt)) - before, 64 << 20)


if __name__ == "__main__":
    unittest.main()
