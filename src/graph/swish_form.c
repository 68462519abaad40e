/* See swish_form.h. */
#include "graph/swish_form.h"

#include "graph/ops/attrs.h"

static const sx_node *made_by(const sx_graph *g, sx_value v, int op)
{
    const sx_node *n = sx_graph_maker(g, v);
    return n->op->id == op ? n : NULL;
}

static bool is_one(const sx_graph *g, sx_value v)
{
    const sx_node *n = made_by(g, v, SX_OPID_constant);
    const sx_tensor *t = n != NULL ? &((const sx_constant_attrs *)n->attrs)->value : NULL;
    return t != NULL && t->type.dtype == SX_F32 && sx_type_elems(&t->type) == 1 &&
           *(const float *)t->data == 1;
}

/* x of 1 x; else v. */
static sx_value without_one(const sx_graph *g, sx_value v)
{
    const sx_node *n = made_by(g, v, SX_OPID_mul);
    for (int i = 0; i < 2 && n != NULL; i++) {
        if (is_one(g, n->inputs[i]) &&
            sx_type_equal(sx_graph_type(g, n->inputs[1 - i]), sx_graph_type(g, v))) {
            return n->inputs[1 - i];
        }
    }
    return v;
}

bool sx_find_swish(const sx_graph *g, const sx_node *n, sx_swish_form *out)
{
    for (int i = 0; i < 2 && n->op->id == SX_OPID_mul; i++) {
        const sx_node *sigmoid = made_by(g, n->inputs[i], SX_OPID_sigmoid);
        if (sigmoid != NULL && without_one(g, sigmoid->inputs[0]).id == n->inputs[1 - i].id) {
            *out = (sx_swish_form){.x = n->inputs[1 - i], .s = n->inputs[i]};
            return true;
        }
    }
    return false;
}

/* v = x (1 - s) */
static bool is_tail(const sx_graph *g, sx_value v, sx_value x, sx_value s)
{
    const sx_node *mul = made_by(g, v, SX_OPID_mul);
    for (int i = 0; i < 2 && mul != NULL; i++) {
        const sx_node *rest = made_by(g, mul->inputs[i], SX_OPID_sub);
        if (rest != NULL && mul->inputs[1 - i].id == x.id && is_one(g, rest->inputs[0]) &&
            rest->inputs[1].id == s.id) {
            return true;
        }
    }
    return false;
}

/* v = s (1 + x (1 - s)), of x's type */
static bool is_slope(const sx_graph *g, sx_value v, sx_value *out_x, sx_value *out_s)
{
    const sx_node *mul = made_by(g, v, SX_OPID_mul);
    for (int i = 0; i < 4 && mul != NULL; i++) {
        const sx_node *sigmoid = made_by(g, mul->inputs[i / 2], SX_OPID_sigmoid);
        const sx_node *add = made_by(g, mul->inputs[1 - i / 2], SX_OPID_add);
        if (sigmoid != NULL && add != NULL && is_one(g, add->inputs[i % 2]) &&
            is_tail(g, add->inputs[1 - i % 2], sigmoid->inputs[0], sigmoid->first_output)) {
            *out_x = sigmoid->inputs[0];
            *out_s = sigmoid->first_output;
            return sx_type_equal(sx_graph_type(g, v), sx_graph_type(g, *out_x));
        }
    }
    return false;
}

bool sx_find_swish_grad(const sx_graph *g, const sx_node *n, sx_swish_form *out)
{
    for (int i = 0; i < 2 && n->op->id == SX_OPID_mul; i++) {
        if (is_slope(g, n->inputs[i], &out->x, &out->s) &&
            sx_type_equal(sx_graph_type(g, n->inputs[1 - i]), sx_graph_type(g, out->x))) {
            out->dy = n->inputs[1 - i];
            return true;
        }
    }
    return false;
}
