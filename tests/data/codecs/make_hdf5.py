#!/usr/bin/python3
"""Writes hdf5.json: chunks as HDF5's filters store them, and what they decode to.

usage: make_hdf5.py > hdf5.json         (Debian's python3-h5py 3.7)
"""

import io
import json

import h5py
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
print("[" + ",\n".join(json.dumps(case) for case in cases) + "]")
