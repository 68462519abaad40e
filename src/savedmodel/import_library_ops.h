/* Shared by the files that import nodes, import_library_*.c: a node, its operands, and how nodes of
 * ours are built from it. Each file has a table of rows. */
#ifndef SX_SAVEDMODEL_IMPORT_LIBRARY_OPS_H
#define SX_SAVEDMODEL_IMPORT_LIBRARY_OPS_H

#include "graph/ops/common.h"
#include "savedmodel/import_library_internal.h"

#define sx_tf_unsupported(...) sx_error(SX_UNIMPLEMENTED, __VA_ARGS__)

/* One node, with what all rows need. */
typedef struct sx_tf_op_node {
    sx_import_reader tf;
    sx_library_importer *im;
    sx_tf_body *body;
    sx_builder *b;
    sx_tf_import_node *n;
    const struct sx_tf_op_row *row;
} sx_tf_op_node;

/* Sets x->n->out. UNIMPLEMENTED refuses the node, and the import goes on. */
typedef sx_status sx_tf_op_fn(sx_tf_op_node *x);

typedef struct sx_tf_op_row {
    const char *tf_op; /* NULL ends a table */
    sx_tf_op_fn *import;
    const char *same_as; /* TensorFlow's other name of it, or NULL */
} sx_tf_op_row;

extern const sx_tf_op_row sx_tf_variable_rows[], sx_tf_branch_rows[], sx_tf_loop_rows[],
    sx_tf_shape_rows[], sx_tf_part_rows[], sx_tf_slice_rows[], sx_tf_list_rows[],
    sx_tf_number_rows[], sx_tf_einsum_rows[], sx_tf_image_rows[], sx_tf_random_rows[],
    sx_tf_window_rows[], sx_tf_index_rows[], sx_tf_norm_rows[], sx_tf_table_rows[],
    sx_tf_complex_rows[], sx_tf_fourier_rows[], sx_tf_scatter_rows[], sx_tf_gradient_rows[],
    sx_tf_example_rows[], sx_tf_quantized_rows[], sx_tf_patch_rows[], sx_tf_optimizer_rows[],
    sx_tf_cell_rows[], sx_tf_variant_rows[], sx_tf_fused_rows[], sx_tf_sparse_gradient_rows[],
    sx_tf_uniform_rows[];

/* What gradient functions of a loop's body, or of branches, read outside of it, as far as it is
 * values here. */
SX_MUST_USE sx_status sx_tf_gradient_reads(const sx_tf_op_node *x,
                                           const Tensorflow__FunctionDef *const *functions,
                                           int n_functions, sx_tf_passed *out);
/* Gives the outputs of a node, which is imported, the gradient that its _gradient_op_type names. */
SX_MUST_USE sx_status sx_tf_import_gradient(sx_tf_op_node *x);

/* A node that is one of ours: its row is the operator's from_tf. */
SX_MUST_USE sx_status sx_tf_import_one(sx_tf_op_node *x);

/* Output 0 of the node as operator `tf_op` of real numbers, its input i being in[i]; those beyond n
 * are its own. */
SX_MUST_USE sx_status sx_tf_import_as(const sx_tf_op_node *x, const char *tf_op, const sx_value *in,
                                      int n, sx_value *out);
/* The same of the first n_out outputs, the inputs being in[n] and no others. */
SX_MUST_USE sx_status sx_tf_import_outputs_as(const sx_tf_op_node *x, const char *tf_op,
                                              const sx_value *in, int n, sx_value *out, int n_out);
/* x, scale, offset: (x - mean) / sqrt(variance + epsilon) * scale + offset, with the moments of x
 * along all axes but the channels'; of the outputs the first. */
SX_MUST_USE sx_status sx_tf_import_batch_moments(sx_tf_op_node *x);
/* A node that reads complex numbers. */
SX_MUST_USE sx_status sx_tf_import_complex(sx_tf_op_node *x);
/* Both parts of a complex tensor as one of real numbers, whose last dimension they are; and back.
 */
