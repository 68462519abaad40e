/* What tests/interop/test_image.py asks of src/image: one command a line on stdin, one answer a
 * line on stdout, pixels and files through paths.
 *
 *   decode IN CHANNELS DCT OUT                 "ok HEIGHT WIDTH CHANNELS WARNINGS", uint8 in OUT
 *   resize IN CHANNELS RULE HEIGHT WIDTH OUT   decode, then resize; float32 in OUT
 *   resize_f32 IN H W C RULE HEIGHT WIDTH OUT  the same from raw float32
 *   adjust IN H W C DELTA FACTOR OUT           brightness, then contrast, of raw float32
 *   warp IN H W C SHEAR ZOOM_ROWS ZOOM_COLUMNS OUT   of raw float32; shear in degrees
 *   preprocess IN JSON OUT                     evaluation form; JSON is a file
 *   encode FORMAT IN H W C OUT                 raw uint8 to "jpeg" (quality 90) or "png"
 *   make_jpeg KIND IN H W OUT                  raw uint8, 3 or 4 channels, to a JPEG that
 * TensorFlow cannot write: cmyk, cmyk-plain (no Adobe marker), ycck, 422, 440, 411, restart,
 * arithmetic, rgb Errors: "error CODE message". */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>

#include "base/buffer.h"
#include "base/checked.h"
#include "base/memory.h"
#include "image/augment.h"
#include "image/decode.h"
#include "image/encode.h"
#include "image/preprocess.h"
#include "image/resize.h"

enum { MAX_WORDS = 12, LINE_BYTES = 4096 };

typedef struct command {
    char *words[MAX_WORDS];
    int count;
} command;

static int number(const command *c, int i)
{
    return atoi(c->words[i]);
}

static sx_status read_file(const char *path, sx_buf *out)
{
    sx_buf_init(out, 0);
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        return sx_error(SX_NOT_FOUND, "cannot open %s", path);
    }
    char block[1 << 14];
    for (size_t n; (n = fread(block, 1, sizeof(block), file)) > 0;) {
        sx_buf_append(out, block, n);
    }
    fclose(file);
    return sx_buf_status(out);
}

static sx_status write_file(const char *path, const void *data, size_t size)
{
    FILE *file = fopen(path, "wb");
    if (file == NULL || fwrite(data, 1, size, file) != size || fclose(file) != 0) {
        return sx_error(SX_UNKNOWN, "cannot write %s", path);
    }
    return SX_OK;
}

static sx_status decode_file(const char *path, int channels, const char *dct, sx_image *image)
{
    sx_buf in;
    sx_status status = read_file(path, &in);
    sx_decode_options options = {.channels = channels};
    options.dct = strcmp(dct, "accurate") == 0 ? SX_DCT_ACCURATE : SX_DCT_FAST;
    if (status == SX_OK) {
        status = sx_image_decode((sx_bytes){in.data, in.size}, &options, image);
    }
    sx_buf_deinit(&in);
    return status;
}

static sx_status run_decode(const command *c)
{
    sx_image image = {0};
    sx_status status = decode_file(c->words[1], number(c, 2), c->words[3], &image);
    if (status == SX_OK) {
        status = write_file(c->words[4], image.pixels, sx_image_elems(&image));
        printf("ok %d %d %d %d\n", image.height, image.width, image.channels, image.warnings);
    }
    sx_image_deinit(&image);
    return status;
}

static sx_status resize_to_file(const sx_image *image, const char *rule, int height, int width,
                                const char *path)
{
    sx_resize_args args = {.height = height, .width = width};
    if (!sx_resize_rule_parse(rule, &args.rule)) {
        return sx_error(SX_INVALID_ARGUMENT, "no rule %s", rule);
    }
    size_t elems = (size_t)height * (size_t)width * (size_t)image->channels;
    float *out = sx_alloc(elems, sizeof(float));
    sx_resizer resizer = {0};
    sx_status status = sx_resize(&resizer, image, &args, out);
    if (status == SX_OK) {
        status = write_file(path, out, elems * sizeof(float));
        printf("ok %d %d %d\n", height, width, image->channels);
    }
    sx_resizer_deinit(&resizer);
    sx_free(out);
    return status;
}

