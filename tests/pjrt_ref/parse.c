/* See parse.h. One pass: an operation is checked by its row when its text ends; at the end of the
 * function each value's last reader is told to let go of it. */
#include "pjrt_ref/parse.h"

#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/memory.h"
#include "pjrt_ref/attr.h"
#include "pjrt_ref/ops.h"
#include "pjrt_ref/scan.h"

enum { MAX_REGIONS = 4 };

typedef struct parser {
    ref_scan s;
    ref_program *p;
    ref_block *block; /* being read */
    int depth;
    int max_values;
    int *numbers;   /* scratch [REF_MAX_OPERANDS]: never held across a nested call */
    sx_type *types; /* likewise [max_types] */
    int max_types;
} parser;

static sx_status no_memory(void)
{
    return sx_error(SX_RESOURCE_EXHAUSTED, "out of memory for a program");
}

/* ---- Values ---- */

static sx_status grow_values(parser *ps, int id)
{
    int more = SX_MAX(256, ps->max_values);
    while (more <= id) {
        more *= 2;
    }
    if (more == ps->max_values) {
        return SX_OK;
    }
    ref_value **values = sx_realloc(ps->p->values, (size_t)more, sizeof(*values));
    if (values == NULL) {
        return no_memory();
    }
    memset(values + ps->max_values, 0, (size_t)(more - ps->max_values) * sizeof(*values));
    ps->p->values = values;
    ps->max_values = more;
    return SX_OK;
}

static sx_status define(parser *ps, int id, const sx_type *type, ref_op *definer)
{
    SX_TRY(grow_values(ps, id));
    if (ps->p->values[id] != NULL) {
        return ref_wrong("line %d: %%%d is defined twice", ps->s.line, id);
    }
    ref_value *v = sx_arena_new(&ps->p->arena, ref_value);
    if (v == NULL) {
        return no_memory();
    }
    *v = (ref_value){.type = *type, .block = ps->block, .definer = definer};
    ps->p->values[id] = v;
    ps->p->n_values = SX_MAX(ps->p->n_values, id + 1);
    return SX_OK;
}

static sx_status find(const parser *ps, int id, ref_value **out)
{
    ref_value *v = id < ps->max_values ? ps->p->values[id] : NULL;
    const ref_block *block = ps->block;
    while (v != NULL && block != NULL && block != v->block) {
        block = block->outer;
    }
    if (v == NULL || block == NULL) {
        return ref_wrong("line %d: %%%d is not defined here", ps->s.line, id);
    }
    *out = v;
    return SX_OK;
}

/* `reader` of the current block reads v: in v's own block that is the op around it. NULL = the
 * block's return. */
static void mark_read(const parser *ps, ref_value *v, ref_op *reader)
{
    const ref_block *block = ps->block;
    while (block != v->block) {
        reader = block->owner;
        block = block->outer;
    }
    if (reader == NULL) {
        v->is_result = true;
    } else {
        v->last = reader;
    }
}

/* ---- Lists ---- */

/* %1, %2 … up to `close`, which stays; into ps->numbers. */
static sx_status take_values(parser *ps, char close, int *out_n)
{
    int n = 0;
    while (!ref_next_is(&ps->s, close)) {
        if (n == REF_MAX_OPERANDS) {
            return ref_scan_error(&ps->s, "fewer values");
        }
        if (n > 0) {
            SX_TRY(ref_require(&ps->s, ","));
        }
        SX_TRY(ref_take_value(&ps->s, REF_MAX_VALUES, &ps->numbers[n++]));
    }
    *out_n = n;
    return SX_OK;
}

/* Into ps->types[i], which grows. */
static sx_status take_type(parser *ps, int i)
{
    if (i == ps->max_types) {
        int more = i == 0 ? 16 : 2 * i;
        sx_type *types = sx_realloc(ps->types, (size_t)more, sizeof(*types));
        if (types == NULL) {
            return no_memory();
        }
        ps->types = types;
        ps->max_types = more;
    }
    return ref_take_type(&ps->s, &ps->types[i]);
}

/* "type, type" up to `close`, which stays; into ps->types. */
static sx_status take_types(parser *ps, char close, int *out_n)
{
    int n = 0;
    while (!ref_next_is(&ps->s, close)) {
        if (n == REF_MAX_OPERANDS) {
            return ref_scan_error(&ps->s, "fewer types");
        }
        if (n > 0) {
            SX_TRY(ref_require(&ps->s, ","));
        }
        SX_TRY(take_type(ps, n++));
    }
    *out_n = n;
    return SX_OK;
}

