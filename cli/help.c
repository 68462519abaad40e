/* Help, generated from the rows. */
#include <stdio.h>
#include <string.h>

#include "command.h"

enum { WIDTH = 79, NAME_WIDTH = 24 };

/* Wraps `text` at column WIDTH, with later lines indented by `indent`; the first line continues the
 * current one. An empty line separates paragraphs. */
static void print_wrapped(const char *text, int indent)
{
    int column = 0;
    while (*text != '\0') {
        int length = (int)strcspn(text, " \n");
        const bool ends_paragraph = *text == '\n';
        if (ends_paragraph || (column > 0 && indent + column + 1 + length > WIDTH)) {
            printf("%s\n%*s", ends_paragraph ? "\n" : "", indent, "");
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
    } else if (o->kind == SX_OPTION_INT) {
        format_int(o, *(const int64_t *)field, out, capacity);
    } else if (o->kind == SX_OPTION_SIZE && *(const int64_t *)field != 0) {
        char text[32];
        snprintf(out, capacity, "; default: %s",
                 sx_option_size_text(*(const int64_t *)field, text));
    } else if (o->kind == SX_OPTION_FLOAT && *(const double *)field != 0) {
        snprintf(out, capacity, "; default: %g", *(const double *)field);
    } else if ((o->kind == SX_OPTION_STRING || o->kind == SX_OPTION_CHOICE) &&
               *(const char *const *)field != NULL) {
        snprintf(out, capacity, "; default: %s", *(const char *const *)field);
    }
}

bool sx_option_is_on(const sx_option *o, const void *values)
{
    return o->kind == SX_OPTION_FLAG && values != NULL &&
           *(const bool *)((const char *)values + o->offset);
}

const char *sx_option_value(const sx_option *o)
{
    return o->kind == SX_OPTION_CHOICE ? o->choices : o->value;
}

void sx_option_help(const sx_option *o, const void *values, char *out, size_t capacity)
{
    char shown[128] = "";
    if (values != NULL) {
        format_default(o, (const char *)values + o->offset, shown, sizeof(shown));
    }
    snprintf(out, capacity, "%s%s%s%s", o->no_effect ? "no effect: " : "", o->help,
             o->required ? " (required)" : "", shown);
}

static void print_option(const sx_option *o, const void *values)
{
    char left[128], help[1024];
    const char *value = sx_option_value(o);
    const char letter[] = {'-', o->letter, ',', ' ', '\0'};
    snprintf(left, sizeof(left), "%s--%s%s%s%s%s", o->letter != 0 ? letter : "",
             sx_option_is_on(o, values) ? "[no-]" : "", o->name, value != NULL ? " " : "",
             value != NULL ? value : "", o->kind == SX_OPTION_LIST ? "..." : "");
    sx_option_help(o, values, help, sizeof(help));
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

sx_option_table sx_option_table_of(const sx_command *c)
{
    return (sx_option_table){c->options, c->n_options, (void *)c->defaults, NULL, NULL};
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
    const sx_option_table own = sx_option_table_of(c);
    print_options(&own, "Options");
    print_options(&sx_common_options, "Common options");
    if (c->examples != NULL) {
        printf("\nExamples:\n%s\n", c->examples);
    }
}

/* Whether the command is in the family ("data": "data fetch", ...); NULL: any. */
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
           "exit-codes` and `sextant help environment` for exit codes and environment\n"
           "variables.\n");
}

const sx_help_row sx_exit_codes[] = {
    {"0", "success"},
    {"1", "the command failed; see the message"},
    {"2", "invalid option or argument; nothing was done"},
    {"3", "corrupt data: a record, an image or a checkpoint"},
    {"4", "training stopped at a NaN or an infinity; the last checkpoint is kept"},
    {"5", "out of memory or disk space, or over a size limit"},
    {"6", "a device or a server is unavailable; checkpoints are kept"},
    {"129", "the terminal was closed (SIGHUP); progress is saved"},
    {"130", "interrupted by Ctrl-C; progress is saved"},
    {"143", "terminated by SIGTERM; progress is saved"},
    {NULL, NULL},
};
_Static_assert(SX_EXIT_ERROR == 1 && SX_EXIT_USAGE == 2 && SX_EXIT_DATA == 3 &&
                   SX_EXIT_NOT_FINITE == 4 && SX_EXIT_RESOURCES == 5 && SX_EXIT_UNAVAILABLE == 6 &&
                   SX_EXIT_SIGHUP == 129 && SX_EXIT_SIGINT == 130 && SX_EXIT_SIGTERM == 143,
               "the table lists all codes");

const sx_help_row sx_environment[] = {
    {"NO_COLOR", "if set, no colors unless --color always is given"},
    {"XDG_CACHE_HOME", "compiled models and programs are cached in $XDG_CACHE_HOME/sextant; "
                       "default: ~/.cache/sextant"},
    {"CC, CXX", "compilers of models in C and C++; default: cc, c++"},
    {"SEXTANT_INCLUDE", "directory of the headers for such models; default: found beside the "
                        "program"},
    {"PJRT_NAMES_AND_LIBRARY_PATHS", "PJRT plugins, as name:path, separated by commas"},
    {"TPU_LIBRARY_PATH", "path of libtpu.so"},
    {"MODEL_NAME", "name of the model for serve if no option gives it; default: model"},
    {"MODEL_BASE_PATH", "directory that contains the directory of that model; default: /models"},
    {"VIRTUAL_ENV", "Python environment whose packages are searched for PJRT plugins"},
    {"TPU_NAME, TPU_CONFIG, TF_CONFIG, COLAB_TPU_ADDR, KUBE_GOOGLE_CLOUD_TPU_ENDPOINTS",
     "the TPU, as TensorFlow's TPUClusterResolver reads them; TF_CONFIG: also the chief and the "
     "workers that train together"},
    {NULL, NULL},
};

void sx_help_exit_codes(void)
{
    printf("Exit codes:\n");
    for (const sx_help_row *row = sx_exit_codes; row->name != NULL; row++) {
        printf("  %3s  %s\n", row->name, row->text);
    }
}

void sx_help_environment(void)
{
    printf("Environment variables:\n");
    for (const sx_help_row *row = sx_environment; row->name != NULL; row++) {
        printf("  ");
        print_wrapped(row->name, 2);
        printf("      ");
        print_wrapped(row->text, 6);
    }
}
