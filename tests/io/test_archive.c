#include "io/scratch.h"

#include <archive.h>
#include <archive_entry.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/archive.h"

struct member {
    const char *name;
    const char *content; /* NULL: a folder */
    const char *link;    /* a symbolic link's target */
};

enum format { TAR, TAR_GZ, ZIP };

static void make_archive(const char *path, enum format format, const struct member *members,
                         size_t count)
{
    struct archive *a = archive_write_new();
    assert_int_equal(
        format == ZIP ? archive_write_set_format_zip(a) : archive_write_set_format_pax(a), 0);
    if (format == TAR_GZ) {
        assert_int_equal(archive_write_add_filter_gzip(a), 0);
    }
    assert_int_equal(archive_write_open_filename(a, path), 0);
    for (size_t i = 0; i < count; i++) {
        const struct member *m = &members[i];
        struct archive_entry *entry = archive_entry_new();
        archive_entry_set_pathname(entry, m->name);
        archive_entry_set_perm(entry, 0644);
        size_t size = m->content != NULL ? strlen(m->content) : 0;
        if (m->link != NULL) {
            archive_entry_set_filetype(entry, AE_IFLNK);
            archive_entry_set_symlink(entry, m->link);
        } else {
            archive_entry_set_filetype(entry, m->content != NULL ? AE_IFREG : AE_IFDIR);
            archive_entry_set_size(entry, (la_int64_t)size);
        }
        assert_true(archive_write_header(a, entry) >= ARCHIVE_WARN); /* the locale cannot say it */
        if (size > 0) {
            assert_int_equal(archive_write_data(a, m->content, size), size);
        }
        archive_entry_free(entry);
    }
    assert_int_equal(archive_write_close(a), 0);
    archive_write_free(a);
}

static const struct member flowers[] = {
    {"flowers/", NULL, NULL},
    {"flowers/rose/1.jpg", "a rose", NULL},
    {"./flowers/tulip/2.jpg", "a tulip is longer", NULL},
    {"flowers/rose/link", NULL, "/etc/passwd"},
    {"flowers/daisy/empty", "", NULL},
    {"flowers/l\xc3\xb6wenzahn/3.jpg", "umlaut", NULL},
};
static const char *const names[] = {"flowers/rose/1.jpg", "flowers/tulip/2.jpg",
                                    "flowers/daisy/empty", "flowers/l\xc3\xb6wenzahn/3.jpg"};
static const char *const contents[] = {"a rose", "a tulip is longer", "", "umlaut"};
enum { FLOWERS = sizeof flowers / sizeof flowers[0] };

static void test_io_archive__reads_members_in_order(void **state)
{
    (void)state;
    for (int format = TAR; format <= ZIP; format++) {
        make_archive(scratch("a"), (enum format)format, flowers, FLOWERS);
        char *bytes = NULL;
        size_t size = 0;
        assert_ok(sx_file_read(scratch("a"), 1 << 20, &bytes, &size));
        sx_archive *archive = NULL;
        assert_ok(sx_archive_open(scratch("a"), NULL, &archive));
        sx_archive_member member = {0};
        bool more = false;
        for (int i = 0; i < 4; i++) {
            assert_ok(sx_archive_next(archive, &member, &more));
            assert_true(more);
            assert_string_equal(member.name, names[i]);
            sx_buf content;
            sx_buf_init(&content, 0);
            assert_int_equal(member.data_offset >= 0, format == TAR);
            if (member.data_offset >= 0) {
                assert_int_equal(member.size, strlen(contents[i]));
                assert_memory_equal(bytes + member.data_offset, contents[i], member.size);
            }
            assert_ok(sx_archive_read(archive, &content));
            assert_string_equal(sx_buf_text(&content), contents[i]);
            sx_buf_deinit(&content);
        }
        assert_ok(sx_archive_next(archive, &member, &more));
        assert_false(more);
        sx_archive_close(archive);
        sx_free(bytes);
    }
    sx_archive_close(NULL);
}

static void test_io_archive__members_need_not_be_read(void **state)
{
    (void)state;
    make_archive(scratch("a"), TAR, flowers, FLOWERS);
    sx_archive *archive = NULL;
    assert_ok(sx_archive_open(scratch("a"), NULL, &archive));
    bool more = true;
    int count = 0;
    while (more) {
        sx_archive_member member;
        assert_ok(sx_archive_next(archive, &member, &more));
        count += more;
    }
    assert_int_equal(count, 4);
    sx_archive_close(archive);
}

