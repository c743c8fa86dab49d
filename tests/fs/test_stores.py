"""Stores of arrays through a real mount, walked as DAS's loader of an npy_dir walks a directory.

[janclemenslab/das: src/das/npy_dir.py, src/das/data.py, src/das/data_hash.py]
"""

import errno
import glob
import hashlib
import json
import os
import re
import pathlib
import shutil
import tempfile
import unittest

import numpy as np

from mounting import MountTest, memory_of, npyfs, read_range, saved
from optional import optional

h5py, numcodecs, zarr = map(optional, ("h5py", "numcodecs", "zarr"))

DATA = pathlib.Path(__file__).parents[1] / "data"


def load_npy_dir(location, memmap_dirs=("train",)):
    """What DAS's loader makes of a directory: attributes, and arrays of each directory in it."""
    attributes = np.load(location / "attrs.npy", allow_pickle=True)[()]
    assert isinstance(attributes, dict)
    splits = {}
    for name in os.listdir(location):
        if not os.path.isdir(location / name):
            continue
        arrays = splits.setdefault(os.path.splitext(name)[0], {})
        for path in glob.glob(str(location / name / "*.npy")):
            mode = "r" if name in memmap_dirs else None
            arrays[os.path.splitext(os.path.basename(path))[0]] = np.load(path, mmap_mode=mode)
    return attributes, splits


def hash_of(location):
    """As DAS does before training: names and contents of all files, in reads of 64 KiB."""
    digest = hashlib.md5()
    for path in sorted(glob.glob(f"{location}/**/*", recursive=True), key=str.lower):
        if os.path.isfile(path):
            digest.update(os.path.relpath(path, location).encode())
            with open(path, "rb", buffering=0) as file:
                while part := file.read(65536):
                    digest.update(part)
    return digest.hexdigest()


def is_plain(value):
    """Whether YAML can print it as data: no numpy types."""
    if isinstance(value, list):
        return all(map(is_plain, value))
    return type(value) in (bool, int, float, str, type(None))


# Of each store: the arguments of the mount, the folder its arrays must equal (of each split), the
# arrays of which only the values count, and the splits that DAS can train from.
STORES = {
    "npy_dir": (["npy_dir/das.npy"], "npy_dir/das.npy", [], ["train", "val", "test"]),
    "npy_dir named": (["npy:npy_dir/das.npy"], "npy_dir/das.npy", [], ["train", "val", "test"]),
    "das folder": (["das:npy_dir/das_export"], "npy_dir/expected/das-folder",
                   ["train/x.npy", "train/y.npy"], ["train"]),
    "das recording": (["das:npy_dir/das_export/rec0.npz"], "npy_dir/expected/das-rec0",
                      ["train/y.npy"], ["train"]),
    "das splits": (["train=das:npy_dir/das_export/rec0.npz", "val=das:npy_dir/das_export/rec2.npz"],
                   "npy_dir/expected/das-as-splits", ["train/y.npy", "val/y.npy"], ["train", "val"]),
}


# One data set of DAS's in every store that can hold it.
DAS_STORES = ["npy_dir/das.npy", "zarr/das_v2.zarr", "zarr/das_v2.zip", "zarr/das_v3.zarr",
              "zarr/das_v3_sharded.zarr", "hdf5/das_contig.h5", "hdf5/das_chunked.h5"]
STORES.update({location: ([location], "npy_dir/das.npy", [], ["train", "val", "test"])
               for location in DAS_STORES[1:]})