static sx_status run_resize(const command *c)
{
    sx_image image = {0};
    sx_status status = decode_file(c->words[1], number(c, 2), "fast", &image);
    if (status == SX_OK) {
        status = resize_to_file(&image, c->words[3], number(c, 4), number(c, 5), c->words[6]);
    }
    sx_image_deinit(&image);
    return status;
}

static sx_status run_resize_f32(const command *c)
{
    sx_buf in;
    sx_status status = read_file(c->words[1], &in);
    if (status == SX_OK) {
        sx_image image =
            sx_image_view((uint8_t *)in.data, number(c, 2), number(c, 3), number(c, 4));
        image.dtype = SX_F32;
        status = resize_to_file(&image, c->words[5], number(c, 6), number(c, 7), c->words[8]);
    }
    sx_buf_deinit(&in);
    return status;
}

static sx_status run_adjust(const command *c)
{
    sx_buf in;
    sx_status status = read_file(c->words[1], &in);
    if (status == SX_OK) {
        float *pixels = (float *)in.data;
        sx_adjust_brightness(pixels, in.size / sizeof(float), strtof(c->words[5], NULL));
        sx_adjust_contrast(pixels, number(c, 2), number(c, 3), number(c, 4),
                           strtof(c->words[6], NULL));
        status = write_file(c->words[7], pixels, in.size);
        printf("ok\n");
    }
    sx_buf_deinit(&in);
    return status;
}

static sx_status run_warp(const command *c)
{
    sx_buf in;
    sx_status status = read_file(c->words[1], &in);
    if (status == SX_OK) {
        float *out = sx_alloc(in.size, 1);
        sx_warp((float *)in.data, number(c, 2), number(c, 3), number(c, 4),
                strtof(c->words[5], NULL), strtof(c->words[6], NULL), strtof(c->words[7], NULL),
                out);
        status = write_file(c->words[8], out, in.size);
        printf("ok\n");
        sx_free(out);
    }
    sx_buf_deinit(&in);
    return status;
}

static sx_status preprocess_to_file(sx_bytes encoded, const char *json_path, const char *path)
{
    json_t *json = json_load_file(json_path, 0, NULL);
    sx_preprocess pre;
    sx_status status = sx_preprocess_from_json(json, &pre);
    json_decref(json);
    if (status != SX_OK) {
        return status;
    }
    size_t elems = (size_t)pre.height * (size_t)pre.width * (size_t)pre.channels;
    float *out = sx_alloc(elems, sizeof(float));
    sx_preprocess_scratch scratch = {0};
    status = sx_preprocess_encoded(&pre, encoded, NULL, &scratch, out);
    if (status == SX_OK) {
        status = write_file(path, out, elems * sizeof(float));
        printf("ok %d %d %d\n", pre.height, pre.width, pre.channels);
    }
    sx_preprocess_scratch_deinit(&scratch);
    sx_free(out);
    return status;
}

static sx_status run_preprocess(const command *c)
{
    sx_buf in;
    sx_status status = read_file(c->words[1], &in);
    if (status == SX_OK) {
        status = preprocess_to_file((sx_bytes){in.data, in.size}, c->words[2], c->words[3]);
    }
    sx_buf_deinit(&in);
    return status;
}

static sx_status run_encode(const command *c)
{
    sx_buf in, out;
    sx_buf_init(&out, 0);
    sx_status status = read_file(c->words[2], &in);
    if (status == SX_OK) {
        sx_image image =
            sx_image_view((uint8_t *)in.data, number(c, 3), number(c, 4), number(c, 5));
        bool jpeg = strcmp(c->words[1], "jpeg") == 0;
        status = jpeg ? sx_jpeg_encode(&image, 90, &out) : sx_png_encode(&image, &out);
    }
    if (status == SX_OK) {
        status = write_file(c->words[6], out.data, out.size);
        printf("ok\n");
    }
    sx_buf_deinit(&in);
    sx_buf_deinit(&out);
    return status;
}

