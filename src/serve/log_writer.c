/* See log_writer.h. */
#include "serve/log_writer.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/thread.h"
#include "io/file.h"
#include "io/path.h"

enum {
    MAX_WAITING_BYTES = 64 << 20,
    MAX_FILE_BYTES = 256 << 20,
    MAX_FILE_SECONDS = 3600,
    LOOK_MS = 1000, /* how often files are looked after that nothing is put to */
    SAY_MS = 60000, /* how often a failure is logged */
};

struct entry {
    sx_log_file *file;
    sx_buf bytes;
    struct entry *next;
};

struct sx_log_file {
    sx_log_writer *writer;
    char *path, *suffix;
    int64_t max_bytes, max_ns;
    /* The thread's. */
    int fd; /* -1: none */
    dev_t device;
    ino_t inode;
    uint64_t number;
    int64_t bytes, opened_ns;
    int64_t said_ns;    /* when a failure was logged last; 0: never */
    sx_log_stats stats; /* with the mutex */
    sx_log_file *next;
};

struct sx_log_writer {
    pthread_mutex_t mutex; /* guards the queue, the list of files and their stats */
    pthread_cond_t changed;
    struct entry *first, **last;
    size_t waiting_bytes, max_waiting_bytes;
    sx_log_file *files;
    bool stopping, started;
    pthread_t thread;
};

/* ---- Files; on the writer's thread, or before it knows the file ---- */

static bool is_standard_output(const char *path)
{
    return strcmp(path, "-") == 0;
}

/* Standard output is not opened by its name: it may be a socket, as systemd's journal is, or belong
 * to another user. */
static sx_status open_path(sx_log_file *file, const char *path, int more_flags)
{
    struct stat info;
    const int fd = is_standard_output(path)
                       ? fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0)
                       : open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | more_flags, 0640);
    if (fd < 0 || fstat(fd, &info) != 0) {
        sx_status status = sx_errno_status(errno, "open", path);
        if (fd >= 0) {
            close(fd);
        }
        return status;
    }
    file->fd = fd;
    file->device = info.st_dev;
    file->inode = info.st_ino;
    file->bytes = 0;
    file->opened_ns = sx_now_ns();
    return SX_OK;
}

/* The next of numbered files: those of an earlier process are not touched. */
static sx_status open_numbered(sx_log_file *file)
{
    enum { TRIES = 1000 };
    char date[32];
    struct tm parts;
    const time_t now = (time_t)sx_wall_seconds();
    gmtime_r(&now, &parts);
    strftime(date, sizeof(date), "%Y%m%dT%H%M%SZ", &parts);
    sx_status status = SX_OK;
    for (int i = 0; i < TRIES; i++) {
        char *path = NULL;
        sx_status_free(status);
        SX_TRY(sx_path_format(&path, "%s-%s-%06llu%s", file->path, date,
                              (unsigned long long)++file->number, file->suffix));
        status = open_path(file, path, O_EXCL);
        sx_free(path);
        if (sx_status_code(status) != SX_ALREADY_EXISTS) {
            break;
        }
    }
    return status;
}

static sx_status open_file(sx_log_file *file)
{
    char *folder = NULL;
    SX_TRY(sx_path_dirname(file->path, &folder));
    sx_status status = sx_dir_create(folder);
    sx_free(folder);
    SX_TRY(status);
    return file->suffix != NULL ? open_numbered(file) : open_path(file, file->path, 0);
}

static void close_file(sx_log_file *file)
{
    if (file->fd >= 0) {
        close(file->fd);
        file->fd = -1;
    }
}

/* Whether the file at the path is still the one that is open. */
static bool is_there(const sx_log_file *file)
{
    struct stat info;
    return is_standard_output(file->path) ||
           (stat(file->path, &info) == 0 && info.st_dev == file->device &&
            info.st_ino == file->inode);
}

