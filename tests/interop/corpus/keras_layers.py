"""Every Keras layer forward, in evaluation: what shape of input it takes, where the sizes are free."""
import keras
import numpy as np
import tensorflow as tf
from keras import layers as L

from corpus.rows import HALF, add


def stir(model):
    """Gives biases, scales and moving averages, which begin as zeros and ones, values that count."""
    rng = np.random.default_rng(5)
    for w in model.weights:
        if len(w.shape) <= 1 and w.dtype.startswith("float"):
            w.assign(np.asarray(w) + rng.uniform(0.05, 0.3, w.shape))


def save(model, path):
    stir(model)
    model.export(path, verbose=False)


def layer(name, make, shape, **options):
    def build(path):
        x = keras.Input(shape, dtype=options.get("dtype"))
        save(keras.Model(x, make()(x)), path)
    add(name, build, **{k: v for k, v in options.items() if k != "dtype"})


VECTOR, SEQUENCE, IMAGE, VOLUME = (6,), (None, 4), (None, None, 3), (None, None, None, 2)
IMAGES = [(9, 11), (16, 16)]
LENGTHS = [(7,), (12,)]
VOLUMES = [(7, 6, 8), (8, 8, 8)]

# ---- Dense and activations ----

layer("dense", lambda: L.Dense(4, "relu"), VECTOR, sample=True)
layer("dense_of_sequence", lambda: L.Dense(4), SEQUENCE, sizes=LENGTHS)
layer("einsum_dense", lambda: L.EinsumDense("abc,cd->abd", (None, 5), bias_axes="d"), SEQUENCE, sizes=LENGTHS)
for activation in ("relu", "relu6", "leaky_relu", "elu", "selu", "celu", "gelu", "silu", "softplus", "softsign", "sigmoid",
                   "tanh", "hard_sigmoid", "hard_silu", "hard_tanh", "hard_shrink", "soft_shrink", "tanh_shrink",
                   "sparse_plus", "squareplus", "sparse_sigmoid", "mish", "log_sigmoid", "softmax",
                   "log_softmax", "sparsemax", "exponential", "linear", "glu"):
    layer(f"activation_{activation}", lambda a=activation: L.Activation(a), VECTOR)
layer("gelu_tanh", lambda: L.Lambda(lambda x: keras.activations.gelu(x, approximate=True)), VECTOR)
layer("prelu", lambda: L.PReLU(shared_axes=[1, 2], alpha_initializer="glorot_uniform"), IMAGE, sizes=IMAGES)
layer("relu_of_max", lambda: L.ReLU(max_value=4.0, negative_slope=0.1, threshold=0.2), VECTOR)
layer("softmax_of_axis", lambda: L.Softmax(axis=1), SEQUENCE, sizes=LENGTHS)

# ---- Convolutions ----

