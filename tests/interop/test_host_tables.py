"""Lookup tables, Keras' preprocessing layers, encoded images, CSV, and more of strings, sparse and ragged
tensors against TensorFlow: rows as those of test_host_ops.py, whose comparison runs them."""
import os
import shutil
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import keras
import numpy as np
import tensorflow as tf

import function_cases
from function_cases import named
from test_host_ops import FLOATS, GRID, PLACES, RAGGED_SPLITS, SHAPE, STRANGE, raw, sparse, strings

failures = []

CASES = {}


def case(name, function, *args):
    assert name not in CASES, name
    CASES[name] = (function, args)


def each(name, function, **inputs):
    for key, value in inputs.items():
        case(f"{name}_{key}", function, value)


# --- Lookup tables ---------------------------------------------------------------------------------

TABLES = []  # what the model keeps
ASSETS = tempfile.mkdtemp(prefix="sextant-host-tables-assets-")


def text_file(name, text):
    path = Path(ASSETS, name)
    path.write_bytes(text)
    return str(path)


def kept(table):
    TABLES.append(table)
    return table


def fixed(keys, values, default):
    return kept(tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(keys, values), default))


def of_file(name, key_dtype, key, value_dtype, value, default, **more):
    return kept(tf.lookup.StaticHashTable(tf.lookup.TextFileInitializer(name, key_dtype, key, value_dtype, value, **more), default))


LINE, NUMBER = tf.lookup.TextFileIndex.WHOLE_LINE, tf.lookup.TextFileIndex.LINE_NUMBER
VOCABULARY = text_file("vocabulary.txt", b"the\nquick brown\r\n \xff\n\xc3\xbc\nlast")
COLUMNS = text_file("columns.txt", b"a,1,2.5,x\nb,-7,1e3,\nc,2147483647,.5,z,more\n")
ASKED = strings([b"a", b"b", b"the", b"quick brown", b" \xff", "\u00fc".encode(), b"last", b"", b"c", b"none"], 5, 2)
STATIC_TABLES = {
    "words": (fixed(["a", "b", "", "the"], tf.constant([1, 2, 3, -2**63], tf.int64), -1), ASKED),
    "names": (fixed(tf.constant([3, -2**63, 0], tf.int64), [b"three", b"least\0", b""], b"?"), np.int64([[0, 3, -2**63], [1, 2, 2**63 - 1]])),
    "weights": (fixed(tf.constant([1, 5], tf.int32), [0.5, np.inf], np.nan), np.int32([1, 2, 5])),
    "flags": (fixed(["a", "b"], [True, False], True), ASKED),
    "twice": (fixed(["a", "a"], [7, 7], 0), ASKED),
    "vocabulary": (of_file(VOCABULARY, tf.string, LINE, tf.int64, NUMBER, -1), ASKED),
    "vocabulary_first": (of_file(VOCABULARY, tf.string, LINE, tf.int64, NUMBER, -1, vocab_size=2), ASKED),
    "lines": (of_file(VOCABULARY, tf.int64, NUMBER, tf.string, LINE, "UNK"), np.int64([[0, 1, 2], [4, 5, -1]])),
    "columns": (of_file(COLUMNS, tf.string, 0, tf.int64, 1, 0, delimiter=","), ASKED),
    "columns_float": (of_file(COLUMNS, tf.int64, 1, tf.float32, 2, 0.0, delimiter=","), np.int64([1, -7, 2])),
    "columns_text": (of_file(COLUMNS, tf.string, 3, tf.string, 0, "?", delimiter=","), strings([b"x", b"", b"z"])),
}
for name, (table, asked) in STATIC_TABLES.items():
    case(f"table_{name}", lambda x, t=table: (t.lookup(x), t.size()), asked)
case("table_words_sparse", lambda i, v, s, t=STATIC_TABLES["words"][0]: sparse(t.lookup(tf.SparseTensor(i, v, s))), PLACES, strings([b"a", b"z", b"b"]), SHAPE)
case("table_words_ragged", lambda v, s, t=STATIC_TABLES["words"][0]: t.lookup(tf.RaggedTensor.from_row_splits(v, s, validate=False)).to_tensor(-9),
     strings(STRANGE[:6]), RAGGED_SPLITS)
case("table_words_default", lambda x, d, t=STATIC_TABLES["words"][0]: raw.LookupTableFindV2(table_handle=t.resource_handle, keys=x, default_value=d), ASKED, np.int64(5))
case("table_words_default_shape", lambda x, d, t=STATIC_TABLES["words"][0]: raw.LookupTableFindV2(table_handle=t.resource_handle, keys=x, default_value=d),
     ASKED, np.int64([5, 6, 7]))
