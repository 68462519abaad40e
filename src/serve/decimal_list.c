/* Lists of numbers; see decimal_list.h.
 *
 * Where a number ends, and so where the next one begins, is known from a mask of the characters
 * that follow, before its digits are looked at: the processor works on several numbers at a time.
 */
#include "serve/decimal_list.h"

#include <math.h>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "serve/decimal.h"
#include "serve/decimal_fast.h"

#define INLINE static inline __attribute__((always_inline))

/* What must follow of the text: two masks of 16 characters; digits are read eight at a time. */
enum { SHORT_ROOM = 32 + 8 };

struct cursor {
    const char *p, *end;
    const char *done; /* the end of what has been read */
};

/* A bit for each of 16 characters that no short number has, the lowest for the first. Short numbers
 * have digits, a point and a minus, which are characters from - to 9; so is /, which is no digit.
 */
static inline unsigned find_stops(const char *p)
{
#if defined(__SSE2__)
    const __m128i first = _mm_set1_epi8('-'), span = _mm_set1_epi8('9' - '-');
    const __m128i text = _mm_loadu_si128((const __m128i *)(const void *)p);
    const __m128i above = _mm_sub_epi8(text, first);
    const __m128i in_span = _mm_cmpeq_epi8(_mm_min_epu8(above, span), above);
    return 0xFFFF ^ (unsigned)_mm_movemask_epi8(in_span);
#else
    const uint64_t ones = 0x0101010101010101u, highs = 0x8080808080808080u;
    uint64_t stops = 0;
    for (int i = 0; i < 16; i += 8) {
        const uint64_t text = sx_load_le64(p + i);
        const uint64_t reaches = (text | highs) - ones * '-';
        const uint64_t passes = (text & ~highs) + ones * (0x7F - '9');
        const uint64_t outside = (~reaches | passes | text) & highs;
        stops |= (outside >> 7) * 0x0102040810204080u >> 56 << i; /* gathers the bits */
    }
    return (unsigned)stops;
#endif
}

/* The end of the number at c->p, or NULL: it is a long one, or too near to the end of the text. */
static inline const char *number_end(const struct cursor *c)
{
    if (c->end - c->p < SHORT_ROOM) {
        return NULL;
    }
    unsigned stops = find_stops(c->p);
    if (stops == 0) {
        stops = find_stops(c->p + 16) << 16;
    }
    return stops != 0 ? c->p + __builtin_ctz(stops) : NULL;
}

/* Eight digits of which the first 8 - count are 0 and the others are at p. */
static inline uint64_t load_digits(const char *p, ptrdiff_t count)
{
    return sx_digits_load(p) << (64 - 8 * count);
}

/* Characters before the first point among the eight at p; 8 = there is none. */
static inline ptrdiff_t before_point(const char *p)
{
    const uint64_t ones = 0x0101010101010101u, text = sx_load_le64(p) ^ ones * '.';
    const uint64_t found = (text - ones) & ~text & ones * 0x80;
    return found != 0 ? __builtin_ctzll(found) / 8 : 8;
}

/* Scans the number from p to `stop`, of at most 19 digits, 8 of them before the point; without a
 * branch for each digit. *out_after: the digits behind it. False: it is another number, or none. */
static inline bool scan_short(const char *p, const char *stop, uint64_t *out_digits, int *out_after)
{
    p += *p == '-';
    const ptrdiff_t size = stop - p;
    ptrdiff_t whole = 1;
    uint64_t digits = (unsigned char)(*p - '0'), others = digits > 9;
    if (p[1] != '.') {
        const ptrdiff_t point = before_point(p);
        whole = point < size ? point : size;
        if (whole == 0 || (point == 8 && size > 8) || (whole > 1 && *p == '0')) {
            return false;
        }
        const uint64_t word = load_digits(p, whole);
        others = sx_digits_others(word);
        digits = sx_digits_value(word);
    }
    ptrdiff_t after = 0;
    if (whole < size) {
        const char *q = p + whole + 1;
        after = stop - q;
        if (after == 0 || whole + after > SX_DECIMAL_DIGITS) {
            return false;
        }
        ptrdiff_t left = after;
        for (; left > 8; left -= 8, q += 8) {
            const uint64_t word = sx_digits_load(q);
            others |= sx_digits_others(word);
            digits = digits * sx_decimal_powers_u64[8] + sx_digits_value(word);
        }
        const uint64_t word = load_digits(q, left);
        others |= sx_digits_others(word);
        digits = digits * sx_decimal_powers_u64[left] + sx_digits_value(word);
    }
    *out_digits = digits;
    *out_after = (int)after;
    return others == 0 && (*stop | 0x20) != 'e';
}

