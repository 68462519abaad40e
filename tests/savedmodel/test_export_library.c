/* Functions exported as a SavedModel and brought back: calls, branches, loops, maps, variables,
 * strings, shapes that data decide, effects; and each sample of each operator that TensorFlow has,
 * as a function whose shapes are unknown and whose attributes are computed. TensorFlow runs the
 * same models in tests/interop/test_export_library.py. */
#include "io/scratch.h"

#include <math.h>

#include <sextant/infer.h>
#include <sextant/saved_model.h>

#include "../graph/op_samples.h"
#include "export_libraries.h"
#include "graph/builder.h"
#include "graph/library.h"
#include "graph/ops/attrs.h"
#include "savedmodel/import_library.h"
#include "savedmodel/saved_model_read.h"
#include "torture.h"

typedef struct exported {
    sx_library *library;
    sx_functions *functions;
    sx_servable *servable;
    char *dir;
} exported;

static sx_status export_from(const char *text, const sx_signature_function *signatures, int n,
                             exported *out)
{
    *out = (exported){.library = NULL};
    assert_ok(sx_library_parse(text, strlen(text), &out->library));
    assert_ok(sx_functions_open(out->library,
                                &(sx_functions_options){.struct_size = sizeof(sx_functions_options),
                                                        .threads = 1,
                                                        .seed = 3},
                                &out->functions));
    return sx_functions_export(out->library, out->functions, signatures, n, scratch("model"), NULL,
                               &out->dir);
}

static void end(exported *e)
{
    sx_servable_release(e->servable);
    sx_functions_close(e->functions);
    sx_library_destroy(e->library);
    sx_text_free(e->dir);
}

static void load(exported *e)
{
    assert_ok(sx_servable_load(
        e->dir, &(sx_servable_options){.struct_size = sizeof(sx_servable_options), .threads = 1},
        &e->servable));
}

static void assert_same(const sx_tensor *a, const sx_tensor *b)
{
    char x[SX_TYPE_TEXT], y[SX_TYPE_TEXT];
    assert_non_null(a);
    assert_non_null(b);
    assert_string_equal(sx_type_format(&a->type, x, sizeof(x)),
                        sx_type_format(&b->type, y, sizeof(y)));
    const int64_t n = sx_type_elems(&a->type);
    for (int64_t i = 0; i < n && a->type.dtype == SX_STRING; i++) {
        assert_true(
            op_sample_same_text((const sx_bytes *)a->data + i, (const sx_bytes *)b->data + i));
    }
    for (int64_t i = 0; i < n && a->type.dtype == SX_F32; i++) {
        const double p = ((const float *)a->data)[i], q = ((const float *)b->data)[i];
        if (!(fabs(p - q) <= 1e-6 * fmax(1, fabs(q)))) {
            fail_msg("element %lld is %g, expected %g", (long long)i, p, q);
        }
    }
    if (a->type.dtype != SX_STRING && a->type.dtype != SX_F32 && n > 0) {
        assert_memory_equal(a->data, b->data, (size_t)sx_type_bytes(&a->type));
    }
}

/* The function and the signature give the same for these inputs, in the order of the function's. */
static void check(const exported *e, const char *function, const char *signature,
                  const sx_tensor *inputs)
{
    const sx_function *f = sx_library_find(e->library, function);
    const sx_signature_info *info;
    sx_tensor sorted[8];
    sx_results *want;
    sx_outputs *got;
    assert_ok(sx_servable_find(e->servable, signature, &info));
    assert_int_equal(info->n_inputs, f->body->n_args);
    assert_int_equal(info->n_outputs, f->body->n_results);
    for (int i = 0; i < info->n_inputs; i++) {
        sorted[i] = inputs[sx_graph_find_arg(f->body, info->inputs[i].name)];
    }
    assert_ok(sx_functions_run(e->functions, function, inputs, f->body->n_args, 0, &want));
    assert_ok(sx_servable_run(e->servable, signature, sorted, &got));
    for (int i = 0; i < f->body->n_results; i++) {
        const char *name = f->body->results[i].name;
        assert_same(sx_outputs_find(got, name), sx_results_find(want, name));
    }
    sx_outputs_free(got);
    sx_results_free(want);
}

