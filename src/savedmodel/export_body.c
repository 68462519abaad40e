/* See export_body.h. */
#include "savedmodel/export_body.h"

#include <stdio.h>
#include <string.h>

#include "base/buffer.h"
#include "base/checked.h"
#include "base/memory.h"
#include "graph/ops/common.h"
#include "graph/ops/vocabulary_lookup.h"

/* What a body does, by itself, in its regions and in what it calls. */
typedef struct facts {
    bool *uses; /* [handles] */
    bool reads, effects;
} facts;

struct sx_tf_exporter {
    const sx_library *library;
    sx_arena arena;
    int n_handles; /* the library's variables, then the vocabularies */
    int n_variables, n_vocabularies;
    const sx_node **vocabularies; /* [n_vocabularies]: vocabulary_lookup nodes of other words */
    struct function {
        facts facts;
        bool known, visiting, checked;
        const char *written; /* its name in TensorFlow; NULL = not yet */
    } * functions;           /* [library's functions] */
    sx_buf refused;
};

/* A body under construction. */
typedef struct body {
    sx_tf_exporter *e;
    sx_tf_writer *w;
    const sx_graph *graph;
    sx_tf_value *values;        /* [graph's values] */
    const sx_tf_value *handles; /* [handles]; NULL in a static graph */
    /* Where something has effects: the last node that has, and those that read since. */
    bool ordered, has_last;
    sx_tf_value last, *readers; /* [graph's nodes] */
    int n_readers;
} body;

typedef sx_status write_fn(body *s, const sx_node *node);

/* A node of a function, whose types are not known and whose meaning is not its operands' alone. */
typedef struct row {
    const sx_op_def *op;
    write_fn *write;
} row;

static sx_status no_memory(void)
{
    return sx_no_memory("exporting a model");
}

/* The number of a node's vocabulary, or n_vocabularies. */
static int find_vocabulary(const sx_tf_exporter *e, const sx_node *node)
{
    int k = 0;
    while (k < e->n_vocabularies && !sx_same_vocabulary(e->vocabularies[k]->attrs, node->attrs)) {
        k++;
    }
    return k;
}

static sx_status list_vocabularies(sx_tf_exporter *e, const sx_graph *graph)
{
    for (int i = 0; i < graph->n_nodes; i++) {
        const sx_node *node = &graph->nodes[i];
        if (node->op == &sx_op_vocabulary_lookup && find_vocabulary(e, node) == e->n_vocabularies) {
            const sx_node **grown =
                sx_arena_array(&e->arena, e->n_vocabularies + 1, const sx_node *);
            if (grown == NULL) {
                return no_memory();
            }
            if (e->n_vocabularies > 0) {
                memcpy(grown, e->vocabularies, (size_t)e->n_vocabularies * sizeof(*grown));
            }
            grown[e->n_vocabularies++] = node;
            e->vocabularies = grown;
        }
        for (int k = 0; k < node->op->n_attrs; k++) {
            if (node->op->attrs[k].kind == SX_ATTR_BODY) {
                SX_TRY(list_vocabularies(e, sx_node_body(node, k)));
            }
        }
    }
    return SX_OK;
}

sx_status sx_tf_exporter_create(const sx_library *library, sx_tf_exporter **out)
{
    sx_tf_exporter *e = sx_alloc(1, sizeof(*e));
    if (e == NULL) {
        return no_memory();
    }
    *e = (sx_tf_exporter){.library = library};
    sx_arena_init(&e->arena, 0);
    sx_buf_init(&e->refused, 1 << 16);
    e->n_variables = library != NULL ? library->n_variables : 0;
    e->functions =
        sx_arena_array(&e->arena, library != NULL ? library->n_functions + 1 : 1, struct function);
    sx_status status = e->functions == NULL ? no_memory() : SX_OK;
    for (int i = 0; library != NULL && i < library->n_functions && status == SX_OK; i++) {
        status = list_vocabularies(e, library->functions[i].body);
    }
    if (status != SX_OK) {
        sx_tf_exporter_destroy(e);
        return status;
    }
    e->n_handles = e->n_variables + e->n_vocabularies;
    *out = e;
    return SX_OK;
}

void sx_tf_exporter_destroy(sx_tf_exporter *e)
{
    if (e != NULL) {
        sx_buf_deinit(&e->refused);
        sx_arena_deinit(&e->arena);
        sx_free(e);
    }
}

static const char *attr_function(const sx_node *node)
{
    const char *name = ((const sx_call_attrs *)node->attrs)->function;
    return name != NULL ? name : "";
}

static sx_status find_function(const sx_tf_exporter *e, const char *name, const sx_function **out)
{
    *out = e->library != NULL ? sx_library_find(e->library, name) : NULL;
    return *out != NULL ? SX_OK : sx_error(SX_NOT_FOUND, "there is no function \"%.100s\"", name);
}

static struct function *state_of(const sx_tf_exporter *e, const sx_function *function)
{
    return &e->functions[function - e->library->functions];
}

/* ---- Facts ---- */

static sx_status learn_function(sx_tf_exporter *e, const sx_function *function, facts *out);

static sx_status learn(sx_tf_exporter *e, const sx_graph *graph, facts *out)
{
    for (int i = 0; i < graph->n_nodes; i++) {
        const sx_node *node = &graph->nodes[i];
        if (node->op == &sx_op_variable_handle) {
            const sx_variable_handle_attrs *attrs = node->attrs;
            const sx_variable_spec *v =
                e->library != NULL ? sx_library_find_variable(e->library, attrs->name) : NULL;
            if (v == NULL) {
                return sx_error(SX_NOT_FOUND, "there is no variable \"%.100s\"", attrs->name);
            }
            out->uses[v - e->library->variables] = true;
        }
        if (node->op == &sx_op_vocabulary_lookup) {
            out->uses[e->n_variables + find_vocabulary(e, node)] = true;
        }
        if (node->op == &sx_op_call) {
            const sx_function *called;
            SX_TRY(find_function(e, attr_function(node), &called));
            SX_TRY(learn_function(e, called, out));
        }
        out->reads = out->reads || node->op == &sx_op_read_variable;
        out->effects = out->effects || (node->op->flags & SX_OP_EFFECT) != 0;
        for (int k = 0; k < node->op->n_attrs; k++) {
            if (node->op->attrs[k].kind == SX_ATTR_BODY) {
                SX_TRY(learn(e, sx_node_body(node, k), out));
            }
        }
    }
    return SX_OK;
}

