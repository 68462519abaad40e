/* See specialize.h.
 *
 *   walk      each node, in program order, becomes known (folded), or a row of the trace
 *   live      what results and effects need
 *   time of each row: host steps even, device steps odd; LATE after all others
 *   emit      rows of one time and kind become a step
 *
 * A `val` is a value of the trace: of the function, or of one that was inlined into it. */
#include "graph/specialize.h"

#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/memory.h"
#include "graph/attr_operands.h"
#include "graph/attr_rows.h"
#include "graph/builder.h"
#include "graph/host.h"
#include "graph/ops/attrs.h"

enum {
    MAX_NODES = 1 << 18,
    MAX_CALLS = 64,
    MAX_FOLDED_BYTES = 64 << 10,
    MAX_FOLDED_TOTAL_BYTES = 64 << 20,
    MAX_COUNTS = 64, /* elements of an integer tensor that may depend on the batch */
    PROBE_BATCH = 7919,
    LATE = INT32_MAX,
    NO_ROW = -1, /* an argument or a constant */
};

typedef struct val {
    sx_type type;
    const sx_tensor *known; /* in the arena of the program or the library */
    const sx_count *counts; /* [elements], if they depend on the batch */
    const char *variable;   /* of a handle */
    int row, output; /* its row; if that is NO_ROW, `output` is the argument's number, or -1 */
    int slot;        /* + 1, once it has one */
} val;

typedef struct trace_row {
    const sx_node *node; /* of the library */
    const void *attrs;   /* the node's attributes, as far as resolved; static regions */
    int *in;             /* [n_in]: vals; then those of attribute operands */
    int n_in, n_operands;
    int first, n_out; /* vals */
    const char *name; /* call/node */
    const char *variable;
    bool resolved, on_host, live;
    bool control; /* on_host: the host runs its regions */
    int time;
} trace_row;

typedef struct specializer {
    sx_specialized *out;
    sx_arena *arena; /* out's */
    sx_binding binding;
    sx_specialize_limits limits;
    val *vals;
    trace_row *rows;
    int n_vals, val_capacity, n_rows, row_capacity;
    int64_t folded_bytes;
    int64_t *nodes; /* walked, in all regions */
    int depth;      /* of calls */
} specializer;

static sx_status no_memory(void)
{
    return sx_no_memory("specializing a function");
}

/* ---- Types ---- */

/* Whether a device can hold it: a known rank, counts and c·N, and numbers. */
static bool is_device_type(const sx_type *t)
{
    bool fits = t->rank >= 0 && sx_dtype_bytes(t->dtype) > 0;
    for (int i = 0; i < t->rank && fits; i++) {
        fits = t->dims[i] >= 0 || sx_dim_is_batch(t->dims[i]);
    }
    return fits;
}

/* Known except for the batch, of any dtype. */
static bool is_shape_known(const sx_type *t)
{
    sx_type numbers = *t;
    numbers.dtype = SX_F32;
    return is_device_type(&numbers);
}

/* The type as a late call's function declares it: c·N here is unknown there. */
static sx_type without_batch(sx_type t)
{
    for (int i = 0; i < t.rank; i++) {
        t.dims[i] = sx_dim_is_batch(t.dims[i]) ? SX_UNKNOWN_DIM : t.dims[i];
    }
    return t;
}

static sx_status contradicts(const char *what, int i, const sx_type *got, const sx_type *declared)
{
    char a[SX_TYPE_TEXT], b[SX_TYPE_TEXT];
    return sx_error(SX_INVALID_ARGUMENT, "%s %d is %s, but is declared as %s", what, i,
                    sx_type_format(got, a, sizeof(a)), sx_type_format(declared, b, sizeof(b)));
}

/* ---- Vals and rows ---- */

static sx_status grow(void **array, int *capacity, int count, size_t elem_bytes)
{
    if (count < *capacity) {
        return SX_OK;
    }
    const int wanted = SX_MAX(64, 2 * *capacity);
    void *grown = sx_realloc(*array, (size_t)wanted, elem_bytes);
    if (grown == NULL) {
        return no_memory();
    }
    *array = grown;
    *capacity = wanted;
    return SX_OK;
}

static sx_status new_val(specializer *s, const val *v, int *out)
{
    SX_TRY(grow((void **)&s->vals, &s->val_capacity, s->n_vals, sizeof(*s->vals)));
    *out = s->n_vals;
    s->vals[s->n_vals++] = *v;
    return SX_OK;
}

static sx_status known_val(specializer *s, sx_type type, const void *data, int *out)
{
    sx_tensor *t = sx_arena_new(s->arena, sx_tensor);
    if (t == NULL) {
        return no_memory();
    }
    *t = (sx_tensor){type, (void *)data};
    return new_val(s, &(val){.type = type, .known = t, .row = NO_ROW, .output = -1}, out);
}

/* ---- Folding ---- */

static int64_t bytes_of(const sx_tensor *t)
{
    if (t->type.dtype != SX_STRING) {
        return SX_MAX(sx_type_bytes(&t->type), 0);
    }
    const int64_t n = sx_type_elems(&t->type);
    int64_t bytes = n * (int64_t)sizeof(sx_bytes);
    for (int64_t i = 0; i < n; i++) {
        bytes += (int64_t)((const sx_bytes *)t->data)[i].size;
    }
    return bytes;
}

static int64_t room_of(const sx_type *t)
{
    const int64_t n = sx_type_elems(t);
    return t->dtype == SX_STRING ? (n < 0 ? -1 : n * (int64_t)sizeof(sx_bytes)) : sx_type_bytes(t);
}

/* Computes a node whose inputs are all known; *out_folded is false if its results are not small. */
static sx_status fold(specializer *s, const sx_op_def *op, const void *attrs, const int *in,
                      int n_in, const sx_type *inferred, int n_out, int *out_vals, bool *out_folded)
{
    sx_tensor *t = sx_arena_array(s->arena, n_in + n_out, sx_tensor);
    sx_type *types = sx_arena_array(s->arena, n_in + n_out, sx_type);
    int64_t had = 0, made = 0;
    *out_folded = false;
    if (t == NULL || types == NULL) {
        return no_memory();
    }
    for (int i = 0; i < n_in; i++) {
        t[i] = *s->vals[in[i]].known;
        types[i] = t[i].type;
        had += bytes_of(&t[i]);
    }
    memcpy(types + n_in, inferred, (size_t)n_out * sizeof(*types));
    if (op->host_types != NULL) {
        SX_TRY(sx_host_types(op, attrs, t, n_in, types + n_in, n_out, s->arena));
    }
    for (int i = 0; i < n_out; i++) {
        const int64_t bytes = room_of(&types[n_in + i]);
        if (bytes < 0) {
            return SX_OK;
        }
        made += bytes;
    }
    const int64_t most =
        s->limits.folded_bytes > 0 ? s->limits.folded_bytes : MAX_FOLDED_TOTAL_BYTES;
    const int64_t scratch = sx_host_scratch_bytes(op, types, n_in, types + n_in, n_out);
    if (made > had + MAX_FOLDED_BYTES || made > most - s->folded_bytes || scratch < 0 ||
        scratch > 16 * (had + MAX_FOLDED_BYTES)) {
        return SX_OK;
    }
    for (int i = n_in; i < n_in + n_out; i++) {
        t[i] = (sx_tensor){types[i], sx_arena_alloc(s->arena, (size_t)room_of(&types[i]) + 1, 1)};
        if (t[i].data == NULL) {
            return no_memory();
        }
    }
    sx_arena carriers;
    sx_arena_init(&carriers, 0);
    void *room = sx_arena_alloc(&carriers, (size_t)scratch, 1);
    sx_status status = room == NULL
                           ? no_memory()
                           : sx_host_run(op, attrs, t, n_in, t + n_in, n_out, room, s->arena);
    sx_arena_deinit(&carriers);
    SX_TRY(status);
    s->folded_bytes += made;
    for (int i = 0; i < n_out; i++) {
        SX_TRY(known_val(s, types[n_in + i], t[n_in + i].data, &out_vals[i]));
    }
    *out_folded = true;
    return SX_OK;
}