static void test_savedmodel_export_library__comes_back(void **state)
{
    (void)state;
    for (size_t i = 0; i < SX_COUNT(export_libraries); i++) {
        const export_library *l = &export_libraries[i];
        const sx_signature_function signature = {"serving_default", "main"};
        exported e;
        assert_ok(export_from(l->text, &signature, 1, &e));
        load(&e);
        for (int k = 0; k < EXPORT_RUNS && l->runs[k][0].data != NULL; k++) {
            check(&e, "main", "serving_default", l->runs[k]);
        }
        end(&e);
        assert_ok(sx_dir_remove(scratch("model")));
    }
}

/* A gradient that is not that of the nodes comes back with the model, or is refused if it is not
 * known. */
static void test_savedmodel_export_library__gradients_are_not_lost(void **state)
{
    (void)state;
    sx_saved_model *model = NULL;
    sx_library *library = NULL;
    sx_status refused[4] = {SX_OK};
    char *text = NULL;
    exported e;
    assert_ok(
        export_from(export_gradients, &(sx_signature_function){"serving_default", "main"}, 1, &e));
    assert_ok(sx_saved_model_open(e.dir, &model));
    assert_ok(sx_import_library(model, NULL, &library, refused));
    assert_ok(refused[0]);
    sx_status_free(refused[1]);
    assert_ok(sx_library_print(library, &text));
    const char *custom = strstr(text, "custom_gradient("),
               *refused_one = strstr(text, "refuse_gradient("),
               *message = "\\\"refuse\\\", was not saved;";
    assert_non_null(custom);
    assert_null(strstr(custom + 1, "custom_gradient("));
    assert_non_null(strstr(custom, "= mul(%1, %3)"));
    assert_non_null(refused_one);
    assert_null(strstr(refused_one + 1, "refuse_gradient("));
    assert_non_null(strstr(text, message));
    sx_text_free(text);
    sx_library_destroy(library);
    sx_saved_model_close(model);
    end(&e);
}

/* An operator that TensorFlow has as several nodes is one node again. */
static void test_savedmodel_export_library__composed_operators_come_back(void **state)
{
    (void)state;
    static const char node[] =
        "preprocess_image(%1) {height=6, width=5, channels=3, resize=nearest, extra_height=2, "
        "extra_width=1, scale=mean_std, mean_0=0.5, mean_1=0.25, mean_2=0.125, std_0=0.5, "
        "std_1=0.5, std_2=0.25} float32[N,6,5,3] ";
    char text[1024], *printed = NULL;
    sx_saved_model *model = NULL;
    sx_library *library = NULL;
    sx_status refused[1] = {SX_OK};
    exported e;
    snprintf(text, sizeof(text),
             "sextant-library 2\nfunction \"main\"\n  input %%1 string[N] \"photo\"\n"
             "  %%2 = %s\"decode\"\n  output \"image\" %%2\nend\n",
             node);
    assert_ok(export_from(text, &(sx_signature_function){"serving_default", "main"}, 1, &e));
    assert_ok(sx_saved_model_open(e.dir, &model));
    assert_ok(sx_import_library(model, NULL, &library, refused));
    assert_ok(refused[0]);
    assert_ok(sx_library_print(library, &printed));
    assert_non_null(strstr(printed, node));
    assert_null(strstr(printed, "while"));
    sx_text_free(printed);
    sx_library_destroy(library);
    sx_saved_model_close(model);
    end(&e);
}

