"""src/image against TensorFlow: decode, resize, colour, the preprocessing function as a graph.

Everything goes through image_tool.c. Bounds: decode alone <= 1 level, decode + resize <= 1/255 of
the range (in levels: 1). What is seen is printed; most of it is 0.
"""
import json
import os
import struct
import subprocess
import sys
import tarfile
import tempfile
import zlib

import numpy as np
import tensorflow as tf

DIR = tempfile.mkdtemp(prefix="sextant-image-")
RNG = np.random.default_rng(7)
failures = []


class Tool:
    """image_tool, kept running: one line in, one line out."""

    def __init__(self):
        path = os.path.join(os.environ["SEXTANT_TEST_BIN"], "image_tool")
        self.process = subprocess.Popen([path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __call__(self, *words):
        self.process.stdin.write(" ".join(str(w) for w in words) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline().split(maxsplit=2)
        if not line:
            raise RuntimeError(f"image_tool died on {words}")
        return line[0] == "ok", line[1:]


TOOL = Tool()


def path(name):
    return os.path.join(DIR, name)


def write(name, data):
    with open(path(name), "wb") as file:
        file.write(data)
    return path(name)


def check(name, ok, detail=""):
    print(f"{'ok  ' if ok else 'FAIL'} {name} {detail}")
    if not ok:
        failures.append(name)


def ours(data, channels=0, dct="fast"):
    """Pixels, or None when the decoder refuses."""
    ok, answer = TOOL("decode", write("in", data), channels, dct, path("out"))
    if not ok:
        return None
    height, width, depth = (int(x) for x in (answer[0] + " " + answer[1]).split()[:3])
    return np.fromfile(path("out"), np.uint8).reshape(height, width, depth)


def theirs(data, channels=0, decode=tf.io.decode_jpeg, **options):
    try:
        return decode(data, channels=channels, **options).numpy()
    except tf.errors.InvalidArgumentError:
        return None


def difference(a, b):
    """Largest distance; infinite when only one was refused or the shapes differ."""
    if a is None or b is None:
        return 0 if a is b else np.inf
    if a.shape != b.shape:
        return np.inf
    return np.abs(a.astype(np.float64) - b.astype(np.float64)).max()


def photo(height, width, depth=3):
    """Smooth waves with noise: something that a JPEG likes."""
    y, x = np.mgrid[0:height, 0:width].astype(np.float64)
    planes = [127 + 100 * np.sin(x / (7 + c) + c) * np.cos(y / (11 - c)) for c in range(depth)]
    noisy = np.stack(planes, -1) + RNG.normal(0, 12, (height, width, depth))
    return np.clip(noisy, 0, 255).astype(np.uint8)


def real_images(count):
    root = os.environ.get("SEXTANT_DATA", "")
    images = []
    for name in ("flowers/val.tar", "catsdogs/val.tar"):
        file = os.path.join(root, name)
        if not root or not os.path.exists(file):
            print(f"SKIP: no {name} under $SEXTANT_DATA; generated images only")
            continue
        with tarfile.open(file) as tar:
            members = [m for m in tar.getmembers() if m.name.endswith(".jpg")]
            for member in members[:: max(1, len(members) // count)][:count]:
                images.append(tar.extractfile(member).read())
    return images


def make_jpeg(kind, depth, height=61, width=83):
    raw = write("raw", photo(height, width, depth).tobytes())
    ok, answer = TOOL("make_jpeg", kind, raw, height, width, path("made.jpg"))
    assert ok, answer
    with open(path("made.jpg"), "rb") as file:
        return file.read()


def generated_jpegs():
    images = {}
    for height, width in ((1, 1), (7, 9), (8, 8), (61, 83), (128, 128)):
        pixels = photo(height, width)
        images[f"rgb-{height}x{width}"] = tf.io.encode_jpeg(pixels, quality=88).numpy()
        images[f"gray-{height}x{width}"] = tf.io.encode_jpeg(pixels[..., :1], format="grayscale").numpy()
        images[f"progressive-{height}x{width}"] = tf.io.encode_jpeg(pixels, progressive=True).numpy()
        images[f"444-{height}x{width}"] = tf.io.encode_jpeg(pixels, chroma_downsampling=False).numpy()
    for kind, depth in (("cmyk", 4), ("cmyk-plain", 4), ("ycck", 4), ("422", 3), ("440", 3), ("411", 3),
                        ("restart", 3), ("arithmetic", 3), ("rgb", 3)):
        images[kind] = make_jpeg(kind, depth)
    return images


def test_decode_jpeg(real, made):
    for channels in (0, 1, 3):
        for dct, name in (("fast", ""), ("fast", "INTEGER_FAST"), ("accurate", "INTEGER_ACCURATE")):
            worst, exact, refused = 0, 0, []
            for label, data in made.items():
                want = theirs(data, channels, dct_method=name)
                d = difference(ours(data, channels, dct), want)
                refused += [label] if want is None else []
                worst, exact = np.maximum(worst, d), exact + (d == 0)
                if not d <= 1:
                    check(f"decode {label} channels={channels} dct={name}", False, f"difference {d}")
            check(f"decode generated, channels={channels} dct={name or 'default'}", worst <= 1,
                  f"{exact}/{len(made)} exact, worst {worst}, refused by both: {', '.join(refused) or 'none'}")
            check("only CMYK to gray is refused",
                  set(refused) <= ({"cmyk", "cmyk-plain", "ycck", "rgb"} if channels == 1 else set()))
        if real:
            found = [difference(ours(data, channels), theirs(data, channels)) for data in real]
            check(f"decode real, channels={channels}", np.max(found) <= 1,
                  f"{sum(d == 0 for d in found)}/{len(found)} exact, worst {np.max(found)}")


def test_damage(made):
    """Truncated and flipped files: refused by both, or the same pixels."""
    total = different = refused = 0
    for label in ("rgb-61x83", "progressive-61x83", "gray-7x9", "ycck", "restart"):
        data = made[label]
        cuts = sorted(set(RNG.integers(3, len(data), 40)) | {len(data) - 2, len(data) - 1})
        mutants = [data[:cut] for cut in cuts]
        for _ in range(60):
            mutant = bytearray(data)
            mutant[RNG.integers(3, len(data))] ^= 1 << RNG.integers(8)
            mutants.append(bytes(mutant))
        for mutant in mutants:
            a, b = ours(mutant), theirs(mutant)
            total += 1
            refused += b is None
            if not difference(a, b) <= 1:
                different += 1
                print(f"     {label}: ours {None if a is None else a.shape}, theirs "
                      f"{None if b is None else b.shape}, {len(mutant)} of {len(data)} bytes")
    check("damaged JPEGs judged alike", different == 0,
          f"{total} mutants, {refused} refused by TensorFlow, {different} differ")


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(depth, colour, rows, width, height, extra=b"", interlace=0):
    header = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, interlace)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + extra
            + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def pack(values, depth):
    bits = "".join(format(v, f"0{depth}b") for v in values)
    return bytes(int(bits[i:i + 8].ljust(8, "0"), 2) for i in range(0, len(bits), 8))


def handmade_pngs():
    """Palettes, low depths, interlacing: what tf.io.encode_png does not write."""
    images = {}
    width, height = 13, 11
    for depth in (1, 2, 4, 8):
        values = RNG.integers(0, 1 << depth, (height, width))
        rows = b"".join(b"\0" + pack(row, depth) for row in values)
        palette = chunk(b"PLTE", RNG.integers(0, 256, 3 << depth, dtype=np.uint8).tobytes())
        alpha = chunk(b"tRNS", RNG.integers(0, 256, 1 << depth, dtype=np.uint8).tobytes())
        images[f"gray{depth}"] = png(depth, 0, rows, width, height)
        images[f"gray{depth}-key"] = png(depth, 0, rows, width, height, chunk(b"tRNS", b"\0\1"))
        images[f"palette{depth}"] = png(depth, 3, rows, width, height, palette)
        images[f"palette{depth}-alpha"] = png(depth, 3, rows, width, height, palette + alpha)
        images[f"palette{depth}-gamma"] = png(depth, 3, rows, width, height,
                                              chunk(b"gAMA", struct.pack(">I", 45455)) + palette)
    values = photo(height, width)
    passes = ((0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4), (2, 0, 4, 2), (0, 1, 2, 2), (1, 0, 2, 1))
    rows = b"".join(b"\0" + row.tobytes() for top, left, down, right in passes
                    for row in values[top::down, left::right] if row.size)
    flat = b"".join(b"\0" + row.tobytes() for row in values)
    images["rgb-gamma"] = png(8, 2, flat, width, height, chunk(b"gAMA", struct.pack(">I", 45455)))
    images["rgb-linear"] = png(8, 2, flat, width, height, chunk(b"gAMA", struct.pack(">I", 100000)))
    images["rgb-srgb"] = png(8, 2, flat, width, height, chunk(b"sRGB", b"\0"))
    images["rgb-text"] = png(8, 2, flat, width, height, chunk(b"zTXt", b"k\0\0" + zlib.compress(b"x" * 9999)))
    images["adam7"] = png(8, 2, rows, width, height, interlace=1)
    return images


def test_decode_png():
    images = handmade_pngs()
    for depth in (1, 2, 3, 4):
        images[f"u8x{depth}"] = tf.io.encode_png(photo(23, 31, depth)).numpy()
        images[f"u16x{depth}"] = tf.io.encode_png(RNG.integers(0, 65536, (23, 31, depth), np.uint16)).numpy()
    worst = 0
    for channels in (0, 1, 3, 4):
        for label, data in images.items():
            d = difference(ours(data, channels), theirs(data, channels, tf.io.decode_png))
            worst = np.maximum(worst, d)
            if d != 0:
                check(f"decode png {label} channels={channels}", d <= 1, f"difference {d}")
    check("decode png", worst <= 1, f"{len(images)} files x 4, worst {worst}")
    damaged = 0
    for label in ("u8x3", "palette4-alpha", "adam7"):
        data = images[label]
        for at in range(8, len(data)):
            for mutant in (data[:at], data[:at] + bytes([data[at] ^ 0x10]) + data[at + 1:]):
                if not difference(ours(mutant), theirs(mutant, 0, tf.io.decode_png)) <= 1:
                    damaged += 1
                    print(f"     {label} at {at} of {len(data)}")
    check("damaged PNGs judged alike", damaged == 0, f"{damaged} differ")


def resized_by_tf(pixels, rule, size):
    batch = pixels[None]
    if rule == "nearest":
        return tf.image.resize(batch, size, method="nearest").numpy()[0].astype(np.float32)
    if rule == "bilinear":
        return tf.image.resize(batch, size, method="bilinear", antialias=False).numpy()[0]
    return tf.compat.v1.image.resize_bilinear(batch, size, align_corners=False).numpy()[0]


SIZES = ((28, 28), (61, 83), (128, 128), (150, 150), (224, 224), (33, 301), (1, 1), (234, 234))


def test_resize(real, made):
    picks = {f"real{i}": data for i, data in enumerate(real[::4])}
    picks.update({k: made[k] for k in ("rgb-61x83", "gray-61x83", "cmyk", "rgb-1x1", "rgb-128x128")})
    for rule in ("bilinear", "bilinear-tf1", "nearest"):
        worst = exact = total = 0
        for label, data in picks.items():
            for channels in (1, 3):
                pixels = theirs(data, channels)
                if pixels is None:
                    continue
                for height, width in SIZES:
                    ok, answer = TOOL("resize", write("in", data), channels, rule, height, width, path("out"))
                    assert ok, answer
                    got = np.fromfile(path("out"), np.float32).reshape(height, width, channels)
                    d = difference(got, resized_by_tf(pixels, rule, (height, width)))
                    worst, exact, total = np.maximum(worst, d), exact + (d == 0), total + 1
                    if not d <= 1:
                        check(f"resize {label} {rule} to {height}x{width}", False, f"difference {d}")
        check(f"decode + resize {rule}", worst <= 1, f"{exact}/{total} exact, worst {worst} levels")
    pixels = RNG.normal(0, 1, (37, 53, 2)).astype(np.float32)
    for rule in ("bilinear", "bilinear-tf1", "nearest"):
        for height, width in SIZES:
            ok, answer = TOOL("resize_f32", write("in", pixels.tobytes()), 37, 53, 2, rule, height, width,
                              path("out"))
            assert ok, answer
            got = np.fromfile(path("out"), np.float32).reshape(height, width, 2)
            d = difference(got, resized_by_tf(pixels, rule, (height, width)))
            check(f"resize float32 {rule} to {height}x{width}", d <= 1e-6, f"difference {d:.3g}")


def test_adjust():
    for height, width, depth in ((5, 7, 1), (64, 64, 3), (224, 224, 3)):
        pixels = RNG.uniform(0, 1, (height, width, depth)).astype(np.float32)
        for delta, factor in ((0.0, 1.0), (0.2, 0.2), (-63 / 255, 1.8)):
            ok, answer = TOOL("adjust", write("in", pixels.tobytes()), height, width, depth, repr(delta),
                              repr(factor), path("out"))
            assert ok, answer
            got = np.fromfile(path("out"), np.float32).reshape(pixels.shape)
            want = tf.image.adjust_contrast(tf.image.adjust_brightness(pixels, delta), factor).numpy()
            d = difference(got, want)
            check(f"brightness {delta:.3f}, contrast {factor} on {height}x{width}x{depth}", d <= 1e-6,
                  f"difference {d:.3g}")


def test_warp():
    """Against ImageProjectiveTransformV3, which takes Keras' matrix in x, y order."""
    for height, width, depth in ((150, 150, 3), (31, 44, 1)):
        pixels = photo(height, width, depth).astype(np.float32)
        for shear, rows, columns in ((0, 1, 1), (0.2, 0.8, 1.2), (-20, 1.1, 0.9), (45, 1, 1)):
            ok, answer = TOOL("warp", write("in", pixels.tobytes()), height, width, depth, shear, rows, columns,
                              path("out"))
            assert ok, answer
            got = np.fromfile(path("out"), np.float32).reshape(pixels.shape)
            s, r0, c0 = np.deg2rad(shear), (height - 1) / 2, (width - 1) / 2
            matrix = [columns * np.cos(s), 0, c0 - columns * np.cos(s) * c0,
                      -columns * np.sin(s), rows, r0 - rows * r0 + columns * np.sin(s) * c0, 0, 0]
            want = tf.raw_ops.ImageProjectiveTransformV3(
                images=pixels[None], transforms=np.array([matrix], np.float32), output_shape=(height, width),
                fill_value=0.0, interpolation="BILINEAR", fill_mode="NEAREST")[0].numpy()
            # positions are rounded differently: 1e-4 of a pixel, across at most 255 levels
            check(f"shear {shear}, zoom {rows} x {columns} on {height}x{width}x{depth}",
                  difference(got, want) <= 0.05, f"difference {difference(got, want):.3g} levels")


def preprocess_by_tf(data, pre):
    """The evaluation form as preprocess.h writes it down, from TensorFlow's raw operators."""
    channels = pre["channels"]
    image = tf.raw_ops.DecodeJpeg(contents=data, channels=channels, dct_method="INTEGER_FAST")[None]
    eh, ew = pre.get("extra_height", 0), pre.get("extra_width", 0)
    size = (pre["height"] + eh, pre["width"] + ew)
    rule = pre.get("resize", "bilinear")
    if rule == "nearest":
        image = tf.cast(tf.raw_ops.ResizeNearestNeighbor(images=image, size=size, half_pixel_centers=True),
                        tf.float32)
    else:
        image = tf.raw_ops.ResizeBilinear(images=image, size=size, half_pixel_centers=rule == "bilinear")
    image = tf.slice(image, (0, eh // 2, ew // 2, 0), (1, pre["height"], pre["width"], channels))
    mean, std = (np.array(pre.get(key, [1] * 3), np.float32).astype(np.float64)[:channels]
                 for key in ("mean", "std"))  # kept as float32
    mul, add = {"none": (1, 0), "0..1": (1 / 255, 0), "-1..1": (1 / 127.5, -1),
                "mean/std": (1 / (255 * std), -mean / std)}[pre.get("scale", "none")]
    return (image * np.float32(mul) + np.float32(add))[0].numpy()


def test_preprocess(real, made):
    sets = [dict(height=128, width=128, channels=3, scale="0..1"),
            dict(height=28, width=28, channels=1, scale="0..1", resize="nearest"),
            dict(height=150, width=150, channels=3, scale="-1..1", resize="bilinear-tf1", extra_height=10,
                 extra_width=10, crop="random", flip_left_right=True, brightness_max_delta=63 / 255,
                 contrast_lower=0.2, contrast_upper=1.8),
            dict(height=224, width=224, channels=3, scale="mean/std", extra_height=33, extra_width=7,
                 crop="center", mean=[0.485, 0.456, 0.406], std=[0.229, 0.224, 0.225])]
    for pre in sets:
        span = {"0..1": 1, "-1..1": 2, "mean/std": 1 / 0.224}[pre["scale"]]
        worst = exact = total = 0
        for data in real[::3] + [made["rgb-61x83"], made["progressive-128x128"]]:
            ok, answer = TOOL("preprocess", write("in", data), write("pre.json", json.dumps(pre).encode()),
                              path("out"))
            assert ok, answer
            want = preprocess_by_tf(data, pre)
            d = difference(np.fromfile(path("out"), np.float32).reshape(want.shape), want) / span
            worst, exact, total = np.maximum(worst, d), exact + (d == 0), total + 1
        check(f"preprocess {pre['scale']} {pre.get('resize', 'bilinear')}", worst <= 1 / 255,
              f"{exact}/{total} exact, worst {worst:.3g} of the range")


def test_encode():
    for depth in (1, 3):
        pixels = photo(40, 57, depth)
        for kind in ("jpeg", "png"):
            ok, answer = TOOL("encode", kind, write("in", pixels.tobytes()), 40, 57, depth, path("out"))
            assert ok, answer
            with open(path("out"), "rb") as file:
                data = file.read()
            back = tf.io.decode_image(data).numpy()
            d = np.abs(back.astype(np.float64) - pixels).mean()
            check(f"{kind} of {depth} channels, read by TensorFlow", d == 0 if kind == "png" else d < 12,
                  f"mean difference {d:.3g}")


def main():
    real, made = real_images(24), generated_jpegs()
    test_decode_jpeg(real, made)
    test_damage(made)
    test_decode_png()
    test_resize(real, made)
    test_adjust()
    test_warp()
    test_preprocess(real, made)
    test_encode()
    print(f"{len(failures)} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