/* ---- Integers that depend on the batch ---- */

static bool read_count(const val *v, int64_t k, sx_count *out)
{
    if (v->counts != NULL) {
        *out = v->counts[k];
        return true;
    }
    int64_t carried[1];
    const size_t elem = sx_dtype_bytes(v->type.dtype);
    if (v->known == NULL || !sx_dtype_is_integer(v->type.dtype) || v->type.dtype == SX_U64) {
        return false;
    }
    sx_host_load(&(sx_host_tensor){.type = sx_scalar_type(v->type.dtype), .i = carried},
                 (const char *)v->known->data + (size_t)k * elem);
    *out = (sx_count){0, carried[0]};
    return true;
}

static bool count_zip(const sx_op_def *op, sx_count a, sx_count b, sx_count *out)
{
    if (op->id == SX_OPID_mul) {
        if (a.n != 0 && b.n != 0) {
            return false;
        }
        return sx_mul_i64(a.n, b.k, &out->n) && sx_mul_i64(b.n, a.k, &b.n) &&
               sx_add_i64(out->n, b.n, &out->n) && sx_mul_i64(a.k, b.k, &out->k);
    }
    if (op->id == SX_OPID_sub) {
        b = (sx_count){-b.n, -b.k};
    }
    return (op->id == SX_OPID_add || op->id == SX_OPID_sub) && sx_add_i64(a.n, b.n, &out->n) &&
           sx_add_i64(a.k, b.k, &out->k);
}

/* Runs an operator that only moves elements on the elements' indices, to find out where they go. */
static sx_status count_moved(specializer *s, const sx_op_def *op, const void *attrs, const int *in,
                             int n_in, const sx_type *type, sx_count *out, bool *out_done)
{
    enum { MOST = 8 };
    sx_tensor t[MOST + 1];
    sx_type types[MOST + 1];
    sx_count all[MOST * MAX_COUNTS + 1] = {{0, 0}}; /* 0 = elements that the operator adds: zeros */
    int64_t ids[(MOST + 1) * MAX_COUNTS], n_all = 1;
    if (n_in > MOST || op->host_types != NULL) {
        return SX_OK;
    }
    for (int i = 0; i < n_in; i++) {
        const val *v = &s->vals[in[i]];
        const bool moved = op->moved == SX_MOVES_ALL || (op->moved >> i & 1) != 0;
        if (!moved) {
            if (v->known == NULL) {
                return SX_OK;
            }
            t[i] = *v->known;
            types[i] = t[i].type;
            continue;
        }
        types[i] = v->type;
        types[i].dtype = SX_I64;
        t[i] = (sx_tensor){types[i], ids + (size_t)i * MAX_COUNTS};
        for (int64_t k = 0, n = sx_type_elems(&v->type); k < n; k++) {
            if (!read_count(v, k, &all[n_all])) {
                return SX_OK;
            }
            ((int64_t *)t[i].data)[k] = n_all++;
        }
    }
    types[n_in] = *type;
    types[n_in].dtype = SX_I64;
    t[n_in] = (sx_tensor){types[n_in], ids + (size_t)n_in * MAX_COUNTS};
    const int64_t scratch = sx_host_scratch_bytes(op, types, n_in, &types[n_in], 1);
    void *room = scratch < 0 ? NULL : sx_arena_alloc(s->arena, (size_t)scratch, 1);
    if (room == NULL) {
        return no_memory();
    }
    SX_TRY(sx_host_run(op, attrs, t, n_in, &t[n_in], 1, room, s->arena));
    for (int64_t k = 0, n = sx_type_elems(type); k < n; k++) {
        out[k] = all[((const int64_t *)t[n_in].data)[k]];
    }
    *out_done = true;
    return SX_OK;
}

/* The counts of a node's only output, if they can be followed; else NULL. */
static sx_status follow_counts(specializer *s, const sx_op_def *op, const void *attrs,
                               const int *in, int n_in, const sx_type *type, const sx_count **out)
{
    const int64_t n = sx_type_elems(type);
    bool holds = op->id == SX_OPID_shape, done = false;
    *out = NULL;
    if (n < 0 || n > MAX_COUNTS || !sx_dtype_is_integer(type->dtype) || n_in < 1) {
        return SX_OK;
    }
    for (int i = 0; i < n_in && op->id != SX_OPID_shape; i++) {
        const int64_t elems = sx_type_elems(&s->vals[in[i]].type);
        holds = holds || s->vals[in[i]].counts != NULL;
        if (elems < 0 || elems > MAX_COUNTS) {
            return SX_OK;
        }
    }
    sx_count *counts = holds ? sx_arena_array(s->arena, n + 1, sx_count) : NULL;
    if (counts == NULL) {
        return holds ? no_memory() : SX_OK;
    }
    if (op->id == SX_OPID_shape) {
        const sx_type *x = &s->vals[in[0]].type;
        for (int64_t k = 0; k < n; k++) {
            counts[k] = x->dims[k] < 0 ? (sx_count){-x->dims[k], 0} : (sx_count){0, x->dims[k]};
        }
        done = true;
    } else if (op->id == SX_OPID_cast || op->id == SX_OPID_identity) {
        done = true;
        for (int64_t k = 0; k < n && done; k++) {
            done = read_count(&s->vals[in[0]], k, &counts[k]);
        }
    } else if (op->moved != 0) {
        SX_TRY(count_moved(s, op, attrs, in, n_in, type, counts, &done));
    } else if (n_in == 2) {
        const val *a = &s->vals[in[0]], *b = &s->vals[in[1]];
        done = true;
        for (int64_t k = 0; k < n && done; k++) {
            sx_count x, y;
            /* Scalars broadcast; other shapes must agree. */
            const bool same = (a->type.rank == 0 || sx_type_elems(&a->type) == n) &&
                              (b->type.rank == 0 || sx_type_elems(&b->type) == n);
            done = same && read_count(a, a->type.rank == 0 ? 0 : k, &x) &&
                   read_count(b, b->type.rank == 0 ? 0 : k, &y) && count_zip(op, x, y, &counts[k]);
        }
    }
    *out = done ? counts : NULL;
    return SX_OK;
}

/* ---- Walking ---- */

