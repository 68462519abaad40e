/* See image_check.h. */
#include "data/image_check.h"

#include <stdatomic.h>
#include <string.h>

#include "base/checked.h"
#include "base/memory.h"
#include "base/pool.h"
#include "image/decode.h"

enum { NAMED_FAULTS = 20 };

sx_status sx_image_check(const sx_fileset *files, const sx_class_item *item, bool decode,
                         sx_scratch *scratch, sx_image *pixels, sx_image_info *out_info,
                         int64_t *out_bytes)
{
    sx_bytes image;
    sx_scratch_reset(scratch);
    sx_status status = sx_fileset_read(files, item->index, scratch, &image);
    if (sx_status_code(status) == SX_DATA_LOSS) { /* an I/O error: the image may be good */
        sx_status unread = sx_error(SX_UNKNOWN, "%s", sx_status_message(status));
        sx_status_free(status);
        return unread;
    }
    SX_TRY(status);
    *out_bytes = (int64_t)image.size;
    status = sx_image_probe(image, out_info);
    sx_image_format format = out_info->format;
    if (status == SX_OK && format != SX_FORMAT_JPEG && format != SX_FORMAT_PNG) {
        status = sx_error(SX_INVALID_ARGUMENT, "unsupported format %s; expected JPEG or PNG",
                          sx_image_format_name(format));
    }
    if (status == SX_OK) {
        status =
            sx_image_limits_check(&sx_image_limits_default, out_info->height, out_info->width, 0);
    }
    if (status == SX_OK && decode) {
        status = sx_image_decode(image, NULL, pixels);
    }
    return status == SX_OK ? SX_OK
                           : sx_status_annotate(status, __FILE__, __LINE__, "%s/%s",
                                                sx_fileset_path(files), item->name);
}

bool sx_image_is_faulty(sx_status status)
{
    sx_code code = sx_status_code(status);
    return code == SX_INVALID_ARGUMENT || code == SX_DATA_LOSS || code == SX_UNIMPLEMENTED ||
           code == SX_NOT_FOUND ||
           (code == SX_RESOURCE_EXHAUSTED && !sx_status_is_no_memory(status));
}

/* ---- Faults ---- */

void sx_image_faults_init(sx_image_faults *faults)
{
    faults->count = 0;
    sx_buf_init(&faults->text, 1 << 20);
}

void sx_image_faults_deinit(sx_image_faults *faults)
{
    sx_buf_deinit(&faults->text);
}

void sx_image_faults_add(sx_image_faults *faults, sx_status status)
{
    if (faults->count++ < NAMED_FAULTS) {
        sx_buf_printf(&faults->text, "\n  %s", sx_status_message(status));
    }
}

void sx_image_faults_end(sx_image_faults *faults)
{
    if (faults->count > NAMED_FAULTS) {
        sx_buf_printf(&faults->text, "\n  and %lld more",
                      (long long)(faults->count - NAMED_FAULTS));
    }
}

/* ---- A whole list ---- */

struct checking {
    const sx_class_list *list;
    const sx_fileset *files;
    sx_status *results; /* [list->count] */
    atomic_llong next;
    atomic_bool failed; /* reading failed: the others stop */
};

static void check_some(void *user, int worker)
{
    (void)worker;
    struct checking *c = user;
    sx_scratch scratch;
    sx_image pixels = {0};
    sx_image_info info;
    int64_t bytes;
    sx_scratch_init(&scratch);
    for (int64_t i = atomic_fetch_add(&c->next, 1); i < c->list->count && !atomic_load(&c->failed);
         i = atomic_fetch_add(&c->next, 1)) {
        c->results[i] =
            sx_image_check(c->files, &c->list->items[i], true, &scratch, &pixels, &info, &bytes);
        if (c->results[i] != SX_OK && !sx_image_is_faulty(c->results[i])) {
            atomic_store(&c->failed, true);
        }
    }
    sx_image_deinit(&pixels);
    sx_scratch_deinit(&scratch);
}

sx_status sx_class_list_drop_faulty(sx_class_list *list, const sx_fileset *files,
                                    sx_image_faults *faults)
{
    sx_pool *pool = NULL;
    struct checking c = {.list = list, .files = files};
    c.results = sx_alloc((size_t)list->count, sizeof(*c.results)); /* zeros: SX_OK */
    if (c.results == NULL) {
        return sx_no_memory("checking %s", sx_fileset_path(files));
    }
    sx_status failure = sx_pool_create((int)SX_MIN(list->count, sx_cpu_count()), &pool);
    if (failure == SX_OK) {
        sx_pool_run(pool, check_some, &c);
        sx_pool_destroy(pool);
    }
    int64_t good = 0, count = list->count;
    for (int64_t i = 0; i < count; i++) {
        sx_status status = c.results[i];
        if (status == SX_OK) {
            list->items[good++] = list->items[i];
        } else if (failure == SX_OK && !sx_image_is_faulty(status)) {
            failure = status;
        } else {
            sx_image_faults_add(faults, status);
            sx_status_free(status);
        }
    }
    sx_free(c.results);
    SX_TRY(failure);
    list->count = good;
    sx_image_faults_end(faults);
    return good > 0
               ? SX_OK
               : sx_error(SX_DATA_LOSS, "%s: none of %lld images can be decoded:%s",
                          sx_fileset_path(files), (long long)count, sx_buf_text(&faults->text));
}

void sx_class_list_describe(const sx_class_list *list, const char *where, int64_t images,
                            const sx_image_faults *faults, sx_buf *out)
{
    sx_buf_printf(out, "%s: %lld image%s in %d class folder%s", where, (long long)images,
                  images == 1 ? "" : "s", list->class_count, list->class_count == 1 ? "" : "s");
    sx_class_list_put_skipped(list, out);
    if (faults->count > 0) {
        sx_buf_printf(out, "; skipped %lld corrupt image%s:%s", (long long)faults->count,
                      faults->count == 1 ? "" : "s", sx_buf_text(&faults->text));
    }
    sx_buf_putc(out, '\n');
}
