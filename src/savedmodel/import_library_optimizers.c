/* Imports the optimizers' nodes, which assign a variable and its slots: those of TensorFlow 1, and
 * of Keras before version 3, by the formulas of optimizers.def. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "savedmodel/import_library_ops.h"

typedef struct optimizer {
    const char *name; /* Apply<name>, ResourceApply<name> */
    int variables;    /* inputs that it assigns */
    const char *inputs;
    const char *formulas;  /* assignments in their order, to variables and other names */
    const char *attribute; /* a bool; NULL = none */
    bool value;            /* of the attribute, with which these formulas hold instead: */
    const char *others;
} optimizer;

static const optimizer optimizers[] = {
#define SX_TF_OPTIMIZER(name, ...) {#name, __VA_ARGS__},
#include "savedmodel/optimizers.def"
};

/* Moves *name behind the word, if it begins with it. */
static bool skip(const char **name, const char *word)
{
    const bool begins = strncmp(*name, word, strlen(word)) == 0;
    *name += begins ? strlen(word) : 0;
    return begins;
}

static const optimizer *find_optimizer(const char *tf_op, bool *out_sparse)
{
    const char *name = tf_op;
    (void)skip(&name, "Resource");
    *out_sparse = skip(&name, "Sparse");
    const bool applies = skip(&name, "Apply");
    for (size_t i = 0; i < SX_COUNT(optimizers) && applies; i++) {
        if (strcmp(name, optimizers[i].name) == 0) {
            return &optimizers[i];
        }
    }
    return NULL;
}

int sx_tf_optimizer_variables(const char *tf_op)
{
    bool sparse;
    const optimizer *o = find_optimizer(tf_op, &sparse);
    return o != NULL ? o->variables : 0;
}

/* ---- Formulas ----
 *
 *   sum      product (+ - product)...
 *   product  factor (* / factor)...
 *   factor   number | name | function(sum, ...) | (sum) */

enum { MOST_NAMES = 16 };

typedef struct formula {
    const sx_tf_op_node *x;
    sx_dtype dtype;
    const char *at;
    const char *names[MOST_NAMES];
    int lengths[MOST_NAMES];
    sx_value values[MOST_NAMES];
    int n;
} formula;

static const struct {
    const char *name;
    const sx_op_def *op;
    int n_in;
} functions[] = {
    {"sqrt", &sx_op_sqrt, 1},       {"square", &sx_op_square, 1}, {"abs", &sx_op_abs, 1},
    {"sign", &sx_op_sign, 1},       {"exp", &sx_op_exp, 1},       {"maximum", &sx_op_maximum, 2},
    {"minimum", &sx_op_minimum, 2}, {"pow", &sx_op_pow, 2},
};

/* Takes the character if it is next, and what separates words after it. */
static bool take(formula *f, char c)
{
    if (*f->at != c) {
        return false;
    }
    f->at += 1 + strspn(f->at + 1, " ");
    return true;
}

/* A name, which ends where *out_length says. */
static const char *take_name(formula *f, int *out_length)
{
    const char *name = f->at;
    while (isalnum((unsigned char)*f->at) || *f->at == '_') {
        f->at++;
    }
    *out_length = (int)(f->at - name);
    f->at += strspn(f->at, " ");
    return name;
}

static bool is_name(const char *name, int length, const char *other)
{
    return (int)strlen(other) == length && memcmp(other, name, (size_t)length) == 0;
}

/* The place of a name, which gets one if it is new. */
static int place_of(formula *f, const char *name, int length)
{
    int i = 0;
    while (i < f->n &&
           (f->lengths[i] != length || memcmp(f->names[i], name, (size_t)length) != 0)) {
        i++;
    }
    if (i == f->n && f->n < MOST_NAMES) {
        f->names[i] = name;
        f->lengths[i] = length;
        f->values[i] = SX_NO_VALUE;
        f->n++;
    }
    return i;
}

static sx_status read_sum(formula *f, sx_value *out);

