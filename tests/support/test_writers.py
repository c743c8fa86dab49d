"""The writers write what the reference implementations wrote into tests/data."""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

import numpy as np

import writers

DATA = pathlib.Path(__file__).parents[1] / "data"


def items(folder):
    """The records of an expected tree, from x.npy and x_offsets.npy."""
    x = np.load(folder / "train" / "x.npy")
    if not (folder / "train" / "x_offsets.npy").exists():
        return list(x)
    offsets = np.load(folder / "train" / "x_offsets.npy")
    return [x[a:b] for a, b in zip(offsets, offsets[1:])]


class Writers(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def same(self, written, golden):
        self.assertEqual((self.folder / written).read_bytes(), (DATA / golden).read_bytes())

    def test_ffrecord(self):
        for name, case in (("fixed_f32", "fixed"), ("varlen", "varlen"), ("empty", "empty"),
                           ("single", "single"), ("all_zero_length", "all_zero_length")):
            with self.subTest(name):
                writers.write_ffrecord(self.folder / "a.ffr", items(DATA / "ffrecord/expected" / case))
                self.same("a.ffr", f"ffrecord/{name}.ffr")

    def test_sparse_ffrecord(self):
        writers.write_ffrecord(self.folder / "a", np.zeros((5, 24), np.uint8))
        writers.write_sparse_ffrecord(self.folder / "b", 5, 24)
        self.assertEqual((self.folder / "a").read_bytes(), (self.folder / "b").read_bytes())

    def test_recordio(self):
        for name, case in (("fixed_f32", "fixed"), ("varlen", "varlen"), ("magic", "magic"),
                           ("fixed_u32_magic", "fixed_u32_magic")):
            with self.subTest(name):
                case = DATA / "recordio/expected" / case
                keys = np.load(case / "train" / "keys.npy")
                writers.write_recordio(self.folder / "a.rec", items(case), keys)
                self.same("a.rec", f"recordio/{name}.rec")
                self.same("a.idx", f"recordio/{name}.idx")

    def test_recordio_without_index(self):
        writers.write_recordio(self.folder / "a.rec", items(DATA / "recordio/expected/magic-noidx"))
        self.same("a.rec", "recordio/magic_noidx.rec")
        self.assertFalse((self.folder / "a.idx").exists())

    def test_tfrecord(self):
        for name, case in (("raw_f32", "raw"), ("raw_varlen", "raw_varlen"), ("empty", "empty"),
                           ("one_empty_record", "one_empty_record")):
            with self.subTest(name):
                case = DATA / "tfrecord/expected" / case
                writers.write_tfrecord(self.folder / "a", items(case))
                self.same("a", f"tfrecord/{name}.tfrecord")

    def test_tfrecord_rows(self):
        rows = np.arange(5 * 18, dtype=np.float32).reshape(5, 2, 9)
        writers.write_tfrecord(self.folder / "a", rows)
        writers.write_tfrecord(self.folder / "b", list(rows))
        self.assertEqual((self.folder / "a").read_bytes(), (self.folder / "b").read_bytes())

    def test_kaldi(self):
        truth = np.load(DATA / "kaldi/tables/mat_f32.truth.npz")
        keys = json.loads(str(truth["keys"]))
        writers.write_kaldi(self.folder / "a",
                            {key: truth[f"a{i:05d}"] for i, key in enumerate(keys)})
        self.same("a.ark", "kaldi/tables/mat_f32.ark")

    def test_the_example_data(self):
        examples = DATA.parents[1] / "examples"
        run = subprocess.run([sys.executable, examples / "make.py", self.folder])
        self.assertEqual(run.returncode, 0)
        for name in ("images/train.ffr", "images/val.ffr", "labels/train.ffr", "labels/val.ffr"):
            self.assertEqual((self.folder / name).read_bytes(), (examples / name).read_bytes())

    def test_crc32c(self):
        digits = np.frombuffer(b"123456789", np.uint8)[None]
        self.assertEqual(writers.crc32c_rows(digits)[0], 0xE3069283)


if __name__ == "__main__":
    unittest.main()
