/* Libraries of functions: see library.h. Their text is a list of variables and of functions, whose
 * bodies are graphs as print.c writes them:
 *
 *   sextant-library 2
 *   variable float32[4,2] "dense/kernel" weight glorot_uniform
 *   function "main"
 *     input %1 float32[?,4] "x"
 *     %2 = variable_handle() {name="dense/kernel"} resource[] "kernel"
 *     %3 = read_variable(%2) float32[4,2] "read"
 *     %4 = matmul(%1, %3) float32[?,2] "matmul"
 *     output "y" %4
 *   end
 *
 * Variables and functions are in the order in which they were added. */
#include "graph/library.h"

#include <string.h>

#include "base/args.h"
#include "base/buffer.h"
#include "base/checked.h"
#include "base/memory.h"
#include "base/nearest.h"
#include "graph/attr_rows.h"
#include "graph/builder.h"
#include "graph/ops/attrs.h"

sx_status sx_library_create(sx_library **out_library)
{
    SX_NEED(out_library);
    sx_library *library = sx_alloc(1, sizeof(*library));
    if (library == NULL) {
        return sx_no_memory("for a library of functions");
    }
    sx_arena_init(&library->arena, 0);
    sx_map_init(&library->function_index);
    sx_map_init(&library->variable_index);
    *out_library = library;
    return SX_OK;
}

void sx_library_destroy(sx_library *library)
{
    if (library == NULL) {
        return;
    }
    for (int i = 0; i < library->n_functions; i++) {
        sx_graph_destroy(library->functions[i].body);
    }
    sx_free(library->functions);
    sx_free(library->variables);
    sx_map_deinit(&library->function_index);
    sx_map_deinit(&library->variable_index);
    sx_arena_deinit(&library->arena);
    sx_free(library);
}

const sx_function *sx_library_find(const sx_library *library, const char *name)
{
    const int i = (int)(uintptr_t)sx_map_get(&library->function_index, name) - 1;
    return i >= 0 ? &library->functions[i] : NULL;
}

const sx_variable_spec *sx_library_find_variable(const sx_library *library, const char *name)
{
    const int i = (int)(uintptr_t)sx_map_get(&library->variable_index, name) - 1;
    return i >= 0 ? &library->variables[i] : NULL;
}

/* Makes room for one more row of an array and adds its name to the index. */
static sx_status add_row(sx_library *library, const char *what, const char *name, sx_map *index,
                         void **rows, int count, int most, int *capacity, size_t row_bytes,
                         const char **out_name)
{
    if (library->finished) {
        return sx_error(SX_FAILED_PRECONDITION,
                        "%s \"%.100s\": the library is finished and cannot be added to", what,
                        name);
    }
    if (sx_map_has(index, name)) {
        return sx_error(SX_ALREADY_EXISTS, "the library already has a %s \"%.100s\"", what, name);
    }
    if (count == most) {
        return sx_error(SX_RESOURCE_EXHAUSTED, "%s \"%.100s\": more than %d in a library", what,
                        name, most);
    }
    if (count == *capacity) {
        const int wanted = SX_MAX(16, 2 * count);
        void *grown = sx_realloc(*rows, (size_t)wanted, row_bytes);
        if (grown == NULL) {
            return sx_no_memory("for a library of functions");
        }
        *rows = grown;
        *capacity = wanted;
    }
    *out_name = sx_arena_strdup(&library->arena, name);
    if (*out_name == NULL) {
        return sx_no_memory("for a library of functions");
    }
    return sx_map_put(index, name, (void *)(uintptr_t)(count + 1));
}

sx_status sx_library_add_variable(sx_library *library, const sx_variable_spec *spec)
{
    SX_NEED(library);
    SX_NEED(spec);
    SX_NEED(spec->name);
    sx_variable_spec kept = *spec;
    char text[SX_TYPE_TEXT];
    if (!sx_type_is_static(&spec->type) || sx_type_bytes(&spec->type) < 0) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "variable \"%.100s\" is %s, expected numbers of a static shape", spec->name,
                        sx_type_format(&spec->type, text, sizeof(text)));
    }
    if ((unsigned)spec->init >= SX_INIT_COUNT_ || (unsigned)spec->role > SX_ROLE_STEP) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "variable \"%.100s\": initializer %d or role %d does not exist", spec->name,
                        (int)spec->init, (int)spec->role);
    }
    SX_TRY(add_row(library, "variable", spec->name, &library->variable_index,
                   (void **)&library->variables, library->n_variables, SX_LIBRARY_MAX_VARIABLES,
                   &library->variable_capacity, sizeof(*library->variables), &kept.name));
    kept.init = spec->init == SX_INIT_DEFAULT ? SX_INIT_ZEROS : spec->init;
    library->variables[library->n_variables++] = kept;
    return SX_OK;
}

