"""The models of the corpus that are refused, by name, of those of namespaces.py by expression, with what the message
says: listed gaps. What is refused and not here is an error, and so is a gap here whose model runs or is not there."""

GAPS = {
    "tf.image.extract_glimpse(g, [4, 5], x[:, :2])": "ExtractGlimpseV2 (",
    'tf.extract_volume_patches(v, [1, 2, 2, 2, 1], [1, 1, 1, 1, 1], "VALID")': "is float32[N,?,?,?] in the signature",  # what TensorFlow gives has rank 5
}
