/* Gradients of functions: through calls, also those in branches and loops, and of those gradients;
 * against finite differences in double precision on the host's kernels, and the cpu against them.
 */
#include "function_running.h"

#include <math.h>

#include "base/buffer.h"
#include "graph/builder.h"

enum { N = 3 };

/* cell(x, w) = tanh(x w)
 * deep(x, w, n): cell n times, in a loop without a bound; then, if n < 2, once more, else negated
 * loss(x) = the sum of squares, an assert and a print of it
 * first, second: gradient functions of deep */
static const char text[] =
    "sextant-library 2\n"
    "function \"cell\"\n"
    "input %1 float64[?] \"x\"\ninput %2 float64[?] \"w\"\n"
    "%3 = mul(%1, %2) float64[?] \"mul\"\n%4 = tanh(%3) float64[?] \"tanh\"\n"
    "output \"y\" %4\nend\n"
    "function \"deep\"\n"
    "input %1 float64[?] \"x\"\ninput %2 float64[?] \"w\"\ninput %3 int32[] \"n\"\n"
    "%4 = constant() {value=tensor(int32[] \"00000000\")} int32[] \"zero\"\n"
    "%5, %6 = while(%1, %4, %2, %3) float64[?], int32[] \"loop\"\n"
    "  condition\n"
    "    input %1 float64[?] \"h\"\n    input %2 int32[] \"i\"\n    input %3 float64[?] \"w\"\n"
    "    input %4 int32[] \"n\"\n    %5 = less(%2, %4) bool[] \"go\"\n    output \"go\" %5\n  end\n"
    "  body\n"
    "    input %1 float64[?] \"h\"\n    input %2 int32[] \"i\"\n    input %3 float64[?] \"w\"\n"
    "    input %4 int32[] \"n\"\n"
    "    %5 = constant() {value=tensor(int32[] \"01000000\")} int32[] \"one\"\n"
    "    %6 = add(%2, %5) int32[] \"next\"\n"
    "    %7 = call(%1, %3) {function=\"cell\"} float64[?] \"call\"\n"
    "    output \"h\" %7\n    output \"i\" %6\n  end\n"
    "%7 = constant() {value=tensor(int32[] \"02000000\")} int32[] \"two\"\n"
    "%8 = less(%3, %7) bool[] \"few\"\n"
    "%9 = if(%8, %5, %2) float64[?] \"if\"\n"
    "  then\n    input %1 float64[?] \"h\"\n    input %2 float64[?] \"w\"\n"
    "    %3 = call(%1, %2) {function=\"cell\"} float64[?] \"call\"\n    output \"y\" %3\n  end\n"
    "  else\n    input %1 float64[?] \"h\"\n    input %2 float64[?] \"w\"\n"
    "    %3 = neg(%1) float64[?] \"neg\"\n    output \"y\" %3\n  end\n"
    "output \"y\" %9\nend\n"
    "function \"first\"\n"
    "input %1 float64[?] \"x\"\ninput %2 float64[?] \"w\"\ninput %3 int32[] \"n\"\n"
    "input %4 float64[?] \"dy\"\n"
    "%5, %6 = call(%1, %2, %3, %4) {function=\"deep\", gradient=1} float64[?], float64[?] \"g\"\n"
    "output \"dx\" %5\noutput \"dw\" %6\nend\n"
    "function \"second\"\n"
    "input %1 float64[?] \"x\"\ninput %2 float64[?] \"w\"\ninput %3 int32[] \"n\"\n"
    "input %4 float64[?] \"dy\"\ninput %5 float64[?] \"ddx\"\ninput %6 float64[?] \"ddw\"\n"
    "%7, %8, %9 = call(%1, %2, %3, %4, %5, %6) {function=\"deep\", gradient=2} float64[?], "
    "float64[?], float64[?] \"g\"\n"
    "output \"dx\" %7\noutput \"dw\" %8\noutput \"ddy\" %9\nend\n"
    "function \"loss\"\n"
    "input %1 float64[?] \"x\"\n"
    "%2 = square(%1) float64[?] \"square\"\n"
    "%3 = constant() {value=tensor(int32[1] \"00000000\")} int32[1] \"axes\"\n"
    "%4 = reduce_sum(%2) {axes=%3} float64[] \"sum\"\n"
    "%5 = less(%4, %4) bool[] \"less\"\n%6 = logical_not(%5) bool[] \"fine\"\n"
    "%7 = assert(%6, %4) {message=\"a loss\"} bool[] \"assert\"\n"
    "output \"y\" %4\nend\n";