SX_MUST_USE sx_status sx_tf_join_complex(const sx_tf_op_node *x, const sx_tf_thing *y,
                                         sx_value *out);
SX_MUST_USE sx_status sx_tf_split_complex(const sx_tf_op_node *x, sx_value both, sx_tf_thing *out);
/* A Const, if it is complex. */
SX_MUST_USE sx_status sx_tf_import_complex_const(sx_tf_op_node *x, bool *out_done);

/* A variable of complex numbers, which nothing assigns, as its value. */
SX_MUST_USE sx_status sx_tf_import_complex_variable(sx_tf_op_node *x, const char *key,
                                                    const sx_type *type);

/* ---- Operands ---- */

/* Input i as a value. */
SX_MUST_USE sx_status sx_tf_operand(const sx_tf_op_node *x, int i, sx_value *out);
/* The integers of input i, a constant of rank 0 or 1. */
SX_MUST_USE sx_status sx_tf_operand_ints(const sx_tf_op_node *x, int i, sx_ints *out);
/* UNIMPLEMENTED if the rank of input i is unknown. */
SX_MUST_USE sx_status sx_tf_require_rank(const sx_tf_op_node *x, int i);
void sx_tf_set(sx_tf_op_node *x, int output, sx_value value);
/* Input i, which must be a variable. */
SX_MUST_USE sx_status sx_tf_require_handle(const sx_tf_op_node *x, int i, const sx_tf_thing **out);
/* Its value. */
SX_MUST_USE sx_status sx_tf_read_handle(const sx_tf_op_node *x, const sx_tf_thing *handle,
                                        sx_value *out);
/* Assigns to it. */
SX_MUST_USE sx_status sx_tf_assign(const sx_tf_op_node *x, const sx_tf_thing *handle,
                                   sx_value value);

/* How many variables, its first inputs, an optimizer's operator assigns; 0: it is none. */
int sx_tf_optimizer_variables(const char *tf_op);

/* ---- What is known: import_library_known.c ---- */

/* The value if it is a constant, or NULL. */
const sx_tensor *sx_tf_constant_of(const sx_builder *b, sx_value v);
/* Element i of an integer vector, as far as the nodes that make it tell: a number, or (*out_is_dim)
 * a dimension, known or c*N. False: it is computed. */
bool sx_tf_peek(const sx_builder *b, sx_value vector, int i, bool *out_is_dim, int64_t *out);
/* Turns operands of attributes that are constants, from the first on, into attributes: *attrs is
 * then a copy. */
SX_MUST_USE sx_status sx_tf_known_attrs(const sx_tf_op_node *x, const sx_op_def *op,
                                        const void **attrs, const sx_type *inputs, int n_inputs,
                                        const sx_attr_operand **operands, int *n_operands);
/* A constant in place of a node of one small output that reads small constants. */
SX_MUST_USE sx_status sx_tf_fold(const sx_tf_op_node *x, const sx_op_def *op, const void *attrs,
                                 const sx_value *in, int n_in, const sx_type *type, sx_value *out,
                                 bool *out_folded);

/* ---- Building ---- */

sx_type sx_tf_unknown_shape(sx_dtype dtype);

/* Adds a node whose types are declared as far as they are known; *out_first is its first output of
 * *out_n. `attrs` may be NULL: zeros. */
SX_MUST_USE sx_status sx_tf_add_node(const sx_tf_op_node *x, const sx_op_def *op, const void *attrs,
                                     const sx_value *in, int n_in, const sx_attr_operand *operands,
                                     int n_operands, sx_value *out_first, int *out_n);
/* A node of one output of this type, which is declared and not inferred. */
sx_value sx_tf_build_as(const sx_tf_op_node *x, const sx_op_def *op, const void *attrs,
                        const sx_value *in, int n_in, const sx_attr_operand *operands,
                        int n_operands, const sx_type *type);
