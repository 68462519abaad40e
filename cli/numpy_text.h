/* Arrays as NumPy prints them: str(array), with NumPy's default options (version 2.4; the rules are
 * in numpy/_core/arrayprint.py). */
#ifndef SX_CLI_NUMPY_TEXT_H
#define SX_CLI_NUMPY_TEXT_H

#include "base/buffer.h"

/* Numbers, booleans, strings (as bytes objects: b'abc') of any static shape; more than 1,000
 * elements are summarized. A bfloat16 is printed with up to six digits, as the type of the
 * package ml_dtypes prints itself. */
void sx_put_numpy(sx_buf *out, const sx_tensor *array);

#endif
