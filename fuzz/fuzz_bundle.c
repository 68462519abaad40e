/* The index of a tensor bundle: as a whole file, and, because checksums would keep a fuzzer out, as
 * entries that are put into a well-made table first. */
#include <stdlib.h>

#include "base/checked.h"
#include "checkpoint/bundle.h"
#include "checkpoint/sstable.h"

static void list(sx_bytes index)
{
    sx_bundle *bundle = NULL;
    sx_status status = sx_bundle_open_index(index, &bundle);
    if (status == SX_OK) {
        for (size_t i = 0; i < sx_bundle_count(bundle); i++) {
            const sx_bundle_entry *e = sx_bundle_at(bundle, i);
            if (sx_bundle_find(bundle, e->key) == NULL && e->key_bytes == 0) {
                abort();
            }
        }
        sx_bundle_close(bundle);
    }
    sx_status_free(status);
}

/* Splits the input into [size of key, key, size of value, value] and makes a table of what ascends.
 */
static void list_entries(const uint8_t *data, size_t size)
{
    sx_sstable_writer w;
    sx_sstable_writer_init(&w, 64);
    sx_bytes file;
    sx_status status =
        sx_sstable_add(&w, (sx_bytes){"", 0}, (sx_bytes){"\x08\x01\x1a\x02\x08\x01", 6});
    while (status == SX_OK && size > 2) {
        size_t key = SX_MIN(data[0], size - 2), value = SX_MIN(data[1 + key], size - 2 - key);
        sx_status_free(
            sx_sstable_add(&w, (sx_bytes){data + 1, key}, (sx_bytes){data + 2 + key, value}));
        data += 2 + key + value;
        size -= 2 + key + value;
    }
    status = status == SX_OK ? sx_sstable_finish(&w, &file) : status;
    if (status == SX_OK) {
        list(file);
    }
    sx_status_free(status);
    sx_sstable_writer_deinit(&w);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    list((sx_bytes){data, size});
    list_entries(data, size);
    return 0;
}
