/* Decodes GIF; see decode.h. GIF89a 17-27:
 *
 *   "GIF87a" or "GIF89a"   width[2] height[2] flags background aspect   [colours]
 *   21 F9 04 flags delay[2] transparent 00       for the next frame
 *   21 label blocks                              other extensions
 *   2C left[2] top[2] width[2] height[2] flags   [colours]  bits of a code, blocks of codes
 *   3B                                           the end
 *
 * A block is its size, 0 to 255, and so many bytes; the one of size 0 ends a list of blocks. Codes
 * (LZW) are read from the least significant bit on, up to 12 bits each. */
#include <string.h>

#include "base/byte_order.h"
#include "base/checked.h"
#include "base/memory.h"
#include "image/decode.h"

enum { CODES = 4096, NO_COLOUR = -1, NO_CODE = -1 };

typedef struct colours {
    const uint8_t *rgb;
    int count; /* 0 = none */
} colours;

typedef struct frame {
    int left, top, width, height;
    bool interlaced;
    colours colours;
    int transparent; /* NO_COLOUR: none */
    int code_bits;
    size_t codes; /* where the blocks of codes begin */
} frame;

typedef struct reader {
    const uint8_t *bytes;
    size_t size, at;
    colours colours; /* of all frames that have none */
} reader;

static sx_status truncated(const reader *in)
{
    return sx_error(SX_DATA_LOSS, "GIF is truncated after %zu bytes", in->size);
}

/* The next `count` bytes; NULL if there are not so many. */
static const uint8_t *take(reader *in, size_t count)
{
    const uint8_t *at = in->bytes + in->at;
    if (count > in->size - in->at) {
        return NULL;
    }
    in->at += count;
    return at;
}

static sx_status take_colours(reader *in, int flags, colours *out)
{
    if ((flags & 0x80) == 0) {
        return SX_OK;
    }
    out->count = 2 << (flags & 7);
    out->rgb = take(in, (size_t)out->count * 3);
    return out->rgb != NULL ? SX_OK : truncated(in);
}

static sx_status skip_blocks(reader *in)
{
    for (;;) {
        const uint8_t *size = take(in, 1);
        if (size == NULL || take(in, *size) == NULL) {
            return truncated(in);
        }
        if (*size == 0) {
            return SX_OK;
        }
    }
}

static sx_status begin(reader *in)
{
    const uint8_t *head = take(in, 13);
    if (head == NULL) {
        return truncated(in);
    }
    if (memcmp(head, "GIF87a", 6) != 0 && memcmp(head, "GIF89a", 6) != 0) {
        return sx_error(SX_DATA_LOSS, "GIF has no header \"GIF87a\" or \"GIF89a\"");
    }
    return take_colours(in, head[10], &in->colours);
}

/* The next frame, its codes skipped; *out_any is false at the end. */
static sx_status next_frame(reader *in, frame *out, bool *out_any)
{
    *out = (frame){.transparent = NO_COLOUR, .colours = in->colours};
    for (;;) {
        const uint8_t *kind = take(in, 1);
        if (kind == NULL) {
            return truncated(in);
        }
        if (*kind == 0x3B) {
            *out_any = false;
            return SX_OK;
        }
        if (*kind == 0x21) {
            const uint8_t *label = take(in, 1);
            const bool control = label != NULL && *label == 0xF9 && in->size - in->at >= 6;
            if (control && in->bytes[in->at] == 4) {
                const uint8_t *body = in->bytes + in->at + 1;
                out->transparent = (body[0] & 1) != 0 ? body[3] : NO_COLOUR;
            }
            SX_TRY(label == NULL ? truncated(in) : skip_blocks(in));
            continue;
        }
        const uint8_t *d = *kind == 0x2C ? take(in, 9) : NULL;
        if (d == NULL) {
            return *kind == 0x2C
                       ? truncated(in)
                       : sx_error(SX_DATA_LOSS, "GIF: byte %zu is 0x%02x, expected a frame",
                                  in->at - 1, *kind);
        }
        out->left = (int)sx_load_le16(d);
        out->top = (int)sx_load_le16(d + 2);
        out->width = (int)sx_load_le16(d + 4);
        out->height = (int)sx_load_le16(d + 6);
        out->interlaced = (d[8] & 0x40) != 0;
        SX_TRY(take_colours(in, d[8], &out->colours));
        const uint8_t *bits = take(in, 1);
        if (bits == NULL) {
            return truncated(in);
        }
        if (*bits < 1 || *bits > 8) {
            return sx_error(SX_DATA_LOSS, "GIF: codes have %d bits, expected 1 to 8", *bits);
        }
        out->code_bits = *bits;
        out->codes = in->at;
        *out_any = true;
        return skip_blocks(in);
    }
}

sx_status sx_gif_probe(sx_bytes encoded, sx_gif_info *out)
{
    reader in = {.bytes = encoded.data, .size = encoded.size};
    sx_gif_info info = {0};
    frame f;
    bool any = true;
    SX_TRY(begin(&in));
    for (;;) {
        SX_TRY(next_frame(&in, &f, &any));
        if (!any) {
            break;
        }
        info.frames++;
        info.height = SX_MAX(info.height, f.height);
        info.width = SX_MAX(info.width, f.width);
    }
    if (info.frames == 0 || info.height == 0 || info.width == 0) {
        return sx_error(SX_DATA_LOSS, "GIF has no frame with pixels");
    }
    *out = info;
    return SX_OK;
}

/* ---- Codes ---- */

