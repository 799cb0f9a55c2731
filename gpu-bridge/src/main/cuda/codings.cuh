// Codes of 8 bits (e4m3) and of 4 for values of bf16, and back. Part of kernels.cu.
//
// A group of values that shares scales is the work of a team: 1 to 32 neighbouring threads of a warp, which read eight
// values each, tell each other the ends of what they read, and write the codes of what they still hold. So values
// cross the memory bus once, in whole lines. Groups of other numbers of values have a thread each.

static __device__ inline bool finite(float value) { return (bits_of(value) & 0x7F800000u) != 0x7F800000u; }

struct Team {
    uint32_t shift; // two to the power of it are in it
    uint32_t lane;

    __device__ uint32_t lanes() const { return 1u << shift; }

    // Threads for so many groups, in whole warps: all of a warp have to be there when it exchanges anything.
    __device__ uint64_t threads(uint64_t groups) const { return ((groups << shift) + 31) & ~(uint64_t) 31; }
};

// Each has eight values of the group to read, and perhaps eight more.
static __device__ inline Team team_of(uint32_t group) {
    Team team = {0, 0};
    while (team.shift < 5 && (16u << team.shift) <= group) team.shift++;
    team.lane = threadIdx.x & (team.lanes() - 1);
    return team;
}

static __device__ inline uint32_t team_most(uint32_t value, Team team) {
    for (uint32_t apart = team.lanes() / 2; apart > 0; apart /= 2) {
        uint32_t other = __shfl_xor_sync(0xFFFFFFFFu, value, apart);
        if (other > value) value = other;
    }
    return value;
}

static __device__ inline float team_most(float value, Team team) {
    for (uint32_t apart = team.lanes() / 2; apart > 0; apart /= 2) {
        float other = __shfl_xor_sync(0xFFFFFFFFu, value, apart);
        if (other > value) value = other;
    }
    return value;
}

// Eight values, in one read where they begin at a multiple of 16 bytes.
static __device__ inline uint4 eight_values(const uint16_t* from) {
    if (((uintptr_t) from & 15u) == 0) return *(const uint4*) from;
    uint4 values;
    values.x = from[0] | (uint32_t) from[1] << 16;
    values.y = from[2] | (uint32_t) from[3] << 16;
    values.z = from[4] | (uint32_t) from[5] << 16;
    values.w = from[6] | (uint32_t) from[7] << 16;
    return values;
}

static __device__ inline uint16_t value_of(uint4 values, int index) {
    uint32_t two = index < 4 ? (index < 2 ? values.x : values.y) : (index < 6 ? values.z : values.w);
    return (uint16_t) (index % 2 == 0 ? two : two >> 16);
}

static __device__ inline void put_word(uint8_t* to, uint32_t word) {
    if (((uintptr_t) to & 3u) == 0) {
        *(uint32_t*) to = word;
    } else {
        for (int i = 0; i < 4; i++) to[i] = (uint8_t) (word >> (8 * i));
    }
}

static __device__ inline void put_words(uint8_t* to, uint2 words) {
    if (((uintptr_t) to & 7u) == 0) {
        *(uint2*) to = words;
    } else {
        put_word(to, words.x);
        put_word(to + 4, words.y);
    }
}

// By what the values of a group become codes, and codes values: the largest finite one becomes 448, the largest of
// e4m3. 1 for zeroes, and never so small that one over it is no number.
struct Fp8Scale {
    float down;
    float up;
};

// The bits of a value's magnitude, or 0 for what is not finite.
static __device__ inline uint32_t finite_size(uint16_t bits) {
    uint32_t size = bits & 0x7FFFu;
    return size < 0x7F80u ? size : 0;
}

static __device__ inline Fp8Scale fp8_scale(uint32_t most) {
    float up = of_bf16((uint16_t) most) / 448.0f;
    if (up < 0x1p-126f) up = most == 0 ? 1.0f : 0x1p-126f;
    return {1.0f / up, up};
}

