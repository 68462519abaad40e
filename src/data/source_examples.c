/* TFRecord files of tf.train.Example: a source of records and a map that extracts image and label.
 *
 * The names of these features, whether images are encoded, and the first label are taken from the
 * options, else from the sidecar schema (set_info.h), else from common conventions. The description
 * lists what was found or assumed. */
#include <string.h>

#include "base/arena.h"
#include "base/args.h"
#include "base/checked.h"
#include "base/memory.h"
#include "data/records.h"
#include "data/set_info.h"
#include "data/sources.h"
#include "image/format.h"
#include "io/path.h"
#include "proto/example.h"

enum {
    SCAN_RECORDS = 1 << 16, /* sets up to this size are searched for classes */
    SCAN_RUN = 64,          /* records read at once in the search */
    MAX_CLASSES = 1 << 20,
    SHOW_CLASSES = 8,
    FIRST_RECORDS = 64, /* of which one has to be readable */
};

/* ---- The records ---- */

struct example_source {
    sx_source head;
    sx_records *records;
    sx_status (*check)(sx_bytes record); /* besides the frame; NULL = none */
    bool skip_corrupt;
    sx_arena arena; /* class names, and everything that the plan points to */
};

static sx_status examples_read_run(sx_source *source, int64_t first, int64_t count,
                                   sx_scratch *scratch, sx_bytes *out_records, int64_t *out_count)
{
    const struct example_source *self = (const struct example_source *)source;
    return sx_records_read(self->records, first, count, scratch, out_records, out_count);
}

static sx_status examples_read(sx_source *source, int64_t record, sx_scratch *scratch,
                               sx_tensor *out)
{
    int64_t count;
    sx_bytes *bytes = sx_scratch_alloc(scratch, sizeof(*bytes));
    if (bytes == NULL) {
        return sx_no_memory("for a record");
    }
    out[0].data = bytes;
    return examples_read_run(source, record, 1, scratch, bytes, &count);
}

static void examples_name(const sx_source *source, int64_t record, sx_buf *out)
{
    sx_records_name(((const struct example_source *)source)->records, record, out);
}

static bool examples_file(const sx_source *source, int64_t record, sx_buf *out)
{
    const struct example_source *self = (const struct example_source *)source;
    sx_bytes bytes, name;
    int64_t count;
    sx_example example;
    sx_scratch scratch;
    sx_example_init(&example);
    sx_scratch_init(&scratch);
    sx_status status = sx_records_read(self->records, record, 1, &scratch, &bytes, &count);
    if (status == SX_OK) {
        status = sx_example_parse(&example, bytes);
    }
    const sx_example_feature *feature =
        status == SX_OK ? sx_example_find(&example, "image/filename") : NULL;
    bool found = feature != NULL && sx_feature_bytes(feature, &name, 1) == 1 && name.size > 0;
    if (found) {
        sx_buf_append(out, name.data, name.size);
    }
    sx_status_free(status);
    sx_scratch_deinit(&scratch);
    sx_example_deinit(&example);
    return found;
}

static bool examples_is_corrupt(const sx_source *source, int64_t record)
{
    const struct example_source *self = (const struct example_source *)source;
    sx_bytes bytes;
    int64_t count;
    sx_scratch scratch;
    if (self->skip_corrupt) {
        return false;
    }
    sx_scratch_init(&scratch);
    sx_status status = sx_records_read(self->records, record, 1, &scratch, &bytes, &count);
    bool corrupt = sx_status_code(status) == SX_DATA_LOSS;
    if (status == SX_OK && self->check != NULL) {
        status = self->check(bytes);
        corrupt = status != SX_OK && sx_status_code(status) != SX_RESOURCE_EXHAUSTED;
    }
    sx_status_free(status);
    sx_scratch_deinit(&scratch);
    return corrupt;
}

static void examples_destroy(sx_source *source)
{
    struct example_source *self = (struct example_source *)source;
    sx_records_close(self->records);
    sx_arena_deinit(&self->arena);
    sx_free(self);
}

static const sx_source_def examples_def = {
    .kind = "tfrecord",
    .read = examples_read,
    .read_run = examples_read_run,
    .name_record = examples_name,
    .file = examples_file,
    .is_corrupt = examples_is_corrupt,
    .destroy = examples_destroy,
};

/* ---- The features ---- */

/* The features to extract from an Example; also the map's user data. */
struct features {
    char *image_key, *label_key; /* label_key NULL = none; owned */
    int64_t shape[3];            /* of raw pixels; shape[0] = 0: encoded */
    int label_base;
};

