/* See export_library.h; and the public function of sextant/saved_model.h. */
#include "savedmodel/export_library.h"

#include <string.h>

#include "base/args.h"
#include "base/memory.h"
#include "savedmodel/export_body.h"

struct exporter {
    const sx_library_export *request;
    sx_saved_model_writer *model;
    sx_tf_exporter *nodes;
    sx_tf_value *handles; /* [handles], as of `nodes` */
    sx_arena arena;
};

static sx_status check_port(const char *signature, const char *kind, const char *name,
                            const sx_type *type)
{
    return type->dtype != SX_RESOURCE
               ? SX_OK
               : sx_error(
                     SX_INVALID_ARGUMENT,
                     "signature \"%.100s\": %s \"%.100s\" is a resource, which cannot be passed "
                     "to a model",
                     signature, kind, name);
}

/* All functions, before anything is written. */
static sx_status check(struct exporter *e)
{
    const sx_library_export *request = e->request;
    const sx_graph **bodies =
        sx_arena_array(&e->arena, request->n_signatures + 1, const sx_graph *);
    if (bodies == NULL) {
        return sx_no_memory("exporting functions");
    }
    if (request->n_signatures < 1) {
        return sx_error(SX_INVALID_ARGUMENT, "no signatures; a model has at least one");
    }
    for (int i = 0; i < request->n_signatures; i++) {
        const sx_signature_function *s = &request->signatures[i];
        const sx_function *f = sx_library_find(request->library, s->function);
        for (int k = 0; k < i; k++) {
            if (strcmp(request->signatures[k].name, s->name) == 0) {
                return sx_error(SX_INVALID_ARGUMENT, "two signatures are named \"%.100s\"",
                                s->name);
            }
        }
        if (f == NULL) {
            return sx_error(SX_NOT_FOUND, "signature \"%.100s\": there is no function \"%.100s\"",
                            s->name, s->function);
        }
        if (f->body->n_results == 0) {
            return sx_error(SX_INVALID_ARGUMENT,
                            "signature \"%.100s\": function \"%.100s\" has no outputs", s->name,
                            s->function);
        }
        for (int k = 0; k < f->body->n_args; k++) {
            const sx_arg *arg = &f->body->args[k];
            SX_TRY(check_port(s->name, "input", arg->name, sx_graph_type(f->body, arg->value)));
        }
        for (int k = 0; k < f->body->n_results; k++) {
            const sx_result *r = &f->body->results[k];
            SX_TRY(check_port(s->name, "output", r->name, sx_graph_type(f->body, r->value)));
        }
        bodies[i] = f->body;
    }
    return sx_tf_exporter_check(e->nodes, bodies, request->n_signatures);
}

static sx_status write_handles(struct exporter *e, const sx_function *f)
{
    const sx_library *library = e->request->library;
    const bool *uses;
    SX_TRY(sx_tf_exporter_uses(e->nodes, f, &uses));
    for (int i = 0; i < library->n_variables; i++) {
        const sx_variable_spec *v = &library->variables[i];
        if (!uses[i] || sx_saved_model_handle(e->model, v->name).node >= 0) {
            continue;
        }
        if (e->request->read_variable == NULL) {
            return sx_error(SX_INVALID_ARGUMENT,
                            "function \"%.100s\" uses variable \"%.100s\"; its value is missing",
                            f->name, v->name);
        }
        (void)sx_saved_model_variable(e->model, v->name, &v->type, v->role == SX_ROLE_WEIGHT);
        e->handles[i] = sx_saved_model_handle(e->model, v->name);
    }
    for (int i = library->n_variables; i < sx_tf_exporter_handles(e->nodes); i++) {
        if (uses[i]) {
            e->handles[i] = sx_tf_exporter_table(e->nodes, sx_saved_model_nodes(e->model), i);
        }
    }
    return SX_OK;
}