class Loaders(MountTest):
    def mounted(self, *arguments):
        mnt = self.mount_point()
        done = npyfs("mount", *arguments, mnt, cwd=DATA)
        self.assertEqual(done.returncode, 0, done.stderr)
        return mnt

    def check_store(self, arguments, expected, by_value, splits):
        mnt = self.mounted(*arguments)
        attributes, loaded = load_npy_dir(mnt)
        self.assertEqual(set(loaded), set(splits))
        self.assertTrue(all(map(is_plain, attributes.values())), attributes)
        for split in splits:
            for golden in sorted((DATA / expected / split).glob("*.npy")):
                wanted = np.load(golden)
                got = loaded[split][golden.stem]
                np.testing.assert_array_equal(got, wanted, f"{split}/{golden.name}")
                if f"{split}/{golden.name}" not in by_value:
                    self.assertEqual((mnt / split / golden.name).read_bytes(), saved(wanted))
        self.check_windows(loaded["train"], attributes)
        self.assertEqual(hash_of(mnt), hash_of(mnt))

    def check_windows(self, train, attributes):
        """As training reads: windows at random places, and their labels."""
        x, y = train["x"], train["y"]
        self.assertIsInstance(x, np.memmap)
        self.assertEqual((x.ndim, y.shape), (2, (len(x), len(attributes["class_names"]))))
        whole_x, whole_y = np.array(x), np.array(y)
        np.testing.assert_allclose(whole_y.sum(axis=1), 1, rtol=1e-3)
        rng = np.random.default_rng(7)
        for first in rng.choice(len(x) - 64, size=32, replace=False):
            np.testing.assert_array_equal(x[first:first + 64, ...].copy(), whole_x[first:first + 64])
            np.testing.assert_array_equal(y[first:first + 64:2], whole_y[first:first + 64:2])


    def test_every_store_of_one_data_set_is_the_same_tree(self):
        trees = {}
        for number, location in enumerate(DAS_STORES):
            mnt = self.mount_point(f"mnt{number}")
            done = npyfs("mount", location, mnt, cwd=DATA)
            self.assertEqual(done.returncode, 0, done.stderr)
            attributes, _ = load_npy_dir(mnt)
            arrays = {str(path.relative_to(mnt)): path.read_bytes()
                      for path in mnt.rglob("*.npy") if path.name != "attrs.npy"}
            trees[location] = attributes, arrays
        first, arrays = trees.pop(DAS_STORES[0])
        self.assertEqual(len(arrays), 12)
        for location, (attributes, other) in trees.items():
            with self.subTest(location):
                self.assertEqual(attributes, first)
                self.assertEqual(other, arrays)


def store_test(row):
    return lambda self: self.check_store(*row)


for _name, _row in STORES.items():
    setattr(Loaders, "test_" + re.sub(r"\W", "_", _name), store_test(_row))