static sx_tensor vector(const double *x)
{
    return (sx_tensor){sx_type_of(SX_F64, N), (void *)x};
}

/* Runs `function` on n vectors, the third of whose arguments is the count. */
static void run(running *t, const char *function, const double (*in)[N], int n, int32_t count,
                int n_out, double (*out)[N])
{
    sx_tensor args[8], results[4];
    for (int i = 0; i < n; i++) {
        args[i < 2 ? i : i + 1] = vector(in[i]);
    }
    args[2] = (sx_tensor){sx_scalar_type(SX_I32), &count};
    assert_ok(sx_runner_run(t->runner, function, args, n + 1, results, n_out, &t->arena, NULL));
    for (int i = 0; i < n_out; i++) {
        assert_int_equal(results[i].type.dims[0], N);
        memcpy(out[i], results[i].data, sizeof(out[i]));
    }
}

static void assert_near(double got, double want, double within)
{
    if (!(fabs(got - want) <= within * fmax(1, fabs(want)))) {
        fail_msg("got %.10g, expected %.10g", got, want);
    }
}

/* The derivative of the dot product of `function`'s n_out results with `by`, to in[i][k]. */
static double difference(running *t, const char *function, double (*in)[N], int n, int32_t count,
                         int n_out, const double (*by)[N], int i, int k)
{
    const double h = 1e-5, kept = in[i][k];
    double sums[2] = {0, 0}, out[4][N];
    for (int side = 0; side < 2; side++) {
        in[i][k] = kept + (side == 0 ? h : -h);
        run(t, function, (const double(*)[N])in, n, count, n_out, out);
        for (int r = 0; r < n_out; r++) {
            for (int e = 0; e < N; e++) {
                sums[side] += out[r][e] * by[r][e];
            }
        }
    }
    in[i][k] = kept;
    return (sums[0] - sums[1]) / (2 * h);
}

static void test_runtime_function_gradients__equal_finite_differences(void **state)
{
    (void)state;
    running t;
    /* x, w, dy, ddx, ddw */
    double in[5][N] = {{.3, -1.2, 2}, {.9, 1.1, -.7}, {1, -2, .5}, {.4, -.3, 1}, {2, .1, -1}};
    const double(*const fixed)[N] = (const double(*)[N])in;
    double got[3][N];
    begin(&t, "host", parse(text), (sx_runner_options){.seed = 0});
    for (int32_t count = 0; count < 70; count = count < 4 ? count + 1 : count + 62) {
        run(&t, "first", fixed, 3, count, 2, got);
        for (int i = 0; i < 2; i++) {
            for (int k = 0; k < N; k++) {
                assert_near(got[i][k], difference(&t, "deep", in, 2, count, 1, fixed + 2, i, k),
                            1e-8);
            }
        }
        run(&t, "second", fixed, 5, count, 3, got);
        for (int i = 0; i < 3; i++) {
            for (int k = 0; k < N; k++) {
                assert_near(got[i][k], difference(&t, "first", in, 3, count, 2, fixed + 3, i, k),
                            1e-7);
            }
        }
    }
    end(&t);
}

