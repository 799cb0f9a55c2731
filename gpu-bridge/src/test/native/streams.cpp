// Streams, each with a thread that is as late as tests want it, events between them, and copies.
#include "stand_in.h"

#include <atomic>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <memory>
#include <mutex>
#include <set>
#include <sys/mman.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace {

std::mutex gate_mutex;
std::condition_variable gate;
bool held;
bool launches_held;
int delay_micros;

void pass_gate() {
    std::unique_lock lock(gate_mutex);
    int delay = delay_micros;
    gate.wait(lock, [] { return !held; });
    lock.unlock();
    if (delay > 0) usleep(delay);
}

} // namespace

struct Stream {
    std::mutex mutex;
    std::condition_variable changed;
    std::deque<std::function<void()>> queue;
    bool stopping = false;
    bool busy = false;
    std::thread thread;

    Stream() : thread([this] { work(); }) {}

    ~Stream() {
        {
            std::lock_guard lock(mutex);
            stopping = true;
            changed.notify_all();
        }
        thread.join();
    }

    void work() {
        std::unique_lock lock(mutex);
        while (true) {
            changed.wait(lock, [this] { return stopping || !queue.empty(); });
            if (queue.empty()) return;
            auto next = std::move(queue.front());
            queue.pop_front();
            busy = true;
            lock.unlock();
            pass_gate();
            next();
            lock.lock();
            busy = false;
            changed.notify_all();
        }
    }

    bool idle() {
        std::lock_guard lock(mutex);
        return queue.empty() && !busy;
    }

    void drain() {
        std::unique_lock lock(mutex);
        changed.wait(lock, [this] { return queue.empty() && !busy; });
    }
};

namespace {

struct Counters {
    std::atomic<uint64_t> recorded;
    std::atomic<uint64_t> reached;
};

// Shared by the handle and by the work that refers to it, as an event may be destroyed while streams wait for it; in a
// file where another process has it too.
struct Mark {
    int file = shared_file(sizeof(Counters));
    Counters* counters = static_cast<Counters*>(map_file(file, sizeof(Counters)));
    Token owner{};

    Mark() = default;

    explicit Mark(const Token& token, int told)
        : file(told), counters(static_cast<Counters*>(map_file(told, sizeof(Counters)))), owner(token) {}

    ~Mark() {
        munmap(counters, sizeof(Counters));
        close(file);
    }

    // One whose process is gone holds nobody up.
    void await(uint64_t number) {
        while (counters->reached < number && (owner.magic == 0 || alive(owner))) usleep(20);
    }

    void reach(uint64_t number) {
        uint64_t before = counters->reached;
        while (before < number && !counters->reached.compare_exchange_weak(before, number)) {}
    }
};

struct Event {
    std::shared_ptr<Mark> mark;
};

std::mutex mutex;
std::set<Stream*> streams;
std::set<Event*> events;

std::shared_ptr<Mark> mark_of(void* handle) {
    std::lock_guard lock(mutex);
    auto found = events.find(static_cast<Event*>(handle));
    return found == events.end() ? nullptr : (*found)->mark;
}

int keep_event(void** handle, std::shared_ptr<Mark> mark) {
    auto* event = new Event{std::move(mark)};
    std::lock_guard lock(mutex);
    events.insert(event);
    *handle = event;
    return OK;
}

std::vector<Stream*> all_streams() {
    std::lock_guard lock(mutex);
    return {streams.begin(), streams.end()};
}

// A copy, once its spans were looked at.
struct Copy {
    void* to;
    const void* from;
    size_t bytes;
    const void* host; // the side that is in host memory, or null
    uintptr_t registration;
};

void carry_out(const Copy& copy) {
    if (work_failed() != OK) return;
    if (copy.host != nullptr && !still_registered(copy.host, copy.bytes, copy.registration)) {
        stick(ILLEGAL_ADDRESS);
        return;
    }
    memcpy(copy.to, copy.from, copy.bytes);
}

enum class Side { HOST, DEVICE };

// Answers OK and fills the copy in, or says what is wrong with it.
int plan(Copy* copy, Side to_side, Address to, Side from_side, Address from, size_t bytes) {
    bool device_fits = (to_side == Side::HOST || device_span(to, bytes))
        && (from_side == Side::HOST || device_span(from, bytes));
    if (bytes == 0 || !device_fits) return INVALID_VALUE;
    *copy = {reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes, nullptr, 0};
    if (to_side == Side::HOST) copy->host = copy->to;
    if (from_side == Side::HOST) copy->host = copy->from;
    if (copy->host != nullptr && !host_span(copy->host, bytes, &copy->registration)) return INVALID_VALUE;
    return OK;
}

int copy_later(void* handle, Side to_side, Address to, Side from_side, Address from, size_t bytes) {
    Stream* stream = stream_of(handle);
    if (stream == nullptr) return INVALID_HANDLE;
    Copy copy;
    if (int wrong = plan(&copy, to_side, to, from_side, from, bytes)) return wrong;
    give(stream, [copy] { carry_out(copy); });
    return OK;
}

Address address(const void* pointer) { return reinterpret_cast<Address>(pointer); }

} // namespace

