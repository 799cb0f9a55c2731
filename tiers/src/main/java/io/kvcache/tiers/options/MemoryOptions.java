package io.kvcache.tiers.options;

import java.nio.file.Path;

/// Kind of host memory.
///
/// @param backing where the pages come from, and so which processes can map them
/// @param hugePages whether to ask for 2 MiB pages
/// @param shmDirectory folder of the files of [Backing#SHM_FILE], absolute; created with mode 0700 when missing,
///     refused when it belongs to another user or is open to others
public record MemoryOptions(Backing backing, HugePages hugePages, Path shmDirectory) {

    /// Backing of the pages.
    public enum Backing {
        /// Private to this process. The only one that works on every platform.
        ANONYMOUS,
        /// An unnamed file in memory, sealed against resizing, that processes of the same user and PID namespace
        /// map through `/proc/PID/fd/N`. The kernel frees it with its last user, even after a crash.
        MEMFD,
        /// A file under `/dev/shm`, which containers can share as a volume. Its space is taken at once, it is
        /// removed at close, and it stays behind after a crash.
        SHM_FILE
    }

    /// Use of transparent huge pages.
    public enum HugePages {
        /// Asks, and does without where the kernel refuses.
        AUTO,
        /// Asks, and fails where the kernel refuses.
        ON,
        /// Asks for small pages, also where huge ones are the kernel's default.
        OFF
    }

    public MemoryOptions {
        if (!shmDirectory.isAbsolute()) {
            throw new IllegalArgumentException(
                    "shmDirectory must be an absolute path, is '%s'".formatted(shmDirectory));
        }
    }

    /// Anonymous memory, huge pages where the kernel grants them, files (if asked for) in a folder of this user.
    public static MemoryOptions defaults() {
        Path directory = Path.of("/dev/shm", "kvcache-" + System.getProperty("user.name"));
        return new MemoryOptions(Backing.ANONYMOUS, HugePages.AUTO, directory);
    }

    public MemoryOptions withBacking(Backing newBacking) {
        return new MemoryOptions(newBacking, hugePages, shmDirectory);
    }

    public MemoryOptions withHugePages(HugePages newHugePages) {
        return new MemoryOptions(backing, newHugePages, shmDirectory);
    }

    public MemoryOptions withShmDirectory(Path newDirectory) {
        return new MemoryOptions(backing, hugePages, newDirectory);
    }
}