/* x doubled n times; `bounded` not more than five times. */
#define COUNTS(trips)                                                                           \
    "sextant-library 2\nfunction \"main\"\ninput %1 float32[3] \"x\"\ninput %2 int32[] \"n\"\n" \
    "%3 = constant() {value=tensor(int32[] \"00000000\")} int32[] \"zero\"\n"                   \
    "%4, %5 = while(%1, %3, %2) " trips " float32[3], int32[] \"loop\"\n"                       \
    "  condition\n"                                                                             \
    "    input %1 float32[3] \"x\"\n    input %2 int32[] \"i\"\n    input %3 int32[] \"n\"\n"   \
    "    %4 = less(%2, %3) bool[] \"less\"\n    output \"go\" %4\n  end\n"                      \
    "  body\n"                                                                                  \
    "    input %1 float32[3] \"x\"\n    input %2 int32[] \"i\"\n    input %3 int32[] \"n\"\n"   \
    "    %4 = constant() {value=tensor(int32[] \"01000000\")} int32[] \"one\"\n"                \
    "    %5 = add(%2, %4) int32[] \"next\"\n    %6 = add(%1, %1) float32[3] \"twice\"\n"        \
    "    output \"x\" %6\n    output \"i\" %5\n  end\n"                                         \
    "output \"y\" %4\noutput \"i\" %5\nend\n"
static const char bounded[] = COUNTS("{trips=5}");
static const char unbounded[] = COUNTS("");

static void test_savedmodel_export_library__bounds_of_loops_come_back(void **state)
{
    (void)state;
    static const float x[] = {1, 2, 3};
    int32_t n = 5;
    const sx_tensor in[] = {{sx_scalar_type(SX_I32), &n}, {sx_type_of(SX_F32, 3), (void *)x}};
    sx_outputs *outputs = NULL;
    exported e;
    assert_ok(export_from(bounded, &(sx_signature_function){"serving_default", "main"}, 1, &e));
    load(&e);
    assert_ok(sx_servable_run(e.servable, "serving_default", in, &outputs));
    assert_memory_equal(sx_outputs_find(outputs, "y")->data, ((const float[]){32, 64, 96}),
                        sizeof(x));
    sx_outputs_free(outputs);
    n = 6;
    assert_error(sx_servable_run(e.servable, "serving_default", in, &outputs), SX_OUT_OF_RANGE,
                 "the condition is still true after 5 iterations");
    end(&e);
}

static void test_savedmodel_export_library__a_run_ends_at_its_timeout(void **state)
{
    (void)state;
    static const float x[] = {1, 2, 3};
    int32_t n = INT32_MAX;
    const sx_tensor in[] = {{sx_scalar_type(SX_I32), &n}, {sx_type_of(SX_F32, 3), (void *)x}};
    sx_servable_options options = {
        .struct_size = sizeof(options), .threads = 1, .timeout_ms = 1000};
    sx_outputs *outputs = NULL;
    exported e;
    assert_ok(export_from(unbounded, &(sx_signature_function){"serving_default", "main"}, 1, &e));
    assert_ok(sx_servable_load(e.dir, &options, &e.servable));
    assert_error(sx_servable_run(e.servable, "serving_default", in, &outputs), SX_DEADLINE_EXCEEDED,
                 "after timeout_ms, 1000 ms");
    n = 5;
    assert_ok(sx_servable_run(e.servable, "serving_default", in, &outputs));
    sx_outputs_free(outputs);
    end(&e);
    options.timeout_ms = -1;
    assert_error(sx_servable_load("m", &options, &e.servable), SX_INVALID_ARGUMENT,
                 "timeout_ms is -1");
}

/* How often each operator is in a graph, its regions and the functions that it calls: as often as
 * it calls them. */
static void count_operators(const sx_library *library, const sx_graph *g, int counts[SX_OPID_COUNT])
{
    for (int i = 0; i < g->n_nodes; i++) {
        const sx_node *node = &g->nodes[i];
        counts[node->op->id]++;
        for (int k = 0; k < node->op->n_attrs; k++) {
            if (node->op->attrs[k].kind == SX_ATTR_BODY) {
                count_operators(library, sx_node_body(node, k), counts);
            }
        }
        if (node->op == &sx_op_call) {
            const sx_call_attrs *attrs = node->attrs;
            count_operators(library, sx_library_find(library, attrs->function)->body, counts);
        }
    }
}

