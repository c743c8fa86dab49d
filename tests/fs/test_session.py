"""A mount from beginning to end: commands, options, signals, exit codes."""

import contextlib
import errno
import gzip
import io
import json
import os
import shutil
import signal
import tarfile
import unittest
import zipfile

import numpy as np

from mounting import (NPYFS, TIMEOUT, MountTest, mounts_at, npyfs, run, saved, unmount,
                      wait_for_exit)
from writers import write_ffrecord, write_kaldi


def tar_of(name, content):
    """A tar archive with one member."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        member = tarfile.TarInfo(name)
        member.size = len(content)
        archive.addfile(member, io.BytesIO(content))
    return packed.getvalue()


class SessionTest(MountTest):
    def setUp(self):
        super().setUp()
        self.rows = np.random.default_rng(9).random((50, 100, 20), np.float32)
        self.bytes = saved(self.rows.view(np.uint8).reshape(50, -1))
        self.source = self.folder / "data.ffr"
        write_ffrecord(self.source, self.rows)

    def assert_mounted(self, mnt):
        self.assertEqual([kind for kind, _, _ in mounts_at(mnt)], ["fuse.npyfs"])
        self.assertEqual((mnt / "train/x.npy").read_bytes(), self.bytes)


class Mounting(SessionTest):
    def test_without_the_verb(self):
        mnt = self.mount_point()
        done = npyfs(self.source, mnt)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assert_mounted(mnt)

    def test_relative_paths(self):
        mnt = self.mount_point()
        self.assertEqual(npyfs("mount", "data.ffr", "mnt", cwd=self.folder).returncode, 0)
        self.assert_mounted(mnt)

    def test_a_mountpoint_that_would_hide_a_source_is_refused(self):
        mnt = self.mount_point()
        os.link(self.source, mnt / "data.ffr")
        (mnt / "rows.npy").write_bytes(saved(self.rows))
        (mnt / "packed.tar.gz").write_bytes(gzip.compress(tar_of("0.npy", saved(self.rows[0]))))
        with zipfile.ZipFile(mnt / "s.zip", "w") as archive:
            archive.writestr("s.zarr/.zarray", json.dumps({
                "zarr_format": 2, "shape": [4], "chunks": [4], "dtype": "|u1", "compressor": None,
                "filters": None, "order": "C", "fill_value": 0}))
            archive.writestr("s.zarr/0", b"abcd")
        (self.folder / "link.npy").symlink_to(mnt / "rows.npy")
        names = [path.name for path in sorted(mnt.iterdir())]
        self.assertEqual(len(names), 4)
        # Messages name the ark as the script does; its path is below --base-dir.
        write_kaldi(mnt / "rows", {"a": self.rows[0]})
        (self.folder / "rows.scp").write_text("a rows.ark:2\n")
        for source in [*(f"mnt/{name}" for name in names), "link.npy", mnt / "data.ffr",
                       "rows.scp"]:
            with self.subTest(source=str(source)):
                done = npyfs("mount", "--base-dir", "mnt", source, "mnt", cwd=self.folder)
                self.assertEqual(done.returncode, 1, done.stderr)
                self.assertIn("the mountpoint would hide the source", done.stderr)
                self.assertEqual(mounts_at(mnt), [])

    def test_in_front_it_serves_until_unmounted(self):
        mnt, process = self.mount_in_front(self.source)
        self.assert_mounted(mnt)
        self.assertIsNone(process.poll())
        self.assertEqual(npyfs("umount", mnt).returncode, 0)
        self.assertEqual(process.wait(TIMEOUT), 0)

    def test_as_mount_8_calls_it(self):
        mnt = self.mount_point()
        done = npyfs(f"train=ffrecord:{self.source}", mnt, "-o",
                     r"rw,nosuid,nodev,dtype=x=float32,shape=x=100\,20")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(mounts_at(mnt)[0][0], "fuse.npyfs")
        self.assertEqual((mnt / "train/x.npy").read_bytes(), saved(self.rows))
        self.assertLessEqual({"ro", "nosuid", "nodev"}, set(mounts_at(mnt)[0][2].split(",")))

    def test_further_sources_by_option(self):
        mnt = self.mount_point()
        done = npyfs(f"train={self.source}", mnt, "-o", f"ro,source=val={self.source}")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual((mnt / "val/x.npy").read_bytes(), self.bytes)
        self.assert_mounted(mnt)

    def test_mount_8(self):
        if os.getuid() != 0 or not shutil.which("mount.fuse3"):
            self.skipTest("needs root and mount.fuse3")
        mnt = self.mount_point()
        # mount(8) looks for programs in the system's folders only; PROGRAM# names one elsewhere.
        done = run("mount", "-t", "fuse", "-o", "dtype=x=float32,shape=x=2000",
                   f"{NPYFS}#{self.source}", mnt)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(mounts_at(mnt)[0][0], "fuse.npyfs")
        self.assertEqual((mnt / "train/x.npy").read_bytes(), saved(self.rows.reshape(50, -1)))
        self.assertEqual(run("umount", mnt).returncode, 0)
        self.assertEqual(mounts_at(mnt), [])

    def test_allow_other_reaches_the_kernel(self):
        if os.getuid() != 0:
            self.skipTest("needs root, or user_allow_other")
        mnt = self.mount("-o", "allow_other", self.source)
        self.assertIn("allow_other", mounts_at(mnt)[0][2].split(","))

    def test_a_second_mount_on_a_busy_directory_is_refused(self):
        mnt = self.mount(self.source)
        done = npyfs("mount", self.source, mnt)
        self.assertEqual(done.returncode, 1)
        self.assertIn(str(mnt), done.stderr)
        self.assert_mounted(mnt)

    def test_the_same_data_mounted_twice(self):
        first, second = self.mount(self.source), self.mount(self.source, name="second")
        unmount(first)
        self.assert_mounted(second)


class Ending(SessionTest):
    def test_umount(self):
        mnt = self.mount(self.source)
        pid = self.daemon(mnt)
        done = npyfs("umount", mnt)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(mounts_at(mnt), [])
        wait_for_exit(pid)
        self.assertEqual(list(mnt.iterdir()), [])

    def test_umount_of_what_is_not_mounted(self):
        done = npyfs("umount", self.folder)
        self.assertEqual(done.returncode, 1)
        self.assertIn(str(self.folder), done.stderr)

    def test_signals(self):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            with self.subTest(number.name):
                mnt, process = self.mount_in_front(self.source, name=number.name)
                process.send_signal(number)
                self.assertEqual(process.wait(TIMEOUT), 0)
                self.assertEqual(mounts_at(mnt), [])

    def test_a_signal_to_the_daemon(self):
        mnt = self.mount(self.source)
        pid = self.daemon(mnt)
        os.kill(pid, signal.SIGTERM)
        wait_for_exit(pid)
        self.assertEqual(mounts_at(mnt), [])

    def test_while_a_reader_has_it_open_umount_refuses(self):
        mnt = self.mount(self.source)
        with open(mnt / "train/x.npy", "rb") as file:
            self.assertEqual(file.read(10), self.bytes[:10])
            done = npyfs("umount", mnt)
            self.assertEqual(done.returncode, 1)
            self.assertIn("busy", done.stderr)
            file.seek(0)
            self.assertEqual(file.read(), self.bytes)
        self.assertEqual(npyfs("umount", mnt).returncode, 0)
        self.assertEqual(mounts_at(mnt), [])

    def test_a_lazy_unmount_lets_the_reader_finish(self):
        mnt = self.mount(self.source)
        pid = self.daemon(mnt)
        with open(mnt / "train/x.npy", "rb") as file:
            self.assertEqual(run("fusermount3", "-u", "-z", mnt).returncode, 0)
            self.assertEqual(mounts_at(mnt), [])
            self.assertEqual(file.read(), self.bytes)
        wait_for_exit(pid)

    def test_a_killed_session_fails_its_readers_and_does_not_hang_them(self):
        mnt = self.mount(self.source)
        pid = self.daemon(mnt)
        fd = os.open(mnt / "train/x.npy", os.O_RDONLY)
        os.kill(pid, signal.SIGTERM)
        wait_for_exit(pid)
        with self.assertRaises(OSError) as caught:
            for at in range(0, len(self.bytes), 4096):
                os.pread(fd, 4096, at)
        self.assertIn(caught.exception.errno, (errno.ENOTCONN, errno.ECONNABORTED, errno.EIO))
        with contextlib.suppress(OSError):
            os.close(fd)
        self.assertEqual(mounts_at(mnt), [])

    def test_a_new_mount_after_a_crash(self):
        mnt = self.mount(self.source)
        pid = self.daemon(mnt)
        os.kill(pid, signal.SIGKILL)
        wait_for_exit(pid)
        self.assertEqual(npyfs("umount", mnt).returncode, 0)
        self.assertEqual(npyfs("mount", self.source, mnt).returncode, 0)
        self.assert_mounted(mnt)

    def test_the_daemon_holds_no_terminal_and_no_directory(self):
        mnt = self.mount(self.source)
        pid = self.daemon(mnt)
        self.assertEqual(os.readlink(f"/proc/{pid}/cwd"), "/")
        for fd in (0, 1, 2):
            self.assertEqual(os.readlink(f"/proc/{pid}/fd/{fd}"), "/dev/null")
        self.assertEqual(os.getsid(pid), pid)


class Refusals(SessionTest):
    """Nothing stays mounted, one line says why, and the exit code says whose fault it is."""

    def refused(self, code, *arguments, says=()):
        mnt = self.folder / "refused"
        mnt.mkdir(exist_ok=True)
        self.addCleanup(unmount, mnt)
        done = npyfs(*(mnt if a == "MNT" else a for a in arguments))
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertEqual(mounts_at(mnt), [])
        for word in says:
            self.assertIn(str(word), done.stderr)
        if code == 1:
            self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        self.assertTrue(done.stderr.strip())

    def test_a_damaged_source_is_named_with_its_place(self):
        broken = self.folder / "broken.ffr"
        broken.write_bytes(self.source.read_bytes()[:200])
        self.refused(1, "mount", broken, "MNT", says=[broken, "at byte", "expected"])
        with open(self.source, "r+b") as file:
            file.seek(20)
            file.write(b"\xff\xff")
        self.refused(1, "mount", self.source, "MNT", says=[self.source, "at byte", "expected"])

    def test_a_source_that_is_missing(self):
        gone = self.folder / "gone.ffr"
        self.refused(1, "mount", gone, "MNT", says=[gone])
        self.refused(1, "mount", f"val=ffrecord:{gone}", "MNT", says=[gone])

    def test_what_is_no_regular_file(self):
        fifo = self.folder / "fifo.ffr"
        os.mkfifo(fifo)
        self.refused(1, "mount", fifo, "MNT", says=[fifo])
        self.refused(1, "mount", "ffrecord:/dev/zero", "MNT", says=["/dev/zero"])

    def test_what_no_format_recognises(self):
        text = self.folder / "notes.txt"
        text.write_text("these are notes, not records\n" * 10)
        self.refused(1, "mount", text, "MNT", says=[text])

    def test_a_record_of_another_size_than_declared(self):
        self.refused(1, "mount", "--dtype", "x=float32", "--shape", "x=7", self.source, "MNT",
                     says=["data.ffr", "8000", "28"])

    def test_a_mount_point_that_is_missing_or_no_directory(self):
        gone = self.folder / "nowhere"
        self.refused(1, "mount", self.source, gone, says=[gone])
        self.refused(1, "mount", self.source, self.source, says=[self.source])

    def test_wrong_usage(self):
        self.refused(2)
        self.refused(2, "mount")
        self.refused(2, "mount", self.source)
        self.refused(2, "mount", "--no-such-option", self.source, "MNT", says=["no-such-option"])
        self.refused(2, "mount", "--verify=sometimes", self.source, "MNT", says=["sometimes"])
        self.refused(2, "mount", "--dtype", "x=complicated", self.source, "MNT",
                     says=["complicated"])
        self.refused(2, "mount", "--dtype", "x=object", self.source, "MNT", says=["object"])
        self.refused(2, "mount", "--dtype", "nothing=float32", self.source, "MNT", says=["nothing"])
        self.refused(2, "mount", "-o", "nosuchthing=1", self.source, "MNT", says=["nosuchthing"])
        self.refused(2, "mount", "nosuch:file", "MNT", says=["nosuch", "ffrecord", "tfrecord"])
        self.refused(2, "mount", "bad split=file", "MNT", says=["bad split"])


class Info(SessionTest):
    def test_text(self):
        done = npyfs("info", "--dtype", "x=float32", "--shape", "x=100,20", self.source)
        self.assertEqual(done.returncode, 0, done.stderr)
        for word in ("train", "x", "50", "100", "20", "400"):
            self.assertIn(word, done.stdout)
        self.assertRegex(done.stdout, "<f4|float32")

    def test_json_agrees_with_the_mount(self):
        typed = ("--dtype", "x=float32", "--shape", "x=100,20")
        done = npyfs("info", "--json", *typed, self.source)
        self.assertEqual(done.returncode, 0, done.stderr)
        arrays = [a for a in walk(json.loads(done.stdout)) if a.get("shape") == [50, 100, 20]]
        self.assertEqual(len(arrays), 1, done.stdout)
        path = self.mount(*typed, self.source) / "train/x.npy"
        self.assertEqual(np.dtype(arrays[0]["dtype"]), np.load(path, mmap_mode="r").dtype)
        self.assertEqual(arrays[0]["records"], 50)

    def test_refusals(self):
        self.assertEqual(npyfs("info").returncode, 2)
        done = npyfs("info", self.folder / "gone.ffr")
        self.assertEqual(done.returncode, 1)
        self.assertIn("gone.ffr", done.stderr)

    def test_version(self):
        done = npyfs("--version")
        self.assertEqual(done.returncode, 0)
        self.assertRegex(done.stdout, r"^npyfs \d+\.\d+\.\d+")


def walk(value):
    """Every dict in a JSON value."""
    if isinstance(value, dict):
        yield value
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from walk(item)


if __name__ == "__main__":
    unittest.main()
