/* Manual pages in roff, from the same rows as --help. Macros of man(7) only. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "command.h"

/* ---- Roff text ---- */

/* Escapes text for roff; `code`: with ASCII hyphens, quotes and graves, so that it can be copied. A
 * line break starts a new input line. */
static void put(const char *text, bool code)
{
    bool at_start = true;
    for (const char *c = text; *c != '\0'; c++) {
        if (at_start && (*c == '.' || *c == '\'')) {
            fputs("\\&", stdout);
        }
        at_start = *c == '\n';
        switch (*c) {
        case '\\':
            fputs("\\e", stdout);
            break;
        case '-':
            fputs("\\-", stdout);
            break;
        case '\'':
            fputs(code ? "\\(aq" : "'", stdout);
            break;
        case '`':
            fputs("\\(ga", stdout);
            break;
        case '|': /* allow a break in long lists of choices */
        case ',':
            putchar(*c);
            fputs(c[1] != ' ' ? "\\:" : "", stdout);
            break;
        case '^':
            fputs("\\(ha", stdout);
            break;
        case '~':
            fputs("\\(ti", stdout);
            break;
        default:
            putchar(*c);
        }
    }
}

/* Running text: `code` in backticks is bold. */
static void put_prose(const char *text)
{
    bool in_code = false;
    for (const char *c = text; *c != '\0';) {
        char piece[256];
        size_t size = strcspn(c, "`");
        size = size < sizeof(piece) - 1 ? size : sizeof(piece) - 1;
        memcpy(piece, c, size);
        piece[size] = '\0';
        put(piece, in_code);
        c += size;
        if (*c == '`') {
            in_code = !in_code;
            fputs(in_code ? "\\fB" : "\\fR", stdout);
            c++;
        }
    }
    putchar('\n');
}

static void put_upper(const char *text)
{
    for (; *text != '\0'; text++) {
        putchar(toupper((unsigned char)*text));
    }
}

/* "data from-images" is the page sextant-data-from-images. */
static void put_page_name(const char *name, bool upper)
{
    fputs(upper ? "SEXTANT" : "sextant", stdout);
    for (const char *c = name; c != NULL && *c != '\0'; c++) {
        if (c == name || *c == ' ') {
            fputs("\\-", stdout);
        }
        if (*c == '-') {
            fputs("\\-", stdout);
        } else if (*c != ' ') {
            putchar(upper ? toupper((unsigned char)*c) : *c);
        }
    }
}

static void put_section(const char *name)
{
    fputs(".SH ", stdout);
    put_upper(name);
    putchar('\n');
}

static void put_head(const char *name, const char *summary)
{
    fputs(".\\\" Printed by sextant help --man.\n.TH ", stdout);
    put_page_name(name, true);
    printf(" 1 \"\" \"Sextant %s\" \"Sextant Manual\"\n.nh\n.ad l\n", SX_VERSION);
    put_section("Name");
    put_page_name(name, false);
    fputs(" \\- ", stdout);
    put(summary, false);
    putchar('\n');
    put_section("Synopsis");
}

/* ---- Options ---- */

static void put_option(const sx_option *o, const void *values)
{
    char help[1024];
    const char *value = sx_option_value(o);
    sx_option_help(o, values, help, sizeof(help));
    fputs(".TP\n", stdout);
    if (o->letter != 0) {
        printf("\\fB\\-%c\\fR, ", o->letter);
    }
    fputs("\\fB\\-\\-", stdout);
    if (sx_option_is_on(o, values)) {
        fputs("\\fR[\\fBno\\-\\fR]\\fB", stdout);
    }
    put(o->name, true);
    fputs("\\fR", stdout);
    if (value != NULL) {
        fputs(" \\fI", stdout);
        put(value, true);
        fputs(o->kind == SX_OPTION_LIST ? "\\fR..." : "\\fR", stdout);
    }
    putchar('\n');
    put_prose(help);
}

static void put_options(const sx_option_table *table)
{
    for (int i = 0; i < table->n; i++) {
        const sx_option *o = &table->rows[i];
        if (o->group != NULL) {
            printf(".SS %s\n", o->group);
        }
        put_option(o, table->values);
    }
}

