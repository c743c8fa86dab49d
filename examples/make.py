#!/usr/bin/python3
"""Writes the example data: examples/make.py [FOLDER]"""

import pathlib
import sys

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "support"))
import writers  # noqa: E402


def images(numbers):
    """float32 [N, 3, 8, 8] from 0 to 1: stripes whose angle tells the class, a shade per channel."""
    n, channel, row, column = np.ogrid[:0, :3, :8, :8]
    n = np.reshape(numbers, (-1, 1, 1, 1))
    phase = row * (n % 4) + column * (3 - n % 4) + n // 4 + channel * 2
    return (phase % 8 / np.float32(8)).astype(np.float32)


def main():
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "examples")
    for split, numbers in (("train", np.arange(64)), ("val", np.arange(64, 80))):
        for kind, rows in (("images", images(numbers)), ("labels", numbers % 4)):
            (folder / kind).mkdir(exist_ok=True)
            writers.write_ffrecord(folder / kind / f"{split}.ffr", rows)


if __name__ == "__main__":
    main()
