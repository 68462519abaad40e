/* Decodes JPEG with libjpeg; see decode.h.
 *
 * Each image gets a new decompressor: a reused one would keep the quantization and Huffman tables
 * of the previous image and use them for a file without its own.
 *
 * libjpeg's errors arrive by longjmp. The function that calls setjmp therefore has no local
 * variables: all state is in `struct decoder`, owned by its caller. */
#include <string.h>

#include "base/checked.h"
#include "image/decode.h"
#include "image/jpeg_error.h"

typedef struct decoder {
    struct jpeg_decompress_struct info;
    sx_jpeg_error error;
    struct jpeg_source_mgr source;
    struct jpeg_progress_mgr progress;
    const sx_decode_options *options;
    sx_bytes encoded;
    sx_image *image; /* to be filled; NULL: the rows go to `sink` */
    const sx_image_sink *sink;
    int channels;      /* of the output */
    int height, width; /* of `image` */
    sx_status status;  /* an error found outside libjpeg */
} decoder;

/* ---- The source: a block of memory; reading past its end is an error, not an end marker ---- */

static void source_nothing(j_decompress_ptr info)
{
    (void)info;
}

static void fail_truncated(decoder *d)
{
    d->error.code = SX_DATA_LOSS;
    snprintf(d->error.message, sizeof(d->error.message), "image is truncated after %zu bytes",
             d->encoded.size);
    longjmp(d->error.jump, 1);
}

static boolean source_fill(j_decompress_ptr info)
{
    fail_truncated(info->client_data);
    return FALSE;
}

static void source_skip(j_decompress_ptr info, long count)
{
    if (count <= 0) {
        return;
    }
    if ((size_t)count > info->src->bytes_in_buffer) {
        fail_truncated(info->client_data);
    }
    info->src->next_input_byte += count;
    info->src->bytes_in_buffer -= (size_t)count;
}

static void source_init(decoder *d)
{
    d->source = (struct jpeg_source_mgr){
        .next_input_byte = d->encoded.data,
        .bytes_in_buffer = d->encoded.size,
        .init_source = source_nothing,
        .fill_input_buffer = source_fill,
        .skip_input_data = source_skip,
        .resync_to_restart = jpeg_resync_to_restart,
        .term_source = source_nothing,
    };
    d->info.src = &d->source;
}

/* ---- Limits ---- */

static void check_scans(j_common_ptr info)
{
    decoder *d = info->client_data;
    int scans = d->info.input_scan_number;
    if (scans > d->options->limits->max_scans) {
        d->error.code = SX_RESOURCE_EXHAUSTED;
        snprintf(d->error.message, sizeof(d->error.message), "more than the limit of %d scans",
                 d->options->limits->max_scans);
        longjmp(d->error.jump, 1);
    }
}

/* The size of the coefficients that libjpeg stores: of the whole image if there are several scans.
 */
static int64_t coefficient_bytes(struct jpeg_decompress_struct *info)
{
    if (!jpeg_has_multiple_scans(info)) {
        return 0;
    }
    int64_t blocks = 0;
    for (int i = 0; i < info->num_components; i++) {
        const jpeg_component_info *component = &info->comp_info[i];
        blocks += (int64_t)component->width_in_blocks * component->height_in_blocks;
    }
    return blocks * (int64_t)sizeof(JBLOCK);
}

static sx_status check_limits(decoder *d)
{
    struct jpeg_decompress_struct *info = &d->info;
    const sx_image_limits *limits = d->options->limits;
    int64_t height = info->image_height, width = info->image_width;
    int64_t bytes = height * width * d->channels + coefficient_bytes(info);
    SX_TRY(sx_image_limits_check(limits, height, width, bytes));
    info->mem->max_memory_to_use = (long)limits->max_bytes;
    return SX_OK;
}

/* ---- Pixels ---- */

static bool is_four_colour(const struct jpeg_decompress_struct *info)
{
    return info->jpeg_color_space == JCS_CMYK || info->jpeg_color_space == JCS_YCCK;
}

static sx_status choose_output(decoder *d)
{
    struct jpeg_decompress_struct *info = &d->info;
    int channels = d->options->channels;
    if (channels == 0) {
        channels = SX_MIN(info->num_components, 3);
    }
    if (channels != 1 && channels != 3) {
        return sx_error(SX_INVALID_ARGUMENT, "a JPEG can be decoded to 1 or 3 channels, not %d",
                        channels);
    }
    d->channels = channels;
    if (channels == 1) {
        info->out_color_space = JCS_GRAYSCALE;
    } else {
        info->out_color_space = is_four_colour(info) ? JCS_CMYK : JCS_RGB;
    }
    info->do_fancy_upsampling = d->options->plain_upsampling ? FALSE : TRUE;
    info->scale_num = 1;
    info->scale_denom = d->options->ratio > 1 ? (unsigned)d->options->ratio : 1;
    info->dct_method = d->options->dct == SX_DCT_FAST ? JDCT_IFAST : JDCT_ISLOW;
    return SX_OK;
}

