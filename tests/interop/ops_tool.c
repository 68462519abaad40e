/* What tests/interop/test_ops.py asks of the operator table.
 *
 *   ops_tool DIR     writes into DIR, for each sample of each operator that has a host kernel
 *       OP.SAMPLE.x0.npy ..      inputs; of strings x0.json: "shape", and "hex", each in
 * hexadecimal OP.SAMPLE.y0.npy ..      its outputs, rounded to their dtypes OP.SAMPLE.bound0.npy ..
 * of sums of products: the same of the inputs' absolute values OP.SAMPLE.w0.npy ..      weights,
 * and OP.SAMPLE.dx0.npy ..     gradients of the sum of all w y, where there are any OP.SAMPLE.pb
 * what `to_tf` wrote, a GraphDef with placeholders x0 .. and manifest.json, which names them. Exit
 * code 1 and the message on stderr for an error.
 *
 *   ops_tool DIR dtypes     the same of each sample in every other dtype that the operator accepts
 *       in place of float32 or of int32, named SAMPLE@DTYPE; of elementwise operators on edge
 * values, too, SAMPLE@DTYPE_edges. "error": the host kernel refuses the data, so TensorFlow must */
#include "../graph/op_samples.h"

#include "base/buffer.h"
#include "io/commit.h"
#include "io/npy.h"
#include "savedmodel/tf_graph.h"

static const char *dir;

static const char *path_of(const op_sample_run *run, const char *suffix)
{
    static char path[512];
    snprintf(path, sizeof(path), "%s/%s.%s.%s", dir, run->op->name, run->sample->name, suffix);
    return path;
}

static void check(const op_sample_run *run, sx_status status)
{
    op_sample_ok(status, run->op, run->sample->name);
}

static void write_strings(const op_sample_run *run, const char *name, const sx_host_tensor *t)
{
    sx_buf out;
    sx_buf_init(&out, 0);
    sx_buf_puts(&out, "{\"shape\": [");
    for (int d = 0; d < t->type.rank; d++) {
        sx_buf_printf(&out, "%s%lld", d > 0 ? ", " : "", (long long)t->type.dims[d]);
    }
    sx_buf_puts(&out, "], \"hex\": [");
    for (int64_t k = 0, n = sx_type_elems(&t->type); k < n; k++) {
        sx_buf_puts(&out, k > 0 ? ", \"" : "\"");
        for (size_t i = 0; i < t->s[k].size; i++) {
            sx_buf_printf(&out, "%02x", ((const uint8_t *)t->s[k].data)[i]);
        }
        sx_buf_putc(&out, '"');
    }
    sx_buf_puts(&out, "]}");
    check(run, sx_commit_bytes(path_of(run, name), out.data, out.size));
    sx_buf_deinit(&out);
}

static void write_tensor(const op_sample_run *run, const char *kind, int index,
                         const sx_host_tensor *t)
{
    char name[32];
    if (t->type.dtype == SX_STRING) {
        snprintf(name, sizeof(name), "%s%d.json", kind, index);
        write_strings(run, name, t);
        return;
    }
    snprintf(name, sizeof(name), "%s%d.npy", kind, index);
    void *bytes = sx_alloc((size_t)sx_type_bytes(&t->type) + 1, 1);
    OP_SAMPLE_CHECK(bytes != NULL);
    sx_host_store(t, bytes);
    check(run, sx_npy_write(path_of(run, name), &(sx_tensor){t->type, bytes}));
    sx_free(bytes);
}

/* Outputs, and for sums the sums of |terms|: the host kernel's of |inputs|. */
static void write_forward(op_sample_run *run)
{
    for (int i = 0; i < run->n_in; i++) {
        write_tensor(run, "x", i, &run->in[i]);
    }
    op_sample_forward(run, false);
    for (int k = 0; k < run->n_out; k++) {
        write_tensor(run, "y", k, &run->out[k]);
    }
    if ((run->op->flags & SX_OP_SUM) == 0) {
        return;
    }
    op_sample_run terms;
    op_sample_begin(run->op, run->sample, &terms);
    for (int i = 0; i < terms.n_in; i++) {
        int64_t n = sx_type_elems(&terms.in[i].type);
        for (int64_t j = 0; j < n; j++) {
            sx_host_set(&terms.in[i], j, fabs(sx_host_get(&terms.in[i], j)));
        }
    }
    op_sample_forward(&terms, false);
    for (int k = 0; k < run->n_out; k++) {
        write_tensor(run, "bound", k, &terms.out[k]);
    }
    op_sample_end(&terms);
}

