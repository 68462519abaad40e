/* Completion scripts for shells, from the same rows as --help. The kind of a value follows from its
 * name in the help: DIR and RUN_DIR are directories; FILE, PATH and DATA are files; a|b are words,
 * of a=N the part to the =;
 * MODEL is a zoo model; COMMAND is a command; others are not completed. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "command.h"
#include "nn/zoo/zoo.h"

typedef enum candidates {
    NOTHING = 0,
    FILES = 1,
    DIRS = 2,
    MODELS = 4,
    COMMANDS = 8,
    WORDS = 16, /* the words given in the name itself */
} candidates;

static const struct {
    const char *name;
    candidates are;
} names[] = {
    {"DIR", DIRS},         {"RUN_DIR", DIRS}, {"MODEL_DIR", DIRS},  {"FILE", FILES},
    {"PATH", FILES},       {"DATA", FILES},   {"SOURCE", FILES},    {"IMAGES", FILES},
    {"LABELS", FILES},     {"MODEL", MODELS}, {"./model.c", FILES}, {"./model.cpp", FILES},
    {"COMMAND", COMMANDS},
};

/* Moves *text to the next alternative of "RUN_DIR|best [N]" and returns its length; 0 at the end.
 */
static size_t next_name(const char **text)
{
    static const char between[] = "|[] ";
    *text += strspn(*text, between);
    size_t size = strcspn(*text, between);
    return size > 3 && strncmp(*text + size - 3, "...", 3) == 0 ? size - 3 : size;
}

static const char *after(const char *text, size_t size)
{
    return strncmp(text + size, "...", 3) == 0 ? text + size + 3 : text + size;
}

static bool is_word(const char *name, size_t size)
{
    for (size_t i = 0; i < size && (i == 0 || name[i] != '='); i++) {
        if (!islower((unsigned char)name[i]) && !isdigit((unsigned char)name[i]) &&
            strchr("-_", name[i]) == NULL) {
            return false;
        }
    }
    return size > 1; /* not the N of a number in small letters */
}

static candidates candidates_of(const char *text)
{
    unsigned all = NOTHING;
    for (size_t size = 0; text != NULL && (size = next_name(&text)) > 0; text = after(text, size)) {
        for (size_t i = 0; i < SX_COUNT(names); i++) {
            bool same = strlen(names[i].name) == size && memcmp(names[i].name, text, size) == 0;
            all |= same ? names[i].are : NOTHING;
        }
        all |= is_word(text, size) ? WORDS : NOTHING;
    }
    return (candidates)all;
}

/* ---- Words, separated by spaces ---- */

static void put_words_of(const char *text)
{
    for (size_t size = 0; (size = next_name(&text)) > 0; text = after(text, size)) {
        if (is_word(text, size)) {
            const char *end = memchr(text, '=', size);
            printf("%.*s ", end != NULL ? (int)(end + 1 - text) : (int)size, text);
        }
    }
}

static bool is_first_of_family(int i)
{
    const char *name = sx_commands[i]->name;
    size_t size = strcspn(name, " ");
    for (int k = 0; k < i; k++) {
        if (strncmp(sx_commands[k]->name, name, size) == 0 && sx_commands[k]->name[size] == ' ') {
            return false;
        }
    }
    return true;
}

/* The first words of all commands, each once. */
static void put_commands(void)
{
    for (int i = 0; sx_commands[i] != NULL; i++) {
        if (is_first_of_family(i)) {
            printf("%.*s ", (int)strcspn(sx_commands[i]->name, " "), sx_commands[i]->name);
        }
    }
}

static void put_candidate_words(const char *text)
{
    unsigned all = candidates_of(text);
    for (int i = 0; (all & MODELS) != 0 && sx_zoo[i] != NULL; i++) {
        printf("%s ", sx_zoo[i]->name);
    }
    if ((all & COMMANDS) != 0) {
        put_commands();
    }
    if ((all & WORDS) != 0) {
        put_words_of(text);
    }
}

/* ---- Bash ---- */

