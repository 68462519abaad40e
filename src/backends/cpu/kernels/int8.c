/* Convolutions and products of quantized operands: an image and a filter that quantizers made,
 *
 *     act(conv(quantized x, quantized filter) + bias + added), and a quantizer of that
 *
 * as one product of 8-bit integers, summed up in 32 bits, where the processor has instructions for
 * that. Bias, addition and activation work on the sums, which then become float32, or the integers
 * of the last quantizer. Ranges are constants; the image's grid begins at 0 or is symmetric, a
 * filter's is symmetric. A product of matrices is a convolution of 1x1 over a row of pixels.
 *
 * Without those instructions other rows compute the same nodes in float32. */
#include "backends/cpu/kernels/conv.h"
#include "base/memory.h"
#include "graph/ops/quantize.h"

/* ---- The filter's grid ---- */

static const sx_tensor *constant_at(const sx_graph *g, sx_value v)
{
    const sx_node *n = sx_graph_maker(g, v);
    return n->op->id == SX_OPID_constant ? &((const sx_constant_attrs *)n->attrs)->value : NULL;
}

/* The step of channel k of a quantizer's result; 0 if it has no integers of 8 bits. A channel of
 * zeros has any. */
static float step_of(const sx_node *n, const sx_tensor *low, const sx_tensor *high, int64_t k)
{
    const int64_t at = low->type.rank == 0 ? 0 : k;
    const float from = ((const float *)low->data)[at], to = ((const float *)high->data)[at];
    sx_quantize_steps steps;
    if (from == 0 && to == 0) {
        return 1;
    }
    return sx_quantize_steps_of(n, from, to, &steps) && steps.first >= INT8_MIN &&
                   steps.last <= INT8_MAX
               ? steps.step
               : 0;
}

/* Whether `v` is a filter quantized with a range for all of it or for each of its last dimension,
 * and the steps of those, if `steps` is not NULL. */
static bool has_filter_steps(const sx_graph *g, sx_value v, float *steps)
{
    const sx_node *n = sx_graph_maker(g, v);
    const sx_type *t = sx_graph_type(g, v);
    const sx_tensor *low = sx_is_quantizer(n) ? constant_at(g, n->inputs[1]) : NULL;
    const sx_tensor *high = low != NULL ? constant_at(g, n->inputs[2]) : NULL;
    if (high == NULL || t->dtype != SX_F32 || t->rank < 1) {
        return false;
    }
    const bool is_last = n->op->id == SX_OPID_fake_quant ||
                         ((const sx_quantize_dequantize_attrs *)n->attrs)->axis == t->rank - 1;
    bool ok = low->type.rank == 0 || is_last;
    for (int64_t k = 0; k < t->dims[t->rank - 1] && ok; k++) {
        const float step = step_of(n, low, high, k);
        ok = step > 0;
        if (steps != NULL) {
            steps[k] = step;
        }
    }
    return ok;
}

/* ---- Matching ---- */

/* A 1x1 filter over the rows of a matrix. */
static void product_geometry(const sx_type *a, const sx_type *b, sx_conv_geometry *g)
{
    const int64_t k = b->dims[0], rows = k > 0 ? sx_type_elems(a) / k : 0;
    *g = (sx_conv_geometry){
        .n = 1,
        .h = {.in = 1, .out = 1, .kernel = 1, .stride = 1, .dilation = 1},
        .w = {.in = rows, .out = rows, .kernel = 1, .stride = 1, .dilation = 1},
        .groups = 1,
        .c = k,
        .o = b->dims[1],
    };
}

static sx_status geometry_of(const sx_node *product, const sx_type *x, const sx_type *filter,
                             sx_conv_geometry *g)
{
    if (product->op->id == SX_OPID_conv2d) {
        return sx_conv_geometry_of(product->attrs, x, filter, g);
    }
    product_geometry(x, filter, g);
    return SX_OK;
}

