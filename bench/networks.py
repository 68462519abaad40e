"""Networks that several comparisons use, in Keras."""

import keras

layers = keras.layers


def recurrent(kind, activation=None):
    """Two layers of an LSTM or a GRU, 32 steps of 64 numbers, 10 classes."""
    x = inputs = keras.Input((32, 64))
    x = kind(128, return_sequences=True)(x)
    return keras.Model(inputs, layers.Dense(10, activation=activation)(kind(128)(x)))


def bag_of_words():
    """The mean of 32 words' vectors, of 10,000 words; inputs between 0 and 1 are the words."""
    inputs = keras.Input((32,))
    x = layers.Embedding(10000, 64)(keras.ops.cast(inputs * 10000, "int32"))
    return keras.Model(inputs, layers.Dense(10)(layers.GlobalAveragePooling1D()(x)))


def encoder(blocks, width, heads, tokens):
    """A transformer's encoder after its embeddings: its inputs and its result, both [tokens, width]."""
    x = inputs = keras.Input((tokens, width))
    for _ in range(blocks):
        x = layers.LayerNormalization()(x + layers.MultiHeadAttention(heads, width // heads)(x, x))
        hidden = layers.Dense(4 * width, activation="gelu")(x)
        x = layers.LayerNormalization()(x + layers.Dense(width)(hidden))
    return inputs, x


def transformer(width, heads, tokens):
    """A classifier of two blocks, 10 classes."""
    inputs, x = encoder(2, width, heads, tokens)
    return keras.Model(inputs, layers.Dense(10)(layers.GlobalAveragePooling1D()(x)))