static sx_status walk(specializer *s, const sx_graph *g, const int *args, const char *prefix,
                      int *results);

static sx_status name_node(const sx_node *n, sx_status status)
{
    if (status == SX_OK) {
        return SX_OK;
    }
    const char *slash = strrchr(n->file, '/');
    return n->file[0] == '\0'
               ? sx_status_annotate(status, __FILE__, __LINE__, "%s \"%s\"", n->op->name, n->name)
               : sx_status_annotate(status, __FILE__, __LINE__, "%s:%d: %s \"%s\"",
                                    slash != NULL ? slash + 1 : n->file, n->line, n->op->name,
                                    n->name);
}

/* Replaces a node with a body: its results become the node's. */
static sx_status inline_body(specializer *s, const sx_graph *body, const int *args, int n_args,
                             const char *prefix, int *results)
{
    const int64_t most = s->limits.calls > 0 ? s->limits.calls : MAX_CALLS;
    if (s->depth >= most) {
        return sx_error(SX_RESOURCE_EXHAUSTED, "calls nest deeper than %lld", (long long)most);
    }
    for (int i = 0; i < n_args; i++) {
        const sx_type *declared = sx_graph_type(body, body->args[i].value);
        if (!sx_type_may_be(&s->vals[args[i]].type, declared)) {
            return contradicts("argument", i, &s->vals[args[i]].type, declared);
        }
    }
    s->depth++;
    SX_TRY(walk(s, body, args, prefix, results));
    s->depth--;
    return SX_OK;
}

/* Replaces N in attributes with the batch of a late call. */
static void put_batch(const sx_op_def *op, void *attrs, int64_t batch)
{
    for (int i = 0; i < op->n_attrs && batch > 0; i++) {
        sx_ints *list = (void *)((char *)attrs + op->attrs[i].offset);
        for (int k = 0; op->attrs[i].kind == SX_ATTR_SHAPE && k < list->n; k++) {
            list->v[k] *= sx_dim_is_batch(list->v[k]) ? -batch : 1;
        }
    }
}

static bool has_regions(const sx_op_def *op)
{
    bool any = false;
    for (int i = 0; i < op->n_attrs; i++) {
        any = any || op->attrs[i].kind == SX_ATTR_BODY;
    }
    return any;
}

/* Infers types; if that fails and the batch is symbolic, tries some batch size, to find out whether
 * the node is invalid or only needs to know the batch. */
static sx_status infer(const specializer *s, const sx_op_def *op, const void *attrs, const int *in,
                       int n_in, sx_type out[SX_MAX_OUTPUTS], int *out_n, bool *out_waits)
{
    sx_type *types = sx_alloc((size_t)n_in + 1, sizeof(*types));
    char *fixed = sx_alloc(1, op->attrs_bytes + 1);
    sx_status status = types == NULL || fixed == NULL ? no_memory() : SX_OK;
    bool has_batch = false;
    *out_waits = false;
    for (int i = 0; i < n_in && status == SX_OK; i++) {
        types[i] = s->vals[in[i]].type;
        has_batch = has_batch || sx_type_has_batch(&types[i]);
    }
    if (status == SX_OK) {
        status = sx_infer_types(op, attrs, types, n_in, out, out_n);
    }
    if (status != SX_OK && has_batch && fixed != NULL && types != NULL) {
        memcpy(fixed, attrs, op->attrs_bytes);
        put_batch(op, fixed, PROBE_BATCH);
        for (int i = 0; i < n_in; i++) {
            types[i] = sx_type_with_batch(types[i], PROBE_BATCH);
        }
        sx_status probed = sx_infer_types(op, fixed, types, n_in, out, out_n);
        if (probed == SX_OK) {
            sx_status_free(status);
            status = SX_OK;
            *out_waits = true;
        }
        sx_status_free(probed);
    }
    sx_free(types);
    sx_free(fixed);
    return status;
}

static sx_status static_region(specializer *s, const sx_node *n, int attr_row, const int *in,
                               int first, int n_in, int n_whole, sx_graph **out);

/* The integer that a scalar of a loop's region is in every iteration: a constant, or an operand
 * that is known and that the body does not change. */
static bool loop_constant(const specializer *s, const sx_node *n, const sx_graph *region,
                          sx_value v, const int *in, int64_t *out)
{
    const sx_graph *body = ((const sx_while_attrs *)n->attrs)->body;
    const sx_node *maker = sx_graph_maker(region, v);
    val x = {.known = NULL};
    sx_count count;
    if (maker->op == &sx_op_constant) {
        x.known = &((const sx_constant_attrs *)maker->attrs)->value;
        x.type = x.known->type;
    }
    for (int i = 0; i < region->n_args; i++) {
        const bool kept = i >= n->n_outputs || body->results[i].value.id == body->args[i].value.id;
        if (region->args[i].value.id == v.id && kept) {
            x = s->vals[in[i]];
        }
    }
    if (x.counts != NULL || sx_type_elems(&x.type) != 1 || !read_count(&x, 0, &count)) {
        return false;
    }
    *out = count.k;
    return true;
}

/* A bound of the iterations of a loop that counts: condition i < limit, body i + step, all known.
 * 0 = it is not one, or counts further than a device should without being asked. */
static int64_t count_iterations(const specializer *s, const sx_node *n, const int *in)
{
    enum { MOST = 1 << 24 };
    const sx_while_attrs *a = n->attrs;
    const sx_node *test = sx_graph_maker(a->condition, a->condition->results[0].value);
    int64_t limit, step, distance;
    sx_count begin;
    for (int i = 0; i < n->n_outputs && test->op == &sx_op_less; i++) {
        const sx_node *next = sx_graph_maker(a->body, a->body->results[i].value);
        const uint32_t before = a->body->args[i].value.id;
        const val *x = &s->vals[in[i]];
        if (test->inputs[0].id != a->condition->args[i].value.id || next->op != &sx_op_add ||
            (next->inputs[0].id != before && next->inputs[1].id != before)) {
            continue;
        }
        const sx_value by = next->inputs[next->inputs[0].id == before ? 1 : 0];
        if (x->counts != NULL || sx_type_elems(&x->type) != 1 || !read_count(x, 0, &begin) ||
            (x->type.dtype != SX_I32 && x->type.dtype != SX_I64) ||
            !loop_constant(s, n, a->condition, test->inputs[1], in, &limit) ||
            !loop_constant(s, n, a->body, by, in, &step)) {
            return 0;
        }
        /* the counter must not wrap before it reaches the limit */
        const bool counts = step >= 1 && step < MOST && limit <= INT32_MAX - step &&
                            sx_add_i64(limit, -begin.k, &distance) && distance / step < MOST;
        return !counts ? 0 : distance <= 0 ? 1 : distance / step + 1;
    }
    return 0;
}

