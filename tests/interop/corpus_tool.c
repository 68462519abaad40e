/* What corpus/check.py runs: corpus_tool DIR TAGS loads the graph of the SavedModel with these
 * tags, then answers requests on the standard input until it ends.
 *
 * A request is a line with the signature's name, then its inputs in its order: a line "dtype rank
 * dims...", TensorFlow's number of the dtype, and the elements, of strings "size bytes". The answer
 * is a line "ok COUNT" and the outputs likewise, each line beginning with the output's name; or a
 * line "error SIZE" and the message. The first answer, to the loading, is "ok 0" or an error.
 *
 * A first line "time RUNS SIGNATURE" runs the signature RUNS times; the answer is a line "time"
 * with the seconds that all runs took, by the clock and of the process' processors. THREADS is the
 * number of threads, by default one for each processor. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <sextant/infer.h>

#include "base/arena.h"

enum { MAX_NAME = 256, MAX_TENSORS = 32, MAX_BYTES = 1 << 28 };

static sx_status cut_short(void)
{
    return sx_error(SX_INVALID_ARGUMENT, "the request is cut short");
}

static sx_status read_tensor(sx_arena *arena, sx_tensor *out)
{
    int dtype, rank;
    if (scanf("%d %d", &dtype, &rank) != 2 || rank < 0 || rank > SX_MAX_RANK) {
        return cut_short();
    }
    out->type = (sx_type){.dtype = (sx_dtype)dtype, .rank = rank};
    for (int d = 0; d < rank; d++) {
        long long dim;
        if (scanf("%lld", &dim) != 1) {
            return cut_short();
        }
        out->type.dims[d] = dim;
    }
    (void)getchar();
    const int64_t n = sx_type_elems(&out->type);
    if (n < 0 || n > MAX_BYTES) {
        return cut_short();
    }
    if (dtype != SX_STRING) {
        const size_t bytes = (size_t)sx_type_bytes(&out->type);
        out->data = sx_arena_alloc(arena, bytes + 1, 64);
        return out->data != NULL && fread(out->data, 1, bytes, stdin) == bytes ? SX_OK
                                                                               : cut_short();
    }
    sx_bytes *strings = sx_arena_array(arena, n + 1, sx_bytes);
    for (int64_t i = 0; i < n && strings != NULL; i++) {
        int size;
        if (scanf("%d", &size) != 1 || size < 0 || size > MAX_BYTES) {
            return cut_short();
        }
        (void)getchar();
        char *text = sx_arena_alloc(arena, (size_t)size + 1, 1);
        if (text == NULL || fread(text, 1, (size_t)size, stdin) != (size_t)size) {
            return cut_short();
        }
        strings[i] = (sx_bytes){text, (size_t)size};
    }
    out->data = strings;
    return strings == NULL ? cut_short() : SX_OK;
}

static void write_tensor(const char *name, const sx_tensor *t)
{
    printf("%s %d %d", name, (int)t->type.dtype, t->type.rank);
    for (int d = 0; d < t->type.rank; d++) {
        printf(" %lld", (long long)t->type.dims[d]);
    }
    printf("\n");
    for (int64_t i = 0; t->type.dtype == SX_STRING && i < sx_type_elems(&t->type); i++) {
        const sx_bytes *s = (const sx_bytes *)t->data + i;
        printf("%d ", (int)s->size);
        fwrite(s->data, 1, s->size, stdout);
    }
    if (t->type.dtype != SX_STRING) {
        fwrite(t->data, 1, (size_t)sx_type_bytes(&t->type), stdout);
    }
}

static void write_error(sx_status status)
{
    printf("error %zu\n%s", strlen(sx_status_message(status)), sx_status_message(status));
    sx_status_free(status);
}

static double seconds(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static sx_status answer(sx_servable *model, const char *request, sx_arena *arena)
{
    char name[MAX_NAME];
    long runs = 0;
    if (sscanf(request, "time %ld %255[^\n]", &runs, name) != 2) {
        snprintf(name, sizeof(name), "%s", request);
    }
    const sx_signature_info *signature;
    sx_tensor in[MAX_TENSORS];
    sx_outputs *outputs;
    SX_TRY(sx_servable_find(model, name, &signature));
    if (signature->n_inputs > MAX_TENSORS) {
        return sx_error(SX_INVALID_ARGUMENT, "%d inputs", signature->n_inputs);
    }
    for (int i = 0; i < signature->n_inputs; i++) {
        SX_TRY(read_tensor(arena, &in[i]));
    }
    if (runs > 0) {
        const double start = seconds(CLOCK_MONOTONIC), cpu = seconds(CLOCK_PROCESS_CPUTIME_ID);
        for (long i = 0; i < runs; i++) {
            SX_TRY(sx_servable_run(model, name, in, &outputs));
            sx_outputs_free(outputs);
        }
        printf("time %.9f %.9f\n", seconds(CLOCK_MONOTONIC) - start,
               seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu);
        return SX_OK;
    }
    SX_TRY(sx_servable_run(model, name, in, &outputs));
    printf("ok %d\n", signature->n_outputs);
    for (int i = 0; i < signature->n_outputs; i++) {
        write_tensor(signature->outputs[i].name, sx_outputs_at(outputs, i));
    }
    sx_outputs_free(outputs);
    return SX_OK;
}

static void write_kernel(void *user, const sx_kernel_profile *k)
{
    (void)user;
    printf("kernel %.9f %s\n", k->seconds, k->kernel);
}

int main(int argc, char **argv)
{
    sx_servable *model;
    char request[MAX_NAME];
    if (argc != 3) {
        return 2;
    }
    const char *threads = getenv("THREADS");
    sx_status status =
        sx_servable_load(argv[1],
                         &(sx_servable_options){.struct_size = sizeof(sx_servable_options),
                                                .tags = argv[2],
                                                .on_profile = write_kernel,
                                                .threads = threads != NULL ? atoi(threads) : 0},
                         &model);
    if (status != SX_OK) {
        write_error(status);
        return 1;
    }
    printf("ok 0\n");
    fflush(stdout);
    while (fgets(request, sizeof(request), stdin) != NULL) {
        sx_arena arena;
        sx_arena_init(&arena, 0);
        request[strcspn(request, "\n")] = '\0';
        status = answer(model, request, &arena);
        if (status != SX_OK) {
            write_error(status);
        }
        fflush(stdout);
        sx_arena_deinit(&arena);
    }
    sx_servable_release(model);
    return 0;
}
