/* The text form of graphs and libraries: any bytes are refused, or give what is printed and parsed
 * again to the same text, and what can be specialized, or is refused, for small arguments. */
#include <stdlib.h>
#include <string.h>

#include "graph/specialize.h"

static void same_again(const char *text, bool is_library)
{
    sx_library *library = NULL;
    sx_graph *g = NULL;
    char *again = NULL;
    sx_status status = is_library ? sx_library_parse(text, strlen(text), &library)
                                  : sx_graph_parse(text, strlen(text), &g);
    if (status != SX_OK) {
        abort();
    }
    status = is_library ? sx_library_print(library, &again) : sx_graph_print(g, &again);
    if (status != SX_OK || strcmp(text, again) != 0) {
        abort();
    }
    sx_text_free(again);
    sx_library_destroy(library);
    sx_graph_destroy(g);
}

static void specialize(const sx_library *library, const sx_graph *body)
{
    enum { MOST_ARGS = 8 };
    sx_tensor args[MOST_ARGS] = {{.data = NULL}};
    sx_specialized *program = NULL;
    for (int i = 0; i < body->n_args && i < MOST_ARGS; i++) {
        sx_type *t = &args[i].type;
        *t = *sx_graph_type(body, body->args[i].value);
        t->rank = t->rank == SX_UNKNOWN_RANK ? 1 : t->rank;
        for (int d = 0; d < t->rank; d++) {
            t->dims[d] = t->dims[d] < 0 && !sx_dim_is_batch(t->dims[d]) ? 2 : t->dims[d];
        }
        args[i].data = t->dtype == SX_RESOURCE ? (void *)"dense/kernel" : NULL;
    }
    if (body->n_args <= MOST_ARGS) {
        sx_status_free(sx_specialize(library, body,
                                     &(sx_binding){.args = args, .n_args = body->n_args},
                                     &(sx_specialize_limits){.nodes = 1000}, &program));
        sx_specialized_destroy(program);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const sx_parse_limits limits = {.nodes = 2000, .functions = 100, .constant_bytes = 1 << 20};
    sx_library *library = NULL;
    sx_graph *g = NULL;
    char *text = NULL;
    sx_status status = sx_library_parse_within((const char *)data, size, &limits, &library);
    if (status == SX_OK && sx_library_print(library, &text) == SX_OK) {
        same_again(text, true);
        for (int i = 0; i < library->n_functions && i < 4; i++) {
            specialize(library, library->functions[i].body);
        }
    }
    sx_status_free(status);
    sx_text_free(text);
    sx_library_destroy(library);
    text = NULL;
    status = sx_graph_parse((const char *)data, size, &g);
    if (status == SX_OK && sx_graph_print(g, &text) == SX_OK) {
        same_again(text, false);
    }
    sx_status_free(status);
    sx_text_free(text);
    sx_graph_destroy(g);
    return 0;
}
