#include "model_file.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <poll.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/args.h"
#include "base/buffer.h"
#include "base/checked.h"
#include "base/hex.h"
#include "base/memory.h"
#include "command.h"
#include "io/file.h"
#include "io/path.h"
#include "io/user_cache.h"
#include "model_guard.h"

extern char **environ;

enum { MAX_ARGUMENTS = 32, MAX_OUTPUT = 64 << 20, HASH_BYTES = 32 };

static const char *const flags[] = {"-D_GNU_SOURCE", "-O1", "-g", "-fPIC", "-Wall"};

/* How a file is compiled, by its extension. */
typedef struct language {
    const char *suffix, *name;
    const char *variable, *compiler; /* environment variable, and its default */
    const char *flags[2];
} language;

static const language languages[] = {
    {".c", "C", "CC", "cc", {"-std=c11", "-Werror=implicit-function-declaration"}},
    {".cpp", "C++", "CXX", "c++", {"-std=c++17"}},
    {".cc", "C++", "CXX", "c++", {"-std=c++17"}},
    {".cxx", "C++", "CXX", "c++", {"-std=c++17"}},
};

/* NULL if the extension is not in the table. */
static const language *find_language(const char *name)
{
    size_t size = strlen(name);
    for (size_t i = 0; i < SX_COUNT(languages); i++) {
        size_t end = strlen(languages[i].suffix);
        if (size > end && strcmp(name + size - end, languages[i].suffix) == 0) {
            return &languages[i];
        }
    }
    return NULL;
}

bool sx_model_file_is(const char *name)
{
    return strchr(name, '/') != NULL || find_language(name) != NULL;
}

/* The state of compiling one file. */
typedef struct build {
    const char *path, *compiler, *headers;
    const language *language;
    bool color;
    sx_arena arena;
    sx_buf out, err; /* the compiler's last output */
} build;

/* ---- Running the compiler ---- */

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

/* Runs a command to completion, with its output in the two buffers. */
static sx_status run_compiler(const build *b, const command_line *line, sx_buf *out_text,
                              sx_buf *err_text, bool *out_succeeded)
{
    int pipes[2][2] = {{-1, -1}, {-1, -1}}; /* of stdout and stderr: read end, write end */
    sx_buf *texts[2] = {out_text, err_text};
    char bytes[65536];
    pid_t child;
    int wait_status = 0, open_count = 2;
    posix_spawn_file_actions_t actions;
    sx_status status = SX_OK;
    if (pipe2(pipes[0], O_CLOEXEC) != 0 || pipe2(pipes[1], O_CLOEXEC) != 0) {
        status = sx_error(SX_RESOURCE_EXHAUSTED, "cannot create a pipe: %s", strerror(errno));
        goto done;
    }
    if (posix_spawn_file_actions_init(&actions) != 0) {
        status = sx_no_memory("compiling a model");
        goto done;
    }
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, pipes[0][1], 1);
    posix_spawn_file_actions_adddup2(&actions, pipes[1][1], 2);
    int error = posix_spawnp(&child, line->words[0], &actions, NULL,
                             (char *const *)(uintptr_t)line->words, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (error != 0) {
        status = error == ENOENT
                     ? sx_error(SX_NOT_FOUND, "no %s compiler: %s not found; install one or set %s",
                                b->language->name, line->words[0], b->language->variable)
                     : sx_error(SX_UNKNOWN, "cannot start %s: %s", line->words[0], strerror(error));
        goto done;
    }
    for (int i = 0; i < 2; i++) {
        close(pipes[i][1]);
        pipes[i][1] = -1;
    }
    struct pollfd polled[2] = {{pipes[0][0], POLLIN, 0}, {pipes[1][0], POLLIN, 0}};
    while (open_count > 0) {
        if (sx_stop_signal() != 0) {
            kill(child, SIGTERM);
            status = sx_error(SX_CANCELLED, "interrupted while compiling %s", b->path);
            break;
        }
        if (poll(polled, 2, 100) < 0 && errno != EINTR) {
            status =
                sx_error(SX_UNKNOWN, "cannot read the output of the compiler: %s", strerror(errno));
            break;
        }
        for (int i = 0; i < 2; i++) {
            if (polled[i].fd < 0 || polled[i].revents == 0) {
                continue;
            }
            ssize_t n = read(polled[i].fd, bytes, sizeof(bytes));
            if (n > 0) {
                sx_buf_append(texts[i], bytes, (size_t)n);
            } else if (n == 0 || errno != EINTR) {
                polled[i].fd = -1;
                open_count--;
            }
        }
    }
    while (waitpid(child, &wait_status, 0) < 0 && errno == EINTR) {
    }
    *out_succeeded = WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == 0;
done:
    for (int i = 0; i < 4; i++) {
        if (pipes[i / 2][i % 2] >= 0) {
            close(pipes[i / 2][i % 2]);
        }
    }
    return status;
}

/* ---- Where things are ---- */

/* The directory that contains sextant/model.h: $SEXTANT_INCLUDE, beside an installed program, or in
 * the source tree. */
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
    SX_TRY(sx_user_cache("models", &dir));
    const char *copy = sx_arena_strdup(arena, dir);
    sx_free(dir);
    if (copy == NULL) {
        return sx_no_memory("compiling a model");
    }
    *out_dir = copy;
    return sx_dir_create(copy);
}

/* ---- From a file to a library ---- */