static const struct kind {
    const char *name;
    int channels;
    J_COLOR_SPACE colour;
    int h, v; /* sampling of the first component */
    int restart_rows;
    bool adobe, arithmetic;
} kinds[] = {
    {"cmyk", 4, JCS_CMYK, 1, 1, 0, true, false},
    {"cmyk-plain", 4, JCS_CMYK, 1, 1, 0, false, false},
    {"ycck", 4, JCS_YCCK, 2, 2, 0, true, false},
    {"422", 3, JCS_YCbCr, 2, 1, 0, false, false},
    {"440", 3, JCS_YCbCr, 1, 2, 0, false, false},
    {"411", 3, JCS_YCbCr, 4, 1, 0, false, false},
    {"restart", 3, JCS_YCbCr, 2, 2, 1, false, false},
    {"arithmetic", 3, JCS_YCbCr, 2, 2, 0, false, true},
    {"rgb", 3, JCS_RGB, 1, 1, 0, true, false},
};

static void compress(const struct kind *kind, uint8_t *pixels, int height, int width,
                     uint8_t **data, unsigned long *size)
{
    struct jpeg_compress_struct info;
    struct jpeg_error_mgr error;
    info.err = jpeg_std_error(&error);
    jpeg_create_compress(&info);
    jpeg_mem_dest(&info, data, size);
    info.image_height = (JDIMENSION)height;
    info.image_width = (JDIMENSION)width;
    info.input_components = kind->channels;
    info.in_color_space = kind->channels == 4 ? JCS_CMYK : JCS_RGB;
    jpeg_set_defaults(&info);
    jpeg_set_colorspace(&info, kind->colour);
    info.comp_info[0].h_samp_factor = kind->h;
    info.comp_info[0].v_samp_factor = kind->v;
    info.write_Adobe_marker = kind->adobe;
    info.arith_code = kind->arithmetic;
    info.restart_in_rows = kind->restart_rows;
    jpeg_start_compress(&info, TRUE);
    while (info.next_scanline < info.image_height) {
        JSAMPROW row = pixels + info.next_scanline * (size_t)width * (size_t)kind->channels;
        jpeg_write_scanlines(&info, &row, 1);
    }
    jpeg_finish_compress(&info);
    jpeg_destroy_compress(&info);
}

static sx_status run_make_jpeg(const command *c)
{
    sx_buf in;
    sx_status status = read_file(c->words[2], &in);
    for (size_t i = 0; i < SX_COUNT(kinds) && status == SX_OK; i++) {
        if (strcmp(kinds[i].name, c->words[1]) == 0) {
            uint8_t *data = NULL;
            unsigned long size = 0;
            compress(&kinds[i], (uint8_t *)in.data, number(c, 3), number(c, 4), &data, &size);
            status = write_file(c->words[5], data, size);
            free(data);
            printf("ok\n");
        }
    }
    sx_buf_deinit(&in);
    return status;
}

static const struct row {
    const char *name;
    int words;
    sx_status (*run)(const command *c);
} commands[] = {
    {"decode", 5, run_decode},         {"resize", 7, run_resize}, {"resize_f32", 9, run_resize_f32},
    {"adjust", 8, run_adjust},         {"encode", 7, run_encode}, {"make_jpeg", 6, run_make_jpeg},
    {"preprocess", 4, run_preprocess}, {"warp", 9, run_warp},
};

static sx_status dispatch(const command *c)
{
    for (size_t i = 0; i < SX_COUNT(commands); i++) {
        if (c->count == commands[i].words && strcmp(c->words[0], commands[i].name) == 0) {
            return commands[i].run(c);
        }
    }
    return sx_error(SX_INVALID_ARGUMENT, "no command %s with %d words", c->words[0], c->count);
}

int main(void)
{
    char line[LINE_BYTES];
    while (fgets(line, sizeof(line), stdin) != NULL) {
        command c = {.count = 0};
        for (char *word = strtok(line, " \n"); word != NULL && c.count < MAX_WORDS;
             word = strtok(NULL, " \n")) {
            c.words[c.count++] = word;
        }
        sx_status status = c.count > 0 ? dispatch(&c) : SX_OK;
        if (status != SX_OK) {
            printf("error %s %s\n", sx_code_name(sx_status_code(status)),
                   sx_status_message(status));
            sx_status_free(status);
        }
        fflush(stdout);
    }
    return 0;
}
