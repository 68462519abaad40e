/* Class folders to record files: images checked, ordered, split, one Example each. */
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

/* An image that is good, and its place in the order. */
struct placed {
    uint64_t key;
    const sx_class_item *item;
    sx_image_info info;
    int64_t bytes;
};

struct job {
    const sx_from_images_args *args;
    sx_fileset *files;
    sx_class_list list;
    struct split splits[SX_MAX_SPLITS];
    int split_count;
    struct placed *order; /* [count] */
    int64_t count;        /* of good images */
    sx_image_faults faults;
    sx_scratch scratch;
    sx_image pixels;
    sx_example_writer example;
    sx_buf record;
};

/* ---- Splits ---- */

static sx_status bad_split(const char *text, const char *why)
{
    return sx_error(SX_INVALID_ARGUMENT,
                    "split \"%s\": %s; expected, for example, train=.8,val=.1,test=.1", text, why);
}

static bool is_set_name(const char *name, size_t length)
{
    size_t good = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-");
    return length > 0 && length < sizeof(((struct split *)0)->name) && good >= length &&
           name[0] != '.';
}

/* One "name=fraction" that begins at *text; moves on behind it. */
static sx_status parse_one(struct job *job, const char **text)
{
    const char *whole = job->args->split;
    size_t length = strcspn(*text, "=,");
    if ((*text)[length] != '=' || !is_set_name(*text, length)) {
        return bad_split(whole, "each part must be NAME=FRACTION");
    }
    if (job->split_count == SX_MAX_SPLITS) {
        return bad_split(whole, "more than 16 parts");
    }
    struct split *split = &job->splits[job->split_count];
    memcpy(split->name, *text, length);
    split->name[length] = '\0';
    for (int i = 0; i < job->split_count; i++) {
        if (strcmp(job->splits[i].name, split->name) == 0) {
            return bad_split(whole, "duplicate name");
        }
    }
    char *end;
    split->fraction = strtod(*text + length + 1, &end);
    bool ends = *end == '\0' || (*end == ',' && end[1] != '\0');
    if (end == *text + length + 1 || !ends || !(split->fraction > 0 && split->fraction <= 1)) {
        return bad_split(whole, "a fraction must be above 0 and at most 1");
    }
    job->split_count++;
    *text = *end == ',' ? end + 1 : end;
    return SX_OK;
}

static sx_status parse_splits(struct job *job)
{
    const char *text = job->args->split;
    if (text == NULL) {
        job->splits[0].fraction = 1;
        job->split_count = 1;
        return SX_OK;
    }
    double sum = 0;
    do {
        SX_TRY(parse_one(job, &text));
        sum += job->splits[job->split_count - 1].fraction;
    } while (*text != '\0');
    return sum > 1 + 1e-6 ? bad_split(job->args->split, "the fractions add up to more than 1")
                          : SX_OK;
}