/* What is another operator, or another number of them, after export and import, and why. */
static bool changes(const char *library, const char *op)
{
    static const struct {
        const char *library, *ops; /* NULL: in all */
    } rows[] = {
        /* handles become arguments of functions, and are resolved; a variable is read where it is
         * used; what TensorFlow has as inputs are constants; calls are what they call */
        {NULL, " parameter variable_handle read_variable constant call "},
        /* TensorFlow's map is a loop over lists of tensors, whose sizes are computed; its body is
         * there once more, unused: what it gives was to be known before */
        {"text",
         " map while take_row put_row add less shape broadcast_to concat gather cast reshape "
         "mul reduce_sum identity "},
        /* TensorFlow's loop counts its iterations */
        {"control", " add "},
        /* an integer of a shape is cut out of it as a vector, and made int64 */
        {"pad", " cast reshape gather "},
        /* the function of a gradient is not written, and the gradient refused */
        {"gradients", " mul custom_gradient refuse_gradient "},
        /* the words are in a table */
        {"vocabulary", " vocabulary_lookup lookup_table_find "},
    };
    char wanted[64];
    snprintf(wanted, sizeof(wanted), " %s ", op);
    bool found = false;
    for (size_t i = 0; i < SX_COUNT(rows) && !found; i++) {
        found = strstr(rows[i].ops, wanted) != NULL &&
                (rows[i].library == NULL || strcmp(rows[i].library, library) == 0);
    }
    return found;
}

static void test_savedmodel_export_library__operators_come_back(void **state)
{
    (void)state;
    int differing = 0;
    for (size_t i = 0; i < SX_COUNT(export_libraries); i++) {
        const export_library *l = &export_libraries[i];
        int before[SX_OPID_COUNT] = {0}, after[SX_OPID_COUNT] = {0};
        sx_saved_model *model = NULL;
        sx_library *library = NULL;
        sx_status refused[1] = {SX_OK};
        exported e;
        assert_ok(export_from(l->text, &(sx_signature_function){"serving_default", "main"}, 1, &e));
        assert_ok(sx_saved_model_open(e.dir, &model));
        assert_ok(sx_import_library(model, NULL, &library, refused));
        assert_ok(refused[0]);
        count_operators(e.library, sx_library_find(e.library, "main")->body, before);
        count_operators(library, library->functions[library->n_functions - 1].body, after);
        for (int k = 0; k < SX_OPID_COUNT; k++) {
            if (before[k] != after[k] && !changes(l->name, sx_op_table[k]->name)) {
                print_error("%s: %d %s, and %d after export and import\n", l->name, before[k],
                            sx_op_table[k]->name, after[k]);
                differing++;
            }
        }
        sx_library_destroy(library);
        sx_saved_model_close(model);
        end(&e);
        assert_ok(sx_dir_remove(scratch("model")));
    }
    assert_int_equal(differing, 0);
}

static const char refused_text[] =
    "sextant-library 2\n"
    "variable float32[] \"v\" weight zeros\n"
    "function \"plain\"\n  input %1 float32[?] \"x\"\n  %2 = neg(%1) float32[?] \"neg\"\n"
    "  output \"y\" %2\nend\n"
    "function \"gradient\"\n  input %1 float32[?] \"x\"\n"
    "  %2 = call(%1, %1) {function=\"plain\", gradient=1} float32[?] \"back\"\n"
    "  %3 = all_finite(%2) bool[] \"finite\"\n  output \"y\" %2\n  output \"ok\" %3\nend\n"
    "function \"handle\"\n  input %1 resource[] \"v\"\n"
    "  %2 = read_variable(%1) float32[] \"read\"\n  output \"y\" %2\nend\n"
    "function \"again\"\n  input %1 float32[?] \"x\"\n"
    "  %2 = call(%1) {function=\"again\"} float32[?] \"call\"\n  output \"y\" %2\nend\n"
    "function \"reads\"\n  %1 = variable_handle() {name=\"v\"} resource[] \"handle\"\n"
    "  %2 = read_variable(%1) float32[] \"read\"\n  output \"y\" %2\nend\n"
    "function \"nothing\"\n  input %1 float32[?] \"x\"\nend\n";