static void free_features(void *user)
{
    struct features *f = user;
    sx_free(f->image_key);
    sx_free(f->label_key);
    sx_free(f);
}

static sx_status take_image(const struct features *f, const sx_example *example, void *out)
{
    sx_bytes image;
    SX_TRY(sx_example_get_bytes(example, f->image_key, &image));
    if (f->shape[0] == 0) {
        *(sx_bytes *)out = image;
        return SX_OK;
    }
    size_t expected = (size_t)(f->shape[0] * f->shape[1] * f->shape[2]);
    if (image.size != expected) {
        return sx_error(SX_DATA_LOSS,
                        "feature \"%s\" has %zu bytes; expected %lldx%lldx%lld = %zu, as in the "
                        "first record",
                        f->image_key, image.size, (long long)f->shape[0], (long long)f->shape[1],
                        (long long)f->shape[2], expected);
    }
    memcpy(out, image.data, expected);
    return SX_OK;
}

static sx_status take_label(const struct features *f, const sx_example *example, int64_t *out)
{
    int64_t label;
    SX_TRY(sx_example_get_int(example, f->label_key, &label));
    if (label < f->label_base) {
        return sx_error(SX_OUT_OF_RANGE, "label %lld is below the label base %d", (long long)label,
                        f->label_base);
    }
    *out = label - f->label_base;
    return SX_OK;
}

static sx_status take_features(const sx_map_call *call, void *user)
{
    const struct features *f = user;
    SX_TRY(sx_example_parse(call->worker, *(const sx_bytes *)call->in[0].data));
    SX_TRY(take_image(f, call->worker, call->out[0].data));
    return f->label_key == NULL ? SX_OK : take_label(f, call->worker, call->out[1].data);
}

/* ---- Finding out ---- */

struct finding {
    struct example_source *source;
    const sx_data_options *options;
    sx_set_info info; /* zeroed if there is none */
    bool has_info;
    struct features *features;
    sx_example example;     /* of the first record that can be read */
    sx_scratch scratch;     /* with its bytes */
    sx_image_format format; /* of its image */
    bool counted;    /* the number of classes follows from the labels; the last has no name */
    int64_t highest; /* if so: the first record with the highest label */
};

static const char *const image_keys[] = {"image/encoded", "image_raw", "image", "encoded"};
static const char *const label_keys[] = {"image/class/label", "label", "class", "image/label"};

/* The first of `keys` that is a feature of this kind with one value. */
static const char *common_key(const sx_example *example, const char *const *keys, size_t count,
                              sx_feature_kind kind)
{
    for (size_t i = 0; i < count; i++) {
        const sx_example_feature *feature = sx_example_find(example, keys[i]);
        if (feature != NULL && feature->kind == kind && feature->count == 1) {
            return keys[i];
        }
    }
    return NULL;
}

/* "image/encoded (bytes), image/height (int64)". */
static void list_features(const sx_example *example, sx_buf *out)
{
    for (size_t i = 0; i < example->count && i < 32; i++) {
        const sx_example_feature *f = &example->features[i];
        sx_buf_printf(out, "%s%.*s (%s)", i == 0 ? "" : ", ",
                      (int)SX_MIN(f->name.size, (size_t)100), (const char *)f->name.data,
                      sx_feature_kind_name(f->kind));
    }
    sx_buf_puts(out, example->count > 32 ? ", ..." : example->count == 0 ? "none" : "");
}

static sx_status no_image_key(const sx_example *example)
{
    sx_buf list;
    sx_buf_init(&list, 1 << 16);
    list_features(example, &list);
    sx_status status =
        sx_error(SX_INVALID_ARGUMENT,
                 "the first record has no feature that looks like an image; it has: %s; use "
                 "--feature image=KEY",
                 sx_buf_text(&list));
    sx_buf_deinit(&list);
    return status;
}

static sx_status find_keys(struct finding *f)
{
    const char *image = f->options->image_key, *label = f->options->label_key;
    image = image != NULL ? image : f->info.image_key;
    label = label != NULL ? label : f->info.label_key;
    if (image == NULL) {
        image = common_key(&f->example, image_keys, SX_COUNT(image_keys), SX_FEATURE_BYTES);
    }
    if (label == NULL) {
        label = common_key(&f->example, label_keys, SX_COUNT(label_keys), SX_FEATURE_INTS);
    }
    if (image == NULL) {
        return no_image_key(&f->example);
    }
    f->features->image_key = sx_strdup(image);
    f->features->label_key = label == NULL ? NULL : sx_strdup(label);
    bool lost = f->features->image_key == NULL || (label != NULL && f->features->label_key == NULL);
    return lost ? sx_no_memory("reading examples") : SX_OK;
}

