/* See model_guard.h. */
#include "model_guard.h"

#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "base/checked.h"
#include "graph/builder.h"

static const struct {
    int number;
    const char *text;
} watched[] = {{SIGSEGV, "segmentation fault (SIGSEGV)"},
               {SIGBUS, "bus error (SIGBUS)"},
               {SIGFPE, "arithmetic exception, such as an integer division by zero (SIGFPE)"},
               {SIGILL, "illegal instruction (SIGILL)"},
               {SIGABRT, "aborted (SIGABRT)"}};

/* Global, because it is used by a signal handler. */
static struct {
    const char *path;
    sx_build_fn *build;
    uintptr_t begin, end;      /* the file's code in memory */
    const sx_builder *builder; /* while the model function runs; else NULL */
    bool loading;              /* while the file's constructors run */
    pthread_t thread;          /* that runs either of them */
    struct sigaction before[SX_COUNT(watched)];
} guard;

/* After a stack overflow, the handler needs another stack. */
static char alternative_stack[1 << 16];

static _Noreturn void exit_now(int code)
{
    for (;;) {
        syscall(SYS_exit_group, code);
    }
}

static sx_spec build_watched(sx_builder *b, const sx_batch *in, const sx_params *p)
{
    guard.thread = pthread_self();
    guard.builder = b;
    sx_spec spec = guard.build(b, in, p);
    guard.builder = NULL;
    return spec;
}

static uintptr_t program_counter(const void *context)
{
    const ucontext_t *c = context;
#if defined(__x86_64__)
    return (uintptr_t)c->uc_mcontext.gregs[REG_RIP];
#elif defined(__aarch64__)
    return (uintptr_t)c->uc_mcontext.pc;
#else
    (void)c;
    return 0;
#endif
}

/* Appends to text[used]; for a signal handler, where printf is not allowed. */
static size_t put(char *text, size_t capacity, size_t used, const char *part)
{
    size_t size = SX_MIN(strlen(part), capacity - used);
    memcpy(text + used, part, size);
    return used + size;
}

static size_t put_number(char *text, size_t capacity, size_t used, int number)
{
    char digits[16];
    size_t at = sizeof(digits) - 1;
    digits[at] = '\0';
    do {
        digits[--at] = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0 && at > 0);
    return put(text, capacity, used, digits + at);
}

static void on_crash(int number, siginfo_t *info, void *context)
{
    size_t row = 0;
    while (row + 1 < SX_COUNT(watched) && watched[row].number != number) {
        row++;
    }
    const sx_builder *builder = guard.builder;
    bool building = builder != NULL && pthread_equal(pthread_self(), guard.thread);
    bool loading = guard.loading && pthread_equal(pthread_self(), guard.thread);
    uintptr_t pc = program_counter(context);
    if (building || loading || (pc >= guard.begin && pc < guard.end)) {
        char text[1024];
        const size_t capacity = sizeof(text) - 1;
        size_t n = put(text, capacity, 0, "\nsextant: ");
        n = put(text, capacity, n, guard.path);
        n = put(text, capacity, n, ": ");
        n = put(text, capacity, n, watched[row].text);
        n = put(text, capacity, n,
                building  ? " in the model function"
                : loading ? " while it was loaded"
                          : " in its code");
        if (building && builder->line > 0) {
            const char *slash = strrchr(builder->file, '/');
            n = put(text, capacity, n, ", after ");
            n = put(text, capacity, n, slash != NULL ? slash + 1 : builder->file);
            n = put(text, capacity, n, ":");
            n = put_number(text, capacity, n, builder->line);
        }
        text[n++] = '\n';
        if (write(STDERR_FILENO, text, n) < 0) {
            guard.path = ""; /* stderr is closed */
        }
    }
    /* Restores the previous action: a fault recurs when this returns, and abort() raises its signal
     * again. */
    sigaction(number, &guard.before[row], NULL);
    if (number == SIGABRT || info->si_code <= 0) {
        raise(number);
    }
}

/* Whether this thread runs the model function or a constructor of the file. */
static bool is_inside(void)
{
    return (guard.builder != NULL || guard.loading) && pthread_equal(pthread_self(), guard.thread);
}

/* Names the file whose code ends the program, which would otherwise end without a message, perhaps
 * as a success. */
static void say_who_exits(const char *function)
{
    if (guard.builder != NULL) {
        fprintf(stderr, "sextant: %s: the model function called %s\n", guard.path, function);
    } else if (guard.loading) {
        fprintf(stderr, "sextant: %s: it called %s while it was loaded\n", guard.path, function);
    } else {
        fprintf(stderr, "sextant: %s: its code called %s\n", guard.path, function);
    }
    fflush(stderr);
}

static void on_exit_in_model(void)
{
    if (is_inside()) {
        say_who_exits("exit()");
        exit_now(EXIT_FAILURE);
    }
}

/* These take the place of libc's for the files of models, whose names are looked up in the program
 * first: no handler of exit() sees the end of the process there. */
static _Noreturn void exit_from(const char *function, const void *caller, int code)
{
    const uintptr_t pc = (uintptr_t)caller;
    if (is_inside() || (pc >= guard.begin && pc < guard.end)) {
        say_who_exits(function);
        code = EXIT_FAILURE;
    }
    exit_now(code);
}

__attribute__((visibility("default"))) void _exit(int code)
{
    exit_from("_exit()", __builtin_return_address(0), code);
}

__attribute__((visibility("default"))) void _Exit(int code)
{
    exit_from("_Exit()", __builtin_return_address(0), code);
}

/* The addresses of the object that `data` points to. */
static int find_code(struct dl_phdr_info *object, size_t size, void *data)
{
    (void)size;
    const struct link_map *map = data;
    if (object->dlpi_addr != map->l_addr) {
        return 0;
    }
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &object->dlpi_phdr[i];
        if (part->p_type == PT_LOAD && (part->p_flags & PF_X) != 0) {
            guard.begin = object->dlpi_addr + part->p_vaddr;
            guard.end = guard.begin + part->p_memsz;
        }
    }
    return 1;
}

void sx_model_guard_load(const char *path)
{
    guard.path = path;
    guard.builder = NULL;
    guard.thread = pthread_self();
    guard.loading = true;
    atexit(on_exit_in_model);
    stack_t stack = {.ss_sp = alternative_stack, .ss_size = sizeof(alternative_stack)};
    sigaltstack(&stack, NULL);
    struct sigaction action = {.sa_sigaction = on_crash, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    for (size_t i = 0; i < SX_COUNT(watched); i++) {
        sigaction(watched[i].number, &action, &guard.before[i]);
    }
}

void sx_model_guard_begin(sx_model_file *file)
{
    guard.loading = false;
    guard.build = file->def.build;
    file->def.build = build_watched;
    dl_iterate_phdr(find_code, file->library); /* glibc's handle is the link map */
}

void sx_model_guard_end(void)
{
    if (guard.path == NULL) {
        return;
    }
    guard.loading = false;
    for (size_t i = 0; i < SX_COUNT(watched); i++) {
        sigaction(watched[i].number, &guard.before[i], NULL);
    }
    guard.path = NULL;
    guard.begin = guard.end = 0;
}
