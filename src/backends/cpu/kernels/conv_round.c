/* Convolutions whose result is rounded to bfloat16, forward and the gradient of the image:
 *
 *     round_bf16(act(conv(x, filter) + bias + added))     round_bf16(conv2d_grad_input(dy, filter))
 *
 * where bias, act and added may be absent. Images lie there in 2 bytes. Where the processor
 * multiplies bfloat16 fast, oneDNN reads and writes them. Elsewhere, and for what oneDNN has no
 * kernel of bfloat16, they are widened, multiplied in float32 and rounded a piece at a time, so
 * that the float32 numbers stay in cache: a few images, or for 1x1 gradients a few rows of a
 * product of matrices. Depthwise ones by frozen filters are depthwise_bf16.c's. */
#include "backends/cpu/kernels/conv.h"
#include "base/checked.h"

/* ---- Matching ---- */

/* What a match consists of, below the rounding; NULL and no value where it has none. */
typedef struct pattern {
    const sx_node *act, *add, *bias, *conv;
    sx_value added;
} pattern;

/* The node that makes `v`, if it may be part of the match. */
static const sx_node *below(const sx_cpu_match *m, sx_value v, int op)
{
    const int k = sx_cpu_claimable(m, v, op);
    return k < 0 ? NULL : &m->graph->nodes[k];
}

/* A convolution at `n`, with or without a bias. */
static bool find_conv(const sx_cpu_match *m, const sx_node *n, pattern *p)
{
    p->bias = n != NULL && n->op->id == SX_OPID_bias_add ? n : NULL;
    n = p->bias != NULL ? below(m, n->inputs[0], SX_OPID_conv2d) : n;
    p->conv = n != NULL && n->op->id == SX_OPID_conv2d ? n : NULL;
    return p->conv != NULL;
}

static bool find_sum(const sx_cpu_match *m, const sx_node *n, pattern *p)
{
    const sx_type *y = sx_graph_type(m->graph, n->first_output);
    for (int i = 1; i >= 0; i--) {
        if (sx_type_equal(sx_graph_type(m->graph, n->inputs[0]), y) &&
            sx_type_equal(sx_graph_type(m->graph, n->inputs[1]), y) &&
            n->inputs[0].id != n->inputs[1].id && find_conv(m, below(m, n->inputs[i], -1), p)) {
            p->add = n;
            p->added = n->inputs[1 - i];
            return true;
        }
    }
    return false;
}

static bool find_forward(const sx_cpu_match *m, pattern *p)
{
    const sx_node *n = below(m, m->graph->nodes[m->root].inputs[0], -1);
    *p = (pattern){0};
    const sx_dnn_act act = n != NULL ? sx_cpu_act_of(n) : SX_DNN_PLAIN;
    if (act == SX_DNN_SWISH) { /* a step of its own is faster */
        return false;
    }
    if (act != SX_DNN_PLAIN) {
        p->act = n;
        n = below(m, n->inputs[0], -1);
    }
    return n != NULL && (n->op->id == SX_OPID_add ? find_sum(m, n, p) : find_conv(m, n, p));
}

static bool all_f32(const sx_cpu_match *m)
{
    bool all = sx_cpu_is_f32(m, m->out[0]);
    for (int i = 0; i < m->n_in; i++) {
        all = all && sx_cpu_is_f32(m, m->in[i]);
    }
    return all;
}

/* Whether oneDNN has an efficient primitive; creates and discards it. */
static bool dnn_has(sx_cpu_match *m, const pattern *p, sx_dnn_conv_kind kind)
{
    const sx_node *n = p->conv;
    sx_dnn_conv_spec spec = {.kind = kind,
                             .bias = p->bias != NULL,
                             .add = p->add != NULL,
                             .act = p->act != NULL ? sx_cpu_act_of(p->act) : SX_DNN_PLAIN,
                             .bf16 = sx_cpu_conv_in_bf16(n),
                             .bf16_result = true,
                             .asks = true};
    sx_dnn_conv *conv = NULL;
    sx_status status = sx_cpu_conv_geometry(m->graph, n, &spec.geometry);
    if (status == SX_OK) {
        status = sx_cpu_create_conv(&spec, &conv);
    }
    return sx_cpu_tried(m, status, conv);
}

/* in: x, filter, what is added and the bias if there are any */
static bool match_forward(sx_cpu_match *m)
{
    pattern p;
    if (!find_forward(m, &p)) {
        return false;
    }
    const sx_node *nodes[] = {p.act, p.add, p.bias, p.conv};
    for (size_t i = 0; i < SX_COUNT(nodes); i++) {
        if (nodes[i] != NULL) {
            sx_cpu_claim(m, (int)(nodes[i] - m->graph->nodes));
        }
    }
    m->in[0] = p.conv->inputs[0];
    m->in[1] = p.conv->inputs[1];
    m->n_in = 2;
    if (p.add != NULL) {
        m->in_place = 1U << m->n_in;
        m->in[m->n_in++] = p.added;
    }
    if (p.bias != NULL) {
        m->in[m->n_in++] = p.bias->inputs[1];
    }
    return all_f32(m) && dnn_has(m, &p, SX_DNN_FORWARD);
}