/* Adds a variable of a function, or checks that functions that share one agree. */
static sx_status share_variable(sx_library *library, const sx_variable_spec *spec)
{
    const sx_variable_spec *had = sx_library_find_variable(library, spec->name);
    if (had == NULL) {
        return sx_library_add_variable(library, spec);
    }
    char is[SX_TYPE_TEXT], wants[SX_TYPE_TEXT];
    return sx_type_equal(&had->type, &spec->type)
               ? SX_OK
               : sx_error(SX_INVALID_ARGUMENT,
                          "variable \"%.100s\" is %s, but another function has it as %s",
                          spec->name, sx_type_format(&spec->type, wants, sizeof(wants)),
                          sx_type_format(&had->type, is, sizeof(is)));
}

/* Takes ownership of the body on success. */
static sx_status add_body(sx_library *library, const char *name, sx_graph *body)
{
    if (!body->general) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "function \"%.100s\" is a static graph; its builder must be made by "
                        "sx_builder_create_function()",
                        name);
    }
    const char *kept = NULL;
    SX_TRY(add_row(library, "function", name, &library->function_index,
                   (void **)&library->functions, library->n_functions, SX_LIBRARY_MAX_FUNCTIONS,
                   &library->function_capacity, sizeof(*library->functions), &kept));
    library->functions[library->n_functions++] = (sx_function){.name = kept, .body = body};
    return SX_OK;
}

sx_status sx_library_add(sx_library *library, const char *name, sx_builder *b)
{
    SX_NEED(library);
    SX_NEED(name);
    sx_graph *body = NULL;
    SX_TRY(sx_builder_finish(b, &body), "function \"%.100s\"", name);
    sx_status status = SX_OK;
    for (int i = 0; i < b->n_variables && status == SX_OK; i++) {
        status = share_variable(library, &b->variables[i].spec);
    }
    if (status == SX_OK) {
        status = add_body(library, name, body);
    }
    if (status != SX_OK) {
        sx_graph_destroy(body);
    }
    return status;
}

/* ---- Checks ---- */

bool sx_is_shape_known(const sx_type *t)
{
    bool known = t->rank >= 0;
    for (int i = 0; i < t->rank && known; i++) {
        known = t->dims[i] >= 0 || sx_dim_is_batch(t->dims[i]);
    }
    return known;
}

bool sx_type_may_be(const sx_type *type, const sx_type *declared)
{
    if (type->dtype != declared->dtype) {
        return false;
    }
    if (type->rank == SX_UNKNOWN_RANK || declared->rank == SX_UNKNOWN_RANK) {
        return true;
    }
    bool may = type->rank == declared->rank;
    for (int i = 0; i < type->rank && may; i++) {
        may = type->dims[i] < 0 || declared->dims[i] < 0 || type->dims[i] == declared->dims[i];
    }
    return may;
}

/* `names` are consumed; NULL if there was no memory. */
static sx_status no_such(const char *what, const char *name, const char **names, int n)
{
    enum { MOST_LISTED = 16 };
    sx_buf text;
    sx_buf_init(&text, 1 << 14);
    if (names != NULL && n <= MOST_LISTED) {
        sx_nearest_list(name, names, (size_t)n, &text);
    } else if (names != NULL && n > MOST_LISTED) {
        sx_buf similar;
        sx_buf_init(&similar, 1 << 12);
        sx_buf_printf(&text, "(it has %d)", n);
        if (sx_nearest_names(name, names, (size_t)n, &similar) > 0) {
            sx_buf_printf(&text, "; did you mean %s?", sx_buf_text(&similar));
        }
        sx_buf_deinit(&similar);
    }
    sx_status status = sx_error(SX_NOT_FOUND, "the library has no %s \"%.100s\" %s", what, name,
                                sx_buf_text(&text));
    sx_buf_deinit(&text);
    sx_free(names);
    return status;
}

sx_status sx_library_no_function(const sx_library *library, const char *name)
{
    const char **names = sx_alloc((size_t)library->n_functions + 1, sizeof(*names));
    for (int i = 0; names != NULL && i < library->n_functions; i++) {
        names[i] = library->functions[i].name;
    }
    return no_such("function", name, names, library->n_functions);
}

sx_status sx_library_no_variable(const sx_library *library, const char *name)
{
    const char **names = sx_alloc((size_t)library->n_variables + 1, sizeof(*names));
    for (int i = 0; names != NULL && i < library->n_variables; i++) {
        names[i] = library->variables[i].name;
    }
    return no_such("variable", name, names, library->n_variables);
}

