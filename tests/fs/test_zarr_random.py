"""Random arrays of zarr version 3, encoded here as the specification has it, through a mount.

Shards in shards, indices at both ends, chains of transpositions, checksums, either byte order, gaps
and any order of inner chunks, chunks and inner chunks that were never written; in a directory and in
archives that are stored or deflated. NPYFS_TEST_SEED chooses.
"""

import gzip
import itertools
import json
import os
import random
import struct
import unittest
import zipfile

import numpy as np

from mounting import MountTest, saved

TYPES = {"bool": "|b1", "int8": "|i1", "uint16": "<u2", "int32": "<i4", "uint64": "<u8",
         "float16": "<f2", "float32": "<f4", "float64": "<f8", "complex64": "<c8"}
NOWHERE = 2**64 - 1
ARRAYS = 60


def make_crc_table():
    table = []
    for number in range(256):
        for _ in range(8):
            number = number >> 1 ^ (0x82F63B78 if number & 1 else 0)
        table.append(number)
    return table


CRC_TABLE = make_crc_table()


def with_crc32c(data):
    crc = 0xffffffff
    for byte in data:
        crc = CRC_TABLE[(crc ^ byte) & 255] ^ crc >> 8
    return data + struct.pack("<I", crc ^ 0xffffffff)


def filled(shape, like):
    return np.full(shape, like.fill, like.dtype)


