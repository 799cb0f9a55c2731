package io.kvcache.tiers.memory;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.BasicFileAttributes;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.jspecify.annotations.Nullable;

/// A file that a store of this process locks, or is about to.
///
/// Linux drops all of a process's locks on a file when the process closes any descriptor of it. So a file
/// that is claimed here is not even opened a second time: whoever wants its lock asks here first, and gives
/// it back after its descriptors are closed.
///
/// **Threads.** Any.
///
/// @param folder device and number of the folder, so that two names of one folder are one
record LockedFile(Object folder, String name) {

    private static final Set<LockedFile> HELD = ConcurrentHashMap.newKeySet();

    /// Claims a file of a folder that is there, or answers null when a store of this process has it.
    static @Nullable LockedFile tryAcquire(Path folder, String name) throws IOException {
        Object key = Files.readAttributes(folder, BasicFileAttributes.class).fileKey();
        LockedFile wanted = new LockedFile(key == null ? folder.toRealPath() : key, name);
        return HELD.add(wanted) ? wanted : null;
    }

    /// Gives it back, once.
    void release() {
        HELD.remove(this);
    }
}
