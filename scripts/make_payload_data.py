#!/usr/bin/python3
"""Writes tests/data/payloads: payloads by the usual tools, and what these tools read from them.

usage: make_payload_data.py DIR     (Debian: python3-pil python3-soundfile ffmpeg sox webp)

Nothing here is npyfs's. Images: PIL writes and reads; where LAYOUT differs from PIL's own choice
(one channel is an axis, CMYK and palettes become RGB, 16 bits are cut to 8) PIL converts. Audio:
libsndfile (soundfile), sox and ffmpeg write, libsndfile reads. Pickles: pickle and numpy.
"""

import collections
import io
import pathlib
import pickle
import subprocess
import sys

import numpy as np
import soundfile
from PIL import Image

random = np.random.default_rng(7)


def save(path, array):
    np.save(path, np.asarray(array, order="C"), allow_pickle=False)


def picture(height, width, channels):
    """Smooth, so that jpeg keeps it small, with some noise."""
    y, x, c = np.mgrid[0:height, 0:width, 0:channels]
    waves = np.sin(x / 5.0 + c) + np.cos(y / 4.0 - c)
    noise = random.normal(0, 6, (height, width, channels))
    return np.clip(waves * 55 + 128 + noise, 0, 255).astype(np.uint8)


def pixels(path, mode=None):
    with Image.open(path) as image:
        array = np.asarray(image.convert(mode) if mode else image)
    return array[:, :, None] if array.ndim == 2 else array


def make_images(folder):
    folder.mkdir(parents=True, exist_ok=True)
    rgb = Image.fromarray(picture(23, 31, 3))
    grey = Image.fromarray(picture(19, 17, 1)[:, :, 0])
    rgba = Image.fromarray(picture(12, 21, 4))

    def keep(name, mode=None):
        save(folder / (name + ".npy"), pixels(folder / name, mode))

    rgb.save(folder / "rgb.jpg", quality=90)
    rgb.save(folder / "progressive.jpg", quality=85, progressive=True)
    rgb.save(folder / "444.jpg", quality=95, subsampling=0)
    grey.save(folder / "grey.jpg", quality=90)
    exif = Image.Exif()
    exif[0x0112] = 6  # turn right: viewers do, arrays do not
    exif[0x010E] = "x" * 3000  # the size lies beyond the first read
    rgb.save(folder / "exif_orientation.jpg", exif=exif)
    for name in ("rgb", "progressive", "444", "grey", "exif_orientation"):
        keep(name + ".jpg")
    rgb.convert("CMYK").save(folder / "cmyk.jpg", quality=95)
    keep("cmyk.jpg", "RGB")

    rgb.save(folder / "rgb.png")
    grey.save(folder / "grey.png")
    rgba.save(folder / "rgba.png")
    rgba.convert("LA").save(folder / "grey_alpha.png")
    for name in ("rgb", "grey", "rgba", "grey_alpha"):
        keep(name + ".png")
    rgb.quantize(13).save(folder / "palette.png", bits=4)
    keep("palette.png", "RGB")
    transparent = rgb.quantize(7)
    transparent.save(folder / "palette_transparent.png", transparency=2)
    keep("palette_transparent.png", "RGB")
    grey.point(lambda v: 255 * (v > 128), mode="1").save(folder / "one_bit.png")
    keep("one_bit.png", "L")
    wide = random.integers(0, 65536, (9, 14), dtype=np.uint16)
    Image.fromarray(wide).save(folder / "grey16.png")
    save(folder / "grey16.png.npy", (wide >> 8).astype(np.uint8)[:, :, None])
    wide = random.integers(0, 65536, (7, 11, 3), dtype=np.uint16)
    subprocess.run(["ffmpeg", "-v", "error", "-f", "rawvideo", "-pix_fmt", "rgb48le", "-s", "11x7",
                    "-i", "-", "-frames:v", "1", "-y", folder / "rgb16.png"],
                   input=wide.tobytes(), check=True)
    save(folder / "rgb16.png.npy", (wide >> 8).astype(np.uint8))
    raw = np.asarray(rgb)
    subprocess.run(["ffmpeg", "-v", "error", "-f", "rawvideo", "-pix_fmt", "rgb24", "-s", "31x23",
                    "-i", "-", "-flags", "+ildct", "-frames:v", "1", "-y", folder / "interlaced.png"],
                   input=raw.tobytes(), check=True)
    keep("interlaced.png")

    rgb.save(folder / "lossy.webp", quality=80)
    rgb.save(folder / "lossless.webp", lossless=True)
    rgba.save(folder / "alpha.webp", quality=80)
    rgba.save(folder / "lossless_alpha.webp", lossless=True)
    for name in ("lossy", "lossless", "alpha", "lossless_alpha"):
        keep(name + ".webp")