/* in: dy, filter */
static bool match_grad_input(sx_cpu_match *m)
{
    const int k =
        sx_cpu_claimable(m, m->graph->nodes[m->root].inputs[0], SX_OPID_conv2d_grad_input);
    if (k < 0) {
        return false;
    }
    const pattern p = {.conv = &m->graph->nodes[k]};
    sx_cpu_claim(m, k);
    m->in[0] = p.conv->inputs[0];
    m->in[1] = p.conv->inputs[1];
    m->n_in = 2;
    return all_f32(m) && dnn_has(m, &p, SX_DNN_BACKWARD_DATA);
}

/* ---- Running ---- */

/* scratch: oneDNN's, the filter packed or widened for all pieces, then a piece's images */
typedef struct round_data {
    sx_dnn_conv *conv; /* of one piece; NULL: a product of matrices */
    const sx_cpu_vec *vec;
    bool bf16;                                                /* oneDNN reads and writes bfloat16 */
    bool src_narrow, filter_narrow, added_narrow, dst_narrow; /* they lie there so */
    int added_in, bias_in;                                    /* operands; 0: none */
    bool is_gradient;
    bool kept, packs; /* the filter: it lies packed in the kept memory, it is packed at all */
    int64_t pieces, src_elems, dst_elems; /* of a piece: what is read, what is written */
    int64_t last_rows, rows, from, to;    /* of a product: rows of a piece, columns */
    int64_t packed_at, src_at, dst_at;
} round_data;

static char *part(void *image, bool narrow, int64_t elem)
{
    return (char *)image + elem * (narrow ? 2 : (int64_t)sizeof(float));
}

/* `n` elements in the form that the product reads or writes: where they lie or, if `copies`,
 * converted to `to`. */
static void *read_as(const round_data *d, void *x, bool narrow, void *to, int64_t n, bool copies)
{
    if (narrow == d->bf16 && !copies) {
        return x;
    }
    if (narrow == d->bf16) {
        memcpy(to, x, (size_t)n * (d->bf16 ? 2 : sizeof(float)));
    } else if (d->bf16) {
        d->vec->to_bf16(x, to, n);
    } else {
        d->vec->from_bf16(x, to, n);
    }
    return to;
}

/* Rounds the product's numbers, if it has not, and moves them to where they are to lie. */
static void write_rounded(const round_data *d, void *made, void *y, int64_t n)
{
    if (d->bf16 && !d->dst_narrow) {
        d->vec->from_bf16(made, y, n);
    } else if (!d->bf16 && d->dst_narrow) {
        d->vec->to_bf16(made, y, n);
    } else if (!d->bf16) {
        d->vec->loops[SX_VEC_round_bf16](y, made, made, n);
    }
}

static void multiply(const sx_cpu_step *step, const sx_cpu_call *call, int64_t piece, void *src,
                     void *dst, void *filter)
{
    const round_data *d = step->data;
    if (d->conv == NULL) {
        sx_dnn_gemm(false, true, piece + 1 < d->pieces ? d->rows : d->last_rows, d->to, d->from,
                    src, filter, 0, dst);
        return;
    }
    sx_dnn_conv_run(d->conv, call->states[step->index],
                    &(sx_dnn_conv_args){
                        .src = d->is_gradient ? dst : src,
                        .filter = filter,
                        .bias = d->bias_in > 0 ? sx_cpu_in(step, call, d->bias_in) : NULL,
                        .dst = d->is_gradient ? src : dst,
                        .scratch = sx_cpu_at(call, step->scratch),
                        .added = d->added_in > 0 ? dst : NULL,
                        .packed = d->packs ? filter : NULL,
                    });
}

/* The filter as the product reads it. */
static void *filter_of(const sx_cpu_step *step, const sx_cpu_call *call)
{
    const round_data *d = step->data;
    void *plain = sx_cpu_in(step, call, 1),
         *ready = (char *)sx_cpu_at(call, step->scratch) + d->packed_at;
    if (d->kept) {
        return sx_cpu_at(call, step->kept);
    }
    if (d->packs) {
        sx_dnn_conv_pack_in(d->conv, call->states[step->index], plain, ready);
        return ready;
    }
    if (d->conv == NULL && d->filter_narrow) {
        d->vec->from_bf16(plain, ready, d->from * d->to);
        return ready;
    }
    return plain;
}

