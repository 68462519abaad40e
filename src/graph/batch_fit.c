/* See batch_fit.h. */
#include "graph/batch_fit.h"

#include <string.h>

#include "base/checked.h"
#include "base/memory.h"
#include "graph/attr_operands.h"
#include "graph/builder.h"

enum {
    DIVISIBLE = 5040, /* a multiple of what an operator may divide the batch by */
    SMALL = 64,       /* sizes up to it are all tried */
    LARGE = 1 << 24,  /* of what needs some number of examples at least */
    MAX_SUGGESTED = 128,
    MAX_TRIES = 1 + MAX_SUGGESTED + SMALL + 1,
    MAX_UNITS = 32,
};

sx_status sx_infer_with_batch(const sx_op_def *op, const void *attrs, const sx_type *inputs,
                              int n_inputs, int64_t batch, sx_type outputs[SX_MAX_OUTPUTS],
                              int *out_n)
{
    sx_type *types = sx_alloc((size_t)n_inputs + 1, sizeof(*types));
    char *fixed = sx_alloc(1, op->attrs_bytes + 1);
    sx_status status = types == NULL || fixed == NULL ? sx_no_memory("inferring types") : SX_OK;
    if (status == SX_OK) {
        if (attrs != NULL) {
            memcpy(fixed, attrs, op->attrs_bytes);
        }
        sx_attrs_put_batch(op, fixed, batch);
        for (int i = 0; i < n_inputs; i++) {
            types[i] = sx_type_with_batch(inputs[i], batch);
        }
        status = sx_infer_types(op, fixed, types, n_inputs, outputs, out_n);
    }
    sx_free(types);
    sx_free(fixed);
    return status;
}

/* Different sizes: a file can have nodes of many inputs that fit no batch. */
typedef struct units {
    int64_t v[MAX_UNITS];
    int n;
} units;

typedef struct search {
    const sx_op_def *op;
    const void *attrs;
    const sx_type *inputs;
    int n_inputs;
    units dims;     /* c of the dimensions c*N of the inputs */
    units examples; /* elements of an input for N = 1 */
    int64_t tried[MAX_TRIES];
    int n_tried;
    int64_t found; /* 0 = none yet */
} search;

static void add_unit(units *u, int64_t size)
{
    bool had = size <= 0 || u->n == MAX_UNITS;
    for (int i = 0; i < u->n && !had; i++) {
        had = u->v[i] == size;
    }
    if (!had) {
        u->v[u->n++] = size;
    }
}

static void try_size(search *s, int64_t batch)
{
    sx_type outputs[SX_MAX_OUTPUTS];
    int n = 0;
    bool had = s->found != 0 || batch <= 0;
    for (int i = 0; i < s->n_tried && !had; i++) {
        had = s->tried[i] == batch;
    }
    if (had) {
        return;
    }
    s->tried[s->n_tried++] = batch;
    sx_status status =
        sx_infer_with_batch(s->op, s->attrs, s->inputs, s->n_inputs, batch, outputs, &n);
    s->found = status == SX_OK ? batch : 0;
    sx_status_free(status);
}

/* The batch of which `size` is so many units. */
static void try_units(search *s, const units *u, int64_t size)
{
    for (int i = 0; i < u->n && s->n_tried < 1 + MAX_SUGGESTED; i++) {
        try_size(s, size > 0 && size % u->v[i] == 0 ? size / u->v[i] : 0);
    }
}

/* What a list of sizes suggests: each of them, their product, and how often an example goes into
 * that. */
static void try_list(search *s, const int64_t *v, int n)
{
    int64_t product = 1;
    for (int k = 0; k < n; k++) {
        try_units(s, &s->dims, v[k]);
        if (v[k] > 0 && !sx_mul_i64(product, v[k], &product)) {
            return;
        }
    }
    try_units(s, &s->dims, product);
    try_units(s, &s->examples, product);
}

static bool has_batch(const search *s)
{
    bool any = false;
    for (int i = 0; i < s->n_inputs; i++) {
        any = any || sx_type_has_batch(&s->inputs[i]);
    }
    for (int i = 0; i < s->op->n_attrs && s->attrs != NULL; i++) {
        const sx_ints *list = (const void *)((const char *)s->attrs + s->op->attrs[i].offset);
        for (int k = 0; s->op->attrs[i].kind == SX_ATTR_SHAPE && k < list->n; k++) {
            any = any || sx_dim_is_batch(list->v[k]);
        }
    }
    return any;
}

int64_t sx_batch_that_fits(const sx_op_def *op, const void *attrs, const sx_type *inputs,
                           int n_inputs)
{
    search s = {.op = op, .attrs = attrs, .inputs = inputs, .n_inputs = n_inputs};
    if (!has_batch(&s)) {
        return 0;
    }
    for (int i = 0; i < n_inputs; i++) {
        const sx_type one = sx_type_with_batch(inputs[i], 1);
        for (int d = 0; d < inputs[i].rank; d++) {
            add_unit(&s.dims, sx_dim_is_batch(inputs[i].dims[d]) ? -inputs[i].dims[d] : 0);
        }
        add_unit(&s.examples, sx_type_elems(&one));
    }
    try_size(&s, DIVISIBLE);
    for (int i = 0; i < n_inputs; i++) {
        try_list(&s, inputs[i].dims, SX_MAX(inputs[i].rank, 0));
    }
    for (int i = 0; i < op->n_attrs && attrs != NULL; i++) {
        const void *field = (const char *)attrs + op->attrs[i].offset;
        const bool list = op->attrs[i].kind == SX_ATTR_SHAPE || op->attrs[i].kind == SX_ATTR_INTS;
        if (list) {
            try_list(&s, ((const sx_ints *)field)->v, ((const sx_ints *)field)->n);
        } else if (op->attrs[i].kind == SX_ATTR_INT) {
            try_units(&s, &s.dims, *(const int64_t *)field);
        }
    }
    for (int64_t batch = 1; batch <= SMALL; batch++) {
        try_size(&s, batch);
    }
    try_size(&s, LARGE);
    return s.found;
}
