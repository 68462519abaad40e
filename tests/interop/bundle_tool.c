/* What test_bundle.py runs:
 *   bundle_tool write PREFIX LAYERS   writes known tensors under TF1 names with an object graph
 *   bundle_tool dump PREFIX           prints every tensor: key, type, bytes (strings: one by one)
 * in hex bundle_tool reindex IN OUT        reads a table and writes its entries to another */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "io/commit.h"
#include "io/file.h"
#include "checkpoint/bundle.h"
#include "checkpoint/object_graph.h"
#include "checkpoint/sstable.h"

static sx_status write_known(sx_bundle_writer *w)
{
    float kernel[6] = {0.5f, -1, 2, 3.25f, 1e-20f, 7};
    int64_t step = 123456789012;
    uint16_t bf16[3] = {0x3f80, 0xc000, 0x0001};
    bool flags[2] = {true, false};
    sx_bytes words[3] = {{"ab", 2}, {"", 0}, {"c\0d", 3}};
    SX_TRY(sx_bundle_add(w, "dense/kernel", &(sx_tensor){sx_type_of(SX_F32, 2, 3), kernel}));
    SX_TRY(
        sx_bundle_add(w, "dense/kernel/Momentum", &(sx_tensor){sx_type_of(SX_F32, 2, 3), kernel}));
    SX_TRY(sx_bundle_add(w, "global_step", &(sx_tensor){sx_scalar_type(SX_I64), &step}));
    SX_TRY(sx_bundle_add(w, "mixed/half", &(sx_tensor){sx_type_of(SX_BF16, 3), bf16}));
    SX_TRY(sx_bundle_add(w, "mixed/flags", &(sx_tensor){sx_type_of(SX_BOOL, 2), flags}));
    SX_TRY(sx_bundle_add(w, "mixed/empty", &(sx_tensor){sx_type_of(SX_F32, 0, 4), kernel}));
    return sx_bundle_add(w, "_sextant/words", &(sx_tensor){sx_type_of(SX_STRING, 3), words});
}

static sx_status write_layers(sx_bundle_writer *w, int n, char (*names)[32])
{
    for (int i = 0; i < n; i++) {
        float value[2] = {(float)i, (float)-i};
        snprintf(names[i], sizeof(names[i]), "layer_%05d/bias", i);
        SX_TRY(sx_bundle_add(w, names[i], &(sx_tensor){sx_type_of(SX_F32, 2), value}));
    }
    return SX_OK;
}

static sx_status write_all(const char *prefix, int layers)
{
    static const char *const known[] = {"dense/kernel", "dense/kernel/Momentum", "global_step",
                                        "mixed/half", "mixed/flags"};
    size_t n = sizeof(known) / sizeof(known[0]);
    char(*names)[32] = sx_alloc((size_t)layers + 1, sizeof(*names));
    const char **all = sx_alloc((size_t)layers + n, sizeof(*all));
    sx_bundle_writer *w = NULL;
    sx_status status = sx_bundle_writer_create(prefix, &w);
    status = status == SX_OK ? write_known(w) : status;
    status = status == SX_OK ? write_layers(w, layers, names) : status;
    memcpy(all, known, sizeof(known));
    for (int i = 0; i < layers; i++) {
        all[n + (size_t)i] = names[i];
    }
    status = status == SX_OK ? sx_object_graph_add(w, all, n + (size_t)layers, 3) : status;
    status = status == SX_OK ? sx_bundle_writer_finish(w) : status;
    sx_bundle_writer_destroy(w);
    sx_free(all);
    sx_free(names);
    return status;
}

static void print_hex(const void *data, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        printf("%02x", ((const uint8_t *)data)[i]);
    }
}

static sx_status dump_entry(const sx_bundle *bundle, const sx_bundle_entry *e)
{
    char text[SX_TYPE_TEXT];
    printf("%s %s ", e->key, sx_type_format(&e->type, text, sizeof(text)));
    if (e->type.dtype == SX_STRING) {
        sx_arena arena;
        sx_arena_init(&arena, 0);
        sx_tensor tensor;
        sx_status status = sx_bundle_read_strings(bundle, e->key, &arena, &tensor);
        for (int64_t i = 0; status == SX_OK && i < sx_type_elems(&tensor.type); i++) {
            const sx_bytes *s = (const sx_bytes *)tensor.data + i;
            printf("%s", i > 0 ? "," : "");
            print_hex(s->data, s->size);
        }
        printf("\n");
        sx_arena_deinit(&arena);
        return status;
    }
    size_t size = (size_t)sx_type_bytes(&e->type);
    void *data = sx_alloc(size + 1, 1);
    sx_status status = sx_bundle_read(bundle, e->key, &e->type, data);
    print_hex(data, status == SX_OK ? size : 0);
    printf("\n");
    sx_free(data);
    return status;
}

static sx_status dump(const char *prefix)
{
    sx_bundle *bundle = NULL;
    SX_TRY(sx_bundle_open(prefix, &bundle));
    sx_status status = sx_bundle_verify(bundle);
    for (size_t i = 0; status == SX_OK && i < sx_bundle_count(bundle); i++) {
        status = dump_entry(bundle, sx_bundle_at(bundle, i));
    }
    sx_bundle_close(bundle);
    return status;
}

static sx_status copy_entry(void *user, sx_bytes key, sx_bytes value)
{
    return sx_sstable_add(user, key, value);
}

static sx_status reindex(const char *in, const char *out)
{
    char *data = NULL;
    size_t size = 0;
    SX_TRY(sx_file_read(in, (size_t)1 << 30, &data, &size));
    sx_sstable_writer table;
    sx_sstable_writer_init(&table, 0);
    sx_bytes file = {0};
    sx_status status = sx_sstable_scan((sx_bytes){data, size}, 0, copy_entry, &table);
    status = status == SX_OK ? sx_sstable_finish(&table, &file) : status;
    status = status == SX_OK ? sx_commit_bytes(out, file.data, file.size) : status;
    sx_sstable_writer_deinit(&table);
    sx_free(data);
    return status;
}

int main(int argc, char **argv)
{
    sx_status status = SX_OK;
    if (argc == 4 && strcmp(argv[1], "write") == 0) {
        status = write_all(argv[2], atoi(argv[3]));
    } else if (argc == 3 && strcmp(argv[1], "dump") == 0) {
        status = dump(argv[2]);
    } else if (argc == 4 && strcmp(argv[1], "reindex") == 0) {
        status = reindex(argv[2], argv[3]);
    } else {
        fprintf(stderr, "usage: bundle_tool write PREFIX LAYERS | dump PREFIX | reindex IN OUT\n");
        return 2;
    }
    if (status != SX_OK) {
        fprintf(stderr, "%s\n", sx_status_message(status));
        sx_status_free(status);
        return 1;
    }
    return 0;
}