/* On the cpu in float32, as one program: no region of its own. */
static void test_runtime_function_gradients__run_on_the_cpu(void **state)
{
    (void)state;
    running host, cpu;
    double in[3][N] = {{.3, -1.2, 2}, {.9, 1.1, -.7}, {1, -2, .5}}, want[2][N];
    sx_buf single;
    sx_buf_init(&single, 1 << 20);
    for (const char *at = text; *at != '\0'; at++) {
        const bool wide = strncmp(at, "float64", 7) == 0;
        sx_buf_puts(&single, wide ? "float32" : "");
        at += wide ? 7 : 0;
        sx_buf_putc(&single, *at);
    }
    begin(&host, "host", parse(text), (sx_runner_options){.seed = 0});
    begin(&cpu, "cpu", parse(sx_buf_text(&single)), (sx_runner_options){.seed = 0});
    for (int32_t count = 0; count < 6; count++) {
        float x[3][N];
        sx_tensor args[4], results[2];
        run(&host, "first", (const double(*)[N])in, 3, count, 2, want);
        for (int i = 0; i < 3; i++) {
            for (int k = 0; k < N; k++) {
                x[i][k] = (float)in[i][k];
            }
            args[i < 2 ? i : i + 1] = (sx_tensor){sx_type_of(SX_F32, N), x[i]};
        }
        args[2] = (sx_tensor){sx_scalar_type(SX_I32), &count};
        assert_ok(sx_runner_run(cpu.runner, "first", args, 4, results, 2, &cpu.arena, NULL));
        for (int i = 0; i < 2; i++) {
            for (int k = 0; k < N; k++) {
                assert_near(((float *)results[i].data)[k], want[i][k], 1e-5);
            }
        }
    }
    sx_build_cache_stats programs, executables;
    int64_t known;
    sx_runner_get_stats(cpu.runner, &programs, &executables, &known);
    assert_int_equal(programs.builds, 1);
    assert_int_equal(executables.builds, 1);
    end(&host);
    end(&cpu);
    sx_buf_deinit(&single);
}

/* loss(cell(cell(x, w), w)), differentiated in a function whose shapes are not known: the gradient
 * function of cell is made once for both calls, and again only for other types. */
static sx_library *chain(void)
{
    sx_library *library = parse(text), *made = NULL;
    sx_builder *b;
    char *printed;
    const sx_type vector_type = sx_type_of(SX_F64, SX_UNKNOWN_DIM);
    const sx_type scalar = sx_scalar_type(SX_F64);
    assert_ok(sx_library_create(&made));
    assert_ok(sx_builder_create_function(&b));
    sx_value w, xs[2], y, dx[2];
    xs[0] = sx_input(b, "x", vector_type);
    xs[1] = w = sx_input(b, "w", vector_type);
    const sx_value first[] = {xs[0], w};
    y = sx_function_node(b, "call", "function=\"cell\"", first, 2, NULL, 0, &vector_type, 1);
    const sx_value again[] = {y, w};
    y = sx_function_node(b, "call", "function=\"cell\"", again, 2, NULL, 0, &vector_type, 1);
    y = sx_function_node(b, "call", "function=\"loss\"", &y, 1, NULL, 0, &scalar, 1);
    sx_gradients(b, y, xs, 2, dx);
    sx_output(b, "loss", y);
    sx_output(b, "dx", dx[0]);
    sx_output(b, "dw", dx[1]);
    assert_ok(sx_library_add(made, "chain", b));
    sx_builder_destroy(b);
    /* with the other functions: by way of their text */
    sx_buf both;
    sx_buf_init(&both, 1 << 20);
    sx_buf_puts(&both, text);
    const sx_graph *body = sx_library_find(made, "chain")->body;
    sx_buf_puts(&both, "function \"chain\"\n");
    sx_graph_print_lines(body, 1, &both);
    sx_buf_puts(&both, "end\n");
    sx_library_destroy(library);
    sx_library_destroy(made);
    library = parse(sx_buf_text(&both));
    assert_ok(sx_library_print(library, &printed));
    assert_true(strstr(printed, "gradient=1") != NULL);
    sx_text_free(printed);
    sx_buf_deinit(&both);
    return library;
}