/* The value of the first of the two features, 0 if both are missing. */
static int64_t size_feature(const sx_example *example, const char *a, const char *b)
{
    const sx_example_feature *feature = sx_example_find(example, a);
    int64_t value = 0;
    feature = feature != NULL ? feature : sx_example_find(example, b);
    return feature != NULL && sx_feature_ints(feature, &value, 1) == 1 ? value : 0;
}

static bool fits(const int64_t shape[3], size_t bytes)
{
    int64_t product;
    return shape[0] > 0 && shape[1] > 0 && shape[2] > 0 &&
           sx_mul_i64(shape[0], shape[1], &product) && sx_mul_i64(product, shape[2], &product) &&
           (uint64_t)product == bytes;
}

/* Raw pixels: their shape from the schema, from the record's own features, or MNIST's. */
static sx_status find_shape(struct finding *f, size_t bytes)
{
    const sx_example *e = &f->example;
    int64_t depth = size_feature(e, "depth", "image/channels");
    int64_t candidates[3][3] = {
        {f->info.shape[0], f->info.shape[1], f->info.shape[2]},
        {size_feature(e, "height", "image/height"), size_feature(e, "width", "image/width"),
         depth == 0 ? 1 : depth},
        {28, 28, 1},
    };
    for (size_t i = 0; i < SX_COUNT(candidates); i++) {
        if (fits(candidates[i], bytes)) {
            memcpy(f->features->shape, candidates[i], sizeof(candidates[i]));
            return SX_OK;
        }
    }
    return sx_error(
        SX_INVALID_ARGUMENT,
        "feature \"%s\" of the first record has %zu bytes that are neither a JPEG or PNG nor "
        "pixels of a known height, width and depth",
        f->features->image_key, bytes);
}

static sx_status find_format(struct finding *f)
{
    sx_bytes image;
    SX_TRY(sx_example_get_bytes(&f->example, f->features->image_key, &image));
    f->format = sx_image_format_of(image);
    return f->format == SX_FORMAT_UNKNOWN ? find_shape(f, image.size) : SX_OK;
}

static sx_status find_label(struct finding *f)
{
    if (f->options->label_key != NULL) { /* set by the user: it must exist */
        int64_t label;
        SX_TRY(sx_example_get_int(&f->example, f->options->label_key, &label));
    }
    bool said = f->options->label_base_set || f->options->label_base != 0;
    f->features->label_base = said ? f->options->label_base : f->info.label_base;
    return SX_OK;
}

/* ---- Class names ---- */

static sx_status names_from_info(struct finding *f)
{
    sx_source *head = &f->source->head;
    head->class_names = sx_arena_array(&f->source->arena, f->info.class_count, char *);
    if (head->class_names == NULL) {
        return sx_no_memory("reading examples");
    }
    for (int i = 0; i < f->info.class_count; i++) {
        head->class_names[i] = sx_arena_strdup(&f->source->arena, f->info.classes[i]);
        if (head->class_names[i] == NULL) {
            return sx_no_memory("reading examples");
        }
    }
    head->class_count = f->info.class_count;
    return SX_OK;
}

/* Classes that are being collected from records. */
struct class_scan {
    char **names; /* [capacity], by label; NULL = no text seen */
    int64_t capacity, count;
    int64_t highest; /* the first record with the highest label */
};

static sx_status note_class(struct finding *f, struct class_scan *scan, const sx_example *example,
                            int64_t label, int64_t record)
{
    if (label >= scan->capacity) {
        int64_t capacity = SX_MIN(SX_MAX(label + 1, scan->capacity * 2), (int64_t)MAX_CLASSES);
        char **names = sx_realloc(scan->names, (size_t)capacity, sizeof(*names));
        if (names == NULL) {
            return sx_no_memory("reading examples");
        }
        memset(names + scan->capacity, 0, (size_t)(capacity - scan->capacity) * sizeof(*names));
        scan->names = names;
        scan->capacity = capacity;
    }
    if (label >= scan->count) {
        scan->count = label + 1;
        scan->highest = record;
    }
    const sx_example_feature *text = sx_example_find(example, "image/class/text");
    sx_bytes value;
    if (scan->names[label] == NULL && text != NULL && sx_feature_bytes(text, &value, 1) == 1) {
        scan->names[label] = sx_arena_strndup(&f->source->arena, value.data, value.size);
    }
    return SX_OK;
}

