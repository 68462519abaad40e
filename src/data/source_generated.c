/* Generated images: "digits?n=60000&seed=1", "flowers?n=1000&seed=1&size=64". Each is drawn on
 * first use and kept. */
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/memory.h"
#include "data/sources.h"
#include "image/generate.h"

enum { MAX_COUNT = 1 << 28, MAX_CLASSES = 16, CLASS_NAME_BYTES = 16 };

struct generated;

/* One row per data set that can be generated. */
static const struct drawing {
    const char *name;
    int64_t count, side; /* defaults; side 0 = fixed */
    int channels, classes;
    sx_status (*draw)(const struct generated *self, uint64_t index, uint8_t *out, int *out_label);
    void (*class_name)(int label, char out[CLASS_NAME_BYTES]);
} drawings[];

struct generated {
    sx_source head;
    const struct drawing *drawing;
    uint64_t seed;
    int64_t count, side;
    char names[MAX_CLASSES][CLASS_NAME_BYTES];
    char *class_names[MAX_CLASSES];
};

static sx_status draw_digit(const struct generated *self, uint64_t index, uint8_t *out,
                            int *out_label)
{
    sx_digits_draw(self->seed, index, out, out_label);
    return SX_OK;
}

static void digit_name(int label, char out[CLASS_NAME_BYTES])
{
    out[0] = (char)('0' + label);
    out[1] = '\0';
}

static sx_status draw_flower(const struct generated *self, uint64_t index, uint8_t *out,
                             int *out_label)
{
    return sx_flowers_draw(self->seed, index, (int)self->side, out, out_label);
}

static void flower_name(int label, char out[CLASS_NAME_BYTES])
{
    const char *name = sx_flowers_class_name(label);
    memcpy(out, name, strnlen(name, CLASS_NAME_BYTES - 1) + 1);
}

static const struct drawing drawings[] = {
    {"digits", 60000, 0, 1, SX_DIGITS_CLASSES, draw_digit, digit_name},
    {"flowers", 1000, 64, 3, SX_FLOWERS_CLASSES, draw_flower, flower_name},
};

/* ---- The source ---- */

static sx_status generated_read(sx_source *source, int64_t record, sx_scratch *scratch,
                                sx_tensor *out)
{
    const struct generated *self = (const struct generated *)source;
    uint8_t *pixels = sx_scratch_alloc(scratch, (size_t)sx_type_bytes(&out[0].type));
    int64_t *label = sx_scratch_alloc(scratch, sizeof(*label));
    int drawn = 0;
    if (pixels == NULL || label == NULL) {
        return sx_error(SX_RESOURCE_EXHAUSTED, "out of scratch memory");
    }
    SX_TRY(self->drawing->draw(self, (uint64_t)record, pixels, &drawn));
    *label = drawn;
    out[0].data = pixels;
    out[1].data = label;
    return SX_OK;
}

static void generated_name(const sx_source *source, int64_t record, sx_buf *out)
{
    const struct generated *self = (const struct generated *)source;
    sx_buf_printf(out, "generated:%s: number %lld", self->drawing->name, (long long)record);
}

static void generated_destroy(sx_source *source)
{
    sx_free(source);
}

static const sx_source_def generated_def = {
    .kind = "generated",
    .read = generated_read,
    .name_record = generated_name,
    .destroy = generated_destroy,
};

/* ---- The specification ---- */

static sx_status bad(const char *spec, const char *what)
{
    return sx_error(SX_INVALID_ARGUMENT,
                    "generated:%s: %s; expected digits?n=COUNT&seed=SEED or "
                    "flowers?n=COUNT&seed=SEED&size=PIXELS",
                    spec, what);
}

/* "key=number" that begins at *text. */
static sx_status read_parameter(struct generated *self, const char *spec, const char **text)
{
    char *end;
    size_t key = strcspn(*text, "=&");
    if ((*text)[key] != '=') {
        return bad(spec, "a parameter must be key=number");
    }
    long long value = strtoll(*text + key + 1, &end, 10);
    if (end == *text + key + 1 || (*end != '&' && *end != '\0') || value < 0) {
        return bad(spec, "a parameter must be an integer");
    }
    if (key == 1 && **text == 'n') {
        self->count = value;
    } else if (key == 4 && memcmp(*text, "seed", 4) == 0) {
        self->seed = (uint64_t)value;
    } else if (key == 4 && memcmp(*text, "size", 4) == 0 && self->drawing->side != 0) {
        self->side = value;
    } else {
        return bad(spec, "unknown parameter");
    }
    *text = *end == '&' ? end + 1 : end;
    return SX_OK;
}

static sx_status parse(struct generated *self, const char *spec)
{
    size_t length = strcspn(spec, "?");
    for (size_t i = 0; i < SX_COUNT(drawings); i++) {
        if (strlen(drawings[i].name) == length && memcmp(drawings[i].name, spec, length) == 0) {
            self->drawing = &drawings[i];
        }
    }
    if (self->drawing == NULL) {
        return bad(spec, "unknown data set");
    }
    self->count = self->drawing->count;
    self->side = self->drawing->side;
    self->seed = 1;
    const char *text = spec + length + (spec[length] == '?');
    while (*text != '\0') {
        SX_TRY(read_parameter(self, spec, &text));
    }
    if (self->count < 1 || self->count > MAX_COUNT) {
        return bad(spec, "n must be 1 to 2^28");
    }
    if (self->drawing->side != 0 &&
        (self->side < SX_FLOWERS_MIN_SIDE || self->side > SX_FLOWERS_MAX_SIDE)) {
        return bad(spec, "size must be 16 to 1024");
    }
    return SX_OK;
}

static void fill_head(struct generated *self)
{
    int64_t side = self->side != 0 ? self->side : SX_DIGITS_SIDE;
    for (int i = 0; i < self->drawing->classes; i++) {
        self->drawing->class_name(i, self->names[i]);
        self->class_names[i] = self->names[i];
    }
    self->head = (sx_source){
        .def = &generated_def,
        .schema = {2,
                   {{"image", sx_type_of(SX_U8, side, side, self->drawing->channels)},
                    {"label", sx_scalar_type(SX_I64)}}},
        .count = self->count,
        .class_names = self->class_names,
        .class_count = self->drawing->classes,
    };
}

sx_status sx_source_generated(const char *spec, const sx_data_options *options, sx_buf *text,
                              sx_dataset **out_dataset)
{
    struct generated *self = sx_alloc(1, sizeof(*self));
    if (self == NULL) {
        return sx_no_memory("for generated:%s", spec);
    }
    sx_status status = parse(self, spec);
    if (status != SX_OK) {
        sx_free(self);
        return status;
    }
    fill_head(self);
    char type[SX_TYPE_TEXT];
    sx_buf_printf(text, "generated %s: %lld of %s, seed %llu; %d classes\n", self->drawing->name,
                  (long long)self->count,
                  sx_type_format(&self->head.schema.components[0].type, type, sizeof(type)),
                  (unsigned long long)self->seed, self->drawing->classes);
    sx_dataset *dataset = NULL;
    SX_TRY(sx_dataset_from_source(&self->head, &dataset));
    status = sx_dataset_cache(&dataset, options->memory_budget);
    if (status != SX_OK) {
        sx_dataset_release(dataset);
        return status;
    }
    *out_dataset = dataset;
    return SX_OK;
}
