// What the bridge has a device compute. One source for two compilers: nvcc makes the PTX text that is checked in beside
// the Java sources, g++ makes the same functions part of the stand-in that tests run on. So nothing here needs a warp,
// shared memory or a header of NVIDIA's, and every kernel is a loop over a grid of any size.
#ifdef __CUDACC__
#include <stdint.h>
#else
#include "cuda_shim.h"
#endif

#define KERNEL extern "C" __global__ void
#define EACH(index, count)                                                                             \
    for (uint64_t index = blockIdx.x * (uint64_t) blockDim.x + threadIdx.x; index < (uint64_t) (count); \
         index += (uint64_t) gridDim.x * blockDim.x)

static __device__ inline uint32_t bits_of(float value) {
    union { float f; uint32_t u; } both;
    both.f = value;
    return both.u;
}

static __device__ inline float of_bits(uint32_t value) {
    union { uint32_t u; float f; } both;
    both.u = value;
    return both.f;
}

static __device__ inline float of_bf16(uint16_t value) { return of_bits((uint32_t) value << 16); }

// Nearest, ties to even. A NaN stays one, whatever is cut off.
static __device__ inline uint16_t to_bf16(float value) {
    uint32_t u = bits_of(value);
    if ((u & 0x7FFFFFFFu) > 0x7F800000u) return (uint16_t) ((u >> 16) | 0x40u);
    return (uint16_t) ((u + 0x7FFFu + ((u >> 16) & 1u)) >> 16);
}

// Copies piece i from from[i] to to[i], `units` times 16 bytes each. Places are multiples of 16.
KERNEL kv_copy_pieces(const uint64_t* from, const uint64_t* to, uint32_t units, uint32_t count) {
    EACH(at, (uint64_t) units * count) {
        uint32_t piece = (uint32_t) (at / units);
        uint32_t unit = (uint32_t) (at % units);
        ((uint4*) to[piece])[unit] = ((const uint4*) from[piece])[unit];
    }
}

// CRC32C of each run of `run` bytes, the last one perhaps shorter. Bit by bit: no table to fetch.
static __device__ inline uint32_t crc_byte(uint32_t crc, uint8_t byte) {
    crc ^= byte;
    for (int bit = 0; bit < 8; bit++) crc = (crc >> 1) ^ (0x82F63B78u & (0u - (crc & 1u)));
    return crc;
}

KERNEL kv_crc32c_runs(const uint8_t* data, uint64_t bytes, uint32_t run, uint32_t* sums) {
    EACH(index, (bytes + run - 1) / run) {
        uint64_t start = index * run;
        uint64_t end = start + run < bytes ? start + run : bytes;
        uint32_t crc = 0xFFFFFFFFu;
        for (uint64_t at = start; at < end; at++) crc = crc_byte(crc, data[at]);
        sums[index] = ~crc;
    }
}

// The product of two polynomials of GF(2) modulo that of CRC32C, lowest power in the highest bit.
static __device__ inline uint32_t crc_times(uint32_t a, uint32_t b) {
    uint32_t product = 0;
    for (int bit = 31; bit >= 0; bit--) {
        if ((b >> bit) & 1u) product ^= a;
        a = (a >> 1) ^ (0x82F63B78u & (0u - (a & 1u)));
    }
    return product;
}

// x to the power of 8 · bytes.
static __device__ inline uint32_t crc_shift(uint64_t bytes) {
    uint32_t power = 0x00800000u; // x^8
    uint32_t result = 0x80000000u; // 1
    for (; bytes != 0; bytes >>= 1) {
        if (bytes & 1) result = crc_times(result, power);
        power = crc_times(power, power);
    }
    return result;
}

// CRC32C of each chunk out of those of its runs; a chunk is a whole number of runs.
KERNEL kv_crc32c_chunks(const uint32_t* sums, uint64_t bytes, uint32_t run, uint32_t chunk, uint32_t* out) {
    uint32_t per_chunk = chunk / run;
    uint64_t runs = (bytes + run - 1) / run;
    EACH(index, (bytes + chunk - 1) / chunk) {
        uint64_t first = index * per_chunk;
        uint64_t last = first + per_chunk < runs ? first + per_chunk : runs;
        uint32_t whole = crc_shift(run);
        uint32_t crc = sums[first];
        for (uint64_t at = first + 1; at < last; at++) {
            uint64_t length = (at + 1) * run <= bytes ? run : bytes - at * run;
            crc = crc_times(crc, length == run ? whole : crc_shift(length)) ^ sums[at];
        }
        out[index] = crc;
    }
}

