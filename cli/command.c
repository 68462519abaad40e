/* Finding a command, parsing its options, running it, saying what went wrong. */
#include "command.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const sx_command *const sx_commands[] = {
#define SX_COMMAND(name) &sx_command_##name,
#include "commands.def"
#undef SX_COMMAND
    NULL};

/* --- signals
 * --------------------------------------------------------------------------------------- */

static volatile int
    stop_signal; /* the one piece of global state: a signal handler can reach no other */

static void on_signal(int number)
{
    if (stop_signal != 0) {
        _exit(128 + number);
    }
    stop_signal = number;
}

int sx_stop_signal(void)
{
    return stop_signal;
}

const volatile int *sx_stop_flag(void)
{
    return &stop_signal;
}

static void catch_signals(void)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    signal(SIGPIPE, SIG_IGN);
}

/* --- finding
 * ----------------------------------------------------------------------------------------- */

const sx_command *sx_command_find(const char *first, const char *second, int *out_words)
{
    for (int i = 0; sx_commands[i] != NULL; i++) {
        const char *name = sx_commands[i]->name, *space = strchr(name, ' ');
        if (space == NULL && strcmp(name, first) == 0) {
            *out_words = 1;
            return sx_commands[i];
        }
        if (space != NULL && second != NULL && strlen(first) == (size_t)(space - name) &&
            strncmp(name, first, (size_t)(space - name)) == 0 &&
            sx_name_distance(space + 1, second) == 0) {
            *out_words = 2;
            return sx_commands[i];
        }
    }
    return NULL;
}

const char *sx_command_nearest(const char *name)
{
    const char *best = NULL;
    int best_distance = 4;
    for (int i = 0; sx_commands[i] != NULL; i++) {
        int distance = sx_name_distance(name, sx_commands[i]->name);
        if (distance < best_distance) {
            best = sx_commands[i]->name;
            best_distance = distance;
        }
    }
    return best;
}

/* --- errors
 * -------------------------------------------------------------------------------------------- */

typedef struct exit_row {
    sx_code code;
    sx_exit exit;
} exit_row;

static const exit_row exit_rows[] = {
    {SX_DATA_LOSS, SX_EXIT_DATA},
    {SX_ABORTED, SX_EXIT_NOT_FINITE},
    {SX_RESOURCE_EXHAUSTED, SX_EXIT_RESOURCES},
};

static int exit_code_of(sx_code code)
{
    if (code == SX_CANCELLED && stop_signal != 0) {
        return 128 + stop_signal;
    }
    for (size_t i = 0; i < sizeof(exit_rows) / sizeof(exit_rows[0]); i++) {
        if (exit_rows[i].code == code) {
            return (int)exit_rows[i].exit;
        }
    }
    return code == SX_CODE_OK ? SX_EXIT_OK : SX_EXIT_ERROR;
}

static int report(const char *name, sx_status status, int usage)
{
    int code = usage != 0 ? usage : exit_code_of(sx_status_code(status));
    if (status != SX_OK && sx_status_code(status) != SX_CANCELLED) {
        fprintf(stderr, "sextant %s: %s\n", name, sx_status_message(status));
        if (getenv("SEXTANT_TRACE") != NULL) {
            fprintf(stderr, "  at %s\n", sx_status_trace(status));
        }
    }
    if (usage != 0) {
        fprintf(stderr, "see: sextant help %s\n", name);
    }
    sx_status_free(status);
    return code;
}

/* --- running
 * --------------------------------------------------------------------------------------------- */

static sx_status check_words(const sx_command *c, const sx_invocation *inv)
{
    if (inv->words.count < c->min_words) {
        return sx_error(SX_INVALID_ARGUMENT, "expected %s", c->words);
    }
    if (c->max_words >= 0 && inv->words.count > c->max_words) {
        return sx_error(SX_INVALID_ARGUMENT, "\"%s\" is one word too many; expected %s",
                        inv->words.items[c->max_words],
                        c->words[0] != '\0' ? c->words : "options only");
    }
    if (inv->rest.count > 0 && !c->takes_rest) {
        return sx_error(SX_INVALID_ARGUMENT, "nothing may follow --, got \"%s\"",
                        inv->rest.items[0]);
    }
    return SX_OK;
}

static int run_command(const sx_command *c, sx_invocation *inv, int argc, const char *const *argv)
{
    if (c->defaults != NULL) {
        memcpy(inv->options, c->defaults, c->options_bytes);
    }
    sx_status status = sx_options_parse(c->options, c->n_options, argc, argv, inv);
    if (status == SX_OK && inv->help) {
        sx_help_command(c);
        return SX_EXIT_OK;
    }
    if (status == SX_OK) {
        status = check_words(c, inv);
    }
    if (status != SX_OK) {
        return report(c->name, status, SX_EXIT_USAGE);
    }
    return report(c->name, c->run(inv), 0);
}

static int unknown_command(const char *name)
{
    const char *nearest = sx_command_nearest(name);
    fprintf(stderr, "sextant: no command \"%s\"", name);
    fprintf(stderr, nearest != NULL ? "; did you mean %s?\n" : "; `sextant help` lists them%s\n",
            nearest != NULL ? nearest : "");
    return SX_EXIT_USAGE;
}

int sx_cli_run(int argc, const char *const *argv)
{
    catch_signals();
    if (argc == 0) {
        sx_help_overview();
        return SX_EXIT_USAGE;
    }
    if (strcmp(argv[0], "--help") == 0 || strcmp(argv[0], "-h") == 0) {
        sx_help_overview();
        return SX_EXIT_OK;
    }
    int words = 0;
    const sx_command *c = sx_command_find(strcmp(argv[0], "--version") == 0 ? "version" : argv[0],
                                          argc > 1 ? argv[1] : NULL, &words);
    if (c == NULL) {
        return unknown_command(argv[0]);
    }
    sx_invocation *inv = calloc(1, sizeof(*inv));
    void *options = calloc(1, c->options_bytes + 1);
    bool *given = calloc((size_t)c->n_options + 1, sizeof(bool));
    int code = SX_EXIT_RESOURCES;
    if (inv != NULL && options != NULL && given != NULL) {
        inv->options = options;
        inv->given = given;
        code = run_command(c, inv, argc - words, argv + words);
    }
    free(inv);
    free(options);
    free(given);
    return fflush(stdout) != 0 && code == SX_EXIT_OK ? SX_EXIT_ERROR : code;
}