static sx_status keep_numbers(parser *ps, int n, int **out)
{
    *out = sx_arena_memdup(&ps->p->arena, ps->numbers, (size_t)n * sizeof(int) + (n == 0));
    return *out == NULL ? no_memory() : SX_OK;
}

/* "(types)" of operands, which must be theirs. */
static sx_status check_operand_types(parser *ps, const int *ids, int n_ids)
{
    int n = 0;
    SX_TRY(ref_require(&ps->s, "("));
    SX_TRY(take_types(ps, ')', &n));
    SX_TRY(ref_require(&ps->s, ")"));
    bool same = n == n_ids;
    for (int i = 0; i < n && same; i++) {
        same = sx_type_equal(&ps->types[i], ref_type_of(ps->p, ids[i]));
    }
    return same ? SX_OK : ref_scan_error(&ps->s, "the operands' types before this");
}

/* ---- Operations ---- */

static sx_status take_block(parser *ps, ref_block *block);

static sx_status take_region(parser *ps, ref_op *op, ref_block *block)
{
    *block = (ref_block){.outer = ps->block, .owner = op};
    if (++ps->depth > REF_MAX_DEPTH) {
        return ref_scan_error(&ps->s, "regions less deep");
    }
    ps->block = block;
    sx_status status = take_block(ps, block);
    ps->block = block->outer;
    ps->depth--;
    return status;
}

/* ({…}, {…}), if there are any */
static sx_status take_regions(parser *ps, ref_op *op)
{
    if (!ref_accept(&ps->s, "(")) {
        return SX_OK;
    }
    op->regions = sx_arena_array(&ps->p->arena, MAX_REGIONS, ref_block);
    if (op->regions == NULL) {
        return no_memory();
    }
    do {
        if (op->n_regions == MAX_REGIONS) {
            return ref_scan_error(&ps->s, "fewer regions");
        }
        SX_TRY(ref_require(&ps->s, "{"));
        SX_TRY(take_region(ps, op, &op->regions[op->n_regions]));
        op->n_regions++;
    } while (ref_accept(&ps->s, ","));
    return ref_require(&ps->s, ")");
}

/* loc("name"), if there is one */
static sx_status take_loc(parser *ps, const char **out)
{
    const char *text = "";
    size_t size = 0;
    if (ref_accept(&ps->s, "loc(")) {
        SX_TRY(ref_take_string(&ps->s, &text, &size));
        SX_TRY(ref_require(&ps->s, ")"));
    }
    *out = sx_arena_strndup(&ps->p->arena, text, size);
    return *out == NULL ? no_memory() : SX_OK;
}

/* -> type, or -> (types): the results' types, which define them */
static sx_status take_results(parser *ps, ref_op *op)
{
    int n = 0;
    SX_TRY(ref_require(&ps->s, "->"));
    if (ref_accept(&ps->s, "(")) {
        SX_TRY(take_types(ps, ')', &n));
        SX_TRY(ref_require(&ps->s, ")"));
    } else {
        SX_TRY(take_type(ps, n++));
    }
    if (n != op->n_out) {
        return ref_scan_error(&ps->s, "as many types as results before this");
    }
    for (int i = 0; i < n; i++) {
        SX_TRY(define(ps, op->out[i], &ps->types[i], op));
    }
    return SX_OK;
}

static sx_status check_counts(const ref_op *op)
{
    const ref_row *row = op->row;
    if ((row->n_in != REF_ANY && row->n_in != op->n_in) ||
        (row->n_out != REF_ANY && row->n_out != op->n_out) ||
        (row->n_regions != REF_ANY && row->n_regions != op->n_regions)) {
        return ref_wrong("has %d operands, %d results and %d regions; expected %d, %d, %d",
                         op->n_in, op->n_out, op->n_regions, row->n_in, row->n_out, row->n_regions);
    }
    return SX_OK;
}

/* In XLA's form: loc("node"): error: 'stablehlo.add' op … */
static sx_status check_op(parser *ps, ref_op *op)
{
    sx_status status = check_counts(op);
    if (status == SX_OK) {
        status = op->row->check(ps->p, op, &op->plan);
    }
    return sx_status_annotate(status, __FILE__, __LINE__,
                              "loc(\"%s\"): error: line %d: 'stablehlo.%s' op", op->loc, op->line,
                              op->row->name);
}

