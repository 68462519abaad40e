"""The models of the corpus that are refused, with what the message says: listed gaps. A row goes when its model
runs; what is refused and not here is an error."""

GAPS = {
    "net_inputs_outputs": "Bitcast (",
    "net_deeplab": "Bitcast (",
    "net_policy": "Bitcast (",
    "v1_dynamic_lstm": "ReverseSequence (",
    "quantized": "FakeQuantWithMinMaxArgs (",
    "quantize": "QuantizeV2 (",
    "strings_unicode": "UnicodeScript (",
}
