/* Imports variants that hold more than a list of tensors: optionals, and lists of optionals or of
 * lists. No value of ours has such a type; a variant is what it consists of.
 *
 *   Optional         the tuples that it may hold, each with whether it does: what branches put into
 *                    one that they give is not alike. A tuple that it does not hold has zeros
 *   list of variants a list for each leaf of an element
 *
 * The leaves of a variant are the things in it that have one value each: tensors, lists of tensors,
 * complex tensors, and of each tuple whether it is held. Branches and loops pass these on
 * (import_library_regions.h). */
#include "savedmodel/import_library_ops.h"

#include <string.h>

#include <sextant/complex.h>

#include "base/checked.h"
#include "graph/lower/tf_writer.h"

enum { MAX_DEPTH = 64, MAX_LEAVES = 1024 };

/* ---- Leaves ---- */

static bool is_variant(const sx_tf_thing *t)
{
    return t->kind == SX_TF_OPTIONAL || t->kind == SX_TF_TUPLE ||
           (t->kind == SX_TF_LIST && t->element != NULL);
}

/* What is in it comes after the tuple itself. */
static int count_leaves(const sx_tf_thing *things, int n)
{
    int count = 0;
    for (int i = 0; i < n; i++) {
        count += !is_variant(&things[i]) || things[i].kind == SX_TF_TUPLE ? 1 : 0;
        count += is_variant(&things[i]) ? count_leaves(things[i].items, things[i].n_items) : 0;
    }
    return count;
}

static int put_leaves(const sx_tf_thing *things, int n, sx_tf_thing *out)
{
    int k = 0;
    for (int i = 0; i < n; i++) {
        if (!is_variant(&things[i]) || things[i].kind == SX_TF_TUPLE) {
            out[k] = things[i];
            out[k].items = NULL;
            out[k++].n_items = 0;
        }
        if (is_variant(&things[i])) {
            k += put_leaves(things[i].items, things[i].n_items, out + k);
        }
    }
    return k;
}

sx_status sx_tf_leaves(sx_arena *arena, const sx_tf_thing *things, int n, sx_tf_thing **out,
                       int *out_n)
{
    *out_n = count_leaves(things, n);
    *out = sx_arena_array(arena, *out_n + 1, sx_tf_thing);
    if (*out == NULL) {
        return sx_import_memory();
    }
    (void)put_leaves(things, n, *out);
    return SX_OK;
}

static sx_status take_leaves(sx_arena *arena, const sx_tf_thing *like, int n,
                             const sx_tf_thing *leaves, int *at, sx_tf_thing *out)
{
    for (int i = 0; i < n; i++) {
        out[i] = like[i];
        if (!is_variant(&like[i]) || like[i].kind == SX_TF_TUPLE) {
            out[i] = leaves[(*at)++];
        }
        if (is_variant(&like[i])) {
            out[i].n_items = like[i].n_items;
            out[i].items = sx_arena_array(arena, like[i].n_items + 1, sx_tf_thing);
            if (out[i].items == NULL) {
                return sx_import_memory();
            }
            SX_TRY(take_leaves(arena, like[i].items, like[i].n_items, leaves, at, out[i].items));
        }
    }
    return SX_OK;
}

sx_status sx_tf_from_leaves(sx_arena *arena, const sx_tf_thing *like, int n,
                            const sx_tf_thing *leaves, sx_tf_thing *out)
{
    int at = 0;
    return take_leaves(arena, like, n, leaves, &at, out);
}

static int depth_of(const sx_tf_thing *things, int n)
{
    int depth = 0;
    for (int i = 0; i < n; i++) {
        const int below = is_variant(&things[i]) ? depth_of(things[i].items, things[i].n_items) : 0;
        depth = SX_MAX(depth, 1 + below);
    }
    return depth;
}

/* A file could nest them without end, and double what they hold at each level. */
static sx_status check_size(const sx_tf_thing *things, int n)
{
    if (depth_of(things, n) > MAX_DEPTH) {
        return sx_tf_unsupported("variants that nest deeper than %d", MAX_DEPTH);
    }
    return count_leaves(things, n) <= MAX_LEAVES
               ? SX_OK
               : sx_tf_unsupported("a variant of more than %d tensors", MAX_LEAVES);
}

