/* tf.train.SequenceExample: what parses hands out as many features as it counted, and of each as
 * many values. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "base/memory.h"
#include "proto/sequence_example.h"

static void read_values(const sx_example_feature *feature)
{
    const size_t n = feature->count;
    void *values = sx_alloc(n + 1, sizeof(sx_bytes));
    assert(values != NULL);
    const size_t got = sx_feature_bytes(feature, values, n + 1) +
                       sx_feature_floats(feature, values, n + 1) +
                       sx_feature_ints(feature, values, n + 1);
    assert(got == n);
    sx_free(values);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sx_sequence_example example;
    sx_sequence_example_init(&example);
    sx_status_free(sx_sequence_example_parse(&example, (sx_bytes){data, size}));
    for (size_t i = 0; i < example.context.count; i++) {
        read_values(&example.context.features[i]);
    }
    for (size_t i = 0; i < example.count; i++) {
        sx_example_feature feature;
        sx_bytes rest = example.lists[i].wire;
        size_t n = 0;
        for (; sx_feature_list_next(&rest, &feature); n++) {
            read_values(&feature);
        }
        assert(n == example.lists[i].count);
    }
    sx_sequence_example_deinit(&example);
    return 0;
}
