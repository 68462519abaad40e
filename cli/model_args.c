#include "model_args.h"

#include <string.h>

#include "base/memory.h"
#include "nn/zoo/zoo.h"
#include "terminal.h"

/* Finds a model in the zoo, or compiles a file. */
static sx_status find_model(sx_invocation *inv, const char *name, sx_model_args *out)
{
    out->def = sx_zoo_find(name);
    if (out->def != NULL) {
        return SX_OK;
    }
    if (!sx_model_file_is(name)) {
        const char *names[64];
        size_t n = 0;
        for (; sx_zoo[n] != NULL && n < SX_COUNT(names); n++) {
            names[n] = sx_zoo[n]->name;
        }
        return sx_usage(
            inv, sx_error(SX_NOT_FOUND, "unknown model \"%s\"%s", name,
                          sx_did_you_mean(&inv->arena, name, names, n,
                                          "; see `sextant zoo`, or give a C file as ./model.c")));
    }
    sx_terminal t = sx_terminal_of(stderr, sx_common_of(inv)->color);
    SX_TRY(sx_model_file_load(name, t.colors, &out->file));
    out->def = &out->file.def;
    return SX_OK;
}

/* Uses the names of the model's C code: num-classes becomes num_classes. */
static sx_status set_param(sx_invocation *inv, sx_params *params, const char *name, size_t size,
                           const char *value)
{
    char *text = sx_arena_strndup(&inv->arena, name, size);
    if (text == NULL) {
        return sx_no_memory("for the model");
    }
    for (char *p = text; *p != '\0'; p++) {
        *p = *p == '-' ? '_' : *p;
    }
    return sx_params_set(params, text, value);
}

static sx_status set_param_word(sx_invocation *inv, sx_params *params, const char *word)
{
    size_t size = strcspn(word, "=");
    if (size == 0 || word[size] == '\0') {
        return sx_usage(inv, sx_error(SX_INVALID_ARGUMENT,
                                      "model parameter \"%s\": expected NAME=VALUE", word));
    }
    return set_param(inv, params, word, size, word + size + 1);
}

sx_status sx_model_args_read(sx_invocation *inv, const char *name, const sx_words *params,
                             sx_model_args *out)
{
    *out = (sx_model_args){0};
    SX_TRY(find_model(inv, name, out));
    SX_TRY(sx_params_create(&out->params));
    for (int i = 0; i < params->count; i++) {
        SX_TRY(set_param_word(inv, out->params, params->items[i]));
    }
    /* After --: --name value, --name=value, name=value. */
    for (int i = 0; i < inv->rest.count; i++) {
        const char *word = inv->rest.items[i];
        const char *next = i + 1 < inv->rest.count ? inv->rest.items[i + 1] : NULL;
        bool dashes = strncmp(word, "--", 2) == 0;
        word += dashes ? 2 : 0;
        if (!dashes || strchr(word, '=') != NULL) {
            SX_TRY(set_param_word(inv, out->params, word));
        } else if (next != NULL && strncmp(next, "--", 2) != 0) {
            SX_TRY(set_param(inv, out->params, word, strlen(word), next));
            i++;
        } else {
            return sx_usage(
                inv, sx_error(SX_INVALID_ARGUMENT, "model parameter --%s needs a value", word));
        }
    }
    return SX_OK;
}

void sx_model_args_end(sx_model_args *args)
{
    sx_params_destroy(args->params);
    sx_model_file_unload(&args->file);
    *args = (sx_model_args){0};
}
