// Memory of the device, which is the CPU's here, and registered memory of the host.
#include "stand_in.h"

#include <atomic>
#include <cstring>
#include <iterator>
#include <map>
#include <mutex>
#include <sys/mman.h>
#include <unistd.h>

namespace {

enum { NOT_FOUND = 500 };

constexpr size_t PAGE = 4096;
constexpr size_t BLOCK = size_t{2} << 20; // what drivers take memory in; a token shares whole ones
enum { LAZY_PEERS = 1, PORTABLE = 1, REGISTRATION_FLAGS = 0xF };
constexpr unsigned char POISON = 0xD5;

std::mutex mutex;
// Memory in a file without a name, so that another process can map it too.
struct Slab {
    size_t bytes;
    int file;
    int device;
    bool imported;
    unsigned long long cookie = 0; // of another process's
    long opened = 1;
};

struct Mapped {
    size_t bytes;
    int device;
};

struct Registration {
    size_t bytes;
    int device; // goes with its context
    bool portable;

    bool known_here() const { return portable || device == here(); }
};

std::map<Address, Slab> slabs;
std::map<Address, Mapped> mapped;
std::map<uintptr_t, Registration> registrations;
size_t used[MOST_DEVICES];
std::atomic<size_t> total{size_t{256} << 20};

size_t pages(size_t bytes) { return (bytes + PAGE - 1) / PAGE * PAGE; }
size_t blocks(size_t bytes) { return (bytes + BLOCK - 1) / BLOCK * BLOCK; }

void unmap(Address at, const Slab& slab) {
    munmap(reinterpret_cast<void*>(at), blocks(slab.bytes));
    close(slab.file);
}

// Some drivers fix whole pages, and each of them once; newer ones count. The bridge gets along with either.
bool overlaps(uintptr_t start, size_t bytes) {
    uintptr_t first = start / PAGE * PAGE;
    uintptr_t end = pages(start + bytes);
    for (auto& [at, known] : registrations) {
        if (at / PAGE * PAGE < end && pages(at + known.bytes) > first) return true;
    }
    return false;
}

// As far as a look at both ends tells.
bool there(uintptr_t start, size_t bytes) {
    unsigned char seen;
    void* first = reinterpret_cast<void*>(start / PAGE * PAGE);
    void* last = reinterpret_cast<void*>((start + bytes - 1) / PAGE * PAGE);
    return mincore(first, PAGE, &seen) == 0 && mincore(last, PAGE, &seen) == 0;
}

std::map<uintptr_t, Registration>::iterator registration_at(uintptr_t at) {
    auto found = registrations.upper_bound(at);
    if (found == registrations.begin()) return registrations.end();
    --found;
    return at < found->first + found->second.bytes && found->second.known_here() ? found : registrations.end();
}

bool slab_span(Address at, size_t bytes) {
    auto found = slabs.upper_bound(at);
    if (found == slabs.begin()) return false;
    --found;
    Address offset = at - found->first;
    bool within = bytes <= found->second.bytes && offset <= found->second.bytes - bytes;
    return within && found->second.device == here();
}

// Mappings side by side are one span.
bool mapped_span(Address at, size_t bytes) {
    Address end = at + bytes;
    while (at < end) {
        auto found = mapped.upper_bound(at);
        if (found == mapped.begin()) return false;
        --found;
        if (at >= found->first + found->second.bytes || found->second.device != here()) return false;
        at = found->first + found->second.bytes;
    }
    return true;
}

template <class Spans>
bool anothers(const Spans& spans, Address at, size_t bytes) {
    auto next = spans.lower_bound(at + bytes);
    if (next == spans.begin()) return false;
    --next;
    return next->first + next->second.bytes > at && next->second.device != here();
}

} // namespace

bool device_span(Address at, size_t bytes) {
    std::lock_guard lock(mutex);
    return slab_span(at, bytes) || mapped_span(at, bytes);
}

bool elsewhere(Address at, size_t bytes) {
    std::lock_guard lock(mutex);
    return anothers(slabs, at, bytes) || anothers(mapped, at, bytes);
}

void note_span(Address at, size_t bytes) {
    std::lock_guard lock(mutex);
    mapped[at] = {bytes, here()};
}

void forget_span(Address at) {
    std::lock_guard lock(mutex);
    mapped.erase(at);
}

bool take_bytes(size_t bytes) {
    std::lock_guard lock(mutex);
    if (bytes > total || bytes > total - used[here()]) return false;
    used[here()] += bytes;
    return true;
}

void give_bytes(int device, size_t bytes) {
    std::lock_guard lock(mutex);
    used[device] -= bytes;
}

bool host_span(const void* at, size_t bytes, uintptr_t* registration) {
    std::lock_guard lock(mutex);
    auto start = reinterpret_cast<uintptr_t>(at);
    auto first = registration_at(start);
    auto next = registrations.lower_bound(start + 1);
    if (next != registrations.end() && next->first < start + bytes) return false;
    *registration = first == registrations.end() ? 0 : first->first;
    return first == registrations.end() || start + bytes <= first->first + first->second.bytes;
}

bool still_registered(const void* at, size_t, uintptr_t registration) {
    std::lock_guard lock(mutex);
    auto found = registration_at(reinterpret_cast<uintptr_t>(at));
    return registration == 0 || (found != registrations.end() && found->first == registration);
}

size_t used_bytes() {
    std::lock_guard lock(mutex);
    return used[here()];
}