static sx_status write_signature(struct exporter *e, const sx_signature_function *s)
{
    const sx_function *f = sx_library_find(e->request->library, s->function);
    const sx_graph *body = f->body;
    sx_tf_writer *w = sx_saved_model_nodes(e->model);
    sx_tf_value *in = sx_arena_array(&e->arena, body->n_args + 1, sx_tf_value);
    sx_tf_value *out = sx_arena_array(&e->arena, body->n_results + 1, sx_tf_value);
    if (in == NULL || out == NULL) {
        return sx_no_memory("exporting functions");
    }
    sx_saved_model_signature(e->model, s->name);
    for (int i = 0; i < body->n_args; i++) {
        const sx_type *type = sx_graph_type(body, body->args[i].value);
        const char *name = sx_arena_printf(&e->arena, "%s_%s", s->name, body->args[i].name);
        if (name == NULL) {
            return sx_no_memory("exporting functions");
        }
        in[i] = sx_tf_add(w, "Placeholder", name, SX_TF_NO_IN,
                          sx_tf_attrs(sx_tf_attr_type("dtype", (int)type->dtype),
                                      sx_tf_attr_shape("shape", type)));
        sx_saved_model_input(e->model, body->args[i].name, in[i], type);
    }
    SX_TRY(sx_tf_exporter_call(e->nodes, w, s->name, f, in, e->handles, out));
    for (int i = 0; i < body->n_results; i++) {
        sx_saved_model_output(e->model, body->results[i].name, out[i],
                              sx_graph_type(body, body->results[i].value));
    }
    return SX_OK;
}

static sx_status write_model(struct exporter *e, char **out_dir)
{
    const sx_library_export *request = e->request;
    SX_TRY(check(e));
    for (int i = 0; i < request->n_signatures; i++) {
        SX_TRY(
            write_handles(e, sx_library_find(request->library, request->signatures[i].function)));
    }
    for (int i = 0; i < request->n_signatures; i++) {
        SX_TRY(write_signature(e, &request->signatures[i]));
    }
    return sx_saved_model_write_version(e->model, request->base, request->version,
                                        request->read_variable, request->user, out_dir);
}

sx_status sx_export_library(const sx_library_export *request, char **out_dir)
{
    struct exporter e = {.request = request};
    sx_status status = SX_OK;
    sx_arena_init(&e.arena, 0);
    SX_TRY_GOTO(status, sx_tf_exporter_create(request->library, &e.nodes), done);
    SX_TRY_GOTO(status, sx_saved_model_writer_create(&e.model), done);
    e.handles = sx_arena_array(&e.arena, sx_tf_exporter_handles(e.nodes) + 1, sx_tf_value);
    status = e.handles == NULL ? sx_no_memory("exporting functions") : write_model(&e, out_dir);
done:
    sx_saved_model_writer_destroy(e.model);
    sx_tf_exporter_destroy(e.nodes);
    sx_arena_deinit(&e.arena);
    return status;
}

/* ---- The public function ---- */

static sx_status read_variable(void *user, const char *name, const sx_type *type, void *out)
{
    return sx_functions_read_variable(user, name, out, (size_t)sx_type_bytes(type));
}

sx_status sx_functions_export(const sx_library *library, sx_functions *functions,
                              const sx_signature_function *signatures, int n_signatures,
                              const char *base, const char *version, char **out_dir)
{
    SX_NEED(library);
    SX_NEED(base);
    if (n_signatures > 0) {
        SX_NEED(signatures);
    }
    if (!library->finished) {
        return sx_error(SX_FAILED_PRECONDITION, "the library is not finished");
    }
    char *dir = NULL;
    SX_TRY(sx_export_library(
        &(sx_library_export){.library = library,
                             .signatures = signatures,
                             .n_signatures = n_signatures,
                             .read_variable = functions != NULL ? read_variable : NULL,
                             .user = functions,
                             .base = base,
                             .version = version},
        &dir));
    if (out_dir != NULL) {
        *out_dir = dir;
    } else {
        sx_free(dir);
    }
    return SX_OK;
}