/* Reads the label of every record. Records that cannot be read are reported later, when they are
 * used. */
static sx_status scan_classes(struct finding *f, struct class_scan *scan)
{
    sx_example example;
    sx_scratch scratch;
    sx_example_init(&example);
    sx_scratch_init(&scratch);
    sx_status status = SX_OK;
    int64_t count = f->source->head.count;
    for (int64_t i = 0, n = 1; i < count && status == SX_OK; i += n) {
        sx_bytes records[SCAN_RUN];
        sx_scratch_reset(&scratch);
        sx_status read = sx_records_read(
            f->source->records, i, SX_MIN(count - i, (int64_t)SCAN_RUN), &scratch, records, &n);
        n = read == SX_OK ? n : 1;
        for (int64_t k = 0; k < n && status == SX_OK; k++) {
            int64_t label = -1;
            read = read != SX_OK ? read : sx_example_parse(&example, records[k]);
            read = read != SX_OK ? read : take_label(f->features, &example, &label);
            sx_status_free(read);
            read = SX_OK;
            if (label >= 0 && label < MAX_CLASSES) {
                status = note_class(f, scan, &example, label, i + k);
            }
        }
    }
    sx_scratch_deinit(&scratch);
    sx_example_deinit(&example);
    return status;
}

static sx_status names_from_records(struct finding *f)
{
    struct class_scan scan = {0};
    sx_source *head = &f->source->head;
    sx_status status = scan_classes(f, &scan);
    char **names = NULL;
    if (status == SX_OK && scan.count > 0) {
        names = sx_arena_array(&f->source->arena, scan.count, char *);
        status = names == NULL ? sx_no_memory("reading examples") : SX_OK;
    }
    for (int64_t i = 0; i < scan.count && status == SX_OK; i++) {
        names[i] = scan.names[i] != NULL ? scan.names[i]
                                         : sx_arena_printf(&f->source->arena, "%lld", (long long)i);
        status = names[i] == NULL ? sx_no_memory("reading examples") : SX_OK;
    }
    if (status == SX_OK) {
        head->class_names = names;
        head->class_count = (int)scan.count;
        f->counted = scan.count > 0 && scan.names[scan.count - 1] == NULL;
        f->highest = scan.highest;
    }
    sx_free(scan.names);
    return status;
}

static sx_status find_classes(struct finding *f)
{
    if (f->info.class_count > 0) {
        return names_from_info(f);
    }
    if (f->features->label_key != NULL && f->source->head.count <= SCAN_RECORDS) {
        return names_from_records(f);
    }
    return SX_OK;
}

/* ---- The description ---- */

static void describe_damage(const sx_records *records, sx_buf *text)
{
    sx_records_damage dropped = sx_records_dropped(records);
    if (dropped.records + dropped.places > 0) {
        sx_buf_printf(text, "skipped %lld corrupt record%s", (long long)dropped.records,
                      dropped.records == 1 ? "" : "s");
        if (dropped.places > 0) {
            sx_buf_printf(text, " and %lld damaged region%s without readable records",
                          (long long)dropped.places, dropped.places == 1 ? "" : "s");
        }
        sx_buf_putc(text, '\n');
    }
    if (sx_records_memory_bytes(records) > 0) {
        sx_buf_printf(text, "compressed: kept decompressed in memory, %.1f MiB\n",
                      (double)sx_records_memory_bytes(records) / (1 << 20));
    }
}

static void describe_label(const struct finding *f, sx_buf *text)
{
    if (f->features->label_key == NULL) {
        sx_buf_puts(text, "; no labels");
        return;
    }
    bool said = f->options->label_base_set || f->options->label_base != 0;
    sx_buf_printf(text, "; label: %s, from %d (%s)", f->features->label_key,
                  f->features->label_base,
                  said          ? "as given"
                  : f->has_info ? "schema file"
                                : "assumed; change with --label-base");
}

