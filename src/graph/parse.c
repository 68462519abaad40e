/* Reads the text form that print.c writes. Foreign bytes: every count is bounded by the text's
 * length and SX_GRAPH_MAX_NODES, and each node goes through the builder, which infers its types
 * again; the types in the text must agree. */
#include <string.h>

#include "base/memory.h"
#include "graph/attr_rows.h"
#include "graph/builder.h"
#include "graph/text.h"

typedef struct parser {
    sx_lexer lexer;
    sx_builder *b;
    sx_arena *arena; /* the graph's */
} parser;

/* Index of the current word in a NULL-terminated list. */
static sx_status take_name_of(sx_lexer *l, const char *const *names, const char *what,
                              int *out_index)
{
    for (int i = 0; names[i] != NULL; i++) {
        if (sx_lexer_accept_word(l, names[i])) {
            *out_index = i;
            return SX_OK;
        }
    }
    return sx_lexer_error(l, what);
}

/* A value must be written as the number it gets: ids are positions. */
static sx_status check_id(const parser *p, uint32_t id, sx_value got)
{
    if (sx_builder_failed(p->b) || id == got.id) {
        return SX_OK;
    }
    return sx_error(SX_INVALID_ARGUMENT, "line %d: value %%%u is out of order, expected %%%u",
                    p->lexer.line, id, got.id);
}

static sx_status parse_arg(parser *p, sx_arg_kind kind)
{
    sx_lexer *l = &p->lexer;
    sx_arg arg = {.kind = kind};
    uint32_t id;
    sx_type type;
    SX_TRY(sx_lexer_take_value(l, &id));
    SX_TRY(sx_type_parse(l, &type));
    SX_TRY(sx_lexer_take_string(l, "the argument's name", &arg.name));
    if (kind == SX_ARG_VARIABLE) {
        int role = 0, init = 0;
        SX_TRY(take_name_of(l, sx_role_names, "a variable's role", &role));
        SX_TRY(take_name_of(l, sx_initializer_names, "an initializer", &init));
        if (l->kind == SX_TOKEN_NUMBER) {
            SX_TRY(sx_lexer_take_float(l, &arg.init_value));
        }
        arg.role = (sx_variable_role)role;
        arg.init = (sx_initializer)init;
        if (!sx_type_is_static(&type)) {
            return sx_lexer_error(l, "a static type for a variable");
        }
    }
    return check_id(p, id, sx_build_arg(p->b, &arg, type));
}

/* "%1, %2": their first and count; consecutive. */
static sx_status parse_outputs(parser *p, uint32_t *out_first, int *out_count)
{
    sx_lexer *l = &p->lexer;
    SX_TRY(sx_lexer_take_value(l, out_first));
    *out_count = 1;
    while (sx_lexer_accept(l, ',')) {
        uint32_t id;
        SX_TRY(sx_lexer_take_value(l, &id));
        if (id != *out_first + (uint32_t)*out_count || *out_count == SX_MAX_OUTPUTS) {
            return sx_lexer_error(l, "consecutive outputs, at most 8");
        }
        ++*out_count;
    }
    return SX_OK;
}

static sx_status parse_inputs(parser *p, sx_value *inputs, int *out_count)
{
    sx_lexer *l = &p->lexer;
    *out_count = 0;
    SX_TRY(sx_lexer_expect(l, '('));
    while (!sx_lexer_is_punct(l, ')')) {
        if (*out_count > 0) {
            SX_TRY(sx_lexer_expect(l, ','));
        }
        if (*out_count == SX_NODE_MAX_INPUTS) {
            return sx_lexer_error(l, "at most 4096 inputs");
        }
        SX_TRY(sx_lexer_take_value(l, &inputs[*out_count].id));
        ++*out_count;
    }
    return sx_lexer_expect(l, ')');
}

static sx_status parse_place(parser *p, sx_node_spec *spec)
{
    sx_lexer *l = &p->lexer;
    spec->device = spec->file = "";
    if (sx_lexer_accept_word(l, "on")) {
        SX_TRY(sx_lexer_take_string(l, "a device", &spec->device));
    }
    if (sx_lexer_accept_word(l, "at")) {
        int64_t line;
        SX_TRY(sx_lexer_take_string(l, "a file", &spec->file));
        SX_TRY(sx_lexer_take_int(l, &line));
        spec->line = (int)line;
    }
    return SX_OK;
}

static sx_status check_types(const parser *p, sx_value first, const sx_type *types, int count)
{
    for (int i = 0; i < count && !sx_builder_failed(p->b); i++) {
        sx_value v = sx_output_of(first, i);
        sx_type made = sx_type_of_value(p->b, v);
        if (!sx_type_equal(&made, &types[i])) {
            char a[SX_TYPE_TEXT], b[SX_TYPE_TEXT];
            return sx_error(SX_INVALID_ARGUMENT, "line %d: value %%%u is declared as %s but is %s",
                            p->lexer.line, v.id, sx_type_format(&types[i], a, sizeof(a)),
                            sx_type_format(&made, b, sizeof(b)));
        }
    }
    return SX_OK;
}

