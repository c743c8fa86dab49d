"""Files that the kernel reads by itself. Where it cannot, the same bytes come from npyfs, which says why."""

import contextlib
import errno
import json
import mmap
import multiprocessing
import os
import re
import signal
import subprocess
import sys
import unittest

import numpy as np

from mounting import NPYFS, PAGE, TIMEOUT, MountTest, npyfs, read_direct, run, saved, wait_for_exit
from writers import write_ffrecord

LONG_AGO = 1_500_000_000 * 10**9  # so that any change gives another mtime, however coarse the clock


def access_of(path):
    return os.getxattr(path, "user.npyfs.access").decode()


def sum_rows(path, seed, count):
    """Of random rows, as a worker of a data loader reads them."""
    rows = np.load(path, mmap_mode="r")
    return int(sum(rows[i].sum() for i in np.random.default_rng(seed).integers(0, len(rows), count)))


class NativeTest(MountTest):
    def setUp(self):
        super().setUp()
        # Neither rows nor the file end at a page.
        self.rows = np.random.default_rng(3).integers(0, 65536, (700, 3001), np.uint16)
        self.bytes = saved(self.rows)
        self.store = self.folder / "store"
        (self.store / "train").mkdir(parents=True)
        self.source = self.store / "train/x.npy"
        self.source.write_bytes(self.bytes)
        os.utime(self.source, ns=(LONG_AGO, LONG_AGO))
        info = json.loads(npyfs("info", "--json", self.store).stdout)
        # Whether this machine can; if not, the reason that `npyfs info` gives.
        self.why_not = info.get("not_native")
        self.native = "mapped" if self.why_not else "native"
        self.assertEqual(info["splits"][0]["arrays"][0]["access"], self.native)


class Reading(NativeTest):
    def check_reads(self, path):
        """Every way to read gives the bytes of the source."""
        size = len(self.bytes)
        self.assertEqual(path.stat().st_size, size)
        self.assertEqual(path.read_bytes(), self.bytes)
        self.assertEqual(run("cmp", self.source, path).returncode, 0)
        copy = self.folder / "copy"
        self.assertEqual(run("cp", path, copy).returncode, 0)
        self.assertEqual(copy.read_bytes(), self.bytes)
        sums = run("md5sum", self.source, path).stdout.split()
        self.assertEqual(sums[0], sums[2])
        np.testing.assert_array_equal(np.load(path), self.rows)
        np.testing.assert_array_equal(np.load(path, mmap_mode="r"), self.rows)
        with open(path, "rb", buffering=0) as file:
            self.assertEqual(os.pread(file.fileno(), 100, size - 50), self.bytes[-50:])
            self.assertEqual(os.pread(file.fileno(), 100, size), b"")
            self.assertEqual(os.lseek(file.fileno(), 0, os.SEEK_END), size)
            for flags in (mmap.MAP_SHARED, mmap.MAP_PRIVATE):
                with mmap.mmap(file.fileno(), 0, flags, mmap.PROT_READ) as mapped:
                    self.assertEqual(mapped[:], self.bytes)
            with open(copy, "wb") as out:
                os.lseek(file.fileno(), 0, os.SEEK_SET)
                while os.sendfile(out.fileno(), file.fileno(), None, 1 << 20):
                    pass
            self.assertEqual(copy.read_bytes(), self.bytes)

    def check_direct(self, path):
        self.assertEqual(read_direct(path, 0, 16 * PAGE), self.bytes[:16 * PAGE])
        last = (len(self.bytes) - 1) // PAGE * PAGE
        self.assertEqual(read_direct(path, last, PAGE), self.bytes[last:])
        fd = os.open(path, os.O_RDONLY | os.O_DIRECT)
        try:
            self.assertEqual(os.pread(fd, 1001, 77), self.bytes[77:1078], "at odd places, too")
            with mmap.mmap(fd, 0, mmap.MAP_SHARED, mmap.PROT_READ) as mapped:
                self.assertEqual(mapped[:], self.bytes)
        finally:
            os.close(fd)

    def check_workers(self, path):
        context = multiprocessing.get_context("fork")
        kept = np.load(path, mmap_mode="r")  # as a data set that was opened before the fork
        with context.Pool(4) as pool:
            found = pool.starmap(sum_rows, [(path, seed, 300) for seed in range(12)])
        self.assertEqual(found, [sum_rows(self.source, seed, 300) for seed in range(12)])
        np.testing.assert_array_equal(kept, self.rows)

    def test_by_the_kernel(self):
        for threads in (1, 4):
            with self.subTest(threads=threads):
                mnt = self.mount("--threads", threads, self.store, name=f"m{threads}")
                path = mnt / "train/x.npy"
                self.assertEqual(access_of(path), self.native)
                self.check_reads(path)
                self.check_direct(path)
                self.check_workers(path)
                self.check_reads(path)

    def test_by_npyfs_where_the_user_says_so(self):
        mnt = self.mount(self.store, "-o", "no_passthrough")
        path = mnt / "train/x.npy"
        self.assertEqual(access_of(path), "mapped")
        self.check_reads(path)
        self.check_direct(path)
        self.check_workers(path)

    def test_direct_and_other_readers_at_the_same_time(self):
        path = self.mount(self.store) / "train/x.npy"
        with open(path, "rb") as first:
            self.check_direct(path)
            with mmap.mmap(first.fileno(), 0, prot=mmap.PROT_READ) as mapped:
                self.check_direct(path)
                self.assertEqual(mapped[:], self.bytes)

    def test_without_asking_the_daemon(self):
        mnt = self.mount(self.store)
        daemon = self.daemon(mnt)
        fd = os.open(mnt / "train/x.npy", os.O_RDONLY)
        self.addCleanup(close_without_daemon, fd)
        with mmap.mmap(fd, 0, prot=mmap.PROT_READ) as mapped:
            if self.why_not:
                self.assertEqual(mapped[:], self.bytes)
                return
            os.kill(daemon, signal.SIGSTOP)
            try:
                self.assertEqual(os.pread(fd, len(self.bytes), 0), self.bytes)
                self.assertEqual(mapped[:], self.bytes)
            finally:
                os.kill(daemon, signal.SIGCONT)
            os.kill(daemon, signal.SIGKILL)
            wait_for_exit(daemon)
            self.assertEqual(mapped[:], self.bytes)

    def test_more_files_than_stay_open_in_the_daemon(self):
        for i in range(1500):
            np.save(self.store / f"train/y{i}.npy", np.full(3, i))
        mnt = self.mount(self.store, preexec_fn=limit_descriptors)
        held = [open(mnt / f"train/y{i}.npy", "rb") for i in range(0, 1500, 3)]
        for i, file in zip(range(0, 1500, 3), held):
            self.assertEqual(np.load(file).tolist(), [i] * 3)
            file.close()
        self.assertEqual(access_of(mnt / "train/y1499.npy"), self.native)


