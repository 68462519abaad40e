"""Operators that run on the host against TensorFlow: strings, records, sparse and ragged tensors.

Each row of CASES is a function and its arguments (function_cases.py). A few run again with unknown ranks."""
import gzip
import os
import struct
import sys
import unicodedata
import zlib

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import numpy as np
import tensorflow as tf

import function_cases

raw = tf.raw_ops
i32, f32 = np.int32, np.float32
STRANGE = [b"", b"a", b"Hello, World", b"  both ends \t\r\n", b"12.5", "ünïcödé ß".encode(), "日本語 テキスト".encode(),
           b"\xff\xfe bad \xe2\x82", b"\xf0\x9f\x98\x80 \xed\xa0\x80 \xc0\x80", b"zero\0inside", b"x,y,,z", b"x" * 200]
LENGTHS = [bytes(range(1, n + 1)) for n in (0, 1, 3, 4, 7, 8, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 200)]


def strings(values, *shape):
    return np.array(values, object).reshape(shape or (len(values),))


EMPTY = np.zeros((0, 2), object)
GRID = strings(STRANGE, 3, 4)

# name -> (function, arguments...); an argument is passed at run time, what the function closes over is constant.
CASES = {}


def case(name, function, *args):
    assert name not in CASES, name
    CASES[name] = (function, args)


def each(name, function, **inputs):
    for key, value in inputs.items():
        case(f"{name}_{key}", function, value)


def sparse(st):
    return st.indices, st.values, st.dense_shape


# --- Strings ---------------------------------------------------------------------------------------

case("join", lambda a, b: raw.StringJoin(inputs=[a, b], separator="--"), GRID, GRID[::-1].copy())
case("join_scalar", lambda a, b: raw.StringJoin(inputs=[a, b, a]), strings([b"x"])[0], GRID)
case("join_nothing", lambda a: raw.StringJoin(inputs=[a, a], separator=","), EMPTY)
case("join_differ", lambda a, b: raw.StringJoin(inputs=[a, b]), strings([b"a", b"b"], 1, 2), strings([b"a", b"b", b"c"], 1, 3))
each("strip", lambda a: raw.StringStrip(input=a), grid=GRID, empty=EMPTY)
for op in ("lower", "upper"):
    function = {"lower": raw.StringLower, "upper": raw.StringUpper}[op]
    each(op, lambda a, f=function: f(input=a), grid=GRID, empty=EMPTY)
    # TensorFlow cuts at a zero byte; its ICU lacks some letters that Unicode 14 added
    each(f"{op}_utf8", lambda a, f=function: f(input=a, encoding="utf-8"), grid=strings([s for s in STRANGE if b"\0" not in s]),
         special=strings(["ΌΣΟΣ ΑΣ. Σ ΑΣΑ".encode(), "ǆǅǄ ﬃ ŉ İIıi ᾳᾼᾲ ΐ և ﬓ ǰ".encode(), "straße ΐᾷ".encode()]),
         planes=strings([chr(c).encode() for c in range(0x80, 0x2fff) if c not in (0x2C2F, 0x2C5F)]),
         high=strings([chr(c).encode() for c in (*range(0xA640, 0xA7C0), *range(0xA7C2, 0xA7D0), *range(0xA7DA, 0xABFF), *range(0x10400, 0x10500), *range(0x1E900, 0x1E950))]))
each("length", lambda a: raw.StringLength(input=a), grid=GRID, empty=EMPTY)
each("length_utf8", lambda a: raw.StringLength(input=a, unit="UTF8_CHAR"), grid=GRID)
for unit in ("BYTE", "UTF8_CHAR"):
    f = lambda s, p, n, u=unit: raw.Substr(input=s, pos=p, len=n, unit=u)
    text = strings([b"hello", "ünïcödé".encode(), "日本語 テキスト".encode(), b"\xff\xfe bad \xe2\x82"])
    for k, (pos, length) in enumerate([(0, 3), (1, 100), (-2, 1), (-3, 100), (2, 0), (5, 2), (-5, 3), (1, -1), (-2, -1), (0, -3)]):
        case(f"substr_{unit}_{k}", f, text, np.int32(pos), np.int32(length))
    case(f"substr_{unit}_each", f, text, np.array([0, 1, -2, -1], np.int64), np.array([1, 2, 3, 9], np.int64))
    case(f"substr_{unit}_column", f, text.reshape(4, 1), np.array([0, 1, -2], np.int32), np.array([1, 2, 3], np.int32))
    case(f"substr_{unit}_after", f, text, np.int32(30), np.int32(1))
    case(f"substr_{unit}_before", f, text, np.int32(-30), np.int32(1))
    case(f"substr_{unit}_end", f, strings([b"abc"]), np.int32(3), np.int32(1))
    case(f"substr_{unit}_start", f, strings([b"abc"]), np.int32(-3), np.int32(2))
    case(f"substr_{unit}_empty", f, strings([b""]), np.int32(0), np.int32(1))
NUMBERS = {
    "float32": [b"1", b" -2.5e3 ", b"+7", b"inf", b"-Inf", b"nan", b"1e-45", b".5", b"5.", b"1e39", b"3.4028236e38", b"0x1F", b"-0"],
    "float64": [b"1", b"1e308", b"1e309", b"4.9e-324", b"0.1", b"123456789012345678901234567890", b"infinity"],
    "int32": [b"0", b" 7\t", b"-2147483648", b"2147483647", b"0012"], "int64": [b"-9223372036854775808", b"9223372036854775807"],
}
WRONG = [b"", b" ", b"x", b"1x", b"1 2", b"--1", b"1e", b"0x", b"1_000", b"\xff", b"12\0", b"1f", b"nan(1)", b"2147483648", b"1.5", b"+7", b"- 7",
         b"0x10", b"+", b".", b"e5", b"infinit", b"-infinity", b"+inf", b"-nan", b"0x1p3", b"0x1.8", b"1e400"]
for dtype, texts in NUMBERS.items():
    f = lambda a, d=dtype: raw.StringToNumber(string_tensor=a, out_type=d)
    case(f"number_{dtype}", f, strings(texts))
    case(f"number_{dtype}_empty", f, EMPTY)
    for k, text in enumerate(WRONG):
        case(f"number_{dtype}_odd{k}", f, strings([text]))
FLOATS = np.array([0, -0.0, 1, -1.5, 1e-7, 123456789, 3.4e38, 1e-30, np.inf, -np.inf, np.nan, 0.1], np.float32)
each("as_string", lambda a: tf.strings.as_string(a), f32=FLOATS, f64=FLOATS.astype(np.float64), i8=np.int8([-128, 127]),
     i32=np.int32([[-2**31, 5]]), i64=np.int64([-2**63, 2**63 - 1]), u8=np.uint8([0, 255]), bool=np.array([True, False]),
     empty=np.zeros((2, 0), np.float32), f16=FLOATS[:6].astype(np.float16))
for k, a in enumerate([dict(precision=2), dict(scientific=True), dict(shortest=True), dict(width=12), dict(width=12, fill="0"),
                       dict(width=12, fill="-", precision=3), dict(width=12, fill=" ", shortest=True), dict(precision=0, scientific=True),
                       dict(width=0), dict(width=3, fill="+")]):
    case(f"as_string_form{k}", lambda x, a=a: raw.AsString(input=x, **a), FLOATS)
    if "precision" not in a and "shortest" not in a and "scientific" not in a:
        case(f"as_string_int_form{k}", lambda x, a=a: raw.AsString(input=x, **a), np.int64([-12, 0, 123456]))
        case(f"as_string_bool_form{k}", lambda x, a=a: raw.AsString(input=x, **a), np.array([True, False]))
# fill "*" and other marks are refused when the model is imported, as TensorFlow refuses them when it runs
for kind, x in (("f32", FLOATS), ("bf16", FLOATS[:6].astype(tf.bfloat16.as_numpy_dtype)), ("i64", np.int64([-12, 0, 123456])), ("u8", np.uint8([0, 200])),
                ("u64", np.uint64([2**64 - 1, 7])), ("bool", np.array([True, False])), ("string", strings([b"abcdef", b"", b"a\0b", "üé".encode()]))):
    for k, a in enumerate([dict(fill=f, width=w) for f in ("", " ", "0", "-", "+", "#") for w in (-1, 9)] + [dict(width=-5, precision=-5)] + [
            dict(scientific=True), dict(shortest=True), dict(precision=1), dict(precision=0, width=4), dict(precision=0, fill="#"), dict(shortest=True, fill="#", precision=3),
            dict(precision=2, width=9, fill="-"), dict(precision=3, width=9, fill="0", scientific=True)] * (kind in ("f32", "string"))):
        case(f"as_string_{kind}_{k}", lambda x, a=a: raw.AsString(input=x, **a), x)
        if kind == "f32":
            case(f"as_string_complex_{k}", lambda x, a=a: raw.AsString(input=tf.complex(x, 1 - x), **a), x)
ROWS = strings([b"a,b,,c", b"", b",", b"  two  words ", b"one", b",,", b"\xff,\0,", "ü,é".encode(), b" \t ", b"a, b,c,,"])
for separator in (b"", b",", b",,", b", ", b"\0", b"words"):
    for n in (-1, 0, 1, 2):
        case(f"split_{separator.hex()}_{n + 1}", lambda a, s=separator, n=n: tuple(raw.StringSplitV2(input=a, sep=s, maxsplit=n)), ROWS)
for delimiter in (b"", b",", b", ", b";"):
    for skip in (True, False):
        case(f"split_v1_{delimiter.hex()}_{skip}",
             lambda a, d=delimiter, s=skip: tuple(raw.StringSplit(input=a, delimiter=d, skip_empty=s)), ROWS)
case("split_none", lambda a: tuple(raw.StringSplitV2(input=a, sep=" ")), np.zeros((0,), object))
case("split_separator_fed", lambda a, s: tuple(raw.StringSplitV2(input=a, sep=s)), ROWS, strings([b","])[0])
case("split_rank2", lambda a: tuple(raw.StringSplitV2(input=tf.reshape(a, [-1]), sep=" ")), GRID)
HASHED = strings(STRANGE + LENGTHS)
for buckets in (1, 10, 1000003, 2**63 - 1):
    case(f"hash_fast_{buckets}", lambda a, n=buckets: raw.StringToHashBucketFast(input=a, num_buckets=n), HASHED)
    case(f"hash_strong_{buckets}", lambda a, n=buckets: raw.StringToHashBucketStrong(input=a, num_buckets=n, key=[1231, -7]), HASHED)
    case(f"hash_legacy_{buckets}", lambda a, n=buckets: raw.StringToHashBucket(string_tensor=a, num_buckets=n), HASHED)

for axes in ([1], [0], [-1], [0, 1], [1, 0], []):
    for keep in (False, True):
        key = "_".join(str(a).replace("-", "m") for a in axes) + f"_{keep}"
        f = lambda a, axes=axes, keep=keep: raw.ReduceJoin(
            inputs=a, reduction_indices=np.int32(axes), keep_dims=keep, separator=", ")
        each(f"reduce_join_{key}", f, grid=GRID, empty=EMPTY)
case("reduce_join_fed", lambda a, i: raw.ReduceJoin(inputs=a, reduction_indices=i), GRID, np.int32([1]))
case("reduce_join_out", lambda a, i: raw.ReduceJoin(inputs=a, reduction_indices=i), GRID, np.int32([2]))
case("reduce_join_3d", lambda a: raw.ReduceJoin(inputs=a, reduction_indices=[2, 0], separator="|"), GRID.reshape(2, 3, 2))
PATTERNS = [(r"", "-"), (r"[,.]", ""), (r"(\w)(\w)", r"\2\1"), (r"\s+", " "), (r"x*", "<\\0>"), (r"^", ">"), (r"$", "<"), (r".", r"\\"),
            (r"(a)|(b)", r"[\1\2]"), (r"a", r"\1"), (r"a", r"q\z"), (r"(?i)HELLO", "bye"), (r"[^\x00-\x7F]", "?"), (r"\pL", "L"), (r"b*", "!")]
for k, (pattern, rewrite) in enumerate(PATTERNS):
    for all_of_them in (True, False):
        case(f"regex_{k}_{all_of_them}", lambda a, p=pattern, r=rewrite, g=all_of_them: (
            raw.StaticRegexReplace(input=a, pattern=p, rewrite=r, replace_global=g),
            raw.RegexReplace(input=a, pattern=p, rewrite=r, replace_global=g)), GRID)
    case(f"match_{k}", lambda a, p=pattern: (raw.StaticRegexFullMatch(input=a, pattern=p), raw.RegexFullMatch(input=a, pattern=p)), GRID)
case("match_some", lambda a: tf.strings.regex_full_match(a, r"[a-z,. \d]*"), GRID)
case("regex_fed", lambda a, p: tf.strings.regex_replace(a, p, "_"), GRID, strings([b"[a-m]"])[0])
case("regex_invalid", lambda a, p: tf.strings.regex_replace(a, p, "_"), GRID, strings([b"(a"])[0])

UTF16 = strings([t.decode("utf-8", "ignore").encode("utf-16-be") for t in STRANGE] + [b"\xd8\x00\x00a", b"\xdc\x00", b"abc", b"\xd8\x00"])
UTF32 = strings([t.decode("utf-8", "ignore").encode("utf-32-be") for t in STRANGE] + [b"\x00\x11\x00\x00", b"\x00\x00\xd8\x00", b"abcde"])
BROKEN = strings(STRANGE + [b"\xe2\x82", b"\xf0\x9f\x98", b"\xf0\x9fx", b"\xe2(\xa1", b"\xf8\x88\x80\x80\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80",
                            b"\xc1\xbf", b"\x80\x80", b"a\x01\x1f\x7f"])
for encoding, texts in {"UTF-8": BROKEN, "UTF-16-BE": UTF16, "UTF-32-BE": UTF32, "US-ASCII": BROKEN, "ISO-8859-1": BROKEN}.items():
    for errors in ("replace", "ignore"):
        for controls in (False, True):
            key = f"{encoding}_{errors}_{controls}".replace("-", "")
            for out in ("UTF-8", "UTF-16-BE", "UTF-32-BE"):
                case(f"transcode_{key}_{out.replace('-', '')}", lambda a, e=encoding, o=out, r=errors, c=controls: raw.UnicodeTranscode(
                    input=a, input_encoding=e, output_encoding=o, errors=r, replace_control_characters=c), texts)
            case(f"decode_{key}", lambda a, e=encoding, r=errors, c=controls: tuple(raw.UnicodeDecodeWithOffsets(
                input=a, input_encoding=e, errors=r, replace_control_characters=c, replacement_char=63)), texts)
    case(f"transcode_strict_{encoding}".replace("-", ""), lambda a, e=encoding: raw.UnicodeTranscode(
        input=a, input_encoding=e, output_encoding="UTF-8", errors="strict"), texts)
case("decode_strict", lambda a: tuple(raw.UnicodeDecode(input=a, input_encoding="UTF-8", errors="strict")), strings(["hé😀".encode(), b""]))
case("decode_grid", lambda a: tuple(raw.UnicodeDecode(input=a, input_encoding="UTF-8", Tsplits=tf.int32)), GRID)
CODES = np.int32([72, 233, 0x65E5, 0x1F600, 0xD800, 0xFDD0, 0xFFFF, 0x110000, -1, 0])
for out in ("UTF-8", "UTF-16-BE", "UTF-32-BE"):
    for errors in ("replace", "ignore"):
        case(f"encode_{errors}_{out}".replace("-", ""), lambda v, s, o=out, e=errors: raw.UnicodeEncode(
            input_values=v, input_splits=s, output_encoding=o, errors=e), CODES, np.int64([0, 3, 3, 10]))
