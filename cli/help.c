/* Help, generated from the rows. */
#include <stdio.h>
#include <string.h>

#include "command.h"

enum { WIDTH = 79, NAME_WIDTH = 24 };

/* Words of `text` in lines up to column WIDTH that begin at `indent`, the first after what was
 * printed already. */
static void print_wrapped(const char *text, int indent)
{
    int column = 0;
    while (*text != '\0') {
        int length = (int)strcspn(text, " \n");
        if (column > 0 && indent + column + 1 + length > WIDTH) {
            printf("\n%*s", indent, "");
            column = 0;
        }
        column += printf("%s%.*s", column > 0 ? " " : "", length, text);
        text += length + (text[length] != '\0');
    }
    putchar('\n');
}

static void format_int(const sx_option *o, int64_t value, char *out, size_t capacity)
{
    if (o->word.word != NULL && value == o->word.value) {
        snprintf(out, capacity, "; default: %s", o->word.word);
    } else if (value != 0) {
        snprintf(out, capacity, "; default: %lld", (long long)value);
    }
}

static void format_default(const sx_option *o, const void *field, char *out, size_t capacity)
{
    out[0] = '\0';
    if (o->kind == SX_OPTION_FLAG && *(const bool *)field) {
        snprintf(out, capacity, "; default: on");
    } else if (o->kind == SX_OPTION_INT || o->kind == SX_OPTION_SIZE) {
        format_int(o, *(const int64_t *)field, out, capacity);
    } else if (o->kind == SX_OPTION_FLOAT && *(const double *)field != 0) {
        snprintf(out, capacity, "; default: %g", *(const double *)field);
    } else if ((o->kind == SX_OPTION_STRING || o->kind == SX_OPTION_CHOICE) &&
               *(const char *const *)field != NULL) {
        snprintf(out, capacity, "; default: %s", *(const char *const *)field);
    }
}

static void print_option(const sx_option *o, const void *values)
{
    char left[128], help[1024], shown[128] = "";
    if (values != NULL) {
        format_default(o, (const char *)values + o->offset, shown, sizeof(shown));
    }
    const char *value = o->kind == SX_OPTION_CHOICE ? o->choices : o->value;
    bool is_on = o->kind == SX_OPTION_FLAG && shown[0] != '\0';
    snprintf(left, sizeof(left), "--%s%s%s%s%s", is_on ? "[no-]" : "", o->name,
             value != NULL ? " " : "", value != NULL ? value : "",
             o->kind == SX_OPTION_LIST ? "..." : "");
    snprintf(help, sizeof(help), "%s%s%s", o->help, o->required ? " (required)" : "", shown);
    if ((int)strlen(left) > NAME_WIDTH) {
        printf("  %s\n%*s", left, NAME_WIDTH + 4, "");
    } else {
        printf("  %-*s  ", NAME_WIDTH, left);
    }
    print_wrapped(help, NAME_WIDTH + 4);
}

static void print_options(const sx_option_table *table, const char *heading)
{
    for (int i = 0; i < table->n; i++) {
        const char *group = table->rows[i].group;
        if (i == 0 || group != NULL) {
            printf("\n%s:\n", group != NULL ? group : heading);
        }
        print_option(&table->rows[i], table->values);
    }
}

void sx_help_command(const sx_command *c)
{
    printf("usage: sextant %s%s%s%s%s%s%s\n\n%s\n", c->name, c->words[0] != '\0' ? " " : "",
           c->words, c->n_options > 0 ? " [options]" : "", c->rest != NULL ? " [-- " : "",
           c->rest != NULL ? c->rest : "", c->rest != NULL ? "]" : "", c->summary);
    if (c->about != NULL) {
        putchar('\n');
        print_wrapped(c->about, 0);
    }
    /* values is read only here */
    sx_option_table own = {c->options, c->n_options, (void *)c->defaults, NULL};
    print_options(&own, "Options");
    print_options(&sx_common_options, "Common options");
    if (c->examples != NULL) {
        printf("\nExamples:\n%s\n", c->examples);
    }
}

/* Is the command one of the family ("data": "data fetch", ...)? NULL: of any. */
static bool is_of(const char *name, const char *family)
{
    size_t size = family != NULL ? strlen(family) : 0;
    return family == NULL || (strncmp(name, family, size) == 0 && name[size] == ' ');
}

void sx_help_overview(const char *family)
{
    printf("usage: sextant %s%sCOMMAND [options]\n\n", family != NULL ? family : "",
           family != NULL ? " " : "");
    if (family == NULL) {
        printf("Train, evaluate, export and serve TensorFlow-style models.\n\n");
    }
    printf("Commands:\n");
    for (int i = 0; sx_commands[i] != NULL; i++) {
        if (is_of(sx_commands[i]->name, family)) {
            printf("  %-18s %s\n", sx_commands[i]->name, sx_commands[i]->summary);
        }
    }
    printf("\nSee `sextant help COMMAND` for the options of a command, and `sextant help\n"
           "exit-codes` for the exit codes.\n");
}

typedef struct exit_text {
    int code;
    const char *text;
} exit_text;

void sx_help_exit_codes(void)
{
    static const exit_text rows[] = {
        {SX_EXIT_OK, "success"},
        {SX_EXIT_ERROR, "the command failed; see the message"},
        {SX_EXIT_USAGE, "invalid option or argument; nothing was done"},
        {SX_EXIT_DATA, "corrupt data: a record, an image or a checkpoint"},
        {SX_EXIT_NOT_FINITE,
         "training stopped at a NaN or an infinity; the last checkpoint is kept"},
        {SX_EXIT_RESOURCES, "out of memory or disk space, or over a size limit"},
        {SX_EXIT_UNAVAILABLE, "a device or a server is unavailable; checkpoints are kept"},
        {SX_EXIT_SIGINT, "interrupted by Ctrl-C; progress is saved"},
        {SX_EXIT_SIGTERM, "terminated by SIGTERM; progress is saved"},
    };
    printf("Exit codes:\n");
    for (size_t i = 0; i < SX_COUNT(rows); i++) {
        printf("  %3d  %s\n", rows[i].code, rows[i].text);
    }
}
