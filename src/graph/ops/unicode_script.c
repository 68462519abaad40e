/* unicode_script: the script of each character, by ICU's number.
 *
 *   x        int32 code points
 *   returns  int32 of x's shape: 25 is Latin, 0 common; -1 for what is no code point
 *
 * Errors   INVALID_ARGUMENT  dtype
 * Source   TensorFlow UnicodeScript; ICU uscript_getScript (Unicode Standard Annex #24) */
#include <unicode/uscript.h>

#include "graph/ops/host_ops.h"

static sx_status unicode_script_infer(sx_infer_context *c)
{
    SX_TRY(sx_require_dtype("x", &c->inputs[0], SX_I32));
    c->outputs[0] = c->inputs[0];
    return SX_OK;
}

static sx_status unicode_script_host(const sx_kernel_call *c)
{
    for (int64_t k = 0, n = sx_type_elems(&c->in[0].type); k < n; k++) {
        UErrorCode error = U_ZERO_ERROR;
        const UScriptCode script = uscript_getScript((UChar32)c->in[0].i[k], &error);
        c->out[0].i[k] = U_SUCCESS(error) ? script : -1;
    }
    return SX_OK;
}

const sx_op_def sx_op_unicode_script = {
    SX_OP_NAMED(unicode_script),
    .n_in = 1,
    .n_out = 1,
    .batch_rule = SX_RULE_EXAMPLES,
    .flags = SX_OP_HOST | SX_OP_NO_GRAD | SX_OP_NO_TF,
    .infer = unicode_script_infer,
    .host = unicode_script_host,
    SX_FROM_TF({.op = "UnicodeScript"}),
};