/* Adds the function's facts to *out. */
static sx_status learn_function(sx_tf_exporter *e, const sx_function *function, facts *out)
{
    struct function *f = state_of(e, function);
    if (f->visiting) {
        return sx_error(SX_INVALID_ARGUMENT, "function \"%.100s\" calls itself", function->name);
    }
    if (!f->known) {
        f->visiting = true;
        f->facts.uses = sx_arena_array(&e->arena, e->n_handles + 1, bool);
        sx_status status =
            f->facts.uses == NULL ? no_memory() : learn(e, function->body, &f->facts);
        f->visiting = false;
        SX_TRY(status);
        f->known = true;
    }
    out->reads = out->reads || f->facts.reads;
    out->effects = out->effects || f->facts.effects;
    for (int i = 0; i < e->n_handles; i++) {
        out->uses[i] = out->uses[i] || f->facts.uses[i];
    }
    return SX_OK;
}

static sx_status facts_begin(sx_tf_exporter *e, facts *out)
{
    *out = (facts){.uses = sx_arena_array(&e->arena, e->n_handles + 1, bool)};
    return out->uses == NULL ? no_memory() : SX_OK;
}

int sx_tf_exporter_handles(const sx_tf_exporter *e)
{
    return e->n_handles;
}

sx_tf_value sx_tf_exporter_table(const sx_tf_exporter *e, sx_tf_writer *w, int handle)
{
    const sx_node *node = e->vocabularies[handle - e->n_variables];
    return sx_vocabulary_table(w, node->name, node->attrs);
}

sx_status sx_tf_exporter_uses(sx_tf_exporter *e, const sx_function *function, const bool **out)
{
    facts found;
    SX_TRY(facts_begin(e, &found));
    SX_TRY(learn_function(e, function, &found));
    *out = found.uses;
    return SX_OK;
}

/* ---- Nodes of one operator ---- */

static sx_type any_shape(const sx_type *type)
{
    sx_type out = *type;
    for (int d = 0; d < out.rank; d++) {
        out.dims[d] = out.dims[d] < 0 ? SX_UNKNOWN_DIM : out.dims[d];
    }
    return out;
}

/* A writer in front of another. `to_tf` of a node some of whose attributes are operands writes
 * constants in their place; these are kept back until a node takes them. */
typedef struct operand_writer {
    sx_tf_writer base;
    sx_tf_writer *to;
    const body *s;
    const sx_node *node;
    const sx_tf_form *form;
    struct kept {
        const char *name;
        sx_tensor value;
        sx_tf_value written; /* node -1: not yet */
    } * kept;
    int n_kept, n_replaced;
    bool failed; /* the other writer has the error */
} operand_writer;

enum { MOST_KEPT = 32, FIRST_KEPT = -2 };

static sx_tf_value keep_constant(sx_tf_writer *w, const char *name, const sx_tensor *value)
{
    operand_writer *o = (operand_writer *)w;
    sx_arena *arena = &o->s->e->arena;
    const int64_t bytes = sx_type_bytes(&value->type);
    if (o->n_kept == MOST_KEPT || bytes < 0) {
        return sx_tf_const(o->to, name, value);
    }
    struct kept *k = &o->kept[o->n_kept];
    *k = (struct kept){.name = name != NULL ? sx_arena_strdup(arena, name) : NULL,
                       .value = {value->type, sx_arena_memdup(arena, value->data, (size_t)bytes)},
                       .written = {-1, 0}};
    if ((name != NULL && k->name == NULL) || k->value.data == NULL) {
        sx_tf_fail(o->to, no_memory());
    }
    return (sx_tf_value){FIRST_KEPT - o->n_kept++, 0};
}

/* The operand that is input `k` of `n` of the form's node, or NULL. */
static const sx_attr_operand *operand_at(const operand_writer *o, int k, int n)
{
    for (int i = 0; i < SX_TF_FORM_OPERANDS && o->form->operands[i].attr != NULL; i++) {
        const int input = o->form->operands[i].input;
        if ((input < 0 ? n - 1 : input) != k) {
            continue;
        }
        for (int a = 0; a < o->node->n_attr_operands; a++) {
            const sx_attr_operand *operand = &o->node->attr_operands[a];
            if (strcmp(o->node->op->attrs[operand->row].name, o->form->operands[i].attr) == 0) {
                return operand;
            }
        }
    }
    return NULL;
}

static sx_tf_value write_with_operands(sx_tf_writer *w, const char *op, const char *name,
                                       sx_tf_values in, sx_tf_attr_list attrs)
{
    operand_writer *o = (operand_writer *)w;
    sx_tf_value *items = sx_arena_array(&o->s->e->arena, in.count + 1, sx_tf_value);
    if (items == NULL) {
        o->failed = true;
        sx_tf_fail(o->to, no_memory());
        return (sx_tf_value){-1, 0};
    }
    const bool is_form = strcmp(op, o->form->op) == 0;
    for (int i = 0; i < in.count; i++) {
        struct kept *k =
            in.items[i].node <= FIRST_KEPT ? &o->kept[FIRST_KEPT - in.items[i].node] : NULL;
        const sx_attr_operand *operand = is_form ? operand_at(o, i, in.count) : NULL;
        if (operand != NULL) {
            const sx_dtype dtype = sx_graph_type(o->s->graph, operand->value)->dtype;
            items[i] = sx_tf_cast(o->to, o->s->values[operand->value.id], dtype,
                                  k != NULL ? k->value.type.dtype : dtype);
            o->n_replaced++;
        } else if (k != NULL) {
            if (k->written.node < 0) {
                k->written = sx_tf_const(o->to, k->name, &k->value);
            }
            items[i] = k->written;
        } else {
            items[i] = in.items[i];
        }
    }
    return sx_tf_add(o->to, op, name, (sx_tf_values){items, in.count}, attrs);
}

