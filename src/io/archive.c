#include "io/archive.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <locale.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/checked.h"
#include "base/late_library.h"
#include "base/memory.h"
#include "io/compress.h"
#include "io/file.h"
#include "io/path.h"

enum { READ_BLOCK = 1 << 18, PIECE_BYTES = 1 << 16, MAGIC_BYTES = 8 };

struct sx_archive {
    struct archive *lib;
    locale_t utf8; /* for reading headers; 0 if the system has no such locale */
    char *name;
    sx_archive_limits limits;
    uint64_t members, total_bytes;
    uint64_t member_bytes; /* read from the current member */
};

static const sx_archive_limits default_limits = {.max_members = (uint64_t)1 << 24,
                                                 .max_member_bytes = (uint64_t)16 << 30};
static const uint64_t default_ratio = 100, least_total_bytes = (uint64_t)256 << 20;

/* ---- libarchive ---- */

/* Its functions that are used. It brings libraries of its own (libxml2, Nettle, five kinds of
 * compression), so it is loaded with the first archive. */
#define FUNCTIONS(ROW)                   \
    ROW(archive_entry_filetype)          \
    ROW(archive_entry_hardlink)          \
    ROW(archive_entry_pathname)          \
    ROW(archive_entry_pathname_utf8)     \
    ROW(archive_entry_size)              \
    ROW(archive_entry_size_is_set)       \
    ROW(archive_entry_sparse_count)      \
    ROW(archive_errno)                   \
    ROW(archive_error_string)            \
    ROW(archive_filter_bytes)            \
    ROW(archive_filter_count)            \
    ROW(archive_format)                  \
    ROW(archive_read_append_filter)      \
    ROW(archive_read_data)               \
    ROW(archive_read_data_block)         \
    ROW(archive_read_free)               \
    ROW(archive_read_new)                \
    ROW(archive_read_next_header)        \
    ROW(archive_read_open_filename)      \
    ROW(archive_read_open_memory)        \
    ROW(archive_read_support_format_tar) \
    ROW(archive_read_support_format_zip_seekable)

static struct {
#define ROW(name) __typeof__(&name) name;
    FUNCTIONS(ROW)
#undef ROW
} la;

static sx_status load_libarchive(void)
{
    static const sx_late_function functions[] = {
#define ROW(name) {#name, &la.name},
        FUNCTIONS(ROW)
#undef ROW
    };
    static sx_late_library library = {.soname = "libarchive.so.13",
                                      .origin = "Debian's package libarchive13",
                                      .functions = functions,
                                      .function_count = SX_COUNT(functions)};
    return sx_late_library_load(&library);
}

/* ---- Opening ---- */

static sx_status lib_error(const sx_archive *archive, const char *what)
{
    const char *said = la.archive_error_string(archive->lib);
    return sx_error(la.archive_errno(archive->lib) == ENOMEM ? SX_RESOURCE_EXHAUSTED : SX_DATA_LOSS,
                    "%s: %s: %s", archive->name, what, said != NULL ? said : "unknown reason");
}

/* Only these formats and filters: each is a parser that untrusted bytes could attack. A zip is read
 * by its directory, at the end: one that was cut off must not pass for a smaller one. The filter is
 * set by the file's first bytes: libarchive would add any number of them, one inside the other, and
 * no limit would count what the outer ones decompress. */
static bool enable_formats(struct archive *lib, sx_bytes head)
{
    static const struct {
        const char *magic;
        size_t bytes;
        int filter;
    } filters[] = {
        {"\x1f\x8b", 2, ARCHIVE_FILTER_GZIP},
        {"BZh", 3, ARCHIVE_FILTER_BZIP2},
        {"\xfd"
         "7zXZ\0",
         6, ARCHIVE_FILTER_XZ},
        {"\x28\xb5\x2f\xfd", 4, ARCHIVE_FILTER_ZSTD},
    };
    for (size_t i = 0; i < SX_COUNT(filters); i++) {
        if (head.size >= filters[i].bytes &&
            memcmp(head.data, filters[i].magic, filters[i].bytes) == 0 &&
            la.archive_read_append_filter(lib, filters[i].filter) != ARCHIVE_OK) {
            return false;
        }
    }
    return la.archive_read_support_format_tar(lib) == ARCHIVE_OK &&
           la.archive_read_support_format_zip_seekable(lib) == ARCHIVE_OK;
}

