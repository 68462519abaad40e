/* mutants_tool FIRST COUNT DIR TAGS SCRATCH: loads mutants FIRST ... FIRST+COUNT-1 of the
 * SavedModel in DIR and runs their signatures for small inputs. A mutant is the model with one of
 * its files (the graph most often, else the checkpoint or an asset) damaged; SCRATCH is where it is
 * put.
 *
 * The whole of one may take a second of processor time, and the process 4x the size of the model
 * and 64 MiB of memory more than it took when it began; under a sanitizer 20 s, and any memory. A
 * mutant that takes a minute ends the program by SIGALRM. The last line counts what became of them.
 */
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "mutate.h"
#include "peak.h"

#include "base/arena.h"
#include "base/clock.h"
#include "io/file.h"
#include "savedmodel/predictor.h"

enum {
    MAX_FILES = 16,
    MAX_TENSORS = 16,
    MOST_RUN = 4, /* signatures of a mutant that are run */
    ARG_BYTES = 1 << 16,
    MODEL_BYTES = 32 << 20,
    RUN_BYTES = 32 << 20,
};

typedef struct model_file {
    char path[512]; /* under the model's directory */
    char *data;
    size_t size;
} model_file;

static model_file files[MAX_FILES];
static int n_files;
static int64_t model_bytes;
static const char *model_dir;
static sx_status read_failed;

static int read_file(const char *path, const struct stat *s, int type, struct FTW *ftw)
{
    (void)ftw;
    if (type != FTW_F || n_files == MAX_FILES || s->st_size == 0) {
        return 0;
    }
    model_file *f = &files[n_files++];
    snprintf(f->path, sizeof(f->path), "%s", path + strlen(model_dir) + 1);
    read_failed = sx_file_read(path, MODEL_BYTES, &f->data, &f->size);
    model_bytes += (int64_t)f->size;
    return read_failed != SX_OK;
}

static int by_path(const void *a, const void *b)
{
    return strcmp(((const model_file *)a)->path, ((const model_file *)b)->path);
}

static int write_file(const char *scratch, const model_file *f, const char *data, size_t size)
{
    char *path;
    if (asprintf(&path, "%s/%s", scratch, f->path) < 0) {
        return 1;
    }
    FILE *out = fopen(path, "wb");
    free(path);
    return out == NULL || fwrite(data, 1, size, out) != size || fclose(out) != 0;
}

/* Whether the signature answers for inputs whose unknown dimensions are `unknown`. */
static bool run(sx_predictor *p, const sx_signature *signature, int64_t unknown)
{
    static union {
        char bytes[ARG_BYTES];
        int64_t align;
    } numbers;
    static sx_bytes strings[ARG_BYTES / 16];
    sx_tensor in[MAX_TENSORS], out[MAX_TENSORS];
    if (signature->n_inputs > MAX_TENSORS || signature->n_outputs > MAX_TENSORS) {
        return false;
    }
    for (size_t i = 0; i < SX_COUNT(strings); i++) {
        strings[i] = (sx_bytes){"3 text", 6};
    }
    for (size_t i = 0; i < signature->n_inputs; i++) {
        sx_type t = signature->inputs[i].type;
        t.rank = signature->inputs[i].unknown_rank ? 1 : t.rank;
        for (int d = 0; d < t.rank; d++) {
            t.dims[d] = t.dims[d] < 0 ? unknown : t.dims[d];
        }
        const int64_t n = sx_type_elems(&t);
        if (n < 0 || n > ARG_BYTES / 16) {
            return false;
        }
        in[i] = (sx_tensor){t, t.dtype == SX_STRING ? (void *)strings : (void *)&numbers};
    }
    sx_arena arena;
    sx_cancel cancel;
    sx_arena_init(&arena, RUN_BYTES);
    sx_cancel_init(&cancel, sx_now_ns() + 500000000);
    sx_status status = sx_predictor_run(p, signature, in, &cancel, &arena, out);
    const bool ran = status == SX_OK;
    sx_status_free(status);
    sx_arena_deinit(&arena);
    return ran;
}