case("encode_strict", lambda v, s: raw.UnicodeEncode(input_values=v, input_splits=s, output_encoding="UTF-8", errors="strict"), CODES, np.int64([0, 10]))
case("encode_splits", lambda v, s: raw.UnicodeEncode(input_values=v, input_splits=s, output_encoding="UTF-8"), CODES, np.int64([0, 12]))
case("chars", lambda a: tf.strings.unicode_split(a, "UTF-8").to_tensor("?"), strings(STRANGE))
WORDS = strings([b"a", b"b", b"", b"dd", b"e", b"f"])
for widths in ([1], [2], [3, 1], [9]):
    for pad in (0, 1, 5, -1):
        for short in (False, True):
            case(f"ngrams_{'_'.join(map(str, widths))}_{pad + 1}_{short}", lambda d, s, w=widths, p=pad, k=short: tuple(raw.StringNGrams(
                data=d, data_splits=s, separator="|", ngram_widths=w, left_pad="L", right_pad="R", pad_width=p,
                preserve_short_sequences=k)), WORDS, np.int64([0, 1, 1, 4, 6]))
case("ngrams_splits", lambda d, s: tuple(raw.StringNGrams(data=d, data_splits=s, separator="", ngram_widths=[2], left_pad="", right_pad="",
     pad_width=0, preserve_short_sequences=False)), WORDS, np.int32([0, 7]))
BYTES = strings([bytes(range(k, k + 16)) for k in (0, 100, 200)], 3, 1)
for dtype in (tf.bool, tf.uint8, tf.int8, tf.int16, tf.uint16, tf.int32, tf.int64, tf.float16, tf.float32, tf.float64):
    for little in (True, False):
        case(f"raw_{dtype.name}_{little}", lambda a, d=dtype, e=little: raw.DecodeRaw(bytes=a, out_type=d, little_endian=e),
             BYTES if dtype != tf.bool else strings([b"\0\1\1\0"]))
        if dtype not in (tf.bool, tf.float16):
            case(f"padded_{dtype.name}_{little}", lambda a, d=dtype, e=little: raw.DecodePaddedRaw(
                input_bytes=a, fixed_length=24, out_type=d, little_endian=e), strings([b"", b"abc", b"x" * 40]))
case("raw_sizes", lambda a: raw.DecodeRaw(bytes=a, out_type=tf.uint8), strings([b"ab", b"c"]))
case("raw_multiple", lambda a: raw.DecodeRaw(bytes=a, out_type=tf.int32), strings([b"abc"]))
case("raw_empty", lambda a: raw.DecodeRaw(bytes=a, out_type=tf.int32), np.zeros((0,), object))
each("base64", lambda a: (raw.EncodeBase64(input=a), raw.EncodeBase64(input=a, pad=True)), grid=GRID, lengths=strings(LENGTHS))
each("unbase64", lambda a: raw.DecodeBase64(input=a), good=strings([b"", b"YQ", b"YQ==", b"YWI", b"YWI=", b"YWJj", b"_-8"]),
     one=strings([b"A"]), plus=strings([b"ab+/"]), space=strings([b"YW Jj"]), pads=strings([b"YWJj===="]), inside=strings([b"YQ==YQ=="]), three=strings([b"Y==="]))

# --- Strings in operators of any dtype -------------------------------------------------------------

case("string_equal", lambda a, b: (tf.equal(a, b), tf.not_equal(a, b)), GRID, strings([b"", b"a", b"12.5", b"zero\0inside"]))
case("string_reshape", lambda a: tf.reshape(a, [-1, 2]), GRID)
case("string_concat", lambda a, b: tf.concat([a, b], 1), GRID, GRID[:, :1].copy())
case("string_gather", lambda a, i: tf.gather(a, i), GRID, np.int64([2, 0, 0]))
case("string_where", lambda c, a: tf.where(c, a, "no"), np.array([[True], [False], [True]]), GRID)
case("string_transpose", lambda a: tf.transpose(a), GRID)
case("string_slice", lambda a: a[1:, 2:], GRID)
case("string_stack", lambda a: tf.stack([a, a], 1), GRID)
case("string_expand", lambda a: tf.squeeze(tf.expand_dims(a, 1), 1), GRID)
case("string_fill", lambda n: tf.fill([n, 2], "pad"), np.int32(3))
case("string_broadcast", lambda a: tf.broadcast_to(a, [2, 3, 4]), GRID)
case("string_shape", lambda a: (tf.shape(a), tf.size(a), tf.rank(a)), GRID)

# --- Sparse and ragged tensors ---------------------------------------------------------------------

RAGGED_SPLITS = np.int64([0, 2, 2, 6])
for values in (strings(STRANGE[:6]), np.arange(6, dtype=np.float32), np.arange(12, dtype=np.int32).reshape(6, 2)):
    kind = f"{'s' if values.dtype == object else values.dtype.name}_{values.ndim}"
    default = "?" if values.dtype == object else -1
    for shape in (None, [2, None], [5, 3], [None, 1], [0, 0]):
        full = shape if shape is None or values.ndim == 1 else [*shape, None]
        key = "_".join("n" if k is None else str(k) for k in shape or [])
        case(f"to_tensor_{kind}_{key}", lambda v, s, d=default, f=full: tf.RaggedTensor.from_row_splits(v, s, validate=False).to_tensor(d, shape=f), values, RAGGED_SPLITS)
        case(f"to_tensor_rows_{kind}_{key}", lambda v, r, d=default, f=full: tf.RaggedTensor.from_value_rowids(v, r, 5, validate=False).to_tensor(d, shape=f), values,
             np.int64([0, 0, 2, 2, 2, 4]))
case("to_tensor_two", lambda v, a, b: tf.RaggedTensor.from_nested_row_splits(v, [a, b], validate=False).to_tensor(-7), np.arange(6), np.int64([0, 2, 2, 3]), RAGGED_SPLITS)
case("to_tensor_huge", lambda v, s, n: raw.RaggedTensorToTensor(shape=n, values=v, default_value=0, row_partition_tensors=[s],
     row_partition_types=["ROW_SPLITS"]), np.int32([1, 2, 3]), np.int64([0, 3]), np.int64([1 << 20, 1 << 42]))
for rank, value in ((1, strings(STRANGE[:6])), (2, np.arange(12.0).reshape(6, 2))):
    case(f"to_sparse_{rank}", lambda v, s: tuple(raw.RaggedTensorToSparse(rt_nested_splits=[s], rt_dense_values=v)), value, RAGGED_SPLITS)
    case(f"to_sparse_two_{rank}", lambda v, a, b: tuple(raw.RaggedTensorToSparse(rt_nested_splits=[a, b], rt_dense_values=v)), value,
         np.int64([0, 2, 2, 3]), RAGGED_SPLITS)
case("to_sparse_bad", lambda v, s: tuple(raw.RaggedTensorToSparse(rt_nested_splits=[s], rt_dense_values=v)), np.arange(3), np.int64([0, 2, 2, 6]))
for dtype in (np.int32, np.int64, np.float32, np.float64):
    case(f"ragged_range_{np.dtype(dtype).name}", lambda a, b, d: tuple(raw.RaggedRange(starts=a, limits=b, deltas=d)),
         dtype([0, 5, 2, -3]), dtype([3, 1, 2, 4]), dtype([1, -2, 1, 3]))
case("ragged_range_scalar", lambda a, b, d: tuple(raw.RaggedRange(starts=a, limits=b, deltas=d, Tsplits=tf.int32)), np.int32(0), np.int32([3, 0]), np.int32(1))
case("ragged_range_far", lambda a, b, d: tuple(raw.RaggedRange(starts=a, limits=b, deltas=d)),
     np.int64([2**53, 2**63 - 3, -2**63, 2**63 - 1, 0]), np.int64([2**53 + 3, 2**63 - 1, 2**63 - 1, -2**63, -2**63]),
     np.int64([1, 1, 2**62, -2**62, -2**63]))
for dtype in (np.float32, np.float64):  # to the bit: TensorFlow computes lengths and values in the dtype
    case(f"ragged_range_tenths_{np.dtype(dtype).name}", lambda a, b, d: (*(y := raw.RaggedRange(starts=a, limits=b, deltas=d)),
         tf.cast(y[1] * 2.0**56, tf.int64)), dtype([0, 0, 1]), dtype([.3, 1, -1]), dtype([.1, .1, -.1]))
case("ragged_range_zero", lambda a, b, d: tuple(raw.RaggedRange(starts=a, limits=b, deltas=d)), np.int32([0]), np.int32([3]), np.int32([0]))
for values in (strings(STRANGE[:6]), np.arange(6, dtype=np.float32), np.arange(12, dtype=np.int64).reshape(6, 2), np.array([True, False] * 3)):
    kind = f"{'s' if values.dtype == object else values.dtype.name}_{values.ndim}"
    for key, rows in {"vector": np.int32([2, 0, 1, 2]), "grid": np.int64([[2, 1], [0, 0], [1, 2]]), "none": np.zeros(0, np.int32), "empty_grid": np.zeros((2, 0), np.int64)}.items():
        for splits in (RAGGED_SPLITS, RAGGED_SPLITS.astype(np.int32)):
            case(f"ragged_gather_{kind}_{key}_{splits.dtype.name}", lambda s, v, i, n=rows.ndim: [*(y := raw.RaggedGather(
                params_nested_splits=[s], params_dense_values=v, indices=i, OUTPUT_RAGGED_RANK=n)).output_nested_splits, y.output_dense_values], splits, values, rows)
nested = lambda a, b, v, i: [*(y := raw.RaggedGather(params_nested_splits=[a, b], params_dense_values=v, indices=i, OUTPUT_RAGGED_RANK=2)).output_nested_splits, y.output_dense_values]
case("ragged_gather_two", nested, np.int64([0, 2, 2, 3]), RAGGED_SPLITS, np.arange(6.0), np.int32([2, 0, 1, 0]))
for key, (a, b, i) in {"outside": ([0, 2, 2, 3], [0, 2, 2, 6], [3]), "negative": ([0, 2, 2, 3], [0, 2, 2, 6], [-1]), "descending": ([0, 2, 1, 3], [0, 2, 2, 6], [0]),
                       "beyond": ([0, 2, 2, 3], [0, 2, 2, 7], [2]), "no_splits": ([], [0, 2, 2, 6], [0])}.items():
    case(f"ragged_gather_{key}", nested, np.int64(a), np.int64(b), np.arange(6.0), np.int32(i))
case("ragged_rows", lambda v, s, i: (lambda r: [r.flat_values, r.row_splits])(tf.gather(tf.RaggedTensor.from_row_splits(v, s, validate=False), i)), strings(STRANGE[:6]), RAGGED_SPLITS, np.int32([2, 0]))
FEATURES = (np.int64([[0, 0], [0, 1], [1, 0]]), strings([b"a", b"b", b"c"]), np.int64([2, 2])), (np.int64([[0, 0], [1, 0], [1, 1]]), np.int64([5, -6, 7]), np.int64([2, 2]))
for hashed in (False, True):
    for internal in (tf.string, tf.int64):
        if internal == tf.int64:  # TensorFlow refuses integers otherwise
            case(f"sparse_cross_{hashed}_{internal.name}", lambda i, v, s, j, w, t, d, h=hashed, k=internal: tuple(raw.SparseCross(
                indices=[i, j], values=[v, w], shapes=[s, t], dense_inputs=[d], hashed_output=h, num_buckets=1000 if h else 0, hash_key=99,
                out_type=tf.int64 if h else tf.string, internal_type=k)), *FEATURES[0], *FEATURES[1], strings([b"x", b"y"], 2, 1))
        case(f"sparse_cross_texts_{hashed}_{internal.name}", lambda i, v, s, d, h=hashed, k=internal: tuple(raw.SparseCross(
            indices=[i], values=[v], shapes=[s], dense_inputs=[d], hashed_output=h, num_buckets=0, hash_key=99,
            out_type=tf.int64 if h else tf.string, internal_type=k)), *FEATURES[0], strings([b"x", b"y"], 2, 1))
case("sparse_cross_v2", lambda i, v, s, j, w, t, d, p: tuple(raw.SparseCrossV2(indices=[i, j], values=[v, w], shapes=[s, t], dense_inputs=[d], sep=p)),
     *FEATURES[0], *FEATURES[1], strings([b"x", b"y"], 2, 1), strings([b"--"])[0])
PLACES, SHAPE = np.int64([[0, 1], [1, 0], [1, 2]]), np.int64([2, 3])
dense = lambda i, s, v, d: raw.SparseToDense(sparse_indices=i, output_shape=s, sparse_values=v, default_value=d)
case("dense", dense, PLACES, SHAPE, strings([b"a", b"b", b"c"]), strings([b"-"])[0])
case("dense_scalar", dense, PLACES, SHAPE, np.float32(2), np.float32(-1))
case("dense_vector", dense, np.int32([1, 4]), np.int32([6]), np.int64([7, 8]), np.int64(0))
case("dense_order", dense, PLACES[::-1].copy(), SHAPE, np.float32(2), np.float32(-1))
case("dense_twice", dense, np.int64([[0, 1], [0, 1]]), SHAPE, np.float32(2), np.float32(-1))
case("dense_outside", dense, np.int64([[0, 3]]), SHAPE, np.float32(2), np.float32(-1))
case("dense_unchecked", lambda i, s, v, d: raw.SparseToDense(sparse_indices=i, output_shape=s, sparse_values=v, default_value=d, validate_indices=False),
     PLACES[::-1].copy(), SHAPE, np.int32([1, 2, 3]), np.int32(-1))
case("dense_negative", dense, PLACES, np.int64([2, -3]), np.float32(2), np.float32(-1))
reshape = lambda i, s, n: tuple(raw.SparseReshape(input_indices=i, input_shape=s, new_shape=n))
for key, shape in {"column": [-1, 1], "flat": [6], "rest": [3, -1], "three": [1, 3, 2]}.items():
    case(f"sparse_reshape_{key}", reshape, PLACES, SHAPE, np.int64(shape))
case("sparse_reshape_wrong", reshape, PLACES, SHAPE, np.int64([4, -1]))
case("sparse_reshape_two", reshape, PLACES, SHAPE, np.int64([-1, -1]))
case("sparse_reshape_none", reshape, np.zeros((0, 2), np.int64), SHAPE, np.int64([6]))
# of gradients
rng_grad = np.random.default_rng(11)
GRAD_PLACES = np.int64([[0, 1], [0, 3], [1, 0], [2, 2], [2, 3]])
case("sparse_slice_grad", lambda dy, i, start, o: raw.SparseSliceGrad(backprop_val_grad=dy, input_indices=i, input_start=start, output_indices=o), np.float32(
    [5, -2]), GRAD_PLACES, np.int64([1, 0]), np.int64([[0, 0], [1, 2]]))
case("sparse_slice_grad_none", lambda dy, i, start, o: raw.SparseSliceGrad(backprop_val_grad=dy, input_indices=i, input_start=start, output_indices=o), np.zeros(
    0, np.float32), GRAD_PLACES, np.int64([1, 1]), np.zeros((0, 2), np.int64))
