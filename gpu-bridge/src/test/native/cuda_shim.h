// What g++ needs to compile the kernels: the words, variables and functions that nvcc has by itself.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <functional>
#include <math.h>
#include <memory>
#include <ucontext.h>

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

// What a thread of a device runs on while it waits for others.
struct LaneStack {
    static constexpr size_t BYTES = 64 << 10;

    ucontext_t at;
    std::unique_ptr<char[]> bytes{new char[BYTES]};
    bool done;
};

// Threads of a warp, which run one after the other here, though they tell each other things. The first that asks for
// what others have not said by then is broken off, and all begin anew, each on a stack of its own: who asks waits there
// until all have. So what a kernel does before it asks may be done twice, and must come to the same.
class Warp {
public:
    static constexpr unsigned LANES = 32;

    // Answers whether all of the warp were there whenever they asked each other.
    bool run(unsigned first, unsigned threads, const std::function<void()>& call) {
        current = this;
        body = &call;
        lanes = std::min(threads, LANES);
        try {
            for (lane = 0; lane < lanes; lane++) {
                threadIdx = {first + lane, 0, 0};
                call();
            }
            return true;
        } catch (const Unanswered&) {
            return lane == 0 && together(first);
        }
    }

    static uint32_t exchange(uint32_t value, unsigned apart) { return current->ask(value, current->lane ^ apart); }

private:
    struct Unanswered {};

    bool together(unsigned first) {
        waits = true;
        for (unsigned i = 0; i < lanes; i++) {
            getcontext(&stacks[i].at);
            stacks[i].at.uc_stack.ss_sp = stacks[i].bytes.get();
            stacks[i].at.uc_stack.ss_size = LaneStack::BYTES;
            stacks[i].at.uc_link = nullptr;
            stacks[i].done = false;
            makecontext(&stacks[i].at, &Warp::begin, 0);
        }
        unsigned done = 0;
        while (done == 0) {
            for (lane = 0; lane < lanes; lane++) {
                threadIdx = {first + lane, 0, 0};
                swapcontext(&scheduler, &stacks[lane].at);
                if (stacks[lane].done) done++;
            }
            round++;
        }
        return done == LANES;
    }

    static void begin() {
        (*current->body)();
        stacks[current->lane].done = true;
        swapcontext(&stacks[current->lane].at, &scheduler);
    }

    // What was said in one round is read while the next is spoken in.
    uint32_t ask(uint32_t value, unsigned other) {
        if (!waits) throw Unanswered();
        std::array<uint32_t, LANES>& said = rounds[round % 2];
        said[lane] = value;
        swapcontext(&stacks[lane].at, &scheduler);
        return said[other];
    }

    inline static thread_local Warp* current;
    inline static thread_local std::array<LaneStack, LANES> stacks;
    inline static thread_local ucontext_t scheduler;

    const std::function<void()>* body = nullptr;
    std::array<std::array<uint32_t, LANES>, 2> rounds;
    size_t round = 0; // that all have spoken in
    unsigned lanes = 0;
    unsigned lane = 0;
    bool waits = false;
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