static void test_runtime_function_gradients__of_calls_in_a_function(void **state)
{
    (void)state;
    running t;
    double in[2][N] = {{.3, -1.2, 2}, {.9, 1.1, -.7}};
    sx_tensor args[2] = {vector(in[0]), vector(in[1])}, y[3];
    begin(&t, "host", chain(), (sx_runner_options){.seed = 0});
    assert_ok(sx_runner_run(t.runner, "chain", args, 2, y, 3, &t.arena, NULL));
    for (int k = 0; k < N; k++) {
        const double x = in[0][k], w = in[1][k], a = tanh(x * w), c = tanh(a * w);
        const double dc = 2 * c * (1 - c * c), da = dc * w * (1 - a * a);
        assert_near(((double *)y[1].data)[k], da * w, 1e-12);
        assert_near(((double *)y[2].data)[k], dc * a + da * x, 1e-12);
    }
    sx_specialized *s = NULL;
    const sx_graph *body = sx_library_find(t.library, "chain")->body;
    const sx_tensor same[2] = {{sx_type_of(SX_F64, N), NULL}, {sx_type_of(SX_F64, N), NULL}};
    assert_ok(sx_specialize(t.library, body, &(sx_binding){.args = same, .n_args = 2}, NULL, &s));
    assert_int_equal(s->n_gradients, 2); /* cell's, loss's */
    sx_specialized_destroy(s);
    const sx_tensor other[2] = {{sx_type_of(SX_F64, N), NULL}, {sx_type_of(SX_F64, 2), NULL}};
    assert_error(
        sx_specialize(t.library, body, &(sx_binding){.args = other, .n_args = 2}, NULL, &s),
        SX_INVALID_ARGUMENT, "do not broadcast");
    end(&t);
}

static void test_runtime_function_gradients__of_one_known_size_and_another(void **state)
{
    (void)state;
    /* a function of a variable, of which the gradient is taken to x alone; both in one program */
    static const char reading[] =
        "sextant-library 2\n"
        "variable float32[2] \"w\" weight constant 3\n"
        "function \"scale\"\n"
        "input %1 float32[?] \"x\"\n"
        "%2 = variable_handle() {name=\"w\"} resource[] \"handle\"\n"
        "%3 = read_variable(%2) float32[2] \"read\"\n"
        "%4 = mul(%1, %3) float32[?] \"mul\"\n%5 = square(%4) float32[?] \"square\"\n"
        "output \"y\" %5\nend\n"
        "function \"handed\"\n"
        "input %1 resource[] \"w\"\ninput %2 float32[?] \"x\"\n"
        "%3 = read_variable(%1) float32[2] \"read\"\n"
        "%4 = mul(%2, %3) float32[?] \"mul\"\noutput \"y\" %4\nend\n"
        "function \"main\"\n"
        "input %1 float32[?] \"x\"\ninput %2 float32[?] \"dy\"\n"
        "%3 = variable_handle() {name=\"w\"} resource[] \"handle\"\n"
        "%4 = call(%1, %2) {function=\"scale\", gradient=1} float32[?] \"first\"\n"
        "%5 = call(%3, %1, %2) {function=\"handed\", gradient=1} float32[?] \"second\"\n"
        "output \"dx\" %4\noutput \"of_handle\" %5\nend\n"
        "function \"wrong\"\n"
        "input %1 float32[?] \"x\"\n"
        "%2 = call(%1) {function=\"scale\", gradient=1} float32[?] \"first\"\n"
        "output \"dx\" %2\nend\n";
    for (int d = 0; d < 2; d++) {
        running t;
        const float x[] = {2, -1}, dy[] = {1, .5f};
        sx_tensor args[2] = {{sx_type_of(SX_F32, 2), (void *)x},
                             {sx_type_of(SX_F32, 2), (void *)dy}};
        sx_tensor y[2];
        begin(&t, devices[d], parse(reading), (sx_runner_options){.seed = 0});
        assert_ok(sx_runner_run(t.runner, "main", args, 2, y, 2, &t.arena, NULL));
        assert_memory_equal(y[0].data, ((const float[]){36, -9}), sizeof(float[2]));
        assert_memory_equal(y[1].data, ((const float[]){3, 1.5f}), sizeof(float[2]));
        assert_error(sx_runner_run(t.runner, "wrong", args, 1, y, 1, &t.arena, NULL),
                     SX_INVALID_ARGUMENT,
                     "gradient function 1 of \"scale\" has 2 inputs and 1 outputs, but the call "
                     "has 1 and 1");
        end(&t);
    }
}

