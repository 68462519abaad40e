/* Converts class folders to record files: checks, orders and splits the images. */
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/map.h"
#include "base/memory.h"
#include "base/threefry.h"
#include "data/classed.h"
#include "data/fileset.h"
#include "data/image_check.h"
#include "data/prepare.h"
#include "data/set_writer.h"
#include "image/decode.h"
#include "image/format.h"
#include "io/path.h"
#include "io/tfrecord.h"
#include "proto/example.h"

enum { PROGRESS_EVERY = 64 };

/* One set to write: images [first, end) of the order. */
struct split {
    char name[64]; /* "" without --split */
    double fraction;
    int64_t first, end;
    sx_set_writer *writer;
};

/* A good image, and its place in the order. */
struct placed {
    uint64_t key;
    const sx_class_item *item;
    sx_image_info info;
    int64_t bytes;
};

/* ---- Splits ---- */

static sx_status bad_split(const char *text, const char *why)
{
    return sx_error(SX_INVALID_ARGUMENT,
                    "invalid split \"%s\": %s; expected, for example, train=.8,val=.1,test=.1",
                    text, why);
}

static bool is_set_name(const char *name, size_t length)
{
    size_t good = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-");
    return length > 0 && length < sizeof(((struct split *)0)->name) && good >= length &&
           name[0] != '.';
}

/* Reads "train=.8,val=.2" into splits [SX_MAX_SPLITS]. */
static sx_status parse_splits(const char *whole, struct split *splits, int *out_count)
{
    int count = 0;
    double sum = 0;
    for (const char *text = whole;;) {
        size_t length = strcspn(text, "=,");
        if (text[length] != '=' || !is_set_name(text, length)) {
            return bad_split(whole, "each part must be NAME=FRACTION");
        }
        if (count == SX_MAX_SPLITS) {
            return bad_split(whole, "more than 16 parts");
        }
        struct split *split = &splits[count++];
        memcpy(split->name, text, length);
        split->name[length] = '\0';
        for (int i = 0; i < count - 1; i++) {
            if (strcmp(splits[i].name, split->name) == 0) {
                return bad_split(whole, "duplicate name");
            }
        }
        char *end;
        split->fraction = strtod(text + length + 1, &end);
        bool ends = *end == '\0' || (*end == ',' && end[1] != '\0');
        if (end == text + length + 1 || !ends || !(split->fraction > 0 && split->fraction <= 1)) {
            return bad_split(whole, "a fraction must be above 0 and at most 1");
        }
        sum += split->fraction;
        if (*end == '\0') {
            break;
        }
        text = end + 1;
    }
    *out_count = count;
    return sum > 1 + 1e-6 ? bad_split(whole, "the fractions add up to more than 1") : SX_OK;
}

/* Cuts the order of `images` images at the rounded cumulative fractions. */
static sx_status cut_splits(const char *whole, struct split *splits, int count, int64_t images)
{
    double cumulative = 0;
    int64_t first = 0;
    for (int i = 0; i < count; i++) {
        struct split *split = &splits[i];
        cumulative += split->fraction;
        split->first = first;
        split->end = (int64_t)(cumulative * (double)images + 0.5);
        split->end = SX_MIN(split->end, images);
        if (split->end == split->first) {
            return sx_error(
                SX_INVALID_ARGUMENT,
                "the split %s gives none of the %lld images to %s; give it a larger fraction",
                whole, (long long)images, split->name);
        }
        first = split->end;
    }
    return SX_OK;
}

/* ---- Order ---- */

static int compare_placed(const void *a, const void *b)
{
    const struct placed *x = a, *y = b;
    if (x->key != y->key) {
        return x->key < y->key ? -1 : 1;
    }
    return strcmp(x->item->name, y->item->name);
}

/* Threefry of the name's hash under the seed. */
static uint64_t order_key(uint64_t seed, const char *name)
{
    uint64_t hash = sx_hash64(name, strlen(name));
    sx_u32x2 key = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    sx_u32x2 bits = sx_threefry2x32(key, (sx_u32x2){(uint32_t)hash, (uint32_t)(hash >> 32)});
    return (uint64_t)bits.a << 32 | bits.b;
}