static void test_savedmodel_export_library__refuses(void **state)
{
    (void)state;
    static const struct {
        sx_signature_function signatures[2];
        int n;
        sx_code code;
        const char *message;
    } cases[] = {
        {{{"f", "missing"}}, 1, SX_NOT_FOUND, "signature \"f\": there is no function \"missing\""},
        {{{"f", "plain"}, {"f", "reads"}},
         2,
         SX_INVALID_ARGUMENT,
         "two signatures are named \"f\""},
        {{{"f", "plain"}}, 0, SX_INVALID_ARGUMENT, "no signatures"},
        {{{"f", "gradient"}},
         1,
         SX_UNIMPLEMENTED,
         "call \"back\" (a gradient), all_finite \"finite\""},
        {{{"f", "handle"}}, 1, SX_INVALID_ARGUMENT, "input \"v\" is a resource"},
        {{{"f", "again"}}, 1, SX_INVALID_ARGUMENT, "function \"again\" calls itself"},
        {{{"f", "nothing"}}, 1, SX_INVALID_ARGUMENT, "has no outputs"},
    };
    for (size_t i = 0; i < SX_COUNT(cases); i++) {
        exported e;
        assert_error(export_from(refused_text, cases[i].signatures, cases[i].n, &e), cases[i].code,
                     cases[i].message);
        assert_false(sx_path_exists(scratch("model/1")));
        end(&e);
    }
    /* a variable without values */
    sx_library *library = NULL;
    assert_ok(sx_library_parse(refused_text, strlen(refused_text), &library));
    assert_error(sx_functions_export(library, NULL, &(sx_signature_function){"f", "reads"}, 1,
                                     scratch("model"), NULL, NULL),
                 SX_INVALID_ARGUMENT, "uses variable \"v\"; its value is missing");
    sx_library_destroy(library);
}

/* A chain of functions, each of which calls the next twice: of 2^CHAIN nodes, if all were written
 * where they are called. The last reads a variable. A branch calls the first, too. */
static void test_savedmodel_export_library__calls_that_double(void **state)
{
    static const int lengths[] = {12, 40}; /* the first can be run */
    static const float x[] = {0.5F, -2};
    (void)state;
    for (size_t i = 0; i < SX_COUNT(lengths); i++) {
        sx_saved_model *model = NULL;
        sx_buf text;
        exported e;
        sx_buf_init(&text, 0);
        sx_buf_printf(&text, "sextant-library 2\n"
                             "variable float32[] \"v\" weight normal 0.5\n"
                             "function \"f0\"\n  input %%1 float32[?] \"x\"\n"
                             "  %%2 = variable_handle() {name=\"v\"} resource[] \"handle\"\n"
                             "  %%3 = read_variable(%%2) float32[] \"read\"\n"
                             "  %%4 = add(%%1, %%3) float32[?] \"add\"\n  output \"y\" %%4\nend\n");
        for (int k = 1; k <= lengths[i]; k++) {
            sx_buf_printf(&text,
                          "function \"f%d\"\n  input %%1 float32[?] \"x\"\n"
                          "  %%2 = call(%%1) {function=\"f%d\"} float32[?] \"first\"\n"
                          "  %%3 = call(%%2) {function=\"f%d\"} float32[?] \"second\"\n"
                          "  output \"y\" %%3\nend\n",
                          k, k - 1, k - 1);
        }
        sx_buf_printf(&text,
                      "function \"main\"\n  input %%1 float32[?] \"x\"\n"
                      "  input %%2 bool[] \"more\"\n"
                      "  %%3 = if(%%2, %%1) float32[?] \"if\"\n"
                      "    then\n      input %%1 float32[?] \"x\"\n"
                      "      %%2 = call(%%1) {function=\"f%d\"} float32[?] \"call\"\n"
                      "      output \"y\" %%2\n    end\n"
                      "    else\n      input %%1 float32[?] \"x\"\n"
                      "      %%2 = neg(%%1) float32[?] \"neg\"\n      output \"y\" %%2\n    end\n"
                      "  %%4 = call(%%3) {function=\"f%d\"} float32[?] \"call\"\n"
                      "  output \"y\" %%4\nend\n",
                      lengths[i], lengths[i]);
        assert_ok(sx_buf_status(&text));
        assert_ok(export_from(sx_buf_text(&text),
                              &(sx_signature_function){"serving_default", "main"}, 1, &e));
        sx_buf_deinit(&text);
        assert_ok(sx_saved_model_open(e.dir, &model));
        sx_saved_model_close(model);
        if (i == 0) {
            load(&e);
            for (uint8_t more = 0; more < 2; more++) {
                check(&e, "main", "serving_default",
                      (const sx_tensor[]){{sx_type_of(SX_F32, 2), (void *)(uintptr_t)x},
                                          {sx_scalar_type(SX_BOOL), &more}});
            }
        }
        end(&e);
        assert_ok(sx_dir_remove(scratch("model")));
    }
}