static sx_status check_call(const sx_library *library, const sx_graph *g, const sx_node *n)
{
    const sx_call_attrs *attrs = n->attrs;
    const char *name = attrs->function != NULL ? attrs->function : "";
    const sx_function *f = sx_library_find(library, name);
    if (f == NULL) {
        return sx_library_no_function(library, name);
    }
    if (attrs->gradient != 0) {
        /* its other types follow from the function's when they are known (specialize_gradient.c) */
        return attrs->gradient > 0 && n->n_inputs >= f->body->n_args
                   ? SX_OK
                   : sx_error(
                         SX_INVALID_ARGUMENT,
                         "gradient is %lld, and %d values are passed to function \"%.100s\" of "
                         "%d inputs; expected a positive number, and at least these inputs",
                         (long long)attrs->gradient, n->n_inputs, name, f->body->n_args);
    }
    if (f->body->n_args != n->n_inputs || f->body->n_results != n->n_outputs) {
        return sx_error(
            SX_INVALID_ARGUMENT,
            "function \"%.100s\" has %d inputs and %d outputs, but the call has %d and %d", name,
            f->body->n_args, f->body->n_results, n->n_inputs, n->n_outputs);
    }
    for (int i = 0; i < n->n_inputs + n->n_outputs; i++) {
        const bool input = i < n->n_inputs;
        const int k = input ? i : i - n->n_inputs;
        const sx_type *here = sx_graph_type(g, input ? n->inputs[k] : sx_node_output(n, k));
        const sx_type *there =
            sx_graph_type(f->body, input ? f->body->args[k].value : f->body->results[k].value);
        if (!sx_type_may_be(here, there)) {
            char a[SX_TYPE_TEXT], b[SX_TYPE_TEXT];
            return sx_error(SX_INVALID_ARGUMENT, "%s %d is %s, but function \"%.100s\" declares %s",
                            input ? "input" : "output", k, sx_type_format(here, a, sizeof(a)), name,
                            sx_type_format(there, b, sizeof(b)));
        }
    }
    return SX_OK;
}

static sx_status check_handle(const sx_library *library, const sx_node *n)
{
    const sx_variable_handle_attrs *attrs = n->attrs;
    const char *name = attrs->name != NULL ? attrs->name : "";
    return sx_library_find_variable(library, name) != NULL ? SX_OK
                                                           : sx_library_no_variable(library, name);
}

static sx_status check_nodes(const sx_library *library, const sx_graph *g)
{
    for (int k = 0; k < g->n_nodes; k++) {
        const sx_node *n = &g->nodes[k];
        sx_status status = SX_OK;
        if (n->op == &sx_op_call) {
            status = check_call(library, g, n);
        } else if (n->op == &sx_op_variable_handle) {
            status = check_handle(library, n);
        }
        for (int row = 0; row < n->op->n_attrs && status == SX_OK; row++) {
            if (n->op->attrs[row].kind == SX_ATTR_BODY) {
                status = check_nodes(library, sx_node_body(n, row));
            }
        }
        SX_TRY(status, "%s \"%s\"", n->op->name, n->name);
    }
    return SX_OK;
}

static void print_library(const sx_library *library, sx_buf *out)
{
    sx_buf_puts(out, "sextant-library 2\n");
    for (int i = 0; i < library->n_variables; i++) {
        const sx_variable_spec *v = &library->variables[i];
        sx_buf_puts(out, "variable ");
        sx_type_print(&v->type, out);
        sx_buf_putc(out, ' ');
        sx_quoted_print(v->name, out);
        sx_print_variable(&(sx_arg){.role = v->role, .init = v->init, .init_value = v->init_value},
                          out);
        sx_buf_putc(out, '\n');
    }
    for (int i = 0; i < library->n_functions; i++) {
        sx_buf_puts(out, "function ");
        sx_quoted_print(library->functions[i].name, out);
        sx_buf_putc(out, '\n');
        sx_graph_print_lines(library->functions[i].body, 1, out);
        sx_buf_puts(out, "end\n");
    }
}

sx_status sx_library_finish(sx_library *library)
{
    SX_NEED(library);
    for (int i = 0; i < library->n_functions && !library->finished; i++) {
        const sx_function *f = &library->functions[i];
        SX_TRY(check_nodes(library, f->body), "function \"%.100s\"", f->name);
    }
    SX_TRY(sx_library_learn(library));
    sx_buf text;
    sx_buf_init(&text, SX_GRAPH_MAX_TEXT_BYTES);
    print_library(library, &text);
    sx_status status = sx_buf_status(&text);
    if (status == SX_OK) {
        library->finished = true;
    }
    sx_buf_deinit(&text);
    return status;
}

