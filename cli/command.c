/* Finds a command, parses its options, runs it, reports errors. */
#include "command.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/log.h"
#include "base/memory.h"
#include "io/path.h"
#include "terminal.h"

const sx_command *const sx_commands[] = {
#define SX_COMMAND(name) &sx_command_##name,
#include "commands.def"
#undef SX_COMMAND
    NULL};

enum { MAX_COMMANDS = 64 };

/* ---- Signals ---- */

/* Global, because it is set by a signal handler. */
static volatile sig_atomic_t stop_signal;
static volatile sig_atomic_t acknowledges; /* stderr is a terminal: acknowledge signals */

/* Acknowledges the signal: the end of a step, compile or evaluation may be minutes away. A terminal
 * that is closed sends SIGHUP twice, from the shell and from the kernel: the second one must not
 * end the process before it has saved. */
static void on_signal(int number)
{
    static const char answer[] = "\r\033[Jstopping; interrupt again to quit at once\n";
    int saved = errno;
    if (stop_signal != 0 && number == SIGHUP) {
        return;
    }
    if (stop_signal != 0) {
        _exit(128 + number);
    }
    stop_signal = number;
    if (acknowledges && write(STDERR_FILENO, answer, sizeof(answer) - 1) < 0) {
        acknowledges = false; /* the terminal is gone */
    }
    errno = saved;
}

int sx_stop_signal(void)
{
    return stop_signal;
}

const volatile sig_atomic_t *sx_stop_flag(void)
{
    return &stop_signal;
}

static void set_up_signals(const sx_command *c)
{
    signal(SIGPIPE, SIG_IGN);
    acknowledges = sx_terminal_of(stderr, "never").is_tty;
    if (c->stops_itself) {
        struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART}, before;
        sigaction(SIGINT, &action, NULL);
        sigaction(SIGTERM, &action, NULL);
        if (sigaction(SIGHUP, NULL, &before) == 0 && before.sa_handler != SIG_IGN) { /* nohup */
            sigaction(SIGHUP, &action, NULL);
        }
    }
}

/* ---- Finding ---- */

/* Whether `word` is the second word of a command's name; - and _ are equivalent. */
static bool is_second(const char *name, const char *word)
{
    while (*name != '\0' && (*name == *word || (*name == '-' && *word == '_'))) {
        name++;
        word++;
    }
    return *name == '\0' && *word == '\0';
}

const sx_command *sx_command_find(const char *first, const char *second, int *out_words)
{
    size_t size = strlen(first);
    for (int i = 0; sx_commands[i] != NULL; i++) {
        const char *name = sx_commands[i]->name;
        if (strncmp(name, first, size) != 0) {
            continue;
        }
        if (name[size] == '\0' ||
            (name[size] == ' ' && second != NULL && is_second(name + size + 1, second))) {
            *out_words = name[size] == '\0' ? 1 : 2;
            return sx_commands[i];
        }
    }
    return NULL;
}

bool sx_command_is_family(const char *first)
{
    size_t size = strlen(first);
    for (int i = 0; sx_commands[i] != NULL; i++) {
        if (strncmp(sx_commands[i]->name, first, size) == 0 && sx_commands[i]->name[size] == ' ') {
            return true;
        }
    }
    return false;
}

sx_status sx_command_unknown(const char *first, const char *second)
{
    const char *names[MAX_COMMANDS];
    size_t count = 0;
    bool family = second != NULL && sx_command_is_family(first);
    for (; sx_commands[count] != NULL && count < MAX_COMMANDS; count++) {
        names[count] = sx_commands[count]->name;
    }
    sx_arena arena;
    sx_arena_init(&arena, 1 << 16);
    const char *name = family ? sx_arena_printf(&arena, "%s %s", first, second) : first;
    sx_status status =
        sx_error(SX_NOT_FOUND, "unknown command \"%s\"%s", name != NULL ? name : first,
                 sx_did_you_mean(&arena, name != NULL ? name : first, names, count, ""));
    sx_arena_deinit(&arena);
    return status;
}

/* ---- The options of every command ---- */

static const sx_option common_rows[] = {
    {"quiet", SX_OPTION_FLAG, SX_OPT(sx_common, quiet),
     "print no progress and no informational messages", .letter = 'q'},
    {"verbosity", SX_OPTION_CHOICE, SX_OPT(sx_common, verbosity),
     "least severe messages to print; debug also prints where an error was raised",
     .choices = "debug|info|warn|error"},
    {"color", SX_OPTION_CHOICE, SX_OPT(sx_common, color),
     "use colors; auto: on a terminal, unless NO_COLOR is set", .choices = "auto|always|never"},
};
static const sx_common common_defaults = {.verbosity = "info", .color = "auto"};
const sx_option_table sx_common_options = {common_rows, (int)SX_COUNT(common_rows),
                                           (void *)&common_defaults, NULL, NULL};

