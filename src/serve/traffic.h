/* How a model's requests are shared out between its versions: the file of --model_traffic_file.
 *
 *   model {
 *     name: "flowers"
 *     canary { version: 42  percent: 5  sticky_header: "x-user" }
 *     shadow { version: 43  percent: 10  tolerance: 0.001 }
 *   }
 *
 * The canary gets that share of the requests that name no version; the newest other version gets
 * the rest. With a sticky_header, of gRPC a metadata key, the header's value decides: the same
 * value gets the same version, and what got the canary gets it still when the share grows. The
 * shadow gets a copy of that share of the requests which other versions answer (shadow.h). */
#ifndef SX_SERVE_TRAFFIC_H
#define SX_SERVE_TRAFFIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sextant/types.h>

#include "base/arena.h"
#include "net/http1.h"

/* A share of requests, in hundredths of a percent. */
enum { SX_SHARE_ALL = 10000 };

typedef struct sx_traffic {
    const char *model;
    int canary_share, shadow_share; /* 0: there is none */
    int64_t canary_version;         /* SX_LATEST_VERSION: the newest that is served */
    int64_t shadow_version;
    const char *sticky_header; /* "" = none */
    double shadow_tolerance;
} sx_traffic;

/* The models of a ModelTrafficConfig, in `arena`. `name` is that of the file, for errors:
 * INVALID_ARGUMENT with file, line and field. */
SX_MUST_USE sx_status sx_traffic_parse(sx_bytes text, const char *name, sx_arena *arena,
                                       sx_traffic **out_rows, size_t *out_count);

/* Whether the request of number `turn` is one of the share: of any number of requests in a row, as
 * many are as can be. */
bool sx_share_has_turn(int share, uint64_t turn);
/* The same of a request with that value of the sticky header. */
bool sx_share_has_value(int share, const char *model, sx_http_text value);

#endif
