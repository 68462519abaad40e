"""Keras' preprocessing layers: images, numbers, categories; augmentation at inference."""
import keras
import numpy as np
import tensorflow as tf
from keras import layers as L

from corpus.keras_layers import IMAGE, IMAGES, VECTOR, layer, save
from corpus.rows import DEEP, add

PIXELS = {"feed": lambda rng, n: rng.integers(0, 256, (n, 12, 10, 3)).astype(np.float32)}

layer("rescaling", lambda: L.Rescaling(1 / 127.5, -1), IMAGE, **PIXELS)
layer("normalization", lambda: L.Normalization(mean=[1.0, 2, 3], variance=[1.0, 4, 9]), IMAGE, sizes=IMAGES)


def adapted(path):
    norm = L.Normalization()
    norm.adapt(np.random.default_rng(1).normal(3, 2, (100, 6)).astype(np.float32))
    save(keras.Sequential([keras.Input((6,)), norm, L.Dense(2)]), path)


add("normalization_adapted", adapted)
for method in "bilinear", "nearest", "bicubic", "area", "lanczos3", "lanczos5":
    layer(f"resizing_{method}", lambda m=method: L.Resizing(7, 9, m, antialias=False), IMAGE, **PIXELS)
layer("resizing_antialias", lambda: L.Resizing(5, 4, antialias=True), IMAGE, sample=True, **PIXELS)
layer("resizing_crop", lambda: L.Resizing(6, 6, crop_to_aspect_ratio=True), (12, 10, 3), **PIXELS)
layer("resizing_pad", lambda: L.Resizing(16, 16, pad_to_aspect_ratio=True), (12, 10, 3), **PIXELS)
layer("center_crop", lambda: L.CenterCrop(6, 7), (12, 10, 3), **PIXELS)
layer("center_crop_larger", lambda: L.CenterCrop(14, 14), (12, 10, 3), **PIXELS)
layer("random_crop", lambda: L.RandomCrop(6, 7), (12, 10, 3), **PIXELS)

for name, make in {
    "random_flip": L.RandomFlip, "random_rotation": lambda: L.RandomRotation(0.2),
    "random_translation": lambda: L.RandomTranslation(0.1, 0.1), "random_zoom": lambda: L.RandomZoom(0.2),
    "random_brightness": lambda: L.RandomBrightness(0.2), "random_contrast": lambda: L.RandomContrast(0.2),
    "random_hue": lambda: L.RandomHue(0.2), "random_saturation": lambda: L.RandomSaturation(0.2),
    "random_shear": lambda: L.RandomShear(0.2, 0.2), "random_gaussian_blur": lambda: L.RandomGaussianBlur(),
    "random_erasing": lambda: L.RandomErasing(), "random_posterization": lambda: L.RandomPosterization(4),
    "random_grayscale": lambda: L.RandomGrayscale(), "random_invert": lambda: L.RandomInvert(),
    "random_sharpness": lambda: L.RandomSharpness(0.2), "random_color_jitter": lambda: L.RandomColorJitter(),
    "random_perspective": lambda: L.RandomPerspective(), "random_elastic": lambda: L.RandomElasticTransform(),
    "random_degeneration": lambda: L.RandomColorDegeneration(0.2),
    "auto_contrast": L.AutoContrast, "solarization": lambda: L.Solarization(), "cut_mix": L.CutMix, "mix_up": L.MixUp,
    "rand_augment": L.RandAugment, "aug_mix": L.AugMix,
}.items():
    layer(f"augment_{name}", make, (12, 10, 3), **PIXELS)


def augmented(path):
    """As people write it: augmentation in front of a classifier."""
    save(keras.Sequential([keras.Input((12, 10, 3)), L.RandomFlip("horizontal"), L.RandomRotation(0.1), L.RandomZoom(0.1),
                           L.Rescaling(1 / 255), L.Conv2D(4, 3, activation="relu"), L.GlobalMaxPooling2D(), L.Dense(3)]), path)


add("augmented_classifier", augmented, **PIXELS)

layer("discretization", lambda: L.Discretization([0.0, 1.0, 2.0]), VECTOR)
layer("discretization_one_hot", lambda: L.Discretization([0.0, 1.0], output_mode="one_hot"), (1,))
layer("category_one_hot", lambda: L.CategoryEncoding(5, "one_hot"), (1,), dtype="int32")
layer("category_multi_hot", lambda: L.CategoryEncoding(5, "multi_hot"), (3,), dtype="int32")
layer("category_count", lambda: L.CategoryEncoding(5, "count"), (3,), dtype="int32")
layer("hashing_ints", lambda: L.Hashing(7), (3,), dtype="int32")
layer("mel_spectrogram", lambda: L.MelSpectrogram(sequence_length=64, sequence_stride=32, fft_length=64, num_mel_bins=8),
      (400,))
# The logarithm of what is left when 64 terms cancel (0.01 of terms near 1): TensorFlow's float32 itself differs from float64
# by up to 9e-4 of values up to 6, Sextant's by as much.
layer("stft_spectrogram", lambda: L.STFTSpectrogram(frame_length=64, frame_step=32, fft_length=64, window=None), (400, 1),
      tolerance=DEEP)


def crossing(path):
    a, b = keras.Input((1,), dtype="string", name="a"), keras.Input((1,), dtype="string", name="b")
    save(keras.Model([a, b], L.HashedCrossing(11, output_mode="one_hot")([a, b])), path)


add("hashed_crossing", crossing)


def features(path):
    """A FeatureSpace of numbers and categories."""
    space = keras.utils.FeatureSpace({
        "age": keras.utils.FeatureSpace.float_normalized(), "job": keras.utils.FeatureSpace.string_categorical(num_oov_indices=1),
        "grade": keras.utils.FeatureSpace.integer_categorical(), "hours": keras.utils.FeatureSpace.float_discretized(3),
        "city": keras.utils.FeatureSpace.string_hashed(4)}, output_mode="concat")
    rng = np.random.default_rng(2)
    data = {"age": rng.normal(40, 10, 50), "job": rng.choice(["a", "b", "c"], 50), "grade": rng.integers(1, 4, 50),
            "hours": rng.normal(40, 5, 50), "city": rng.choice(["x", "y"], 50)}
    space.adapt(tf.data.Dataset.from_tensor_slices(data))
    save(keras.Model(space.get_inputs(), L.Dense(2)(space.get_encoded_features())), path)


add("feature_space", features, feed=lambda rng, n: {
    "age": rng.normal(40, 10, (n, 1)), "job": rng.choice([b"a", b"b", b"c", b"d"], (n, 1)), "grade": rng.integers(0, 5, (n, 1)),
    "hours": rng.normal(40, 5, (n, 1)), "city": rng.choice([b"x", b"y", b"z"], (n, 1))})