static sx_status export_again(void *user)
{
    const exported *e = user;
    char *dir = NULL;
    SX_TRY(sx_functions_export(e->library, e->functions,
                               &(sx_signature_function){"serving_default", "main"}, 1,
                               scratch("model"), NULL, &dir));
    sx_text_free(dir);
    return sx_dir_remove(scratch("model"));
}

static sx_status build_functions(void *user)
{
    sx_library *library;
    sx_builder *b = NULL;
    sx_status status = SX_OK;
    (void)user;
    SX_TRY(sx_library_create(&library));
    SX_TRY_GOTO(status, sx_builder_create_function(&b), done);
    sx_value x = sx_input(b, "x", sx_type_of(SX_F32, SX_UNKNOWN_DIM, 2));
    sx_value w = sx_variable(b, &(sx_variable_spec){.name = "w", .type = sx_type_of(SX_F32, 2, 3)});
    sx_value y = sx_matmul(b, x, w);
    sx_output(b, "loss", sx_reduce_mean(b, sx_square(b, y)));
    sx_assign(b, "w", sx_neg(b, w));
    SX_TRY_GOTO(status, sx_library_add(library, "model", b), done);
    SX_TRY_GOTO(status, sx_library_finish(library), done);
done:
    sx_builder_destroy(b);
    sx_library_destroy(library);
    return status;
}

static void test_savedmodel_export_library__torture(void **state)
{
    (void)state;
    for (size_t i = 0; i < SX_COUNT(export_libraries); i++) {
        const sx_signature_function signature = {"serving_default", "main"};
        exported e;
        assert_ok(export_from(export_libraries[i].text, &signature, 1, &e));
        assert_ok(sx_dir_remove(scratch("model")));
        assert_true(sx_torture(export_again, &e) > 20);
        end(&e);
    }
    assert_true(sx_torture(build_functions, NULL) > 20);
}

/* ---- Every operator ---- */

static char wrong[512];

/* The attribute as a constant of the function. */
static sx_value attr_constant(sx_builder *b, const sx_attr_def *row, const void *attrs)
{
    const void *field = (const char *)attrs + row->offset;
    int32_t ints[SX_MAX_RANK] = {0};
    uint8_t truth;
    switch (row->kind) {
    case SX_ATTR_INTS:
    case SX_ATTR_SHAPE:
        for (int i = 0; i < ((const sx_ints *)field)->n; i++) {
            ints[i] = (int32_t)((const sx_ints *)field)->v[i];
        }
        return sx_constant(b, (sx_tensor){sx_type_of(SX_I32, ((const sx_ints *)field)->n), ints});
    case SX_ATTR_INT:
        ints[0] = (int32_t) * (const int64_t *)field;
        return sx_constant(b, (sx_tensor){sx_scalar_type(SX_I32), ints});
    case SX_ATTR_BOOL:
        truth = *(const bool *)field;
        return sx_constant(b, (sx_tensor){sx_scalar_type(SX_BOOL), &truth});
    default:
        return SX_NO_VALUE;
    }
}

/* Unknown dimensions, but for the first: that would be the batch of a signature. */
static sx_type open_type(sx_type type)
{
    for (int d = 1; d < type.rank; d++) {
        type.dims[d] = SX_UNKNOWN_DIM;
    }
    return type;
}

/* All samples are functions of one library, and signatures of one model. */
enum { MOST_FUNCTIONS = 1 << 13 };
static struct {
    sx_library *library;
    sx_servable *servable;
    sx_signature_function signatures[MOST_FUNCTIONS];
    int n;
    sx_arena names;
} every;

/* A function of the sample's node, of unknown dimensions; with a form, the attributes that it has
 * as inputs are computed. */
