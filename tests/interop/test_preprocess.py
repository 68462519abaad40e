"""A model's own preprocessing (.preprocess): the pipeline, the exported model under TensorFlow, our
predictor and our server compute the same features from the same data."""
import json
import os
import re
import signal
import subprocess
import tempfile
import urllib.request

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
import numpy as np
import tensorflow as tf

from program import sextant

MODEL = """
#include <sextant/model.h>

static sx_value column(sx_builder *b, sx_value x)
{
    return sx_reshape(b, x, SX_BATCH, 1);
}

static void prepare(sx_builder *b, const sx_batch *in, const sx_params *p)
{
    static const float ages[] = {25, 40, 60};
    sx_value limits = sx_constant(b, (sx_tensor){sx_type_of(SX_F32, 1, 3), (void *)ages});
    sx_value age = sx_feature(b, in, "age"), above = sx_less(b, limits, column(b, age));
    sx_value bucket = sx_reduce_sum(b, sx_cast(b, above, SX_F32), .axes = SX_AXES(1));
    sx_output(b, "age_bucket", sx_one_hot(b, sx_cast(b, bucket, SX_I32), .depth = 4));
    sx_value z = sx_mul(b, sx_sub(b, age, sx_constant_f32(b, 40)), sx_constant_f32(b, 1. / 15));
    sx_output(b, "age", sx_clip(b, z, -2, 2));
    sx_value gain = sx_cast(b, sx_feature(b, in, "gain"), SX_F32);
    sx_output(b, "gain", sx_mul(b, sx_log1p(b, gain), sx_constant_f32(b, sx_param_float(p, "gain", 0.1))));
    sx_output(b, "city", sx_feature(b, in, "city"));
}

static sx_spec net(sx_builder *b, const sx_batch *in, const sx_params *p)
{
    (void)p;
    sx_value x = sx_concat(b, 1, column(b, sx_feature(b, in, "age")), sx_feature(b, in, "age_bucket"),
                           column(b, sx_feature(b, in, "gain")),
                           sx_one_hot(b, sx_feature(b, in, "city"), .depth = 5));
    x = sx_dense(b, x, 8, .activation = SX_RELU);
    return sx_classifier_spec(b, sx_dense(b, x, 2), sx_label(b, in, "rich"), .optimizer = sx_adam(0.01));
}

SX_MODEL(net, .build = net, .preprocess = prepare,
         .inputs = {{"age"}, {"gain", SX_I64}, {"city", SX_I32}}, .labels = {{"rich"}})
"""
ROWS = 300


def preprocessed(rows):
    """What prepare() computes, in NumPy."""
    age = rows["age"]
    bucket = (age[:, None] > np.array([25, 40, 60], np.float32)).sum(1)
    return {
        "age": np.clip((age - np.float32(40)) * np.float32(1 / 15), -2, 2).astype(np.float32),
        "age_bucket": np.eye(4, dtype=np.float32)[bucket],
        "gain": (np.log1p(rows["gain"].astype(np.float32)) * np.float32(0.1)).astype(np.float32),
        "city": rows["city"],
    }


def query(name, signature, instances):
    """The answer of our server."""
    args = ["serve", "--port=0", "--rest_api_port=0", f"--model_name={name}", "--model_base_path=model"]
    with open("serve.out", "w") as out:
        server = subprocess.Popen([os.environ["SEXTANT_BIN"], *args], stdout=out)
    try:
        url = None
        while url is None:
            assert server.poll() is None
            url = re.search(rf"^Serving {name} at (\S+)$", open("serve.out").read(), re.M)
        body = json.dumps({"signature_name": signature, "instances": instances}).encode()
        return json.load(urllib.request.urlopen(url[1] + ":predict", body))
    finally:
        server.send_signal(signal.SIGTERM)
        assert server.wait() == 0


def as_rows(columns):
    return [{k: v[i].tolist() for k, v in columns.items()} for i in range(len(next(iter(columns.values()))))]


def main():
    rng = np.random.default_rng(5)
    rows = {"age": rng.uniform(17, 90, ROWS).astype(np.float32),
            "gain": rng.choice([0, 10, 5000, 1 << 40], ROWS).astype(np.int64),
            "city": rng.integers(0, 5, ROWS).astype(np.int32)}
    rows["age"][:4] = [25, 40, 60, np.nextafter(np.float32(25), np.float32(26))]
    rich = ((rows["age"] > 40) ^ (rows["gain"] > 100)).astype(np.int32)
    with tempfile.TemporaryDirectory() as here:
        os.chdir(here)
        os.environ["XDG_CACHE_HOME"] = here
        open("net.c", "w").write(MODEL)
        os.mkdir("data")
        for name, array in {**rows, "rich": rich}.items():
            np.save(f"data/{name}", array)
        sextant("train", "net.c", "--data", "data", "--model-dir", "run", "--epochs", "3", "--seed", "2")
        sextant("export", "run", "--out", "model")
        loaded = tf.saved_model.load("model/1")
        raw, tensors = loaded.signatures["serving_default"], loaded.signatures["tensors"]
        takes = lambda f: {k: (v.dtype.name, v.shape.as_list()) for k, v in f.structured_input_signature[1].items()}
        assert takes(raw) == {"age": ("float32", [None]), "gain": ("int64", [None]), "city": ("int32", [None])}
        assert takes(tensors) == {"age": ("float32", [None]), "age_bucket": ("float32", [None, 4]),
                                  "gain": ("float32", [None]), "city": ("int32", [None])}, takes(tensors)
        theirs = raw(**{k: tf.constant(v) for k, v in rows.items()})["probabilities"].numpy()
        given = {k: tf.constant(v) for k, v in preprocessed(rows).items()}
        np.testing.assert_allclose(tensors(**given)["probabilities"].numpy(), theirs, atol=1e-6)

        # the pipeline gave the network the same features
        ours = json.loads(sextant("evaluate", "run", "--data", "data", "--json"))
        loss = -np.log(theirs[np.arange(ROWS), rich].astype(np.float64)).mean()
        assert abs(ours["loss"] - loss) < 1e-5, (ours, loss)
        assert ours["accuracy"] > 0.6, ours

        # our predictor, with both signatures, and our server
        for name, array in {**preprocessed(rows)}.items():
            np.save(f"t_{name}", array)
        for signature, names in [("serving_default", [f"{k}=data/{k}.npy" for k in rows]),
                                 ("tensors", [f"{k}=t_{k}.npy" for k in given])]:
            out = json.loads(sextant("run", "model", "--json", "--signature", signature, "--input", *names))
            mine = np.array([p["probabilities"] for p in out["predictions"]])
            np.testing.assert_allclose(mine, theirs, atol=1e-6)
        for signature, columns in [("serving_default", rows), ("tensors", preprocessed(rows))]:
            answer = query("net", signature, as_rows({k: v[:7] for k, v in columns.items()}))
            np.testing.assert_allclose([p["probabilities"] for p in answer["predictions"]], theirs[:7], atol=1e-6)
        print(f"loss {ours['loss']:.6f}, TensorFlow's {loss:.6f}; accuracy {ours['accuracy']:.3f}")


main()
