"""Image pipelines: from encoded bytes to classes, and the operators of tf.image."""
import keras
import numpy as np
import tensorflow as tf
from keras import layers as L

from corpus.functions import function, spec
from corpus.rows import add

BYTES = spec(None, dtype=tf.string)
PIXELS = spec(None, None, None, 3)


def picture(rng, h=18, w=22):
    y, x = np.mgrid[:h, :w]
    return np.stack([128 + 100 * np.sin(x / 3 + p) * np.cos(y / 4) for p in rng.random(3) * 3], -1).astype(np.uint8)


def encoded(kind):
    encode = {"jpeg": tf.io.encode_jpeg, "png": tf.io.encode_png}[kind]
    return lambda rng, n: np.array([encode(picture(rng)).numpy() for _ in range(n)], object)


def classifier(name, decode, kind, **options):
    def build(path):
        model = keras.Sequential([keras.Input((12, 12, 3)), L.Conv2D(4, 3, activation="relu"), L.GlobalAveragePooling2D(), L.Dense(3)])
        module = tf.Module()
        module.model = model
        one = lambda b: tf.image.resize(tf.image.convert_image_dtype(decode(b), tf.float32), [12, 12])
        module.f = tf.function(lambda image_bytes: {"scores": model(tf.map_fn(one, image_bytes, fn_output_signature=tf.float32))},
                               input_signature=[tf.TensorSpec([None], tf.string, "image_bytes")])
        tf.saved_model.save(module, path, signatures=module.f)
    add(name, build, feed=encoded(kind), **options)


classifier("images_jpeg", lambda b: tf.io.decode_jpeg(b, 3), "jpeg")
classifier("images_png", lambda b: tf.io.decode_png(b, 3), "png")
classifier("images_any", lambda b: tf.io.decode_image(b, 3, expand_animations=False), "png")


def one_image(path):
    """A single image without a batch, centrally cropped."""
    module = tf.Module()

    def f(image):
        y = tf.image.central_crop(tf.image.decode_image(image, 3, expand_animations=False), 0.8)
        y.set_shape([None, None, 3])
        y = tf.image.resize_with_pad(tf.cast(y, tf.float32), 16, 16)
        return {"y": tf.image.per_image_standardization(y)}

    module.f = tf.function(f, input_signature=[tf.TensorSpec([], tf.string, "image")])
    tf.saved_model.save(module, path)


add("images_single", one_image, feed=lambda rng, n: tf.io.encode_png(picture(rng)).numpy(), batches=(1,))


def encode(x):
    return {"y": tf.map_fn(lambda i: tf.io.encode_png(tf.cast(i, tf.uint8)), x, fn_output_signature=tf.string)}


def adjust(x):
    x = x / 255
    return {"b": tf.image.adjust_brightness(x, 0.1), "c": tf.image.adjust_contrast(x, 1.5), "h": tf.image.adjust_hue(x, 0.1),
            "s": tf.image.adjust_saturation(x, 0.7), "g": tf.image.rgb_to_grayscale(x), "v": tf.image.rgb_to_hsv(x),
            "r": tf.image.hsv_to_rgb(x), "y": tf.image.rgb_to_yuv(x), "m": tf.image.adjust_gamma(x, 0.8)}


def resize(x):
    return {m: tf.image.resize(x, [9, 13], m) for m in ("bilinear", "nearest", "bicubic", "area", "gaussian", "mitchellcubic")} | {
        "antialias": tf.image.resize(x, [5, 7], antialias=True), "aspect": tf.image.resize(x, [30, 30], preserve_aspect_ratio=True)}


def legacy_resize(x):
    v1 = tf.compat.v1.image
    return {"b": v1.resize_bilinear(x, [9, 13]), "a": v1.resize_bilinear(x, [9, 13], align_corners=True),
            "n": v1.resize_nearest_neighbor(x, [9, 13], align_corners=True), "c": v1.resize_bicubic(x, [9, 13]),
            "r": v1.resize_area(x, [5, 4])}


def geometry(x):
    return {"f": tf.image.flip_left_right(x), "u": tf.image.flip_up_down(x), "t": tf.image.rot90(x), "p": tf.image.pad_to_bounding_box(
        x, 1, 2, 25, 30), "c": tf.image.crop_to_bounding_box(x, 2, 3, 5, 6), "q": tf.image.transpose(x),
        "w": tf.image.resize_with_crop_or_pad(x, 14, 30)}


def crops(x):
    return {"y": tf.image.crop_and_resize(x, [[0.1, 0.1, 0.8, 0.9], [0.0, 0.0, 1.0, 1.2]], [0, 0], [6, 7]),
            "n": tf.image.crop_and_resize(x, [[0.1, 0.1, 0.8, 0.9]], [0], [6, 7], "nearest")}


def measures(x):
    y = tf.image.flip_left_right(x)
    return {"p": tf.image.psnr(x, y, 255.0), "s": tf.image.ssim(x, y, 255.0, filter_size=5), "t": tf.image.total_variation(x),
            "e": tf.image.sobel_edges(x), "g": tf.image.image_gradients(x)[0]}


pixels = lambda rng, n: np.stack([picture(rng) for _ in range(n)]).astype(np.float32)
for body in adjust, resize, legacy_resize, geometry, crops, measures:
    function(f"image_{body.__name__}", body, PIXELS, feed=pixels)
