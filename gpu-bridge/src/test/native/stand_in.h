// A libcuda.so.1 that runs on the CPU: as much of NVIDIA's driver API as the bridge calls, for machines without a GPU.
//
// It is stricter than the real one where tests gain from that: spans are checked, a copy that crosses the border of
// two registrations of host memory is refused, copies of a batch are made in the wrong order, fresh memory is poisoned,
// and every call can be made to fail. Only names and numbers of the public API are used; nothing of NVIDIA's is in it.
//
// It has one device, or two: then nothing of one is of use to the other, as where GPUs cannot reach each other's memory.
//
// What it does not show: speed, and the default stream, which the bridge never uses.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#define API extern "C" __attribute__((visibility("default")))

using Address = unsigned long long; // CUdeviceptr

enum Result : int {
    OK = 0,
    INVALID_VALUE = 1,
    OUT_OF_MEMORY = 2,
    NOT_INITIALIZED = 3,
    INVALID_DEVICE = 101,
    INVALID_CONTEXT = 201,
    INVALID_HANDLE = 400,
    NOT_READY = 600,
    ILLEGAL_ADDRESS = 700,
    ALREADY_REGISTERED = 712,
    NOT_REGISTERED = 713,
    MISALIGNED = 716,
    NOT_SUPPORTED = 801,
};

// faults.cpp: what every call passes first. Answers what it is to answer instead of doing its work, or OK.
enum class Needs { NOT_EVEN_A_DEVICE, NOTHING, CONTEXT };
int entered(const char* function, Needs needs);
#define ENTER(needs)                                                        \
    do {                                                                    \
        if (int refused = entered(__func__, Needs::needs)) return refused; \
    } while (0)

// The same for work on a stream, which fails later: then everything does until the context ends.
int work_failed();
void stick(int result);
int stuck();
void unstick(int device);

// device.cpp
constexpr int MOST_DEVICES = 2;
// Whose context the calling thread has, or whose work it does; -1 for none.
int here();
void work_for(int device);
bool has_context();
void forget_contexts();
bool takes_host_pointers();

// memory.cpp: of this thread's device, where nothing else is said.
bool device_span(Address at, size_t bytes);
// Whether anything there is another device's.
bool elsewhere(Address at, size_t bytes);
// Where a span of host memory is registered: the start of the registration, or 0. False when it crosses a border.
bool host_span(const void* at, size_t bytes, uintptr_t* registration);
bool still_registered(const void* at, size_t bytes, uintptr_t registration);
size_t used_bytes();
size_t total_bytes();
void release_memory(int device);
long live_memory();
// Memory that virtual.cpp mapped: it may be copied from and to, across the borders of mappings.
void note_span(Address at, size_t bytes);
void forget_span(Address at);
bool take_bytes(size_t bytes);
void give_bytes(int device, size_t bytes);

// streams.cpp
struct Stream;
Stream* stream_of(void* handle);
void give(Stream* stream, std::function<void()> work);
void pass_launch_gate();
void drain(Stream* stream);
void drain_all();
void release_streams(int device);
long live_streams();

// modules.cpp
void release_modules(int device);
long live_modules();

// alignment.cpp
void run_until_misaligned(const std::function<void()>& kernel);

// virtual.cpp
void release_virtual(int device);
long live_virtual();

// sharing.cpp: memory in files without a name, which another process finds by what it is told of them.
struct Token {
    unsigned magic;
    int process;
    int file;
    int device;
    size_t bytes;
    unsigned long long cookie; // tells a file from another that got its number
    char rest[32];
};

static_assert(sizeof(Token) == 64);

int shared_file(size_t bytes);
void* map_file(int file, size_t bytes);
bool tell_file(Token* token, int file, size_t bytes);
int told_file(const Token& token);
bool told_here(const Token& token);
bool of_this_device(const Token& token);
bool alive(const Token& token);