/* "stablehlo.op"(%1, %2) ({regions}) {attributes} : (types) -> types loc("name") */
static sx_status take_call(parser *ps, ref_op *op)
{
    SX_TRY(ref_require(&ps->s, "("));
    SX_TRY(take_values(ps, ')', &op->n_in));
    SX_TRY(keep_numbers(ps, op->n_in, &op->in));
    SX_TRY(ref_require(&ps->s, ")"));
    for (int i = 0; i < op->n_in; i++) {
        ref_value *v = NULL;
        SX_TRY(find(ps, op->in[i], &v));
        mark_read(ps, v, op);
    }
    SX_TRY(take_regions(ps, op));
    if (ref_accept(&ps->s, "{")) {
        SX_TRY(ref_take_attrs(&ps->s, 0, "}", &op->attrs, &op->n_attrs));
    }
    SX_TRY(ref_require(&ps->s, ":"));
    SX_TRY(check_operand_types(ps, op->in, op->n_in));
    SX_TRY(take_results(ps, op));
    SX_TRY(take_loc(ps, &op->loc));
    return check_op(ps, op);
}

static void append(ref_block *block, ref_op *op)
{
    if (block->last == NULL) {
        block->first = op;
    } else {
        block->last->next = op;
    }
    block->last = op;
}

/* The name of an operation in quotes; a "return" is told apart. */
static sx_status take_row(parser *ps, const ref_row **out, bool *out_is_return)
{
    static const char prefix[] = "stablehlo.";
    const char *text;
    size_t size, skipped = sizeof(prefix) - 1;
    SX_TRY(ref_take_string(&ps->s, &text, &size));
    if (size <= skipped || memcmp(text, prefix, skipped) != 0) {
        return ref_wrong("line %d: only operations of stablehlo are known, not '%.*s'", ps->s.line,
                         (int)SX_MIN(size, 64), text);
    }
    text += skipped;
    size -= skipped;
    *out_is_return = size == 6 && memcmp(text, "return", 6) == 0;
    *out = *out_is_return ? NULL : ref_row_find(text, size);
    return *out != NULL || *out_is_return
               ? SX_OK
               : sx_error(SX_UNIMPLEMENTED, "line %d: no operation 'stablehlo.%.*s' here",
                          ps->s.line, (int)SX_MIN(size, 64), text);
}

/* Keeps ps->numbers[n] as the block's results. */
static sx_status keep_results(parser *ps, int n)
{
    ref_block *block = ps->block;
    SX_TRY(keep_numbers(ps, n, &block->results));
    block->n_results = n;
    for (int i = 0; i < n; i++) {
        ref_value *v = NULL;
        SX_TRY(find(ps, block->results[i], &v));
        mark_read(ps, v, NULL);
    }
    return SX_OK;
}

/* "stablehlo.return"(%1) : (types) -> () loc("name") } */
static sx_status take_return(parser *ps)
{
    int n = 0;
    const char *loc;
    SX_TRY(ref_require(&ps->s, "("));
    SX_TRY(take_values(ps, ')', &n));
    SX_TRY(ref_require(&ps->s, ")"));
    SX_TRY(keep_results(ps, n));
    SX_TRY(ref_require(&ps->s, ":"));
    SX_TRY(check_operand_types(ps, ps->block->results, n));
    SX_TRY(ref_require(&ps->s, "->"));
    SX_TRY(ref_require(&ps->s, "("));
    SX_TRY(ref_require(&ps->s, ")"));
    SX_TRY(take_loc(ps, &loc));
    return ref_require(&ps->s, "}");
}

/* One line; *out_ended after a region's return. */
static sx_status take_op(parser *ps, bool *out_ended)
{
    int n = 0;
    ref_op *op = sx_arena_new(&ps->p->arena, ref_op);
    if (op == NULL) {
        return no_memory();
    }
    op->line = ps->s.line;
    if (ref_next_is(&ps->s, '%')) {
        SX_TRY(take_values(ps, '=', &n));
        SX_TRY(ref_require(&ps->s, "="));
    }
    op->n_out = n;
    SX_TRY(keep_numbers(ps, n, &op->out));
    SX_TRY(take_row(ps, &op->row, out_ended));
    if (*out_ended) {
        return n == 0 && ps->block->owner != NULL ? take_return(ps)
                                                  : ref_scan_error(&ps->s, "no return here");
    }
    ps->p->n_ops++;
    append(ps->block, op);
    return take_call(ps, op);
}

