/* sx_params: the parameters of a model by name, as texts, from the command line or a configuration.
 */
#ifndef SX_NN_PARAMS_H
#define SX_NN_PARAMS_H

#include <sextant/model.h>

SX_MUST_USE sx_status sx_params_create(sx_params **out_params);
void sx_params_destroy(sx_params *params); /* NULL is fine */
/* Adds or replaces; both texts are copied. */
SX_MUST_USE sx_status sx_params_set(sx_params *params, const char *name, const char *value);

/* Adds all of `from`, with the marks of those that have been asked for. */
SX_MUST_USE sx_status sx_params_add_all(sx_params *params, const sx_params *from);
/* Marks those that have been asked for in `other`, too. */
void sx_params_mark_used(sx_params *params, const sx_params *other);
/* INVALID_ARGUMENT: one has a name that is the trainer's own (batch_size, context): what an input
 * function is handed. */
SX_MUST_USE sx_status sx_params_check_reserved(const sx_params *params);

int sx_params_count(const sx_params *params);
/* In the order in which they were first set; borrowed. */
const char *sx_params_name(const sx_params *params, int i);
const char *sx_params_value(const sx_params *params, int i);

/* The first value that a model asked for as a number and that is none. */
SX_MUST_USE sx_status sx_params_status(const sx_params *params);
/* INVALID_ARGUMENT naming the first parameter that no model asked for: a misspelt name. */
SX_MUST_USE sx_status sx_params_check_used(const sx_params *params);

#endif
