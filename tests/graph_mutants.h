/* Mutants of the texts in fuzz/corpus/graph_text: libraries of functions to start from, and the
 * random words that decide what becomes of them. */
#ifndef SX_TESTS_GRAPH_MUTANTS_H
#define SX_TESTS_GRAPH_MUTANTS_H

#include "harness.h"
#include "mutate.h"

#include "base/memory.h"
#include "io/file.h"

enum { SX_GRAPH_SEEDS = 8, SX_GRAPH_MUTANT_BYTES = 64 << 10 };

typedef struct sx_graph_seed {
    char *text;
    size_t size; /* at most half of SX_GRAPH_MUTANT_BYTES */
} sx_graph_seed;

static inline void sx_graph_seeds_read(sx_graph_seed seeds[SX_GRAPH_SEEDS])
{
    static const char *const names[SX_GRAPH_SEEDS] = {"library",  "regions",       "flatten",
                                                      "compress", "choose",        "counter",
                                                      "loops",    "branch_assigns"};
    const char *source = getenv("SEXTANT_SRC");
    for (int i = 0; i < SX_GRAPH_SEEDS; i++) {
        char path[1024];
        snprintf(path, sizeof(path), "%s/fuzz/corpus/graph_text/%s", source != NULL ? source : ".",
                 names[i]);
        assert_ok(sx_file_read(path, SX_GRAPH_MUTANT_BYTES / 2, &seeds[i].text, &seeds[i].size));
    }
}

static inline void sx_graph_seeds_free(sx_graph_seed seeds[SX_GRAPH_SEEDS])
{
    for (int i = 0; i < SX_GRAPH_SEEDS; i++) {
        sx_free(seeds[i].text);
    }
}

#endif