/* (%1: type, %2: type {attributes}) of a region or of the function */
static sx_status take_args(parser *ps, ref_block *block)
{
    int n = 0;
    SX_TRY(ref_require(&ps->s, "("));
    while (!ref_accept(&ps->s, ")")) {
        ref_attr *attrs;
        int n_attrs = 0;
        if (n == REF_MAX_OPERANDS) {
            return ref_scan_error(&ps->s, "fewer arguments");
        }
        if (n > 0) {
            SX_TRY(ref_require(&ps->s, ","));
        }
        sx_type type;
        SX_TRY(ref_take_value(&ps->s, REF_MAX_VALUES, &ps->numbers[n]));
        SX_TRY(ref_require(&ps->s, ":"));
        SX_TRY(ref_take_type(&ps->s, &type));
        SX_TRY(define(ps, ps->numbers[n], &type, NULL));
        if (block->owner == NULL) {
            ps->p->aliases[n] = -1;
            ps->p->donors[n] = false;
        }
        if (block->owner == NULL && ref_accept(&ps->s, "{")) {
            SX_TRY(ref_take_attrs(&ps->s, 0, "}", &attrs, &n_attrs));
            const ref_attr *alias = ref_attr_find(attrs, n_attrs, "tf.aliasing_output");
            if (alias != NULL && alias->n_ints == 1 && alias->ints[0] >= 0 &&
                alias->ints[0] < REF_MAX_OPERANDS) {
                ps->p->aliases[n] = (int)alias->ints[0];
            }
            const ref_attr *donor = ref_attr_find(attrs, n_attrs, "jax.buffer_donor");
            ps->p->donors[n] = donor != NULL && donor->n_ints == 1 && donor->ints[0] != 0;
        }
        n++;
    }
    block->n_args = n;
    return keep_numbers(ps, n, &block->args);
}

/* What follows a region's {: its arguments, operations, return and }. */
static sx_status take_block(parser *ps, ref_block *block)
{
    bool ended = false;
    if (ref_accept(&ps->s, "^")) {
        const char *name;
        SX_TRY(ref_take_name(&ps->s, &name));
        SX_TRY(take_args(ps, block));
        SX_TRY(ref_require(&ps->s, ":"));
    }
    while (!ended) {
        SX_TRY(take_op(ps, &ended));
    }
    return SX_OK;
}

/* ---- The function ---- */

/* Which result takes an argument's memory: at most one each, and of its type. */
static sx_status check_aliases(const ref_program *p)
{
    const ref_block *main = &p->main;
    for (int i = 0; i < main->n_args; i++) {
        int k = p->aliases[i];
        bool fits =
            k < 0 || (k < main->n_results && sx_type_equal(ref_type_of(p, main->args[i]),
                                                           ref_type_of(p, main->results[k])));
        for (int j = 0; j < i && k >= 0; j++) {
            fits = fits && p->aliases[j] != k;
        }
        if (!fits) {
            return ref_wrong("argument %d cannot give its memory to result %d", i, k);
        }
    }
    return SX_OK;
}

/* -> (types) of the function; kept until the return */
static sx_status take_signature(parser *ps, sx_type **out_types, int *out_n)
{
    SX_TRY(take_args(ps, &ps->p->main));
    SX_TRY(ref_require(&ps->s, "->"));
    SX_TRY(ref_require(&ps->s, "("));
    SX_TRY(take_types(ps, ')', out_n));
    SX_TRY(ref_require(&ps->s, ")"));
    *out_types = sx_arena_array(&ps->p->arena, *out_n + 1, sx_type);
    if (*out_types == NULL) {
        return no_memory();
    }
    if (*out_n > 0) {
        memcpy(*out_types, ps->types, (size_t)*out_n * sizeof(sx_type));
    }
    return ref_require(&ps->s, "{");
}

