"""What appears in a mount: names, stat fields, attributes; and that nothing can be changed."""

import errno
import json
import os
import re
import shutil
import stat
import unittest

import numpy as np

from mounting import MountTest, mounts_at, npyfs, run, saved
from writers import write_ffrecord, write_recordio

TYPED = ("--dtype", "x=float32", "--shape", "x=3,4")


class TreeTest(MountTest):
    def setUp(self):
        super().setUp()
        self.data = self.folder / "data"
        self.data.mkdir()
        random = np.random.default_rng(1)
        self.train = random.random((20, 3, 4), np.float32)
        self.val = random.random((5, 3, 4), np.float32)
        write_ffrecord(self.data / "train-0.ffr", self.train[:12])
        write_ffrecord(self.data / "train-1.ffr", self.train[12:])
        write_ffrecord(self.data / "val.ffr", self.val)


class Names(TreeTest):
    def test_only_the_contract_is_listed(self):
        mnt = self.mount(*TYPED, self.data)
        self.assertEqual(sorted(os.listdir(mnt)), ["attrs.json", "attrs.npy", "train", "val"])
        self.assertEqual(sorted(os.listdir(mnt / "train")), ["records", "x.npy"])
        self.assertEqual(sorted(os.listdir(mnt / "train/records"), key=lambda n: int(n[:-4])),
                         [f"{i}.bin" for i in range(20)])

    def test_ragged_records_have_offsets(self):
        write_ffrecord(self.folder / "r.ffr", [b"abc", b"", b"de"])
        mnt = self.mount(self.folder / "r.ffr")
        self.assertEqual(sorted(os.listdir(mnt / "train")), ["records", "x.npy", "x_offsets.npy"])
        self.assertEqual(np.load(mnt / "train/x.npy").tobytes(), b"abcde")
        offsets = np.load(mnt / "train/x_offsets.npy")
        self.assertEqual((offsets.dtype, offsets.tolist()), (np.int64, [0, 3, 3, 5]))

    def test_keys(self):
        write_recordio(self.folder / "k.rec", [b"aaaa", b"bbbb", b"cccc"], keys=[7, 30, 12])
        mnt = self.mount(self.folder / "k.rec")
        self.assertEqual(sorted(os.listdir(mnt / "train")), ["keys.npy", "records", "x.npy"])
        keys = np.load(mnt / "train/keys.npy")
        self.assertEqual((keys.dtype, keys.tolist()), (np.int64, [7, 30, 12]))
        self.assertEqual(sorted(os.listdir(mnt / "train/records")), ["12.bin", "30.bin", "7.bin"])
        self.assertEqual((mnt / "train/records/30.bin").read_bytes(), b"bbbb")

    def test_equal_keys_are_told_apart(self):
        for name, records in (("a", [b"one1", b"two2"]), ("b", [b"uno1", b"dos2"])):
            write_recordio(self.folder / f"{name}.rec", records, keys=[1, 2])
        mnt = self.mount(f"{self.folder}/a.rec;{self.folder}/b.rec")
        self.assertEqual(np.load(mnt / "train/keys.npy").tolist(), [1, 2, 1, 2])
        stored = {path.name: path.read_bytes() for path in (mnt / "train/records").iterdir()}
        self.assertEqual(stored, {"1.bin": b"one1", "2.bin": b"two2", "1~2.bin": b"uno1",
                                  "2~2.bin": b"dos2"})

    def test_names_that_are_not_there(self):
        mnt = self.mount(*TYPED, self.data)
        for name in ("test", "x.npy", "train/y.npy", "train/x_offsets.npy", "train/keys.npy",
                     "train/records/20.bin", "train/records/01.bin", "train/records/-1.bin",
                     "train/records/0", "train/records/0.npy", "train/records/.bin",
                     "@", "@no-such-view", "@shuffle", "@shuffle=", "@part=3of", "@part=4of4",
                     "train/x.npy2", "TRAIN", ".npyfs/nothing"):
            with self.subTest(name):
                self.assert_errno(errno.ENOENT, os.stat, mnt / name)
        self.assert_errno(errno.ENOTDIR, os.stat, mnt / "train/x.npy/a")

    def test_status_is_reachable_but_not_listed(self):
        mnt = self.mount(*TYPED, self.data)
        self.assertNotIn(".npyfs", os.listdir(mnt))
        self.assertEqual((mnt / ".npyfs/errors").read_text(), "")

    def test_arrays_equal_what_numpy_saves(self):
        mnt = self.mount(*TYPED, self.data)
        golden = self.folder / "golden.npy"
        for split, array in (("train", self.train), ("val", self.val)):
            np.save(golden, array)
            done = run("cmp", golden, mnt / split / "x.npy")
            self.assertEqual((done.returncode, done.stdout), (0, ""))

    def test_record_files_hold_the_stored_bytes(self):
        mnt = self.mount(*TYPED, self.data)
        for i in (0, 11, 12, 19):
            self.assertEqual((mnt / f"train/records/{i}.bin").read_bytes(), self.train[i].tobytes())

    def test_attributes(self):
        mnt = self.mount(*TYPED, "--attr", 'note="a b"', "--attr", "rate=16000.5", self.data)
        wanted = {"note": "a b", "rate": 16000.5}
        self.assertEqual(json.loads((mnt / "attrs.json").read_text()), wanted)
        self.assertEqual(np.load(mnt / "attrs.npy", allow_pickle=True)[()], wanted)

    def test_class_names(self):
        (self.folder / "names").write_text("noise\nsong of a fly\n")
        mnt = self.mount(*TYPED, "--class-names", self.folder / "names", self.data)
        wanted = {"class_names": ["noise", "song of a fly"]}
        self.assertEqual(json.loads((mnt / "attrs.json").read_text()), wanted)
        self.assertEqual(np.load(mnt / "attrs.npy", allow_pickle=True)[()], wanted)

    def test_no_attributes(self):
        mnt = self.mount(*TYPED, self.data)
        self.assertEqual(json.loads((mnt / "attrs.json").read_text()), {})
        self.assertEqual(np.load(mnt / "attrs.npy", allow_pickle=True)[()], {})

    def test_walking_the_whole_tree(self):
        mnt = self.mount(*TYPED, self.data)
        done = run("ls", "-lR", mnt)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        files = [line.split() for line in done.stdout.splitlines() if line.startswith("-")]
        self.assertEqual(len(files), 2 + 2 + 20 + 5)
        self.assertEqual({f[0] for f in files}, {"-r--r--r--"})
        sizes = [int(f[4]) for f in files if f[-1] == "x.npy"]
        self.assertEqual(sorted(sizes), sorted(len(saved(a)) for a in (self.train, self.val)))

    def test_a_listing_can_be_continued_and_rewound(self):
        write_ffrecord(self.folder / "many.ffr", [b"%d" % i for i in range(3000)])
        mnt = self.mount(self.folder / "many.ffr")
        for _ in range(2):
            names = os.listdir(mnt / "train/records")
            self.assertEqual(len(names), 3000)
            self.assertEqual(set(names), {f"{i}.bin" for i in range(3000)})