class Recordings(unittest.TestCase):
    """What is no recording is refused in one line that says why."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="npyfs-test-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def write(self, name="a", data=np.zeros((9, 1)), rate=100.0, annotations="sine,0.01,0.02\n"):
        np.savez(self.folder / f"{name}.npz", data=data, samplerate=rate)
        (self.folder / f"{name}_annotations.csv").write_text(
            "name,start_seconds,stop_seconds\n" + annotations)

    def refused(self, *words, sources=None):
        done = npyfs("info", *(sources or [f"das:{self.folder}"]))
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        for word in words:
            self.assertIn(word, done.stderr)

    def test_what_is_no_audio(self):
        for data, words in (
                (np.array([{}, 1], dtype=object), ["data: at byte", "Python objects"]),
                (np.array([["text"]]), ["data is <U4, expected integers or floats"]),
                (np.zeros((9, 1), complex), ["data is <c16"]),
                (np.zeros(9, [("a", "<i4")]), ["data is [('a', '<i4')]"]),
                (np.zeros((9, 0)), ["data is (9, 0), expected one channel or more"]),
                (np.zeros((2, 2, 2)), ["data is (2, 2, 2)"])):
            with self.subTest(words):
                self.write(data=data)
                self.refused("a.npz: ", *words)
        self.write(rate=np.array(None, dtype=object))
        self.refused("samplerate: at byte", "Python objects")
        np.savez(self.folder / "a.npz", data=np.zeros(9))
        self.refused("it has no array samplerate")

    def test_recordings_that_do_not_go_together(self):
        self.write("a")
        self.write("b", rate=200.0)
        self.refused("b.npz: its sample rate is 200 Hz, expected the 100 Hz of a.npz")
        one_by_one = [f"train=das:{self.folder}/{name}.npz" for name in "ab"]
        self.refused("its attribute samplerate_x_Hz is 200.0, expected 100.0", sources=one_by_one)
        self.write("b", data=np.zeros((9, 2)))
        self.refused("b.npz: it has 2 channels, expected the 1 of a.npz")
        self.write("b", annotations="other,0.01,0.02\n")
        self.refused("its attribute class_names is", "other", sources=one_by_one)

    def test_recordings_without_annotations(self):
        self.refused("holds no recording, expected NAME.wav or NAME.npz and NAME_annotations.csv")
        self.write()
        (self.folder / "a_annotations.csv").rename(self.folder / "b_annotations.csv")
        self.refused("holds no recording", "a.npz has no annotations beside it")
        self.refused("a.npz: the recording has no annotations beside it", "a_annotations.csv",
                     sources=[f"das:{self.folder}/a.npz"])
        (self.folder / "a.npz").unlink()
        self.refused("holds no recording", "b_annotations.csv has no recording beside it")

    def test_words_that_are_no_number(self):
        self.write(annotations="bip,<NA>,None\nsyll,-nan,0\npulse,0.01,0.01\n")
        done = npyfs("info", "--json", f"das:{self.folder}")
        attrs = json.loads(done.stdout)["attrs"]
        self.assertEqual(attrs["class_names"], ["noise", "bip", "pulse", "syll"])
        self.assertEqual(attrs["class_types"], ["segment", "event", "event", "segment"])


class Trees(MountTest):
    """Groups at any depth, attributes of groups and arrays, names that files may not have."""

    def setUp(self):
        super().setUp()
        self.store = self.folder / "store.npy"

    def save(self, path, array):
        path = self.store / path
        path.parent.mkdir(parents=True, exist_ok=True)
        np.save(path, array)

    def mount(self, *arguments, status=0):
        self.mounts = getattr(self, "mounts", 0) + 1
        mnt = self.mount_point(f"mnt{self.mounts}")
        self.done = npyfs("mount", *arguments, mnt)
        self.assertEqual(self.done.returncode, status, self.done.stderr)
        return mnt

    def listed(self, mnt):
        return sorted(os.path.relpath(os.path.join(at, name), mnt)
                      for at, _, files in os.walk(mnt) for name in files)

    def test_groups_nest_and_have_attributes(self):
        self.save("a/b/c/deep.npy", np.arange(5))
        self.save("top.npy", np.float32(3))
        self.save("a/é ü.npy", np.ones((2, 0)))
        (self.store / "a" / "b" / "attrs.json").write_text('{"unit": "s"}')
        (self.store / "top.attrs.json").write_text('{"n": [1, null]}')
        mnt = self.mount(self.store)
        self.assertEqual(self.listed(mnt), sorted([
            "attrs.json", "attrs.npy", "top.attrs.json", "top.npy", "a/é ü.npy",
            "a/b/attrs.json", "a/b/c/deep.npy"]))
        self.assertEqual(json.loads((mnt / "a/b/attrs.json").read_text()), {"unit": "s"})
        self.assertEqual(json.loads((mnt / "top.attrs.json").read_text()), {"n": [1, None]})
        for name in ("a/b/c/deep.npy", "top.npy", "a/é ü.npy"):
            self.assertEqual((mnt / name).read_bytes(), (self.store / name).read_bytes())
            about, source = (mnt / name).stat(), (self.store / name).stat()
            self.assertEqual(about.st_mtime_ns, source.st_mtime_ns)
        self.assertEqual(os.getxattr(mnt / "a/b/c/deep.npy", "user.npyfs.shape"), b"(5,)")
        self.assertEqual(os.getxattr(mnt / "a/b/c/deep.npy", "user.npyfs.format"), b"npy")

    def test_inodes_are_the_same_at_every_mount(self):
        self.save("train/x.npy", np.arange(5))
        self.save("val/in/x.npy", np.arange(5))
        inodes = [{name: (mnt / name).stat().st_ino for name in self.listed(mnt)}
                  for mnt in (self.mount(self.store), self.mount(self.store))]
        self.assertEqual(*inodes)
        self.assertEqual(len(set(inodes[0].values())), len(inodes[0]))

    def test_strangers_are_left_out_with_a_warning(self):
        self.save("train/x.npy", np.arange(5))
        self.save("train/objects.npy", np.array([{}], dtype=object))
        (self.store / "notes.txt").write_text("hello")
        (self.store / "train" / "round").symlink_to("..")
        (self.store / "train" / ".hidden.npy").write_text("no array")
        os.mkfifo(self.store / "train" / "pipe.npy")
        mnt = self.mount(self.store)
        self.assertEqual(self.listed(mnt), ["attrs.json", "attrs.npy", "train/x.npy"])
        for word in ("notes.txt", "objects.npy", "round", "pipe.npy"):
            self.assertIn(word, self.done.stderr)

    def test_damage_refuses_the_mount_or_is_left_out(self):
        self.save("train/x.npy", np.arange(5))
        self.save("train/y.npy", np.arange(5))
        whole = (self.store / "train/y.npy").read_bytes()
        (self.store / "train/y.npy").write_bytes(whole[:-1])
        self.mount(self.store, status=1)
        self.assertIn("y.npy at byte 167", self.done.stderr)
        mnt = self.mount("--permissive", self.store)
        self.assertEqual(self.listed(mnt), ["attrs.json", "attrs.npy", "train/x.npy"])
        self.assertIn("y.npy", self.done.stderr)

    def test_links_lead_nowhere_else_for_others(self):
        self.save("train/x.npy", np.arange(5))
        np.save(self.folder / "secret.npy", np.arange(3))
        (self.store / "train" / "linked.npy").symlink_to(self.folder / "secret.npy")
        self.assertIn("train/linked.npy", self.listed(self.mount(self.store)))
        mnt = self.mount("-o", "allow_other", self.store)
        self.assertNotIn("train/linked.npy", self.listed(mnt))
        self.assertIn("linked.npy", self.done.stderr)

    def test_an_archive_has_groups_too(self):
        self.store.mkdir()
        arrays = {"a/x": np.arange(1000.0), "b": np.asfortranarray(np.ones((3, 4))), "a/y": np.int8(3)}
        for save in (np.savez, np.savez_compressed):
            save(self.folder / "set.npz", **arrays)
            mnt = self.mount(self.folder / "set.npz")
            for name, array in arrays.items():
                self.assertEqual((mnt / f"{name}.npy").read_bytes(), saved(array), name)

    def test_stores_stand_one_behind_the_other(self):
        for name, rows in (("one", 3), ("two", 5)):
            self.store = self.folder / f"{name}.npy"
            self.save("train/x.npy", np.full((rows, 2), rows))
            self.save(f"{name}/only.npy", np.arange(rows))
        mnt = self.mount(f"npy:{self.folder}/one.npy;{self.folder}/two.npy")
        self.assertEqual(np.load(mnt / "train/x.npy")[:, 0].tolist(), [3] * 3 + [5] * 5)
        self.assertEqual(len(np.load(mnt / "one/only.npy")), 3)
        self.assertEqual(len(np.load(mnt / "two/only.npy")), 5)
        self.save("train/x.npy", np.zeros((5, 3)))
        self.mount(f"npy:{self.folder}/one.npy;{self.folder}/two.npy", status=1)
        self.assertIn("two.npy/train/x.npy", self.done.stderr)
        self.save("train/z.npy", np.zeros(3))
        self.mount(f"npy:{self.folder}/one.npy;{self.folder}/two.npy", status=1)
        self.assertIn("train/z", self.done.stderr)

    def test_fortran_order_ends_where_arrays_are_put_together(self):
        rng = np.random.default_rng(3)
        parts = [rng.integers(0, 99, (rows, 3, 5), dtype=np.int16) for rows in (7, 0, 300_000, 2)]
        for i, part in enumerate(parts):
            np.save(self.folder / f"{i}.npy", np.asfortranarray(part) if i != 3 else part)
        mnt = self.mount(";".join(f"{self.folder}/{i}.npy" for i in range(4)))
        self.assertEqual((mnt / "train/x.npy").read_bytes(), saved(np.concatenate(parts)))

    def test_checksums_of_archives_are_verified_at_mount(self):
        np.savez(self.folder / "set.npz", a=np.arange(1000), b=np.arange(1000))
        data = bytearray((self.folder / "set.npz").read_bytes())
        data[1000] ^= 1
        (self.folder / "set.npz").write_bytes(data)
        mnt = self.mount(self.folder / "set.npz")
        self.assertEqual(len((mnt / "b.npy").read_bytes()), 8128)
        self.assert_errno(errno.EIO, (mnt / "a.npy").read_bytes)
        self.assertEqual(self.done.stderr, "")
        self.assertIn("b.npy", self.listed(self.mount("--verify=mount", self.folder / "set.npz")))
        self.assertIn("set.npz at byte 55: checksum", self.done.stderr)
        mnt = self.mount("--verify=mount", "--permissive", self.folder / "set.npz")
        self.assertEqual(self.listed(mnt), ["attrs.json", "attrs.npy", "b.npy"])

    def flip(self, path, offset):
        data = bytearray(path.read_bytes())
        data[offset] ^= 1
        path.write_bytes(data)

    def check_verified(self, path, whole, bad, words):
        """`bad` is damaged: told at mount where that is asked for, and EIO when it is read."""
        mnt = self.mount(path)
        self.assertEqual(self.done.stderr, "")
        self.assert_errno(errno.EIO, (mnt / bad).read_bytes)
        mnt = self.mount("--verify=mount", path)
        self.assertEqual(self.done.stderr.count("\n"), 1, self.done.stderr)
        for word in words:
            self.assertIn(word, self.done.stderr)
        self.assertTrue({whole, bad} <= set(self.listed(mnt)))
        mnt = self.mount("--verify=mount", "--permissive", path)
        self.assertIn("is left out", self.done.stderr)
        self.assertIn(whole, self.listed(mnt))
        self.assertNotIn(bad, self.listed(mnt))

    def test_deflated_members_are_verified_at_mount(self):
        path = self.folder / "set.npz"
        np.savez_compressed(path, a=np.random.default_rng(1).random(1000), b=np.arange(1000))
        self.mount("--verify=mount", path)
        self.assertEqual(self.done.stderr, "")
        self.flip(path, 4000)
        self.check_verified(path, "b.npy", "a.npy", ["a.npy"])

    @unittest.skipIf(h5py is None, "python3-h5py is not installed")
    def test_chunks_of_hdf5_are_verified_at_mount(self):
        path = self.folder / "s.h5"
        with h5py.File(path, "w") as file:
            for name in "ab":
                data = file.create_dataset(name, data=np.arange(4000), chunks=(500,),
                                           fletcher32=True)
            second = data.id.get_chunk_info(1).byte_offset
            seventh = data.id.get_chunk_info(6).byte_offset
        self.mount("--verify=mount", path)
        self.assertEqual(self.done.stderr, "")
        self.flip(path, second + 100)
        self.flip(path, seventh + 100)
        self.check_verified(path, "a.npy", "b.npy", ["fletcher32", "(2 of 8 chunks of array b fail)"])

    @unittest.skipIf(zarr is None, "python3-zarr is not installed")
    def test_chunks_of_zarr_are_verified_at_mount(self):
        path = self.folder / "s.zarr"
        group = zarr.open_group(str(path), mode="w")
        for name in "ab":
            group.create_dataset(name, data=np.arange(4000), chunks=1000, compressor=None,
                                 filters=[numcodecs.CRC32()])
        self.mount("--verify=mount", path)
        self.assertEqual(self.done.stderr, "")
        self.flip(path / "b" / "2", 100)
        self.check_verified(path, "a.npy", "b.npy", ["crc32", "(1 of 4 chunks of array b fail)"])

    def save_metadata(self, **changes):
        """A zarr array of which no chunk was ever written, beside one that is whole."""
        path = self.folder / "sparse.zarr"
        metadata = {"zarr_format": 2, "shape": [8], "chunks": [8], "dtype": "<i8", "order": "C",
                    "fill_value": 0, "filters": None, "compressor": {"id": "zlib", "level": 1}}
        for name, fields in (("a", {}), ("b", changes)):
            (path / name).mkdir(parents=True, exist_ok=True)
            (path / name / ".zarray").write_text(json.dumps({**metadata, **fields}))
        (path / ".zgroup").write_text('{"zarr_format": 2}')
        return path

    def test_more_chunks_than_can_be_verified_at_mount(self):
        path = self.save_metadata(shape=[2 ** 60], chunks=[1], dtype="|i1")
        mnt = self.mount(path)
        self.assertEqual(read_range(mnt / "b.npy", 128, 800), bytes(800))
        self.mount("--verify=mount", path, status=1)
        self.assertEqual(self.done.stderr.count("\n"), 1, self.done.stderr)
        self.assertIn(f"the array has {2 ** 60} chunks, expected at most 16777216",
                      self.done.stderr)
        mnt = self.mount("--verify=mount", "--permissive", path)
        self.assertEqual(self.done.stderr.count("\n"), 1, self.done.stderr)
        self.assertIn("array b is left out", self.done.stderr)
        self.assertEqual(self.listed(mnt), ["a.npy", "attrs.json", "attrs.npy"])

    def test_what_was_never_written_takes_no_memory_to_be_verified(self):
        path = self.save_metadata(shape=[2 ** 40], chunks=[2 ** 27])
        mnt, _ = self.mount_in_front("--verify=mount", path)
        self.assertIn("b.npy", self.listed(mnt))
        self.assertLess(memory_of(self.daemon(mnt), "VmHWM"), 512 << 20)

    def test_labels_join_records_row_by_row(self):
        ffr = DATA / "ffrecord/fixed_f32.ffr"
        x = np.load(self.mount(ffr, "--dtype", "x=float32") / "train/x.npy")
        labels = np.arange(2 * len(x), dtype=">i2").reshape(len(x), 2)
        np.save(self.folder / "labels.npy", labels)
        mnt = self.mount("--dtype", "x=float32", f"train={ffr}", f"train/y={self.folder}/labels.npy")
        self.assertEqual((mnt / "train/y.npy").read_bytes(), saved(labels))
        np.testing.assert_array_equal(np.load(mnt / "train/x.npy"), x)
        np.save(self.folder / "labels.npy", labels[1:])
        self.mount(f"train={ffr}", f"train/y={self.folder}/labels.npy", status=1)
        self.assertIn("labels.npy", self.done.stderr)

    def test_options_for_records_are_refused(self):
        self.save("train/x.npy", np.arange(5))
        for option in ("--dtype=x=float32", "--shape=x=5", "--layout=x=stack", "--decode=x=raw"):
            self.mount(option, self.store, status=2)
            self.assertIn("x is an array of a store", self.done.stderr)
        self.mount("--name", "z=y", self.store, status=2)
        self.assertEqual(self.listed(self.mount("--name", "x=y", self.store)),
                         ["attrs.json", "attrs.npy", "train/y.npy"])

    def test_split_words_name_single_arrays(self):
        np.save(self.folder / "val.npy", np.arange(3))
        self.assertIn("val/x.npy", self.listed(self.mount(self.folder / "val.npy")))

    def test_info_shows_groups_and_attributes(self):
        self.save("train/in/x.npy", np.arange(5))
        (self.store / "train" / "attrs.json").write_text('{"unit": "s"}')
        done = npyfs("info", self.store)
        self.assertIn("train/in/", done.stdout)
        self.assertIn("attrs  unit", done.stdout)
        about = json.loads(npyfs("info", "--json", self.store).stdout)
        train = about["splits"][0]
        self.assertEqual((train["name"], train["attrs"]), ("train", {"unit": "s"}))
        self.assertEqual(train["groups"][0]["arrays"][0]["shape"], [5])

    def test_info_of_what_is_empty(self):
        (self.store / "train" / "empty").mkdir(parents=True)
        self.save("top.npy", np.arange(5))
        text = npyfs("info", self.store).stdout
        self.assertEqual(text.count("dtype"), 1, text)
        np.savez(self.folder / "set.npz", a=np.arange(5))
        self.assertRegex(npyfs("info", self.folder / "set.npz").stdout, r"total  40 bytes\n")

    def test_one_change_is_one_finding(self):
        self.save("train/x.npy", np.arange(500_000))
        mnt = self.mount(self.store)
        path = self.store / "train/x.npy"
        first = (self.folder / "kept", path.read_bytes()[:2_000_000])
        path.rename(first[0])
        self.assert_errno(errno.ESTALE, read_range, mnt / "train/x.npy", 2_000_000, 4096)
        path.write_bytes(first[1])
        self.assert_errno(errno.ESTALE, read_range, mnt / "train/x.npy", 3_000_000, 4096)
        lines = (mnt / ".npyfs/errors").read_text().splitlines()
        self.assertEqual(len(lines), 1, lines)
        self.assertIn("has gone", lines[0])

    @unittest.skipIf(zarr is None, "python3-zarr is not installed")
    def test_a_chunk_that_is_a_link_to_itself_is_damaged(self):
        path = self.folder / "s.zarr"
        zarr.open(str(path), mode="w", shape=4000, chunks=1000, dtype="i8")[:] = np.arange(4000)
        (path / "2").unlink()
        (path / "2").symlink_to("2")
        mnt = self.mount(path)
        self.assertEqual(read_range(mnt / "train/x.npy", 128, 4096), np.arange(512).tobytes())
        self.assert_errno(errno.EIO, read_range, mnt / "train/x.npy", 20_000, 4096)

    def test_a_changed_file_is_stale(self):
        self.save("train/x.npy", np.arange(500_000))
        mnt = self.mount(self.store)
        read_range(mnt / "train/x.npy", 0, 128)
        shutil.copy(self.store / "train/x.npy", self.folder / "other.npy")
        os.replace(self.folder / "other.npy", self.store / "train/x.npy")
        self.assert_errno(errno.ESTALE, read_range, mnt / "train/x.npy", 2_000_000, 4096)


if __name__ == "__main__":
    unittest.main()
