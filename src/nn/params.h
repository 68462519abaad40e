/* sx_params: the parameters of a model by name, as texts, from the command line or a configuration.
 *
 * A model function asks for a parameter and gives its default. The names that were asked for are
 * recorded with their defaults: these are the parameters that the model has. */
#ifndef SX_NN_PARAMS_H
#define SX_NN_PARAMS_H

#include <sextant/model.h>

SX_MUST_USE sx_status sx_params_create(sx_params **out_params);
void sx_params_destroy(sx_params *params); /* NULL is allowed */
/* Adds or replaces; both texts are copied. */
SX_MUST_USE sx_status sx_params_set(sx_params *params, const char *name, const char *value);
/* Like sx_params_set(), but it is no error if the model does not have the parameter. */
SX_MUST_USE sx_status sx_params_set_default(sx_params *params, const char *name, const char *value);
/* Adds all of `from`, and the names that were asked for there. */
SX_MUST_USE sx_status sx_params_add_all(sx_params *params, const sx_params *from);
/* Adds the names that were asked for in `other`. */
void sx_params_add_asked(sx_params *params, const sx_params *other);
/* INVALID_ARGUMENT: a parameter has a reserved name (batch_size, context), which the trainer passes
 * to input functions. */
SX_MUST_USE sx_status sx_params_check_reserved(const sx_params *params);

int sx_params_count(const sx_params *params);
/* In the order in which they were first set; borrowed. */
const char *sx_params_name(const sx_params *params, int i);
const char *sx_params_value(const sx_params *params, int i);

/* The first value that the model cannot use: not a number, or none of the choices. */
SX_MUST_USE sx_status sx_params_status(const sx_params *params);
/* INVALID_ARGUMENT for the first parameter that was set but not asked for, such as a misspelled
 * name. The message suggests the nearest names, or lists all of the model's. */
SX_MUST_USE sx_status sx_params_check_used(const sx_params *params);

/* A parameter that a model asked for. */
typedef struct sx_asked_param {
    char *name;
    char *otherwise; /* its default, as text; NULL = none */
    char *choices;   /* "constant|reference"; NULL = any value */
} sx_asked_param;

/* In the order in which they were first asked for; borrowed. */
const sx_asked_param *sx_params_asked(const sx_params *params, int *out_count);
bool sx_params_was_asked(const sx_params *params, const char *name);

#endif