case("sparse_add_grad", lambda dy, a, b, s: tuple(raw.SparseAddGrad(backprop_val_grad=dy, a_indices=a, b_indices=b, sum_indices=s)), np.float32(
    [1, 2, 3, 4, 5, 6]), GRAD_PLACES, np.int64([[0, 1], [0, 2], [2, 2]]), np.int64([[0, 1], [0, 2], [0, 3], [1, 0], [2, 2], [2, 3]]))
case("sparse_add_grad_left_out", lambda dy, a, b, s: tuple(raw.SparseAddGrad(backprop_val_grad=dy, a_indices=a, b_indices=b, sum_indices=s)), np.float32(
    [1, 2]), GRAD_PLACES[:2], np.int64([[0, 1], [0, 2]]), np.int64([[0, 2], [0, 3]]))
case("sparse_fill_grad", lambda m, dy: tuple(raw.SparseFillEmptyRowsGrad(reverse_index_map=m, grad_values=dy)), np.int64([1, 3, 0]), np.float32([1, 2, 4, 8, np.inf]))
case("ragged_fill_grad", lambda m, dy: tuple(raw.RaggedFillEmptyRowsGrad(reverse_index_map=m, grad_values=dy)), np.int64([1, 3, 0]), np.float32([1, 2, 4, 8, 16]))
for op in ("Sum", "Mean", "SqrtN"):
    for indices in (np.int32, np.int64):
        case(f"sparse_segment_grad_v2_{op}_{np.dtype(indices).name}", lambda dy, i, s, op=op: tuple(getattr(raw, f"SparseSegment{op}GradV2")(
            grad=dy, indices=i, segment_ids=s, dense_output_dim0=9)), rng_grad.normal(size=(3, 2)).astype(np.float32), indices([7, 2, 7, 0, 3]), np.int32([0, 0, 1, 2, 2]))
fill = lambda i, v, s, d: tuple(raw.SparseFillEmptyRows(indices=i, values=v, dense_shape=s, default_value=d))
case("fill_rows", fill, np.int64([[1, 1], [3, 0], [3, 2]]), strings([b"a", b"b", b"c"]), np.int64([5, 3]), strings([b"-"])[0])
case("fill_rows_unordered", fill, np.int64([[3, 2], [1, 1], [3, 0]]), np.float32([1, 2, 3]), np.int64([5, 3]), np.float32(-1))
case("fill_rows_none", fill, np.zeros((0, 2), np.int64), np.zeros(0, np.int32), np.int64([2, 3]), np.int32(9))
case("fill_rows_full", fill, np.int64([[0, 0], [1, 1]]), np.int64([1, 2]), np.int64([2, 2]), np.int64(9))
case("fill_rows_outside", fill, np.int64([[7, 0]]), np.int64([1]), np.int64([2, 2]), np.int64(9))
TABLE = np.random.default_rng(1).normal(size=(5, 3)).astype(np.float32)
for how in ("Sum", "Mean", "SqrtN"):
    f = getattr(raw, f"SparseSegment{how}")
    case(f"segment_{how}", lambda t, i, s, f=f: f(data=t, indices=i, segment_ids=s), TABLE, np.int64([3, 0, 0, 2, 1]), np.int32([0, 0, 2, 2, 2]))
    case(f"segment_{how}_none", lambda t, i, s, f=f: f(data=t, indices=i, segment_ids=s), TABLE, np.int32([]), np.int32([]))
    g = getattr(raw, f"SparseSegment{how}WithNumSegments")
    case(f"segments_{how}", lambda t, i, s, n, g=g: g(data=t, indices=i, segment_ids=s, num_segments=n), TABLE.astype(np.float64), np.int32([3, 0]),
         np.int64([1, 1]), np.int32(4))
case("segment_outside", lambda t, i, s: raw.SparseSegmentSum(data=t, indices=i, segment_ids=s), TABLE, np.int64([5]), np.int32([0]))
case("segment_order", lambda t, i, s: raw.SparseSegmentSum(data=t, indices=i, segment_ids=s), TABLE, np.int64([1, 2]), np.int32([1, 0]))
for a, b in ((False, False), (True, False), (False, True), (True, True)):
    right = np.random.default_rng(2).normal(size=(2 if a else 3, 4)).astype(np.float32)
    case(f"sparse_matmul_{a}_{b}", lambda i, v, s, m, a=a, b=b: raw.SparseTensorDenseMatMul(
        a_indices=i, a_values=v, a_shape=s, b=m, adjoint_a=a, adjoint_b=b), PLACES, np.float32([1, 2, 3]), SHAPE, (right.T if b else right).copy())
case("sparse_matmul_outside", lambda i, v, s, m: raw.SparseTensorDenseMatMul(a_indices=i, a_values=v, a_shape=s, b=m), PLACES + 1, np.float32([1, 2, 3]),
     SHAPE, np.ones((3, 2), np.float32))
each("unique", lambda a: tuple(tf.unique(a)) + tuple(tf.unique_with_counts(a, tf.int64)), strings=strings([b"b", b"", b"a", b"b", b"a"]),
     f32=np.float32([3, -0.0, 0, np.nan, 3, np.nan]), i64=np.int64([-2**63, 5, 5, -2**63]), empty=np.zeros(0, np.int32), u8=np.uint8([3, 3, 1]))
case("unique_v2", lambda a: tuple(raw.UniqueV2(x=a, axis=np.int64([0]))), np.int32([4, 4, 1]))
REPEATED = np.random.default_rng(8).integers(0, 2, (6, 3, 2))
for axis in (0, 1, 2, -1):
    each(f"unique_axis_{axis}".replace("-", "m"), lambda a, d=axis: tuple(raw.UniqueV2(x=a, axis=[d])) + tuple(raw.UniqueWithCountsV2(x=a, axis=np.int64([d]), out_idx=tf.int64)),
         i32=REPEATED.astype(np.int32), f32=np.where(REPEATED, -0.0, 0).astype(np.float32) + (REPEATED.sum(0) > 3), bool=REPEATED > 0,
         strings=np.array([b"a", b""], object)[REPEATED], empty=np.zeros((0, 3, 2), np.int64))
case("unique_axis_nan", lambda a: tuple(raw.UniqueV2(x=a, axis=[0])), np.float32([[1, np.nan], [1, np.nan], [2, 3], [2, 3]]))
case("unique_no_axis", lambda a: tuple(raw.UniqueV2(x=a, axis=tf.constant([], tf.int32))), np.int32([4, 4, 1]))
each("reverse_strings", lambda a: (raw.ReverseV2(tensor=a, axis=[1]), raw.ReverseV2(tensor=a, axis=[0, -1])), grid=GRID, empty=EMPTY)
case("reverse_strings_v1", lambda a: raw.Reverse(tensor=a, dims=[True, False]), GRID)
each("pad_strings", lambda a: (tf.pad(a, [[1, 2], [0, 1]]), tf.pad(a, [[0, 0], [2, 1]], constant_values="none")), grid=GRID, empty=EMPTY)
case("pad_strings_fed", lambda a, n, v: raw.PadV2(input=a, paddings=n, constant_values=v), GRID, np.int32([[1, 0], [0, 2]]), strings([b"ab"])[0])
BOUNDS = [0.0, 1.5, 2.0, 100.0]
each("bucketize", lambda a: raw.Bucketize(input=a, boundaries=BOUNDS), f32=np.float32([[-1e9, 0, 1.5], [2, 7, np.nan]]), i32=np.int32([-1, 0, 2, 100]),
     f64=np.array([1.4999999999, 1.5]), i64=np.int64([2**62]))
each("bucketize_far", lambda a: raw.Bucketize(input=a, boundaries=[2.0**24, 2.0**24 + 2, 2.0**24 + 4]), i32=np.int32([2**24 + 1, 2**24 + 3]),
     i64=np.int64([2**24 + 1, 2**24 + 3]), f64=np.array([2**24 + 1, 2**24 + 3.0]))
COUNTED = np.int32([[3, 0, 0], [9, 5, 3]])
case("bincount", lambda a, n, w: raw.Bincount(arr=a, size=n, weights=w), COUNTED, np.int32(6), np.float32([[1, 2, 3], [4, 5, 6]]))
case("bincount_ones", lambda a, n, w: raw.Bincount(arr=a, size=n, weights=w), COUNTED, np.int32(6), np.zeros(0, np.int64))
case("bincount_negative", lambda a, n, w: raw.Bincount(arr=a, size=n, weights=w), -COUNTED, np.int32(6), np.zeros(0, np.int64))
case("bincount_size", lambda a, n, w: raw.Bincount(arr=a, size=n, weights=w), COUNTED, np.int32(-1), np.zeros(0, np.int64))
for binary in (False, True):
    d = lambda a, n, w, b=binary: raw.DenseBincount(input=a, size=n, weights=w, binary_output=b)
    case(f"dense_bincount_{binary}", d, COUNTED, np.int32(6), np.zeros(0, np.float32))
    case(f"dense_bincount_weights_{binary}", d, COUNTED.astype(np.int64), np.int64(4), np.float64([[1, 2, 3], [4, 5, 6]]))
    case(f"dense_bincount_vector_{binary}", d, COUNTED[0].copy(), np.int32(6), np.int32([1, 2, 3]))
    case(f"ragged_bincount_{binary}", lambda s, a, n, w, b=binary: raw.RaggedBincount(splits=s, values=a, size=n, weights=w, binary_output=b),
         RAGGED_SPLITS, COUNTED.reshape(-1).copy(), np.int32(6), np.float32([1, 2, 3, 4, 5, 6]))

# --- Records ---------------------------------------------------------------------------------------


def example(**features):
    lists = {bytes: lambda v: tf.train.Feature(bytes_list=tf.train.BytesList(value=v)),
             float: lambda v: tf.train.Feature(float_list=tf.train.FloatList(value=v)),
             int: lambda v: tf.train.Feature(int64_list=tf.train.Int64List(value=v))}
    made = {k: lists[type(v[0])](v) if v else tf.train.Feature() for k, v in features.items()}
    return tf.train.Example(features=tf.train.Features(feature=made)).SerializeToString()


RECORDS = strings([example(id=[7], xy=[1.5, -2.0], name=[b"one"], tags=[b"a", b"", b"\xff"], steps=[1.0, 2.0, 3.0, 4.0]),
                   example(id=[-2**63], xy=[0.0, 3e38], tags=[], name=[b"", ]),
                   example(id=[2**63 - 1], xy=[float("nan"), 1e-45], name=[b"two\0"], tags=[b"z"], steps=[5.0, 6.0], more=[1])])
FIXED = {"id": tf.io.FixedLenFeature([], tf.int64), "xy": tf.io.FixedLenFeature([2], tf.float32),
         "name": tf.io.FixedLenFeature([1, 1], tf.string, [[b"nobody"]]), "gone": tf.io.FixedLenFeature([3], tf.int64, [1, 2, 3])}
SEVERAL = {**FIXED, "tags": tf.io.VarLenFeature(tf.string), "steps": tf.io.VarLenFeature(tf.float32), "more": tf.io.VarLenFeature(tf.int64)}
GROWING = {"steps": tf.io.FixedLenSequenceFeature([2], tf.float32, allow_missing=True, default_value=-1.0),
           "tags": tf.io.FixedLenSequenceFeature([], tf.string, allow_missing=True)}
RAGGED = {"tags": tf.io.RaggedFeature(tf.string), "steps": tf.io.RaggedFeature(tf.float32, row_splits_dtype=tf.int64), "id": FIXED["id"]}


def parsed(spec):
    def run(records):
        out = []
        for _, value in sorted(tf.io.parse_example(records, spec).items()):
            out += sparse(value) if isinstance(value, tf.SparseTensor) else \
                [value.values, value.row_splits] if isinstance(value, tf.RaggedTensor) else [value]
        return out
    return run


each("parse_fixed", parsed(FIXED), all=RECORDS, none=np.zeros(0, object), missing=strings([example(id=[1])]), kind=strings([example(id=[1.0], xy=[1.0, 2.0])]),
     count=strings([example(id=[1], xy=[1.0])]), broken=strings([b"\x0a\xff"]))
each("parse_several", parsed(SEVERAL), all=RECORDS, none=np.zeros(0, object))
each("parse_growing", parsed(GROWING), all=RECORDS, odd=strings([example(steps=[1.0])]))
each("parse_ragged", parsed(RAGGED), all=RECORDS)
case("parse_one", lambda r: parsed(SEVERAL)(r), RECORDS[:1].reshape(())[()])
case("parse_v1", lambda r: [y for part in raw.ParseExample(
    serialized=r, names=[], sparse_keys=["tags", "steps"], dense_keys=["id", "name"], dense_defaults=[np.zeros(0, np.int64), [b"nobody"]],
    sparse_types=[tf.string, tf.float32], dense_shapes=[[], [1]]) for y in part], RECORDS)



def sequence(context=(), lists=()):
    """A tf.train.SequenceExample; of features without values the kind is not set."""
    e = tf.train.SequenceExample()

    def put(feature, values):
        if values:
            getattr(feature, {bytes: "bytes_list", float: "float_list", int: "int64_list"}[type(values[0])]).value.extend(values)

    for key, values in dict(context).items():
        put(e.context.feature[key], values)
    for key, steps in dict(lists).items():
        e.feature_lists.feature_list[key].SetInParent()
        for values in steps:
            put(e.feature_lists.feature_list[key].feature.add(), values)
    return e.SerializeToString()


SEQUENCES = strings([
    sequence(dict(n=[5], w=[1.5, -2.0], t=[b"a", b""]), dict(v=[[1.0, 2.0], [3.0, float("nan")]], x=[[b"q"], [], [b"\xff", b"r"]], i=[[7]])),
    sequence(dict(n=[-2**63]), dict(v=[], x=[[]], i=[])),
    sequence(dict(n=[2**63 - 1], t=[b"zz"], k=[1, 2, 3]), dict(v=[[5.0, 6.0]], i=[[1], [2], [3]]))])
CONTEXT = {"n": tf.io.FixedLenFeature([], tf.int64), "w": tf.io.FixedLenFeature([2], tf.float32, [0.5, 0.25]), "t": tf.io.VarLenFeature(tf.string)}
LISTS = {"v": tf.io.FixedLenSequenceFeature([2], tf.float32), "x": tf.io.VarLenFeature(tf.string), "i": tf.io.FixedLenSequenceFeature([], tf.int64)}
LISTS_MAYBE = {**LISTS, "none": tf.io.FixedLenSequenceFeature([3], tf.string, allow_missing=True)}
ALL_RAGGED = ({"t": tf.io.RaggedFeature(tf.string), "k": tf.io.RaggedFeature(tf.int64, row_splits_dtype=tf.int64), "n": CONTEXT["n"]},
              {"v": tf.io.RaggedFeature(tf.float32), "x": tf.io.RaggedFeature(tf.string, row_splits_dtype=tf.int64), "gone": tf.io.RaggedFeature(tf.int64)})


def flattened(*groups):
    out = []
    for group in groups:
        for _, value in sorted(group.items()):
            out += sparse(value) if isinstance(value, tf.SparseTensor) else \
                [value.flat_values, *value.nested_row_splits] if isinstance(value, tf.RaggedTensor) else [value]
    return out


