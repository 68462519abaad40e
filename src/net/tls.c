/* Certificates and TLS settings; see tls.h. */
#include "net/tls.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/thread.h"
#include "net/tls_socket.h"

enum { LOOK_MS = 1000 }; /* between looks at the files */

/* What tells one content of a file from another, without reading it; zero if it is missing. */
struct stamp {
    dev_t device;
    ino_t inode;
    off_t size;
    struct timespec changed;
};

struct sx_tls {
    sx_tls_load_fn *load;
    void *user;
    BIO_METHOD *socket;
    pthread_mutex_t mutex;
    pthread_cond_t stopped;
    bool stopping;
    SSL_CTX *context;              /* guarded by the mutex */
    char *files[SX_TLS_MAX_FILES]; /* of the latest look, also if it failed */
    struct stamp stamps[SX_TLS_MAX_FILES];
    pthread_t thread;
    bool started;
};

bool sx_tls_accept(sx_tls *tls, sx_transport *transport)
{
    pthread_mutex_lock(&tls->mutex);
    const bool begun = sx_tls_socket_begin(tls->context, tls->socket, transport);
    pthread_mutex_unlock(&tls->mutex);
    if (begun) {
        SSL_set_accept_state(transport->tls);
    }
    return begun;
}

/* ---- Loading ---- */

/* INVALID_ARGUMENT with the library's reason, which is taken from its queue. */
static sx_status refused(const char *what)
{
    const unsigned long error = ERR_peek_last_error();
    const char *reason = error != 0 ? ERR_reason_error_string(error) : NULL;
    ERR_clear_error();
    return sx_error(SX_INVALID_ARGUMENT, "%s: %s", what,
                    reason != NULL ? reason : "no PEM block found");
}

/* Instead of a prompt on the terminal. */
static int no_password(char *out, int size, int writing, void *user)
{
    (void)out;
    (void)size;
    (void)writing;
    (void)user;
    return -1;
}

static sx_status use_key(SSL_CTX *context, const char *text)
{
    BIO *bio = text != NULL ? BIO_new_mem_buf(text, -1) : NULL;
    EVP_PKEY *key = bio != NULL ? PEM_read_bio_PrivateKey(bio, NULL, no_password, NULL) : NULL;
    sx_status status = key == NULL ? refused("the server's key is unusable") : SX_OK;
    if (status == SX_OK && SSL_CTX_use_PrivateKey(context, key) != 1) {
        status = refused("the server's key does not belong to its certificate");
    }
    EVP_PKEY_free(key);
    BIO_free(bio);
    return status;
}

/* Passes each certificate of a text to `take`, which returns 1 if it could use it; none at all is
 * an error. */
static sx_status each_certificate(SSL_CTX *context, const char *text, const char *what,
                                  int (*take)(SSL_CTX *context, X509 *certificate, int index))
{
    BIO *bio = BIO_new_mem_buf(text, -1);
    int count = 0;
    bool taken = bio != NULL;
    while (taken) {
        X509 *certificate = PEM_read_bio_X509(bio, NULL, no_password, NULL);
        if (certificate == NULL) {
            break;
        }
        taken = take(context, certificate, count) == 1;
        X509_free(certificate);
        count += taken;
    }
    BIO_free(bio);
    const bool at_end = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
    if (!taken || count == 0 || !at_end) {
        return refused(what);
    }
    ERR_clear_error();
    return SX_OK;
}

static int take_own(SSL_CTX *context, X509 *certificate, int index)
{
    return index == 0 ? SSL_CTX_use_certificate(context, certificate)
                      : (int)SSL_CTX_add1_chain_cert(context, certificate);
}

static int take_client_ca(SSL_CTX *context, X509 *certificate, int index)
{
    (void)index;
    return X509_STORE_add_cert(SSL_CTX_get_cert_store(context), certificate) == 1 &&
           SSL_CTX_add_client_CA(context, certificate) == 1;
}

static int choose_protocol(SSL *ssl, const unsigned char **out, unsigned char *out_size,
                           const unsigned char *offered, unsigned int offered_size, void *user)
{
    static const unsigned char ours[] = "\x02h2\x08http/1.1";
    unsigned char *chosen = NULL;
    (void)ssl;
    (void)user;
    if (SSL_select_next_proto(&chosen, out_size, ours, sizeof(ours) - 1, offered, offered_size) !=
        OPENSSL_NPN_NEGOTIATED) {
        return SSL_TLSEXT_ERR_ALERT_FATAL;
    }
    *out = chosen;
    return SSL_TLSEXT_ERR_OK;
}

static sx_status set_up(SSL_CTX *context, const sx_tls_material *material)
{
    static const unsigned char id[] = "sextant";
    SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
    SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
                                     SSL_OP_CIPHER_SERVER_PREFERENCE);
    SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                  SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_session_id_context(context, id, sizeof(id) - 1);
    SSL_CTX_set_alpn_select_cb(context, choose_protocol, NULL);
    if (material->certificates == NULL) {
        return sx_error(SX_INVALID_ARGUMENT, "the server's certificate is missing");
    }
    SX_TRY(each_certificate(context, material->certificates, "the server's certificate is unusable",
                            take_own));
    SX_TRY(use_key(context, material->key));
    if (SSL_CTX_check_private_key(context) != 1) {
        return refused("the server's key does not belong to its certificate");
    }
    if (!material->verify_client) {
        return SX_OK;
    }
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
    if (material->client_ca != NULL) {
        return each_certificate(context, material->client_ca,
                                "the authority of clients is unusable", take_client_ca);
    }
    return SSL_CTX_set_default_verify_paths(context) == 1
               ? SX_OK
               : refused("the system's certificate authorities are unusable");
}

