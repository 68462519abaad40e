/* A function's nodes in a model's graph: sx_call_function() of sextant/function.h. */
#include "base/checked.h"
#include "base/memory.h"
#include "graph/builder.h"
#include "graph/passes/passes.h"
#include "graph/specialize.h"

/* What keeps a function from being part of a static graph: its first step that is none. */
static sx_status refuse(const sx_step *step)
{
    const sx_node *n = step->kind == SX_STEP_LATE ? NULL : step->node;
    for (int k = 0; n == NULL && k < step->graph->n_nodes; k++) { /* after its parameters */
        n = (step->graph->nodes[k].op->flags & SX_OP_NO_HOST) == 0 ? &step->graph->nodes[k] : NULL;
    }
    return sx_error(
        SX_UNIMPLEMENTED,
        "%s \"%s\" %s; in the graph of a model or of its .preprocess, every size but the batch "
        "must "
        "be known, and a function's nodes must run on devices. Use operators of a known size in "
        ".preprocess, such as sx_string_split_padded(); to train a function of unknown sizes on "
        "one device, use sx_library_add_training()",
        n != NULL ? n->op->name : "a late call", n != NULL ? n->name : "",
        step->kind == SX_STEP_LATE ? "needs sizes that depend on data" : "runs on the host");
}

/* Appends the graph of a device step, `g`: slots[] has the values of what it reads, and gets those
 * of what it gives. */
static sx_status append(sx_builder *b, const sx_library *library, const sx_step *step,
                        const sx_graph *g, sx_value *slots)
{
    sx_value *map = sx_alloc((size_t)g->n_values, sizeof(*map));
    sx_value *inputs = sx_alloc((size_t)g->n_values, sizeof(*inputs));
    int n_in = 0, n_out = 0;
    sx_status status = map == NULL || inputs == NULL ? sx_no_memory("calling a function") : SX_OK;
    for (int i = 0; i < g->n_args && status == SX_OK; i++) {
        const sx_arg *arg = &g->args[i];
        map[arg->value.id] = arg->kind == SX_ARG_VARIABLE
                                 ? sx_variable(b, sx_library_find_variable(library, arg->name))
                                 : slots[step->in[n_in++]];
    }
    for (int k = 0; k < g->n_nodes && status == SX_OK && !sx_builder_failed(b); k++) {
        const sx_node *n = &g->nodes[k];
        if (n->op->flags & SX_OP_NO_HOST) {
            continue; /* a parameter */
        }
        for (int i = 0; i < n->n_inputs; i++) {
            inputs[i] = map[n->inputs[i].id];
        }
        const char *name = sx_scoped_name(b, n->name);
        const bool used = sx_map_has(&b->node_names, name); /* by a constant of slots[], say */
        const sx_value first = sx_build_node(b, &(sx_node_spec){.op = n->op,
                                                                .attrs = n->attrs,
                                                                .inputs = inputs,
                                                                .n_inputs = n->n_inputs,
                                                                .name = used ? NULL : name,
                                                                .device = n->device,
                                                                .file = n->file,
                                                                .line = n->line});
        for (int i = 0; i < n->n_outputs; i++) {
            map[sx_node_output(n, i).id] = sx_output_of(first, i);
        }
    }
    for (int i = 0; i < g->n_results && status == SX_OK; i++) {
        const sx_result *r = &g->results[i];
        if (r->arg == SX_RESULT_IS_OUTPUT) {
            slots[step->out[n_out++]] = map[r->value.id];
        } else {
            sx_assign(b, r->name, map[r->value.id]);
        }
    }
    sx_free(map);
    sx_free(inputs);
    return status;
}

/* The model's gradient is made of the nodes that are appended, so forms are found first. */
static sx_status append_fused(sx_builder *b, const sx_library *library, const sx_step *step,
                              sx_value *slots)
{
    sx_graph *fused;
    SX_TRY(sx_pass_fuse_forms(step->graph, &fused));
    sx_status status = append(b, library, step, fused != NULL ? fused : step->graph, slots);
    sx_graph_destroy(fused);
    return status;
}