static sx_status read_factor(formula *f, sx_value *out)
{
    if (take(f, '(')) {
        SX_TRY(read_sum(f, out));
        (void)take(f, ')');
        return SX_OK;
    }
    if (isdigit((unsigned char)*f->at)) {
        char *end;
        const double number = strtod(f->at, &end);
        f->at = end + strspn(end, " ");
        return sx_tf_number(f->x, f->dtype, number, out);
    }
    int length;
    const char *name = take_name(f, &length);
    if (!take(f, '(')) {
        *out = f->values[place_of(f, name, length)];
        return SX_OK;
    }
    sx_value in[2] = {SX_NO_VALUE, SX_NO_VALUE};
    SX_TRY(read_sum(f, &in[0]));
    if (take(f, ',')) {
        SX_TRY(read_sum(f, &in[1]));
    }
    (void)take(f, ')');
    for (size_t i = 0; i < SX_COUNT(functions); i++) {
        if (is_name(name, length, functions[i].name)) {
            return sx_tf_build(f->x, functions[i].op, NULL, out, functions[i].n_in, in);
        }
    }
    return sx_error(SX_INTERNAL, "no function %.*s", length, name);
}

static sx_status read_product(formula *f, sx_value *out)
{
    SX_TRY(read_factor(f, out));
    while (*f->at == '*' || *f->at == '/') {
        const sx_op_def *op = *f->at == '*' ? &sx_op_mul : &sx_op_div;
        sx_value in[2] = {*out, SX_NO_VALUE};
        (void)take(f, *f->at);
        SX_TRY(read_factor(f, &in[1]));
        SX_TRY(sx_tf_build(f->x, op, NULL, out, 2, in));
    }
    return SX_OK;
}

static sx_status read_sum(formula *f, sx_value *out)
{
    SX_TRY(read_product(f, out));
    while (*f->at == '+' || *f->at == '-') {
        const sx_op_def *op = *f->at == '+' ? &sx_op_add : &sx_op_sub;
        sx_value in[2] = {*out, SX_NO_VALUE};
        (void)take(f, *f->at);
        SX_TRY(read_product(f, &in[1]));
        SX_TRY(sx_tf_build(f->x, op, NULL, out, 2, in));
    }
    return SX_OK;
}

/* ---- Rows ----
 *
 * The sparse form of an operator has the gradient of some rows, and after it their indices. The
 * formulas are applied to those rows of the variables. A row that occurs twice would be updated
 * twice in turn, which no formula says; optimizers add up such rows first. */

/* Checks that no index occurs twice. `rows`: how many the variable has. */
static sx_status require_unique(const sx_tf_op_node *x, sx_value indices, int64_t rows)
{
    const sx_tensor_scatter_attrs add = {.how = SX_SCATTER_ADD};
    const sx_assert_attrs attrs = {
        .message = sx_arena_printf(&x->im->arena,
                                   "%s %s: an index occurs more than once; add up the gradients of "
                                   "equal indices first, as TensorFlow's optimizers do",
                                   x->n->node->op, x->n->node->name)};
    sx_value one, zero, ones, counts, shape, holds, y = SX_NO_VALUE;
    if (attrs.message == NULL) {
        return sx_import_memory();
    }
    SX_TRY(sx_tf_number(x, SX_I32, 1, &one));
    SX_TRY(sx_tf_number(x, SX_I32, 0, &zero));
    SX_TF_BUILD(x, &shape, shape, (&(sx_cast_attrs){SX_I64}), indices);
    SX_TRY(sx_tf_build_open(x, &sx_op_broadcast_to, NULL, one, "shape", shape, &ones));
    SX_TF_BUILD(x, &counts, broadcast_to, (&(sx_shape_attrs){{1, {rows}}}), zero);
    SX_TRY(sx_tf_expand(x, indices, -1, &indices));
    SX_TF_BUILD(x, &counts, tensor_scatter, &add, counts, indices, ones);
    SX_TF_BUILD(x, &holds, less_equal, NULL, counts, one);
    SX_TF_BUILD(x, &holds, reduce_all, (&(sx_reduce_attrs){.axes = {1, {0}}}), holds);
    return sx_tf_build(x, &sx_op_assert, &attrs, &y, 1, (const sx_value[]){holds});
}

