// Virtual memory of the device: ranges of addresses without memory, memory without addresses, and mappings between them.
// A range is address space that nothing may touch, memory is a memfd, a mapping puts one over the other.
#include "stand_in.h"

#include <cstdio>
#include <fcntl.h>
#include <iterator>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace {

constexpr size_t GRANULARITY = size_t{2} << 20;
enum { PINNED = 1, DEVICE = 1, READ_WRITE = 3, MINIMUM = 0, BY_DESCRIPTOR = 1 };
constexpr const char* NAME = "kvcache-stand-in-%d"; // of the device
constexpr const char* LINK = "/memfd:kvcache-stand-in-%d";

struct Location {
    int type;
    int device;
};

// CUmemAllocationProp
struct Properties {
    int type;
    int handle_types;
    Location location;
    void* unused_by_linux;
    unsigned char compression;
    unsigned char rdma;
    unsigned short usage;
    unsigned char reserved[4];
};

static_assert(sizeof(Properties) == 32);

// CUmemAccessDesc
struct Access {
    Location location;
    int flags;
};

static_assert(sizeof(Access) == 12);

struct Physical {
    int file;
    size_t bytes;
    int device;
    int references; // the handle and each mapping
    bool shared;    // may be made a descriptor of
    bool imported;  // another process's, or opened once more
    int opened_by;  // whose context has the handle
};

struct Mapping {
    size_t bytes;
    Physical* physical;
    int device;
};

std::mutex mutex;
struct Range {
    size_t bytes;
    int device;
};

std::map<Address, Range> ranges;
std::map<Address, Mapping> mappings;
std::set<Physical*> handles;

bool whole(size_t bytes) { return bytes != 0 && bytes % GRANULARITY == 0; }

bool of_the_device(const Properties& wanted) {
    return wanted.type == PINNED && wanted.location.type == DEVICE && wanted.location.device == here() &&
        wanted.compression <= 1 && wanted.rdma <= 1 && wanted.handle_types <= 1 && wanted.usage == 0 && wanted.unused_by_linux == nullptr &&
        (wanted.reserved[0] | wanted.reserved[1] | wanted.reserved[2] | wanted.reserved[3]) == 0;
}

void let_go(Physical* physical) {
    if (--physical->references > 0) return;
    if (!physical->imported) give_bytes(physical->device, physical->bytes);
    close(physical->file);
    delete physical;
}

// Nothing may touch it: as if there were no memory.
void empty(Address at, size_t bytes) {
    mmap(reinterpret_cast<void*>(at), bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
}

bool reserved(Address at, size_t bytes) {
    auto found = ranges.upper_bound(at);
    if (found == ranges.begin()) return false;
    --found;
    return at + bytes <= found->first + found->second.bytes && found->second.device == here();
}

bool mapped(Address at, size_t bytes) {
    auto next = mappings.lower_bound(at);
    if (next != mappings.end() && next->first < at + bytes) return true;
    return next != mappings.begin() && (--next)->first + next->second.bytes > at;
}

} // namespace

void release_virtual(int device) {
    std::lock_guard lock(mutex);
    for (auto each = mappings.begin(); each != mappings.end();) {
        auto [at, mapping] = *each;
        bool ends = mapping.device == device;
        if (ends) forget_span(at), let_go(mapping.physical);
        each = ends ? mappings.erase(each) : std::next(each);
    }
    for (auto each = handles.begin(); each != handles.end();) {
        Physical* physical = *each;
        bool ends = physical->opened_by == device;
        each = ends ? handles.erase(each) : std::next(each);
        if (ends) let_go(physical);
    }
    for (auto each = ranges.begin(); each != ranges.end();) {
        bool ends = each->second.device == device;
        if (ends) munmap(reinterpret_cast<void*>(each->first), each->second.bytes);
        each = ends ? ranges.erase(each) : std::next(each);
    }
}

long live_virtual() {
    std::lock_guard lock(mutex);
    return static_cast<long>(ranges.size() + mappings.size() + handles.size());
}

API int cuMemGetAllocationGranularity(size_t* bytes, const Properties* wanted, int which) {
    ENTER(CONTEXT);
    if (!of_the_device(*wanted) || which != MINIMUM) return INVALID_VALUE;
    *bytes = GRANULARITY;
    return OK;
}