/* Makes the regions static, if that is possible for all of them: *out_static. */
static sx_status make_regions_static(specializer *s, const sx_node *n, void *attrs, const int *in,
                                     bool *out_static)
{
    const bool is_if = n->op == &sx_op_if, is_while = n->op == &sx_op_while;
    int whole = 0; /* index of the first operand whose known value is valid in the region */
    *out_static = true;
    for (int i = 0; i < n->n_inputs && *out_static; i++) {
        *out_static = is_device_type(&s->vals[in[i]].type);
    }
    if (is_while) {
        const sx_while_attrs *a = n->attrs;
        /* A device cannot be interrupted: a loop without a bound runs on the host. */
        const int64_t trips = a->trips > 0 ? a->trips : count_iterations(s, n, in);
        ((sx_while_attrs *)attrs)->trips = trips;
        *out_static = *out_static && trips > 0;
        whole = n->n_outputs;
    } else if (n->op == &sx_op_map) {
        const sx_map_attrs *a = n->attrs;
        whole = (int)a->mapped;
        *out_static = *out_static && whole >= 0 && whole <= n->n_inputs;
    }
    for (int row = 0; row < n->op->n_attrs && *out_static; row++) {
        sx_graph *made = NULL;
        if (n->op->attrs[row].kind != SX_ATTR_BODY) {
            continue;
        }
        SX_TRY(static_region(s, n, row, in, is_if ? 1 : 0, n->n_inputs - is_if, whole, &made),
               "region %s", n->op->attrs[row].name);
        *out_static = made != NULL;
        memcpy((char *)attrs + n->op->attrs[row].offset, &made, sizeof(made));
    }
    return SX_OK;
}

static sx_status add_row(specializer *s, const trace_row *r, const sx_type *types, int n_out,
                         int *out_vals)
{
    SX_TRY(grow((void **)&s->rows, &s->row_capacity, s->n_rows, sizeof(*s->rows)));
    const int at = s->n_rows;
    s->rows[at] = *r;
    s->rows[at].n_out = n_out;
    s->rows[at].first = s->n_vals;
    s->n_rows++;
    for (int i = 0; i < n_out; i++) {
        SX_TRY(new_val(s, &(val){.type = types[i], .row = at, .output = i}, &out_vals[i]));
    }
    return SX_OK;
}

/* read_variable, assign_variable */
static sx_status walk_variable(specializer *s, const sx_node *n, const int *in, const char *name,
                               int *out_vals)
{
    const char *variable = s->vals[in[0]].variable;
    const sx_variable_spec *v =
        variable != NULL ? sx_library_find_variable(s->out->library, variable) : NULL;
    if (v == NULL) {
        return variable == NULL
                   ? sx_error(SX_INVALID_ARGUMENT,
                              "its handle is chosen at run time; only a handle that is known "
                              "beforehand can be used")
                   : sx_error(SX_NOT_FOUND, "the library has no variable \"%.100s\"", variable);
    }
    const bool assigns = n->op == &sx_op_assign_variable;
    const sx_type *got = assigns ? &s->vals[in[1]].type : &v->type;
    if (!sx_type_may_be(got, &v->type)) {
        char a[SX_TYPE_TEXT], b[SX_TYPE_TEXT];
        return sx_error(SX_INVALID_ARGUMENT, "variable \"%.100s\" is %s, but the value is %s",
                        variable, sx_type_format(&v->type, a, sizeof(a)),
                        sx_type_format(got, b, sizeof(b)));
    }
    int *kept = sx_arena_memdup(s->arena, in, (size_t)n->n_inputs * sizeof(*in));
    if (kept == NULL) {
        return no_memory();
    }
    return add_row(s,
                   &(trace_row){.node = n,
                                .attrs = n->attrs,
                                .in = kept,
                                .n_in = n->n_inputs,
                                .name = name,
                                .variable = variable,
                                .resolved = is_device_type(got) && !sx_type_has_batch(got)},
                   assigns && is_shape_known(got) ? got : &v->type, 1, out_vals);
}

/* Whether the regions have as many args and results as the node says. */
static sx_status check_regions(const sx_node *n)
{
    const bool is_if = n->op == &sx_op_if, is_while = n->op == &sx_op_while;
    for (int row = 0, k = 0; row < n->op->n_attrs; row++) {
        if (n->op->attrs[row].kind != SX_ATTR_BODY) {
            continue;
        }
        const sx_graph *body = sx_node_body(n, row);
        const int n_args = n->n_inputs - is_if, n_results = is_while && k == 0 ? 1 : n->n_outputs;
        k++;
        if (body->n_args != n_args || body->n_results != n_results ||
            (is_while && n->n_outputs > n->n_inputs)) {
            return sx_error(SX_INVALID_ARGUMENT,
                            "region %s takes %d values and gives %d, expected %d and %d for a node "
                            "of %d inputs and %d outputs",
                            n->op->attrs[row].name, body->n_args, body->n_results, n_args,
                            n_results, n->n_inputs, n->n_outputs);
        }
    }
    return SX_OK;
}

/* Any other node: `in` are its inputs' vals, then its attribute operands'. */
static sx_status walk_plain(specializer *s, const sx_graph *g, const sx_node *n, const int *in,
                            const char *name, int *out_vals)
{
    const sx_op_def *op = n->op;
    const bool regions = has_regions(op);
    void *attrs = sx_arena_memdup(s->arena, n->attrs, op->attrs_bytes);
    int *kept =
        sx_arena_memdup(s->arena, in, (size_t)(n->n_inputs + n->n_attr_operands) * sizeof(*in));
    sx_type *in_types = sx_arena_array(s->arena, n->n_inputs + 1, sx_type);
    sx_type types[SX_MAX_OUTPUTS];
    bool resolved = true, shapes = true, all_known = true, waits = false, is_static = true;
    if (attrs == NULL || kept == NULL || in_types == NULL) {
        return no_memory();
    }
    put_batch(op, attrs, s->binding.batch);
    for (int i = 0; i < n->n_inputs; i++) {
        in_types[i] = s->vals[in[i]].type;
        shapes = shapes && is_shape_known(&in_types[i]);
        all_known = all_known && s->vals[in[i]].known != NULL;
        if (in_types[i].dtype == SX_RESOURCE && !regions) {
            return sx_error(SX_INVALID_ARGUMENT,
                            "input %d is a variable's handle, which %s cannot use", i, op->name);
        }
    }
    for (int i = 0; i < n->n_attr_operands; i++) {
        const val *v = &s->vals[in[n->n_inputs + i]];
        bool done = false;
        if (v->known != NULL || v->counts != NULL) {
            SX_TRY(sx_attr_from_operand(
                op, n->attr_operands[i].row, attrs, in_types, n->n_inputs,
                &(sx_known_operand){.value = v->known, .counts = v->counts, .type = &v->type},
                &done));
        }
        resolved = resolved && done;
    }
    for (int i = 0; i < n->n_outputs; i++) {
        types[i] = *sx_graph_type(g, sx_node_output(n, i));
    }
    if (regions) {
        SX_TRY(make_regions_static(s, n, attrs, in, &is_static));
    }
    /* A loop whose state changes its shape has no static form: it runs on the host. */
    if (resolved && shapes && is_static) {
        sx_type inferred[SX_MAX_OUTPUTS];
        int count = 0;
        sx_status status = infer(s, op, attrs, in, n->n_inputs, inferred, &count, &waits);
        if (status != SX_OK && regions) {
            sx_status_free(status);
            is_static = false;
        } else if (status != SX_OK) {
            return status;
        }
        if (is_static && !waits && count != n->n_outputs) {
            return sx_error(SX_INVALID_ARGUMENT, "%d outputs are declared, expected %d",
                            n->n_outputs, count);
        }
        for (int i = 0; i < n->n_outputs && is_static && !waits; i++) {
            if (!sx_type_may_be(&inferred[i], &types[i])) {
                return contradicts("output", i, &inferred[i], &types[i]);
            }
            types[i] = inferred[i];
        }
    }
    const bool control = regions && !is_static;
    if (control && op == &sx_op_map) {
        return sx_error(SX_UNIMPLEMENTED,
                        "its region cannot run on a device: strings, unknown shapes or variables");
    }
    if (all_known && resolved && !regions && op->host != NULL && op != &sx_op_constant) {
        bool folded = false;
        SX_TRY(fold(s, op, attrs, in, n->n_inputs, types, n->n_outputs, out_vals, &folded));
        if (folded) {
            return SX_OK;
        }
    }
    SX_TRY(add_row(s,
                   &(trace_row){.node = n,
                                .attrs = attrs,
                                .in = kept,
                                .n_in = n->n_inputs,
                                .n_operands = n->n_attr_operands,
                                .name = name,
                                .resolved = resolved && shapes && !waits,
                                .on_host = (op->flags & SX_OP_HOST) != 0 || control,
                                .control = control},
                   types, n->n_outputs, out_vals));
    if (n->n_outputs == 1 && resolved && shapes && !waits && !regions) {
        SX_TRY(
            follow_counts(s, op, attrs, in, n->n_inputs, &types[0], &s->vals[out_vals[0]].counts));
    }
    return SX_OK;
}

