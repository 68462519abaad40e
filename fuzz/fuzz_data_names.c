/* What a data file is by its first bytes, and which of many names (one a line) are examples. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/memory.h"
#include "data/classed.h"
#include "data/sniff.h"

enum { MAX_NAMES = 256 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sx_sniff_bytes((sx_bytes){data, size});
    char *text = sx_alloc(size + 1, 1);
    const char *names[MAX_NAMES];
    size_t count = 0;
    memcpy(text, data, size);
    for (char *name = strtok(text, "\n"); name != NULL && count < MAX_NAMES;
         name = strtok(NULL, "\n")) {
        names[count++] = name;
    }
    sx_class_list list;
    sx_status status = sx_class_list_init(names, count, size % 2 == 1, "fuzz", &list);
    if (status == SX_OK) {
        sx_class_list_deinit(&list);
    }
    sx_status_free(status);
    sx_free(text);
    return 0;
}