// Rotates rows of K, of `row` bf16 values each, by an angle for each of `pairs` pairs: values i and i + pairs when
// halves, else 2i and 2i + 1; what is behind them stays. turns: [pairs][cos, sin].
KERNEL kv_rope_shift(uint16_t* keys, const float* turns, uint64_t rows, uint32_t row, uint32_t pairs, uint32_t halves) {
    EACH(at, rows * pairs) {
        uint32_t pair = (uint32_t) (at % pairs);
        uint16_t* first = keys + (at / pairs) * row + (halves ? pair : 2 * pair);
        uint16_t* second = first + (halves ? pairs : 1);
        float c = turns[2 * pair];
        float s = turns[2 * pair + 1];
        float a = of_bf16(*first);
        float b = of_bf16(*second);
        *first = to_bf16(a * c - b * s);
        *second = to_bf16(b * c + a * s);
    }
}

static __device__ inline bool finite(float value) { return (bits_of(value) & 0x7F800000u) != 0x7F800000u; }

static __device__ inline float magnitude(float value) { return of_bits(bits_of(value) & 0x7FFFFFFFu); }

// The scale of a group of bf16 values: its largest finite one becomes 448, the largest of e4m3. 1 for zeroes.
static __device__ inline float fp8_scale(const uint16_t* values, uint32_t group) {
    float most = 0;
    for (uint32_t i = 0; i < group; i++) {
        float value = magnitude(of_bf16(values[i]));
        if (finite(value) && value > most) most = value;
    }
    float scale = most / 448.0f;
    return scale > 0 ? scale : 1.0f;
}

KERNEL kv_fp8_scales(const uint16_t* values, uint64_t groups, uint32_t group, float* scales) {
    EACH(index, groups) scales[index] = fp8_scale(values + index * group, group);
}

// Nearest e4m3 of a magnitude, ties to even; 448 is the largest.
static __device__ inline uint8_t to_e4m3(float value) {
    if (value >= 448.0f) return 0x7E;
    uint32_t u = bits_of(value);
    if (value < 0.015625f) { // 2^-6: below it steps are of 2^-9
        float steps = value * 512.0f;
        uint32_t whole = (uint32_t) steps;
        float rest = steps - (float) whole;
        return (uint8_t) (whole + (rest > 0.5f || (rest == 0.5f && (whole & 1u)) ? 1 : 0));
    }
    u += 0x7FFFFu + ((u >> 20) & 1u);
    return (uint8_t) ((u >> 20) - (120u << 3)); // exponents are biased by 127 there and by 7 here
}

static __device__ inline uint8_t to_fp8(uint16_t bits, float scale) {
    float value = of_bf16(bits);
    uint8_t sign = (uint8_t) ((bits >> 8) & 0x80u);
    bool nan = (bits_of(value) & 0x7FFFFFFFu) > 0x7F800000u;
    return (uint8_t) (sign | (nan ? 0x7F : to_e4m3(magnitude(value) / scale)));
}

KERNEL kv_to_fp8(const uint16_t* values, uint64_t count, uint32_t group, const float* scales, uint8_t* out) {
    EACH(at, count) out[at] = to_fp8(values[at], scales[at / group]);
}

// Of the magnitude alone.
static __device__ inline float of_e4m3(uint8_t code) {
    uint32_t exponent = (code >> 3) & 15u;
    uint32_t mantissa = code & 7u;
    if ((code & 0x7Fu) == 0x7Fu) return of_bits(0x7FC00000u);
    if (exponent == 0) return (float) mantissa * 0.001953125f; // 2^-9
    return of_bits(((exponent + 120u) << 23) | (mantissa << 20));
}

KERNEL kv_from_fp8(const uint8_t* codes, uint64_t count, uint32_t group, const float* scales, uint16_t* out) {
    EACH(at, count) {
        uint16_t value = to_bf16(of_e4m3(codes[at]) * scales[at / group]);
        out[at] = (uint16_t) (value | ((codes[at] & 0x80u) << 8));
    }
}

