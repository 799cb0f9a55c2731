// The device itself, and its context.
#include "stand_in.h"

#include <atomic>
#include <cstdio>
#include <cstring>
#include <mutex>

namespace {

std::mutex mutex;
bool initialized;
int retained;
int the_context; // its address is the handle
thread_local void* current;
std::atomic<long> epoch{0}; // how often the context ended: threads still have the old one as current
thread_local long current_epoch;

void end_context() {
    release_streams();
    release_modules();
    release_virtual();
    release_memory();
    unstick();
    ++epoch;
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

bool has_context() { return current != nullptr && current_epoch == epoch; }

bool takes_host_pointers() { return host_pointers; }

void forget_context() {
    std::lock_guard lock(mutex);
    retained = 0;
    end_context();
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
    *count = 1;
    return OK;
}

API int cuDeviceGet(int* device, int ordinal) {
    ENTER(NOTHING);
    if (!initialized) return NOT_INITIALIZED;
    if (ordinal != 0) return INVALID_DEVICE;
    *device = 0;
    return OK;
}

API int cuDeviceGetName(char* name, int size, int) {
    ENTER(NOTHING);
    snprintf(name, size, "CPU stand-in");
    return OK;
}

API int cuDeviceGetUuid_v2(unsigned char* uuid, int) {
    ENTER(NOTHING);
    memset(uuid, 0xC5, 16);
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

API int cuDevicePrimaryCtxRetain(void** context, int) {
    ENTER(NOTHING);
    std::lock_guard lock(mutex);
    ++retained;
    *context = &the_context;
    return OK;
}

// The last release ends the context with all that is in it, and what went wrong there is over.
API int cuDevicePrimaryCtxRelease_v2(int) {
    ENTER(NOT_EVEN_A_DEVICE);
    std::lock_guard lock(mutex);
    if (retained == 0) return INVALID_CONTEXT;
    if (--retained == 0) end_context();
    return OK;
}

API int cuCtxSetCurrent(void* context) {
    ENTER(NOTHING);
    current = context;
    current_epoch = epoch;
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
    return retained;
}

// Whether the device knows registered memory by the CPU's addresses.
API void standin_host_pointers(int takes) { host_pointers = takes != 0; }
