"""`sextant predict --model` on SavedModels that TensorFlow wrote: records that the model parses itself,
features of records, columns of CSV and arrays by the inputs' names, JSON lines, and a model whose examples
depend on one another. The predictions are TensorFlow's."""
import glob
import json
import os
import subprocess
import tempfile

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
import numpy as np
import tensorflow as tf

SEXTANT = os.environ["SEXTANT_BIN"]
N = 70


def predict(model, out, *words, ids=None):
    subprocess.run([SEXTANT, "predict", "--model", model, "--out", out, "-q", *words], check=True)
    rows = [json.loads(line) for path in sorted(glob.glob(f"{out}/*results*")) for line in open(path)]
    assert [row["id"] for row in rows] == (ids or list(range(len(rows)))), rows
    return [row["prediction"] for row in rows]


class Parses(tf.Module):
    """Takes serialized Examples, as Estimator's exports do."""

    def __init__(self):
        super().__init__()
        self.w = tf.Variable([[2.0], [-1.0], [0.5]])

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="examples")])
    def serve(self, examples):
        parsed = tf.io.parse_example(examples, {"x": tf.io.FixedLenFeature([3], tf.float32)})
        return {"score": tf.squeeze(parsed["x"] @ self.w, 1), "x": parsed["x"]}


class Named(tf.Module):
    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32, name="age"),
                                  tf.TensorSpec([None], tf.int64, name="rooms"),
                                  tf.TensorSpec([None], tf.string, name="city")])
    def serve(self, age, rooms, city):
        return {"value": age * tf.cast(rooms, tf.float32), "text": tf.strings.join([city, tf.strings.as_string(rooms)])}


class Coupled(tf.Module):
    @tf.function(input_signature=[tf.TensorSpec([None, None], tf.float32, name="x")])
    def serve(self, x):
        return {"y": x - tf.reduce_mean(x, 0, keepdims=True)}


def near(got, expected):
    np.testing.assert_allclose(np.array(got), np.array(expected), rtol=1e-6, atol=1e-6)


def main():
    rng = np.random.default_rng(4)
    x = rng.standard_normal((N, 3)).astype(np.float32)
    age, rooms = rng.random(N).astype(np.float32), rng.integers(0, 9, N)
    city = [f"town {i % 7}" for i in range(N)]
    with tempfile.TemporaryDirectory() as root:
        os.chdir(root)
        parses, named, coupled = Parses(), Named(), Coupled()
        for name, module in (("parses", parses), ("named", named), ("coupled", coupled)):
            tf.saved_model.save(module, name, signatures=module.serve)
        feature = lambda kind, values: tf.train.Feature(**{f"{kind}_list": getattr(
            tf.train, f"{kind.capitalize()}List")(value=values)})
        with tf.io.TFRecordWriter("data.tfrecord") as writer:
            for i in range(N):
                writer.write(tf.train.Example(features=tf.train.Features(feature={
                    "x": feature("float", x[i]), "age": feature("float", [age[i]]),
                    "rooms": feature("int64", [rooms[i]]), "city": feature("bytes", [city[i].encode()])}
                )).SerializeToString())
        expected = parses.serve(tf.constant([r.numpy() for r in tf.data.TFRecordDataset("data.tfrecord")]))
        rows = predict("parses", "p1", "--data", "data.tfrecord", "--shards", "3")
        near([row["score"] for row in rows], expected["score"])
        near([row["x"] for row in rows], x)
        result = subprocess.run([SEXTANT, "predict", "--model", "parses", "--out", "p1", "--data", "data.tfrecord"],
                                capture_output=True, text=True)
        assert result.returncode == 0 and result.stderr == "data.tfrecord: TFRecords, 70\n", result

        expected = named.serve(tf.constant(age), tf.constant(rooms), tf.constant(city))
        with open("data.csv", "w") as file:
            file.write("city,note,rooms,age\n")
            file.writelines(f'"{city[i]}",,{rooms[i]},{age[i]!s}\n' for i in range(N))
        with open("data.jsonl", "w") as file:
            file.writelines(json.dumps({"age": float(age[i]), "rooms": int(rooms[i]), "city": city[i]}) + "\n"
                            for i in range(N))
        for number, data in enumerate(("data.tfrecord", "data.csv", "data.jsonl")):
            rows = predict("named", f"p2-{number}", "--data", data, "--shards", "4")
            near([row["value"] for row in rows], expected["value"])
            assert [row["text"].encode() for row in rows] == list(expected["text"].numpy()), data

        # rows of different lengths: one by one; of one length: as many together as is asked for
        with open("rows.jsonl", "w") as file:
            file.write("[1, 2]\n[3]\n[4, 5, 6]\n")
        assert predict("coupled", "p3", "--data", "rows.jsonl") == [[0, 0], [0], [0, 0, 0]]
        with open("even.jsonl", "w") as file:
            file.writelines(f"{list(map(float, row))}\n" for row in x)
        rows = predict("coupled", "p4", "--data", "even.jsonl", "--batch-size", "35", "--shards", "1")
        near(rows, np.concatenate([coupled.serve(tf.constant(part))["y"] for part in np.split(x, 2)]))
        result = subprocess.run([SEXTANT, "predict", "--model", "coupled", "--out", "p4", "--data", "even.jsonl"],
                                capture_output=True, text=True)
        assert result.returncode != 0 and "its batch size is 35, not 32" in result.stderr, result

        # half a row and two rows are not two rows
        with open("half.jsonl", "w") as file:
            file.write('{"age": 1, "rooms": 1, "city": "a"\n"age": 2}, {"age": 3, "rooms": 1, "city": "b"}\n'
                       '{"age": 4, "rooms": 1, "city": "c"}\n')
        assert [row["value"] for row in predict("named", "p6", "--data", "half.jsonl", "--max-errors", "2", ids=[2])] == [4]
        result = subprocess.run([SEXTANT, "predict", "--model", "coupled", "--out", "p5", "--data", "data.csv"],
                                capture_output=True, text=True)
        assert result.returncode != 0 and "rows of unknown size are read from JSON lines only" in result.stderr, result


main()
