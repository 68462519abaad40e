/* What tests/interop/test_gradients.py and test_layer_gradients.py run: gradient functions of a
 * SavedModel's signatures.
 *
 *   gradient_tool MODEL DIR DEVICE first   first gradients only, see below; what cannot be imported
 *                                    or run is told in DIR/S.error
 *   gradient_tool MODEL DIR DEVICE variables   the same; then those of all variables of the model
 *   gradient_tool MODEL DIR DEVICE again   as first, of the model exported to DIR/again and read
 * back gradient_tool MODEL DIR DEVICE   for each signature S, reads its arguments from DIR/S.0.npy,
 *                                    DIR/S.1.npy, ..., then the gradients of its outputs, then
 *                                    those of the first gradient function's outputs; writes what
 *                                    the first gradient function gives to DIR/S.first.0.npy, ...,
 *                                    and the second to DIR/S.second.0.npy, ... */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/memory.h"
#include "graph/attr_rows.h"
#include "graph/library.h"
#include "io/npy.h"
#include "runtime/function_run.h"
#include "savedmodel/export_library.h"
#include "savedmodel/import_library.h"

/* Writes the error of a signature, if there is one; returns whether there is. */
static bool tell(sx_status status, const char *dir, const char *signature)
{
    char path[1024];
    if (status == SX_OK) {
        return false;
    }
    snprintf(path, sizeof(path), "%s/%s.error", dir, signature);
    FILE *f = fopen(path, "w");
    if (f != NULL) {
        fputs(sx_status_message(status), f);
        fclose(f);
    }
    sx_status_free(status);
    return true;
}

static void check(sx_status status, const char *what)
{
    if (status != SX_OK) {
        fprintf(stderr, "%s: %s\n", what, sx_status_message(status));
        exit(1);
    }
}

/* function "S/order": a call of the gradient function of S, with the types of the files; of the
 * variables of `of`, too, unless that is NULL. Returns the number of its arguments. */
static int write_function(const sx_function *f, int order, const sx_library *of, sx_buf *out,
                          int *out_results)
{
    const sx_graph *body = f->body;
    const sx_type *types[64], *results[64];
    int n = 0, n_results = 0;
    for (int i = 0; i < body->n_args; i++) {
        types[n++] = sx_graph_type(body, body->args[i].value);
    }
    for (int i = 0; i < body->n_results; i++) {
        const sx_type *type = sx_graph_type(body, body->results[i].value);
        if (sx_dtype_is_float(type->dtype)) {
            types[n++] = type;
        }
    }
    const int first = n; /* the arguments of the first gradient function */
    for (int i = 0; i < body->n_args && order == 2; i++) {
        if (sx_dtype_is_float(types[i]->dtype)) {
            types[n++] = types[i];
        }
    }
    for (int i = 0; i < (order == 1 ? body->n_args : first); i++) {
        if (sx_dtype_is_float(types[i]->dtype)) {
            results[n_results++] = types[i];
        }
    }
    for (int i = 0; of != NULL && i < of->n_variables; i++) {
        results[n_results++] = &of->variables[i].type;
    }
    sx_buf_printf(out, "function \"%s/%d\"\n", f->name, order);
    for (int i = 0; i < n; i++) {
        sx_buf_printf(out, "input %%%d ", i + 1);
        sx_type_print(types[i], out);
        sx_buf_printf(out, " \"x%d\"\n", i);
    }
    for (int i = 0; i < n_results; i++) {
        sx_buf_printf(out, "%s%%%d", i > 0 ? ", " : "", n + 1 + i);
    }
    sx_buf_puts(out, " = call(");
    for (int i = 0; i < n; i++) {
        sx_buf_printf(out, "%s%%%d", i > 0 ? ", " : "", i + 1);
    }
    sx_buf_printf(out, ") {function=\"%s\", gradient=%d", f->name, order);
    for (int i = 0; of != NULL && i < of->n_variables; i++) {
        sx_buf_printf(out, "%s%s", i > 0 ? "," : ", variables=\"", of->variables[i].name);
    }
    sx_buf_puts(out, of != NULL && of->n_variables > 0 ? "\"}" : "}");
    for (int i = 0; i < n_results; i++) {
        sx_buf_puts(out, i > 0 ? ", " : " ");
        sx_type_print(results[i], out);
    }
    sx_buf_puts(out, " \"gradient\"\n");
    for (int i = 0; i < n_results; i++) {
        sx_buf_printf(out, "output \"d%d\" %%%d\n", i, n + 1 + i);
    }
    sx_buf_puts(out, "end\n");
    *out_results = n_results;
    return n;
}

static void give_variables(const sx_saved_model *model, const sx_library *library,
                           sx_runner *runner)
{
    for (int i = 0; i < library->n_variables; i++) {
        const sx_variable_spec *v = &library->variables[i];
        void *data = sx_alloc((size_t)sx_type_bytes(&v->type) + 1, 1);
        check(sx_bundle_read(sx_saved_model_variables(model), v->name, &v->type, data), v->name);
        check(sx_runner_write_variable(runner, v->name, data), v->name);
        sx_free(data);
    }
}

static sx_status read_variable(void *user, const char *name, const sx_type *type, void *out)
{
    return sx_bundle_read(sx_saved_model_variables(user), name, type, out);
}