OOV = kept(tf.lookup.StaticVocabularyTable(tf.lookup.TextFileInitializer(VOCABULARY, tf.string, LINE, tf.int64, NUMBER), 3))
case("table_oov", lambda x: (OOV.lookup(x), OOV.size()), ASKED)
OOV_IDS = kept(tf.lookup.StaticVocabularyTable(tf.lookup.KeyValueTensorInitializer(tf.constant([10, 20], tf.int64), tf.constant([0, 1], tf.int64)), 2))
case("table_oov_ids", lambda x: OOV_IDS.lookup(x), np.int64([10, 20, 30, -5]))
GATHERED = tf.constant(np.arange(12.0, dtype=np.float32).reshape(6, 2))
case("table_to_device", lambda x: tf.gather(GATHERED, tf.maximum(STATIC_TABLES["twice"][0].lookup(x) - 4, 0)) * 2, ASKED)
case("table_in_branch", lambda x, c: tf.cond(c, lambda: STATIC_TABLES["words"][0].lookup(x), lambda: OOV.lookup(x)), ASKED, np.array(True))


def in_order(handle, dtype):
    """Ends with what it began with, whatever was in the table before."""
    def run(keys, values, more, default):
        raw.LookupTableImportV2(table_handle=handle, keys=keys, values=values)
        first = raw.LookupTableFindV2(table_handle=handle, keys=more, default_value=default)
        raw.LookupTableInsertV2(table_handle=handle, keys=more, values=tf.fill(tf.concat([tf.shape(more), tf.shape(default)], 0), default) if dtype != tf.float32
                                else tf.tile(default[tf.newaxis], [tf.size(more), 1]))
        second = raw.LookupTableFindV2(table_handle=handle, keys=keys, default_value=default)
        size = raw.LookupTableSizeV2(table_handle=handle)
        raw.LookupTableRemoveV2(table_handle=handle, keys=more[:1])
        k, v = raw.LookupTableExportV2(table_handle=handle, Tkeys=keys.dtype, Tvalues=values.dtype)
        order = tf.argsort(tf.strings.to_hash_bucket_fast(tf.strings.as_string(k) if k.dtype != tf.string else k, 2**60))
        return first, second, size, raw.LookupTableSizeV2(table_handle=handle), tf.gather(k, order), tf.gather(v, order)
    return run


WORD_TABLE = kept(tf.lookup.experimental.MutableHashTable(tf.string, tf.int64, -1))
case("table_mutable", in_order(WORD_TABLE.resource_handle, tf.int64), strings([b"a", b"b", b"", b"a"]), np.int64([1, 2, 3, 4]), strings([b"b", b"new"]), np.int64(9))


def inserted(keys, values):
    raw.LookupTableInsertV2(table_handle=WORD_TABLE.resource_handle, keys=keys, values=values)
    return WORD_TABLE.size()


case("table_mutable_shape", inserted, strings([b"b"]), np.int64([1, 2]))
NAME_TABLE = kept(tf.lookup.experimental.MutableHashTable(tf.int64, tf.string, "?"))
case("table_mutable_names", in_order(NAME_TABLE.resource_handle, tf.string), np.int64([5, -1, 0]), strings([b"five", b"", b"\0"]), np.int64([7, -1]), strings([b"x" * 50])[0])
ROW_TABLE = kept(tf.lookup.experimental.MutableHashTable(tf.string, tf.float32, [0.0, 0.0, 0.0]))
case("table_rows", in_order(ROW_TABLE.resource_handle, tf.float32), strings([b"a", b"b"]), np.float32([[1, 2, 3], [4, 5, 6]]), strings([b"b", b"c", b"d"]), np.float32([7, 8, 9]))
DENSE_TABLE = kept(tf.lookup.experimental.DenseHashTable(tf.int64, tf.int64, -1, empty_key=-100, deleted_key=-200))


def dense_in_order(keys, values):
    DENSE_TABLE.erase(keys)
    DENSE_TABLE.insert(keys, values)
    first = DENSE_TABLE.lookup(keys[::-1]), DENSE_TABLE.size()
    DENSE_TABLE.erase(keys[:2])
    second = DENSE_TABLE.lookup(keys), DENSE_TABLE.size()
    DENSE_TABLE.erase(keys)
    return first + second