sequences = lambda context, lists: lambda r: flattened(*tf.io.parse_sequence_example(r, context, lists))
each("sequence_lists", sequences(CONTEXT, LISTS), all=SEQUENCES, missing=strings([sequence(dict(n=[1]), dict(v=[]))]),
     context=strings([sequence(dict(), dict(v=[], i=[]))]), count=strings([sequence(dict(n=[1]), dict(v=[[1.0]], i=[]))]),
     kind=strings([sequence(dict(n=[1]), dict(v=[[1, 2]], i=[]))]), empty_step=strings([sequence(dict(n=[1]), dict(v=[[]], i=[]))]),
     context_kind=strings([sequence(dict(n=[1.0]), dict(v=[], i=[]))]), broken=strings([b"\x12\xff"]), cut=strings([SEQUENCES[0][:-1]]))
each("sequence_maybe", sequences(CONTEXT, LISTS_MAYBE), all=SEQUENCES)
each("sequence_ragged", sequences(*ALL_RAGGED), all=SEQUENCES)
case("sequence_one", lambda r: flattened(*tf.io.parse_single_sequence_example(r, CONTEXT, LISTS_MAYBE)), SEQUENCES[0])
case("sequence_one_wrong", lambda r: flattened(*tf.io.parse_single_sequence_example(r, CONTEXT, LISTS)), sequence(dict(n=[1]), dict(v=[])))
SEQUENCE_V1 = dict(debug_name=[], context_dense_defaults=[np.zeros(0, np.int64)], context_sparse_keys=["t"], context_dense_keys=["n"],
                   feature_list_sparse_keys=["x"], feature_list_dense_keys=["v", "none"], Ncontext_sparse=1, Ncontext_dense=1, Nfeature_list_sparse=1,
                   Nfeature_list_dense=2, context_sparse_types=[tf.string], feature_list_dense_types=[tf.float32, tf.int64], context_dense_shapes=[[]],
                   feature_list_sparse_types=[tf.string], feature_list_dense_shapes=[[2], []])
for key, assumed in {"assumed": ["none"], "required": []}.items():
    case(f"sequence_v1_{key}", lambda r, a=assumed: [y for part in raw.ParseSequenceExample(
        serialized=r, feature_list_dense_missing_assumed_empty=a, **SEQUENCE_V1) for y in part], SEQUENCES)
case("parse_single", lambda r: [y for part in raw.ParseSingleExample(
    serialized=r, dense_defaults=[np.zeros(0, np.int64), [b"nobody"]], num_sparse=2, sparse_keys=["tags", "steps"], dense_keys=["id", "name"],
    sparse_types=[tf.string, tf.float32], dense_shapes=[[], [1]]) for y in part], RECORDS[0])
case("parse_single_missing", lambda r: [y for part in raw.ParseSingleExample(
    serialized=r, dense_defaults=[np.zeros(0, np.int64)], num_sparse=0, sparse_keys=[], dense_keys=["gone"], sparse_types=[], dense_shapes=[[]]) for y in part], RECORDS[0])

# --- Random numbers -------------------------------------------------------------------------------

SEED, KEY, COUNTER = np.int64([-7, 1 << 40]), np.uint64([0x123456789abcdef]), np.uint64([2**64 - 2, 17])
for dtype in (np.int32, np.int64):
    case(f"random_key_{np.dtype(dtype).name}", lambda s: tuple(raw.StatelessRandomGetKeyCounter(seed=s)), dtype([-7, 12345]))
case("random_key_alg", lambda s: tuple(raw.StatelessRandomGetKeyCounterAlg(seed=s)), SEED)
case("random_alg", lambda s: raw.StatelessRandomGetAlg() + s, np.int32(0))
for dtype in (tf.half, tf.bfloat16, tf.float32, tf.float64):
    for name in ("StatelessRandomUniform", "StatelessRandomNormal", "StatelessTruncatedNormal"):
        if dtype == tf.bfloat16:  # the comparison has no bfloat16
            v2 = lambda n, k, c, name=name, d=dtype: tf.cast(getattr(raw, name + "V2")(shape=n, key=k, counter=c, alg=1, dtype=d), tf.float32)
        else:
            v2 = lambda n, k, c, name=name, d=dtype: getattr(raw, name + "V2")(shape=n, key=k, counter=c, alg=1, dtype=d)
        case(f"random_{name}V2_{dtype.name}", v2, np.int32([5, 3, 7]), KEY, COUNTER)
        if dtype != tf.bfloat16:
            case(f"random_{name}_{dtype.name}", lambda n, s, name=name, d=dtype: getattr(raw, name)(shape=n, seed=s, dtype=d), np.int64([37]), SEED)
for dtype in (tf.int32, tf.int64, tf.uint32, tf.uint64):
    d = dtype.as_numpy_dtype
    full = lambda n, k, c, d=dtype: raw.StatelessRandomUniformFullIntV2(shape=n, key=k, counter=c, alg=3, dtype=d)
    between = lambda n, k, c, a, b: raw.StatelessRandomUniformIntV2(shape=n, key=k, counter=c, alg=1, minval=a, maxval=b)
    case(f"random_bits_{dtype.name}", full, np.int32([5, 7]), KEY, COUNTER)
    if dtype.is_unsigned:
        continue  # TensorFlow has no such kernel on the CPU
    case(f"random_int_{dtype.name}", between, np.int32([5, 7]), KEY, COUNTER, d(3), d(1000))
    case(f"random_int_all_{dtype.name}", between, np.int32([5, 7]), KEY, COUNTER, d(np.iinfo(d).min), d(np.iinfo(d).max))
    case(f"random_int_none_{dtype.name}", between, np.int32([2]), KEY, COUNTER, d(3), d(3))
case("random_int_v1", lambda n, s, a, b: raw.StatelessRandomUniformInt(shape=n, seed=s, minval=a, maxval=b), np.int32([9]), SEED, np.int64(-5), np.int64(5))
case("random_bits_v1", lambda n, s: raw.StatelessRandomUniformFullInt(shape=n, seed=s, dtype=tf.int32), np.int32([9]), SEED)
case("random_scalar", lambda n, k, c: raw.StatelessRandomUniformV2(shape=n, key=k, counter=c, alg=1), np.zeros(0, np.int32), KEY, COUNTER)
case("random_nothing", lambda n, k, c: raw.StatelessRandomNormalV2(shape=n, key=k, counter=c, alg=1), np.int32([0, 3]), KEY, COUNTER)
case("random_negative", lambda n, k, c: raw.StatelessRandomNormalV2(shape=n, key=k, counter=c, alg=1), np.int32([2, -3]), KEY, COUNTER)
case("random_huge", lambda n, k, c: raw.StatelessRandomNormalV2(shape=n, key=k, counter=c, alg=1), np.int64([2**40, 2**40]), KEY, COUNTER)
for dtype in (np.float32, np.float64):
    alpha = dtype([[0.1], [0.7], [1], [2.5]])
    case(f"random_gamma_{np.dtype(dtype).name}", lambda n, k, c, a: raw.StatelessRandomGammaV3(shape=n, key=k, counter=c, alg=1, alpha=a), np.int32([50, 4, 1]), KEY, COUNTER, alpha)
    case(f"random_gamma_v2_{np.dtype(dtype).name}", lambda n, s, a: raw.StatelessRandomGammaV2(shape=n, seed=s, alpha=a), np.int32([3, 4, 1]), SEED, alpha)
case("random_gamma_shape", lambda n, k, c, a: raw.StatelessRandomGammaV3(shape=n, key=k, counter=c, alg=1, alpha=a), np.int32([4, 3]), KEY, COUNTER, np.float32([1, 2]))
LOGITS = np.float32([[0, 1, 2, -1], [5, -np.inf, 0, 5], [-100, -100, -101, np.nan]])
# one row: TensorFlow's numbers of several depend on its threads
for row in range(3):
    case(f"random_classes_{row}", lambda x, n, s: raw.StatelessMultinomial(logits=x, num_samples=n, seed=s), LOGITS[row : row + 1], np.int32(40), SEED)
case("random_classes_int32", lambda x, n, s: raw.StatelessMultinomial(logits=x, num_samples=n, seed=s, output_dtype=tf.int32), np.float64([[1, 2, 3]]), np.int32(9), SEED)
case("random_classes_none", lambda x, n, s: raw.StatelessMultinomial(logits=x, num_samples=n, seed=s), np.zeros((2, 0), np.float32), np.int32(9), SEED)

# A node's numbers go on in each round of a loop.


def rounds(draw, n=3):
    def run(*xs):
        _, out = tf.while_loop(lambda i, out: i < n, lambda i, out: (i + 1, out.write(i, draw(*xs))), [0, tf.TensorArray(tf.as_dtype(draw.dtype), n)], parallel_iterations=1)
        return out.stack()
    return run


def stateful(name, dtype, draw, *args):
    draw.dtype = dtype
    if dtype != tf.string:  # no lists of them
        case(f"stateful_{name}", rounds(draw), *args)
    case(f"stateful_once_{name}", draw, *args)


for dtype in (tf.half, tf.float32, tf.float64):
    for name in ("RandomUniform", "RandomStandardNormal", "TruncatedNormal"):
        stateful(f"{name}_{dtype.name}", dtype, lambda n, name=name, d=dtype: getattr(raw, name)(shape=n, dtype=d, seed=7, seed2=-3), np.int32([3, 5]))
stateful("seed", tf.float32, lambda n: raw.RandomUniform(shape=n, dtype=tf.float32, seed=2**40, seed2=0), np.int64([7]))
stateful("seed2", tf.float32, lambda n: raw.RandomUniform(shape=n, dtype=tf.float32, seed=0, seed2=9), np.int64([7]))
stateful("none", tf.float32, lambda n: raw.RandomUniform(shape=n, dtype=tf.float32, seed=1, seed2=9), np.int64([0, 7]))
stateful("negative", tf.float32, lambda n: raw.RandomUniform(shape=n, dtype=tf.float32, seed=1, seed2=9), np.int64([2, -7]))
stateful("huge", tf.float32, lambda n: raw.RandomUniform(shape=n, dtype=tf.float32, seed=1, seed2=9), np.int64([2**40, 2**40]))
for dtype in (np.int32, np.int64):
    stateful(f"int_{np.dtype(dtype).name}", dtype, lambda n, a, b: raw.RandomUniformInt(shape=n, minval=a, maxval=b, seed=7, seed2=8), np.int32([3, 3]), dtype(-4), dtype(1000))
stateful("gamma", tf.float32, lambda n, a: raw.RandomGamma(shape=n, alpha=a, seed=3, seed2=4), np.int32([5]), f32([0.3, 2.5]))
TRUNCATED = lambda n, m, s, a, b: raw.ParameterizedTruncatedNormal(shape=n, means=m, stdevs=s, minvals=a, maxvals=b, seed=3, seed2=4)
stateful("bounded", tf.float32, lambda *a: TRUNCATED(*a), np.int32([4, 3]), f32(0.5), f32([2]), f32(-1), f32(3))
stateful("bounded_rows", tf.float64, lambda *a: TRUNCATED(*a), np.int32([2, 5]), np.float64([0, 1]), np.float64([1, 2]), np.float64([-1, -3]), np.float64([2, 9]))
stateful("classes", tf.int64, lambda x, n: raw.Multinomial(logits=x, num_samples=n, seed=3, seed2=4), LOGITS[:1], np.int32(6))
for key, rows in {"vector": np.arange(11, dtype=np.int32), "matrix": np.arange(18.0).reshape(9, 2), "one": np.float32([[1, 2]]), "texts": strings([b"a", b"b", b"c", b"d", b"e"])}.items():
    stateful(f"shuffle_{key}", tf.string if rows.dtype == object else rows.dtype, lambda x: raw.RandomShuffle(value=x, seed=5, seed2=6), rows)
# normal numbers within bounds: by each of the three ways, mirrored, of one bound
BOUNDED = {"normal": (0, 1, -2, 2), "below": (0, 1, -np.inf, 1), "above": (3, 2, 3.5, np.inf), "uniform": (0, 1, 0.1, 0.4), "tail": (0, 1, 3, np.inf), "far": (0, 1, 4, 30),
           "mirrored": (5, 0.5, 1, 3), "straddles": (0, 1, -0.5, 0.7), "none": (0, 1, 2, 2), "no_bounds": (0, 1, -np.inf, np.inf), "no_deviation": (0, 0, -1, 1)}
for key, row in BOUNDED.items():
    for dtype in (np.float32, np.float64):
        case(f"bounded_{key}_{np.dtype(dtype).name}", lambda n, s, *p: raw.StatelessParameterizedTruncatedNormal(shape=n, seed=s, means=p[0], stddevs=p[1], minvals=p[2], maxvals=p[3]),
             np.int32([5, 7]), np.int32([3, 9]), *(dtype(p) for p in row))
case("bounded_broadcast", lambda n, s, *p: raw.StatelessParameterizedTruncatedNormal(shape=n, seed=s, means=p[0], stddevs=p[1], minvals=p[2], maxvals=p[3]),
     np.int64([4, 2, 3]), np.int64([2**40, 9]), f32([0, 1, -7]), f32([[1], [3]]), f32(-3), f32([[2.5, 2.5, 1], [9, 1.5, 4]]))
case("bounded_misfit", lambda n, s, m: raw.StatelessParameterizedTruncatedNormal(shape=n, seed=s, means=m, stddevs=1.0, minvals=-1.0, maxvals=1.0), np.int32([3, 2]), np.int32([1, 2]), f32([0, 1, 2]))
# parts of an image
OBJECTS = f32([[[0.1, 0.2, 0.5, 0.6], [0.4, 0.4, 0.45, 0.5]], [[0, 0, 1, 1], [0.9, 0.1, 1, 0.3]]])
for k, (options, covered) in enumerate([({}, 0.1), ({"area_range": [0.3, 0.9], "aspect_ratio_range": [0.5, 2.5]}, 0.5), ({"area_range": [0.99, 1], "max_attempts": 3}, 1.0),
                                        ({"aspect_ratio_range": [0.01, 0.02]}, 0.0), ({"area_range": [0.01, 0.02], "max_attempts": 7}, 0.9), ({"use_image_if_no_bounding_boxes": True}, 0.3)]):
    for size in ([60, 80, 3], [7, 5, 1], [1, 9, 3], [640, 479, 3]):
        boxes = OBJECTS if "use_image_if_no_bounding_boxes" not in options else np.zeros((2, 0, 4), np.float32)
        case(f"part_{k}_{size[0]}", lambda s, b, c, seed, o=options: tuple(raw.StatelessSampleDistortedBoundingBox(image_size=s, bounding_boxes=b, min_object_covered=c, seed=seed, **o)),
             np.int32(size), boxes, f32(covered), np.int64([k, 5]))
    case(f"part_stateful_{k}", lambda s, b, c, o=options: tuple(raw.SampleDistortedBoundingBoxV2(image_size=s, bounding_boxes=b, min_object_covered=c, seed=3, seed2=8, **o)), np.int64([60, 80, 3]), boxes, f32(covered))
    stateful(f"part_{k}", tf.int64, lambda s, b, c, o=options: raw.SampleDistortedBoundingBoxV2(image_size=s, bounding_boxes=b, min_object_covered=c, seed=3, seed2=8, **o)[0], np.int64([60, 80, 3]), boxes, f32(covered))