/* ---- Variants that are alike ---- */

static bool may_be_equal(const sx_type *a, const sx_type *b)
{
    bool may = a->dtype == b->dtype &&
               (a->rank == b->rank || a->rank == SX_UNKNOWN_RANK || b->rank == SX_UNKNOWN_RANK);
    for (int d = 0; may && d < a->rank && d < b->rank; d++) {
        may = a->dims[d] == b->dims[d] || a->dims[d] < 0 || b->dims[d] < 0;
    }
    return may;
}

/* The type of a leaf: of its value, or (b is NULL: it has none) the one that is noted. */
static sx_type leaf_type(const sx_builder *b, const sx_tf_thing *leaf)
{
    return b == NULL
               ? leaf->variable
               : sx_type_of_value(b, leaf->kind == SX_TF_COMPLEX ? leaf->parts[0] : leaf->value);
}

static bool is_tensor_list(const sx_tf_thing *t)
{
    return t->kind == SX_TF_LIST && t->element == NULL;
}

static sx_dtype dtype_of_items(const sx_builder *b, const sx_tf_thing *list)
{
    return list->uneven != SX_DTYPE_NONE ? list->uneven : leaf_type(b, list).dtype;
}

/* Whether one thing could be in the place of the other. */
static bool is_like(const sx_builder *ba, const sx_tf_thing *a, const sx_builder *bb,
                    const sx_tf_thing *b)
{
    const bool stays = ba == NULL && a->uneven != b->uneven && a->uneven == SX_DTYPE_NONE;
    if (a->kind != b->kind || stays || a->of_complex != b->of_complex ||
        is_variant(a) != is_variant(b)) {
        return false;
    }
    if (a->kind == SX_TF_OPTIONAL) {
        return true;
    }
    if (!is_variant(a)) {
        const sx_type x = leaf_type(ba, a), y = leaf_type(bb, b);
        return a->kind == SX_TF_LIST ? dtype_of_items(ba, a) == dtype_of_items(bb, b)
                                     : may_be_equal(&x, &y);
    }
    bool like = a->n_items == b->n_items;
    for (int i = 0; like && i < a->n_items; i++) {
        like = is_like(ba, &a->items[i], bb, &b->items[i]);
    }
    return like;
}

/* Zeros of a type; a size that is unknown is 0. */
static sx_status zeros_of(const sx_tf_op_node *x, const sx_type *type, sx_value *out)
{
    sx_shape_attrs attrs = {.shape = sx_ints_of(SX_MAX(type->rank, 0), type->dims)};
    for (int d = 0; d < attrs.shape.n; d++) {
        const bool known = type->dims[d] >= 0 || sx_dim_is_batch(type->dims[d]);
        attrs.shape.v[d] = known ? type->dims[d] : 0;
    }
    SX_TRY(sx_tf_nothing_of(x, type->dtype, out));
    return attrs.shape.n == 0 ? SX_OK : sx_tf_build(x, &sx_op_broadcast_to, &attrs, out, 1, out);
}

/* What stands for a thing of builder `b`, or of a type, in a variant that does not hold it. */
static sx_status not_held(const sx_tf_op_node *x, const sx_builder *b, const sx_tf_thing *like,
                          sx_tf_thing *out)
{
    const sx_type type = leaf_type(b, like);
    *out = *like;
    out->known = NULL;
    if (like->kind == SX_TF_TUPLE) {
        SX_TRY(sx_tf_number(x, SX_BOOL, 0, &out->value));
    } else if (like->kind == SX_TF_COMPLEX) {
        out->value = SX_NO_VALUE;
        SX_TRY(zeros_of(x, &type, &out->parts[0]));
        out->parts[1] = out->parts[0];
    } else if (!is_variant(like) && type.dtype != SX_DTYPE_NONE) {
        SX_TRY(zeros_of(x, &type, &out->value));
    }
    if (is_variant(like)) {
        out->items = sx_arena_array(&x->im->arena, like->n_items + 1, sx_tf_thing);
        if (out->items == NULL) {
            return sx_import_memory();
        }
    }
    for (int i = 0; i < like->n_items; i++) {
        SX_TRY(not_held(x, b, &like->items[i], &out->items[i]));
    }
    return SX_OK;
}

