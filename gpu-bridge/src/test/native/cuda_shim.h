// What g++ needs to compile the kernels: the words and variables that nvcc has by itself.
#pragma once

#include <cstdint>

#define __global__
#define __device__

struct GridPoint {
    unsigned x, y, z;
};

struct alignas(16) uint4 {
    unsigned x, y, z, w;
};

inline thread_local GridPoint blockIdx, threadIdx, blockDim, gridDim;