static int64_t cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

int main(int argc, char **argv)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    const bool slow = true;
#else
    const bool slow = false;
#endif
    if (argc != 6) {
        return 2;
    }
    const int first = atoi(argv[1]), count = atoi(argv[2]);
    const char *tags = argv[4], *scratch = argv[5];
    char folder[1024];
    model_dir = argv[3];
    if (nftw(model_dir, read_file, 8, FTW_PHYS) != 0 || n_files == 0) {
        fprintf(stderr, "%s: %s\n", model_dir,
                read_failed == SX_OK ? "no files" : sx_status_message(read_failed));
        return 2;
    }
    qsort(files, (size_t)n_files, sizeof(files[0]), by_path); /* as found, the order may be any */
    const char *const folders[] = {"variables", "assets"};
    for (int i = 0; i < 2; i++) {
        snprintf(folder, sizeof(folder), "%s/%s", scratch, folders[i]);
        (void)mkdir(folder, 0777);
    }
    int graph = 0, wrong = 0, loaded = 0, ran = 0;
    size_t largest = 0;
    for (int i = 0; i < n_files; i++) {
        graph = strcmp(files[i].path, "saved_model.pb") == 0 ? i : graph;
        largest = SX_MAX(largest, files[i].size);
        if (write_file(scratch, &files[i], files[i].data, files[i].size) != 0) {
            perror(files[i].path);
            return 2;
        }
    }
    char *bytes = malloc(largest + 1);
    const int64_t before = sx_peak_bytes();
    int64_t slowest = 0;
    for (int i = first; i < first + count; i++) {
        sx_words w = {.key = {17, (uint32_t)i}};
        const model_file *f =
            &files[sx_word(&w) % 4 != 0 ? graph : (int)(sx_word(&w) % (uint32_t)n_files)];
        memcpy(bytes, f->data, f->size);
        const size_t size = i == 0 ? f->size : sx_mutate(&w, bytes, f->size); /* 0 is the model */
        if (write_file(scratch, f, bytes, size) != 0) {
            perror(f->path);
            return 2;
        }
        alarm(60);
        const int64_t began = cpu_ns();
        sx_predictor *p = NULL;
        sx_status status = sx_predictor_load(
            scratch,
            &(sx_predictor_options){.tags = tags,
                                    .on.device = "cpu",
                                    .threads = 1,
                                    .memory_limit_bytes = RUN_BYTES + 2 * model_bytes},
            &p);
        if (status == SX_OK) {
            size_t n;
            const sx_signature *signatures = sx_saved_model_signatures(sx_predictor_model(p), &n);
            bool any = false;
            for (size_t s = 0; s < n && s < MOST_RUN; s++) {
                const bool one = run(p, &signatures[s], 1);
                any = run(p, &signatures[s], 3) || one || any;
            }
            loaded++;
            ran += any;
        } else if (i == 0) {
            fprintf(stderr, "the model itself: %s\n", sx_status_message(status));
            wrong++;
        }
        sx_status_free(status);
        sx_predictor_unload(p);
        const int64_t took = cpu_ns() - began;
        if (took > (slow ? 20 : 1) * (int64_t)1000000000) {
            fprintf(stderr, "mutant %d, of %s, took %.1f s\n", i, f->path, (double)took / 1e9);
            wrong++;
        }
        slowest = SX_MAX(slowest, took);
        if (write_file(scratch, f, f->data, f->size) != 0) {
            perror(f->path);
            return 2;
        }
    }
    const int64_t grown = sx_peak_bytes() - before;
    if (!slow && grown > 4 * model_bytes + (64 << 20)) {
        fprintf(stderr, "memory grew by %lld MiB, the model has %lld KiB\n",
                (long long)(grown >> 20), (long long)(model_bytes >> 10));
        wrong++;
    }
    printf("%d mutants: %d load, %d run; the slowest took %lld ms, memory grew by %lld MiB\n",
           count, loaded, ran, (long long)(slowest / 1000000), (long long)(grown >> 20));
    free(bytes);
    return wrong > 0;
}