static sx_status walk_node(specializer *s, const sx_graph *g, const sx_node *n, const int *in,
                           const char *name, int *out_vals)
{
    SX_TRY(check_regions(n));
    if (n->op == &sx_op_constant) {
        const sx_constant_attrs *a = n->attrs;
        return known_val(s, a->value.type, a->value.data, &out_vals[0]);
    }
    if (n->op == &sx_op_variable_handle) {
        const sx_variable_handle_attrs *a = n->attrs;
        return new_val(s,
                       &(val){.type = sx_scalar_type(SX_RESOURCE),
                              .variable = a->name != NULL ? a->name : "",
                              .row = NO_ROW,
                              .output = -1},
                       &out_vals[0]);
    }
    if (n->op == &sx_op_call) {
        const sx_call_attrs *a = n->attrs;
        const sx_function *f =
            sx_library_find(s->out->library, a->function != NULL ? a->function : "");
        if (f == NULL || f->body->n_args != n->n_inputs || f->body->n_results != n->n_outputs) {
            return sx_error(SX_NOT_FOUND, "the library has no such function");
        }
        return inline_body(s, f->body, in, n->n_inputs, name, out_vals);
    }
    if (n->op == &sx_op_if && s->vals[in[0]].known != NULL &&
        s->vals[in[0]].type.dtype == SX_BOOL && sx_type_elems(&s->vals[in[0]].type) == 1) {
        const sx_if_attrs *a = n->attrs;
        const sx_graph *taken =
            *(const uint8_t *)s->vals[in[0]].known->data != 0 ? a->then_body : a->else_body;
        return inline_body(s, taken, in + 1, n->n_inputs - 1, name, out_vals);
    }
    if (n->op == &sx_op_read_variable || n->op == &sx_op_assign_variable) {
        return walk_variable(s, n, in, name, out_vals);
    }
    if (n->op == &sx_op_identity && n->n_inputs == 1) {
        out_vals[0] = in[0]; /* including handles */
        return SX_OK;
    }
    return walk_plain(s, g, n, in, name, out_vals);
}

static sx_status walk(specializer *s, const sx_graph *g, const int *args, const char *prefix,
                      int *results)
{
    const int64_t most = s->limits.nodes > 0 ? s->limits.nodes : MAX_NODES;
    int *env = sx_alloc((size_t)g->n_values + SX_NODE_MAX_INPUTS + SX_MAX_RANK * 4, sizeof(*env));
    sx_status status = env == NULL ? no_memory() : SX_OK;
    int *in = env != NULL ? env + g->n_values : NULL;
    for (int i = 0; i < g->n_args && status == SX_OK; i++) {
        env[g->args[i].value.id] = args[i];
    }
    for (int k = 0; k < g->n_nodes && status == SX_OK; k++) {
        const sx_node *n = &g->nodes[k];
        int out_vals[SX_MAX_OUTPUTS];
        if (n->op == &sx_op_parameter) {
            continue;
        }
        if (++*s->nodes > most) {
            status = sx_error(SX_RESOURCE_EXHAUSTED, "more than %lld nodes after inlining",
                              (long long)most);
            break;
        }
        for (int i = 0; i < n->n_inputs; i++) {
            in[i] = env[n->inputs[i].id];
        }
        for (int i = 0; i < n->n_attr_operands; i++) {
            in[n->n_inputs + i] = env[n->attr_operands[i].value.id];
        }
        const char *name =
            prefix[0] == '\0' ? n->name : sx_arena_printf(s->arena, "%s/%s", prefix, n->name);
        status = name == NULL ? no_memory() : name_node(n, walk_node(s, g, n, in, name, out_vals));
        for (int i = 0; i < n->n_outputs && status == SX_OK; i++) {
            env[sx_node_output(n, i).id] = out_vals[i];
        }
    }
    for (int i = 0; i < g->n_results && status == SX_OK; i++) {
        results[i] = env[g->results[i].value.id];
    }
    sx_free(env);
    return status;
}

/* ---- What is live, and when it runs ---- */

static bool has_effect(const trace_row *r)
{
    return (r->node->op->flags & SX_OP_EFFECT) != 0 || r->control;
}

static void mark_val(specializer *s, int v)
{
    if (s->vals[v].row != NO_ROW && s->vals[v].known == NULL) {
        s->rows[s->vals[v].row].live = true;
    }
}

/* Marks what results and effects need. Before times are known, all attribute operands count as
 * read; afterwards (`timed`), only those that remain operands. */
static void mark_live(specializer *s, const int *results, int n, bool timed)
{
    for (int k = 0; k < s->n_rows; k++) {
        s->rows[k].live = false;
    }
    for (int i = 0; i < n; i++) {
        mark_val(s, results[i]);
    }
    for (int k = s->n_rows - 1; k >= 0; k--) {
        trace_row *r = &s->rows[k];
        r->live = r->live || has_effect(r);
        for (int i = 0; i < r->n_in + r->n_operands && r->live; i++) {
            if (i < r->n_in || !timed || r->on_host || r->time == LATE) {
                mark_val(s, r->in[i]);
            }
        }
    }
}

/* A variable's rows so far. */
typedef struct order {
    const char *variable;
    int last; /* the latest time of a read or an assignment */
    int assigned;
} order;

static order *order_of(order *orders, int *n, const char *variable)
{
    for (int i = 0; i < *n; i++) {
        if (strcmp(orders[i].variable, variable) == 0) {
            return &orders[i];
        }
    }
    orders[*n] = (order){.variable = variable};
    return &orders[(*n)++];
}