static void test_runtime_function_gradients__refusals(void **state)
{
    (void)state;
    sx_builder *b;
    sx_library *library;
    const sx_type type = sx_type_of(SX_F32, 3), scalar = sx_scalar_type(SX_F32);
    assert_ok(sx_builder_create_function(&b));
    sx_value x = sx_input(b, "x", type), axes = sx_input(b, "axes", sx_type_of(SX_I32, 1)), dx;
    char attrs[32];
    snprintf(attrs, sizeof(attrs), "axes=%%%u", (unsigned)axes.id);
    sx_value y = sx_function_node(b, "reduce_sum", attrs, &x, 1, NULL, 0, &scalar, 1);
    sx_gradients(b, y, &x, 1, &dx);
    sx_output(b, "dx", dx);
    assert_ok(sx_library_create(&library));
    assert_error(sx_library_add(library, "f", b), SX_UNIMPLEMENTED,
                 "has no gradient in this function, because its attributes are computed");
    sx_builder_destroy(b);
    sx_library_destroy(library);
    static const char words[] =
        "sextant-library 2\nfunction \"f\"\ninput %1 string[?] \"s\"\ninput %2 float32[] \"x\"\n"
        "%3 = neg(%2) float32[] \"neg\"\n%4 = identity(%1) string[?] \"same\"\n"
        "output \"y\" %3\noutput \"s\" %4\nend\n"
        "function \"main\"\ninput %1 string[?] \"s\"\ninput %2 float32[] \"x\"\n"
        "%3 = call(%1, %2, %2) {function=\"f\", gradient=1} float32[] \"g\"\n"
        "output \"dx\" %3\nend\n";
    running t;
    const float one = 1;
    sx_bytes bytes = {(void *)"a", 1};
    sx_tensor y0, args[2] = {{sx_type_of(SX_STRING, 1), &bytes}, {scalar, (void *)&one}};
    begin(&t, "host", parse(words), (sx_runner_options){.seed = 0});
    assert_ok(sx_runner_run(t.runner, "main", args, 2, &y0, 1, &t.arena, NULL));
    assert_float_equal(*(const float *)y0.data, -1, 0); /* strings stand in no way */
    end(&t);
    static const char places[] =
        "sextant-library 2\nfunction \"f\"\ninput %1 float32[3] \"x\"\n"
        "%2 = is_nan(%1) bool[3] \"nan\"\n%3 = where(%2) int64[?,?] \"places\"\n"
        "%4 = neg(%1) float32[3] \"neg\"\noutput \"y\" %4\noutput \"places\" %3\nend\n"
        "function \"main\"\ninput %1 float32[3] \"x\"\n"
        "%2 = call(%1, %1) {function=\"f\", gradient=1} float32[3] \"g\"\noutput \"dx\" %2\nend\n"
        "function \"second\"\ninput %1 float32[3] \"x\"\n"
        "%2, %3 = call(%1, %1, %1) {function=\"f\", gradient=2} float32[3], float32[3] \"g\"\n"
        "output \"dx\" %2\noutput \"ddy\" %3\nend\n";
    const float three[3] = {1, 2, 3};
    const sx_tensor x3 = {type, (void *)three};
    begin(&t, "host", parse(places), (sx_runner_options){.seed = 0});
    assert_ok(sx_runner_run(t.runner, "main", &x3, 1, &y0, 1, &t.arena, NULL));
    assert_memory_equal(y0.data, ((const float[]){-1, -2, -3}), sizeof(three));
    sx_tensor second[2]; /* shapes that data decide stand in the way of the second only */
    assert_error(sx_runner_run(t.runner, "second", &x3, 1, second, 2, &t.arena, NULL),
                 SX_UNIMPLEMENTED,
                 "function \"f\" has no gradient of its gradient: where \"places\"");
    end(&t);
    static const char itself[] =
        "sextant-library 2\nfunction \"main\"\ninput %1 float32[] \"x\"\n"
        "%2 = call(%1, %1) {function=\"main\", gradient=1} float32[] \"g\"\n"
        "output \"y\" %2\nend\n";
    begin(&t, "host", parse(itself), (sx_runner_options){.seed = 0});
    assert_error(sx_runner_run(t.runner, "main", args + 1, 1, &y0, 1, &t.arena, NULL),
                 SX_RESOURCE_EXHAUSTED, "calls nest deeper than 64");
    end(&t);
    static const char without[] =
        "sextant-library 2\nfunction \"f\"\ninput %1 float32[] \"x\"\n"
        "%2 = call() {function=\"f\", gradient=1} float32[] \"g\"\noutput \"y\" %2\nend\n";
    assert_error(sx_library_parse(without, strlen(without), &library), SX_INVALID_ARGUMENT,
                 "gradient is 1, and 0 values are passed to function \"f\"");
}

