/* Compiled programs: see objects.h. */
#include <stdio.h>
#include <string.h>

#include "base/map.h"
#include "base/memory.h"
#include "pjrt_ref/objects.h"
#include "pjrt_ref/options.h"
#include "pjrt_ref/parse.h"

static sx_status no_memory(void)
{
    return sx_error(SX_RESOURCE_EXHAUSTED, "out of memory for an executable");
}

static sx_pjrt_named cost(const char *name, double value)
{
    return (sx_pjrt_named){.struct_size = sizeof(sx_pjrt_named),
                           .name = name,
                           .name_size = strlen(name),
                           .type = SX_PJRT_FLOAT,
                           .real = (float)value,
                           .value_size = 1};
}

static sx_status describe_outputs(ref_code *c)
{
    const ref_block *main = &c->program->main;
    size_t n = (size_t)main->n_results;
    c->n_outputs = main->n_results;
    c->output_types = sx_alloc(n + 1, sizeof(*c->output_types));
    c->output_ranks = sx_alloc(n + 1, sizeof(*c->output_ranks));
    c->output_dims = sx_alloc(n * SX_MAX_RANK + 1, sizeof(*c->output_dims));
    if (c->output_types == NULL || c->output_ranks == NULL || c->output_dims == NULL) {
        return no_memory();
    }
    int64_t *dims = c->output_dims;
    for (size_t i = 0; i < n; i++) {
        const sx_type *type = ref_type_of(c->program, main->results[i]);
        c->output_types[i] = ref_type_code(type->dtype);
        c->output_ranks[i] = (size_t)type->rank;
        memcpy(dims, type->dims, (size_t)type->rank * sizeof(*dims));
        dims += type->rank;
    }
    return SX_OK;
}

static void measure(ref_code *c)
{
    const ref_program *p = c->program;
    for (int i = 0; i < p->main.n_args; i++) {
        int64_t bytes = sx_type_bytes(ref_type_of(p, p->main.args[i]));
        c->argument_bytes += bytes;
        c->alias_bytes += p->aliases[i] >= 0 ? bytes : 0;
    }
    for (int i = 0; i < p->main.n_results; i++) {
        c->output_bytes += sx_type_bytes(ref_type_of(p, p->main.results[i]));
    }
    c->costs[0] = cost("flops", p->flops);
    c->costs[1] = cost("bytes accessed", (double)(c->argument_bytes + c->output_bytes));
    snprintf(c->fingerprint, sizeof(c->fingerprint), "%016llx",
             (unsigned long long)sx_hash64(c->text, c->size));
}

sx_status ref_code_create(const char *text, size_t size, int replicas, const int *ids,
                          bool is_portable, ref_code **out)
{
    ref_code *c = sx_alloc(1, sizeof(*c));
    if (c == NULL) {
        return no_memory();
    }
    atomic_init(&c->refs, 1);
    c->replicas = replicas;
    c->is_portable = is_portable;
    memcpy(c->ids, ids, (size_t)replicas * sizeof(*ids));
    c->size = size;
    c->text = sx_alloc(size + 1, 1);
    sx_status status = c->text == NULL ? no_memory() : SX_OK;
    if (status == SX_OK) {
        memcpy(c->text, text, size);
        status = ref_parse(c->text, size, replicas, &c->program);
    }
    status = status != SX_OK ? status : describe_outputs(c);
    if (status != SX_OK) {
        ref_code_release(c);
        return status;
    }
    measure(c);
    *out = c;
    return SX_OK;
}

ref_code *ref_code_retain(ref_code *c)
{
    atomic_fetch_add(&c->refs, 1);
    return c;
}

void ref_code_release(ref_code *c)
{
    if (c != NULL && atomic_fetch_sub(&c->refs, 1) == 1) {
        ref_program_destroy(c->program);
        sx_free(c->text);
        sx_free(c->output_types);
        sx_free(c->output_dims);
        sx_free(c->output_ranks);
        sx_free(c);
    }
}

sx_status ref_loaded_create(ref_client *client, ref_code *code, ref_loaded **out)
{
    ref_loaded *l = sx_alloc(1, sizeof(*l));
    ref_device **devices = sx_alloc((size_t)code->replicas, sizeof(ref_device *));
    int n = 0, first = 0;
    sx_status status = l == NULL || devices == NULL ? no_memory() : SX_OK;
    for (int i = 0; i < code->replicas && status == SX_OK; i++) {
        const int id = code->ids[i];
        const bool known = id >= 0 && id < client->n_all;
        if (known && client->list[id]->process == client->process) {
            first = n == 0 ? i : first;
            devices[n++] = client->list[id];
        } else if (!known) {
            status = sx_error(SX_INVALID_ARGUMENT, "no device %d here", id);
        }
    }
    if (status == SX_OK && (n == 0 || client->list[code->ids[first + n - 1]] != devices[n - 1])) {
        status = sx_error(SX_UNIMPLEMENTED, "replicas of a process that are not in one row");
    }
    if (status != SX_OK) {
        sx_free(l);
        sx_free(devices);
        return status;
    }
    *l = (ref_loaded){.client = client,
                      .code = ref_code_retain(code),
                      .devices = devices,
                      .n = n,
                      .first = first};
    atomic_fetch_add(&client->executables, 1);
    *out = l;
    return SX_OK;
}

sx_status ref_loaded_of_text(ref_client *client, const char *text, size_t size, const char *options,
                             size_t options_size, ref_loaded **out)
{
    static const char bytecode[] = "ML\xefR"; /* how MLIR's binary form begins */
    ref_spread spread;
    ref_code *code;
    SX_TRY(ref_read_options(options, options_size, &spread));
    if (size >= 4 && memcmp(text, bytecode, 4) == 0) {
        return sx_error(SX_UNIMPLEMENTED, "the program is MLIR bytecode; this plugin reads text");
    }
    SX_TRY(
        ref_code_create(text, size, (int)spread.replicas, spread.ids, spread.is_portable, &code));
    sx_status status = ref_loaded_create(client, code, out);
    ref_code_release(code);
    return status;
}

void ref_loaded_destroy(ref_loaded *l)
{
    atomic_fetch_sub(&l->client->executables, 1);
    ref_code_release(l->code);
    sx_free(l->devices);
    sx_free(l);
}
