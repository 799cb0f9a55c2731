// What g++ needs to compile the kernels: the words, variables and functions that nvcc has by itself.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <math.h>
#include <vector>

#define __global__
#define __device__

struct GridPoint {
    unsigned x, y, z;
};

struct alignas(8) uint2 {
    unsigned x, y;
};

struct alignas(16) uint4 {
    unsigned x, y, z, w;
};

inline thread_local GridPoint blockIdx, threadIdx, blockDim, gridDim;

// Threads of a warp, which run one after the other here, though they tell each other things. One that asks for what
// others have not said by then is broken off; once all had their turn they begin anew, and get as far as the next
// question. So what a kernel does is done several times, and must come to the same.
class Warp {
public:
    static constexpr unsigned LANES = 32;

    // Answers whether all of the warp were there whenever they asked each other.
    template <class Call>
    bool run(unsigned first, unsigned threads, Call call) {
        current = this;
        unsigned lanes = std::min(threads, LANES);
        do {
            for (lane = 0; lane < lanes; lane++) {
                threadIdx = {first + lane, 0, 0};
                asked = 0;
                try {
                    call();
                } catch (const Unanswered&) {
                    continue;
                }
            }
        } while (answered());
        return rounds.size() == known;
    }

    static uint32_t exchange(uint32_t value, unsigned apart) { return current->ask(value, current->lane ^ apart); }

private:
    struct Unanswered {};

    struct Round {
        std::array<uint32_t, LANES> said;
        uint32_t here; // a bit for each
    };

    // Whether there is another round, and all are in it.
    bool answered() {
        if (rounds.size() == known || rounds[known].here != 0xFFFFFFFFu) return false;
        known++;
        return true;
    }

    uint32_t ask(uint32_t value, unsigned other) {
        size_t round = asked++;
        if (round < known) return rounds[round].said[other];
        if (round == rounds.size()) rounds.push_back({});
        rounds[round].said[lane] = value;
        rounds[round].here |= 1u << lane;
        throw Unanswered();
    }

    inline static thread_local Warp* current;

    std::vector<Round> rounds;
    size_t known = 0; // rounds that all have spoken in
    size_t asked = 0;
    unsigned lane = 0;
};

inline uint32_t __shfl_xor_sync(uint32_t, uint32_t value, unsigned apart) { return Warp::exchange(value, apart); }

// Four of the eight bytes of two numbers, each chosen by a digit.
inline uint32_t __byte_perm(uint32_t low, uint32_t high, uint32_t digits) {
    uint64_t bytes = (uint64_t) high << 32 | low;
    uint32_t chosen = 0;
    for (int i = 0; i < 4; i++) chosen |= ((bytes >> (8 * ((digits >> (4 * i)) & 7))) & 0xFF) << (8 * i);
    return chosen;
}

inline float __shfl_xor_sync(uint32_t, float value, unsigned apart) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    bits = Warp::exchange(bits, apart);
    memcpy(&value, &bits, sizeof bits);
    return value;
}
