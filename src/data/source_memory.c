/* The rows of tensors in memory: tf.data's from_tensor_slices. */
#include <string.h>

#include "base/memory.h"
#include "data/sources.h"

struct memory_source {
    sx_source head;
    char *data[SX_MAX_COMPONENTS];       /* of row 0 */
    size_t row_bytes[SX_MAX_COMPONENTS]; /* strings: of their sx_bytes */
    char *names;                         /* one block */
    const char *where; /* "x.npy", for record names; NULL = none; owned by the user */
    void (*release)(void *user);
    void *user;
};

static sx_status memory_read(sx_source *source, int64_t record, sx_scratch *scratch, sx_tensor *out)
{
    (void)scratch;
    struct memory_source *self = (struct memory_source *)source;
    for (int c = 0; c < source->schema.count; c++) {
        out[c].data = self->data[c] + (size_t)record * self->row_bytes[c];
    }
    return SX_OK;
}

static void memory_name(const sx_source *source, int64_t record, sx_buf *out)
{
    const struct memory_source *self = (const struct memory_source *)source;
    sx_buf_printf(out, "%s%srow %lld", self->where == NULL ? "" : self->where,
                  self->where == NULL ? "" : ": ", (long long)record);
}

static void memory_destroy(sx_source *source)
{
    struct memory_source *self = (struct memory_source *)source;
    if (self->release != NULL) {
        self->release(self->user);
    }
    sx_free(self->names);
    sx_free(self);
}

static const sx_source_def memory_def = {
    .kind = "memory",
    .stable = true,
    .read = memory_read,
    .name_record = memory_name,
    .destroy = memory_destroy,
};

static sx_status check_tensors(int count, const char *const *names, const sx_tensor *tensors)
{
    if (count < 1 || count > SX_MAX_COMPONENTS) {
        return sx_error(SX_INVALID_ARGUMENT, "tensors: %d components, expected 1 to %d", count,
                        (int)SX_MAX_COMPONENTS);
    }
    for (int i = 0; i < count; i++) {
        const sx_type *type = &tensors[i].type;
        char text[SX_TYPE_TEXT];
        if (type->rank < 1 || !sx_type_is_static(type) || type->dims[0] < 1) {
            return sx_error(
                SX_INVALID_ARGUMENT,
                "tensors: \"%s\" is %s; rows need a static shape of rank 1 or more with "
                "at least one row",
                names[i], sx_type_format(type, text, sizeof(text)));
        }
        if (type->dims[0] != tensors[0].type.dims[0]) {
            return sx_error(SX_INVALID_ARGUMENT, "tensors: \"%s\" has %lld rows, \"%s\" has %lld",
                            names[i], (long long)type->dims[0], names[0],
                            (long long)tensors[0].type.dims[0]);
        }
    }
    return SX_OK;
}

/* The type of one row. */
static sx_type row_type(const sx_type *type)
{
    return sx_type_make(type->dtype, type->rank - 1, type->dims + 1);
}

static sx_status copy_names(struct memory_source *self, int count, const char *const *names)
{
    size_t bytes = 0;
    for (int i = 0; i < count; i++) {
        bytes += strlen(names[i]) + 1;
    }
    char *end = self->names = sx_alloc(bytes, 1);
    if (end == NULL) {
        return sx_no_memory("for a dataset of tensors");
    }
    for (int i = 0; i < count; i++) {
        size_t length = strlen(names[i]) + 1;
        self->head.schema.components[i].name = memcpy(end, names[i], length);
        end += length;
    }
    return SX_OK;
}

sx_status sx_source_memory(const sx_memory_args *args, sx_dataset **out_dataset)
{
    int count = args->count;
    SX_TRY(check_tensors(count, args->names, args->tensors));
    struct memory_source *self = sx_alloc(1, sizeof(*self));
    if (self == NULL) {
        return sx_no_memory("for a dataset of tensors");
    }
    self->head.def = &memory_def;
    self->head.count = args->tensors[0].type.dims[0];
    self->head.schema.count = count;
    self->head.class_names = args->class_names;
    self->head.class_count = args->class_count;
    self->where = args->where;
    sx_status status = copy_names(self, count, args->names);
    if (status != SX_OK) {
        sx_free(self);
        return status;
    }
    for (int i = 0; i < count; i++) {
        sx_type type = row_type(&args->tensors[i].type);
        self->head.schema.components[i].type = type;
        self->data[i] = args->tensors[i].data;
        self->row_bytes[i] = sx_data_bytes(&type);
    }
    sx_dataset *dataset = NULL;
    SX_TRY(sx_dataset_from_source(&self->head, &dataset));
    self->release = args->release; /* from here on, the dataset owns the memory */
    self->user = args->user;
    *out_dataset = dataset;
    return SX_OK;
}

sx_status sx_dataset_from_tensors(int count, const char *const *names, const sx_tensor *tensors,
                                  void (*release)(void *user), void *user, sx_dataset **out_dataset)
{
    sx_memory_args args = {
        .count = count, .names = names, .tensors = tensors, .release = release, .user = user};
    return sx_source_memory(&args, out_dataset);
}
