/* Strided slices of imported functions: every mask, strides, bounds that are computed, axes whose
 * size is unknown. */
#include "savedmodel/function_model.h"

typedef struct row {
    const char *nodes;
    const char *expected; /* of x [2,3] */
} row;

#define AT(n, begin, end, strides)         \
    NODE("b", "Const", "", INTS(n, begin)) \
    NODE("e", "Const", "", INTS(n, end)) NODE("o", "Const", "", INTS(n, strides))
#define SLICE(masks)   NODE("y", "StridedSlice", "'x', 'b', 'e', 'o'", masks)
#define MASK(name, at) ATTR(name "_mask", "i: " at)

/* x is 1 -2 3 / -4 5 -6 */
static const row slices[] = {
    /* x[-1], x[1, -2] */
    {AT("1", "-1", "0", "1") SLICE(MASK("shrink_axis", "1")), "float32[3] -4 5 -6"},
    {AT("2", "1, -2", "0, 0", "1, 1") SLICE(MASK("shrink_axis", "3")), "float32[] 5"},
    /* x[:, :-1], x[:, -2:], x[:, -100:100] */
    {AT("2", "0, 0", "0, -1", "1, 1") SLICE(MASK("begin", "3") MASK("end", "1")),
     "float32[2,2] 1 -2 -4 5"},
    {AT("2", "0, -2", "0, 0", "1, 1") SLICE(MASK("begin", "1") MASK("end", "3")),
     "float32[2,2] -2 3 5 -6"},
    {AT("2", "0, -100", "0, 100", "1, 1") SLICE(MASK("begin", "1") MASK("end", "1")),
     "float32[2,3] 1 -2 3 -4 5 -6"},
    /* x[:, 2:1] has no elements */
    {AT("2", "0, 2", "0, 1", "1, 1") SLICE(MASK("begin", "1") MASK("end", "1")), "float32[2,0]"},
    /* x[..., 1], x[:, newaxis, ..., 1:] */
    {AT("2", "0, 1", "0, 0", "1, 1") SLICE(MASK("ellipsis", "1") MASK("shrink_axis", "2")),
     "float32[2] -2 5"},
    {AT("4", "0, 0, 0, 1", "0, 0, 0, 0", "1, 1, 1, 1")
         SLICE(MASK("begin", "1") MASK("end", "9") MASK("new_axis", "2") MASK("ellipsis", "4")),
     "float32[2,1,2] -2 3 5 -6"},
    /* an ellipsis that stands for no axis: x[0:1, ..., 0:2] of rank 2 */
    {AT("3", "0, 0, 0", "1, 0, 2", "1, 1, 1") SLICE(MASK("ellipsis", "2")), "float32[1,2] 1 -2"},
    /* x[:, ::2], x[::3, 1::2], x[:, 0:3:5] */
    {AT("2", "0, 0", "0, 0", "1, 2") SLICE(MASK("begin", "3") MASK("end", "3")),
     "float32[2,2] 1 3 -4 -6"},
    {AT("2", "0, 1", "0, 0", "3, 2") SLICE(MASK("begin", "1") MASK("end", "3")), "float32[1,1] -2"},
    {AT("2", "0, 0", "0, 3", "1, 5") SLICE(MASK("begin", "1") MASK("end", "1")),
     "float32[2,1] 1 -4"},
    /* x[:, ::-1], x[::-1, 2:0:-2], x[:, -2::-1] */
    {AT("2", "0, 0", "0, 0", "1, -1") SLICE(MASK("begin", "3") MASK("end", "3")),
     "float32[2,3] 3 -2 1 -6 5 -4"},
    {AT("2", "0, 2", "0, 0", "-1, -2") SLICE(MASK("begin", "1") MASK("end", "1")),
     "float32[2,1] -6 3"},
    {AT("2", "0, -2", "0, 0", "1, -1") SLICE(MASK("begin", "1") MASK("end", "3")),
     "float32[2,2] -2 1 5 -4"},
    /* x[:shape(x)[0] - 1, rank(x):] */
    {NODE("s", "Shape", "'x'", "") AT("1", "0", "1", "1")
         NODE("n", "StridedSlice", "'s', 'b', 'e', 'o'", MASK("shrink_axis", "1"))
             NODE("one", "Const", "", INT("1")) NODE("m", "Sub", "'n', 'one'", "")
                 NODE("r", "Rank", "'x'", "") NODE("from", "Pack", "'one', 'r'", "")
                     NODE("to", "Pack", "'m', 'one'", "") NODE("by", "Const", "", INTS("2", "1, 1"))
                         NODE("y", "StridedSlice", "'x', 'from', 'to', 'by'",
                              MASK("begin", "1") MASK("end", "2")),
     "float32[1,1] 3"},
    /* x[i] with i = sum of shape - 4 */
    {NODE("s", "Shape", "'x'", "") NODE("zero", "Const", "", INTS("1", "0"))
         NODE("t", "Sum", "'s', 'zero'", "") NODE("four", "Const", "", INT("4"))
             NODE("i", "Sub", "'t', 'four'", "") NODE("one", "Const", "", INT("1"))
                 NODE("k", "AddV2", "'i', 'one'", "") NODE("b", "Pack", "'i'", "")
                     NODE("e", "Pack", "'k'", "") NODE("o", "Const", "", INTS("1", "1"))
                         SLICE(MASK("shrink_axis", "1")),
     "float32[3] -4 5 -6"},
};

static void test_savedmodel_import_slices__of_every_kind(void **state)
{
    (void)state;
    static const char *const dims[] = {ANY ANY, DIM("2") DIM("3"), ANY DIM("3"), DIM("2") ANY};
    for (size_t i = 0; i < sizeof(slices) / sizeof(slices[0]); i++) {
        for (size_t k = 0; k < sizeof(dims) / sizeof(dims[0]); k++) {
            sx_library *library = import(dims[k], slices[i].nodes, "");
            for (size_t d = 0; d < 2; d++) {
                check(library, devices[d], sx_type_of(SX_F32, 2, 3), slices[i].expected);
            }
            sx_library_destroy(library);
        }
    }
}

static void test_savedmodel_import_slices__are_refused(void **state)
{
    (void)state;
    refuses(AT("2", "0, 0", "0, 0", "1, 1") SLICE(""), "", NULL,
            "DATA_LOSS: StridedSlice \"y\": 2 indices for an input of rank 1");
    refuses(AT("1", "0", "0", "0") SLICE(""), "", NULL,
            "DATA_LOSS: StridedSlice \"y\": stride 0 is 0");
    refuses(NODE("b", "Const", "", INTS("2", "0, 0")) NODE("e", "Const", "", INTS("1", "0"))
                NODE("o", "Const", "", INTS("1", "1")) SLICE(""),
            "", NULL,
            "DATA_LOSS: StridedSlice \"y\": input 1 has 2 indices, the strides "
            "have 1");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_savedmodel_import_slices__of_every_kind),
    cmocka_unit_test(test_savedmodel_import_slices__are_refused),
};
SX_TEST_MAIN(tests)