case("part_bad_box", lambda s, b: tuple(raw.StatelessSampleDistortedBoundingBox(image_size=s, bounding_boxes=b, min_object_covered=0.1, seed=[1, 2])), np.int32([9, 9, 3]), OBJECTS + 0.5)
case("part_no_box", lambda s, b: tuple(raw.StatelessSampleDistortedBoundingBox(image_size=s, bounding_boxes=b, min_object_covered=0.1, seed=[1, 2])), np.int32([9, 9, 3]), OBJECTS[:, :0])
for dtype in (tf.float32, tf.float64):
    case(f"sobol_{dtype.name}", lambda d, n, s, t=dtype: raw.SobolSample(dim=d, num_results=n, skip=s, dtype=t), np.int32(64), np.int32(300), np.int32(0))
    case(f"sobol_skip_{dtype.name}", lambda d, n, s, t=dtype: raw.SobolSample(dim=d, num_results=n, skip=s, dtype=t), np.int32(7), np.int32(9), np.int32(123456))
case("sobol_one", lambda n: raw.SobolSample(dim=1, num_results=n, skip=3, dtype=tf.float32), np.int32(9))
case("sobol_no_dim", lambda d: raw.SobolSample(dim=d, num_results=4, skip=3, dtype=tf.float32), np.int32(0))
# candidates of a sampled loss
TRUE = np.int64([[0, 3], [9, 9], [5, 1]])
for unique in (False, True):
    for key, options in {"Uniform": dict(range_max=10), "LogUniform": dict(range_max=10), "Uniform_power": dict(range_max=16),
                         "Uniform_large": dict(range_max=2**40 + 7), "LogUniform_large": dict(range_max=2**33),
                         "FixedUnigram": dict(range_max=10, unigrams=[3, 1, 4, 1.5, 9, 2.6, 5, 3.5, 8, 9]),
                         "FixedUnigram_distorted": dict(range_max=12, unigrams=[float(k * k + 1) for k in range(11)], distortion=0.75, num_reserved_ids=1),
                         "FixedUnigram_shard": dict(range_max=10, unigrams=[float(k + 1) for k in range(18)], num_reserved_ids=2, num_shards=2, shard=1)}.items():
        op = getattr(raw, key.split("_")[0] + "CandidateSampler")
        sample = lambda t, op=op, o=options, u=unique: op(true_classes=t, num_true=2, num_sampled=7, unique=u, seed=5, seed2=6, **o)
        case(f"candidates_{key}_{unique}", lambda t, f=sample: tuple(f(t)), TRUE)
        stateful(f"candidates_{key}_{unique}", tf.int64, lambda t, f=sample: f(t)[0], TRUE)
case("candidates_all", lambda t: tuple(raw.AllCandidateSampler(true_classes=t, num_true=2, num_sampled=10, unique=True)), TRUE)
case("candidates_outside", lambda t: tuple(raw.UniformCandidateSampler(true_classes=t, num_true=2, num_sampled=3, unique=True, range_max=9, seed=1)), TRUE)
case("candidates_negative", lambda t: tuple(raw.UniformCandidateSampler(true_classes=t, num_true=2, num_sampled=3, unique=True, range_max=19, seed=1)), -TRUE)
case("sampled_softmax", lambda w, b, t, x: tf.nn.sampled_softmax_loss(w, b, t, x, 5, 10, seed=3), np.random.default_rng(1).normal(size=(10, 4)).astype(f32),
     np.zeros(10, f32), TRUE[:, :1].copy(), np.random.default_rng(2).normal(size=(3, 4)).astype(f32))
# without seeds: any numbers, of that distribution
ANY = lambda name: getattr(raw, name)(shape=[20000], dtype=tf.float32)
case("unseeded_uniform", lambda x: (lambda r: (tf.abs(tf.reduce_mean(r) - 0.5) < 0.02, tf.abs(tf.math.reduce_variance(r) - 1 / 12) < 0.01, tf.reduce_all((r >= 0) & (r < 1)) & (x > 0)))(ANY("RandomUniform")), f32(1))
case("unseeded_normal", lambda x: (lambda r: (tf.abs(tf.reduce_mean(r)) < 0.05, tf.abs(tf.math.reduce_variance(r) - 1) < 0.08, x))(ANY("RandomStandardNormal")), f32(1))
case("unseeded_differ", lambda x: (tf.reduce_sum(ANY("RandomUniform")) != tf.reduce_sum(ANY("RandomUniform")), x), f32(1))

# --- Sets, sparse arithmetic, crosses -------------------------------------------------------------

SETS_A, SETS_B = np.int64([[[3, 1, 1], [2, 2, 2]], [[0, 5, -4], [7, 8, 9]]]), np.int64([[[1, 4], [2, 0]], [[6, 6], [9, 7]]])
SPARSE_SET = np.int64([[0, 0, 0], [0, 0, 2], [1, 1, 0], [1, 1, 1]]), np.int64([1, 9, 9, 7]), np.int64([2, 2, 3])
words = lambda a: np.array([str(v).encode() for v in a.reshape(-1)], object).reshape(a.shape)
for how in ("a-b", "b-a", "intersection", "union"):
    dense_sets = lambda a, b, h=how: tuple(raw.DenseToDenseSetOperation(set1=a, set2=b, set_operation=h))
    mixed_sets = lambda a, i, v, s, h=how: tuple(raw.DenseToSparseSetOperation(set1=a, set2_indices=i, set2_values=v, set2_shape=s, set_operation=h))
    sparse_sets = lambda i, v, s, j, w, t, h=how: tuple(raw.SparseToSparseSetOperation(
        set1_indices=i, set1_values=v, set1_shape=s, set2_indices=j, set2_values=w, set2_shape=t, set_operation=h))
    for dtype in (np.int8, np.int32, np.int64):
        case(f"sets_dense_{how}_{np.dtype(dtype).name}", dense_sets, SETS_A.astype(dtype), SETS_B.astype(dtype))
    case(f"sets_dense_{how}_texts", dense_sets, words(SETS_A), words(SETS_B))
    case(f"sets_mixed_{how}", mixed_sets, SETS_A, *SPARSE_SET)
    case(f"sets_sparse_{how}", sparse_sets, *SPARSE_SET, np.int64([[0, 0, 0], [1, 0, 0], [1, 1, 4]]), np.int64([9, 2, 7]), np.int64([2, 2, 5]))
case("sets_groups", dense_sets, SETS_A, SETS_B[:1])
case("sets_order", sparse_sets, np.int64([[1, 0], [0, 0]]), np.int64([1, 2]), np.int64([2, 2]), np.int64([[0, 0]]), np.int64([1]), np.int64([2, 2]))
case("sets_none", dense_sets, np.zeros((2, 0), np.int32), np.zeros((2, 0), np.int32))
set_size = lambda i, v, s: raw.SetSize(set_indices=i, set_values=v, set_shape=s)
case("set_size", set_size, *SPARSE_SET)
case("set_size_texts", set_size, np.int64([[0, 0], [0, 1], [0, 2], [2, 0]]), strings([b"a", b"b", b"a", b""]), np.int64([3, 3]))
case("set_size_outside", set_size, np.int64([[0, 5]]), np.int64([1]), np.int64([2, 2]))
HYPOTHESIS = np.int64([[0, 0, 0], [0, 0, 1], [0, 1, 0], [1, 0, 0], [1, 0, 1], [1, 0, 2]]), strings([b"a", b"b", b"a", b"x", b"y", b"z"]), np.int64([2, 2, 3])
TRUTH = np.int64([[0, 0, 0], [0, 0, 1], [1, 0, 0], [1, 0, 1], [1, 1, 0]]), strings([b"b", b"a", b"x", b"z", b"q"]), np.int64([2, 2, 2])
for normalize in (True, False):
    distance = lambda i, v, s, j, w, t, n=normalize: raw.EditDistance(hypothesis_indices=i, hypothesis_values=v, hypothesis_shape=s,
                                                                      truth_indices=j, truth_values=w, truth_shape=t, normalize=n)
    case(f"edit_distance_{normalize}", distance, *HYPOTHESIS, *TRUTH)
    case(f"edit_distance_numbers_{normalize}", distance, HYPOTHESIS[0], np.int64([1, 2, 1, 4, 5, 6]), HYPOTHESIS[2], TRUTH[0], np.int64([2, 1, 4, 6, 9]), TRUTH[2])
    case(f"edit_distance_none_{normalize}", distance, np.zeros((0, 2), np.int64), np.zeros(0, np.int32), np.int64([2, 3]), np.int64([[0, 0]]), np.int32([5]), np.int64([2, 3]))
SPARSE3 = np.int64([[0, 0, 1], [0, 2, 0], [0, 2, 1], [1, 0, 1], [1, 2, 0]])
for op in ("Sum", "Max"):
    for keep in (False, True):
        for dtype in (np.float32, np.int32, np.int64, np.float64):
            values = dtype([1, -2, 3, -4, 5])
            for key, axes in {"last": [-1], "first": [0], "two": [2, 0], "all": [0, 1, 2], "none": []}.items():
                name = f"{op}_{key}_{keep}_{np.dtype(dtype).name}"
                case(f"sparse_reduce_{name}", lambda i, v, s, a, f=getattr(raw, f"SparseReduce{op}"), k=keep: f(
                    input_indices=i, input_values=v, input_shape=s, reduction_axes=a, keep_dims=k), SPARSE3, values, np.int64([2, 3, 2]), np.int32(axes))
                case(f"sparse_reduce_sparse_{name}", lambda i, v, s, a, f=getattr(raw, f"SparseReduce{op}Sparse"), k=keep: tuple(f(
                    input_indices=i, input_values=v, input_shape=s, reduction_axes=a, keep_dims=k)), SPARSE3, values, np.int64([2, 3, 2]), np.int32(axes))
case("sparse_reduce_axis", lambda i, v, s, a: raw.SparseReduceMax(input_indices=i, input_values=v, input_shape=s, reduction_axes=a), SPARSE3, f32([1, 2, 3, 4, 5]), np.int64([2, 3, 2]), np.int32([3]))
for op in ("Maximum", "Minimum"):
    extreme = lambda i, v, s, j, w, t, f=getattr(raw, f"SparseSparse{op}"): tuple(f(a_indices=i, a_values=v, a_shape=s, b_indices=j, b_values=w, b_shape=t))
    for dtype in (np.float32, np.int32, np.int64):
        case(f"sparse_{op}_{np.dtype(dtype).name}", extreme, PLACES, dtype([7, -9, 5]), SHAPE, np.int64([[0, 0], [0, 1], [1, 1]]), dtype([-1, 8, 3]), SHAPE)
    case(f"sparse_{op}_shape", extreme, PLACES, f32([7, -9, 5]), SHAPE, PLACES, f32([7, -9, 5]), np.int64([3, 3]))
for n in (1, 2, 3):
    splits = lambda d, i, v, s, n=n: [y for part in raw.SparseSplit(split_dim=d, indices=i, values=v, shape=s, num_split=n) for y in part]
    case(f"sparse_split_{n}", splits, np.int64(1), PLACES, strings([b"a", b"b", b"c"]), SHAPE)
case("sparse_split_many", splits, np.int64(0), PLACES, strings([b"a", b"b", b"c"]), SHAPE)
case("sparse_split_negative", lambda d, i, v, s: [y for part in raw.SparseSplit(split_dim=d, indices=i, values=v, shape=s, num_split=2) for y in part], np.int64(-1), PLACES, strings([b"a", b"b", b"c"]), SHAPE)
case("sparse_split_axis", splits, np.int64(2), PLACES, strings([b"a", b"b", b"c"]), SHAPE)
for binary in (False, True):
    bins = lambda i, v, s, n, w, b=binary: raw.SparseBincount(indices=i, values=v, dense_shape=s, size=n, weights=w, binary_output=b)
    case(f"sparse_bincount_{binary}", bins, PLACES, np.int32([3, 0, 3]), SHAPE, np.int32(5), np.zeros(0, np.int64))
    case(f"sparse_bincount_weights_{binary}", bins, PLACES, np.int64([3, 0, 7]), SHAPE, np.int64(5), f32([0.5, 2, 3]))
    case(f"sparse_bincount_vector_{binary}", bins, np.int64([[0], [4], [2]]), np.int64([3, 0, 3]), np.int64([9]), np.int64(5), np.float64([0.5, 2, 3]))
    for maximum in (-1, 3):
        key = f"{binary}_{maximum + 1}"
        counts = dict(minlength=-1 if maximum > 0 else 8, maxlength=maximum, binary_output=binary)
        dense_count = lambda a, w, c=counts: tuple(raw.DenseCountSparseOutput(values=a, weights=w, **c))
        sparse_counts = lambda i, v, s, w, c=counts: tuple(raw.SparseCountSparseOutput(indices=i, values=v, dense_shape=s, weights=w, **c))
        ragged_counts = lambda s, v, w, c=counts: tuple(raw.RaggedCountSparseOutput(splits=s, values=v, weights=w, **c))
        case(f"count_dense_{key}", dense_count, COUNTED, np.zeros((0, 0), np.int64))
        if not binary:
            case(f"count_dense_weights_{key}", dense_count, COUNTED.astype(np.int64), np.float64([[1, 2, 3], [4, 5, 6]]))
        case(f"count_vector_{key}", dense_count, COUNTED[0].copy(), np.zeros(0, np.float32))
        case(f"count_sparse_{key}", sparse_counts, PLACES, np.int64([3, 0, 2]), SHAPE, np.zeros(0, np.float32))
        case(f"count_ragged_{key}", ragged_counts, RAGGED_SPLITS, COUNTED.reshape(-1).copy(), np.zeros(0, np.int32))
case("count_negative", dense_count, -COUNTED, np.zeros((0, 0), np.int64))
case("count_splits", ragged_counts, np.int64([0, 2, 5]), COUNTED.reshape(-1).copy(), np.zeros(0, np.int32))
NUMBERED = np.int64([5, -6, 2**40 + 7]), np.int64([[1 << 33], [-3]])
for strong in (False, True):
    hashed = lambda i, v, s, d, n, g, k: tuple(raw.SparseCrossHashed(indices=[i], values=[v], shapes=[s], dense_inputs=[d], num_buckets=n, strong_hash=g, salt=k))
    for key, (v, d) in {"texts": (strings([b"a", b"b", b"c"]), strings([b"x", b"y"], 2, 1)), "numbers": NUMBERED}.items():
        if strong and key == "numbers":  # TensorFlow crashes
            continue
        for buckets in (0, 1000):
            case(f"cross_hashed_{strong}_{key}_{buckets}", hashed, FEATURES[0][0], v, FEATURES[0][2], d, np.int64(buckets), np.bool_(strong), np.int64([137, -173]))
case("cross_hashed_salt", hashed, FEATURES[0][0], FEATURES[0][1], FEATURES[0][2], strings([b"x", b"y"], 2, 1), np.int64(5), np.bool_(False), np.int64([1, 2, 3]))
for kind in (tf.string, tf.int64):
    for splits in (tf.int32, tf.int64):
        for order in ("RSD", "DRS", "SDR"):
            case(f"ragged_cross_{kind.name}_{splits.name}_{order}", lambda v, r, i, w, s, d, o=order, k=kind, t=splits: tuple(raw.RaggedCross(
                ragged_values=[v], ragged_row_splits=[r], sparse_indices=[i], sparse_values=[w], sparse_shape=[s], dense_inputs=[d], input_order=o,
                hashed_output=k == tf.int64, num_buckets=100, hash_key=956888297470, out_values_type=k, out_row_splits_type=t)),
                strings([b"r1", b"r2", b"r3"]), np.int64([0, 1, 3]).astype(splits.as_numpy_dtype), *FEATURES[1], strings([b"x", b"y", b"z", b""], 2, 2))
