/* The text form of graphs and libraries: any bytes are refused, or give what is printed and parsed
 * again to the same text. */
#include <stdlib.h>
#include <string.h>

#include "graph/library.h"

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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const sx_parse_limits limits = {.nodes = 2000, .functions = 100, .constant_bytes = 1 << 20};
    sx_library *library = NULL;
    sx_graph *g = NULL;
    char *text = NULL;
    sx_status status = sx_library_parse_within((const char *)data, size, &limits, &library);
    if (status == SX_OK && sx_library_print(library, &text) == SX_OK) {
        same_again(text, true);
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
