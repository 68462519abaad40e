/* sextant bench serve: an open-loop load generator. Requests begin when they are due, however long
 * the answers to earlier ones take, and a latency counts from that time: a server that stalls is
 * charged for all the requests that it kept waiting. One thread sends them all, to leave the
 * machine to the server if that runs on it, too. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/threefry.h"
#include "client/calls.h"
#include "client/raw.h"
#include "client_args.h"
#include "io/commit.h"
#include "latency.h"

typedef struct options {
    double rate, duration, warmup;
    int64_t connections, deadline, seed;
    const char *arrivals, *svg;
    bool json;
    sx_client_args client_args;
    sx_call_args call_args;
} options;

static const sx_option rows[] = {
    {"rate", SX_OPTION_FLOAT, SX_OPT(options, rate), "requests a second", "N", .min = 1e-3,
     .max = 1e6},
    {"arrivals", SX_OPTION_CHOICE, SX_OPT(options, arrivals),
     "when requests are sent: at random times, as from many independent users, or at equal "
     "intervals",
     .choices = "poisson|constant"},
    {"duration", SX_OPTION_FLOAT, SX_OPT(options, duration), "how long to send requests", "SECONDS",
     .min = 0.1, .max = 1e6},
    {"warmup", SX_OPTION_FLOAT, SX_OPT(options, warmup),
     "how long to send requests before any is counted; 0: not at all", "SECONDS", .max = 1e6},
    {"connections", SX_OPTION_INT, SX_OPT(options, connections),
     "connections to open; one has a request at a time over REST, up to 100 over gRPC; a request "
     "waits until one has room, and the wait counts as latency; default: 64, over gRPC 4",
     "N", .min = 1, .max = 1024},
    {"deadline-ms", SX_OPTION_INT, SX_OPT(options, deadline),
     "count answers that arrive within this time as good, cancel requests after it, and send what "
     "is left of it to gRPC servers as the deadline; default: --timeout",
     "MS", .min = 1, .max = 86400000},
    {"seed", SX_OPTION_INT, SX_OPT(options, seed), "seed of the random times", "N", .max = 1e9},
    {"svg", SX_OPTION_STRING, SX_OPT(options, svg), "write a plot of the latencies to FILE",
     "FILE"},
    {"json", SX_OPTION_FLAG, SX_OPT(options, json), "print the result as JSON"},
    SX_CALL_ARGS_ROWS(options),
    SX_CLIENT_ARGS_ROWS(options),
};
static const options defaults = {.rate = 100,
                                 .arrivals = "poisson",
                                 .duration = 10,
                                 .warmup = 1,
                                 .call_args.protocol = "rest",
                                 .client_args.timeout = 30};

enum {
    MAX_REQUEST = 1 << 30,
    CODES = 17,
    LATE_MS = 2,
    REST_CONNECTIONS = 64,
    GRPC_CONNECTIONS = 4,
};

/* What came of the requests. */
typedef struct tally {
    sx_latencies latencies; /* of those that were answered */
    uint64_t good;          /* in time */
    uint64_t late;          /* began later than they were due */
    uint64_t codes[CODES];
} tally;

typedef struct load {
    const options *o;
    const char *url;
    sx_client_model model;
    sx_client_options call;
    int connections;
    sx_buf path, request;
    int64_t begin_ns, count_ns, end_ns; /* a signal makes the end earlier */
    int64_t last_ns;                    /* of the last answer that counts */
    int64_t deadline_ns;
    uint64_t arrivals;
    double next_s; /* of the next arrival, since begin_ns */
    tally total;
    char example[300]; /* the text of the first error */
} load;

/* ---- Sending ---- */

static int64_t next_due(const load *l)
{
    return l->begin_ns + (int64_t)(l->next_s * 1e9);
}

static void advance(load *l)
{
    const uint64_t n = l->arrivals++;
    if (strcmp(l->o->arrivals, "poisson") == 0) {
        const sx_u32x2 bits = sx_threefry2x32((sx_u32x2){(uint32_t)l->o->seed, 0x62656e63},
                                              (sx_u32x2){(uint32_t)n, (uint32_t)(n >> 32)});
        /* exponential, of mean 1 */
        l->next_s += -log(((double)bits.a + 0.5) * 0x1p-32) / l->o->rate;
    } else {
        l->next_s = (double)l->arrivals / l->o->rate;
    }
}

/* A request has ended. */
static void count(void *user, int64_t due_ns, sx_status status, sx_bytes answer)
{
    (void)answer;
    load *l = user;
    const int64_t now_ns = sx_now_ns(), latency_ns = now_ns - due_ns;
    const sx_code code = sx_status_code(status);
    if (due_ns >= l->count_ns) {
        l->last_ns = now_ns;
        l->total.codes[(int)code < CODES ? (int)code : SX_UNKNOWN]++;
        if (status == SX_OK) {
            sx_latencies_add(&l->total.latencies, latency_ns);
            l->total.good += latency_ns <= l->deadline_ns;
        }
    }
    if (status != SX_OK && l->example[0] == '\0') {
        snprintf(l->example, sizeof(l->example), "%s", sx_status_message(status));
    }
    sx_status_free(status);
}

