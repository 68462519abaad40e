"""Input pipelines against tf.data: reading records, and JPEG to batches of 224x224.

Both sides read the same TFRecord files from the page cache, verify checksums, and consume the same
bytes, which is checked first; JPEGs are decoded as tf.io.decode_jpeg does by default and resized by
TF2's bilinear rule. Rounds alternate; the figures are medians of the rounds' ratios, of wall time and
of processor time: on a machine that does other things only the second means something. tf.data runs at
its best of: one reader; parallel readers (AUTOTUNE); and its pipelines with AUTOTUNE everywhere. libjpeg alone, which
decodes the same images to one buffer, is what the JPEG pipelines cannot beat unless they decode less.
Bounds: records by memory bandwidth, JPEG by Huffman decoding (both sides use libjpeg-turbo)."""

import glob
import os
import statistics
import subprocess
import sys
import tempfile
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
import tensorflow as tf

ROUNDS = int(os.environ.get("ROUNDS", "7"))
TOOL = os.path.join(os.environ["SEXTANT_BUILD"], "bench", "bench_data")
AUTO = tf.data.AUTOTUNE


def ours(task, pattern):
    output = subprocess.run([TOOL, task, pattern], check=True, capture_output=True, text=True).stdout
    seconds, cpu_seconds, examples, checksum = output.split()
    return float(seconds), float(cpu_seconds), int(examples), float(checksum)


def timed(consume):
    """(seconds, processor seconds, examples, checksum) of one pass."""
    begin, cpu = time.perf_counter(), time.process_time()
    examples, checksum = consume()
    return time.perf_counter() - begin, time.process_time() - cpu, examples, checksum


def records_pass(files, readers):
    """Inside the graph: no Python between the records."""
    data = tf.data.TFRecordDataset(files, num_parallel_reads=readers)

    @tf.function
    def total():
        return data.reduce(
            (tf.constant(0, tf.int64), tf.constant(0, tf.int64)),
            lambda n, r: (n[0] + 1, n[1] + tf.cast(tf.strings.length(r), tf.int64)),
        )

    total()  # traced and warm

    def consume():
        count, size = total()
        return int(count), float(size)

    return lambda: timed(consume)


def jpeg_pass(files):
    features = {
        "image/encoded": tf.io.FixedLenFeature([], tf.string),
        "image/class/label": tf.io.FixedLenFeature([], tf.int64),
    }

    def parse(record):
        example = tf.io.parse_single_example(record, features)
        image = tf.io.decode_jpeg(example["image/encoded"], channels=3)
        return tf.image.resize(image, [224, 224]), example["image/class/label"]

    data = tf.data.TFRecordDataset(files).map(parse, num_parallel_calls=AUTO)
    data = data.batch(32).prefetch(AUTO)

    def consume():
        count, checksum = 0, 0.0
        for images, _ in data:
            first = images[:, 0, 0, 0].numpy()
            count += len(first)
            checksum += float(first.astype("float64").sum())
        return count, checksum

    consume()
    return lambda: timed(consume)


def compare(name, task, pattern, peers):
    wall, cpu, rates, peer_rates, over = [], [], [], [], []
    for i in range(ROUNDS + 1):
        mine = ours(task, pattern)
        bare = ours("bare", pattern) if task != "records" else None
        theirs = [peer() for peer in peers]
        for other in theirs:
            # the same bytes; decoders may differ by a level here and there, scaled pixels by more
            near = (1e-1 if task == "scaled" else 1e-3) * mine[3]
            assert mine[2] == other[2] and abs(mine[3] - other[3]) <= near, (mine, other)
        if i > 0:  # the first round warms up
            wall.append(min(t[0] for t in theirs) / mine[0])
            cpu.append(min(t[1] for t in theirs) / mine[1])
            rates.append(mine[2] / mine[0])
            peer_rates.append(mine[2] / min(t[0] for t in theirs))
            over.append((mine[1], bare[1] if bare else 0))
    print(
        f"{name:<44}{statistics.median(wall):7.2f} x tf.data, least {min(wall):.2f};"
        f" by processor time {statistics.median(cpu):.2f}, least {min(cpu):.2f};"
        f" {statistics.median(rates):,.0f}/s to {statistics.median(peer_rates):,.0f}/s",
        flush=True,
    )
    if task != "records":
        least, least_bare = min(m for m, _ in over) / mine[2], min(b for _, b in over) / mine[2]
        print(f"    least processor time {least * 1e3:.3f} ms an image, libjpeg alone {least_bare * 1e3:.3f}:"
              f" {100 * (least / least_bare - 1):+.0f} %, median"
              f" {100 * (statistics.median(m / b for m, b in over) - 1):+.0f} %", flush=True)


def measure(name, pattern):
    files = sorted(glob.glob(pattern))
    size = sum(os.path.getsize(f) for f in files) / 2**20
    compare(f"records: {name}, {size:.0f} MiB", "records", pattern,
            [records_pass(files, None), records_pass(files, AUTO)])
    return files


def main():
    print(f"tensorflow {tf.__version__}")
    with tempfile.TemporaryDirectory() as scratch:
        prefix = os.path.join(scratch, "flowers")
        subprocess.run([TOOL, "make", prefix, "1000"], check=True)
        sets = [("drawn flowers, 384 pixels", prefix + "-*")]
        photos = os.path.join(os.environ.get("SEXTANT_DATA", ""), "catsdogs/train.tar")
        if os.path.exists(photos):
            out = os.path.join(scratch, "catsdogs")
            subprocess.run([os.environ["SEXTANT_BIN"], "data", "from-images", photos, "--out", out,
                            "--shards", "4"], check=True, capture_output=True)
            sets.append(("cats and dogs", out + "-*"))
        for name, pattern in sets:
            files = measure(name, pattern)
            peer = jpeg_pass(files)
            compare(f"jpeg to 224x224: {name}", "jpeg", pattern, [peer])
            compare("    decoded scaled", "scaled", pattern, [peer])


if __name__ == "__main__":
    sys.exit(main())
