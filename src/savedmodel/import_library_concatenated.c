/* Which lists of tensors are concatenated: from each node that does so back to where its list was
 * made, once for all lists of a body. */
#include <string.h>

#include "savedmodel/import_library_ops.h"

enum { SAME = -1, EACH = -2 }; /* the input of the output's number; all of them */
static const struct {
    const char *op;
    int list; /* the input that it passes on, as it was or with tensors set */
} passes[] = {{"Identity", 0},
              {"TensorListSetItem", 0},
              {"TensorListPushBack", 0},
              {"TensorListResize", 0},
              {"TensorListPopBack", 0},
              {"TensorListConcatLists", EACH},
              {"TensorArrayWriteV3", 3},
              {"TensorArrayScatterV3", 3},
              {"While", SAME},
              {"StatelessWhile", SAME},
              {"If", EACH},
              {"StatelessIf", EACH}};

typedef struct search {
    const sx_tf_body *body;
    uint64_t *seen; /* [n_nodes]: a bit for each output, the last for all from 63 on */
    struct {
        int node, output;
    } * open; /* those to look at */
    size_t n_open;
} search;

static void open_input(search *s, const Tensorflow__NodeDef *reader, int i)
{
    sx_tf_ref ref;
    if (i >= (int)reader->n_input || !sx_tf_ref_parse(reader->input[i], &ref) || ref.control) {
        return;
    }
    const int node = sx_tf_body_find_node(s->body, &ref);
    const uint64_t bit = UINT64_C(1) << SX_MIN(ref.output, 63);
    if (node >= 0 && (s->seen[node] & bit) == 0) {
        s->seen[node] |= bit;
        s->open[s->n_open].node = node;
        s->open[s->n_open++].output = ref.output;
    }
}

/* Opens the inputs by which a node passes on the list that is its output. */
static void open_passed(search *s, const Tensorflow__NodeDef *node, int output)
{
    size_t k = 0;
    while (k < SX_COUNT(passes) && strcmp(passes[k].op, node->op) != 0) {
        k++;
    }
    if (k == SX_COUNT(passes)) {
        return;
    }
    if (passes[k].list != EACH) {
        open_input(s, node, passes[k].list == SAME ? output : passes[k].list);
        return;
    }
    for (size_t i = 0; i < node->n_input; i++) {
        open_input(s, node, (int)i);
    }
}

static sx_status find_concatenated(sx_arena *arena, sx_tf_body *body)
{
    search s = {.body = body};
    size_t n_inputs = 0;
    for (size_t i = 0; i < body->n_nodes; i++) {
        n_inputs += body->nodes[i]->n_input;
    }
    s.seen = sx_arena_array(arena, body->n_nodes + 1, uint64_t);
    s.open = sx_arena_alloc(arena, n_inputs + 1, sizeof(*s.open));
    if (s.seen == NULL || s.open == NULL) {
        return sx_import_memory();
    }
    for (size_t i = 0; i < body->n_nodes; i++) {
        const Tensorflow__NodeDef *n = body->nodes[i];
        if (strcmp(n->op, "TensorArrayConcatV3") == 0) {
            open_input(&s, n, 1);
        } else if (strcmp(n->op, "TensorListConcat") == 0 ||
                   strcmp(n->op, "TensorListConcatV2") == 0) {
            open_input(&s, n, 0);
        }
        while (s.n_open > 0) {
            s.n_open--;
            open_passed(&s, body->nodes[s.open[s.n_open].node], s.open[s.n_open].output);
        }
    }
    body->concatenated = s.seen;
    return SX_OK;
}

sx_status sx_tf_list_is_concatenated(const sx_tf_op_node *x, bool *out)
{
    const char *name = x->n->node->name;
    const int at =
        sx_tf_body_find_node(x->body, &(sx_tf_ref){.node = name, .node_bytes = strlen(name)});
    if (x->body->concatenated == NULL) {
        SX_TRY(find_concatenated(&x->im->arena, x->body));
    }
    *out = at >= 0 && x->body->concatenated[at] != 0;
    return SX_OK;
}