/* The common first words of the preprocess and compile commands. */
static command_line begin_line(const build *b)
{
    command_line line = {.count = 0};
    add(&line, b->compiler);
    for (size_t i = 0; i < SX_COUNT(flags); i++) {
        add(&line, flags[i]);
    }
    for (size_t i = 0; i < SX_COUNT(b->language->flags) && b->language->flags[i] != NULL; i++) {
        add(&line, b->language->flags[i]);
    }
    add(&line, b->color ? "-fdiagnostics-color=always" : "-fdiagnostics-color=never");
    add(&line, "-I");
    add(&line, b->headers);
    return line;
}

/* Runs the compiler; the error has its output. */
static sx_status compile(build *b, const command_line *line)
{
    bool succeeded = false;
    sx_buf_reset(&b->out);
    sx_buf_reset(&b->err);
    SX_TRY(run_compiler(b, line, &b->out, &b->err, &succeeded));
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

/* Preprocesses, and derives the library's name in the cache from the hash of the result. */
static sx_status name_library(build *b, const char **out_library)
{
    unsigned char digest[HASH_BYTES];
    char hex[2 * HASH_BYTES + 1];
    const char *dir = NULL;
    command_line line = begin_line(b);
    add(&line, "-E");
    add(&line, b->path);
    SX_TRY(compile(b, &line));
    SX_TRY(cache_dir(&b->arena, &dir));
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    bool good = context != NULL && EVP_DigestInit_ex(context, EVP_sha256(), NULL) == 1 &&
                EVP_DigestUpdate(context, SX_VERSION, sizeof(SX_VERSION)) == 1 &&
                EVP_DigestUpdate(context, b->compiler, strlen(b->compiler) + 1) == 1;
    for (size_t i = 0; good && i < SX_COUNT(flags); i++) {
        good = EVP_DigestUpdate(context, flags[i], strlen(flags[i]) + 1) == 1;
    }
    for (size_t i = 0; good && i < SX_COUNT(b->language->flags); i++) {
        const char *flag = b->language->flags[i] != NULL ? b->language->flags[i] : "";
        good = EVP_DigestUpdate(context, flag, strlen(flag) + 1) == 1;
    }
    good = good && EVP_DigestUpdate(context, sx_buf_text(&b->out), b->out.size) == 1 &&
           EVP_DigestFinal_ex(context, digest, NULL) == 1;
    EVP_MD_CTX_free(context);
    if (!good) {
        return sx_error(SX_INTERNAL, "%s: SHA-256 failed", b->path);
    }
    sx_hex_put(hex, digest, HASH_BYTES);
    hex[2 * HASH_BYTES] = '\0';
    *out_library = sx_arena_printf(&b->arena, "%s/%s.so", dir, hex);
    return *out_library != NULL ? SX_OK : sx_no_memory("compiling a model");
}

/* Writes to a temporary name of this process until the library is complete. */
static sx_status make_library(build *b, const char *library)
{
    const char *temporary = sx_arena_printf(&b->arena, "%s.%d", library, (int)getpid());
    if (temporary == NULL) {
        return sx_no_memory("compiling a model");
    }
    command_line line = begin_line(b);
    add(&line, "-shared");
    add(&line, "-o");
    add(&line, temporary);
    add(&line, b->path);
    add(&line, "-lm");
    SX_TRY(compile(b, &line));
    return rename(temporary, library) == 0 ? SX_OK : sx_errno_status(errno, "rename", temporary);
}

/* ---- From a library to a descriptor ---- */

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
    sx_model_guard_load(b->path);
    sx_model_file file = {.library = dlopen(library, RTLD_NOW | RTLD_LOCAL)};
    if (file.library == NULL) {
        sx_model_guard_end();
        return sx_error(SX_INVALID_ARGUMENT, "cannot load %s: %s", b->path, dlerror());
    }
    sx_status status = read_def(b->path, file.library, &file.def);
    if (status != SX_OK) {
        sx_model_guard_end();
        dlclose(file.library);
        return status;
    }
    sx_model_guard_begin(&file);
    *out_file = file;
    return SX_OK;
}

/* What to use instead of a directory: its first model file, or the form of a name. */
static sx_status is_directory(const char *dir)
{
    sx_paths names = {0};
    const char *model = NULL;
    sx_status_free(sx_dir_list(dir, &names)); /* a directory that cannot be read suggests nothing */
    for (size_t i = 0; i < names.count && model == NULL; i++) {
        model = find_language(names.items[i]) != NULL ? names.items[i] : NULL;
    }
    const char *slash = dir[strlen(dir) - 1] == '/' ? "" : "/";
    sx_status status =
        model != NULL
            ? sx_error(SX_INVALID_ARGUMENT, "%s is a directory; did you mean %s%s%s?", dir, dir,
                       slash, model)
            : sx_error(SX_INVALID_ARGUMENT,
                       "%s is a directory; expected a model in C or C++, such as %s%smodel.c", dir,
                       dir, slash);
    sx_paths_deinit(&names);
    return status;
}

sx_status sx_model_file_load(const char *path, bool color, sx_model_file *out_file)
{
    struct stat info;
    if (stat(path, &info) != 0) {
        return errno == ENOENT || errno == ENOTDIR
                   ? sx_error(SX_NOT_FOUND, "%s: no such file", path)
                   : sx_errno_status(errno, "read", path);
    }
    if (S_ISDIR(info.st_mode)) {
        return is_directory(path);
    }
    const language *l = find_language(path);
    if (!S_ISREG(info.st_mode) || l == NULL) {
        return sx_error(SX_INVALID_ARGUMENT, "%s: expected a model in C or C++, %s", path,
                        l == NULL ? "a file that ends in .c, .cpp, .cc or .cxx" : "a regular file");
    }
    const char *named = getenv(l->variable);
    build b = {.path = path,
               .compiler = named != NULL && named[0] != '\0' ? named : l->compiler,
               .language = l,
               .color = color};
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