static bool is_product(const sx_graph *g, const sx_node *n)
{
    if (n->op->id == SX_OPID_matmul) {
        const sx_matmul_attrs *attrs = n->attrs;
        if (attrs->transpose_a || attrs->transpose_b || sx_graph_type(g, n->inputs[1])->rank != 2) {
            return false;
        }
    } else if (n->op->id != SX_OPID_conv2d) {
        return false;
    }
    sx_cpu_form form;
    return sx_cpu_byte_form(g, n->inputs[0], &form) && has_filter_steps(g, n->inputs[1], NULL);
}

/* What a match consists of, root first; NULL and no value where it has none. */
typedef struct pattern {
    const sx_node *quantizer, *act, *add, *bias, *product;
    sx_value added;
} pattern;

/* A product at `v`, with or without a bias. */
static bool find_product(const sx_cpu_match *m, const sx_node *n, pattern *p)
{
    const sx_graph *g = m->graph;
    p->bias = n->op->id == SX_OPID_bias_add ? n : NULL;
    if (p->bias != NULL) {
        const int k = sx_cpu_claimable(m, n->inputs[0], -1);
        if (k < 0) {
            return false;
        }
        n = &g->nodes[k];
    }
    p->product = is_product(g, n) ? n : NULL;
    return p->product != NULL;
}

/* An addition, one of whose operands is a product that nothing else reads. The other has the form
 * of the result. */
static bool find_sum(const sx_cpu_match *m, const sx_node *n, pattern *p)
{
    const sx_graph *g = m->graph;
    for (int i = 1; i >= 0; i--) {
        const sx_value other = n->inputs[1 - i];
        const int k = sx_cpu_claimable(m, n->inputs[i], -1);
        sx_cpu_form form;
        if (k >= 0 && sx_type_equal(sx_graph_type(g, other), sx_graph_type(g, n->first_output)) &&
            sx_type_equal(sx_graph_type(g, n->inputs[i]), sx_graph_type(g, other)) &&
            (p->quantizer == NULL || sx_cpu_byte_form(g, other, &form)) &&
            find_product(m, &g->nodes[k], p)) {
            p->add = n;
            p->added = other;
            return true;
        }
    }
    return false;
}

static bool find(const sx_cpu_match *m, pattern *p)
{
    const sx_graph *g = m->graph;
    const sx_node *n = &g->nodes[m->root];
    *p = (pattern){0};
    if (sx_is_quantizer(n)) {
        sx_cpu_form form;
        const int k = sx_cpu_claimable(m, n->inputs[0], -1);
        if (k < 0 || !sx_cpu_byte_form(g, n->first_output, &form) || !form.full) {
            return false;
        }
        p->quantizer = n;
        n = &g->nodes[k];
    }
    if (sx_cpu_act_of(n) != SX_DNN_PLAIN) {
        const int k = sx_cpu_claimable(m, n->inputs[0], -1);
        if (k < 0) {
            return false;
        }
        p->act = n;
        n = &g->nodes[k];
    }
    return n->op->id == SX_OPID_add ? find_sum(m, n, p) : find_product(m, n, p);
}

static sx_dnn_integers integers_of(const sx_graph *g, const pattern *p)
{
    sx_cpu_form src, dst = {SX_F32, 1, false}, added = {SX_F32, 1, false};
    (void)sx_cpu_byte_form(g, p->product->inputs[0], &src);
    if (p->quantizer != NULL) {
        (void)sx_cpu_byte_form(g, p->quantizer->first_output, &dst);
        if (p->add != NULL) {
            (void)sx_cpu_byte_form(g, p->added, &added);
        }
    }
    return (sx_dnn_integers){.src = src.dtype,
                             .dst = dst.dtype,
                             .added = added.dtype,
                             .added_step = added.step,
                             .dst_step = dst.step};
}

/* scales[o]: what one of the sums of filter o stands for. */
static sx_status create(const sx_graph *g, const pattern *p, const sx_type *x,
                        const sx_type *filter, sx_dnn_conv_spec *spec, float *scales,
                        sx_dnn_conv **out)
{
    sx_dnn_integers integers = integers_of(g, p);
    sx_cpu_form src;
    (void)sx_cpu_byte_form(g, p->product->inputs[0], &src);
    (void)has_filter_steps(g, p->product->inputs[1], scales);
    for (int64_t k = 0; k < filter->dims[filter->rank - 1]; k++) {
        scales[k] *= src.step;
    }
    integers.scales = scales;
    spec->kind = SX_DNN_FORWARD;
    spec->bias = true;
    spec->add = p->add != NULL;
    spec->act = p->act != NULL ? sx_cpu_act_of(p->act) : SX_DNN_PLAIN;
    spec->integers = &integers;
    SX_TRY(geometry_of(p->product, x, filter, &spec->geometry));
    sx_status status = sx_dnn_conv_create(spec, out);
    spec->integers = NULL;
    return status;
}

