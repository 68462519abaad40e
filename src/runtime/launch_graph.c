/* See launch_graph.h. */
#include "runtime/launch_graph.h"

#include <string.h>

#include "base/checked.h"
#include "base/memory.h"
#include "graph/ops/attrs.h"
#include "graph/passes/rewrite.h"
#include "runtime/session.h"

bool sx_launch_packs(const sx_type *type)
{
    static const bool packed[] = {
        [SX_F32] = true, [SX_I32] = true, [SX_U32] = true, [SX_BOOL] = true,
        [SX_U8] = true,  [SX_I8] = true,  [SX_U16] = true, [SX_I16] = true};
    return type->rank == 0 && (size_t)type->dtype < SX_COUNT(packed) && packed[type->dtype];
}

typedef struct launch {
    bool *packed; /* [n_results] */
    uint32_t ok;  /* the value that withholds updates; 0 = none */
} launch;

/* Sets packed[n_results]: of the outputs that the loop shows, those of one word. Returns whether
 * there are any, and whether there is an assignment: a program that is trained. */
static bool find_packed(const sx_graph *g, bool *packed)
{
    bool any = false, assigns = false;
    int scalars = 0;
    for (int i = 0; i < g->n_results; i++) {
        const sx_type *type = sx_graph_type(g, g->results[i].value);
        const bool is_output = g->results[i].arg == SX_RESULT_IS_OUTPUT;
        const bool is_shown = is_output && type->rank == 0 && scalars < SX_MAX_SCALARS;
        scalars += is_shown;
        packed[i] = is_shown && sx_launch_packs(type);
        any = any || packed[i];
        assigns = assigns || !is_output;
    }
    return any && assigns;
}

/* The value that withholds updates, which a node computes; 0 = none. */
static uint32_t find_ok(const sx_graph *g)
{
    const sx_type flag = sx_scalar_type(SX_BOOL);
    const int i = sx_graph_find_output(g, SX_OK_OUTPUT);
    const sx_value ok = i >= 0 ? g->results[i].value : SX_NO_VALUE;
    return sx_value_is(ok) && sx_type_equal(sx_graph_type(g, ok), &flag) &&
                   sx_graph_maker(g, ok)->op != &sx_op_parameter
               ? ok.id
               : 0;
}

/* Generated names could be those of later nodes of the old graph. */
static sx_value node(sx_builder *b, const sx_op_def *op, const void *attrs, const char *name,
                     const sx_value *inputs, int n)
{
    return sx_build_node(b, &(sx_node_spec){.op = op,
                                            .attrs = attrs,
                                            .inputs = inputs,
                                            .n_inputs = n,
                                            .name = sx_arena_printf(sx_builder_arena(b), "%s/%s",
                                                                    SX_LATCH_VARIABLE, name),
                                            .device = "",
                                            .file = ""});
}

/* Whatever reads `ok` reads whether all steps so far were. */
static void latch_ok(sx_rewrite *rw, const sx_node *n)
{
    const uint32_t ok = ((const launch *)rw->user)->ok;
    sx_rewrite_keep(rw, n, NULL);
    if (ok < n->first_output.id || ok >= n->first_output.id + (uint32_t)n->n_outputs) {
        return;
    }
    const sx_arg latch = {
        .kind = SX_ARG_VARIABLE, .name = SX_LATCH_VARIABLE, .role = SX_ROLE_STATE};
    sx_builder *b = rw->to;
    const sx_value all = sx_build_arg(b, &latch, sx_scalar_type(SX_I32));
    const sx_value armed =
        node(b, &sx_op_cast, &(sx_cast_attrs){.dtype = SX_BOOL}, "armed", &all, 1);
    rw->map[ok] = node(b, &sx_op_logical_and, NULL, "ok", (sx_value[]){rw->map[ok], armed}, 2);
}

/* int32 [1]: a scalar's bits. */
static sx_value word(sx_builder *b, sx_value x)
{
    const sx_dtype dtype = sx_type_of_value(b, x).dtype;
    if (dtype == SX_F32 || dtype == SX_U32) {
        x = sx_build_op(b, bitcast, (&(sx_cast_attrs){.dtype = SX_I32}), x);
    } else if (dtype != SX_I32) {
        x = sx_build_op(b, cast, (&(sx_cast_attrs){.dtype = SX_I32}), x);
    }
    return sx_build_op(b, reshape, (&(sx_shape_attrs){.shape = {1, {1}}}), x);
}

static void add_results(sx_rewrite *rw)
{
    const sx_graph *g = rw->from;
    const launch *l = rw->user;
    const int32_t one = 1;
    sx_builder *b = rw->to;
    sx_value words[1 + SX_MAX_SCALARS];
    int n = 0;
    sx_builder_at(b, "", 0);
    sx_scope_begin(b, SX_PACKED_OUTPUT, NULL);
    words[n++] = sx_constant(b, (sx_tensor){sx_type_of(SX_I32, 1), (void *)(uintptr_t)&one});
    for (int i = 0; i < g->n_results; i++) {
        if (l->packed[i]) {
            words[n++] = word(b, rw->map[g->results[i].value.id]);
        }
    }
    sx_output(b, SX_PACKED_OUTPUT,
              sx_build(b, &sx_op_concat, &(sx_axis_attrs){.axis = 0}, words, n));
    if (l->ok != 0) {
        sx_assign(b, SX_LATCH_VARIABLE,
                  sx_build_op(b, cast, (&(sx_cast_attrs){.dtype = SX_I32}), rw->map[l->ok]));
    }
    sx_scope_end(b);
}

sx_status sx_make_launch_graph(const sx_graph *g, sx_graph **out)
{
    launch l = {.packed = sx_alloc((size_t)g->n_results + 1, sizeof(*l.packed)), .ok = find_ok(g)};
    sx_status status = l.packed != NULL ? SX_OK : sx_no_memory("for a program");
    *out = NULL;
    if (status == SX_OK && find_packed(g, l.packed)) {
        status = sx_rewrite_run_hooks(g, &(sx_rewrite_hooks){.node = latch_ok, .end = add_results},
                                      &l, out);
    }
    sx_free(l.packed);
    return status;
}