static sx_tf_writer *begin_function(sx_tf_writer *w, const char *name, int n, const int *types)
{
    return sx_tf_function_begin(((operand_writer *)w)->to, name, n, types);
}

static const char *end_function(sx_tf_writer *w, sx_tf_values results, const int *types)
{
    return sx_tf_function_end(((operand_writer *)w)->to, results, types);
}

static void pass_control(sx_tf_writer *w, sx_tf_value node, sx_tf_values after)
{
    sx_tf_control(((operand_writer *)w)->to, node, after);
}

static void push_scope(sx_tf_writer *w, const char *name)
{
    sx_tf_scope_push(((operand_writer *)w)->to, name);
}

static void pop_scope(sx_tf_writer *w)
{
    sx_tf_scope_pop(((operand_writer *)w)->to);
}

static void pass_failure(sx_tf_writer *w, sx_status status)
{
    sx_tf_fail(((operand_writer *)w)->to, status);
}

static sx_tf_value pass_vocabulary(sx_tf_writer *w, const sx_tensor *words, int64_t first_id)
{
    return sx_tf_vocabulary(((operand_writer *)w)->to, words, first_id);
}

static const sx_tf_writer_class operand_writer_class = {.node = write_with_operands,
                                                        .constant = keep_constant,
                                                        .function_begin = begin_function,
                                                        .function_end = end_function,
                                                        .control = pass_control,
                                                        .scope_push = push_scope,
                                                        .scope_pop = pop_scope,
                                                        .fail = pass_failure,
                                                        .vocabulary = pass_vocabulary};

/* The form whose inputs are all attributes of the node that are operands; NULL if there is none. */
static const sx_tf_form *form_of(const sx_node *node)
{
    for (const sx_tf_form *form = node->op->from_tf; form != NULL && form->op != NULL; form++) {
        int found = 0;
        for (int i = 0; i < SX_TF_FORM_OPERANDS && form->operands[i].attr != NULL; i++) {
            for (int a = 0; a < node->n_attr_operands; a++) {
                found += strcmp(node->op->attrs[node->attr_operands[a].row].name,
                                form->operands[i].attr) == 0;
            }
        }
        if (found == node->n_attr_operands) {
            return form;
        }
    }
    return NULL;
}

/* By the operator's `to_tf`. */
static sx_status write_plain(body *s, const sx_node *node)
{
    sx_arena *arena = &s->e->arena;
    const int n_in = node->n_inputs, n_out = node->n_outputs;
    sx_tf_value *in = sx_arena_array(arena, n_in + 1, sx_tf_value);
    sx_type *in_types = sx_arena_array(arena, n_in + 1, sx_type);
    sx_type *out_types = sx_arena_array(arena, n_out + 1, sx_type);
    if (in == NULL || in_types == NULL || out_types == NULL) {
        return no_memory();
    }
    for (int i = 0; i < n_in; i++) {
        in[i] = s->values[node->inputs[i].id];
        in_types[i] = *sx_graph_type(s->graph, node->inputs[i]);
    }
    for (int i = 0; i < n_out; i++) {
        out_types[i] = *sx_graph_type(s->graph, sx_node_output(node, i));
    }
    const sx_tf_op op = {.attrs = node->attrs,
                         .name = node->name,
                         .in = in,
                         .out = &s->values[node->first_output.id],
                         .in_types = in_types,
                         .out_types = out_types,
                         .n_in = n_in,
                         .n_out = n_out};
    if (node->n_attr_operands == 0) {
        node->op->to_tf(s->w, &op);
        return SX_OK;
    }
    struct kept kept[MOST_KEPT];
    operand_writer o = {.base = {&operand_writer_class},
                        .to = s->w,
                        .s = s,
                        .node = node,
                        .form = form_of(node),
                        .kept = kept};
    for (int i = 0; i < n_out; i++) { /* what the attribute would say of the batch is computed */
        out_types[i] = any_shape(&out_types[i]);
    }
    node->op->to_tf(&o.base, &op);
    for (int i = 0; i < n_out; i++) { /* an output that is a constant */
        sx_tf_value *y = &s->values[node->first_output.id + (uint32_t)i];
        if (y->node <= FIRST_KEPT) {
            *y = sx_tf_const(s->w, NULL, &kept[FIRST_KEPT - y->node].value);
        }
    }
    return o.failed || o.n_replaced == node->n_attr_operands
               ? SX_OK
               : sx_error(SX_UNIMPLEMENTED,
                          "%s \"%.100s\" with these computed attributes cannot "
                          "be exported to TensorFlow",
                          node->op->name, node->name);
}

/* ---- Values and functions ---- */

static sx_tf_value value_of(const body *s, sx_value v)
{
    return s->values[v.id];
}

static int dtype_of(const body *s, sx_value v)
{
    return (int)sx_graph_type(s->graph, v)->dtype;
}

/* Puts a node that reads, or that has effects, into its order. */
static void order(body *s, sx_tf_value node, bool effects)
{
    if (!s->ordered) {
        return;
    }
    if (!effects) {
        sx_tf_control(s->w, node, (sx_tf_values){&s->last, s->has_last ? 1 : 0});
        s->readers[s->n_readers++] = node;
        return;
    }
    s->readers[s->n_readers] = s->last;
    sx_tf_control(s->w, node, (sx_tf_values){s->readers, s->n_readers + (s->has_last ? 1 : 0)});
    s->last = node;
    s->has_last = true;
    s->n_readers = 0;
}

static sx_status write_nodes(body *s);