ragged_cross = lambda v, r, d: tuple(raw.RaggedCross(ragged_values=[v], ragged_row_splits=[r], sparse_indices=[], sparse_values=[], sparse_shape=[], dense_inputs=[d],
    input_order="RD", hashed_output=False, num_buckets=0, hash_key=0, out_values_type=tf.string, out_row_splits_type=tf.int64))
case("ragged_cross_empty", ragged_cross, strings([b"r1", b"r2"]), np.int64([0, 0, 2]), strings([b"x", b"y"], 2, 1))
case("ragged_cross_rows", ragged_cross, strings([b"r1", b"r2"]), np.int64([0, 0, 2]), strings([b"x", b"y", b"z"], 3, 1))
case("ragged_cross_splits", ragged_cross, strings([b"r1", b"r2"]), np.int64([0, 3, 2]), strings([b"x", b"y"], 2, 1))

# --- Ragged tensors in lists, serialized tensors, bytes --------------------------------------------


def through_variants(rank, splits=tf.int64, batched=True):
    """A ragged tensor as a vector of variants and back."""
    def run(v, *nested):
        encoded = raw.RaggedTensorToVariant(rt_nested_splits=list(nested), rt_dense_values=v, batched_input=batched)
        y = raw.RaggedTensorFromVariant(encoded_ragged=encoded, input_ragged_rank=-1, output_ragged_rank=rank, Tvalues=v.dtype, Tsplits=splits)
        return [*y.output_nested_splits, y.output_dense_values]
    return run


for key, values in {"texts": strings(STRANGE[:6]), "floats": f32([1, 2, np.nan, 4, 5, 6]), "rows": np.arange(12, dtype=np.int64).reshape(6, 2), "bools": np.array([True, False] * 3)}.items():
    for batched in (True, False):
        case(f"variant_{key}_{batched}", through_variants(1, batched=batched), values, RAGGED_SPLITS)
        case(f"variant_two_{key}_{batched}", through_variants(2, batched=batched), values, np.int64([0, 2, 2, 3]), RAGGED_SPLITS)
case("variant_int32", through_variants(1, tf.int32), f32([1, 2, 3]), np.int32([0, 2, 3]))
case("variant_none", through_variants(1), np.zeros(0, np.float32), np.int64([0]))
case("variant_splits", through_variants(1), f32([1, 2, 3]), np.int64([0, 2, 4]))
from_rows = lambda v, s: tf.RaggedTensor.from_row_splits(v, s, validate=False)
case("map_ragged", lambda v, s: tf.map_fn(tf.reduce_sum, from_rows(v, s), fn_output_signature=tf.float32), f32([1, 2, 3, 4, 5, 6]), RAGGED_SPLITS)
case("map_to_ragged", lambda v, s: (lambda r: [r.values, r.row_splits])(tf.map_fn(lambda row: row * 2, from_rows(v, s), fn_output_signature=tf.RaggedTensorSpec([None], tf.float32, 0))),
     f32([1, 2, 3, 4, 5, 6]), RAGGED_SPLITS)
case("map_texts", lambda a: tf.map_fn(lambda t: tf.strings.join([t, "!"]), a), strings(STRANGE))
case("map_texts_to_numbers", lambda a: tf.map_fn(tf.strings.length, a, fn_output_signature=tf.int32), strings(STRANGE))
EVERY = {"f32": FLOATS, "f16": FLOATS[:5].astype(np.float16), "f64": FLOATS.astype(np.float64), "i8": np.int8([[-128, 127]]), "u16": np.uint16([1, 65535]), "i32": np.int32([[1], [-2]]),
         "i64": np.int64([2**63 - 1]), "u64": np.uint64([2**64 - 1]), "bool": np.array([True, False]), "texts": GRID, "empty": np.zeros((2, 0, 3), np.float32), "scalar": np.float32(1.5), "text": strings([b"a\0b"])[0]}
for key, value in EVERY.items():
    case(f"serialize_{key}", lambda a: raw.SerializeTensor(tensor=a), value)
    case(f"parse_{key}_tensor", lambda a: raw.ParseTensor(serialized=raw.SerializeTensor(tensor=a), out_type=a.dtype), value)
for key, proto in {"splat": tf.make_tensor_proto(3.0, shape=[4, 2]), "list": tf.make_tensor_proto(f32([1, 2, 3])), "huge": None, "type": tf.make_tensor_proto([1])}.items():
    if proto is None:
        proto = tf.make_tensor_proto(3.0)
        proto.tensor_shape.CopyFrom(tf.TensorShape([1 << 40, 1 << 20]).as_proto())
    case(f"parse_tensor_{key}", lambda a: raw.ParseTensor(serialized=a, out_type=tf.float32), proto.SerializeToString())
case("parse_tensor_broken", lambda a: raw.ParseTensor(serialized=a, out_type=tf.float32), b"\x08\x01\x12\xff")
many = lambda i, v, s: raw.SerializeManySparse(sparse_indices=i, sparse_values=v, sparse_shape=s)
one = lambda i, v, s: raw.SerializeSparse(sparse_indices=i, sparse_values=v, sparse_shape=s)
for key, values in {"texts": strings([b"a", b"", b"c"]), "numbers": np.int32([1, 2, 3])}.items():
    case(f"sparse_serialize_{key}", one, PLACES, values, SHAPE)
    case(f"sparse_serialize_many_{key}", many, PLACES, values, SHAPE)
    case(f"sparse_deserialize_{key}", lambda i, v, s: tuple(raw.DeserializeSparse(serialized_sparse=one(i, v, s), dtype=v.dtype)), PLACES, values, SHAPE)
    case(f"sparse_deserialize_many_{key}", lambda i, v, s: tuple(raw.DeserializeManySparse(serialized_sparse=many(i, v, s), dtype=v.dtype)), PLACES, values, SHAPE)
    case(f"sparse_deserialize_rows_{key}", lambda i, v, s: tuple(raw.DeserializeSparse(serialized_sparse=tf.reshape(many(i, v, s), [2, 1, 3]), dtype=v.dtype)), PLACES, values, SHAPE)
case("sparse_deserialize_broken", lambda a: tuple(raw.DeserializeManySparse(serialized_sparse=a, dtype=tf.float32)), strings([b"x", b"y", b"z"], 1, 3))
TEXTS = [b"", b"a", b"hello " * 500, bytes(range(256))]
for kind, pack in {"": bytes, "ZLIB": zlib.compress, "GZIP": gzip.compress}.items():
    decompress = lambda a, k=kind: raw.DecodeCompressed(bytes=a, compression_type=k)
    case(f"decompress_{kind}", decompress, strings([pack(t) for t in TEXTS]))
    if kind == "ZLIB":
        case(f"decompress_{kind}_broken", decompress, strings([pack(TEXTS[2])[:-9] + b"123456789"]))
for key in ("f32", "i8", "u16", "i64", "bool", "texts", "empty"):
    case(f"fingerprint_{key}", lambda a: raw.Fingerprint(data=a, method="farmhash64"), EVERY[key])
case("fingerprint_words", lambda a: raw.Fingerprint(data=a, method="farmhash64"), strings(STRANGE))
case("fingerprint_method", lambda a, m: raw.Fingerprint(data=a, method=m), strings(STRANGE), b"md5")
# characters that Unicode 3.2 has: newer ones are not in every ICU
OLD = [c for c in range(0x20000) if unicodedata.ucd_3_2_0.category(chr(c)) not in ("Cn", "Cs")]
case("script", lambda a: raw.UnicodeScript(input=a), np.int32([*OLD[::7], -1, 0x110000, 2**31 - 1, -2**31]))
ensure = lambda shape: lambda a: tf.ensure_shape(a, shape) + 1
each("ensure", ensure([None, 3]), good=np.ones((2, 3), np.float32), size=np.ones((2, 4), np.float32))
case("any_ensure", ensure([None, 3]), np.ones((2, 3), np.float32))
case("any_ensure_rank", ensure([None, 3]), np.ones((3,), np.float32))
case("any_ensure_size", ensure([2, 3]), np.ones((2, 1), np.float32))

# --- Older operators -------------------------------------------------------------------------------

for n in (1, 2, 7):
    for dtype in (np.float32, np.float64):
        case(f"linspace_{n}_{np.dtype(dtype).name}", lambda a, b, n=n: raw.LinSpace(start=a, stop=b, num=n), dtype(-1.5), dtype(4))
for dtype in (np.float32, np.int32, np.int64, np.uint8):
    case(f"div_{np.dtype(dtype).name}", lambda a, b: raw.Div(x=a, y=b), dtype([[7, 9, 8]]), dtype([[2, 5, 3]]))
case("div_negative", lambda a, b: raw.Div(x=a, y=b), np.int32([-7, 7]), np.int32([2, -2]))
case("div_zero", lambda a, b: raw.Div(x=a, y=b), np.int32([-7, 7]), np.int32([0, 1]))
case("accumulate", lambda a, b: raw.AccumulateNV2(inputs=[a, b, a], shape=[2, 3]), *[np.arange(6, dtype=np.float32).reshape(2, 3)] * 2)
case("approximate_equal", lambda a, b: raw.ApproximateEqual(x=a, y=b, tolerance=0.1), f32([1, 2, np.nan]), f32([1.05, 2.2, np.nan]))
case("parallel_concat", lambda a, b: raw.ParallelConcat(values=[tf.reshape(a, [1, 3]), tf.reshape(b, [1, 3])], shape=[2, 3]), f32([[1, 2, 3]]), f32([[4, 5, 6]]))
case("reverse_v1", lambda a: raw.Reverse(tensor=a, dims=[False, True]), f32([[1, 2, 3], [4, 5, 6]]))
case("snapshot", lambda a: (raw.Snapshot(input=a), raw.DeepCopy(x=a)), f32([[1, 2]]))
for key, (a, b) in {"first": ("NHWC", "NCHW"), "last": ("NCHW", "NHWC"), "deep": ("NDHWC", "NCDHW"), "odd": ("NHWC", "HWNC")}.items():
    case(f"format_dims_{key}", lambda x, a=a, b=b: raw.DataFormatDimMap(x=x, src_format=a, dst_format=b), np.int32([0, 1, 2, 3, -1, -4]))
    n = len(a)
    case(f"format_vector_{key}", lambda x, a=a, b=b, n=n: raw.DataFormatVecPermute(x=tf.reshape(x, [n]), src_format=a, dst_format=b), np.arange(n, dtype=np.int32) + 7)
    case(f"format_pairs_{key}", lambda x, a=a, b=b, n=n: raw.DataFormatVecPermute(x=tf.reshape(x, [n, 2]), src_format=a, dst_format=b), np.arange(2 * n, dtype=np.int64) + 7)

# --- More random numbers ---------------------------------------------------------------------------

RATES = [[0.0], [0.5], [3], [9.9], [10], [57], [4000]]
for rate in (np.float32, np.float64, np.int32):
    for dtype in (np.float32, np.int64):
        case(f"random_poisson_{np.dtype(rate).name}_{np.dtype(dtype).name}", lambda n, s, r, d=dtype: raw.StatelessRandomPoisson(shape=n, seed=s, lam=r, dtype=d),
             np.int32([30, 7, 1]), SEED, np.array(RATES).astype(rate))
case("random_poisson_shape", lambda n, s, r: raw.StatelessRandomPoisson(shape=n, seed=s, lam=r, dtype=tf.float32), np.int32([30, 3]), SEED, f32([1, 2]))
stateful("poisson", tf.int64, lambda n, r: raw.RandomPoissonV2(shape=n, rate=r, seed=3, seed2=4), np.int32([9]), f32([0.3, 25]))
COUNTS, PROBS = np.array([[5], [40], [1000], [0], [3.5]]), np.array([0.1, 0.5, 0.93, 1, 0])
for rate in (np.float32, np.float64):
    for dtype in (np.float32, np.int64):
        case(f"random_binomial_{np.dtype(rate).name}_{np.dtype(dtype).name}", lambda n, s, c, p, d=dtype: raw.StatelessRandomBinomial(shape=n, seed=s, counts=c, probs=p, dtype=d),
             np.int32([30, 5, 5]), SEED, COUNTS.astype(rate), PROBS.astype(rate))
case("random_binomial_shape", lambda n, s, c, p: raw.StatelessRandomBinomial(shape=n, seed=s, counts=c, probs=p), np.int32([30, 5, 4]), SEED, f32(COUNTS), f32(PROBS))

# --- Images ---------------------------------------------------------------------------------------

rng = np.random.default_rng(7)
PIXELS = rng.normal(size=(2, 6, 7, 3)).astype(np.float32)
BYTES = rng.integers(0, 256, (2, 6, 7, 3)).astype(np.uint8)
for op in ("NearestNeighbor", "Bilinear", "Bicubic", "Area"):
    for rule in ({}, {"align_corners": True}, {"half_pixel_centers": True}):
        if op == "Area" and "half_pixel_centers" in rule:
            continue
        f = lambda x, s, op=op, rule=rule: getattr(raw, f"Resize{op}")(images=x, size=s, **rule)
        for key, size in {"down": [3, 2], "up": [13, 15], "same": [6, 7], "one": [1, 1], "mixed": [20, 4]}.items():
            case(f"resize_{op}_{next(iter(rule), 'legacy')}_{key}", f, PIXELS, np.int32(size))
    f = lambda x, s, op=op: getattr(raw, f"Resize{op}")(images=x, size=s)
    case(f"resize_{op}_uint8", f, BYTES, np.int32([4, 9]))
    case(f"resize_{op}_zero", f, PIXELS, np.int32([0, 3]))
    case(f"resize_{op}_empty", f, PIXELS[:, :0], np.int32([2, 3]))
    case(f"resize_{op}_none", f, PIXELS[:0], np.int32([2, 3]))
EDGES = PIXELS.copy()
for k, odd in enumerate((np.inf, -np.inf, np.nan, -0.0)):
    EDGES[k % 2, (0, 2, 5, 3)[k], (6, 0, 3, 4)[k], k % 3] = odd
for op in ("NearestNeighbor", "Bilinear", "Bicubic"):
    for rule in ({}, {"align_corners": True}, {"half_pixel_centers": True}):
        for size in ([6, 7], [12, 14], [6, 3], [3, 7], [6, 13], [11, 13]):
            f = lambda x, s, op=op, rule=rule: getattr(raw, f"Resize{op}")(images=x, size=s, **rule)
            case(f"resize_edges_{op}_{next(iter(rule), 'legacy')}_{size[0]}_{size[1]}", f, EDGES, np.int32(size))
            if op != "Bicubic":
                case(f"resize_edges_known_{op}_{next(iter(rule), 'legacy')}_{size[0]}_{size[1]}", lambda x, s=size, op=op, rule=rule: getattr(raw, f"Resize{op}")(
                    images=tf.ensure_shape(x, [None, 6, 7, 3]), size=s, **rule), EDGES)
PICTURE = rng.integers(0, 256, (1, 128, 96, 3)).astype(np.uint8)
for size in ([37, 29], [300, 11], [50, 200]):  # the last bit of a sum decides what is cut off
    case(f"resize_Area_to_uint8_{size[0]}", lambda x, s: tf.cast(raw.ResizeArea(images=x, size=s), tf.uint8), PICTURE, np.int32(size))
for size in ([3, 4], [3, 1], [1, 5]):  # corners of one pixel
    for op in ("NearestNeighbor", "Bilinear", "Bicubic", "Area"):
        for part, x in {"pixel": PIXELS[:, :1, :1], "row": PIXELS[:, :1], "column": PIXELS[:, :, :1]}.items():
            case(f"resize_{op}_corners_{part}_{size[0]}_{size[1]}", lambda x, s, op=op: getattr(raw, f"Resize{op}")(images=x, size=s, align_corners=True), x, np.int32(size))
