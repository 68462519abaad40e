/* 100,000 mutants of texts of libraries and graphs: each is refused, or specialized for small
 * arguments, or refused then; none takes a second. */
#include "harness.h"

#include "base/clock.h"
#include "base/threefry.h"
#include "graph/specialize.h"
#include "io/file.h"

enum { MUTANTS = 100000, SEEDS = 8, MOST_ARGS = 8 };

static const char *const names[SEEDS] = {"library", "regions", "flatten", "compress",
                                         "choose",  "counter", "loops",   "branch_assigns"};

typedef struct words {
    sx_u32x2 key;
    uint32_t next;
} words;

static uint32_t word(words *w)
{
    return sx_threefry2x32(w->key, (sx_u32x2){w->next++, 0}).a;
}

/* One to four slips: a bit, a byte of another place, a piece left out or written twice. */
static size_t mutate(words *w, char *text, size_t size, size_t capacity)
{
    for (uint32_t slips = 1 + word(w) % 4; slips > 0 && size > 1; slips--) {
        const size_t at = word(w) % size, from = word(w) % size;
        size_t n = 1 + word(w) % 40;
        switch (word(w) % 4) {
        case 0:
            text[at] = (char)(text[at] ^ 1 << word(w) % 8);
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
    sx_status status = sx_specialize(library, body, &(sx_binding){args, body->n_args, 0},
                                     &(sx_specialize_limits){.nodes = 10000}, &program);
    const bool made = status == SX_OK;
    sx_status_free(status);
    sx_specialized_destroy(program);
    return made;
}

static void test_graph_text_mutants__none_crashes_or_hangs(void **state)
{
    (void)state;
    static char text[64 << 10];
    char *seeds[SEEDS], path[1024];
    size_t sizes[SEEDS];
    int n_seeds = 0, parsed = 0, specialized = 0;
    const char *source = getenv("SEXTANT_SRC");
    for (; n_seeds < SEEDS; n_seeds++) {
        snprintf(path, sizeof(path), "%s/fuzz/corpus/graph_text/%s", source != NULL ? source : ".",
                 names[n_seeds]);
        assert_ok(sx_file_read_stream(path, sizeof(text) / 2, &seeds[n_seeds], &sizes[n_seeds]));
    }
    words w = {.key = {7, 11}};
    for (int i = 0; i < MUTANTS; i++) {
        const int seed = i % n_seeds;
        sx_library *library = NULL;
        sx_graph *g = NULL;
        memcpy(text, seeds[seed], sizes[seed]);
        const size_t size = mutate(&w, text, sizes[seed], sizeof(text));
        const int64_t begin = sx_now_ns();
        sx_status status = sx_library_parse(text, size, &library);
        parsed += status == SX_OK;
        for (int f = 0; status == SX_OK && f < library->n_functions; f++) {
            specialized += specialize(library, library->functions[f].body);
        }
        sx_status_free(status);
        sx_library_destroy(library);
        sx_status_free(sx_graph_parse(text, size, &g));
        sx_graph_destroy(g);
        assert_true(sx_now_ns() - begin < 10 * (int64_t)1000000000); /* under sanitizers */
    }
    print_message("%d of %d mutants are libraries; %d functions of them specialize\n", parsed,
                  MUTANTS, specialized);
    assert_true(parsed > MUTANTS / 100 && specialized > MUTANTS / 100);
    for (int i = 0; i < n_seeds; i++) {
        sx_free(seeds[i]);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_graph_text_mutants__none_crashes_or_hangs),
};
SX_TEST_MAIN(tests)
