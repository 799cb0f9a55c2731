// Sharing memory with another process: a token says where its file without a name is to be found.
#include "stand_in.h"

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <random>
#include <string>
#include <sys/mman.h>
#include <unistd.h>

namespace {

constexpr unsigned MAGIC = 0x4b564341;
constexpr const char* LINK = "/memfd:kvcache-%llx (deleted)";

std::string link_of(const std::string& path) {
    char found[128];
    ssize_t length = readlink(path.c_str(), found, sizeof(found));
    return length < 0 ? "" : std::string(found, static_cast<size_t>(length));
}

std::string file_path(int process, int file) {
    return "/proc/" + std::to_string(process) + "/fd/" + std::to_string(file);
}

unsigned long long fresh_cookie() {
    static std::atomic<unsigned long long> next{(static_cast<unsigned long long>(std::random_device{}()) << 32) + 1};
    return next++;
}

} // namespace

int shared_file(size_t bytes) {
    char name[64];
    snprintf(name, sizeof(name), "kvcache-%llx", fresh_cookie());
    int file = memfd_create(name, MFD_CLOEXEC);
    if (file >= 0 && ftruncate(file, static_cast<off_t>(bytes)) != 0) {
        close(file);
        return -1;
    }
    return file;
}

// Closes the file when it cannot be mapped.
void* map_file(int file, size_t bytes) {
    void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (memory != MAP_FAILED) return memory;
    close(file);
    return nullptr;
}

bool tell_file(Token* token, int file, size_t bytes) {
    *token = {MAGIC, getpid(), file, here(), bytes, 0, {}};
    return sscanf(link_of(file_path(getpid(), file)).c_str(), LINK, &token->cookie) == 1;
}

int told_file(const Token& token) {
    if (token.magic != MAGIC) return -1;
    std::string path = file_path(token.process, token.file);
    unsigned long long cookie = 0;
    if (sscanf(link_of(path).c_str(), LINK, &cookie) != 1 || cookie != token.cookie) return -1;
    return open(path.c_str(), O_RDWR | O_CLOEXEC);
}

bool told_here(const Token& token) { return token.magic == MAGIC && token.process == getpid(); }

bool of_this_device(const Token& token) { return token.device == here(); }

bool alive(const Token& token) { return kill(token.process, 0) == 0 || errno == EPERM; }
