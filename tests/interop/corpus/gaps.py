"""The models of the corpus that are refused, with what the message says: listed gaps. A row goes when its model
runs; what is refused and not here is an error."""

GAPS = {
    "conv3d": "Conv3D (",
    "conv3d_transpose": "Conv3DBackpropInputV2 (",
    "augment_random_perspective": "MatrixSolve (",
    "augment_random_elastic": "DepthwiseConv2dNative (",
    "hashed_crossing": "SparseCross (",
    "shapes": "MatrixDiagV3 (",
    "linear_algebra": "MatrixDiagV3 (",
    "quantized": "FakeQuantWithMinMaxArgs (",
    "quantize": "QuantizeV2 (",
    "ragged": "RaggedGather (",
    "gradient_inside": "TanhGrad (",
    "fourier": 'output "d" is complex',
    "strings_unicode": "UnicodeScript (",
    "examples_of_sequences": "ParseSequenceExampleV2 (",
    "v1_convolution": "RandomUniform (",
}