// A magnitude of at most 448, 2^120 times smaller, has the exponent that e4m3 would give it, below its smallest steps
// too: what is left to do is to round away the last 20 bits, ties to even. The code is what is left above them.
static __device__ inline uint32_t rounded_e4m3(float value) {
    uint32_t u = bits_of(value * 0x1p-120f);
    return u + 0x7FFFFu + ((u >> 20) & 1u);
}

static __device__ inline uint32_t to_fp8(uint16_t bits, Fp8Scale scale) {
    bool nan = (bits & 0x7FFFu) > 0x7F80u;
    float value = fabsf(of_bf16(bits)) * scale.down;
    uint32_t code = rounded_e4m3(value < 448.0f ? value : 448.0f) >> 20;
    return ((bits >> 8) & 0x80u) | (nan ? 0x7Fu : code);
}

// The same of four values, all of which are finite.
static __device__ inline uint32_t four_to_fp8(uint32_t early, uint32_t late, Fp8Scale scale) {
    uint32_t a = rounded_e4m3(fabsf(low_half(early)) * scale.down);
    uint32_t b = rounded_e4m3(fabsf(high_half(early)) * scale.down);
    uint32_t c = rounded_e4m3(fabsf(low_half(late)) * scale.down);
    uint32_t d = rounded_e4m3(fabsf(high_half(late)) * scale.down);
    uint32_t two = __byte_perm(a << 4, b << 4, 0x0073);
    uint32_t other = __byte_perm(c << 4, d << 4, 0x0073);
    uint32_t signs = __byte_perm(early, late, 0x7531) & 0x80808080u;
    return __byte_perm(two, other, 0x5410) | signs;
}

// The largest finite size; whether there were others is noted.
static __device__ inline uint32_t largest(uint4 values, uint32_t most, bool& plain) {
    uint32_t all = 0;
    UNROLL for (int i = 0; i < 8; i++) {
        uint32_t size = value_of(values, i) & 0x7FFFu;
        if (size > all) all = size;
    }
    if (all >= 0x7F80u) {
        plain = false;
        all = 0;
        UNROLL for (int i = 0; i < 8; i++) {
            uint32_t size = finite_size(value_of(values, i));
            if (size > all) all = size;
        }
    }
    return all > most ? all : most;
}

static __device__ inline void put_fp8(uint4 values, Fp8Scale scale, bool plain, uint8_t* to) {
    uint2 words;
    if (plain) {
        words.x = four_to_fp8(values.x, values.y, scale);
        words.y = four_to_fp8(values.z, values.w, scale);
    } else {
        words.x = words.y = 0;
        UNROLL for (int i = 0; i < 4; i++) {
            words.x |= to_fp8(value_of(values, i), scale) << (8 * i);
            words.y |= to_fp8(value_of(values, 4 + i), scale) << (8 * i);
        }
    }
    put_words(to, words);
}

// The whole warp comes here; who is not `mine` reads what others do and writes nothing.
static __device__ inline void team_fp8(Team team, bool mine, const uint16_t* values, uint32_t group, uint8_t* codes,
                                       float* scale) {
    uint32_t first = 8 * team.lane;
    uint32_t step = 8 * team.lanes();
    uint4 held = eight_values(values + first);
    bool plain = true;
    uint32_t most = largest(held, 0, plain);
    for (uint32_t at = first + step; at < group; at += step) most = largest(eight_values(values + at), most, plain);
    Fp8Scale by = fp8_scale(team_most(most, team));
    if (!mine) return;
    if (team.lane == 0) *scale = by.up;
    put_fp8(held, by, plain, codes + first);
    for (uint32_t at = first + step; at < group; at += step) put_fp8(eight_values(values + at), by, plain, codes + at);
}