for kernel in ("lanczos1", "lanczos3", "lanczos5", "gaussian", "box", "triangle", "keyscubic", "mitchellcubic"):
    for antialias in (True, False):
        f = lambda x, s, a, t, k=kernel, aa=antialias: raw.ScaleAndTranslate(images=x, size=s, scale=a, translation=t, kernel_type=k, antialias=aa)
        case(f"scale_{kernel}_{antialias}_down", f, PIXELS, np.int32([3, 2]), np.float32([0.5, 2 / 7]), np.float32([0, 0]))
        case(f"scale_{kernel}_{antialias}_moved", f, PIXELS, np.int32([11, 9]), np.float32([1.7, 0.6]), np.float32([2.25, -1.5]))
case("scale_uint8", f, BYTES, np.int32([3, 9]), np.float32([0.5, 9 / 7]), np.float32([0, 0]))
case("scale_nothing", f, PIXELS, np.int32([3, 9]), np.float32([0, 1]), np.float32([0, 0]))
BOXES = np.float32([[0, 0, 1, 1], [0.9, 0.1, 0.2, 0.7], [-0.5, 0.5, 0.5, 1.5], [0.3, 0.3, 0.3, 0.3]])
for method in ("bilinear", "nearest"):
    f = lambda x, b, i, s, m=method: raw.CropAndResize(image=x, boxes=b, box_ind=i, crop_size=s, method=m, extrapolation_value=-1.5)
    for key, size in {"small": [3, 4], "one": [1, 1], "large": [9, 12]}.items():
        case(f"crop_{method}_{key}", f, PIXELS, BOXES, np.int32([0, 1, 1, 0]), np.int32(size))
    case(f"crop_{method}_uint8", f, BYTES, BOXES, np.int32([0, 1, 1, 0]), np.int32([5, 5]))
    case(f"crop_{method}_outside", f, PIXELS, BOXES, np.int32([0, 1, 2, 0]), np.int32([5, 5]))
    case(f"crop_{method}_none", f, PIXELS, BOXES[:0], np.zeros(0, np.int32), np.int32([5, 5]))
CORNERS = rng.uniform(0, 1, (60, 2)).astype(np.float32)
MANY = np.concatenate([CORNERS, CORNERS + rng.uniform(-0.1, 0.4, (60, 2)).astype(np.float32)], 1)
SCORES = np.round(rng.uniform(0, 1, 60), 2).astype(np.float32)  # some are equal
case("suppress_v1", lambda b, s, n: raw.NonMaxSuppression(boxes=b, scores=s, max_output_size=n, iou_threshold=0.4), MANY, SCORES, i32(20))
case("suppress_v2", lambda b, s, n, t: raw.NonMaxSuppressionV2(boxes=b, scores=s, max_output_size=n, iou_threshold=t), MANY, SCORES, i32(20), f32(0.3))
v3 = lambda b, s, n, t, l: raw.NonMaxSuppressionV3(boxes=b, scores=s, max_output_size=n, iou_threshold=t, score_threshold=l)
for key, (n, t, l) in {"some": (10, 0.3, 0.2), "all": (100, 0.5, -1), "none": (10, 0.5, 2), "zero": (0, 0.5, 0), "strict": (100, 0, 0.1), "negative": (-1, 0.5, 0), "threshold": (5, 1.5, 0)}.items():
    case(f"suppress_v3_{key}", v3, MANY, SCORES, i32(n), f32(t), f32(l))
case("suppress_v3_half", v3, MANY.astype(np.float16), SCORES.astype(np.float16), i32(30), f32(0.3), f32(0.2))
case("suppress_v3_sizes", v3, MANY, SCORES[:5], i32(30), f32(0.3), f32(0.2))
for pad in (True, False):
    case(f"suppress_v4_{pad}", lambda b, s, n, t, l, pad=pad: tuple(raw.NonMaxSuppressionV4(boxes=b, scores=s, max_output_size=n, iou_threshold=t, score_threshold=l, pad_to_max_output_size=pad)),
         MANY, SCORES, i32(70), f32(0.3), f32(0.2))
    for sigma in (0, 0.1, 0.5):
        case(f"suppress_v5_{pad}_{sigma}", lambda b, s, n, t, l, g, pad=pad: tuple(raw.NonMaxSuppressionV5(
            boxes=b, scores=s, max_output_size=n, iou_threshold=t, score_threshold=l, soft_nms_sigma=g, pad_to_max_output_size=pad)),
            MANY, SCORES, i32(50), f32(0.3), f32(0.2), f32(sigma))
case("suppress_overlaps", lambda o, s, n, t, l: raw.NonMaxSuppressionWithOverlaps(overlaps=o, scores=s, max_output_size=n, overlap_threshold=t, score_threshold=l),
     rng.uniform(0, 1, (60, 60)).astype(np.float32), SCORES, i32(30), f32(0.9), f32(0.1))
for key, (q, pad, clip) in {"shared": (1, False, True), "own": (3, True, False), "padded": (1, True, True)}.items():
    case(f"suppress_combined_{key}", lambda b, s, n, m, t, l, pad=pad, clip=clip: tuple(raw.CombinedNonMaxSuppression(
        boxes=b, scores=s, max_output_size_per_class=n, max_total_size=m, iou_threshold=t, score_threshold=l, pad_per_class=pad, clip_boxes=clip)),
        np.tile(MANY.reshape(2, 30, 1, 4), (1, 1, q, 1)), rng.uniform(0, 1, (2, 30, 3)).astype(np.float32), i32(8), i32(30), f32(0.3), f32(0.25))

TURNS = np.float32([[1, 0, 0, 0, 1, 0, 0, 0], [0.8, 0.3, -2, -0.3, 0.9, 1.5, 0.01, -0.02]])
for mode in ("CONSTANT", "REFLECT", "WRAP", "NEAREST"):
    for how in ("NEAREST", "BILINEAR"):
        v3 = lambda x, t, s, f, m=mode, h=how: raw.ImageProjectiveTransformV3(images=x, transforms=t, output_shape=s, fill_value=f, interpolation=h, fill_mode=m)
        case(f"transform_{mode}_{how}", v3, PIXELS, TURNS, np.int32([9, 11]), f32(-3))
        case(f"transform_{mode}_{how}_far", v3, PIXELS, np.float32([[3.7, 0, -20, 0, 2.9, -17, 0, 0]]), np.int32([9, 11]), f32(-3))
        case(f"transform_{mode}_{how}_v2", lambda x, t, s, m=mode, h=how: raw.ImageProjectiveTransformV2(images=x, transforms=t, output_shape=s, interpolation=h, fill_mode=m),
             PIXELS, TURNS, np.int32([4, 5]))
case("transform_infinite", v3, PIXELS, np.float32([[1, 0, 0, 0, 1, 0, -0.5, 0]]), np.int32([6, 7]), f32(-3))
case("transform_count", v3, np.concatenate([PIXELS, PIXELS]), TURNS, np.int32([4, 5]), f32(0))
COLORS = np.concatenate([rng.uniform(0, 1, (2, 5, 5, 3)), np.repeat(rng.uniform(0, 1, (2, 5, 1, 1)), 3, -1), np.zeros((2, 5, 1, 3))], 2).astype(np.float32)
for dtype in (np.float16, np.float32, np.float64):
    name = np.dtype(dtype).name
    case(f"colors_hsv_{name}", lambda x: raw.RGBToHSV(images=x), COLORS.astype(dtype))
    case(f"colors_rgb_{name}", lambda x: raw.HSVToRGB(images=x), COLORS.astype(dtype))
for turn in (0.3, -0.45, 1):
    case(f"colors_hue_{turn}", lambda x, d: raw.AdjustHue(images=x, delta=d), COLORS, f32(turn))
for scale in (0, 0.5, 3):
    case(f"colors_saturation_{scale}", lambda x, d: raw.AdjustSaturation(images=x, scale=d), COLORS, f32(scale))
    case(f"colors_contrast_{scale}", lambda x, d: raw.AdjustContrastv2(images=x, contrast_factor=d), COLORS, f32(scale))
for padding in ("SAME", "VALID"):
    for size, stride, rate in ((2, 1, 1), (3, 2, 1), (2, 3, 2)):
        case(f"patches_{padding}_{size}_{stride}_{rate}", lambda x, p=padding, k=size, s=stride, r=rate: raw.ExtractImagePatches(
            images=tf.reshape(x, [-1, 6, 7, 3]), ksizes=[1, k, k + 1, 1], strides=[1, s, s, 1], rates=[1, r, 1, 1], padding=p), PIXELS)
part = lambda x, p: tuple(raw.DynamicPartition(data=x, partitions=p, num_partitions=3))
case("partition", part, PIXELS.reshape(12, 21), np.int32([0, 2, 2, 1, 0, 0, 2, 2, 1, 1, 2, 0]))
case("partition_grid", part, PIXELS.reshape(12, 21)[:6].reshape(2, 3, 21), np.int32([[0, 2, 2], [2, 0, 0]]))
case("partition_texts", part, strings([b"a", b"", b"ccc"]), np.int32([2, 0, 2]))
case("partition_wrong", part, strings([b"a", b"", b"ccc"]), np.int32([2, 0, 3]))
case("partition_none", part, np.zeros((0, 4), np.int64), np.zeros(0, np.int32))
stitch = lambda a, b, x, y: raw.DynamicStitch(indices=[a, b], data=[x, y])
case("stitch", stitch, np.int32([4, 0]), np.int32([[3, 1], [2, 3]]), PIXELS.reshape(12, 21)[:2], PIXELS.reshape(12, 21)[:4].reshape(2, 2, 21))
case("stitch_texts", stitch, np.int32(1), np.int32([0, 2]), strings([b"b"])[0], strings([b"a", b"c"]))
case("stitch_negative", stitch, np.int32([-1]), np.int32([0]), f32([1]), f32([2]))
case("stitch_parallel", lambda a, b, x, y: raw.ParallelDynamicStitch(indices=[a, b], data=[x, y]), np.int32([1, 3]), np.int32([0, 2]), np.int64([5, 6]), np.int64([7, 8]))
# --- Complex numbers ------------------------------------------------------------------------------


def parts(z):
    return tf.math.real(z), tf.math.imag(z)


def complex_case(name, function, *args):
    """A function of arrays of known sizes but for the first; of sums that TensorFlow adds in another order."""
    case(f"complex_{name}", lambda *xs: function(*(tf.reshape(x, [-1, *a.shape[1:]]) for x, a in zip(xs, args))), *args)


for dtype in (np.float32, np.float64):
    d, kind = np.dtype(dtype).name, tf.as_dtype(dtype)
    draw = np.random.default_rng(21)
    A, B, C = (draw.normal(size=(3, 4, 6)).astype(dtype) for _ in range(3))
    for n in (6, 7, 2, 1, 12):
        complex_case(f"rfft_{n}_{d}", lambda x, n=n: parts(tf.signal.rfft(x, [n])), A)
        complex_case(f"irfft_{n}_{d}", lambda x, y, n=n: tf.signal.irfft(tf.complex(x, y), [n]), A, B)
    for name in ("fft", "ifft", "fft2d", "ifft2d"):
        complex_case(f"{name}_{d}", lambda x, y, name=name: parts(getattr(tf.signal, name)(tf.complex(x, y))), A, B)
    complex_case(f"rfft2d_{d}", lambda x: parts(tf.signal.rfft2d(x)), A)
    complex_case(f"irfft2d_{d}", lambda x, y: tf.signal.irfft2d(tf.complex(x, y), [4, 10]), A, B)
    complex_case(f"rfft_back_{d}", lambda x: tf.signal.irfft(tf.signal.rfft(x)), A)
    complex_case(f"arithmetic_{d}", lambda x, y, z: parts(tf.complex(x, y) * tf.complex(y, z) + tf.complex(z, x) - tf.complex(y, y)), A, B, C)
    complex_case(f"divided_{d}", lambda x, y, z: parts(tf.complex(x, y) / tf.complex(y, 1 + z * z)), A, B, C)
    complex_case(f"exp_{d}", lambda x, y: parts(tf.exp(tf.complex(x, y))), A, B)
    complex_case(f"square_{d}", lambda x, y: parts(tf.square(-tf.math.conj(tf.complex(x, y)))), A, B)
    complex_case(f"polar_{d}", lambda x, y: (tf.abs(tf.complex(x, y)), tf.math.angle(tf.complex(x, y))), A, B)
    complex_case(f"constant_{d}", lambda x, y: parts(tf.complex(x, y) * (2 - 0.5j) + np.linspace(1j, 3, 6).astype(np.result_type(dtype, np.complex64))), A, B)
    complex_case(f"broadcast_{d}", lambda x, y: parts(tf.complex(x, y[:, :1])), A, B)
    complex_case(f"moved_{d}", lambda x, y: parts(tf.concat(tf.unstack(tf.transpose(tf.reshape(tf.complex(x, y)[:, 1:, ::2], [-1, 3, 3]), [1, 0, 2])), 1)), A, B)
    complex_case(f"cast_{d}", lambda x: parts(tf.cast(tf.cast(x, tf.complex64), tf.complex128) * tf.cast(2j, tf.complex128)), A)
    complex_case(f"sums_{d}", lambda x, y: parts(tf.reduce_sum(tf.complex(x, y), 1) + tf.reduce_mean(tf.complex(y, x), 1)), A, B)
    complex_case(f"sizes_{d}", lambda x, y: tf.shape(tf.signal.fft(tf.complex(x, y))), A, B)
    for kind in (1, 2, 3, 4):
        complex_case(f"dct{kind}_{d}", lambda x, k=kind: tf.signal.dct(x, k), A)
    complex_case(f"idct_{d}", lambda x: tf.signal.idct(x), A)
    LONG_A, LONG_B = (draw.normal(size=(2, 256, 9)).astype(dtype) for _ in range(2))  # of 16 times 16
    for name in ("fft2d", "ifft2d"):
        complex_case(f"{name}_long_{d}", lambda x, y, name=name: parts(getattr(tf.signal, name)(tf.complex(x, y))), LONG_A, LONG_B)
        complex_case(f"{name}_wide_{d}", lambda x, y, name=name: parts(getattr(tf.signal, name)(tf.complex(
            tf.transpose(x, [0, 2, 1]), tf.transpose(y, [0, 2, 1])))), LONG_A, LONG_B)
    complex_case(f"fft3d_long_{d}", lambda x, y: parts(tf.signal.fft3d(tf.complex(x[:1, :, None], y[:1, :, None]))), LONG_A, LONG_B)
    complex_case(f"rfft2d_long_{d}", lambda x: parts(tf.signal.rfft2d(x, [288, 9])), LONG_A)
    complex_case(f"irfft2d_long_{d}", lambda x, y: tf.signal.irfft2d(tf.complex(x, y), [288, 12]), LONG_A, LONG_B)
SOUND = np.random.default_rng(22).normal(size=(2, 300)).astype(np.float32)
complex_case("stft", lambda x: tf.abs(tf.signal.stft(x, 64, 32)), SOUND)
complex_case("mfcc", lambda x: tf.signal.mfccs_from_log_mel_spectrograms(tf.math.log(tf.abs(tf.signal.stft(x, 64, 32))[..., :20] + 1e-2)), SOUND)
complex_case("called", lambda x: parts(tf.function(lambda z: tf.function(lambda a: a * a)(z) + z)(tf.signal.rfft(x))), A)
case("complex_stft_open", lambda x: tf.abs(tf.signal.stft(x, 64, 32)), SOUND)

