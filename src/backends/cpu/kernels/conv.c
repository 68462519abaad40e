/* Convolutions, and products of bfloat16 rows by a frozen matrix, which are convolutions of 1x1
 * over an image of one row: oneDNN's primitives over NHWC (onednn2.h), with bias and relu in the
 * forward one and the bias gradient in the filter's; 1x1 backward as matrix products, where
 * oneDNN 2.6 is at a third of the machine's rate over NHWC (README); 3x3 by winograd.c where that
 * is faster, of frozen filters 1x1 by dense.c; by groups of few channels, and depthwise ones with
 * swish, by grouped.c. */
#include "backends/cpu/kernels/conv.h"
#include "backends/cpu/kernels/dense.h"
#include "base/checked.h"
#include "base/memory.h"

/* ---- Fusion ---- */

static bool all_f32(const sx_cpu_match *m)
{
    for (int i = 0; i < m->n_in; i++) {
        if (!sx_cpu_is_f32(m, m->in[i])) {
            return false;
        }
    }
    return sx_cpu_is_f32(m, m->out[0]);
}

sx_status sx_cpu_conv_geometry(const sx_graph *graph, const sx_node *n, sx_conv_geometry *g)
{
    const sx_value x = n->op->id == SX_OPID_conv2d_grad_input ? n->first_output : n->inputs[0];
    const sx_value filter =
        n->op->id == SX_OPID_conv2d_grad_filter ? n->first_output : n->inputs[1];
    return sx_conv_geometry_of(n->attrs, sx_graph_type(graph, x), sx_graph_type(graph, filter), g);
}

bool sx_cpu_conv_in_bf16(const sx_node *n)
{
    return ((const sx_conv2d_attrs *)n->attrs)->bf16_operands && sx_dnn_has_bf16();
}

/* With fewer channels float32 is faster: measured. AMX has kernels for images. */
enum { BF16_CHANNELS = 8, AMX_CHANNELS = 3 };

sx_status sx_cpu_create_conv(sx_dnn_conv_spec *spec, sx_dnn_conv **out)
{
    spec->bf16 =
        spec->bf16 && spec->geometry.c >= (sx_dnn_has_amx() ? AMX_CHANNELS : BF16_CHANNELS);
    sx_status status = sx_dnn_conv_create(spec, out);
    if (!spec->bf16 || sx_status_code(status) != SX_UNIMPLEMENTED) {
        return status;
    }
    sx_status_free(status);
    spec->bf16 = false;
    return sx_dnn_conv_create(spec, out);
}

bool sx_cpu_tried(sx_cpu_match *m, sx_status status, sx_dnn_conv *conv)
{
    sx_dnn_conv_destroy(conv);
    if (sx_status_code(status) == SX_RESOURCE_EXHAUSTED && m->error == SX_OK) {
        m->error = status;
        return false;
    }
    const bool ok = status == SX_OK;
    sx_status_free(status);
    return ok;
}

/* Whether oneDNN has an efficient primitive. */
static bool dnn_has(sx_cpu_match *m, const sx_node *n, sx_dnn_conv_kind kind, bool bias,
                    sx_dnn_act act, bool add)
{
    sx_dnn_conv_spec spec = {.kind = kind,
                             .bias = bias,
                             .act = act,
                             .add = add,
                             .bf16 = sx_cpu_conv_in_bf16(n),
                             .asks = true};
    sx_dnn_conv *conv = NULL;
    sx_status status = sx_cpu_conv_geometry(m->graph, n, &spec.geometry);
    if (status == SX_OK) {
        status = sx_cpu_create_conv(&spec, &conv);
    }
    return sx_cpu_tried(m, status, conv);
}

/* Forward: relu(conv + bias), conv + bias, conv. in: x, filter, bias. */
static bool match_forward(sx_cpu_match *m, bool relu, bool bias)
{
    const sx_node *n = &m->graph->nodes[m->root];
    sx_value b = SX_NO_VALUE;
    if (relu) {
        int k = sx_cpu_claimable(m, n->inputs[0], SX_OPID_bias_add);
        if (k < 0) {
            return false;
        }
        sx_cpu_claim(m, k);
        n = &m->graph->nodes[k];
    }
    if (bias) {
        b = n->inputs[1];
        int k = sx_cpu_claimable(m, n->inputs[0], SX_OPID_conv2d);
        if (k < 0) {
            return false;
        }
        sx_cpu_claim(m, k);
        n = &m->graph->nodes[k];
    }
    m->in[0] = n->inputs[0];
    m->in[1] = n->inputs[1];
    m->in[2] = b;
    m->n_in = bias ? 3 : 2;
    return all_f32(m) &&
           dnn_has(m, n, SX_DNN_FORWARD, bias, relu ? SX_DNN_RELU : SX_DNN_PLAIN, false);
}

