/* Options of a plugin that the user gives as text: those of its client, and those of XLA for each
 * program.
 *
 *   memory_fraction=0.5,preallocate=true,visible_devices=[0,1],allocator=bfc
 *
 * true and false are bools; whole numbers int64; other numbers float; numbers in brackets a list;
 * the rest, and what is in double quotes, strings. Plugins refuse unknown names and wrong types. */
#ifndef SX_BACKENDS_PJRT_SETTINGS_H
#define SX_BACKENDS_PJRT_SETTINGS_H

#include "backends/pjrt/plugin.h"
#include "base/arena.h"

enum { SX_PJRT_MAX_SETTINGS = 64, SX_PJRT_OUR_SETTINGS = 6 };

typedef struct sx_pjrt_settings {
    /* names and values in the arena; some of the rows are for what we add */
    sx_pjrt_named rows[SX_PJRT_MAX_SETTINGS + SX_PJRT_OUR_SETTINGS];
    size_t n;
} sx_pjrt_settings;

/* Reads a list; NULL and "" are empty ones. `what` is how errors call it. INVALID_ARGUMENT: no
 * name, no value, a name twice, too many, a number out of range; the text and the place. */
SX_MUST_USE sx_status sx_pjrt_read_settings(const char *what, const char *text, sx_arena *arena,
                                            sx_pjrt_settings *out);

/* The same of options of XLA, which also cannot be lists. */
SX_MUST_USE sx_status sx_pjrt_read_xla_settings(const char *text, sx_arena *arena,
                                                sx_pjrt_settings *out);

/* Checks the options of a client against those that plugins of this kind are known to take, and
 * gives a whole number the type float where the option has it. INVALID_ARGUMENT: another name, or
 * another type; what there is. Of a plugin of unknown kind all pass: it knows its own. */
SX_MUST_USE sx_status sx_pjrt_check_settings(sx_pjrt_kind kind, const char *what,
                                             sx_pjrt_settings *settings);

/* Adds a row before the others unless the user gave one of that name. (XLA's CPU plugin 0.81 reads
 * the first option alone.) */
void sx_pjrt_default_setting(sx_pjrt_settings *settings, sx_pjrt_named row);

bool sx_pjrt_has_setting(const sx_pjrt_settings *settings, const char *name);

/* A row of this name and type, whose value is to be set; value_size is 1. */
sx_pjrt_named sx_pjrt_setting(const char *name, int type);

#endif