def read_int16(path):
    """As libsndfile's readers have lossy audio: 32767 is full scale."""
    samples, rate = soundfile.read(path, dtype="float32", always_2d=True)
    return np.clip(np.rint(samples * np.float32(32767)), -32768, 32767).astype(np.int16), rate


def make_audio(folder):
    folder.mkdir(parents=True, exist_ok=True)
    t = np.arange(4000) / 16000
    mono = (0.4 * np.sin(2 * np.pi * 440 * t) + 0.05 * random.normal(size=t.size)).astype(np.float32)
    stereo = np.stack([mono, -0.5 * mono[::-1]], axis=1)
    whole = (mono * 32767).astype(np.int16)
    wide = (stereo * 8388607).astype(np.int32) << 8
    rates = {}

    def keep(name, dtype=None):
        if dtype is None:
            samples, rates[name] = read_int16(folder / name)
        else:
            samples, rates[name] = soundfile.read(folder / name, dtype=dtype, always_2d=True)
        save(folder / (name + ".npy"), samples)

    soundfile.write(folder / "s16.flac", whole, 16000, subtype="PCM_16")
    keep("s16.flac", "int16")
    soundfile.write(folder / "s24_stereo.flac", wide, 44100, subtype="PCM_24")
    keep("s24_stereo.flac", "int32")
    soundfile.write(folder / "s8.flac", whole, 8000, subtype="PCM_S8")
    keep("s8.flac", "int16")
    soundfile.write(folder / "vorbis_stereo.ogg", stereo, 16000, subtype="VORBIS")
    keep("vorbis_stereo.ogg")
    soundfile.write(folder / "opus.ogg", mono, 16000, format="OGG", subtype="OPUS")
    keep("opus.ogg")
    subprocess.run(["ffmpeg", "-v", "error", "-i", folder / "s16.flac", "-c:a", "libopus",
                    "-y", folder / "ffmpeg.opus"], check=True)
    keep("ffmpeg.opus")
    subprocess.run(["ffmpeg", "-v", "error", "-i", folder / "s16.flac", "-c:a", "libmp3lame",
                    "-b:a", "64k", "-y", folder / "ffmpeg.mp3"], check=True)
    keep("ffmpeg.mp3")
    subprocess.run(["sox", folder / "s16.flac", "-C", "64", folder / "sox.mp3"], check=True)
    keep("sox.mp3")
    # A stream of unknown length: ffmpeg cannot go back to write it.
    with open(folder / "stream.flac", "wb") as out:
        subprocess.run(["ffmpeg", "-v", "error", "-i", folder / "s16.flac", "-f", "flac", "-"],
                       stdout=out, check=True)
    # soundfile cannot read that, but it holds what s16.flac holds.
    save(folder / "stream.flac.npy", np.load(folder / "s16.flac.npy"))
    rates["stream.flac"] = 16000
    for name, subtype in (("alaw", "ALAW"), ("ulaw", "ULAW"), ("ima_adpcm", "IMA_ADPCM")):
        soundfile.write(folder / f"{name}.wav", whole, 8000, subtype=subtype)
        keep(f"{name}.wav", "int16")
    soundfile.write(folder / "rifx.wav", stereo, 16000, subtype="FLOAT", endian="BIG")
    keep("rifx.wav", "float32")
    soundfile.write(folder / "rifx24.wav", wide, 16000, subtype="PCM_24", endian="BIG")
    keep("rifx24.wav", "int32")
    (folder / "rates.txt").write_text("".join(f"{n} {r}\n" for n, r in sorted(rates.items())))


