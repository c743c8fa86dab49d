"""Ragged arrays of stores in parts: values and offsets, recordings and their boundaries, cut as one.
"""

import json
import os
import re
import unittest

import numpy as np

from mounting import MountTest, npyfs, saved
from optional import optional
from writers import write_kaldi

h5py, numcodecs, zarr = map(optional, ("h5py", "numcodecs", "zarr"))

RECORDS = 53


class RaggedStores:
    """The same records in one store; what a subclass writes to `self.source`."""

    def setUp(self):
        super().setUp()
        random = np.random.default_rng(5)
        self.items = [random.integers(0, 1000, n % 8 if n % 5 else 0, dtype=np.int32)
                      for n in range(RECORDS)]
        self.labels = np.arange(RECORDS, dtype=np.float64)
        self.values = np.concatenate(self.items)
        self.offsets = np.concatenate([[0], np.cumsum([len(item) for item in self.items])])
        self.source = self.folder / self.SOURCE
        self.write()

    def check(self, folder, numbers, names=("v", "labels")):
        """`folder` shows exactly these records, byte for byte."""
        ragged, labels = names
        items = [self.items[number] for number in numbers]
        values = np.concatenate(items + [self.values[:0]])
        offsets = np.concatenate([[0], np.cumsum([len(item) for item in items])]).astype(np.int64)
        self.assertEqual((folder / f"{ragged}.npy").read_bytes(), saved(values))
        self.assertEqual((folder / f"{ragged}_offsets.npy").read_bytes(), saved(offsets))
        self.assertEqual((folder / f"{labels}.npy").read_bytes(), saved(self.labels[numbers]))

    def test_ranks_have_each_record_once(self):
        for rank in range(4):
            mnt = self.mount("--rank", rank, "--world-size", 4, self.source, name=f"rank{rank}")
            begin, end = RECORDS * rank // 4, RECORDS * (rank + 1) // 4
            self.check(mnt / "train", range(begin, end))
            if rank == 1:  # seen another way in its turn
                half = begin + (end - begin) // 2
                self.check(mnt / "@part=1of2/train", range(half, end))

    def test_more_ranks_than_records(self):
        mnt = self.mount("--rank", 0, "--world-size", 1000, self.source)
        self.check(mnt / "train", [])

    def test_views(self):
        mnt = self.mount(self.source)
        self.check(mnt / "train", range(RECORDS))
        self.check(mnt / "@part=2of3/train", range(RECORDS * 2 // 3, RECORDS))
        shuffled = mnt / "@shuffle=7/train"
        order = np.load(shuffled / "labels.npy").astype(int).tolist()
        self.assertEqual(sorted(order), list(range(RECORDS)))
        self.check(shuffled, order)
        self.check(mnt / "@shuffle=7,part=1of2/train", order[RECORDS // 2:])
        padded = np.load(mnt / "@pad,part=0of2/train/v.npy")
        lengths = np.load(mnt / "@pad,part=0of2/train/v_lengths.npy")
        self.assertEqual(lengths.tolist(), [len(item) for item in self.items[:RECORDS // 2]])
        for item, row in zip(self.items, padded):
            np.testing.assert_array_equal(row[:len(item)], item)
            self.assertFalse(row[len(item):].any())
        self.assertFalse((mnt / "@pad/train/v_offsets.npy").exists())

    def test_a_new_name_is_that_of_the_offsets_too(self):
        mnt = self.mount("--name", "v=w", self.source)
        self.check(mnt / "train", range(RECORDS), ("w", "labels"))
        self.check(mnt / "@part=0of2/train", range(RECORDS // 2), ("w", "labels"))

    def test_one_behind_the_other(self):
        mnt = self.mount(f"{self.source};{self.source}")
        self.check(mnt / "train", list(range(RECORDS)) * 2)
        self.check(mnt / "@part=1of4/train", list(range(RECORDS // 2, RECORDS)))


@unittest.skipIf(h5py is None, "python3-h5py is not installed")
class Hdf5Sequences(RaggedStores, MountTest):
    SOURCE = "s.h5"

    def write(self):
        with h5py.File(self.source, "w") as file:
            group = file.create_group("train")
            data = group.create_dataset("v", (RECORDS,), h5py.vlen_dtype(np.int32))
            for number, item in enumerate(self.items):
                data[number] = item
            group["labels"] = self.labels

    def test_records_of_a_store_without_groups_are_split(self):
        with h5py.File(self.source, "r+") as file:
            for name in ("v", "labels"):
                file.move(f"train/{name}", name)
            del file["train"]
        mnt = self.mount("--split", "train=0.5,val=0.5", self.source)
        both = []
        for split in ("train", "val"):
            numbers = np.load(mnt / split / "labels.npy").astype(int).tolist()
            self.check(mnt / split, numbers)
            both += numbers
        self.assertEqual(sorted(both), list(range(RECORDS)))
        (self.folder / "list").write_text("3\n50\n")
        mnt = self.mount("--split-list", f"val={self.folder}/list", self.source, name="listed")
        self.check(mnt / "val", [3, 50])

    def test_records_of_one_length_are_ragged_as_well(self):
        with h5py.File(self.source, "r+") as file:
            for name in ("v", "labels"):
                file.move(f"train/{name}", name)
            del file["train"]
        for numbers in ([2, 34], [7]):
            (self.folder / "list").write_text("".join(f"{number}\n" for number in numbers))
            self.assertEqual(len({len(self.items[number]) for number in numbers}), 1)
            mnt = self.mount("--split-list", f"val={self.folder}/list", self.source,
                             name=f"listed{len(numbers)}")
            self.check(mnt / "val", numbers)


@unittest.skipIf(zarr is None, "python3-zarr is not installed")
class ZarrSequences(RaggedStores, MountTest):
    SOURCE = "s.zarr"

    def write(self):
        group = zarr.open_group(str(self.source), mode="w").create_group("train")
        data = group.create_dataset("v", shape=RECORDS, chunks=7, dtype=object,
                                    object_codec=numcodecs.VLenArray(np.int32))
        for number, item in enumerate(self.items):
            data[number] = item
        group.create_dataset("labels", data=self.labels)


class NpyDirectory(RaggedStores, MountTest):
    SOURCE = "s.npy"

    def write(self):
        (self.source / "train").mkdir(parents=True)
        np.save(self.source / "train/v.npy", self.values)
        np.save(self.source / "train/v_offsets.npy", self.offsets)
        np.save(self.source / "train/labels.npy", self.labels)

    def test_fortran_order_ends_where_records_are_chosen(self):
        self.values = np.stack([self.values, -self.values], axis=1)
        self.items = [np.stack([item, -item], axis=1) for item in self.items]
        np.save(self.source / "train/v.npy", np.asfortranarray(self.values))
        mnt = self.mount(self.source)
        self.check(mnt / "@part=1of2/train", range(RECORDS // 2, RECORDS))

    def test_numbers_that_are_no_offsets(self):
        for bad, what in ((self.offsets[2:], "number 0 is"),
                          (self.offsets[:-9], "its last number is"),
                          (self.offsets[::-1], "number 0 is"),
                          (self.offsets + (np.arange(RECORDS + 1) == 9) * 99, "number 10 is"),
                          (self.offsets.astype("<i4"), "it is <i4"),
                          (self.offsets[:0], "it has 0 numbers")):
            with self.subTest(what):
                np.save(self.source / "train/v_offsets.npy", bad)
                done = npyfs("info", "--rank", "0", "--world-size", "2", self.source)
                self.assertEqual(done.returncode, 1)
                self.assertEqual(done.stderr.count("\n"), 1)
                self.assertIn(f"train/v_offsets beside train/v: {what}", done.stderr)
        for options in (["--rank", "0", "--world-size", "2"], ["--part", "0of2"],
                        ["--shuffle", "1"], ["--pad"]):
            done = npyfs("info", *options, self.source)
            self.assertEqual(done.stderr.split(":")[1].strip(), options[0], done.stderr)
        mnt = self.mount(self.source)
        self.assertEqual(sorted(os.listdir(mnt / "train")),
                         ["labels.npy", "v.npy", "v_offsets.npy"])
        self.assertEqual(sorted(os.listdir(mnt / "@part=0of2/train")), ["labels.npy", "perm.npy"])

    def test_records_beside_a_store_are_cut_as_well(self):
        write_kaldi(self.folder / "a", {f"u{i}": np.full((2, 3), i, "f4") for i in range(9)})
        sources = f"val=ark:{self.folder}/a.ark", f"train=npy:{self.source}/train"
        mnt = self.mount("--rank", "1", "--world-size", "3", *sources)
        self.assertEqual(np.load(mnt / "val/keys.npy").tolist(), ["u3", "u4", "u5"])
        self.assertEqual(np.load(mnt / "val/x.npy")[:, 0].tolist(), [3, 3, 4, 4, 5, 5])
        self.check(mnt / "train", range(RECORDS // 3, RECORDS * 2 // 3))
        mnt = self.mount("--rank", "2", "--world-size", "3", sources[0], name="alone")
        self.assertEqual(np.load(mnt / "val/keys.npy").tolist(), ["u6", "u7", "u8"])

    def test_a_name_alone_makes_no_offsets(self):
        np.save(self.source / "train/v_offsets.npy", np.zeros((4, 2)))
        mnt = self.mount("--rank", "1", "--world-size", "2", self.source)
        self.assertEqual(len(np.load(mnt / "train/v_offsets.npy")), 2)
        np.testing.assert_array_equal(np.load(mnt / "train/v.npy"),
                                      self.values[len(self.values) // 2:])


class Recordings(MountTest):
    """filename_SPLIT and the samples where each recording begins and ends."""

    def setUp(self):
        super().setUp()
        self.rate = 2000.0
        self.source = self.folder / "recordings"
        self.write("a", 300)
        self.write("b", 500)
        self.write("c", 7)

    def write(self, name, samples):
        self.source.mkdir(exist_ok=True)
        np.savez(self.source / f"{name}.npz", data=np.full((samples, 1), samples, np.int16),
                 samplerate=self.rate)
        (self.source / f"{name}_annotations.csv").write_text(
            "name,start_seconds,stop_seconds\nsine,0.01,0.02\n")

    def recordings(self, mnt, split="train"):
        attrs = json.loads((mnt / "attrs.json").read_text())
        same = np.load(mnt / "attrs.npy", allow_pickle=True)[()]
        keys = [f"filename{word}_{split}" for word in ("", "_startsample", "_endsample")]
        self.assertEqual([attrs.get(key) for key in keys], [same.get(key) for key in keys])
        return [attrs.get(key) for key in keys]

    def check(self, mnt, names):
        """Each recording is where the attributes say: its samples are its length."""
        found, starts, ends = self.recordings(mnt)
        self.assertEqual(found, names)
        x = np.load(mnt / "train/x.npy")[:, 0]
        length = {"a.npz": 300, "b.npz": 500, "c.npz": 7}
        expected = np.concatenate([np.full(end - start, length[name])
                                   for name, start, end in zip(found, starts, ends)])
        np.testing.assert_array_equal(x, expected)
        self.assertEqual((starts[0], ends[-1], starts[1:]), (0, len(x), ends[:-1]))

    def test_parts(self):
        for rank, names in enumerate((["a.npz"], ["a.npz", "b.npz"], ["b.npz", "c.npz"])):
            mnt = self.mount("--rank", rank, "--world-size", 3, f"das:{self.source}",
                             name=f"rank{rank}")
            self.check(mnt, names)
        self.check(mnt / "@part=0of2", ["b.npz"])
        mnt = self.mount(f"das:{self.source}")
        self.check(mnt, ["a.npz", "b.npz", "c.npz"])
        self.check(mnt / "@part=1of2", ["b.npz", "c.npz"])
        self.check(mnt / "@pad", ["a.npz", "b.npz", "c.npz"])

    def test_shuffled_rows_are_of_no_recording(self):
        mnt = self.mount(f"das:{self.source}")
        self.assertEqual(self.recordings(mnt / "@shuffle=1"), [None, None, None])

    def test_one_set_behind_the_other(self):
        sets = f"train=das:{self.source}/b.npz", f"train=das:{self.source}/a.npz"
        mnt = self.mount(*sets)
        self.check(mnt, ["b.npz", "a.npz"])
        self.assertNotIn("filename", self.said)
        self.check(self.mount("--rank", "1", "--world-size", "2", *sets, name="rank"),
                   ["b.npz", "a.npz"])

    def test_one_set_beside_the_other(self):
        mnt = self.mount(f"train=das:{self.source}/b.npz", f"val=das:{self.source}/a.npz",
                         f"test=das:{self.source}/c.npz", f"val=das:{self.source}/c.npz")
        self.assertNotIn("filename", self.said)
        self.assertEqual(self.recordings(mnt, "train"), [["b.npz"], [0], [500]])
        self.assertEqual(self.recordings(mnt, "val"), [["a.npz", "c.npz"], [0, 300], [300, 307]])
        self.assertEqual(self.recordings(mnt, "test"), [["c.npz"], [0], [7]])

    def test_rows_that_are_chosen_are_of_no_recording(self):
        (self.folder / "list").write_text("3\n700\n")
        for option, rule in (("--split", "train=0.8,val=0.2"), ("--split", "a=0.5,b=0.5"),
                             ("--split-list", f"val={self.folder}/list")):
            mnt = self.mount(option, rule, f"train=das:{self.source}", name=re.sub(r"\W", "", rule))
            self.assertEqual(sum(len(np.load(path)) for path in mnt.glob("*/x.npy")), 807)
            attrs = json.loads((mnt / "attrs.json").read_text())
            self.assertEqual(attrs["samplerate_x_Hz"], self.rate)
            self.assertEqual([name for name in attrs if name.startswith("filename")], [])

    def test_parts_of_a_set_with_labels_of_its_own(self):
        np.save(self.folder / "z.npy", np.arange(807))
        sources = f"train=das:{self.source}", f"train/z={self.folder}/z.npy"
        self.check(self.mount(*sources), ["a.npz", "b.npz", "c.npz"])
        write_kaldi(self.folder / "k", {f"u{i:03}": np.full((1, 3), i, "f4") for i in range(807)})
        sources = f"train/k=ark:{self.folder}/k.ark", f"train/x=das:{self.source}"
        mnt = self.mount(*sources, name="records")
        self.check(mnt, ["a.npz", "b.npz", "c.npz"])
        for rank, names in enumerate((["a.npz"], ["a.npz", "b.npz"], ["b.npz", "c.npz"])):
            mnt = self.mount("--rank", rank, "--world-size", 3, *sources, name=f"rank{rank}")
            self.check(mnt, names)
            self.assertEqual(np.load(mnt / "train/k.npy")[:, 0].tolist(),
                             list(range(269 * rank, 269 * (rank + 1))))

    def test_numbers_that_are_no_rows_are_left_out_where_rows_are_cut(self):
        store = self.folder / "das.npy"
        (store / "train").mkdir(parents=True)
        np.save(store / "train/x.npy", np.zeros((10, 1)))
        attrs = {"filename_train": ["a"], "filename_startsample_train": [10],
                 "filename_endsample_train": [20], "samplerate_x_Hz": 5}
        np.save(store / "attrs.npy", attrs)
        self.assertEqual(self.recordings(self.mount(store)), [["a"], [10], [20]])
        mnt = self.mount("--rank", "0", "--world-size", "2", store, name="rank")
        self.assertEqual(self.recordings(mnt), [None, None, None])
        self.assertIn("filename_startsample_train", self.said)
        self.assertEqual(json.loads((mnt / "attrs.json").read_text()), {"samplerate_x_Hz": 5})


if __name__ == "__main__":
    unittest.main()
