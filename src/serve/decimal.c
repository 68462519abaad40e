/* Reading JSON numbers; see decimal.h. */
#include "serve/decimal.h"

#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/pow10.h"
#include "serve/decimal_fast.h"

enum {
    MAX_EXPONENT = 1000000, /* larger exponents always give 0 or infinity */
    SLOW_DIGITS = 800,      /* the midpoint of two doubles has at most 767 significant digits */
};

/* Parameters of the two formats, in the terms of IEEE 754. */
struct format {
    int mantissa_bits; /* stored */
    int minimum_exponent;
    int infinite_power;
    int smallest_pow10, largest_pow10; /* beyond: 0 or infinity */
    int min_exponent_to_even,
        max_exponent_to_even; /* exponents for which exact ties are possible */
};

static const struct format format_f32 = {23, -127, 0xFF, -64, 38, -17, 10};
static const struct format format_f64 = {52, -1023, 0x7FF, -342, 308, -4, 23};

static inline bool is_digit(char c)
{
    return (unsigned char)(c - '0') < 10;
}

/* How many of 8 characters are digits before the first that is none, and the value of these. */
static inline int leading_digits(const char *p, uint64_t *value)
{
    const uint64_t digits = sx_digits_load(p), others = sx_digits_others(digits);
    const int count = others != 0 ? __builtin_ctzll(others) / 8 : 8;
    const uint64_t aligned = count > 0 ? digits << (64 - 8 * count) : 0;
    *value = sx_digits_value(aligned);
    return count;
}

/* Accumulates consecutive digits in `value`, which may wrap: the caller counts them. */
static inline const char *scan_digits(const char *p, const char *end, uint64_t *value)
{
    uint64_t v = *value;
    int count = 8;
    while (end - p >= 8 && count == 8) {
        uint64_t more;
        count = leading_digits(p, &more);
        v = v * sx_decimal_powers_u64[count] + more;
        p += count;
    }
    while (count == 8 && p < end && is_digit(*p)) {
        v = v * 10 + (uint64_t)(*p - '0');
        p++;
    }
    *value = v;
    return p;
}

/* Reads e, sign and digits at *p; the exponent saturates. */
static bool scan_exponent(const char **p, const char *end, int64_t *out_exponent)
{
    const char *q = *p + 1;
    bool negative = false;
    if (q < end && (*q == '+' || *q == '-')) {
        negative = *q == '-';
        q++;
    }
    if (q == end || !is_digit(*q)) {
        return false;
    }
    int64_t value = 0;
    for (; q < end && is_digit(*q); q++) {
        value = value < MAX_EXPONENT ? value * 10 + (*q - '0') : value;
    }
    *out_exponent = negative ? -value : value;
    *p = q;
    return true;
}

/* More than 19 digits were written: keep the first 19 significant ones and fix the exponent.
 * Leading zeros do not count. `digits_end` is the end of the digits and the point. */
static void keep_leading_digits(const char *p, const char *digits_end, int64_t written_exponent,
                                sx_decimal *d)
{
    uint64_t value = 0;
    int kept = 0;
    int64_t dropped = 0, after_point = 0;
    bool point = false;
    for (; p < digits_end; p++) {
        if (*p == '.') {
            point = true;
            continue;
        }
        after_point += point;
        if (kept == 0 && *p == '0') {
            continue;
        }
        if (kept < SX_DECIMAL_DIGITS) {
            value = value * 10 + (uint64_t)(*p - '0');
            kept++;
        } else {
            dropped++;
        }
    }
    const int64_t exponent = written_exponent - after_point + dropped;
    d->digits = value;
    d->truncated = dropped > 0;
    d->exponent = (int32_t)(exponent > MAX_EXPONENT    ? MAX_EXPONENT
                            : exponent < -MAX_EXPONENT ? -MAX_EXPONENT
                                                       : exponent);
}