def make_pickles(folder):
    """NAME.pkl and, for each part of the sample, NAME/PART.npy; `refused` makes no arrays."""
    folder.mkdir(parents=True, exist_ok=True)
    f4 = np.arange(24, dtype=np.float32).reshape(2, 3, 4) / 7
    samples = {
        "array": f4,
        "fortran": np.asfortranarray(f4),
        "big_endian": f4.astype(">f4"),
        "scalar": np.float32(1.25),
        "zero_d": np.array(7, dtype=np.int16),
        "empty": np.zeros((0, 3), np.int64),
        "bool": np.array([True, False, True]),
        "half": np.array([1.5, -2], np.float16),
        "complex": np.array([1 + 2j, -3j], np.complex64),
        "bytes_array": np.array([b"ab", b"c"]),
        "text_array": np.array(["ab", "\u4e16\u754c!"]),
        "text_big_endian": np.array(["ab", "\u4e16\u754c!"]).astype(">U3"),
        "dates": np.array(["2020-01-02", "1969-12-31"], "M8[D]"),
        "durations": np.array([1, -2], "m8[25us]"),
        "strided": np.arange(20, dtype=np.int32)[::2],
        "pair": (picture(4, 5, 3), 3),
        "dict": {"image": picture(3, 4, 3), "label": -5, "weight": 0.25, "flag": True,
                 "name": "caf\u00e9 \u4e16", "raw": b"\x00\xff\x80", "box": [1, 2, 3, 4],
                 "points": [[0.5, 1], [2, 3.5]], "words": ["a", "bcd"], "big": 2**63,
                 "score": np.float64(0.5), "shape": (3, 4)},
        "ordered": collections.OrderedDict([("a", 1), ("b", np.arange(3))]),
        "int": 12345678901, "negative": -(2**40), "float": -1.5e300, "text": "\u00e9\n\\u",
        "bytes": bytes(range(256)) * 2, "bytearray": bytearray(b"\x80\x01"), "list": [3, 1, 2],
        "memo": [[1, 2]] * 3,
    }
    for name, sample in samples.items():
        parts = (dict(sample) if isinstance(sample, dict) else
                 {"x": sample[0], "y": sample[1]} if isinstance(sample, tuple) and name == "pair" else
                 {"x": sample})
        (folder / name).mkdir(exist_ok=True)
        for part, value in parts.items():
            if isinstance(value, (bytes, bytearray)):
                value = np.frombuffer(bytes(value), np.uint8)
            array = np.asarray(value)
            if array.dtype.kind == "U":
                array = array.astype(array.dtype.newbyteorder("<"))
            save(folder / name / (part + ".npy"), array)
        for protocol in range(6):
            data = pickle.dumps(sample, protocol)
            (folder / name / f"{protocol}.pkl").write_bytes(data)
    refused = {
        "none": None, "object_array": np.array([{}, 1], dtype=object), "huge_int": 2**70,
        "nested_dict": {"a": {"b": 1}}, "ragged": [[1], [2, 3]], "path": pathlib.PurePosixPath("a"),
        "function": print, "structured": np.zeros(2, [("a", "i4")]), "range": range(3),
    }
    (folder / "refused").mkdir(exist_ok=True)
    for name, sample in refused.items():
        (folder / "refused" / f"{name}.pkl").write_bytes(pickle.dumps(sample, 4))
    # numpy 2's names of the same things.
    new = pickle.dumps(f4, 3).replace(b"numpy.core.multiarray", b"numpy._core.multiarray")
    (folder / "numpy2").mkdir(exist_ok=True)
    (folder / "numpy2" / "3.pkl").write_bytes(new)
    save(folder / "numpy2" / "x.npy", f4)


def main():
    folder = pathlib.Path(sys.argv[1])
    make_images(folder / "images")
    make_audio(folder / "audio")
    make_pickles(folder / "pickles")


if __name__ == "__main__":
    main()