static const char bash_head[] =
    "# bash completion for sextant; printed by `sextant completion bash`.\n"
    "_sextant() {\n"
    "    local cur=${COMP_WORDS[COMP_CWORD]} command= last= option= i word\n"
    "    local options= words= files= value= value_words= value_files=\n"
    "    COMPREPLY=()\n"
    "    for ((i = 1; i < COMP_CWORD; i++)); do\n"
    "        word=${COMP_WORDS[i]}\n"
    "        case $command:$word in\n"
    "        *:--) return ;;\n";

static const char bash_middle[] =
    "        *:-*) last=${word//_/-} ;;\n"
    "        *:=) ;;\n"
    "        :*) command=$word ;;\n"
    "        esac\n"
    "    done\n"
    "    # The option whose value is being completed. `=` is a word of its own.\n"
    "    word=${COMP_WORDS[COMP_CWORD - 1]}\n"
    "    [ \"$word\" != = ] || word=${COMP_WORDS[COMP_CWORD - 2]}\n"
    "    [ \"$cur\" != = ] || cur=\n"
    "    [ \"${word#--}\" = \"$word\" ] || option=${word//_/-}\n"
    "    case $command:$last in\n";

static const char bash_tail[] = "    *) return ;;\n"
                                "    esac\n"
                                "    if [ -n \"$value\" ]; then\n"
                                "        words=$value_words files=$value_files\n"
                                "    elif [ \"${cur#-}\" != \"$cur\" ]; then\n"
                                "        words=$options files=\n"
                                "        # --model_ completes to --model_base_path\n"
                                "        if [ \"${cur#--*_}\" != \"$cur\" ]; then\n"
                                "            words=\" ${options//-/_}\"\n"
                                "            words=${words// __/ --}\n"
                                "        fi\n"
                                "    fi\n"
                                "    COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
                                "    if [ -n \"$files\" ]; then\n"
                                "        compopt -o filenames 2>/dev/null\n"
                                "        while IFS= read -r word; do\n"
                                "            COMPREPLY+=(\"$word\")\n"
                                "        done < <(compgen \"$files\" -- \"$cur\")\n"
                                "    fi\n"
                                "}\n"
                                "complete -F _sextant sextant";

static void put_bash_names(const sx_option_table *table)
{
    for (int i = 0; i < table->n; i++) {
        printf("--%s ", table->rows[i].name);
        if (sx_option_is_on(&table->rows[i], table->values)) {
            printf("--no-%s ", table->rows[i].name);
        }
    }
}

/* "files=-f", "files=-d" or nothing. */
static void put_bash_files(const char *name, unsigned all)
{
    if ((all & (FILES | DIRS)) != 0) {
        printf(" %s=%s", name, (all & FILES) != 0 ? "-f" : "-d");
    }
}

/* The second words of commands, after the first in a word of its own: `help data show`. */
static void put_second_words(const char *family)
{
    size_t size = strcspn(family, " ") + 1;
    for (int i = 0; sx_commands[i] != NULL; i++) {
        if (strncmp(sx_commands[i]->name, family, size) == 0) {
            printf("%s ", sx_commands[i]->name + size);
        }
    }
}

/* The cases of $option: candidates for its value. */
static void put_bash_values(const sx_option_table *table)
{
    for (int i = 0; i < table->n; i++) {
        const sx_option *o = &table->rows[i];
        if (o->kind != SX_OPTION_FLAG) {
            printf("        --%s) value=1 value_words='", o->name);
            put_candidate_words(sx_option_value(o));
            putchar('\'');
            put_bash_files("value_files", candidates_of(sx_option_value(o)));
            puts(" ;;");
        }
    }
}