/* A node of one output: *y = op(in...) {attrs}. */
SX_MUST_USE sx_status sx_tf_build(const sx_tf_op_node *x, const sx_op_def *op, const void *attrs,
                                  sx_value *y, int n_in, const sx_value *in);
#define SX_TF_BUILD(x, y, op_name, attrs, ...)                                      \
    SX_TRY(sx_tf_build((x), &sx_op_##op_name, (attrs), (y),                         \
                       (int)(sizeof((sx_value[]){__VA_ARGS__}) / sizeof(sx_value)), \
                       (const sx_value[]){__VA_ARGS__}))
/* op(v) with attribute `name` an operand. */
SX_MUST_USE sx_status sx_tf_build_open(const sx_tf_op_node *x, const sx_op_def *op,
                                       const void *attrs, sx_value v, const char *name,
                                       sx_value operand_value, sx_value *out);
int sx_tf_attr_row(const sx_op_def *op, const char *name);

/* RESOURCE_EXHAUSTED if the constants of the model have too many bytes with these. */
SX_MUST_USE sx_status sx_tf_charge_constant(const sx_tf_op_node *x, int64_t bytes);
SX_MUST_USE sx_status sx_tf_constant(const sx_tf_op_node *x, sx_type type, const void *data,
                                     sx_value *out);
/* A scalar. */
SX_MUST_USE sx_status sx_tf_number(const sx_tf_op_node *x, sx_dtype dtype, double value,
                                   sx_value *out);
/* op(v, number), the number as v's dtype. */
SX_MUST_USE sx_status sx_tf_with_number(const sx_tf_op_node *x, const sx_op_def *op, sx_value v,
                                        double number, sx_value *out);
/* An assert that all of `holds` is true, with what the error says, and a value that it shows. */
SX_MUST_USE sx_status sx_tf_require(const sx_tf_op_node *x, sx_value holds, const char *what,
                                    sx_value shown);
/* An axis of `rank` as a number from 0 on; INVALID_ARGUMENT, `what`, if it is not in [-rank, rank).
 * Both are int64. */
SX_MUST_USE sx_status sx_tf_axis_from_0(const sx_tf_op_node *x, sx_value axis, sx_value rank,
                                        const char *what, sx_value *out);
/* 0, 1, ..., n - 1 as a vector; n is int64 [1]. */
SX_MUST_USE sx_status sx_tf_count_to(const sx_tf_op_node *x, sx_value n, sx_dtype dtype,
                                     sx_value *out);
/* A vector of int64. */
SX_MUST_USE sx_status sx_tf_int64s(const sx_tf_op_node *x, const sx_ints *list, sx_value *out);

/* v in the shape that a vector of integers says, declared as `type`. */
SX_MUST_USE sx_status sx_tf_reshape_as(const sx_tf_op_node *x, sx_value v, sx_value shape,
                                       const sx_type *type, sx_value *out);
/* v with dimension k that of from->v[k], or 1 where that is -1; the elements stay. */
SX_MUST_USE sx_status sx_tf_reshape_dims(const sx_tf_op_node *x, sx_value v, const sx_ints *from,
                                         sx_value *out);
/* v, which must have that rank, if its rank is unknown. */
SX_MUST_USE sx_status sx_tf_know_rank(const sx_tf_op_node *x, int rank, sx_value *v);
/* The rank of v, an int64 [1]. */
SX_MUST_USE sx_status sx_tf_rank_of(const sx_tf_op_node *x, sx_value v, sx_value *out);
/* Elements [begin, begin + size) of a vector, both int64 [1]; size -1: to the end. */
SX_MUST_USE sx_status sx_tf_vector_part(const sx_tf_op_node *x, sx_value vector, sx_value begin,
                                        sx_value size, sx_value *out);
/* A shape of unknown length without `n` dimensions from `axis`, an int64 [1], on, and with those of
 * `inserted` (none if it is no value) there. */
