/* Option structs of the public API. Their first field, struct_size, is the size that the struct had
 * in the headers that the caller was compiled with; fields are only ever appended.
 *
 *   smaller than ours   an older caller: the fields that it does not have get their default, zero
 *   larger than ours    a newer caller: accepted if the fields unknown to this library are zero
 *   below 8             the struct was filled without its macro: refused
 *
 * A public function that takes such a struct begins with SX_TAKE_ARGS, which replaces it with a
 * copy of this library's size. */
#ifndef SX_BASE_ARGS_H
#define SX_BASE_ARGS_H

#include <sextant/status.h>

/* Fills `out`, a struct called `name` of `size` bytes, from the caller's; NULL gives the defaults.
 * The copy has this library's struct_size. Errors: INVALID_ARGUMENT: an invalid struct_size;
 * UNIMPLEMENTED: an option of a newer header is set. */
SX_MUST_USE sx_status sx_take_args(const char *name, const void *args, size_t size, void *out);

/* For a function that returns sx_status. `args` is its parameter of type `const type *`. */
#define SX_TAKE_ARGS(type, args)                                     \
    type args##_copy;                                                \
    SX_TRY(sx_take_args(#type, (args), sizeof(type), &args##_copy)); \
    (args) = &args##_copy

/* For a public function that returns sx_status: refuses NULL for a parameter that needs a value. */
#define SX_NEED(argument)                                                                  \
    do {                                                                                   \
        if ((argument) == NULL) {                                                          \
            return sx_error(SX_INVALID_ARGUMENT, "%s(): " #argument " is NULL", __func__); \
        }                                                                                  \
    } while (0)

#endif