/* Writes weights and gradients; the manifest lists the inputs that have one. */
static void write_backward(const op_sample_run *run, sx_buf *manifest)
{
    sx_buf_puts(manifest, ", \"dx\": [");
    if (op_sample_is_differentiable(run) && !run->sample->no_grad_check) {
        op_sample_values v;
        const char *comma = "";
        op_sample_backward(run, &v);
        for (int k = 0; k < run->n_out; k++) {
            write_tensor(run, "w", k, op_sample_value(&v, "w", k));
        }
        for (int i = 0; i < run->n_in; i++) {
            const sx_host_tensor *dx = op_sample_value(&v, "dx", i);
            if (dx != NULL) {
                write_tensor(run, "dx", i, dx);
                sx_buf_printf(manifest, "%s%d", comma, i);
                comma = ", ";
            }
        }
        op_sample_values_end(&v);
    }
    sx_buf_putc(manifest, ']');
}

/* The sample as a GraphDef: placeholders with the symbolic batch, and the operator's own nodes. */
static void write_graph(const op_sample_run *run, const void *attrs, sx_buf *manifest)
{
    const sx_op_def *op = run->op;
    sx_tf_graph *graph;
    sx_tf_value in[SX_SAMPLE_MAX_INPUTS + 1], out[SX_MAX_OUTPUTS];
    sx_type in_types[SX_SAMPLE_MAX_INPUTS + 1], out_types[SX_MAX_OUTPUTS] = {0};
    check(run, sx_tf_graph_create(&graph));
    sx_tf_writer *w = sx_tf_graph_writer(graph);
    for (int i = 0; i < run->n_in; i++) {
        char name[16];
        snprintf(name, sizeof(name), "x%d", i);
        in_types[i] = run->sample->inputs[i].type;
        in[i] = sx_tf_add(w, "Placeholder", name, SX_TF_NO_IN,
                          sx_tf_attrs(sx_tf_attr_type("dtype", (int)in_types[i].dtype),
                                      sx_tf_attr_shape("shape", &in_types[i])));
    }
    sx_infer_context c = {attrs, in_types, run->n_in, out_types, op->n_out};
    check(run, op->infer(&c));
    op->to_tf(w, &(sx_tf_op){.attrs = attrs,
                             .name = op->name,
                             .in = in,
                             .out = out,
                             .in_types = in_types,
                             .out_types = out_types,
                             .n_in = run->n_in,
                             .n_out = c.n_outputs});
    Tensorflow__GraphDef *message;
    sx_status status = sx_tf_graph_finish(graph, &message);
    if (sx_status_code(status) == SX_UNIMPLEMENTED) {
        sx_buf_puts(manifest, ", \"tf\": null");
        sx_status_free(status);
        sx_tf_graph_destroy(graph);
        return;
    }
    check(run, status);
    size_t size = tensorflow__graph_def__get_packed_size(message);
    uint8_t *bytes = sx_alloc(size + 1, 1);
    OP_SAMPLE_CHECK(bytes != NULL);
    tensorflow__graph_def__pack(message, bytes);
    check(run, sx_commit_bytes(path_of(run, "pb"), bytes, size));
    sx_free(bytes);
    sx_buf_puts(manifest, ", \"tf\": [");
    for (int k = 0; k < c.n_outputs; k++) {
        sx_buf_printf(manifest, "%s\"%s\"", k == 0 ? "" : ", ",
                      sx_tf_graph_tensor_name(graph, out[k]));
    }
    sx_buf_puts(manifest, "], \"vocabularies\": [");
    for (const sx_tf_vocabulary_table *t = sx_tf_graph_vocabularies(graph); t != NULL;
         t = t->next) {
        sx_buf_printf(manifest, "{\"name\": \"%s\", \"first_id\": %lld, \"hex\": \"",
                      t->shared_name, (long long)t->first_id);
        for (size_t i = 0; i < t->lines.size; i++) {
            sx_buf_printf(manifest, "%02x", ((const uint8_t *)t->lines.data)[i]);
        }
        sx_buf_printf(manifest, "\"}%s", t->next != NULL ? ", " : "");
    }
    sx_buf_putc(manifest, ']');
    sx_tf_graph_destroy(graph);
}

static void put_ints(sx_buf *out, const sx_ints *list)
{
    sx_buf_putc(out, '[');
    for (int i = 0; i < list->n; i++) {
        sx_buf_printf(out, "%s%lld", i == 0 ? "" : ", ", (long long)list->v[i]);
    }
    sx_buf_putc(out, ']');
}

