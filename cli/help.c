/* Help, generated from the rows. */
#include <stdio.h>
#include <string.h>

#include "command.h"

enum { NAME_WIDTH = 28, TEXT_WIDTH = 66 };

/* Words of `text` in lines of TEXT_WIDTH, the first after what was printed already. */
static void print_wrapped(const char *text)
{
    int column = 0;
    while (*text != '\0') {
        int length = (int)strcspn(text, " ");
        if (column > 0 && column + 1 + length > TEXT_WIDTH) {
            printf("\n%*s", NAME_WIDTH + 4, "");
            column = 0;
        }
        column += printf("%s%.*s", column > 0 ? " " : "", length, text);
        text += length + (text[length] == ' ');
    }
    putchar('\n');
}

static void format_int(const sx_option *o, int64_t value, char *out, size_t capacity)
{
    if (o->word.word != NULL && value == o->word.value) {
        snprintf(out, capacity, " [%s]", o->word.word);
    } else if (value != 0) {
        snprintf(out, capacity, " [%lld]", (long long)value);
    }
}

static void format_default(const sx_option *o, const void *field, char *out, size_t capacity)
{
    out[0] = '\0';
    if (o->kind == SX_OPTION_FLAG && *(const bool *)field) {
        snprintf(out, capacity, " [on]");
    } else if (o->kind == SX_OPTION_INT) {
        format_int(o, *(const int64_t *)field, out, capacity);
    } else if (o->kind == SX_OPTION_FLOAT && *(const double *)field != 0) {
        snprintf(out, capacity, " [%g]", *(const double *)field);
    } else if ((o->kind == SX_OPTION_STRING || o->kind == SX_OPTION_CHOICE) &&
               *(const char *const *)field != NULL) {
        snprintf(out, capacity, " [%s]", *(const char *const *)field);
    }
}

static void print_option(const sx_option *o, const void *values)
{
    char left[128], help[1024], shown[128] = "";
    if (values != NULL) {
        format_default(o, (const char *)values + o->offset, shown, sizeof(shown));
    }
    const char *value = o->kind == SX_OPTION_CHOICE ? o->choices : o->value;
    snprintf(left, sizeof(left), "--%s%s%s%s", o->name, value != NULL ? " " : "",
             value != NULL ? value : "", o->kind == SX_OPTION_LIST ? "..." : "");
    snprintf(help, sizeof(help), "%s%s%s", o->help, o->required ? " (required)" : "", shown);
    if ((int)strlen(left) > NAME_WIDTH) {
        printf("  %s\n%*s", left, NAME_WIDTH + 4, "");
    } else {
        printf("  %-*s  ", NAME_WIDTH, left);
    }
    print_wrapped(help);
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
        printf("\n%s\n", c->about);
    }
    /* values is read only here */
    sx_option_table own = {c->options, c->n_options, (void *)c->defaults, NULL};
    print_options(&own, "options");
    print_options(&sx_common_options, "common options");
    if (c->examples != NULL) {
        printf("\nexamples:\n%s\n", c->examples);
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
        printf("Train, evaluate, export and serve TensorFlow-style models, in C.\n\n");
    }
    printf("commands:\n");
    for (int i = 0; sx_commands[i] != NULL; i++) {
        if (is_of(sx_commands[i]->name, family)) {
            printf("  %-18s %s\n", sx_commands[i]->name, sx_commands[i]->summary);
        }
    }
    printf("\n`sextant help COMMAND` says more; `sextant help exit-codes` lists the exit codes.\n");
}

typedef struct exit_text {
    int code;
    const char *text;
} exit_text;

void sx_help_exit_codes(void)
{
    static const exit_text rows[] = {
        {SX_EXIT_OK, "all went well"},
        {SX_EXIT_ERROR, "the command failed; the message says why"},
        {SX_EXIT_USAGE, "an option or word is wrong; nothing was done"},
        {SX_EXIT_DATA, "data is corrupt: a record, an image, a checkpoint"},
        {SX_EXIT_NOT_FINITE, "training met a NaN or an infinity; the last checkpoint is kept"},
        {SX_EXIT_RESOURCES, "memory, disk or a size limit is exhausted"},
        {SX_EXIT_UNAVAILABLE,
         "a device or a server is lost or does not answer; checkpoints are kept"},
        {SX_EXIT_SIGINT, "stopped by Ctrl-C; what was done is saved"},
        {SX_EXIT_SIGTERM, "stopped by SIGTERM; what was done is saved"},
    };
    printf("exit codes:\n");
    for (size_t i = 0; i < SX_COUNT(rows); i++) {
        printf("  %3d  %s\n", rows[i].code, rows[i].text);
    }
}
