/* Data as text, for `sextant data show`. */
#include <ctype.h>
#include <string.h>

#include "base/checked.h"
#include "base/memory.h"
#include "data/dataset.h"
#include "data/prepare.h"
#include "image/format.h"
#include "proto/example.h"

enum { SHOW_VALUES = 8, SHOW_TEXT = 60 };

/* Bytes as text if they are text, else their number. */
static void show_bytes(sx_bytes bytes, sx_buf *text)
{
    sx_image_info info;
    sx_status status = sx_image_probe(bytes, &info);
    if (status == SX_OK) {
        sx_buf_printf(text, "<%s %lldx%lld, %d channel%s%s, %zu bytes>",
                      sx_image_format_name(info.format), (long long)info.height,
                      (long long)info.width, info.channels, info.channels == 1 ? "" : "s",
                      info.progressive ? ", progressive" : "", bytes.size);
        return;
    }
    sx_status_free(status);
    const unsigned char *p = bytes.data;
    bool printable = bytes.size > 0 && bytes.size <= 4096;
    for (size_t i = 0; printable && i < bytes.size; i++) {
        printable = p[i] >= 0x80 || isprint(p[i]);
    }
    if (printable) {
        sx_buf_putc(text, '"');
        sx_buf_put_visible(text, p, SX_MIN(bytes.size, (size_t)SHOW_TEXT), "");
        sx_buf_puts(text, bytes.size > SHOW_TEXT ? "\"..." : "\"");
    } else {
        sx_buf_printf(text, "<%zu byte%s>", bytes.size, bytes.size == 1 ? "" : "s");
    }
}

static void show_values(const sx_example_feature *feature, sx_buf *text)
{
    sx_bytes bytes[SHOW_VALUES];
    float floats[SHOW_VALUES];
    int64_t ints[SHOW_VALUES];
    size_t count = SX_MIN(feature->count, (size_t)SHOW_VALUES);
    sx_feature_bytes(feature, bytes, SHOW_VALUES);
    sx_feature_floats(feature, floats, SHOW_VALUES);
    sx_feature_ints(feature, ints, SHOW_VALUES);
    for (size_t i = 0; i < count; i++) {
        sx_buf_puts(text, i == 0 ? "" : ", ");
        if (feature->kind == SX_FEATURE_BYTES) {
            show_bytes(bytes[i], text);
        } else if (feature->kind == SX_FEATURE_FLOATS) {
            sx_buf_printf(text, "%.9g", (double)floats[i]);
        } else {
            sx_buf_printf(text, "%lld", (long long)ints[i]);
        }
    }
    if (feature->count > SHOW_VALUES) {
        sx_buf_printf(text, ", ... (%zu values)", feature->count);
    }
}

static sx_status show_example(sx_bytes record, sx_buf *text)
{
    sx_example example;
    sx_example_init(&example);
    sx_status status = sx_example_parse(&example, record);
    for (size_t i = 0; status == SX_OK && i < example.count; i++) {
        const sx_example_feature *feature = &example.features[i];
        sx_buf_puts(text, "  ");
        sx_buf_put_visible(text, feature->name.data, SX_MIN(feature->name.size, (size_t)200), "");
        sx_buf_printf(text, " (%s): ", sx_feature_kind_name(feature->kind));
        show_values(feature, text);
        sx_buf_putc(text, '\n');
    }
    sx_example_deinit(&example);
    return status;
}

/* One component of an element that is not an Example. */
static void show_component(const sx_component *component, const sx_tensor *tensor, sx_buf *text)
{
    char type[SX_TYPE_TEXT];
    sx_buf_printf(text, "  %s: ", component->name);
    if (component->type.dtype == SX_STRING && component->type.rank == 0) {
        show_bytes(*(const sx_bytes *)tensor->data, text);
    } else if (component->type.dtype == SX_I64 && component->type.rank == 0) {
        sx_buf_printf(text, "%lld", (long long)*(const int64_t *)tensor->data);
    } else {
        sx_buf_puts(text, sx_type_format(&component->type, type, sizeof(type)));
    }
    sx_buf_putc(text, '\n');
}

static void show_label_name(const sx_dataset *data, const sx_tensor *label, sx_buf *text)
{
    int classes;
    const char *const *names = sx_dataset_class_names(data, &classes);
    int64_t value = *(const int64_t *)label->data;
    if (value >= 0 && value < classes) {
        sx_buf_puts(text, "  class: ");
        sx_buf_put_visible(text, names[value], strlen(names[value]), "");
        sx_buf_putc(text, '\n');
    }
}

static sx_status show_record(const sx_dataset *data, int64_t record, sx_scratch *scratch,
                             sx_buf *text)
{
    const sx_schema *schema = &data->source->schema;
    sx_tensor out[SX_MAX_COMPONENTS];
    char name[1024];
    for (int c = 0; c < schema->count; c++) {
        out[c].type = schema->components[c].type;
    }
    sx_buf_printf(text, "%s\n", sx_dataset_record_name(data, record, name, sizeof(name)));
    SX_TRY(data->source->def->read(data->source, record, scratch, out));
    if (strcmp(schema->components[0].name, "record") == 0) {
        return show_example(*(const sx_bytes *)out[0].data, text);
    }
    for (int c = 0; c < schema->count; c++) {
        show_component(&schema->components[c], &out[c], text);
        if (strcmp(schema->components[c].name, "label") == 0 &&
            schema->components[c].type.dtype == SX_I64) {
            show_label_name(data, &out[c], text);
        }
    }
    return SX_OK;
}

sx_status sx_data_show(const char *spec, const sx_data_options *options, int64_t count,
                       sx_buf *text)
{
    sx_dataset *data = NULL;
    char *description = NULL;
    sx_scratch scratch;
    SX_TRY(sx_data_open(spec, options, &data, &description));
    sx_buf_puts(text, description);
    sx_text_free(description);
    sx_scratch_init(&scratch);
    sx_status status = SX_OK;
    for (int64_t i = 0; i < SX_MIN(count, data->source->count) && status == SX_OK; i++) {
        sx_scratch_reset(&scratch);
        status = show_record(data, i, &scratch, text);
    }
    sx_scratch_deinit(&scratch);
    sx_dataset_release(data);
    return status;
}