static sx_status match_tuples(const sx_tf_op_node *xa, sx_tf_thing *a, const sx_tf_op_node *xb,
                              sx_tf_thing *b)
{
    const sx_builder *ba = xa != NULL ? xa->b : NULL;
    sx_arena *arena = &xb->im->arena;
    const int n_both = a->n_items + b->n_items;
    sx_tf_thing *as = sx_arena_array(arena, n_both + 1, sx_tf_thing),
                *bs = sx_arena_array(arena, n_both + 1, sx_tf_thing);
    bool *used = sx_arena_array(arena, b->n_items + 1, bool);
    int n = 0;
    if (as == NULL || bs == NULL || used == NULL) {
        return sx_import_memory();
    }
    for (int i = 0; i < a->n_items; i++, n++) {
        int j = 0;
        while (j < b->n_items && (used[j] || !is_like(ba, &a->items[i], xb->b, &b->items[j]))) {
            j++;
        }
        as[n] = a->items[i];
        if (j == b->n_items) {
            SX_TRY(not_held(xb, ba, &as[n], &bs[n]));
            continue;
        }
        used[j] = true;
        bs[n] = b->items[j];
        for (int k = 0; k < as[n].n_items; k++) {
            SX_TRY(sx_tf_match(xa, &as[n].items[k], xb, &bs[n].items[k]));
        }
    }
    for (int j = 0; j < b->n_items; j++) {
        if (used[j]) {
            continue;
        }
        if (xa == NULL) {
            return sx_tf_unsupported("an optional holds what none held before in the list");
        }
        bs[n] = b->items[j];
        SX_TRY(not_held(xa, xb->b, &bs[n], &as[n]));
        n++;
    }
    a->items = as;
    b->items = bs;
    a->n_items = b->n_items = n;
    return SX_OK;
}

sx_status sx_tf_match(const sx_tf_op_node *xa, sx_tf_thing *a, const sx_tf_op_node *xb,
                      sx_tf_thing *b)
{
    if (a->kind == SX_TF_OPTIONAL && b->kind == SX_TF_OPTIONAL) {
        SX_TRY(match_tuples(xa, a, xb, b));
        SX_TRY(check_size(a, 1));
    }
    if (is_tensor_list(a) && is_tensor_list(b) && a->uneven != b->uneven) {
        const bool first = a->uneven == SX_DTYPE_NONE;
        if (first && xa == NULL) {
            return sx_tf_unsupported("a list of tensors of one shape, which get several");
        }
        SX_TRY(first ? sx_tf_list_to_uneven(xa, a) : sx_tf_list_to_uneven(xb, b));
    }
    const bool variants = is_variant(a) && is_variant(b);
    return is_variant(a) == is_variant(b) &&
                   (!variants || (a->kind == b->kind && a->n_items == b->n_items))
               ? SX_OK
               : sx_tf_unsupported("variants that hold different things");
}

/* ---- Optionals ---- */

static sx_status import_none(sx_tf_op_node *x)
{
    x->n->out[0] = (sx_tf_thing){.kind = SX_TF_OPTIONAL};
    return SX_OK;
}

/* components... */
static sx_status import_some(sx_tf_op_node *x)
{
    sx_tf_thing *tuple = sx_arena_new(&x->im->arena, sx_tf_thing);
    if (tuple == NULL) {
        return sx_import_memory();
    }
    for (int i = 0; i < x->n->n_in; i++) {
        const sx_tf_thing_kind kind = x->n->in[i].kind;
        if (kind != SX_TF_VALUE && kind != SX_TF_COMPLEX && kind != SX_TF_LIST &&
            kind != SX_TF_OPTIONAL) {
            return sx_tf_unsupported("component %d is a handle", i);
        }
    }
    *tuple = (sx_tf_thing){
        .kind = SX_TF_TUPLE, .items = (sx_tf_thing *)(uintptr_t)x->n->in, .n_items = x->n->n_in};
    SX_TRY(sx_tf_number(x, SX_BOOL, 1, &tuple->value));
    x->n->out[0] = (sx_tf_thing){.kind = SX_TF_OPTIONAL, .items = tuple, .n_items = 1};
    return check_size(&x->n->out[0], 1);
}

