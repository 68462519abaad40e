/* Complex numbers: what signatures and checkpoints may have beside the dtypes of types.h. A tensor
 * of them holds the real part of each element before the imaginary one. Graphs and functions have
 * no complex values; they compute with the parts, as two values. */
#ifndef SEXTANT_COMPLEX_H
#define SEXTANT_COMPLEX_H

#include <sextant/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* TensorFlow's DataType numbers, as all of sx_dtype. sx_dtype_name(), sx_dtype_bytes() and
 * sx_dtype_numpy() know them. */
#define SX_C64  ((sx_dtype)8)  /* complex64: two float32 */
#define SX_C128 ((sx_dtype)18) /* complex128: two float64 */

SX_API bool sx_dtype_is_complex(sx_dtype dtype); /* either of the two */

#ifdef __cplusplus
}
#endif
#endif
