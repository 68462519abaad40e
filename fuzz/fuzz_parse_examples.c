/* Records parsed by declared features: every value is in its dtype's range, a mask is a prefix, and
 * what it does not cover is padding. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include <sextant/data.h>

enum { T = 3 };

static const sx_feature_spec specs[] = {
    {.name = "f"},
    {.name = "i", SX_I32, {2}, .optional = true, .default_value = 9},
    {.name = "l", SX_I64, .optional = true},
    {.name = "b", SX_BOOL, .optional = true},
    {.name = "u", SX_U8, {2}, .max_length = T, .padding_value = 77, .truncate = true},
    {.name = "v", SX_F32, .key = "f", .max_length = T, .padding_value = -1},
    {.name = "s", SX_STRING, .max_length = T, .truncate = true},
    {.name = "one", SX_STRING, .key = "s", .optional = true, .default_text = "none"},
};

static void check(const struct sx_batch_data *b)
{
    const sx_bytes *texts = b->components[8].data, *one = b->components[10].data;
    size_t sum = 0;
    for (int i = 0; i < T + 1; i++) { /* all bytes can be read */
        const sx_bytes text = i < T ? texts[i] : *one;
        for (size_t k = 0; k < text.size; k++) {
            sum += ((const uint8_t *)text.data)[k];
        }
    }
    assert(sum <= 255 * (size_t)(1 << 30));
    assert(*(const uint8_t *)b->components[3].data <= 1);
    const uint8_t *u = b->components[4].data, *mask = b->components[5].data;
    for (int i = 0; i < T; i++) {
        assert(mask[i] <= (i == 0 ? 1 : mask[i - 1]));
        assert(mask[i] || (u[2 * i] == 77 && u[2 * i + 1] == 77));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *names[] = {"record"};
    sx_bytes record = {data, size};
    const sx_tensor tensor = {sx_type_of(SX_STRING, 1), &record};
    sx_dataset *dataset = NULL;
    sx_iterator *it = NULL;
    const struct sx_batch_data *batch;
    sx_status status = sx_dataset_from_tensors(1, names, &tensor, NULL, NULL, &dataset);
    if (status == SX_OK) {
        status = sx_dataset_parse_examples(&dataset, specs, (int)(sizeof(specs) / sizeof(*specs)));
    }
    if (status == SX_OK) {
        status = sx_iterator_create(dataset, &it, .workers = -1);
    }
    if (status == SX_OK) {
        status = sx_iterator_next(it, &batch);
    }
    if (status == SX_OK) {
        check(batch);
    }
    sx_status_free(status);
    sx_iterator_destroy(it);
    sx_dataset_release(dataset);
    return 0;
}
