// Counting calls, and having chosen ones fail.
#include "stand_in.h"

#include <atomic>
#include <cstdio>
#include <map>
#include <mutex>
#include <string>

namespace {

std::mutex mutex;
std::map<std::string, long> calls;
long all_calls;
long fail_in; // the call after so many more; 0 for none
long fail_again; // and so many after it
int fail_code;
std::string fail_name; // of these calls only; empty for any
long work_in;
int work_code;
long injected;
std::string injected_at; // the call that failed last
std::atomic<int> lost{OK};
std::atomic<int> sticky[MOST_DEVICES];

} // namespace

int entered(const char* function, Needs needs) {
    std::lock_guard lock(mutex);
    ++calls[function];
    ++all_calls;
    if (fail_in > 0 && (fail_name.empty() || fail_name == function) && --fail_in == 0) {
        ++injected;
        if (fail_again > 0) fail_in = 1, --fail_again;
        injected_at = function;
        return fail_code;
    }
    if (needs == Needs::NOT_EVEN_A_DEVICE) return OK;
    if (lost != OK) return lost;
    if (needs == Needs::NOTHING) return OK;
    if (here() >= 0 && stuck() != OK) return stuck();
    return has_context() ? OK : INVALID_CONTEXT;
}

int work_failed() {
    std::lock_guard lock(mutex);
    if (work_in > 0 && --work_in == 0) {
        ++injected;
        stick(work_code);
    }
    return stuck() != OK ? stuck() : lost.load();
}

void stick(int result) { sticky[here()] = result; }
int stuck() { return sticky[here()]; }
void unstick(int device) { sticky[device] = OK; }

// What tests call.
API long standin_calls(const char* function) {
    std::lock_guard lock(mutex);
    auto found = calls.find(function);
    return found == calls.end() ? 0 : found->second;
}

API long standin_all_calls() {
    std::lock_guard lock(mutex);
    return all_calls;
}

API long standin_injected() {
    std::lock_guard lock(mutex);
    return injected;
}

// The function whose call was made to fail last.
API void standin_injected_at(char* name, size_t bytes) {
    std::lock_guard lock(mutex);
    snprintf(name, bytes, "%s", injected_at.c_str());
}

// Has the n-th call from now on fail, of one function or, with an empty name, of any.
API void standin_fail(const char* function, long nth, int code) {
    std::lock_guard lock(mutex);
    fail_name = function;
    fail_in = nth;
    fail_again = 0;
    fail_code = code;
}

// Has so many more of the same fail, one after the other.
API void standin_fail_again(long times) {
    std::lock_guard lock(mutex);
    fail_again = times;
}

// Has the n-th piece of work from now on fail when a stream gets to it.
API void standin_fail_work(long nth, int code) {
    std::lock_guard lock(mutex);
    work_in = nth;
    work_code = code;
}

// Everything answers this from now on; 0 ends it.
API void standin_lose(int code) { lost = code; }

// As after start: forgets counts and faults, and takes back what was left behind.
API void standin_reset() {
    forget_contexts();
    std::lock_guard lock(mutex);
    calls.clear();
    all_calls = fail_in = fail_again = work_in = injected = 0;
    fail_name.clear();
    lost = OK;
}

// Allocations, registrations, streams, events, modules, ranges, mappings and memory without one that are not given back.
API long standin_live() { return live_memory() + live_streams() + live_modules() + live_virtual(); }
