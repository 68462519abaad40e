/* Data sets from the network: `sextant data fetch`. */
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/memory.h"
#include "base/nearest.h"
#include "data/prepare.h"
#include "data/sniff.h"
#include "io/archive.h"
#include "io/commit.h"
#include "io/fetch.h"
#include "io/path.h"

enum { MAX_FILES = 4 };

#define MNIST "https://storage.googleapis.com/cvdf-datasets/mnist/"

/* One row per named set. The SHA-256 is given only if its publisher states one. */
static const struct named_set {
    const char *name;
    struct {
        const char *url, *sha256;
    } files[MAX_FILES];
} named_sets[] = {
    {"flowers",
     {{"https://storage.googleapis.com/download.tensorflow.org/example_images/flower_photos.tgz",
       "4c54ace7911aaffe13a365c34f650e71dd5bf1be0a58b464e5a7183e3e595d9c"}}},
    {"mnist",
     {{MNIST "train-images-idx3-ubyte.gz",
       "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609"},
      {MNIST "train-labels-idx1-ubyte.gz",
       "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c"},
      {MNIST "t10k-images-idx3-ubyte.gz",
       "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6"},
      {MNIST "t10k-labels-idx1-ubyte.gz",
       "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6"}}},
    {"catsdogs",
     {{"https://storage.googleapis.com/mledu-datasets/cats_and_dogs_filtered.zip", NULL}}},
};

struct fetching {
    const sx_fetch_set_args *args;
    sx_buf *text;
};

static bool forward_fetch(void *user, uint64_t done, uint64_t total)
{
    const sx_fetch_set_args *args = user;
    return args->progress == NULL || args->progress(args->user, (int64_t)done, (int64_t)total);
}

static bool forward_unpack(void *user, uint64_t members, uint64_t bytes)
{
    (void)members;
    const sx_fetch_set_args *args = user;
    return args->progress == NULL || args->progress(args->user, (int64_t)bytes, 0);
}

/* The file name at the end of a URL, without what follows '?' or '#'. */
static sx_status name_of_url(const char *url, char out[256])
{
    size_t end = strcspn(url, "?#"), begin = end;
    while (begin > 0 && url[begin - 1] != '/') {
        begin--;
    }
    if (begin == end || end - begin >= 256 || !sx_path_is_safe(url + begin, end - begin) ||
        url[begin] == '.') {
        return sx_error(SX_INVALID_ARGUMENT, "%s: URL has no file name", url);
    }
    memcpy(out, url + begin, end - begin);
    out[end - begin] = '\0';
    return SX_OK;
}

static sx_status unpack(struct fetching *f, const char *archive, const char *done)
{
    sx_status status =
        sx_archive_unpack(archive, f->args->dir, NULL, forward_unpack, (void *)(uintptr_t)f->args);
    sx_code code = sx_status_code(status);
    if (code == SX_DATA_LOSS || code == SX_INVALID_ARGUMENT) {
        unlink(archive); /* the next call downloads it again */
    }
    SX_TRY(status);
    SX_TRY(sx_commit_bytes(done, "unpacked\n", 9));
    sx_buf_printf(f->text, "unpacked %s into %s\n", sx_path_basename(archive), f->args->dir);
    return SX_OK;
}

/* Archives wait in <dir>/.sextant and are unpacked into <dir>; other files move there. */
static sx_status place(struct fetching *f, const char *name, const char *path, const char *done)
{
    sx_file_kind kind;
    SX_TRY(sx_sniff_file(path, &kind));
    if (kind == SX_FILE_ARCHIVE) {
        return unpack(f, path, done);
    }
    char *final = NULL;
    SX_TRY(sx_path_join(f->args->dir, name, &final));
    sx_status status = SX_OK;
    if (rename(path, final) != 0) {
        status = sx_error(SX_UNKNOWN, "cannot move %s to %s", path, final);
    } else {
        sx_buf_printf(f->text, "fetched %s\n", final);
    }
    sx_free(final);
    return status;
}

/* Whether a file from an earlier call has this checksum; true without one. */
static sx_status has_sha256(const char *path, const char *sha256, bool *out_same, char hex[65])
{
    *out_same = true;
    if (sha256 != NULL) {
        SX_TRY(sx_file_sha256(path, hex));
        *out_same = strcasecmp(hex, sha256) == 0;
    }
    return SX_OK;
}

static sx_status fetch_one(struct fetching *f, const char *url, const char *sha256)
{
    char name[256];
    char *path = NULL, *done = NULL, *final = NULL;
    const sx_fetch_set_args *args = f->args;
    sx_status status;
    char hex[65] = "";
    bool same = true;
    SX_TRY(name_of_url(url, name));
    SX_TRY_GOTO(status, sx_path_format(&path, "%s/.sextant/%s", args->dir, name), out);
    SX_TRY_GOTO(status, sx_path_format(&done, "%s/.sextant/%s.done", args->dir, name), out);
    SX_TRY_GOTO(status, sx_path_join(args->dir, name, &final), out);
    if (sx_path_exists(final)) {
        SX_TRY_GOTO(status, has_sha256(final, sha256, &same, hex), out);
        if (!same) {
            status = sx_error(SX_DATA_LOSS,
                              "%s already exists, with SHA-256 %s, expected %s; remove it to "
                              "download it again",
                              final, hex, sha256);
            goto out;
        }
    }
    if (sx_path_exists(path)) {
        SX_TRY_GOTO(status, has_sha256(path, sha256, &same, hex), out);
        if (!same) { /* whatever was unpacked came from another archive */
            unlink(path);
            unlink(done);
        }
    }
    if (sx_path_exists(done) || sx_path_exists(final)) {
        sx_buf_printf(f->text, "%s already exists\n", name);
        goto out;
    }
    if (!sx_path_exists(path)) {
        sx_fetch_request request = {.url = url,
                                    .path = path,
                                    .sha256 = sha256,
                                    .progress = forward_fetch,
                                    .user = (void *)(uintptr_t)args};
        SX_TRY_GOTO(status, sx_fetch(&request), out);
    }
    status = place(f, name, path, done);
out:
    sx_free(final);
    sx_free(done);
    sx_free(path);
    return status;
}

static sx_status unknown_set(const char *name)
{
    const char *names[SX_COUNT(named_sets)];
    sx_buf near;
    sx_buf_init(&near, 4096);
    for (size_t i = 0; i < SX_COUNT(named_sets); i++) {
        names[i] = named_sets[i].name;
    }
    int found = sx_nearest_names(name, names, SX_COUNT(named_sets), &near);
    sx_status status = sx_error(
        SX_NOT_FOUND,
        "unknown data set \"%s\"; expected flowers, mnist, catsdogs or an http, https or "
        "file URL%s%s%s",
        name, found > 0 ? "; did you mean " : "", sx_buf_text(&near), found > 0 ? "?" : "");
    sx_buf_deinit(&near);
    return status;
}

sx_status sx_fetch_set(const sx_fetch_set_args *args, sx_buf *text)
{
    struct fetching f = {args, text};
    if (strstr(args->name, "://") != NULL) {
        return fetch_one(&f, args->name, args->sha256);
    }
    for (size_t i = 0; i < SX_COUNT(named_sets); i++) {
        const struct named_set *set = &named_sets[i];
        if (strcmp(set->name, args->name) != 0) {
            continue;
        }
        for (size_t k = 0; k < MAX_FILES && set->files[k].url != NULL; k++) {
            SX_TRY(fetch_one(&f, set->files[k].url, set->files[k].sha256));
        }
        return SX_OK;
    }
    return unknown_set(args->name);
}