sx_dnn_act sx_cpu_act_of(const sx_node *n)
{
    return n->op->id == SX_OPID_relu    ? SX_DNN_RELU
           : n->op->id == SX_OPID_relu6 ? SX_DNN_RELU6
           : n->op->id == SX_OPID_swish ? SX_DNN_SWISH
                                        : SX_DNN_PLAIN;
}

/* conv + bias at `v`; claims both. */
static const sx_node *claim_biased(sx_cpu_match *m, sx_value v, sx_value *bias)
{
    const int k = sx_cpu_claimable(m, v, SX_OPID_bias_add);
    const int conv = k < 0 ? -1 : sx_cpu_claimable(m, m->graph->nodes[k].inputs[0], SX_OPID_conv2d);
    if (conv < 0) {
        return NULL;
    }
    sx_cpu_claim(m, k);
    sx_cpu_claim(m, conv);
    *bias = m->graph->nodes[k].inputs[1];
    return &m->graph->nodes[conv];
}

/* Forward with frozen filters: act(conv + bias + added), where act and added may be absent.
 * in: x, filter, bias, added, which the result overwrites if nothing else reads it. */
static bool match_fused(sx_cpu_match *m)
{
    const sx_node *n = &m->graph->nodes[m->root], *conv = NULL;
    const sx_dnn_act act = sx_cpu_act_of(n);
    sx_value bias = SX_NO_VALUE, added = SX_NO_VALUE;
    if (!m->frozen) {
        return false;
    }
    if (act != SX_DNN_PLAIN) {
        conv = claim_biased(m, n->inputs[0], &bias);
        const int k = conv != NULL ? -1 : sx_cpu_claimable(m, n->inputs[0], SX_OPID_add);
        if (k >= 0) {
            sx_cpu_claim(m, k);
            n = &m->graph->nodes[k];
        }
    }
    for (int i = 1; i >= 0 && conv == NULL && n->op->id == SX_OPID_add; i--) {
        const sx_type *other = sx_graph_type(m->graph, n->inputs[1 - i]);
        if (sx_type_equal(other, sx_graph_type(m->graph, n->first_output))) {
            conv = claim_biased(m, n->inputs[i], &bias);
            added = n->inputs[1 - i];
        }
    }
    if (conv == NULL || sx_cpu_conv_in_bf16(conv)) {
        return false;
    }
    m->in[0] = conv->inputs[0];
    m->in[1] = conv->inputs[1];
    m->in[2] = bias;
    m->in[3] = added;
    m->n_in = sx_value_is(added) ? 4 : 3;
    m->in_place = m->n_in == 4 ? 1u << 3 : 0;
    return all_f32(m) && dnn_has(m, conv, SX_DNN_FORWARD, true, act, m->n_in == 4);
}

static bool match_conv_relu(sx_cpu_match *m)
{
    return match_forward(m, true, true);
}
static bool match_conv_bias(sx_cpu_match *m)
{
    return match_forward(m, false, true);
}
static bool match_conv(sx_cpu_match *m)
{
    return match_forward(m, false, false);
}

static bool match_grad_input(sx_cpu_match *m)
{
    return all_f32(m) &&
           dnn_has(m, &m->graph->nodes[m->root], SX_DNN_BACKWARD_DATA, false, SX_DNN_PLAIN, false);
}

/* The node that sums `dy` over all but its channels, if it can be fused. */
static int bias_gradient(const sx_cpu_match *m, sx_value dy)
{
    for (int k = 0; k < m->graph->n_nodes; k++) {
        const sx_node *n = &m->graph->nodes[k];
        if (n->op->id != SX_OPID_reduce_sum || n->inputs[0].id != dy.id || m->claimed[k] ||
            m->uses[n->first_output.id] == 0) {
            continue;
        }
        const sx_reduce_attrs *a = n->attrs;
        if (a->axes.n == 3 && a->axes.v[2] == 2 && !a->keep_dims) {
            return k;
        }
    }
    return -1;
}