// Transposes pieces of [rows][columns] entries to [columns][rows], each entry `units` times 16 bytes: an engine's
// [token][head] to a block's [head][token], and back with rows and columns swapped.
KERNEL kv_relayout_pieces(const uint64_t* from, const uint64_t* to, uint32_t rows, uint32_t columns, uint32_t units,
                          uint32_t count) {
    uint64_t piece_units = (uint64_t) rows * columns * units;
    EACH(at, piece_units * count) {
        uint64_t piece = at / piece_units;
        uint64_t within = at % piece_units;
        uint64_t entry = within / units;
        uint64_t turned = (entry % columns) * rows + entry / columns;
        ((uint4*) to[piece])[turned * units + within % units] = ((const uint4*) from[piece])[within];
    }
}

// Codes of 4 bits: value = zero + code * scale, both of the group. What is not finite does not count for them.
struct Range {
    float scale;
    float zero;
};

static __device__ inline Range range_of(const uint16_t* values, uint32_t group) {
    float least = 0, most = 0;
    bool any = false;
    for (uint32_t i = 0; i < group; i++) {
        float value = of_bf16(values[i]);
        if (!finite(value)) continue;
        if (!any || value < least) least = value;
        if (!any || value > most) most = value;
        any = true;
    }
    Range range;
    float scale = most / 15.0f - least / 15.0f; // their difference may be no float
    range.scale = scale > 0 ? scale : 1.0f;
    range.zero = least;
    return range;
}

// Nearest code, ties to even; beyond the ends the nearest of them, and for a NaN the lower one.
static __device__ inline uint32_t to_int4(float value, Range range) {
    float over = value - range.zero;
    float steps = finite(over) ? over / range.scale : value / range.scale - range.zero / range.scale;
    if (!(steps > 0)) return 0;
    if (steps >= 15.0f) return 15;
    uint32_t whole = (uint32_t) steps;
    float rest = steps - (float) whole;
    return whole + (rest > 0.5f || (rest == 0.5f && (whole & 1u)) ? 1 : 0);
}

static __device__ inline void code_int4(const uint16_t* values, uint32_t group, uint8_t* codes, float* scales) {
    Range range = range_of(values, group);
    scales[0] = range.scale;
    scales[1] = range.zero;
    for (uint32_t i = 0; i < group; i += 2) {
        uint32_t low = to_int4(of_bf16(values[i]), range);
        uint32_t high = to_int4(of_bf16(values[i + 1]), range);
        codes[i / 2] = (uint8_t) (low | (high << 4));
    }
}

static __device__ inline void code_fp8(const uint16_t* values, uint32_t group, uint8_t* codes, float* scales) {
    scales[0] = fp8_scale(values, group);
    for (uint32_t i = 0; i < group; i++) codes[i] = to_fp8(values[i], scales[0]);
}

// Gathers pieces of `groups` groups each into codes of 8 bits (e4m3) or 4, in one pass: codes one after the other, and
// the scales of each group (scale and zero for 4 bits).
KERNEL kv_gather_coded(const uint64_t* from, uint32_t groups, uint32_t group, uint32_t bits, uint64_t count,
                       uint8_t* codes, float* scales) {
    EACH(at, groups * count) {
        const uint16_t* values = (const uint16_t*) from[at / groups] + (at % groups) * group;
        if (bits == 4) {
            code_int4(values, group, codes + at * (group / 2), scales + 2 * at);
        } else {
            code_fp8(values, group, codes + at * group, scales + at);
        }
    }
}

static __device__ inline float decoded(const uint8_t* codes, const float* scales, uint32_t group, uint32_t bits,
                                       uint64_t at) {
    uint64_t of = at / group;
    if (bits == 4) {
        uint32_t code = (codes[at / 2] >> (4 * (at & 1))) & 15u;
        return scales[2 * of + 1] + (float) code * scales[2 * of];
    }
    float value = of_e4m3(codes[at]) * scales[of];
    return codes[at] & 0x80u ? -value : value;
}

