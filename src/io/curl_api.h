/* libcurl's functions. It brings a dozen libraries (Kerberos, LDAP, GnuTLS), so it is loaded with
 * the first request, and nothing links it. Only http_*.c use it. */
#ifndef SX_IO_CURL_API_H
#define SX_IO_CURL_API_H

#include <curl/curl.h>

#include <sextant/status.h>

/* The functions that are used: curl_NAME is called as sx_curl.NAME. To use another, add a row. */
#define SX_CURL_FUNCTIONS(ROW) \
    ROW(easy_cleanup)          \
    ROW(easy_getinfo)          \
    ROW(easy_init)             \
    ROW(easy_perform)          \
    ROW(easy_reset)            \
    ROW(easy_setopt)           \
    ROW(easy_strerror)         \
    ROW(global_init)           \
    ROW(multi_add_handle)      \
    ROW(multi_assign)          \
    ROW(multi_cleanup)         \
    ROW(multi_info_read)       \
    ROW(multi_init)            \
    ROW(multi_remove_handle)   \
    ROW(multi_setopt)          \
    ROW(multi_socket_action)   \
    ROW(multi_strerror)        \
    ROW(slist_append)          \
    ROW(slist_free_all)

typedef struct sx_curl_api {
#define ROW(name) __typeof__(&curl_##name) name;
    SX_CURL_FUNCTIONS(ROW)
#undef ROW
} sx_curl_api;

/* Set by sx_curl_load(). Tests put functions of their own in front. */
extern sx_curl_api sx_curl;

/* Errors: FAILED_PRECONDITION: libcurl is not installed. */
SX_MUST_USE sx_status sx_curl_load(void);

#endif
