/* Printing floats; see shortest.h. */
#include "base/shortest.h"

#include <stdbool.h>
#include <string.h>

#include "base/pow10.h"

/* value = digits * 10^exponent */
struct decimal {
    uint64_t digits;
    int exponent;
};

enum {
    FIXED_MIN = -3, /* 0.0001 has no exponent, 1e-05 does */
    FIXED_MAX = 16, /* 9999999999999998.0 has no exponent, 1e+16 does */
};

static inline int floor_log2_pow10(int e)
{
    return (e * 1741647) >> 19;
}

/* floor(log10(2^q)), or floor(log10(3/4 * 2^q)) where the lower neighbour is nearer */
static inline int floor_log10_pow2(int q, bool lower_is_closer)
{
    return (q * 1262611 - (lower_is_closer ? 524031 : 0)) >> 22;
}

/* The table's entry rounded up. */
static inline sx_pow10 pow10_up(int k)
{
    sx_pow10 g = sx_pow10_get(k);
    if (k < 0 || k > 55) {
        g.low++;
        g.high += g.low == 0;
    }
    return g;
}

/* floor(g * cp / 2^128), with the lowest bit set if the division was not exact. */
static inline uint64_t round_to_odd(sx_pow10 g, uint64_t cp)
{
    const uint64_t low = (uint64_t)(((unsigned __int128)g.low * cp) >> 64);
    const unsigned __int128 sum = (unsigned __int128)g.high * cp + low;
    return (uint64_t)(sum >> 64) | ((uint64_t)sum > 1);
}

/* The same with 64 bits of 10^k and 32 bits of cp: floor(g * cp / 2^64). */
static inline uint64_t round_to_odd_32(uint64_t g, uint64_t cp)
{
    const unsigned __int128 product = (unsigned __int128)g * cp;
    return (uint64_t)(product >> 64) | ((uint32_t)((uint64_t)product >> 32) > 1);
}

/* Giulietti's choice among the decimals inside the rounding interval. The interval is
 * [lower, upper] in units of 10^k / 4, the value itself is vb. */
static inline struct decimal choose(uint64_t lower, uint64_t vb, uint64_t upper, int k)
{
    const uint64_t s = vb / 4;
    if (s >= 10) {
        const uint64_t sp = s / 10;
        const bool up_inside = lower <= 40 * sp;
        const bool wp_inside = 40 * sp + 40 <= upper;
        if (up_inside != wp_inside) {
            return (struct decimal){sp + wp_inside, k + 1};
        }
    }
    const bool u_inside = lower <= 4 * s;
    const bool w_inside = 4 * s + 4 <= upper;
    if (u_inside != w_inside) {
        return (struct decimal){s + w_inside, k};
    }
    const uint64_t middle = 4 * s + 2;
    const bool round_up = vb > middle || (vb == middle && (s & 1) != 0);
    return (struct decimal){s + round_up, k};
}

/* The shortest decimal of c * 2^q, with c of at most 53 bits; `first`: a power of two, for which
 * the gap below is half the gap above. */
static struct decimal shortest_f64(uint64_t c, int q, bool first)
{
    const bool odd = c & 1;
    const int k = floor_log10_pow2(q, first);
    const int h = q + floor_log2_pow10(-k) + 1;
    const sx_pow10 g = pow10_up(-k);
    const uint64_t lower = round_to_odd(g, (4 * c - 2 + first) << h) + odd;
    const uint64_t value = round_to_odd(g, (4 * c) << h);
    const uint64_t upper = round_to_odd(g, (4 * c + 2) << h) - odd;
    return choose(lower, value, upper, k);
}

static struct decimal shortest_f32(uint64_t c, int q, bool first)
{
    const bool odd = c & 1;
    const int k = floor_log10_pow2(q, first);
    const int h = q + floor_log2_pow10(-k) + 1;
    const sx_pow10 full = sx_pow10_get(-k);
    const uint64_t g = full.high + !(-k >= 0 && -k <= 27); /* 5^27 is the last that fits 64 bits */
    const uint64_t lower = round_to_odd_32(g, (4 * c - 2 + first) << h) + odd;
    const uint64_t value = round_to_odd_32(g, (4 * c) << h);
    const uint64_t upper = round_to_odd_32(g, (4 * c + 2) << h) - odd;
    return choose(lower, value, upper, k);
}

static const char digit_pairs[201] = "0001020304050607080910111213141516171819202122232425262728293"
                                     "0313233343536373839404142434445464748"
                                     "4950515253545556575859606162636465666768697071727374757677787"
                                     "9808182838485868788899091929394959697"
                                     "9899";

static inline int digit_count(uint64_t value)
{
    static const uint64_t powers[20] = {1u,
                                        10u,
                                        100u,
                                        1000u,
                                        10000u,
                                        100000u,
                                        1000000u,
                                        10000000u,
                                        100000000u,
                                        1000000000u,
                                        10000000000u,
                                        100000000000u,
                                        1000000000000u,
                                        10000000000000u,
                                        100000000000000u,
                                        1000000000000000u,
                                        10000000000000000u,
                                        100000000000000000u,
                                        1000000000000000000u,
                                        10000000000000000000u};
    const int bits = 64 - __builtin_clzll(value | 1);
    const int guess = (bits * 1233) >> 12; /* floor(log10(2^bits)), at most one too small */
    return guess + (guess == 20 || value >= powers[guess]) + (value == 0);
}