static void run_round(const sx_cpu_step *step, const sx_cpu_call *call)
{
    const round_data *d = step->data;
    char *scratch = sx_cpu_at(call, step->scratch);
    void *filter = filter_of(step, call);
    for (int64_t i = 0; i < d->pieces; i++) {
        const bool last = d->conv == NULL && i + 1 == d->pieces;
        const int64_t n_src = last ? d->last_rows * d->from : d->src_elems;
        const int64_t n_dst = last ? d->last_rows * d->to : d->dst_elems;
        void *y = part(sx_cpu_out(step, call, 0), d->dst_narrow, i * d->dst_elems);
        void *src = read_as(d, part(sx_cpu_in(step, call, 0), d->src_narrow, i * d->src_elems),
                            d->src_narrow, scratch + d->src_at, n_src, false);
        void *dst = d->dst_narrow == d->bf16 ? y : scratch + d->dst_at;
        if (d->added_in > 0) {
            void *added =
                part(sx_cpu_in(step, call, d->added_in), d->added_narrow, i * d->dst_elems);
            (void)read_as(d, added, d->added_narrow, dst, n_dst, added != dst);
        }
        multiply(step, call, i, src, dst, filter);
        write_rounded(d, dst, y, n_dst);
    }
}

/* ---- Preparing ---- */

/* The gradient of a 1x1 convolution: rows of dy times the filter, transposed. */
static void divide_rows(round_data *d, const sx_conv_geometry *g)
{
    const int64_t rows = g->n * g->h.in * g->w.in;
    d->rows = sx_cpu_conv_piece_rows(g);
    d->pieces = (rows + d->rows - 1) / d->rows;
    d->last_rows = rows - (d->pieces - 1) * d->rows;
    d->from = g->o;
    d->to = g->c;
    d->src_elems = d->rows * g->o;
    d->dst_elems = d->rows * g->c;
    sx_dnn_gemm_prepare();
}

/* Equal numbers of images; the geometry becomes that of a piece. */
static void divide_images(round_data *d, sx_conv_geometry *g, bool whole)
{
    const int64_t src = g->h.in * g->w.in * g->groups * g->c;
    const int64_t dst = g->h.out * g->w.out * g->groups * g->o;
    const int64_t filter = g->h.kernel * g->w.kernel * g->c * g->groups * g->o;
    int64_t images = sx_cpu_conv_piece_bytes(filter) / ((src + dst) * (int64_t)sizeof(float));
    images = whole ? g->n : SX_MIN(SX_MAX(images, 1), g->n);
    while (g->n % images != 0) {
        images--;
    }
    d->pieces = g->n / images;
    g->n = images;
    d->src_elems = images * (d->is_gradient ? dst : src);
    d->dst_elems = images * (d->is_gradient ? src : dst);
}

static sx_status create(sx_dnn_conv_spec *spec, round_data *d)
{
    const sx_conv_geometry whole = spec->geometry;
    if (spec->bf16) {
        divide_images(d, &spec->geometry, true);
        SX_TRY(sx_cpu_create_conv(spec, &d->conv));
        if (!spec->bf16) { /* in float32, then: in pieces */
            sx_dnn_conv_destroy(d->conv);
            d->conv = NULL;
            spec->geometry = whole;
        }
    }
    if (d->conv == NULL) {
        divide_images(d, &spec->geometry, false);
        SX_TRY(sx_cpu_create_conv(spec, &d->conv));
    }
    return SX_OK;
}

static void pack_frozen(const sx_cpu_step *step, const sx_cpu_call *call)
{
    const round_data *d = step->data;
    sx_status status =
        sx_dnn_conv_pack(d->conv, sx_cpu_in(step, call, 1), sx_cpu_at(call, step->kept));
    if (status != SX_OK) {
        sx_cpu_fail(call, status);
    }
}

static void find_operands(const sx_cpu_site *site, round_data *d, sx_dnn_conv_spec *spec,
                          const sx_node **conv)
{
    for (int i = 1; i < site->n_nodes; i++) {
        const sx_node *n = site->nodes[i];
        const sx_dnn_act act = sx_cpu_act_of(n);
        spec->act = act != SX_DNN_PLAIN ? act : spec->act;
        spec->add = spec->add || n->op->id == SX_OPID_add;
        spec->bias = spec->bias || n->op->id == SX_OPID_bias_add;
        *conv = n;
    }
    d->added_in = spec->add ? 2 : 0;
    d->bias_in = spec->bias ? site->n_in - 1 : 0;
    d->added_narrow = spec->add && (site->narrow_in >> 2 & 1) != 0;
    d->src_narrow = (site->narrow_in & 1) != 0;
    d->filter_narrow = spec->bf16_filter = (site->narrow_in & 2) != 0;
    d->dst_narrow = site->narrow_out;
}