Stream* stream_of(void* handle) {
    std::lock_guard lock(mutex);
    auto found = streams.find(static_cast<Stream*>(handle));
    return found == streams.end() ? nullptr : *found;
}

void pass_launch_gate() {
    std::unique_lock lock(gate_mutex);
    gate.wait(lock, [] { return !launches_held; });
}

void give(Stream* stream, std::function<void()> work) {
    std::lock_guard lock(stream->mutex);
    stream->queue.push_back(std::move(work));
    stream->changed.notify_all();
}

void drain_all() {
    for (Stream* stream : all_streams()) stream->drain();
}

void release_streams() {
    std::vector<Stream*> left = all_streams();
    std::vector<Event*> marks;
    {
        std::lock_guard lock(mutex);
        marks.assign(events.begin(), events.end());
        streams.clear();
        events.clear();
    }
    for (Stream* stream : left) delete stream;
    for (Event* event : marks) delete event;
}

long live_streams() {
    std::lock_guard lock(mutex);
    return static_cast<long>(streams.size() + events.size());
}

API int cuStreamCreateWithPriority(void** handle, unsigned, int) {
    ENTER(CONTEXT);
    auto* stream = new Stream;
    std::lock_guard lock(mutex);
    streams.insert(stream);
    *handle = stream;
    return OK;
}

// What is on its way goes on in the real driver; here it is waited for, which nobody can tell.
API int cuStreamDestroy_v2(void* handle) {
    ENTER(CONTEXT);
    Stream* stream = stream_of(handle);
    if (stream == nullptr) return INVALID_HANDLE;
    {
        std::lock_guard lock(mutex);
        streams.erase(stream);
    }
    delete stream;
    return OK;
}

API int cuStreamQuery(void* handle) {
    ENTER(CONTEXT);
    Stream* stream = stream_of(handle);
    if (stream == nullptr) return INVALID_HANDLE;
    return stream->idle() ? OK : NOT_READY;
}

API int cuStreamWaitEvent(void* handle, void* event, unsigned) {
    ENTER(CONTEXT);
    Stream* stream = stream_of(handle);
    std::shared_ptr<Mark> mark = mark_of(event);
    if (stream == nullptr || mark == nullptr) return INVALID_HANDLE;
    uint64_t awaited = mark->counters->recorded;
    give(stream, [mark, awaited] { mark->await(awaited); });
    return OK;
}

API int cuEventCreate(void** handle, unsigned) {
    ENTER(CONTEXT);
    return keep_event(handle, std::make_shared<Mark>());
}