static struct stamp look(const char *path)
{
    struct stat info;
    if (path == NULL || stat(path, &info) != 0) {
        return (struct stamp){0};
    }
    return (struct stamp){info.st_dev, info.st_ino, info.st_size, info.st_mtim};
}

static bool same(const struct stamp *a, const struct stamp *b)
{
    return a->device == b->device && a->inode == b->inode && a->size == b->size &&
           a->changed.tv_sec == b->changed.tv_sec && a->changed.tv_nsec == b->changed.tv_nsec;
}

/* Loads the material and, if it is sound, puts it in place of the current one. The files' stamps
 * are taken before: a change meanwhile is seen by the next look. */
static sx_status load(sx_tls *tls)
{
    sx_tls_material material = {0};
    sx_status status = tls->load(tls->user, &material);
    for (int i = 0; i < SX_TLS_MAX_FILES; i++) {
        const bool watched = tls->files[i] != NULL && material.files[i] != NULL &&
                             strcmp(tls->files[i], material.files[i]) == 0;
        if (!watched) {
            tls->stamps[i] = look(material.files[i]);
        }
        sx_free(tls->files[i]);
        tls->files[i] = material.files[i];
    }
    SSL_CTX *context = status == SX_OK ? SSL_CTX_new(TLS_server_method()) : NULL;
    if (status == SX_OK && context == NULL) {
        status = sx_no_memory("for TLS");
    } else if (status == SX_OK) {
        status = sx_status_annotate(set_up(context, &material), __FILE__, __LINE__, "TLS of %s",
                                    tls->files[0] != NULL ? tls->files[0] : "the server");
    }
    sx_free(material.key);
    sx_free(material.certificates);
    sx_free(material.client_ca);
    if (status != SX_OK) {
        SSL_CTX_free(context);
        return status;
    }
    pthread_mutex_lock(&tls->mutex);
    SSL_CTX *before = tls->context;
    tls->context = context;
    pthread_mutex_unlock(&tls->mutex);
    SSL_CTX_free(before);
    return SX_OK;
}

static bool files_have_changed(sx_tls *tls)
{
    bool changed = false;
    for (int i = 0; i < SX_TLS_MAX_FILES; i++) {
        const struct stamp now = look(tls->files[i]);
        changed = changed || !same(&now, &tls->stamps[i]);
        tls->stamps[i] = now;
    }
    return changed;
}

static bool wait_for_stop(sx_tls *tls)
{
    const struct timespec deadline = sx_timespec_of(sx_now_ns() + LOOK_MS * (int64_t)1000000);
    int error = 0;
    pthread_mutex_lock(&tls->mutex);
    while (!tls->stopping && error == 0) {
        error = pthread_cond_clockwait(&tls->stopped, &tls->mutex, CLOCK_MONOTONIC, &deadline);
    }
    const bool stopping = tls->stopping;
    pthread_mutex_unlock(&tls->mutex);
    return stopping;
}

static void *watch(void *user)
{
    sx_tls *tls = user;
    while (!wait_for_stop(tls)) {
        if (!files_have_changed(tls)) {
            continue;
        }
        sx_status status = load(tls);
        if (status == SX_OK) {
            sx_log(SX_LOG_INFO, "TLS: loaded the certificates again");
        } else {
            sx_log(SX_LOG_WARN, "TLS: the certificates stay as they were: %s",
                   sx_status_message(status));
        }
        sx_status_free(status);
    }
    return NULL;
}

/* ---- Creation and destruction ---- */

sx_status sx_tls_create(sx_tls_load_fn *load_fn, void *user, sx_tls **out_tls)
{
    sx_tls *tls = sx_alloc(1, sizeof(*tls));
    if (tls == NULL) {
        return sx_no_memory("for TLS");
    }
    tls->load = load_fn;
    tls->user = user;
    pthread_mutex_init(&tls->mutex, NULL);
    pthread_cond_init(&tls->stopped, NULL);
    tls->socket = sx_tls_socket_method();
    sx_status status = tls->socket != NULL ? load(tls) : sx_no_memory("for TLS");
    const int error = status == SX_OK ? sx_thread_create(&tls->thread, NULL, watch, tls) : 0;
    if (error != 0) {
        status = sx_error(SX_RESOURCE_EXHAUSTED, "TLS: cannot start a thread: %s", strerror(error));
    }
    tls->started = status == SX_OK;
    if (status != SX_OK) {
        sx_tls_destroy(tls);
        return status;
    }
    *out_tls = tls;
    return SX_OK;
}

void sx_tls_destroy(sx_tls *tls)
{
    if (tls == NULL) {
        return;
    }
    if (tls->started) {
        pthread_mutex_lock(&tls->mutex);
        tls->stopping = true;
        pthread_cond_signal(&tls->stopped);
        pthread_mutex_unlock(&tls->mutex);
        pthread_join(tls->thread, NULL);
    }
    for (int i = 0; i < SX_TLS_MAX_FILES; i++) {
        sx_free(tls->files[i]);
    }
    SSL_CTX_free(tls->context);
    BIO_meth_free(tls->socket);
    pthread_mutex_destroy(&tls->mutex);
    pthread_cond_destroy(&tls->stopped);
    sx_free(tls);
}