static bool match_grad_filter(sx_cpu_match *m)
{
    const sx_node *n = &m->graph->nodes[m->root];
    int k = all_f32(m) ? bias_gradient(m, n->inputs[1]) : -1;
    bool ok = all_f32(m) && dnn_has(m, n, SX_DNN_BACKWARD_FILTER, k >= 0, SX_DNN_PLAIN, false);
    if (ok && k >= 0) {
        sx_cpu_claim(m, k);
        m->out[m->n_out++] = m->graph->nodes[k].first_output;
    }
    return ok;
}

/* ---- oneDNN ---- */

/* An image that is read in another dtype than it lies there: converted in scratch. */
typedef struct conversion {
    int64_t elems; /* 0 = it is read as it lies there */
    bool narrow;   /* to bfloat16; else to float32 */
    int64_t at;    /* in scratch */
} conversion;

/* scratch: oneDNN's, then the converted images */
typedef struct conv_data {
    sx_dnn_conv *conv;
    const sx_cpu_vec *vec;
    conversion src, dst;
    bool packed; /* the filter: it lies in the step's kept memory */
} conv_data;

static void *converted(const conv_data *d, const conversion *c, void *image, char *scratch)
{
    void *to = scratch + c->at;
    if (c->elems == 0) {
        return image;
    }
    if (c->narrow) {
        d->vec->to_bf16(image, to, c->elems);
    } else {
        d->vec->from_bf16(image, to, c->elems);
    }
    return to;
}

static void run_conv(const sx_cpu_step *step, const sx_cpu_call *call, void *src, void *filter,
                     void *bias, void *dst)
{
    const conv_data *d = step->data;
    char *scratch = sx_cpu_at(call, step->scratch);
    src = converted(d, &d->src, src, scratch);
    dst = converted(d, &d->dst, dst, scratch);
    sx_dnn_conv_run(d->conv, call->states[step->index],
                    &(sx_dnn_conv_args){.src = src,
                                        .filter = filter,
                                        .bias = bias,
                                        .dst = dst,
                                        .scratch = scratch,
                                        .added = step->n_in > 3 ? sx_cpu_in(step, call, 3) : NULL,
                                        .packed = d->packed ? sx_cpu_at(call, step->kept) : NULL,
                                        .alone = call->alone});
}

/* in: x, filter */
static void pack_frozen(const sx_cpu_step *step, const sx_cpu_call *call)
{
    const conv_data *d = step->data;
    sx_status status =
        sx_dnn_conv_pack(d->conv, sx_cpu_in(step, call, 1), sx_cpu_at(call, step->kept));
    if (status != SX_OK) {
        sx_cpu_fail(call, status);
    }
}

static void run_forward(const sx_cpu_step *step, const sx_cpu_call *call)
{
    void *bias = step->n_in > 2 ? sx_cpu_in(step, call, 2) : NULL;
    run_conv(step, call, sx_cpu_in(step, call, 0), sx_cpu_in(step, call, 1), bias,
             sx_cpu_out(step, call, 0));
}

/* in: dy, filter */
static void run_grad_input(const sx_cpu_step *step, const sx_cpu_call *call)
{
    run_conv(step, call, sx_cpu_out(step, call, 0), sx_cpu_in(step, call, 1), NULL,
             sx_cpu_in(step, call, 0));
}

/* in: x, dy; out: filter, bias */
static void run_grad_filter(const sx_cpu_step *step, const sx_cpu_call *call)
{
    void *bias = step->n_out > 1 ? sx_cpu_out(step, call, 1) : NULL;
    run_conv(step, call, sx_cpu_in(step, call, 0), sx_cpu_out(step, call, 0), bias,
             sx_cpu_in(step, call, 1));
}

static void destroy_conv(void *conv)
{
    sx_dnn_conv_destroy(conv);
}

sx_status sx_cpu_own_conv(const sx_cpu_site *site, sx_dnn_conv *conv)
{
    return sx_cpu_own(site, conv, destroy_conv);
}

static const sx_node *conv_node(const sx_cpu_site *site)
{
    const sx_node *found = NULL;
    for (int i = 0; i < site->n_nodes; i++) {
        int id = site->nodes[i]->op->id;
        if (id == SX_OPID_conv2d || id == SX_OPID_conv2d_grad_input ||
            id == SX_OPID_conv2d_grad_filter) {
            found = site->nodes[i];
        }
    }
    return found;
}