/* Operands, then handles: the arguments of a function, a branch or a loop. */
typedef struct args {
    int n, n_values;
    int *types;
    sx_tf_value *in;
    int *variables; /* [n - n_values] */
} args;

static sx_status collect_args(body *s, const sx_value *values, int n, const facts *f, args *out)
{
    sx_tf_exporter *e = s->e;
    const size_t most = (size_t)n + (size_t)e->n_handles + 1;
    *out = (args){.n_values = n,
                  .types = sx_arena_array(&e->arena, most, int),
                  .in = sx_arena_array(&e->arena, most, sx_tf_value),
                  .variables = sx_arena_array(&e->arena, most, int)};
    if (out->types == NULL || out->in == NULL || out->variables == NULL) {
        return no_memory();
    }
    for (int i = 0; i < n; i++) {
        out->types[i] = dtype_of(s, values[i]);
        out->in[i] = value_of(s, values[i]);
    }
    out->n = n;
    for (int i = 0; i < e->n_handles; i++) {
        if (f->uses[i]) {
            out->variables[out->n - n] = i;
            out->types[out->n] = SX_TF_RESOURCE;
            out->in[out->n++] = s->handles[i];
        }
    }
    return SX_OK;
}

/* Writes a body as a function of the graph: first its arguments, then handles. `passed`: after its
 * results it returns its arguments from that one on; -1 = none. */
static sx_status write_function(sx_tf_exporter *e, sx_tf_writer *w, const char *name,
                                const sx_graph *graph, const args *a, bool effects, int passed,
                                const char **out_name)
{
    const int n_passed = passed >= 0 ? a->n - passed : 0, n = graph->n_results + n_passed;
    sx_tf_value *values = sx_arena_array(&e->arena, graph->n_values, sx_tf_value);
    sx_tf_value *handles = sx_arena_array(&e->arena, e->n_handles + 1, sx_tf_value);
    sx_tf_value *results = sx_arena_array(&e->arena, n + 1, sx_tf_value);
    sx_tf_value *readers = sx_arena_array(&e->arena, graph->n_nodes + 1, sx_tf_value);
    int *types = sx_arena_array(&e->arena, n + 1, int);
    if (values == NULL || handles == NULL || results == NULL || types == NULL || readers == NULL) {
        return no_memory();
    }
    sx_tf_writer *inside = sx_tf_function_begin(w, name, a->n, a->types);
    for (int i = 0; i < graph->n_args; i++) {
        values[graph->args[i].value.id] = sx_tf_arg(i);
    }
    for (int i = a->n_values; i < a->n; i++) {
        handles[a->variables[i - a->n_values]] = sx_tf_arg(i);
    }
    body s = {.e = e,
              .w = inside,
              .graph = graph,
              .values = values,
              .handles = handles,
              .ordered = effects,
              .readers = readers};
    sx_status status = write_nodes(&s);
    for (int i = 0; i < graph->n_results; i++) {
        results[i] = values[graph->results[i].value.id];
        types[i] = dtype_of(&s, graph->results[i].value);
    }
    for (int i = 0; i < n_passed; i++) {
        results[graph->n_results + i] = sx_tf_arg(passed + i);
        types[graph->n_results + i] = a->types[passed + i];
    }
    *out_name = sx_tf_function_end(inside, (sx_tf_values){results, n}, types);
    return status;
}

static sx_status region_facts(body *s, const sx_node *node, facts *out)
{
    SX_TRY(facts_begin(s->e, out));
    for (int k = 0; k < node->op->n_attrs; k++) {
        if (node->op->attrs[k].kind == SX_ATTR_BODY) {
            SX_TRY(learn(s->e, sx_node_body(node, k), out));
        }
    }
    return SX_OK;
}

/* The outputs of a node, or of its first n. */
static void set_outputs(body *s, const sx_node *node, sx_tf_value first)
{
    for (int i = 0; i < node->n_outputs; i++) {
        s->values[node->first_output.id + (uint32_t)i] = sx_tf_output(first, i);
    }
}

/* A call; attributes are those of PartitionedCall. */
static sx_status add_call(sx_tf_exporter *e, sx_tf_writer *w, const char *name,
                          const sx_function *function, const args *a, sx_tf_value *out)
{
    struct function *f = state_of(e, function);
    const sx_graph *callee = function->body;
    int *types = sx_arena_array(&e->arena, callee->n_results + 1, int);
    if (types == NULL) {
        return no_memory();
    }
    if (f->written == NULL) {
        const char *unique = sx_arena_printf(&e->arena, "inference_%s", function->name);
        if (unique == NULL) {
            return no_memory();
        }
        SX_TRY(write_function(e, w, unique, callee, a, f->facts.effects, -1, &f->written));
    }
    for (int i = 0; i < callee->n_results; i++) {
        types[i] = (int)sx_graph_type(callee, callee->results[i].value)->dtype;
    }
    const bool stateful = f->facts.reads || f->facts.effects;
    *out = sx_tf_add(w, stateful ? "StatefulPartitionedCall" : "PartitionedCall", name,
                     (sx_tf_values){a->in, a->n},
                     sx_tf_attrs(sx_tf_attr_types("Tin", a->n, a->types),
                                 sx_tf_attr_types("Tout", callee->n_results, types),
                                 sx_tf_attr_func("f", f->written)));
    return SX_OK;
}

static sx_status write_call(body *s, const sx_node *node)
{
    const sx_function *called;
    facts f;
    args a;
    sx_tf_value first;
    SX_TRY(find_function(s->e, attr_function(node), &called));
    SX_TRY(facts_begin(s->e, &f));
    SX_TRY(learn_function(s->e, called, &f));
    SX_TRY(collect_args(s, node->inputs, node->n_inputs, &f, &a));
    SX_TRY(add_call(s->e, s->w, NULL, called, &a, &first));
    if (f.reads || f.effects) {
        order(s, first, f.effects);
    }
    set_outputs(s, node, first);
    return SX_OK;
}