static __device__ inline void code_fp8(const uint16_t* values, uint32_t group, uint8_t* codes, float* scale) {
    uint32_t most = 0;
    for (uint32_t i = 0; i < group; i++) {
        uint32_t size = finite_size(values[i]);
        if (size > most) most = size;
    }
    Fp8Scale by = fp8_scale(most);
    *scale = by.up;
    for (uint32_t i = 0; i < group; i++) codes[i] = (uint8_t) to_fp8(values[i], by);
}

KERNEL kv_to_fp8(const uint16_t* values, uint64_t groups, uint32_t group, float* scales, uint8_t* codes) {
    if (group % 8 != 0) {
        EACH(index, groups) code_fp8(values + index * group, group, codes + index * group, scales + index);
        return;
    }
    Team team = team_of(group);
    EACH(at, team.threads(groups)) {
        uint64_t index = at >> team.shift;
        bool mine = index < groups;
        if (!mine) index = groups - 1;
        team_fp8(team, mine, values + index * group, group, codes + index * group, scales + index);
    }
}

// Of the magnitude alone: the same bits are a float 2^120 times smaller, below the smallest steps too.
static __device__ inline float of_e4m3(uint32_t code) {
    if ((code & 0x7Fu) == 0x7Fu) return of_bits(0x7FC00000u);
    return of_bits((code & 0x7Fu) << 20) * 0x1p120f;
}

static __device__ inline uint32_t of_fp8(uint32_t code, float scale) {
    return to_bf16(of_e4m3(code) * scale) | ((code & 0x80u) << 8);
}

static __device__ inline uint32_t two_of_fp8(uint32_t codes, float scale) {
    return of_fp8(codes & 0xFFu, scale) | of_fp8((codes >> 8) & 0xFFu, scale) << 16;
}

// A code in the highest byte; it is a number, and the scale is.
static __device__ inline uint32_t rounded_bf16(uint32_t top, float scale) {
    float value = of_bits((uint32_t) ((int32_t) top >> 4) & 0x87F00000u) * 0x1p120f * scale;
    return bits_of(value) + 0x7FFFu + ((bits_of(value) >> 16) & 1u);
}

// Four values of their codes.
static __device__ inline uint2 four_of_fp8(uint32_t codes, float scale) {
    bool numbers = (((codes & 0x7F7F7F7Fu) + 0x01010101u) & 0x80808080u) == 0;
    uint2 values;
    if (numbers && finite(scale)) {
        values.x = __byte_perm(rounded_bf16(codes << 24, scale), rounded_bf16(codes << 16, scale), 0x7632);
        values.y = __byte_perm(rounded_bf16(codes << 8, scale), rounded_bf16(codes, scale), 0x7632);
    } else {
        values.x = two_of_fp8(codes, scale);
        values.y = two_of_fp8(codes >> 16, scale);
    }
    return values;
}

KERNEL kv_from_fp8(const uint8_t* codes, uint64_t count, uint32_t group, const float* scales, uint16_t* out) {
    if (group % 8 == 0 && ((uintptr_t) codes & 7u) == 0 && ((uintptr_t) out & 15u) == 0) {
        uint32_t eights = group / 8;
        EACH(at, count / 8) {
            uint2 from = ((const uint2*) codes)[at];
            float scale = scales[at / eights];
            uint4 values;
            uint2 early = four_of_fp8(from.x, scale);
            uint2 late = four_of_fp8(from.y, scale);
            values.x = early.x;
            values.y = early.y;
            values.z = late.x;
            values.w = late.y;
            ((uint4*) out)[at] = values;
        }
        return;
    }
    EACH(at, count) out[at] = (uint16_t) of_fp8(codes[at], scales[at / group]);
}

// Codes of 4 bits: value = zero + code * scale, both of the group. What is not finite does not count for them.
struct Range {
    float scale;
    float zero;
};

// What a group lies between, until a value has been found: nothing.
struct Ends {
    float least;
    float most;
};

static __device__ inline Ends no_ends() { return {of_bits(0x7F7FFFFFu), of_bits(0xFF7FFFFFu)}; }