static void put_attr(sx_buf *out, const sx_attr_def *def, const void *field)
{
    switch (def->kind) {
    case SX_ATTR_INT:
        sx_buf_printf(out, "%lld", (long long)*(const int64_t *)field);
        break;
    case SX_ATTR_FLOAT:
        sx_buf_printf(out, "%.17g", *(const double *)field);
        break;
    case SX_ATTR_BOOL:
        sx_buf_puts(out, *(const bool *)field ? "true" : "false");
        break;
    case SX_ATTR_ENUM:
        sx_buf_printf(out, "\"%s\"", def->names[*(const int32_t *)field]);
        break;
    case SX_ATTR_DTYPE:
        sx_buf_printf(out, "\"%s\"", sx_dtype_name(*(const sx_dtype *)field));
        break;
    case SX_ATTR_INTS:
    case SX_ATTR_SHAPE:
        put_ints(out, field);
        break;
    default:
        sx_buf_puts(out, "null");
    }
}

/* Numbers at the ends of the dtype's range, infinities, NaN, zeros of both signs; the operands of a
 * binary operator meet in all pairs. */
static void fill_edges(const op_sample_run *run)
{
    static const double floats[] = {0,   -0.0,     1,         -1,  0.5, -2.5, 3,
                                    255, INFINITY, -INFINITY, NAN, 1e4, -1e4, 6e-5};
    for (int i = 0; i < run->n_in; i++) {
        const sx_host_tensor *t = &run->in[i];
        const sx_dtype dtype = t->type.dtype;
        const int64_t bits = 8 * (int64_t)sx_dtype_bytes(dtype), n = sx_type_elems(&t->type);
        const bool is_signed =
            dtype == SX_I8 || dtype == SX_I16 || dtype == SX_I32 || dtype == SX_I64;
        const uint64_t top = (uint64_t)1 << (bits - 1), most = is_signed ? top - 1 : 2 * top - 1;
        const uint64_t whole[] = {0,
                                  1,
                                  most,
                                  most - 1,
                                  is_signed ? 0 - top : top,
                                  7,
                                  0 - (uint64_t)1,
                                  is_signed ? 0 - (uint64_t)3 : 3};
        for (int64_t k = 0; k < n; k++) {
            const int64_t at = i == 0 ? k : k + k / 7;
            if (sx_carrier_of(dtype) == SX_CARRIER_F) {
                t->f[k] = floats[at % (int64_t)SX_COUNT(floats)];
            } else if (sx_carrier_of(dtype) == SX_CARRIER_I ||
                       sx_carrier_of(dtype) == SX_CARRIER_U) {
                t->u[k] = whole[at % (int64_t)SX_COUNT(whole)];
            }
        }
        sx_host_round(t);
    }
}

static bool fails(op_sample_run *run)
{
    sx_status status = sx_host_run_carried(run->op, run->attrs, run->in, run->n_in, run->out,
                                           run->n_out, &run->arena, false);
    const bool failed = status != SX_OK;
    sx_status_free(status);
    return failed;
}

static void write_sample(const sx_op_def *op, const sx_op_sample *sample, bool edges,
                         sx_buf *manifest)
{
    op_sample_run run;
    op_sample_begin(op, sample, &run);
    if (edges) {
        fill_edges(&run);
    }
    sx_buf_printf(manifest, "{\"op\": \"%s\", \"sample\": \"%s\", \"inputs\": %d, \"outputs\": %d",
                  op->name, sample->name, run.n_in, run.n_out);
    sx_buf_puts(manifest, ", \"attrs\": {");
    for (int i = 0; i < op->n_attrs; i++) {
        sx_buf_printf(manifest, "%s\"%s\": ", i == 0 ? "" : ", ", op->attrs[i].name);
        put_attr(manifest, &op->attrs[i], (const char *)run.attrs + op->attrs[i].offset);
    }
    sx_buf_printf(manifest, "}, \"sum\": %s", op->flags & SX_OP_SUM ? "true" : "false");
    if (fails(&run)) {
        sx_buf_puts(manifest, ", \"error\": true, \"dx\": []");
        for (int i = 0; i < run.n_in; i++) {
            write_tensor(&run, "x", i, &run.in[i]);
        }
    } else {
        write_forward(&run);
        if (edges) {
            sx_buf_puts(manifest, ", \"dx\": []");
        } else {
            write_backward(&run, manifest);
        }
    }
    void *symbolic = sx_alloc(1, op->attrs_bytes + 1);
    OP_SAMPLE_CHECK(symbolic != NULL);
    if (sample->attrs != NULL) {
        memcpy(symbolic, sample->attrs, op->attrs_bytes);
    }
    if (op->to_tf != NULL) {
        write_graph(&run, symbolic, manifest);
    } else {
        sx_buf_puts(manifest, ", \"tf\": null");
    }
    sx_buf_putc(manifest, '}');
    sx_free(symbolic);
    op_sample_end(&run);
}

