/* Operations on an operator's attributes through its table of rows: copy, compare, hash (op_def.h),
 * print and parse. */
#ifndef SX_GRAPH_ATTR_ROWS_H
#define SX_GRAPH_ATTR_ROWS_H

#include "base/arena.h"
#include "base/buffer.h"
#include "graph/lexer.h"
#include "graph/ir.h"

/* Deep copy into the arena; NULL attrs = all zero. NULL if out of memory. */
void *sx_attrs_copy(sx_arena *arena, const sx_op_def *op, const void *attrs);

/* " {strides=[1,1], shape=%4}"; omits zero fields and regions; prints nothing if all are omitted.
 */
void sx_attrs_print(const sx_op_def *op, const void *attrs, const sx_attr_operand *operands,
                    int n_operands, sx_buf *out);
/* The reverse, starting after the operator's inputs. `attrs` is zeroed memory of op->attrs_bytes,
 * `operands` has room for op->n_attrs; NULL: the graph is static and may have none. */
SX_MUST_USE sx_status sx_attrs_parse(const sx_op_def *op, sx_lexer *lexer, sx_arena *arena,
                                     void *attrs, sx_attr_operand *operands, int *out_n);

void sx_type_print(const sx_type *type, sx_buf *out);
SX_MUST_USE sx_status sx_type_parse(sx_lexer *lexer, sx_type *out_type);

#endif
