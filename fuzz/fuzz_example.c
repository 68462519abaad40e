/* tf.train.Example: what parses hands out as many values as it counted, and writes and parses again
 * to the same features. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/memory.h"
#include "proto/example.h"

static void copy_feature(sx_example_writer *writer, const sx_example_feature *feature)
{
    size_t n = feature->count;
    char *name = sx_alloc(feature->name.size + 1, 1);
    void *values = sx_alloc(n + 1, sizeof(sx_bytes));
    assert(name != NULL && values != NULL);
    memcpy(name, feature->name.data, feature->name.size);
    size_t bytes = sx_feature_bytes(feature, values, n + 1);
    if (feature->kind == SX_FEATURE_BYTES) {
        sx_example_add_bytes(writer, name, values, bytes);
    }
    size_t floats = sx_feature_floats(feature, values, n + 1);
    if (feature->kind == SX_FEATURE_FLOATS) {
        sx_example_add_floats(writer, name, values, floats);
    }
    size_t ints = sx_feature_ints(feature, values, n + 1);
    if (feature->kind == SX_FEATURE_INTS) {
        sx_example_add_ints(writer, name, values, ints);
    }
    assert(bytes + floats + ints == n);
    sx_free(values);
    sx_free(name);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sx_example example, again;
    sx_example_writer writer;
    sx_buf out;
    sx_example_init(&example);
    sx_example_init(&again);
    sx_example_writer_init(&writer);
    sx_buf_init(&out, 0);
    sx_status status = sx_example_parse(&example, (sx_bytes){data, size});
    for (size_t i = 0; i < example.count; i++) {
        copy_feature(&writer, &example.features[i]);
    }
    if (status == SX_OK) {
        status = sx_example_finish(&writer, &out); /* names with a NUL may collide */
    }
    if (status == SX_OK) {
        sx_status parsed = sx_example_parse(&again, (sx_bytes){out.data, out.size});
        assert(parsed == SX_OK);
        for (size_t i = 0; i < again.count; i++) {
            sx_bytes value;
            int64_t number;
            sx_status_free(sx_example_get_bytes(&again, "image/encoded", &value));
            sx_status_free(sx_example_get_int(&again, "label", &number));
        }
    }
    sx_status_free(status);
    sx_buf_deinit(&out);
    sx_example_writer_deinit(&writer);
    sx_example_deinit(&again);
    sx_example_deinit(&example);
    return 0;
}
