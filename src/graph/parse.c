/* Reads the text form that print.c writes. The text is untrusted: every count is bounded by its
 * length and by limits, the nesting of regions is limited, and each node goes through the builder,
 * which infers its types again; the types in the text must agree. A function's types are declared.
 */
#include <stdio.h>
#include <string.h>

#include <sextant/function.h>

#include "base/args.h"
#include "base/memory.h"
#include "graph/attr_rows.h"
#include "graph/builder.h"
#include "graph/host.h"
#include "graph/ops/attrs.h"
#include "graph/text.h"

/* A graph or region being read. */
typedef struct parsed_graph {
    sx_parser *parser;
    sx_builder *b;
    sx_arena *arena;  /* scratch: the builder copies what it keeps */
    sx_value *inputs; /* [SX_NODE_MAX_INPUTS]: scratch */
    int64_t version;
    int line; /* where the statement being read begins; the lexer is past its end */
} parsed_graph;

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

/* Checks that a value is written with the number it gets: ids are positions. */
static sx_status check_id(const parsed_graph *p, uint32_t id, sx_value got)
{
    if (sx_builder_failed(p->b) || id == got.id) {
        return SX_OK;
    }
    return sx_error(SX_INVALID_ARGUMENT, "line %d: value %%%u is out of order, expected %%%u",
                    p->line, id, got.id);
}

sx_status sx_parse_variable(sx_lexer *l, sx_arg *out, sx_type *out_type)
{
    sx_arg arg = {.kind = SX_ARG_VARIABLE};
    int role = 0, init = 0;
    SX_TRY(sx_type_parse(l, out_type));
    SX_TRY(sx_lexer_take_string(l, "the argument's name", &arg.name));
    SX_TRY(take_name_of(l, sx_role_names, "a variable's role", &role));
    SX_TRY(take_name_of(l, sx_initializer_names, "an initializer", &init));
    if (l->kind == SX_TOKEN_NUMBER) {
        SX_TRY(sx_lexer_take_float(l, &arg.init_value));
    }
    arg.role = (sx_variable_role)role;
    arg.init = (sx_initializer)init;
    if (!sx_type_is_static(out_type)) {
        return sx_lexer_error(l, "a static type for a variable");
    }
    *out = arg;
    return SX_OK;
}

static sx_status parse_arg(parsed_graph *p, sx_arg_kind kind)
{
    sx_lexer *l = &p->parser->lexer;
    sx_arg arg = {.kind = kind};
    uint32_t id;
    sx_type type;
    SX_TRY(sx_lexer_take_value(l, &id));
    if (kind == SX_ARG_VARIABLE && p->b->graph->general) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "line %d: a function has no variables of its own; declare them in its "
                        "library, and read them through a variable_handle",
                        l->line);
    }
    if (kind == SX_ARG_VARIABLE) {
        SX_TRY(sx_parse_variable(l, &arg, &type));
    } else {
        SX_TRY(sx_type_parse(l, &type));
        SX_TRY(sx_lexer_take_string(l, "the argument's name", &arg.name));
    }
    const char *device = "";
    if (p->version >= 3 && p->parser->depth == 0 && sx_lexer_accept_word(l, "on")) {
        SX_TRY(sx_lexer_take_string(l, "a device", &device));
    }
    return check_id(p, id, sx_build_arg_on(p->b, &arg, type, device));
}

/* "%1, %2": consecutive values; returns the first and their number. */
static sx_status parse_outputs(sx_lexer *l, uint32_t *out_first, int *out_count)
{
    SX_TRY(sx_lexer_take_value(l, out_first));
    *out_count = 1;
    while (sx_lexer_accept(l, ',')) {
        uint32_t id;
        SX_TRY(sx_lexer_take_value(l, &id));
        if (id != *out_first + (uint32_t)*out_count || *out_count == SX_MAX_OUTPUTS) {
            return sx_lexer_error(l, "consecutive outputs, at most 256");
        }
        ++*out_count;
    }
    return SX_OK;
}