SX_MUST_USE sx_status sx_tf_replace_dims(const sx_tf_op_node *x, sx_value shape, sx_value axis,
                                         int64_t n, sx_value inserted, sx_value *out);
/* The list `list`, which has no value, as zeros of its length: in the shape of `like` without its
 * first `from` dimensions. */
SX_MUST_USE sx_status sx_tf_list_fill(const sx_tf_op_node *x, const sx_tf_thing *list,
                                      sx_value like, int from, sx_value *out);
/* ZerosLike of a list: as long, its tensors zeros. */
SX_MUST_USE sx_status sx_tf_list_zeros_like(sx_tf_op_node *x);
/* AddN of lists that are as long as each other: their tensors are added. */
SX_MUST_USE sx_status sx_tf_list_sum(sx_tf_op_node *x);
/* Elements [from, from + count) along an axis. */
SX_MUST_USE sx_status sx_tf_cut_axis(const sx_tf_op_node *x, sx_value v, int axis, int64_t from,
                                     int64_t count, sx_value *out);
/* The first n elements along axis 0, n an int64 [1]. */
SX_MUST_USE sx_status sx_tf_first_rows(const sx_tf_op_node *x, sx_value v, sx_value n,
                                       sx_value *out);
/* The same, of numbers that are computed: int64 [1]. `count_known`: the number, or -1. */
SX_MUST_USE sx_status sx_tf_cut_axis_open(const sx_tf_op_node *x, sx_value v, int axis,
                                          sx_value from, sx_value count, int64_t count_known,
                                          sx_value *out);
/* v with an axis as two, of which one may be -1: what the other leaves. */
SX_MUST_USE sx_status sx_tf_divide_axis(const sx_tf_op_node *x, sx_value v, int axis, int64_t outer,
                                        int64_t inner, sx_value *out);
/* The sizes of v's axes [first, first + count) as a vector of int64. */
SX_MUST_USE sx_status sx_tf_sizes_of(const sx_tf_op_node *x, sx_value v, int first, int count,
                                     sx_value *out);
/* v with the axes `axis` and the next as one. */
SX_MUST_USE sx_status sx_tf_join_axes(const sx_tf_op_node *x, sx_value v, int axis, sx_value *out);
/* v with a 1 before axis `at`; -1 = at the end. */
SX_MUST_USE sx_status sx_tf_expand(const sx_tf_op_node *x, sx_value v, int64_t at, sx_value *out);

/* What has the value of a tensor that was never set: 0, or an empty string. */
SX_MUST_USE sx_status sx_tf_nothing_of(const sx_tf_op_node *x, sx_dtype dtype, sx_value *out);
/* How the list that the node makes is read: import_library_readings.c. */
SX_MUST_USE sx_status sx_tf_list_reading(const sx_tf_op_node *x, sx_tf_reading *out);
/* A list like another, with these tensors. */
sx_tf_thing sx_tf_list_like(const sx_tf_op_node *x, sx_value value, const sx_tf_thing *like);

/* ---- Lists of tensors whose shapes may differ: import_library_uneven.c ---- */

/* One as long as `list`, none of whose tensors is set. */
SX_MUST_USE sx_status sx_tf_uneven_list(const sx_tf_op_node *x, const sx_tf_thing *list,
                                        sx_dtype dtype, sx_tf_thing *out);
/* Makes the list one, if it is none. */
SX_MUST_USE sx_status sx_tf_list_to_uneven(const sx_tf_op_node *x, sx_tf_thing *list);
/* The same, if the item does not surely have the shape of the others. */
SX_MUST_USE sx_status sx_tf_list_fit(const sx_tf_op_node *x, sx_tf_thing *list, sx_value item);
/* Whether the tensors of lists of these types [n, ...] surely differ in their shapes. */
bool sx_tf_items_differ(const sx_type *list, const sx_type *other);
/* A tensor (`rows`: tensors of one shape) in place of such a list's strings. `shape`, which may be
 * NULL: what is known of one's shape, -1 = a dimension that is not. */
