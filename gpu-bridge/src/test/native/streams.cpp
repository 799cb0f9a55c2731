// Streams, each with a thread that is as late as tests want it, and events between them.
#include "stand_in.h"

#include <atomic>
#include <condition_variable>
#include <deque>
#include <iterator>
#include <map>
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
    const int device = here();
    std::thread thread;

    Stream() : thread([this] { work(); }) {}

    ~Stream() {
        stop();
        thread.join();
    }

    // Once its queue is empty.
    void stop() {
        std::lock_guard lock(mutex);
        stopping = true;
        changed.notify_all();
    }

    void work() {
        work_for(device);
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

// Flags of streams and events.
enum : unsigned { NON_BLOCKING = 1, WITHOUT_TIME = 2, BETWEEN_PROCESSES = 4, EVENT_FLAGS = 7 };

struct Event {
    std::shared_ptr<Mark> mark;
    bool shared;
    int device;
};

using Streams = std::map<Stream*, std::shared_ptr<Stream>>;

// None of it is destroyed when the process exits: there may be work that is held.
std::mutex& mutex = *new std::mutex;
Streams& streams = *new Streams;
Streams& parting = *new Streams; // destroyed, and still at what they were given
std::set<Event*>& events = *new std::set<Event*>;

std::shared_ptr<Mark> mark_of(void* handle) {
    std::lock_guard lock(mutex);
    auto found = events.find(static_cast<Event*>(handle));
    return found == events.end() || (*found)->device != here() ? nullptr : (*found)->mark;
}

int keep_event(void** handle, std::shared_ptr<Mark> mark, bool shared) {
    auto* event = new Event{std::move(mark), shared, here()};
    std::lock_guard lock(mutex);
    events.insert(event);
    *handle = event;
    return OK;
}

std::vector<std::shared_ptr<Stream>> streams_of(int device) {
    std::lock_guard lock(mutex);
    std::vector<std::shared_ptr<Stream>> all;
    for (Streams* some : {&streams, &parting}) {
        for (auto& [_, stream] : *some) {
            if (stream->device == device) all.push_back(stream);
        }
    }
    return all;
}

template <class Known, class Device>
void forget(Known& known, int device, Device of) {
    for (auto each = known.begin(); each != known.end();) {
        each = of(*each) == device ? known.erase(each) : std::next(each);
    }
}

} // namespace

Stream* stream_of(void* handle) {
    std::lock_guard lock(mutex);
    auto found = streams.find(static_cast<Stream*>(handle));
    return found == streams.end() || found->first->device != here() ? nullptr : found->first;
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

void drain(Stream* stream) { stream->drain(); }

void drain_all() {
    for (auto& stream : streams_of(here())) stream->drain();
}

void release_streams(int device) {
    std::vector<std::shared_ptr<Stream>> left = streams_of(device);
    std::vector<Event*> marks;
    {
        std::lock_guard lock(mutex);
        for (Event* event : events) {
            if (event->device == device) marks.push_back(event);
        }
        auto of_stream = [](auto& each) { return each.first->device; };
        forget(streams, device, of_stream);
        forget(parting, device, of_stream);
        forget(events, device, [](Event* event) { return event->device; });
    }
    left.clear(); // waits for each
    for (Event* event : marks) delete event;
}

long live_streams() {
    std::lock_guard lock(mutex);
    return static_cast<long>(streams.size() + events.size());
}

// One that waits for the default stream is none that the bridge may use.
API int cuStreamCreateWithPriority(void** handle, unsigned flags, int) {
    ENTER(CONTEXT);
    if (flags != NON_BLOCKING) return INVALID_VALUE;
    auto stream = std::make_shared<Stream>();
    std::lock_guard lock(mutex);
    streams[stream.get()] = stream;
    *handle = stream.get();
    return OK;
}

// Does not wait: what is on its way goes on.
API int cuStreamDestroy_v2(void* handle) {
    ENTER(CONTEXT);
    std::vector<std::shared_ptr<Stream>> done;
    std::lock_guard lock(mutex);
    auto found = streams.find(static_cast<Stream*>(handle));
    if (found == streams.end() || found->first->device != here()) return INVALID_HANDLE;
    found->second->stop();
    parting.insert(*found);
    streams.erase(found);
    for (auto each = parting.begin(); each != parting.end();) {
        bool idle = each->second->idle();
        if (idle) done.push_back(each->second);
        each = idle ? parting.erase(each) : std::next(each);
    }
    return OK;
}

API int cuStreamQuery(void* handle) {
    ENTER(CONTEXT);
    Stream* stream = stream_of(handle);
    if (stream == nullptr) return INVALID_HANDLE;
    return stream->idle() ? OK : NOT_READY;
}

API int cuStreamWaitEvent(void* handle, void* event, unsigned flags) {
    ENTER(CONTEXT);
    if (flags != 0) return INVALID_VALUE;
    Stream* stream = stream_of(handle);
    std::shared_ptr<Mark> mark = mark_of(event);
    if (stream == nullptr || mark == nullptr) return INVALID_HANDLE;
    uint64_t awaited = mark->counters->recorded;
    give(stream, [mark, awaited] { mark->await(awaited); });
    return OK;
}

API int cuEventCreate(void** handle, unsigned flags) {
    ENTER(CONTEXT);
    bool shared = (flags & BETWEEN_PROCESSES) != 0;
    if (flags > EVENT_FLAGS || (shared && (flags & WITHOUT_TIME) == 0)) return INVALID_VALUE;
    return keep_event(handle, std::make_shared<Mark>(), shared);
}

API int cuIpcGetEventHandle(Token* token, void* handle) {
    ENTER(CONTEXT);
    std::shared_ptr<Mark> mark = mark_of(handle);
    if (mark == nullptr || mark->owner.magic != 0 || !static_cast<Event*>(handle)->shared) return INVALID_HANDLE;
    return tell_file(token, mark->file, sizeof(Counters)) ? OK : INVALID_VALUE;
}

API int cuIpcOpenEventHandle(void** handle, Token token) {
    ENTER(CONTEXT);
    if (told_here(token)) return INVALID_CONTEXT;
    if (!of_this_device(token)) return INVALID_DEVICE;
    int file = told_file(token);
    if (file < 0 || token.bytes != sizeof(Counters)) return INVALID_VALUE;
    return keep_event(handle, std::make_shared<Mark>(token, file), false);
}

API int cuEventDestroy_v2(void* handle) {
    ENTER(CONTEXT);
    std::lock_guard lock(mutex);
    auto* event = static_cast<Event*>(handle);
    if (events.count(event) == 0 || event->device != here()) return INVALID_HANDLE;
    events.erase(event);
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
