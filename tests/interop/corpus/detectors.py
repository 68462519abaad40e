"""Detectors: boxes from anchors, non-maximum suppression, crops of regions."""
import keras
import numpy as np
import tensorflow as tf
from keras import layers as L

from corpus.functions import function, spec
from corpus.rows import DEEP, add

ANCHORS = np.stack(np.meshgrid(np.linspace(0.1, 0.9, 8), np.linspace(0.1, 0.9, 8)), -1).reshape(64, 2).astype(np.float32)


def boxes_feed(rng, n):
    low = rng.random((20, 2)) * 0.7
    return {"x": np.concatenate([low, low + 0.1 + rng.random((20, 2)) * 0.3], 1), "y": rng.random(20)}


BOXES = (spec(None, 4), spec(None))


def nms(boxes, scores):
    return {"i": tf.image.non_max_suppression(boxes, scores, 7, 0.4, 0.2)}


def nms_scores(boxes, scores):
    i, s = tf.image.non_max_suppression_with_scores(boxes, scores, 7, 0.6, 0.1, soft_nms_sigma=0.5)
    return {"i": i, "s": s}


def nms_padded(boxes, scores):
    i, n = tf.image.non_max_suppression_padded(boxes, scores, 9, 0.4, 0.3, pad_to_max_output_size=True)
    return {"i": i, "n": n, "b": tf.gather(boxes, i)}


def nms_overlaps(boxes, scores):
    return {"i": tf.image.non_max_suppression_overlaps(tf.matmul(boxes, boxes, transpose_b=True), scores, 5, 0.9)}


for body in nms, nms_scores, nms_padded, nms_overlaps:
    function(f"detector_{body.__name__}", body, *BOXES, feed=boxes_feed, batches=(1,))


def combined(boxes, scores):
    b, s, c, n = tf.image.combined_non_max_suppression(boxes, scores, 5, 8, 0.4, 0.1)
    return {"b": b, "s": s, "c": c, "n": n}


def combined_feed(rng, n):
    low = rng.random((n, 20, 1, 2)) * 0.7
    return {"x": np.concatenate([low, low + 0.1 + rng.random((n, 20, 1, 2)) * 0.3], -1), "y": rng.random((n, 20, 3))}


function("detector_combined_nms", combined, spec(None, 20, 1, 4), spec(None, 20, 3), feed=combined_feed)


def backbone():
    x = keras.Input((64, 64, 3))
    y = x
    for width in 8, 16, 16:
        y = L.ReLU(6.0)(L.BatchNormalization()(L.Conv2D(width, 3, 2, "same", use_bias=False)(y)))
    return keras.Model(x, [L.Reshape((64, 4))(L.Conv2D(4, 1)(y)), L.Reshape((64, 3))(L.Conv2D(3, 1)(y))])


