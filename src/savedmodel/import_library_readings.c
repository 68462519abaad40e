/* How lists of tensors are read: from each node that reads one back to where its list was made,
 * once for all lists of a body. */
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

/* What reads a list, in this order: the last says it. */
static const struct {
    const char *op;
    int list;
    sx_tf_reading as;
} readers[] = {
    {"TensorListGetItem", 0, SX_TF_READ_APART},    {"TensorListPopBack", 0, SX_TF_READ_APART},
    {"TensorArrayReadV3", 2, SX_TF_READ_APART},    {"TensorListStack", 0, SX_TF_READ_WHOLE},
    {"TensorArrayGatherV3", 2, SX_TF_READ_WHOLE},  {"TensorListConcat", 0, SX_TF_CONCATENATED},
    {"TensorListConcatV2", 0, SX_TF_CONCATENATED}, {"TensorArrayConcatV3", 1, SX_TF_CONCATENATED}};

typedef struct search {
    const sx_tf_body *body;
    uint64_t *seen;          /* [n_nodes]: a bit for each output, the last for all from 63 on */
    sx_tf_reading *readings; /* [n_nodes] */
    sx_tf_reading as;        /* how the lists that are found are read */
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
        s->readings[node] = s->as;
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

static sx_status find_readings(sx_arena *arena, sx_tf_body *body)
{
    search s = {.body = body};
    size_t n_inputs = 0;
    for (size_t i = 0; i < body->n_nodes; i++) {
        n_inputs += body->nodes[i]->n_input;
    }
    s.seen = sx_arena_array(arena, body->n_nodes + 1, uint64_t);
    s.readings = sx_arena_array(arena, body->n_nodes + 1, sx_tf_reading);
    s.open = sx_arena_alloc(arena, n_inputs + 1, sizeof(*s.open));
    if (s.seen == NULL || s.readings == NULL || s.open == NULL) {
        return sx_import_memory();
    }
    for (size_t r = 0; r < SX_COUNT(readers); r++) {
        if (r == 0 || readers[r].as != readers[r - 1].as) {
            memset(s.seen, 0, body->n_nodes * sizeof(*s.seen));
        }
        s.as = readers[r].as;
        for (size_t i = 0; i < body->n_nodes; i++) {
            if (strcmp(body->nodes[i]->op, readers[r].op) == 0) {
                open_input(&s, body->nodes[i], readers[r].list);
            }
            while (s.n_open > 0) {
                s.n_open--;
                open_passed(&s, body->nodes[s.open[s.n_open].node], s.open[s.n_open].output);
            }
        }
    }
    body->readings = s.readings;
    return SX_OK;
}

sx_status sx_tf_list_reading(const sx_tf_op_node *x, sx_tf_reading *out)
{
    const char *name = x->n->node->name;
    const int at =
        sx_tf_body_find_node(x->body, &(sx_tf_ref){.node = name, .node_bytes = strlen(name)});
    if (x->body->readings == NULL) {
        SX_TRY(find_readings(&x->im->arena, x->body));
    }
    *out = at >= 0 ? x->body->readings[at] : SX_TF_READ_WHOLE;
    return SX_OK;
}