bool sx_decimal_scan(const char *text, const char *end, sx_decimal *out_decimal)
{
    const char *p = text;
    sx_decimal d = {.text = text};
    if (p < end && *p == '-') {
        d.negative = true;
        p++;
    }
    const char *first = p;
    if (p == end || !is_digit(*p)) {
        return false;
    }
    uint64_t value = 0;
    if (*p == '0') {
        p++;
        if (p < end && is_digit(*p)) {
            return false;
        }
    } else {
        p = scan_digits(p, end, &value);
    }
    ptrdiff_t count = p - first;
    int64_t exponent = 0;
    d.integral = true;
    if (p < end && *p == '.') {
        const char *fraction = ++p;
        p = scan_digits(p, end, &value);
        if (p == fraction) {
            return false;
        }
        exponent = fraction - p;
        count += p - fraction;
        d.integral = false;
    }
    const char *digits_end = p;
    int64_t written = 0;
    if (p < end && (*p == 'e' || *p == 'E')) {
        if (!scan_exponent(&p, end, &written)) {
            return false;
        }
        d.integral = false;
    }
    d.end = p;
    d.digits = value;
    d.exponent = (int32_t)(exponent + written);
    if (count > SX_DECIMAL_DIGITS) {
        keep_leading_digits(first, digits_end, written, &d);
    }
    *out_decimal = d;
    return true;
}

/* 10^q, rounded up where 5^-q can divide the digits exactly (section 8.5 of the paper), else down.
 */
static inline sx_pow10 multiplier(int q)
{
    sx_pow10 m = sx_pow10_get(q);
    if (q < 0 && q >= -27) {
        m.low++;
        m.high += m.low == 0;
    }
    return m;
}

/* The bits of |w * 10^q| in the format, without sign. */
static inline uint64_t nearest_bits(const struct format *f, uint64_t w, int64_t q)
{
    const uint64_t infinity = (uint64_t)f->infinite_power << f->mantissa_bits;
    if (w == 0 || q < f->smallest_pow10 - SX_DECIMAL_DIGITS) {
        return 0;
    }
    if (q > f->largest_pow10) {
        return infinity;
    }
    if (q < SX_POW10_MIN) {
        return 0;
    }
    const int leading = __builtin_clzll(w);
    w <<= leading;
    const sx_pow10 m = multiplier((int)q);
    const int precision = f->mantissa_bits + 3;
    unsigned __int128 product = (unsigned __int128)w * m.high;
    uint64_t high = (uint64_t)(product >> 64), low = (uint64_t)product;
    const uint64_t mask = UINT64_MAX >> precision;
    if ((high & mask) == mask) {
        const uint64_t more = (uint64_t)(((unsigned __int128)w * m.low) >> 64);
        low += more;
        high += more > low;
    }
    const int upper = (int)(high >> 63);
    const int shift = upper + 64 - f->mantissa_bits - 3;
    uint64_t mantissa = high >> shift;
    /* floor(log2(10^q)) + 63, exact in this range */
    const int power = (int)(((152170 + 65536) * q) >> 16) + 63;
    int exponent = power + upper - leading - f->minimum_exponent;
    if (exponent <= 0) { /* subnormal */
        if (-exponent + 1 >= 64) {
            return 0;
        }
        mantissa >>= -exponent + 1;
        mantissa += mantissa & 1;
        return mantissa >> 1; /* a carry into the exponent is the smallest normal number */
    }
    if (low <= 1 && q >= f->min_exponent_to_even && q <= f->max_exponent_to_even &&
        (mantissa & 3) == 1 && mantissa << shift == high) {
        mantissa &= ~(uint64_t)1; /* an exact tie with an even neighbour below */
    }
    mantissa += mantissa & 1;
    mantissa >>= 1;
    if (mantissa >= (uint64_t)2 << f->mantissa_bits) {
        mantissa = (uint64_t)1 << f->mantissa_bits;
        exponent++;
    }
    if (exponent >= f->infinite_power) {
        return infinity;
    }
    mantissa &= ~((uint64_t)1 << f->mantissa_bits);
    return mantissa | (uint64_t)exponent << f->mantissa_bits;
}

/* Copies the number for strtod: sign, at most SLOW_DIGITS significant digits, a 1 in place of any
 * further ones, and the exponent. Returns the text's length. */