checked = lambda x: raw.CheckNumerics(tensor=x, message="the input") * 2
each("check_numerics", checked, finite=f32([[1, 2], [3, 4]]), nan=f32([[1, np.nan]]), infinite=f32([[-np.inf, 1]]), none=np.zeros((0, 3), f32))
case("check_numerics_v2", lambda x: raw.CheckNumericsV2(tensor=x, message="the input") + 1, np.float64([np.inf]))

PREDICTIONS, TARGETS = f32([[1, 3, 2], [5, 5, 5], [0, np.nan, 1], [9, 8, 7]]), i32([2, 0, 1, 3])
ROWS = np.arange(12, dtype=np.float32).reshape(4, 3)
for at in 0, 3, 4, 7, -1:  # outside of the list TensorFlow fails
    case(f"list_set_{at}", lambda x, i: raw.TensorListStack(input_handle=raw.TensorListSetItem(
        input_handle=raw.TensorListFromTensor(tensor=x, element_shape=[3]), index=i, item=-x[1]), element_shape=[3], element_dtype=tf.float32), ROWS, i32(at))
    case(f"list_get_{at}", lambda x, i: raw.TensorListGetItem(
        input_handle=raw.TensorListFromTensor(tensor=x, element_shape=[3]), index=i, element_shape=[3], element_dtype=tf.float32), ROWS, i32(at))
case("in_top_k", lambda p, t, k: raw.InTopKV2(predictions=p, targets=t, k=k), PREDICTIONS, TARGETS, i32(2))
case("in_top_k_v1", lambda p, t: raw.InTopK(predictions=p, targets=t, k=1), PREDICTIONS, TARGETS)

case("tile_texts", lambda x, n: tf.tile(x, n), strings([b"a", b"", b"ccc"], 1, 3), i32([2, 2]))
case("tile_texts_none", lambda x, n: tf.tile(x, n), strings([b"a", b"", b"ccc"], 1, 3), i32([0, 2]))

# --- Gradients ------------------------------------------------------------------------------------

GRID_X = np.float64([[-7, -1.5, -0.1, 0, 0.1], [0.5, 1, 5.9, 6, 9]])
for dtype in (np.float16, np.float32, np.float64):
    y, dy = GRID_X.astype(dtype), np.linspace(-2, 3, 10).reshape(2, 5).astype(dtype)
    d = np.dtype(dtype).name
    for op in ("TanhGrad", "SigmoidGrad", "SqrtGrad", "RsqrtGrad", "ReciprocalGrad", "InvGrad"):
        y_of = np.abs(y) + dtype(0.5) if op in ("SqrtGrad", "RsqrtGrad", "ReciprocalGrad", "InvGrad") else np.tanh(y)
        case(f"grad_{op}_{d}", lambda a, b, op=op: getattr(raw, op)(y=a, dy=b), y_of, dy)
    for op in ("ReluGrad", "Relu6Grad", "SoftplusGrad", "SoftsignGrad", "LeakyReluGrad"):
        case(f"grad_{op}_{d}", lambda a, b, op=op: getattr(raw, op)(gradients=a, features=b), dy, y)
    case(f"grad_leaky_{d}", lambda a, b: raw.LeakyReluGrad(gradients=a, features=b, alpha=0.3), dy, y)
    for op in ("EluGrad", "SeluGrad"):
        case(f"grad_{op}_{d}", lambda a, b, op=op: getattr(raw, op)(gradients=a, outputs=b), dy, np.maximum(y, -1))
    case(f"grad_bias_{d}", lambda a: raw.BiasAddGrad(out_backprop=a), np.ones((2, 3, 4), dtype) * dy.reshape(-1)[:4])
case("grad_bias_first", lambda a: raw.BiasAddGrad(out_backprop=a, data_format="NCHW"), PIXELS)
case("bias_v1", lambda a, b: raw.BiasAddV1(value=a, bias=b), PIXELS, f32([1, 2, 3]))
for key, (a, b) in {"same": ([2, 3], [2, 3]), "ones": ([2, 1, 3, 1], [5, 1, 4]), "scalar": ([], [2, 3]), "both": ([1], [1]), "one": ([1, 1], [1]), "none": ([], []),
                    "zero": ([0, 3], [1, 3]), "wrong": ([2, 3], [4, 3]), "nothing": ([1, 0], [2, 1])}.items():
    for dtype in (np.int32, np.int64):
        case(f"grad_args_{key}_{np.dtype(dtype).name}", lambda a, b: tuple(raw.BroadcastGradientArgs(s0=a, s1=b)), dtype(a), dtype(b))


SIZED = {"grad_bias_first"}


def gradient_case(name, function, *args):
    """The gradients of a function of arrays of known sizes but for the first, taken inside."""
    def run(*xs):
        with tf.GradientTape() as tape:
            tape.watch(xs)
            y = function(*xs)
        return tape.gradient(y, xs, tf.sin(tf.cast(tf.reshape(tf.range(tf.size(y)), tf.shape(y)), y.dtype)))
    case(f"grad_of_{name}", run, *args)
    SIZED.add(f"grad_of_{name}")


KERNEL, DEEP = (np.random.default_rng(3).normal(size=s).astype(np.float32) for s in ((3, 2, 3, 4), (3, 2, 3, 2)))
for padding in ("SAME", "VALID"):
    for stride in (1, 2):
        gradient_case(f"conv_{padding}_{stride}", lambda x, p=padding, s=stride: tf.nn.conv2d(x, KERNEL, s, p), PIXELS)
        gradient_case(f"depthwise_{padding}_{stride}", lambda x, p=padding, s=stride: tf.nn.depthwise_conv2d(x, DEEP, [1, s, s, 1], p), PIXELS)
        case(f"grad_filter_{padding}_{stride}", lambda x, y, p=padding, s=stride: (
            raw.Conv2DBackpropFilter(input=x, filter_sizes=[3, 2, 3, 4], out_backprop=y[..., :4], strides=[1, s, s, 1], padding=p),
            raw.DepthwiseConv2dNativeBackpropFilter(input=x, filter_sizes=[3, 2, 3, 2], out_backprop=y, strides=[1, s, s, 1], padding=p)),
            PIXELS, np.random.default_rng(4).normal(size=tf.nn.depthwise_conv2d(PIXELS, DEEP, [1, stride, stride, 1], padding).shape).astype(np.float32))
        SIZED.add(f"grad_filter_{padding}_{stride}")
        gradient_case(f"max_pool_{padding}_{stride}", lambda x, p=padding, s=stride: tf.nn.max_pool2d(x, [3, 2], s, p), PIXELS)
        gradient_case(f"avg_pool_{padding}_{stride}", lambda x, p=padding, s=stride: tf.nn.avg_pool2d(x, [3, 2], s, p), PIXELS)
for training in (True, False):
    gradient_case(f"batch_norm_{training}", lambda x, t=training: tf.compat.v1.nn.fused_batch_norm(
        x, f32([1, 2, 3]), f32([0, 1, 2]), *([] if t else [f32([0.1, 0.2, 0.3]), f32([1, 2, 0.5])]), is_training=t)[0], PIXELS)
gradient_case("broadcast", lambda x: x * tf.tanh(tf.reduce_sum(x, 1, keepdims=True)) + tf.reduce_sum(x, 0), np.arange(12, dtype=np.float32).reshape(4, 3) / 10)
gradient_case("losses", lambda x: tf.nn.softmax_cross_entropy_with_logits(tf.constant([[0.25, 0.5, 0.25]]) + 0 * x, x), np.arange(12, dtype=np.float32).reshape(4, 3) / 10)
for key, labels in {"none": [0.0, 0, 0], "part": [0.5, 0.25, 0], "more": [2.0, 1, 0.5], "negative": [-1.0, 0.5, 0]}.items():  # that do not sum to 1
    gradient_case(f"labels_{key}", lambda x, z=labels: tf.nn.softmax_cross_entropy_with_logits(tf.constant([z]) + 0 * x, x), np.arange(12, dtype=np.float32).reshape(4, 3) / 10)
    case(f"loss_node_{key}", lambda x, z: raw.SoftmaxCrossEntropyWithLogits(features=x, labels=z), np.arange(12, dtype=np.float32).reshape(4, 3) / 10, f32([labels] * 4))
gradient_case("of_labels", lambda z: tf.nn.softmax_cross_entropy_with_logits(z, tf.constant([[0.5, -1.0, 2.0]]) + 0 * z), np.arange(12, dtype=np.float32).reshape(4, 3) / 10)
gradient_case("layers", lambda x: tf.nn.selu(tf.matmul(tf.nn.elu(tf.nn.bias_add(x, f32([-1, 0, 1]))), KERNEL[0, 0])), np.arange(12, dtype=np.float32).reshape(4, 3) / 10)

# --- Boxes, runs, rows -------------------------------------------------------------------------------

BOXES = np.float32([[[0.1, 0.2, 0.6, 0.9], [-0.5, 0.5, 0.3, 1.5], [0.9, 0.1, 0.2, 0.5]], [[0, 0, 1, 1], [1.2, 0, 2, 1], [-0.1, -0.1, -0.05, 3]]])
for depth in (1, 3, 4):
    for dtype in (np.float32, np.float16):
        picture = np.random.default_rng(depth).random((2, 9, 12, depth)).astype(dtype)
        case(f"boxes_{depth}_{np.dtype(dtype).name}", lambda x, b: raw.DrawBoundingBoxes(images=x, boxes=b), picture, BOXES)
        case(f"boxes_v2_{depth}_{np.dtype(dtype).name}", lambda x, b, c: raw.DrawBoundingBoxesV2(images=x, boxes=b, colors=c), picture, BOXES, f32([[0.1, 0.2, 0.3, 0.4], [5, 6, 7, 8]]))
    case(f"boxes_no_colors_{depth}", lambda x, b, c: raw.DrawBoundingBoxesV2(images=x, boxes=b, colors=c), picture.astype(np.float32), BOXES, np.zeros((0, depth), np.float32))
case("boxes_none", lambda x, b: raw.DrawBoundingBoxes(images=x, boxes=b), PIXELS, np.zeros((len(PIXELS), 0, 4), np.float32))
case("boxes_bad_depth", lambda x, b: raw.DrawBoundingBoxes(images=x, boxes=b), np.zeros((2, 3, 3, 2), np.float32), BOXES)
case("boxes_bad_count", lambda x, b: raw.DrawBoundingBoxes(images=x, boxes=b), np.zeros((3, 3, 3, 3), np.float32), BOXES)
RUNS = np.random.default_rng(5).normal(size=(3, 4, 11))
for dtype, result in ((np.float32, None), (np.float64, None), (np.int8, tf.float32), (np.int16, tf.float32), (np.int32, tf.float64), (np.int64, tf.float64)):
    case(f"isotonic_{np.dtype(dtype).name}", lambda x, d=result: tuple(raw.IsotonicRegression(input=x, output_dtype=d or x.dtype)),
         (RUNS * 9).astype(dtype))
each("isotonic", lambda x: tuple(raw.IsotonicRegression(input=x)), vector=f32(RUNS[0, 0]), none=np.zeros((2, 0), np.float32), same=np.ones((2, 5), np.float32))
fill = lambda i, v, n, d: tuple(raw.RaggedFillEmptyRows(value_rowids=i, values=v, nrows=n, default_value=d))
each("stateless_shuffle", lambda x: raw.StatelessShuffle(value=x, key=tf.constant([7], tf.uint64), counter=tf.constant([1, 2], tf.uint64), alg=1),
     rows=np.arange(30, dtype=np.float32).reshape(10, 3), numbers=np.arange(17), strings=strings([b"a", b"b", b"c"]), one=f32([3]), none=np.zeros((0, 2), np.float32))
case("ragged_fill", fill, np.int64([0, 2, 2, 5]), f32([1, 2, 3, 4]), np.int64(7), f32(-1))
case("ragged_fill_strings", fill, np.int64([1, 1, 0]), strings([b"a", b"b", b"c"]), np.int64(3), strings([b"no"])[0])
case("ragged_fill_nothing", fill, np.int64([]), f32([]), np.int64(3), f32(9))
case("ragged_fill_bad_row", fill, np.int64([0, 3]), f32([1, 2]), np.int64(3), f32(-1))
case("ragged_fill_bad_sizes", fill, np.int64([0, 3, 1]), f32([1, 2]), np.int64(5), f32(-1))
case("accidental_hits", lambda t, s: tuple(raw.ComputeAccidentalHits(true_classes=t, sampled_candidates=s, num_true=2)), np.int64([[1, 4], [7, 1], [9, 9]]), np.int64([4, 9, 1, 2]))
case("tridiagonal_matmul", lambda a, b, c, d: raw.TridiagonalMatMul(superdiag=a, maindiag=b, subdiag=c, rhs=d), *(np.random.default_rng(k).normal(size=(2, 1, 5)) for k in range(3)), np.random.default_rng(3).normal(size=(2, 5, 3)))
case("tridiagonal_matmul_one", lambda a, b, c, d: raw.TridiagonalMatMul(superdiag=a, maindiag=b, subdiag=c, rhs=d), *(f32([[k + 2]]) for k in range(3)), f32([[5, 6]]))
for radius in (0, 1, 5):
    case(f"grad_lrn_{radius}", lambda x, y, r=radius: (raw.LRN(input=x, depth_radius=r, beta=0.75), raw.LRNGrad(input_grads=y, input_image=x, output_image=x, depth_radius=r)), PIXELS, PIXELS[::-1].copy())

# As many results as there are characters are split by what is known of the batch: with a size only.
STATIC = {"chars", "string_broadcast", "parallel_concat"} | {name for name in CASES if name.startswith("format_")} | {name for name in CASES if name.startswith("stateful_")} | {name for name in CASES if name.startswith("sparse_reshape")}
UNKNOWN_RANK = ["join", "strip_grid", "lower_grid", "length_grid", "number_float32", "as_string_f32", "hash_fast_10",
                "substr_BYTE_each", "split_2c_0", "regex_3_True", "reduce_join_1_False", "transcode_UTF8_replace_False_UTF8",
                "decode_grid", "raw_int32_True", "to_tensor_s_1_n_1", "dense", "sparse_reshape_column", "fill_rows", "segment_Mean", "unique_strings", "unique_axis_1_strings", "isotonic_float32", "ragged_fill", "boxes_3_float32",
                "bucketize_f32", "bincount", "sparse_matmul_False_False", "ragged_range_int64", "to_sparse_1", "ngrams_2_1_False"]


# --- The comparison --------------------------------------------------------------------------------


# Weighted sums of pixels, which TensorFlow adds up in float32.
SUMS = ("complex_", "resize_", "scale_", "crop_", "transform_", "colors_", "grad_")


def rounding(name, theirs):
    digits = 1e-2 if theirs.dtype == np.float16 else 1e-5
    return digits * np.abs(theirs[np.isfinite(theirs)]).max(initial=0) if name.startswith(SUMS) else 0


def main():
    return function_cases.main(CASES, 100, lambda cases: function_cases.run(cases, STATIC, sized=SIZED, atol=rounding), UNKNOWN_RANK)


if __name__ == "__main__":
    sys.exit(main())