class Single(tf.Module):
    """One stage: anchors, decoded boxes, suppression in each class."""

    def __init__(self):
        super().__init__()
        self.model = backbone()

    def boxes(self, image):
        offsets, logits = self.model(image)
        centers = ANCHORS + 0.1 * tf.tanh(offsets[..., :2])
        sizes = 0.2 * tf.exp(0.2 * tf.tanh(offsets[..., 2:]))
        return tf.concat([centers - sizes / 2, centers + sizes / 2], -1), tf.sigmoid(logits)

    @tf.function(input_signature=[tf.TensorSpec([None, 64, 64, 3], tf.float32, "image")])
    def combined(self, image):
        boxes, scores = self.boxes(image)
        b, s, c, n = tf.image.combined_non_max_suppression(boxes[:, :, None], scores, 5, 10, 0.5, 0.2)
        return {"boxes": b, "scores": s, "classes": c, "count": n}

    @tf.function(input_signature=[tf.TensorSpec([None, 64, 64, 3], tf.float32, "image")])
    def mapped(self, image):
        """Each image by itself, padded to the most."""
        def one(pair):
            boxes, scores = pair
            best = tf.reduce_max(scores, -1)
            i = tf.image.non_max_suppression(boxes, best, 6, 0.5)
            n = tf.shape(i)[0]
            pad = lambda t: tf.pad(tf.gather(t, i), [[0, 6 - n]] + [[0, 0]] * (len(t.shape) - 1))
            return pad(boxes), pad(best), n
        b, s, n = tf.map_fn(one, self.boxes(image), fn_output_signature=(
            tf.TensorSpec([6, 4], tf.float32), tf.TensorSpec([6], tf.float32), tf.int32))
        return {"boxes": b, "scores": s, "count": n}

    @tf.function(input_signature=[tf.TensorSpec([None, 64, 64, 3], tf.float32, "image")])
    def two_stages(self, image):
        """The best regions of the first stage, cropped and classified."""
        boxes, scores = self.boxes(image)
        best, at = tf.math.top_k(tf.reduce_max(scores, -1), 4)
        regions = tf.gather(boxes, at, batch_dims=1)
        n = tf.shape(image)[0]
        crops = tf.image.crop_and_resize(image, tf.reshape(regions, [-1, 4]), tf.repeat(tf.range(n), 4), [8, 8])
        return {"regions": regions, "scores": best, "means": tf.reshape(tf.reduce_mean(crops, [1, 2]), [n, 4, 3])}


def detector(name):
    def build(path):
        m = Single()
        tf.saved_model.save(m, path, signatures=getattr(m, name))
    add(f"detector_{name}", build, tolerance=DEEP, batches=(1, 3), sample=name == "two_stages")


for name in "combined", "mapped", "two_stages":
    detector(name)


def yolo(path):
    """Three scales with anchors, resized and concatenated, as darknet's successors."""
    x = keras.Input((64, 64, 3))
    conv = lambda y, w, k, s=1: L.LeakyReLU(negative_slope=0.1)(L.BatchNormalization()(L.Conv2D(w, k, s, "same", use_bias=False)(y)))
    a = conv(conv(x, 8, 3, 2), 8, 3, 2)
    b = conv(a, 16, 3, 2)
    p = L.Concatenate()([L.MaxPooling2D(k, 1, "same")(b) for k in (5, 9)] + [b])
    up = L.Concatenate()([L.UpSampling2D(2)(conv(p, 8, 1)), a])
    model = keras.Model(x, [L.Conv2D(3 * 8, 1)(p), L.Conv2D(3 * 8, 1)(up)])
    module = tf.Module()
    module.model = model

    def f(image):
        out = []
        for y in model(image):
            n, h, w = tf.shape(y)[0], y.shape[1], y.shape[2]
            y = tf.reshape(y, [n, h, w, 3, 8])
            grid = tf.cast(tf.stack(tf.meshgrid(tf.range(w), tf.range(h)), -1)[:, :, None], tf.float32)
            xy = (tf.sigmoid(y[..., :2]) + grid) / tf.constant([w, h], tf.float32)
            wh = tf.exp(tf.clip_by_value(y[..., 2:4], -4, 4)) * 0.1
            out.append(tf.reshape(tf.concat([xy - wh / 2, xy + wh / 2, tf.sigmoid(y[..., 4:5]) * tf.nn.softmax(y[..., 5:])], -1),
                                  [n, h * w * 3, 7]))
        y = tf.concat(out, 1)
        b, s, c, n = tf.image.combined_non_max_suppression(y[:, :, None, :4], y[..., 4:], 10, 10, 0.5, 0.05)
        return {"boxes": b, "scores": s, "classes": c, "count": n}

    module.f = tf.function(f, input_signature=[tf.TensorSpec([None, 64, 64, 3], tf.float32, "image")])
    tf.saved_model.save(module, path, signatures=module.f)


add("detector_yolo", yolo, tolerance=DEEP, batches=(1, 3))
