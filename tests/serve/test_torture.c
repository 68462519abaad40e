/* Every allocation fails once: while a request is parsed and its answer printed, and while a server
 * is made. (Its threads allocate in no fixed order: it is not started.) */
#include "torture.h"

#include "base/checked.h"
#include "serve/fake_model.h"
#include "serve/predict_json.h"
#include "serve/server.h"

static const sx_serve_tensor inputs[] = {
    {.name = "a", .tensor_name = "a:0", .type = {SX_F32, 2, {SX_BATCH, 2}}},
    {.name = "s", .tensor_name = "s:0", .type = {SX_STRING, 1, {SX_BATCH}}},
};
static const sx_serve_signature signature = {.name = "serving_default",
                                             .inputs = inputs,
                                             .input_count = SX_COUNT(inputs),
                                             .outputs = inputs,
                                             .output_count = SX_COUNT(inputs)};

static sx_status parse_and_print(void *text)
{
    sx_arena arena;
    sx_predict_slots slots;
    sx_predict_request request;
    sx_buf out;
    sx_arena_init(&arena, 0);
    sx_predict_slots_init(&slots);
    sx_buf_init(&out, 0);
    sx_status status =
        sx_predict_parse((sx_bytes){text, strlen(text)}, &signature, 1, &arena, &slots, &request);
    if (status == SX_OK) {
        status =
            sx_predict_print(&signature, request.inputs, request.row, SX_FLOAT_TFS, NULL, &out);
    }
    sx_buf_deinit(&out);
    sx_predict_slots_deinit(&slots);
    sx_arena_deinit(&arena);
    return status;
}

static void test_serve_torture__requests(void **state)
{
    (void)state;
    char rows[] = "{\"instances\": [{\"a\": [1, 2], \"s\": {\"b64\": \"aGk=\"}}, "
                  "{\"a\": [3, 4.5], \"s\": \"text \\u00e9\"}]}";
    char columns[] = "{\"inputs\": {\"a\": [[1, 2], [3, 4]], \"s\": [\"x\", \"y\"]}}";
    assert_in_range(sx_torture_some(parse_and_print, rows), 3, 1000);
    assert_in_range(sx_torture_some(parse_and_print, columns), 3, 1000);
}

static sx_status make_server(void *user)
{
    static struct fake_runtime runtime;
    const sx_server_config config = {.host = "127.0.0.1",
                                     .rest_api_port = SX_ANY_PORT,
                                     .model_name = "m",
                                     .model_base_path = user,
                                     .ops = &fake_ops,
                                     .ops_user = &runtime};
    sx_server *server = NULL;
    SX_TRY(sx_server_create(&config, &server));
    sx_server_destroy(server);
    return SX_OK;
}

static void test_serve_torture__servers(void **state)
{
    (void)state;
    char base[64];
    fake_base_path(base);
    assert_in_range(sx_torture(make_server, base), 5, 1000);
    rmdir(base);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_serve_torture__requests),
    cmocka_unit_test(test_serve_torture__servers),
};
SX_TEST_MAIN(tests)