size_t total_bytes() { return total; }

void release_memory(int device) {
    std::lock_guard lock(mutex);
    for (auto each = slabs.begin(); each != slabs.end();) {
        bool ends = each->second.device == device;
        if (ends) unmap(each->first, each->second);
        each = ends ? slabs.erase(each) : std::next(each);
    }
    for (auto each = registrations.begin(); each != registrations.end();) {
        each = each->second.device == device ? registrations.erase(each) : std::next(each);
    }
    used[device] = 0;
}

long live_memory() {
    std::lock_guard lock(mutex);
    long opened = 0;
    for (auto& [_, slab] : slabs) opened += slab.opened;
    return opened + static_cast<long>(registrations.size());
}

API int cuMemGetInfo_v2(size_t* free_bytes, size_t* all_bytes) {
    ENTER(CONTEXT);
    *all_bytes = total_bytes();
    *free_bytes = total_bytes() - used_bytes();
    return OK;
}

API int cuMemAlloc_v2(Address* at, size_t bytes) {
    ENTER(CONTEXT);
    if (bytes == 0) return INVALID_VALUE;
    std::lock_guard lock(mutex);
    if (bytes > total || pages(bytes) > total - used[here()]) return OUT_OF_MEMORY;
    int file = shared_file(blocks(bytes));
    if (file < 0) return OUT_OF_MEMORY;
    void* memory = map_file(file, blocks(bytes));
    if (memory == nullptr) return OUT_OF_MEMORY;
    memset(memory, POISON, bytes);
    *at = reinterpret_cast<Address>(memory);
    slabs[*at] = {bytes, file, here(), false};
    used[here()] += pages(bytes);
    return OK;
}

API int cuMemFree_v2(Address at) {
    ENTER(CONTEXT);
    if (at == 0) return OK;
    drain_all();
    std::lock_guard lock(mutex);
    auto found = slabs.find(at);
    if (found == slabs.end() || found->second.imported || found->second.device != here()) return INVALID_VALUE;
    unmap(at, found->second);
    used[here()] -= pages(found->second.bytes);
    slabs.erase(found);
    return OK;
}

API int cuMemGetAddressRange_v2(Address* base, size_t* bytes, Address at) {
    ENTER(CONTEXT);
    std::lock_guard lock(mutex);
    auto found = slabs.upper_bound(at);
    if (found == slabs.begin() || at >= (--found)->first + found->second.bytes) return NOT_FOUND;
    if (found->second.device != here()) return INVALID_VALUE;
    *base = found->first;
    *bytes = found->second.bytes;
    return OK;
}

API int cuIpcGetMemHandle(Token* token, Address at) {
    ENTER(CONTEXT);
    std::lock_guard lock(mutex);
    auto found = slabs.find(at);
    if (found == slabs.end() || found->second.imported || found->second.device != here()) return INVALID_VALUE;
    return tell_file(token, found->second.file, found->second.bytes) ? OK : INVALID_VALUE;
}

// The real one refuses the process that has the memory, too. A second time it gives the same place, and shares
// whatever else is in the blocks that the memory is in.
API int cuIpcOpenMemHandle_v2(Address* at, Token token, unsigned flags) {
    ENTER(CONTEXT);
    if (flags != LAZY_PEERS) return INVALID_VALUE;
    if (told_here(token)) return INVALID_CONTEXT;
    if (!of_this_device(token)) return INVALID_DEVICE;
    int file = told_file(token);
    if (file < 0) return INVALID_VALUE;
    std::lock_guard lock(mutex);
    for (auto& [known, slab] : slabs) {
        if (!slab.imported || slab.cookie != token.cookie) continue;
        close(file);
        ++slab.opened;
        *at = known;
        return OK;
    }
    void* memory = map_file(file, blocks(token.bytes));
    if (memory == nullptr) return INVALID_VALUE;
    *at = reinterpret_cast<Address>(memory);
    slabs[*at] = {blocks(token.bytes), file, here(), true, token.cookie};
    return OK;
}

// Does not wait: nobody says that the real one does.
API int cuIpcCloseMemHandle(Address at) {
    ENTER(CONTEXT);
    std::lock_guard lock(mutex);
    auto found = slabs.find(at);
    if (found == slabs.end() || !found->second.imported || found->second.device != here()) return INVALID_VALUE;
    if (--found->second.opened > 0) return OK;
    unmap(at, found->second);
    slabs.erase(found);
    return OK;
}

API int cuMemHostRegister_v2(void* at, size_t bytes, unsigned flags) {
    ENTER(CONTEXT);
    auto start = reinterpret_cast<uintptr_t>(at);
    if (at == nullptr || bytes == 0 || flags > REGISTRATION_FLAGS || !there(start, bytes)) return INVALID_VALUE;
    std::lock_guard lock(mutex);
    if (overlaps(start, bytes)) return ALREADY_REGISTERED;
    registrations[start] = {bytes, here(), (flags & PORTABLE) != 0};
    return OK;
}

API int cuMemHostUnregister(void* at) {
    ENTER(CONTEXT);
    std::lock_guard lock(mutex);
    auto found = registrations.find(reinterpret_cast<uintptr_t>(at));
    if (found == registrations.end() || found->second.device != here()) return NOT_REGISTERED;
    registrations.erase(found);
    return OK;
}

API void standin_total(size_t bytes) { total = bytes; }
