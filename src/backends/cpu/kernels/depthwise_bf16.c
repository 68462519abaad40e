/* Depthwise convolutions by frozen filters whose operands are numbers of bfloat16, forward:
 *
 *     act(conv(x) + bias)     round_bf16(act(conv(x) + bias))
 *
 * where bias and act may be absent. oneDNN 2.6 has no kernel of bfloat16 for them: one thread
 * would widen the image, and round the result. Here the image is read as it lies, sums are of
 * float32 (vec/depthwise_bf16.inc), and the result is rounded before it is written. Rows of results
 * are what workers divide. */
#include <math.h>

#include "backends/cpu/kernels/conv.h"
#include "backends/cpu/kernels/dense.h"
#include "base/checked.h"

enum { GRAIN_FLOPS = 1 << 17 /* for each worker */ };

/* scratch: the packed filter, the image */
typedef struct depthwise_data {
    sx_vec_depthwise shape;
    const sx_cpu_vec *vec;
    int64_t rows;        /* of the results of all images */
    int64_t image_elems; /* that are made bfloat16 first; 0: the image is */
    int64_t image_at;
    bool has_bias, kept; /* the packed filter lies in the kept memory */
} depthwise_data;

static bool is_depthwise(const sx_graph *graph, const sx_node *conv)
{
    sx_conv_geometry g;
    if (conv->op->id != SX_OPID_conv2d) {
        return false;
    }
    sx_status status = sx_cpu_conv_geometry(graph, conv, &g);
    const bool is = status == SX_OK && ((const sx_conv2d_attrs *)conv->attrs)->bf16_operands &&
                    g.groups > 1 && g.c == 1 && g.o == 1;
    sx_status_free(status);
    return is;
}

/* ---- Running ---- */

static void pack_frozen(const sx_cpu_step *step, const sx_cpu_call *call)
{
    const depthwise_data *d = step->data;
    d->vec->depthwise_pack(&d->shape, sx_cpu_in(step, call, 1), sx_cpu_at(call, step->kept));
}

/* in: x, filter, bias */
static void run_depthwise(const sx_cpu_step *step, const sx_cpu_call *call)
{
    const depthwise_data *d = step->data;
    char *scratch = sx_cpu_at(call, step->scratch);
    sx_vec_depthwise_args args = {.x = sx_cpu_in(step, call, 0),
                                  .bias = d->has_bias ? sx_cpu_in(step, call, 2) : NULL,
                                  .y = sx_cpu_out(step, call, 0)};
    if (d->image_elems > 0) {
        uint16_t *image = (uint16_t *)(void *)(scratch + d->image_at);
        d->vec->to_bf16(sx_cpu_in(step, call, 0), image, d->image_elems);
        args.x = image;
    }
    if (d->kept) {
        args.packed = sx_cpu_at(call, step->kept);
    } else {
        d->vec->depthwise_pack(&d->shape, sx_cpu_in(step, call, 1), (float *)(void *)scratch);
        args.packed = (float *)(void *)scratch;
    }
    const bool divided = step->range > 0;
    d->vec->depthwise(&d->shape, &args, divided ? call->begin / SX_CPU_SPLIT : 0,
                      divided ? call->end / SX_CPU_SPLIT : d->rows);
}

/* ---- Preparing ---- */

/* An activation of the step's nodes; NULL: none. */
static const sx_cpu_dense_act *find_act(const sx_cpu_site *site)
{
    for (int i = 0; i < site->n_nodes; i++) {
        if (sx_cpu_act_of(site->nodes[i]) != SX_DNN_PLAIN) {
            return sx_cpu_dense_act_of(site->nodes[i]);
        }
    }
    return NULL;
}

/* A filter that is not frozen, and an image that lies there as float32, since it is small, are
 * packed in each execution, by the one thread that then does all of the step. */