/* Closes a file that is done with: the next put opens another one. */
static void look_after(sx_log_file *file)
{
    if (file->fd < 0) {
        return;
    }
    const bool is_old = sx_now_ns() - file->opened_ns >= file->max_ns;
    if (file->suffix == NULL ? !is_there(file)
                             : file->bytes >= file->max_bytes || (is_old && file->bytes > 0)) {
        close_file(file);
    }
}

static sx_status write_all(sx_log_file *file, const char *data, size_t size)
{
    while (size > 0) {
        const ssize_t written = write(file->fd, data, size);
        if (written < 0 && errno != EINTR) {
            return sx_errno_status(errno, "write", file->path);
        }
        if (written > 0) {
            data += written;
            size -= (size_t)written;
            file->bytes += written;
        }
    }
    return SX_OK;
}

/* A record of which only a part was written would hide what follows: it is cut off again. */
static sx_status append(sx_log_file *file, const sx_buf *bytes)
{
    look_after(file);
    if (file->fd < 0) {
        SX_TRY(open_file(file));
    }
    const off_t before = lseek(file->fd, 0, SEEK_END);
    sx_status status = write_all(file, bytes->data, bytes->size);
    if (status != SX_OK && before >= 0 && ftruncate(file->fd, before) != 0) {
        close_file(file);
    }
    return status;
}

static void say(sx_log_file *file, sx_status status)
{
    const int64_t now = sx_now_ns();
    if (file->said_ns == 0 || now - file->said_ns >= SAY_MS * (int64_t)1000000) {
        sx_log(SX_LOG_WARN, "a log is not written: %s", sx_status_message(status));
        file->said_ns = now;
    }
    sx_status_free(status);
}

/* ---- The thread ---- */

/* Takes all that waits; waits for it a second at most. */
static struct entry *take_entries(sx_log_writer *writer, bool *out_stopping)
{
    const struct timespec until = sx_timespec_of(sx_now_ns() + LOOK_MS * (int64_t)1000000);
    int error = 0;
    pthread_mutex_lock(&writer->mutex);
    while (writer->first == NULL && !writer->stopping && error == 0) {
        error = pthread_cond_clockwait(&writer->changed, &writer->mutex, CLOCK_MONOTONIC, &until);
    }
    struct entry *entries = writer->first;
    writer->first = NULL;
    writer->last = &writer->first;
    *out_stopping = writer->stopping;
    pthread_mutex_unlock(&writer->mutex);
    return entries;
}

static void *run_writer(void *user)
{
    sx_log_writer *writer = user;
    bool stopping = false;
    while (!stopping) {
        struct entry *next;
        for (struct entry *entry = take_entries(writer, &stopping); entry != NULL; entry = next) {
            sx_log_file *file = entry->file;
            sx_status status = append(file, &entry->bytes);
            next = entry->next;
            pthread_mutex_lock(&writer->mutex);
            writer->waiting_bytes -= entry->bytes.capacity;
            file->stats.written += status == SX_OK;
            file->stats.failed += status != SX_OK;
            pthread_mutex_unlock(&writer->mutex);
            if (status != SX_OK) {
                say(file, status);
            }
            sx_buf_deinit(&entry->bytes);
            sx_free(entry);
        }
        pthread_mutex_lock(&writer->mutex);
        sx_log_file *files = writer->files; /* are only added, in front */
        pthread_mutex_unlock(&writer->mutex);
        for (sx_log_file *file = files; file != NULL; file = file->next) {
            look_after(file);
        }
    }
    return NULL;
}

/* ---- Creation and destruction ---- */

