"""The models of the corpus that are refused, by name, of those of namespaces.py by expression, with what the message
says: listed gaps. What is refused and not here is an error, and so is a gap here whose model runs or is not there."""

GAPS = {
    "tf.math.sobol_sample(3, 5) + x[0, 0]": "SobolSample (",
    "tf.image.extract_glimpse(g, [4, 5], x[:, :2])": "ExtractGlimpseV2 (",
    "tf.image.stateless_sample_distorted_bounding_box([12, 10, 3], tf.reshape(tf.sort(u[:1]), [1, 1, 4]), [1, 2])": "StatelessSampleDistortedBoundingBox (",
    'tf.extract_volume_patches(v, [1, 2, 2, 2, 1], [1, 1, 1, 1, 1], "VALID")': "is float32[N,?,?,?] in the signature",  # what TensorFlow gives has rank 5
    "tf.random.stateless_parameterized_truncated_normal([6], [1, 2], 0.0, 1.0, -1.0, 1.0) + x[0, 0]": "StatelessParameterizedTruncatedNormal (",
}
