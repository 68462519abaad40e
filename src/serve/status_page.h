/* The page at "/" for people: the models, their versions, how many requests they answer and how
 * fast. HTML without scripts; it asks the browser to load it again every few seconds. */
#ifndef SX_SERVE_STATUS_PAGE_H
#define SX_SERVE_STATUS_PAGE_H

#include "base/budget.h"
#include "base/buffer.h"
#include "net/http_server.h"
#include "serve/manager.h"

typedef struct sx_status_page_config {
    sx_manager *manager;
    const char *metrics_path; /* NULL = none */
    size_t queued;            /* requests that wait for a thread */
    const sx_budget *memory;  /* of requests; NULL = unknown */
    sx_http_stats http;
    int64_t running_ns; /* since the server began */
} sx_status_page_config;

/* Header lines of the answer: nothing else may be loaded or run in its name. */
extern const char sx_status_page_headers[];

/* RESOURCE_EXHAUSTED. */
SX_MUST_USE sx_status sx_status_page_print(const sx_status_page_config *config, sx_buf *out);

#endif