sx_status sx_log_writer_create(size_t max_waiting_bytes, sx_log_writer **out)
{
    sx_log_writer *writer = sx_alloc(1, sizeof(*writer));
    if (writer == NULL) {
        return sx_no_memory("for logs");
    }
    writer->last = &writer->first;
    writer->max_waiting_bytes = max_waiting_bytes > 0 ? max_waiting_bytes : MAX_WAITING_BYTES;
    pthread_mutex_init(&writer->mutex, NULL);
    pthread_cond_init(&writer->changed, NULL);
    const int error = sx_thread_create(&writer->thread, NULL, run_writer, writer);
    writer->started = error == 0;
    if (error != 0) {
        sx_log_writer_destroy(writer);
        return sx_error(SX_RESOURCE_EXHAUSTED, "cannot start a thread for logs: %s",
                        strerror(error));
    }
    *out = writer;
    return SX_OK;
}

static void free_file(sx_log_file *file)
{
    close_file(file);
    sx_free(file->path);
    sx_free(file->suffix);
    sx_free(file);
}

void sx_log_writer_destroy(sx_log_writer *writer)
{
    if (writer == NULL) {
        return;
    }
    if (writer->started) {
        pthread_mutex_lock(&writer->mutex);
        writer->stopping = true;
        pthread_cond_signal(&writer->changed);
        pthread_mutex_unlock(&writer->mutex);
        pthread_join(writer->thread, NULL);
    }
    sx_log_file *next;
    for (sx_log_file *file = writer->files; file != NULL; file = next) {
        next = file->next;
        free_file(file);
    }
    pthread_cond_destroy(&writer->changed);
    pthread_mutex_destroy(&writer->mutex);
    sx_free(writer);
}

sx_status sx_log_writer_add(sx_log_writer *writer, const sx_log_file_config *config,
                            sx_log_file **out)
{
    sx_log_file *file = sx_alloc(1, sizeof(*file));
    if (file == NULL) {
        return sx_no_memory("for a log");
    }
    file->writer = writer;
    file->fd = -1;
    file->max_bytes = config->max_bytes > 0 ? config->max_bytes : MAX_FILE_BYTES;
    const double seconds = config->max_seconds > 0 ? config->max_seconds : MAX_FILE_SECONDS;
    file->max_ns = (int64_t)(SX_MIN(seconds, 1e9) * 1e9);
    file->path = sx_strdup(config->path);
    file->suffix = config->suffix != NULL ? sx_strdup(config->suffix) : NULL;
    sx_status status = file->path == NULL || (config->suffix != NULL && file->suffix == NULL)
                           ? sx_no_memory("for a log")
                           : open_file(file);
    if (status != SX_OK) {
        free_file(file);
        return status;
    }
    pthread_mutex_lock(&writer->mutex);
    file->next = writer->files;
    writer->files = file;
    pthread_mutex_unlock(&writer->mutex);
    *out = file;
    return SX_OK;
}

/* ---- Putting ---- */

void sx_log_file_put(sx_log_file *file, sx_buf *bytes)
{
    sx_log_writer *writer = file->writer;
    struct entry *entry = bytes->failed ? NULL : sx_alloc(1, sizeof(*entry));
    pthread_mutex_lock(&writer->mutex);
    const bool fits = entry != NULL && bytes->capacity <= writer->max_waiting_bytes &&
                      writer->waiting_bytes <= writer->max_waiting_bytes - bytes->capacity;
    if (fits) {
        *entry = (struct entry){.file = file, .bytes = *bytes};
        writer->waiting_bytes += bytes->capacity;
        *writer->last = entry;
        writer->last = &entry->next;
        pthread_cond_signal(&writer->changed);
    } else {
        file->stats.dropped++;
    }
    pthread_mutex_unlock(&writer->mutex);
    if (fits) {
        sx_buf_init(bytes, bytes->max_bytes);
    } else {
        sx_free(entry);
        sx_buf_deinit(bytes);
    }
}

sx_log_stats sx_log_file_stats(sx_log_file *file)
{
    pthread_mutex_lock(&file->writer->mutex);
    const sx_log_stats stats = file->stats;
    pthread_mutex_unlock(&file->writer->mutex);
    return stats;
}