/* Whether oneDNN has an efficient primitive. */
static bool dnn_has(sx_cpu_match *m, const pattern *p)
{
    const sx_type *x = sx_graph_type(m->graph, p->product->inputs[0]),
                  *filter = sx_graph_type(m->graph, p->product->inputs[1]);
    float *scales = sx_alloc((size_t)filter->dims[filter->rank - 1] + 1, sizeof(*scales));
    sx_dnn_conv *conv = NULL;
    sx_dnn_conv_spec spec = {.asks = true};
    sx_status status =
        scales == NULL ? sx_cpu_no_memory() : create(m->graph, p, x, filter, &spec, scales, &conv);
    sx_free(scales);
    return sx_cpu_tried(m, status, conv);
}

/* in: x, filter, the bias and what is added if there are any; the result overwrites that. */
static bool match_int8(sx_cpu_match *m)
{
    pattern p;
    if (!m->frozen || !m->integers || !sx_dnn_has_int8() || !find(m, &p) || !dnn_has(m, &p)) {
        return false;
    }
    const sx_node *below[] = {p.act, p.add, p.bias, p.product};
    for (size_t i = 0; i < SX_COUNT(below); i++) {
        if (below[i] != NULL && below[i] != &m->graph->nodes[m->root]) {
            sx_cpu_claim(m, (int)(below[i] - m->graph->nodes));
        }
    }
    m->in[0] = p.product->inputs[0];
    m->in[1] = p.product->inputs[1];
    m->n_in = 2;
    if (p.bias != NULL) {
        m->in[m->n_in++] = p.bias->inputs[1];
    }
    if (p.add != NULL) {
        m->in_place = 1U << m->n_in;
        m->in[m->n_in++] = p.added;
    }
    return true;
}

/* ---- Running ---- */

typedef struct int8_data {
    sx_dnn_conv *conv;
    const sx_cpu_vec *vec;
    sx_cpu_form src, dst, added; /* SX_F32: a result that is not quantized, and its sum */
    bool src_narrow, dst_narrow, added_narrow;
    int64_t src_elems, dst_elems;
    int64_t filters, filter_elems;
    float *steps, *scales; /* [filters]: of the filter, of a sum */
    int bias, added_in;    /* operands; 0: none */
    bool kept;             /* bias and filter are prepared once */
    /* In scratch, after oneDNN's: src and dst as integers, then what is prepared in every call. */
    int64_t src_at, dst_at, ready_at, plain_at;
    int64_t packed_at, ready_bytes; /* in what is prepared: after the bias */
    bool packs;                     /* the filter is not read as it lies */
} int8_data;

/* The bias in units of the sums, and the filter's integers as the primitive reads them. `plain`:
 * room for those as they lie. */
static sx_status make_ready(const sx_cpu_step *step, const sx_cpu_call *call, char *ready,
                            int8_t *plain)
{
    const int8_data *d = step->data;
    const float *filter = sx_cpu_in(step, call, 1),
                *bias = d->bias > 0 ? sx_cpu_in(step, call, d->bias) : NULL;
    float *units = (float *)(void *)ready;
    for (int64_t k = 0; k < d->filters; k++) {
        units[k] = bias != NULL ? bias[k] / d->scales[k] : 0;
    }
    for (int64_t i = 0; i < d->filter_elems; i += d->filters) {
        for (int64_t k = 0; k < d->filters; k++) {
            const float v = rintf(filter[i + k] / d->steps[k]);
            plain[i + k] = (int8_t)SX_MIN(SX_MAX(v, INT8_MIN), INT8_MAX);
        }
    }
    return d->packs ? sx_dnn_conv_pack(d->conv, plain, ready + d->packed_at) : SX_OK;
}

