#include "io/path.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <glob.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "io/failpoint.h"
#include "io/file.h"

enum { MAX_PATHS = 1 << 22 }; /* entries in a list */

/* ---- Text ---- */

sx_status sx_path_format(char **out_path, const char *format, ...)
{
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int length = vsnprintf(NULL, 0, format, args);
    va_end(args);
    char *path = length < 0 ? NULL : sx_alloc((size_t)length + 1, 1);
    if (path != NULL) {
        vsnprintf(path, (size_t)length + 1, format, again);
    }
    va_end(again);
    if (path == NULL) {
        return sx_no_memory("for a path");
    }
    *out_path = path;
    return SX_OK;
}

sx_status sx_path_join(const char *dir, const char *name, char **out_path)
{
    size_t length = strlen(dir);
    if (name[0] == '/' || length == 0) {
        return sx_path_format(out_path, "%s", name);
    }
    return sx_path_format(out_path, dir[length - 1] == '/' ? "%s%s" : "%s/%s", dir, name);
}

const char *sx_path_basename(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash == NULL ? path : slash + 1;
}

sx_status sx_path_dirname(const char *path, char **out_dir)
{
    const char *slash = strrchr(path, '/');
    if (slash == NULL) {
        return sx_path_format(out_dir, ".");
    }
    return sx_path_format(out_dir, "%.*s", slash == path ? 1 : (int)(slash - path), path);
}

static bool component_is_safe(const char *name, size_t length)
{
    if (length == 0 || (length == 1 && name[0] == '.') ||
        (length == 2 && name[0] == '.' && name[1] == '.')) {
        return false;
    }
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)name[i];
        if (c < 0x20 || c == 0x7f || c == '\\') {
            return false;
        }
    }
    return true;
}

bool sx_path_is_safe(const char *name, size_t length)
{
    if (length > 4096) {
        return false;
    }
    size_t start = 0;
    for (size_t i = 0; i <= length; i++) {
        if (i == length || name[i] == '/') {
            if (!component_is_safe(name + start, i - start)) {
                return false;
            }
            start = i + 1;
        }
    }
    return true;
}

/* ---- Directories ---- */

bool sx_path_exists(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0;
}

bool sx_path_is_dir(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

/* Creates one level. Another process may create the same directory at the same time. */
static sx_status make_one_dir(const char *path)
{
    if (mkdir(path, 0777) == 0 || (errno == EEXIST && sx_path_is_dir(path))) {
        return SX_OK;
    }
    return sx_errno_status(errno, "make directory", path);
}

sx_status sx_dir_create(const char *path)
{
    if (sx_path_is_dir(path)) {
        return SX_OK;
    }
    char *partial;
    SX_TRY(sx_path_format(&partial, "%s", path));
    sx_status status = SX_OK;
    for (char *slash = strchr(partial + (partial[0] == '/'), '/'); slash != NULL && status == SX_OK;
         slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        status = make_one_dir(partial);
        *slash = '/';
    }
    if (status == SX_OK) {
        status = make_one_dir(partial);
    }
    sx_free(partial);
    return status;
}

sx_status sx_dir_remove(const char *path)
{
    char *roots[] = {(char *)(uintptr_t)path, NULL};
    FTS *tree = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR | FTS_NOSTAT, NULL);
    if (tree == NULL) {
        return sx_errno_status(errno, "remove", path);
    }
    sx_status status = SX_OK;
    for (FTSENT *entry = fts_read(tree); entry != NULL && status == SX_OK; entry = fts_read(tree)) {
        if (entry->fts_info == FTS_D) {
            continue; /* visited again, as FTS_DP, after its contents */
        }
        bool failed = entry->fts_info == FTS_DNR || entry->fts_info == FTS_ERR;
        int error = failed ? entry->fts_errno : remove(entry->fts_accpath) == 0 ? 0 : errno;
        if (error != 0 && error != ENOENT) {
            status = sx_errno_status(error, "remove", entry->fts_path);
        }
    }
    fts_close(tree);
    return status;
}

sx_status sx_dir_sync(const char *path)
{
    sx_status status = SX_OK;
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || sx_failpoint_hit() || fsync(fd) != 0) {
        status = sx_errno_status(errno, "fsync directory", path);
    }
    if (fd >= 0) {
        close(fd);
    }
    return status;
}

/* ---- Lists ---- */

void sx_paths_deinit(sx_paths *paths)
{
    for (size_t i = 0; i < paths->count; i++) {
        sx_free(paths->items[i]);
    }
    sx_free(paths->items);
    *paths = (sx_paths){0};
}

/* Appends a copy; the array doubles when the count is a power of two. */
static sx_status paths_add(sx_paths *paths, const char *path)
{
    if (paths->count >= MAX_PATHS) {
        return sx_error(SX_RESOURCE_EXHAUSTED, "more than %d files", MAX_PATHS);
    }
    if ((paths->count & (paths->count - 1)) == 0) {
        char **items =
            sx_realloc(paths->items, paths->count == 0 ? 1 : 2 * paths->count, sizeof *items);
        if (items == NULL) {
            return sx_no_memory("for a path");
        }
        paths->items = items;
    }
    char *copy = sx_strdup(path);
    if (copy == NULL) {
        return sx_no_memory("for a path");
    }
    paths->items[paths->count++] = copy;
    return SX_OK;
}

static int by_bytes(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void paths_sort(sx_paths *paths, size_t first)
{
    if (paths->count > first) {
        qsort(paths->items + first, paths->count - first, sizeof *paths->items, by_bytes);
    }
}

sx_status sx_dir_list(const char *dir, sx_paths *out_names)
{
    DIR *stream = opendir(dir);
    if (stream == NULL) {
        return sx_errno_status(errno, "list", dir);
    }
    sx_paths names = {0};
    sx_status status = SX_OK;
    errno = 0;
    for (struct dirent *entry = readdir(stream); entry != NULL && status == SX_OK;
         entry = readdir(stream)) {
        if (entry->d_name[0] != '.') {
            status = paths_add(&names, entry->d_name);
        }
        errno = 0;
    }
    if (status == SX_OK && errno != 0) {
        status = sx_errno_status(errno, "list", dir);
    }
    closedir(stream);
    if (status != SX_OK) {
        sx_paths_deinit(&names);
        return status;
    }
    paths_sort(&names, 0);
    *out_names = names;
    return SX_OK;
}

static sx_status glob_one(const char *pattern, sx_paths *paths)
{
    if (sx_path_exists(pattern)) {
        return paths_add(paths, pattern);
    }
    glob_t found = {0};
    int rc = glob(pattern, GLOB_NOSORT, NULL, &found);
    sx_status status = SX_OK;
    if (rc != 0) {
        status = rc == GLOB_NOMATCH
                     ? sx_error(SX_NOT_FOUND, "no file matches '%s'", pattern)
                     : sx_error(SX_RESOURCE_EXHAUSTED, "cannot expand '%s'", pattern);
    }
    size_t first = paths->count;
    for (size_t i = 0; i < found.gl_pathc && status == SX_OK; i++) {
        status = paths_add(paths, found.gl_pathv[i]);
    }
    paths_sort(paths, first);
    globfree(&found);
    return status;
}

sx_status sx_paths_glob(const char *const *patterns, size_t count, sx_paths *out_paths)
{
    sx_paths paths = {0};
    for (size_t i = 0; i < count; i++) {
        sx_status status = glob_one(patterns[i], &paths);
        if (status != SX_OK) {
            sx_paths_deinit(&paths);
            return status;
        }
    }
    *out_paths = paths;
    return SX_OK;
}