static sx_status optional_operand(const sx_tf_op_node *x, const sx_tf_thing **out)
{
    *out = x->n->in;
    return x->n->n_in > 0 && (*out)->kind == SX_TF_OPTIONAL
               ? SX_OK
               : sx_tf_unsupported("input 0 is not an optional of the model");
}

static sx_status import_has_value(sx_tf_op_node *x)
{
    const sx_tf_thing *optional = NULL;
    sx_value y = SX_NO_VALUE;
    SX_TRY(optional_operand(x, &optional));
    for (int i = 0; i < optional->n_items; i++) {
        const sx_value held = optional->items[i].value;
        if (i == 0) {
            y = held;
        } else {
            SX_TF_BUILD(x, &y, logical_or, NULL, y, held);
        }
    }
    if (optional->n_items == 0) {
        SX_TRY(sx_tf_number(x, SX_BOOL, 0, &y));
    }
    sx_tf_set(x, 0, y);
    return SX_OK;
}

/* What OptionalGetValue asks for. */
typedef struct wanted {
    const Tensorflow__AttrValue__ListValue *types, *shapes;
} wanted;

static sx_status read_wanted(const sx_tf_op_node *x, wanted *out)
{
    const Tensorflow__AttrValue *types = sx_tf_node_attr(x->n->node, "output_types"),
                                *shapes = sx_tf_node_attr(x->n->node, "output_shapes");
    const bool lists = types != NULL && shapes != NULL && types->list != NULL &&
                       shapes->list != NULL &&
                       types->value_case == TENSORFLOW__ATTR_VALUE__VALUE_LIST &&
                       shapes->value_case == TENSORFLOW__ATTR_VALUE__VALUE_LIST;
    if (!lists || types->list->n_type != shapes->list->n_shape) {
        return sx_error(SX_DATA_LOSS, "output_types and output_shapes are not lists of one length");
    }
    *out = (wanted){types->list, shapes->list};
    return SX_OK;
}

/* The type that output k is asked for with, as far as it is said; false: a variant. */
static bool wanted_type(const wanted *w, size_t k, sx_type *out)
{
    const bool ranked = sx_tf_type((int)w->types->type[k], w->shapes->shape[k], out);
    if (!ranked) {
        *out = sx_tf_unknown_shape(out->dtype);
    }
    for (int d = 0; d < out->rank; d++) {
        out->dims[d] = out->dims[d] >= 0 ? out->dims[d] : SX_UNKNOWN_DIM;
    }
    return (int)w->types->type[k] != SX_TF_VARIANT;
}

static bool fits(const sx_tf_op_node *x, const sx_tf_thing *tuple, const wanted *w)
{
    bool fit = (size_t)tuple->n_items == w->types->n_type;
    for (int k = 0; fit && k < tuple->n_items; k++) {
        const sx_tf_thing *t = &tuple->items[k];
        sx_type type, is;
        const bool tensor = wanted_type(w, (size_t)k, &type);
        if (!tensor || (t->kind != SX_TF_VALUE && t->kind != SX_TF_COMPLEX)) {
            /* ragged tensors are strings (graph/ops/ragged_variant.h) */
            const bool ragged =
                t->kind == SX_TF_VALUE && sx_type_of_value(x->b, t->value).dtype == SX_STRING;
            fit = !tensor && (ragged || t->kind == SX_TF_LIST || t->kind == SX_TF_OPTIONAL);
            continue;
        }
        is = sx_type_of_value(x->b, t->kind == SX_TF_COMPLEX ? t->parts[0] : t->value);
        if (t->kind == SX_TF_COMPLEX) {
            is.dtype = is.dtype == SX_F32 ? SX_C64 : SX_C128;
        }
        fit = may_be_equal(&is, &type);
    }
    return fit;
}

/* A tensor, of which the node says what is not known of its shape; running it checks that. */
static sx_value as_wanted(const sx_tf_op_node *x, sx_value v, const sx_type *asked)
{
    const sx_type is = sx_type_of_value(x->b, v);
    sx_type known = is.rank == SX_UNKNOWN_RANK ? *asked : is;
    for (int d = 0; d < known.rank && asked->rank == known.rank; d++) {
        const bool open = known.dims[d] < 0 && !sx_dim_is_batch(known.dims[d]);
        known.dims[d] = open && asked->dims[d] >= 0 ? asked->dims[d] : known.dims[d];
    }
    return sx_type_equal(&is, &known)
               ? v
               : sx_tf_build_as(x, &sx_op_identity, NULL, &v, 1, NULL, 0, &known);
}

