# with_tfrecord ARGS...: runs the Python on stdin, which may import tfrecord (tfrecord.py).
with_tfrecord() {
    PYTHONPATH=$SEXTANT_SRC/tests/cli python3 -B - "$@"
}

# records FILE LABEL=PICTURE...: a TFRecord file of tf.train.Examples, written without our help.
records() {
    with_tfrecord "$@" <<'PY'
import sys
from tfrecord import *

def one(pair):
    label, picture = pair.split("=", 1)
    with open(picture, "rb") as image:
        return example(feature(b"image/encoded", BYTES, texts(image.read())),
                       feature(b"image/class/label", INTS, ints(int(label))))

write(sys.argv[1], map(one, sys.argv[2:]))
PY
}