static void describe(const struct finding *f, size_t file_count, sx_buf *text)
{
    const sx_source *head = &f->source->head;
    sx_buf_printf(text, "%lld record%s in %zu file%s; image: %s, ", (long long)head->count,
                  head->count == 1 ? "" : "s", file_count, file_count == 1 ? "" : "s",
                  f->features->image_key);
    if (f->features->shape[0] > 0) {
        sx_buf_printf(text, "raw %lldx%lldx%lld", (long long)f->features->shape[0],
                      (long long)f->features->shape[1], (long long)f->features->shape[2]);
    } else {
        sx_buf_puts(text, sx_image_format_name(f->format));
    }
    describe_label(f, text);
    if (head->class_count > 0) {
        sx_buf_printf(text, "; %d class%s:", head->class_count, head->class_count == 1 ? "" : "es");
        for (int i = 0; i < head->class_count && i < SHOW_CLASSES; i++) {
            sx_buf_puts(text, i == 0 ? " " : ", ");
            sx_buf_put_visible(text, head->class_names[i], strlen(head->class_names[i]), "");
        }
        sx_buf_puts(text, head->class_count > SHOW_CLASSES ? ", ..." : "");
    }
    if (f->counted) {
        sx_buf_printf(text, " (label %d: ", head->class_count - 1 + f->features->label_base);
        sx_records_name(f->source->records, f->highest, text);
        sx_buf_putc(text, ')');
    }
    sx_buf_putc(text, '\n');
    describe_damage(f->source->records, text);
}

/* ---- Putting it together ---- */

static sx_status check_record(sx_bytes record)
{
    sx_example example;
    sx_example_init(&example);
    sx_status status = sx_example_parse(&example, record);
    sx_example_deinit(&example);
    return status;
}

static sx_status open_files(struct example_source *source, const char *const *paths, size_t count,
                            const sx_data_options *options, sx_status (*check)(sx_bytes record))
{
    sx_records_options how = {.compression = options->compression,
                              .skip_corrupt = options->skip_corrupt,
                              .check = check,
                              .memory_budget = options->memory_budget};
    source->check = check;
    source->skip_corrupt = options->skip_corrupt;
    SX_TRY(sx_records_open(paths, count, &how, &source->records));
    source->head.count = sx_records_count(source->records);
    if (source->head.count == 0) {
        return sx_error(SX_INVALID_ARGUMENT, "%s: no records in %zu file%s", paths[0], count,
                        count == 1 ? "" : "s");
    }
    return SX_OK;
}

static sx_status open_records(struct finding *f, const char *const *paths, size_t count)
{
    SX_TRY(open_files(f->source, paths, count, f->options, check_record));
    sx_status status = sx_set_info_find(paths[0], &f->source->arena, &f->info);
    f->has_info = status == SX_OK;
    if (sx_status_code(status) == SX_NOT_FOUND) {
        sx_status_free(status);
        status = SX_OK;
    }
    return status;
}

static sx_status parse_record(struct finding *f, int64_t record)
{
    sx_bytes bytes;
    int64_t count;
    sx_scratch_reset(&f->scratch);
    SX_TRY(sx_records_read(f->source->records, record, 1, &f->scratch, &bytes, &count));
    sx_status status = sx_example_parse(&f->example, bytes);
    if (status != SX_OK) {
        sx_buf name;
        sx_buf_init(&name, 4096);
        sx_records_name(f->source->records, record, &name);
        status = sx_status_annotate(status, __FILE__, __LINE__, "%s", sx_buf_text(&name));
        sx_buf_deinit(&name);
    }
    return status;
}

/* The first record, or the first one after it that can be read: a corrupt one is reported when it
 * is used, wherever it is. */
static sx_status parse_first(struct finding *f)
{
    sx_status status = parse_record(f, 0);
    const int64_t count = SX_MIN(f->source->head.count, (int64_t)FIRST_RECORDS);
    for (int64_t i = 1; i < count && sx_status_code(status) == SX_DATA_LOSS; i++) {
        sx_status later = parse_record(f, i);
        if (later == SX_OK) {
            sx_status_free(status);
            return SX_OK;
        }
        sx_status_free(later);
    }
    if (status != SX_OK && f->source->head.count > 1 && examples_is_corrupt(&f->source->head, 0)) {
        status = sx_hint_skip_corrupt(status);
    }
    return status;
}

static sx_status find_out(struct finding *f, const char *const *paths, size_t count)
{
    SX_TRY(open_records(f, paths, count));
    SX_TRY(parse_first(f));
    SX_TRY(find_keys(f), "%s", paths[0]);
    SX_TRY(find_format(f), "%s", paths[0]);
    SX_TRY(find_label(f), "%s", paths[0]);
    return find_classes(f);
}

/* Creates the source alone; takes ownership of it. */
static sx_status make_records_dataset(struct example_source *source, sx_dataset **out_dataset)
{
    source->head.def = &examples_def;
    source->head.schema = (sx_schema){1, {{"record", sx_scalar_type(SX_STRING)}}};
    return sx_dataset_from_source(&source->head, out_dataset);
}