case("table_dense", dense_in_order, np.int64([1, 2, 3, 1]), np.int64([10, 20, 30, 40]))
for key, reserved in (("empty", -100), ("deleted", -200)):
    case(f"table_dense_{key}", lambda k: DENSE_TABLE.lookup(k), np.int64([1, reserved]))
RESTORED = [(tf.lookup.experimental.MutableHashTable(tf.string, tf.int64, -1), strings([b"q", b"r", b"\xff", b""]), np.int64([1, 2, 3, 4])),
            (tf.lookup.experimental.MutableHashTable(tf.int64, tf.string, "none"), np.int64([1, 2]), strings([b"one", b""])),
            (tf.lookup.experimental.MutableHashTable(tf.string, tf.float32, [0.0, 0.0]), strings([b"q"]), np.float32([[1, 2]])),
            (tf.lookup.experimental.DenseHashTable(tf.string, tf.int64, -1, empty_key="E", deleted_key="D"), strings([b"q", b"s"]), np.int64([5, 6]))]
for k, (table, keys, values) in enumerate(RESTORED):
    kept(table).insert(keys if keys.dtype != object else tf.constant(keys, tf.string), values if values.dtype != object else tf.constant(values, tf.string))
    case(f"table_restored_{k}", lambda x, t=table: (t.lookup(x), t.size()), np.int64([[2, 3], [1, 0]]) if k == 1 else strings([b"q", b"r", b"s", b"\xff", b"", b"t"], *((6,) if k == 3 else (2, 3))))


# --- Keras' preprocessing layers -------------------------------------------------------------------

SENTENCES = tf.constant(["the quick brown fox", "the lazy dog!", "The dog, the fox", ""])


def layer(name, made, *args, adapt=None):
    if adapt is not None:
        made.adapt(adapt)
    TABLES.append(made)
    case(f"keras_{name}", tf.function(lambda *xs: made(xs[0] if len(xs) == 1 else xs)), *args)


TEXTS = strings([b"the quick dog", b"unknown words here", b"", b"  THE,, fox!", "d\u00f6g dog dog".encode()])
for mode in ("int", "multi_hot", "count", "tf_idf"):
    layer(f"text_{mode}", keras.layers.TextVectorization(output_mode=mode), TEXTS, adapt=SENTENCES)
layer("text_padded", keras.layers.TextVectorization(output_sequence_length=3, max_tokens=5), TEXTS, adapt=SENTENCES)
layer("text_ngrams", keras.layers.TextVectorization(ngrams=2, output_mode="count", pad_to_max_tokens=True, max_tokens=12), TEXTS, adapt=SENTENCES)
layer("text_characters", keras.layers.TextVectorization(split="character", standardize="lower"), TEXTS, adapt=SENTENCES)
layer("text_whole", keras.layers.TextVectorization(split=None, standardize=None, vocabulary=["a", "the quick dog"]), TEXTS)
layer("text_vocabulary", keras.layers.TextVectorization(vocabulary=["dog", "fox", "the"], standardize="strip_punctuation"), TEXTS)
for mode in ("int", "one_hot", "multi_hot", "count"):
    words = strings([b"a", b"c", b"zz", b"b"])
    layer(f"lookup_{mode}", keras.layers.StringLookup(vocabulary=["a", "b", "c"], output_mode=mode, num_oov_indices=2), words if mode in ("int", "one_hot") else words.reshape(2, 2))
layer("lookup_inverted", keras.layers.StringLookup(vocabulary=["a", "b"], invert=True), np.int64([0, 1, 2, 3, 9]))
layer("lookup_adapted", keras.layers.StringLookup(), strings([b"x", b"y", b"w"]), adapt=tf.constant(["x", "y", "x"]))
layer("integers", keras.layers.IntegerLookup(vocabulary=[12, -36, 1138]), np.int64([[12, 1138], [-36, 5]]))
layer("integers_hot", keras.layers.IntegerLookup(vocabulary=[12, 1138], output_mode="multi_hot", mask_token=-36), np.int64([[12, 1138], [-36, 5]]))
layer("integers_inverted", keras.layers.IntegerLookup(vocabulary=[12, -36], invert=True), np.int64([0, 1, 2]))
layer("hashing", keras.layers.Hashing(num_bins=7), strings([b"a", b"b", b"\xff"], 3, 1))
layer("hashing_salt", keras.layers.Hashing(num_bins=7, salt=[5, 9], mask_value=""), strings([b"a", b"", b"\xff"], 3, 1))
layer("hashing_integers", keras.layers.Hashing(num_bins=11), np.int64([[1], [-5], [2**40]]))
for mode in ("one_hot", "multi_hot", "count"):
    layer(f"encoding_{mode}", keras.layers.CategoryEncoding(num_tokens=4, output_mode=mode), np.int64([3, 0, 1]) if mode == "one_hot" else np.int64([[3, 0], [0, 0]]))