static bool may_run_on_device(const specializer *s, const trace_row *r)
{
    bool fits = r->resolved && !r->on_host;
    for (int i = 0; i < r->n_in && fits; i++) {
        const val *v = &s->vals[r->in[i]];
        fits = is_device_type(&v->type) || v->variable != NULL;
    }
    for (int i = 0; i < r->n_out && fits; i++) {
        fits = is_device_type(&s->vals[r->first + i].type);
    }
    return fits;
}

static sx_status set_times(specializer *s)
{
    order *orders = sx_alloc((size_t)s->n_rows + 1, sizeof(*orders));
    int n_orders = 0, asserted = 0, controlled = 0; /* the latest so far */
    if (orders == NULL) {
        return no_memory();
    }
    for (int k = 0; k < s->n_rows; k++) {
        trace_row *r = &s->rows[k];
        if (!r->live) {
            continue;
        }
        const bool device = may_run_on_device(s, r);
        bool late = !device && !r->on_host;
        int time = r->on_host ? 0 : 1;
        for (int i = 0; i < r->n_in + r->n_operands; i++) {
            const val *v = &s->vals[r->in[i]];
            if (v->row == NO_ROW || v->known != NULL || (i >= r->n_in && r->resolved && device)) {
                continue;
            }
            const int t = s->rows[v->row].time;
            late = late || t == LATE;
            if (t == LATE) {
                continue;
            }
            /* after another kind: the next time; after its own kind: the same */
            time = SX_MAX(time, r->on_host ? t + (t & 1) : t + 1 - (t & 1));
        }
        order *o = r->variable != NULL ? order_of(orders, &n_orders, r->variable) : NULL;
        if (o != NULL) {
            const bool assigns = r->node->op == &sx_op_assign_variable;
            int after = SX_MAX(assigns ? o->last : o->assigned, assigns ? asserted : 0);
            after = SX_MAX(after, controlled); /* regions may assign any variable */
            late = late || after == LATE;
            time = late ? time : SX_MAX(time, after + 1 - (after & 1));
        }
        if (r->control || (r->node->op->flags & SX_OP_EFFECT)) {
            /* Regions may read and assign, too: they come after all previous rows of variables, and
             * before all later ones. */
            for (int i = 0; i < n_orders && r->control; i++) {
                late = late || orders[i].last == LATE;
                time = late ? time : SX_MAX(time, orders[i].last + (orders[i].last & 1));
            }
        }
        r->time = late ? LATE : time;
        if (o != NULL) {
            o->last = SX_MAX(o->last, r->time);
            o->assigned =
                r->node->op == &sx_op_assign_variable ? SX_MAX(o->assigned, r->time) : o->assigned;
        }
        if (r->node->op == &sx_op_assert || r->control) {
            asserted = SX_MAX(asserted, r->time);
            controlled = r->control ? SX_MAX(controlled, r->time) : controlled;
        }
    }
    sx_free(orders);
    return SX_OK;
}

/* ---- Emitting ---- */

static sx_status slot_of(specializer *s, int v, int *out)
{
    sx_specialized *p = s->out;
    val *x = &s->vals[v];
    if (x->slot == 0) {
        /* there are at most as many slots as vals, so the array is allocated once */
        sx_slot *slot = &p->slots[p->n_slots];
        *slot = (sx_slot){.type = x->type, .constant = x->known};
        if (x->variable != NULL) {
            sx_tensor *handle = sx_arena_new(s->arena, sx_tensor);
            if (handle == NULL) {
                return no_memory();
            }
            *handle = (sx_tensor){x->type, (void *)x->variable};
            slot->constant = handle;
        }
        x->slot = ++p->n_slots;
    }
    *out = x->slot - 1;
    return SX_OK;
}

/* A graph under construction from rows: a device's, a region's, a late call's. */
typedef struct emitter {
    specializer *s;
    sx_builder *b;
    sx_value *here; /* [n_vals] */
    int time;
    int *in, *out; /* vals */
    int n_in, n_out;
} emitter;

static sx_value build_row(const emitter *e, const trace_row *r, const sx_node_spec *spec_)
{
    sx_node_spec spec = *spec_;
    spec.name = sx_map_has(&e->b->node_names, r->name) ? NULL : r->name;
    spec.device = r->node->device;
    spec.file = r->node->file;
    spec.line = r->node->line;
    return sx_build_node(e->b, &spec);
}

/* The val in the graph: computed there, a constant of it, or a new input. */
static sx_value value_of(emitter *e, int v)
{
    specializer *s = e->s;
    const val *x = &s->vals[v];
    if (sx_value_is(e->here[v])) {
        return e->here[v];
    }
    if (x->variable != NULL) {
        e->here[v] = sx_build(e->b, &sx_op_variable_handle,
                              &(sx_variable_handle_attrs){.name = x->variable}, NULL, 0);
    } else if (x->known != NULL) {
        e->here[v] = sx_constant(e->b, *x->known);
    } else {
        char name[32];
        snprintf(name, sizeof(name), "v%d", v);
        e->here[v] = sx_input(e->b, name, e->time == LATE ? without_batch(x->type) : x->type);
        e->in[e->n_in++] = v;
    }
    return e->here[v];
}

static sx_status emit_row(emitter *e, const trace_row *r)
{
    specializer *s = e->s;
    const sx_node *n = r->node;
    const bool late = e->time == LATE;
    if (!late && r->variable != NULL) {
        const sx_variable_spec *v = sx_library_find_variable(s->out->library, r->variable);
        sx_value current = sx_variable(e->b, v);
        s->out->reads = true;
        if (n->op == &sx_op_assign_variable) {
            current = value_of(e, r->in[1]);
            sx_assign(e->b, r->variable, current);
            s->out->writes = true;
        }
        e->here[r->first] = current;
        return SX_OK;
    }
    sx_value *inputs = sx_arena_array(s->arena, r->n_in + 1, sx_value);
    sx_attr_operand *operands = sx_arena_array(s->arena, r->n_operands + 1, sx_attr_operand);
    sx_type *types = sx_arena_array(s->arena, r->n_out + 1, sx_type);
    if (inputs == NULL || operands == NULL || types == NULL) {
        return no_memory();
    }
    for (int i = 0; i < r->n_in; i++) {
        inputs[i] = value_of(e, r->in[i]);
    }
    for (int i = 0; i < r->n_operands && late; i++) {
        operands[i] = (sx_attr_operand){n->attr_operands[i].row, value_of(e, r->in[r->n_in + i])};
    }
    for (int i = 0; i < r->n_out; i++) {
        types[i] = without_batch(s->vals[r->first + i].type);
    }
    sx_value first = build_row(e, r,
                               &(sx_node_spec){.op = n->op,
                                               .attrs = late ? n->attrs : r->attrs,
                                               .inputs = inputs,
                                               .n_inputs = r->n_in,
                                               .attr_operands = operands,
                                               .n_attr_operands = late ? r->n_operands : 0,
                                               .types = late ? types : NULL,
                                               .n_types = r->n_out});
    for (int i = 0; i < r->n_out; i++) {
        e->here[r->first + i] = sx_output_of(first, i);
    }
    return SX_OK;
}