static const char *const level_names[] = {"debug", "info", "warn", "error"};
static const char *const level_marks[] = {"debug: ", "", "warning: ", "error: "};

static sx_log_level level_of(const sx_common *common)
{
    for (size_t i = 0; i < SX_COUNT(level_names); i++) {
        if (strcmp(common->verbosity, level_names[i]) == 0) {
            return common->quiet ? SX_MAX((sx_log_level)i, SX_LOG_WARN) : (sx_log_level)i;
        }
    }
    return SX_LOG_INFO;
}

bool sx_is_quiet(const sx_invocation *inv)
{
    return level_of(sx_common_of(inv)) > SX_LOG_INFO;
}

void sx_print_visible(FILE *stream, const char *text)
{
    sx_buf visible;
    sx_buf_init(&visible, 0);
    sx_buf_put_visible(&visible, text, strlen(text), "\n\t");
    fputs(sx_buf_text(&visible), stream);
    sx_buf_deinit(&visible);
}

static void print_log(void *user, sx_log_level level, const char *file, int line,
                      const char *message)
{
    (void)user;
    sx_buf text; /* written at once: other threads may print, too */
    sx_buf_init(&text, 0);
    sx_buf_printf(&text, "%s%s", sx_terminal_fresh_line(), level_marks[level]);
    if (level == SX_LOG_DEBUG) {
        sx_buf_printf(&text, "%s:%d: ", file, line);
    }
    sx_buf_put_visible(&text, message, strlen(message), "\n\t");
    sx_buf_putc(&text, '\n');
    fputs(sx_buf_text(&text), stderr);
    sx_buf_deinit(&text);
}

/* ---- Errors ---- */

typedef struct exit_row {
    sx_code code;
    sx_exit exit;
} exit_row;

static const exit_row exit_rows[] = {
    {SX_DATA_LOSS, SX_EXIT_DATA},
    {SX_ABORTED, SX_EXIT_NOT_FINITE},
    {SX_RESOURCE_EXHAUSTED, SX_EXIT_RESOURCES},
    {SX_UNAVAILABLE, SX_EXIT_UNAVAILABLE},
};

sx_status sx_usage(sx_invocation *inv, sx_status status)
{
    inv->usage = status != SX_OK;
    return status;
}

static int exit_code_of(sx_status status, bool usage)
{
    sx_code code = sx_status_code(status);
    if (code == SX_CANCELLED && stop_signal != 0) {
        return 128 + stop_signal;
    }
    if (usage && code != SX_CODE_OK) {
        return SX_EXIT_USAGE;
    }
    for (size_t i = 0; i < SX_COUNT(exit_rows); i++) {
        if (exit_rows[i].code == code) {
            return (int)exit_rows[i].exit;
        }
    }
    return code == SX_CODE_OK ? SX_EXIT_OK : SX_EXIT_ERROR;
}

static void print_error(const char *name, const sx_common *common, sx_status status)
{
    sx_terminal t = sx_terminal_of(stderr, common->color);
    const char *message = sx_status_message(status);
    sx_buf text;
    sx_buf_init(&text, 0);
    sx_buf_printf(&text, "%s%ssextant%s%s:%s ", sx_terminal_fresh_line(),
                  sx_style(&t, SX_STYLE_ERROR), name[0] != '\0' ? " " : "", name,
                  sx_style(&t, SX_STYLE_NONE));
    sx_buf_put_visible(&text, message, strlen(message), "\n\t");
    sx_buf_putc(&text, '\n');
    fputs(sx_buf_text(&text), stderr);
    sx_buf_deinit(&text);
    if (level_of(common) == SX_LOG_DEBUG) {
        fprintf(stderr, "  %s at %s\n", sx_code_name(sx_status_code(status)),
                sx_status_trace(status));
    }
}

/* Prints the error, frees the status, returns the exit code. `see` is the help topic to mention. */
static int report(const char *name, const sx_common *common, sx_status status, const char *see)
{
    int code = exit_code_of(status, see != NULL);
    if (status != SX_OK && (sx_status_code(status) != SX_CANCELLED || stop_signal == 0)) {
        print_error(name, common, status);
        if (see != NULL) {
            fprintf(stderr, "see: sextant help%s%s\n", see[0] != '\0' ? " " : "", see);
        }
    }
    sx_status_free(status);
    return code;
}