API int cuIpcGetEventHandle(Token* token, void* handle) {
    ENTER(CONTEXT);
    std::shared_ptr<Mark> mark = mark_of(handle);
    if (mark == nullptr || mark->owner.magic != 0) return INVALID_HANDLE;
    return tell_file(token, mark->file, sizeof(Counters)) ? OK : INVALID_VALUE;
}

API int cuIpcOpenEventHandle(void** handle, Token token) {
    ENTER(CONTEXT);
    if (told_here(token)) return INVALID_CONTEXT;
    int file = told_file(token);
    if (file < 0 || token.bytes != sizeof(Counters)) return INVALID_VALUE;
    return keep_event(handle, std::make_shared<Mark>(token, file));
}

API int cuEventDestroy_v2(void* handle) {
    ENTER(CONTEXT);
    std::lock_guard lock(mutex);
    auto* event = static_cast<Event*>(handle);
    if (events.erase(event) == 0) return INVALID_HANDLE;
    delete event;
    return OK;
}

API int cuEventRecord(void* handle, void* stream_handle) {
    ENTER(CONTEXT);
    Stream* stream = stream_of(stream_handle);
    std::shared_ptr<Mark> mark = mark_of(handle);
    if (stream == nullptr || mark == nullptr) return INVALID_HANDLE;
    uint64_t number = ++mark->counters->recorded;
    give(stream, [mark, number] { mark->reach(number); });
    return OK;
}

API int cuEventQuery(void* handle) {
    ENTER(CONTEXT);
    std::shared_ptr<Mark> mark = mark_of(handle);
    if (mark == nullptr) return INVALID_HANDLE;
    if (mark->counters->reached < mark->counters->recorded) return NOT_READY;
    return stuck();
}

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

API int cuMemcpyBatchAsync_v2(const Address* to, const Address* from, const size_t* bytes, size_t count,
                              const CopyAttributes* attributes, const size_t* first, size_t sets, void* handle) {
    ENTER(CONTEXT);
    Stream* stream = stream_of(handle);
    if (stream == nullptr) return INVALID_HANDLE;
    bool attributed = sets == 1 && first[0] == 0 && attributes->source_order >= 1 && attributes->source_order <= 3;
    if (count == 0 || !attributed || attributes->flags > 1) return INVALID_VALUE;
    std::vector<Copy> copies(count);
    for (size_t i = 0; i < count; i++) {
        Side to_side = device_span(to[i], bytes[i]) ? Side::DEVICE : Side::HOST;
        Side from_side = device_span(from[i], bytes[i]) ? Side::DEVICE : Side::HOST;
        if (to_side == Side::HOST && from_side == Side::HOST) return INVALID_VALUE;
        if (int wrong = plan(&copies[i], to_side, to[i], from_side, from[i], bytes[i])) return wrong;
    }
    give(stream, [copies] {
        for (auto copy = copies.rbegin(); copy != copies.rend(); ++copy) carry_out(*copy);
    });
    return OK;
}

API int cuMemsetD8Async(Address to, unsigned char value, size_t bytes, void* handle) {
    ENTER(CONTEXT);
    Stream* stream = stream_of(handle);
    if (stream == nullptr) return INVALID_HANDLE;
    if (!device_span(to, bytes)) return INVALID_VALUE;
    give(stream, [=] {
        if (work_failed() == OK) memset(reinterpret_cast<void*>(to), value, bytes);
    });
    return OK;
}

// Holds all streams before their next piece of work, or lets them go on.
API void standin_hold(int hold) {
    std::lock_guard lock(gate_mutex);
    held = hold != 0;
    gate.notify_all();
}

// The same for kernels alone: copies go on.
API void standin_hold_launches(int hold) {
    std::lock_guard lock(gate_mutex);
    launches_held = hold != 0;
    gate.notify_all();
}

// Has every piece of work begin so much later.
API void standin_delay(int micros) {
    std::lock_guard lock(gate_mutex);
    delay_micros = micros;
}