class StatFields(TreeTest):
    def test_types_modes_and_owner(self):
        mnt = self.mount(*TYPED, self.data)
        for name in (".", "train", "val", "train/records"):
            status = os.stat(mnt / name)
            self.assertEqual(stat.filemode(status.st_mode), "dr-xr-xr-x", name)
            self.assertEqual((status.st_uid, status.st_gid), (os.getuid(), os.getgid()))
        for name in ("attrs.npy", "attrs.json", "train/x.npy", "train/records/0.bin"):
            status = os.stat(mnt / name)
            self.assertEqual(stat.filemode(status.st_mode), "-r--r--r--", name)
            self.assertEqual((status.st_uid, status.st_gid), (os.getuid(), os.getgid()))

    def test_size_is_known_before_and_after_reading(self):
        mnt = self.mount(*TYPED, self.data)
        path = mnt / "train/x.npy"
        self.assertEqual(path.stat().st_size, len(saved(self.train)))
        self.assertEqual(len(path.read_bytes()), len(saved(self.train)))
        self.assertEqual(path.stat().st_size, len(saved(self.train)))
        self.assertEqual((mnt / "train/records/3.bin").stat().st_size, 48)

    def test_inode_numbers_are_stable_distinct_and_those_of_the_listing(self):
        mnt = self.mount(*TYPED, self.data)

        def numbers():
            found = {}
            for folder, folders, files in os.walk(mnt):
                for entry in os.scandir(folder):
                    found[entry.path] = entry.stat(follow_symlinks=False).st_ino
                    self.assertEqual(entry.inode(), found[entry.path], entry.path)
            return found

        first = numbers()
        self.assertEqual(len(set(first.values())), len(first))
        run("fusermount3", "-u", mnt)
        self.assertEqual(npyfs("mount", *TYPED, self.data, mnt).returncode, 0)
        self.assertEqual(numbers(), first)

    def test_mtime_is_that_of_the_newest_source(self):
        for name, second in (("train-0.ffr", 1_500_000_000), ("train-1.ffr", 1_600_000_000),
                             ("val.ffr", 1_400_000_000)):
            nanoseconds = second * 10**9 + 123_456_789
            os.utime(self.data / name, ns=(nanoseconds, nanoseconds))
        mnt = self.mount(*TYPED, self.data)
        self.assertEqual(os.stat(mnt / "train/x.npy").st_mtime_ns, 1_600_000_000_123_456_789)
        self.assertEqual(os.stat(mnt / "val/x.npy").st_mtime_ns, 1_400_000_000_123_456_789)

    def test_statfs(self):
        mnt = self.mount(*TYPED, self.data)
        status = os.statvfs(mnt)
        self.assertTrue(status.f_flag & os.ST_RDONLY)
        self.assertEqual((status.f_bfree, status.f_bavail), (0, 0))
        self.assertGreaterEqual(status.f_namemax, 255)

    def test_the_mount_table(self):
        mnt = self.mount(*TYPED, self.data)
        kind, source, options = mounts_at(mnt)[0]
        self.assertEqual(kind, "fuse.npyfs")
        self.assertIn("data", source)
        self.assertIn("ro", options.split(","))