void sx_print_bash_completion(void)
{
    fputs(bash_head, stdout);
    for (int i = 0; i < sx_common_options.n; i++) { /* before the command */
        const sx_option *o = &sx_common_options.rows[i];
        if (o->kind != SX_OPTION_FLAG) {
            printf("        :--%s)\n            ((i += 1))\n"
                   "            [ \"${COMP_WORDS[i]}\" != = ] || ((i += 1))\n            ;;\n",
                   o->name);
        }
    }
    for (int i = 0; sx_commands[i] != NULL; i++) {
        int size = (int)strcspn(sx_commands[i]->name, " ");
        if (sx_commands[i]->name[size] == ' ' && is_first_of_family(i)) {
            printf(
                "        :%.*s)\n            command=$word\n            ((i + 1 >= COMP_CWORD)) || "
                "command=\"$command ${COMP_WORDS[++i]//_/-}\"\n            ;;\n",
                size, sx_commands[i]->name);
        }
    }
    fputs(bash_middle, stdout);
    for (int i = 0; sx_commands[i] != NULL; i++) { /* lists take more than one word */
        for (int k = 0; k < sx_commands[i]->n_options; k++) {
            if (sx_commands[i]->options[k].kind == SX_OPTION_LIST) {
                printf("    '%s:--%s') option=${option:-$last} ;;\n", sx_commands[i]->name,
                       sx_commands[i]->options[k].name);
            }
        }
    }
    printf("    esac\n    case $command in\n    '')\n        words='");
    put_commands();
    printf("' options='");
    put_bash_names(&sx_common_options);
    puts("--help --version'\n        case $option in");
    put_bash_values(&sx_common_options);
    puts("        esac\n        ;;");
    for (int i = 0; sx_commands[i] != NULL; i++) {
        const char *name = sx_commands[i]->name;
        size_t size = strcspn(name, " ");
        if (name[size] == ' ' && is_first_of_family(i)) {
            printf("    '%.*s')\n        words='", (int)size, name);
            put_second_words(name);
            puts("' options='--help'\n        ;;");
        }
    }
    for (int i = 0; sx_commands[i] != NULL; i++) {
        const sx_command *c = sx_commands[i];
        const sx_option_table own = sx_option_table_of(c);
        printf("    '%s')\n        words='", c->name);
        put_candidate_words(c->words);
        printf("' options='");
        put_bash_names(&own);
        put_bash_names(&sx_common_options);
        printf("--help'");
        put_bash_files("files", candidates_of(c->words));
        putchar('\n');
        for (int k = 0; (candidates_of(c->words) & COMMANDS) != 0 && sx_commands[k] != NULL; k++) {
            const char *name = sx_commands[k]->name;
            if (strchr(name, ' ') != NULL && is_first_of_family(k)) {
                printf("        if [ \"${COMP_WORDS[COMP_CWORD - 1]}\" = %.*s ]; then words='",
                       (int)strcspn(name, " "), name);
                put_second_words(name);
                puts("'; fi");
            }
        }
        puts("        case $option in");
        put_bash_values(&own);
        put_bash_values(&sx_common_options);
        puts("        esac\n        ;;");
    }
    puts(bash_tail);
}

/* ---- Zsh ---- */

/* The text in a single-quoted zsh word, with colons and brackets escaped; only up to the first
 * semicolon, because the completion list is narrow. */
static void put_zsh_text(const char *text)
{
    for (const char *c = text; *c != '\0' && *c != ';'; c++) {
        if (*c == '\'') {
            fputs("'\\''", stdout);
        } else {
            fputs(strchr("[]:\\", *c) != NULL ? "\\" : "", stdout);
            putchar(*c);
        }
    }
}

/* ":what it is:what does it": the end of a specification of _arguments. */
static void put_zsh_value(const char *text, bool list)
{
    unsigned all = candidates_of(text);
    fputs(list ? ":*--*:" : ":", stdout);
    put_zsh_text(text);
    putchar(':');
    if ((all & (FILES | DIRS)) != 0 && (all & (WORDS | MODELS | COMMANDS)) != 0) {
        printf("{_alternative \"words\\:word\\:( ");
        put_candidate_words(text);
        printf(")\" \"files\\:file\\:_files\"}");
    } else if ((all & (WORDS | MODELS | COMMANDS)) != 0) {
        putchar('(');
        put_candidate_words(text);
        putchar(')');
    } else if ((all & (FILES | DIRS)) != 0) {
        fputs((all & FILES) != 0 ? "_files" : "_files -/", stdout);
    } else {
        putchar(' ');
    }
}

