"""The smallest member of each family of keras.applications, with random weights, at two sizes of image."""
import keras

from corpus.keras_layers import save
from corpus.rows import DEEP, add

A = keras.applications
SIZES = [(96, 96), (80, 112)]


def application(name, make, **options):
    def build(path):
        x = keras.Input((None, None, 3))
        save(keras.Model(x, make(include_top=False, weights=None, pooling="avg")(x)), path)
    add(name, build, **{"sizes": SIZES, "tolerance": DEEP, "batches": (1, 3), **options})


application("vgg16", A.VGG16)
application("resnet50", A.ResNet50, batches=(1, 3, 32))
application("resnet50_v2", A.ResNet50V2)
application("inception_v3", A.InceptionV3)
application("inception_resnet_v2", A.InceptionResNetV2)
application("xception", A.Xception)
application("mobilenet", A.MobileNet, batches=(1, 3, 32))
application("mobilenet_v2", A.MobileNetV2, batches=(1, 3, 32))
application("mobilenet_v3_small", A.MobileNetV3Small, batches=(1, 3, 32))
application("densenet121", A.DenseNet121)
application("efficientnet_b0", A.EfficientNetB0)
application("efficientnet_v2_b0", A.EfficientNetV2B0)
application("convnext_tiny", A.ConvNeXtTiny)


def nasnet(path):
    save(A.NASNetMobile(include_top=False, weights=None, pooling="avg", input_shape=(96, 96, 3)), path)


add("nasnet_mobile", nasnet, tolerance=DEEP, batches=(1, 3))


def classifier(path):
    """With its top, and the preprocessing of its input."""
    x = keras.Input((64, 64, 3), dtype="uint8")
    y = A.mobilenet_v2.preprocess_input(keras.ops.cast(x, "float32"))
    save(keras.Model(x, A.MobileNetV2(input_shape=(64, 64, 3), weights=None, classes=10)(y)), path)


add("mobilenet_v2_of_bytes", classifier, tolerance=DEEP,
    feed=lambda rng, n: rng.integers(0, 256, (n, 64, 64, 3)))