static sx_status parse_inputs(sx_lexer *l, sx_value *inputs, int *out_count)
{
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

static sx_status parse_place(sx_lexer *l, sx_node_spec *spec)
{
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

static sx_status check_types(const parsed_graph *p, sx_value first, const sx_type *types, int count)
{
    for (int i = 0; i < count && !sx_builder_failed(p->b); i++) {
        sx_value v = sx_output_of(first, i);
        sx_type made = sx_type_of_value(p->b, v);
        if (!sx_type_equal(&made, &types[i])) {
            char a[SX_TYPE_TEXT], b[SX_TYPE_TEXT];
            return sx_error(SX_INVALID_ARGUMENT, "line %d: value %%%u is declared as %s but is %s",
                            p->line, v.id, sx_type_format(&types[i], a, sizeof(a)),
                            sx_type_format(&made, b, sizeof(b)));
        }
    }
    return SX_OK;
}

/* Charges a node to the limits. */
static sx_status charge_node(sx_parser *p, const sx_op_def *op, const void *attrs)
{
    const int64_t most_nodes = p->limits.nodes > 0 ? p->limits.nodes : SX_GRAPH_MAX_NODES;
    const int64_t most_bytes = p->limits.constant_bytes > 0 ? p->limits.constant_bytes : 1 << 30;
    if (++p->nodes > most_nodes) {
        return sx_error(SX_RESOURCE_EXHAUSTED, "line %d: more than %lld nodes", p->lexer.line,
                        (long long)most_nodes);
    }
    for (int i = 0; i < op->n_attrs; i++) {
        const sx_tensor *t = (const void *)((const char *)attrs + op->attrs[i].offset);
        if (op->attrs[i].kind == SX_ATTR_TENSOR && t->data != NULL) {
            p->constant_bytes += sx_host_bytes(&t->type);
        }
    }
    if (p->constant_bytes > most_bytes) {
        return sx_error(SX_RESOURCE_EXHAUSTED,
                        "line %d: the constants take %lld bytes; the limit is %lld", p->lexer.line,
                        (long long)p->constant_bytes, (long long)most_bytes);
    }
    return SX_OK;
}

/* Parses the operator's regions into its attributes; those created are recorded in `made`. */
static sx_status parse_bodies(parsed_graph *p, const sx_op_def *op, void *attrs, sx_graph **made)
{
    sx_lexer *l = &p->parser->lexer;
    for (int row = 0; row < op->n_attrs; row++) {
        if (op->attrs[row].kind != SX_ATTR_BODY) {
            continue;
        }
        if (p->version < 2) {
            return sx_error(SX_INVALID_ARGUMENT, "line %d: %s has regions, which require version 2",
                            l->line, op->name);
        }
        if (!sx_lexer_accept_word(l, op->attrs[row].name)) {
            return sx_lexer_error(l, op->attrs[row].name);
        }
        if (p->parser->depth == SX_GRAPH_MAX_NESTING) {
            return sx_error(SX_RESOURCE_EXHAUSTED, "line %d: regions nest deeper than %d", l->line,
                            SX_GRAPH_MAX_NESTING);
        }
        p->parser->depth++;
        SX_TRY(sx_parse_graph_lines(p->parser, p->b->graph->general, p->version, &made[row]));
        p->parser->depth--;
        memcpy((char *)attrs + op->attrs[row].offset, &made[row], sizeof(made[row]));
        if (!sx_lexer_accept_word(l, "end")) {
            return sx_lexer_error(l, "\"end\"");
        }
    }
    return SX_OK;
}

static sx_status parse_node(parsed_graph *p)
{
    sx_lexer *l = &p->parser->lexer;
    uint32_t first;
    int n_outputs;
    const char *op_name;
    SX_TRY(parse_outputs(l, &first, &n_outputs));
    SX_TRY(sx_lexer_expect(l, '='));
    SX_TRY(sx_lexer_take_word(l, "an operator", &op_name));
    sx_node_spec spec = {.op = sx_op_find(op_name), .inputs = p->inputs};
    if (spec.op == NULL || spec.op == &sx_op_parameter) {
        return sx_error(SX_NOT_FOUND, "line %d: no operator \"%.60s\"", l->line, op_name);
    }
    SX_TRY(parse_inputs(l, p->inputs, &spec.n_inputs));
    enum { MOST_ROWS = 32 };
    sx_attr_operand operands[MOST_ROWS];
    void *attrs = sx_arena_alloc(p->arena, 1, spec.op->attrs_bytes + 1);
    if (attrs == NULL) {
        return sx_no_memory("for line %d of a graph", l->line);
    }
    const bool general = p->b->graph->general;
    SX_TRY(sx_attrs_parse(spec.op, l, p->arena, attrs,
                          general && spec.op->n_attrs <= MOST_ROWS ? operands : NULL,
                          &spec.n_attr_operands));
    SX_TRY(charge_node(p->parser, spec.op, attrs));
    spec.attrs = attrs;
    spec.attr_operands = operands;
    sx_type types[SX_MAX_OUTPUTS];
    for (int i = 0; i < n_outputs; i++) {
        if (i > 0) {
            SX_TRY(sx_lexer_expect(l, ','));
        }
        SX_TRY(sx_type_parse(l, &types[i]));
    }
    SX_TRY(sx_lexer_take_string(l, "the node's name", &spec.name));
    SX_TRY(parse_place(l, &spec));
    spec.types = general ? types : NULL;
    spec.n_types = n_outputs;
    sx_graph *bodies[MOST_ROWS] = {NULL};
    /* Regions have their own scratch, so the inputs are kept. */
    sx_status status = parse_bodies(p, spec.op, attrs, bodies);
    if (status == SX_OK) {
        sx_value made = sx_build_node(p->b, &spec);
        status = check_id(p, first, made);
        status = status != SX_OK ? status : check_types(p, made, types, n_outputs);
    }
    for (int row = 0; row < MOST_ROWS; row++) {
        sx_graph_destroy(bodies[row]);
    }
    return status;
}

static sx_status parse_result(parsed_graph *p, bool is_output)
{
    sx_lexer *l = &p->parser->lexer;
    const char *name;
    sx_value value;
    SX_TRY(sx_lexer_take_string(l, "the result's name", &name));
    SX_TRY(sx_lexer_take_value(l, &value.id));
    if (value.id == 0 || value.id >= (uint32_t)p->b->graph->n_values) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "line %d: result \"%.60s\" is %%%u, which does not exist", l->line, name,
                        value.id);
    }
    if (is_output) {
        sx_output(p->b, name, value);
    } else {
        sx_assign(p->b, name, value);
    }
    return SX_OK;
}