static void store(const sx_decimal *number, bool wide, void *out)
{
    if (wide) {
        *(double *)out = sx_decimal_to_f64(number);
    } else {
        *(float *)out = sx_decimal_to_f32(number);
    }
}

/* The value of what scan_short() has found. */
static inline void store_short(uint64_t digits, int after, bool negative, bool wide, void *out)
{
    const double quotient = sx_decimal_divide(digits, -after);
    if (!sx_decimal_divides(digits, -after) || !(wide || sx_decimal_rounds_to_f32(quotient))) {
        const sx_decimal number = {.digits = digits, .exponent = -after, .negative = negative};
        store(&number, wide, out);
    } else if (wide) {
        *(double *)out = negative ? -quotient : quotient;
    } else {
        *(float *)out = (float)(negative ? -quotient : quotient);
    }
}

/* Reads any number; its end, or NULL: it is none, or beyond the range. */
static const char *read_other(const char *p, const char *end, bool wide, void *out)
{
    sx_decimal number;
    if (!sx_decimal_scan(p, end, &number)) {
        return NULL;
    }
    store(&number, wide, out);
    return isinf(wide ? *(double *)out : (double)*(float *)out) ? NULL : number.end;
}

static inline void skip_space(struct cursor *c)
{
    while (c->p < c->end && (unsigned char)*c->p <= ' ' &&
           (*c->p == ' ' || *c->p == '\n' || *c->p == '\r' || *c->p == '\t')) {
        c->p++;
    }
}

/* Takes `mark` if it is next, and white space on both sides. */
static inline bool take(struct cursor *c, char mark)
{
    if (c->p == c->end || *c->p != mark) {
        skip_space(c);
        if (c->p == c->end || *c->p != mark) {
            return false;
        }
    }
    c->p++;
    skip_space(c);
    return true;
}

/* Reads numbers; returns how many. */
INLINE size_t read_list(struct cursor *c, bool wide, char *out, size_t capacity)
{
    size_t count = 0;
    while (count < capacity) {
        uint64_t digits;
        int after;
        const char *stop = number_end(c);
        if (stop != NULL && scan_short(c->p, stop, &digits, &after)) {
            store_short(digits, after, *c->p == '-', wide, out);
        } else {
            stop = read_other(c->p, c->end, wide, out);
            if (stop == NULL) {
                break;
            }
        }
        out += wide ? sizeof(double) : sizeof(float);
        count++;
        c->done = c->p = stop;
        if (count == capacity || !take(c, ',')) {
            break;
        }
    }
    return count;
}

INLINE size_t read_rows(struct cursor *c, bool wide, char *out, size_t width, size_t capacity)
{
    const size_t row_bytes = width * (wide ? sizeof(double) : sizeof(float));
    const char *done = c->p;
    size_t count = 0;
    while (count < capacity && take(c, '[') && read_list(c, wide, out, width) == width) {
        skip_space(c);
        if (c->p == c->end || *c->p != ']') {
            break;
        }
        done = ++c->p;
        out += row_bytes;
        count++;
        if (!take(c, ',')) {
            break;
        }
    }
    c->done = done;
    return count;
}

const char *sx_decimal_read_list(const char *text, const char *end, sx_dtype dtype, void *out,
                                 size_t capacity, size_t *out_count)
{
    struct cursor c = {text, end, text};
    *out_count =
        dtype == SX_F64 ? read_list(&c, true, out, capacity) : read_list(&c, false, out, capacity);
    return c.done;
}

const char *sx_decimal_read_rows(const char *text, const char *end, sx_dtype dtype, void *out,
                                 size_t width, size_t capacity, size_t *out_count)
{
    struct cursor c = {text, end, text};
    *out_count = dtype == SX_F64 ? read_rows(&c, true, out, width, capacity)
                                 : read_rows(&c, false, out, width, capacity);
    return c.done;
}
