"""Gradients of imported layers and losses: each Keras layer in training, its weights as inputs of a signature,
differentiated by us and by tf.GradientTape; and so a step of gradient descent."""
import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
import keras
import numpy as np
import tensorflow as tf

import gradient_cases

L = keras.layers
VECTOR, SEQUENCE, IMAGE, VOLUME, WIDE = (3, 6), (3, 7, 4), (2, 8, 9, 3), (2, 5, 6, 4, 2), (2, 6, 7, 8)

# layer -> shape of its input, how it is made
ROWS = {
    "dense": (VECTOR, lambda: L.Dense(4, "tanh")),
    "einsum_dense": (SEQUENCE, lambda: L.EinsumDense("abc,cd->abd", (None, 5), bias_axes="d")),
    "conv1d": (SEQUENCE, lambda: L.Conv1D(5, 3, strides=2)),
    "conv2d": (IMAGE, lambda: L.Conv2D(5, 3, strides=2, padding="same")),
    "conv2d_dilated": (IMAGE, lambda: L.Conv2D(5, 3, dilation_rate=2)),
    "conv2d_groups": (IMAGE, lambda: L.Conv2D(6, 3, groups=3)),
    "conv3d": (VOLUME, lambda: L.Conv3D(4, 3)),
    "depthwise_conv2d": (IMAGE, lambda: L.DepthwiseConv2D(3, strides=2, depth_multiplier=2)),
    "separable_conv2d": (IMAGE, lambda: L.SeparableConv2D(5, 3)),
    "conv2d_transpose": (IMAGE, lambda: L.Conv2DTranspose(5, 3, strides=2, padding="same")),
    "max_pooling2d": (IMAGE, lambda: L.MaxPooling2D(3, 2, "same")),
    "average_pooling2d": (IMAGE, lambda: L.AveragePooling2D(2)),
    "max_pooling1d": (SEQUENCE, lambda: L.MaxPooling1D(2)),
    "global_average_pooling2d": (IMAGE, L.GlobalAveragePooling2D),
    "global_max_pooling2d": (IMAGE, L.GlobalMaxPooling2D),
    "zero_padding2d": (IMAGE, lambda: L.ZeroPadding2D(((1, 2), (3, 4)))),
    "cropping2d": (IMAGE, lambda: L.Cropping2D(((1, 2), (2, 1)))),
    "up_sampling2d": (IMAGE, lambda: L.UpSampling2D(2)),
    "up_sampling2d_bilinear": (IMAGE, lambda: L.UpSampling2D(2, interpolation="bilinear")),
    "batch_normalization": (IMAGE, L.BatchNormalization),
    "batch_normalization_vector": (VECTOR, L.BatchNormalization),
    "batch_normalization_plain": (IMAGE, lambda: L.BatchNormalization(center=False, scale=False)),
    "batch_normalization_scale": (SEQUENCE, lambda: L.BatchNormalization(center=False)),
    "batch_normalization_offset": (IMAGE, lambda: L.BatchNormalization(scale=False)),
    "inverted_residual": ((2, 9, 8, 5), lambda: inverted_residual("relu6", 3)),
    "inverted_residual_5x5": ((2, 9, 8, 5), lambda: inverted_residual("silu", 5)),
    "stateless_dropout": (SEQUENCE, lambda: L.Dropout(0.4, seed=5)),
    "stateless_dropout_of_examples": (SEQUENCE, lambda: L.Dropout(0.4, noise_shape=(None, 1, 1), seed=6)),
    "gaussian_noise": (VECTOR, lambda: L.GaussianNoise(0.5, seed=7)),
    "layer_normalization": (SEQUENCE, L.LayerNormalization),
    "group_normalization": (WIDE, lambda: L.GroupNormalization(4)),
    "rms_normalization": (SEQUENCE, L.RMSNormalization),
    "unit_normalization": (VECTOR, L.UnitNormalization),
    "relu_max": (VECTOR, lambda: L.ReLU(max_value=1.0)),
    "leaky_relu": (VECTOR, L.LeakyReLU),
    "prelu": (VECTOR, lambda: L.PReLU("glorot_uniform")),
    "elu": (VECTOR, L.ELU),
    "selu": (VECTOR, lambda: L.Activation("selu")),
    "gelu": (VECTOR, lambda: L.Activation("gelu")),
    "silu": (VECTOR, lambda: L.Activation("silu")),
    "hard_silu": (VECTOR, lambda: L.Activation("hard_silu")),
    "softplus": (VECTOR, lambda: L.Activation("softplus")),
    "softmax": (VECTOR, L.Softmax),
    "log_softmax": (VECTOR, lambda: L.Activation("log_softmax")),
    "reshape": (SEQUENCE, lambda: L.Reshape((4, 7))),
    "permute": (SEQUENCE, lambda: L.Permute((2, 1))),
    "rescaling": (IMAGE, lambda: L.Rescaling(1 / 127.5, -1)),
    "normalization": (VECTOR, lambda: L.Normalization(mean=2.0, variance=3.0)),
    "lstm": (SEQUENCE, lambda: L.LSTM(5)),
    "lstm_sequences": (SEQUENCE, lambda: L.LSTM(5, return_sequences=True, unroll=True)),
    "gru": (SEQUENCE, lambda: L.GRU(5)),
    "simple_rnn": (SEQUENCE, lambda: L.SimpleRNN(5, return_sequences=True)),
    "bidirectional": (SEQUENCE, lambda: L.Bidirectional(L.LSTM(3))),
    "attention": (SEQUENCE, lambda: L.Lambda(lambda x: keras.ops.softmax(
        keras.ops.matmul(x, keras.ops.transpose(x, (0, 2, 1)))) @ x)),
    "embedding": ((3, 5), lambda: L.Embedding(9, 4)),
    "conv1d_causal": (SEQUENCE, lambda: L.Conv1D(5, 3, padding="causal", dilation_rate=2)),
    "conv1d_transpose": (SEQUENCE, lambda: L.Conv1DTranspose(5, 3, strides=2)),
    "conv3d_strides": (VOLUME, lambda: L.Conv3D(4, 2, strides=2, padding="same")),
    "conv3d_transpose": (VOLUME, lambda: L.Conv3DTranspose(3, 2, strides=2)),
    "separable_conv1d": (SEQUENCE, lambda: L.SeparableConv1D(5, 3)),
    "depthwise_conv1d": (SEQUENCE, lambda: L.DepthwiseConv1D(3, padding="same")),
    "conv_lstm1d": ((2, 3, 6, 2), lambda: L.ConvLSTM1D(3, 3, padding="same")),
    "conv_lstm2d": ((2, 3, 5, 6, 2), lambda: L.ConvLSTM2D(3, 3, padding="same", return_sequences=True)),
    "average_pooling1d": (SEQUENCE, lambda: L.AveragePooling1D(3, 2, "same")),
    "average_pooling2d_same": (IMAGE, lambda: L.AveragePooling2D(3, 2, "same")),
    "average_pooling3d": (VOLUME, lambda: L.AveragePooling3D(2)),
    "max_pooling3d": (VOLUME, lambda: L.MaxPooling3D(2, padding="same")),
    "global_max_pooling3d": (VOLUME, L.GlobalMaxPooling3D),
    "global_average_pooling1d": (SEQUENCE, L.GlobalAveragePooling1D),
    "zero_padding1d": (SEQUENCE, lambda: L.ZeroPadding1D(2)),
    "zero_padding3d": (VOLUME, lambda: L.ZeroPadding3D(1)),
    "cropping3d": (VOLUME, lambda: L.Cropping3D(1)),
    "up_sampling1d": (SEQUENCE, lambda: L.UpSampling1D(3)),
    "up_sampling3d": (VOLUME, lambda: L.UpSampling3D(2)),
    "resizing": (IMAGE, lambda: L.Resizing(5, 12)),
    "resizing_nearest": (IMAGE, lambda: L.Resizing(5, 12, interpolation="nearest")),
    "resizing_bicubic": (IMAGE, lambda: L.Resizing(5, 12, interpolation="bicubic")),
    "center_crop": (IMAGE, lambda: L.CenterCrop(4, 5)),
    "flatten": (IMAGE, L.Flatten),
    "repeat_vector": (VECTOR, lambda: L.RepeatVector(3)),
    "masking": (SEQUENCE, lambda: L.Masking(0.0)),
    "time_distributed": (SEQUENCE, lambda: L.TimeDistributed(L.Dense(3, "sigmoid"))),
    "multi_head_attention": (SEQUENCE, lambda: Own(L.MultiHeadAttention(2, 3), lambda a, x: a(x, x))),
    "multi_head_attention_causal": (SEQUENCE, lambda: Own(L.MultiHeadAttention(2, 3), lambda a, x: a(x, x, use_causal_mask=True))),
    "grouped_query_attention": (SEQUENCE, lambda: Own(L.GroupQueryAttention(3, 4, 2), lambda a, x: a(x, x))),
    # of x itself the softmax is nearly one-hot, and float32's rounding of the scale's gradient 5e-5
    "dot_attention": (SEQUENCE, lambda: Own(L.Attention(use_scale=True), lambda a, x: a([x / 4, x / 4]))),
    "additive_attention": (SEQUENCE, lambda: Own(L.AdditiveAttention(), lambda a, x: a([x, x]))),
    "bilinear": (VECTOR, lambda: Own(L.Dense(4), lambda a, x: L.Multiply()([a(x), a(x * 2)]))),
    "merges": (VECTOR, lambda: Own(L.Dense(6), lambda a, x: L.Concatenate()([L.Maximum()([a(x), x]), L.Average()([a(x), x]), L.Minimum()([a(x), x]), L.Subtract()([a(x), x])]))),
    "dot": (VECTOR, lambda: Own(L.Dense(6), lambda a, x: L.Dot(1, normalize=True)([a(x), x]))),
    "lstm_masked": (SEQUENCE, lambda: Own(L.LSTM(5), lambda a, x: a(x, mask=keras.ops.abs(x[:, :, 0]) > 0.7))),
    "gru_backwards": (SEQUENCE, lambda: L.GRU(5, go_backwards=True, reset_after=False, return_sequences=True)),
    "stacked_cells": (SEQUENCE, lambda: L.RNN([L.LSTMCell(3), L.GRUCell(4)], return_sequences=True)),
    "bidirectional_gru": (SEQUENCE, lambda: L.Bidirectional(L.GRU(3, return_sequences=True), merge_mode="sum")),
    "layer_normalization_axes": (IMAGE, lambda: L.LayerNormalization(axis=(1, 2, 3))),
    "batch_normalization_axis": (WIDE, lambda: L.BatchNormalization(axis=1)),
    "spectral_normalization": (VECTOR, lambda: L.SpectralNormalization(L.Dense(4))),
    **{name: (VECTOR, lambda n=name: L.Activation(n)) for name in (
        "relu6", "softsign", "tanh_shrink", "hard_sigmoid", "hard_tanh", "hard_shrink", "soft_shrink", "squareplus",
        "celu", "mish", "glu", "log_sigmoid", "exponential", "sparse_plus", "sparse_sigmoid", "sparsemax")},
}