static void put_rows(const sx_help_row *rows)
{
    for (; rows->name != NULL; rows++) {
        fputs(".TP\n\\fB", stdout);
        put(rows->name, true);
        fputs("\\fR\n", stdout);
        put_prose(rows->text);
    }
}

static void put_see_also(const char *name, const char *after)
{
    fputs(".BR ", stdout);
    put_page_name(name, false);
    printf(" (1)%s\n", after);
}

/* ---- Pages ---- */

static void put_command(const sx_command *c)
{
    put_head(c->name, c->summary);
    fputs(".B sextant ", stdout);
    put(c->name, true);
    putchar('\n');
    if (c->words[0] != '\0') {
        fputs(".I ", stdout);
        put(c->words, true);
        putchar('\n');
    }
    if (c->n_options > 0) {
        fputs("[\\fIoptions\\fR]\n", stdout);
    }
    if (c->rest != NULL) {
        printf("[\\fB\\-\\-\\fR \\fI%s\\fR]\n", c->rest);
    }
    put_section("Description");
    if (c->about != NULL) {
        put_prose(c->about);
    } else { /* the summary as a sentence */
        char text[256];
        snprintf(text, sizeof(text), "%c%s.", toupper((unsigned char)c->summary[0]),
                 c->summary + 1);
        put_prose(text);
    }
    if (c->n_options > 0) {
        put_section("Options");
        const sx_option_table own = sx_option_table_of(c);
        put_options(&own);
        puts(".SS Common options");
    } else {
        put_section("Options");
    }
    put_options(&sx_common_options);
    if (c->examples != NULL) {
        put_section("Examples");
        puts(".nf");
        put(c->examples, true);
        puts("\n.fi");
    }
    put_section("See also");
    put_see_also("", "");
}

static void put_program(void)
{
    put_head("", "train, evaluate, export and serve TensorFlow-style models");
    puts(".B sextant\n[\\fIoptions\\fR]\n.I COMMAND\n[\\fIarguments\\fR]");
    put_section("Description");
    puts("Sextant covers the life of a model: it prepares data, trains on CPUs, GPUs and TPUs,\n"
         "evaluates and predicts, exports SavedModels and serves them. It reads and writes the "
         "files\n"
         "of TensorFlow: TFRecords, checkpoints and SavedModels.\n.PP\n"
         "Options may be given in any order; \\- and _ in their names are equivalent, and a value "
         "may\n"
         "follow after a space or an equals sign.");
    put_section("Commands");
    for (int i = 0; sx_commands[i] != NULL; i++) {
        puts(".TP");
        put_see_also(sx_commands[i]->name, "");
        put_prose(sx_commands[i]->summary);
    }
    put_section("Options");
    put_options(&sx_common_options);
    puts(".TP\n\\fB\\-h\\fR, \\fB\\-\\-help\\fR\nprint help, also after a "
         "command\n.TP\n\\fB\\-V\\fR, "
         "\\fB\\-\\-version\\fR\nprint the version");
    put_section("Exit status");
    put_rows(sx_exit_codes);
    put_section("Environment");
    put_rows(sx_environment);
    put_section("Examples");
    puts(".nf");
    put("sextant data fetch flowers --dir photos/\n"
        "sextant data from-images photos/ --out data/ --split train=.8,val=.2\n"
        "sextant train flowers_cnn --data 'data/train-*' --eval-data 'data/val-*' --model-dir "
        "run1\n"
        "sextant export run1 --out models/flowers\n"
        "sextant serve --model_name=flowers --model_base_path=$PWD/models/flowers",
        true);
    puts("\n.fi");
    put_section("See also");
    for (int i = 0; sx_commands[i] != NULL; i++) {
        put_see_also(sx_commands[i]->name, sx_commands[i + 1] != NULL ? "," : "");
    }
}

void sx_print_manual(const sx_command *command)
{
    if (command != NULL) {
        put_command(command);
    } else {
        put_program();
    }
}
