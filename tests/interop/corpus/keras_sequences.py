"""Sequences: recurrent layers, masks, attention, transformers, temporal convolutions."""
import keras
import numpy as np
import tensorflow as tf
from keras import layers as L

from corpus.keras_layers import LENGTHS, SEQUENCE, layer, save
from corpus.rows import DEEP, add

IDS = {"sizes": [(7,), (12,)], "dtype": "int32"}

layer("lstm", lambda: L.LSTM(5), SEQUENCE, sizes=LENGTHS, sample=True)
layer("lstm_sequences", lambda: L.LSTM(5, return_sequences=True, go_backwards=True), SEQUENCE, sizes=LENGTHS)
layer("lstm_unrolled", lambda: L.LSTM(5, unroll=True), (6, 4))
layer("lstm_no_bias", lambda: L.LSTM(5, use_bias=False, activation="relu", recurrent_activation="hard_sigmoid"), SEQUENCE,
      sizes=LENGTHS)
layer("lstm_stateful", lambda: L.LSTM(5, return_state=True, return_sequences=True), SEQUENCE, sizes=LENGTHS)
layer("gru", lambda: L.GRU(5), SEQUENCE, sizes=LENGTHS)
layer("gru_reset_before", lambda: L.GRU(5, reset_after=False, return_sequences=True), SEQUENCE, sizes=LENGTHS)
layer("simple_rnn", lambda: L.SimpleRNN(5, return_sequences=True), SEQUENCE, sizes=LENGTHS)
layer("bidirectional_lstm", lambda: L.Bidirectional(L.LSTM(5, return_sequences=True)), SEQUENCE, sizes=LENGTHS)
layer("bidirectional_gru", lambda: L.Bidirectional(L.GRU(5), merge_mode="sum"), SEQUENCE, sizes=LENGTHS)
layer("rnn_of_cells", lambda: L.RNN([L.LSTMCell(4), L.GRUCell(3)]), SEQUENCE, sizes=LENGTHS)
layer("conv_lstm1d", lambda: L.ConvLSTM1D(3, 3, padding="same"), (4, 6, 2))
layer("conv_lstm2d", lambda: L.ConvLSTM2D(3, 3, padding="same", return_sequences=True), (4, 6, 5, 2))
layer("time_distributed", lambda: L.TimeDistributed(L.Dense(3)), (6, 4))
layer("time_distributed_conv", lambda: L.TimeDistributed(L.Conv2D(3, 3)), (4, 6, 6, 2))


def masked(name, make, **options):
    """Ids of which 0 is none, embedded, and what `make` does with them."""
    def build(path):
        x = keras.Input((None,), dtype="int32")
        save(keras.Model(x, make(L.Embedding(9, 6, mask_zero=True)(x))), path)

    def feed(rng, n):
        lengths = rng.integers(1, 8, n)
        return np.where(np.arange(7) < lengths[:, None], rng.integers(1, 9, (n, 7)), 0)

    add(name, build, feed=feed, **options)


masked("lstm_masked", lambda x: L.Dense(3)(L.LSTM(5)(x)), sample=True)
masked("lstm_masked_sequences", lambda x: L.LSTM(4)(L.LSTM(5, return_sequences=True)(x)))
masked("gru_masked", lambda x: L.GRU(5)(x))
masked("bidirectional_masked", lambda x: L.Bidirectional(L.LSTM(5))(x))
masked("average_masked", lambda x: L.GlobalAveragePooling1D()(x))
masked("attention_masked", lambda x: L.Attention()([x, x]))
masked("multi_head_attention_masked", lambda x: L.MultiHeadAttention(2, 3)(x, x))
layer("masking", lambda: keras.Sequential([L.Masking(0.0), L.LSTM(3)]), SEQUENCE, sizes=LENGTHS)


def functional(name, shape, make, **options):
    def build(path):
        x = keras.Input(shape, dtype=options.get("dtype"))
        save(keras.Model(x, make(x)), path)
    add(name, build, **{k: v for k, v in options.items() if k != "dtype"})