/* Reads several rows per call: libjpeg returns as many as its upsampler has. */
static void read_rows(decoder *d, JDIMENSION first, JDIMENSION end)
{
    struct jpeg_decompress_struct *info = &d->info;
    const size_t stride = (size_t)info->output_width * (size_t)d->channels;
    JSAMPROW rows[8];
    while (info->output_scanline < end) {
        uint8_t *next = (uint8_t *)d->image->pixels + (info->output_scanline - first) * stride;
        JDIMENSION count = SX_MIN(SX_COUNT(rows), end - info->output_scanline);
        for (JDIMENSION i = 0; i < count; i++) {
            rows[i] = next + i * stride;
        }
        jpeg_read_scanlines(info, rows, count);
    }
}

static void cmyk_to_rgb(const uint8_t *cmyk, size_t width, bool inverted, uint8_t *rgb)
{
    const uint8_t flip = inverted ? 0 : 255;
    for (size_t x = 0; x < width; x++, cmyk += 4, rgb += 3) {
        for (int c = 0; c < 3; c++) {
            rgb[c] = (uint8_t)((cmyk[3] ^ flip) * (cmyk[c] ^ flip) / 255);
        }
    }
}

/* One row of `row`, of libjpeg's four colours, as pixels. */
static void read_cmyk_row(decoder *d, JSAMPARRAY row, uint8_t *out)
{
    jpeg_read_scanlines(&d->info, row, 1);
    cmyk_to_rgb(row[0], d->info.output_width, d->info.saw_Adobe_marker, out);
}

static JSAMPARRAY make_rows(decoder *d, JDIMENSION elems, JDIMENSION count)
{
    return d->info.mem->alloc_sarray((j_common_ptr)&d->info, JPOOL_IMAGE, elems, count);
}

static void read_cmyk_rows(decoder *d, JDIMENSION end)
{
    struct jpeg_decompress_struct *info = &d->info;
    JSAMPARRAY row = make_rows(d, info->output_width * 4, 1);
    for (uint8_t *out = d->image->pixels; info->output_scanline < end;
         out += (size_t)info->output_width * 3) {
        read_cmyk_row(d, row, out);
    }
}

/* Gives the sink the rows up to `end`, from `skip` elements of each on. */
static void send_rows(decoder *d, JDIMENSION end, size_t skip)
{
    /* Where rows are aligned, libjpeg-turbo writes pixels past the caches; but they are read next.
     */
    enum { ROWS = 8, UNALIGNED = 1 };
    struct jpeg_decompress_struct *info = &d->info;
    const JDIMENSION elems = info->output_width * (JDIMENSION)d->channels;
    const bool four = info->out_color_space == JCS_CMYK;
    JSAMPARRAY rows = make_rows(d, elems + UNALIGNED, ROWS);
    JSAMPARRAY cmyk = four ? make_rows(d, info->output_width * 4, 1) : NULL;
    for (int i = 0; i < ROWS; i++) {
        rows[i] += UNALIGNED;
    }
    while (info->output_scanline < end) {
        JDIMENSION count = 0, most = SX_MIN(ROWS, end - info->output_scanline);
        while (count < most) {
            if (four) {
                read_cmyk_row(d, cmyk, rows[count++]);
            } else {
                count += jpeg_read_scanlines(info, rows + count, most - count);
            }
        }
        for (JDIMENSION i = 0; i < count; i++) {
            d->sink->add(d->sink->user, rows[i] + skip);
        }
    }
}

/* Makes libjpeg leave out the rows above `top` and the columns outside of [*left, *left + *width),
 * which it widens to whole blocks. */
static void crop(decoder *d, JDIMENSION top, JDIMENSION *left, JDIMENSION *width)
{
    jpeg_crop_scanline(&d->info, left, width);
    jpeg_skip_scanlines(&d->info, top);
}

/* ---- Whole images and windows ---- */

