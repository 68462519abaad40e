#include "model_file.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <poll.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/args.h"
#include "base/buffer.h"
#include "base/checked.h"
#include "base/memory.h"
#include "io/file.h"
#include "io/path.h"
#include "io/user_cache.h"
#include "model_guard.h"

extern char **environ;

enum { MAX_ARGUMENTS = 32, MAX_OUTPUT = 64 << 20, HASH_BYTES = 32 };

static const char *const flags[] = {"-std=c11",
                                    "-D_GNU_SOURCE",
                                    "-O1",
                                    "-g",
                                    "-fPIC",
                                    "-Wall",
                                    "-Werror=implicit-function-declaration"};

bool sx_model_file_is(const char *name)
{
    size_t size = strlen(name);
    return strchr(name, '/') != NULL || (size > 2 && strcmp(name + size - 2, ".c") == 0);
}

/* --- running the compiler -------------------------------------------------------------------- */

typedef struct command_line {
    const char *words[MAX_ARGUMENTS + 1]; /* NULL-terminated */
    int count;
} command_line;

static void add(command_line *line, const char *word)
{
    if (line->count < MAX_ARGUMENTS) {
        line->words[line->count++] = word;
    }
}

/* Reads both pipes until their ends. */
static sx_status drain(int fds[2], sx_buf *bufs[2])
{
    struct pollfd polled[2] = {{fds[0], POLLIN, 0}, {fds[1], POLLIN, 0}};
    int open_count = 2;
    char bytes[65536];
    while (open_count > 0) {
        if (poll(polled, 2, -1) < 0 && errno != EINTR) {
            return sx_error(SX_UNKNOWN, "cannot read the output of the compiler: %s",
                            strerror(errno));
        }
        for (int i = 0; i < 2; i++) {
            if (polled[i].fd < 0 || polled[i].revents == 0) {
                continue;
            }
            ssize_t n = read(polled[i].fd, bytes, sizeof(bytes));
            if (n > 0) {
                sx_buf_append(bufs[i], bytes, (size_t)n);
            } else if (n == 0 || errno != EINTR) {
                polled[i].fd = -1;
                open_count--;
            }
        }
    }
    return SX_OK;
}

