/* The canonical text form of a graph, read back by parse.c.
 *
 *   sextant-graph 1
 *   variable %1 float32[3,3,1,32] "conv2d/kernel" weight glorot_uniform
 *   input %3 float32[N,28,28,1] "image"
 *   %4 = conv2d(%3, %1) {strides=[1,1]} float32[N,26,26,32] "conv2d/conv2d" at "mnist.c" 14
 *   %7, %8 = moments(%4) {axes=[0]} float32[32], float32[32] "batch_normalization/moments"
 *   output "loss" %9
 *   assign "conv2d/kernel" %44
 *
 * Lines are in program order, names in quotes, default fields omitted: equal graphs have equal
 * texts. Regions follow their node and require version 2:
 *
 *   sextant-graph 2
 *   input %1 float32[3] "x"
 *   %2 = constant() {value=tensor(bool[] "01")} bool[] "constant"
 *   %3 = if(%2, %1) float32[3] "if"
 *     then
 *       input %1 float32[3] "x"
 *       %2 = neg(%1) float32[3] "neg"
 *       output "y" %2
 *     end
 *     else
 *       input %1 float32[3] "x"
 *       output "y" %1
 *     end
 *   output "y" %3
 *
 * Devices of arguments require version 3:
 *
 *   variable %1 float32[3] "w" weight zeros on "/device:CPU:1"
 *
 * A function body's first line is "sextant-function 2". Its types may be unknown ("float32[?,3]",
 * "float32[*]"), and "{shape=%4}" is an attribute that is an operand. Libraries: library.c. */
#include <string.h>

#include "base/args.h"
#include "base/buffer.h"
#include "base/memory.h"
#include "base/shortest.h"
#include "graph/attr_rows.h"
#include "graph/ir.h"
#include "graph/text.h"

const char *const sx_role_names[] = {"weight", "state", "slot", "step", NULL};
const char *const sx_initializer_names[] = {"default",        "zeros",
                                            "ones",           "constant",
                                            "glorot_uniform", "glorot_normal",
                                            "he_uniform",     "he_normal",
                                            "lecun_uniform",  "lecun_normal",
                                            "uniform",        "truncated_normal",
                                            "normal",         NULL};

void sx_print_variable(const sx_arg *arg, sx_buf *out)
{
    sx_buf_printf(out, " %s %s", sx_role_names[arg->role], sx_initializer_names[arg->init]);
    if (arg->init_value != 0) {
        sx_buf_printf(out, " %.17g", arg->init_value);
    }
}

static void indent(int depth, sx_buf *out)
{
    for (int i = 0; i < depth; i++) {
        sx_buf_puts(out, "  ");
    }
}

static void print_value(uint32_t id, sx_buf *out)
{
    char text[1 + SX_NUMBER_TEXT] = "%";
    sx_buf_append(out, text, (size_t)(sx_print_u64(text + 1, id) - text));
}

/* The arguments of functions and regions are where those of their node are. */
static bool has_place(const sx_graph *g, const sx_arg *arg)
{
    return !g->general && sx_graph_maker(g, arg->value)->device[0] != '\0';
}

static void print_arg(const sx_graph *g, const sx_arg *arg, int depth, bool names, sx_buf *out)
{
    sx_buf_puts(out, arg->kind == SX_ARG_VARIABLE ? "variable " : "input ");
    print_value(arg->value.id, out);
    sx_buf_putc(out, ' ');
    sx_type_print(sx_graph_type(g, arg->value), out);
    sx_buf_putc(out, ' ');
    if (names || arg->kind == SX_ARG_VARIABLE) {
        sx_quoted_print(arg->name, out);
    }
    if (arg->kind == SX_ARG_VARIABLE) {
        sx_print_variable(arg, out);
    }
    if (depth == 0 && has_place(g, arg)) {
        sx_buf_puts(out, " on ");
        sx_quoted_print(sx_graph_maker(g, arg->value)->device, out);
    }
    sx_buf_putc(out, '\n');
}

static void print_place(const sx_node *n, bool names, sx_buf *out)
{
    if (n->device[0] != '\0') {
        sx_buf_puts(out, " on ");
        sx_quoted_print(n->device, out);
    }
    if (names && n->file[0] != '\0') {
        sx_buf_puts(out, " at ");
        sx_quoted_print(n->file, out);
        sx_buf_printf(out, " %d", n->line);
    }
}

static void print_lines(const sx_graph *g, int depth, bool names, sx_buf *out);

