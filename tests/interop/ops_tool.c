/* What tests/interop/test_ops.py asks of the operator table.
 *
 *   ops_tool DIR     writes into DIR, for each sample of each operator that has a host kernel
 *       OP.SAMPLE.x0.npy ..      inputs; of strings x0.json: "shape", and "hex", each in
 * hexadecimal OP.SAMPLE.y0.npy ..      its outputs, rounded to their dtypes OP.SAMPLE.bound0.npy ..
 * of sums of products: the same of the inputs' absolute values OP.SAMPLE.w0.npy ..      weights,
 * and OP.SAMPLE.dx0.npy ..     gradients of the sum of all w y, where there are any OP.SAMPLE.pb
 * what `to_tf` wrote, a GraphDef with placeholders x0 .. and manifest.json, which names them. Exit
 * code 1 and the message on stderr for an error. */
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

static void write_sample(const sx_op_def *op, const sx_op_sample *sample, sx_buf *manifest)
{
    op_sample_run run;
    op_sample_begin(op, sample, &run);
    sx_buf_printf(manifest, "{\"op\": \"%s\", \"sample\": \"%s\", \"inputs\": %d, \"outputs\": %d",
                  op->name, sample->name, run.n_in, run.n_out);
    sx_buf_puts(manifest, ", \"attrs\": {");
    for (int i = 0; i < op->n_attrs; i++) {
        sx_buf_printf(manifest, "%s\"%s\": ", i == 0 ? "" : ", ", op->attrs[i].name);
        put_attr(manifest, &op->attrs[i], (const char *)run.attrs + op->attrs[i].offset);
    }
    sx_buf_printf(manifest, "}, \"sum\": %s", op->flags & SX_OP_SUM ? "true" : "false");
    write_forward(&run);
    write_backward(&run, manifest);
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

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: ops_tool DIR\n");
        return 2;
    }
    dir = argv[1];
    sx_buf manifest;
    sx_buf_init(&manifest, 0);
    const char *separator = "[\n";
    for (int id = 0; id < SX_OPID_COUNT; id++) {
        const sx_op_def *op = sx_op_table[id];
        for (int k = 0; op->host != NULL && k < op->n_samples; k++) {
            sx_buf_puts(&manifest, separator);
            write_sample(op, &op->samples[k], &manifest);
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