class ExtendedAttributes(TreeTest):
    def test_each_array_is_described(self):
        mnt = self.mount(*TYPED, self.data)
        path = mnt / "train/x.npy"
        self.assertEqual(set(os.listxattr(path)), {f"user.npyfs.{name}" for name in (
            "access", "format", "dtype", "shape", "records", "source")})
        value = {name: os.getxattr(path, f"user.npyfs.{name}").decode()
                 for name in ("access", "format", "dtype", "shape", "records", "source")}
        self.assertEqual(value["access"], "mapped")
        self.assertEqual(value["format"], "ffrecord")
        self.assertEqual(np.dtype(value["dtype"]), np.float32)
        self.assertEqual([int(n) for n in re.findall(r"\d+", value["shape"])], [20, 3, 4])
        self.assertEqual(value["records"], "20")
        self.assertIn("train-0.ffr", value["source"])

    def test_unknown_ones(self):
        mnt = self.mount(*TYPED, self.data)
        for name in ("user.npyfs.nothing", "user.other", "security.selinux"):
            self.assert_errno(errno.ENODATA, os.getxattr, mnt / "train/x.npy", name)
        self.assertEqual(os.listxattr(mnt), [])

    def test_getfattr(self):
        if not shutil.which("getfattr"):
            self.skipTest("getfattr is missing")
        mnt = self.mount(*TYPED, self.data)
        done = run("getfattr", "-d", "val/x.npy", cwd=mnt)
        self.assertIn('user.npyfs.records="5"', done.stdout)


class ReadOnly(TreeTest):
    def test_every_change_answers_erofs(self):
        mnt = self.mount(*TYPED, self.data)
        array, folder, new = mnt / "train/x.npy", mnt / "train", mnt / "train/new"
        calls = {
            "write": lambda: os.open(array, os.O_WRONLY),
            "read and write": lambda: os.open(array, os.O_RDWR),
            "truncating open": lambda: os.open(array, os.O_WRONLY | os.O_TRUNC),
            "append": lambda: os.open(array, os.O_WRONLY | os.O_APPEND),
            "create": lambda: os.open(new, os.O_WRONLY | os.O_CREAT),
            "truncate": lambda: os.truncate(array, 0),
            "unlink": lambda: os.unlink(array),
            "mkdir": lambda: os.mkdir(new),
            "rmdir": lambda: os.rmdir(folder),
            "rename": lambda: os.rename(array, new),
            "link": lambda: os.link(array, new),
            "symlink": lambda: os.symlink("x.npy", new),
            "mknod": lambda: os.mkfifo(new),
            "chmod": lambda: os.chmod(array, 0o644),
            "chown": lambda: os.chown(array, os.getuid(), os.getgid()),
            "utime": lambda: os.utime(array),
            "setxattr": lambda: os.setxattr(array, "user.npyfs.format", b"x"),
            "removexattr": lambda: os.removexattr(array, "user.npyfs.format"),
        }
        for name, call in calls.items():
            with self.subTest(name):
                self.assert_errno(errno.EROFS, call)
        self.assertFalse(os.access(array, os.W_OK))
        self.assertEqual(array.read_bytes(), saved(self.train))

    def test_asking_for_rw_changes_nothing(self):
        mnt = self.mount("-o", "rw", *TYPED, self.data)
        self.assert_errno(errno.EROFS, os.open, mnt / "train/x.npy", os.O_WRONLY)
        self.assert_errno(errno.EROFS, os.mkdir, mnt / "new")


if __name__ == "__main__":
    unittest.main()