/* ---- Every dtype ---- */

/* Whether the operator takes the sample's inputs. */
static bool accepts(const sx_op_def *op, const sx_op_sample *sample)
{
    op_sample_run run = {.op = op, .sample = sample};
    sx_type in[SX_SAMPLE_MAX_INPUTS], out[SX_MAX_OUTPUTS] = {0};
    op_sample_fix_attrs(&run);
    for (int i = 0; i < sample->n_inputs; i++) {
        in[i] = sx_type_with_batch(sample->inputs[i].type, op_sample_batch(sample));
    }
    sx_infer_context c = {run.attrs, in, sample->n_inputs, out, op->n_out};
    sx_status status = op->infer(&c);
    const bool accepted = status == SX_OK;
    sx_status_free(status);
    sx_free(run.owned_attrs);
    return accepted;
}

static bool can_hold(const sx_sample_input *input, sx_dtype dtype)
{
    const bool whole = input->fill == SX_FILL_INDEX || input->fill == SX_FILL_BOOL ||
                       input->fill == SX_FILL_TRUE || input->fill == SX_FILL_NORMAL;
    return sx_dtype_is_float(dtype) || whole;
}

static void write_dtypes(const sx_op_def *op, const sx_op_sample *sample, sx_buf *manifest,
                         const char **separator)
{
    static const sx_dtype from[] = {SX_F32, SX_I32},
                          to[] = {SX_F32, SX_F64, SX_F16, SX_BF16, SX_I8,  SX_I16, SX_I32,
                                  SX_I64, SX_U8,  SX_U16, SX_U32,  SX_U64, SX_BOOL};
    char name[128];
    for (size_t f = 0; f < SX_COUNT(from); f++) {
        for (size_t t = 0; t < SX_COUNT(to); t++) {
            sx_op_sample one = *sample;
            bool has = false, holds = true;
            for (int i = 0; i < one.n_inputs; i++) {
                if (one.inputs[i].type.dtype == from[f]) {
                    one.inputs[i].type.dtype = to[t];
                    has = true;
                    holds = holds && can_hold(&one.inputs[i], to[t]);
                }
            }
            for (int edges = 0; edges < 2 && has; edges++) {
                const bool elementwise = (op->flags & SX_OP_ELEMENTWISE) != 0;
                const bool same = to[t] == from[f];
                if (edges ? !elementwise || to[t] == SX_BOOL : same || !holds) {
                    continue;
                }
                snprintf(name, sizeof(name), "%s@%s%s", sample->name, sx_dtype_name(to[t]),
                         edges ? "_edges" : "");
                one.name = name;
                for (int i = 0; i < one.n_inputs && edges; i++) {
                    one.inputs[i].fill = SX_FILL_TRUE; /* until fill_edges() */
                }
                if (accepts(op, &one)) {
                    sx_buf_puts(manifest, *separator);
                    write_sample(op, &one, edges, manifest);
                    *separator = ",\n";
                }
            }
        }
    }
}

int main(int argc, char **argv)
{
    if (argc != 2 && (argc != 3 || strcmp(argv[2], "dtypes") != 0)) {
        fprintf(stderr, "usage: ops_tool DIR [dtypes]\n");
        return 2;
    }
    dir = argv[1];
    sx_buf manifest;
    sx_buf_init(&manifest, 0);
    const char *separator = "[\n";
    for (int id = 0; id < SX_OPID_COUNT; id++) {
        const sx_op_def *op = sx_op_table[id];
        for (int k = 0; op->host != NULL && k < op->n_samples; k++) {
            if (argc == 3) {
                write_dtypes(op, &op->samples[k], &manifest, &separator);
                continue;
            }
            sx_buf_puts(&manifest, separator);
            write_sample(op, &op->samples[k], false, &manifest);
            separator = ",\n";
        }
    }
    sx_buf_puts(&manifest, "\n]\n");
    char path[512];
    snprintf(path, sizeof(path), "%s/manifest.json", dir);
    sx_status status = sx_commit_bytes(path, sx_buf_text(&manifest), manifest.size);
    sx_buf_deinit(&manifest);
    if (status != SX_OK) {
        fprintf(stderr, "%s\n", sx_status_message(status));
        sx_status_free(status);
        return 1;
    }
    return 0;
}
