package io.kvcache.tiers.memory;

import io.kvcache.core.memory.Pages;
import io.kvcache.core.shm.StagingArea;
import io.kvcache.core.shm.StagingHeader;
import io.kvcache.tiers.os.ByteSizeFormat;
import java.io.IOException;
import java.security.SecureRandom;
import java.util.HashSet;
import java.util.List;
import java.util.Set;

/// The files that clients of one store write into, within limits.
///
/// **Threads.** Any.
final class StagingFiles {

    private static final String STAGE = "stage";
    private static final String CLOSED = "no staging memory: the store is closed";

    private final ShmFileFactory files;
    private final StagingLimits limits;
    private final SecureRandom tickets = new SecureRandom();
    private final Set<StagingFile> open = new HashSet<>();
    private long usedBytes;
    private boolean closed;

    /// @param files of the store's folder, which the store has claimed
    StagingFiles(ShmFileFactory files, StagingLimits limits) {
        this.files = files;
        this.limits = limits;
    }

    StagingLimits limits() {
        return limits;
    }

    /// As [io.kvcache.core.shm.SharedMemory#createStagingArea].
    StagingArea create(long wantedBytes) {
        if (wantedBytes < 1 || limits.clientBytes() == 0) {
            throw new IllegalArgumentException(
                    "staging memory of " + wantedBytes + " bytes; allowed: 1 to " + limits.clientBytes());
        }
        long bytes = wantedBytes < limits.clientBytes()
                ? Math.min(Pages.roundUp(wantedBytes), limits.clientBytes())
                : limits.clientBytes();
        reserve(bytes);
        StagingFile area = null;
        try {
            area = createFile(bytes);
        } catch (IOException failed) {
            throw new IllegalStateException("no staging memory: " + failed, failed);
        } finally {
            if (area == null) {
                release(bytes);
            }
        }
        if (!register(area)) {
            area.close();
            throw new IllegalStateException(CLOSED);
        }
        return area;
    }

    private synchronized void reserve(long bytes) {
        if (closed) {
            throw new IllegalStateException(CLOSED);
        }
        if (usedBytes + bytes > limits.totalBytes()) {
            throw new IllegalStateException("%s of staging memory are wanted, and clients have %s of %s already"
                    .formatted(
                            ByteSizeFormat.format(bytes),
                            ByteSizeFormat.format(usedBytes),
                            ByteSizeFormat.format(limits.totalBytes())));
        }
        usedBytes += bytes;
    }

    private synchronized void release(long bytes) {
        usedBytes -= bytes;
    }

    private StagingFile createFile(long bytes) throws IOException {
        SharedMemoryFile file = files.create(new MappingRequest(STAGE, StagingHeader.BYTES + bytes));
        try {
            return StagingFile.of(file, new StagingHeader(tickets.nextLong()), bytes, this::unregister);
        } catch (IOException | RuntimeException failed) {
            file.release().run();
            throw failed;
        }
    }

    private synchronized boolean register(StagingFile area) {
        return !closed && open.add(area);
    }

    private synchronized void unregister(StagingFile area) {
        open.remove(area);
        usedBytes -= area.bytes();
    }

    /// Closes those that there are, and makes no more.
    void close() {
        markClosed().forEach(StagingFile::close);
    }

    private synchronized List<StagingFile> markClosed() {
        closed = true;
        return List.copyOf(open);
    }
}
