/* Builds a function by hand and runs it on tensors of any shape: the mean and the variance of
 * numbers, and a call of that function for each of several lists.
 *
 *     functions NUMBER...                        functions 1 2 3 4 */
#include <stdio.h>
#include <stdlib.h>

#include <sextant/sextant.h>

/* moments(x [?]) -> mean [], variance [] */
static sx_status add_moments(sx_library *library)
{
    sx_builder *b = NULL;
    SX_TRY(sx_builder_create_function(&b));
    const sx_type scalar = sx_scalar_type(SX_F32);
    sx_value x = sx_input(b, "x", sx_type_of(SX_F32, SX_UNKNOWN_DIM));
    sx_value first =
        sx_function_node(b, "moments", "axes=[0]", &x, 1, NULL, 0, (sx_type[]){scalar, scalar}, 2);
    sx_output(b, "mean", first);
    sx_output(b, "variance", (sx_value){first.id + 1}); /* the outputs follow one another */
    sx_status status = sx_library_add(library, "moments", b);
    sx_builder_destroy(b);
    return status;
}

/* main(x [?]) -> variance of x, variance of x and x again */
static sx_status add_main(sx_library *library)
{
    sx_builder *b = NULL;
    SX_TRY(sx_builder_create_function(&b));
    const sx_type list = sx_type_of(SX_F32, SX_UNKNOWN_DIM), scalar = sx_scalar_type(SX_F32);
    const sx_type both[] = {scalar, scalar};
    sx_value x = sx_input(b, "x", list);
    sx_value twice =
        sx_function_node(b, "concat", "axis=0", (sx_value[]){x, x}, 2, NULL, 0, &list, 1);
    sx_value one = sx_function_node(b, "call", "function=\"moments\"", &x, 1, NULL, 0, both, 2);
    sx_value two = sx_function_node(b, "call", "function=\"moments\"", &twice, 1, NULL, 0, both, 2);
    sx_output(b, "mean", one);
    sx_output(b, "variance", (sx_value){one.id + 1});
    sx_output(b, "variance of both", (sx_value){two.id + 1});
    sx_status status = sx_library_add(library, "main", b);
    sx_builder_destroy(b);
    return status;
}

static sx_status run(const float *numbers, int n)
{
    sx_library *library = NULL;
    sx_functions *functions = NULL;
    sx_results *results = NULL;
    sx_status status = SX_OK;
    SX_TRY(sx_library_create(&library));
    SX_TRY_GOTO(status, add_moments(library), done);
    SX_TRY_GOTO(status, add_main(library), done);
    SX_TRY_GOTO(status, sx_library_finish(library), done);
    const sx_functions_options options = {.struct_size = sizeof(options), .threads = 1};
    SX_TRY_GOTO(status, sx_functions_open(library, &options, &functions), done);
    const sx_tensor input = {sx_type_of(SX_F32, n), (void *)numbers};
    SX_TRY_GOTO(status, sx_functions_run(functions, "main", &input, 1, 1000, &results), done);
    static const char *const names[] = {"mean", "variance", "variance of both"};
    for (int i = 0; i < 3; i++) {
        printf("%s: %g\n", names[i], (double)*(float *)sx_results_find(results, names[i])->data);
    }
done:
    sx_results_free(results);
    sx_functions_close(functions);
    sx_library_destroy(library);
    return status;
}

int main(int argc, char **argv)
{
    enum { MOST = 1000 };
    float numbers[MOST];
    if (argc < 2 || argc > MOST) {
        fprintf(stderr, "usage: %s NUMBER...\n", argv[0]);
        return 2;
    }
    for (int i = 1; i < argc; i++) {
        numbers[i - 1] = strtof(argv[i], NULL);
    }
    sx_status status = run(numbers, argc - 1);
    if (status != SX_OK) {
        fprintf(stderr, "%s: %s\n", argv[0], sx_status_message(status));
        sx_status_free(status);
        return 1;
    }
    return 0;
}
