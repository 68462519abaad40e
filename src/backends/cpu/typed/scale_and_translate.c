/* scale_and_translate: rows first, as TensorFlow's. */
#include "backends/cpu/typed/resample.h"

static bool takes(const void *attrs, const sx_tensor *in)
{
    (void)attrs;
    const sx_type *x = &in[0].type;
    return x->rank == 4 && sx_dtype_bytes(x->dtype) > 0 && x->dtype != SX_BOOL;
}

static sx_status run(const sx_typed_call *c)
{
    const sx_type *x = &c->in[0].type, *y = &c->out[0].type;
    double places[2][2];
    sx_host_tensor in[4] = {{.type = *x}, {.type = c->in[1].type}};
    for (int i = 0; i < 2; i++) {
        in[2 + i] = (sx_host_tensor){.type = c->in[2 + i].type, .f = places[i]};
        if (in[2 + i].type.dims[0] == 2) { /* else an error */
            sx_host_load(&in[2 + i], c->in[2 + i].data);
        }
    }
    const sx_kernel_call call = {.attrs = c->attrs, .in = in, .arena = c->context->arena};
    sx_axis_weights rows, columns;
    SX_TRY(sx_scale_and_translate_weights(&call, x->dims[1], y->dims[1], 0, &rows));
    SX_TRY(sx_scale_and_translate_weights(&call, x->dims[2], y->dims[2], 1, &columns));
    return sx_typed_resample(c, &(sx_resampling){.rows = &rows,
                                                 .columns = &columns,
                                                 .row_scale = 1,
                                                 .column_scale = 1,
                                                 .scale = 1,
                                                 .rows_first = true});
}

const sx_typed_kernel sx_typed_scale_and_translate = {
    .op = SX_OPID_scale_and_translate, .sizes = 1U << 1 | 1U << 2, .takes = takes, .run = run};
