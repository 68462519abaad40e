/* See inference.h. */
#include "serve/inference.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/buffer.h"
#include "base/checked.h"

/* ---- Signatures ---- */

/* The index of a tensor's name; `count` if it is not there. */
static size_t find(const sx_serve_tensor *tensors, size_t count, const char *name)
{
    size_t i = 0;
    while (i < count && strcmp(tensors[i].name, name) != 0) {
        i++;
    }
    return i;
}

static bool has(const sx_serve_tensor *tensors, size_t count, const char *name)
{
    return find(tensors, count, name) < count;
}

static void put_names(sx_buf *out, const char *what, const sx_serve_tensor *tensors, size_t count)
{
    sx_buf_printf(out, "%s {", what);
    for (size_t i = 0; i < count; i++) {
        sx_buf_printf(out, "%s\"%s\"", i > 0 ? ", " : "", tensors[i].name);
    }
    sx_buf_puts(out, "}");
}

/* The text, with the names that the signature has instead. */
static sx_status other_names(const char *text, const sx_serve_signature *signature)
{
    sx_buf names;
    sx_buf_init(&names, 4096);
    put_names(&names, "inputs", signature->inputs, signature->input_count);
    put_names(&names, ", outputs", signature->outputs, signature->output_count);
    sx_status status = sx_error(SX_INVALID_ARGUMENT, "%s%s", text, sx_buf_text(&names));
    sx_buf_deinit(&names);
    return status;
}

sx_status sx_inference_check(sx_inference_method method, const sx_serve_signature *signature)
{
    const size_t outputs = signature->output_count;
    if (signature->input_count != 1) {
        return sx_error(SX_INVALID_ARGUMENT, "Expected one input Tensor.");
    }
    if (method == SX_CLASSIFY && outputs != 1 && outputs != 2) {
        return sx_error(SX_INVALID_ARGUMENT, "Expected one or two output Tensors, found %zu",
                        outputs);
    }
    if (method == SX_REGRESS && outputs != 1) {
        return sx_error(SX_INVALID_ARGUMENT, "Expected one output Tensor.");
    }
    if (!has(signature->inputs, 1, "inputs")) {
        return other_names(method == SX_CLASSIFY
                               ? "No classification inputs found in SignatureDef: "
                               : "No regression inputs found in SignatureDef: ",
                           signature);
    }
    if (method == SX_CLASSIFY && !has(signature->outputs, outputs, "classes") &&
        !has(signature->outputs, outputs, "scores")) {
        return other_names("Expected classification signature outputs to contain at least one of "
                           "\"classes\" or \"scores\". Signature was: ",
                           signature);
    }
    if (method == SX_REGRESS && !has(signature->outputs, 1, "outputs")) {
        return other_names("No regression outputs found in SignatureDef: ", signature);
    }
    const sx_serve_tensor *input = &signature->inputs[0];
    if (input->type.dtype != SX_STRING || (!input->unknown_rank && input->type.rank != 1)) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "signature \"%s\": its input \"inputs\" takes no serialized examples: "
                        "expected DT_STRING of rank 1, got %s of rank %d",
                        signature->name, sx_serve_dtype_name(input->type.dtype), input->type.rank);
    }
    return SX_OK;
}

sx_status sx_inference_find(sx_inference_method method, const sx_serve_signature *signatures,
                            size_t count, sx_bytes name, const sx_serve_signature **out)
{
    enum { SHOWN_BYTES = 60 };
    const sx_bytes wanted = sx_serve_signature_name(name);
    *out = sx_serve_find_signature(signatures, count, name);
    if (*out == NULL) {
        return sx_error(SX_INVALID_ARGUMENT, "No signature was found with the name: %.*s",
                        (int)SX_MIN(wanted.size, (size_t)SHOWN_BYTES), (const char *)wanted.data);
    }
    return sx_inference_check(method, *out);
}

/* ---- Results ---- */

static const char *shape_text(const sx_type *type, char text[SX_MAX_RANK * 24])
{
    size_t size = 0;
    text[size++] = '[';
    for (int i = 0; i < type->rank; i++) {
        size += (size_t)snprintf(text + size, 24, "%s%" PRId64, i > 0 ? "," : "", type->dims[i]);
    }
    text[size++] = ']';
    text[size] = '\0';
    return text;
}

/* One output of Classify. */
static sx_status check_classes(const char *name, const sx_tensor *tensor, sx_dtype dtype,
                               size_t examples)
{
    char shape[SX_MAX_RANK * 24];
    const sx_type *type = &tensor->type;
    if (type->rank != 2) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "Expected Tensor shape: [batch_size num_classes] but got %s",
                        shape_text(type, shape));
    }
    if (type->dtype != dtype) {
        return sx_error(SX_INVALID_ARGUMENT, "Expected %s Tensor of %s. Got: %s", name,
                        sx_serve_dtype_name(dtype), sx_serve_dtype_name(type->dtype));
    }
    if (type->dims[0] != (int64_t)examples) {
        return sx_error(SX_INVALID_ARGUMENT, "Expected %s output batch size of %zu. Got: %" PRId64,
                        name, examples, type->dims[0]);
    }
    return SX_OK;
}

static sx_status read_classes(const sx_serve_signature *signature, const sx_tensor *outputs,
                              size_t examples, sx_inference_result *out)
{
    const size_t count = signature->output_count;
    const size_t classes = find(signature->outputs, count, "classes");
    const size_t scores = find(signature->outputs, count, "scores");
    if (classes < count) {
        SX_TRY(check_classes("classes", &outputs[classes], SX_STRING, examples));
        out->labels = outputs[classes].data;
        out->classes = (size_t)outputs[classes].type.dims[1];
    }
    if (scores < count) {
        SX_TRY(check_classes("scores", &outputs[scores], SX_F32, examples));
        out->scores = outputs[scores].data;
        out->classes = (size_t)outputs[scores].type.dims[1];
    }
    if (classes < count && scores < count &&
        outputs[classes].type.dims[1] != outputs[scores].type.dims[1]) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "Tensors class and score should match in dim_size(1). Got %" PRId64
                        " vs. %" PRId64,
                        outputs[classes].type.dims[1], outputs[scores].type.dims[1]);
    }
    return SX_OK;
}

static sx_status read_values(const sx_tensor *output, size_t examples, sx_inference_result *out)
{
    char shape[SX_MAX_RANK * 24];
    const sx_type *type = &output->type;
    if (type->rank != 1 && (type->rank != 2 || type->dims[1] != 1)) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "Expected output Tensor shape to be either [batch_size] or [batch_size, 1] "
                        "but got %s",
                        shape_text(type, shape));
    }
    if (type->dims[0] != (int64_t)examples) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "Input batch size did not match output batch size: %zu vs. %" PRId64,
                        examples, type->dims[0]);
    }
    if (type->dtype != SX_F32) {
        return sx_error(SX_INVALID_ARGUMENT, "Expected output Tensor of DT_FLOAT.  Got: %s",
                        sx_serve_dtype_name(type->dtype));
    }
    out->scores = output->data;
    out->classes = 1;
    return SX_OK;
}

sx_status sx_inference_read(sx_inference_method method, const sx_serve_signature *signature,
                            const sx_tensor *outputs, size_t examples, sx_inference_result *out)
{
    *out = (sx_inference_result){.method = method, .examples = examples};
    return method == SX_CLASSIFY ? read_classes(signature, outputs, examples, out)
                                 : read_values(&outputs[0], examples, out);
}