/* ---- Checking ---- */

/* After each image of a pass over `count`. */
static sx_status tell(const sx_from_images_args *args, int64_t done, int64_t count)
{
    if (args->progress != NULL && (done % PROGRESS_EVERY == 1 || done == count) &&
        !args->progress(args->user, done, count)) {
        return sx_error(SX_CANCELLED, "interrupted; nothing was written to %s", args->out);
    }
    return SX_OK;
}

/* Fills order[0 .. *out_good) with the good images, sorted. Bad ones go to `faults`, and are an
 * error unless they are to be skipped. */
static sx_status check_images(const sx_from_images_args *args, const sx_fileset *files,
                              const sx_class_list *list, struct placed *order, int64_t *out_good,
                              sx_image_faults *faults)
{
    int64_t good = 0;
    sx_scratch scratch;
    sx_image pixels = {.pixels = NULL};
    sx_scratch_init(&scratch);
    sx_status status = SX_OK;
    for (int64_t i = 0; i < list->count && status == SX_OK; i++) {
        const sx_class_item *item = &list->items[i];
        struct placed *placed = &order[good];
        *placed = (struct placed){.key = order_key(args->seed, item->name), .item = item};
        status = sx_image_check(files, item, !args->no_decode, &scratch, &pixels, &placed->info,
                                &placed->bytes);
        if (status == SX_OK) {
            good++;
        } else if (sx_image_is_faulty(status)) {
            sx_image_faults_add(faults, status);
            sx_status_free(status);
            status = SX_OK;
        }
        if (status == SX_OK) {
            status = tell(args, i + 1, list->count);
        }
    }
    sx_scratch_deinit(&scratch);
    sx_image_deinit(&pixels);
    SX_TRY(status);
    sx_image_faults_end(faults);
    if (faults->count > 0 && (!args->skip_corrupt || good == 0)) {
        return sx_error(SX_DATA_LOSS, "%s: %lld of %lld images cannot be decoded%s:%s",
                        args->source, (long long)faults->count, (long long)list->count,
                        good > 0 ? " (--skip-corrupt skips them)" : "", sx_buf_text(&faults->text));
    }
    qsort(order, (size_t)good, sizeof(*order), compare_placed);
    *out_good = good;
    return SX_OK;
}

/* ---- Records ---- */

/* Writes images [first, end) of the order, of `count` in all splits. */
static sx_status write_split(const sx_from_images_args *args, const sx_fileset *files,
                             const sx_class_list *list, const struct placed *order, int64_t count,
                             const struct split *split)
{
    sx_scratch scratch;
    sx_example_writer e;
    sx_buf record;
    sx_scratch_init(&scratch);
    sx_example_writer_init(&e);
    sx_buf_init(&record, 0);
    sx_status status = SX_OK;
    for (int64_t i = split->first; i < split->end && status == SX_OK; i++) {
        const sx_class_item *item = order[i].item;
        sx_bytes image;
        sx_scratch_reset(&scratch);
        SX_TRY_GOTO(status, sx_fileset_read(files, item->index, &scratch, &image), done);
        sx_example_add_bytes(&e, "image/encoded", &image, 1);
        sx_example_add_text(&e, "image/format", sx_image_format_name(order[i].info.format));
        sx_example_add_int(&e, "image/height", order[i].info.height);
        sx_example_add_int(&e, "image/width", order[i].info.width);
        sx_example_add_int(&e, "image/class/label", item->label + args->label_base);
        sx_example_add_text(&e, "image/class/text", list->classes[item->label]);
        sx_example_add_text(&e, "image/filename", sx_path_basename(item->name));
        sx_buf_reset(&record);
        SX_TRY_GOTO(status, sx_example_finish(&e, &record), done);
        SX_TRY_GOTO(status,
                    sx_set_writer_write(split->writer, (sx_bytes){record.data, record.size}), done);
        status = tell(args, i + 1, count);
    }
done:
    sx_scratch_deinit(&scratch);
    sx_example_writer_deinit(&e);
    sx_buf_deinit(&record);
    return status;
}