/* `is_narrow`: the image lies there as bfloat16. */
static conversion convert(const sx_dnn_conv_spec *spec, bool is_read, bool is_narrow, int64_t elems,
                          int64_t *scratch_bytes)
{
    conversion c = {.narrow = spec->bf16, .at = *scratch_bytes};
    if (is_read && is_narrow != spec->bf16) {
        c.elems = elems;
        *scratch_bytes += sx_cpu_round_up(elems * (c.narrow ? 2 : (int64_t)sizeof(float)));
    }
    return c;
}

static sx_status make_slot(const sx_cpu_step *step, void **out)
{
    sx_dnn_conv *const *conv = step->data;
    sx_dnn_slot *slot;
    SX_TRY(sx_dnn_slot_create(*conv, &slot));
    *out = slot;
    return SX_OK;
}

static void destroy_slot(void *slot)
{
    sx_dnn_slot_destroy(slot);
}

void sx_cpu_use_slots(sx_cpu_step *step)
{
    step->make_state = make_slot;
    step->destroy_state = destroy_slot;
}

/* Of the geometry, the kind, the sum and the activation of `spec`. */
static sx_status prepare_spec(const sx_cpu_site *site, sx_cpu_step *step, sx_dnn_conv_spec *spec,
                              const char *what, sx_cpu_run_fn *run)
{
    const sx_dnn_conv_kind kind = spec->kind;
    const bool frozen = kind == SX_DNN_FORWARD && (site->frozen_in & 2) != 0;
    spec->bias = kind == SX_DNN_FORWARD ? site->n_in > 2 : site->n_out > 1;
    spec->team = site->plan->team ? site->plan->workers : 1;
    spec->bf16_filter = kind != SX_DNN_BACKWARD_FILTER && (site->narrow_in & 2) != 0;
    spec->packs_alone = frozen;
    conv_data *d = sx_cpu_new(site, conv_data);
    if (d == NULL) {
        return sx_cpu_no_memory();
    }
    SX_TRY(sx_cpu_create_conv(spec, &d->conv));
    SX_TRY(sx_cpu_own_conv(site, d->conv));
    d->vec = site->vec;
    site->plan->bf16 = site->plan->bf16 || spec->bf16;
    step->bf16 = spec->bf16;
    step->onednn = true;
    step->run = run;
    step->data = d;
    sx_cpu_use_slots(step);
    const bool kept = frozen && sx_dnn_conv_packed_bytes(d->conv) > 0;
    d->packed = kept || sx_cpu_is_packed_for(site, d->conv);
    step->scratch_bytes = sx_dnn_conv_scratch_bytes(d->conv, d->packed);
    if (kept) {
        step->prepare_once = pack_frozen;
        step->kept_bytes = sx_dnn_conv_packed_bytes(d->conv);
        step->read_once = 2;
    }
    const sx_conv_geometry *g = &spec->geometry;
    const int64_t src = g->n * g->h.in * g->w.in * g->groups * g->c;
    const int64_t dst = g->n * g->h.out * g->w.out * g->groups * g->o;
    const int dst_operand = kind == SX_DNN_BACKWARD_DATA ? 0 : 1;
    d->src =
        convert(spec, kind != SX_DNN_BACKWARD_DATA, site->narrow_in & 1, src, &step->scratch_bytes);
    d->dst = convert(spec, kind != SX_DNN_FORWARD, site->narrow_in >> dst_operand & 1, dst,
                     &step->scratch_bytes);
    step->kernel =
        sx_arena_printf(&site->plan->arena, "%s onednn %s", what, sx_dnn_conv_name(d->conv));
    return step->kernel != NULL ? SX_OK : sx_cpu_no_memory();
}

static sx_status prepare_dnn(const sx_cpu_site *site, sx_cpu_step *step, sx_dnn_conv_kind kind,
                             const char *what, sx_cpu_run_fn *run)
{
    const sx_node *n = conv_node(site);
    sx_dnn_conv_spec spec = {.kind = kind,
                             .add = kind == SX_DNN_FORWARD && site->n_in > 3,
                             .act = sx_cpu_act_of(site->nodes[0]),
                             .bf16 = sx_cpu_conv_in_bf16(n)};
    SX_TRY(sx_cpu_conv_geometry(site->graph, n, &spec.geometry));
    return prepare_spec(site, step, &spec, what, run);
}