static sx_status write_if(body *s, const sx_node *node)
{
    const sx_if_attrs *attrs = node->attrs;
    facts f;
    args a;
    const char *then_name, *else_name;
    SX_TRY(region_facts(s, node, &f));
    SX_TRY(collect_args(s, node->inputs + 1, node->n_inputs - 1, &f, &a));
    SX_TRY(write_function(s->e, s->w, "then", attrs->then_body, &a, f.effects, -1, &then_name));
    SX_TRY(write_function(s->e, s->w, "else", attrs->else_body, &a, f.effects, -1, &else_name));
    int *types = sx_arena_array(&s->e->arena, node->n_outputs + 1, int);
    sx_type *shapes = sx_arena_array(&s->e->arena, node->n_outputs + 1, sx_type);
    sx_tf_value *in = sx_arena_array(&s->e->arena, a.n + 1, sx_tf_value);
    if (types == NULL || in == NULL || shapes == NULL) {
        return no_memory();
    }
    in[0] = value_of(s, node->inputs[0]);
    memcpy(in + 1, a.in, (size_t)a.n * sizeof(*in));
    for (int i = 0; i < node->n_outputs; i++) {
        types[i] = dtype_of(s, sx_node_output(node, i));
        shapes[i] = any_shape(sx_graph_type(s->graph, sx_node_output(node, i)));
    }
    const bool stateful = f.reads || f.effects;
    const sx_tf_value first = sx_tf_add(
        s->w, stateful ? "If" : "StatelessIf", NULL, (sx_tf_values){in, a.n + 1},
        sx_tf_attrs(sx_tf_attr_type("Tcond", SX_BOOL), sx_tf_attr_types("Tin", a.n, a.types),
                    sx_tf_attr_types("Tout", node->n_outputs, types),
                    sx_tf_attr_func("then_branch", then_name),
                    sx_tf_attr_func("else_branch", else_name),
                    sx_tf_attr_shapes("output_shapes", node->n_outputs, shapes)));
    if (stateful) {
        order(s, first, f.effects);
    }
    set_outputs(s, node, first);
    return SX_OK;
}

/* The bound of its trips, if it has one, is the model's own business: its condition says when it
 * ends. */
static sx_status write_while(body *s, const sx_node *node)
{
    const sx_while_attrs *attrs = node->attrs;
    facts f;
    args a;
    const char *condition_name, *body_name;
    SX_TRY(region_facts(s, node, &f));
    SX_TRY(collect_args(s, node->inputs, node->n_inputs, &f, &a));
    SX_TRY(write_function(s->e, s->w, "condition", attrs->condition, &a, f.effects, -1,
                          &condition_name));
    SX_TRY(write_function(s->e, s->w, "body", attrs->body, &a, f.effects, node->n_outputs,
                          &body_name));
    sx_type *shapes = sx_arena_array(&s->e->arena, a.n + 1, sx_type);
    if (shapes == NULL) {
        return no_memory();
    }
    for (int i = 0; i < a.n; i++) { /* those of the first iteration need not be those of the last */
        const sx_value v = i < node->n_outputs  ? sx_node_output(node, i)
                           : i < node->n_inputs ? node->inputs[i]
                                                : SX_NO_VALUE;
        shapes[i] =
            sx_value_is(v) ? any_shape(sx_graph_type(s->graph, v)) : sx_scalar_type(SX_RESOURCE);
    }
    const bool stateful = f.reads || f.effects;
    const sx_tf_value first = sx_tf_add(
        s->w, stateful ? "While" : "StatelessWhile", NULL, (sx_tf_values){a.in, a.n},
        sx_tf_attrs(sx_tf_attr_types("T", a.n, a.types), sx_tf_attr_func("cond", condition_name),
                    sx_tf_attr_func("body", body_name),
                    sx_tf_attr_shapes("output_shapes", a.n, shapes)));
    if (stateful) {
        order(s, first, f.effects);
    }
    set_outputs(s, node, first);
    return SX_OK;
}

/* ---- map ---- */

/* A tensor list's element_shape: the dimensions of x without axis 0, -1 where unknown. */
static sx_tf_value element_shape(sx_tf_writer *w, const sx_type *x)
{
    if (x->rank == SX_UNKNOWN_RANK) {
        return sx_tf_const_i32(w, "element_shape", -1);
    }
    int32_t dims[SX_MAX_RANK];
    for (int d = 1; d < x->rank; d++) {
        dims[d - 1] = x->dims[d] < 0 ? -1 : (int32_t)x->dims[d];
    }
    return sx_tf_const_i32s(w, "element_shape", x->rank - 1, dims);
}

/* while i < n:  the results' lists[i] = region(the operands' lists[i], the other operands)
 *
 *   state   i, n, a list of each result, a list of each mapped operand, other operands, handles */