/* Exports what was imported, and imports that: in place of the former. */
static void read_back(const char *dir, sx_saved_model **model, sx_library **library,
                      sx_status *refused)
{
    sx_signature_function functions[16];
    size_t n, n_functions = 0;
    char base[1024], *path = NULL;
    const sx_signature *signatures = sx_saved_model_signatures(*model, &n);
    for (size_t i = 0; i < n; i++) {
        if (refused[i] == SX_OK) {
            functions[n_functions++] =
                (sx_signature_function){signatures[i].key, signatures[i].key};
        }
        sx_status_free(refused[i]);
        refused[i] = SX_OK;
    }
    snprintf(base, sizeof(base), "%s/again", dir);
    check(sx_export_library(&(sx_library_export){.library = *library,
                                                 .signatures = functions,
                                                 .n_signatures = (int)n_functions,
                                                 .read_variable = read_variable,
                                                 .user = *model,
                                                 .base = base},
                            &path),
          "exporting");
    sx_library_destroy(*library);
    sx_saved_model_close(*model);
    check(sx_saved_model_open(path, model), path);
    check(sx_import_library(*model, NULL, library, refused), path);
    sx_free(path);
}

int main(int argc, char **argv)
{
    sx_saved_model *model = NULL;
    sx_library *library = NULL, *both = NULL;
    sx_platform *platform = NULL;
    sx_runner *runner = NULL;
    sx_status refused[16] = {SX_OK};
    size_t n_signatures;
    char *text, path[1024], name[256];
    sx_buf all;
    sx_arena arena;
    if (argc != 4 && argc != 5) {
        return 2;
    }
    const int orders = argc == 5 ? 1 : 2;
    const bool of_variables = argc == 5 && strcmp(argv[4], "variables") == 0;
    bool failed[16] = {false};
    check(sx_saved_model_open(argv[1], &model), argv[1]);
    const sx_signature *signatures = sx_saved_model_signatures(model, &n_signatures);
    check(n_signatures <= 16 ? sx_import_library(model, NULL, &library, refused)
                             : sx_error(SX_INVALID_ARGUMENT, "too many signatures"),
          argv[1]);
    if (argc == 5 && strcmp(argv[4], "again") == 0) {
        read_back(argv[2], &model, &library, refused);
        signatures = sx_saved_model_signatures(model, &n_signatures);
    }
    check(sx_library_print(library, &text), "printing");
    sx_buf_init(&all, 1 << 24);
    sx_buf_puts(&all, text);
    sx_text_free(text);
    for (size_t s = 0; s < n_signatures; s++) {
        int n;
        if (signatures[s].key[0] == '_') { /* initializes the model */
            sx_status_free(refused[s]);
            continue;
        }
        if (argc == 5 && tell(refused[s], argv[2], signatures[s].key)) {
            failed[s] = true;
            continue;
        }
        check(refused[s], signatures[s].key);
        for (int order = 1; order <= orders; order++) {
            write_function(sx_library_find(library, signatures[s].key), order,
                           of_variables ? library : NULL, &all, &n);
        }
    }
    check(sx_library_parse(sx_buf_text(&all), all.size, &both), sx_buf_text(&all));
    check(sx_platform_open(argv[3], &(sx_platform_options){.cpu.threads = 1}, &platform), argv[3]);
    check(sx_runner_create(&(sx_runner_options){.library = both, .platform = platform}, &runner),
          argv[3]);
    give_variables(model, library, runner);
    sx_arena_init(&arena, 0);
    for (size_t s = 0; s < n_signatures; s++) {
        for (int order = 1; order <= orders && signatures[s].key[0] != '_' && !failed[s]; order++) {
            sx_tensor in[64], out[64];
            int n_out;
            sx_buf unused;
            sx_buf_init(&unused, 1 << 20);
            const int n = write_function(sx_library_find(library, signatures[s].key), order,
                                         of_variables ? library : NULL, &unused, &n_out);
            sx_buf_deinit(&unused);
            for (int i = 0; i < n; i++) {
                snprintf(path, sizeof(path), "%s/%s.%d.npy", argv[2], signatures[s].key, i);
                check(sx_npy_read(path, 0, &in[i]), path);
            }
            snprintf(name, sizeof(name), "%s/%d", signatures[s].key, order);
            sx_status status = sx_runner_run(runner, name, in, n, out, n_out, &arena, NULL);
            if (argc == 5) {
                n_out = tell(status, argv[2], signatures[s].key) ? 0 : n_out;
            } else {
                check(status, name);
            }
            for (int i = 0; i < n_out; i++) {
                snprintf(path, sizeof(path), "%s/%s.%s.%d.npy", argv[2], signatures[s].key,
                         order == 1 ? "first" : "second", i);
                check(sx_npy_write(path, &out[i]), path);
            }
            for (int i = 0; i < n; i++) {
                sx_free(in[i].data);
            }
        }
    }
    sx_arena_deinit(&arena);
    sx_runner_destroy(runner);
    sx_platform_close(platform);
    sx_library_destroy(library);
    sx_library_destroy(both);
    sx_saved_model_close(model);
    sx_buf_deinit(&all);
    return 0;
}