/* `bytes`: the size of the archive; `head`: its first bytes. */
static sx_status create(const char *name, uint64_t bytes, sx_bytes head,
                        const sx_archive_limits *limits, sx_archive **out_archive)
{
    static const char zip_end[] = "PK\5\6"; /* a zip without members starts with its end */
    if (bytes == 0) {
        return sx_error(SX_INVALID_ARGUMENT, "%s is an empty file, not an archive", name);
    }
    if (head.size >= 4 && memcmp(head.data, zip_end, 4) == 0) {
        return sx_error(SX_INVALID_ARGUMENT, "%s is a .zip archive without files", name);
    }
    SX_TRY(load_libarchive(), "%s", name);
    sx_archive *archive = sx_alloc(1, sizeof *archive);
    if (archive == NULL) {
        return sx_no_memory("opening %s", name);
    }
    archive->limits = limits != NULL ? *limits : default_limits;
    uint64_t *values[] = {&archive->limits.max_members, &archive->limits.max_member_bytes,
                          &archive->limits.max_total_bytes};
    uint64_t total = bytes > UINT64_MAX / default_ratio ? UINT64_MAX : default_ratio * bytes;
    const uint64_t defaults[] = {default_limits.max_members, default_limits.max_member_bytes,
                                 SX_MAX(total, least_total_bytes)};
    for (size_t i = 0; i < SX_COUNT(values); i++) {
        *values[i] = *values[i] != 0 ? *values[i] : defaults[i];
    }
    archive->name = sx_strdup(name);
    archive->utf8 = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
    archive->lib = la.archive_read_new();
    if (archive->name == NULL || archive->lib == NULL || !enable_formats(archive->lib, head)) {
        sx_archive_close(archive);
        return sx_no_memory("opening %s", name);
    }
    *out_archive = archive;
    return SX_OK;
}

sx_status sx_archive_open(const char *path, const sx_archive_limits *limits,
                          sx_archive **out_archive)
{
    sx_archive *archive = NULL;
    struct stat info;
    char head[MAGIC_BYTES];
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a named pipe must not block */
    if (fd < 0 || fstat(fd, &info) != 0) {
        sx_status status = sx_errno_status(errno, "open", path);
        if (fd >= 0) {
            close(fd);
        }
        return status;
    }
    const ssize_t got = S_ISREG(info.st_mode) ? pread(fd, head, sizeof(head), 0) : 0;
    close(fd);
    if (!S_ISREG(info.st_mode)) {
        return sx_error(SX_INVALID_ARGUMENT, "cannot open %s: expected a regular file", path);
    }
    SX_TRY(create(path, (uint64_t)info.st_size, (sx_bytes){head, (size_t)SX_MAX(got, (ssize_t)0)},
                  limits, &archive));
    if (la.archive_read_open_filename(archive->lib, path, READ_BLOCK) != ARCHIVE_OK) {
        sx_status status = lib_error(archive, "cannot open the archive");
        sx_archive_close(archive);
        return status;
    }
    *out_archive = archive;
    return SX_OK;
}

sx_status sx_archive_open_bytes(sx_bytes bytes, const char *name, const sx_archive_limits *limits,
                                sx_archive **out_archive)
{
    sx_archive *archive = NULL;
    SX_TRY(create(name, bytes.size, bytes, limits, &archive));
    if (la.archive_read_open_memory(archive->lib, bytes.data, bytes.size) != ARCHIVE_OK) {
        sx_status status = lib_error(archive, "cannot open the archive");
        sx_archive_close(archive);
        return status;
    }
    *out_archive = archive;
    return SX_OK;
}

void sx_archive_close(sx_archive *archive)
{
    if (archive != NULL) {
        la.archive_read_free(archive->lib);
        if (archive->utf8 != (locale_t)0) {
            freelocale(archive->utf8);
        }
        sx_free(archive->name);
        sx_free(archive);
    }
}

/* ---- Members ---- */

/* libarchive converts names to the locale's character set and fails if that is not possible, so ask
 * for UTF-8 first. */
static const char *raw_name(struct archive_entry *entry)
{
    const char *name = la.archive_entry_pathname_utf8(entry);
    return name != NULL ? name : la.archive_entry_pathname(entry);
}

/* The name without a leading "./"; NULL if it is unsafe. */
static const char *safe_name(struct archive_entry *entry)
{
    const char *name = raw_name(entry);
    while (name != NULL && name[0] == '.' && name[1] == '/') {
        name += 2;
    }
    return name != NULL && sx_path_is_safe(name, strlen(name)) ? name : NULL;
}

static int64_t data_offset(const sx_archive *archive, struct archive_entry *entry)
{
    bool tar = (la.archive_format(archive->lib) & ARCHIVE_FORMAT_BASE_MASK) == ARCHIVE_FORMAT_TAR;
    bool plain = la.archive_filter_count(archive->lib) == 1; /* libarchive counts the reader */
    bool sparse = la.archive_entry_sparse_count(entry) > 0;
    return tar && plain && !sparse ? la.archive_filter_bytes(archive->lib, 0) : -1;
}