/* ---- Running ---- */

static sx_status check_words(const sx_command *c, const sx_invocation *inv)
{
    if (inv->words.count < c->min_words) {
        bool list = false;
        for (int i = 0; i < c->n_options; i++) {
            list |= c->options[i].kind == SX_OPTION_LIST && inv->tables[0].given[i];
        }
        return sx_error(SX_INVALID_ARGUMENT, "missing argument; expected %s%s", c->words,
                        list ? " before any option that takes a list" : "");
    }
    if (c->max_words >= 0 && inv->words.count > c->max_words) {
        return sx_error(SX_INVALID_ARGUMENT, "unexpected argument \"%s\"%s%s",
                        inv->words.items[c->max_words],
                        c->words[0] != '\0' ? "; expected only " : "", c->words);
    }
    for (int i = 0; i < inv->words.count; i++) {
        if (inv->words.items[i][0] == '\0') {
            return sx_error(SX_INVALID_ARGUMENT, "empty argument; expected %s", c->words);
        }
    }
    if (inv->rest.count > 0 && c->rest == NULL) {
        return sx_error(SX_INVALID_ARGUMENT, "unexpected argument \"%s\" after --",
                        inv->rest.items[0]);
    }
    return SX_OK;
}

static sx_status check_required(sx_invocation *inv)
{
    const sx_option_table *t = &inv->tables[0];
    for (int i = 0; i < t->n; i++) {
        if (t->rows[i].required && !t->given[i]) {
            return sx_error(SX_INVALID_ARGUMENT, "--%s %s is required",
                            sx_option_typed(inv, t->rows[i].name), t->rows[i].value);
        }
    }
    return SX_OK;
}

/* Whether a text is a URL of storage elsewhere: gs://, s3://, hdfs://, https://. */
static bool is_remote(const char *text)
{
    size_t size = strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+.-");
    return size > 1 && strncmp(text + size, "://", 3) == 0 && !sx_path_exists(text);
}

static sx_status refuse_remote(const char *dashes, const char *name, const char *text)
{
    return sx_error(SX_INVALID_ARGUMENT,
                    "%s%s%s\"%s\": storage at %.*s:// is not supported; copy the files to a local "
                    "directory and name that",
                    dashes, name, name[0] != '\0' ? " is " : "", text, (int)strcspn(text, ":"),
                    text);
}

/* Files and directories must be local; what is not would be looked for as a file of that name. */
static sx_status check_local(sx_invocation *inv, const sx_command *c)
{
    const sx_option_table *t = &inv->tables[0];
    for (int i = 0; i < t->n; i++) {
        const sx_option *o = &t->rows[i];
        if (!sx_option_is_path(o) || !t->given[i]) {
            continue;
        }
        const void *field = (const char *)t->values + o->offset;
        const sx_words one = {(const char **)(uintptr_t)field, 1};
        const sx_words *words = o->kind == SX_OPTION_STRING ? &one : (const sx_words *)field;
        for (int k = 0; k < words->count; k++) {
            if (is_remote(words->items[k])) {
                return refuse_remote("--", sx_option_typed(inv, o->name), words->items[k]);
            }
        }
    }
    for (int i = 0; i < inv->words.count && strstr(c->words, "URL") == NULL; i++) {
        if (is_remote(inv->words.items[i])) {
            return refuse_remote("", "", inv->words.items[i]);
        }
    }
    return SX_OK;
}

/* The value of the option --config; NULL if it is not given. */
static const char *config_file(const sx_invocation *inv)
{
    const sx_option_table *t = &inv->tables[0];
    for (int i = 0; i < t->n; i++) {
        if (strcmp(t->rows[i].name, "config") == 0) {
            return *(const char *const *)((const char *)t->values + t->rows[i].offset);
        }
    }
    return NULL;
}

static sx_status run_command(const sx_command *c, sx_invocation *inv, int argc,
                             const char *const *argv)
{
    SX_TRY(sx_usage(inv, sx_options_parse(inv, argc, argv)));
    if (inv->help) {
        sx_help_command(c);
        return SX_OK;
    }
    const char *config = config_file(inv);
    if (config != NULL) {
        SX_TRY(sx_usage(inv, sx_options_from_file(inv, config)));
    }
    SX_TRY(sx_usage(inv, check_words(c, inv)));
    SX_TRY(sx_usage(inv, check_required(inv)));
    SX_TRY(sx_usage(inv, check_local(inv, c)));
    sx_log_set_sink(print_log, NULL, level_of(sx_common_of(inv)));
    set_up_signals(c);
    return c->run(inv);
}

