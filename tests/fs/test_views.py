"""Views: @shuffle, @part and @pad below a mount, each the same records another way."""

import os
import unittest

import numpy as np

from mounting import MountTest
from writers import write_kaldi

RECORDS = 50


class Views(MountTest):
    def setUp(self):
        super().setUp()
        random = np.random.default_rng(3)
        self.items = [random.standard_normal((int(random.integers(1, 9)), 5)).astype(np.float32)
                      for _ in range(RECORDS)]
        write_kaldi(self.folder / "a", {f"utt-{i:02d}": item for i, item in enumerate(self.items)})
        self.mnt = self.mount("--header-align", "4096", f"ark:{self.folder}/a.ark")

    def load(self, view, name):
        return np.load(self.mnt / view / "train" / f"{name}.npy", mmap_mode="r")

    def numbers(self, view):
        """The record that stands at each place of the view, by its key."""
        return [int(key.removeprefix("utt-")) for key in self.load(view, "keys")]

    def check_ragged(self, view):
        numbers = self.numbers(view)
        x, offsets = self.load(view, "x"), self.load(view, "x_offsets")
        self.assertEqual(len(offsets), len(numbers) + 1)
        for place, number in enumerate(numbers):
            np.testing.assert_array_equal(x[offsets[place]:offsets[place + 1]], self.items[number])
        self.assertEqual(len(x), offsets[-1])
        return numbers

    def test_parts_have_each_record_once(self):
        found = []
        for rank in range(7):
            found += self.check_ragged(f"@part={rank}of7")
        self.assertEqual(found, list(range(RECORDS)))

    def test_a_shuffle_has_each_record_once_in_another_order(self):
        numbers = self.check_ragged("@shuffle=7")
        self.assertEqual(sorted(numbers), list(range(RECORDS)))
        self.assertNotEqual(numbers, list(range(RECORDS)))
        parts = [n for rank in range(3) for n in self.check_ragged(f"@shuffle=7,part={rank}of3")]
        self.assertEqual(parts, numbers)

    def test_padded(self):
        x, lengths = self.load("@pad", "x"), self.load("@pad", "x_lengths")
        self.assertEqual(x.shape, (RECORDS, max(map(len, self.items)), 5))
        for item, row, length in zip(self.items, x, lengths):
            self.assertEqual(length, len(item))
            np.testing.assert_array_equal(row[:length], item)
            self.assertFalse(row[length:].any())

    def test_are_not_listed_but_read_as_a_data_set_of_their_own(self):
        view = self.mnt / "@shuffle=1"
        self.assertEqual(sorted(os.listdir(view)), ["attrs.json", "attrs.npy", "train"])
        self.assertNotIn("@shuffle=1", os.listdir(self.mnt))
        self.assertFalse((self.mnt / "@nonsense").exists())
        self.assertFalse((self.mnt / "train/@pad").exists())
        part = self.mnt / "@part=1of2/train/records"
        self.assertEqual(len(os.listdir(part)), RECORDS // 2)
        whole = self.mnt / "train/records/utt-30.bin"
        self.assertEqual((part / "utt-30.bin").read_bytes(), whole.read_bytes())


if __name__ == "__main__":
    unittest.main()
