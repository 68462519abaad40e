"""The models of the corpus that are refused, with what the message says: listed gaps. A row goes when its model
runs; what is refused and not here is an error."""

GAPS = {
    "conv3d": "Conv3D (",
    "conv3d_transpose": "Conv3DBackpropInputV2 (",
    "quantized_int8": "BatchMatMulV3 (",
    "augment_random_perspective": "MatrixSolve (",
    "augment_random_elastic": "DepthwiseConv2dNative (",
    "hashed_crossing": "SparseCross (",
    "reductions": "CumulativeLogsumexp (",
    "special": "Lgamma (",
    "shapes": "MatrixDiagV3 (",
    "wheres": "LowerBound (",
    "linear_algebra": "MatrixDiagV3 (",
    "losses": "L2Loss (",
    "quantized": "FakeQuantWithMinMaxArgs (",
    "quantize": "QuantizeV2 (",
    "ragged": "RaggedGather (",
    "gradient_inside": "TanhGrad (",
    "moments_and_norms": "Cross (",
    "integer_arithmetic": "Pow (",
    "integer_arithmetic_64": "Pow (",
    "fourier": 'output "d" is complex',
    "strings_unicode": "UnicodeScript (",
    "examples_of_sequences": "ParseSequenceExampleV2 (",
    "v1_convolution": "RandomUniform (",
}