static void print_node(const sx_graph *g, const sx_node *n, int depth, bool names, sx_buf *out)
{
    for (int i = 0; i < n->n_outputs; i++) {
        sx_buf_puts(out, i > 0 ? ", " : "");
        print_value(sx_node_output(n, i).id, out);
    }
    sx_buf_puts(out, " = ");
    sx_buf_puts(out, n->op->name);
    sx_buf_putc(out, '(');
    for (int i = 0; i < n->n_inputs; i++) {
        sx_buf_puts(out, i > 0 ? ", " : "");
        print_value(n->inputs[i].id, out);
    }
    sx_buf_putc(out, ')');
    sx_attrs_print(n->op, n->attrs, n->attr_operands, n->n_attr_operands, out);
    for (int i = 0; i < n->n_outputs; i++) {
        sx_buf_puts(out, i > 0 ? ", " : " ");
        sx_type_print(sx_graph_type(g, sx_node_output(n, i)), out);
    }
    if (names) {
        sx_buf_putc(out, ' ');
        sx_quoted_print(n->name, out);
    }
    print_place(n, names, out);
    sx_buf_putc(out, '\n');
    for (int row = 0; row < n->op->n_attrs; row++) {
        if (n->op->attrs[row].kind == SX_ATTR_BODY) {
            indent(depth + 1, out);
            sx_buf_printf(out, "%s\n", n->op->attrs[row].name);
            print_lines(sx_node_body(n, row), depth + 2, names, out);
            indent(depth + 1, out);
            sx_buf_puts(out, "end\n");
        }
    }
}

static void print_results(const sx_graph *g, int depth, bool names, sx_buf *out)
{
    for (int i = 0; i < g->n_results; i++) {
        const sx_result *r = &g->results[i];
        indent(depth, out);
        sx_buf_puts(out, r->arg == SX_RESULT_IS_OUTPUT ? "output " : "assign ");
        if (names || r->arg != SX_RESULT_IS_OUTPUT) {
            sx_quoted_print(r->name, out);
        }
        sx_buf_putc(out, ' ');
        print_value(r->value.id, out);
        sx_buf_putc(out, '\n');
    }
}

/* Without `names` those of nodes, inputs and outputs are missing, and places in source files: what
 * is left decides what the graph computes. */
static void print_lines(const sx_graph *g, int depth, bool names, sx_buf *out)
{
    int arg = 0;
    for (int k = 0; k < g->n_nodes; k++) {
        bool is_arg = arg < g->n_args && g->args[arg].value.id == g->nodes[k].first_output.id;
        indent(depth, out);
        if (is_arg) {
            print_arg(g, &g->args[arg++], depth, names, out);
        } else {
            print_node(g, &g->nodes[k], depth, names, out);
        }
    }
    print_results(g, depth, names, out);
}

void sx_graph_print_lines(const sx_graph *g, int depth, sx_buf *out)
{
    print_lines(g, depth, true, out);
}

/* What the text needs at least. */
static int version_of(const sx_graph *g)
{
    int version = g->general || sx_graph_nesting(g) > 0 ? 2 : 1;
    for (int i = 0; i < g->n_args; i++) {
        version = has_place(g, &g->args[i]) ? 3 : version;
    }
    return version;
}

static sx_status print_graph(const sx_graph *g, bool names, char **out_text)
{
    sx_buf out;
    sx_buf_init(&out, SX_GRAPH_MAX_TEXT_BYTES);
    sx_buf_printf(&out, "sextant-%s %d\n", g->general ? "function" : "graph", version_of(g));
    print_lines(g, 0, names, &out);
    size_t size;
    char *text = sx_buf_take(&out, &size);
    sx_buf_deinit(&out);
    if (text == NULL) {
        return sx_error(SX_RESOURCE_EXHAUSTED,
                        "the text of a graph of %d nodes exceeds %d bytes or the memory",
                        g->n_nodes, SX_GRAPH_MAX_TEXT_BYTES);
    }
    *out_text = text;
    return SX_OK;
}

sx_status sx_graph_print(const sx_graph *g, char **out_text)
{
    SX_NEED(g);
    SX_NEED(out_text);
    return print_graph(g, true, out_text);
}

sx_status sx_graph_digest(const sx_graph *g, bool names, sx_digest *out)
{
    char *text = NULL;
    SX_TRY(print_graph(g, names, &text));
    sx_status status = sx_digest_of(text, strlen(text), out);
    sx_text_free(text);
    return status;
}
