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

// The scale of each group of bf16 values: its largest finite one becomes 448, the largest of e4m3. 1 for zeroes.
KERNEL kv_fp8_scales(const uint16_t* values, uint64_t groups, uint32_t group, float* scales) {
    EACH(index, groups) {
        float most = 0;
        for (uint32_t i = 0; i < group; i++) {
            float value = magnitude(of_bf16(values[index * group + i]));
            if (finite(value) && value > most) most = value;
        }
        float scale = most / 448.0f;
        scales[index] = scale > 0 ? scale : 1.0f;
    }
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

KERNEL kv_to_fp8(const uint16_t* values, uint64_t count, uint32_t group, const float* scales, uint8_t* out) {
    EACH(at, count) {
        float value = of_bf16(values[at]);
        uint8_t sign = (uint8_t) ((values[at] >> 8) & 0x80u);
        bool nan = (bits_of(value) & 0x7FFFFFFFu) > 0x7F800000u;
        out[at] = sign | (nan ? 0x7F : to_e4m3(magnitude(value) / scales[at / group]));
    }
}

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
