/* sextant bench serve: an open-loop load generator. Requests begin when they are due, however long
 * the answers to earlier ones take, and a latency counts from that time: a server that stalls is
 * charged for all the requests that it kept waiting. */
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/thread.h"
#include "base/threefry.h"
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
     "connections to open; a request waits until one is free, and the wait counts as latency", "N",
     .min = 1, .max = 1024},
    {"deadline-ms", SX_OPTION_INT, SX_OPT(options, deadline),
     "count answers that arrive within this time as good, and send it to gRPC servers as the "
     "deadline; default: --timeout",
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
                                 .connections = 64,
                                 .call_args.protocol = "rest",
                                 .client_args.timeout = 30};

enum {
    MAX_REQUEST = 1 << 30,
    CODES = 17,
    LATE_MS = 2,
    KEEP_MS = 1000, /* or late calls would cost both sides a connection each */
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
    sx_buf request; /* in JSON, or the message of gRPC */
    int64_t begin_ns, count_ns, end_ns;
    int64_t deadline_ns;
    pthread_mutex_t mutex; /* guards all below */
    uint64_t arrivals;
    double next_s; /* of the next arrival, since begin_ns */
    tally total;
    sx_status status;  /* the first error of a connection that could not be made */
    char example[300]; /* the text of the first error */
} load;

/* ---- Arrivals ---- */

/* The time of the next request; false: there is none any more. */
static bool next_arrival(load *l, int64_t *out_ns)
{
    pthread_mutex_lock(&l->mutex);
    const int64_t due_ns = l->begin_ns + (int64_t)(l->next_s * 1e9);
    const bool more = due_ns < l->end_ns && sx_stop_signal() == 0 && l->status == SX_OK;
    if (more) {
        const uint64_t n = l->arrivals++;
        double distance = 1;
        if (strcmp(l->o->arrivals, "poisson") == 0) {
            const sx_u32x2 bits = sx_threefry2x32((sx_u32x2){(uint32_t)l->o->seed, 0x62656e63},
                                                  (sx_u32x2){(uint32_t)n, (uint32_t)(n >> 32)});
            distance = -log(((double)bits.a + 0.5) * 0x1p-32); /* exponential, of mean 1 */
        }
        l->next_s += distance / l->o->rate;
    }
    pthread_mutex_unlock(&l->mutex);
    *out_ns = due_ns;
    return more;
}

static void wait_until(int64_t ns)
{
    const struct timespec due = sx_timespec_of(ns);
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, NULL) == EINTR &&
           sx_stop_signal() == 0) {
    }
}

/* ---- Connections ---- */

static sx_status send_one(load *l, sx_client *client, sx_buf *answer)
{
    const sx_bytes request = {sx_buf_text(&l->request), l->request.size};
    if (l->call.protocol == SX_CLIENT_GRPC) {
        sx_buf_reset(answer);
        return sx_client_call(client, "/tensorflow.serving.PredictionService/Predict", request,
                              answer);
    }
    sx_client_answer *json = NULL;
    SX_TRY(sx_client_ask(client, SX_CLIENT_PREDICT, &l->model, request, &json));
    sx_client_answer_free(json);
    return SX_OK;
}

static void count(load *l, tally *own, int64_t due_ns, int64_t begun_ns, sx_status status)
{
    const int64_t latency_ns = sx_now_ns() - due_ns;
    const sx_code code = sx_status_code(status);
    if (due_ns >= l->count_ns) {
        own->codes[(int)code < CODES ? (int)code : SX_UNKNOWN]++;
        own->late += begun_ns - due_ns > LATE_MS * (int64_t)1000000;
        if (status == SX_OK) {
            sx_latencies_add(&own->latencies, latency_ns);
            own->good += latency_ns <= l->deadline_ns;
        }
    }
    if (status != SX_OK) {
        pthread_mutex_lock(&l->mutex);
        if (l->example[0] == '\0') {
            snprintf(l->example, sizeof(l->example), "%s", sx_status_message(status));
        }
        pthread_mutex_unlock(&l->mutex);
    }
    sx_status_free(status);
}