static bool count_calls(void *user, uint64_t members, uint64_t bytes)
{
    (void)bytes;
    *(uint64_t *)user = members;
    return members < 3;
}

static void test_io_archive__unpacks(void **state)
{
    (void)state;
    make_archive(scratch("a"), TAR_GZ, flowers, FLOWERS);
    for (int round = 0; round < 2; round++) { /* once more: files are replaced */
        assert_ok(sx_archive_unpack(scratch("a"), scratch("out/dir"), NULL, NULL, NULL));
        for (int i = 0; i < 4; i++) {
            char path[300];
            snprintf(path, sizeof path, "out/dir/%s", names[i]);
            assert_file(scratch(path), contents[i], strlen(contents[i]));
        }
        assert_int_equal(count_entries(scratch("out/dir/flowers/rose")), 1);
    }
    uint64_t members = 0;
    assert_error(sx_archive_unpack(scratch("a"), scratch("x"), NULL, count_calls, &members),
                 SX_CANCELLED, "cancelled");
    assert_int_equal(members, 3);
}

static void test_io_archive__names_stay_inside(void **state)
{
    (void)state;
    static const char *const bad[] = {"../x",   "/x",       "a/../../x", "a/..",   "..",
                                      "a//b/x", "a\\..\\x", "a\nb",      "./../x", ".//x"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        for (int format = TAR; format <= ZIP; format += ZIP - TAR) {
            struct member member = {bad[i], "evil", NULL};
            make_archive(scratch("a"), (enum format)format, &member, 1);
            assert_error(sx_archive_unpack(scratch("a"), scratch("in/out"), NULL, NULL, NULL),
                         SX_INVALID_ARGUMENT, "unsafe name");
            assert_int_equal(count_entries(scratch("in/out")), 0);
            assert_int_equal(count_entries(scratch("in")), 1);
            assert_int_equal(count_entries(scratch_dir), 2);
        }
    }
}

/* A link that lies in the folder already must not lead out of it. */
static void test_io_archive__links_are_not_followed(void **state)
{
    (void)state;
    assert_ok(sx_dir_create(scratch("out")));
    assert_ok(sx_dir_create(scratch("elsewhere")));
    write_file(scratch("victim"), "old", 3);
    assert_int_equal(symlink(scratch("elsewhere"), scratch("out/dir")), 0);
    assert_int_equal(symlink(scratch("victim"), scratch("out/file")), 0);
    const struct member through_dir = {"dir/x", "evil", NULL};
    make_archive(scratch("a"), TAR, &through_dir, 1);
    assert_error(sx_archive_unpack(scratch("a"), scratch("out"), NULL, NULL, NULL), SX_NOT_FOUND,
                 "dir/x");
    assert_int_equal(count_entries(scratch("elsewhere")), 0);
    const struct member through_file = {"file", "new", NULL};
    make_archive(scratch("a"), TAR, &through_file, 1);
    assert_ok(sx_archive_unpack(scratch("a"), scratch("out"), NULL, NULL, NULL));
    assert_file(scratch("victim"), "old", 3);
    assert_file(scratch("out/file"), "new", 3);
}

static void test_io_archive__limits(void **state)
{
    (void)state;
    make_archive(scratch("a"), ZIP, flowers, FLOWERS);
    sx_archive_limits few = {.max_members = 2}, small = {.max_member_bytes = 10},
                      total = {.max_total_bytes = 20};
    assert_error(sx_archive_unpack(scratch("a"), scratch("o"), &few, NULL, NULL),
                 SX_RESOURCE_EXHAUSTED, "more than 2 members");
    assert_error(sx_archive_unpack(scratch("a"), scratch("o"), &small, NULL, NULL),
                 SX_RESOURCE_EXHAUSTED, "more than 10 bytes");
    assert_error(sx_archive_unpack(scratch("a"), scratch("o"), &total, NULL, NULL),
                 SX_RESOURCE_EXHAUSTED, "decompresses to more than 20 bytes");
}