static sx_status import_get_value(sx_tf_op_node *x)
{
    const sx_tf_thing *optional = NULL;
    wanted w = {NULL, NULL};
    SX_TRY(optional_operand(x, &optional));
    SX_TRY(read_wanted(x, &w));
    const int n = (int)w.types->n_type;
    sx_tf_thing *found = NULL;
    for (int i = optional->n_items - 1; i >= 0; i--) {
        const sx_tf_thing *tuple = &optional->items[i];
        if (!fits(x, tuple, &w)) {
            continue;
        }
        if (found == NULL) {
            found = sx_arena_memdup(&x->im->arena, tuple->items, ((size_t)n + 1) * sizeof(*found));
            if (found == NULL) {
                return sx_import_memory();
            }
        } else {
            SX_TRY(sx_tf_choose(x, tuple->value, tuple->items, found, n, found));
        }
    }
    if (found == NULL) {
        return sx_tf_unsupported("the optional never holds what fits its types");
    }
    for (int k = 0; k < n; k++) {
        sx_type type;
        if (found[k].kind == SX_TF_VALUE && wanted_type(&w, (size_t)k, &type)) {
            found[k].value = as_wanted(x, found[k].value, &type);
        }
    }
    x->n->out = found;
    x->n->n_out = n;
    return SX_OK;
}

/* ---- Lists of variants ---- */

/* What is done to the list of each leaf; and which input is an element, or another list. */
static const struct {
    const char *tf_op;
    int element; /* -1: none */
} of_leaves[] = {{"TensorListPushBack", 1},   {"TensorListSetItem", 2}, {"TensorListPopBack", -1},
                 {"TensorListGetItem", -1},   {"TensorListResize", -1}, {"TensorListLength", -1},
                 {"TensorListConcatLists", 1}};

static int find_of_leaves(const char *tf_op)
{
    int k = 0;
    while (k < (int)SX_COUNT(of_leaves) && strcmp(of_leaves[k].tf_op, tf_op) != 0) {
        k++;
    }
    return k;
}

/* A list like `list`, which has no tensors, of one leaf: of tensors of one shape if that is known.
 */
static sx_status list_of_leaf(sx_tf_op_node *x, const sx_tf_thing *list, const sx_tf_thing *leaf,
                              sx_tf_thing *out)
{
    const sx_type type = sx_type_of_value(x->b, leaf->value);
    bool even = type.rank != SX_UNKNOWN_RANK && type.rank < SX_MAX_RANK && leaf->kind != SX_TF_LIST;
    for (int d = 0; d < type.rank; d++) {
        even = even && (type.dims[d] >= 0 || sx_dim_is_batch(type.dims[d]));
    }
    if (!even) {
        return sx_tf_uneven_list(x, list, type.dtype, out);
    }
    *out = (sx_tf_thing){
        .kind = SX_TF_LIST,
        .variable = {.dtype = type.dtype, .rank = 1, .dims = {list->variable.dims[0]}},
        .length = list->length,
        .list = ++x->im->n_lists};
    return SX_OK;
}

/* What the list's elements are like: `element` with the types of its leaves in place of values. */
static sx_status note_types(sx_tf_op_node *x, const sx_tf_thing *element, const sx_tf_thing **out)
{
    sx_tf_thing *leaves = NULL, *noted = sx_arena_new(&x->im->arena, sx_tf_thing);
    int n = 0;
    SX_TRY(sx_tf_leaves(&x->im->arena, element, 1, &leaves, &n));
    for (int k = 0; k < n; k++) {
        leaves[k].variable = leaf_type(x->b, &leaves[k]);
        leaves[k].value = leaves[k].parts[0] = leaves[k].parts[1] = SX_NO_VALUE;
        leaves[k].known = NULL;
    }
    if (noted == NULL) {
        return sx_import_memory();
    }
    *out = noted;
    return sx_tf_from_leaves(&x->im->arena, element, 1, leaves, noted);
}

/* The leaves of an element, each with a value; it becomes what they are. `like`: what elements of
 * the list are like, or NULL. */
