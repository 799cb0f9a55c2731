// Device code: what is loaded is looked at as text, and what is launched is the same source compiled for the CPU.
#include "stand_in.h"

#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "../../main/cuda/kernels.cu"

namespace {

struct Kernel {
    void (*call)(void** arguments);
    std::vector<size_t> sizes;
};

template <auto Function>
struct Adapter;

template <class... Arguments, void (*Function)(Arguments...)>
struct Adapter<Function> {
    template <size_t... Index>
    static void call(void** arguments, std::index_sequence<Index...>) {
        Function(*static_cast<Arguments*>(arguments[Index])...);
    }

    static void call(void** arguments) { call(arguments, std::index_sequence_for<Arguments...>{}); }

    static Kernel kernel() { return {&call, {sizeof(Arguments)...}}; }
};

const std::map<std::string, Kernel>& kernels() {
    static const std::map<std::string, Kernel> all = {
        {"kv_copy_pieces", Adapter<&kv_copy_pieces>::kernel()},
        {"kv_crc32c_runs", Adapter<&kv_crc32c_runs>::kernel()},
        {"kv_crc32c_chunks", Adapter<&kv_crc32c_chunks>::kernel()},
        {"kv_rope_shift", Adapter<&kv_rope_shift>::kernel()},
        {"kv_to_fp8", Adapter<&kv_to_fp8>::kernel()},
        {"kv_from_fp8", Adapter<&kv_from_fp8>::kernel()},
        {"kv_relayout_pieces", Adapter<&kv_relayout_pieces>::kernel()},
        {"kv_gather_coded", Adapter<&kv_gather_coded>::kernel()},
        {"kv_scatter_coded", Adapter<&kv_scatter_coded>::kernel()},
        {"kv_score_keys", Adapter<&kv_score_keys>::kernel()},
        {"kv_key_bounds", Adapter<&kv_key_bounds>::kernel()},
        {"kv_score_bounds", Adapter<&kv_score_bounds>::kernel()},
        {"kv_score_means", Adapter<&kv_score_means>::kernel()},
        {"kv_attend", Adapter<&kv_attend>::kernel()},
        {"kv_attend_merge", Adapter<&kv_attend_merge>::kernel()},
    };
    return all;
}

enum { NO_BINARY_FOR_GPU = 209, INVALID_PTX = 218, UNSUPPORTED_PTX_VERSION = 222, NOT_FOUND = 500 };
enum { MOST_THREADS = 1024, MOST_BLOCKS = 0x7FFFFFFF, CAPABILITY = 90 };

// PTX up to what drivers of the first GPUs that are supported take.
constexpr int NEWEST_VERSION = 7;

// A kernel as a module has it.
struct Function {
    const Kernel* kernel;
};

struct Module {
    std::string text;
    int device;
    std::map<std::string, Function> functions; // that were asked for
};

std::mutex mutex;
std::set<Module*> modules;

// Bytes of each parameter that the text declares for an entry, as in ".param .u64 name"; false when it has no such entry.
bool parameters(const std::string& text, const std::string& name, std::vector<size_t>* bytes) {
    static const std::string PARAM = ".param .";
    size_t entry = text.find(".entry " + name + "(");
    if (entry == std::string::npos) return false;
    size_t end = text.find(')', entry);
    for (size_t at = text.find(PARAM, entry); at < end; at = text.find(PARAM, at + 1)) {
        bytes->push_back(static_cast<size_t>(atoi(text.c_str() + at + PARAM.size() + 1)) / 8);
    }
    return true;
}

// The kernel, when the function is of code that this device has.
const Kernel* kernel_of(const void* function) {
    std::lock_guard lock(mutex);
    for (Module* module : modules) {
        if (module->device != here()) continue;
        for (auto& [_, known] : module->functions) {
            if (&known == function) return known.kernel;
        }
    }
    return nullptr;
}

// Whether an argument is a place in another device's memory.
bool astray(const std::vector<char>& argument) {
    Address value = 0;
    if (argument.size() == sizeof value) memcpy(&value, argument.data(), sizeof value);
    return elsewhere(value, 1);
}

using Arguments = std::vector<std::vector<char>>;

void run(const Kernel* kernel, std::vector<void*>& places, unsigned blocks, unsigned threads) {
    gridDim = {blocks, 1, 1};
    blockDim = {threads, 1, 1};
    std::function<void()> call = [&] { kernel->call(places.data()); };
    for (unsigned block = 0; block < blocks; block++) {
        blockIdx = {block, 0, 0};
        for (unsigned first = 0; first < threads; first += Warp::LANES) {
            bool whole = Warp().run(first, threads - first, call);
            if (!whole) stick(ILLEGAL_ADDRESS); // on a device some threads would wait for others for ever
        }
    }
}

} // namespace