layer("crossing", keras.layers.HashedCrossing(num_bins=10), strings([b"a", b"b", b"c"]), np.int64([101, 102, 103]))
layer("crossing_hot", keras.layers.HashedCrossing(num_bins=4, output_mode="one_hot"), strings([b"a", b"b"]), np.int64([101, 102]))
layer("encoding_refused", keras.layers.CategoryEncoding(num_tokens=4, output_mode="multi_hot"), np.int64([[4, 0], [0, 0]]))


# --- Encoded images --------------------------------------------------------------------------------


def gif(frames, size, transparent=None, interlaced=False):
    """(left, top, pixels [h, w] of 8 colours) over a canvas, as LZW codes."""
    out = b"GIF89a" + struct.pack("<HHBBB", *size, 0x80 | 2, 0, 0) + bytes(COLOURS.reshape(-1))
    for left, top, pixels in frames:
        h, w = pixels.shape
        if interlaced:
            pixels = np.concatenate([pixels[0::8], pixels[4::8], pixels[2::4], pixels[1::2]])
        codes, table, word, bits = [8], {bytes([k]): k for k in range(8)}, b"", 4
        packed, have, data = 0, 0, bytearray()

        def put(code):
            nonlocal packed, have
            packed |= code << have
            have += bits
            while have >= 8:
                data.append(packed & 255)
                packed, have = packed >> 8, have - 8

        put(8)
        for pixel in pixels.reshape(-1).tolist():
            longer = word + bytes([pixel])
            if longer in table:
                word = longer
                continue
            put(table[word])
            if len(table) + 2 < 4096:
                table[longer] = len(table) + 2
                bits += len(table) + 2 > 1 << bits and bits < 12
            else:
                put(8)
                table, bits = {bytes([k]): k for k in range(8)}, 4
            word = bytes([pixel])
        put(table[word])
        put(9)
        data.append(packed & 255)
        if transparent is not None:
            out += b"\x21\xf9\x04" + bytes([1, 5, 0, transparent, 0])
        out += b"\x21\xfe\x03abc\x00\x2c" + struct.pack("<HHHHB", left, top, w, h, 0x40 if interlaced else 0) + b"\x03"
        for at in range(0, len(data), 255):
            out += bytes([len(data[at : at + 255])]) + data[at : at + 255]
        out += b"\x00"
    return out + b"\x3b"


def bmp(pixels, top_down=False):
    h, w, c = pixels.shape
    rows = [row[:, [2, 1, 0, 3][:c]].tobytes() if c > 1 else row.tobytes() for row in (pixels if top_down else pixels[::-1])]
    body = b"".join(row + b"\0" * (-len(row) % 4) for row in rows)
    return b"BM" + struct.pack("<IIIIiiHHIIIIII", 54 + len(body), 0, 54, 40, w, -h if top_down else h, 1, 8 * c, 0, len(body), 0, 0, 0, 0) + body


PIXELS = np.random.default_rng(3)
COLOURS = PIXELS.integers(0, 256, (8, 3), np.uint8)
SMOOTH = (np.add.outer(np.arange(37), np.arange(29))[..., None] * [3, 2, 1] % 256).astype(np.uint8)
NOISE = {c: PIXELS.integers(0, 256, (13, 17, c), np.uint8) for c in (1, 2, 3, 4)}
INDICES = PIXELS.integers(0, 8, (70, 90)).astype(np.uint8)
FILES = {"jpeg": tf.io.encode_jpeg(SMOOTH).numpy(), "jpeg_gray": tf.io.encode_jpeg(SMOOTH[..., :1]).numpy(),
         "jpeg_progressive": tf.io.encode_jpeg(SMOOTH, progressive=True).numpy(), "jpeg_444": tf.io.encode_jpeg(NOISE[3], chroma_downsampling=False).numpy(),
         **{f"png_{c}": tf.io.encode_png(NOISE[c]).numpy() for c in NOISE},
         **{f"png16_{c}": tf.io.encode_png(NOISE[c].astype(np.uint16) * 257 + 3).numpy() for c in NOISE},
         "gif": gif([(0, 0, INDICES)], (90, 70)), "gif_interlaced": gif([(0, 0, INDICES)], (90, 70), interlaced=True),
         "gif_frames": gif([(0, 0, INDICES), (5, 9, INDICES[:20, :30]), (80, 60, INDICES[:20, :30])], (90, 70), transparent=2),
         **{f"bmp_{c}": bmp(NOISE[c]) for c in (1, 3, 4)}, "bmp_down": bmp(NOISE[3], True),
         "none": b"", "text": b"no image at all, but long enough to have a header", "riff": b"RIFF\x10\0\0\0WEBPVP8 "}
