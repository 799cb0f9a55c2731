// What the bridge has a device compute. One source for two compilers: nvcc makes the PTX text that is checked in beside
// the Java sources, g++ makes the same functions part of the stand-in that tests run on. So nothing here needs shared
// memory or a header of NVIDIA's, nor more of its functions than __shfl_xor_sync and __byte_perm, and every kernel is a
// loop over a grid of any number of groups of whole warps.
#ifdef __CUDACC__
#include <stdint.h>
#else
#include "cuda_shim.h"
#endif

#ifdef __CUDACC__
#define UNROLL _Pragma("unroll")
#define ONCE _Pragma("unroll 1")
#else
#define UNROLL
#define ONCE
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

// Copies piece i from from[i] to to[i], `units` times 16 bytes each, less than 32 GiB in all. Places are multiples of 16,
// in device memory or in registered host memory. A thread reads several units before it writes the first: each takes
// more than a microsecond over the bus.
#define UNITS_AT_ONCE 4

KERNEL kv_copy_pieces(const uint64_t* from, const uint64_t* to, uint32_t units, uint32_t count) {
    uint32_t all = units * count;
    uint32_t step = gridDim.x * blockDim.x;
    for (uint32_t first = blockIdx.x * blockDim.x + threadIdx.x; first < all; first += UNITS_AT_ONCE * step) {
        const uint4* sources[UNITS_AT_ONCE];
        uint4* targets[UNITS_AT_ONCE];
        uint4 values[UNITS_AT_ONCE];
        UNROLL for (uint32_t i = 0; i < UNITS_AT_ONCE; i++) {
            uint32_t at = first + i * step < all ? first + i * step : first;
            sources[i] = (const uint4*) from[at / units] + at % units;
            targets[i] = (uint4*) to[at / units] + at % units;
        }
        UNROLL for (uint32_t i = 0; i < UNITS_AT_ONCE; i++) values[i] = *sources[i];
        UNROLL for (uint32_t i = 0; i < UNITS_AT_ONCE; i++) {
            if (first + i * step < all) *targets[i] = values[i];
        }
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

// Turns a pair of bf16 values.
static __device__ inline void turn(float& a, float& b, float c, float s) {
    float turned = a * c - b * s;
    b = b * c + a * s;
    a = turned;
}

static __device__ inline float low_half(uint32_t two) { return of_bits(two << 16); }

static __device__ inline float high_half(uint32_t two) { return of_bits(two & 0xFFFF0000u); }

static __device__ inline uint32_t halves_of(float low, float high) {
    return to_bf16(low) | (uint32_t) to_bf16(high) << 16;
}

// Four pairs at once: `first` and `second` are eight bytes each, of four pairs' halves or of two pairs.
static __device__ inline void turn_four(uint2* first, uint2* second, const uint4* turns, bool halves) {
    uint2 one = *first, other = *second;
    uint4 early = turns[0], late = turns[1];
    float v[8] = {low_half(one.x),   high_half(one.x),   low_half(one.y),   high_half(one.y),
                  low_half(other.x), high_half(other.x), low_half(other.y), high_half(other.y)};
    float by[8] = {of_bits(early.x), of_bits(early.y), of_bits(early.z), of_bits(early.w),
                   of_bits(late.x),  of_bits(late.y),  of_bits(late.z),  of_bits(late.w)};
    UNROLL for (int i = 0; i < 4; i++) {
        if (halves) {
            turn(v[i], v[4 + i], by[2 * i], by[2 * i + 1]);
        } else {
            turn(v[2 * i], v[2 * i + 1], by[2 * i], by[2 * i + 1]);
        }
    }
    one.x = halves_of(v[0], v[1]);
    one.y = halves_of(v[2], v[3]);
    other.x = halves_of(v[4], v[5]);
    other.y = halves_of(v[6], v[7]);
    *first = one;
    *second = other;
}

// Rotates rows of K, of `row` bf16 values each, by an angle for each of `pairs` pairs: values i and i + pairs when
// halves, else 2i and 2i + 1; what is behind them stays. turns: [pairs][cos, sin]. Four pairs at a time where they
// lie so.
KERNEL kv_rope_shift(uint16_t* keys, const float* turns, uint64_t rows, uint32_t row, uint32_t pairs, uint32_t halves) {
    bool even = ((uintptr_t) keys & 7u) == 0 && ((uintptr_t) turns & 15u) == 0;
    if (even && row % 4 == 0 && pairs % 4 == 0) {
        uint32_t fours = pairs / 4;
        EACH(at, rows * fours) {
            uint32_t pair = 4 * (uint32_t) (at % fours);
            uint16_t* first = keys + (at / fours) * row + (halves ? pair : 2 * pair);
            uint16_t* second = first + (halves ? pairs : 4);
            turn_four((uint2*) first, (uint2*) second, (const uint4*) (turns + 2 * pair), halves != 0);
        }
        return;
    }
    EACH(at, rows * pairs) {
        uint32_t pair = (uint32_t) (at % pairs);
        uint16_t* first = keys + (at / pairs) * row + (halves ? pair : 2 * pair);
        uint16_t* second = first + (halves ? pairs : 1);
        float a = of_bf16(*first);
        float b = of_bf16(*second);
        turn(a, b, turns[2 * pair], turns[2 * pair + 1]);
        *first = to_bf16(a);
        *second = to_bf16(b);
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

#include "codings.cuh"

#include "attention.cuh"

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
