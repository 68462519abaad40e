"""Sound against TensorFlow: WAV files, spectrograms, MFCCs; connectionist temporal classification. Rows as in
test_host_ops.py."""
import os
import struct
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import numpy as np
import tensorflow as tf

import function_cases

raw = tf.raw_ops
CASES = {}
RNG = np.random.default_rng(17)


def case(name, function, *args):
    assert name not in CASES, name
    CASES[name] = (function, args)


# --- WAV files -------------------------------------------------------------------------------------

def chunk(name, data):
    return name + struct.pack("<I", len(data)) + data


def form(channels=1, rate=8000, coding=1, bits=16, per_second=None, frame=None, more=b""):
    frame = 2 * channels if frame is None else frame
    return chunk(b"fmt ", struct.pack("<HHIIHH", coding, channels, rate, rate * frame if per_second is None else per_second, frame, bits) + more)


def riff(*chunks, kind=b"WAVE", name=b"RIFF"):
    return name + struct.pack("<I", 4 + sum(map(len, chunks))) + kind + b"".join(chunks)


SAMPLES = np.array([0, 1, -1, 32767, -32768, 256, 255, -256, 12345, -12345, 3, 77], "<i2").tobytes()
DATA = chunk(b"data", SAMPLES)
WAVS = {
    "mono": riff(form(), DATA), "stereo": riff(form(2, 44100), DATA), "three": riff(form(3, 16000), DATA),
    "longer_format": riff(form(more=b"\0\0"), DATA), "no_samples": riff(form(), chunk(b"data", b"")),
    "junk": riff(chunk(b"JUNK", b"abc"), chunk(b"bext", b""), form(), chunk(b"LIST", b"abcde"), DATA, chunk(b"xxxx", b"")),
    "half_frame": riff(form(2), chunk(b"data", SAMPLES[:10])), "high_rate": riff(form(rate=2**31 - 1), DATA),
    "last_cut": riff(form(), DATA, b"LIST\xff\0\0\0ab"), "size_wrong": b"RIFF\0\0\0\0" + riff(form(), DATA)[8:],
}
BAD_WAVS = {
    "empty": b"", "text": b"no sound at all, only text that is long enough to be one", "no_data": riff(form()), "kind": riff(form(), DATA, kind=b"AVI "),
    "name": riff(form(), DATA, name=b"RIFX"), "before": riff(chunk(b"LIST", b"ab"), form(), DATA), "bits": riff(form(bits=8), DATA),
    "coding": riff(form(coding=3), DATA), "channels": riff(form(0), DATA), "frame": riff(form(2, frame=2), DATA), "per_second": riff(form(per_second=7), DATA), "rate": riff(form(rate=2**32 - 1, per_second=2**32 - 2), DATA),
    "twice": riff(form(), DATA, DATA), "cut": riff(form(), DATA)[:-1], "head": riff(form(), b"data"), "format_size": riff(form(more=b"\0\0\0\0"), DATA),
    "data_first": riff(DATA, form()), "odd": riff(form(), chunk(b"data", SAMPLES[:5])), "large": riff(form(), b"data\xff\xff\xff\xff"),
    "junk_cut": riff(b"JUNK\xff\xff\xff\x7fab"), "format_cut": riff(form())[:30],
}
for key, file in WAVS.items():
    for channels, samples in ((-1, -1), (1, -1), (2, 4), (4, 20), (-1, 0)):
        case(f"decode_{key}_{channels + 1}_{samples + 1}", lambda x, c=channels, s=samples: tuple(
            raw.DecodeWav(contents=x, desired_channels=c, desired_samples=s)), file)
for key, file in BAD_WAVS.items():
    case(f"decode_bad_{key}", lambda x: tuple(raw.DecodeWav(contents=x)), file)
LOUD = np.array([[0, 0.5], [-0.5, 1], [1.5, -1], [-1.5, 2**-16], [-2**-16, 3 * 2**-16], [0.99999, -0.99999]], np.float32)
for key, (sound, rate) in {"stereo": (LOUD, 8000), "mono": (LOUD[:, :1], 44100), "none": (LOUD[:0], 1), "rate": (LOUD, 2**31 - 1)}.items():
    case(f"encode_{key}", lambda x, r: raw.EncodeWav(audio=x, sample_rate=r), sound, np.int32(rate))
for key, (sound, rate) in {"rate_0": (LOUD, 0), "rate_negative": (LOUD, -1), "channels": (np.zeros((2, 0), np.float32), 8)}.items():
    case(f"encode_bad_{key}", lambda x, r: raw.EncodeWav(audio=x, sample_rate=r), sound, np.int32(rate))