/* Names with non-ASCII characters that a zip marks as UTF-8, as Python's zipfile does. */
static void test_io_archive__names_marked_as_utf8(void **state)
{
    (void)state;
    char command[512];
    snprintf(command, sizeof command,
             "python3 -c 'import sys, zipfile; zipfile.ZipFile(sys.argv[1], \"w\").writestr("
             "\"rose/bl\\u00fcte\\U0001f33a.jpg\", b\"a rose\")' %s",
             scratch("marked.zip"));
    assert_int_equal(system(command), 0);
    sx_archive *archive = NULL;
    sx_archive_member member;
    bool more = false;
    assert_ok(sx_archive_open(scratch("marked.zip"), NULL, &archive));
    assert_ok(sx_archive_next(archive, &member, &more));
    assert_true(more);
    assert_string_equal(member.name, "rose/bl\xc3\xbcte\xf0\x9f\x8c\xba.jpg");
    sx_archive_close(archive);
}

/* An archive of zeros: 9 members of 32 MiB in 0.3 MB. */
static void test_io_archive__a_bomb_meets_the_default_limit(void **state)
{
    (void)state;
    enum { MEMBERS = 9, MEMBER_BYTES = 32 << 20 };
    char *zeros = sx_alloc(MEMBER_BYTES + 1, 1), *bytes = NULL;
    struct archive *lib = archive_write_new();
    struct archive_entry *entry = archive_entry_new();
    size_t size = 0;
    assert_non_null(zeros);
    assert_int_equal(archive_write_set_format_zip(lib), ARCHIVE_OK);
    assert_int_equal(archive_write_set_options(lib, "zip:compression-level=1"), ARCHIVE_OK);
    assert_int_equal(archive_write_open_filename(lib, scratch("bomb")), ARCHIVE_OK);
    for (int i = 0; i < MEMBERS; i++) {
        char name[32];
        snprintf(name, sizeof name, "a/%d.jpg", i);
        archive_entry_clear(entry);
        archive_entry_set_pathname(entry, name);
        archive_entry_set_filetype(entry, AE_IFREG);
        archive_entry_set_perm(entry, 0644);
        archive_entry_set_size(entry, MEMBER_BYTES);
        assert_int_equal(archive_write_header(lib, entry), ARCHIVE_OK);
        assert_int_equal(archive_write_data(lib, zeros, MEMBER_BYTES), MEMBER_BYTES);
    }
    assert_int_equal(archive_write_close(lib), ARCHIVE_OK);
    archive_entry_free(entry);
    archive_write_free(lib);
    sx_free(zeros);
    assert_ok(sx_file_read(scratch("bomb"), 2 << 20, &bytes, &size)); /* less than 256 MiB / 100 */
    static const struct {
        uint64_t limit;
        int whole_members;
    } rows[] = {
        {0, 8}, {(uint64_t)MEMBERS * MEMBER_BYTES - 1, 8}, {(uint64_t)MEMBERS * MEMBER_BYTES, 9}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const sx_archive_limits limits = {.max_total_bytes = rows[i].limit};
        sx_archive *archive = NULL;
        sx_archive_member member;
        bool more = true;
        int whole = 0;
        sx_buf data;
        sx_buf_init(&data, 2 * MEMBER_BYTES);
        assert_ok(sx_archive_open_bytes((sx_bytes){bytes, size}, "bomb", &limits, &archive));
        sx_status status = sx_archive_next(archive, &member, &more);
        while (status == SX_OK && more) {
            sx_buf_reset(&data);
            status = sx_archive_read(archive, &data);
            whole += status == SX_OK;
            if (status == SX_OK) {
                status = sx_archive_next(archive, &member, &more);
            }
        }
        assert_int_equal(whole, rows[i].whole_members);
        if (whole < MEMBERS) {
            assert_error(status, SX_RESOURCE_EXHAUSTED, "--max-unpacked-size");
        } else {
            assert_ok(status);
        }
        sx_buf_deinit(&data);
        sx_archive_close(archive);
    }
    sx_free(bytes);
}

/* A tar of `count` members of `bytes` zeros each, through the filters of `codes` (0 ends them). */
static void make_zeros(const char *path, const int *codes, int count, size_t bytes)
{
    struct archive *lib = archive_write_new();
    struct archive_entry *entry = archive_entry_new();
    char *zeros = sx_alloc(bytes + 1, 1);
    assert_int_equal(archive_write_set_format_ustar(lib), ARCHIVE_OK);
    for (; *codes != 0; codes++) {
        assert_int_equal(archive_write_add_filter(lib, *codes), ARCHIVE_OK);
    }
    assert_int_equal(archive_write_open_filename(lib, path), ARCHIVE_OK);
    for (int i = 0; i < count; i++) {
        archive_entry_clear(entry);
        archive_entry_set_pathname(entry, "a/b.jpg");
        archive_entry_set_filetype(entry, AE_IFREG);
        archive_entry_set_perm(entry, 0644);
        archive_entry_set_size(entry, (la_int64_t)bytes);
        assert_int_equal(archive_write_header(lib, entry), ARCHIVE_OK);
        assert_int_equal(archive_write_data(lib, zeros, bytes), bytes);
    }
    assert_int_equal(archive_write_close(lib), ARCHIVE_OK);
    archive_entry_free(entry);
    archive_write_free(lib);
    sx_free(zeros);
}

