/* See tpu_chips.h. A chip is a PCI device of vendor Google with one of these ids (network cards
 * have the same vendor). Source: the ids in JAX's hardware_utils. */
#include "distribute/tpu_chips.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/memory.h"
#include "io/path.h"

enum { GOOGLE = 0x1ae0 };

static const struct {
    long device;
    const char *kind;
} rows[] = {
    {0x0027, "TPU v2 or v3"}, {0x0056, "TPU"},     {0x005e, "TPU v4"}, {0x0062, "TPU v5p"},
    {0x0063, "TPU v5e"},      {0x006f, "TPU v6e"}, {0x0076, "TPU 7x"},
};

/* The number in root/name/file, such as "0x1ae0"; −1 on failure. */
static long read_id(const char *root, const char *name, const char *file)
{
    char *path = NULL, text[32] = "";
    sx_status status = sx_path_format(&path, "%s/%s/%s", root, name, file);
    FILE *f = status == SX_OK ? fopen(path, "re") : NULL;
    bool read = f != NULL && fgets(text, sizeof(text), f) != NULL;
    if (f != NULL) {
        fclose(f);
    }
    sx_free(path);
    sx_status_free(status);
    return read ? strtol(text, NULL, 16) : -1;
}

static const char *kind_of(const char *root, const char *name)
{
    if (read_id(root, name, "vendor") != GOOGLE) {
        return NULL;
    }
    long device = read_id(root, name, "device");
    for (size_t i = 0; i < SX_COUNT(rows); i++) {
        if (rows[i].device == device) {
            return rows[i].kind;
        }
    }
    return NULL;
}

sx_status sx_tpu_chips(const char *pci_root, int *out_chips, const char **out_kind)
{
    sx_paths names = {0};
    int chips = 0;
    const char *found = NULL;
    if (sx_path_is_dir(pci_root)) {
        SX_TRY(sx_dir_list(pci_root, &names));
    }
    for (size_t i = 0; i < names.count; i++) {
        const char *kind = kind_of(pci_root, names.items[i]);
        chips += kind != NULL;
        found = kind != NULL ? kind : found;
    }
    sx_paths_deinit(&names);
    *out_chips = chips;
    *out_kind = found;
    return SX_OK;
}

void sx_tpu_spare_the_cloud(const char *pci_root)
{
    int chips = 0;
    const char *kind = NULL;
    sx_status status = sx_tpu_chips(pci_root, &chips, &kind);
    if (status == SX_OK && chips == 0) {
        setenv("TPU_SKIP_MDS_QUERY", "1", 0);
    }
    sx_status_free(status);
}