def close_without_daemon(fd):
    """The kernel wants to tell the daemon."""
    with contextlib.suppress(OSError):
        os.close(fd)


def limit_descriptors():
    import resource
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))


class WhatIsNotNative(NativeTest):
    def assert_access(self, word, *arguments, path="train/x.npy", name="mnt"):
        mnt = self.mount(*arguments, name=name)
        self.assertEqual(access_of(mnt / path), word)
        return mnt / path

    def test_arrays_that_are_no_files_of_their_own(self):
        write_ffrecord(self.folder / "a.ffr", self.rows[:10])
        self.assert_access("mapped", self.folder / "a.ffr", name="records")
        np.savez(self.folder / "a.npz", x=self.rows)
        path = self.assert_access("mapped", f"train={self.folder}/a.npz", name="member")
        np.testing.assert_array_equal(np.load(path), self.rows)
        np.savez_compressed(self.folder / "b.npz", x=self.rows)
        self.assert_access("decoded", f"train={self.folder}/b.npz", name="compressed")

    def test_what_the_mount_shows_in_another_way(self):
        path = self.assert_access("mapped", "--header-align", "4096", self.store, name="aligned")
        np.testing.assert_array_equal(np.load(path), self.rows)
        path = self.assert_access(self.native, self.store, name="plain")
        view = path.parents[1] / "@part=1of2/train/x.npy"
        self.assertEqual(access_of(view), "mapped")
        np.testing.assert_array_equal(np.load(view, mmap_mode="r"), self.rows[350:])

    def test_bytes_behind_the_array(self):
        with open(self.source, "ab") as file:
            file.write(b"more")
        path = self.assert_access("mapped", self.store)
        self.assertEqual(path.read_bytes(), self.bytes)

    def test_a_file_of_a_mount_that_the_kernel_reads_itself(self):
        inner = self.mount(self.store, name="inner")
        mnt, process = self.mount_in_front(inner, name="outer")
        self.assertEqual((mnt / "train/x.npy").read_bytes(), self.bytes)
        self.assertEqual(access_of(mnt / "train/x.npy"), "mapped")
        self.assertEqual((mnt / "train/x.npy").read_bytes(), self.bytes)
        npyfs("umount", mnt)
        said = process.communicate(timeout=TIMEOUT)[0]
        why = self.why_not or "it lies on a file system that lies on another one"
        self.assertEqual(len(re.findall(f"x.npy: .*{re.escape(why)}", said)), 1, said)

    def test_without_the_privilege(self):
        """Root of a user namespace may mount, but not hand files to the kernel."""
        mnt = self.mount_point()
        script = """if True:
            import os, pathlib, subprocess, sys
            path = pathlib.Path(sys.argv[2], "train/x.npy")
            whole = path.read_bytes()
            sys.stdout.write(os.getxattr(path, "user.npyfs.access").decode())
            sys.exit(whole != pathlib.Path(sys.argv[1]).read_bytes())
        """
        done = run("unshare", "-Urm", "sh", "-c",
                   '"$1" mount -f "$2" "$3" & until mountpoint -q "$3"; do sleep 0.1; done; '
                   '"$4" -c "$5" "$2/train/x.npy" "$3"; echo " $?"; umount "$3"; wait', "sh", NPYFS,
                   self.store, mnt, sys.executable, script)
        self.assertEqual(done.stdout, "mapped 0\n", done.stderr)
        self.assertRegex(done.stderr, "x.npy: npyfs reads it in the kernel's place: .*"
                         + ("CAP_SYS_ADMIN" if not self.why_not else ""))

    def test_info_says_why(self):
        drop = ["setpriv", "--bounding-set", "-sys_admin", "--inh-caps", "-sys_admin"]
        text = run(*drop, NPYFS, "info", self.store).stdout
        self.assertIn("not native  npyfs runs without CAP_SYS_ADMIN\n", text)
        self.assertIn("mapped", text)
        about = json.loads(run(*drop, NPYFS, "info", "--json", self.store).stdout)
        self.assertEqual(about["not_native"], "npyfs runs without CAP_SYS_ADMIN")
        write_ffrecord(self.folder / "a.ffr", self.rows[:10])
        self.assertNotIn("native", run(*drop, NPYFS, "info", self.folder / "a.ffr").stdout)