void release_modules(int device) {
    std::lock_guard lock(mutex);
    for (auto each = modules.begin(); each != modules.end();) {
        bool ends = (*each)->device == device;
        if (ends) delete *each;
        each = ends ? modules.erase(each) : std::next(each);
    }
}

long live_modules() {
    std::lock_guard lock(mutex);
    return static_cast<long>(modules.size());
}

API int cuModuleLoadData(void** handle, const char* image) {
    ENTER(CONTEXT);
    const char* version = strstr(image, ".version ");
    const char* target = strstr(image, ".target sm_");
    if (version == nullptr || target == nullptr || strstr(image, ".address_size 64") == nullptr) return INVALID_PTX;
    if (atoi(target + 11) > CAPABILITY) return NO_BINARY_FOR_GPU;
    if (version[9] - '0' > NEWEST_VERSION) return UNSUPPORTED_PTX_VERSION;
    auto* module = new Module{image, here(), {}};
    std::lock_guard lock(mutex);
    modules.insert(module);
    *handle = module;
    return OK;
}

API int cuModuleUnload(void* handle) {
    ENTER(CONTEXT);
    drain_all();
    std::lock_guard lock(mutex);
    auto* module = static_cast<Module*>(handle);
    if (modules.count(module) == 0 || module->device != here()) return INVALID_HANDLE;
    modules.erase(module);
    delete module;
    return OK;
}

API int cuModuleGetFunction(const void** function, void* handle, const char* name) {
    ENTER(CONTEXT);
    std::lock_guard lock(mutex);
    auto found = modules.find(static_cast<Module*>(handle));
    if (found == modules.end() || (*found)->device != here()) return INVALID_HANDLE;
    auto kernel = kernels().find(name);
    std::vector<size_t> declared;
    if (!parameters((*found)->text, name, &declared) || kernel == kernels().end()) return NOT_FOUND;
    if (declared != kernel->second.sizes) return INVALID_PTX; // text and source differ
    *function = &((*found)->functions[name] = {&kernel->second});
    return OK;
}

API int cuLaunchKernel(const void* function, unsigned blocks, unsigned blocks_y, unsigned blocks_z, unsigned threads,
                       unsigned threads_y, unsigned threads_z, unsigned shared, void* handle, void** arguments, void** extra) {
    ENTER(CONTEXT);
    Stream* stream = stream_of(handle);
    if (stream == nullptr) return INVALID_HANDLE;
    bool flat = blocks_y == 1 && blocks_z == 1 && threads_y == 1 && threads_z == 1;
    if (function == nullptr || !flat || blocks == 0 || threads == 0 || threads > MOST_THREADS) return INVALID_VALUE;
    if (blocks > MOST_BLOCKS || shared != 0 || arguments == nullptr || extra != nullptr) return INVALID_VALUE;
    const Kernel* kernel = kernel_of(function);
    if (kernel == nullptr) return INVALID_HANDLE;
    Arguments copied;
    for (size_t i = 0; i < kernel->sizes.size(); i++) {
        auto* first = static_cast<const char*>(arguments[i]);
        copied.emplace_back(first, first + kernel->sizes[i]);
        if (astray(copied.back())) stick(ILLEGAL_ADDRESS);
    }
    give(stream, [kernel, copied, blocks, threads]() mutable {
        pass_launch_gate();
        if (work_failed() != OK) return;
        std::vector<void*> places;
        for (auto& argument : copied) places.push_back(argument.data());
        run_until_misaligned([&] { run(kernel, places, blocks, threads); });
    });
    return OK;
}