def inverted_residual(activation, size):
    """A block of MobileNetV2 and EfficientNet that halves the image: it pads by itself."""
    return keras.Sequential([L.Conv2D(18, 1, use_bias=False), L.BatchNormalization(), L.Activation(activation),
                             L.ZeroPadding2D(((size // 2 - 1, size // 2), (size // 2, size // 2))),
                             L.DepthwiseConv2D(size, strides=2, use_bias=False), L.BatchNormalization(),
                             L.Activation(activation), L.Conv2D(4, 1, use_bias=False), L.BatchNormalization()])


def same(rng, shape):
    return rng.normal(size=shape).astype(np.float32)


def positive(rng, shape):
    return rng.uniform(0.1, 1, shape).astype(np.float32)


def signs(rng, shape):
    return rng.choice([-1, 1], shape).astype(np.float32)


def one_hot(rng, shape):
    return np.eye(shape[-1], dtype=np.float32)[rng.integers(0, shape[-1], shape[:-1])]


def bits(rng, shape):
    return rng.integers(0, 2, shape).astype(np.float32)


def classes(rng, shape):
    return rng.integers(0, shape[-1], shape[:-1]).astype(np.int32)


# loss -> y_true, from the shape of y_pred, and how it is made
K = keras.losses
LOSSES = {
    "mean_squared_error": (same, K.MeanSquaredError), "mean_absolute_error": (same, K.MeanAbsoluteError),
    "mean_absolute_percentage_error": (positive, K.MeanAbsolutePercentageError),
    "mean_squared_logarithmic_error": (positive, K.MeanSquaredLogarithmicError),
    "huber": (same, K.Huber), "log_cosh": (same, K.LogCosh), "cosine_similarity": (same, K.CosineSimilarity),
    "hinge": (signs, K.Hinge), "squared_hinge": (signs, K.SquaredHinge), "categorical_hinge": (one_hot, K.CategoricalHinge),
    "kl_divergence": (positive, K.KLDivergence), "poisson": (positive, K.Poisson),
    "binary_crossentropy": (bits, K.BinaryCrossentropy),
    "binary_crossentropy_logits": (bits, lambda: K.BinaryCrossentropy(from_logits=True, label_smoothing=0.1)),
    "binary_focal": (bits, K.BinaryFocalCrossentropy), "categorical_crossentropy": (one_hot, K.CategoricalCrossentropy),
    "categorical_crossentropy_logits": (one_hot, lambda: K.CategoricalCrossentropy(from_logits=True, label_smoothing=0.1)),
    "categorical_focal": (one_hot, K.CategoricalFocalCrossentropy),
    "sparse_categorical_crossentropy": (classes, K.SparseCategoricalCrossentropy),
    "sparse_categorical_crossentropy_logits": (classes, lambda: K.SparseCategoricalCrossentropy(from_logits=True)),
    "sparse_categorical_crossentropy_ignored": (classes, lambda: K.SparseCategoricalCrossentropy(from_logits=True, ignore_class=2)),
    "dice": (bits, K.Dice), "tversky": (bits, K.Tversky), "circle": (classes, K.Circle),
}


# What cannot be differentiated yet, by the text of the error: a listed gap, which must go from here when it is closed.
GAPS = {}


def training_call(layer, rest):
    def call(*values):
        y, _ = layer.stateless_call(list(values[1:]), [tf.constant(r) for r in rest], values[0], training=True)
        return {"y": y}
    return call


class Own(keras.layers.Layer):
    """A layer that calls another one in its own way."""

    def __init__(self, inner, how):
        super().__init__()
        self.inner, self.how = inner, how

    def call(self, x):
        return self.how(self.inner, x)


def loss_call(loss, y_true):
    return lambda y_pred: {"y": loss(y_true, y_pred)}


class Signatures(tf.Module):
    """Signature `name` of inputs v0, v1, ...: x and the layer's trainable weights."""

    def __init__(self, names):
        super().__init__()
        self.functions, self.values = {}, {}
        rng = np.random.default_rng(4)
        for name in names:
            if name in LOSSES:
                make_true, make = LOSSES[name]
                y_pred = rng.uniform(0.05, 1, (5, 6)).astype(np.float32)
                self.values[name] = [y_pred / y_pred.sum(1, keepdims=True)]
                self.functions[name] = tf.function(loss_call(make(), make_true(rng, y_pred.shape)),
                                                   input_signature=[tf.TensorSpec(y_pred.shape, tf.float32, "v00")])
                continue
            shape, make = ROWS[name]
            ids = name == "embedding"
            x = rng.integers(0, 9, shape).astype(np.int32) if ids else (rng.normal(size=shape) * 2).astype(np.float32)
            layer = keras.Sequential([make()])
            layer(x)
            weights = [rng.uniform(0.2, 1, w.shape).astype(np.float32) * rng.choice([-1, 1], w.shape).astype(np.float32)
                       if len(w.shape) > 1 else rng.uniform(0.3, 1, w.shape).astype(np.float32) for w in layer.trainable_variables]
            rest = [np.asarray(w) for w in layer.non_trainable_variables]

            self.values[name] = [x, *weights]
            specs = [tf.TensorSpec(v.shape, v.dtype, f"v{i:02}") for i, v in enumerate(self.values[name])]
            self.functions[name] = tf.function(training_call(layer, rest), input_signature=specs)


def tolerance(theirs, all_of_layer):
    # that of a key's bias is zero but for the rounding of sums: softmax is the same
    return max(2e-5 * max(1e-3, np.abs(theirs).max()), 1e-6 * max(np.abs(g).max() for g in all_of_layer))


def main():
    names, wrong = [*ROWS, *LOSSES], {}
    for i in range(0, len(names), gradient_cases.BATCH):
        keras.utils.set_random_seed(3)
        model = Signatures(names[i:i + gradient_cases.BATCH])
        wrong |= gradient_cases.check(model, model.values, np.random.default_rng(8), tolerance)
    gradient_cases.report("layers and losses", names, wrong, GAPS)


if __name__ == "__main__":
    sys.exit(main())