/* Creates the source and the map; takes ownership of both. */
static sx_status make_dataset(struct finding *f, sx_dataset **out_dataset)
{
    struct features *features = f->features;
    sx_dataset *dataset = NULL;
    sx_status status = make_records_dataset(f->source, &dataset);
    f->source = NULL;
    SX_TRY(status);
    bool raw = features->shape[0] > 0;
    sx_component components[] = {
        {"image", raw ? sx_type_make(SX_U8, 3, features->shape) : sx_scalar_type(SX_STRING)},
        {"label", sx_scalar_type(SX_I64)},
    };
    status = sx_dataset_map(&dataset, .name = "example", .fn = take_features,
                            .count = features->label_key == NULL ? 1 : 2, .components = components,
                            .user = features, .release = free_features,
                            .worker_create = sx_example_worker_create,
                            .worker_destroy = sx_example_worker_destroy,
                            .fingerprint = (uint64_t)(int64_t)features->label_base, .views = true);
    if (status != SX_OK) {
        sx_dataset_release(dataset);
        return status;
    }
    f->features = NULL;
    *out_dataset = dataset;
    return SX_OK;
}

sx_status sx_source_examples(const char *const *paths, size_t count, const sx_data_options *options,
                             sx_buf *text, sx_dataset **out_dataset)
{
    struct finding f = {.options = options};
    sx_example_init(&f.example);
    sx_scratch_init(&f.scratch);
    f.source = sx_alloc(1, sizeof(*f.source));
    f.features = sx_alloc(1, sizeof(*f.features));
    sx_status status =
        f.source == NULL || f.features == NULL ? sx_no_memory("reading examples") : SX_OK;
    if (status == SX_OK) {
        sx_arena_init(&f.source->arena, 0);
        status = find_out(&f, paths, count);
    }
    if (status == SX_OK) {
        describe(&f, count, text);
        status = make_dataset(&f, out_dataset);
    }
    sx_example_deinit(&f.example);
    sx_scratch_deinit(&f.scratch);
    if (f.source != NULL) {
        examples_destroy(&f.source->head);
    }
    if (f.features != NULL) {
        free_features(f.features);
    }
    return status;
}

sx_status sx_source_named_examples(const char *const *paths, size_t count,
                                   const sx_data_options *options, sx_buf *text,
                                   sx_dataset **out_dataset)
{
    struct example_source *source = sx_alloc(1, sizeof(*source));
    sx_dataset *dataset = NULL;
    if (source == NULL) {
        return sx_no_memory("reading examples");
    }
    sx_arena_init(&source->arena, 0);
    sx_status status = open_files(source, paths, count, options, check_record);
    if (status != SX_OK) {
        examples_destroy(&source->head);
        return status;
    }
    sx_buf_printf(text, "%lld record%s in %zu file%s; features:", (long long)source->head.count,
                  source->head.count == 1 ? "" : "s", count, count == 1 ? "" : "s");
    for (int i = 0; i < options->n_features; i++) {
        sx_buf_printf(text, "%s %s", i == 0 ? "" : ",", options->features[i].name);
    }
    sx_buf_putc(text, '\n');
    describe_damage(source->records, text);
    SX_TRY(make_records_dataset(source, &dataset));
    status = sx_dataset_parse_examples(&dataset, options->features, options->n_features);
    if (status != SX_OK) {
        sx_dataset_release(dataset);
        return status;
    }
    *out_dataset = dataset;
    return SX_OK;
}

sx_status sx_dataset_from_records(const char *const *patterns, int count,
                                  const sx_data_options *options, sx_dataset **out_dataset)
{
    SX_TAKE_ARGS(sx_data_options, options);
    sx_paths paths = {0};
    if (count < 1) {
        return sx_error(SX_INVALID_ARGUMENT, "records: no file given");
    }
    struct example_source *source = sx_alloc(1, sizeof(*source));
    if (source == NULL) {
        return sx_no_memory("reading examples");
    }
    sx_arena_init(&source->arena, 0);
    sx_status status = sx_paths_glob(patterns, (size_t)count, &paths);
    if (status == SX_OK) {
        status = open_files(source, (const char *const *)paths.items, paths.count, options, NULL);
    }
    if (status == SX_OK) {
        status = make_records_dataset(source, out_dataset);
    } else {
        examples_destroy(&source->head);
    }
    sx_paths_deinit(&paths);
    return status;
}
