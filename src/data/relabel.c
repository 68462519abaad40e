/* See relabel.h. */
#include "data/relabel.h"

#include <string.h>

#include "base/arena.h"
#include "base/map.h"
#include "base/memory.h"
#include "data/dataset.h"

struct relabel {
    sx_arena arena;
    sx_schema schema;
    int label;          /* the component */
    int64_t *new_label; /* [n] */
    int n;
    char **classes; /* [count] */
};

static sx_status run(const sx_map_call *call, void *user)
{
    const struct relabel *self = user;
    for (int i = 0; i < self->schema.count; i++) {
        memcpy(call->out[i].data, call->in[i].data,
               sx_data_bytes(&self->schema.components[i].type));
    }
    /* A label that is no class is an error of the feed, as without this map. */
    if (self->schema.components[self->label].type.dtype == SX_I64) {
        int64_t *label = call->out[self->label].data;
        *label = *label >= 0 && *label < self->n ? self->new_label[*label] : *label;
    } else {
        int32_t *label = call->out[self->label].data;
        *label = *label >= 0 && *label < self->n ? (int32_t)self->new_label[*label] : *label;
    }
    return SX_OK;
}

static void release(void *user)
{
    struct relabel *self = user;
    sx_arena_deinit(&self->arena);
    sx_free(self);
}

static int find_name(const char *const *names, int n, const char *name)
{
    int i = 0;
    while (i < n && strcmp(names[i], name) != 0) {
        i++;
    }
    return i < n ? i : -1;
}

sx_status sx_dataset_relabel(sx_dataset **dataset, const char *const *classes, int count)
{
    int n = 0;
    bool same = true;
    const char *const *names = sx_dataset_class_names(*dataset, &n);
    for (int i = 0; i < n; i++) {
        int found = find_name(classes, count, names[i]);
        if (found < 0) {
            return SX_OK;
        }
        same = same && found == i;
    }
    int label = sx_dataset_find(*dataset, "label");
    label = label >= 0 ? label : sx_dataset_find(*dataset, "labels");
    if (same || label < 0) {
        return SX_OK;
    }
    const sx_type *type = &sx_dataset_schema(*dataset)->components[label].type;
    if (type->rank != 0 || (type->dtype != SX_I64 && type->dtype != SX_I32)) {
        return SX_OK;
    }
    struct relabel *self = sx_alloc(1, sizeof(*self));
    if (self == NULL) {
        return sx_no_memory("for the classes");
    }
    *self = (struct relabel){.schema = *sx_dataset_schema(*dataset), .label = label, .n = n};
    sx_arena_init(&self->arena, 0);
    self->new_label = sx_arena_array(&self->arena, n, int64_t);
    self->classes = sx_arena_array(&self->arena, count, char *);
    bool made = self->new_label != NULL && self->classes != NULL;
    for (int i = 0; i < n && made; i++) {
        self->new_label[i] = find_name(classes, count, names[i]);
    }
    for (int i = 0; i < count && made; i++) {
        self->classes[i] = sx_arena_strdup(&self->arena, classes[i]);
        made = self->classes[i] != NULL;
    }
    sx_status status =
        made
            ? sx_dataset_map(dataset, .name = "relabel", .fn = run, .user = self,
                             .release = release, .views = true,
                             .fingerprint = sx_hash64(self->new_label, (size_t)n * sizeof(int64_t)))
            : sx_no_memory("for the classes");
    if (status != SX_OK) {
        release(self);
        return status;
    }
    (*dataset)->class_names = self->classes;
    (*dataset)->class_count = count;
    return SX_OK;
}