static sx_status prepare_forward(const sx_cpu_site *site, sx_cpu_step *step)
{
    const int tile = sx_cpu_winograd_tile(site, conv_node(site));
    if (tile > 0) {
        return sx_cpu_prepare_winograd(site, conv_node(site), tile, step);
    }
    if (sx_cpu_conv_is_dense(site, conv_node(site)->attrs)) {
        return sx_cpu_prepare_dense_conv(site, step);
    }
    if (sx_cpu_conv_is_grouped(site, conv_node(site))) {
        return sx_cpu_prepare_grouped(site, conv_node(site), step);
    }
    return prepare_dnn(site, step, SX_DNN_FORWARD, "conv2d", run_forward);
}
static sx_status prepare_grad_input(const sx_cpu_site *site, sx_cpu_step *step)
{
    const int tile = sx_cpu_winograd_tile(site, conv_node(site));
    if (tile > 0) {
        return sx_cpu_prepare_winograd(site, conv_node(site), tile, step);
    }
    return prepare_dnn(site, step, SX_DNN_BACKWARD_DATA, "conv2d_grad_input", run_grad_input);
}
static sx_status prepare_grad_filter(const sx_cpu_site *site, sx_cpu_step *step)
{
    const int tile = sx_cpu_winograd_tile(site, conv_node(site));
    if (tile > 0) {
        return sx_cpu_prepare_winograd_filter(site, conv_node(site), tile, step);
    }
    return prepare_dnn(site, step, SX_DNN_BACKWARD_FILTER, "conv2d_grad_filter", run_grad_filter);
}

/* ---- Filters that shards share ---- */

typedef struct packer_data {
    sx_dnn_packer *packer;
    int workers;
} packer_data;

/* in: the filter; out: what shards read in its place */
static void run_packer(const sx_cpu_step *step, const sx_cpu_call *call)
{
    const packer_data *d = step->data;
    sx_dnn_slot *const *slots = call->states[step->index];
    sx_dnn_packer_run(d->packer, slots[call->part], sx_cpu_in(step, call, 0),
                      sx_cpu_out(step, call, 0), call->begin / SX_CPU_SPLIT,
                      call->end / SX_CPU_SPLIT);
}

/* NULL ends the slots. */
static void destroy_slots(void *slots)
{
    sx_dnn_slot **all = slots;
    for (int i = 0; all[i] != NULL; i++) {
        sx_dnn_slot_destroy(all[i]);
    }
    sx_free(all);
}

/* One for each worker. */
static sx_status make_slots(const sx_cpu_step *step, void **out)
{
    const packer_data *d = step->data;
    sx_dnn_slot **slots = sx_alloc((size_t)d->workers + 1, sizeof(*slots));
    sx_status status = slots == NULL ? sx_no_memory("for a run") : SX_OK;
    for (int i = 0; i < d->workers && status == SX_OK; i++) {
        status = sx_dnn_packer_slot(d->packer, &slots[i]);
    }
    if (status != SX_OK && slots != NULL) {
        destroy_slots(slots);
    }
    *out = status == SX_OK ? slots : NULL;
    return status;
}

static void destroy_packer(void *packer)
{
    sx_dnn_packer_destroy(packer);
}

static sx_status prepare_packer(const sx_cpu_site *site, const sx_dnn_conv *conv, int64_t bytes,
                                sx_cpu_step *step)
{
    enum { GRAIN_BYTES = 32 << 10 };
    packer_data *d = sx_cpu_new(site, packer_data);
    if (d == NULL) {
        return sx_cpu_no_memory();
    }
    SX_TRY(sx_dnn_packer_create(conv, &d->packer));
    SX_TRY(sx_cpu_own(site, d->packer, destroy_packer));
    const int64_t pieces = sx_dnn_packer_pieces(d->packer);
    d->workers = site->plan->workers;
    step->data = d;
    step->run = run_packer;
    step->make_state = make_slots;
    step->destroy_state = destroy_slots;
    step->onednn = true;
    step->range = pieces * SX_CPU_SPLIT;
    step->grain = SX_MAX(GRAIN_BYTES * pieces / bytes, 1) * SX_CPU_SPLIT;
    step->bytes = 2 * (double)bytes;
    step->kernel = "filter onednn";
    return SX_OK;
}

sx_status sx_cpu_pack_for(const sx_cpu_site *site, sx_dnn_conv *conv, sx_cpu_packed *out,
                          sx_cpu_step *step)
{
    *out = (sx_cpu_packed){.bytes = sx_dnn_conv_packed_bytes(conv)};
    out->layout = out->bytes > 0 ? sx_dnn_conv_layout(conv) : 0;
    sx_status status = step != NULL ? prepare_packer(site, conv, out->bytes, step) : SX_OK;
    sx_dnn_conv_destroy(conv);
    return status;
}

