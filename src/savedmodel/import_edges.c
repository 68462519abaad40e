/* Checks that the inputs of a graph's nodes make sense. */
#include <string.h>

#include "base/buffer.h"
#include "base/checked.h"
#include "base/memory.h"
#include "savedmodel/import_common.h"

struct visit {
    size_t node;
    size_t next; /* next input to visit */
};

/* node "a" depends on itself: "a" <- "b" <- "a" */
static sx_status cycle(Tensorflow__NodeDef *const *nodes, const struct visit *stack, size_t depth,
                       size_t node)
{
    enum { MAX_SHOWN = 8 };
    size_t first = depth;
    while (stack[--first].node != node) {
    }
    sx_buf path;
    sx_buf_init(&path, 1 << 12);
    for (size_t i = first; i < depth && i < first + MAX_SHOWN; i++) {
        sx_buf_printf(&path, "\"%.100s\" <- ", nodes[stack[i].node]->name);
    }
    sx_buf_printf(&path, "%s\"%.100s\"", depth > first + MAX_SHOWN ? "... <- " : "",
                  nodes[node]->name);
    sx_status status = sx_error(SX_DATA_LOSS, "node \"%.200s\" depends on itself: %s",
                                nodes[node]->name, sx_buf_text(&path));
    sx_buf_deinit(&path);
    return status;
}

/* The inputs of a while loop's Merge lead back to it through NextIteration. */
static bool is_back_edge(const Tensorflow__NodeDef *from, const Tensorflow__NodeDef *to)
{
    return (strcmp(to->op, "Merge") == 0 || strcmp(to->op, "RefMerge") == 0) &&
           (strcmp(from->op, "NextIteration") == 0 || strcmp(from->op, "RefNextIteration") == 0);
}

sx_status sx_import_check_edges(Tensorflow__NodeDef *const *nodes, size_t n_nodes,
                                const sx_map *index, const sx_map *args)
{
    enum { UNSEEN = 0, OPEN, DONE };
    struct visit *stack = sx_alloc(n_nodes + 1, sizeof(*stack)); /* a graph may be a long chain */
    uint8_t *state = sx_alloc(n_nodes + 1, 1);
    sx_status status =
        stack == NULL || state == NULL ? sx_no_memory("for %zu nodes", n_nodes) : SX_OK;
    for (size_t root = 0, depth = 0; root < n_nodes && status == SX_OK; root++) {
        if (state[root] == UNSEEN) {
            state[root] = OPEN;
            stack[depth++] = (struct visit){root, 0};
        }
        while (depth > 0 && status == SX_OK) {
            struct visit *top = &stack[depth - 1];
            const Tensorflow__NodeDef *node = nodes[top->node];
            if (top->next == node->n_input) {
                state[top->node] = DONE;
                depth--;
                continue;
            }
            const size_t at = top->next++;
            const char *input = node->input[at];
            sx_tf_ref ref;
            if (!sx_tf_ref_parse(input, &ref)) {
                status =
                    sx_error(SX_DATA_LOSS, "node \"%.200s\": \"%.100s\" is not a tensor reference",
                             node->name, input);
                break;
            }
            if (!ref.control && at > 0 && node->input[at - 1][0] == '^') {
                status = sx_error(SX_DATA_LOSS,
                                  "node \"%.200s\": data input \"%.100s\" comes after control "
                                  "input \"%.100s\"",
                                  node->name, input, node->input[at - 1]);
                break;
            }
            if (sx_map_get_bytes(args, ref.node, ref.node_bytes) != NULL) {
                continue;
            }
            const size_t from =
                (size_t)(uintptr_t)sx_map_get_bytes(index, ref.node, ref.node_bytes);
            if (from == 0) {
                status = sx_error(SX_DATA_LOSS, "node \"%.200s\": unknown input node \"%.*s\"",
                                  node->name, (int)SX_MIN(ref.node_bytes, (size_t)200), ref.node);
            } else if (is_back_edge(nodes[from - 1], node)) {
                continue;
            } else if (state[from - 1] == UNSEEN) {
                state[from - 1] = OPEN;
                stack[depth++] = (struct visit){from - 1, 0};
            } else if (state[from - 1] == OPEN) {
                status = cycle(nodes, stack, depth, from - 1);
            }
        }
    }
    sx_free(stack);
    sx_free(state);
    return status;
}