functional("attention", SEQUENCE, lambda x: L.Attention(use_scale=True)([x, x]), sizes=LENGTHS)
functional("attention_concat", SEQUENCE, lambda x: L.Attention(score_mode="concat")([x, x]), sizes=LENGTHS)
functional("additive_attention", SEQUENCE, lambda x: L.AdditiveAttention()([x, x]), sizes=LENGTHS)
functional("multi_head_attention", SEQUENCE, lambda x: L.MultiHeadAttention(2, 3)(x, x), sizes=LENGTHS, sample=True)
functional("multi_head_attention_causal", SEQUENCE, lambda x: L.MultiHeadAttention(2, 3)(x, x, use_causal_mask=True),
           sizes=LENGTHS)
functional("group_query_attention", SEQUENCE, lambda x: L.GroupQueryAttention(4, 4, 2)(x, x), sizes=LENGTHS)


def lstm_states(path):
    x = keras.Input((None, 4))
    y, h, c = L.LSTM(5, return_state=True)(x)
    save(keras.Model(x, {"y": y, "h": h, "c": c}), path)


def encoder_decoder(path):
    a, b = keras.Input((None, 4), name="a"), keras.Input((None, 3), name="b")
    _, h, c = L.LSTM(5, return_state=True)(a)
    save(keras.Model([a, b], L.Dense(2)(L.LSTM(5, return_sequences=True)(b, initial_state=[h, c]))), path)


add("lstm_states", lstm_states, sizes=LENGTHS)
add("encoder_decoder", encoder_decoder, sizes=[(7, 5)])


def block(x, heads, width, hidden, causal=False):
    y = L.LayerNormalization(epsilon=1e-6)(x)
    x = x + L.MultiHeadAttention(heads, width // heads)(y, y, use_causal_mask=causal)
    y = L.LayerNormalization(epsilon=1e-6)(x)
    return x + L.Dense(width)(L.Dense(hidden, "gelu")(y))


class Positions(L.Layer):
    """Adds a learned embedding of each position."""

    def __init__(self, most, width):
        super().__init__()
        self.table = L.Embedding(most, width)

    def call(self, x):
        return x + self.table(keras.ops.arange(keras.ops.shape(x)[1]))


def transformer(causal):
    def make(x):
        y = Positions(32, 16)(L.Embedding(11, 16)(x))
        for _ in range(2):
            y = block(y, 4, 16, 32, causal)
        return L.Dense(11)(y) if causal else L.Dense(3, "softmax")(L.GlobalAveragePooling1D()(y))
    return make


functional("transformer_encoder", (None,), transformer(False), tolerance=DEEP, **IDS)
functional("transformer_decoder", (None,), transformer(True), tolerance=DEEP, **IDS)


def vision_transformer(x):
    y = L.Conv2D(16, 8, 8)(x)
    y = L.Reshape((-1, 16))(y)
    y = Positions(64, 16)(y)
    y = block(block(y, 4, 16, 32), 4, 16, 32)
    return L.Dense(5)(L.GlobalAveragePooling1D()(y))


functional("vision_transformer", (32, 32, 3), vision_transformer, tolerance=DEEP)


def temporal(x):
    for dilation in 1, 2, 4:
        y = L.Conv1D(8, 3, padding="causal", dilation_rate=dilation, activation="relu")(x)
        x = L.Conv1D(8, 1)(x) + L.LayerNormalization()(y)
    return x


functional("temporal_convolutions", SEQUENCE, temporal, sizes=LENGTHS)


def unet(x):
    down, skips = x, []
    for width in 4, 8:
        down = L.BatchNormalization()(L.Conv2D(width, 3, padding="same", activation="relu")(down))
        skips.append(down)
        down = L.MaxPooling2D(2)(down)
    for width, skip in zip((8, 4), reversed(skips)):
        down = L.Conv2DTranspose(width, 2, 2)(down)
        down = L.Conv2D(width, 3, padding="same", activation="relu")(L.Concatenate()([down, skip]))
    return L.Conv2D(2, 1, activation="softmax")(down)


functional("unet", (None, None, 3), unet, sizes=[(16, 24), (32, 32)], tolerance=DEEP)


def wavenet(x):
    gate = lambda y, d: L.Conv1D(6, 2, padding="causal", dilation_rate=d, activation="tanh")(y) * L.Conv1D(
        6, 2, padding="causal", dilation_rate=d, activation="sigmoid")(y)
    x = L.Conv1D(6, 1)(x)
    for d in 1, 2, 4, 8:
        x = x + L.Conv1D(6, 1)(gate(x, d))
    return L.Conv1D(10, 1)(x)


functional("wavenet", (None, 1), wavenet, sizes=[(20,), (33,)], tolerance=DEEP)