bool sx_cpu_is_packed_for(const sx_cpu_site *site, const sx_dnn_conv *conv)
{
    return site->packed.bytes > 0 && site->packed.bytes == sx_dnn_conv_packed_bytes(conv) &&
           site->packed.layout == sx_dnn_conv_layout(conv);
}

/* Of forward convolutions and the image's gradient. */
static sx_status pack_filter(const sx_cpu_site *site, sx_cpu_packed *out, sx_cpu_step *step)
{
    const sx_node *n = conv_node(site);
    const int tile = sx_cpu_winograd_tile(site, n);
    if (tile > 0) {
        return sx_cpu_pack_winograd(site, n, tile, out, step);
    }
    if (sx_cpu_conv_is_grouped(site, n)) {
        *out = (sx_cpu_packed){0};
        return SX_OK;
    }
    const bool forward = n->op->id == SX_OPID_conv2d;
    sx_dnn_conv_spec spec = {.kind = forward ? SX_DNN_FORWARD : SX_DNN_BACKWARD_DATA,
                             .bias = site->nodes[0] != n,
                             .act = sx_cpu_act_of(site->nodes[0]),
                             .bf16 = sx_cpu_conv_in_bf16(n),
                             .team = 1,
                             .asks = true};
    sx_dnn_conv *conv;
    SX_TRY(sx_cpu_conv_geometry(site->graph, n, &spec.geometry));
    SX_TRY(sx_cpu_create_conv(&spec, &conv));
    return sx_cpu_pack_for(site, conv, out, step);
}

/* ---- Rows ---- */

#define CONV_ROW(row_name, op_name, what)                                      \
    const sx_cpu_kernel sx_cpu_kernel_##row_name = {.name = #row_name,         \
                                                    .op = SX_OPID_##op_name,   \
                                                    .match = match_##row_name, \
                                                    .prepare = prepare_##what, \
                                                    .pack = pack_filter,       \
                                                    .narrow_in = 3}
#define FUSED_ROW(op_name)                                                              \
    const sx_cpu_kernel sx_cpu_kernel_conv_fused_##op_name = {.name = "conv_" #op_name, \
                                                              .op = SX_OPID_##op_name,  \
                                                              .match = match_fused,     \
                                                              .prepare = prepare_forward}
FUSED_ROW(relu);
FUSED_ROW(relu6);
FUSED_ROW(swish);
FUSED_ROW(add);
CONV_ROW(conv_relu, relu, forward);
CONV_ROW(conv_bias, bias_add, forward);
CONV_ROW(conv, conv2d, forward);
const sx_cpu_kernel sx_cpu_kernel_conv_grad_input = {.name = "conv_grad_input",
                                                     .op = SX_OPID_conv2d_grad_input,
                                                     .match = match_grad_input,
                                                     .prepare = prepare_grad_input,
                                                     .pack = pack_filter,
                                                     .narrow_in = 3,
                                                     .parts = true};
const sx_cpu_kernel sx_cpu_kernel_conv_grad_filter = {.name = "conv_grad_filter",
                                                      .op = SX_OPID_conv2d_grad_filter,
                                                      .match = match_grad_filter,
                                                      .prepare = prepare_grad_filter,
                                                      .narrow_in = 3};

/* ---- Products of bfloat16 as 1x1 ---- */

static sx_dnn_conv_spec rows_by_matrix(const sx_type *a, const sx_type *b)
{
    const int64_t k = b->dims[0], rows = sx_type_elems(a) / SX_MAX(k, 1);
    return (sx_dnn_conv_spec){
        .kind = SX_DNN_FORWARD,
        .bf16 = true,
        .geometry = {.n = 1,
                     .c = k,
                     .o = b->dims[1],
                     .groups = 1,
                     .h = {.in = 1, .out = 1, .kernel = 1, .stride = 1, .dilation = 1},
                     .w = {.in = rows, .out = rows, .kernel = 1, .stride = 1, .dilation = 1}}};
}

static bool is_rounded(const sx_graph *g, sx_value v)
{
    while ((sx_graph_maker(g, v)->op->flags & SX_OP_VIEW) != 0) {
        v = sx_graph_maker(g, v)->inputs[0];
    }
    return sx_graph_maker(g, v)->op->id == SX_OPID_round_bf16;
}