static void decode_to_image(decoder *d)
{
    struct jpeg_decompress_struct *info = &d->info;
    const sx_image_window *window = &d->options->window;
    const JDIMENSION top = (JDIMENSION)window->top, left = (JDIMENSION)window->left;
    JDIMENSION height = info->output_height, width = info->output_width;
    JDIMENSION from = 0, read = width; /* columns: whole blocks, with the window among them */
    if (window->height > 0) {
        if (window->height > (int)height - window->top ||
            window->width > (int)width - window->left) {
            d->status = sx_error(
                SX_INVALID_ARGUMENT, "the window is %dx%d at %d, %d; the image has %dx%d pixels",
                window->height, window->width, window->top, window->left, (int)height, (int)width);
            return;
        }
        height = (JDIMENSION)window->height, width = (JDIMENSION)window->width;
        from = left, read = width;
        crop(d, top, &from, &read);
    }
    SX_TRY_GOTO(d->status, sx_image_reserve(d->image, SX_U8, (int)height, (int)read, d->channels),
                done);
    if (info->out_color_space == JCS_CMYK) {
        read_cmyk_rows(d, top + height);
    } else {
        read_rows(d, top, top + height);
    }
    const size_t pixel = (size_t)d->channels, row = width * pixel;
    uint8_t *pixels = d->image->pixels;
    for (size_t y = 0; y < height && read != width; y++) {
        memmove(pixels + y * row, pixels + (y * read + (left - from)) * pixel, row);
    }
    d->height = (int)height;
    d->width = (int)width;
done:
    return;
}

/* ---- Rows for a sink ---- */

/* Colours at the left and right edge of what libjpeg decodes are not interpolated with those
 * beyond, so that some columns more are decoded. */
enum { MARGIN = 8 };

static void decode_to_sink(decoder *d)
{
    struct jpeg_decompress_struct *info = &d->info;
    const JDIMENSION height = info->output_height, width = info->output_width;
    const sx_image whole = {
        .dtype = SX_U8, .height = (int)height, .width = (int)width, .channels = d->channels};
    sx_image_window wanted;
    SX_TRY_GOTO(d->status, d->sink->begin(d->sink->user, &whole, &wanted), done);
    const JDIMENSION left = (JDIMENSION)wanted.left, top = (JDIMENSION)wanted.top;
    JDIMENSION from = left > MARGIN ? left - MARGIN : 0;
    JDIMENSION read = SX_MIN(left + (JDIMENSION)wanted.width + MARGIN, width) - from;
    if (read < width || top > 0) {
        crop(d, top, &from, &read);
    }
    send_rows(d, top + (JDIMENSION)wanted.height, (left - from) * (size_t)d->channels);
done:
    return;
}

/* All code that may longjmp. */
static void decode(decoder *d)
{
    struct jpeg_decompress_struct *info = &d->info;
    jpeg_create_decompress(info);
    info->client_data = d;
    d->progress.progress_monitor = check_scans;
    info->progress = &d->progress;
    source_init(d);
    jpeg_read_header(info, TRUE);
    SX_TRY_GOTO(d->status, choose_output(d), done);
    SX_TRY_GOTO(d->status, check_limits(d), done);
    jpeg_start_decompress(info);
    if (d->sink != NULL) {
        decode_to_sink(d);
    } else {
        decode_to_image(d);
    }
    if (d->status != SX_OK) {
        goto done;
    }
    if (info->output_scanline < info->output_height) { /* at the end, it would not look for EOI */
        jpeg_skip_scanlines(info, info->output_height - info->output_scanline);
    }
    jpeg_finish_decompress(info);
    if (d->image != NULL) {
        sx_image_set(d->image, SX_U8, d->height, d->width, d->channels);
        d->image->warnings = (int)info->err->num_warnings;
    }
done:
    return;
}

static sx_status run(decoder *d)
{
    if (setjmp(d->error.jump) == 0) {
        decode(d);
        return d->status;
    }
    return sx_jpeg_error_status(&d->error, "JPEG", "reading a JPEG");
}

static sx_status start(decoder *d, sx_bytes encoded, const sx_decode_options *options)
{
    d->options = options;
    d->encoded = encoded;
    d->info.err = sx_jpeg_error_init(&d->error);
    sx_status status = run(d);
    jpeg_destroy_decompress(&d->info);
    return status;
}

sx_status sx_jpeg_decode(sx_bytes encoded, const sx_decode_options *options, sx_image *image)
{
    decoder d = {.image = image};
    return start(&d, encoded, options);
}

sx_status sx_jpeg_decode_rows(sx_bytes encoded, const sx_decode_options *options,
                              const sx_image_sink *sink)
{
    decoder d = {.sink = sink};
    return start(&d, encoded, options);
}
