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
 * Lines in program order; names in quotes; fields at their default left out: equal graphs have
 * equal texts. */
#include <string.h>

#include "base/buffer.h"
#include "base/memory.h"
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

enum { MAX_TEXT_BYTES = 1 << 30 };

static void print_arg(const sx_graph *g, const sx_arg *arg, sx_buf *out)
{
    sx_buf_printf(out, "%s %%%u ", arg->kind == SX_ARG_VARIABLE ? "variable" : "input",
                  arg->value.id);
    sx_type_print(sx_graph_type(g, arg->value), out);
    sx_buf_putc(out, ' ');
    sx_quoted_print(arg->name, out);
    if (arg->kind == SX_ARG_VARIABLE) {
        sx_buf_printf(out, " %s %s", sx_role_names[arg->role], sx_initializer_names[arg->init]);
        if (arg->init_value != 0) {
            sx_buf_printf(out, " %.17g", arg->init_value);
        }
    }
    sx_buf_putc(out, '\n');
}

static void print_place(const sx_node *n, sx_buf *out)
{
    if (n->device[0] != '\0') {
        sx_buf_puts(out, " on ");
        sx_quoted_print(n->device, out);
    }
    if (n->file[0] != '\0') {
        sx_buf_puts(out, " at ");
        sx_quoted_print(n->file, out);
        sx_buf_printf(out, " %d", n->line);
    }
}

static void print_node(const sx_graph *g, const sx_node *n, sx_buf *out)
{
    for (int i = 0; i < n->n_outputs; i++) {
        sx_buf_printf(out, "%s%%%u", i > 0 ? ", " : "", sx_node_output(n, i).id);
    }
    sx_buf_printf(out, " = %s(", n->op->name);
    for (int i = 0; i < n->n_inputs; i++) {
        sx_buf_printf(out, "%s%%%u", i > 0 ? ", " : "", n->inputs[i].id);
    }
    sx_buf_putc(out, ')');
    sx_attrs_print(n->op, n->attrs, out);
    for (int i = 0; i < n->n_outputs; i++) {
        sx_buf_puts(out, i > 0 ? ", " : " ");
        sx_type_print(sx_graph_type(g, sx_node_output(n, i)), out);
    }
    sx_buf_putc(out, ' ');
    sx_quoted_print(n->name, out);
    print_place(n, out);
    sx_buf_putc(out, '\n');
}

static void print_results(const sx_graph *g, sx_buf *out)
{
    for (int i = 0; i < g->n_results; i++) {
        const sx_result *r = &g->results[i];
        sx_buf_puts(out, r->arg == SX_RESULT_IS_OUTPUT ? "output " : "assign ");
        sx_quoted_print(r->name, out);
        sx_buf_printf(out, " %%%u\n", r->value.id);
    }
}

sx_status sx_graph_print(const sx_graph *g, char **out_text)
{
    sx_buf out;
    sx_buf_init(&out, MAX_TEXT_BYTES);
    sx_buf_puts(&out, "sextant-graph 1\n");
    int arg = 0;
    for (int k = 0; k < g->n_nodes; k++) {
        bool is_arg = arg < g->n_args && g->args[arg].value.id == g->nodes[k].first_output.id;
        if (is_arg) {
            print_arg(g, &g->args[arg++], &out);
        } else {
            print_node(g, &g->nodes[k], &out);
        }
    }
    print_results(g, &out);
    size_t size;
    char *text = sx_buf_take(&out, &size);
    sx_buf_deinit(&out);
    if (text == NULL) {
        return sx_error(SX_RESOURCE_EXHAUSTED,
                        "the text of a graph of %d nodes exceeds %d bytes or the memory",
                        g->n_nodes, MAX_TEXT_BYTES);
    }
    *out_text = text;
    return SX_OK;
}