static sx_status write_map(body *s, const sx_node *node)
{
    const sx_map_attrs *attrs = node->attrs;
    sx_tf_exporter *e = s->e;
    const int mapped = (int)attrs->mapped, n_y = node->n_outputs, first_x = 2 + n_y;
    facts f;
    args a, inner;
    const char *name;
    SX_TRY(region_facts(s, node, &f));
    SX_TRY(collect_args(s, node->inputs, node->n_inputs, &f, &a));
    const int n = first_x + a.n;
    inner = a;
    SX_TRY(write_function(e, s->w, "element", attrs->body, &inner, f.effects, -1, &name));
    int *types = sx_arena_array(&e->arena, n + 1, int);
    int *y_types = sx_arena_array(&e->arena, n_y + 1, int);
    sx_tf_value *state = sx_arena_array(&e->arena, n + 1, sx_tf_value);
    sx_tf_value *results = sx_arena_array(&e->arena, n + 1, sx_tf_value);
    sx_type *shapes = sx_arena_array(&e->arena, n + 1, sx_type);
    if (types == NULL || y_types == NULL || state == NULL || results == NULL || shapes == NULL) {
        return no_memory();
    }
    const bool stateful = f.reads || f.effects;
    sx_tf_writer *w = s->w;
    const sx_tf_value shape = sx_tf_add(
        w, "Shape", NULL, sx_tf_in(a.in[0]),
        sx_tf_attrs(sx_tf_attr_type("T", a.types[0]), sx_tf_attr_type("out_type", SX_I32)));
    const sx_tf_value zero = sx_tf_const_i32(w, "zero", 0);
    state[0] = zero;
    state[1] = sx_tf_add(w, "GatherV2", "length", sx_tf_in(shape, zero, zero),
                         sx_tf_attrs(sx_tf_attr_type("Tparams", SX_I32),
                                     sx_tf_attr_type("Tindices", SX_I32),
                                     sx_tf_attr_type("Taxis", SX_I32)));
    types[0] = types[1] = SX_I32;
    shapes[0] = shapes[1] = sx_scalar_type(SX_I32);
    for (int i = 0; i < n_y; i++) {
        const sx_type *y = sx_graph_type(s->graph, sx_node_output(node, i));
        y_types[i] = (int)y->dtype;
        state[2 + i] =
            sx_tf_add(w, "TensorListReserve", NULL, sx_tf_in(element_shape(w, y), state[1]),
                      sx_tf_attrs(sx_tf_attr_type("element_dtype", y_types[i]),
                                  sx_tf_attr_type("shape_type", SX_I32)));
        types[2 + i] = SX_TF_VARIANT;
        shapes[2 + i] = sx_scalar_type(SX_I32);
    }
    for (int i = 0; i < a.n; i++) {
        const bool value = i < a.n_values;
        const sx_type x = value ? any_shape(sx_graph_type(s->graph, node->inputs[i]))
                                : sx_scalar_type(SX_RESOURCE);
        types[first_x + i] = i < mapped ? SX_TF_VARIANT : a.types[i];
        shapes[first_x + i] = i < mapped ? sx_scalar_type(SX_I32) : x;
        state[first_x + i] =
            i >= mapped ? a.in[i]
                        : sx_tf_add(w, "TensorListFromTensor", NULL,
                                    sx_tf_in(a.in[i], element_shape(w, &x)),
                                    sx_tf_attrs(sx_tf_attr_type("element_dtype", a.types[i]),
                                                sx_tf_attr_type("shape_type", SX_I32)));
    }
    sx_tf_writer *condition = sx_tf_function_begin(w, "condition", n, types);
    const sx_tf_value less =
        sx_tf_add(condition, "Less", NULL, sx_tf_in(sx_tf_arg(0), sx_tf_arg(1)),
                  sx_tf_attrs(sx_tf_attr_type("T", SX_I32)));
    const int bool_type = SX_BOOL;
    const char *condition_name = sx_tf_function_end(condition, sx_tf_in(less), &bool_type);

    sx_tf_writer *loop = sx_tf_function_begin(w, "body", n, types);
    sx_tf_value *in = sx_arena_array(&e->arena, a.n + 1, sx_tf_value);
    if (in == NULL) {
        return no_memory();
    }
    for (int i = 0; i < a.n; i++) {
        in[i] =
            i >= mapped
                ? sx_tf_arg(first_x + i)
                : sx_tf_add(loop, "TensorListGetItem", NULL,
                            sx_tf_in(sx_tf_arg(first_x + i), sx_tf_arg(0),
                                     element_shape(loop, sx_graph_type(s->graph, node->inputs[i]))),
                            sx_tf_attrs(sx_tf_attr_type("element_dtype", a.types[i])));
    }
    const sx_tf_value y =
        sx_tf_add(loop, stateful ? "StatefulPartitionedCall" : "PartitionedCall", NULL,
                  (sx_tf_values){in, a.n},
                  sx_tf_attrs(sx_tf_attr_types("Tin", a.n, a.types),
                              sx_tf_attr_types("Tout", n_y, y_types), sx_tf_attr_func("f", name)));
    if (f.effects) {
        sx_tf_control(loop, y, SX_TF_NO_IN);
    }
    results[0] =
        sx_tf_add(loop, "AddV2", NULL, sx_tf_in(sx_tf_arg(0), sx_tf_const_i32(loop, "one", 1)),
                  sx_tf_attrs(sx_tf_attr_type("T", SX_I32)));
    for (int i = 1; i < n; i++) {
        const bool set = i >= 2 && i < first_x;
        results[i] = !set
                         ? sx_tf_arg(i)
                         : sx_tf_add(loop, "TensorListSetItem", NULL,
                                     sx_tf_in(sx_tf_arg(i), sx_tf_arg(0), sx_tf_output(y, i - 2)),
                                     sx_tf_attrs(sx_tf_attr_type("element_dtype", y_types[i - 2])));
    }
    const char *body_name = sx_tf_function_end(loop, (sx_tf_values){results, n}, types);
    const sx_tf_value last = sx_tf_add(
        w, stateful ? "While" : "StatelessWhile", NULL, (sx_tf_values){state, n},
        sx_tf_attrs(sx_tf_attr_types("T", n, types), sx_tf_attr_func("cond", condition_name),
                    sx_tf_attr_func("body", body_name),
                    sx_tf_attr_shapes("output_shapes", n, shapes)));
    if (stateful) {
        order(s, last, f.effects);
    }
    for (int i = 0; i < n_y; i++) {
        const sx_type *type = sx_graph_type(s->graph, sx_node_output(node, i));
        s->values[node->first_output.id + (uint32_t)i] = sx_tf_add(
            w, "TensorListStack", NULL, sx_tf_in(sx_tf_output(last, 2 + i), element_shape(w, type)),
            sx_tf_attrs(sx_tf_attr_type("element_dtype", y_types[i])));
    }
    return SX_OK;
}

/* ---- Variables and effects ---- */

