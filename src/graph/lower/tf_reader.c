/* See tf_reader.h. */
#include "graph/lower/tf_reader.h"

#include <pthread.h>
#include <string.h>

#include <sextant/complex.h>

#include "base/name_index.h"
#include "graph/attr_operands.h"
#include "graph/op_def.h"

/* ---- Attributes ---- */

static bool find(const sx_tf_node *n, const char *name, sx_tf_attr_kind kind, sx_tf_attr *out)
{
    return n->attr(n, name, out) && out->kind == kind;
}

bool sx_tf_read_bool(const sx_tf_node *n, const char *name, bool otherwise)
{
    sx_tf_attr a;
    return find(n, name, SX_TF_ATTR_BOOL, &a) ? a.b : otherwise;
}

int64_t sx_tf_read_int(const sx_tf_node *n, const char *name, int64_t otherwise)
{
    sx_tf_attr a;
    return find(n, name, SX_TF_ATTR_INT, &a) ? a.i : otherwise;
}

double sx_tf_read_float(const sx_tf_node *n, const char *name, double otherwise)
{
    sx_tf_attr a;
    return find(n, name, SX_TF_ATTR_FLOAT, &a) ? (double)a.f : otherwise;
}

sx_dtype sx_tf_read_dtype(const sx_tf_node *n, const char *name, sx_dtype otherwise)
{
    sx_tf_attr a;
    const sx_dtype dtype = find(n, name, SX_TF_ATTR_TYPE, &a) ? (sx_dtype)a.i : otherwise;
    return sx_dtype_is_complex(dtype) ? SX_DTYPE_NONE : dtype; /* what no operator accepts */
}

bool sx_tf_read_is(const sx_tf_node *n, const char *name, const char *text, bool otherwise)
{
    sx_tf_attr a;
    return find(n, name, SX_TF_ATTR_STRING, &a) ? strcmp(a.s, text) == 0 : otherwise;
}

bool sx_tf_read_ints(const sx_tf_node *n, const char *name, int count, int64_t *out)
{
    sx_tf_attr a;
    if (!find(n, name, SX_TF_ATTR_INTS, &a) || a.count != count) {
        return false;
    }
    memcpy(out, a.ints, (size_t)count * sizeof(*out));
    return true;
}

/* The attributes of `op` that the node has by the same name. */
static sx_status read_same(const sx_op_def *op, const sx_tf_node *n, void *attrs)
{
    for (int i = 0; i < op->n_attrs; i++) {
        const sx_attr_def *row = &op->attrs[i];
        void *field = (char *)attrs + row->offset;
        sx_tf_attr a;
        if (!row->tf) {
            continue;
        }
        switch (row->kind) {
        case SX_ATTR_INT:
            *(int64_t *)field = sx_tf_read_int(n, row->name, (int64_t)row->tf_number);
            break;
        case SX_ATTR_FLOAT:
            *(double *)field = sx_tf_read_float(n, row->name, row->tf_number);
            break;
        case SX_ATTR_BOOL:
            *(bool *)field = sx_tf_read_bool(n, row->name, row->tf_number != 0);
            break;
        case SX_ATTR_DTYPE:
            *(sx_dtype *)field = sx_tf_read_dtype(n, row->name, (sx_dtype)row->tf_number);
            break;
        case SX_ATTR_INTS:
            if (find(n, row->name, SX_TF_ATTR_INTS, &a)) {
                if (a.count > SX_MAX_RANK) {
                    return sx_error(SX_UNIMPLEMENTED, "%s has %d numbers, at most %d are supported",
                                    row->name, a.count, SX_MAX_RANK);
                }
                ((sx_ints *)field)->n = a.count;
                memcpy(((sx_ints *)field)->v, a.ints, (size_t)a.count * sizeof(int64_t));
            }
            break;
        case SX_ATTR_STRING:
            *(const char **)field = row->tf_text;
            if (find(n, row->name, SX_TF_ATTR_STRING, &a)) {
                if (strlen(a.s) != (size_t)a.count) {
                    return sx_error(SX_UNIMPLEMENTED, "%s contains a zero byte", row->name);
                }
                *(const char **)field = a.s;
            }
            break;
        default: /* no other kind has SX_ATTR_TF */
            break;
        }
    }
    return SX_OK;
}

sx_status sx_tf_read_value(const sx_tf_node *n, int input, const sx_tensor **out)
{
    if (input >= n->n_in) {
        return sx_error(SX_DATA_LOSS, "input %d is missing", input);
    }
    *out = n->values[input];
    return *out != NULL ? SX_OK : sx_error(SX_UNIMPLEMENTED, "input %d is not a constant", input);
}