static sx_status over_total(const sx_archive *archive)
{
    sx_buf limit;
    sx_buf_init(&limit, 64);
    sx_buf_put_size(&limit, (double)archive->limits.max_total_bytes);
    sx_status status = sx_error(
        SX_RESOURCE_EXHAUSTED,
        "%s: decompresses to more than %s (default limit: %d times the "
        "archive's size, at least %d MiB); if that is right, raise the limit with "
        "--max-unpacked-size",
        archive->name, sx_buf_text(&limit), (int)default_ratio, (int)(least_total_bytes >> 20));
    sx_buf_deinit(&limit);
    return status;
}

/* Whether the archive is a compressed tar, of which every byte must be decompressed. */
static bool is_compressed_tar(const sx_archive *archive)
{
    return (la.archive_format(archive->lib) & ARCHIVE_FORMAT_BASE_MASK) == ARCHIVE_FORMAT_TAR &&
           la.archive_filter_count(archive->lib) > 1; /* libarchive counts the reader */
}

/* Passes the rest of the current member and counts it: libarchive would decompress any amount. */
static sx_status skip_rest(sx_archive *archive)
{
    const void *block;
    size_t size;
    la_int64_t offset;
    int rc = ARCHIVE_OK;
    while (archive->members > 0 && is_compressed_tar(archive) && rc == ARCHIVE_OK) {
        if ((uint64_t)la.archive_filter_bytes(archive->lib, 0) > archive->limits.max_total_bytes) {
            return over_total(archive);
        }
        rc = la.archive_read_data_block(archive->lib, &block, &size, &offset);
    }
    return rc == ARCHIVE_OK || rc == ARCHIVE_EOF || rc == ARCHIVE_WARN
               ? SX_OK
               : lib_error(archive, "the archive is damaged");
}

/* libarchive converts the names that a zip marks as UTF-8 to the locale's character set while it
 * reads the header, and drops a name that has no form in it. Only this thread's locale changes. */
static sx_status next_entry(sx_archive *archive, struct archive_entry **out_entry)
{
    SX_TRY(skip_rest(archive));
    locale_t before = uselocale(archive->utf8); /* 0 changes nothing */
    int rc = la.archive_read_next_header(archive->lib, out_entry);
    uselocale(before);
    if (rc == ARCHIVE_EOF) {
        *out_entry = NULL;
        return SX_OK;
    }
    if (rc != ARCHIVE_OK && rc != ARCHIVE_WARN) {
        return lib_error(archive, "the archive is damaged");
    }
    if (++archive->members > archive->limits.max_members) {
        return sx_error(SX_RESOURCE_EXHAUSTED, "%s has more than %" PRIu64 " members",
                        archive->name, archive->limits.max_members);
    }
    return SX_OK;
}

sx_status sx_archive_next(sx_archive *archive, sx_archive_member *out_member, bool *out_more)
{
    for (;;) {
        struct archive_entry *entry = NULL;
        SX_TRY(next_entry(archive, &entry));
        if (entry == NULL) {
            *out_more = false;
            return SX_OK;
        }
        if (la.archive_entry_filetype(entry) != AE_IFREG ||
            la.archive_entry_hardlink(entry) != NULL) {
            continue;
        }
        const char *name = safe_name(entry);
        if (name == NULL) {
            const char *raw = raw_name(entry);
            return sx_error(SX_INVALID_ARGUMENT,
                            "%s: member %" PRIu64 " has an unsafe name: '%.200s'", archive->name,
                            archive->members, raw != NULL ? raw : "");
        }
        archive->member_bytes = 0;
        *out_member = (sx_archive_member){
            name, la.archive_entry_size_is_set(entry) ? (uint64_t)la.archive_entry_size(entry) : 0,
            data_offset(archive, entry)};
        *out_more = true;
        return SX_OK;
    }
}

/* Reads the next piece of the current member, within the limits; *out_n = 0 at its end. */
static sx_status read_piece(sx_archive *archive, void *buffer, size_t capacity, size_t *out_n)
{
    la_ssize_t n = la.archive_read_data(archive->lib, buffer, capacity);
    if (n < 0) {
        return lib_error(archive, "damaged member");
    }
    archive->member_bytes += (uint64_t)n;
    archive->total_bytes += (uint64_t)n;
    if (archive->member_bytes > archive->limits.max_member_bytes) {
        return sx_error(SX_RESOURCE_EXHAUSTED,
                        "%s: member %" PRIu64 " has more than %" PRIu64 " bytes", archive->name,
                        archive->members, archive->limits.max_member_bytes);
    }
    if (archive->total_bytes > archive->limits.max_total_bytes) {
        return over_total(archive);
    }
    *out_n = (size_t)n;
    return SX_OK;
}