static sx_status call(sx_builder *b, const sx_library *library, const sx_function *function,
                      const sx_value *inputs, sx_value *outputs)
{
    const int n = function->body->n_args;
    sx_arena arena;
    sx_specialized *spec = NULL;
    sx_status status = SX_OK;
    sx_arena_init(&arena, 0);
    sx_tensor *args = sx_arena_array(&arena, n + 1, sx_tensor);
    if (args == NULL) {
        status = sx_no_memory("calling a function");
        goto done;
    }
    for (int i = 0; i < n; i++) {
        const sx_type *declared = sx_graph_type(function->body, function->body->args[i].value);
        args[i].type = sx_type_of_value(b, inputs[i]);
        for (int d = 0; d < declared->rank && d < args[i].type.rank; d++) {
            if (sx_dim_is_batch(args[i].type.dims[d]) && declared->dims[d] >= 0) {
                char has[SX_TYPE_TEXT], wants[SX_TYPE_TEXT];
                status = sx_error(SX_INVALID_ARGUMENT, "\"%s\" is %s, but is declared as %s",
                                  function->body->args[i].name,
                                  sx_type_format(&args[i].type, has, sizeof(has)),
                                  sx_type_format(declared, wants, sizeof(wants)));
                goto done;
            }
        }
    }
    SX_TRY_GOTO(status,
                sx_specialize(library, function->body,
                              &(sx_binding){.args = args, .n_args = n, .differentiated = true},
                              &(sx_specialize_limits){0}, &spec),
                done);
    if (spec->excluded > 0) {
        status = sx_error(SX_UNIMPLEMENTED,
                          "for a batch of %lld it is another program, as where dimensions of 1 are "
                          "dropped (in TensorFlow, tf.squeeze without axis); the graph of a model "
                          "is the same for every batch. Name the axes that are dropped",
                          (long long)spec->excluded);
        goto done;
    }
    sx_value *slots = sx_arena_array(&arena, spec->n_slots + 1, sx_value);
    if (slots == NULL) {
        status = sx_no_memory("calling a function");
        goto done;
    }
    for (int i = 0; i < spec->n_slots; i++) {
        const sx_tensor *constant = spec->slots[i].constant;
        slots[i] = i < n ? inputs[i] : constant != NULL ? sx_constant(b, *constant) : SX_NO_VALUE;
    }
    for (int k = 0; k < spec->n_steps && status == SX_OK; k++) {
        const sx_step *step = &spec->steps[k];
        status =
            step->kind == SX_STEP_DEVICE ? append_fused(b, library, step, slots) : refuse(step);
    }
    for (int i = 0; i < spec->n_results && status == SX_OK; i++) {
        outputs[i] = slots[spec->results[i]];
    }
done:
    sx_specialized_destroy(spec);
    sx_arena_deinit(&arena);
    return status;
}

void sx_call_function_at(sx_builder *b, const sx_library *library, const char *function,
                         const sx_value *inputs, int n_inputs, sx_value *outputs, int n_outputs,
                         const char *file, int line)
{
    const sx_function *called = sx_library_find(library, function);
    sx_status status = SX_OK;
    if (sx_builder_failed(b)) {
        /* has the first error */
    } else if (b->graph->general) {
        status = sx_error(SX_INVALID_ARGUMENT,
                          "sx_call_function() is for the graph of a model; in a function, use "
                          "sx_function_node() with the operator \"call\"");
    } else if (!library->finished) {
        status = sx_error(SX_FAILED_PRECONDITION, "the library is not finished");
    } else if (called == NULL) {
        status = sx_error(SX_NOT_FOUND, "the library has no such function");
    } else if (called->body->n_args != n_inputs || called->body->n_results != n_outputs) {
        status = sx_error(SX_INVALID_ARGUMENT,
                          "it has %d inputs and %d outputs, but the call has %d and %d",
                          called->body->n_args, called->body->n_results, n_inputs, n_outputs);
    } else {
        sx_builder_at(b, file, line);
        (void)sx_scope_begin(b, function, NULL);
        status = call(b, library, called, inputs, outputs);
        sx_scope_end(b);
    }
    for (int i = 0; i < n_outputs && (status != SX_OK || sx_builder_failed(b)); i++) {
        outputs[i] = SX_NO_VALUE; /* not before: they may be the inputs */
    }
    if (status != SX_OK) {
        const char *slash = strrchr(file, '/');
        sx_builder_fail(b,
                        sx_status_annotate(status, __FILE__, __LINE__, "%s:%d: function \"%.100s\"",
                                           slash != NULL ? slash + 1 : file, line, function));
    }
}
