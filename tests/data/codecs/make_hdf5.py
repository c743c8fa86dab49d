#!/usr/bin/python3
"""Writes hdf5.json: chunks as HDF5's filters store them, and what they decode to.

usage: make_hdf5.py > hdf5.json         (Debian's python3-h5py 3.7 and python3-numcodecs 0.11)

Bitshuffle's plugin is not in Debian: the bits are transposed by the copy of it in c-blosc, and put
into the plugin's frame here.
"""

import io
import json
import struct

import h5py
import numcodecs
import numpy as np

values = np.arange(90, dtype="<f8")
FLOATS = np.round(np.sin(values / 7) * 100).astype("<f4")
cases = []
for array, options in [(np.tile(FLOATS[:23], 5), dict(compression="lzf")),
                       (np.tile(np.arange(10, dtype="<i2"), 40), dict(compression="lzf")),
                       (np.zeros(3000, "u1"), dict(compression="lzf")),
                       (FLOATS, dict(compression="szip", compression_opts=("nn", 8))),
                       (FLOATS.astype("<f8"), dict(compression="szip", compression_opts=("nn", 16))),
                       (FLOATS.astype("<i2"), dict(compression="szip", compression_opts=("ec", 32))),
                       (np.tile(np.arange(10, dtype="u1"), 40), dict(compression="szip", compression_opts=("ec", 8))),
                       (FLOATS, dict(fletcher32=True)), (FLOATS.view("u1")[:-1], dict(fletcher32=True)),
                       (FLOATS.view("u1")[:-1].reshape(-1, 1), dict(shuffle=True))]:
    with h5py.File(io.BytesIO(), "w") as file:
        stored = file.create_dataset("x", data=array, chunks=array.shape, **options)
        mask, chunk = stored.id.read_direct_chunk((0,) * array.ndim)
        if mask:  # it did not become smaller
            continue
        number, _, cd, name = stored.id.get_create_plist().get_filter(0)
        cases.append({"filter": number, "values": list(cd), "encoded": chunk.hex(), "decoded": array.tobytes().hex()})


def shuffled_bits(array):
    """One block, taken out of a chunk of blosc."""
    chunk = numcodecs.Blosc("zstd", shuffle=2, clevel=1, blocksize=array.nbytes).encode(array)
    assert not chunk[2] & 2  # not stored as it is
    begin, = struct.unpack_from("<I", chunk, 16)
    nbytes, = struct.unpack_from("<I", chunk, begin)
    return numcodecs.Zstd().decode(chunk[begin + 4:begin + 4 + nbytes])


array = (np.arange(259) % 16 * 257).astype("<i4")  # a block of 256 and three that fill no eighth
bits, rest = shuffled_bits(array[:256]), array[256:].tobytes()
for inner, block in ((0, None), (2, bytes(numcodecs.LZ4().encode(bits))[4:]), (3, bytes(numcodecs.Zstd().encode(bits)))):
    framed = bits if block is None else struct.pack(">QII", array.nbytes, 8192, len(block)) + block
    cases.append({"filter": 32008, "values": [0, 0, 4, 0, inner], "encoded": (framed + rest).hex(),
                  "decoded": array.tobytes().hex()})
print("[" + ",\n".join(json.dumps(case) for case in cases) + "]")
