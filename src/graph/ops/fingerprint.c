/* fingerprint: FarmHash's Fingerprint64 of each row's bytes.
 *
 *   data      [rows, ...] of any dtype; of a row of strings, the hash of their hashes
 *   method    string scalar: farmhash64
 *   returns   uint8 [rows, 8], lowest byte first
 *
 * Errors   INVALID_ARGUMENT  a scalar; (running) another method
 * Source   TensorFlow Fingerprint, method farmhash64 */
#include "graph/ops/host_ops.h"

enum { BYTES = 8 };

static sx_status fingerprint_infer(sx_infer_context *c)
{
    if (c->inputs[0].rank == 0 || sx_carrier_of(c->inputs[0].dtype) == SX_CARRIER_NONE) {
        return sx_error(SX_INVALID_ARGUMENT, "data is %s, expected [rows, ...]",
                        SX_TEXT(&c->inputs[0]));
    }
    SX_TRY(sx_require_maybe("method", &c->inputs[1], SX_STRING, 0, "a scalar"));
    c->outputs[0] =
        sx_type_of(SX_U8, c->inputs[0].rank > 0 ? c->inputs[0].dims[0] : SX_UNKNOWN_DIM, BYTES);
    return SX_OK;
}

static sx_status fingerprint_host(const sx_kernel_call *c)
{
    const sx_type *x = &c->in[0].type;
    const int64_t rows = x->dims[0], each = sx_dims_product(x, 1, x->rank);
    const size_t item = x->dtype == SX_STRING ? sizeof(uint64_t) : sx_dtype_bytes(x->dtype);
    const sx_bytes *method = &c->in[1].s[0];
    static const char only[] = "farmhash64";
    int64_t bytes = 0;
    char *row = NULL;
    if (method->size != strlen(only) || memcmp(method->data, only, method->size) != 0) {
        return sx_error(SX_INVALID_ARGUMENT, "method is %s, expected %s", SX_QUOTE(method), only);
    }
    if (!sx_mul_i64(each, (int64_t)item, &bytes)) {
        return sx_error(SX_RESOURCE_EXHAUSTED, "a row has too many bytes");
    }
    SX_TRY(sx_string_room(c, bytes, &row));
    for (int64_t r = 0; r < rows; r++) {
        uint64_t hash = 0;
        if (x->dtype == SX_STRING) {
            for (int64_t k = 0; k < each; k++) {
                const sx_bytes *s = &c->in[0].s[r * each + k];
                hash = sx_fingerprint64(s->data, s->size);
                memcpy(row + (size_t)k * item, &hash, item);
            }
        } else {
            const sx_host_tensor part = {.type = sx_type_of(x->dtype, each),
                                         .data = c->in[0].b +
                                                 (size_t)(r * each) * sx_carrier_bytes(x->dtype)};
            sx_host_store(&part, row);
        }
        if (x->dtype != SX_STRING || x->rank > 1) {
            hash = sx_fingerprint64(row, (size_t)bytes);
        }
        for (int64_t k = 0; k < BYTES; k++) {
            c->out[0].i[r * BYTES + k] = (int64_t)(hash >> 8 * k & 0xff);
        }
    }
    return SX_OK;
}

const sx_op_def sx_op_fingerprint = {
    SX_OP_NAMED(fingerprint),
    .n_in = 2,
    .n_out = 1,
    .flags = SX_OP_HOST | SX_OP_NO_GRAD | SX_OP_NO_TF,
    .infer = fingerprint_infer,
    .host = fingerprint_host,
    SX_FROM_TF({.op = "Fingerprint"}),
};