static void begin(load *l, sx_client_calls *calls, int64_t due_ns)
{
    const bool late = sx_now_ns() - due_ns > LATE_MS * (int64_t)1000000;
    l->total.late += late && due_ns >= l->count_ns;
    sx_status status = sx_client_calls_start(calls, due_ns);
    if (status != SX_OK) {
        count(l, due_ns, status, (sx_bytes){0});
    }
}

/* Sends what is due, also that which found no room before the end, and waits for the answers. What
 * was due before a signal counts, too, sent or not. */
static sx_status send_due(load *l, sx_client_calls *calls)
{
    for (;;) {
        const int64_t now_ns = sx_now_ns();
        const bool stopped = sx_stop_signal() != 0;
        l->end_ns = stopped ? SX_MIN(l->end_ns, now_ns) : l->end_ns;
        while (!stopped && next_due(l) < SX_MIN(l->end_ns, now_ns) &&
               sx_client_calls_has_room(calls)) {
            begin(l, calls, next_due(l));
            advance(l);
        }
        for (; stopped && next_due(l) < l->end_ns; advance(l)) {
            count(l, next_due(l), sx_error(SX_CANCELLED, "not sent before the signal"),
                  (sx_bytes){0});
        }
        const bool more = next_due(l) < l->end_ns;
        if (!more && sx_client_calls_under_way(calls) == 0) {
            return SX_OK;
        }
        SX_TRY(sx_client_calls_wait(calls, more && sx_client_calls_has_room(calls) ? next_due(l)
                                                                                   : INT64_MAX));
    }
}

static sx_status send_all(load *l)
{
    const sx_client_calls_config config = {
        .server = l->url,
        .options = &l->call,
        .connections = l->connections,
        .path = sx_buf_text(&l->path),
        .body = {sx_buf_text(&l->request), l->request.size},
        .done = count,
        .user = l,
    };
    sx_client_calls *calls = NULL;
    SX_TRY(sx_client_calls_create(&config, &calls));
    l->begin_ns = sx_now_ns();
    l->count_ns = l->begin_ns + (int64_t)(l->o->warmup * 1e9);
    l->end_ns = l->count_ns + (int64_t)(l->o->duration * 1e9);
    sx_status status = send_due(l, calls);
    sx_client_calls_destroy(calls);
    return status;
}

/* ---- The result ---- */

static uint64_t sum_of(const tally *t)
{
    uint64_t sum = 0;
    for (int i = 0; i < CODES; i++) {
        sum += t->codes[i];
    }
    return sum;
}

/* Answers in time, a second, until the last one: answers may come long after the requests. */
static double goodput(const load *l)
{
    const int64_t ns = SX_MAX(l->end_ns, l->last_ns) - l->count_ns;
    return (double)l->total.good / ((double)SX_MAX(ns, (int64_t)1) * 1e-9);
}

static void print_json(const load *l, double seconds)
{
    static const struct {
        const char *name;
        double q;
    } points[] = {{"p50_us", 0.5}, {"p90_us", 0.9}, {"p99_us", 0.99}, {"p999_us", 0.999}};
    const tally *t = &l->total;
    printf("{\"requests\": %llu, \"answered\": %llu, \"good\": %llu, \"late\": %llu, "
           "\"seconds\": %.3f, \"rate\": %.6g, \"goodput\": %.6g",
           (unsigned long long)sum_of(t), (unsigned long long)t->latencies.count,
           (unsigned long long)t->good, (unsigned long long)t->late, seconds,
           (double)sum_of(t) / seconds, goodput(l));
    for (size_t i = 0; i < SX_COUNT(points); i++) {
        printf(", \"%s\": %.6g", points[i].name, sx_latencies_at(&t->latencies, points[i].q));
    }
    printf(", \"max_us\": %.6g, \"mean_us\": %.6g, \"errors\": {", t->latencies.max_us,
           t->latencies.count > 0 ? t->latencies.sum_us / (double)t->latencies.count : 0);
    const char *comma = "";
    for (int i = 1; i < CODES; i++) {
        if (t->codes[i] > 0) {
            printf("%s\"%s\": %llu", comma, sx_code_name((sx_code)i),
                   (unsigned long long)t->codes[i]);
            comma = ", ";
        }
    }
    printf("}}\n");
}

static void print_text(const load *l, double seconds)
{
    const tally *t = &l->total;
    const uint64_t all = sum_of(t);
    sx_buf text;
    sx_buf_init(&text, 0);
    printf("%llu requests in %.1f s: %.6g a second; answered in %.6g ms: %.6g a second\n",
           (unsigned long long)all, seconds, (double)all / seconds, (double)l->deadline_ns / 1e6,
           goodput(l));
    for (int i = 1; i < CODES; i++) {
        if (t->codes[i] > 0) {
            printf("%s: %llu\n", sx_code_name((sx_code)i), (unsigned long long)t->codes[i]);
        }
    }
    if (l->example[0] != '\0') {
        printf("the first error: ");
        sx_print_visible(stdout, l->example);
        putchar('\n');
    }
    if (t->late > 0) {
        printf("%llu request%s began late: all connections (%d) were busy, or this machine was\n",
               (unsigned long long)t->late, t->late == 1 ? "" : "s", l->connections);
    }
    sx_latencies_print(&t->latencies, &text);
    fwrite(sx_buf_text(&text), 1, text.size, stdout);
    sx_buf_deinit(&text);
}

