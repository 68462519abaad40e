/* What test_import.py runs:
 *   import_tool DIR SIGNATURE INPUTS OUTPUTS    imports all signatures of a SavedModel as functions
 *                                               and runs one on the cpu
 * Both files have a tensor after the other, in the order of the signature's keys: a line "dtype
 * rank dims...", TensorFlow's number of the dtype; then the elements, of strings "size bytes". */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "runtime/function_run.h"
#include "savedmodel/import_library.h"

enum { MAX_TENSORS = 32 };

static sx_status read_tensor(FILE *f, sx_arena *arena, sx_tensor *out)
{
    int dtype, rank;
    *out = (sx_tensor){.data = NULL};
    if (fscanf(f, "%d %d", &dtype, &rank) != 2 || rank < 0 || rank > SX_MAX_RANK) {
        return sx_error(SX_INVALID_ARGUMENT, "the inputs are not tensors");
    }
    out->type = (sx_type){.dtype = (sx_dtype)dtype, .rank = rank};
    for (int d = 0; d < rank; d++) {
        long long dim;
        if (fscanf(f, "%lld", &dim) != 1) {
            return sx_error(SX_INVALID_ARGUMENT, "the inputs lack a dimension");
        }
        out->type.dims[d] = dim;
    }
    (void)fgetc(f);
    const int64_t n = sx_type_elems(&out->type);
    if (dtype != SX_STRING) {
        const size_t bytes = (size_t)sx_type_bytes(&out->type);
        out->data = sx_arena_alloc(arena, bytes + 1, 64);
        return out->data != NULL && fread(out->data, 1, bytes, f) == bytes
                   ? SX_OK
                   : sx_error(SX_INVALID_ARGUMENT, "the inputs end early");
    }
    sx_bytes *strings = sx_arena_array(arena, n + 1, sx_bytes);
    for (int64_t i = 0; i < n && strings != NULL; i++) {
        int size;
        if (fscanf(f, "%d", &size) != 1 || size < 0) {
            return sx_error(SX_INVALID_ARGUMENT, "the inputs lack the size of a string");
        }
        (void)fgetc(f);
        char *text = sx_arena_alloc(arena, (size_t)size + 1, 1);
        if (text == NULL || fread(text, 1, (size_t)size, f) != (size_t)size) {
            return sx_error(SX_INVALID_ARGUMENT, "the inputs end early");
        }
        strings[i] = (sx_bytes){text, (size_t)size};
    }
    out->data = strings;
    return strings == NULL ? sx_no_memory("for strings") : SX_OK;
}

static void write_tensor(FILE *f, const sx_tensor *t)
{
    fprintf(f, "%d %d", (int)t->type.dtype, t->type.rank);
    for (int d = 0; d < t->type.rank; d++) {
        fprintf(f, " %lld", (long long)t->type.dims[d]);
    }
    fprintf(f, "\n");
    for (int64_t i = 0; t->type.dtype == SX_STRING && i < sx_type_elems(&t->type); i++) {
        const sx_bytes *s = (const sx_bytes *)t->data + i;
        fprintf(f, "%d ", (int)s->size);
        fwrite(s->data, 1, s->size, f);
    }
    if (t->type.dtype != SX_STRING) {
        fwrite(t->data, 1, (size_t)sx_type_bytes(&t->type), f);
    }
}

static sx_status give_variables(const sx_saved_model *model, const sx_library *library,
                                sx_runner *runner)
{
    const sx_bundle *bundle = sx_saved_model_variables(model);
    for (int i = 0; i < library->n_variables; i++) {
        const sx_variable_spec *v = &library->variables[i];
        void *data = sx_alloc((size_t)sx_type_bytes(&v->type) + 1, 1);
        sx_status status = data == NULL ? sx_no_memory("for a variable")
                                        : sx_bundle_read(bundle, v->name, &v->type, data);
        status = status != SX_OK ? status : sx_runner_write_variable(runner, v->name, data);
        sx_free(data);
        SX_TRY(status);
    }
    return SX_OK;
}

static sx_status run(char **args, sx_arena *arena)
{
    sx_saved_model *model = NULL;
    sx_library *library = NULL;
    sx_platform *platform = NULL;
    sx_runner *runner = NULL;
    sx_status refused[MAX_TENSORS];
    sx_tensor in[MAX_TENSORS], out[MAX_TENSORS];
    size_t n = 0, k = 0;
    SX_TRY(sx_saved_model_open(args[0], &model));
    const sx_signature *signatures = sx_saved_model_signatures(model, &n);
    if (n > MAX_TENSORS) {
        return sx_error(SX_INVALID_ARGUMENT, "%zu signatures", n);
    }
    SX_TRY(sx_import_library(model, NULL, &library, refused));
    while (k < n && strcmp(signatures[k].key, args[1]) != 0) {
        k++;
    }
    if (k == n || signatures[k].n_inputs > MAX_TENSORS || signatures[k].n_outputs > MAX_TENSORS) {
        return sx_error(SX_NOT_FOUND, "no signature \"%s\"", args[1]);
    }
    SX_TRY(refused[k]);
    SX_TRY(sx_platform_open("cpu", &(sx_platform_options){.cpu.threads = 1}, &platform));
    SX_TRY(sx_runner_create(
        &(sx_runner_options){.library = library, .platform = platform, .seed = 1}, &runner));
    SX_TRY(give_variables(model, library, runner));
    FILE *inputs = fopen(args[2], "rb");
    if (inputs == NULL) {
        return sx_error(SX_NOT_FOUND, "%s", args[2]);
    }
    for (size_t i = 0; i < signatures[k].n_inputs; i++) {
        SX_TRY(read_tensor(inputs, arena, &in[i]));
    }
    fclose(inputs);
    SX_TRY(sx_runner_run(runner, args[1], in, (int)signatures[k].n_inputs, out,
                         (int)signatures[k].n_outputs, arena, NULL));
    FILE *outputs = fopen(args[3], "wb");
    if (outputs == NULL) {
        return sx_error(SX_INTERNAL, "%s", args[3]);
    }
    for (size_t i = 0; i < signatures[k].n_outputs; i++) {
        write_tensor(outputs, &out[i]);
    }
    fclose(outputs);
    sx_runner_destroy(runner);
    sx_platform_close(platform);
    sx_library_destroy(library);
    sx_saved_model_close(model);
    return SX_OK;
}

int main(int argc, char **argv)
{
    sx_arena arena;
    sx_arena_init(&arena, 0);
    sx_status status = argc == 5
                           ? run(argv + 1, &arena)
                           : sx_error(SX_INVALID_ARGUMENT, "usage: see the head of import_tool.c");
    if (status != SX_OK) {
        fprintf(stderr, "%s: %s\n", sx_code_name(sx_status_code(status)),
                sx_status_message(status));
    }
    const int code = status == SX_OK ? 0 : 1;
    sx_status_free(status);
    sx_arena_deinit(&arena);
    return code;
}