FILES |= {f"cut_{k}": FILES[k][: len(FILES[k]) * 2 // 3] for k in ("jpeg", "png_3", "gif", "bmp_3")}
SOUND = [k for k in FILES if k not in ("none", "text", "riff") and not k.startswith("cut")]
for name, data in FILES.items():
    file = strings([data])[0]
    # a BMP in another number of channels is refused
    for channels in (0, int(name[-1]) if name[-1] in "34" else 0) if name.startswith("bmp") else (0, 1, 3, 4) if name in SOUND else (0,):
        if f"image_{name}_{channels}" in CASES:
            continue
        case(f"image_{name}_{channels}", lambda x, c=channels: tf.io.decode_image(x, c), file)
    for channels in (0, 1, 3) if name in SOUND else (0,):
        case(f"image_as_jpeg_{name}_{channels}", lambda x, c=channels: tf.io.decode_jpeg(x, c), file)
    for channels in (0, 4) if name in SOUND else (0,):
        case(f"image_as_png_{name}_{channels}", lambda x, c=channels: tf.io.decode_png(x, c), file)
    if name in SOUND:
        for dtype in (tf.uint16, tf.float32) if name != "bmp_down" else ():  # TensorFlow ends the process
            case(f"image_{name}_{dtype.name}", lambda x, d=dtype: tf.io.decode_image(x, 0, d), file)
        case(f"image_wide_{name}", lambda x: tf.io.decode_png(x, 0, tf.uint16), file)
        case(f"image_still_{name}", lambda x: tf.io.decode_image(x, 0, expand_animations=False), file)
    case(f"image_as_bmp_{name}", lambda x: tf.io.decode_bmp(x), file)
    case(f"image_as_gif_{name}", lambda x: raw.DecodeGif(contents=x), file)
    if not name.startswith("cut_jpeg"):
        case(f"image_shape_{name}", lambda x: tf.io.extract_jpeg_shape(x), file)
for ratio in (2, 4, 8):
    case(f"image_ratio_{ratio}", lambda x, r=ratio: tf.io.decode_jpeg(x, 3, ratio=r), strings([FILES["jpeg"]])[0])
for a in (dict(dct_method="INTEGER_ACCURATE"), dict(dct_method="INTEGER_FAST"), dict(fancy_upscaling=False)):
    case("image_" + "_".join(map(str, *a.items())), lambda x, a=a: tf.io.decode_jpeg(x, 3, **a), strings([FILES["jpeg"]])[0])
for k, window in enumerate([[0, 0, 37, 29], [3, 5, 10, 20], [36, 28, 1, 1], [0, 1, 37, 29], [-1, 0, 3, 3], [0, 0, 0, 3]]):
    case(f"image_crop_{k}", lambda x, w: tf.io.decode_and_crop_jpeg(x, w, 3), strings([FILES["jpeg"]])[0], np.int32(window))
# halved colours, whole ones, several scans; windows that end within blocks and beside them
CROPPED = np.random.default_rng(5).integers(0, 256, (50, 70, 3)).astype(np.uint8)
for kind, a in (("halved", {}), ("whole", {"chroma_downsampling": False}), ("scans", {"format": "rgb", "progressive": True})):
    jpeg = strings([tf.io.encode_jpeg(CROPPED, **a).numpy()])[0]
    for k, window in enumerate([[0, 0, 50, 70], [2, 3, 8, 9], [16, 16, 16, 16], [15, 17, 33, 31], [49, 69, 1, 1], [7, 0, 9, 64], [31, 33, 19, 37]]):
        case(f"image_crop_{kind}_{k}", lambda x, w: (tf.io.decode_and_crop_jpeg(x, w, 3), tf.io.decode_and_crop_jpeg(x, w, 1), tf.io.decode_and_crop_jpeg(x, w, 0, fancy_upscaling=False)), jpeg, np.int32(window))
for quality in (1, 50, 95, 100):
    case(f"image_encode_{quality}", lambda x, q=quality: (tf.io.decode_jpeg(tf.io.encode_jpeg(x, quality=q)), tf.io.decode_jpeg(tf.io.encode_jpeg(x[..., :1], quality=q))), SMOOTH)
case("image_encode_variable", lambda x, q: tf.io.decode_jpeg(raw.EncodeJpegVariableQuality(images=x, quality=q)), SMOOTH, np.int32(60))
for quality in (-1, 101):
    case(f"image_encode_variable_bad_{quality}".replace("-", "m"), lambda x, q: raw.EncodeJpegVariableQuality(images=x, quality=q), SMOOTH, np.int32(quality))
for c, pixels in NOISE.items():
    case(f"image_encode_png_{c}", lambda x: tf.io.decode_png(tf.io.encode_png(x)), pixels)
case("image_encode_pngs", lambda x: tf.map_fn(lambda s: tf.ensure_shape(tf.io.decode_png(s, 3), [13, 17, 3]), tf.io.encode_png(x), fn_output_signature=tf.uint8), np.stack([NOISE[3], NOISE[3][::-1]]))
case("image_batch", lambda x: tf.map_fn(lambda s: tf.image.resize(tf.io.decode_jpeg(s, 3), [8, 8], "nearest"), x, fn_output_signature=tf.uint8),
     strings([FILES["jpeg"], FILES["jpeg_gray"], FILES["jpeg_444"]]))

# --- More of strings, sparse and ragged tensors ----------------------------------------------------

for k, value in enumerate([np.arange(20), np.arange(60).reshape(3, 20), np.arange(24).reshape(2, 3, 4), np.int64(5), FLOATS[:4], FLOATS.astype(np.float64),
                           np.array([True, False]), GRID, strings([b"x\n\"'\\\t\x01"])[0], np.float32(0.1), np.float16([0.1, 1e-4]), np.uint8([1, 255])]):
    for n in (3, 1, -1):
        case(f"format_{k}_{n + 1}", lambda x, n=n: raw.StringFormat(inputs=[x], template="a {} b", placeholder="{}", summarize=n), value)
case("format_two", lambda x, y: tf.strings.format("{}; {}", (x, y)), np.int32([1, 2]), strings([b"x"]))
join = lambda x, s, n: raw.UnsortedSegmentJoin(inputs=x, segment_ids=s, num_segments=n, separator="+")
case("segment_join", join, strings(STRANGE[:6]), np.int32([2, 0, 2, 3, 0, 2]), np.int32(5))
case("segment_join_negative", join, strings([b"a"]), np.int32([-1]), np.int32(2))
case("segment_join_rows", join, GRID, np.int64([1, 0, 1]), np.int32(2))
case("segment_join_all", join, GRID, np.int32([[0, 1, 0, 1], [1, 1, 1, 1], [0, 0, 0, 2]]), np.int64(3))
case("segment_join_outside", join, strings([b"a"]), np.int32([3]), np.int32(3))
case("segment_join_shape", join, GRID, np.int32([0, 1]), np.int32(3))
each("list_diff", lambda x: tuple(raw.ListDiff(x=x, y=x[1:3], out_idx=tf.int64)), numbers=np.int32([5, 3, 3, 7, 5]), strings=strings([b"b", b"", b"a", b"b"]),
     floats=np.float32([1, -0.0, 0, np.nan, 3]), flat=np.uint8([1]))
MIXED, MIXED_VALUES = np.int64([[1, 2], [0, 1], [1, 0]]), strings([b"c", b"a", b"b"])
each("sparse_reorder", lambda v: tuple(raw.SparseReorder(input_indices=tf.constant(MIXED), input_values=v, input_shape=tf.constant(SHAPE))), strings=MIXED_VALUES, floats=np.float32([1, 2, 3]))
for k, (start, size) in enumerate([([0, 0], [2, 3]), ([0, 1], [2, 1]), ([1, 0], [5, 5]), ([0, 0], [0, 3])]):
    case(f"sparse_slice_{k}", lambda i, v, s, a, b: tuple(raw.SparseSlice(indices=i, values=v, shape=s, start=a, size=b)), PLACES, MIXED_VALUES, SHAPE, np.int64(start), np.int64(size))
for axis in (0, 1, -1):
    case(f"sparse_concat_{axis + 1}", lambda i, v, s, axis=axis: tuple(raw.SparseConcat(indices=[i, i], values=[v, v], shapes=[s, s], concat_dim=axis)), PLACES, MIXED_VALUES, SHAPE)
case("sparse_concat_differ", lambda i, v, s: tuple(raw.SparseConcat(indices=[i, i], values=[v, v], shapes=[s, s + 1], concat_dim=0)), PLACES, MIXED_VALUES, SHAPE)
for least in (0.0, 2.5):
    case(f"sparse_add_{least}", lambda i, v, j, w, s, least=least: tuple(raw.SparseAdd(a_indices=i, a_values=v, a_shape=s, b_indices=j, b_values=w, b_shape=s, thresh=np.float32(least))),
         PLACES, np.float32([1, 2, 3]), np.int64([[0, 0], [1, 0]]), np.float32([5, -2]), SHAPE)
case("sparse_add_int", lambda i, v, s: tuple(raw.SparseAdd(a_indices=i, a_values=v, a_shape=s, b_indices=i, b_values=v, b_shape=s, thresh=np.int64(0))), PLACES, np.int64([2**62, 2, 3]), SHAPE)
for k, axes in enumerate([[0], [1], [-1], [0, 1], [], [2]]):
    for keep in (False, True):
        case(f"sparse_sum_{k}_{keep}", lambda i, v, s, axes=axes, keep=keep: raw.SparseReduceSum(
            input_indices=i, input_values=v, input_shape=s, reduction_axes=np.int32(axes), keep_dims=keep), PLACES, np.float32([1, 2, 3]), SHAPE)
case("sparse_softmax", lambda i, v, s: raw.SparseSoftmax(sp_indices=i, sp_values=v, sp_shape=s), np.int64([[0, 1], [1, 0], [1, 2], [3, 1]]), np.float32([1, 2, 3, -80]), np.int64([4, 3]))
WORDS_2, IDS_2 = strings([b"a", b"b", b"c"]), np.int64([10, -20, 30])
for op in (tf.sparse.cross, tf.sparse.cross_hashed):
    crossed = lambda i, v, s, w, d, op=op: sparse(op([tf.SparseTensor(i, v, s), tf.SparseTensor(i, w, s), d]))
    case(f"cross_{op.__name__}", crossed, PLACES, WORDS_2, SHAPE, IDS_2, np.int64([[1, 2], [3, -4]]))
    case(f"cross_dense_{op.__name__}", lambda a, b, op=op: sparse(op([a, b])), strings([b"x", b"y", b"z", b""], 2, 2), np.int64([[5], [6]]))
    case(f"cross_batches_{op.__name__}", lambda a, b, op=op: sparse(op([a, b])), strings([b"x", b"y"], 2, 1), np.int64([[5], [6], [7]]))
case("cross_buckets", lambda a, b: sparse(tf.sparse.cross_hashed([a, b], num_buckets=9, hash_key=12345)), strings([b"x", b"y"], 2, 1), np.int64([[5], [6]]))
case("cross_separator", lambda a, b: sparse(tf.sparse.cross([a, b], separator="--")), strings([b"x", b"y"], 2, 1), np.int64([[5], [6]]))
CSV = strings([b'1,2.5,a,4', b'-7,,"q,""x""",\n', b' 8 ,1e3,NA,9\r\n', b',nan,,'])
csv = lambda r, **a: tuple(raw.DecodeCSV(records=r, record_defaults=[np.int32([5]), np.float32([1.5]), tf.constant(["none"]), np.int64([-1])], **a))
each("csv", csv, all=CSV, scalar=CSV[0], none=np.zeros((0, 2), object), grid=CSV.reshape(2, 2), few=strings([b"1,2,3"]), many=strings([b"1,2,3,4,5"]), number=strings([b"x,2,3,4"]),
     float=strings([b"1,x,3,4"]), big=strings([b"2147483648,2,3,4"]), quote=strings([b'1,2,a"b,4']), inside=strings([b'1,2,"a"b",4']), open=strings([b'1,2,"a']), line=strings([b"1,2,a\nb,4"]), empty=strings([b""]))
case("csv_plain", lambda r: csv(r, use_quote_delim=False), strings([b'1,2,a"b,4']))
case("csv_na", lambda r: csv(r, na_value="NA"), CSV)
case("csv_semicolon", lambda r: csv(r, field_delim=";"), strings([b"1;2;a,b;3"]))
case("csv_selected", lambda r: csv(r, select_cols=[1, 3, 4, 6]), strings([b"x,1,y,2.5,b,z,7,w", b"x,1,y,2.5,b,z,"]))
case("csv_required", lambda r: tuple(raw.DecodeCSV(records=r, record_defaults=[np.zeros(0, np.int32), tf.zeros([0], tf.string)])), strings([b"1,a", b"2,"]))
case("csv_required_there", lambda r: tuple(raw.DecodeCSV(records=r, record_defaults=[np.zeros(0, np.int32), tf.zeros([0], tf.string)])), strings([b"1,a", b"2,b"]))


WORDS = tf.saved_model.Asset(text_file("words.txt", b"one\r\ntwo\x00\xff"))
TABLES.append(WORDS)
case("file_asset", lambda x: tf.strings.join([tf.io.read_file(WORDS.asset_path), x]), strings([b"", b"!"]))
case("file_asset_lines", lambda x: tf.strings.split(tf.io.read_file(WORDS.asset_path), "\n")[x], np.int32(1))


def refused_files(tmp):
    """A file that is none of the model's assets is not read."""
    outside = Path(tmp, "outside.txt")
    outside.write_bytes(b"secret")
    module = tf.Module()
    module.f = tf.function(named(tf.io.read_file), input_signature=[tf.TensorSpec([], tf.string)])
    module.asset = WORDS
    tf.saved_model.save(module, f"{tmp}/files", signatures={"f": module.f})
    for path in (str(outside), "../outside.txt", "assets/../saved_model.pb", "saved_model.pb", "assets", "assets/", "assets/none.txt", "", "assets/words.txt\0", "/etc/passwd"):
        Path(tmp, "f.in").write_bytes(function_cases.pack([np.array(path.encode(), object)]))
        for end in ("out", "error"):
            Path(tmp, f"f.{end}").unlink(missing_ok=True)
        subprocess.run([os.path.join(os.environ["SEXTANT_TEST_BIN"], "function_tool"), f"{tmp}/files", tmp], check=True)
        said = Path(tmp, "f.error").read_text() if Path(tmp, "f.error").exists() else "it is read"
        if not said.startswith(("INVALID_ARGUMENT", "NOT_FOUND", "PERMISSION_DENIED")):
            failures.append(f"file {path!r}: {said[:300]}")


def refused_at_load(tmp):
    """A file of the model is not what it was when the model was saved."""
    for name, more, changed in (("short", dict(vocab_size=3), b"a\nb\n"), ("empty", {}, b"a\n\nc\n"), ("twice", {}, b"a\na\nb\n"), ("gone", {}, None)):
        module = tf.Module()
        path = text_file(f"{name}.txt", b"a\nb\nc\n")
        module.table = tf.lookup.StaticHashTable(tf.lookup.TextFileInitializer(path, tf.string, LINE, tf.int64, NUMBER, **more), -1)
        module.f = tf.function(named(module.table.lookup), input_signature=[tf.TensorSpec([None], tf.string)])
        tf.saved_model.save(module, f"{tmp}/{name}", signatures={"f": module.f})
        asset = Path(tmp, name, "assets", f"{name}.txt")
        asset.write_bytes(changed) if changed is not None else asset.unlink()
        try:
            tf.saved_model.load(f"{tmp}/{name}")
            failures.append(f"load_{name}: TensorFlow loads it")
        except (tf.errors.OpError, FileNotFoundError):
            pass
        ours = subprocess.run([os.path.join(os.environ["SEXTANT_TEST_BIN"], "function_tool"), f"{tmp}/{name}", tmp], capture_output=True, text=True)
        if ours.returncode != 1 or f"{name}.txt" not in ours.stderr and name != "twice":
            failures.append(f"load_{name}: exit {ours.returncode}: {ours.stderr[:300]}")


if __name__ == "__main__":
    only = sys.argv[1:]
    cases = {k: v for k, v in CASES.items() if not only or any(o in k for o in only)}
    with tempfile.TemporaryDirectory(prefix="sextant-host-tables-") as tmp:
        if not only:
            refused_at_load(tmp)
            refused_files(tmp)
    failures += function_cases.run(cases, kept=TABLES)
    shutil.rmtree(ASSETS)
    for failure in failures:
        print(f"FAIL {failure}")
    print(f"{len(cases)} cases, {len(failures)} failures")
    sys.exit(1 if failures or (not only and len(cases) < 100) else 0)