/* Allocates a table's values, set to the defaults, in the invocation's arena. */
static bool make_table(sx_invocation *inv, sx_option_table *table, const sx_option *rows, int n,
                       const void *defaults, size_t bytes)
{
    *table = (sx_option_table){
        .rows = rows,
        .n = n,
        .values = sx_arena_alloc(&inv->arena, 1, bytes + 1),
        .given = sx_arena_array(&inv->arena, n + 1, bool),
        .typed = sx_arena_array(&inv->arena, n + 1, const char *),
    };
    if (table->values != NULL && defaults != NULL) {
        memcpy(table->values, defaults, bytes);
    }
    return table->values != NULL && table->given != NULL && table->typed != NULL;
}

/* Options that stand for a command. */
static const struct {
    const char *word, *command;
} aliases[] = {{"--version", "version"}, {"-V", "version"}, {"--help", "help"}, {"-h", "help"}};

/* Runs the command after the leading common options. */
static int invoke(sx_invocation *inv, int argc, const char *const *argv)
{
    const char *first = argc > 0 ? argv[0] : "", *second = argc > 1 ? argv[1] : NULL;
    for (size_t i = 0; i < SX_COUNT(aliases); i++) {
        first = strcmp(first, aliases[i].word) == 0 ? aliases[i].command : first;
    }
    int words = 0;
    const sx_command *c = sx_command_find(first, second, &words);
    bool help = second != NULL && (strcmp(second, "--help") == 0 || strcmp(second, "-h") == 0);
    bool is_family = argc > 0 && c == NULL && sx_command_is_family(first);
    if (argc == 0 || (is_family && (second == NULL || help))) {
        sx_help_overview(argc > 0 ? first : NULL);
        return help ? SX_EXIT_OK : SX_EXIT_USAGE;
    }
    if (c == NULL) {
        return report("", sx_common_of(inv), sx_command_unknown(first, second), "");
    }
    if (!make_table(inv, &inv->tables[0], c->options, c->n_options, c->defaults,
                    c->options_bytes)) {
        return SX_EXIT_RESOURCES;
    }
    inv->options = inv->tables[0].values;
    inv->hints = c->hints;
    inv->n_hints = c->n_hints;
    sx_status status = run_command(c, inv, argc - words, argv + words);
    const char *topic = strcmp(c->name, "help") == 0 ? "" : c->name;
    return report(c->name, sx_common_of(inv), status, inv->usage ? topic : NULL);
}

/* The exit code after all output is written: an output that is lost is an error. */
static int end_output(int code)
{
    const char *reason = fflush(stdout) != 0 ? strerror(errno) : NULL;
    struct pollfd reader = {.fd = STDOUT_FILENO};
    const bool unread = poll(&reader, 1, 0) == 1 && (reader.revents & POLLERR) != 0;
    /* A command that has gone on after the reader of its output went away has not failed. */
    if (code != SX_EXIT_OK || (reason == NULL && (!ferror(stdout) || unread))) {
        return code;
    }
    /* The reason of an error in an earlier write is not known any more. */
    fprintf(stderr, "sextant: cannot write to stdout%s%s\n", reason != NULL ? ": " : "",
            reason != NULL ? reason : "");
    return SX_EXIT_ERROR;
}

/* Files that are opened must not get the numbers of closed standard streams: what is printed would
 * be written into them. Writes to a closed stdout or stderr still fail. */
static void occupy_standard_streams(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF) {
            (void)!open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
        }
    }
}

int sx_cli_run(int argc, const char *const *argv)
{
    occupy_standard_streams();
    sx_invocation inv = {0};
    int code = SX_EXIT_RESOURCES, used = 0;
    sx_arena_init(&inv.arena, 0);
    if (make_table(&inv, &inv.tables[1], common_rows, (int)SX_COUNT(common_rows), &common_defaults,
                   sizeof(common_defaults))) {
        sx_status status = sx_options_parse_leading(&inv, argc, argv, &used);
        code = status != SX_OK ? report("", sx_common_of(&inv), status, "")
                               : invoke(&inv, argc - used, argv + used);
    }
    if (inv.left_behind) {
        _exit(end_output(code));
    }
    json_decref(inv.config);
    sx_arena_deinit(&inv.arena);
    return end_output(code);
}