static void prepare_once(const sx_cpu_step *step, const sx_cpu_call *call)
{
    const int8_data *d = step->data;
    char *kept = sx_cpu_at(call, step->kept);
    int8_t *plain =
        d->packs ? sx_alloc((size_t)d->filter_elems + 1, 1) : (int8_t *)kept + d->packed_at;
    sx_status status = plain == NULL ? sx_cpu_no_memory() : make_ready(step, call, kept, plain);
    if (d->packs) {
        sx_free(plain);
    }
    if (status != SX_OK) {
        sx_cpu_fail(call, status);
    }
}

static void run_int8(const sx_cpu_step *step, const sx_cpu_call *call)
{
    const int8_data *d = step->data;
    char *scratch = sx_cpu_at(call, step->scratch);
    char *ready = d->kept ? sx_cpu_at(call, step->kept) : scratch + d->ready_at;
    void *src = sx_cpu_in(step, call, 0), *result = sx_cpu_out(step, call, 0), *dst = result,
         *added = d->added_in > 0 ? sx_cpu_in(step, call, d->added_in) : NULL;
    const bool quantizes = d->dst.dtype != SX_F32;
    if (!d->kept) {
        char *plain = d->packs ? scratch + d->plain_at : ready + d->packed_at;
        sx_status status = make_ready(step, call, ready, (int8_t *)plain);
        if (status != SX_OK) {
            sx_cpu_fail(call, status);
            return;
        }
    }
    if (!d->src_narrow) {
        sx_cpu_to_form(d->vec, &d->src, src, scratch + d->src_at, d->src_elems);
        src = scratch + d->src_at;
    }
    if (quantizes && !d->dst_narrow) {
        dst = scratch + d->dst_at;
    }
    if (quantizes && added != NULL && !d->added_narrow) {
        sx_cpu_to_form(d->vec, &d->added, added, dst, d->dst_elems);
        added = dst;
    }
    sx_dnn_conv_run(d->conv, call->states[step->index],
                    &(sx_dnn_conv_args){.src = src,
                                        .filter = ready + d->packed_at,
                                        .bias = ready,
                                        .dst = dst,
                                        .scratch = scratch,
                                        .added = added,
                                        .packed = ready + d->packed_at,
                                        .alone = call->alone});
    if (dst != result) {
        sx_cpu_from_form(d->vec, &d->dst, dst, result, d->dst_elems);
    }
}

/* ---- Preparing ---- */

/* The match's nodes again, in the same order. */
static pattern pattern_of(const sx_cpu_site *site, int8_data *d)
{
    pattern p = {0};
    for (int i = 0; i < site->n_nodes; i++) {
        const sx_node *n = site->nodes[i];
        if (sx_is_quantizer(n)) {
            p.quantizer = n;
        } else if (sx_cpu_act_of(n) != SX_DNN_PLAIN) {
            p.act = n;
        } else if (n->op->id == SX_OPID_add) {
            p.add = n;
        } else if (n->op->id == SX_OPID_bias_add) {
            p.bias = n;
        } else {
            p.product = n;
        }
    }
    int next = 2;
    d->bias = p.bias != NULL ? next++ : 0;
    d->added_in = p.add != NULL ? next : 0;
    p.added = p.add != NULL ? site->values_in[next] : SX_NO_VALUE;
    return p;
}

/* Where everything lies that is no operand. */
static void lay_out(int8_data *d, sx_cpu_step *step)
{
    const int64_t plain = sx_cpu_round_up(d->filter_elems);
    const int64_t packed = sx_dnn_conv_packed_bytes(d->conv);
    d->packs = packed > 0;
    d->packed_at = sx_cpu_round_up(d->filters * (int64_t)sizeof(float));
    d->ready_bytes = d->packed_at + (d->packs ? packed : plain);
    step->scratch_bytes = sx_cpu_round_up(sx_dnn_conv_scratch_bytes(d->conv, true));
    d->src_at = step->scratch_bytes;
    step->scratch_bytes += d->src_narrow ? 0 : sx_cpu_round_up(d->src_elems);
    d->dst_at = step->scratch_bytes;
    step->scratch_bytes +=
        d->dst.dtype == SX_F32 || d->dst_narrow ? 0 : sx_cpu_round_up(d->dst_elems);
    d->ready_at = step->scratch_bytes;
    d->plain_at = d->ready_at + d->ready_bytes;
    step->scratch_bytes += d->kept ? 0 : d->ready_bytes + (d->packs ? plain : 0);
}