/* inner(x) reads "w", and so does outer(x), which calls it in a branch, and reads "v"; by_args is
 * the same with arguments. */
static const char variables_text[] =
    "sextant-library 2\n"
    "variable float64[3] \"w\" weight constant 0.7\nvariable float64[] \"v\" weight constant 1.3\n"
    "variable float64[3] \"fixed\" state constant 2\n"
    "function \"inner\"\ninput %1 float64[?] \"x\"\n"
    "%2 = variable_handle() {name=\"w\"} resource[] \"handle\"\n"
    "%3 = read_variable(%2) float64[3] \"read\"\n%4 = mul(%1, %3) float64[?] \"mul\"\n"
    "%5 = tanh(%4) float64[?] \"tanh\"\noutput \"y\" %5\nend\n"
    "function \"outer\"\ninput %1 float64[?] \"x\"\ninput %2 int32[] \"n\"\n"
    "%3 = variable_handle() {name=\"v\"} resource[] \"v_handle\"\n"
    "%4 = read_variable(%3) float64[] \"v\"\n"
    "%5 = variable_handle() {name=\"w\"} resource[] \"w_handle\"\n"
    "%6 = read_variable(%5) float64[3] \"w\"\n"
    "%7 = variable_handle() {name=\"fixed\"} resource[] \"fixed_handle\"\n"
    "%8 = read_variable(%7) float64[3] \"fixed\"\n"
    "%9 = call(%1) {function=\"inner\"} float64[?] \"inner\"\n"
    "%10 = mul(%9, %4) float64[?] \"by_v\"\n%11 = mul(%6, %8) float64[3] \"twice\"\n"
    "%12 = mul(%10, %11) float64[?] \"y\"\noutput \"y\" %12\nend\n"
    "function \"by_args\"\ninput %1 float64[?] \"x\"\ninput %2 int32[] \"n\"\n"
    "input %3 float64[?] \"dy\"\n"
    "%4, %5, %6 = call(%1, %2, %3) {function=\"outer\", gradient=1, variables=\"v,w\"} float64[?], "
    "float64[], float64[3] \"g\"\n"
    "output \"dx\" %4\noutput \"dv\" %5\noutput \"dw\" %6\nend\n"
    "function \"absent\"\ninput %1 float64[?] \"x\"\ninput %2 float64[?] \"dy\"\n"
    "%3, %4 = call(%1, %2) {function=\"inner\", gradient=1, variables=\"v\"} float64[?], float64[] "
    "\"g\"\noutput \"dx\" %3\nend\n";

static void test_runtime_function_gradients__of_variables(void **state)
{
    (void)state;
    static const double x[N] = {.3, -1.2, 2}, dy[N] = {1, -2, .5};
    const int32_t n = 0;
    const sx_tensor count = {sx_scalar_type(SX_I32), (void *)(uintptr_t)&n};
    char *again = NULL;
    sx_library *library = parse(variables_text);
    assert_ok(sx_library_print(library, &again));
    sx_library_destroy(library);
    for (int d = 0; d < 2; d++) {
        running t;
        sx_tensor results[3];
        begin(&t, d == 0 ? "host" : "cpu", parse(again), (sx_runner_options){.seed = 0});
        assert_ok(sx_runner_run(t.runner, "by_args", (sx_tensor[]){vector(x), count, vector(dy)}, 3,
                                results, 3, &t.arena, NULL));
        /* y = tanh(x w) v 2 w */
        double dv = 0;
        for (int i = 0; i < N; i++) {
            const double w = .7, v = 1.3, h = tanh(x[i] * w), slope = 1 - h * h;
            assert_near(((double *)results[0].data)[i], dy[i] * slope * w * v * 2 * w, 1e-9);
            assert_near(((double *)results[2].data)[i], dy[i] * v * 2 * (slope * x[i] * w + h),
                        1e-9);
            dv += dy[i] * h * 2 * w;
        }
        assert_near(*(double *)results[1].data, dv, 1e-9);
        assert_error(sx_runner_run(t.runner, "absent", (sx_tensor[]){vector(x), vector(dy)}, 2,
                                   results, 1, &t.arena, NULL),
                     SX_INVALID_ARGUMENT, "does not read variable 1 of the list \"v\"");
        end(&t);
    }
    sx_text_free(again);
}