class Changes(NativeTest):
    def setUp(self):
        super().setUp()
        self.mnt = self.mount(self.store)
        self.path = self.mnt / "train/x.npy"
        self.file = open(self.path, "rb", buffering=0)
        self.addCleanup(self.file.close)

    def assert_stale(self):
        self.assert_errno(errno.ESTALE, self.path.read_bytes)
        self.assertIn("x.npy", (self.mnt / ".npyfs/errors").read_text())

    def test_another_file_of_its_name(self):
        new = self.folder / "new.npy"
        new.write_bytes(saved(self.rows[::-1]))
        os.rename(new, self.source)
        self.assert_stale()
        if not self.why_not:
            self.assertEqual(self.file.read(), self.bytes, "who has it open has the old one")
        # What was there before does not come back within the mount.
        self.source.write_bytes(self.bytes)
        os.utime(self.source, ns=(LONG_AGO, LONG_AGO))
        self.assert_stale()

    def test_each_opening_looks(self):
        """Twice within one second: what came later is found, too."""
        for _ in range(20):
            self.assertEqual(self.path.read_bytes(), self.bytes)
        os.utime(self.source)
        self.assert_stale()

    def test_writing_into_it(self):
        with open(self.source, "r+b") as source:
            source.seek(50_000)
            source.write(b"other")
        if not self.why_not:
            self.assertEqual(os.pread(self.file.fileno(), 7, 49_999),
                             self.bytes[49_999:50_000] + b"other" + self.bytes[50_005:50_006])
        self.assert_stale()

    def test_cutting_it_under_a_map(self):
        """A bus error, as of any file that is cut."""
        reader = subprocess.Popen(
            [sys.executable, "-c", """if True:
                import mmap, sys
                file = open(sys.argv[1], "rb")
                mapped = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
                print(mapped[-1], flush=True)
                sys.stdin.readline()
                print(mapped[len(mapped) // 2])
            """, self.path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.assertEqual(reader.stdout.readline(), f"{self.bytes[-1]}\n")
        os.truncate(self.source, 1000)
        reader.communicate("\n", timeout=TIMEOUT)
        self.assertEqual(reader.returncode, -signal.SIGBUS)
        self.assert_stale()


if __name__ == "__main__":
    unittest.main()