/* ---- Nodes ---- */

/* Input i in the variables' type: a step is an int64. */
static sx_status number_operand(formula *f, int i, sx_value *out)
{
    SX_TRY(sx_tf_operand(f->x, i, out));
    if (sx_type_of_value(f->x->b, *out).dtype != f->dtype) {
        SX_TF_BUILD(f->x, out, cast, (&(sx_cast_attrs){f->dtype}), *out);
    }
    return SX_OK;
}

static sx_status import_optimizer(sx_tf_op_node *x)
{
    bool sparse;
    const optimizer *o = find_optimizer(x->n->node->op, &sparse);
    const sx_tensor_scatter_attrs update = {.how = SX_SCATTER_UPDATE};
    formula f = {.x = x, .at = o->inputs};
    const sx_tf_thing *handles[MOST_NAMES] = {NULL};
    sx_value whole[MOST_NAMES], indices = SX_NO_VALUE, places = SX_NO_VALUE;
    for (int i = 0, input = 0; *f.at != '\0'; i++, input++) {
        int length;
        const char *name = take_name(&f, &length);
        const int at = place_of(&f, name, length);
        if (i < o->variables) {
            SX_TRY(sx_tf_require_handle(x, i, &handles[i]));
            SX_TRY(sx_tf_read_handle(x, handles[i], &whole[i]));
            f.dtype = handles[0]->variable.dtype;
            f.values[at] = whole[i];
            continue;
        }
        SX_TRY(number_operand(&f, input, &f.values[at]));
        if (sparse && (is_name(name, length, "grad") || is_name(name, length, "delta"))) {
            SX_TRY(sx_tf_operand(x, ++input, &indices));
        }
    }
    for (int i = 0; i < o->variables && sparse; i++) {
        const sx_type *type = &handles[i]->variable;
        if (type->rank < 1 || type->dims[0] != handles[0]->variable.dims[0]) {
            return sx_error(SX_DATA_LOSS, "variable %d is %s, variable 0 %s, expected as many rows",
                            i, SX_TEXT(type), SX_TEXT(&handles[0]->variable));
        }
        if (i == 0) {
            SX_TRY(require_unique(x, indices, type->dims[0]));
            SX_TRY(sx_tf_expand(x, indices, -1, &places));
        }
        SX_TF_BUILD(x, &f.values[i], gather, NULL, whole[i], indices);
    }
    const bool other =
        o->attribute != NULL && sx_tf_read_bool(&x->tf.head, o->attribute, !o->value) == o->value;
    f.at = other ? o->others : o->formulas;
    while (*f.at != '\0') {
        int length;
        const char *name = take_name(&f, &length);
        const int at = place_of(&f, name, length);
        (void)take(&f, '=');
        SX_TRY(read_sum(&f, &f.values[at]));
        (void)take(&f, ';');
    }
    for (int i = 0; i < o->variables; i++) {
        if (sparse) {
            SX_TF_BUILD(x, &f.values[i], tensor_scatter, &update, whole[i], places, f.values[i]);
        }
        SX_TRY(sx_tf_assign(x, handles[i], f.values[i]));
    }
    return SX_OK;
}

const sx_tf_op_row sx_tf_optimizer_rows[] = {
#define SX_TF_OPTIMIZER(name, ...) \
    {"Apply" #name, import_optimizer, NULL}, {"ResourceApply" #name, import_optimizer, NULL},
#define SX_TF_SPARSE_OPTIMIZER(name, ...)                                            \
    SX_TF_OPTIMIZER(name, __VA_ARGS__){"SparseApply" #name, import_optimizer, NULL}, \
        {"ResourceSparseApply" #name, import_optimizer, NULL},
#include "savedmodel/optimizers.def"
    {NULL, NULL, NULL},
};
