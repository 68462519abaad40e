/* Folders of class folders, and archives of them: encoded images with the folder as label. */
#include <string.h>

#include "base/memory.h"
#include "data/classed.h"
#include "data/fileset.h"
#include "data/image_check.h"
#include "data/sources.h"

struct classed_source {
    sx_source head;
    sx_source_def def; /* `stable` as the file set is; is_corrupt unless skip_corrupt */
    sx_fileset *files;
    sx_class_list list;
};

static sx_status classed_read(sx_source *source, int64_t record, sx_scratch *scratch,
                              sx_tensor *out)
{
    const struct classed_source *self = (const struct classed_source *)source;
    const sx_class_item *item = &self->list.items[record];
    sx_bytes *image = sx_scratch_alloc(scratch, sizeof(*image));
    int64_t *label = sx_scratch_alloc(scratch, sizeof(*label));
    if (image == NULL || label == NULL) {
        return sx_error(SX_RESOURCE_EXHAUSTED, "out of scratch memory");
    }
    SX_TRY(sx_fileset_read(self->files, item->index, scratch, image));
    *label = item->label;
    out[0].data = image;
    out[1].data = label;
    return SX_OK;
}

static void classed_name(const sx_source *source, int64_t record, sx_buf *out)
{
    const struct classed_source *self = (const struct classed_source *)source;
    sx_buf_printf(out, "%s/%s", sx_fileset_path(self->files), self->list.items[record].name);
}

static bool classed_file(const sx_source *source, int64_t record, sx_buf *out)
{
    classed_name(source, record, out);
    return true;
}

static bool classed_is_corrupt(const sx_source *source, int64_t record)
{
    const struct classed_source *self = (const struct classed_source *)source;
    sx_scratch scratch;
    sx_image pixels = {.pixels = NULL};
    sx_image_info info;
    int64_t bytes;
    sx_scratch_init(&scratch);
    sx_status status = sx_image_check(self->files, &self->list.items[record], true, &scratch,
                                      &pixels, &info, &bytes);
    bool corrupt = status != SX_OK && sx_image_is_faulty(status);
    sx_status_free(status);
    sx_scratch_deinit(&scratch);
    sx_image_deinit(&pixels);
    return corrupt;
}

static void classed_destroy(sx_source *source)
{
    struct classed_source *self = (struct classed_source *)source;
    sx_class_list_deinit(&self->list);
    sx_fileset_close(self->files);
    sx_free(self);
}

static const sx_source_def classed_def = {
    .kind = "classed",
    .read = classed_read,
    .name_record = classed_name,
    .file = classed_file,
    .destroy = classed_destroy,
};

sx_status sx_source_classed(const char *path, const sx_data_options *options, sx_buf *text,
                            sx_dataset **out_dataset)
{
    struct classed_source *self = sx_alloc(1, sizeof(*self));
    if (self == NULL) {
        return sx_no_memory("reading %s", path);
    }
    sx_status status =
        sx_fileset_open(path, options->memory_budget, options->max_unpacked_bytes, &self->files);
    if (status == SX_OK) {
        status = sx_class_list_init(sx_fileset_names(self->files), sx_fileset_count(self->files),
                                    options->recursive, path, &self->list);
    }
    sx_image_faults faults;
    sx_image_faults_init(&faults);
    if (status == SX_OK && options->skip_corrupt) {
        status = sx_class_list_drop_faulty(&self->list, self->files, &faults);
    }
    if (status != SX_OK) {
        sx_image_faults_deinit(&faults);
        classed_destroy(&self->head);
        return status;
    }
    self->def = classed_def;
    self->def.is_corrupt = options->skip_corrupt ? NULL : classed_is_corrupt;
    self->def.stable = sx_fileset_stable(self->files);
    self->head = (sx_source){
        .def = &self->def,
        .schema = {2, {{"image", sx_scalar_type(SX_STRING)}, {"label", sx_scalar_type(SX_I64)}}},
        .count = self->list.count,
        .class_names = self->list.classes,
        .class_count = self->list.class_count,
    };
    sx_class_list_describe(&self->list, sx_fileset_path(self->files), self->list.count, &faults,
                           text);
    sx_image_faults_deinit(&faults);
    return sx_dataset_from_source(&self->head, out_dataset);
}