static sx_status element_leaves(sx_tf_op_node *x, const sx_tf_thing *like, sx_tf_thing *element,
                                sx_tf_thing **out, int *out_n)
{
    sx_tf_thing *others = NULL;
    int n_others = 0;
    SX_TRY(sx_tf_leaves(&x->im->arena, element, 1, out, out_n));
    if (like != NULL) {
        SX_TRY(sx_tf_leaves(&x->im->arena, like, 1, &others, &n_others));
    }
    for (int k = 0; k < *out_n; k++) {
        sx_tf_thing *leaf = &(*out)[k];
        const bool any_shape = like == NULL || (k < n_others && others[k].uneven != SX_DTYPE_NONE);
        if (is_tensor_list(leaf) && !sx_value_is(leaf->value) && any_shape) {
            SX_TRY(sx_tf_uneven_list(x, leaf, leaf->variable.dtype, leaf));
        }
        if (leaf->kind == SX_TF_COMPLEX) {
            SX_TRY(sx_tf_join_complex(x, leaf, &leaf->value));
        }
        if (!sx_value_is(leaf->value)) {
            return sx_tf_unsupported("its element is a list of tensors that are not set");
        }
    }
    const sx_tf_thing was = *element;
    SX_TRY(sx_tf_from_leaves(&x->im->arena, &was, 1, *out, element));
    return *out_n > 0 ? SX_OK : sx_tf_unsupported("its element is an optional that holds nothing");
}

/* Makes the list, which had no elements, one of elements of these leaves. */
static sx_status begin_list(sx_tf_op_node *x, const sx_tf_thing *element, const sx_tf_thing *leaves,
                            int n, sx_tf_thing *list)
{
    if (sx_value_is(list->value)) {
        return sx_tf_unsupported("a list of tensors gets a variant");
    }
    list->items = sx_arena_array(&x->im->arena, n + 1, sx_tf_thing);
    if (list->items == NULL) {
        return sx_import_memory();
    }
    for (int k = 0; k < n; k++) {
        SX_TRY(list_of_leaf(x, list, &leaves[k], &list->items[k]));
    }
    list->n_items = n;
    return note_types(x, element, &list->element);
}

/* The element, which is input `at`, as leaves that go with the list, which may be one without
 * elements so far. */
static sx_status fit_element(sx_tf_op_node *x, int at, sx_tf_thing *list, sx_tf_thing **out_leaves)
{
    sx_tf_thing element = x->n->in[at];
    int n = 0;
    if (list->element != NULL) {
        sx_tf_thing like = *list->element;
        SX_TRY(sx_tf_match(NULL, &like, x, &element));
    }
    SX_TRY(element_leaves(x, list->element, &element, out_leaves, &n));
    if (list->element == NULL) {
        return begin_list(x, &element, *out_leaves, n, list);
    }
    return n == list->n_items ? SX_OK : sx_tf_unsupported("its element is none like those before");
}

/* Runs the node's row for leaf k: its list, and the leaf of an element, in their places. */
static sx_status import_leaf(const sx_tf_op_node *x, const sx_tf_thing *list, int at,
                             const sx_tf_thing *element, sx_tf_thing *out)
{
    sx_tf_import_node of = *x->n;
    sx_tf_op_node leaf = *x;
    sx_tf_thing *in =
        sx_arena_memdup(&x->im->arena, x->n->in, ((size_t)x->n->n_in + 1) * sizeof(*in));
    /* no constants: the element's shape is not that of its leaves */
    leaf.tf.head.values = sx_arena_array(&x->im->arena, x->n->n_in + 1, const sx_tensor *);
    if (in == NULL || leaf.tf.head.values == NULL) {
        return sx_import_memory();
    }
    in[0] = *list;
    if (element != NULL) {
        in[at] = *element;
    }
    of.in = in;
    of.out = out;
    leaf.n = &of;
    return leaf.row->import(&leaf);
}

/* A leaf like `like` from the tensor that a list gave for it. */
static sx_status leaf_of_item(const sx_tf_op_node *x, const sx_tf_thing *like, sx_value item,
                              sx_tf_thing *out)
{
    const bool complex = like->kind == SX_TF_COMPLEX;
    if (like->variable.rank != SX_UNKNOWN_RANK) {
        sx_builder_know_rank(x->b, item, like->variable.rank + complex);
    }
    if (complex) {
        return sx_tf_split_complex(x, item, out);
    }
    *out = *like;
    out->value = item;
    out->variable = sx_type_of_value(x->b, item);
    return SX_OK;
}