/* Cuts the order at the rounded cumulative fractions. */
static sx_status cut_splits(struct job *job)
{
    double cumulative = 0;
    int64_t first = 0;
    for (int i = 0; i < job->split_count; i++) {
        struct split *split = &job->splits[i];
        cumulative += split->fraction;
        split->first = first;
        split->end = (int64_t)(cumulative * (double)job->count + 0.5);
        split->end = SX_MIN(split->end, job->count);
        if (split->end == split->first) {
            return sx_error(SX_INVALID_ARGUMENT, "split \"%s\": no image of %lld left for \"%s\"",
                            job->args->split, (long long)job->count, split->name);
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
static uint64_t order_key(const struct job *job, const char *name)
{
    uint64_t seed = job->args->seed, hash = sx_hash64(name, strlen(name));
    sx_u32x2 key = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    sx_u32x2 bits = sx_threefry2x32(key, (sx_u32x2){(uint32_t)hash, (uint32_t)(hash >> 32)});
    return (uint64_t)bits.a << 32 | bits.b;
}

/* ---- Checking ---- */

/* After each image of a pass over `count`. */
static sx_status tell(const struct job *job, int64_t done, int64_t count)
{
    const sx_from_images_args *args = job->args;
    if (args->progress != NULL && (done % PROGRESS_EVERY == 1 || done == count) &&
        !args->progress(args->user, done, count)) {
        return sx_error(SX_CANCELLED, "interrupted; nothing was written to %s", args->out);
    }
    return SX_OK;
}

/* Fills order[0 .. count) with the good images, sorted. */
static sx_status check_images(struct job *job)
{
    job->order = sx_alloc((size_t)job->list.count, sizeof(*job->order));
    if (job->order == NULL) {
        return sx_no_memory("reading %s", job->args->source);
    }
    int64_t good = 0;
    for (int64_t i = 0; i < job->list.count; i++) {
        const sx_class_item *item = &job->list.items[i];
        struct placed *placed = &job->order[good];
        *placed = (struct placed){.key = order_key(job, item->name), .item = item};
        sx_status status = sx_image_check(job->files, item, !job->args->no_decode, &job->scratch,
                                          &job->pixels, &placed->info, &placed->bytes);
        if (status == SX_OK) {
            good++;
        } else if (sx_image_is_faulty(status)) {
            sx_image_faults_add(&job->faults, status);
            sx_status_free(status);
        } else {
            return status;
        }
        SX_TRY(tell(job, i + 1, job->list.count));
    }
    sx_image_faults_end(&job->faults);
    job->count = good;
    qsort(job->order, (size_t)good, sizeof(*job->order), compare_placed);
    if (job->faults.count > 0 && (!job->args->skip_corrupt || good == 0)) {
        return sx_error(SX_DATA_LOSS, "%s: %lld of %lld images cannot be decoded%s:%s",
                        job->args->source, (long long)job->faults.count, (long long)job->list.count,
                        good > 0 ? " (--skip-corrupt skips them)" : "",
                        sx_buf_text(&job->faults.text));
    }
    return SX_OK;
}

/* ---- Records ---- */

static sx_status write_image(struct job *job, struct split *split, const struct placed *placed)
{
    sx_bytes image;
    const sx_class_item *item = placed->item;
    sx_scratch_reset(&job->scratch);
    SX_TRY(sx_fileset_read(job->files, item->index, &job->scratch, &image));
    sx_example_writer *e = &job->example;
    sx_example_add_bytes(e, "image/encoded", &image, 1);
    sx_example_add_text(e, "image/format", sx_image_format_name(placed->info.format));
    sx_example_add_int(e, "image/height", placed->info.height);
    sx_example_add_int(e, "image/width", placed->info.width);
    sx_example_add_int(e, "image/class/label", item->label + job->args->label_base);
    sx_example_add_text(e, "image/class/text", job->list.classes[item->label]);
    sx_example_add_text(e, "image/filename", sx_path_basename(item->name));
    sx_buf_reset(&job->record);
    SX_TRY(sx_example_finish(e, &job->record));
    return sx_set_writer_write(split->writer, (sx_bytes){job->record.data, job->record.size});
}

static sx_status write_split(struct job *job, struct split *split)
{
    for (int64_t i = split->first; i < split->end; i++) {
        SX_TRY(write_image(job, split, &job->order[i]));
        SX_TRY(tell(job, i + 1, job->count));
    }
    return SX_OK;
}

static sx_status open_split(struct job *job, struct split *split)
{
    char *prefix = NULL;
    int shards = job->args->shards;
    if (shards == 0) {
        int64_t bytes = 0;
        for (int64_t i = split->first; i < split->end; i++) {
            bytes += job->order[i].bytes;
        }
        shards = sx_default_shards(bytes);
    }
    SX_TRY(job->args->split == NULL ? sx_path_format(&prefix, "%s", job->args->out)
                                    : sx_path_join(job->args->out, split->name, &prefix));
    sx_status status =
        sx_set_writer_open(prefix, shards, split->end - split->first, &split->writer);
    sx_free(prefix);
    return status;
}

static sx_status write_all(struct job *job, sx_buf *text)
{
    for (int i = 0; i < job->split_count; i++) {
        SX_TRY(open_split(job, &job->splits[i]));
    }
    for (int i = 0; i < job->split_count; i++) {
        SX_TRY(write_split(job, &job->splits[i]));
    }
    sx_set_info info = {.label_base = job->args->label_base,
                        .classes = (const char *const *)job->list.classes,
                        .class_count = job->list.class_count,
                        .image_key = "image/encoded",
                        .label_key = "image/class/label"};
    for (int i = 0; i < job->split_count; i++) {
        SX_TRY(sx_set_writer_finish(job->splits[i].writer, &info, text));
    }
    return SX_OK;
}

/* ---- The whole ---- */

static sx_status check_args(const sx_from_images_args *args)
{
    if (args->shards < 0 || args->shards > SX_MAX_SHARDS) {
        return sx_error(SX_INVALID_ARGUMENT, "shards %d: expected 1 to %d", args->shards,
                        (int)SX_MAX_SHARDS);
    }
    size_t length = strlen(args->out);
    if (length == 0 || (args->split == NULL && args->out[length - 1] == '/')) {
        return sx_error(
            SX_INVALID_ARGUMENT,
            "out \"%s\": expected a file name prefix, such as data/train, unless a split is given",
            args->out);
    }
    return SX_OK;
}

static sx_status run(struct job *job, sx_buf *text)
{
    const sx_from_images_args *args = job->args;
    SX_TRY(check_args(args));
    SX_TRY(parse_splits(job));
    SX_TRY(sx_fileset_open(args->source, 0, args->max_unpacked_bytes, &job->files));
    SX_TRY(sx_class_list_init(sx_fileset_names(job->files), sx_fileset_count(job->files),
                              args->recursive, args->source, &job->list));
    SX_TRY(check_images(job));
    SX_TRY(cut_splits(job));
    sx_buf_printf(text, "%s: %lld images in %d class folders", args->source, (long long)job->count,
                  job->list.class_count);
    sx_class_list_put_skipped(&job->list, text);
    if (job->faults.count > 0) {
        sx_buf_printf(text, "; skipped %lld corrupt image%s:%s", (long long)job->faults.count,
                      job->faults.count == 1 ? "" : "s", sx_buf_text(&job->faults.text));
    }
    sx_buf_putc(text, '\n');
    return write_all(job, text);
}

sx_status sx_from_images(const sx_from_images_args *args, sx_buf *text)
{
    struct job job = {.args = args};
    sx_scratch_init(&job.scratch);
    sx_example_writer_init(&job.example);
    sx_buf_init(&job.record, 0);
    sx_image_faults_init(&job.faults);
    sx_status status = run(&job, text);
    for (int i = 0; i < job.split_count; i++) {
        sx_set_writer_close(job.splits[i].writer);
    }
    sx_free(job.order);
    sx_class_list_deinit(&job.list);
    sx_fileset_close(job.files);
    sx_image_deinit(&job.pixels);
    sx_image_faults_deinit(&job.faults);
    sx_buf_deinit(&job.record);
    sx_example_writer_deinit(&job.example);
    sx_scratch_deinit(&job.scratch);
    return status;
}