static void lay_out(const sx_cpu_site *site, round_data *d, bool frozen, sx_cpu_step *step)
{
    const int64_t bytes = d->bf16 ? 2 : (int64_t)sizeof(float);
    const int64_t packed = d->conv != NULL    ? sx_dnn_conv_packed_bytes(d->conv)
                           : d->filter_narrow ? d->from * d->to * (int64_t)sizeof(float)
                                              : 0;
    d->packs = d->conv != NULL && packed > 0;
    frozen = frozen && d->packs;
    d->kept = frozen || (d->packs && sx_cpu_is_packed_for(site, d->conv));
    step->scratch_bytes =
        d->conv != NULL ? sx_cpu_round_up(sx_dnn_conv_scratch_bytes(d->conv, d->packs)) : 0;
    d->packed_at = step->scratch_bytes;
    step->scratch_bytes += d->kept ? 0 : sx_cpu_round_up(packed);
    d->src_at = step->scratch_bytes;
    step->scratch_bytes += d->src_narrow == d->bf16 ? 0 : sx_cpu_round_up(d->src_elems * bytes);
    d->dst_at = step->scratch_bytes;
    step->scratch_bytes += d->dst_narrow == d->bf16 ? 0 : sx_cpu_round_up(d->dst_elems * bytes);
    if (frozen) {
        step->prepare_once = pack_frozen;
        step->kept_bytes = packed;
        step->read_once = 2;
    }
}

static bool is_product(const sx_dnn_conv_spec *spec)
{
    return spec->kind == SX_DNN_BACKWARD_DATA && !spec->bf16 &&
           sx_cpu_conv_is_product(&spec->geometry);
}

static sx_status describe(const sx_cpu_site *site, round_data *d, sx_dnn_conv_spec *spec)
{
    const sx_node *n = NULL;
    *spec =
        (sx_dnn_conv_spec){.bf16_result = true, .team = site->plan->team ? site->plan->workers : 1};
    d->vec = site->vec;
    find_operands(site, d, spec, &n);
    d->is_gradient = n->op->id == SX_OPID_conv2d_grad_input;
    spec->kind = d->is_gradient ? SX_DNN_BACKWARD_DATA : SX_DNN_FORWARD;
    spec->bf16 = sx_cpu_conv_in_bf16(n);
    return sx_cpu_conv_geometry(site->graph, n, &spec->geometry);
}

static sx_status prepare_round(const sx_cpu_site *site, sx_cpu_step *step)
{
    sx_dnn_conv_spec spec;
    round_data *d = sx_cpu_new(site, round_data);
    if (d == NULL) {
        return sx_cpu_no_memory();
    }
    SX_TRY(describe(site, d, &spec));
    const bool frozen = !d->is_gradient && (site->frozen_in & 2) != 0;
    spec.packs_alone = frozen;
    if (is_product(&spec)) {
        divide_rows(d, &spec.geometry);
    } else {
        SX_TRY(create(&spec, d));
        SX_TRY(sx_cpu_own_conv(site, d->conv));
        sx_cpu_use_slots(step);
    }
    d->bf16 = d->conv != NULL && spec.bf16;
    site->plan->bf16 = site->plan->bf16 || d->bf16;
    step->bf16 = d->bf16;
    step->onednn = d->conv != NULL;
    step->run = run_round;
    step->data = d;
    lay_out(site, d, frozen, step);
    step->kernel = d->conv == NULL
                       ? "conv2d_grad_input as matmul"
                       : sx_arena_printf(&site->plan->arena, "%s onednn %s",
                                         d->is_gradient ? "conv2d_grad_input" : "conv2d",
                                         sx_dnn_conv_name(d->conv));
    return step->kernel != NULL ? SX_OK : sx_cpu_no_memory();
}

static sx_status pack_filter(const sx_cpu_site *site, sx_cpu_packed *out, sx_cpu_step *step)
{
    round_data d = {0};
    sx_dnn_conv_spec spec;
    SX_TRY(describe(site, &d, &spec));
    *out = (sx_cpu_packed){0};
    if (is_product(&spec)) {
        return SX_OK;
    }
    spec.asks = true;
    SX_TRY(create(&spec, &d));
    return sx_cpu_pack_for(site, d.conv, out, step);
}

/* Before elementwise groups, which would take the rounding. */
#define ROW(what)                                                                       \
    const sx_cpu_kernel sx_cpu_kernel_conv_round_##what = {.name = "conv_round_" #what, \
                                                           .op = SX_OPID_round_bf16,    \
                                                           .match = match_##what,       \
                                                           .prepare = prepare_round,    \
                                                           .pack = pack_filter,         \
                                                           .narrow_in = 3,              \
                                                           .narrow_in_place = true,     \
                                                           .narrow_out = true,          \
                                                           .parts = true,               \
                                                           .early = true}
ROW(forward);
ROW(grad_input);