/* ---- Text ---- */

sx_status sx_library_print(const sx_library *library, char **out_text)
{
    SX_NEED(library);
    SX_NEED(out_text);
    sx_buf out;
    size_t size;
    sx_buf_init(&out, SX_GRAPH_MAX_TEXT_BYTES);
    print_library(library, &out);
    char *text = sx_buf_take(&out, &size);
    sx_buf_deinit(&out);
    if (text == NULL) {
        return sx_error(SX_RESOURCE_EXHAUSTED,
                        "the text of a library of %d functions exceeds %d bytes or the memory",
                        library->n_functions, SX_GRAPH_MAX_TEXT_BYTES);
    }
    *out_text = text;
    return SX_OK;
}

static sx_status parse_function(sx_library *library, sx_parser *p, int64_t version)
{
    const char *name = NULL;
    sx_graph *body = NULL;
    const int64_t most = p->limits.functions > 0 ? p->limits.functions : SX_LIBRARY_MAX_FUNCTIONS;
    SX_TRY(sx_lexer_take_string(&p->lexer, "the function's name", &name));
    if (library->n_functions >= most) {
        return sx_error(SX_RESOURCE_EXHAUSTED, "line %d: more than %lld functions", p->lexer.line,
                        (long long)most);
    }
    SX_TRY(sx_parse_graph_lines(p, true, version, &body), "function \"%.100s\"", name);
    sx_status status = sx_lexer_accept_word(&p->lexer, "end")
                           ? add_body(library, name, body)
                           : sx_lexer_error(&p->lexer, "\"end\"");
    if (status != SX_OK) {
        sx_graph_destroy(body);
    }
    return status;
}

static sx_status parse_all(sx_library *library, sx_parser *p)
{
    int64_t version;
    SX_TRY(sx_parse_first_line(p, "library", 2, &version));
    while (p->lexer.kind != SX_TOKEN_END) {
        if (sx_lexer_accept_word(&p->lexer, "variable")) {
            sx_arg arg;
            sx_type type;
            SX_TRY(sx_parse_variable(&p->lexer, &arg, &type));
            SX_TRY(
                sx_library_add_variable(library, &(sx_variable_spec){.name = arg.name,
                                                                     .type = type,
                                                                     .role = arg.role,
                                                                     .init = arg.init,
                                                                     .init_value = arg.init_value}),
                "line %d", p->lexer.line);
        } else if (sx_lexer_accept_word(&p->lexer, "function")) {
            SX_TRY(parse_function(library, p, version));
        } else {
            return sx_lexer_error(&p->lexer, "\"variable\" or \"function\"");
        }
    }
    return sx_library_finish(library);
}

sx_status sx_library_parse_within(const char *text, size_t size, const sx_parse_limits *limits,
                                  sx_library **out_library)
{
    sx_library *library = NULL;
    sx_parser p = {.limits = limits != NULL ? *limits : (sx_parse_limits){0}};
    sx_arena scratch;
    SX_TRY(sx_library_create(&library));
    sx_arena_init(&scratch, 0);
    sx_lexer_init(&p.lexer, text, size, &scratch);
    sx_status status = parse_all(library, &p);
    sx_arena_deinit(&scratch);
    if (status != SX_OK) {
        sx_library_destroy(library);
        return status;
    }
    *out_library = library;
    return SX_OK;
}

sx_status sx_library_parse(const char *text, size_t size, sx_library **out_library)
{
    SX_NEED(text);
    SX_NEED(out_library);
    return sx_library_parse_within(text, size, NULL, out_library);
}

/* ---- Building ---- */

static sx_status read_attrs(sx_builder *b, const sx_op_def *op, const char *text, void *attrs,
                            sx_attr_operand *operands, int *out_n)
{
    sx_lexer l;
    const char *braced = sx_arena_printf(sx_builder_arena(b), "{%s}", text);
    if (braced == NULL) {
        return sx_no_memory("for attributes");
    }
    sx_lexer_init(&l, braced, strlen(braced), sx_builder_arena(b));
    SX_TRY(sx_attrs_parse(op, &l, sx_builder_arena(b), attrs, operands, out_n),
           "attributes \"%.200s\"", text);
    return l.kind == SX_TOKEN_END ? SX_OK : sx_lexer_error(&l, "the end of the attributes");
}