uint64_t sx_archive_room(const sx_archive *archive)
{
    return SX_MIN(archive->limits.max_member_bytes - archive->member_bytes,
                  archive->limits.max_total_bytes - archive->total_bytes);
}

sx_status sx_archive_read_some(sx_archive *archive, size_t most, sx_buf *out)
{
    for (size_t n = 1; n > 0 && most > 0; most -= n) {
        size_t before = out->size;
        const size_t piece = SX_MIN(most, (size_t)PIECE_BYTES);
        void *space = sx_buf_extend(out, piece);
        if (space == NULL) {
            return sx_buf_status(out);
        }
        n = 0;
        sx_status status = read_piece(archive, space, piece, &n);
        out->size = before + n;
        out->data[out->size] = '\0';
        SX_TRY(status);
    }
    return SX_OK;
}

sx_status sx_archive_read(sx_archive *archive, sx_buf *out)
{
    return sx_archive_read_some(archive, SIZE_MAX, out);
}

/* ---- Extracting ---- */

/* Opens the directory `name[0 .. length)` in `parent`, creating it if missing; follows no link. */
static int enter_dir(int parent, const char *name, size_t length)
{
    char part[256];
    if (length >= sizeof part) {
        errno = ENAMETOOLONG;
        return -1;
    }
    memcpy(part, name, length);
    part[length] = '\0';
    if (mkdirat(parent, part, 0777) != 0 && errno != EEXIST) {
        return -1;
    }
    return openat(parent, part, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* Opens the member's directory, component by component, and the file in it. */
static int open_below(int root, const char *name)
{
    int dir = dup(root);
    const char *part = name;
    for (const char *slash = strchr(part, '/'); slash != NULL && dir >= 0;
         slash = strchr(part, '/')) {
        int next = enter_dir(dir, part, (size_t)(slash - part));
        int error = errno;
        close(dir);
        errno = error;
        dir = next;
        part = slash + 1;
    }
    if (dir < 0) {
        return -1;
    }
    /* Remove an existing file first: opening it could follow a link. */
    unlinkat(dir, part, 0);
    int fd = openat(dir, part, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    int error = errno;
    close(dir);
    errno = error;
    return fd;
}

static sx_status write_piece(int fd, const char *data, size_t size, const char *name)
{
    while (size > 0) {
        ssize_t n = write(fd, data, size);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            return sx_errno_status(errno, "write", name);
        }
        data += n;
        size -= (size_t)n;
    }
    return SX_OK;
}

static sx_status unpack_member(sx_archive *archive, int root, const char *name, char *buffer)
{
    int fd = open_below(root, name);
    if (fd < 0) {
        return sx_errno_status(errno, "unpack", name);
    }
    sx_status status = SX_OK;
    for (size_t n = 1; n > 0 && status == SX_OK;) {
        n = 0;
        status = read_piece(archive, buffer, PIECE_BYTES, &n);
        if (status == SX_OK) {
            status = write_piece(fd, buffer, n, name);
        }
    }
    if (close(fd) != 0 && status == SX_OK) {
        status = sx_errno_status(errno, "write", name);
    }
    return status;
}

static sx_status unpack_all(sx_archive *archive, int root, sx_archive_progress_fn *progress,
                            void *user, char *buffer)
{
    for (uint64_t count = 1;; count++) {
        sx_archive_member member = {0};
        bool more = false;
        SX_TRY(sx_archive_next(archive, &member, &more));
        if (!more) {
            return SX_OK;
        }
        SX_TRY(unpack_member(archive, root, member.name, buffer), "extracting %s", archive->name);
        if (progress != NULL && !progress(user, count, archive->total_bytes)) {
            return sx_error(SX_CANCELLED, "extracting %s was cancelled", archive->name);
        }
    }
}

sx_status sx_archive_unpack(const char *path, const char *dir, const sx_archive_limits *limits,
                            sx_archive_progress_fn *progress, void *user)
{
    sx_archive *archive = NULL;
    char *buffer = NULL;
    int root = -1;
    SX_TRY(sx_dir_create(dir));
    sx_status status = sx_archive_open(path, limits, &archive);
    if (status != SX_OK) {
        return status;
    }
    root = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (root < 0) {
        status = sx_errno_status(errno, "open", dir);
        goto done;
    }
    buffer = sx_alloc(PIECE_BYTES, 1);
    if (buffer == NULL) {
        status = sx_no_memory("extracting %s", path);
        goto done;
    }
    status = unpack_all(archive, root, progress, user, buffer);
done:
    if (root >= 0) {
        close(root);
    }
    sx_free(buffer);
    sx_archive_close(archive);
    return status;
}