static void put_zsh_options(const sx_option_table *table)
{
    for (int i = 0; i < table->n; i++) {
        const sx_option *o = &table->rows[i];
        bool again = o->kind == SX_OPTION_LIST || o->kind == SX_OPTION_EACH;
        bool attached = o->kind != SX_OPTION_FLAG && o->kind != SX_OPTION_LIST; /* --name=value */
        printf("    '%s--%s%s[", again ? "*" : "", o->name, attached ? "=" : "");
        put_zsh_text(o->help);
        putchar(']');
        if (o->kind != SX_OPTION_FLAG) {
            put_zsh_value(sx_option_value(o), o->kind == SX_OPTION_LIST);
        }
        puts("'");
        if (sx_option_is_on(o, table->values)) {
            printf("    '--no-%s[do not: ", o->name);
            put_zsh_text(o->help);
            puts("]'");
        }
    }
}

/* Rows of _describe: names and summaries of a family's commands, or of all first words. */
static void put_zsh_commands(const char *family)
{
    size_t size = family != NULL ? strcspn(family, " ") + 1 : 0;
    for (int i = 0; sx_commands[i] != NULL; i++) {
        const char *name = sx_commands[i]->name, *space = strchr(name, ' ');
        if (family != NULL ? strncmp(name, family, size) == 0 : is_first_of_family(i)) {
            bool is_family = family == NULL && space != NULL;
            printf("    '%.*s:", (int)strcspn(name + size, " "), name + size);
            put_zsh_text(is_family ? "a group of commands" : sx_commands[i]->summary);
            puts("'");
        }
    }
}

void sx_print_zsh_completion(void)
{
    puts("#compdef sextant\n# zsh completion for sextant; printed by `sextant completion zsh`.\n"
         "_sextant() {\n  local curcontext=$curcontext state line command\n  typeset -A opt_args\n"
         "  local -a common commands specs\n  common=(");
    put_zsh_options(&sx_common_options);
    puts("    '(- *)--help[print help]'\n  )\n"
         "  _arguments -C $common '(- *)--version[print the version]' ':command:->command' "
         "'*::argument:->arguments'\n"
         "  case $state in\n  command)\n    commands=(");
    put_zsh_commands(NULL);
    puts("    )\n    _describe command commands\n    return ;;\n  arguments) ;;\n  *) return ;;\n"
         "  esac\n  command=$words[1]\n  case $command in");
    for (int i = 0; sx_commands[i] != NULL; i++) {
        const char *name = sx_commands[i]->name, *space = strchr(name, ' ');
        if (space != NULL && is_first_of_family(i)) {
            printf("  %.*s)\n    if ((CURRENT == 2)); then\n      commands=(\n",
                   (int)(space - name), name);
            put_zsh_commands(name);
            puts("      )\n      _describe command commands\n      return\n    fi\n"
                 "    shift words\n    ((CURRENT--))\n    command=\"$command $words[1]\"\n    ;;");
        }
    }
    puts("  esac\n  case $command in");
    for (int i = 0; sx_commands[i] != NULL; i++) {
        const sx_command *c = sx_commands[i];
        const sx_option_table own = sx_option_table_of(c);
        printf("  '%s')\n    specs=(\n", c->name);
        put_zsh_options(&own);
        if (c->words[0] != '\0') {
            printf("    '*");
            put_zsh_value(c->words, false);
            puts("'");
        }
        puts("    )");
        for (int k = 0; (candidates_of(c->words) & COMMANDS) != 0 && sx_commands[k] != NULL; k++) {
            const char *name = sx_commands[k]->name;
            if (strchr(name, ' ') != NULL && is_first_of_family(k)) {
                printf("    if ((CURRENT == 3)) && [[ $words[2] == %.*s ]]; then\n"
                       "      commands=(\n",
                       (int)strcspn(name, " "), name);
                put_zsh_commands(name);
                puts("      )\n      _describe command commands\n      return\n    fi");
            }
        }
        puts("    ;;");
    }
    puts("  *) return ;;\n  esac\n  _arguments -M 'm:_=- r:|[_-]=* r:|=*' $specs "
         "$common\n}\n_sextant \"$@\"");
}