static sx_status write_handle(body *s, const sx_node *node)
{
    const sx_variable_handle_attrs *attrs = node->attrs;
    const sx_variable_spec *v = sx_library_find_variable(s->e->library, attrs->name);
    s->values[node->first_output.id] = s->handles[v - s->e->library->variables];
    return SX_OK;
}

static sx_status write_read(body *s, const sx_node *node)
{
    const sx_tf_value y =
        sx_tf_add(s->w, "ReadVariableOp", NULL, sx_tf_in(value_of(s, node->inputs[0])),
                  sx_tf_attrs(sx_tf_attr_type("dtype", dtype_of(s, node->first_output))));
    order(s, y, false);
    s->values[node->first_output.id] = y;
    return SX_OK;
}

static sx_status write_assign(body *s, const sx_node *node)
{
    const sx_tf_value value = value_of(s, node->inputs[1]);
    order(s,
          sx_tf_add(s->w, "AssignVariableOp", NULL, sx_tf_in(value_of(s, node->inputs[0]), value),
                    sx_tf_attrs(sx_tf_attr_type("dtype", dtype_of(s, node->inputs[1])))),
          true);
    s->values[node->first_output.id] = value;
    return SX_OK;
}

/* The inputs from `first` on, and their types. */
static sx_status collect_data(body *s, const sx_node *node, int first, const char *message,
                              sx_tf_value *head, sx_tf_values *out, int **out_types)
{
    sx_tf_value *in = sx_arena_array(&s->e->arena, node->n_inputs + 3, sx_tf_value);
    int *types = sx_arena_array(&s->e->arena, node->n_inputs + 2, int), n = 0;
    if (in == NULL || types == NULL) {
        return no_memory();
    }
    in[0] = *head;
    if (message != NULL && message[0] != '\0') {
        const sx_bytes text = {message, strlen(message)};
        types[n++] = SX_STRING;
        in[n] = sx_tf_const(s->w, "message",
                            &(sx_tensor){sx_scalar_type(SX_STRING), (void *)(uintptr_t)&text});
    }
    for (int i = first; i < node->n_inputs; i++) {
        types[n++] = dtype_of(s, node->inputs[i]);
        in[n] = value_of(s, node->inputs[i]);
    }
    *out = (sx_tf_values){in, n + 1};
    *out_types = types;
    return SX_OK;
}

/* The message is the first of what an Assert shows. */
static sx_status write_assert(body *s, const sx_node *node)
{
    const sx_assert_attrs *attrs = node->attrs;
    sx_tf_value condition = value_of(s, node->inputs[0]);
    sx_tf_values in;
    int *types;
    SX_TRY(collect_data(s, node, 1, attrs->message != NULL ? attrs->message : "", &condition, &in,
                        &types));
    if (in.count == 1) { /* it shows something */
        const sx_bytes text = {node->name, strlen(node->name)};
        ((sx_tf_value *)(uintptr_t)in.items)[in.count++] = sx_tf_const(
            s->w, "message", &(sx_tensor){sx_scalar_type(SX_STRING), (void *)(uintptr_t)&text});
        types[0] = SX_STRING;
    }
    order(s,
          sx_tf_add(s->w, "Assert", NULL, in,
                    sx_tf_attrs(sx_tf_attr_types("T", in.count - 1, types))),
          true);
    s->values[node->first_output.id] = condition;
    return SX_OK;
}

static sx_status write_print(body *s, const sx_node *node)
{
    const sx_print_attrs *attrs = node->attrs;
    sx_tf_value x = value_of(s, node->inputs[0]);
    sx_tf_values in;
    int *types;
    SX_TRY(collect_data(s, node, 1, NULL, &x, &in, &types));
    sx_tf_attr list[4] = {sx_tf_attr_type("T", dtype_of(s, node->inputs[0])),
                          sx_tf_attr_types("U", in.count - 1, types)};
    int n = 2;
    if (attrs->message != NULL && attrs->message[0] != '\0') {
        list[n++] = sx_tf_attr_string("message", attrs->message);
    }
    if (attrs->elements != 0 && attrs->elements != 3) {
        list[n++] = sx_tf_attr_int("summarize", attrs->elements);
    }
    const sx_tf_value y = sx_tf_add(s->w, "Print", NULL, in, (sx_tf_attr_list){list, n});
    order(s, y, true);
    s->values[node->first_output.id] = y;
    return SX_OK;
}

/* iota of a computed shape: Range, in the axis' place, broadcast. */
static sx_status write_iota(body *s, const sx_node *node)
{
    const sx_iota_attrs *attrs = node->attrs;
    if (node->n_attr_operands == 0) {
        return write_plain(s, node);
    }
    const sx_value shape = node->attr_operands[0].value;
    const sx_type *of = sx_graph_type(s->graph, shape);
    sx_tf_writer *w = s->w;
    if (node->n_attr_operands != 1 || of->rank != 1 || of->dims[0] < 1 ||
        of->dims[0] > SX_MAX_RANK) {
        return sx_error(SX_UNIMPLEMENTED,
                        "iota \"%.100s\" of an unknown rank cannot be exported to TensorFlow",
                        node->name);
    }
    const int rank = (int)of->dims[0], axis = (int)attrs->axis;
    const sx_tf_attr_list t = sx_tf_attrs(sx_tf_attr_type("T", (int)attrs->dtype));
    const sx_tf_value dims = sx_tf_cast(w, value_of(s, shape), of->dtype, SX_I32);
    const sx_tf_value limit = sx_tf_add(
        w, "GatherV2", "limit",
        sx_tf_in(dims, sx_tf_const_i32(w, "axis", axis), sx_tf_const_i32(w, "zero", 0)),
        sx_tf_attrs(sx_tf_attr_type("Tparams", SX_I32), sx_tf_attr_type("Tindices", SX_I32),
                    sx_tf_attr_type("Taxis", SX_I32)));
    const sx_tf_value range =
        sx_tf_add(w, "Range", NULL,
                  sx_tf_in(sx_tf_const_i32(w, "start", 0), limit, sx_tf_const_i32(w, "delta", 1)),
                  SX_TF_NO_ATTRS);
    sx_tf_value y = sx_tf_cast(w, range, SX_I32, attrs->dtype);
    if (rank > 1) {
        sx_ints along = {.n = rank};
        for (int i = 0; i < rank; i++) {
            along.v[i] = i == axis ? -1 : 1;
        }
        y = sx_tf_add(w, "Reshape", NULL, sx_tf_in(y, sx_tf_ints(w, "along", &along)), t);
        y = sx_tf_add(w, "BroadcastTo", NULL, sx_tf_in(y, dims), t);
    }
    s->values[node->first_output.id] = y;
    return SX_OK;
}