/* func.return %1, %2 : types */
static sx_status take_func_return(parser *ps, const sx_type *declared, int n_declared)
{
    int n = 0, n_types = 0;
    bool any = ref_next_is(&ps->s, '%');
    if (any) {
        SX_TRY(take_values(ps, ':', &n));
        SX_TRY(ref_require(&ps->s, ":"));
    }
    SX_TRY(keep_results(ps, n));
    if (any) {
        SX_TRY(take_types(ps, '}', &n_types));
    }
    bool same = n == n_types && n == n_declared;
    for (int i = 0; i < n && same; i++) {
        const sx_type *type = ref_type_of(ps->p, ps->p->main.results[i]);
        same = sx_type_equal(type, &ps->types[i]) && sx_type_equal(type, &declared[i]);
    }
    return same ? SX_OK : ref_scan_error(&ps->s, "the function's result types before this");
}

static sx_status take_module(parser *ps)
{
    const char *name;
    sx_type *types = NULL;
    int n = 0;
    bool ended = false;
    SX_TRY(ref_require(&ps->s, "module"));
    SX_TRY(ref_require(&ps->s, "@"));
    SX_TRY(ref_take_name(&ps->s, &name));
    SX_TRY(ref_require(&ps->s, "{"));
    SX_TRY(ref_require(&ps->s, "func.func public @main"));
    SX_TRY(take_signature(ps, &types, &n));
    while (!ref_accept(&ps->s, "func.return")) {
        SX_TRY(take_op(ps, &ended));
    }
    SX_TRY(take_func_return(ps, types, n));
    SX_TRY(ref_require(&ps->s, "}"));
    SX_TRY(ref_require(&ps->s, "}"));
    SX_TRY(check_aliases(ps->p));
    return ref_at_end(&ps->s) ? SX_OK : ref_scan_error(&ps->s, "the end");
}

/* ---- Deaths ---- */

/* Where a value is let go of: a counter, and once there is room, the list. NULL = never before its
 * block ends. */
static int *death_of(ref_value *v, int ***out_list)
{
    ref_op *op = v->is_result ? NULL : v->last != NULL ? v->last : v->definer;
    if (v->is_result) {
        return NULL;
    }
    *out_list = op != NULL ? &op->dies : &v->block->unread;
    return op != NULL ? &op->n_dies : &v->block->n_unread;
}

static sx_status plan_deaths(ref_program *p)
{
    int **list;
    for (int i = 0; i < p->n_values; i++) {
        int *n = p->values[i] == NULL ? NULL : death_of(p->values[i], &list);
        *(n == NULL ? &(int){0} : n) += 1;
    }
    for (int i = 0; i < p->n_values; i++) {
        int *n = p->values[i] == NULL ? NULL : death_of(p->values[i], &list);
        if (n != NULL && *list == NULL) {
            *list = sx_arena_array(&p->arena, *n, int);
            *n = 0;
        }
        if (n != NULL && *list == NULL) {
            return no_memory();
        }
        if (n != NULL) {
            (*list)[(*n)++] = i;
        }
    }
    return SX_OK;
}

/* ---- All ---- */

static sx_status parse_into(parser *ps)
{
    ref_program *p = ps->p;
    p->aliases = sx_arena_array(&p->arena, REF_MAX_OPERANDS, int);
    p->donors = sx_arena_array(&p->arena, REF_MAX_OPERANDS, bool);
    ps->numbers = sx_arena_array(&p->arena, REF_MAX_OPERANDS, int);
    if (p->aliases == NULL || p->donors == NULL || ps->numbers == NULL) {
        return no_memory();
    }
    SX_TRY(take_module(ps));
    return plan_deaths(p);
}

sx_status ref_parse(const char *text, size_t size, int replicas, ref_program **out)
{
    ref_program *p = sx_alloc(1, sizeof(*p));
    if (p == NULL) {
        return no_memory();
    }
    sx_arena_init(&p->arena, 0);
    p->replicas = replicas;
    parser ps = {.s = {.at = text, .end = text + size, .line = 1, .arena = &p->arena},
                 .p = p,
                 .block = &p->main};
    sx_status status = size > REF_MAX_TEXT
                           ? sx_error(SX_RESOURCE_EXHAUSTED, "a program of %zu bytes", size)
                           : parse_into(&ps);
    sx_free(ps.types);
    if (status != SX_OK) {
        ref_program_destroy(p);
        return status;
    }
    *out = p;
    return SX_OK;
}

void ref_program_destroy(ref_program *p)
{
    if (p != NULL) {
        sx_free(p->values);
        sx_arena_deinit(&p->arena);
        sx_free(p);
    }
}