static sx_status emitter_begin(specializer *s, int time, emitter *e)
{
    *e = (emitter){.s = s,
                   .time = time,
                   .here = sx_alloc((size_t)s->n_vals + 1, sizeof(sx_value)),
                   .in = sx_alloc((size_t)s->n_vals + 1, sizeof(int)),
                   .out = sx_alloc((size_t)s->n_vals + 1, sizeof(int))};
    SX_TRY(time == LATE ? sx_builder_create_function(&e->b) : sx_builder_create(&e->b));
    return e->here == NULL || e->in == NULL || e->out == NULL ? no_memory() : SX_OK;
}

static void emitter_end(emitter *e)
{
    sx_builder_destroy(e->b);
    sx_free(e->here);
    sx_free(e->in);
    sx_free(e->out);
}

static sx_status keep_graph(specializer *s, sx_graph *g)
{
    sx_specialized *p = s->out;
    sx_graph **grown = sx_realloc(p->graphs, (size_t)p->n_graphs + 1, sizeof(*grown));
    if (grown == NULL) {
        sx_graph_destroy(g);
        return no_memory();
    }
    p->graphs = grown;
    p->graphs[p->n_graphs++] = g;
    return SX_OK;
}

static sx_status add_step(specializer *s, const sx_step *step, const int *in, const int *out)
{
    sx_specialized *p = s->out;
    int *slots = sx_arena_array(s->arena, step->n_in + step->n_out + 1, int);
    if (slots == NULL) {
        return no_memory();
    }
    for (int i = 0; i < step->n_in; i++) {
        SX_TRY(slot_of(s, in[i], &slots[i]));
    }
    for (int i = 0; i < step->n_out; i++) {
        SX_TRY(slot_of(s, out[i], &slots[step->n_in + i]));
    }
    p->steps[p->n_steps] = *step;
    p->steps[p->n_steps].in = slots;
    p->steps[p->n_steps].out = slots + step->n_in;
    p->n_steps++;
    return SX_OK;
}

/* Marks the vals of this time that the results or rows of other times read. */
static void mark_read(const specializer *s, int time, const int *results, int n_results, bool *read)
{
    for (int i = 0; i < n_results; i++) {
        read[results[i]] = true;
    }
    for (int k = 0; k < s->n_rows; k++) {
        const trace_row *r = &s->rows[k];
        for (int i = 0; r->live && r->time != time && i < r->n_in + r->n_operands; i++) {
            read[r->in[i]] = true;
        }
    }
}

/* All rows of an odd time, or of LATE, as one graph and step. */
static sx_status emit_graph(specializer *s, int time, const int *results, int n_results)
{
    emitter e;
    sx_graph *g = NULL;
    bool *read = sx_alloc((size_t)s->n_vals + 1, sizeof(bool));
    sx_status status = emitter_begin(s, time, &e);
    status = status == SX_OK && read == NULL ? no_memory() : status;
    if (status == SX_OK) {
        mark_read(s, time, results, n_results, read);
    }
    for (int k = 0; k < s->n_rows && status == SX_OK; k++) {
        const trace_row *r = &s->rows[k];
        if (!r->live || r->time != time) {
            continue;
        }
        status = name_node(r->node, emit_row(&e, r));
        for (int i = 0; i < r->n_out && status == SX_OK; i++) {
            if (read[r->first + i] && s->vals[r->first + i].known == NULL) {
                char name[32];
                snprintf(name, sizeof(name), "v%d", r->first + i);
                sx_output(e.b, name, e.here[r->first + i]);
                e.out[e.n_out++] = r->first + i;
            }
        }
    }
    if (status == SX_OK) {
        status = sx_builder_finish(e.b, &g);
    }
    if (status == SX_OK) {
        sx_step step = {.kind = time == LATE ? SX_STEP_LATE : SX_STEP_DEVICE,
                        .n_in = e.n_in,
                        .n_out = e.n_out,
                        .graph = g};
        status = keep_graph(s, g);
        if (status == SX_OK && time == LATE) {
            status = sx_function_hash(g, &step.hashes[0]);
        }
        status = status != SX_OK ? status : add_step(s, &step, e.in, e.out);
    }
    emitter_end(&e);
    sx_free(read);
    return status;
}

static sx_status emit_host(specializer *s, const trace_row *r)
{
    sx_node *n = sx_arena_memdup(s->arena, r->node, sizeof(*n));
    int out[SX_MAX_OUTPUTS];
    sx_step step = {.kind = SX_STEP_HOST, .n_in = r->n_in + r->n_operands, .n_out = r->n_out};
    if (n == NULL) {
        return no_memory();
    }
    n->name = r->name;
    n->attrs = r->control ? r->node->attrs : r->attrs;
    step.node = n;
    for (int i = 0; i < r->n_out; i++) {
        out[i] = r->first + i;
    }
    if (r->control) {
        step.kind = n->op == &sx_op_if ? SX_STEP_IF : SX_STEP_WHILE;
        SX_TRY(sx_function_hash(sx_node_body(n, 0), &step.hashes[0]));
        SX_TRY(sx_function_hash(sx_node_body(n, 1), &step.hashes[1]));
    }
    return add_step(s, &step, r->in, out);
}

static sx_status emit(specializer *s, const int *results, int n_results)
{
    int last = 0, n_host = 0;
    bool late = false;
    for (int k = 0; k < s->n_rows; k++) {
        const trace_row *r = &s->rows[k];
        late = late || (r->live && r->time == LATE);
        last = r->live && r->time != LATE ? SX_MAX(last, r->time) : last;
        n_host += r->live && r->on_host;
    }
    s->out->slots = sx_arena_array(s->arena, s->n_vals + 1, sx_slot);
    s->out->steps = sx_arena_array(s->arena, n_host + last + 2, sx_step);
    if (s->out->slots == NULL || s->out->steps == NULL) {
        return no_memory();
    }
    int slot;
    for (int i = 0; i < s->binding.n_args; i++) { /* the first vals: slots 0 .. n_args-1 */
        SX_TRY(slot_of(s, i, &slot));
    }
    for (int time = 0; time <= last; time++) {
        bool device = false;
        for (int k = 0; k < s->n_rows; k++) {
            const trace_row *r = &s->rows[k];
            if (r->live && r->time == time && r->on_host) {
                SX_TRY(name_node(r->node, emit_host(s, r)));
            }
            device = device || (r->live && r->time == time && !r->on_host);
        }
        if (device) {
            SX_TRY(emit_graph(s, time, results, n_results));
        }
    }
    if (late) {
        SX_TRY(emit_graph(s, LATE, results, n_results));
    }
    int *slots = sx_arena_array(s->arena, n_results + 1, int);
    if (slots == NULL) {
        return no_memory();
    }
    for (int i = 0; i < n_results; i++) {
        SX_TRY(slot_of(s, results[i], &slots[i]));
    }
    s->out->results = slots;
    s->out->n_results = n_results;
    return SX_OK;
}

/* ---- Regions ---- */

/* Makes a region a static graph; *out is NULL if a device cannot run it. The region's operands are
 * in[first ..]; their known values are valid from operand `whole` on. `map` passes elements of the
 * first `whole`. The graph is in the program's arena. */
