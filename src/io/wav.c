#include "io/wav.h"

#include <math.h>
#include <string.h>

#include "base/byte_order.h"
#include "base/checked.h"
#include "base/memory.h"

static bool may_precede_format(const uint8_t *name)
{
    static const char names[][5] = {"JUNK", "bext", "iXML", "qlty", "mext", "levl", "link", "axml"};
    for (size_t i = 0; i < SX_COUNT(names); i++) {
        if (memcmp(name, names[i], 4) == 0) {
            return true;
        }
    }
    return false;
}

/* The format chunk at *at, and all before it; *at becomes the place of the chunk after it. */
static sx_status parse_format(sx_bytes file, size_t *at, sx_wav *out)
{
    const uint8_t *bytes = file.data;
    size_t k = 12;
    if (file.size < k || memcmp(bytes, "RIFF", 4) != 0 || memcmp(bytes + 8, "WAVE", 4) != 0) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "not a WAV file: %zu bytes that do not begin with RIFF and WAVE",
                        file.size);
    }
    for (; file.size - k >= 8 && memcmp(bytes + k, "fmt ", 4) != 0;
         k += 8 + sx_load_le32(bytes + k + 4)) {
        if (!may_precede_format(bytes + k)) {
            return sx_error(SX_INVALID_ARGUMENT,
                            "WAV: byte %zu begins a chunk that is not expected before the format",
                            k);
        }
        if (sx_load_le32(bytes + k + 4) > file.size - k - 8) {
            return sx_error(SX_INVALID_ARGUMENT, "WAV: cut off in the chunk at byte %zu", k);
        }
    }
    if (file.size - k < 8 + 16) {
        return sx_error(SX_INVALID_ARGUMENT, "WAV: cut off before the end of the format");
    }
    const uint8_t *format = bytes + k + 8;
    const uint32_t size = sx_load_le32(bytes + k + 4), channels = sx_load_le16(format + 2),
                   rate = sx_load_le32(format + 4), frame = sx_load_le16(format + 12);
    if ((size != 16 && size != 18) || sx_load_le16(format) != 1 ||
        sx_load_le16(format + 14) != 16) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "WAV: a format of %u bytes, coding %u, %u bits a sample; expected 16 or 18 "
                        "bytes, coding 1 (PCM), 16 bits",
                        size, sx_load_le16(format), sx_load_le16(format + 14));
    }
    if (channels < 1 || frame != 2 * channels ||
        sx_load_le32(format + 8) != (uint64_t)frame * rate) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "WAV: %u channels, %u bytes a frame and %u a second at a rate of %u "
                        "contradict each other",
                        channels, frame, sx_load_le32(format + 8), rate);
    }
    *out = (sx_wav){.channels = channels, .rate = rate};
    *at = k + 8 + size;
    return SX_OK;
}

sx_status sx_wav_parse(sx_bytes file, sx_wav *out)
{
    const uint8_t *bytes = file.data;
    size_t at = 0;
    SX_TRY(parse_format(file, &at, out));
    while (at < file.size) {
        if (file.size - at < 8) {
            return sx_error(SX_INVALID_ARGUMENT, "WAV: cut off in a chunk's head at byte %zu", at);
        }
        const bool is_data = memcmp(bytes + at, "data", 4) == 0;
        const uint32_t size = sx_load_le32(bytes + at + 4);
        at += 8;
        if (size > INT32_MAX || (is_data && out->samples != NULL)) {
            return sx_error(SX_INVALID_ARGUMENT,
                            "WAV: the chunk at byte %zu has %u bytes, or is a second one of data",
                            at - 8, size);
        }
        if (!is_data) {
            at += size;
            continue;
        }
        out->frames = size / (2 * out->channels);
        const size_t whole = (size_t)(out->frames * 2 * out->channels);
        if (whole > file.size - at) {
            return sx_error(SX_INVALID_ARGUMENT,
                            "WAV: cut off: %zu bytes of data at byte %zu, the file has %zu", whole,
                            at, file.size - at);
        }
        out->samples = bytes + at;
        at += whole;
    }
    return out->samples != NULL ? SX_OK : sx_error(SX_INVALID_ARGUMENT, "WAV: no data chunk");
}

static void put_number(sx_buf *out, uint32_t value, int bytes)
{
    for (int i = 0; i < bytes; i++) {
        sx_buf_putc(out, (char)(uint8_t)(value >> (8 * i)));
    }
}

sx_status sx_wav_write(const double *samples, int64_t frames, int64_t channels, int64_t rate,
                       sx_buf *out)
{
    enum { HEAD = 44 };
    const bool sound =
        rate > 0 && rate <= UINT32_MAX && channels > 0 && channels <= UINT16_MAX && frames >= 0;
    if (!sound || frames > (UINT32_MAX - HEAD) / (2 * channels)) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "%lld frames of %lld channels at a rate of %lld are no WAV; expected a "
                        "rate of 1 or more, 1 to 65535 channels, less than 4 GiB",
                        (long long)frames, (long long)channels, (long long)rate);
    }
    const uint32_t frame = (uint32_t)(2 * channels), size = (uint32_t)frames * frame;
    sx_buf_puts(out, "RIFF");
    put_number(out, size + HEAD - 8, 4);
    sx_buf_puts(out, "WAVEfmt ");
    put_number(out, 16, 4);
    put_number(out, 1, 2);
    put_number(out, (uint32_t)channels, 2);
    put_number(out, (uint32_t)rate, 4);
    put_number(out, (uint32_t)rate * frame, 4);
    put_number(out, frame, 2);
    put_number(out, 16, 2);
    sx_buf_puts(out, "data");
    put_number(out, size, 4);
    uint8_t *to = sx_buf_extend(out, size);
    for (int64_t k = 0; to != NULL && k < frames * channels; k++) {
        const double x = round(samples[k] * 32768);
        const int16_t sample = (int16_t)(isnan(x) ? 0 : fmin(fmax(x, INT16_MIN), INT16_MAX));
        to[2 * k] = (uint8_t)((uint16_t)sample & 255);
        to[2 * k + 1] = (uint8_t)((uint16_t)sample >> 8);
    }
    return sx_buf_status(out);
}
