package io.kvcache.tiers.memory;

import io.kvcache.core.memory.Pages;
import io.kvcache.core.shm.StagingArea;
import io.kvcache.core.shm.StagingArea.StagingHeader;
import io.kvcache.tiers.memory.MappedMemory.SharedMemoryFile;
import io.kvcache.tiers.options.StagingLimits;
import io.kvcache.tiers.os.ByteSizeFormat;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.security.SecureRandom;
import java.util.HashSet;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Consumer;

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

    /// A file that one client writes into.
    ///
    /// It is read by calls, not through a mapping: of a file that a client has cut short a call returns less,
    /// where the touch of a mapped page would kill this process.
    private static final class StagingFile implements StagingArea {

        private final SharedMemoryFile file;
        private final FileChannel channel;
        private final StagingHeader head;
        private final long bytes;
        private final Consumer<StagingFile> onClose;
        private final AtomicBoolean closed = new AtomicBoolean();

        private StagingFile(
                SharedMemoryFile file,
                FileChannel channel,
                StagingHeader head,
                long bytes,
                Consumer<StagingFile> closing) {
            this.file = file;
            this.channel = channel;
            this.head = head;
            this.bytes = bytes;
            this.onClose = closing;
        }

        /// Writes the head of a file that was made for it.
        ///
        /// @param file which it owns from here on, unless this throws
        /// @param closing hears that it is closed, once
        static StagingFile of(SharedMemoryFile file, StagingHeader head, long bytes, Consumer<StagingFile> closing)
                throws IOException {
            // By the descriptor, so that it is this file whatever may have its name.
            Path self = Path.of("/proc/self/fd/" + file.descriptor());
            FileChannel channel = FileChannel.open(self, StandardOpenOption.READ, StandardOpenOption.WRITE);
            try {
                byte[] page = new byte[StagingHeader.BYTES];
                head.write(MemorySegment.ofArray(page));
                ByteBuffer left = ByteBuffer.wrap(page);
                while (left.hasRemaining()) {
                    channel.write(left, left.position());
                }
                return new StagingFile(file, channel, head, bytes, closing);
            } catch (IOException | RuntimeException failed) {
                channel.close();
                throw failed;
            }
        }

        @Override
        public String file() {
            return file.path().getFileName().toString();
        }

        @Override
        public StagingHeader header() {
            return head;
        }

        @Override
        public long bytes() {
            return bytes;
        }

        @Override
        public boolean read(long offset, MemorySegment into) {
            Objects.checkFromIndexSize(offset, into.byteSize(), bytes);
            ByteBuffer to = into.asByteBuffer();
            try {
                int count = 0;
                while (to.hasRemaining() && count >= 0) {
                    count = channel.read(to, StagingHeader.BYTES + offset + to.position());
                }
                return !to.hasRemaining();
            } catch (IOException closedMeanwhile) {
                return false;
            }
        }

        @Override
        public void close() {
            if (!closed.compareAndSet(false, true)) {
                return;
            }
            onClose.accept(this);
            try {
                channel.close();
            } catch (IOException _) {
                // Nothing is written to it any more.
            } finally {
                file.release().run();
            }
        }
    }
}
