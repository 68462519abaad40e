"""Checkpoints both ways: TensorFlow's three readers open ours, we open what its three writers wrote."""
import os
import re
import subprocess
import tempfile

import numpy as np
import tensorflow as tf

TOOL = os.path.join(os.environ["SEXTANT_TEST_BIN"], "bundle_tool")
LAYERS = 6000  # their entries fill more than one 256 KiB block
v1 = tf.compat.v1


def dump(prefix):
    """{key: (type text, bytes or list of bytes)} as bundle_tool reads it."""
    done = subprocess.run([TOOL, "dump", prefix], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    out = {}
    for line in done.stdout.splitlines():
        key, kind, data = line.rsplit(" ", 2)
        out[key] = (kind, [bytes.fromhex(s) for s in data.split(",")] if kind.startswith("string")
                    else bytes.fromhex(data))
    return out


def same_as_tensorflow(prefix):
    """Every tensor that TensorFlow's reader lists reads the same through ours."""
    ours = dump(prefix)
    reader = tf.train.load_checkpoint(prefix)
    shapes = reader.get_variable_to_shape_map()
    assert set(ours) == set(shapes), set(ours) ^ set(shapes)
    for key in shapes:
        value = reader.get_tensor(key)
        kind, data = ours[key]
        if kind.startswith("string"):
            expected = [value] if isinstance(value, bytes) else list(value.reshape(-1))
            assert data == expected, key
        else:
            assert data == np.asarray(value).tobytes(), key
        dims = [int(d) for d in re.findall(r"\d+", kind[kind.index("["):])] if "[" in kind else []
        assert dims == list(shapes[key]), (key, kind, shapes[key])
    return ours


def test_load_checkpoint(prefix):
    reader = tf.train.load_checkpoint(prefix)
    kernel = np.array([[0.5, -1, 2], [3.25, 1e-20, 7]], np.float32)
    np.testing.assert_array_equal(reader.get_tensor("dense/kernel"), kernel)
    np.testing.assert_array_equal(reader.get_tensor("dense/kernel/.ATTRIBUTES/VARIABLE_VALUE"), kernel)
    assert reader.get_tensor("global_step") == 123456789012
    assert reader.get_tensor("save_counter/.ATTRIBUTES/VARIABLE_VALUE") == 3
    assert list(reader.get_tensor("_sextant/words")) == [b"ab", b"", b"c\0d"]
    assert reader.get_tensor("mixed/half").view(np.uint16).tolist() == [0x3F80, 0xC000, 1]
    assert reader.get_tensor("mixed/empty").shape == (0, 4)
    np.testing.assert_array_equal(reader.get_tensor("layer_05999/bias"), [5999, -5999])
    same_as_tensorflow(prefix)


def test_saver_restores(prefix):
    with tf.Graph().as_default(), v1.Session() as session:
        kernel = v1.get_variable("dense/kernel", [2, 3], use_resource=True)
        old = v1.get_variable("layer_00007/bias", [2], use_resource=False)
        step = v1.get_variable("global_step", [], tf.int64, use_resource=True)
        v1.train.Saver().restore(session, prefix)
        assert session.run(kernel)[1, 0] == 3.25
        assert session.run(old).tolist() == [7, -7]
        assert session.run(step) == 123456789012


def test_checkpoint_restores(prefix):
    class Layer(tf.Module):
        pass

    dense = Layer()
    dense.kernel = tf.Variable(tf.zeros([2, 3]))
    layer = Layer()
    layer.bias = tf.Variable(tf.zeros([2]))
    step = tf.Variable(0, dtype=tf.int64)
    checkpoint = tf.train.Checkpoint(dense=dense, layer_00009=layer, global_step=step)
    status = checkpoint.restore(prefix)
    status.assert_existing_objects_matched()
    assert dense.kernel[1, 0] == 3.25 and layer.bias[1] == -9 and step == 123456789012
    assert int(checkpoint.save_counter) == 3
    status.expect_partial()


def test_reads_saver(folder):
    with tf.Graph().as_default(), v1.Session() as session:
        rng = np.random.default_rng(1)
        v1.get_variable("a/w", initializer=rng.normal(size=(300, 70)).astype(np.float32))
        v1.get_variable("a/h", initializer=tf.constant([1.5, -2], tf.bfloat16))
        v1.get_variable("step", initializer=tf.constant(1 << 40, tf.int64))
        v1.get_variable("s", initializer=tf.constant([["x", "yz"], ["", "w\0"]]))
        for i in range(50):
            v1.get_variable(f"v{i}", initializer=np.full(i, i, np.int32))
        v1.get_variable("cut", [7, 5], partitioner=v1.fixed_size_partitioner(3, axis=0),
                        initializer=v1.random_normal_initializer(seed=3))
        v1.get_variable("cut2", [4, 130], partitioner=v1.fixed_size_partitioner(2, axis=1),
                        initializer=v1.random_normal_initializer(seed=4))
        session.run(v1.global_variables_initializer())
        for sharded in False, True:
            prefix = v1.train.Saver(sharded=sharded).save(session, f"{folder}/saver{sharded}")
            ours = same_as_tensorflow(prefix)
            assert ours["cut"][0] == "float32[7,5]"


def test_reads_checkpoint(folder):
    model = tf.keras.Sequential([tf.keras.Input((20,)), tf.keras.layers.Dense(300), tf.keras.layers.Dense(2)])
    optimizer = tf.keras.optimizers.SGD(0.1, momentum=0.9)
    optimizer.build(model.trainable_variables)
    many = [tf.Variable(np.full(3, i, np.float32)) for i in range(1500)]
    prefix = tf.train.Checkpoint(model=model, optimizer=optimizer, many=many).save(f"{folder}/object")
    ours = same_as_tensorflow(prefix)
    assert "_CHECKPOINTABLE_OBJECT_GRAPH" in ours and len(ours) > 1500


def test_reindex(folder):
    """TensorFlow's table of thousands of entries, read and written again by us, is the same file."""
    names = [f"layer_{i * 7919 % 12000:05d}/kernel/with/a/longish/name" for i in range(12000)]
    tensors = [tf.constant([1.0 * i]) for i in range(len(names))]
    tf.raw_ops.SaveV2(prefix=f"{folder}/many", tensor_names=names, shape_and_slices=[""] * len(names),
                      tensors=tensors)
    source = f"{folder}/many.index"
    copy = os.path.join(folder, "copy.index")
    done = subprocess.run([TOOL, "reindex", source, copy], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert os.path.getsize(source) > 300_000
    with open(source, "rb") as a, open(copy, "rb") as b:
        assert a.read() == b.read()


def test_state_file(folder):
    """The newest in the file that TensorFlow wrote is the one that it finds itself."""
    assert tf.train.latest_checkpoint(folder) is not None


with tempfile.TemporaryDirectory() as folder:
    ours = os.path.join(folder, "model.ckpt-7")
    done = subprocess.run([TOOL, "write", ours, str(LAYERS)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    test_load_checkpoint(ours)
    test_saver_restores(ours)
    test_checkpoint_restores(ours)
    test_reads_saver(folder)
    test_reads_checkpoint(folder)
    test_reindex(folder)
    test_state_file(folder)
print("passed")