static void *run_connection(void *user)
{
    load *l = user;
    tally *own = sx_alloc(1, sizeof(*own));
    sx_client *client = NULL;
    sx_buf answer;
    int64_t due_ns;
    sx_buf_init(&answer, SIZE_MAX / 4);
    sx_status status =
        own != NULL ? sx_client_open(l->url, &l->call, &client) : sx_no_memory("for a connection");
    while (status == SX_OK && next_arrival(l, &due_ns)) {
        wait_until(due_ns);
        const int64_t begun_ns = sx_now_ns();
        count(l, own, due_ns, begun_ns, send_one(l, client, &answer));
    }
    pthread_mutex_lock(&l->mutex);
    if (own != NULL) {
        sx_latencies_merge(&l->total.latencies, &own->latencies);
        l->total.good += own->good;
        l->total.late += own->late;
        for (int i = 0; i < CODES; i++) {
            l->total.codes[i] += own->codes[i];
        }
    }
    if (l->status == SX_OK) {
        l->status = status;
    } else {
        sx_status_free(status);
    }
    pthread_mutex_unlock(&l->mutex);
    sx_client_close(client);
    sx_buf_deinit(&answer);
    sx_free(own);
    return NULL;
}

static sx_status send_all(load *l)
{
    const options *o = l->o;
    pthread_t *threads = sx_alloc((size_t)o->connections, sizeof(threads[0]));
    int started = 0, error = 0;
    if (threads == NULL) {
        return sx_no_memory("for %lld connections", (long long)o->connections);
    }
    l->begin_ns = sx_now_ns() + 10000000;
    l->count_ns = l->begin_ns + (int64_t)(o->warmup * 1e9);
    l->end_ns = l->count_ns + (int64_t)(o->duration * 1e9);
    while (started < o->connections && error == 0) {
        error = sx_thread_create(&threads[started], NULL, run_connection, l);
        started += error == 0;
    }
    for (int i = 0; i < started; i++) {
        pthread_join(threads[i], NULL);
    }
    sx_free(threads);
    if (started == 0) {
        return sx_error(SX_RESOURCE_EXHAUSTED, "no connection can be started: %s", strerror(error));
    }
    sx_status status = l->status;
    l->status = SX_OK;
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
           (double)sum_of(t) / seconds, (double)t->good / seconds);
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
           (double)t->good / seconds);
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
        printf("%llu request%s began late: all connections (%lld) were busy, or this machine was\n",
               (unsigned long long)t->late, t->late == 1 ? "" : "s", (long long)l->o->connections);
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
             (double)l->deadline_ns / 1e6, (double)t->good / seconds);
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
    sx_status status = sx_call_args_request(inv, &l->o->call_args, "instances", &json);
    const sx_bytes request = {sx_buf_text(&json), json.size};
    if (status == SX_OK && l->call.protocol == SX_CLIENT_GRPC) {
        status = sx_client_open(l->url, &l->call, &client);
        if (status == SX_OK) {
            status = sx_client_prepare(client, &l->model, request, &l->request);
        }
    } else if (status == SX_OK) {
        sx_buf_append(&l->request, request.data, request.size);
        status = sx_buf_status(&l->request);
    }
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
    l->call.protocol = strcmp(o->call_args.protocol, "grpc") == 0 ? SX_CLIENT_GRPC : SX_CLIENT_REST;
    l->call.timeout_ms = o->deadline > 0 ? o->deadline : l->call.timeout_ms;
    l->call.retries = -1;
    l->call.keep_ms = KEEP_MS;
    l->deadline_ns = l->call.timeout_ms * 1000000;
    sx_buf_init(&l->request, MAX_REQUEST);
    pthread_mutex_init(&l->mutex, NULL);
    sx_status status = prepare(inv, l);
    if (status == SX_OK) {
        status = send_all(l);
    }
    if (status == SX_OK) {
        (o->json ? print_json : print_text)(l, o->duration);
        status = o->svg != NULL ? write_svg(l, o->duration) : SX_OK;
    }
    if (status == SX_OK && l->total.latencies.count == 0) {
        status = sx_error(SX_UNAVAILABLE, "no request was answered: %s", l->example);
    }
    pthread_mutex_destroy(&l->mutex);
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