/* ---- Nodes ---- */

static sx_name_index ops_by_form;

static void index_forms(void)
{
    for (int i = 0; i < SX_OPID_COUNT; i++) {
        const sx_tf_form *form = sx_op_table[i]->from_tf;
        for (; form != NULL && form->op != NULL; form++) {
            sx_name_index_add(&ops_by_form, form->op, sx_op_table[i]);
        }
    }
}

const sx_op_def *sx_op_find_tf(const char *tf_op, const sx_tf_form **out_form)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, index_forms);
    const sx_op_def *op = sx_name_index_find(&ops_by_form, tf_op);
    const sx_tf_form *form = op != NULL ? op->from_tf : NULL;
    while (form != NULL && strcmp(form->op, tf_op) != 0) {
        form++;
    }
    *out_form = form != NULL ? form : *out_form;
    return op;
}

static int find_attr(const sx_op_def *op, const char *name)
{
    int row = 0;
    while (row < op->n_attrs && strcmp(op->attrs[row].name, name) != 0) {
        row++;
    }
    return row;
}

/* Whether the types say enough to read an attribute's value: axes need the rank, a shape needs the
 * dimensions. */
static bool can_read(const sx_attr_def *attr, const sx_type *types, int n)
{
    bool ranks = true, dims = true;
    for (int i = 0; i < n; i++) {
        ranks = ranks && types[i].rank != SX_UNKNOWN_RANK;
        for (int d = 0; d < types[i].rank; d++) {
            dims = dims && (types[i].dims[d] >= 0 || sx_dim_is_batch(types[i].dims[d]));
        }
    }
    const bool is_list = attr->kind == SX_ATTR_INTS || attr->kind == SX_ATTR_INT;
    return attr->kind == SX_ATTR_SHAPE ? ranks && dims : ranks || !is_list;
}

sx_status sx_tf_read_open_node(const sx_op_def *op, const sx_tf_form *form, const sx_tf_node *n,
                               void *attrs, int *inputs, int *out_n_inputs, sx_tf_open_attr *open,
                               int *out_n_open)
{
    int n_operands = 0, n_inputs = 0, at[SX_TF_FORM_OPERANDS];
    if (n->n_in > SX_TF_MAX_INPUTS) {
        return sx_error(SX_UNIMPLEMENTED, "it has %d inputs, at most %d are supported", n->n_in,
                        SX_TF_MAX_INPUTS);
    }
    if (!sx_tf_read_is(n, "data_format", "NHWC", true)) {
        return sx_error(SX_UNIMPLEMENTED, "data_format is not NHWC");
    }
    for (; n_operands < SX_TF_FORM_OPERANDS && form->operands[n_operands].attr != NULL;
         n_operands++) {
        const int input = form->operands[n_operands].input;
        at[n_operands] = input < 0 ? n->n_in + input : input;
    }
    for (int i = 0; i < n->n_in && (op->n_in == SX_VARIADIC || n_inputs < op->n_in); i++) {
        bool is_operand = false;
        for (int k = 0; k < n_operands; k++) {
            is_operand = is_operand || at[k] == i;
        }
        if (!is_operand) {
            inputs[n_inputs++] = i;
        }
    }
    if (op->n_in == SX_VARIADIC ? n_inputs == 0 : n_inputs < op->n_in) {
        return sx_error(SX_DATA_LOSS, "input %d is missing", n->n_in);
    }
    *out_n_inputs = n_inputs;
    *out_n_open = 0;
    SX_TRY(read_same(op, n, attrs));
    if (form->attrs != NULL) {
        SX_TRY(form->attrs(n, attrs));
    }
    for (int k = 0; k < n_operands; k++) {
        const int row = find_attr(op, form->operands[k].attr);
        bool resolved = false;
        if (form->operands[k].attr[0] == '\0') {
            continue;
        }
        if (at[k] >= n->n_in) {
            return sx_error(SX_DATA_LOSS, "input %d is missing", at[k]);
        }
        const sx_tensor *value = n->values[at[k]];
        if (value != NULL && can_read(&op->attrs[row], n->types, n_inputs)) {
            const sx_known_operand known = {.value = value, .type = &value->type};
            sx_status status =
                sx_attr_from_operand(op, row, attrs, n->types, n_inputs, &known, &resolved);
            if (status != SX_OK) {
                sx_status refused =
                    sx_error(SX_UNIMPLEMENTED, "input %d: %s", at[k], sx_status_message(status));
                sx_status_free(status);
                return refused;
            }
        }
        if (!resolved) {
            open[(*out_n_open)++] = (sx_tf_open_attr){row, at[k]};
        }
    }
    return SX_OK;
}
