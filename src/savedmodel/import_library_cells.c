/* Imports the recurrent cells that TensorFlow 1 has an operator for: tf.raw_ops.LSTMBlockCell and
 * GRUBlockCell, by the formulas of their documentation, BlockLSTM, a loop of the former, and the
 * gradients of the cells. */
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

/* A region of a loop: a node like x in it, and its n inputs. The caller destroys *out_b. */
static sx_status begin_loop_region(const sx_tf_op_node *x, const sx_type *types, int n,
                                   sx_tf_op_node *inside, sx_value *v, sx_builder **out_b)
{
    *inside = *x;
    SX_TRY(sx_tf_create_builder(x->im, &inside->b));
    *out_b = inside->b;
    for (int i = 0; i < n; i++) {
        char name[16];
        snprintf(name, sizeof(name), "x%d", i);
        v[i] = sx_input(inside->b, name, types[i]);
    }
    return SX_OK;
}

static void name_outputs(sx_builder *b, const sx_value *v, int n)
{
    for (int i = 0; i < n; i++) {
        char name[16];
        snprintf(name, sizeof(name), "y%d", i);
        sx_output(b, name, v[i]);
    }
}

static sx_status block_lstm_condition(const sx_tf_op_node *x, const sx_type types[LOOP_OPERANDS],
                                      sx_builder **out_b)
{
    sx_tf_op_node inside;
    sx_value v[LOOP_OPERANDS], go;
    SX_TRY(begin_loop_region(x, types, LOOP_OPERANDS, &inside, v, out_b));
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
    SX_TRY(begin_loop_region(x, types, LOOP_OPERANDS, &inside, v, out_b));
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
    name_outputs(inside.b, v, LOOP_STATE);
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

/* ---- Gradients ---- */

/* dy f'(y) of y = sigmoid(...): dy (1 - y) y */
static sx_status behind_sigmoid(const sx_tf_op_node *x, sx_value dy, sx_value y, sx_value *out)
{
    sx_value one = SX_NO_VALUE;
    SX_TRY(sx_tf_number(x, sx_type_of_value(x->b, y).dtype, 1, &one));
    SX_TF_BUILD(x, &one, sub, NULL, one, y);
    SX_TF_BUILD(x, &dy, mul, NULL, dy, one);
    SX_TF_BUILD(x, out, mul, NULL, dy, y);
    return SX_OK;
}

/* Of y = tanh(...): dy (1 - y^2) */
static sx_status behind_tanh(const sx_tf_op_node *x, sx_value dy, sx_value y, sx_value *out)
{
    sx_value one = SX_NO_VALUE, square = SX_NO_VALUE;
    SX_TRY(sx_tf_number(x, sx_type_of_value(x->b, y).dtype, 1, &one));
    SX_TF_BUILD(x, &square, square, NULL, y);
    SX_TF_BUILD(x, &one, sub, NULL, one, square);
    SX_TF_BUILD(x, out, mul, NULL, dy, one);
    return SX_OK;
}

/* a + b c */
static sx_status add_product(const sx_tf_op_node *x, sx_value a, sx_value b, sx_value c,
                             sx_value *out)
{
    sx_value both = SX_NO_VALUE;
    SX_TF_BUILD(x, &both, mul, NULL, b, c);
    SX_TF_BUILD(x, out, add, NULL, a, both);
    return SX_OK;
}

/* The sum over the batch of a b. */
static sx_status sum_of_rows(const sx_tf_op_node *x, sx_value a, sx_value b, sx_value *out)
{
    static const sx_reduce_attrs rows = {.axes = {1, {0}}};
    SX_TF_BUILD(x, out, mul, NULL, a, b);
    SX_TF_BUILD(x, out, reduce_sum, &rows, *out);
    return SX_OK;
}

/* What the gradient of a step reads: peepholes, the state before, the step's outputs, and the
 * gradients of its state and output. */
enum {
    STEP_WCI,
    STEP_WCF,
    STEP_WCO,
    STEP_BEFORE,
    STEP_I,
    STEP_C,
    STEP_F,
    STEP_O,
    STEP_CI,
    STEP_CO,
    STEP_DC,
    STEP_DH,
    STEP_INPUTS
};

typedef struct lstm_step_gradient {
    sx_value before;  /* of the state before */
    sx_value gates;   /* of what the activations read, quarters as w's columns */
    sx_value peep[3]; /* of wci, wcf, wco; with peepholes only */
} lstm_step_gradient;

/* That of a clipped state passes, as in TensorFlow. */
static sx_status lstm_step_grad(const sx_tf_op_node *x, const lstm_cell *cell,
                                const sx_value in[STEP_INPUTS], lstm_step_gradient *out)
{
    sx_value d_o, dc, d_ci, d_i, d_f, quarters[4];
    SX_TF_BUILD(x, &d_o, mul, NULL, in[STEP_DH], in[STEP_CO]);
    SX_TRY(behind_sigmoid(x, d_o, in[STEP_O], &d_o));
    SX_TF_BUILD(x, &dc, mul, NULL, in[STEP_DH], in[STEP_O]);
    SX_TRY(behind_tanh(x, dc, in[STEP_CO], &dc));
    SX_TF_BUILD(x, &dc, add, NULL, dc, in[STEP_DC]);
    if (cell->peepholes) {
        SX_TRY(add_product(x, dc, d_o, in[STEP_WCO], &dc));
    }
    SX_TF_BUILD(x, &d_ci, mul, NULL, dc, in[STEP_I]);
    SX_TRY(behind_tanh(x, d_ci, in[STEP_CI], &d_ci));
    SX_TF_BUILD(x, &d_i, mul, NULL, dc, in[STEP_CI]);
    SX_TRY(behind_sigmoid(x, d_i, in[STEP_I], &d_i));
    SX_TF_BUILD(x, &d_f, mul, NULL, dc, in[STEP_BEFORE]);
    SX_TRY(behind_sigmoid(x, d_f, in[STEP_F], &d_f));
    SX_TF_BUILD(x, &out->before, mul, NULL, dc, in[STEP_F]);
    if (cell->peepholes) {
        SX_TRY(add_product(x, out->before, d_i, in[STEP_WCI], &out->before));
        SX_TRY(add_product(x, out->before, d_f, in[STEP_WCF], &out->before));
        SX_TRY(sum_of_rows(x, d_i, in[STEP_BEFORE], &out->peep[0]));
        SX_TRY(sum_of_rows(x, d_f, in[STEP_BEFORE], &out->peep[1]));
        SX_TRY(sum_of_rows(x, d_o, in[STEP_C], &out->peep[2]));
    }
    quarters[0] = d_i;
    quarters[cell->change] = d_ci;
    quarters[cell->forget] = d_f;
    quarters[3] = d_o;
    return sx_tf_build(x, &sx_op_concat, &(sx_axis_attrs){1}, &out->gates, 4, quarters);
}

static sx_status zeros_like(const sx_tf_op_node *x, sx_value v, sx_value *out)
{
    sx_value zero = SX_NO_VALUE;
    SX_TRY(sx_tf_number(x, sx_type_of_value(x->b, v).dtype, 0, &zero));
    SX_TF_BUILD(x, out, mul_no_nan, NULL, v, zero);
    return SX_OK;
}

/* LSTMBlockCellGrad(x, cs_prev, h_prev, w, wci, wcf, wco, b, i, cs, f, o, ci, co, cs_grad, h_grad)
 * -> cs_prev_grad, dicfo, wci_grad, wcf_grad, wco_grad */
static sx_status import_lstm_grad(sx_tf_op_node *x)
{
    enum { INPUTS = 16 };
    const lstm_cell cell = lstm_of(&x->tf.head, false);
    sx_value in[INPUTS], of_step[STEP_INPUTS], zero = SX_NO_VALUE;
    lstm_step_gradient d;
    int64_t units = 0;
    SX_TRY(cell_operands(x, 0, INPUTS, in, &units));
    memcpy(&of_step[STEP_WCI], &in[LSTM_WCI], 3 * sizeof(*in));
    of_step[STEP_BEFORE] = in[LSTM_C];
    memcpy(&of_step[STEP_I], &in[LSTM_INPUTS], (STEP_INPUTS - STEP_I) * sizeof(*in));
    SX_TRY(lstm_step_grad(x, &cell, of_step, &d));
    sx_tf_set(x, 0, d.before);
    sx_tf_set(x, 1, d.gates);
    for (int k = 0; k < 3; k++) {
        SX_TRY(zeros_like(x, in[LSTM_WCI + k], &zero));
        sx_tf_set(x, 2 + k, cell.peepholes ? d.peep[k] : zero);
    }
    return SX_OK;
}

/* The loop of BlockLSTMGrad, from the last step to the first; those before BACK_X are its state. */
enum {
    BACK_T,
    BACK_DX, /* of all steps */
    BACK_DC, /* of the state and the output of the step before */
    BACK_DH,
    BACK_DW,
    BACK_DPEEP,
    BACK_DB = BACK_DPEEP + 3,
    BACK_STATE,
    BACK_X = BACK_STATE, /* of all steps, and so are those from BACK_BEFORE on */
    BACK_W,
    BACK_PEEP,
    BACK_BEFORE = BACK_PEEP + 3,            /* the state before, */
    BACK_I,                                 /* and the step's as STEP_I and those after it */
    BACK_H = BACK_I + STEP_INPUTS - STEP_I, /* the output before */
    BACK_OPERANDS
};

static sx_status back_condition(const sx_tf_op_node *x, const sx_type *types, sx_builder **out_b)
{
    sx_tf_op_node inside;
    sx_value v[BACK_OPERANDS], go;
    SX_TRY(begin_loop_region(x, types, BACK_OPERANDS, &inside, v, out_b));
    SX_TRY(sx_tf_with_number(&inside, &sx_op_greater_equal, v[BACK_T], 0, &go));
    sx_output(inside.b, "go", go);
    return SX_OK;
}

static sx_status back_body(const sx_tf_op_node *x, const lstm_cell *cell, int64_t inputs,
                           int64_t units, const sx_type *types, sx_builder **out_b)
{
    static const sx_row_attrs row = {.checked = true};
    static const sx_matmul_attrs left = {.transpose_a = true}, right = {.transpose_b = true};
    static const sx_reduce_attrs rows = {.axes = {1, {0}}};
    sx_tf_op_node inside;
    sx_value v[BACK_OPERANDS], in[STEP_INPUTS], own, before, both, part;
    lstm_step_gradient d;
    SX_TRY(begin_loop_region(x, types, BACK_OPERANDS, &inside, v, out_b));
    memcpy(&in[STEP_WCI], &v[BACK_PEEP], 3 * sizeof(*in));
    for (int k = STEP_BEFORE; k < STEP_INPUTS; k++) {
        SX_TF_BUILD(&inside, &in[k], take_row, &row, v[BACK_BEFORE + k - STEP_BEFORE], v[BACK_T]);
    }
    SX_TF_BUILD(&inside, &in[STEP_DC], add, NULL, in[STEP_DC], v[BACK_DC]);
    SX_TF_BUILD(&inside, &in[STEP_DH], add, NULL, in[STEP_DH], v[BACK_DH]);
    SX_TRY(lstm_step_grad(&inside, cell, in, &d));
    v[BACK_DC] = d.before;
    SX_TF_BUILD(&inside, &both, matmul, &right, d.gates, v[BACK_W]); /* of [x, h_prev] */
    SX_TRY(sx_tf_cut_axis(&inside, both, 1, 0, inputs, &part));
    SX_TF_BUILD(&inside, &v[BACK_DX], put_row, &row, v[BACK_DX], part, v[BACK_T]);
    SX_TRY(sx_tf_cut_axis(&inside, both, 1, inputs, units, &v[BACK_DH]));
    SX_TF_BUILD(&inside, &own, take_row, &row, v[BACK_X], v[BACK_T]);
    SX_TF_BUILD(&inside, &before, take_row, &row, v[BACK_H], v[BACK_T]);
    SX_TF_BUILD(&inside, &both, concat, (&(sx_axis_attrs){1}), own, before);
    SX_TF_BUILD(&inside, &both, matmul, &left, both, d.gates);
    SX_TF_BUILD(&inside, &v[BACK_DW], add, NULL, v[BACK_DW], both);
    SX_TF_BUILD(&inside, &part, reduce_sum, &rows, d.gates);
    SX_TF_BUILD(&inside, &v[BACK_DB], add, NULL, v[BACK_DB], part);
    for (int k = 0; k < 3 && cell->peepholes; k++) {
        SX_TF_BUILD(&inside, &v[BACK_DPEEP + k], add, NULL, v[BACK_DPEEP + k], d.peep[k]);
    }
    SX_TRY(sx_tf_with_number(&inside, &sx_op_sub, v[BACK_T], 1, &v[BACK_T]));
    name_outputs(inside.b, v, BACK_STATE);
    return SX_OK;
}

/* `first` and after it the elements of `all` but the last: what each step has before it. With one
 * element too many, which no step reads. */
static sx_status before_each(const sx_tf_op_node *x, sx_value first, sx_value all, sx_value *out)
{
    SX_TRY(sx_tf_expand(x, first, 0, &first));
    SX_TF_BUILD(x, out, concat, (&(sx_axis_attrs){0}), first, all);
    return SX_OK;
}

/* BlockLSTMGrad(seq_len_max, x, cs_prev, h_prev, w, wci, wcf, wco, b, i, cs, f, o, ci, co, h,
 * cs_grad, h_grad) -> x_grad, cs_prev_grad, h_prev_grad, w_grad, wci_grad, wcf_grad, wco_grad,
 * b_grad */
static sx_status import_block_lstm_grad(sx_tf_op_node *x)
{
    enum { INPUTS = 17, OUT_I = LSTM_INPUTS, OUT_H = OUT_I + 6, GRAD_C, GRAD_H };
    static const int outputs[] = {BACK_DX,    BACK_DC,        BACK_DH,        BACK_DW,
                                  BACK_DPEEP, BACK_DPEEP + 1, BACK_DPEEP + 2, BACK_DB};
    const lstm_cell cell = lstm_of(&x->tf.head, strcmp(x->row->tf_op, "BlockLSTMGradV2") == 0);
    sx_value in[INPUTS], v[BACK_OPERANDS], steps, length;
    sx_type types[BACK_OPERANDS];
    int64_t units = 0;
    SX_TRY(cell_operands(x, 1, INPUTS, in, &units));
    const sx_type sequence = sx_type_of_value(x->b, in[LSTM_X]);
    if (sequence.rank != 3 || sequence.dims[2] < 0) {
        return sx_tf_unsupported("x is %s, expected [time, batch, inputs]", SX_TEXT(&sequence));
    }
    SX_TRY(sx_tf_operand(x, 0, &steps));
    SX_TRY(sx_tf_sizes_of(x, in[LSTM_X], 0, 1, &length));
    SX_TF_BUILD(x, &steps, reshape, (&(sx_shape_attrs){{1, {1}}}), steps);
    SX_TF_BUILD(x, &steps, minimum, NULL, steps, length);
    SX_TF_BUILD(x, &steps, cast, (&(sx_cast_attrs){SX_I32}), steps);
    SX_TF_BUILD(x, &steps, reshape, (&(sx_shape_attrs){{0}}), steps);
    SX_TRY(sx_tf_with_number(x, &sx_op_sub, steps, 1, &v[BACK_T]));
    const int like[] = {LSTM_X, LSTM_C, LSTM_H, LSTM_W, LSTM_WCI, LSTM_WCF, LSTM_WCO, LSTM_B};
    for (int k = 0; k < (int)SX_COUNT(like); k++) {
        SX_TRY(zeros_like(x, in[like[k]], &v[outputs[k]]));
    }
    v[BACK_X] = in[LSTM_X];
    v[BACK_W] = in[LSTM_W];
    memcpy(&v[BACK_PEEP], &in[LSTM_WCI], 3 * sizeof(*in));
    SX_TRY(before_each(x, in[LSTM_C], in[OUT_I + 1], &v[BACK_BEFORE]));
    memcpy(&v[BACK_I], &in[OUT_I], 6 * sizeof(*in)); /* i, cs, f, o, ci, co */
    memcpy(&v[BACK_I + 6], &in[GRAD_C], 2 * sizeof(*in));
    SX_TRY(before_each(x, in[LSTM_H], in[OUT_H], &v[BACK_H]));
    for (int i = 0; i < BACK_OPERANDS; i++) {
        types[i] = sx_type_of_value(x->b, v[i]);
    }
    sx_builder *regions[2] = {NULL, NULL};
    sx_status status = back_condition(x, types, &regions[0]);
    if (status == SX_OK) {
        status = back_body(x, &cell, sequence.dims[2], units, types, &regions[1]);
    }
    if (status == SX_OK) {
        const sx_value y =
            sx_function_node(x->b, "while", NULL, v, BACK_OPERANDS, regions, 2, types, BACK_STATE);
        for (int k = 0; k < (int)SX_COUNT(outputs); k++) {
            sx_tf_set(x, k, sx_output_of(y, outputs[k]));
        }
    }
    sx_builder_destroy(regions[0]);
    sx_builder_destroy(regions[1]);
    return status;
}

/* GRUBlockCellGrad(x, h_prev, w_ru, w_c, b_ru, b_c, r, u, c, d_h) -> d_x, d_h_prev, d_c_bar,
 * d_r_bar_u_bar */
static sx_status import_gru_grad(sx_tf_op_node *x)
{
    enum { X, H, W_RU, W_C, B_RU, B_C, R, U, C, D_H, INPUTS };
    static const sx_matmul_attrs turned = {.transpose_b = true};
    const sx_axis_attrs beside = {1};
    sx_value in[INPUTS], one, d_c, d_u, d_r, d_ru, of_c, of_ru, d_hr, d_x, d_h, part;
    int64_t units = 0;
    SX_TRY(cell_operands(x, 0, INPUTS, in, &units));
    const sx_type type = sx_type_of_value(x->b, in[X]);
    if (type.rank != 2 || type.dims[1] < 0) {
        return sx_tf_unsupported("the number of its inputs is not known");
    }
    SX_TRY(sx_tf_number(x, type.dtype, 1, &one));
    SX_TF_BUILD(x, &one, sub, NULL, one, in[U]);
    SX_TF_BUILD(x, &d_c, mul, NULL, in[D_H], one); /* h = u h_prev + (1 - u) c */
    SX_TRY(behind_tanh(x, d_c, in[C], &d_c));
    SX_TF_BUILD(x, &d_u, sub, NULL, in[H], in[C]);
    SX_TF_BUILD(x, &d_u, mul, NULL, d_u, in[D_H]);
    SX_TRY(behind_sigmoid(x, d_u, in[U], &d_u));
    SX_TF_BUILD(x, &of_c, matmul, &turned, d_c, in[W_C]); /* of [x, r h_prev] */
    SX_TRY(sx_tf_cut_axis(x, of_c, 1, 0, type.dims[1], &d_x));
    SX_TRY(sx_tf_cut_axis(x, of_c, 1, type.dims[1], units, &d_hr));
    SX_TF_BUILD(x, &d_r, mul, NULL, d_hr, in[H]);
    SX_TRY(behind_sigmoid(x, d_r, in[R], &d_r));
    SX_TF_BUILD(x, &d_ru, concat, &beside, d_r, d_u);
    SX_TF_BUILD(x, &of_ru, matmul, &turned, d_ru, in[W_RU]); /* of [x, h_prev] */
    SX_TRY(sx_tf_cut_axis(x, of_ru, 1, 0, type.dims[1], &part));
    SX_TF_BUILD(x, &d_x, add, NULL, d_x, part);
    SX_TRY(sx_tf_cut_axis(x, of_ru, 1, type.dims[1], units, &d_h));
    SX_TRY(add_product(x, d_h, d_hr, in[R], &d_h));
    SX_TRY(add_product(x, d_h, in[D_H], in[U], &d_h));
    const sx_value out[] = {d_x, d_h, d_c, d_ru};
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
    {"LSTMBlockCellGrad", import_lstm_grad, NULL},
    {"BlockLSTMGrad", import_block_lstm_grad, NULL},
    {"BlockLSTMGradV2", import_block_lstm_grad, NULL},
    {"GRUBlockCellGrad", import_gru_grad, NULL},
    {NULL, NULL, NULL},
};