// Scatters codes to pieces of `rows` rows of `row` bf16 values each, in one pass. Rows of keys are turned as by
// kv_rope_shift, before they are rounded; pieces come as a block has them, [side][run], and keys are those of side 0.
// No pairs turn nothing.
KERNEL kv_scatter_coded(const uint8_t* codes, const float* scales, uint32_t group, uint32_t bits, const uint64_t* to,
                        uint64_t count, uint32_t rows, uint32_t row, const float* turns, uint32_t pairs,
                        uint32_t halves, uint32_t sides, uint32_t run) {
    uint32_t items = row - pairs; // a pair, or a value behind them
    EACH(at, count * rows * items) {
        uint32_t item = (uint32_t) (at % items);
        uint64_t line = at / items;
        uint64_t piece = line / rows;
        uint64_t start = line * row;
        uint16_t* out = (uint16_t*) to[piece] + (line % rows) * row;
        if (item >= pairs) {
            uint32_t i = item + pairs;
            out[i] = to_bf16(decoded(codes, scales, group, bits, start + i));
            continue;
        }
        uint32_t first = halves ? item : 2 * item;
        uint32_t second = first + (halves ? pairs : 1);
        float a = decoded(codes, scales, group, bits, start + first);
        float b = decoded(codes, scales, group, bits, start + second);
        if ((piece / run) % sides == 0) {
            float c = turns[2 * item];
            float s = turns[2 * item + 1];
            float turned = a * c - b * s;
            b = b * c + a * s;
            a = turned;
        }
        out[first] = to_bf16(a);
        out[second] = to_bf16(b);
    }
}

// How much queries want of each block of keys: for each query and its head the largest product with a key. Keys are
// [token][head][dim] of bf16, queries [query][queryHead][dim]; query heads share heads in runs.
KERNEL kv_score_keys(const uint64_t* keys, uint32_t tokens, uint32_t heads, uint32_t dim, const uint16_t* queries,
                     uint32_t wanted, uint32_t query_heads, uint64_t count, float* most) {
    uint32_t each = wanted * query_heads;
    EACH(at, count * each) {
        const uint16_t* query = queries + (at % each) * dim;
        uint32_t head = (uint32_t) (at % query_heads) / (query_heads / heads);
        const uint16_t* key = (const uint16_t*) keys[at / each] + head * dim;
        float best = 0;
        for (uint32_t token = 0; token < tokens; token++, key += heads * dim) {
            float product = 0;
            for (uint32_t i = 0; i < dim; i++) product += of_bf16(query[i]) * of_bf16(key[i]);
            if (token == 0 || product > best) best = product;
        }
        most[at] = best;
    }
}

// The least and the most of each channel over the tokens of a block of keys: [block][least, most][head][dim].
KERNEL kv_key_bounds(const uint64_t* keys, uint32_t tokens, uint32_t row, uint64_t count, uint16_t* bounds) {
    EACH(at, count * row) {
        const uint16_t* key = (const uint16_t*) keys[at / row] + at % row;
        uint16_t least = key[0];
        uint16_t most = key[0];
        for (uint32_t token = 1; token < tokens; token++) {
            uint16_t value = key[(uint64_t) token * row];
            if (of_bf16(value) < of_bf16(least)) least = value;
            if (of_bf16(value) > of_bf16(most)) most = value;
        }
        bounds[(at / row) * 2 * row + at % row] = least;
        bounds[(at / row) * 2 * row + row + at % row] = most;
    }
}

// As kv_score_keys, of bounds: no key of the block has a larger product.
KERNEL kv_score_bounds(const uint16_t* bounds, uint32_t heads, uint32_t dim, const uint16_t* queries, uint32_t wanted,
                       uint32_t query_heads, uint64_t count, float* most) {
    uint32_t each = wanted * query_heads;
    EACH(at, count * each) {
        const uint16_t* query = queries + (at % each) * dim;
        uint32_t head = (uint32_t) (at % query_heads) / (query_heads / heads);
        const uint16_t* least = bounds + (at / each) * 2 * heads * dim + head * dim;
        const uint16_t* largest = least + heads * dim;
        float product = 0;
        for (uint32_t i = 0; i < dim; i++) {
            float low = of_bf16(query[i]) * of_bf16(least[i]);
            float high = of_bf16(query[i]) * of_bf16(largest[i]);
            product += low > high ? low : high;
        }
        most[at] = product;
    }
}

// The mean of each block's, over the square root of dim.
KERNEL kv_score_means(const float* most, uint32_t each, float by, uint64_t count, float* scores) {
    EACH(at, count) {
        float sum = 0;
        for (uint32_t i = 0; i < each; i++) sum += most[at * each + i];
        scores[at] = sum * by / (float) each;
    }
}
