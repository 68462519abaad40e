/* See backup.h. */
#include "train/backup.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/log.h"
#include "base/memory.h"
#include "io/file.h"
#include "io/path.h"

static sx_status copy_path(const char *dir, const char *name, char **out_path)
{
    char *copies = NULL;
    SX_TRY(sx_path_join(dir, SX_BACKUP_DIR, &copies));
    sx_status status = sx_path_join(copies, sx_path_basename(name), out_path);
    sx_free(copies);
    return status;
}

static void warn(const sx_backup_file *file, const char *format, const char *a, const char *b)
{
    sx_buf text;
    sx_buf_init(&text, 1 << 16);
    sx_buf_printf(&text, format, a, b);
    if (file->warn != NULL) {
        file->warn(file->warn_user, sx_buf_text(&text));
    } else {
        sx_log(SX_LOG_WARN, "%s", sx_buf_text(&text));
    }
    sx_buf_deinit(&text);
}

/* ---- Reading ---- */

static sx_status read_checked(const sx_backup_file *file, const char *path, char **out_text,
                              size_t *out_size)
{
    struct stat info;
    if (stat(path, &info) == 0 && info.st_size > (off_t)file->max_bytes) {
        return sx_error(SX_DATA_LOSS, "%s: the file has %lld bytes, expected at most %zu", path,
                        (long long)info.st_size, file->max_bytes);
    }
    SX_TRY(sx_file_read(path, file->max_bytes, out_text, out_size));
    sx_status status = *out_size == 0 ? sx_error(SX_DATA_LOSS, "the file is empty")
                                      : file->check(file->check_user, *out_text, *out_size);
    if (status != SX_OK) {
        sx_free(*out_text);
        *out_text = NULL;
    }
    return sx_status_annotate(status, __FILE__, __LINE__, "%s", path);
}

/* INVALID_ARGUMENT: not a regular file. */
static bool is_damage(sx_status status)
{
    sx_code code = sx_status_code(status);
    return code == SX_NOT_FOUND || code == SX_DATA_LOSS || code == SX_INVALID_ARGUMENT;
}

/* *out_fault: what is wrong with the file, if the text is the copy's; else OK. */
static sx_status read_either(const sx_backup_file *file, char **out_text, size_t *out_size,
                             sx_status *out_fault)
{
    char *path = NULL, *copy = NULL;
    *out_fault = SX_OK;
    sx_status status = sx_path_join(file->dir, file->name, &path);
    SX_TRY_GOTO(status, status, done);
    SX_TRY_GOTO(status, copy_path(file->dir, file->name, &copy), done);
    status = read_checked(file, path, out_text, out_size);
    if (!is_damage(status)) {
        goto done;
    }
    sx_status second = read_checked(file, copy, out_text, out_size);
    if (second == SX_OK) {
        *out_fault = status;
        status = SX_OK;
    } else {
        /* A copy that could not be read, for lack of memory or permission, may be intact. */
        sx_code code = sx_status_code(second);
        if (is_damage(second)) {
            bool missing = code == SX_NOT_FOUND && sx_status_code(status) == SX_NOT_FOUND;
            code = missing ? SX_NOT_FOUND : SX_DATA_LOSS;
        }
        sx_status both = sx_error(code, "%s; its copy: %s", sx_status_message(status),
                                  sx_status_message(second));
        sx_status_free(status);
        sx_status_free(second);
        status = both;
    }
done:
    sx_free(path);
    sx_free(copy);
    return status;
}

sx_status sx_backup_read(const sx_backup_file *file, char **out_text, size_t *out_size)
{
    sx_status fault;
    SX_TRY(read_either(file, out_text, out_size, &fault));
    if (fault != SX_OK) {
        warn(file, "%s; using its copy in %s", sx_status_message(fault), SX_BACKUP_DIR);
        sx_status_free(fault);
    }
    return SX_OK;
}

bool sx_backup_exists(const char *dir, const char *name)
{
    char *path = NULL;
    sx_status status = copy_path(dir, name, &path);
    bool exists = status == SX_OK && sx_path_exists(path);
    sx_status_free(status);
    sx_free(path);
    return exists;
}

/* ---- Writing ---- */

sx_status sx_backup_make_dir(const char *dir)
{
    char *path = NULL;
    SX_TRY(sx_path_join(dir, SX_BACKUP_DIR, &path));
    sx_status status = sx_dir_create(path);
    sx_free(path);
    return status;
}

static sx_status add(sx_commit *commit, const char *path, const char *text, size_t size)
{
    sx_commit_file *file = NULL;
    SX_TRY(sx_commit_add(commit, path, &file));
    return sx_commit_write(file, text, size);
}

sx_status sx_backup_add_file(sx_commit *commit, const char *dir, const char *name, const char *text,
                             size_t size)
{
    char *path = NULL;
    SX_TRY(sx_path_join(dir, name, &path));
    sx_status status = add(commit, path, text, size);
    sx_free(path);
    return status;
}

sx_status sx_backup_add_copy(sx_commit *commit, const char *dir, const char *name, const char *text,
                             size_t size)
{
    char *path = NULL;
    SX_TRY(copy_path(dir, name, &path));
    sx_status status = add(commit, path, text, size);
    sx_free(path);
    return status;
}

static bool holds(const char *path, size_t max_bytes, const char *text, size_t size)
{
    char *there = NULL;
    size_t n = 0;
    sx_status status = sx_file_read(path, max_bytes, &there, &n);
    bool same = status == SX_OK && n == size && memcmp(there, text, size) == 0;
    sx_status_free(status);
    sx_free(there);
    return same;
}

sx_status sx_backup_repair(const sx_backup_file *file)
{
    char *path = NULL, *folder = NULL, *copy = NULL, *text = NULL;
    size_t size = 0;
    sx_status fault = SX_OK, status;
    SX_TRY_GOTO(status, sx_path_join(file->dir, file->name, &path), done);
    SX_TRY_GOTO(status, copy_path(file->dir, file->name, &copy), done);
    SX_TRY_GOTO(status, read_either(file, &text, &size, &fault), done);
    if (fault != SX_OK) {
        sx_status_free(fault);
        SX_TRY_GOTO(status, sx_path_dirname(path, &folder), done);
        SX_TRY_GOTO(status, sx_dir_create(folder), done); /* graphs/ may be lost as a whole */
        SX_TRY_GOTO(status, sx_commit_bytes(path, text, size), done);
        warn(file, "%s has been restored from its copy in %s", path, SX_BACKUP_DIR);
    } else if (!holds(copy, file->max_bytes, text, size)) {
        SX_TRY_GOTO(status, sx_backup_make_dir(file->dir), done);
        status = sx_commit_bytes(copy, text, size);
    }
done:
    sx_free(text);
    sx_free(copy);
    sx_free(folder);
    sx_free(path);
    return status;
}

sx_status sx_backup_delete(const char *dir, const char *const *names, size_t n)
{
    char *copies = NULL;
    SX_TRY(sx_path_join(dir, SX_BACKUP_DIR, &copies));
    sx_status status = sx_path_is_dir(copies) ? sx_commit_sweep(copies) : SX_OK;
    for (size_t i = 0; i < n && status == SX_OK; i++) {
        char *path = NULL;
        status = copy_path(dir, names[i], &path);
        if (status == SX_OK) {
            status = sx_dir_remove(path);
        }
        sx_free(path);
    }
    if (status == SX_OK) {
        (void)rmdir(copies); /* fails if it holds files that are not the run's */
    }
    sx_free(copies);
    return status;
}