static sx_status add_sample(const op_sample_run *run, const sx_tf_form *form, const char *name)
{
    const sx_op_def *op = run->op;
    sx_builder *b;
    sx_value x[SX_SAMPLE_MAX_INPUTS + 1];
    sx_type types[SX_MAX_OUTPUTS];
    sx_attr_operand operands[SX_TF_FORM_OPERANDS];
    int n_operands = 0;
    char port[16];
    assert_ok(sx_builder_create_function(&b));
    for (int i = 0; i < run->n_in; i++) {
        sx_type type = open_type(run->in[i].type);
        if (op == &sx_op_conv2d) { /* channels and the filter's shape say whether it is depthwise */
            type = i == 1 ? run->in[i].type : type;
            type.dims[3] = run->in[i].type.dims[3];
        }
        snprintf(port, sizeof(port), "x%d", i);
        x[i] = sx_input(b, port, type);
    }
    for (int r = 0; form != NULL && r < op->n_attrs; r++) {
        for (int i = 0; i < SX_TF_FORM_OPERANDS && form->operands[i].attr != NULL; i++) {
            if (strcmp(form->operands[i].attr, op->attrs[r].name) == 0) {
                operands[n_operands++] =
                    (sx_attr_operand){r, attr_constant(b, &op->attrs[r], run->attrs)};
            }
        }
    }
    for (int i = 0; i < run->n_out; i++) {
        types[i] = open_type(run->out[i].type);
    }
    sx_value y = sx_build_node(b, &(sx_node_spec){.op = op,
                                                  .attrs = run->attrs,
                                                  .inputs = x,
                                                  .n_inputs = run->n_in,
                                                  .attr_operands = operands,
                                                  .n_attr_operands = n_operands,
                                                  .types = types,
                                                  .n_types = run->n_out,
                                                  .device = "",
                                                  .file = ""});
    for (int k = 0; k < run->n_out; k++) {
        snprintf(port, sizeof(port), "y%d", k);
        sx_output(b, port, sx_output_of(y, k));
    }
    sx_status status = sx_library_add(every.library, name, b);
    sx_builder_destroy(b);
    return status;
}

static const char *compare_sample(const op_sample_run *run, const sx_outputs *got)
{
    /* in bfloat16, each of several nodes rounds */
    const double tolerance =
        run->n_in > 0 && sx_dtype_bytes(run->in[0].type.dtype) == 2 ? 0x1p-6 : 2e-6;
    const char *result = NULL;
    for (int k = 0; k < run->n_out && result == NULL; k++) {
        char name[16];
        snprintf(name, sizeof(name), "y%d", k);
        const sx_host_tensor *want = &run->out[k];
        const sx_tensor *t = sx_outputs_find(got, name);
        if (t == NULL || !sx_type_equal(&t->type, &want->type)) {
            return "an output has another type than before";
        }
        const int64_t n = sx_type_elems(&want->type);
        if (want->type.dtype == SX_STRING) {
            for (int64_t i = 0; i < n && result == NULL; i++) {
                result = op_sample_same_text((const sx_bytes *)t->data + i, &want->s[i])
                             ? NULL
                             : "a string is another one";
            }
            continue;
        }
        sx_host_tensor y = op_sample_tensor(want->type);
        sx_host_load(&y, t->data);
        for (int64_t i = 0; result == NULL && i < n; i++) {
            const double a = sx_host_get(&y, i), b = sx_host_get(want, i);
            if (!(fabs(a - b) <= tolerance * fmax(1, fabs(b))) && !(isnan(a) && isnan(b)) &&
                a != b) {
                snprintf(wrong, sizeof(wrong), "y%d[%lld] is %g, expected %g", k, (long long)i, a,
                         b);
                result = wrong;
            }
        }
        sx_free(y.data);
    }
    return result;
}