static size_t copy_for_strtod(const sx_decimal *d, char *out)
{
    size_t size = 0;
    int kept = 0;
    bool sticky = false;
    const char *p = d->text + d->negative;
    if (d->negative) {
        out[size++] = '-';
    }
    for (; p < d->end && *p != 'e' && *p != 'E'; p++) {
        if (*p == '.' || (kept == 0 && *p == '0')) {
            continue;
        }
        if (kept < SLOW_DIGITS) {
            out[size++] = *p;
            kept++;
        } else {
            sticky |= *p != '0';
        }
    }
    /* The first 19 digits times 10^exponent: the copy has kept - 19 digits more. */
    int exponent = d->exponent - (kept - SX_DECIMAL_DIGITS);
    if (sticky) {
        out[size++] = '1';
        exponent--;
    }
    out[size++] = 'e';
    char digits[16];
    int count = 0;
    unsigned magnitude = (unsigned)(exponent < 0 ? -exponent : exponent);
    do {
        digits[count++] = (char)('0' + magnitude % 10);
        magnitude /= 10;
    } while (magnitude > 0);
    if (exponent < 0) {
        out[size++] = '-';
    }
    while (count > 0) {
        out[size++] = digits[--count];
    }
    out[size] = '\0';
    return size;
}

static bool decided_by_leading_digits(const struct format *f, const sx_decimal *d, uint64_t *bits)
{
    *bits = nearest_bits(f, d->digits, d->exponent);
    return !d->truncated || *bits == nearest_bits(f, d->digits + 1, d->exponent);
}

static double slow_f64(const sx_decimal *d)
{
    char text[SLOW_DIGITS + 32];
    copy_for_strtod(d, text);
    locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0); /* glibc: static, cannot fail */
    const double value = strtod_l(text, NULL, c);
    freelocale(c);
    return value;
}

static float slow_f32(const sx_decimal *d)
{
    char text[SLOW_DIGITS + 32];
    copy_for_strtod(d, text);
    locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    const float value = strtof_l(text, NULL, c);
    freelocale(c);
    return value;
}

/* The value by one division, where that rounds once. */
static bool divides_exactly(const sx_decimal *d, double *out_value)
{
    if (d->truncated || !sx_decimal_divides(d->digits, d->exponent)) {
        return false;
    }
    const double quotient = sx_decimal_divide(d->digits, d->exponent);
    *out_value = d->negative ? -quotient : quotient;
    return true;
}

float sx_decimal_to_f32(const sx_decimal *decimal)
{
    uint64_t bits;
    double quotient;
    if (divides_exactly(decimal, &quotient) && sx_decimal_rounds_to_f32(quotient)) {
        return (float)quotient;
    }
    if (!decided_by_leading_digits(&format_f32, decimal, &bits)) {
        return slow_f32(decimal);
    }
    const uint32_t narrow = (uint32_t)bits | (uint32_t)decimal->negative << 31;
    float value;
    memcpy(&value, &narrow, sizeof(value));
    return value;
}

double sx_decimal_to_f64(const sx_decimal *decimal)
{
    uint64_t bits;
    double value;
    if (divides_exactly(decimal, &value)) {
        return value;
    }
    if (!decided_by_leading_digits(&format_f64, decimal, &bits)) {
        return slow_f64(decimal);
    }
    bits |= (uint64_t)decimal->negative << 63;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

bool sx_decimal_to_u64(const sx_decimal *decimal, uint64_t *out_value)
{
    if (!decimal->integral || (decimal->negative && decimal->digits != 0)) {
        return false;
    }
    if (!decimal->truncated) {
        *out_value = decimal->digits;
        return true;
    }
    uint64_t value = 0; /* 20 digits may fit */
    for (const char *p = decimal->text + decimal->negative; p < decimal->end; p++) {
        if (__builtin_mul_overflow(value, (uint64_t)10, &value) ||
            __builtin_add_overflow(value, (uint64_t)(*p - '0'), &value)) {
            return false;
        }
    }
    *out_value = value;
    return true;
}

bool sx_decimal_to_i64(const sx_decimal *decimal, int64_t *out_value)
{
    if (!decimal->integral || decimal->truncated) {
        return false; /* every int64 has at most 19 digits */
    }
    const uint64_t limit = (uint64_t)INT64_MAX + decimal->negative;
    if (decimal->digits > limit) {
        return false;
    }
    *out_value = decimal->negative ? (int64_t)(0 - decimal->digits) : (int64_t)decimal->digits;
    return true;
}
