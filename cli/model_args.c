#include "model_args.h"

#include <string.h>

#include "nn/zoo/zoo.h"
#include "terminal.h"

typedef struct args_job {
    sx_invocation *inv;
    sx_model_args *out;
} args_job;

static sx_status unknown_model(args_job *j, const char *name)
{
    const char *names[64];
    size_t n = 0;
    for (; sx_zoo[n] != NULL && n < SX_COUNT(names); n++) {
        names[n] = sx_zoo[n]->name;
    }
    return sx_usage(
        j->inv, sx_error(SX_NOT_FOUND, "unknown model \"%s\"%s", name,
                         sx_did_you_mean(&j->inv->arena, name, names, n,
                                         "; see `sextant zoo`, or give a C file as ./model.c")));
}

static sx_status find_model(args_job *j, const char *name)
{
    j->out->def = sx_zoo_find(name);
    if (j->out->def != NULL) {
        return SX_OK;
    }
    if (!sx_model_file_is(name)) {
        return unknown_model(j, name);
    }
    sx_terminal t = sx_terminal_of(stderr, sx_common_of(j->inv)->color);
    SX_TRY(sx_model_file_load(name, t.colors, &j->out->file));
    j->out->def = &j->out->file.def;
    return SX_OK;
}

/* Names as the models' C code asks for them: num-classes is num_classes. */
static sx_status set_param(args_job *j, const char *name, size_t size, const char *value)
{
    char *text = sx_arena_strndup(&j->inv->arena, name, size);
    if (text == NULL) {
        return sx_error(SX_RESOURCE_EXHAUSTED, "out of memory");
    }
    for (char *p = text; *p != '\0'; p++) {
        *p = *p == '-' ? '_' : *p;
    }
    return sx_params_set(j->out->params, text, value);
}

static sx_status set_param_word(args_job *j, const char *word)
{
    size_t size = strcspn(word, "=");
    if (size == 0 || word[size] == '\0') {
        return sx_usage(j->inv, sx_error(SX_INVALID_ARGUMENT,
                                         "model parameter \"%s\": expected NAME=VALUE", word));
    }
    return set_param(j, word, size, word + size + 1);
}

/* After --: --name value, --name=value, name=value; a name alone is 1. */
static sx_status read_rest(args_job *j)
{
    const sx_words *rest = &j->inv->rest;
    for (int i = 0; i < rest->count; i++) {
        const char *word = rest->items[i];
        if (strncmp(word, "--", 2) != 0) {
            SX_TRY(set_param_word(j, word));
            continue;
        }
        word += 2;
        const char *next = i + 1 < rest->count ? rest->items[i + 1] : NULL;
        bool takes_next = strchr(word, '=') == NULL && next != NULL && strncmp(next, "--", 2) != 0;
        if (strchr(word, '=') != NULL) {
            SX_TRY(set_param_word(j, word));
        } else {
            SX_TRY(set_param(j, word, strlen(word), takes_next ? next : "1"));
            i += takes_next;
        }
    }
    return SX_OK;
}

sx_status sx_model_args_read(sx_invocation *inv, const char *name, const sx_words *params,
                             sx_model_args *out)
{
    args_job j = {.inv = inv, .out = out};
    *out = (sx_model_args){0};
    SX_TRY(find_model(&j, name));
    SX_TRY(sx_params_create(&out->params));
    for (int i = 0; i < params->count; i++) {
        SX_TRY(set_param_word(&j, params->items[i]));
    }
    return read_rest(&j);
}

void sx_model_args_end(sx_model_args *args)
{
    sx_params_destroy(args->params);
    sx_model_file_unload(&args->file);
    *args = (sx_model_args){0};
}
