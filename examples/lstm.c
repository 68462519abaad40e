/* A recurrent network for `sextant train`, built of functions: an LSTM that is a loop over the time
 * steps, called twice, forwards and on the reversed sequence.
 *
 *     sextant train ./examples/lstm.c --data sequence.npy,kind.npy --model-dir run1 --epochs 5
 *
 * A function's body has declared types, and may call other functions; sx_call_function() makes the
 * static nodes of it that a model's graph has. */
#include <sextant/function.h>
#include <sextant/model.h>
#include <stdio.h>

enum { STEPS = 8, INPUTS = 4, UNITS = 8, STATE = 6 };

static sx_value integer(sx_builder *b, int32_t value)
{
    return sx_constant(b, (sx_tensor){sx_scalar_type(SX_I32), &value});
}

/* The values of the loop: step, h, c, sequence, kernel, bias. */
static void state_types(sx_type types[STATE])
{
    types[0] = sx_scalar_type(SX_I32);
    types[1] = types[2] = sx_type_of(SX_F32, SX_BATCH, UNITS);
    types[3] = sx_type_of(SX_F32, STEPS, SX_BATCH, INPUTS);
    types[4] = sx_type_of(SX_F32, INPUTS + UNITS, 4 * UNITS);
    types[5] = sx_type_of(SX_F32, 4 * UNITS);
}

static sx_builder *begin_region(sx_value in[STATE])
{
    static const char *const names[STATE] = {"i", "h", "c", "x", "kernel", "bias"};
    sx_builder *b = NULL;
    sx_type types[STATE];
    state_types(types);
    sx_status_free(sx_builder_create_function(&b));
    for (int i = 0; b != NULL && i < STATE; i++) {
        in[i] = sx_input(b, names[i], types[i]);
    }
    return b;
}

static sx_value part(sx_builder *b, sx_value gates, int k)
{
    return sx_slice(b, gates, .begin = {0, (int64_t)k * UNITS}, .size = {SX_BATCH, UNITS});
}

/* lstm(x [N,STEPS,INPUTS]) -> the last h [N,UNITS] */
static sx_status add_lstm(sx_library *library, const char *name)
{
    sx_builder *b = NULL, *regions[2];
    sx_value in[STATE];
    sx_type types[STATE];
    char text[64], attrs[64];
    SX_TRY(sx_builder_create_function(&b));
    sx_value x = sx_input(b, "x", sx_type_of(SX_F32, SX_BATCH, STEPS, INPUTS));
    state_types(types);
    sx_value zero = sx_mul(b, sx_reduce_sum(b, x, .axes = SX_AXES(1, 2), .keep_dims = true),
                           sx_constant_f32(b, 0)); /* [N,1,1] */
    zero = sx_reshape(b, zero, SX_BATCH, 1);
    sx_value units = sx_constant(b, (sx_tensor){sx_type_of(SX_F32, 1, UNITS), (float[UNITS]){0}});
    sx_value start = sx_add(b, zero, units); /* [N,UNITS] of 0 */
    snprintf(text, sizeof(text), "%s/kernel", name);
    sx_value kernel = sx_variable(
        b, &(sx_variable_spec){.name = text, .type = types[4], .init = SX_INIT_GLOROT_UNIFORM});
    snprintf(text, sizeof(text), "%s/bias", name);
    sx_value bias =
        sx_variable(b, &(sx_variable_spec){.name = text, .type = types[5], .init = SX_INIT_ZEROS});

    regions[0] = begin_region(in);
    sx_output(regions[0], "go", sx_less(regions[0], in[0], integer(regions[0], STEPS)));
    regions[1] = begin_region(in);
    sx_builder *r = regions[1];
    sx_value now = sx_gather(r, in[3], in[0]); /* [N,INPUTS] */
    sx_value gates = sx_add(r, sx_matmul(r, sx_concat(r, 1, now, in[1]), in[4]), in[5]);
    sx_value c = sx_add(r, sx_mul(r, sx_sigmoid(r, part(r, gates, 1)), in[2]),
                        sx_mul(r, sx_sigmoid(r, part(r, gates, 0)), sx_tanh(r, part(r, gates, 2))));
    sx_output(r, "i", sx_add(r, in[0], integer(r, 1)));
    sx_output(r, "h", sx_mul(r, sx_sigmoid(r, part(r, gates, 3)), sx_tanh(r, c)));
    sx_output(r, "c", c);
    snprintf(attrs, sizeof(attrs), "trips=%d", STEPS); /* so that it has a gradient */
    sx_value loop = sx_function_node(
        b, "while", attrs,
        (sx_value[]){integer(b, 0), start, start, sx_transpose(b, x, 1, 0, 2), kernel, bias}, STATE,
        regions, 2, types, 3);
    sx_builder_destroy(regions[0]);
    sx_builder_destroy(regions[1]);
    sx_output(b, "h", (sx_value){loop.id + 1});
    sx_status status = sx_library_add(library, name, b);
    sx_builder_destroy(b);
    return status;
}

static sx_status make(sx_library *library)
{
    SX_TRY(add_lstm(library, "forward"));
    SX_TRY(add_lstm(library, "backward"));
    return sx_library_finish(library);
}

static sx_spec lstm(sx_builder *b, const sx_batch *in, const sx_params *p)
{
    sx_library *library = NULL;
    sx_value x = in->features, h[2] = {SX_NO_VALUE, SX_NO_VALUE};
    sx_status status = sx_library_create(&library);
    status = status == SX_OK ? make(library) : status;
    if (status != SX_OK) {
        sx_builder_fail(b, status);
    } else {
        static int64_t last_first[STEPS];
        for (int i = 0; i < STEPS; i++) {
            last_first[i] = STEPS - 1 - i;
        }
        sx_value order = sx_constant(b, (sx_tensor){sx_type_of(SX_I64, STEPS), last_first});
        sx_value reversed = sx_gather_along(b, x, order, 1, 0);
        sx_call_function(b, library, "forward", &x, 1, &h[0], 1);
        sx_call_function(b, library, "backward", &reversed, 1, &h[1], 1);
    }
    sx_library_destroy(library);
    sx_value both = sx_dropout(b, sx_concat(b, 1, h[0], h[1]), 0.1);
    return sx_classifier_spec(b, sx_dense(b, both, sx_param_int(p, "num_classes", 3)), in->labels,
                              .optimizer = sx_adam(.learning_rate = 1e-2));
}

SX_MODEL(lstm, .build = lstm, .about = "a bidirectional LSTM on sequences", .num_classes = 3,
         .inputs = {{"sequence", .dims = {STEPS, INPUTS}}}, .labels = {{.name = "kind"}})
