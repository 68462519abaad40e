/* layer_tool LAYER MODE DEVICE DIM...: one layer with the defaults of its options, for
 * test_layers.py. LAYER is a row below, or an activation; MODE train or eval; DIM... the input's
 * shape, N first.
 *
 * Writes a line for each variable, "variable NAME ROLE INITIALIZER DTYPE DIMS...", a line "y
 * DIMS...", and "end". Then reads every variable and the input as raw row-major bytes (float32, or
 * the variable's dtype), runs the layer once, and writes y and every variable likewise. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sextant/nn.h>

#include "graph/ir.h"
#include "graph/text.h"
#include "runtime/session.h"

enum { MAX_BYTES = 1 << 20 };

static void check(sx_status status)
{
    if (status != SX_OK) {
        fprintf(stderr, "layer_tool: %s\n", sx_status_message(status));
        exit(1);
    }
}

static sx_value dense(sx_builder *b, sx_value x)
{
    return sx_dense(b, x, 4);
}
static sx_value conv2d(sx_builder *b, sx_value x)
{
    return sx_conv2d(b, x, 4, 3);
}
static sx_value max_pooling2d(sx_builder *b, sx_value x)
{
    return sx_max_pool2d(b, x, 2);
}
static sx_value average_pooling2d(sx_builder *b, sx_value x)
{
    return sx_average_pool2d(b, x, 2);
}
static sx_value global_average_pooling2d(sx_builder *b, sx_value x)
{
    return sx_global_average_pool2d(b, x);
}
static sx_value flatten(sx_builder *b, sx_value x)
{
    return sx_flatten(b, x);
}
static sx_value dropout(sx_builder *b, sx_value x)
{
    return sx_dropout(b, x, .25);
}
static sx_value batch_normalization(sx_builder *b, sx_value x)
{
    return sx_batch_norm(b, x, .name = NULL);
}

static const struct {
    const char *name;
    sx_value (*build)(sx_builder *b, sx_value x); /* NULL: an activation */
    sx_activation activation;
} rows[] = {
#define LAYER(name)            \
    {                          \
#name, name, SX_LINEAR \
    }
    LAYER(dense),
    LAYER(conv2d),
    LAYER(max_pooling2d),
    LAYER(average_pooling2d),
    LAYER(global_average_pooling2d),
    LAYER(flatten),
    LAYER(dropout),
    LAYER(batch_normalization),
#undef LAYER
    {"linear", NULL, SX_LINEAR},
    {"relu", NULL, SX_RELU},
    {"relu6", NULL, SX_RELU6},
    {"sigmoid", NULL, SX_SIGMOID},
    {"tanh", NULL, SX_TANH},
    {"softmax", NULL, SX_SOFTMAX},
};

static void read_exactly(void *data, int64_t bytes)
{
    if (bytes > MAX_BYTES || fread(data, 1, (size_t)bytes, stdin) != (size_t)bytes) {
        fprintf(stderr, "layer_tool: the input is cut short\n");
        exit(1);
    }
}

int main(int argc, char **argv)
{
    static char data[MAX_BYTES];
    sx_builder *b;
    sx_graph *g;
    sx_session *s;
    sx_program *p;
    sx_type type = {.dtype = SX_F32, .rank = argc - 4};
    if (argc < 5 || type.rank > SX_MAX_RANK) {
        return 2;
    }
    int64_t batch = atoll(argv[4]);
    type.dims[0] = SX_BATCH;
    for (int d = 1; d < type.rank; d++) {
        type.dims[d] = atoll(argv[4 + d]);
    }
    check(sx_builder_create(&b));
    sx_builder_set_mode(b, strcmp(argv[2], "train") == 0 ? SX_TRAIN : SX_EVAL);
    sx_value x = sx_input(b, "x", type), y = SX_NO_VALUE;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (strcmp(argv[1], rows[i].name) == 0) {
            y = rows[i].build != NULL ? rows[i].build(b, x) : sx_activate(b, x, rows[i].activation);
        }
    }
    sx_output(b, "y", y);
    check(sx_builder_finish(b, &g));
    sx_builder_destroy(b);
    check(sx_session_create(&(sx_session_options){.device = argv[3], .seed = 5}, &s));
    check(sx_session_add_program(s, g, &p));

    int n = sx_session_variable_count(s);
    for (int i = 0; i < n; i++) {
        const sx_session_variable *v = sx_session_variable_at(s, i);
        const sx_arg *arg = &g->args[sx_graph_find_arg(g, v->name)];
        printf("variable %s %s %s %s", v->name, sx_role_names[arg->role],
               sx_initializer_names[arg->init], sx_dtype_name(v->type.dtype));
        for (int d = 0; d < v->type.rank; d++) {
            printf(" %" PRId64, v->type.dims[d]);
        }
        printf("\n");
    }
    sx_type y_type = sx_type_with_batch(
        *sx_graph_type(g, g->results[sx_graph_find_output(g, "y")].value), batch);
    printf("y");
    for (int d = 0; d < y_type.rank; d++) {
        printf(" %" PRId64, y_type.dims[d]);
    }
    printf("\nend\n");
    fflush(stdout);

    for (int i = 0; i < n; i++) {
        read_exactly(data, sx_type_bytes(&sx_session_variable_at(s, i)->type));
        check(sx_session_write_variable(s, i, data));
    }
    sx_type x_type = sx_type_with_batch(type, batch);
    read_exactly(data, sx_type_bytes(&x_type));
    check(sx_program_run(p, batch, (const void *[]){data}));
    check(sx_program_read_output(p, 0, data));
    fwrite(data, 1, (size_t)sx_type_bytes(&y_type), stdout);
    for (int i = 0; i < n; i++) {
        check(sx_session_read_variable(s, i, data));
        fwrite(data, 1, (size_t)sx_type_bytes(&sx_session_variable_at(s, i)->type), stdout);
    }
    sx_session_destroy(s);
    sx_graph_destroy(g);
    return 0;
}