/* In frozen graphs, where sx_pass_round_products() has rounded the operands. */
static bool match_matmul_bf16(sx_cpu_match *m)
{
    const sx_graph *g = m->graph;
    const sx_matmul_attrs *attrs = g->nodes[m->root].attrs;
    const sx_type *a = sx_graph_type(g, m->in[0]), *b = sx_graph_type(g, m->in[1]);
    if (!m->frozen || !sx_dnn_has_bf16() || attrs->transpose_a || attrs->transpose_b ||
        b->rank != 2 || !all_f32(m) || !is_rounded(g, m->in[0]) || !is_rounded(g, m->in[1]) ||
        sx_type_elems(a) == 0 || sx_type_elems(b) == 0) {
        return false;
    }
    sx_dnn_conv_spec spec = rows_by_matrix(a, b);
    sx_dnn_conv *conv = NULL;
    spec.asks = true;
    sx_status status = sx_cpu_create_conv(&spec, &conv);
    return sx_cpu_tried(m, status, conv) && spec.bf16;
}

static sx_status prepare_matmul_bf16(const sx_cpu_site *site, sx_cpu_step *step)
{
    sx_dnn_conv_spec spec = rows_by_matrix(&site->in[0], &site->in[1]);
    return prepare_spec(site, step, &spec, "matmul", run_forward);
}

const sx_cpu_kernel sx_cpu_kernel_matmul_bf16 = {.name = "matmul_bf16",
                                                 .op = SX_OPID_matmul,
                                                 .match = match_matmul_bf16,
                                                 .prepare = prepare_matmul_bf16,
                                                 .narrow_in = 3};

/* ---- 1x1 as matrix products ---- */

enum { PIECE_BYTES = 1 << 19 }; /* half of a small second-level cache */

int64_t sx_cpu_conv_piece_bytes(int64_t filter_elems)
{
    return SX_MAX((int64_t)PIECE_BYTES, 2 * filter_elems * (int64_t)sizeof(float));
}

static bool is_plain(const sx_conv_window *w)
{
    return w->kernel == 1 && w->stride == 1 && w->pad_before == 0 && w->out == w->in;
}

bool sx_cpu_conv_is_product(const sx_conv_geometry *g)
{
    return g->groups == 1 && is_plain(&g->h) && is_plain(&g->w);
}

static int64_t product_rows(const sx_conv_geometry *g)
{
    return g->n * g->h.in * g->w.in;
}

int64_t sx_cpu_conv_piece_rows(const sx_conv_geometry *g)
{
    const int64_t row_bytes = (g->c + g->o) * (int64_t)sizeof(float);
    return SX_MIN(SX_MAX(sx_cpu_conv_piece_bytes(g->c * g->o) / row_bytes, 1), product_rows(g));
}

int64_t sx_cpu_block_rows(int64_t rows, int64_t most, int64_t panels, int workers)
{
    int64_t blocks = SX_MAX((rows + most - 1) / most, 1);
    while (blocks * panels % workers != 0 && blocks < rows) {
        blocks++;
    }
    return (rows + blocks - 1) / blocks;
}

/* scratch: a piece of x, then one of dy, in float32 */
typedef struct product {
    const sx_cpu_vec *vec;
    int64_t rows, c, o;   /* pixels, channels in and out */
    int64_t piece;        /* rows that are widened and multiplied at a time */
    sx_dnn_pieces pieces; /* of the gradient's rows, which workers divide */
    bool x_narrow, dy_narrow;
} product;

static bool match_1x1(sx_cpu_match *m)
{
    sx_conv_geometry g;
    sx_status status = sx_cpu_conv_geometry(m->graph, &m->graph->nodes[m->root], &g);
    bool ok = status == SX_OK && all_f32(m) && sx_cpu_conv_is_product(&g) &&
              !sx_cpu_conv_in_bf16(&m->graph->nodes[m->root]);
    sx_status_free(status);
    return ok;
}

