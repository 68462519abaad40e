#include "npy_files.h"

#include <string.h>

#include "base/memory.h"
#include "io/npy.h"

static sx_status read_one(sx_invocation *inv, const char *word, sx_npy_file *out)
{
    size_t size = strcspn(word, "=");
    sx_npy_file file = {.path = word};
    if (word[size] == '=') {
        file.name = sx_arena_strndup(&inv->arena, word, size);
        file.path = word + size + 1;
    }
    if (file.path[0] == '\0') {
        return sx_error(SX_INVALID_ARGUMENT, "\"%s\": expected [NAME=]X.npy", word);
    }
    SX_TRY(sx_npy_read(file.path, 0, &file.tensor));
    *out = file;
    return SX_OK;
}

sx_status sx_npy_files_read(sx_invocation *inv, const sx_words *words, sx_npy_file **out_files)
{
    sx_npy_file *files = sx_arena_array(&inv->arena, words->count + 1, sx_npy_file);
    if (files == NULL) {
        return sx_no_memory("reading .npy files");
    }
    for (int i = 0; i < words->count; i++) {
        sx_status status = read_one(inv, words->items[i], &files[i]);
        if (status != SX_OK) {
            sx_npy_files_free(files, i);
            return status;
        }
    }
    *out_files = files;
    return SX_OK;
}

void sx_npy_files_free(sx_npy_file *files, int count)
{
    for (int i = 0; i < count; i++) {
        sx_free(files[i].tensor.data);
    }
}
