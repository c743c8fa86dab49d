"""Writers of the formats' files, for tests that need inputs of their own.

Written from the format descriptions (formats/*/FORMAT.md); test_writers.py shows that they write
the bytes that the reference implementations write.
"""

import itertools
import os
import struct
import zlib

import numpy as np

RECORDIO_MAGIC = struct.pack("<I", 0xCED7230A)


def stored(record):
    """A record's bytes, from bytes or a row of an array (bytes() of an integer is something else)."""
    return record.tobytes() if isinstance(record, (np.ndarray, np.generic)) else bytes(record)


def ffrecord_header(crcs, offsets):
    """The bytes before the samples, for arrays of the samples' CRCs and absolute offsets."""
    body = (struct.pack("<q", len(crcs)) + np.asarray(crcs, "<u4").tobytes()
            + np.asarray(offsets, "<i8").tobytes())
    return struct.pack("<I", zlib.crc32(body)) + body


def write_ffrecord(path, samples):
    """FFRecord of samples given as bytes, or as an array whose rows are the samples."""
    samples = [stored(s) for s in samples]
    ends = list(itertools.accumulate((len(s) for s in samples), initial=12 + 12 * len(samples)))
    with open(path, "wb") as out:
        out.write(ffrecord_header([zlib.crc32(s) for s in samples], ends[:-1]))
        out.writelines(samples)


def write_sparse_ffrecord(path, count, nbytes):
    """FFRecord of `count` samples of `nbytes` zeroes each, that takes room for its header only."""
    first = 12 + 12 * count
    offsets = np.arange(first, first + count * nbytes, nbytes, dtype="<i8")
    with open(path, "wb") as out:
        out.write(ffrecord_header(np.full(count, zlib.crc32(bytes(nbytes)), "<u4"), offsets))
        out.truncate(first + count * nbytes)


def recordio_parts(payload):
    """The bytes of one record: a part for each stretch between payload words that are the magic."""
    stretches, begin = [], 0
    at = payload.find(RECORDIO_MAGIC)
    while at >= 0:
        if at % 4 == 0:
            stretches.append(payload[begin:at])
            begin = at + 4
        at = payload.find(RECORDIO_MAGIC, begin if at % 4 == 0 else at + 1)
    stretches.append(payload[begin:])
    out = b""
    for i, stretch in enumerate(stretches):
        flag = 0 if len(stretches) == 1 else 1 if i == 0 else 3 if i == len(stretches) - 1 else 2
        out += RECORDIO_MAGIC + struct.pack("<I", flag << 29 | len(stretch)) + stretch
        out += bytes(-len(stretch) % 4)
    return out


def write_recordio(path, records, keys=None):
    """RecordIO of records given as bytes or rows; with `keys`, the .idx beside it as well."""
    offset, lines = 0, []
    with open(path, "wb") as out:
        for i, record in enumerate(records):
            parts = recordio_parts(stored(record))
            if keys is not None:
                lines.append(f"{keys[i]}\t{offset}\n")
            offset += out.write(parts)
    if keys is not None:
        with open(str(path).removesuffix(".rec") + ".idx", "w") as out:
            out.writelines(lines)


def _crc32c_table():
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = np.where(table & 1, table >> 1 ^ np.uint32(0x82F63B78), table >> 1)
    return table


CRC32C = _crc32c_table()


def crc32c_rows(rows):
    """CRC-32C of each row of a uint8 matrix: all rows at once, byte after byte."""
    crc = np.full(len(rows), 0xFFFFFFFF, np.uint32)
    for column in np.ascontiguousarray(rows.T):
        crc = CRC32C[(crc ^ column) & 0xFF] ^ crc >> 8
    return ~crc


def masked(crc):
    return (crc >> 15 | crc << 17) + np.uint32(0xA282EAD8)


def write_tfrecord(path, records):
    """TFRecord of records given as bytes, or as an array whose rows are the records."""
    if isinstance(records, np.ndarray):
        rows = np.ascontiguousarray(records).view(np.uint8).reshape(len(records), -1)
    else:
        rows = [np.frombuffer(stored(r), np.uint8) for r in records]
    with open(path, "wb") as out:
        for nbytes, group in itertools.groupby(rows, len):
            length = np.frombuffer(struct.pack("<Q", nbytes), np.uint8)
            head = length.tobytes() + masked(crc32c_rows(length[None])).tobytes()
            while batch := list(itertools.islice(group, 4096)):
                for row, crc in zip(batch, masked(crc32c_rows(np.array(batch)))):
                    out.write(head + row.tobytes() + crc.tobytes())


def write_kaldi(path, matrices):
    """A binary Kaldi table of float32 matrices by key, in order: PATH.ark and PATH.scp."""
    offset = 0
    with open(f"{path}.ark", "wb") as ark, open(f"{path}.scp", "wb") as scp:
        for key, matrix in matrices.items():
            key = os.fsencode(key)
            rows, cols = matrix.shape
            offset += ark.write(key + b" ")
            scp.write(b"%s %s.ark:%d\n" % (key, os.fsencode(path), offset))
            offset += ark.write(b"\0BFM " + struct.pack("<bibi", 4, rows, 4, cols)
                                + matrix.astype("<f4").tobytes())