static sx_status prepare_1x1(const sx_cpu_site *site, sx_cpu_step *step, sx_cpu_run_fn *run)
{
    sx_conv_geometry g;
    product *p = sx_cpu_new(site, product);
    if (p == NULL) {
        return sx_cpu_no_memory();
    }
    SX_TRY(sx_cpu_conv_geometry(site->graph, site->nodes[0], &g));
    sx_dnn_gemm_prepare();
    const bool of_filter = site->nodes[0]->op->id == SX_OPID_conv2d_grad_filter;
    *p = (product){.vec = site->vec,
                   .rows = product_rows(&g),
                   .c = g.c,
                   .o = g.o,
                   .piece = product_rows(&g),
                   .x_narrow = of_filter && (site->narrow_in & 1) != 0,
                   .dy_narrow = of_filter && (site->narrow_in & 2) != 0};
    if (p->x_narrow || p->dy_narrow) {
        p->piece = sx_cpu_conv_piece_rows(&g);
        step->scratch_bytes = p->piece * (g.c + g.o) * (int64_t)sizeof(float);
    }
    const bool divided = site->divided && step->scratch_bytes == 0; /* which is one worker's */
    p->pieces = sx_dnn_pieces_of(of_filter ? p->c : p->rows, divided);
    sx_cpu_divide_products(step, p->pieces.n, 2.0 * (double)p->rows * (double)g.c * (double)g.o);
    step->run = run;
    step->data = p;
    return SX_OK;
}

static void run_grad_input_1x1(const sx_cpu_step *step, const sx_cpu_call *call)
{
    const product *p = step->data;
    const sx_dnn_product dx = {.tb = true,
                               .m = p->rows,
                               .n = p->c,
                               .k = p->o,
                               .a = sx_cpu_in(step, call, 0),
                               .b = sx_cpu_in(step, call, 1),
                               .c = sx_cpu_out(step, call, 0)};
    for (int64_t i = call->begin / SX_CPU_SPLIT; i < call->end / SX_CPU_SPLIT; i++) {
        sx_dnn_gemm_part(&dx, i * p->pieces.size, sx_dnn_piece_elems(&p->pieces, i), 0, p->c);
    }
}

/* Rows in float32: where they lie, or widened. */
static const float *wide_rows(const product *p, const void *x, bool narrow, int64_t elem, int64_t n,
                              float *to)
{
    if (!narrow) {
        return (const float *)x + elem;
    }
    p->vec->from_bf16((const uint16_t *)x + elem, to, n);
    return to;
}

static void run_grad_filter_1x1(const sx_cpu_step *step, const sx_cpu_call *call)
{
    const product *p = step->data;
    float *x_room = sx_cpu_at(call, step->scratch), *dy_room = x_room + p->piece * p->c;
    for (int64_t r = 0; r < p->rows; r += p->piece) {
        const int64_t n = SX_MIN(p->piece, p->rows - r);
        const float *x =
            wide_rows(p, sx_cpu_in(step, call, 0), p->x_narrow, r * p->c, n * p->c, x_room);
        const float *dy =
            wide_rows(p, sx_cpu_in(step, call, 1), p->dy_narrow, r * p->o, n * p->o, dy_room);
        const sx_dnn_product dw = {.ta = true,
                                   .m = p->c,
                                   .n = p->o,
                                   .k = n,
                                   .a = x,
                                   .b = dy,
                                   .beta = r > 0 ? 1 : 0,
                                   .c = sx_cpu_out(step, call, 0)};
        for (int64_t i = call->begin / SX_CPU_SPLIT; i < call->end / SX_CPU_SPLIT; i++) {
            sx_dnn_gemm_part(&dw, i * p->pieces.size, sx_dnn_piece_elems(&p->pieces, i), 0, p->o);
        }
    }
}

static sx_status prepare_grad_input_1x1(const sx_cpu_site *site, sx_cpu_step *step)
{
    return prepare_1x1(site, step, run_grad_input_1x1);
}
static sx_status prepare_grad_filter_1x1(const sx_cpu_site *site, sx_cpu_step *step)
{
    return prepare_1x1(site, step, run_grad_filter_1x1);
}

const sx_cpu_kernel sx_cpu_kernel_conv_grad_input_1x1 = {.name = "conv2d_grad_input as matmul",
                                                         .op = SX_OPID_conv2d_grad_input,
                                                         .match = match_1x1,
                                                         .prepare = prepare_grad_input_1x1,
                                                         .parts = true};
const sx_cpu_kernel sx_cpu_kernel_conv_grad_filter_1x1 = {.name = "conv2d_grad_filter as matmul",
                                                          .op = SX_OPID_conv2d_grad_filter,
                                                          .match = match_1x1,
                                                          .prepare = prepare_grad_filter_1x1,
                                                          .narrow_in = 3};
