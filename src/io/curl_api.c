/* See curl_api.h. */
#include "io/curl_api.h"

#include "base/checked.h"
#include "base/late_library.h"

sx_curl_api sx_curl;

static sx_status start(void)
{
    const CURLcode rc = sx_curl.global_init(CURL_GLOBAL_DEFAULT);
    return rc == CURLE_OK ? SX_OK : sx_error(SX_UNKNOWN, "libcurl: %s", sx_curl.easy_strerror(rc));
}

sx_status sx_curl_load(void)
{
    static const sx_late_function functions[] = {
#define ROW(name) {"curl_" #name, &sx_curl.name},
        SX_CURL_FUNCTIONS(ROW)
#undef ROW
    };
    static sx_late_library library = {.soname = "libcurl.so.4",
                                      .origin = "Debian's package libcurl4",
                                      .functions = functions,
                                      .function_count = SX_COUNT(functions),
                                      .start = start};
    return sx_late_library_load(&library);
}
