"""An encoded image beside other features, with preprocessing of the model's own: trained, evaluated,
exported, run and served; TensorFlow computes the same from the same bytes."""
import base64
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

static void prepare(sx_builder *b, const sx_batch *in, const sx_params *p)
{
    (void)p;
    sx_value age = sx_reshape(b, sx_feature(b, in, "age"), SX_BATCH, 1);
    sx_output(b, "photo", sx_feature(b, in, "photo"));
    sx_output(b, "facts", sx_clip(b, sx_mul(b, age, sx_constant_f32(b, 0.02)), 0, 1));
}

static sx_spec net(sx_builder *b, const sx_batch *in, const sx_params *p)
{
    (void)p;
    sx_value x = sx_conv2d(b, sx_feature(b, in, "photo"), 4, 3, .activation = SX_RELU);
    x = sx_concat(b, 1, sx_flatten(b, sx_max_pool2d(b, x, 2)), sx_feature(b, in, "FACTS"));
    return sx_classifier_spec(b, sx_dense(b, x, 2), sx_label(b, in, "old"), .optimizer = sx_adam(0.01));
}

SX_MODEL(net, .build = net, PREPARE .image = {12, 16, 3}, .scale = SX_MINUS1_1,
         .augment = SX_FLIP_LEFT_RIGHT, .inputs = {{"age"}, {"photo", .image = true, .key = "image"}},
         .labels = {{"old"}})
"""
ROWS = 60


def serve(base, body):
    args = ["serve", "--port=0", "--rest_api_port=0", "--model_name=net", f"--model_base_path={base}"]
    with open("serve.out", "w") as out:
        server = subprocess.Popen([os.environ["SEXTANT_BIN"], *args], stdout=out)
    try:
        url = None
        while url is None:
            assert server.poll() is None
            url = re.search(r"^Serving net at (\S+)$", open("serve.out").read(), re.M)
        return json.load(urllib.request.urlopen(url[1] + ":predict", json.dumps(body).encode()))
    finally:
        server.send_signal(signal.SIGTERM)
        assert server.wait() == 0


def check(name, source, images, ages, labels):
    open(f"{name}.c", "w").write(source)
    sextant("train", f"{name}.c", "--data", "data", "--eval-data", "data", "--model-dir", f"{name}-run",
            "--epochs", "2", "--seed", "2")
    assert "photo float32[N,12,16,3], preprocessed from images" in sextant("show", f"{name}-run")
    sextant("export", f"{name}-run", "--out", name)
    loaded = tf.saved_model.load(f"{name}/1")
    raw = loaded.signatures["serving_default"]
    takes = {k: (v.dtype.name, v.shape.as_list()) for k, v in raw.structured_input_signature[1].items()}
    assert takes == {"age": ("float32", [None]), "photo": ("string", [None])}, takes
    theirs = raw(age=tf.constant(ages), photo=tf.constant(images))["probabilities"].numpy()
    ours = json.loads(sextant("evaluate", f"{name}-run", "--data", "data", "--json"))
    loss = -np.log(theirs[np.arange(ROWS), labels].astype(np.float64)).mean()
    assert abs(ours["loss"] - loss) < 1e-4, (ours, loss)

    # the signature on tensors takes what preprocessing gives
    decoded = np.stack([tf.image.resize(tf.io.decode_image(i, 3, expand_animations=False), (12, 16)).numpy()
                        for i in images]) / 127.5 - 1
    facts = {"facts": np.clip(ages[:, None] * np.float32(0.02), 0, 1)} if ".preprocess" in source else {"age": ages}
    tensors = loaded.signatures["tensors"](photo=tf.constant(decoded, tf.float32),
                                           **{k: tf.constant(v) for k, v in facts.items()})
    np.testing.assert_allclose(tensors["probabilities"].numpy(), theirs, atol=1e-4)

    # our predictor and our server
    np.save("age", ages[:1])
    open("first.jpg", "wb").write(images[0])
    sextant("run", name, "--inputs", "age=age.npy;photo=first.jpg", "--outdir", f"{name}-out")
    np.testing.assert_allclose(np.load(f"{name}-out/probabilities.npy"), theirs[:1], atol=1e-5)
    rows = [{"age": float(a), "photo": {"b64": base64.b64encode(i).decode()}} for a, i in zip(ages[:5], images[:5])]
    answer = serve(name, {"instances": rows})
    np.testing.assert_allclose([p["probabilities"] for p in answer["predictions"]], theirs[:5], atol=1e-5)
    print(f"{name}: loss {ours['loss']:.6f}, TensorFlow's {loss:.6f}")


def main():
    rng = np.random.default_rng(5)
    ages = rng.uniform(0, 90, ROWS).astype(np.float32)
    labels = (ages > 45).astype(np.int64)
    images = []
    for i in range(ROWS):
        shape = (rng.integers(8, 40), rng.integers(8, 40), 3)
        pixels = rng.integers(0, 256, shape).astype(np.uint8) // (1 + labels[i])
        images.append((tf.io.encode_png if i % 2 else tf.io.encode_jpeg)(tf.cast(pixels, tf.uint8)).numpy())
    with tempfile.TemporaryDirectory() as here:
        os.chdir(here)
        os.environ["XDG_CACHE_HOME"] = here
        with tf.io.TFRecordWriter("data") as out:
            for image, age, label in zip(images, ages, labels):
                feature = {"image": tf.train.Feature(bytes_list=tf.train.BytesList(value=[image])),
                           "age": tf.train.Feature(float_list=tf.train.FloatList(value=[age])),
                           "old": tf.train.Feature(int64_list=tf.train.Int64List(value=[label]))}
                out.write(tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString())
        plain = re.sub(r"static void prepare.*?\n}\n", "", MODEL, flags=re.S)
        plain = plain.replace('sx_feature(b, in, "FACTS")', 'sx_reshape(b, sx_feature(b, in, "age"), SX_BATCH, 1)')
        check("plain", plain.replace("PREPARE", ""), images, ages, labels)
        check("prepared", MODEL.replace("FACTS", "facts").replace("PREPARE", ".preprocess = prepare,"), images,
              ages, labels)


main()