layer("conv1d", lambda: L.Conv1D(5, 3, strides=2), SEQUENCE, sizes=LENGTHS)
layer("conv1d_causal", lambda: L.Conv1D(5, 3, padding="causal", dilation_rate=2), SEQUENCE, sizes=LENGTHS)
layer("conv2d", lambda: L.Conv2D(5, 3, strides=2, padding="same"), IMAGE, sizes=IMAGES, sample=True)
layer("conv2d_dilated", lambda: L.Conv2D(5, 3, dilation_rate=2), IMAGE, sizes=IMAGES)
layer("conv2d_dilated_same", lambda: L.Conv2D(5, 3, dilation_rate=(2, 3), padding="same"), IMAGE, sizes=IMAGES)
layer("conv2d_groups", lambda: L.Conv2D(6, 3, groups=3), IMAGE, sizes=IMAGES)
layer("conv3d", lambda: L.Conv3D(4, 3, strides=(1, 2, 1), padding="same"), VOLUME, sizes=VOLUMES)
layer("depthwise_conv1d", lambda: L.DepthwiseConv1D(3, depth_multiplier=2), SEQUENCE, sizes=LENGTHS)
layer("depthwise_conv2d", lambda: L.DepthwiseConv2D(3, strides=2, padding="same", depth_multiplier=2), IMAGE, sizes=IMAGES)
layer("depthwise_conv2d_dilated", lambda: L.DepthwiseConv2D(3, dilation_rate=2), IMAGE, sizes=IMAGES)
layer("separable_conv1d", lambda: L.SeparableConv1D(5, 3), SEQUENCE, sizes=LENGTHS)
layer("separable_conv2d", lambda: L.SeparableConv2D(5, 3, padding="same"), IMAGE, sizes=IMAGES)
layer("conv1d_transpose", lambda: L.Conv1DTranspose(5, 3, strides=2), SEQUENCE, sizes=LENGTHS)
layer("conv2d_transpose", lambda: L.Conv2DTranspose(5, 3, strides=2, padding="same"), IMAGE, sizes=IMAGES)
layer("conv2d_transpose_valid", lambda: L.Conv2DTranspose(5, 4, strides=3), (8, 8, 3))
layer("conv3d_transpose", lambda: L.Conv3DTranspose(4, 3, strides=2, padding="same"), VOLUME, sizes=VOLUMES)

# ---- Pooling ----

for kind in "Max", "Average":
    low = kind.lower()
    layer(f"{low}_pooling1d", lambda k=kind: getattr(L, f"{k}Pooling1D")(2), SEQUENCE, sizes=LENGTHS)
    layer(f"{low}_pooling2d", lambda k=kind: getattr(L, f"{k}Pooling2D")(3, 2, "same"), IMAGE, sizes=IMAGES)
    layer(f"{low}_pooling3d", lambda k=kind: getattr(L, f"{k}Pooling3D")(2), VOLUME, sizes=VOLUMES)
    layer(f"global_{low}_pooling1d", lambda k=kind: getattr(L, f"Global{k}Pooling1D")(), SEQUENCE, sizes=LENGTHS)
    layer(f"global_{low}_pooling2d", lambda k=kind: getattr(L, f"Global{k}Pooling2D")(keepdims=True), IMAGE, sizes=IMAGES)
    layer(f"global_{low}_pooling3d", lambda k=kind: getattr(L, f"Global{k}Pooling3D")(), VOLUME, sizes=VOLUMES)
    layer(f"adaptive_{low}_pooling2d", lambda k=kind: getattr(L, f"Adaptive{k}Pooling2D")((2, 3)), (8, 9, 3))

# ---- Normalization and regularization ----

layer("batch_normalization", L.BatchNormalization, IMAGE, sizes=IMAGES)
layer("batch_normalization_vector", L.BatchNormalization, VECTOR)
layer("layer_normalization", L.LayerNormalization, SEQUENCE, sizes=LENGTHS, sample=True)
layer("layer_normalization_axes", lambda: L.LayerNormalization(axis=[1, 2]), (4, 5))
layer("rms_normalization", L.RMSNormalization, SEQUENCE, sizes=LENGTHS)
layer("group_normalization", lambda: L.GroupNormalization(3), (8, 9, 6))
layer("group_normalization_free", lambda: L.GroupNormalization(3), (None, None, 6), sizes=IMAGES)
layer("unit_normalization", L.UnitNormalization, VECTOR)
layer("spectral_normalization", lambda: L.SpectralNormalization(L.Dense(4)), VECTOR)
layer("dropout", lambda: L.Dropout(0.5), VECTOR)
layer("spatial_dropout2d", lambda: L.SpatialDropout2D(0.5), IMAGE, sizes=IMAGES)
layer("gaussian_noise", lambda: L.GaussianNoise(0.5), VECTOR)
layer("activity_regularization", lambda: L.ActivityRegularization(0.1), VECTOR)

# ---- Shapes ----

