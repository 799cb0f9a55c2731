package io.kvcache.tiers.memory;

import io.kvcache.core.spi.HostMemory;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.locks.LockSupport;
import org.jspecify.annotations.Nullable;

/// Host memory that the operating system mapped, at a page boundary and zeroed.
///
/// **Ownership.** As [HostMemory]: the caller that reserved it closes it, once. Closing also removes the file
/// behind it.
///
/// **Threads.** Any thread may use the segment and close it. A close that finds a thread inside a native call on
/// the segment waits up to five seconds for it; after that the memory stays mapped, a warning says so, and the
/// process goes on.
public final class MappedMemory implements HostMemory {

    // The unmapping is the cleanup action of a shared arena. Closing such an arena makes the segment inaccessible
    // and shakes hands with every thread of the JVM before it runs the action, so that no access, however far it is
    // past its check, can meet an unmapped page. It refuses while a native call holds the segment, hence the
    // retries.

    private static final Logger LOG = System.getLogger(MappedMemory.class.getName());

    /// 5,000 pauses of a millisecond. The longest native call here touches 8 MiB: 110 ms at the worst rate seen,
    /// 14 s a GiB.
    private static final int MAX_CLOSE_ATTEMPTS = 5_000;

    private static final long CLOSE_PAUSE_NANOS = 1_000_000;

    private final Arena arena;
    private final MemorySegment segment;
    private final @Nullable SharedMemoryFile file;
    private final String description;
    private final AtomicBoolean closed = new AtomicBoolean();

    /// @param arena owned from here on; its close frees the segment
    MappedMemory(Arena arena, MemorySegment segment, String description, @Nullable SharedMemoryFile file) {
        this.arena = arena;
        this.segment = segment;
        this.description = description;
        this.file = file;
    }

    @Override
    public MemorySegment segment() {
        return segment;
    }

    @Override
    public String describe() {
        return description;
    }

    /// Returns the file that another process of the same user opens to map the same bytes, if there is one.
    public Optional<Path> sharedPath() {
        return Optional.ofNullable(file).map(SharedMemoryFile::path);
    }

    /// Unmaps the memory. A second close does nothing.
    @Override
    public void close() {
        if (!closed.compareAndSet(false, true)) {
            return;
        }
        try {
            closeArena();
        } finally {
            if (file != null) {
                file.release().run();
            }
        }
    }

    private void closeArena() {
        for (int attempt = 0; attempt < MAX_CLOSE_ATTEMPTS; attempt++) {
            try {
                arena.close();
                return;
            } catch (IllegalStateException heldByNativeCall) {
                LockSupport.parkNanos(CLOSE_PAUSE_NANOS);
            }
        }
        LOG.log(Level.WARNING, "Host memory ({0}) stays mapped: a native call still uses it", description);
    }

    /// An open file whose pages are memory, before it is mapped.
    ///
    /// **Ownership.** The creator calls `release` once, which closes the descriptor and removes the name.
    ///
    /// @param path what another process opens to map the same pages
    /// @param release must not throw
    record SharedMemoryFile(int descriptor, Path path, String description, Runnable release) {}
}
