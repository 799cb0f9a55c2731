// Copies: looked at when they are asked for, and again when a stream gets to them.
#include "stand_in.h"

#include <atomic>
#include <cstring>
#include <vector>

namespace {

// Whether a copy from or to memory of the host that is not registered has the caller wait until it is made, as with
// the real driver for all but small ones.
std::atomic<bool> pageable_waits{false};

// Bytes of copies that were asked for, between host memory and a device.
std::atomic<long> bytes_to_device{0};
std::atomic<long> bytes_to_host{0};

// A copy, once its spans were looked at.
struct Copy {
    void* to;
    const void* from;
    size_t bytes;
    const void* host; // the side that is in host memory, or null
    uintptr_t registration;
};

bool still_there(const void* at, const Copy& copy) {
    if (at == copy.host) return still_registered(at, copy.bytes, copy.registration);
    return device_span(reinterpret_cast<Address>(at), copy.bytes);
}

void carry_out(const Copy& copy) {
    if (work_failed() != OK) return;
    if (!still_there(copy.to, copy) || !still_there(copy.from, copy)) {
        stick(ILLEGAL_ADDRESS);
        return;
    }
    memcpy(copy.to, copy.from, copy.bytes);
}

void wait_for(const Copy& copy, Stream* stream) {
    if (pageable_waits && copy.host != nullptr && copy.registration == 0) drain(stream);
}

enum class Side { HOST, DEVICE };

// Answers OK and fills the copy in, or says what is wrong with it.
int plan(Copy* copy, Side to_side, Address to, Side from_side, Address from, size_t bytes) {
    bool device_fits = (to_side == Side::HOST ? !elsewhere(to, bytes) : device_span(to, bytes))
        && (from_side == Side::HOST ? !elsewhere(from, bytes) : device_span(from, bytes));
    if (bytes == 0 || !device_fits) return INVALID_VALUE;
    *copy = {reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes, nullptr, 0};
    if (to_side == Side::HOST) copy->host = copy->to;
    if (from_side == Side::HOST) copy->host = copy->from;
    if (copy->host != nullptr && !host_span(copy->host, bytes, &copy->registration)) return INVALID_VALUE;
    if (copy->host != nullptr) (to_side == Side::DEVICE ? bytes_to_device : bytes_to_host) += bytes;
    return OK;
}

int copy_later(void* handle, Side to_side, Address to, Side from_side, Address from, size_t bytes) {
    Stream* stream = stream_of(handle);
    if (stream == nullptr) return INVALID_HANDLE;
    Copy copy;
    if (int wrong = plan(&copy, to_side, to, from_side, from, bytes)) return wrong;
    give(stream, [copy] { carry_out(copy); });
    wait_for(copy, stream);
    return OK;
}

Address address(const void* pointer) { return reinterpret_cast<Address>(pointer); }

} // namespace

API long standin_bytes_to_device() { return bytes_to_device; }

API long standin_bytes_to_host() { return bytes_to_host; }

API int cuMemcpyHtoDAsync_v2(Address to, const void* from, size_t bytes, void* stream) {
    ENTER(CONTEXT);
    return copy_later(stream, Side::DEVICE, to, Side::HOST, address(from), bytes);
}

API int cuMemcpyDtoHAsync_v2(void* to, Address from, size_t bytes, void* stream) {
    ENTER(CONTEXT);
    return copy_later(stream, Side::HOST, address(to), Side::DEVICE, from, bytes);
}

API int cuMemcpyDtoDAsync_v2(Address to, Address from, size_t bytes, void* stream) {
    ENTER(CONTEXT);
    return copy_later(stream, Side::DEVICE, to, Side::DEVICE, from, bytes);
}

// The attributes of a batch as the bridge uses them: one set, for all copies from the first on.
struct CopyAttributes {
    int source_order;
    int source_hint[2];
    int target_hint[2];
    unsigned flags;
};

static_assert(sizeof(CopyAttributes) == 24);

namespace {

struct Batch {
    const Address* to;
    const Address* from;
    const size_t* bytes;
    size_t count;
};

int copy_batch(const Batch& batch, const CopyAttributes* attributes, const size_t* first, size_t sets, void* handle) {
    const auto [to, from, bytes, count] = batch;
    Stream* stream = stream_of(handle);
    if (stream == nullptr) return INVALID_HANDLE;
    bool attributed = sets == 1 && first[0] == 0 && attributes->source_order >= 1 && attributes->source_order <= 3;
    if (count == 0 || sets > count || !attributed || attributes->flags > 1) return INVALID_VALUE;
    std::vector<Copy> copies(count);
    for (size_t i = 0; i < count; i++) {
        Side to_side = device_span(to[i], bytes[i]) ? Side::DEVICE : Side::HOST;
        Side from_side = device_span(from[i], bytes[i]) ? Side::DEVICE : Side::HOST;
        if (to_side == Side::HOST && from_side == Side::HOST) return INVALID_VALUE;
        if (int wrong = plan(&copies[i], to_side, to[i], from_side, from[i], bytes[i])) return wrong;
        if (copies[i].registration != 0 && !takes_host_pointers()) stick(ILLEGAL_ADDRESS);
    }
    give(stream, [copies] {
        for (auto copy = copies.rbegin(); copy != copies.rend(); ++copy) carry_out(*copy);
    });
    for (auto& copy : copies) wait_for(copy, stream);
    return OK;
}

} // namespace

API int cuMemcpyBatchAsync_v2(const Address* to, const Address* from, const size_t* bytes, size_t count,
                              const CopyAttributes* attributes, const size_t* first, size_t sets, void* handle) {
    ENTER(CONTEXT);
    return copy_batch({to, from, bytes, count}, attributes, first, sets, handle);
}

// As in version 12.8: with a place for the number of the copy that is wrong.
API int cuMemcpyBatchAsync(const Address* to, const Address* from, const size_t* bytes, size_t count,
                           const CopyAttributes* attributes, const size_t* first, size_t sets, size_t* wrong,
                           void* handle) {
    ENTER(CONTEXT);
    if (wrong == nullptr) return INVALID_VALUE;
    *wrong = SIZE_MAX;
    return copy_batch({to, from, bytes, count}, attributes, first, sets, handle);
}

API int cuMemsetD8Async(Address to, unsigned char value, size_t bytes, void* handle) {
    ENTER(CONTEXT);
    Stream* stream = stream_of(handle);
    if (stream == nullptr) return INVALID_HANDLE;
    if (!device_span(to, bytes)) return INVALID_VALUE;
    give(stream, [=] {
        if (work_failed() != OK) return;
        if (device_span(to, bytes)) memset(reinterpret_cast<void*>(to), value, bytes);
        else stick(ILLEGAL_ADDRESS);
    });
    return OK;
}

// Has copies of memory that is not registered be made before their call returns, or not.
API void standin_pageable_waits(int waits) { pageable_waits = waits != 0; }
