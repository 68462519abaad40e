/* See device_choice.h. */
#include "distribute/device_choice.h"

#include <string.h>

#include "base/checked.h"
#include "base/memory.h"
#include "distribute/device_list.h"

/* Appends one name. */
static sx_status take_name(const char *name, int *numbers, sx_device_choice *out)
{
    sx_device_spec spec;
    const char *type;
    int number;
    SX_TRY(sx_device_spec_parse_one(name, &spec, &type, &number), "devices \"%.200s\"", out->text);
    if (out->n > 0 && type != out->type) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "devices \"%.200s\": the replicas of a strategy are devices of one type, "
                        "not %s and %s",
                        out->text, out->type, type);
    }
    for (int i = 0; i < out->n; i++) {
        if (numbers[i] == number) {
            return sx_error(SX_INVALID_ARGUMENT, "devices \"%.200s\": %s:%d is there twice",
                            out->text, type, number);
        }
    }
    if (out->n == SX_MAX_REPLICAS) {
        return sx_error(SX_INVALID_ARGUMENT, "devices names more than %d devices", SX_MAX_REPLICAS);
    }
    out->spec = spec;
    out->type = type;
    out->greatest = SX_MAX(out->greatest, number);
    numbers[out->n++] = number;
    return SX_OK;
}

sx_status sx_device_choice_parse(const char *text, sx_arena *arena, sx_device_choice *out)
{
    const char *const *names = NULL;
    int n = 0;
    int *numbers = sx_arena_array(arena, SX_MAX_REPLICAS, int);
    *out = (sx_device_choice){.text = sx_arena_strdup(arena, text), .numbers = numbers};
    if (numbers == NULL || out->text == NULL) {
        return sx_no_memory("for the names of devices");
    }
    SX_TRY(sx_device_list_split(text, arena, &names, &n));
    for (int i = 0; i < n; i++) {
        SX_TRY(take_name(names[i], numbers, out));
    }
    return SX_OK;
}

sx_status sx_device_choice_check(const sx_device_choice *choice, const char *owner, int count)
{
    return choice->greatest < count
               ? SX_OK
               : sx_error(SX_INVALID_ARGUMENT,
                          "devices \"%.200s\": there is no %s:%d; %s has %d device%s, from %s:0",
                          choice->text, choice->type, choice->greatest, owner, count,
                          count == 1 ? "" : "s", choice->type);
}