static sx_status import_lists(sx_tf_op_node *x)
{
    enum { MOST_OUT = 2 };
    const char *op = x->n->node->op;
    const int at = of_leaves[find_of_leaves(op)].element;
    const bool joins = strcmp(op, "TensorListConcatLists") == 0,
               counts = strcmp(op, "TensorListLength") == 0;
    sx_tf_thing list = x->n->in[0], *leaves = NULL;
    if (at >= x->n->n_in) {
        return sx_error(SX_DATA_LOSS, "input %d is missing", at);
    }
    if (at > 0 && joins) {
        const sx_tf_thing *other = &x->n->in[1];
        if (other->kind != SX_TF_LIST || other->n_items != list.n_items) {
            return sx_tf_unsupported("its lists hold different things");
        }
        leaves = other->items;
    } else if (at > 0) {
        SX_TRY(fit_element(x, at, &list, &leaves));
        for (int k = 0; k < list.n_items; k++) { /* a tensor of real numbers, to the list */
            leaves[k].kind = SX_TF_VALUE;
        }
    }
    const int n = list.n_items;
    sx_tf_thing *made[MOST_OUT], *like = NULL;
    int n_like = 0;
    for (int o = 0; o < MOST_OUT; o++) {
        made[o] = sx_arena_array(&x->im->arena, n + 1, sx_tf_thing);
        if (made[o] == NULL) {
            return sx_import_memory();
        }
    }
    SX_TRY(sx_tf_leaves(&x->im->arena, list.element, 1, &like, &n_like));
    for (int k = 0; k < n; k++) {
        sx_tf_thing *out = sx_arena_array(&x->im->arena, x->n->n_out + 1, sx_tf_thing);
        if (out == NULL) {
            return sx_import_memory();
        }
        SX_TRY(import_leaf(x, &list.items[k], at, leaves != NULL ? &leaves[k] : NULL, out));
        for (int o = 0; o < MOST_OUT; o++) {
            made[o][k] = out[o];
            if (out[o].kind == SX_TF_VALUE && !counts) {
                SX_TRY(leaf_of_item(x, &like[k], out[o].value, &made[o][k]));
            }
        }
    }
    for (int o = 0; o < MOST_OUT && o < x->n->n_out; o++) {
        const bool rest = o == 0 && strcmp(op, "TensorListGetItem") != 0; /* else an element */
        if (counts || made[o][0].kind == SX_TF_NOTHING) {
            x->n->out[o] = made[o][0];
        } else if (rest) {
            x->n->out[o] = list;
            x->n->out[o].items = made[o];
        } else {
            SX_TRY(sx_tf_from_leaves(&x->im->arena, list.element, 1, made[o], &x->n->out[o]));
        }
    }
    return SX_OK;
}

/* ---- ZerosLike, AddN ---- */

/* Of the tensors in variants that hold the same: what tuples are held stays. */
static sx_status import_sums(sx_tf_op_node *x)
{
    const int n_in = x->n->n_in;
    sx_arena *arena = &x->im->arena;
    sx_tf_thing *in = sx_arena_memdup(arena, x->n->in, ((size_t)n_in + 1) * sizeof(*in));
    sx_tf_thing **leaves = sx_arena_array(arena, n_in + 1, sx_tf_thing *), *kinds = NULL;
    int n = 0, n_kinds = 0;
    if (in == NULL || leaves == NULL) {
        return sx_import_memory();
    }
    for (int i = n_in - 1; i >= 0; i--) { /* the first gets what any may hold, then the others */
        SX_TRY(sx_tf_match(x, &in[0], x, &in[i]));
    }
    for (int i = n_in - 1; i >= 0; i--) {
        int n_here = 0;
        SX_TRY(sx_tf_match(x, &in[0], x, &in[i]));
        SX_TRY(sx_tf_leaves(arena, &in[i], 1, &leaves[i], &n_here));
        n = i == n_in - 1 ? n_here : n;
        if (n_here != n) {
            return sx_tf_unsupported("its variants hold different things");
        }
    }
    SX_TRY(sx_tf_leaves(arena, in[0].kind == SX_TF_LIST ? in[0].element : &in[0], 1, &kinds,
                        &n_kinds));
    for (int k = 0; k < n; k++) {
        sx_tf_import_node of = *x->n;
        sx_tf_thing *each = sx_arena_array(arena, n_in + 1, sx_tf_thing),
                    *out = sx_arena_array(arena, x->n->n_out + 1, sx_tf_thing);
        if (each == NULL || out == NULL) {
            return sx_import_memory();
        }
        for (int i = 0; i < n_in; i++) {
            each[i] = leaves[i][k];
        }
        of.in = each;
        of.out = out;
        if (kinds[k].kind != SX_TF_TUPLE) {
            SX_TRY(sx_tf_import_op(x->im, x->body, &of));
            leaves[0][k] = out[0];
        }
    }
    return sx_tf_from_leaves(arena, &in[0], 1, leaves[0], &x->n->out[0]);
}