static sx_status write_svg(const load *l, double seconds)
{
    char title[200], about[200];
    const tally *t = &l->total;
    sx_buf svg;
    sx_buf_init(&svg, 0);
    snprintf(title, sizeof(title), "%.100s", l->url);
    snprintf(about, sizeof(about),
             "%.6g requests a second over %s, %s arrivals; answered in %.6g ms: %.6g a second",
             (double)sum_of(t) / seconds, l->o->call_args.protocol, l->o->arrivals,
             (double)l->deadline_ns / 1e6, goodput(l));
    sx_latencies_print_svg(&t->latencies, title, about, &svg);
    sx_status status = sx_buf_status(&svg);
    if (status == SX_OK) {
        status = sx_commit_bytes(l->o->svg, svg.data, svg.size);
    }
    sx_buf_deinit(&svg);
    return status;
}

/* ---- The command ---- */

/* What is sent, made once. */
static sx_status prepare(sx_invocation *inv, load *l)
{
    sx_client *client = NULL;
    sx_buf json;
    sx_buf_init(&json, MAX_REQUEST);
    sx_status status = SX_OK;
    SX_TRY_GOTO(status, sx_call_args_request(inv, &l->o->call_args, "instances", &json), done);
    SX_TRY_GOTO(status, sx_client_open(l->url, &l->call, &client), done);
    status = sx_client_prepare(client, &l->model, (sx_bytes){sx_buf_text(&json), json.size},
                               &l->path, &l->request);
done:
    sx_client_close(client);
    sx_buf_deinit(&json);
    return status;
}

static sx_status run(sx_invocation *inv)
{
    const options *o = inv->options;
    if (!sx_call_args_send(&o->call_args)) {
        return sx_usage(inv, sx_error(SX_INVALID_ARGUMENT,
                                      "expected something to send: --request, --input, --image or "
                                      "--lines"));
    }
    load *l = sx_arena_new(&inv->arena, load);
    if (l == NULL) {
        return sx_no_memory("for a load generator");
    }
    l->o = o;
    l->url = inv->words.items[0];
    SX_TRY(sx_call_args_target(inv, &o->call_args, &l->url, &l->model));
    SX_TRY(sx_client_args_options(inv, &o->client_args, &l->call));
    const bool grpc = strcmp(o->call_args.protocol, "grpc") == 0;
    l->call.protocol = grpc ? SX_CLIENT_GRPC : SX_CLIENT_REST;
    l->connections = o->connections > 0 ? (int)o->connections
                     : grpc             ? GRPC_CONNECTIONS
                                        : REST_CONNECTIONS;
    sx_buf_init(&l->path, 0);
    sx_buf_init(&l->request, MAX_REQUEST);
    sx_status status = prepare(inv, l); /* within --timeout */
    l->call.timeout_ms = o->deadline > 0 ? o->deadline : l->call.timeout_ms;
    l->call.retries = -1;
    l->deadline_ns = l->call.timeout_ms * 1000000;
    if (status == SX_OK) {
        status = send_all(l);
    }
    if (status == SX_OK) {
        const double seconds = (double)SX_MAX(l->end_ns - l->count_ns, (int64_t)1) * 1e-9;
        (o->json ? print_json : print_text)(l, seconds);
        status = o->svg != NULL ? write_svg(l, seconds) : SX_OK;
    }
    if (status == SX_OK && sum_of(&l->total) == 0) {
        status = sx_error(SX_UNAVAILABLE, "no request was due in the time that is measured");
    } else if (status == SX_OK && l->total.latencies.count == 0) {
        status = sx_error(SX_UNAVAILABLE, "no request was answered: %s", l->example);
    }
    sx_buf_deinit(&l->path);
    sx_buf_deinit(&l->request);
    return status;
}

const sx_command sx_command_bench_serve = {
    .name = "bench serve",
    .summary = "load a model server and measure its latencies",
    .words = "URL",
    .about =
        "Sends the same request again and again, at a rate that does not depend on the answers. A "
        "latency counts from the time at which its request was due, so that requests that a slow "
        "server kept waiting are not left out. URL is as for `sextant query`.",
    .examples = "  sextant bench serve http://localhost:8501/v1/models/flowers --image rose.jpg "
                "--rate 200\n"
                "  sextant bench serve localhost:8500 --protocol grpc --model flowers --signature "
                "tensors --input x.npy --rate 2000 --deadline-ms 50 --svg latencies.svg",
    .min_words = 1,
    .max_words = 1,
    .stops_itself = true,
    SX_COMMAND_OPTIONS(rows, options),
    .defaults = &defaults,
    .run = run,
};
