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


def unet():
    """A segmentation of 128x128 images: four levels, transposed convolutions upwards."""
    def twice(x, channels):
        for _ in range(2):
            x = layers.ReLU()(layers.BatchNormalization()(layers.Conv2D(channels, 3, padding="same", use_bias=False)(x)))
        return x
    kept = []
    x = inputs = keras.Input((128, 128, 3))
    for channels in (32, 64, 128):
        x = twice(x, channels)
        kept.append(x)
        x = layers.MaxPooling2D()(x)
    x = twice(x, 256)
    for channels in (128, 64, 32):
        x = twice(layers.Concatenate()([kept.pop(), layers.Conv2DTranspose(channels, 2, strides=2)(x)]), channels)
    return keras.Model(inputs, layers.Conv2D(4, 1, activation="softmax")(x))


def vision_transformer():
    """Patches of 16x16, six blocks of 192, normalised first."""
    inputs = keras.Input((224, 224, 3))
    x = layers.Reshape((196, 192))(layers.Conv2D(192, 16, strides=16)(inputs))
    for _ in range(6):
        y = layers.LayerNormalization(epsilon=1e-6)(x)
        x = x + layers.MultiHeadAttention(3, 64)(y, y)
        y = layers.LayerNormalization(epsilon=1e-6)(x)
        x = x + layers.Dense(192)(layers.Dense(768, activation="gelu")(y))
    return keras.Model(inputs, layers.Dense(1000)(layers.GlobalAveragePooling1D()(x)))


def decoder():
    """Four blocks of causal attention over 256 steps of 256 numbers."""
    x = inputs = keras.Input((256, 256))
    for _ in range(4):
        y = layers.LayerNormalization()(x)
        x = x + layers.MultiHeadAttention(4, 64)(y, y, use_causal_mask=True)
        y = layers.LayerNormalization()(x)
        x = x + layers.Dense(256)(layers.Dense(1024, activation="silu")(y))
    return keras.Model(inputs, layers.Dense(2000)(x))


def temporal():
    """Dilated causal convolutions over 512 steps."""
    x = inputs = keras.Input((512, 16))
    for dilation in (1, 2, 4, 8, 16, 32):
        y = layers.Conv1D(64, 3, padding="causal", dilation_rate=dilation, activation="relu")(x)
        y = layers.Conv1D(64, 3, padding="causal", dilation_rate=dilation, activation="relu")(y)
        x = layers.Add()([y, layers.Conv1D(64, 1)(x)])
    return keras.Model(inputs, layers.Dense(10)(layers.GlobalMaxPooling1D()(x)))


def volumes():
    """Convolutions of 32x32x32 volumes."""
    x = inputs = keras.Input((32, 32, 32, 1))
    for channels in (16, 32, 64):
        x = layers.BatchNormalization()(layers.Conv3D(channels, 3, padding="same", activation="relu")(x))
        x = layers.MaxPooling3D()(x)
    return keras.Model(inputs, layers.Dense(10)(layers.Flatten()(x)))


def grouped():
    """ResNeXt's blocks: convolutions of 32 groups, group normalisation."""
    x = inputs = keras.Input((56, 56, 64))
    for _ in range(4):
        y = layers.ReLU()(layers.GroupNormalization(32)(layers.Conv2D(128, 1, use_bias=False)(x)))
        y = layers.ReLU()(layers.GroupNormalization(32)(layers.Conv2D(128, 3, padding="same", groups=32, use_bias=False)(y)))
        x = layers.ReLU()(x + layers.GroupNormalization(32)(layers.Conv2D(64, 1, use_bias=False)(y)))
    return keras.Model(inputs, layers.Dense(10)(layers.GlobalAveragePooling2D()(x)))


def bidirectional():
    """Two bidirectional layers over 100 steps, labels for each step."""
    x = inputs = keras.Input((100, 64))
    for _ in range(2):
        x = layers.Bidirectional(layers.LSTM(96, return_sequences=True))(x)
    return keras.Model(inputs, layers.Dense(20, activation="softmax")(x))


def upscaling():
    """Super-resolution by two: transposed convolution, bilinear skip, leaky ReLU."""
    x = inputs = keras.Input((96, 96, 3))
    for _ in range(6):
        x = layers.LeakyReLU(negative_slope=0.1)(layers.Conv2D(48, 3, padding="same")(x))
    x = layers.Conv2DTranspose(3, 4, strides=2, padding="same")(x)
    return keras.Model(inputs, x + layers.UpSampling2D(2, interpolation="bilinear")(inputs))


def perceptron():
    """Tabular: six wide layers."""
    x = inputs = keras.Input((200,))
    for _ in range(6):
        x = layers.Dense(1024, activation="swish")(x)
    return keras.Model(inputs, layers.Dense(1, activation="sigmoid")(x))


def mixer():
    """MLP-Mixer: products over patches and over channels in turn."""
    inputs = keras.Input((128, 128, 3))
    x = layers.Reshape((64, 256))(layers.Conv2D(256, 16, strides=16)(inputs))
    for _ in range(4):
        y = layers.Permute((2, 1))(layers.LayerNormalization()(x))
        y = layers.Dense(64)(layers.Dense(128, activation="gelu")(y))
        x = x + layers.Permute((2, 1))(y)
        x = x + layers.Dense(256)(layers.Dense(512, activation="gelu")(layers.LayerNormalization()(x)))
    return keras.Model(inputs, layers.Dense(100)(layers.GlobalAveragePooling1D()(x)))


FURTHER = {f.__name__: f for f in (unet, vision_transformer, decoder, temporal, volumes, grouped, bidirectional, upscaling,
                                   perceptron, mixer)}