/* ---- All of them ---- */

static bool is_sum(const char *tf_op)
{
    return strcmp(tf_op, "ZerosLike") == 0 || strcmp(tf_op, "AddN") == 0;
}

bool sx_tf_reads_variants(const sx_tf_op_node *x)
{
    const char *op = x->n->node->op;
    const sx_tf_thing *in = x->n->in;
    const int k = find_of_leaves(op);
    if (x->n->n_in == 0 || (k == (int)SX_COUNT(of_leaves) && !is_sum(op))) {
        return false;
    }
    const int at = is_sum(op) ? -1 : of_leaves[k].element;
    const bool pushes = at > 0 && at < x->n->n_in && in[0].kind == SX_TF_LIST &&
                        (in[at].kind == SX_TF_OPTIONAL || in[at].kind == SX_TF_LIST) &&
                        strcmp(op, "TensorListConcatLists") != 0;
    return pushes || (is_variant(&in[0]) && (in[0].kind == SX_TF_LIST || is_sum(op)));
}

sx_status sx_tf_import_variants(sx_tf_op_node *x)
{
    return is_sum(x->n->node->op) ? import_sums(x) : import_lists(x);
}

sx_status sx_tf_list_become(const sx_tf_op_node *x, sx_tf_thing *list, const sx_tf_thing *like)
{
    if (like->element == NULL) {
        if (like->uneven != SX_DTYPE_NONE) {
            return sx_value_is(list->value) ? sx_tf_list_to_uneven(x, list)
                                            : sx_tf_uneven_list(x, list, like->uneven, list);
        }
        return sx_value_is(list->value) || !sx_value_is(like->value)
                   ? SX_OK
                   : sx_tf_list_fill(x, list, like->value, 1, &list->value);
    }
    const sx_tf_thing empty = *list;
    const bool fresh = list->element == NULL;
    sx_tf_thing *items = sx_arena_array(&x->im->arena, like->n_items + 1, sx_tf_thing);
    if (items == NULL) {
        return sx_import_memory();
    }
    if (!fresh && list->n_items != like->n_items) {
        return SX_OK;
    }
    for (int k = 0; k < like->n_items; k++) {
        items[k] = fresh ? (sx_tf_thing){.kind = SX_TF_LIST,
                                         .length = empty.length,
                                         .list = empty.list,
                                         .of_complex = like->items[k].of_complex,
                                         .variable = {.dtype = like->items[k].variable.dtype,
                                                      .rank = 1,
                                                      .dims = {empty.variable.dims[0]}}}
                         : list->items[k];
        SX_TRY(sx_tf_list_become(x, &items[k], &like->items[k]));
        if (sx_value_is(items[k].value)) {
            items[k].variable = sx_type_of_value(x->b, items[k].value);
        }
    }
    list->element = like->element;
    list->items = items;
    list->n_items = like->n_items;
    return SX_OK;
}

/* ---- The table ---- */

const sx_tf_op_row sx_tf_variant_rows[] = {
    {"OptionalNone", import_none, NULL},
    {"OptionalFromValue", import_some, NULL},
    {"OptionalHasValue", import_has_value, NULL},
    {"OptionalGetValue", import_get_value, NULL},
    {NULL, NULL, NULL},
};
