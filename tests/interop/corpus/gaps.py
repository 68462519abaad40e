"""The models of the corpus that are refused, with what the message says: listed gaps. A row goes when its model
runs; what is refused and not here is an error."""

GAPS = {
    "net_inputs_outputs": "Bitcast (",
    "net_deeplab": "Bitcast (",
    "net_policy": "Bitcast (",
    "v1_dynamic_lstm": "ReverseSequence (",
    "hashed_crossing": "SparseCross (",
    "quantized": "FakeQuantWithMinMaxArgs (",
    "quantize": "QuantizeV2 (",
    "ragged": "RaggedGather (",
    "gradient_inside": "TanhGrad (",
    "strings_unicode": "UnicodeScript (",
    "examples_of_sequences": "ParseSequenceExampleV2 (",
    "v1_convolution": "RandomUniform (",
}