case("encode_and_decode", lambda x, r: tuple(raw.DecodeWav(contents=raw.EncodeWav(audio=x, sample_rate=r))), RNG.normal(size=(300, 2)).astype(np.float32) / 2, np.int32(16000))

# --- Spectrograms ----------------------------------------------------------------------------------

SOUND = (np.sin(np.arange(1500)[:, None] ** [1.3, 1.1] / 20) * 0.4 + RNG.normal(size=(1500, 2)) * 0.05).astype(np.float32)
for window, stride, squared in ((256, 128, True), (480, 160, True), (480, 160, False), (2, 1, False), (3, 5, True), (1000, 999, False), (2000, 1, True)):
    case(f"spectrogram_{window}_{stride}_{squared}", lambda x, w=window, s=stride, q=squared: raw.AudioSpectrogram(input=x, window_size=w, stride=s, magnitude_squared=q), SOUND)
case("spectrogram_no_channel", lambda x: raw.AudioSpectrogram(input=x, window_size=8, stride=8), SOUND[:, :0])
case("spectrogram_nothing", lambda x: raw.AudioSpectrogram(input=x, window_size=8, stride=8), SOUND[:0])
POWER = np.abs(RNG.normal(size=(2, 5, 257))).astype(np.float32)
for key, attrs in {"defaults": {}, "low": {"lower_frequency_limit": 300.0, "upper_frequency_limit": 3000.0}, "few": {"filterbank_channel_count": 4, "dct_coefficient_count": 4},
                   "many": {"filterbank_channel_count": 200}, "one": {"filterbank_channel_count": 1, "dct_coefficient_count": 1}, "zero": {"lower_frequency_limit": 0.0}}.items():
    for rate in (8000, 16000, 44100):
        case(f"mfcc_{key}_{rate}", lambda x, r, a=attrs: raw.Mfcc(spectrogram=x, sample_rate=r, **a), POWER, np.int32(rate))
case("mfcc_above", lambda x, r: raw.Mfcc(spectrogram=x, sample_rate=r), POWER, np.int32(4000))
case("mfcc_silence", lambda x, r: raw.Mfcc(spectrogram=x, sample_rate=r), POWER * 0, np.int32(8000))
case("mfcc_none", lambda x, r: raw.Mfcc(spectrogram=x, sample_rate=r), POWER[:, :0], np.int32(8000))
case("mfcc_two", lambda x, r: raw.Mfcc(spectrogram=x, sample_rate=r), POWER[:, :, :2], np.int32(8000))
for key, (x, rate) in {"rate": (POWER, 0), "one_frequency": (POWER[:, :, :1], 8000)}.items():
    case(f"mfcc_bad_{key}", lambda x, r: raw.Mfcc(spectrogram=x, sample_rate=r), x, np.int32(rate))
case("file_to_mfcc", lambda x: raw.Mfcc(spectrogram=raw.AudioSpectrogram(input=raw.DecodeWav(contents=x, desired_channels=1)[0], window_size=480, stride=160, magnitude_squared=True),
                                        sample_rate=raw.DecodeWav(contents=x)[1]), tf.audio.encode_wav(SOUND, 16000).numpy())

# --- Connectionist temporal classification ---------------------------------------------------------

LOGITS = (RNG.normal(size=(9, 4, 5)) * 2).astype(np.float32)
PLACES, LABELS = np.int64([[0, 0], [0, 1], [0, 2], [1, 0], [1, 1], [2, 0], [2, 3], [2, 4], [2, 5], [3, 0]]), np.int32([0, 1, 2, 3, 3, 1, 1, 0, 1, 2])
LENGTHS = np.int32([9, 7, 8, 2])


def loss_case(name, x=LOGITS, places=PLACES, labels=LABELS, lengths=LENGTHS, **attrs):
    for dtype in (np.float32, np.float64):
        case(f"loss_{name}_{np.dtype(dtype).name}", lambda x, p, v, n, a=attrs: tuple(raw.CTCLoss(inputs=x, labels_indices=p, labels_values=v, sequence_length=n, **a)),
             x.astype(dtype), places, labels, lengths)


for collapse in (False, True):
    for merge in (False, True):
        loss_case(f"{collapse}_{merge}", preprocess_collapse_repeated=collapse, ctc_merge_repeated=merge)
