/* string_join: the inputs' strings, one after the other.
 *
 *   x...       strings: scalars, and any number of one shape
 *   separator  between two of them
 *   returns    strings of that shape
 *
 * Errors   INVALID_ARGUMENT  no input, shapes differ
 * Source   TensorFlow StringJoin */
#include <string.h>

#include "graph/ops/host_ops.h"

static const sx_attr_def string_join_attrs[] = {
    SX_ATTR_TF(sx_separator_attrs, separator, SX_ATTR_STRING)};

static sx_status string_join_infer(sx_infer_context *c)
{
    if (c->n_inputs < 1) {
        return sx_error(SX_INVALID_ARGUMENT, "no input, expected at least one of strings");
    }
    for (int i = 0; i < c->n_inputs; i++) {
        SX_TRY(sx_require_dtype("an input", &c->inputs[i], SX_STRING));
    }
    return sx_infer_same_or_scalar(c->inputs, c->n_inputs, &c->outputs[0]);
}

static char *put(char *to, const sx_bytes *s)
{
    if (s->size > 0) {
        memcpy(to, s->data, s->size);
    }
    return to + s->size;
}

/* Each string is made where it stays: a model that joins a string with itself again and again is
 * refused by the size of the next, before there is memory for it. */
static sx_status string_join_host(const sx_kernel_call *c)
{
    const sx_separator_attrs *attrs = c->attrs;
    const sx_bytes separator = {attrs->separator != NULL ? attrs->separator : "",
                                attrs->separator != NULL ? strlen(attrs->separator) : 0};
    for (int64_t k = 0, n = sx_type_elems(&c->out[0].type); k < n; k++) {
        size_t size = 0;
        bool fits = true;
        char *room = NULL;
        for (int i = 0; i < c->n_in; i++) {
            const sx_bytes *s = &c->in[i].s[c->in[i].type.rank == 0 ? 0 : k];
            fits = fits && sx_add_size(size, s->size, &size) &&
                   sx_add_size(size, i > 0 ? separator.size : 0, &size);
        }
        if (!fits || size > INT64_MAX) {
            return sx_error(SX_RESOURCE_EXHAUSTED, "the sizes of the strings overflow");
        }
        SX_TRY(sx_string_room(c, (int64_t)size, &room));
        c->out[0].s[k] = (sx_bytes){room, size};
        for (int i = 0; i < c->n_in; i++) {
            const sx_bytes *s = &c->in[i].s[c->in[i].type.rank == 0 ? 0 : k];
            room = put(room, i > 0 ? &separator : &(sx_bytes){"", 0});
            room = put(room, s);
        }
    }
    return SX_OK;
}

static void string_join_to_tf(sx_tf_writer *w, const sx_tf_op *op)
{
    sx_tf_same(w, op, &sx_op_string_join, "StringJoin", sx_tf_attrs(sx_tf_attr_int("N", op->n_in)));
}

static const sx_op_sample string_join_samples[] = {
    {.name = "two",
     .inputs = {SX_SAMPLE_TEXT(SX_BATCH, 2), SX_SAMPLE_TEXT(SX_BATCH, 2)},
     .n_inputs = 2},
    {.name = "scalars",
     .inputs = {SX_SAMPLE_SCALAR(SX_STRING, SX_FILL_TEXT), SX_SAMPLE_TEXT(SX_BATCH),
                SX_SAMPLE_SCALAR(SX_STRING, SX_FILL_TEXT)},
     .n_inputs = 3,
     .attrs = &(const sx_separator_attrs){.separator = ", \"é\""}},
    {.name = "one", .inputs = {SX_SAMPLE_TEXT(3)}, .n_inputs = 1},
};

const sx_op_def sx_op_string_join = {
    SX_OP_NAMED(string_join),
    .n_in = SX_VARIADIC,
    .n_out = 1,
    .batch_rule = SX_RULE_EXAMPLES,
    .flags = SX_OP_HOST | SX_OP_NO_GRAD,
    SX_OP_ATTRS(sx_separator_attrs, string_join_attrs),
    .infer = string_join_infer,
    .host = string_join_host,
    .to_tf = string_join_to_tf,
    SX_FROM_TF({.op = "StringJoin"}),
    SX_OP_SAMPLES(string_join_samples),
};