static sx_status parse_node(parser *p, sx_value *inputs)
{
    sx_lexer *l = &p->lexer;
    uint32_t first;
    int n_outputs;
    const char *op_name;
    SX_TRY(parse_outputs(p, &first, &n_outputs));
    SX_TRY(sx_lexer_expect(l, '='));
    SX_TRY(sx_lexer_take_word(l, "an operator", &op_name));
    sx_node_spec spec = {.op = sx_op_find(op_name), .inputs = inputs};
    if (spec.op == NULL || spec.op == &sx_op_parameter) {
        return sx_error(SX_NOT_FOUND, "line %d: no operator \"%.60s\"", l->line, op_name);
    }
    SX_TRY(parse_inputs(p, inputs, &spec.n_inputs));
    void *attrs = sx_arena_alloc(p->arena, 1, spec.op->attrs_bytes + 1);
    if (attrs == NULL) {
        return sx_error(SX_RESOURCE_EXHAUSTED, "line %d: out of memory", l->line);
    }
    SX_TRY(sx_attrs_parse(spec.op, l, p->arena, attrs));
    spec.attrs = attrs;
    sx_type types[SX_MAX_OUTPUTS];
    for (int i = 0; i < n_outputs; i++) {
        if (i > 0) {
            SX_TRY(sx_lexer_expect(l, ','));
        }
        SX_TRY(sx_type_parse(l, &types[i]));
    }
    SX_TRY(sx_lexer_take_string(l, "the node's name", &spec.name));
    SX_TRY(parse_place(p, &spec));
    sx_value made = sx_build_node(p->b, &spec);
    SX_TRY(check_id(p, first, made));
    return check_types(p, made, types, n_outputs);
}

static sx_status parse_result(parser *p, bool is_output)
{
    const char *name;
    sx_value value;
    SX_TRY(sx_lexer_take_string(&p->lexer, "the result's name", &name));
    SX_TRY(sx_lexer_take_value(&p->lexer, &value.id));
    if (value.id == 0 || value.id >= (uint32_t)p->b->graph->n_values) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "line %d: result \"%.60s\" is %%%u, which does not exist", p->lexer.line,
                        name, value.id);
    }
    if (is_output) {
        sx_output(p->b, name, value);
    } else {
        sx_assign(p->b, name, value);
    }
    return SX_OK;
}

static sx_status parse_line(parser *p, sx_value *inputs)
{
    sx_lexer *l = &p->lexer;
    if (sx_lexer_accept_word(l, "variable")) {
        return parse_arg(p, SX_ARG_VARIABLE);
    }
    if (sx_lexer_accept_word(l, "input")) {
        return parse_arg(p, SX_ARG_INPUT);
    }
    if (sx_lexer_accept_word(l, "output")) {
        return parse_result(p, true);
    }
    if (sx_lexer_accept_word(l, "assign")) {
        return parse_result(p, false);
    }
    return parse_node(p, inputs);
}

static sx_status parse_all(parser *p)
{
    sx_lexer *l = &p->lexer;
    int64_t version = 0;
    if (!sx_lexer_accept_word(l, "sextant")) {
        return sx_lexer_error(l, "\"sextant-graph 1\"");
    }
    /* "-graph" lexes as a number-like run; the version follows it */
    if (l->kind != SX_TOKEN_NUMBER || l->size != 6 || memcmp(l->begin, "-graph", 6) != 0) {
        return sx_lexer_error(l, "\"sextant-graph 1\"");
    }
    sx_lexer_next(l);
    SX_TRY(sx_lexer_take_int(l, &version));
    if (version != 1) {
        return sx_error(SX_UNIMPLEMENTED, "the text is version %d of the graph format, expected 1",
                        (int)version);
    }
    sx_value *inputs = sx_arena_array(p->arena, SX_NODE_MAX_INPUTS, sx_value);
    if (inputs == NULL) {
        return sx_error(SX_RESOURCE_EXHAUSTED, "out of memory reading a graph");
    }
    while (l->kind != SX_TOKEN_END && !sx_builder_failed(p->b)) {
        SX_TRY(parse_line(p, inputs));
    }
    return SX_OK;
}

sx_status sx_graph_parse(const char *text, size_t size, sx_graph **out_graph)
{
    parser p = {0};
    SX_TRY(sx_builder_create(&p.b));
    p.arena = sx_builder_arena(p.b);
    sx_lexer_init(&p.lexer, text, size, p.arena);
    sx_status status = parse_all(&p);
    if (status == SX_OK) {
        status = sx_builder_finish(p.b, out_graph);
        if (status != SX_OK) {
            status = sx_status_annotate(status, __FILE__, __LINE__, "line %d", p.lexer.line);
        }
    }
    sx_builder_destroy(p.b);
    return status;
}