/* `count` digits of `value`, right-aligned before `out + count`. */
static inline void put_digits(char *out, uint64_t value, int count)
{
    char *p = out + count;
    while (value > UINT32_MAX) {
        p -= 2;
        memcpy(p, digit_pairs + 2 * (value % 100), 2);
        value /= 100;
    }
    uint32_t rest = (uint32_t)value;
    while (rest >= 100) {
        p -= 2;
        memcpy(p, digit_pairs + 2 * (rest % 100), 2);
        rest /= 100;
    }
    if (rest >= 10) {
        memcpy(p - 2, digit_pairs + 2 * rest, 2);
    } else {
        p[-1] = (char)('0' + rest);
    }
}

char *sx_print_u64(char *out, uint64_t value)
{
    const int count = digit_count(value);
    put_digits(out, value, count);
    return out + count;
}

char *sx_print_i64(char *out, int64_t value)
{
    uint64_t magnitude = (uint64_t)value;
    if (value < 0) {
        *out++ = '-';
        magnitude = 0 - magnitude;
    }
    return sx_print_u64(out, magnitude);
}

static char *put_text(char *out, const char *text)
{
    const size_t size = strlen(text);
    memcpy(out, text, size);
    return out + size;
}

/* d.ddde±xx; `count` digits, the first before the point. */
static char *lay_out_exponent(char *out, uint64_t digits, int count, int exponent)
{
    put_digits(out + 1, digits, count);
    out[0] = out[1];
    out[1] = '.';
    out += count + 1;
    while (out[-1] == '0') {
        out--;
    }
    out -= out[-1] == '.';
    *out++ = 'e';
    *out++ = exponent < 0 ? '-' : '+';
    const int magnitude = exponent < 0 ? -exponent : exponent;
    if (magnitude < 10) {
        *out++ = '0';
    }
    return sx_print_u64(out, (uint64_t)magnitude);
}

/* `point` digits stand before the decimal point (negative: zeros after it). */
static char *lay_out_fixed(char *out, uint64_t digits, int count, int point)
{
    if (point >= count) {
        put_digits(out, digits, count);
        for (int i = count; i < point; i++) {
            out[i] = '0';
        }
        memcpy(out + point, ".0", 2);
        return out + point + 2;
    }
    if (point <= 0) {
        memcpy(out, "0.000000", 8);
        out += 2 - point;
        put_digits(out, digits, count);
        out += count;
    } else {
        put_digits(out + 1, digits, count);
        for (int i = 0; i < point; i++) {
            out[i] = out[i + 1];
        }
        out[point] = '.';
        out += count + 1;
    }
    while (out[-1] == '0' && out[-2] != '.') {
        out--;
    }
    return out;
}

static inline char *lay_out(char *out, struct decimal d)
{
    const int count = digit_count(d.digits);
    const int point = count + d.exponent;
    if (point < FIXED_MIN || point > FIXED_MAX) {
        return lay_out_exponent(out, d.digits, count, point - 1);
    }
    return lay_out_fixed(out, d.digits, count, point);
}

static char *put_special(char *out, bool nan, bool negative)
{
    return put_text(out, nan ? "NaN" : negative ? "-Infinity" : "Infinity");
}

char *sx_print_f32(char *out, float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    const bool negative = bits >> 31;
    const int exponent = (int)(bits >> 23) & 0xFF;
    const uint32_t fraction = bits & 0x7FFFFF;
    if (exponent == 0xFF) {
        return put_special(out, fraction != 0, negative);
    }
    if (negative) {
        *out++ = '-';
    }
    if (exponent == 0 && fraction == 0) {
        return put_text(out, "0.0");
    }
    const uint64_t c = exponent == 0 ? fraction : fraction | 0x800000u;
    const int q = (exponent == 0 ? 1 : exponent) - 150;
    if (q <= 0 && -q < 24 && (c & (((uint64_t)1 << -q) - 1)) == 0) {
        return lay_out(out, (struct decimal){c >> -q, 0}); /* a whole number below 2^24 */
    }
    return lay_out(out, shortest_f32(c, q, fraction == 0 && exponent > 1));
}

char *sx_print_f64(char *out, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof(bits));
    const bool negative = bits >> 63;
    const int exponent = (int)(bits >> 52) & 0x7FF;
    const uint64_t fraction = bits & 0xFFFFFFFFFFFFFu;
    if (exponent == 0x7FF) {
        return put_special(out, fraction != 0, negative);
    }
    if (negative) {
        *out++ = '-';
    }
    if (exponent == 0 && fraction == 0) {
        return put_text(out, "0.0");
    }
    const uint64_t c = exponent == 0 ? fraction : fraction | 0x10000000000000u;
    const int q = (exponent == 0 ? 1 : exponent) - 1075;
    if (q <= 0 && -q < 53 && (c & (((uint64_t)1 << -q) - 1)) == 0) {
        return lay_out(out, (struct decimal){c >> -q, 0});
    }
    return lay_out(out, shortest_f64(c, q, fraction == 0 && exponent > 1));
}