/* Fills pixels[count] with indices of colours. */
static sx_status read_codes(const reader *in, const frame *f, uint8_t *pixels, size_t count)
{
    struct {
        int16_t before; /* the code that this one extends by a pixel */
        uint8_t first, last;
        uint16_t length;
    } codes[CODES];
    const int clear = 1 << f->code_bits, end = clear + 1;
    int n = clear + 2, bits = f->code_bits + 1, previous = NO_CODE, have = 0;
    uint32_t word = 0;
    size_t at = f->codes, block = 0, done = 0;
    for (int i = 0; i < clear; i++) {
        codes[i].before = NO_CODE;
        codes[i].first = codes[i].last = (uint8_t)i;
        codes[i].length = 1;
    }
    while (done < count) {
        while (have < bits) {
            if (block == 0) { /* next_frame() has walked over all blocks */
                block = in->bytes[at++];
                if (block == 0) {
                    return sx_error(SX_DATA_LOSS, "GIF: a frame has %zu of %zu pixels", done,
                                    count);
                }
            }
            word |= (uint32_t)in->bytes[at++] << have;
            have += 8;
            block--;
        }
        const int code = (int)(word & ((1U << bits) - 1));
        word >>= bits;
        have -= bits;
        if (code == clear) {
            n = clear + 2;
            bits = f->code_bits + 1;
            previous = NO_CODE;
            continue;
        }
        if (code == end) {
            return sx_error(SX_DATA_LOSS, "GIF: a frame has %zu of %zu pixels", done, count);
        }
        if (code > n || (code == n && (previous == NO_CODE || n == CODES)) ||
            (previous == NO_CODE && code >= clear)) {
            return sx_error(SX_DATA_LOSS, "GIF: invalid code %d", code);
        }
        if (previous != NO_CODE && n < CODES) {
            codes[n].before = (int16_t)previous;
            codes[n].first = codes[previous].first;
            codes[n].last = codes[code == n ? previous : code].first;
            codes[n].length = (uint16_t)(codes[previous].length + 1);
            n++;
            bits += n == 1 << bits && bits < 12;
        }
        const size_t length = codes[code].length;
        size_t to = done + length;
        for (int c = code; c != NO_CODE; c = codes[c].before) {
            to--;
            if (to < count) {
                pixels[to] = codes[c].last;
            }
        }
        done += length;
        previous = code;
    }
    return SX_OK;
}

/* Row number `i` of those in the file, in the picture. */
static int interlaced_row(int i, int height)
{
    static const int first[] = {0, 4, 2, 1}, step[] = {8, 8, 4, 2};
    for (int pass = 0; pass < 4; pass++) {
        const int rows =
            height > first[pass] ? (height - first[pass] + step[pass] - 1) / step[pass] : 0;
        if (i < rows) {
            return first[pass] + i * step[pass];
        }
        i -= rows;
    }
    return 0;
}

/* The frame's pixels over those of the frame before, which are there. */
static sx_status draw(const frame *f, const uint8_t *pixels, const sx_gif_info *info, uint8_t *rgb)
{
    if (f->colours.count == 0) {
        return sx_error(SX_DATA_LOSS, "GIF: a frame has no colours");
    }
    for (int i = 0; i < f->height; i++) {
        const int y = f->top + (f->interlaced ? interlaced_row(i, f->height) : i);
        for (int j = 0; j < f->width && y < info->height; j++) {
            const int x = f->left + j, colour = pixels[(size_t)i * (size_t)f->width + (size_t)j];
            if (x >= info->width || colour == f->transparent) {
                continue;
            }
            if (colour >= f->colours.count) {
                return sx_error(SX_DATA_LOSS, "GIF: colour %d, a frame has %d", colour,
                                f->colours.count);
            }
            memcpy(rgb + ((size_t)y * (size_t)info->width + (size_t)x) * 3,
                   f->colours.rgb + colour * 3, 3);
        }
    }
    return SX_OK;
}

sx_status sx_gif_decode(sx_bytes encoded, const sx_image_limits *limits, int max_frames,
                        sx_image *image)
{
    const sx_image_limits resolved = sx_image_limits_resolve(limits);
    reader in = {.bytes = encoded.data, .size = encoded.size};
    sx_gif_info info = {0};
    SX_TRY(sx_gif_probe(encoded, &info));
    const int frames = max_frames > 0 ? SX_MIN(max_frames, info.frames) : info.frames;
    const int64_t height = (int64_t)frames * info.height;
    SX_TRY(sx_image_limits_check(&resolved, height, info.width, 0));
    /* within the limit of pixels, nothing overflows */
    SX_TRY(sx_image_limits_check(&resolved, height, info.width, height * info.width * 3));
    SX_TRY(sx_image_reserve(image, SX_U8, (int)height, info.width, 3));
    const size_t bytes = (size_t)info.height * (size_t)info.width * 3;
    uint8_t *pixels = sx_alloc((size_t)info.height * (size_t)info.width + 1, 1);
    uint8_t *rgb = image->pixels;
    sx_status status = pixels == NULL ? sx_no_memory("for a GIF decoder") : begin(&in);
    memset(rgb, 0, bytes);
    for (int k = 0; k < frames && status == SX_OK; k++, rgb += bytes) {
        frame f;
        bool any = false;
        if (k > 0) {
            memcpy(rgb, rgb - bytes, bytes);
        }
        status = next_frame(&in, &f, &any);
        if (status == SX_OK) {
            status = read_codes(&in, &f, pixels, (size_t)f.height * (size_t)f.width);
        }
        if (status == SX_OK) {
            status = draw(&f, pixels, &info, rgb);
        }
    }
    sx_free(pixels);
    SX_TRY(status);
    sx_image_set(image, SX_U8, (int)height, info.width, 3);
    image->warnings = 0;
    return SX_OK;
}