static void lay_out(const sx_cpu_site *site, depthwise_data *d, int64_t image_elems,
                    sx_cpu_step *step)
{
    const int64_t packed = d->vec->depthwise_packed(&d->shape) * (int64_t)sizeof(float);
    const bool is_wide = (site->narrow_in & 1) == 0;
    d->kept = (site->frozen_in & 2) != 0;
    d->image_elems = is_wide ? image_elems : 0;
    if (d->kept) {
        step->prepare_once = pack_frozen;
        step->kept_bytes = packed;
        step->read_once = 2;
    } else {
        step->scratch_bytes = sx_cpu_round_up(packed);
    }
    d->image_at = step->scratch_bytes;
    step->scratch_bytes += sx_cpu_round_up(d->image_elems * 2);
    if (d->kept && !is_wide) {
        const double row_flops = 2.0 * (double)(d->shape.h.kernel * d->shape.w.kernel) *
                                 (double)(d->shape.w.out * d->shape.c);
        step->range = d->rows * SX_CPU_SPLIT;
        step->grain = (int64_t)(GRAIN_FLOPS / SX_MAX(row_flops, 1) * SX_CPU_SPLIT) + 1;
    }
}

static sx_status prepare(const sx_cpu_site *site, sx_cpu_step *step)
{
    const sx_node *conv = site->nodes[site->n_nodes - 1];
    const sx_cpu_dense_act *act = find_act(site);
    sx_conv_geometry g;
    depthwise_data *d = sx_cpu_new(site, depthwise_data);
    if (d == NULL) {
        return sx_cpu_no_memory();
    }
    SX_TRY(sx_cpu_conv_geometry(site->graph, conv, &g));
    d->vec = site->vec;
    d->has_bias = site->n_in > 2;
    d->rows = g.n * g.h.out;
    d->shape = (sx_vec_depthwise){.h = g.h,
                                  .w = g.w,
                                  .c = g.groups,
                                  .rounds = site->nodes[0]->op->id == SX_OPID_round_bf16,
                                  .narrow = site->narrow_out,
                                  .act = act != NULL ? act->act : SX_VEC_CLIP,
                                  .low = act != NULL ? act->low : -INFINITY,
                                  .high = act != NULL ? act->high : INFINITY};
    lay_out(site, d, g.n * g.h.in * g.w.in * g.groups, step);
    step->run = run_depthwise;
    step->data = d;
    step->kernel = "conv2d depthwise bf16";
    return SX_OK;
}

/* ---- Matching ---- */

/* The convolution comes last. in: x, filter, bias if there is one */
static bool match(sx_cpu_match *m)
{
    const sx_node *n = sx_cpu_node(m, 0);
    if (!m->frozen) {
        return false;
    }
    if (n->op->id == SX_OPID_round_bf16) {
        n = sx_cpu_claim_maker(m, n->inputs[0], -1);
    }
    if (n != NULL && sx_cpu_act_of(n) != SX_DNN_PLAIN) {
        const sx_node *sum = sx_cpu_claim_maker(m, n->inputs[0], SX_OPID_bias_add);
        n = sum != NULL ? sum : sx_cpu_claim_maker(m, n->inputs[0], SX_OPID_conv2d);
    }
    m->n_in = 2;
    if (n != NULL && n->op->id == SX_OPID_bias_add) {
        m->in[m->n_in++] = n->inputs[1];
        n = sx_cpu_claim_maker(m, n->inputs[0], SX_OPID_conv2d);
    }
    if (n == NULL || !is_depthwise(m->graph, n)) {
        return false;
    }
    m->in[0] = n->inputs[0];
    m->in[1] = n->inputs[1];
    for (int i = 0; i < m->n_in; i++) {
        if (!sx_cpu_is_f32(m, m->in[i])) {
            return false;
        }
    }
    return sx_cpu_is_f32(m, m->out[0]);
}

/* Before elementwise groups, which would take the activation. */
#define ROW(op_name, ...)                                                                   \
    const sx_cpu_kernel sx_cpu_kernel_depthwise_##op_name = {.name = "depthwise_" #op_name, \
                                                             .op = SX_OPID_##op_name,       \
                                                             .match = match,                \
                                                             .prepare = prepare,            \
                                                             .narrow_in = 1,                \
                                                             .early = true,                 \
                                                             __VA_ARGS__}
ROW(round_bf16, .narrow_out = true);
ROW(relu);
ROW(relu6);
ROW(swish);
ROW(bias_add);
ROW(conv2d);