/* Goes through all members without reading them. */
static sx_status pass_members(const char *path, uint64_t max_total_bytes, int *out_count)
{
    sx_archive *archive = NULL;
    sx_archive_member member;
    bool more = true;
    *out_count = 0;
    const sx_archive_limits limits = {.max_total_bytes = max_total_bytes};
    SX_TRY(sx_archive_open(path, &limits, &archive));
    sx_status status = SX_OK;
    while (status == SX_OK && more) {
        status = sx_archive_next(archive, &member, &more);
        *out_count += status == SX_OK && more;
    }
    sx_archive_close(archive);
    return status;
}

static void test_io_archive__reads_every_compression(void **state)
{
    (void)state;
    static const int filters[] = {ARCHIVE_FILTER_NONE, ARCHIVE_FILTER_GZIP, ARCHIVE_FILTER_BZIP2,
                                  ARCHIVE_FILTER_XZ, ARCHIVE_FILTER_ZSTD};
    int count;
    for (size_t i = 0; i < sizeof filters / sizeof filters[0]; i++) {
        make_zeros(scratch("a"), (int[]){filters[i], 0}, 3, 1000);
        assert_ok(pass_members(scratch("a"), 0, &count));
        assert_int_equal(count, 3);
    }
    make_zeros(scratch("a"), (int[]){ARCHIVE_FILTER_GZIP, ARCHIVE_FILTER_GZIP, 0}, 3, 1000);
    assert_error(pass_members(scratch("a"), 0, &count), SX_DATA_LOSS,
                 "Unrecognized archive format");
    make_zeros(scratch("a"), (int[]){ARCHIVE_FILTER_XZ, ARCHIVE_FILTER_GZIP, 0}, 3, 1000);
    assert_error(pass_members(scratch("a"), 0, &count), SX_DATA_LOSS,
                 "Unrecognized archive format");
    write_file(scratch("a"), "", 0);
    assert_error(pass_members(scratch("a"), 0, &count), SX_INVALID_ARGUMENT, "is an empty file");
    write_file(scratch("a"), "PK\5\6\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 22);
    assert_error(pass_members(scratch("a"), 0, &count), SX_INVALID_ARGUMENT,
                 "a .zip archive without files");
    assert_int_equal(mkfifo(scratch("fifo"), 0600), 0);
    alarm(20); /* opening a pipe waits for a writer, for ever */
    assert_error(pass_members(scratch("fifo"), 0, &count), SX_INVALID_ARGUMENT, "regular file");
    alarm(0);
}

/* What a compressed tar makes us decompress counts, also headers, and members that are passed. */
static void test_io_archive__headers_and_passed_members_count(void **state)
{
    (void)state;
    int count;
    make_zeros(scratch("headers"), (int[]){ARCHIVE_FILTER_GZIP, 0}, 3000, 0); /* 1.5 MB in 10 KB */
    assert_error(pass_members(scratch("headers"), 1000000, &count), SX_RESOURCE_EXHAUSTED,
                 "--max-unpacked-size");
    assert_in_range(count, 1900, 1960);
    assert_ok(pass_members(scratch("headers"), 1600000, &count));
    assert_int_equal(count, 3000);
    make_zeros(scratch("passed"), (int[]){ARCHIVE_FILTER_GZIP, 0}, 2, 8 << 20);
    assert_error(pass_members(scratch("passed"), 1000000, &count), SX_RESOURCE_EXHAUSTED,
                 "--max-unpacked-size");
    assert_int_equal(count, 1);
    make_zeros(scratch("plain"), (int[]){0}, 2, 1 << 20); /* costs nothing to pass */
    assert_ok(pass_members(scratch("plain"), 1000000, &count));
    assert_int_equal(count, 2);
}

static void test_io_archive__what_is_no_archive(void **state)
{
    (void)state;
    sx_archive *archive = NULL;
    assert_error(sx_archive_open(scratch("none"), NULL, &archive), SX_NOT_FOUND, "none");
    write_file(scratch("text"), "just text, nothing more", 23);
    assert_error(sx_archive_unpack(scratch("text"), scratch("o"), NULL, NULL, NULL), SX_DATA_LOSS,
                 "text");
}

static void test_io_archive__cuts_never_crash(void **state)
{
    (void)state;
    make_archive(scratch("a"), TAR_GZ, flowers, FLOWERS);
    char *bytes = NULL;
    size_t size = 0;
    assert_ok(sx_file_read(scratch("a"), 1 << 20, &bytes, &size));
    for (size_t cut = 0; cut < size; cut += 3) {
        sx_archive *archive = NULL;
        sx_status status = sx_archive_open_bytes((sx_bytes){bytes, cut}, "a", NULL, &archive);
        bool more = status == SX_OK;
        while (more && status == SX_OK) {
            sx_archive_member member;
            status = sx_archive_next(archive, &member, &more);
        }
        sx_status_free(status);
        sx_archive_close(archive);
    }
    sx_free(bytes);
}

/* The directory of a zip is at its end: one that was cut off, even between two members, is not
 * taken for a smaller one. */
static void test_io_archive__a_cut_zip_is_damaged(void **state)
{
    (void)state;
    char *bytes = NULL;
    size_t size = 0;
    make_archive(scratch("a"), ZIP, flowers, FLOWERS);
    assert_ok(sx_file_read(scratch("a"), 1 << 20, &bytes, &size));
    for (size_t cut = 1; cut < size; cut++) {
        sx_archive *archive = NULL;
        sx_archive_member member;
        sx_status status = sx_archive_open_bytes((sx_bytes){bytes, cut}, "a", NULL, &archive);
        for (bool more = status == SX_OK; more && status == SX_OK;) {
            status = sx_archive_next(archive, &member, &more);
        }
        assert_error(status, SX_DATA_LOSS, "a: ");
        sx_archive_close(archive);
    }
    sx_free(bytes);
}

/* Reads a zip of members of 6, 17, 0 and 6 bytes; two of its six entries are no files. */
static sx_status unpack_with(const sx_archive_limits *limits)
{
    return sx_archive_unpack(scratch("a"), scratch("o"), limits, NULL, NULL);
}

static void test_io_archive__limits_themselves_are_allowed(void **state)
{
    (void)state;
    make_archive(scratch("a"), ZIP, flowers, FLOWERS);
    assert_ok(unpack_with(&(sx_archive_limits){.max_members = FLOWERS}));
    assert_error(unpack_with(&(sx_archive_limits){.max_members = FLOWERS - 1}),
                 SX_RESOURCE_EXHAUSTED, "more than 5 members");
    assert_ok(unpack_with(&(sx_archive_limits){.max_member_bytes = 17}));
    assert_error(unpack_with(&(sx_archive_limits){.max_member_bytes = 16}), SX_RESOURCE_EXHAUSTED,
                 "16 bytes");
    assert_ok(unpack_with(&(sx_archive_limits){.max_total_bytes = 29}));
    assert_error(unpack_with(&(sx_archive_limits){.max_total_bytes = 28}), SX_RESOURCE_EXHAUSTED,
                 "decompresses to more than 28 bytes");
}

static const struct CMUnitTest tests[] = {
    scratch_test(test_io_archive__reads_members_in_order),
    scratch_test(test_io_archive__members_need_not_be_read),
    scratch_test(test_io_archive__unpacks),
    scratch_test(test_io_archive__names_stay_inside),
    scratch_test(test_io_archive__links_are_not_followed),
    scratch_test(test_io_archive__limits),
    scratch_test(test_io_archive__names_marked_as_utf8),
    scratch_test(test_io_archive__a_bomb_meets_the_default_limit),
    scratch_test(test_io_archive__reads_every_compression),
    scratch_test(test_io_archive__headers_and_passed_members_count),
    scratch_test(test_io_archive__what_is_no_archive),
    scratch_test(test_io_archive__cuts_never_crash),
    scratch_test(test_io_archive__a_cut_zip_is_damaged),
    scratch_test(test_io_archive__limits_themselves_are_allowed),
};
SX_TEST_MAIN(tests)
