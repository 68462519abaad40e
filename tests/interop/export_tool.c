/* What tests/interop/test_export_library.py runs.
 *
 *   export_tool DIR   exports the libraries of tests/savedmodel/export_libraries.h as DIR/NAME/1,
 *                     runs function main on their inputs, and writes the inputs and outputs as
 *                     DIR/NAME.K.in and DIR/NAME.K.out: for each tensor a line
 *                         name dtype dimensions: elements
 *                     floats with 9 digits, strings in hexadecimal */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sextant/saved_model.h>

#include "../savedmodel/export_libraries.h"
#include "base/checked.h"
#include "graph/library.h"

static void check(sx_status status, const char *what)
{
    if (status != SX_OK) {
        fprintf(stderr, "%s: %s\n", what, sx_status_message(status));
        exit(1);
    }
}

static void write_tensor(FILE *out, const char *name, const sx_tensor *t)
{
    fprintf(out, "%s %s", name, sx_dtype_name(t->type.dtype));
    for (int d = 0; d < t->type.rank; d++) {
        fprintf(out, " %lld", (long long)t->type.dims[d]);
    }
    fprintf(out, ":");
    for (int64_t i = 0, n = sx_type_elems(&t->type); i < n; i++) {
        const sx_bytes *s = t->data;
        switch (t->type.dtype) {
        case SX_STRING:
            fprintf(out, " x");
            for (size_t k = 0; k < s[i].size; k++) {
                fprintf(out, "%02x", ((const unsigned char *)s[i].data)[k]);
            }
            break;
        case SX_F32:
            fprintf(out, " %.9g", (double)((const float *)t->data)[i]);
            break;
        case SX_I32:
            fprintf(out, " %d", (int)((const int32_t *)t->data)[i]);
            break;
        case SX_I64:
            fprintf(out, " %lld", (long long)((const int64_t *)t->data)[i]);
            break;
        default: /* bool, uint8 */
            fprintf(out, " %d", ((const uint8_t *)t->data)[i]);
        }
    }
    fprintf(out, "\n");
}

static FILE *open_file(const char *dir, const char *name, int run, const char *end)
{
    char path[1024];
    snprintf(path, sizeof(path), "%s/%s.%d.%s", dir, name, run, end);
    FILE *file = fopen(path, "w");
    if (file == NULL) {
        perror(path);
        exit(1);
    }
    return file;
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: export_tool DIR\n");
        return 2;
    }
    for (size_t i = 0; i < SX_COUNT(export_libraries); i++) {
        const export_library *l = &export_libraries[i];
        sx_library *library;
        sx_functions *functions;
        char base[1024];
        snprintf(base, sizeof(base), "%s/%s", argv[1], l->name);
        check(sx_library_parse(l->text, strlen(l->text), &library), l->name);
        check(sx_functions_open(library,
                                &(sx_functions_options){.struct_size = sizeof(sx_functions_options),
                                                        .threads = 1,
                                                        .seed = 3},
                                &functions),
              l->name);
        check(sx_functions_export(library, functions,
                                  &(sx_signature_function){"serving_default", "main"}, 1, base,
                                  NULL, NULL),
              l->name);
        const sx_graph *body = sx_library_find(library, "main")->body;
        for (int k = 0; k < EXPORT_RUNS && l->runs[k][0].data != NULL; k++) {
            sx_results *results;
            check(sx_functions_run(functions, "main", l->runs[k], body->n_args, 0, &results),
                  l->name);
            FILE *in = open_file(argv[1], l->name, k, "in"),
                 *out = open_file(argv[1], l->name, k, "out");
            for (int a = 0; a < body->n_args; a++) {
                write_tensor(in, body->args[a].name, &l->runs[k][a]);
            }
            for (int r = 0; r < body->n_results; r++) {
                write_tensor(out, body->results[r].name, sx_results_at(results, r));
            }
            fclose(in);
            fclose(out);
            sx_results_free(results);
        }
        sx_functions_close(functions);
        sx_library_destroy(library);
    }
    return 0;
}