loss_case("large", x=LOGITS * 6)
case("loss_larger", lambda x, p, v, n: tuple(raw.CTCLoss(inputs=x, labels_indices=p, labels_values=v, sequence_length=n)), LOGITS.astype(np.float64) * 30, PLACES, LABELS, LENGTHS)
loss_case("impossible", x=np.where(np.arange(5) == 1, -np.inf, LOGITS))
loss_case("blanks_behind", labels=np.int32([0, 1, 4, 3, 9, 1, 1, 0, 1, 2]))
loss_case("repeated_too_tight", lengths=np.int32([9, 2, 8, 2]))
loss_case("shorter_ignored", lengths=np.int32([2, 7, 0, 2]), ignore_longer_outputs_than_inputs=True)
loss_case("one", x=LOGITS[:1, 3:], places=np.int64([[0, 0]]), labels=np.int32([2]), lengths=np.int32([1]))
for key, changes in {"shorter": {"lengths": np.int32([2, 7, 8, 2])}, "longer": {"lengths": np.int32([10, 7, 8, 2])}, "negative": {"lengths": np.int32([9, -1, 8, 2])},
                     "lengths": {"lengths": LENGTHS[:3]}, "label": {"labels": -LABELS}, "after_blank": {"labels": np.int32([0, 4, 2, 3, 3, 1, 1, 0, 1, 2])},
                     "no_labels": {"places": PLACES[:9], "labels": LABELS[:9]}, "order": {"places": PLACES[::-1].copy()}, "row": {"places": PLACES + [1, 0]},
                     "labels": {"labels": LABELS[:9]}}.items():
    loss_case(f"bad_{key}", **changes)


def loss_gradient(x, p, v, n):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = raw.CTCLoss(inputs=x, labels_indices=p, labels_values=v, sequence_length=n)[0]
    return tape.gradient(y, x, tf.constant([1.0, -2.0, 0.5, 3.0]))


case("loss_gradient", loss_gradient, LOGITS, PLACES, LABELS, LENGTHS)
LONG = (RNG.normal(size=(40, 3, 12)) * 1.5).astype(np.float32)
for width, paths, merge in ((1, 1, False), (2, 2, True), (8, 3, False), (100, 10, False), (100, 20, True)):
    for dtype in (np.float32, np.float64):
        for key, x, lengths in (("short", LOGITS, LENGTHS), ("long", LONG, np.int32([40, 31, 17]))):
            case(f"beam_{key}_{width}_{paths}_{merge}_{np.dtype(dtype).name}", lambda x, n, w=width, p=paths, m=merge: tuple(tf.nest.flatten(tuple(
                raw.CTCBeamSearchDecoder(inputs=x, sequence_length=n, beam_width=w, top_paths=p, merge_repeated=m)))), x.astype(dtype), lengths)
decode = lambda x, n: tuple(tf.nest.flatten(tuple(raw.CTCBeamSearchDecoder(inputs=x, sequence_length=n, beam_width=6, top_paths=1))))
case("beam_peaks", decode, LONG * 20, np.int32([40, 40, 40]))
case("beam_nothing", decode, LONG, np.int32([0, 40, -3]))
case("beam_one_class", decode, LONG[:, :, :1], np.int32([40, 3, 2]))
case("beam_minus_infinity", decode, np.where(np.arange(5) == 1, -np.inf, LOGITS).astype(np.float32), LENGTHS)
case("beam_bad_empty", decode, LONG[:0], np.int32([0, 0, 0]))
case("beam_bad_lengths", decode, LONG, np.int32([41, 3, 2]))
case("beam_bad_rows", decode, LONG, np.int32([40, 3]))
case("beam_bad_few", lambda x, n: tuple(tf.nest.flatten(tuple(raw.CTCBeamSearchDecoder(inputs=x, sequence_length=n, beam_width=6, top_paths=2)))), LONG, np.int32([0, 4, 4]))

UNKNOWN_RANK = ["loss_False_True_float32", "beam_short_8_3_False_float32", "decode_mono_0_0", "encode_stereo", "spectrogram_256_128_True", "mfcc_defaults_8000", "file_to_mfcc"]


def rounding(name, theirs):
    """Sums of terms that cancel: a part of the largest result."""
    if theirs.dtype == object:
        return 0
    return (1e-5 if name.startswith("loss_") else 1e-6) * np.abs(theirs[np.isfinite(theirs)]).max(initial=0)


def main():
    return function_cases.main(CASES, 100, lambda cases: function_cases.run(cases, rtol=1e-5, atol=rounding), UNKNOWN_RANK)


if __name__ == "__main__":
    sys.exit(main())