static sx_status prepare_int8(const sx_cpu_site *site, sx_cpu_step *step)
{
    const sx_type *filter = &site->in[1];
    const int64_t filters = filter->dims[filter->rank - 1];
    int8_data *d = sx_cpu_new(site, int8_data);
    float *steps = sx_arena_array(&site->plan->arena, filters + 1, float),
          *scales = sx_arena_array(&site->plan->arena, filters + 1, float);
    if (d == NULL || steps == NULL || scales == NULL) {
        return sx_cpu_no_memory();
    }
    const pattern p = pattern_of(site, d);
    const unsigned once = 1U << 1 | (d->bias > 0 ? 1U << d->bias : 0);
    d->kept = (site->frozen_in & once) == once;
    sx_dnn_conv_spec spec = {.team = site->plan->team ? site->plan->workers : 1,
                             .packs_alone = d->kept};
    SX_TRY(create(site->graph, &p, &site->in[0], filter, &spec, scales, &d->conv));
    SX_TRY(sx_cpu_own_conv(site, d->conv));
    (void)has_filter_steps(site->graph, site->values_in[1], steps);
    d->steps = steps;
    d->scales = scales;
    d->vec = site->vec;
    d->filters = filters;
    d->filter_elems = sx_type_elems(filter);
    d->src_elems = sx_type_elems(&site->in[0]);
    d->dst_elems = sx_type_elems(&site->out[0]);
    d->src_narrow = (site->narrow_in & 1) != 0;
    d->dst_narrow = site->narrow_out;
    d->added_narrow = d->added_in > 0 && (site->narrow_in >> d->added_in & 1) != 0;
    (void)sx_cpu_byte_form(site->graph, site->values_in[0], &d->src);
    d->dst = d->added = (sx_cpu_form){.dtype = SX_F32};
    if (p.quantizer != NULL) {
        (void)sx_cpu_byte_form(site->graph, p.quantizer->first_output, &d->dst);
        (void)(p.add != NULL && sx_cpu_byte_form(site->graph, p.added, &d->added));
    }
    lay_out(d, step);
    step->onednn = true;
    step->run = run_int8;
    step->data = d;
    sx_cpu_use_slots(step);
    if (d->kept) {
        step->prepare_once = prepare_once;
        step->kept_bytes = d->ready_bytes;
        step->read_once = once;
    }
    step->kernel = sx_arena_printf(&site->plan->arena, "%s int8 onednn %s", p.product->op->name,
                                   sx_dnn_conv_name(d->conv));
    return step->kernel != NULL ? SX_OK : sx_cpu_no_memory();
}

/* Bytes are read as the image and, by a quantizer, as what is added: operand 2 or 3. */
#define QUANTIZED_ROW(op_name)                                                           \
    const sx_cpu_kernel sx_cpu_kernel_int8_##op_name = {.name = "int8_" #op_name,        \
                                                        .op = SX_OPID_##op_name,         \
                                                        .match = match_int8,             \
                                                        .prepare = prepare_int8,         \
                                                        .bytes_in = 1 | 1 << 2 | 1 << 3, \
                                                        .bytes_out = true}
#define FLOAT_ROW(op_name)                                                        \
    const sx_cpu_kernel sx_cpu_kernel_int8_##op_name = {.name = "int8_" #op_name, \
                                                        .op = SX_OPID_##op_name,  \
                                                        .match = match_int8,      \
                                                        .prepare = prepare_int8,  \
                                                        .bytes_in = 1}
QUANTIZED_ROW(fake_quant);
QUANTIZED_ROW(quantize_dequantize);
FLOAT_ROW(relu);
FLOAT_ROW(relu6);
FLOAT_ROW(swish);
FLOAT_ROW(add);
FLOAT_ROW(bias_add);
FLOAT_ROW(conv2d);
FLOAT_ROW(matmul);
