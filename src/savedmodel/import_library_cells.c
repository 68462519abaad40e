/* Imports the recurrent cells that TensorFlow 1 has an operator for: tf.raw_ops.LSTMBlockCell and
 * GRUBlockCell, by the formulas of their documentation, and BlockLSTM, a loop of the former. */
#include "savedmodel/import_library_ops.h"

#include <stdio.h>
#include <string.h>

#include <sextant/function.h>

/* Inputs [first, first + n) of the node, and the units of its state, the columns of in[1]. */
static sx_status cell_operands(const sx_tf_op_node *x, int first, int n, sx_value *in,
                               int64_t *out_units)
{
    for (int i = 0; i < n; i++) {
        SX_TRY(sx_tf_operand(x, first + i, &in[i]));
    }
    const sx_type type = sx_type_of_value(x->b, in[1]);
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

/* x, cs_prev, h_prev, w, wci, wcf, wco, b */
enum { LSTM_X, LSTM_C, LSTM_H, LSTM_W, LSTM_WCI, LSTM_WCF, LSTM_WCO, LSTM_B, LSTM_INPUTS };

/* What a node says of its cell. */
typedef struct lstm_cell {
    bool peepholes;
    double forget_bias, clip; /* of c, if it is positive */
    int change, forget;       /* which quarters of w's columns they are; 0 is i, 3 is o */
} lstm_cell;

static lstm_cell lstm_of(const sx_tf_node *tf, bool version2)
{
    return (lstm_cell){.peepholes = sx_tf_read_bool(tf, "use_peephole", false),
                       .forget_bias = version2 ? 0 : sx_tf_read_float(tf, "forget_bias", 1),
                       .clip = sx_tf_read_float(tf, "cell_clip", version2 ? 0 : 3),
                       .change = version2 ? 2 : 1,
                       .forget = version2 ? 1 : 2};
}

/* i, cs, f, o, ci, co, h */
enum { LSTM_OUTPUTS = 7, LSTM_OUT_C = 1, LSTM_OUT_H = 6 };

static sx_status lstm_step(const sx_tf_op_node *x, const lstm_cell *cell, int64_t units,
                           const sx_value in[LSTM_INPUTS], sx_value out[LSTM_OUTPUTS])
{
    const sx_value before = in[LSTM_C];
    const sx_value wci = cell->peepholes ? in[LSTM_WCI] : SX_NO_VALUE;
    const sx_value wcf = cell->peepholes ? in[LSTM_WCF] : SX_NO_VALUE;
    const sx_value wco = cell->peepholes ? in[LSTM_WCO] : SX_NO_VALUE;
    sx_value all, gates[4], i, f, o, c, ci, co, h, kept;
    SX_TRY(product(x, in[LSTM_X], in[LSTM_H], in[LSTM_W], in[LSTM_B], &all));
    for (int k = 0; k < 4; k++) {
        SX_TRY(sx_tf_cut_axis(x, all, 1, k * units, units, &gates[k]));
    }
    SX_TRY(open_gate(x, gates[0], before, wci, &i));
    SX_TF_BUILD(x, &ci, tanh, NULL, gates[cell->change]);
    SX_TRY(sx_tf_with_number(x, &sx_op_add, gates[cell->forget], cell->forget_bias, &f));
    SX_TRY(open_gate(x, f, before, wcf, &f));
    SX_TF_BUILD(x, &c, mul, NULL, i, ci);
    SX_TF_BUILD(x, &kept, mul, NULL, f, before);
    SX_TF_BUILD(x, &c, add, NULL, c, kept);
    if (cell->clip > 0) {
        SX_TRY(sx_tf_with_number(x, &sx_op_minimum, c, cell->clip, &c));
        SX_TRY(sx_tf_with_number(x, &sx_op_maximum, c, -cell->clip, &c));
    }
    SX_TRY(open_gate(x, gates[3], c, wco, &o));
    SX_TF_BUILD(x, &co, tanh, NULL, c);
    SX_TF_BUILD(x, &h, mul, NULL, o, co);
    memcpy(out, (const sx_value[LSTM_OUTPUTS]){i, c, f, o, ci, co, h}, LSTM_OUTPUTS * sizeof(*out));
    return SX_OK;
}

static sx_status import_lstm(sx_tf_op_node *x)
{
    const lstm_cell cell = lstm_of(&x->tf.head, false);
    sx_value in[LSTM_INPUTS], out[LSTM_OUTPUTS];
    int64_t units = 0;
    SX_TRY(cell_operands(x, 0, LSTM_INPUTS, in, &units));
    SX_TRY(lstm_step(x, &cell, units, in, out));
    for (int k = 0; k < LSTM_OUTPUTS; k++) {
        sx_tf_set(x, k, out[k]);
    }
    return SX_OK;
}

/* ---- BlockLSTM: a loop of the cell ---- */

/* The operands of the loop and of its regions; those before STEPS are its state. */
enum {
    LOOP_T,                           /* the step, int32 */
    LOOP_OUT,                         /* the cell's outputs of all steps */
    LOOP_C = LOOP_OUT + LSTM_OUTPUTS, /* cs, h of the step before */
    LOOP_H,
    LOOP_STATE,
    LOOP_STEPS = LOOP_STATE, /* how many, int32 */
    LOOP_CELL,               /* the cell's inputs, x those of all steps */
    LOOP_OPERANDS = LOOP_CELL + LSTM_INPUTS
};

/* A region of the loop: a node like x in it, and its inputs. The caller destroys *out_b. */
static sx_status begin_loop_region(const sx_tf_op_node *x, const sx_type types[LOOP_OPERANDS],
                                   sx_tf_op_node *inside, sx_value v[LOOP_OPERANDS],
                                   sx_builder **out_b)
{
    *inside = *x;
    SX_TRY(sx_tf_create_builder(x->im, &inside->b));
    *out_b = inside->b;
    for (int i = 0; i < LOOP_OPERANDS; i++) {
        char name[8];
        snprintf(name, sizeof(name), "x%d", i);
        v[i] = sx_input(inside->b, name, types[i]);
    }
    return SX_OK;
}

static sx_status block_lstm_condition(const sx_tf_op_node *x, const sx_type types[LOOP_OPERANDS],
                                      sx_builder **out_b)
{
    sx_tf_op_node inside;
    sx_value v[LOOP_OPERANDS], go;
    SX_TRY(begin_loop_region(x, types, &inside, v, out_b));
    SX_TF_BUILD(&inside, &go, less, NULL, v[LOOP_T], v[LOOP_STEPS]);
    sx_output(inside.b, "go", go);
    return SX_OK;
}

static sx_status block_lstm_body(const sx_tf_op_node *x, const lstm_cell *cell, int64_t units,
                                 const sx_type types[LOOP_OPERANDS], sx_builder **out_b)
{
    static const sx_row_attrs row = {.checked = true};
    sx_tf_op_node inside;
    sx_value v[LOOP_OPERANDS], in[LSTM_INPUTS], out[LSTM_OUTPUTS];
    SX_TRY(begin_loop_region(x, types, &inside, v, out_b));
    memcpy(in, &v[LOOP_CELL], sizeof(in));
    SX_TF_BUILD(&inside, &in[LSTM_X], take_row, &row, v[LOOP_CELL + LSTM_X], v[LOOP_T]);
    in[LSTM_C] = v[LOOP_C];
    in[LSTM_H] = v[LOOP_H];
    SX_TRY(lstm_step(&inside, cell, units, in, out));
    for (int k = 0; k < LSTM_OUTPUTS; k++) {
        SX_TF_BUILD(&inside, &v[LOOP_OUT + k], put_row, &row, v[LOOP_OUT + k], out[k], v[LOOP_T]);
    }
    SX_TRY(sx_tf_with_number(&inside, &sx_op_add, v[LOOP_T], 1, &v[LOOP_T]));
    v[LOOP_C] = out[LSTM_OUT_C];
    v[LOOP_H] = out[LSTM_OUT_H];
    for (int i = 0; i < LOOP_STATE; i++) {
        char name[8];
        snprintf(name, sizeof(name), "y%d", i);
        sx_output(inside.b, name, v[i]);
    }
    return SX_OK;
}

/* seq_len_max, x [T, B, inputs] and the cell's other inputs -> its outputs [T, B, units], which are
 * 0 from step seq_len_max on. */
static sx_status import_block_lstm(sx_tf_op_node *x)
{
    const lstm_cell cell = lstm_of(&x->tf.head, strcmp(x->row->tf_op, "BlockLSTMV2") == 0);
    sx_value v[LOOP_OPERANDS], most;
    sx_type types[LOOP_OPERANDS];
    int64_t units = 0;
    SX_TRY(cell_operands(x, 1, LSTM_INPUTS, &v[LOOP_CELL], &units));
    const sx_type sequence = sx_type_of_value(x->b, v[LOOP_CELL + LSTM_X]);
    if (sequence.rank != 3) {
        return sx_tf_unsupported("x is %s, expected [time, batch, inputs]", SX_TEXT(&sequence));
    }
    sx_tf_thing list = {.kind = SX_TF_LIST, .variable = {.rank = 1, .dims = {sequence.dims[0]}}};
    SX_TRY(sx_tf_sizes_of(x, v[LOOP_CELL + LSTM_X], 0, 1, &list.length));
    SX_TRY(sx_tf_operand(x, 0, &most));
    SX_TF_BUILD(x, &most, reshape, (&(sx_shape_attrs){{1, {1}}}), most);
    SX_TF_BUILD(x, &most, minimum, NULL, most, list.length);
    SX_TF_BUILD(x, &most, cast, (&(sx_cast_attrs){SX_I32}), most);
    SX_TF_BUILD(x, &v[LOOP_STEPS], reshape, (&(sx_shape_attrs){{0, {0}}}), most);
    SX_TRY(sx_tf_number(x, SX_I32, 0, &v[LOOP_T]));
    for (int k = 0; k < LSTM_OUTPUTS; k++) {
        SX_TRY(sx_tf_list_fill(x, &list, v[LOOP_CELL + LSTM_C], 0, &v[LOOP_OUT + k]));
    }
    v[LOOP_C] = v[LOOP_CELL + LSTM_C];
    v[LOOP_H] = v[LOOP_CELL + LSTM_H];

    for (int i = 0; i < LOOP_OPERANDS; i++) {
        types[i] = sx_type_of_value(x->b, v[i]);
    }

    sx_builder *regions[2] = {NULL, NULL};
    sx_status status = block_lstm_condition(x, types, &regions[0]);
    if (status == SX_OK) {
        status = block_lstm_body(x, &cell, units, types, &regions[1]);
    }
    if (status == SX_OK) {
        const sx_value y =
            sx_function_node(x->b, "while", NULL, v, LOOP_OPERANDS, regions, 2, types, LOOP_STATE);
        for (int k = 0; k < LSTM_OUTPUTS; k++) {
            sx_tf_set(x, k, sx_output_of(y, LOOP_OUT + k));
        }
    }
    sx_builder_destroy(regions[0]);
    sx_builder_destroy(regions[1]);
    return status;
}

/* ---- GRUBlockCell ---- */

/* x, h_prev, w_ru, w_c, b_ru, b_c -> r, u, c, h */
static sx_status import_gru(sx_tf_op_node *x)
{
    sx_value in[6], both, r, u, c, h, change;
    int64_t units = 0;
    SX_TRY(cell_operands(x, 0, 6, in, &units));
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
    {"BlockLSTM", import_block_lstm, NULL},
    {"BlockLSTMV2", import_block_lstm, NULL},
    {"GRUBlockCell", import_gru, NULL},
    {NULL, NULL, NULL},
};
