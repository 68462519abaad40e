/* Imports the parsers of records whose keys are attributes, or operands one by one: as those of
 * version 2, which take vectors of keys. */
#include "savedmodel/import_library_ops.h"

#include <string.h>

/* A vector of the strings. */
static sx_status string_vector(const sx_tf_op_node *x, const ProtobufCBinaryData *list, size_t n,
                               sx_value *out)
{
    sx_bytes *texts = sx_arena_array(&x->im->arena, n + 1, sx_bytes);
    if (texts == NULL) {
        return sx_import_memory();
    }
    for (size_t i = 0; i < n; i++) {
        texts[i] = (sx_bytes){list[i].data, list[i].len};
    }
    return sx_tf_constant(x, sx_type_of(SX_STRING, (int64_t)n), texts, out);
}

/* The list of strings that an attribute is, or none. */
static const Tensorflow__AttrValue__ListValue *strings_of(const sx_tf_op_node *x, const char *name)
{
    static const Tensorflow__AttrValue__ListValue none = {.n_s = 0};
    const Tensorflow__AttrValue *a = sx_tf_node_attr(x->n->node, name);
    return a != NULL && a->value_case == TENSORFLOW__ATTR_VALUE__VALUE_LIST && a->list != NULL
               ? a->list
               : &none;
}

static sx_status attr_keys(const sx_tf_op_node *x, const char *name, sx_value *out)
{
    const Tensorflow__AttrValue__ListValue *list = strings_of(x, name);
    return string_vector(x, list->s, list->n_s, out);
}

/* Inputs [from, from + n), scalars, as a vector. */
static sx_status input_keys(const sx_tf_op_node *x, int from, int n, sx_value *out)
{
    sx_value *keys = sx_arena_array(&x->im->arena, n + 1, sx_value);
    if (keys == NULL) {
        return sx_import_memory();
    }
    if (n == 0) {
        return string_vector(x, NULL, 0, out);
    }
    for (int i = 0; i < n; i++) {
        SX_TRY(sx_tf_operand(x, from + i, &keys[i]));
        SX_TF_BUILD(x, &keys[i], reshape, (&(sx_shape_attrs){{1, {1}}}), keys[i]);
    }
    return sx_tf_build(x, &sx_op_concat, &(sx_axis_attrs){0}, out, n, keys);
}

/* The node that `like` is read as, with this node's attributes, which have the same names. Outputs
 * `skipped` of it, if any, are not among this node's. */
static sx_status add_parser(sx_tf_op_node *x, const char *like, const sx_value *in, int n_in,
                            int skip, int n_skipped)
{
    const sx_tf_form *form = NULL;
    const sx_op_def *op = sx_op_find_tf(like, &form);
    void *attrs = sx_arena_alloc(&x->im->arena, op->attrs_bytes, 1);
    sx_value y = SX_NO_VALUE;
    int n_out = 0, at = 0;
    if (attrs == NULL) {
        return sx_import_memory();
    }
    SX_TRY(form->attrs(&x->tf.head, attrs));
    SX_TRY(sx_tf_add_node(x, op, attrs, in, n_in, NULL, 0, &y, &n_out));
    for (int i = 0; i < n_out && at < x->n->n_out; i++) {
        if (i < skip || i >= skip + n_skipped) {
            sx_tf_set(x, at++, sx_output_of(y, i));
        }
    }
    return SX_OK;
}

/* ParseSingleExample(record, defaults...) {keys} */
static sx_status import_single(sx_tf_op_node *x)
{
    sx_value *in = sx_arena_array(&x->im->arena, x->n->n_in + 5, sx_value);
    if (in == NULL) {
        return sx_import_memory();
    }
    SX_TRY(sx_tf_operand(x, 0, &in[0]));
    SX_TRY(string_vector(x, NULL, 0, &in[1]));
    SX_TRY(attr_keys(x, "sparse_keys", &in[2]));
    SX_TRY(attr_keys(x, "dense_keys", &in[3]));
    SX_TRY(string_vector(x, NULL, 0, &in[4]));
    for (int i = 1; i < x->n->n_in; i++) {
        SX_TRY(sx_tf_operand(x, i, &in[4 + i]));
    }
    return add_parser(x, "ParseExampleV2", in, x->n->n_in + 4, 0, 0);
}

/* Which of the keys may be missing, those of `allowed`. */
static sx_status missing_flags(const sx_tf_op_node *x, const sx_bytes *keys, size_t n,
                               const sx_bytes *allowed, size_t n_allowed, sx_value *out)
{
    uint8_t *flags = sx_arena_array(&x->im->arena, n + 1, uint8_t);
    if (flags == NULL) {
        return sx_import_memory();
    }
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < n_allowed && flags[i] == 0; k++) {
            flags[i] =
                keys[i].size == allowed[k].size &&
                (keys[i].size == 0 || memcmp(keys[i].data, allowed[k].data, keys[i].size) == 0);
        }
    }
    return sx_tf_constant(x, sx_type_of(SX_BOOL, (int64_t)n), flags, out);
}

static sx_bytes *bytes_of(const sx_tf_op_node *x, const Tensorflow__AttrValue__ListValue *list)
{
    sx_bytes *out = sx_arena_array(&x->im->arena, list->n_s + 1, sx_bytes);
    for (size_t i = 0; i < list->n_s && out != NULL; i++) {
        out[i] = (sx_bytes){list->s[i].data, list->s[i].len};
    }
    return out;
}