API int cuMemAddressReserve(Address* at, size_t bytes, size_t alignment, Address, unsigned long long flags) {
    ENTER(CONTEXT);
    bool power = (alignment & (alignment - 1)) == 0;
    if (!whole(bytes) || alignment > GRANULARITY || !power || flags != 0) return INVALID_VALUE;
    size_t with_slack = bytes + GRANULARITY;
    void* found = mmap(nullptr, with_slack, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (found == MAP_FAILED) return OUT_OF_MEMORY;
    auto start = reinterpret_cast<Address>(found);
    Address aligned = (start + GRANULARITY - 1) / GRANULARITY * GRANULARITY;
    if (aligned > start) munmap(found, aligned - start);
    munmap(reinterpret_cast<void*>(aligned + bytes), start + GRANULARITY - aligned);
    std::lock_guard lock(mutex);
    ranges[aligned] = {bytes, here()};
    *at = aligned;
    return OK;
}

API int cuMemAddressFree(Address at, size_t bytes) {
    ENTER(CONTEXT);
    std::lock_guard lock(mutex);
    auto found = ranges.find(at);
    if (found == ranges.end() || found->second.bytes != bytes || mapped(at, bytes)) return INVALID_VALUE;
    if (found->second.device != here()) return INVALID_VALUE;
    munmap(reinterpret_cast<void*>(at), bytes);
    ranges.erase(found);
    return OK;
}

API int cuMemCreate(Physical** handle, size_t bytes, const Properties* wanted, unsigned long long flags) {
    ENTER(CONTEXT);
    if (!whole(bytes) || !of_the_device(*wanted) || flags != 0) return INVALID_VALUE;
    if (!take_bytes(bytes)) return OUT_OF_MEMORY;
    char name[32];
    snprintf(name, sizeof(name), NAME, here());
    int file = memfd_create(name, MFD_CLOEXEC);
    if (file < 0 || ftruncate(file, static_cast<off_t>(bytes)) != 0) {
        give_bytes(here(), bytes);
        return OUT_OF_MEMORY;
    }
    std::lock_guard lock(mutex);
    *handle = new Physical{file, bytes, here(), 1, wanted->handle_types == BY_DESCRIPTOR, false, here()};
    handles.insert(*handle);
    return OK;
}

// Only of memory that was created to be shared, as with the real one.
API int cuMemExportToShareableHandle(int* descriptor, Physical* handle, int type, unsigned long long flags) {
    ENTER(CONTEXT);
    std::lock_guard lock(mutex);
    if (type != BY_DESCRIPTOR || flags != 0 || handles.count(handle) == 0 || !handle->shared) return INVALID_VALUE;
    *descriptor = fcntl(handle->file, F_DUPFD_CLOEXEC, 0);
    return *descriptor < 0 ? INVALID_VALUE : OK;
}

API int cuMemImportFromShareableHandle(Physical** handle, void* told, int type) {
    ENTER(CONTEXT);
    int given = static_cast<int>(reinterpret_cast<intptr_t>(told));
    char link[64] = {};
    std::string path = "/proc/self/fd/" + std::to_string(given);
    if (type != BY_DESCRIPTOR || readlink(path.c_str(), link, sizeof(link) - 1) < 0) return INVALID_VALUE;
    int device = -1;
    if (sscanf(link, LINK, &device) != 1) return INVALID_VALUE;
    struct stat about;
    int file = fcntl(given, F_DUPFD_CLOEXEC, 0);
    if (file < 0 || fstat(file, &about) != 0) return INVALID_VALUE;
    std::lock_guard lock(mutex);
    *handle = new Physical{file, static_cast<size_t>(about.st_size), device, 1, true, true, here()};
    handles.insert(*handle);
    return OK;
}

API int cuMemRelease(Physical* handle) {
    ENTER(CONTEXT);
    std::lock_guard lock(mutex);
    if (handles.count(handle) == 0 || handle->opened_by != here()) return INVALID_VALUE;
    handles.erase(handle);
    let_go(handle);
    return OK;
}

// Without access until that is set.
API int cuMemMap(Address at, size_t bytes, size_t offset, Physical* handle, unsigned long long flags) {
    ENTER(CONTEXT);
    std::lock_guard lock(mutex);
    bool fits = handles.count(handle) == 1 && offset == 0 && bytes == handle->bytes && flags == 0;
    if (!fits || !reserved(at, bytes) || mapped(at, bytes)) return INVALID_VALUE;
    void* place = reinterpret_cast<void*>(at);
    if (mmap(place, bytes, PROT_NONE, MAP_SHARED | MAP_FIXED, handle->file, 0) == MAP_FAILED) return INVALID_VALUE;
    ++handle->references;
    mappings[at] = {bytes, handle, here()};
    return OK;
}

API int cuMemSetAccess(Address at, size_t bytes, const Access* wanted, size_t count) {
    ENTER(CONTEXT);
    std::lock_guard lock(mutex);
    auto found = mappings.find(at);
    bool device = count == 1 && wanted->location.type == DEVICE && wanted->location.device == here();
    if (!device || wanted->flags != READ_WRITE || found == mappings.end() || found->second.bytes != bytes)
        return INVALID_VALUE;
    if (found->second.physical->device != here()) return INVALID_DEVICE; // that reaches no other's
    if (mprotect(reinterpret_cast<void*>(at), bytes, PROT_READ | PROT_WRITE) != 0) return INVALID_VALUE;
    note_span(at, bytes);
    return OK;
}

// Does not wait for what is on its way, as the real one does not.
API int cuMemUnmap(Address at, size_t bytes) {
    ENTER(CONTEXT);
    std::lock_guard lock(mutex);
    auto found = mappings.find(at);
    if (found == mappings.end() || found->second.bytes != bytes) return INVALID_VALUE;
    if (found->second.device != here()) return INVALID_VALUE;
    forget_span(at);
    empty(at, bytes);
    let_go(found->second.physical);
    mappings.erase(found);
    return OK;
}
