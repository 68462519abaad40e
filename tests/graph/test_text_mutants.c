/* 100,000 mutants of texts of libraries and graphs: each is refused, or specialized for small
 * arguments, or refused then; none takes a second of processor time. */
#include <time.h>

#include "graph_mutants.h"

#include "base/checked.h"
#include "graph/specialize.h"

enum { MUTANTS = 100000, MOST_ARGS = 8 };

/* One to four slips: a bit, a byte of another place, a piece left out or written twice. */
static size_t mutate(sx_words *w, char *text, size_t size, size_t capacity)
{
    for (uint32_t slips = 1 + sx_word(w) % 4; slips > 0 && size > 1; slips--) {
        const size_t at = sx_word(w) % size, from = sx_word(w) % size;
        size_t n = 1 + sx_word(w) % 40;
        switch (sx_word(w) % 4) {
        case 0:
            text[at] = (char)(text[at] ^ 1 << sx_word(w) % 8);
            break;
        case 1:
            text[at] = text[from];
            break;
        case 2:
            n = n < size - at ? n : size - at;
            memmove(text + at, text + at + n, size - at - n);
            size -= n;
            break;
        default:
            n = n < size - from ? n : size - from;
            if (size + n <= capacity) {
                char piece[40];
                memcpy(piece, text + from, n);
                memmove(text + at + n, text + at, size - at);
                memcpy(text + at, piece, n);
                size += n;
            }
            break;
        }
    }
    return size;
}

static bool specialize(const sx_library *library, const sx_graph *body)
{
    sx_tensor args[MOST_ARGS] = {{.data = NULL}};
    sx_specialized *program = NULL;
    if (body->n_args > MOST_ARGS) {
        return false;
    }
    for (int i = 0; i < body->n_args; i++) {
        sx_type *t = &args[i].type;
        *t = *sx_graph_type(body, body->args[i].value);
        t->rank = t->rank == SX_UNKNOWN_RANK ? 1 : t->rank;
        for (int d = 0; d < t->rank; d++) {
            t->dims[d] = t->dims[d] < 0 && !sx_dim_is_batch(t->dims[d]) ? 2 : t->dims[d];
        }
        args[i].data = t->dtype == SX_RESOURCE ? (void *)"count" : NULL;
    }
    sx_status status =
        sx_specialize(library, body, &(sx_binding){.args = args, .n_args = body->n_args},
                      &(sx_specialize_limits){.nodes = 10000}, &program);
    const bool made = status == SX_OK;
    sx_status_free(status);
    sx_specialized_destroy(program);
    return made;
}

static int64_t cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void test_graph_text_mutants__none_crashes_or_hangs(void **state)
{
    (void)state;
    static char text[SX_GRAPH_MUTANT_BYTES];
    sx_graph_seed seeds[SX_GRAPH_SEEDS];
    int parsed = 0, specialized = 0;
    int64_t slowest = 0;
    sx_graph_seeds_read(seeds);
    sx_words w = {.key = {7, 11}};
    for (int i = 0; i < MUTANTS; i++) {
        const sx_graph_seed *seed = &seeds[i % SX_GRAPH_SEEDS];
        sx_library *library = NULL;
        sx_graph *g = NULL;
        memcpy(text, seed->text, seed->size);
        const size_t size = mutate(&w, text, seed->size, sizeof(text));
        const int64_t begin = cpu_ns();
        sx_status status = sx_library_parse(text, size, &library);
        parsed += status == SX_OK;
        for (int f = 0; status == SX_OK && f < library->n_functions; f++) {
            specialized += specialize(library, library->functions[f].body);
        }
        sx_status_free(status);
        sx_library_destroy(library);
        sx_status_free(sx_graph_parse(text, size, &g));
        sx_graph_destroy(g);
        slowest = SX_MAX(slowest, cpu_ns() - begin);
    }
    print_message("%d of %d mutants are libraries; %d functions of them specialize; the slowest "
                  "took %lld ms\n",
                  parsed, MUTANTS, specialized, (long long)(slowest / 1000000));
#if defined(__SANITIZE_THREAD__)
    assert_true(slowest < 10 * (int64_t)1000000000);
#else
    assert_true(slowest < 1000000000);
#endif
    assert_true(parsed > MUTANTS / 100 && specialized > MUTANTS / 100);
    sx_graph_seeds_free(seeds);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_graph_text_mutants__none_crashes_or_hangs),
};
SX_TEST_MAIN(tests)