/* Starts the words with stdout and stderr in two pipes. */
static sx_status spawn(const command_line *line, int out[2], int err[2], pid_t *out_child)
{
    posix_spawn_file_actions_t actions;
    if (posix_spawn_file_actions_init(&actions) != 0) {
        return sx_error(SX_RESOURCE_EXHAUSTED, "out of memory");
    }
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", 0, 0);
    posix_spawn_file_actions_adddup2(&actions, out[1], 1);
    posix_spawn_file_actions_adddup2(&actions, err[1], 2);
    int error = posix_spawnp(out_child, line->words[0], &actions, NULL,
                             (char *const *)(uintptr_t)line->words, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (error == ENOENT) {
        return sx_error(SX_NOT_FOUND, "no C compiler: %s not found; install one or set CC",
                        line->words[0]);
    }
    return error == 0
               ? SX_OK
               : sx_error(SX_UNKNOWN, "cannot start %s: %s", line->words[0], strerror(error));
}

static void close_pair(int fds[2])
{
    for (int i = 0; i < 2; i++) {
        if (fds[i] >= 0) {
            close(fds[i]);
        }
        fds[i] = -1;
    }
}

static sx_status run_piped(const command_line *line, int out[2], int err[2], sx_buf *bufs[2],
                           bool *out_succeeded)
{
    pid_t child;
    int wait_status = 0;
    SX_TRY(spawn(line, out, err, &child));
    close(out[1]);
    close(err[1]);
    out[1] = err[1] = -1;
    sx_status status = drain((int[2]){out[0], err[0]}, bufs);
    while (waitpid(child, &wait_status, 0) < 0 && errno == EINTR) {
    }
    *out_succeeded = WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == 0;
    return status;
}

/* Runs the words; what they print goes to the two buffers. */
static sx_status run_compiler(const command_line *line, sx_buf *out_text, sx_buf *err_text,
                              bool *out_succeeded)
{
    int out[2] = {-1, -1}, err[2] = {-1, -1};
    sx_status status = SX_OK;
    if (pipe2(out, O_CLOEXEC) != 0 || pipe2(err, O_CLOEXEC) != 0) {
        status = sx_error(SX_RESOURCE_EXHAUSTED, "cannot make a pipe: %s", strerror(errno));
    }
    if (status == SX_OK) {
        status = run_piped(line, out, err, (sx_buf *[2]){out_text, err_text}, out_succeeded);
    }
    close_pair(out);
    close_pair(err);
    return status;
}

/* --- where things are ------------------------------------------------------------------------ */

/* The folder of sextant/model.h: $SEXTANT_INCLUDE, beside an installed program, in the tree. */
static sx_status find_headers(sx_arena *arena, const char **out_dir)
{
    static const char *const beside[] = {"../include", "../../include", "include"};
    char program[4096];
    ssize_t size = readlink("/proc/self/exe", program, sizeof(program) - 1);
    program[SX_MAX(size, 0)] = '\0';
    char *slash = strrchr(program, '/');
    int folder = slash != NULL ? (int)(slash - program) : 0;
    const char *named = getenv("SEXTANT_INCLUDE");
    for (size_t i = 0; i < SX_COUNT(beside) + 1; i++) {
        const char *dir =
            i == 0 ? named : sx_arena_printf(arena, "%.*s/%s", folder, program, beside[i - 1]);
        const char *header = dir != NULL ? sx_arena_printf(arena, "%s/sextant/model.h", dir) : NULL;
        if (header != NULL && sx_path_exists(header)) {
            *out_dir = dir;
            return SX_OK;
        }
    }
    return sx_error(
        SX_NOT_FOUND,
        "cannot find the header sextant/model.h near %s; set SEXTANT_INCLUDE to the directory that "
        "contains sextant/",
        program);
}

static sx_status cache_dir(sx_arena *arena, const char **out_dir)
{
    char *dir = NULL;
    sx_status status = sx_user_cache("models", &dir);
    const char *copy = sx_arena_strdup(arena, status == SX_OK ? dir : "/tmp/.cache/sextant/models");
    sx_status_free(status);
    sx_free(dir);
    if (copy == NULL) {
        return sx_error(SX_RESOURCE_EXHAUSTED, "out of memory");
    }
    *out_dir = copy;
    return sx_dir_create(copy);
}

/* --- from a file to a library ---------------------------------------------------------------- */

typedef struct build {
    const char *path, *compiler, *headers;
    bool color;
    sx_arena arena;
    sx_buf out, err;
} build;

static void begin_line(const build *b, command_line *line)
{
    *line = (command_line){.count = 0};
    add(line, b->compiler);
    for (size_t i = 0; i < SX_COUNT(flags); i++) {
        add(line, flags[i]);
    }
    add(line, b->color ? "-fdiagnostics-color=always" : "-fdiagnostics-color=never");
    add(line, "-I");
    add(line, b->headers);
}

/* Runs the line; a failure is the compiler's own words. */
static sx_status compile(build *b, command_line *line)
{
    bool succeeded = false;
    sx_buf_reset(&b->out);
    sx_buf_reset(&b->err);
    SX_TRY(run_compiler(line, &b->out, &b->err, &succeeded));
    if (succeeded) {
        return sx_buf_status(&b->out);
    }
    size_t size = b->err.size;
    while (size > 0 && b->err.data[size - 1] == '\n') {
        size--;
    }
    return sx_error(SX_INVALID_ARGUMENT, "cannot compile %s; output of %s:\n%.*s", b->path,
                    b->compiler, (int)SX_MIN(size, 1 << 16), sx_buf_text(&b->err));
}

static bool hash(const build *b, unsigned char digest[HASH_BYTES])
{
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    bool good = context != NULL && EVP_DigestInit_ex(context, EVP_sha256(), NULL) == 1;
    for (size_t i = 0; good && i < SX_COUNT(flags); i++) {
        good = EVP_DigestUpdate(context, flags[i], strlen(flags[i]) + 1) == 1;
    }
    good = good && EVP_DigestUpdate(context, SX_VERSION, sizeof(SX_VERSION)) == 1 &&
           EVP_DigestUpdate(context, b->compiler, strlen(b->compiler) + 1) == 1 &&
           EVP_DigestUpdate(context, sx_buf_text(&b->out), b->out.size) == 1 &&
           EVP_DigestFinal_ex(context, digest, NULL) == 1;
    EVP_MD_CTX_free(context);
    return good;
}

/* Preprocesses, and names the library in the cache by the hash of what came out. */
static sx_status name_library(build *b, const char **out_library)
{
    command_line line;
    unsigned char digest[HASH_BYTES];
    char hex[2 * HASH_BYTES + 1];
    const char *dir = NULL;
    begin_line(b, &line);
    add(&line, "-E");
    add(&line, b->path);
    SX_TRY(compile(b, &line));
    SX_TRY(cache_dir(&b->arena, &dir));
    if (!hash(b, digest)) {
        return sx_error(SX_INTERNAL, "%s: SHA-256 failed", b->path);
    }
    for (int i = 0; i < HASH_BYTES; i++) {
        snprintf(hex + 2 * i, 3, "%02x", digest[i]);
    }
    *out_library = sx_arena_printf(&b->arena, "%s/%s.so", dir, hex);
    return *out_library != NULL ? SX_OK : sx_error(SX_RESOURCE_EXHAUSTED, "out of memory");
}

/* Under a name of this process until it is whole. */
static sx_status make_library(build *b, const char *library)
{
    command_line line;
    const char *temporary = sx_arena_printf(&b->arena, "%s.%d", library, (int)getpid());
    if (temporary == NULL) {
        return sx_error(SX_RESOURCE_EXHAUSTED, "out of memory");
    }
    begin_line(b, &line);
    add(&line, "-shared");
    add(&line, "-o");
    add(&line, temporary);
    add(&line, b->path);
    add(&line, "-lm");
    SX_TRY(compile(b, &line));
    return rename(temporary, library) == 0 ? SX_OK : sx_errno_status(errno, "rename", temporary);
}

/* --- from a library to a descriptor ---------------------------------------------------------- */

static sx_status take_def(const char *path, const sx_model_def *def, sx_model_def *out_def)
{
    if (def->version != SX_MODEL_VERSION) {
        return sx_error(SX_FAILED_PRECONDITION,
                        "%s: model of version %d, expected version %d; rebuild it with the headers "
                        "of this program",
                        path, def->version, SX_MODEL_VERSION);
    }
    SX_TRY(sx_take_args("sx_model_def", def, sizeof(*out_def), out_def), "%s", path);
    if (out_def->build == NULL) {
        return sx_error(SX_INVALID_ARGUMENT, "%s: SX_MODEL(...) lacks .build", path);
    }
    return SX_OK;
}

static sx_status read_def(const char *path, void *library, sx_model_def *out_def)
{
    const sx_model_def *def = dlsym(library, "sextant_model_v1");
    if (def == NULL) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "%s: defines no model; add SX_MODEL(name, .build = ...)%s", path,
                        dlsym(library, "main") != NULL
                            ? " (it has a main(): compile and run it as a program of its own)"
                            : "");
    }
    return take_def(path, def, out_def);
}

