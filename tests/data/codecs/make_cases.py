#!/usr/bin/python3
"""Writes cases.json: what numcodecs encodes with each codec, and what that decodes to.

usage: make_cases.py > cases.json        (Debian's python3-numcodecs 0.11)

checksums.json beside it holds chunks that numcodecs 0.15.1 wrote (crc32c, fletcher32,
jenkins_lookup3), which 0.11 does not know.
"""

import json

import numpy as np
from numcodecs.registry import get_codec

values = np.arange(90, dtype="<f8")
FLOATS = (np.sin(values / 7) * 100).astype("<f4")
INTEGERS = (1000 + np.cumsum(np.sin(values) * 5)).astype("<i4")
BOOLEANS = np.sin(values * 3)[:85] > 0
TEXTS = np.array(["male", "", "female", "male", "other"], dtype="<U6")

blosc = [dict(id="blosc", cname=cname, clevel=5, shuffle=shuffle, blocksize=0)
         for cname in ("blosclz", "lz4", "lz4hc", "zlib", "zstd", "snappy") for shuffle in (0, 1, 2)]
lzma = [dict(id="lzma", format=1), dict(id="lzma", format=2), dict(id="lzma", format=1, check=4, preset=1),
        dict(id="lzma", format=3, filters=[dict(id=3, dist=4), dict(id=33, preset=1)])]
cases = [(FLOATS, config) for config in blosc + lzma + [
    dict(id="blosc", cname="lz4", clevel=0, shuffle=1), dict(id="zstd", level=3), dict(id="zlib", level=6),
    dict(id="gzip", level=6), dict(id="bz2", level=9), dict(id="lz4"), dict(id="shuffle", elementsize=4),
    dict(id="crc32"), dict(id="adler32"), dict(id="base64"),
    dict(id="delta", dtype="<f4"),
    dict(id="fixedscaleoffset", dtype="<f4", astype="<i2", scale=4, offset=3.5)]]
cases += [(INTEGERS, config) for config in [
    dict(id="delta", dtype="<i4", astype="<i2"), dict(id="shuffle", elementsize=3),
    dict(id="shuffle", elementsize=8), dict(id="astype", decode_dtype="<i4", encode_dtype=">u2")]]
cases += [(INTEGERS.astype(">i8"), dict(id="delta", dtype=">i8", astype=">i4")),
          (INTEGERS.astype("u1"), dict(id="delta", dtype="|u1")),
          (FLOATS.astype("<f2"), dict(id="delta", dtype="<f2")),
          (FLOATS.astype("<f8"), dict(id="fixedscaleoffset", dtype="<f8", astype="<i4", scale=10, offset=1000)),
          (INTEGERS, dict(id="fixedscaleoffset", dtype="<i4", astype="<i4", scale=2, offset=-3)),
          (FLOATS.astype("<f8"), dict(id="quantize", dtype="<f8", astype="<f4", digits=1)),
          (FLOATS.astype("<f8"), dict(id="astype", decode_dtype="<f8", encode_dtype="<f2")),
          (FLOATS, dict(id="bitround", keepbits=8)),
          (BOOLEANS, dict(id="packbits")),
          (TEXTS, dict(id="categorize", dtype="<U6", labels=["male", "female"])),
          (np.frombuffer(b"ab", "u1"), dict(id="base64")), (np.frombuffer(b"a", "u1"), dict(id="base64"))]

written = []
for array, config in cases:
    codec = get_codec(dict(config))
    encoded = codec.encode(array)
    decoded = np.ascontiguousarray(codec.decode(encoded))
    written.append({"codec": codec.get_config(), "encoded": bytes(np.ascontiguousarray(encoded).view("u1")).hex() if isinstance(encoded, np.ndarray) else bytes(encoded).hex(),
                    "decoded": decoded.tobytes().hex()})
print("[" + ",\n".join(json.dumps(case) for case in written) + "]")