class Chain:
    """A random list of codecs for chunks of one shape, and how they encode."""

    def __init__(self, choose, shape, dtype, fill, depth=0):
        self.dtype, self.fill = dtype, fill
        self.orders = [choose.sample(range(len(shape)), len(shape))
                       for _ in range(choose.choice([0, 0, 1, 2]) if shape else 0)]
        self.codecs = [{"name": "transpose", "configuration": {"order": order}}
                       for order in self.orders]
        for order in self.orders:
            shape = [shape[axis] for axis in order]
        self.choose = choose
        self.inner = None
        if shape and depth < 2 and choose.random() < 0.5:
            self.add_shards(shape, depth)
        else:
            self.big = choose.random() < 0.5
            self.codecs.append({"name": "bytes",
                                "configuration": {"endian": "big" if self.big else "little"}})
        self.after = choose.choice([[], [], ["gzip"], ["crc32c"], ["crc32c", "gzip"]])
        self.codecs += [{"name": name, "configuration": {"level": 1}} if name == "gzip" else
                        {"name": name} for name in self.after]

    def add_shards(self, shape, depth):
        choose = self.choose
        self.inner_shape = [choose.choice([n for n in range(1, length + 1) if length % n == 0])
                            for length in shape]
        self.inner = Chain(choose, self.inner_shape, self.dtype, self.fill, depth + 1)
        self.index_first = choose.random() < 0.5
        self.index_crc = choose.random() < 0.5
        configuration = {
            "chunk_shape": self.inner_shape, "codecs": self.inner.codecs,
            "index_codecs": [{"name": "bytes", "configuration": {"endian": "little"}}] +
                            [{"name": "crc32c"}] * self.index_crc}
        if self.index_first or choose.random() < 0.5:
            configuration["index_location"] = "start" if self.index_first else "end"
        self.codecs.append({"name": "sharding_indexed", "configuration": configuration})

    def encode(self, chunk):
        for order in self.orders:
            chunk = chunk.transpose(order)
        if self.inner:
            data = self.encode_shard(chunk)
        else:
            data = chunk.astype(chunk.dtype.newbyteorder(">" if self.big else "<")).tobytes("C")
        for name in self.after:
            data = gzip.compress(data, 1) if name == "gzip" else with_crc32c(data)
        return data

    def encode_shard(self, shard):
        counts = [length // step for length, step in zip(shard.shape, self.inner_shape)]
        places = list(itertools.product(*map(range, counts)))
        at = 16 * len(places) + 4 * self.index_crc if self.index_first else 0
        index, parts = {}, []
        for place in self.choose.sample(places, len(places)):
            chunk = shard[tuple(slice(i * step, (i + 1) * step)
                                for i, step in zip(place, self.inner_shape))]
            if chunk.tobytes() == filled(chunk.shape, self).tobytes():
                index[place] = (NOWHERE, NOWHERE)
                continue
            data = self.inner.encode(chunk)
            gap = self.choose.choice([0, 0, 5])
            index[place] = (at + gap, len(data))
            parts += [b"\xee" * gap, data]
            at += gap + len(data)
        head = b"".join(struct.pack("<QQ", *index[place]) for place in places)
        head = with_crc32c(head) if self.index_crc else head
        return b"".join([head] + parts if self.index_first else parts + [head])


def write_array(choose, folder):
    """Writes a random array below `folder` and returns what is in it."""
    name = choose.choice(list(TYPES))
    dtype = np.dtype(TYPES[name])
    shape = [choose.choice([0, 1, 2, 4, 7, 12]) for _ in range(choose.choice([0, 1, 1, 2, 2, 3]))]
    chunk_shape = [choose.choice([1, 2, 4, 6, max(1, length)]) for length in shape]
    fill = choose.choice([0, 1])
    array = np.full(shape, fill, dtype)
    numbers = np.random.default_rng(choose.randrange(2**32))
    if array.size:
        written = numbers.random(shape) < choose.choice([0.2, 0.9])
        array = np.where(written, numbers.integers(0, 100, shape).astype(dtype), array).astype(dtype)
    chain = Chain(choose, chunk_shape, dtype, fill)
    keys, separator = choose.choice([("default", "/"), ("default", "."), ("v2", "."), ("v2", "/")])
    folder.mkdir()
    (folder / "zarr.json").write_text(json.dumps({
        "zarr_format": 3, "node_type": "array", "shape": shape, "data_type": name,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": chunk_shape}},
        "chunk_key_encoding": {"name": keys, "configuration": {"separator": separator}},
        "fill_value": bool(fill) if name == "bool" else [fill, 0] if dtype.kind == "c" else fill,
        "codecs": chain.codecs}))
    counts = [-(-length // step) for length, step in zip(shape, chunk_shape)]
    for place in itertools.product(*map(range, counts)):
        part = tuple(slice(i * step, min((i + 1) * step, length))
                     for i, step, length in zip(place, chunk_shape, shape))
        chunk = filled(chunk_shape, chain)
        chunk[tuple(slice(0, one.stop - one.start) for one in part)] = array[part]
        if chunk.tobytes() == filled(chunk_shape, chain).tobytes() and choose.random() < 0.7:
            continue
        key = separator.join(["c"] * (keys == "default") + [str(i) for i in place]) or "0"
        (folder / key).parent.mkdir(parents=True, exist_ok=True)
        (folder / key).write_bytes(chain.encode(chunk))
    return array


class RandomArrays(MountTest):
    def test_in_a_directory_and_in_archives(self):
        seed = int(os.environ.get("NPYFS_TEST_SEED", random.randrange(2**32)))
        choose = random.Random(seed)
        store = self.folder / "s.zarr"
        store.mkdir()
        (store / "zarr.json").write_text('{"zarr_format": 3, "node_type": "group"}')
        arrays = {f"a{i}": write_array(choose, store / f"a{i}") for i in range(ARRAYS)}
        for method in (None, zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            source = store
            if method is not None:
                source = self.folder / f"s{method}.zip"
                with zipfile.ZipFile(source, "w", method) as archive:
                    for file in store.rglob("*"):
                        archive.write(file, file.relative_to(store))
            mnt = self.mount(source, name=f"mnt{method}")
            for name, array in arrays.items():
                with self.subTest(NPYFS_TEST_SEED=seed, method=method, array=name):
                    self.assertTrue((mnt / f"{name}.npy").read_bytes() == saved(array))


if __name__ == "__main__":
    unittest.main()