/* Adds the function to the library, or runs it once the model is loaded. */
static const char *check_form(const op_sample_run *run, const sx_tf_form *form)
{
    const char *result = NULL,
               *name = sx_arena_printf(&every.names, "%s.%s.%s", run->op->name, run->sample->name,
                                       form != NULL ? form->op : "");
    sx_outputs *got = NULL;
    sx_tensor in[SX_SAMPLE_MAX_INPUTS];
    sx_arena arena;
    assert_non_null(name);
    if (every.servable == NULL) {
        assert_true(every.n < MOST_FUNCTIONS);
        assert_ok(add_sample(run, form, name));
        every.signatures[every.n++] = (sx_signature_function){name, name};
        return NULL;
    }
    sx_arena_init(&arena, 0);
    for (int i = 0; i < run->n_in; i++) {
        in[i] = (sx_tensor){run->in[i].type,
                            sx_arena_alloc(&arena, (size_t)sx_host_bytes(&run->in[i].type) + 1, 1)};
        assert_non_null(in[i].data);
        sx_host_store(&run->in[i], in[i].data);
    }
    sx_status status = sx_servable_run(every.servable, name, in, &got);
    if (status != SX_OK) {
        snprintf(wrong, sizeof(wrong), "%s: %s", name, sx_status_message(status));
        result = wrong;
        sx_status_free(status);
    } else {
        result = compare_sample(run, got);
    }
    sx_outputs_free(got);
    sx_arena_deinit(&arena);
    return result;
}

static const char *check_sample(const sx_op_def *op, const sx_op_sample *sample)
{
    op_sample_run run;
    if (!op_sample_is_exported(op, sample) || (op->flags & SX_OP_FUNCTION) != 0) {
        return NULL;
    }
    op_sample_begin(op, sample, &run);
    op_sample_forward(&run, true);
    const char *result = check_form(&run, NULL);
    for (const sx_tf_form *f = op->from_tf; f != NULL && f->op != NULL && result == NULL; f++) {
        bool computed = f->operands[0].attr != NULL && f->attrs == NULL;
        for (int i = 0; i < SX_TF_FORM_OPERANDS && f->operands[i].attr != NULL; i++) {
            for (int r = 0; r < op->n_attrs; r++) { /* import takes computed integers */
                computed = computed && (strcmp(op->attrs[r].name, f->operands[i].attr) != 0 ||
                                        op->attrs[r].kind != SX_ATTR_FLOAT);
            }
            computed = computed && f->operands[i].attr[0] != '\0';
        }
        /* of one operand, concat writes no ConcatV2 */
        computed = computed && !(op == &sx_op_concat && run.n_in == 1);
        result = computed ? check_form(&run, f) : NULL;
    }
    op_sample_end(&run);
    return result;
}

static void test_savedmodel_export_library__every_operator(void **state)
{
    (void)state;
    char *dir = NULL;
    every.servable = NULL;
    every.n = 0;
    sx_arena_init(&every.names, 0);
    assert_ok(sx_library_create(&every.library));
    assert_int_equal(op_samples_failing(check_sample), 0);
    assert_ok(sx_library_finish(every.library));
    assert_true(every.n > 500);
    assert_ok(sx_functions_export(every.library, NULL, every.signatures, every.n, scratch("model"),
                                  NULL, &dir));
    const sx_servable_options options = {.struct_size = sizeof(options), .device = "host"};
    assert_ok(sx_servable_load(dir, &options, &every.servable));
    const int failing = op_samples_failing(check_sample);
    sx_servable_release(every.servable);
    sx_library_destroy(every.library);
    sx_text_free(dir);
    sx_arena_deinit(&every.names);
    assert_int_equal(failing, 0);
}

static const struct CMUnitTest tests[] = {
    scratch_test(test_savedmodel_export_library__comes_back),
    scratch_test(test_savedmodel_export_library__gradients_are_not_lost),
    scratch_test(test_savedmodel_export_library__composed_operators_come_back),
    scratch_test(test_savedmodel_export_library__bounds_of_loops_come_back),
    scratch_test(test_savedmodel_export_library__a_run_ends_at_its_timeout),
    scratch_test(test_savedmodel_export_library__operators_come_back),
    scratch_test(test_savedmodel_export_library__calls_that_double),
    scratch_test(test_savedmodel_export_library__refuses),
    scratch_test(test_savedmodel_export_library__torture),
    scratch_test(test_savedmodel_export_library__every_operator),
};
SX_TEST_MAIN(tests)