static sx_status parse_line(parsed_graph *p)
{
    sx_lexer *l = &p->parser->lexer;
    p->line = l->line;
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
    return parse_node(p);
}

sx_status sx_parse_graph_lines(sx_parser *parser, bool general, int64_t version, sx_graph **out)
{
    sx_lexer *l = &parser->lexer;
    sx_arena *outer = l->arena;
    parsed_graph p = {.parser = parser, .version = version};
    SX_TRY(general ? sx_builder_create_function(&p.b) : sx_builder_create(&p.b));
    sx_arena scratch;
    sx_arena_init(&scratch, 0);
    l->arena = p.arena = &scratch;
    p.inputs = sx_alloc(SX_NODE_MAX_INPUTS, sizeof(sx_value));
    sx_status status = p.inputs == NULL ? sx_no_memory("reading a graph") : SX_OK;
    while (status == SX_OK && l->kind != SX_TOKEN_END && !sx_lexer_is_word(l, "end") &&
           !sx_builder_failed(p.b)) {
        status = parse_line(&p);
    }
    l->arena = outer;
    if (status == SX_OK) {
        status =
            sx_status_annotate(sx_builder_finish(p.b, out), __FILE__, __LINE__, "line %d", p.line);
    }
    sx_free(p.inputs);
    sx_builder_destroy(p.b);
    sx_arena_deinit(&scratch);
    return status;
}

sx_status sx_parse_first_line(sx_parser *p, const char *form, int newest, int64_t *out_version)
{
    sx_lexer *l = &p->lexer;
    char expected[64];
    snprintf(expected, sizeof(expected), "\"sextant-%s %d\"", form, newest);
    if (!sx_lexer_accept_word(l, "sextant")) {
        return sx_lexer_error(l, expected);
    }
    /* "-graph" lexes as a number-like run; the version follows it */
    if (l->kind != SX_TOKEN_NUMBER || l->size != strlen(form) + 1 || l->begin[0] != '-' ||
        memcmp(l->begin + 1, form, strlen(form)) != 0) {
        return sx_lexer_error(l, expected);
    }
    sx_lexer_next(l);
    SX_TRY(sx_lexer_take_int(l, out_version));
    if (*out_version < 1 || *out_version > newest) {
        return sx_error(SX_UNIMPLEMENTED,
                        "the text is version %lld of the %s format, expected at most %d",
                        (long long)*out_version, form, newest);
    }
    return SX_OK;
}

sx_status sx_graph_parse(const char *text, size_t size, sx_graph **out_graph)
{
    SX_NEED(text);
    SX_NEED(out_graph);
    sx_arena arena;
    sx_parser p = {.depth = 0};
    int64_t version = 0;
    sx_graph *g = NULL;
    static const char function[] = "sextant-function";
    const bool general =
        size >= sizeof(function) - 1 && memcmp(text, function, sizeof(function) - 1) == 0;
    sx_arena_init(&arena, 0);
    sx_lexer_init(&p.lexer, text, size, &arena);
    sx_status status =
        sx_parse_first_line(&p, general ? "function" : "graph", general ? 2 : 3, &version);
    if (status == SX_OK) {
        status = sx_parse_graph_lines(&p, general, version, &g);
    }
    if (status == SX_OK && p.lexer.kind != SX_TOKEN_END) {
        status = sx_lexer_error(&p.lexer, "the end of the text");
    }
    sx_arena_deinit(&arena);
    if (status != SX_OK) {
        sx_graph_destroy(g);
        return status;
    }
    *out_graph = g;
    return SX_OK;
}
