/* Text as Python prints it, for output that equals that of TensorFlow's own tools. */
#ifndef SX_CLI_PYTHON_TEXT_H
#define SX_CLI_PYTHON_TEXT_H

#include "base/buffer.h"
#include "proto/struct.pb-c.h"

/* repr() of a str: quoted with ', or with " if it has a ' and no ". */
void sx_put_python_repr(sx_buf *out, const char *text);

/* repr() of a bytes object: b'abc\xff' */
void sx_put_python_bytes(sx_buf *out, sx_bytes bytes);

/* repr() of a float: the shortest that reads back the same: 2.0, 1e-05, inf. */
void sx_put_python_float(sx_buf *out, double value);

/* "DT_FLOAT"; NULL: there is no such dtype. */
const char *sx_tf_dtype_enum_text(int tf_dtype);

/* repr() and type(x).__name__ of a value of Python that a SavedModel keeps. */
void sx_put_structured_repr(sx_buf *out, const Tensorflow__StructuredValue *value);
void sx_put_structured_type(sx_buf *out, const Tensorflow__StructuredValue *value);

#endif