/* A loop over the examples of a batch, whose number must be known for its gradient: y = sum x². */
static const char examples_text[] =
    "sextant-library 2\n"
    "function \"squares\"\ninput %1 float64[N,3] \"x\"\n"
    "%2 = constant() {value=tensor(int32[] \"00000000\")} int32[] \"zero\"\n"
    "%3 = constant() {value=tensor(float64[] \"0000000000000000\")} float64[] \"none\"\n"
    "%4 = shape(%1) {dtype=int32} int32[2] \"shape\"\n"
    "%5 = gather(%4, %2) int32[] \"n\"\n"
    "%6, %7 = while(%3, %2, %5, %1) float64[], int32[] \"loop\"\n"
    "  condition\n    input %1 float64[] \"y\"\n    input %2 int32[] \"i\"\n    input %3 int32[] "
    "\"n\"\n"
    "    input %4 float64[N,3] \"x\"\n    %5 = less(%2, %3) bool[] \"go\"\n    output \"go\" %5\n  "
    "end\n"
    "  body\n    input %1 float64[] \"y\"\n    input %2 int32[] \"i\"\n    input %3 int32[] \"n\"\n"
    "    input %4 float64[N,3] \"x\"\n    %5 = take_row(%4, %2) float64[3] \"row\"\n"
    "    %6 = square(%5) float64[3] \"square\"\n    %7 = reduce_sum(%6) {axes=[0]} float64[] "
    "\"sum\"\n"
    "    %8 = add(%1, %7) float64[] \"add\"\n"
    "    %9 = constant() {value=tensor(int32[] \"01000000\")} int32[] \"one\"\n"
    "    %10 = add(%2, %9) int32[] \"next\"\n    output \"y\" %8\n    output \"i\" %10\n  end\n"
    "output \"y\" %6\nend\n"
    "function \"back\"\ninput %1 float64[N,3] \"x\"\ninput %2 float64[] \"dy\"\n"
    "%3 = call(%1, %2) {function=\"squares\", gradient=1} float64[N,3] \"g\"\noutput \"dx\" "
    "%3\nend\n";

static void test_runtime_function_gradients__of_loops_over_examples(void **state)
{
    (void)state;
    static const double x[4 * N] = {1, -2, 3, -4, 5, -6, 7, -8, 9, -10, 11, -12}, dy = 0.5;
    for (int d = 0; d < 2; d++) {
        running t;
        begin(&t, d == 0 ? "host" : "cpu", parse(examples_text), (sx_runner_options){.seed = 0});
        for (int rows = 1; rows <= 4; rows++) {
            const sx_tensor in[] = {{sx_type_of(SX_F64, rows, N), (void *)(uintptr_t)x},
                                    {sx_scalar_type(SX_F64), (void *)(uintptr_t)&dy}};
            sx_tensor dx;
            assert_ok(sx_runner_run(t.runner, "back", in, 2, &dx, 1, &t.arena, NULL));
            assert_int_equal(dx.type.dims[0], rows);
            for (int i = 0; i < rows * N; i++) {
                assert_near(((double *)dx.data)[i], 2 * x[i] * dy, 1e-12);
            }
        }
        end(&t);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_runtime_function_gradients__of_loops_over_examples),
    cmocka_unit_test(test_runtime_function_gradients__of_variables),
    cmocka_unit_test(test_runtime_function_gradients__equal_finite_differences),
    cmocka_unit_test(test_runtime_function_gradients__run_on_the_cpu),
    cmocka_unit_test(test_runtime_function_gradients__of_calls_in_a_function),
    cmocka_unit_test(test_runtime_function_gradients__of_one_known_size_and_another),
    cmocka_unit_test(test_runtime_function_gradients__refusals),
};
SX_TEST_MAIN(tests)