static sx_status static_region(specializer *s, const sx_node *n, int attr_row, const int *in,
                               int first, int n_in, int n_whole, sx_graph **out)
{
    const sx_graph *body = sx_node_body(n, attr_row);
    specializer inner = {.out = s->out,
                         .arena = s->arena,
                         .binding = {.n_args = n_in, .batch = s->binding.batch},
                         .limits = s->limits,
                         .folded_bytes = s->folded_bytes,
                         .nodes = s->nodes,
                         .depth = s->depth};
    const bool had_reads = s->out->reads, had_writes = s->out->writes;
    int *args = sx_arena_array(s->arena, n_in + 1, int);
    int *results = sx_arena_array(s->arena, body->n_results + 1, int);
    sx_graph *made = NULL;
    emitter e = {0};
    *out = NULL;
    if (args == NULL || results == NULL) {
        return no_memory();
    }
    if (body->n_args != n_in) {
        return sx_error(SX_INVALID_ARGUMENT, "it expects %d values, got %d", body->n_args, n_in);
    }
    sx_status status = SX_OK;
    for (int i = 0; i < n_in && status == SX_OK; i++) {
        const val *v = &s->vals[in[first + i]];
        val arg = {.type = v->type, .row = NO_ROW, .output = i};
        if (n->op == &sx_op_map && i < n_whole) {
            if (v->type.rank < 1) {
                status =
                    sx_error(SX_INVALID_ARGUMENT, "value %d is a scalar, which has no axis", i);
                break;
            }
            arg.type = sx_type_make(v->type.dtype, v->type.rank - 1, v->type.dims + 1);
        } else if (i + first >= n_whole) {
            arg.known = v->known;
            arg.counts = v->counts;
        }
        const sx_type *declared = sx_graph_type(body, body->args[i].value);
        status = sx_type_may_be(&arg.type, declared)
                     ? new_val(&inner, &arg, &args[i])
                     : contradicts("argument", i, &arg.type, declared);
    }
    if (status == SX_OK) {
        status = walk(&inner, body, args, "", results);
    }
    bool fits = status == SX_OK;
    if (fits) {
        mark_live(&inner, results, body->n_results, true);
        for (int k = 0; k < inner.n_rows && fits; k++) {
            const trace_row *r = &inner.rows[k];
            fits = !r->live || (may_run_on_device(&inner, r) && r->variable == NULL);
        }
        for (int i = 0; i < body->n_results && fits; i++) {
            fits = is_device_type(&inner.vals[results[i]].type);
        }
    }
    if (fits) {
        status = emitter_begin(&inner, 1, &e);
        for (int i = 0; i < n_in && status == SX_OK; i++) {
            char name[32];
            snprintf(name, sizeof(name), "x%d", i);
            e.here[args[i]] = sx_input(e.b, name, inner.vals[args[i]].type);
        }
        for (int k = 0; k < inner.n_rows && status == SX_OK; k++) {
            if (inner.rows[k].live) {
                status = name_node(inner.rows[k].node, emit_row(&e, &inner.rows[k]));
            }
        }
        for (int i = 0; i < body->n_results && status == SX_OK; i++) {
            char name[32];
            snprintf(name, sizeof(name), "y%d", i);
            sx_output(e.b, name, value_of(&e, results[i]));
        }
        status = status != SX_OK ? status : sx_builder_finish(e.b, &made);
    }
    if (made != NULL && status == SX_OK) {
        *out = sx_graph_copy(s->arena, made);
        status = *out == NULL ? no_memory() : SX_OK;
    }
    sx_graph_destroy(made);
    emitter_end(&e);
    s->folded_bytes = inner.folded_bytes;
    s->out->reads = had_reads;
    s->out->writes = had_writes;
    sx_free(inner.vals);
    sx_free(inner.rows);
    return status;
}

/* ---- The function ---- */

static sx_status bind_args(specializer *s, const sx_graph *body, int *args)
{
    if (s->binding.n_args != body->n_args) {
        return sx_error(SX_INVALID_ARGUMENT, "got %d arguments, the function expects %d",
                        s->binding.n_args, body->n_args);
    }
    for (int i = 0; i < body->n_args; i++) {
        const sx_tensor *a = &s->binding.args[i];
        const sx_type *declared = sx_graph_type(body, body->args[i].value);
        val v = {.type = a->type, .row = NO_ROW, .output = i};
        if (!is_shape_known(&a->type) || !sx_type_may_be(&a->type, declared)) {
            return sx_status_annotate(contradicts("argument", i, &a->type, declared), __FILE__,
                                      __LINE__, "\"%s\"", body->args[i].name);
        }
        if (a->type.dtype == SX_RESOURCE) {
            v.variable = a->data;
        } else if (a->data != NULL && a->type.dtype != SX_STRING) {
            sx_tensor *known = sx_arena_new(s->arena, sx_tensor);
            void *data = sx_arena_memdup(s->arena, a->data, (size_t)SX_MAX(room_of(&a->type), 0));
            if (known == NULL || data == NULL) {
                return no_memory();
            }
            *known = (sx_tensor){a->type, data};
            v.known = known;
        }
        if (v.variable != NULL) {
            v.variable = sx_arena_strdup(s->arena, v.variable);
        }
        SX_TRY(new_val(s, &v, &args[i]));
    }
    return SX_OK;
}

sx_status sx_specialize(const sx_library *library, const sx_graph *body, const sx_binding *binding,
                        const sx_specialize_limits *limits, sx_specialized **out)
{
    sx_specialized *p = sx_alloc(1, sizeof(*p));
    if (p == NULL) {
        return no_memory();
    }
    sx_arena_init(&p->arena, 0);
    p->library = library;
    p->batch = binding->batch;
    p->n_args = binding->n_args;
    specializer s = {.out = p,
                     .arena = &p->arena,
                     .binding = *binding,
                     .limits = limits != NULL ? *limits : (sx_specialize_limits){0},
                     .nodes = &p->nodes};
    int *args = sx_arena_array(&p->arena, body->n_args + 1, int);
    int *results = sx_arena_array(&p->arena, body->n_results + 1, int);
    sx_status status = args == NULL || results == NULL ? no_memory() : SX_OK;
    if (status == SX_OK) {
        status = bind_args(&s, body, args);
    }
    if (status == SX_OK) {
        status = walk(&s, body, args, "", results);
    }
    if (status == SX_OK) {
        mark_live(&s, results, body->n_results, false);
        status = set_times(&s);
    }
    if (status == SX_OK) {
        mark_live(&s, results, body->n_results, true);
        status = emit(&s, results, body->n_results);
    }
    sx_free(s.vals);
    sx_free(s.rows);
    if (status != SX_OK) {
        sx_specialized_destroy(p);
        return status;
    }
    *out = p;
    return SX_OK;
}

void sx_specialized_destroy(sx_specialized *p)
{
    if (p == NULL) {
        return;
    }
    for (int i = 0; i < p->n_graphs; i++) {
        sx_graph_destroy(p->graphs[i]);
    }
    sx_free(p->graphs);
    sx_arena_deinit(&p->arena);
    sx_free(p);
}