/* False: the builder has failed. */
static bool check_list(sx_builder *b, const char *op, const char *what, const void *list, int n)
{
    if (n < 0 || (n > 0 && list == NULL)) {
        sx_builder_fail(b, sx_error(SX_INVALID_ARGUMENT, "%s: n_%s is %d%s%s%s", op, what, n,
                                    n > 0 ? ", but " : "", n > 0 ? what : "",
                                    n > 0 ? " is NULL" : ""));
    }
    return !sx_builder_failed(b);
}

sx_value sx_function_node(sx_builder *b, const char *op_name, const char *attrs_text,
                          const sx_value *inputs, int n_inputs, sx_builder *const *regions,
                          int n_regions, const sx_type *types, int n_types)
{
    if (b == NULL || sx_builder_failed(b)) {
        return SX_NO_VALUE;
    }
    if (op_name == NULL || !check_list(b, op_name, "inputs", inputs, n_inputs) ||
        !check_list(b, op_name, "regions", regions, n_regions) ||
        !check_list(b, op_name, "types", types, n_types)) {
        sx_builder_fail(b, sx_error(SX_INVALID_ARGUMENT, "sx_function_node(): op is NULL"));
        return SX_NO_VALUE;
    }
    const sx_op_def *op = sx_op_find(op_name);
    if (op == NULL || op == &sx_op_parameter) {
        sx_builder_fail(b, sx_error(SX_NOT_FOUND, "no operator \"%.60s\"", op_name));
        return SX_NO_VALUE;
    }
    for (int i = 0; i < n_types && !b->graph->general; i++) {
        bool known = types[i].rank != SX_UNKNOWN_RANK;
        for (int d = 0; d < types[i].rank && known; d++) {
            known = types[i].dims[d] >= 0 || sx_dim_is_batch(types[i].dims[d]);
        }
        if (!known) {
            char text[SX_TYPE_TEXT];
            sx_builder_fail(b, sx_error(SX_INVALID_ARGUMENT,
                                        "%s gives %s; in the graph of a model or of its "
                                        ".preprocess, every size but the batch must be known. Use "
                                        "an operator whose result has a known size, such as "
                                        "sx_string_split_padded()",
                                        op_name, sx_type_format(&types[i], text, sizeof(text))));
            return SX_NO_VALUE;
        }
    }
    sx_arena *arena = sx_builder_arena(b);
    void *attrs = sx_arena_alloc(arena, 1, op->attrs_bytes + 1);
    sx_attr_operand *operands = sx_arena_array(arena, op->n_attrs + 1, sx_attr_operand);
    sx_graph **made = sx_arena_array(arena, op->n_attrs + 1, sx_graph *);
    sx_status status = attrs == NULL || operands == NULL || made == NULL
                           ? sx_no_memory("building a function")
                           : SX_OK;
    int n_operands = 0, n_made = 0;
    if (status == SX_OK && attrs_text != NULL) {
        status =
            read_attrs(b, op, attrs_text, attrs, b->graph->general ? operands : NULL, &n_operands);
    }
    for (int row = 0; row < op->n_attrs && status == SX_OK; row++) {
        if (op->attrs[row].kind == SX_ATTR_BODY && n_made < n_regions) {
            status = regions[n_made] == b
                         ? sx_error(SX_INVALID_ARGUMENT, "a builder cannot be a region of its own")
                         : sx_builder_finish(regions[n_made], &made[n_made]);
            if (status == SX_OK) {
                sx_builder_take_variables(b, regions[n_made]);
            }
            status =
                sx_status_annotate(status, __FILE__, __LINE__, "region %s", op->attrs[row].name);
            memcpy((char *)attrs + op->attrs[row].offset, &made[n_made], sizeof(made[n_made]));
            n_made++;
        }
    }
    if (status == SX_OK && n_made < n_regions) {
        status = sx_error(SX_INVALID_ARGUMENT, "got %d regions, expected %s to have %d", n_regions,
                          op->name, n_made);
    }
    sx_value first = SX_NO_VALUE;
    if (status == SX_OK) {
        first = sx_build_node(b, &(sx_node_spec){.op = op,
                                                 .attrs = attrs,
                                                 .inputs = inputs,
                                                 .n_inputs = n_inputs,
                                                 .attr_operands = operands,
                                                 .n_attr_operands = n_operands,
                                                 .types = types,
                                                 .n_types = n_types,
                                                 .device = b->device,
                                                 .file = b->file,
                                                 .line = b->line});
    } else {
        sx_builder_fail(b, sx_status_annotate(status, __FILE__, __LINE__, "%s", op_name));
    }
    for (int i = 0; made != NULL && i < n_made; i++) {
        sx_graph_destroy(made[i]);
    }
    return first;
}