static __device__ inline void stretch(Ends& ends, float value) {
    if (!finite(value)) return;
    if (value < ends.least) ends.least = value;
    if (value > ends.most) ends.most = value;
}

static __device__ inline Range range_of(Ends ends) {
    if (ends.least > ends.most) ends.least = ends.most = 0;
    float scale = ends.most / 15.0f - ends.least / 15.0f; // their difference may be no float
    return {scale > 0 ? scale : 1.0f, ends.least};
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

static __device__ inline void stretch_eight(Ends& ends, uint4 values) {
    UNROLL for (int i = 0; i < 8; i++) stretch(ends, of_bf16(value_of(values, i)));
}

static __device__ inline void put_int4(uint4 values, Range range, uint8_t* to) {
    uint32_t word = 0;
    UNROLL for (int i = 0; i < 8; i++) word |= to_int4(of_bf16(value_of(values, i)), range) << (4 * i);
    put_word(to, word);
}

// As team_fp8.
static __device__ inline void team_int4(Team team, bool mine, const uint16_t* values, uint32_t group, uint8_t* codes,
                                        float* scales) {
    uint32_t first = 8 * team.lane;
    uint32_t step = 8 * team.lanes();
    uint4 held = eight_values(values + first);
    Ends ends = no_ends();
    stretch_eight(ends, held);
    for (uint32_t at = first + step; at < group; at += step) stretch_eight(ends, eight_values(values + at));
    ends.most = team_most(ends.most, team);
    ends.least = -team_most(-ends.least, team);
    if (!mine) return;
    Range range = range_of(ends);
    if (team.lane == 0) {
        scales[0] = range.scale;
        scales[1] = range.zero;
    }
    put_int4(held, range, codes + first / 2);
    for (uint32_t at = first + step; at < group; at += step) put_int4(eight_values(values + at), range, codes + at / 2);
}

static __device__ inline void code_int4(const uint16_t* values, uint32_t group, uint8_t* codes, float* scales) {
    Ends ends = no_ends();
    for (uint32_t i = 0; i < group; i++) stretch(ends, of_bf16(values[i]));
    Range range = range_of(ends);
    scales[0] = range.scale;
    scales[1] = range.zero;
    for (uint32_t i = 0; i < group; i += 2) {
        uint32_t low = to_int4(of_bf16(values[i]), range);
        uint32_t high = to_int4(of_bf16(values[i + 1]), range);
        codes[i / 2] = (uint8_t) (low | (high << 4));
    }
}

// Gathers pieces of `groups` groups each into codes of 8 bits (e4m3) or 4, in one pass: codes one after the other, and
// the scales of each group (scale and zero for 4 bits).
KERNEL kv_gather_coded(const uint64_t* from, uint32_t groups, uint32_t group, uint32_t bits, uint64_t count,
                       uint8_t* codes, float* scales) {
    uint64_t all = groups * count;
    bool wide = group % 8 == 0;
    Team team = wide ? team_of(group) : Team{0, 0};
    EACH(at, wide ? team.threads(all) : all) {
        uint64_t index = at >> team.shift;
        bool mine = index < all;
        if (!mine) index = all - 1;
        const uint16_t* values = (const uint16_t*) from[index / groups] + (index % groups) * group;
        uint8_t* into = codes + index * ((uint64_t) group * bits / 8);
        float* by = scales + index * (bits == 4 ? 2 : 1);
        if (wide && bits == 4) {
            team_int4(team, mine, values, group, into, by);
        } else if (wide) {
            team_fp8(team, mine, values, group, into, by);
        } else if (bits == 4) {
            code_int4(values, group, into, by);
        } else {
            code_fp8(values, group, into, by);
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
            turn(a, b, turns[2 * item], turns[2 * item + 1]);
        }
        out[first] = to_bf16(a);
        out[second] = to_bf16(b);
    }
}