/* ParseSequenceExample(records, names, defaults...) {keys} */
static sx_status import_sequence(sx_tf_op_node *x)
{
    const Tensorflow__AttrValue__ListValue *dense = strings_of(x, "feature_list_dense_keys"),
                                           *missing = strings_of(
                                               x, "feature_list_dense_missing_assumed_empty");
    const sx_bytes *keys = bytes_of(x, dense), *allowed = bytes_of(x, missing);
    sx_value *in = sx_arena_array(&x->im->arena, x->n->n_in + 9, sx_value);
    if (in == NULL || keys == NULL || allowed == NULL) {
        return sx_import_memory();
    }
    SX_TRY(sx_tf_operand(x, 0, &in[0]));
    SX_TRY(sx_tf_operand(x, 1, &in[1]));
    SX_TRY(attr_keys(x, "context_sparse_keys", &in[2]));
    SX_TRY(attr_keys(x, "context_dense_keys", &in[3]));
    SX_TRY(string_vector(x, NULL, 0, &in[4]));
    SX_TRY(attr_keys(x, "feature_list_sparse_keys", &in[5]));
    SX_TRY(attr_keys(x, "feature_list_dense_keys", &in[6]));
    SX_TRY(string_vector(x, NULL, 0, &in[7]));
    SX_TRY(missing_flags(x, keys, dense->n_s, allowed, missing->n_s, &in[8]));
    for (int i = 2; i < x->n->n_in; i++) {
        SX_TRY(sx_tf_operand(x, i, &in[7 + i]));
    }
    return add_parser(x, "ParseSequenceExampleV2", in, x->n->n_in + 7, 0, 0);
}

/* The number of features that an attribute says, of those that there are inputs for. */
static int count_of(const sx_tf_op_node *x, const char *name)
{
    const int64_t n = sx_tf_read_int(&x->tf.head, name, 0);
    return n < 0 || n > x->n->n_in ? x->n->n_in : (int)n;
}

/* ParseSingleSequenceExample(record, lists that may be missing, keys of the context's sparse and
 * dense features, keys of sparse and of dense lists, defaults..., name) */
static sx_status import_single_sequence(sx_tf_op_node *x)
{
    const int n[4] = {count_of(x, "Ncontext_sparse"), count_of(x, "Ncontext_dense"),
                      count_of(x, "Nfeature_list_sparse"), count_of(x, "Nfeature_list_dense")};
    const int first = 2 + n[0] + n[1] + n[2], defaults = first + n[3];
    const sx_tensor *allowed = x->n->n_in > 1 ? x->n->in[1].known : NULL;
    sx_value *in = sx_arena_array(&x->im->arena, n[1] + 10, sx_value);
    sx_bytes *keys = sx_arena_array(&x->im->arena, n[3] + 1, sx_bytes);
    if (in == NULL || keys == NULL) {
        return sx_import_memory();
    }
    if (x->n->n_in != defaults + n[1] + 1) {
        return sx_error(SX_DATA_LOSS, "it has %d inputs, expected %d", x->n->n_in,
                        defaults + n[1] + 1);
    }
    for (int i = 0; i < n[3] && allowed != NULL; i++) {
        const sx_tensor *key = x->n->in[first + i].known;
        allowed =
            key != NULL && key->type.dtype == SX_STRING && key->type.rank == 0 ? allowed : NULL;
        if (allowed != NULL) {
            keys[i] = *(const sx_bytes *)key->data;
        }
    }
    if (n[3] > 0 && (allowed == NULL || allowed->type.dtype != SX_STRING)) {
        return sx_tf_unsupported(
            "the keys of its dense lists, or of those that may be missing, are "
            "not constants");
    }
    SX_TRY(sx_tf_operand(x, 0, &in[0]));
    SX_TRY(string_vector(x, NULL, 0, &in[1]));
    SX_TRY(input_keys(x, 2, n[0], &in[2]));
    SX_TRY(input_keys(x, 2 + n[0], n[1], &in[3]));
    SX_TRY(string_vector(x, NULL, 0, &in[4]));
    SX_TRY(input_keys(x, 2 + n[0] + n[1], n[2], &in[5]));
    SX_TRY(input_keys(x, first, n[3], &in[6]));
    SX_TRY(string_vector(x, NULL, 0, &in[7]));
    SX_TRY(missing_flags(x, keys, (size_t)n[3], allowed != NULL ? allowed->data : NULL,
                         allowed != NULL && n[3] > 0 ? (size_t)sx_type_elems(&allowed->type) : 0,
                         &in[8]));
    for (int i = 0; i < n[1]; i++) {
        SX_TRY(sx_tf_operand(x, defaults + i, &in[9 + i]));
    }
    /* without the lengths of the dense lists */
    return add_parser(x, "ParseSequenceExampleV2", in, 9 + n[1], 3 * n[0] + n[1] + 3 * n[2] + n[3],
                      n[3]);
}

const sx_tf_op_row sx_tf_example_rows[] = {
    {"ParseSingleExample", import_single, NULL},
    {"ParseSequenceExample", import_sequence, NULL},
    {"ParseSingleSequenceExample", import_single_sequence, NULL},
    {NULL, NULL, NULL},
};