layer("flatten", L.Flatten, (4, 3, 2))
layer("reshape", lambda: L.Reshape((-1, 4)), (3, 8))
layer("permute", lambda: L.Permute((3, 1, 2)), IMAGE, sizes=IMAGES)
layer("repeat_vector", lambda: L.RepeatVector(3), VECTOR)
layer("cropping1d", lambda: L.Cropping1D((1, 2)), SEQUENCE, sizes=LENGTHS)
layer("cropping2d", lambda: L.Cropping2D(((1, 2), (2, 1))), IMAGE, sizes=IMAGES)
layer("cropping3d", lambda: L.Cropping3D(1), VOLUME, sizes=VOLUMES)
layer("zero_padding1d", lambda: L.ZeroPadding1D(2), SEQUENCE, sizes=LENGTHS)
layer("zero_padding2d", lambda: L.ZeroPadding2D(((1, 2), (3, 4))), IMAGE, sizes=IMAGES)
layer("zero_padding3d", lambda: L.ZeroPadding3D(1), VOLUME, sizes=VOLUMES)
layer("up_sampling1d", lambda: L.UpSampling1D(2), SEQUENCE, sizes=LENGTHS)
layer("up_sampling2d", lambda: L.UpSampling2D(2), IMAGE, sizes=IMAGES)
layer("up_sampling2d_bilinear", lambda: L.UpSampling2D((2, 3), interpolation="bilinear"), (8, 9, 3))
layer("up_sampling3d", lambda: L.UpSampling3D(2), VOLUME, sizes=VOLUMES)
layer("embedding", lambda: L.Embedding(9, 4), (None,), sizes=LENGTHS, dtype="int32")
layer("reversible_embedding", lambda: L.ReversibleEmbedding(9, 4), (None,), sizes=LENGTHS, dtype="int32")


def merge(name, make):
    def build(path):
        inputs = [keras.Input((5,), name="a"), keras.Input((5,), name="b")]
        save(keras.Model(inputs, make()(inputs)), path)
    add(name, build)


merge("merge_add", L.Add)
merge("merge_subtract", L.Subtract)
merge("merge_multiply", L.Multiply)
merge("merge_average", L.Average)
merge("merge_maximum", L.Maximum)
merge("merge_minimum", L.Minimum)
merge("merge_concatenate", L.Concatenate)
merge("merge_dot", lambda: L.Dot(1, normalize=True))

# ---- Precision ----

def policy(name, dtype):
    def build(path):
        keras.config.set_dtype_policy(dtype)
        try:
            x = keras.Input((12, 12, 3), dtype="float32")
            y = L.Conv2D(8, 3, activation="relu")(x)
            y = L.BatchNormalization()(y)
            y = L.GlobalAveragePooling2D()(y)
            save(keras.Model(x, L.Dense(5, dtype="float32")(y)), path)
        finally:
            keras.config.set_dtype_policy("float32")
    add(name, build, tolerance=HALF)


policy("policy_bfloat16", "mixed_bfloat16")
policy("policy_float16", "mixed_float16")


def float64(path):
    save(keras.Sequential([keras.Input((4,), dtype="float64"), L.Dense(5, "tanh", dtype="float64"), L.Dense(3, dtype="float64")]),
         path)


add("policy_float64", float64)


def quantized(path):
    model = keras.Sequential([keras.Input((16,)), L.Dense(8, "relu"), L.Dense(4)])
    model.quantize("int8")
    model.export(path, verbose=False)


add("quantized_int8", quantized)


def tfsm(path):
    """A model around a SavedModel that was loaded again."""
    inner = keras.Sequential([keras.Input((6,)), L.Dense(4, "relu")])
    inner.export(path + ".inner", verbose=False)
    x = keras.Input((6,))
    save(keras.Model(x, L.Dense(2)(L.TFSMLayer(path + ".inner", call_endpoint="serve")(x))), path)


add("tfsm_layer", tfsm)