/* ---- A body ---- */

/* In a function the table is an argument, handed down from the graph. */
static sx_status write_lookup(body *s, const sx_node *node)
{
    if (s->handles == NULL) {
        return write_plain(s, node);
    }
    const sx_tf_value x = value_of(s, node->inputs[0]);
    sx_vocabulary_find(s->w,
                       &(sx_tf_op){.attrs = node->attrs,
                                   .name = node->name,
                                   .in = &x,
                                   .out = &s->values[node->first_output.id],
                                   .n_in = 1,
                                   .n_out = 1},
                       s->handles[s->e->n_variables + find_vocabulary(s->e, node)]);
    return SX_OK;
}

static const row rows[] = {
    {&sx_op_call, write_call},
    {&sx_op_if, write_if},
    {&sx_op_while, write_while},
    {&sx_op_map, write_map},
    {&sx_op_variable_handle, write_handle},
    {&sx_op_read_variable, write_read},
    {&sx_op_assign_variable, write_assign},
    {&sx_op_assert, write_assert},
    {&sx_op_print, write_print},
    {&sx_op_iota, write_iota},
    {&sx_op_vocabulary_lookup, write_lookup},
};

static write_fn *writer_of(const sx_op_def *op)
{
    for (size_t i = 0; i < SX_COUNT(rows); i++) {
        if (rows[i].op == op) {
            return rows[i].write;
        }
    }
    return op->to_tf != NULL ? write_plain : NULL;
}

static sx_status write_nodes(body *s)
{
    for (int i = 0; i < s->graph->n_nodes; i++) {
        const sx_node *node = &s->graph->nodes[i];
        if (node->op == &sx_op_parameter) {
            continue;
        }
        sx_tf_scope_push(s->w, node->name);
        sx_status status = writer_of(node->op)(s, node);
        sx_tf_scope_pop(s->w);
        SX_TRY(status);
    }
    return SX_OK;
}

sx_status sx_tf_exporter_nodes(sx_tf_exporter *e, sx_tf_writer *w, const sx_graph *graph,
                               sx_tf_value *values)
{
    body s = {.e = e, .w = w, .graph = graph, .values = values};
    return write_nodes(&s);
}

sx_status sx_tf_exporter_call(sx_tf_exporter *e, sx_tf_writer *w, const char *name,
                              const sx_function *function, const sx_tf_value *in,
                              const sx_tf_value *handles, sx_tf_value *out)
{
    const sx_graph *callee = function->body;
    sx_value *values = sx_arena_array(&e->arena, callee->n_args + 1, sx_value);
    sx_tf_value *given = sx_arena_array(&e->arena, callee->n_values, sx_tf_value), first;
    facts f;
    args a;
    if (values == NULL || given == NULL) {
        return no_memory();
    }
    for (int i = 0; i < callee->n_args; i++) {
        values[i] = callee->args[i].value;
        given[values[i].id] = in[i];
    }
    body s = {.e = e, .w = w, .graph = callee, .values = given, .handles = handles};
    SX_TRY(facts_begin(e, &f));
    SX_TRY(learn_function(e, function, &f));
    SX_TRY(collect_args(&s, values, callee->n_args, &f, &a));
    SX_TRY(add_call(e, w, name, function, &a, &first));
    for (int i = 0; i < callee->n_results; i++) {
        out[i] = sx_tf_output(first, i);
    }
    return SX_OK;
}

/* ---- Before anything is written ---- */

static sx_status check(sx_tf_exporter *e, const sx_graph *graph)
{
    for (int i = 0; i < graph->n_nodes; i++) {
        const sx_node *node = &graph->nodes[i];
        const bool is_gradient =
            node->op == &sx_op_call && ((const sx_call_attrs *)node->attrs)->gradient != 0;
        const bool open = writer_of(node->op) == write_plain && node->n_attr_operands > 0;
        if (node->op != &sx_op_parameter &&
            (writer_of(node->op) == NULL || is_gradient || (open && form_of(node) == NULL))) {
            sx_buf_printf(&e->refused, "%s%s \"%s\"%s", e->refused.size > 0 ? ", " : "",
                          node->op->name, node->name,
                          is_gradient ? " (a gradient)"
                          : open      ? " (with computed attributes)"
                                      : "");
        }
        for (int k = 0; k < node->op->n_attrs; k++) {
            if (node->op->attrs[k].kind == SX_ATTR_BODY) {
                SX_TRY(check(e, sx_node_body(node, k)));
            }
        }
        if (node->op == &sx_op_call) {
            const sx_function *called;
            SX_TRY(find_function(e, attr_function(node), &called));
            if (!state_of(e, called)->checked) {
                state_of(e, called)->checked = true;
                SX_TRY(check(e, called->body));
            }
        }
    }
    return SX_OK;
}

sx_status sx_tf_exporter_check(sx_tf_exporter *e, const sx_graph *const *bodies, int n)
{
    facts f;
    SX_TRY(facts_begin(e, &f));
    for (int i = 0; i < n; i++) {
        SX_TRY(check(e, bodies[i]));
        SX_TRY(learn(e, bodies[i], &f));
    }
    return e->refused.size == 0
               ? SX_OK
               : sx_error(SX_UNIMPLEMENTED, "operators that cannot be exported to TensorFlow: %s",
                          sx_buf_text(&e->refused));
}
