// The device itself, and its context.
#include "stand_in.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <utility>
#include <vector>

namespace {

std::mutex mutex;
bool initialized;

struct Context { // its address is the handle
    int retained = 0;
    std::atomic<long> epoch{0}; // how often it ended: threads still have the old one as current
};

Context contexts[MOST_DEVICES];
thread_local Context* current;
thread_local long current_epoch;
thread_local std::vector<std::pair<Context*, long>> pushed;
thread_local int works_for = -1;

int first_devices() {
    const char* wanted = getenv("KVCACHE_STAND_IN_DEVICES");
    return wanted != nullptr && atoi(wanted) == MOST_DEVICES ? MOST_DEVICES : 1;
}

std::atomic<int> devices{first_devices()};

bool known(int device) { return device >= 0 && device < devices; }

void end_context(int device) {
    release_streams(device);
    release_modules(device);
    release_virtual(device);
    release_memory(device);
    unstick(device);
    ++contexts[device].epoch;
}

enum Attribute {
    MAJOR = 75,
    MINOR = 76,
    MULTIPROCESSORS = 16,
    THREADS_PER_BLOCK = 1,
    COPY_ENGINES = 40,
    HOST_POINTERS = 91,
};

std::atomic<bool> host_pointers{true};

} // namespace

int here() {
    if (works_for >= 0) return works_for;
    return current == nullptr ? -1 : static_cast<int>(current - contexts);
}

void work_for(int device) { works_for = device; }

bool has_context() { return current != nullptr && current_epoch == current->epoch; }

bool takes_host_pointers() { return host_pointers; }

void forget_contexts() {
    std::lock_guard lock(mutex);
    for (int device = 0; device < MOST_DEVICES; device++) {
        contexts[device].retained = 0;
        end_context(device);
    }
}

API int cuInit(unsigned) {
    ENTER(NOTHING);
    initialized = true;
    return OK;
}

API int cuDriverGetVersion(int* version) {
    ENTER(NOTHING);
    *version = 13000;
    return OK;
}

API int cuDeviceGetCount(int* count) {
    ENTER(NOTHING);
    if (!initialized) return NOT_INITIALIZED;
    *count = devices;
    return OK;
}

API int cuDeviceGet(int* device, int ordinal) {
    ENTER(NOTHING);
    if (!initialized) return NOT_INITIALIZED;
    if (!known(ordinal)) return INVALID_DEVICE;
    *device = ordinal;
    return OK;
}

API int cuDeviceGetName(char* name, int size, int) {
    ENTER(NOTHING);
    snprintf(name, size, "CPU stand-in");
    return OK;
}

API int cuDeviceGetUuid_v2(unsigned char* uuid, int device) {
    ENTER(NOTHING);
    memset(uuid, 0xC5 + device, 16);
    return OK;
}

// Of the whole device, of which this one is a part.
API int cuDeviceGetUuid(unsigned char* uuid, int) {
    ENTER(NOTHING);
    memset(uuid, 0xA0, 16);
    return OK;
}

API int cuDeviceTotalMem_v2(size_t* bytes, int) {
    ENTER(NOTHING);
    *bytes = total_bytes();
    return OK;
}

API int cuDeviceGetAttribute(int* value, int attribute, int) {
    ENTER(NOTHING);
    switch (attribute) {
        case MAJOR: *value = 9; break;
        case MINOR: *value = 0; break;
        case MULTIPROCESSORS: *value = 4; break;
        case THREADS_PER_BLOCK: *value = 1024; break;
        case COPY_ENGINES: *value = 2; break;
        case HOST_POINTERS: *value = host_pointers ? 1 : 0; break;
        default: *value = 0;
    }
    return OK;
}

API int cuDevicePrimaryCtxRetain(void** context, int device) {
    ENTER(NOTHING);
    if (!known(device)) return INVALID_DEVICE;
    std::lock_guard lock(mutex);
    ++contexts[device].retained;
    *context = &contexts[device];
    return OK;
}

// The last release ends the context with all that is in it, and what went wrong there is over.
API int cuDevicePrimaryCtxRelease_v2(int device) {
    ENTER(NOT_EVEN_A_DEVICE);
    if (!known(device)) return INVALID_DEVICE;
    std::lock_guard lock(mutex);
    if (contexts[device].retained == 0) return INVALID_CONTEXT;
    if (--contexts[device].retained == 0) end_context(device);
    return OK;
}

API int cuCtxSetCurrent(void* context) {
    ENTER(NOTHING);
    current = static_cast<Context*>(context);
    if (current != nullptr) current_epoch = current->epoch;
    return OK;
}

API int cuCtxPushCurrent_v2(void* context) {
    ENTER(NOTHING);
    if (context == nullptr) return INVALID_CONTEXT;
    pushed.push_back({current, current_epoch});
    current = static_cast<Context*>(context);
    current_epoch = current->epoch;
    return OK;
}

API int cuCtxPopCurrent_v2(void** context) {
    ENTER(NOTHING);
    if (pushed.empty()) return INVALID_CONTEXT;
    *context = current;
    current = pushed.back().first;
    current_epoch = pushed.back().second;
    pushed.pop_back();
    return OK;
}

API int cuCtxGetStreamPriorityRange(int* least, int* greatest) {
    ENTER(CONTEXT);
    *least = 0;
    *greatest = -5;
    return OK;
}

API long standin_retained() {
    std::lock_guard lock(mutex);
    long retained = 0;
    for (Context& context : contexts) retained += context.retained;
    return retained;
}

// Has so many devices, 1 or 2; 1 when nothing is said here or by KVCACHE_STAND_IN_DEVICES.
API void standin_devices(int count) { devices = count == MOST_DEVICES ? MOST_DEVICES : 1; }

// Whether the device knows registered memory by the CPU's addresses.
API void standin_host_pointers(int takes) { host_pointers = takes != 0; }