static sx_status load(build *b, sx_model_file *out_file)
{
    const char *library = NULL;
    SX_TRY(find_headers(&b->arena, &b->headers));
    SX_TRY(name_library(b, &library));
    if (!sx_path_exists(library)) {
        SX_TRY(make_library(b, library));
    }
    sx_model_file file = {.library = dlopen(library, RTLD_NOW | RTLD_LOCAL)};
    if (file.library == NULL) {
        return sx_error(SX_INVALID_ARGUMENT, "cannot load %s: %s", b->path, dlerror());
    }
    sx_status status = read_def(b->path, file.library, &file.def);
    if (status != SX_OK) {
        dlclose(file.library);
        return status;
    }
    sx_model_guard_begin(b->path, &file);
    *out_file = file;
    return SX_OK;
}

sx_status sx_model_file_load(const char *path, bool color, sx_model_file *out_file)
{
    const char *cc = getenv("CC");
    build b = {.path = path, .compiler = cc != NULL && cc[0] != '\0' ? cc : "cc", .color = color};
    if (!sx_path_exists(path)) {
        return sx_error(SX_NOT_FOUND, "%s: no such file", path);
    }
    sx_arena_init(&b.arena, 1 << 20);
    sx_buf_init(&b.out, MAX_OUTPUT);
    sx_buf_init(&b.err, MAX_OUTPUT);
    sx_status status = load(&b, out_file);
    sx_buf_deinit(&b.err);
    sx_buf_deinit(&b.out);
    sx_arena_deinit(&b.arena);
    return status;
}

void sx_model_file_unload(sx_model_file *file)
{
    if (file->library != NULL) {
        sx_model_guard_end();
        dlclose(file->library);
    }
    *file = (sx_model_file){0};
}