SX_MUST_USE sx_status sx_tf_list_open(const sx_tf_op_node *x, const sx_tf_thing *list, bool rows,
                                      const sx_tensor *shape, sx_value *v);
/* Sets the outputs to the tensors one after another, and their first dimensions. */
SX_MUST_USE sx_status sx_tf_list_concat_uneven(sx_tf_op_node *x, sx_value list,
                                               const sx_tf_thing *like);
/* The sum, tensor by tensor, of lists that are as long as each other; a tensor that one has not set
 * is that of the others. `zeros`: zeros in its place. */
SX_MUST_USE sx_status sx_tf_list_sum_uneven(const sx_tf_op_node *x, sx_tf_thing *lists, int n,
                                            bool zeros, sx_tf_thing *out);

/* ---- Branches: import_library_branches.c ---- */

/* out[n] are things like then_things[n] if the condition holds, else like else_things[n]. */
SX_MUST_USE sx_status sx_tf_choose(const sx_tf_op_node *x, sx_value condition,
                                   const sx_tf_thing *then_things, const sx_tf_thing *else_things,
                                   int n, sx_tf_thing *out);

/* ---- Variants: import_library_variants.c ---- */

/* The things in things[n] that have one value each, and those that are no variants; and back:
 * leaves in the places of those of `like`. */
SX_MUST_USE sx_status sx_tf_leaves(sx_arena *arena, const sx_tf_thing *things, int n,
                                   sx_tf_thing **out, int *out_n);
SX_MUST_USE sx_status sx_tf_from_leaves(sx_arena *arena, const sx_tf_thing *like, int n,
                                        const sx_tf_thing *leaves, sx_tf_thing *out);
/* Makes the leaves of a, whose values are in xa->b, and of b correspond: each optional gets what
 * the other may hold. xa == NULL: a has types in place of values, and stays. */
SX_MUST_USE sx_status sx_tf_match(const sx_tf_op_node *xa, sx_tf_thing *a, const sx_tf_op_node *xb,
                                  sx_tf_thing *b);
/* Whether the node is about a list of variants, or a sum or zeros of variants; and its import, leaf
 * by leaf. */
bool sx_tf_reads_variants(const sx_tf_op_node *x);
SX_MUST_USE sx_status sx_tf_import_variants(sx_tf_op_node *x);
/* Makes the list `list` one of tensors like those of `like`: of their shape if nothing is known of
 * its own, of any shapes if they are, or of their leaves if they are variants. */
SX_MUST_USE sx_status sx_tf_list_become(const sx_tf_op_node *x, sx_tf_thing *list,
                                        const sx_tf_thing *like);

/* ---- Windows: import_library_patches.c ---- */

/* The height and width of windows that are input `i`, [1,h,w,1], and of strides, the next. */
SX_MUST_USE sx_status sx_tf_operand_windows(const sx_tf_op_node *x, int i, sx_ints *window,
                                            sx_ints *strides);

/* The windows along one axis, with the rule of graph/ops/conv_geometry.h. */
typedef struct sx_tf_windows {
    int64_t kernel, stride, dilation;
    bool same;
    /* as TensorFlow's patches of volumes: padding below zero is kept, and windows that do not reach
     * the end of the axis begin so much further on */
    bool below_zero;
} sx_tf_windows;

/* Of an axis of `size`, int64 [1]: the places that each window covers, int64 [windows, kernel],
 * counted from the first of the padded axis; how many are padded before it, and before and after it
 * together, int64 [1]. */
SX_MUST_USE sx_status sx_tf_window_places(const sx_tf_op_node *x, const sx_tf_windows *w,
                                          sx_value size, sx_value *places, sx_value *before,
                                          sx_value *total);

#endif
