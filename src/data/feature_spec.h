/* Declared features (sx_feature_spec): their types, their checks. */
#ifndef SX_DATA_FEATURE_SPEC_H
#define SX_DATA_FEATURE_SPEC_H

#include <sextant/data.h>

/* Checks a row and sets the types of an example's value (float32 if the row gives no dtype) and,
 * with max_length, of its mask. `what` begins errors: "input", "label". Errors: INVALID_ARGUMENT: a
 * bad name, dtype, dimension or value for what is missing. */
SX_MUST_USE sx_status sx_feature_spec_check(const sx_feature_spec *spec, const char *what,
                                            sx_type *out_type, sx_type *out_mask);

/* Whether `value` is one of the dtype's, exactly. */
bool sx_dtype_holds(sx_dtype dtype, double value);

#endif
