/* See layer.h. */
#include "nn/layer.h"

#include <string.h>

#include "runtime/session.h"

void sx_builder_set_mode(sx_builder *b, sx_mode mode)
{
    b->mode = (int)mode;
}

sx_mode sx_builder_mode(const sx_builder *b)
{
    return (sx_mode)b->mode;
}

void sx_builder_set_precision(sx_builder *b, sx_dtype compute)
{
    if (compute != SX_F32 && compute != SX_BF16 && compute != SX_DTYPE_NONE) {
        sx_builder_fail(b, sx_error(SX_INVALID_ARGUMENT,
                                    "precision is %s, expected float32 or bfloat16",
                                    sx_dtype_name(compute)));
        return;
    }
    b->compute = compute;
}

sx_dtype sx_builder_precision(const sx_builder *b)
{
    return sx_precision_is_narrow(b) ? b->compute : SX_F32;
}

bool sx_layer_begin(sx_builder *b, const char *base, const char *name, const char *file, int line)
{
    if (sx_builder_failed(b)) {
        return false;
    }
    sx_builder_at(b, file, line);
    sx_scope_begin(b, base, name);
    return !sx_builder_failed(b);
}

sx_value sx_layer_end(sx_builder *b, sx_value result)
{
    sx_scope_end(b);
    return sx_builder_failed(b) ? SX_NO_VALUE : result;
}

void sx_layer_fail(sx_builder *b, const char *base, sx_status status)
{
    const char *slash = strrchr(b->file, '/');
    const char *file = slash != NULL ? slash + 1 : b->file;
    sx_builder_fail(b, sx_status_annotate(status, __FILE__, __LINE__, "%s:%d: %s \"%s\"", file,
                                          b->line, base, b->scopes[b->depth]));
}

bool sx_layer_check_rank(sx_builder *b, const char *base, sx_value x, int rank,
                         const char *expected, const char *hint)
{
    sx_type type = sx_type_of_value(b, x);
    if (sx_builder_failed(b) || type.rank == rank) {
        return !sx_builder_failed(b);
    }
    char text[SX_TYPE_TEXT];
    sx_layer_fail(b, base,
                  sx_error(SX_INVALID_ARGUMENT, "input %s has rank %d, expected %s%s%s",
                           sx_type_format(&type, text, sizeof(text)), type.rank, expected,
                           hint[0] != '\0' ? "; " : "", hint));
    return false;
}

sx_value sx_layer_variable(sx_builder *b, const char *leaf, sx_type type, sx_variable_role role,
                           sx_initializer init, sx_initializer otherwise)
{
    return sx_variable(b, &(sx_variable_spec){.name = sx_scoped_name(b, leaf),
                                              .type = type,
                                              .role = role,
                                              .init = init == SX_INIT_DEFAULT ? otherwise : init});
}

sx_value sx_layer_weight(sx_builder *b, const char *leaf, sx_type type, sx_initializer init,
                         sx_initializer otherwise)
{
    return sx_narrow(b, sx_layer_variable(b, leaf, type, SX_ROLE_WEIGHT, init, otherwise));
}

sx_value sx_seed_input(sx_builder *b)
{
    if (sx_builder_failed(b)) {
        return SX_NO_VALUE;
    }
    int arg = sx_graph_find_arg(b->graph, SX_SEED_INPUT);
    return arg >= 0 ? b->graph->args[arg].value : sx_input(b, SX_SEED_INPUT, sx_type_of(SX_U32, 2));
}

sx_value sx_global_step(sx_builder *b)
{
    return sx_variable(b, &(sx_variable_spec){.name = "global_step",
                                              .type = sx_scalar_type(SX_I64),
                                              .role = SX_ROLE_STEP});
}
