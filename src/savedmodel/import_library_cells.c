/* Imports the recurrent cells that TensorFlow 1 has an operator for: tf.raw_ops.LSTMBlockCell and
 * GRUBlockCell, by the formulas of their documentation. */
#include "savedmodel/import_library_ops.h"

enum { MOST_INPUTS = 8 };

/* All inputs of the node, and the units of its state, the columns of input `state`. */
static sx_status cell_operands(const sx_tf_op_node *x, int n, int state, sx_value in[MOST_INPUTS],
                               int64_t *out_units)
{
    for (int i = 0; i < n; i++) {
        SX_TRY(sx_tf_operand(x, i, &in[i]));
    }
    const sx_type type = sx_type_of_value(x->b, in[state]);
    if (type.rank != 2 || type.dims[1] < 0) {
        return sx_tf_unsupported("the number of its units is not known");
    }
    *out_units = type.dims[1];
    return SX_OK;
}

/* [x, h] w + b */
static sx_status product(const sx_tf_op_node *x, sx_value v, sx_value h, sx_value w, sx_value b,
                         sx_value *out)
{
    SX_TF_BUILD(x, out, concat, (&(sx_axis_attrs){1}), v, h);
    SX_TF_BUILD(x, out, matmul, (&(sx_matmul_attrs){0}), *out, w);
    SX_TF_BUILD(x, out, add, NULL, *out, b);
    return SX_OK;
}

/* sigmoid(gate + c w), without w: sigmoid(gate) */
static sx_status open_gate(const sx_tf_op_node *x, sx_value gate, sx_value c, sx_value w,
                           sx_value *out)
{
    sx_value peephole = SX_NO_VALUE;
    *out = gate;
    if (sx_value_is(w)) {
        SX_TF_BUILD(x, &peephole, mul, NULL, c, w);
        SX_TF_BUILD(x, out, add, NULL, gate, peephole);
    }
    SX_TF_BUILD(x, out, sigmoid, NULL, *out);
    return SX_OK;
}

/* x, cs_prev, h_prev, w, wci, wcf, wco, b -> i, cs, f, o, ci, co, h */
static sx_status import_lstm(sx_tf_op_node *x)
{
    const sx_tf_node *tf = &x->tf.head;
    const bool peepholes = sx_tf_read_bool(tf, "use_peephole", false);
    const double clip = sx_tf_read_float(tf, "cell_clip", 3);
    sx_value in[MOST_INPUTS], all, gates[4], i, f, o, c, ci, co, h, kept;
    int64_t units = 0;
    SX_TRY(cell_operands(x, 8, 1, in, &units));
    for (int k = 4; k < 7 && !peepholes; k++) {
        in[k] = SX_NO_VALUE;
    }
    SX_TRY(product(x, in[0], in[2], in[3], in[7], &all));
    for (int k = 0; k < 4; k++) { /* input, new value, forget, output */
        SX_TRY(sx_tf_cut_axis(x, all, 1, k * units, units, &gates[k]));
    }
    SX_TRY(open_gate(x, gates[0], in[1], in[4], &i));
    SX_TF_BUILD(x, &ci, tanh, NULL, gates[1]);
    SX_TRY(sx_tf_with_number(x, &sx_op_add, gates[2], sx_tf_read_float(tf, "forget_bias", 1),
                             &gates[2]));
    SX_TRY(open_gate(x, gates[2], in[1], in[5], &f));
    SX_TF_BUILD(x, &c, mul, NULL, i, ci);
    SX_TF_BUILD(x, &kept, mul, NULL, f, in[1]);
    SX_TF_BUILD(x, &c, add, NULL, c, kept);
    if (clip > 0) {
        SX_TRY(sx_tf_with_number(x, &sx_op_minimum, c, clip, &c));
        SX_TRY(sx_tf_with_number(x, &sx_op_maximum, c, -clip, &c));
    }
    SX_TRY(open_gate(x, gates[3], c, in[6], &o));
    SX_TF_BUILD(x, &co, tanh, NULL, c);
    SX_TF_BUILD(x, &h, mul, NULL, o, co);
    const sx_value out[] = {i, c, f, o, ci, co, h};
    for (int k = 0; k < (int)SX_COUNT(out); k++) {
        sx_tf_set(x, k, out[k]);
    }
    return SX_OK;
}

/* x, h_prev, w_ru, w_c, b_ru, b_c -> r, u, c, h */
static sx_status import_gru(sx_tf_op_node *x)
{
    sx_value in[MOST_INPUTS], both, r, u, c, h, change;
    int64_t units = 0;
    SX_TRY(cell_operands(x, 6, 1, in, &units));
    SX_TRY(product(x, in[0], in[1], in[2], in[4], &both));
    SX_TF_BUILD(x, &both, sigmoid, NULL, both);
    SX_TRY(sx_tf_cut_axis(x, both, 1, 0, units, &r));
    SX_TRY(sx_tf_cut_axis(x, both, 1, units, units, &u));
    SX_TF_BUILD(x, &h, mul, NULL, r, in[1]);
    SX_TRY(product(x, in[0], h, in[3], in[5], &c));
    SX_TF_BUILD(x, &c, tanh, NULL, c);
    SX_TF_BUILD(x, &change, sub, NULL, in[1], c); /* c + u (h - c) */
    SX_TF_BUILD(x, &change, mul, NULL, u, change);
    SX_TF_BUILD(x, &h, add, NULL, c, change);
    const sx_value out[] = {r, u, c, h};
    for (int k = 0; k < (int)SX_COUNT(out); k++) {
        sx_tf_set(x, k, out[k]);
    }
    return SX_OK;
}

const sx_tf_op_row sx_tf_cell_rows[] = {
    {"LSTMBlockCell", import_lstm, NULL},
    {"GRUBlockCell", import_gru, NULL},
    {NULL, NULL, NULL},
};
