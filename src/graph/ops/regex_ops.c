/* See regex_ops.h. */
#include "graph/ops/regex_ops.h"

sx_status sx_regex_infer(sx_infer_context *c)
{
    for (int i = 1; i < c->n_inputs; i++) {
        SX_TRY(sx_require_maybe(i == 1 ? "pattern" : "rewrite", &c->inputs[i], SX_STRING, 0,
                                "a scalar"));
    }
    return sx_infer_string_map(c);
}

sx_status sx_regex_replace_host(const sx_kernel_call *c, sx_bytes pattern, sx_bytes rewrite,
                                bool all)
{
    sx_regex *regex = NULL;
    SX_TRY(sx_regex_create(pattern, &regex));
    sx_buf buf = sx_string_buf(c);
    sx_status status = SX_OK;
    for (int64_t k = 0, n = sx_type_elems(&c->in[0].type); k < n && status == SX_OK; k++) {
        sx_regex_replace(regex, c->in[0].s[k], rewrite, all, &buf);
        status = sx_string_put(c, 0, k, &buf);
    }
    sx_buf_deinit(&buf);
    sx_regex_destroy(regex);
    return status;
}

sx_status sx_regex_full_match_host(const sx_kernel_call *c, sx_bytes pattern)
{
    sx_regex *regex = NULL;
    SX_TRY(sx_regex_create(pattern, &regex));
    for (int64_t k = 0, n = sx_type_elems(&c->in[0].type); k < n; k++) {
        c->out[0].b[k] = sx_regex_matches_all(regex, c->in[0].s[k]);
    }
    sx_regex_destroy(regex);
    return SX_OK;
}
