"""Every model of tests/interop/corpus at batch 1 beside TensorFlow: the first signature of each, on the feed
that the tests compare. Rounds alternate; of each side the least time of a run is taken, by the clock and of
processors, and the median of the rounds' ratios (TensorFlow's time / Sextant's). Goal: 0.5 for each.

    bench_corpus.py [--only REGEX] [--keep DIR] [--below RATIO]

--keep leaves the models in a directory and uses those that lie there; --below prints only the models under
the ratio, and the summary. THREADS=1 for one thread a side."""
import argparse
import os
import re
import statistics
import sys
import tempfile
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")
os.environ.setdefault("SEXTANT_TEST_BIN", os.path.join(os.environ["SEXTANT_BUILD"], "tests"))
sys.path.insert(0, os.path.join(os.environ["SEXTANT_SRC"], "tests", "interop"))
import tensorflow as tf

from corpus import check, rows
from corpus.gaps import GAPS

ROUNDS = int(os.environ.get("ROUNDS", "3"))
SECONDS = float(os.environ.get("SECONDS", "0.1"))  # of a round, for each side


def least(measure):
    """Seconds of a run by the clock and of processors: the least of the batches of a round. A batch takes
    10 ms, so that each finds the caches as the last one left them."""
    runs = max(1, int(0.01 / max(min(measure(1)[0] for _ in range(3)), 1e-6)))
    found, end = [], time.perf_counter() + SECONDS
    while len(found) < 3 or time.perf_counter() < end:
        found.append([t / runs for t in measure(runs)])
    return [min(times) for times in zip(*found)]


def compare(row, path):
    """The rounds: (Sextant's seconds, TensorFlow's seconds), each by the clock and of processors."""
    loaded = tf.saved_model.load(path, tags=list(row.tags))
    name, function = next((k, f) for k, f in loaded.signatures.items() if not k.startswith("__saved_model"))
    specs = function.structured_input_signature[1]
    feed = next(f for _, f in check.feeds(row, specs) if all(v.size for v in f.values()))
    fed = {k: tf.constant(v, specs[k].dtype) for k, v in feed.items()}
    tool = check.Tool(path, ",".join(row.tags))

    def theirs(runs):
        start, cpu = time.perf_counter(), time.process_time()
        for _ in range(runs):
            for output in function(**fed).values():
                output.numpy()
        return time.perf_counter() - start, time.process_time() - cpu

    try:
        tool.run(name, feed)
        function(**fed)
        return [(least(lambda n: tool.time(name, feed, n)), least(theirs)) for _ in range(ROUNDS)]
    finally:
        tool.close()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", default="")
    parser.add_argument("--keep")
    parser.add_argument("--below", type=float)
    args = parser.parse_args()
    tf.get_logger().setLevel("ERROR")
    if threads := int(os.environ.get("THREADS", "0")):
        tf.config.threading.set_intra_op_parallelism_threads(threads)
        tf.config.threading.set_inter_op_parallelism_threads(threads)
    found = {}
    for row in rows.all_rows(check.MODULES).values():
        if row.gap_key in GAPS or not re.search(args.only, row.name):
            continue
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(args.keep or folder, row.name)
            try:
                if not os.path.exists(os.path.join(path, "saved_model.pb")):
                    tf.keras.backend.clear_session()
                    tf.keras.utils.set_random_seed(7)
                    row.make(path)
                rounds = compare(row, path)
            except check.Refused as e:
                print(f"{row.name}: refused: {str(e)[:200]}", flush=True)
                continue
        ratios = [statistics.median(b[i] / a[i] for a, b in rounds) for i in range(2)]
        found[row.name] = ratios
        if args.below is None or min(ratios) < args.below:
            ours, their = [[min(side[i] for side in sides) * 1e6 for i in range(2)] for sides in zip(*rounds)]
            print(f"{row.name:<32} ratio {ratios[0]:7.2f} by the clock, {ratios[1]:7.2f} of processors; "
                  f"{ours[0]:10.1f} us, TensorFlow {their[0]:10.1f} us", flush=True)
    for i, what in enumerate(("by the clock", "of processors")):
        all_ratios = sorted(r[i] for r in found.values())
        below = sorted((r[i], name) for name, r in found.items() if r[i] < 0.5)
        print(f"{len(found)} models, ratio {what}: median {statistics.median(all_ratios):.2f}, least {all_ratios[0]:.2f}; "
              f"below 0.5: {', '.join(f'{name} ({r:.2f})' for r, name in below) or 'none'}")


if __name__ == "__main__":
    sys.exit(main())