static sx_status open_split(const sx_from_images_args *args, const struct placed *order,
                            struct split *split)
{
    char *prefix = NULL;
    int shards = args->shards;
    if (shards == 0) {
        int64_t bytes = 0;
        for (int64_t i = split->first; i < split->end; i++) {
            bytes += order[i].bytes;
        }
        shards = sx_default_shards(bytes);
    }
    SX_TRY(args->split == NULL ? sx_path_format(&prefix, "%s", args->out)
                               : sx_path_join(args->out, split->name, &prefix));
    sx_status status =
        sx_set_writer_open(prefix, shards, split->end - split->first, &split->writer);
    sx_free(prefix);
    return status;
}

/* ---- The whole ---- */

sx_status sx_from_images_check(const sx_from_images_args *args)
{
    if (args->shards < 0 || args->shards > SX_MAX_SHARDS) {
        return sx_error(SX_INVALID_ARGUMENT, "shards %d: expected 1 to %d", args->shards,
                        (int)SX_MAX_SHARDS);
    }
    size_t length = strlen(args->out);
    if (length == 0 || (args->split == NULL && args->out[length - 1] == '/')) {
        return sx_error(
            SX_INVALID_ARGUMENT,
            "output \"%s\": expected a prefix of file names, such as data/train, unless a split is "
            "given",
            args->out);
    }
    struct split splits[SX_MAX_SPLITS];
    int count = 0;
    return args->split != NULL ? parse_splits(args->split, splits, &count) : SX_OK;
}

sx_status sx_from_images(const sx_from_images_args *args, sx_buf *text)
{
    struct split splits[SX_MAX_SPLITS] = {{.fraction = 1}};
    int split_count = 1;
    int64_t count = 0;
    sx_fileset *files = NULL;
    sx_class_list list = {.count = 0};
    struct placed *order = NULL;
    sx_image_faults faults;
    sx_image_faults_init(&faults);
    sx_status status = SX_OK;
    SX_TRY_GOTO(status, sx_from_images_check(args), done);
    if (args->split != NULL) {
        SX_TRY_GOTO(status, parse_splits(args->split, splits, &split_count), done);
    }
    SX_TRY_GOTO(status, sx_fileset_open(args->source, 0, args->max_unpacked_bytes, &files), done);
    SX_TRY_GOTO(status,
                sx_class_list_init(sx_fileset_names(files), sx_fileset_count(files),
                                   args->recursive, args->source, &list),
                done);
    order = sx_alloc((size_t)list.count, sizeof(*order));
    if (order == NULL) {
        status = sx_no_memory("reading %s", args->source);
        goto done;
    }
    SX_TRY_GOTO(status, check_images(args, files, &list, order, &count, &faults), done);
    SX_TRY_GOTO(status, cut_splits(args->split, splits, split_count, count), done);
    sx_class_list_describe(&list, args->source, count, &faults, text);

    /* All sets are written before the first is published. */
    for (int i = 0; i < split_count; i++) {
        SX_TRY_GOTO(status, open_split(args, order, &splits[i]), done);
    }
    for (int i = 0; i < split_count; i++) {
        SX_TRY_GOTO(status, write_split(args, files, &list, order, count, &splits[i]), done);
    }
    sx_set_info info = {.label_base = args->label_base,
                        .classes = (const char *const *)list.classes,
                        .class_count = list.class_count,
                        .image_key = "image/encoded",
                        .label_key = "image/class/label"};
    for (int i = 0; i < split_count; i++) {
        SX_TRY_GOTO(status, sx_set_writer_finish(splits[i].writer, &info, text), done);
    }
done:
    for (int i = 0; i < split_count; i++) {
        sx_set_writer_close(splits[i].writer);
    }
    sx_free(order);
    sx_class_list_deinit(&list);
    sx_fileset_close(files);
    sx_image_faults_deinit(&faults);
    return status;
}
