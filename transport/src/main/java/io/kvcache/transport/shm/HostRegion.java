package io.kvcache.transport.shm;

import io.kvcache.core.memory.ChunkedCrc;
import io.kvcache.core.memory.Pages;
import io.kvcache.transport.shm.ServerMemoryFolder.SharedMapping;
import io.kvcache.transport.wire.CopyRequest.Span;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.InvalidPathException;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.List;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.ReentrantReadWriteLock;
import org.jspecify.annotations.Nullable;

/// Memory of an engine on this host, mapped by the server: the pool of pages that the engine keeps its KV in.
///
/// The engine may change it, or cut its file short, at any moment. A copy from or to a page that is gone makes the
/// JVM throw an InternalError, at the latest when a native call returns. So each copy ends with such a call, which
/// also asks for the size of the file, within the block that catches the error.
///
/// **Ownership.** The caller that opens it closes it once. It stays mapped until each [#retain] is released, but
/// nothing is copied after [#close] has returned: the engine has its memory for itself then.
///
/// **Threads.** Any.
public final class HostRegion {

    /// Bytes copied at a time where they are summed: they are still in the second-level cache then.
    private static final long TILE_BYTES = 128 << 10;

    /// Regions that may be mapped at a time, those included that wait to be unmapped: as many as 64 sessions
    /// may have, and a sixteenth of the mappings that Linux allows a process.
    public static final int MAX_MAPPED = 4096;

    /// Far longer than a region takes to be unmapped.
    private static final long MAX_WAIT_NANOS = TimeUnit.SECONDS.toNanos(1);

    private static final Semaphore MAPPED = new Semaphore(MAX_MAPPED);

    private final SharedMapping mapping;
    private final FileChannel channel;
    private final MemorySegment memory;

    /// Read by a copy, written by the close that waits for copies.
    private final ReentrantReadWriteLock closing = new ReentrantReadWriteLock();

    private HostRegion(SharedMapping mapping, FileChannel channel, MemorySegment memory) {
        this.mapping = mapping;
        this.channel = channel;
        this.memory = memory;
    }

    /// Maps a file, whole and writable.
    ///
    /// @param name an absolute path. `/proc/PID/fd/N` names the memory behind a descriptor of another process
    /// @throws TooManyRegionsException when [#MAX_MAPPED] are mapped, and none is unmapped soon
    /// @throws IOException when it is not a regular file of this user with at least a byte; says why
    public static HostRegion open(String name) throws IOException {
        Path file = regularFile(name);
        acquirePermit();
        SharedMapping mapping = new SharedMapping(MAPPED::release);
        FileChannel channel = null;
        try {
            channel = FileChannel.open(file, StandardOpenOption.READ, StandardOpenOption.WRITE);
            long bytes = channel.size();
            if (bytes < 1 || bytes > Pages.MAX_BYTES) {
                throw new IOException("%s has %s bytes; allowed: 1 to %s".formatted(file, bytes, Pages.MAX_BYTES));
            }
            MemorySegment memory = channel.map(FileChannel.MapMode.READ_WRITE, 0, bytes, mapping.arena());
            return new HostRegion(mapping, channel, memory);
        } catch (IOException | RuntimeException failed) {
            mapping.release();
            close(channel);
            throw failed;
        }
    }

    /// A client that registers regions faster than they are unmapped waits here.
    private static void acquirePermit() throws TooManyRegionsException {
        boolean there = false;
        try {
            there = MAPPED.tryAcquire(MAX_WAIT_NANOS, TimeUnit.NANOSECONDS);
        } catch (InterruptedException stopped) {
            Thread.currentThread().interrupt();
        }
        if (!there) {
            throw new TooManyRegionsException();
        }
    }

    /// As many regions are mapped as may be.
    public static final class TooManyRegionsException extends IOException {

        private static final long serialVersionUID = 1L;

        TooManyRegionsException() {
            super(MAX_MAPPED + " regions of all clients are mapped; allowed: " + MAX_MAPPED);
        }
    }

    private static Path regularFile(String name) throws IOException {
        Path file;
        try {
            file = Path.of(name);
        } catch (InvalidPathException invalid) {
            throw new IOException("the region's path is not valid on this host", invalid);
        }
        if (!file.isAbsolute()) {
            throw new IOException("path = \"" + name + "\"; allowed: an absolute path");
        }
        if (!Files.exists(file)) {
            throw new IOException(file + " does not exist on the server's host");
        }
        if (isOfThisProcess(file)) {
            throw new IOException(file + " names a descriptor of the server; allowed: /proc/PID/fd/N of the client");
        }
        if (!Files.isRegularFile(file) || isOnDisk(file)) {
            throw new IOException(file + " is not memory; allowed: a regular file, as in /dev/shm, or a memfd");
        }
        if (!ServerMemoryFolder.isOfThisUser(file)) {
            throw new IOException(file + " belongs to another user than the server; allowed: files of the same user");
        }
        return file;
    }

    private static boolean isOfThisProcess(Path file) {
        if (!file.startsWith("/proc") || file.getNameCount() < 2) {
            return false;
        }
        String process = file.normalize().getName(1).toString();
        return process.equals("self")
                || process.equals("thread-self")
                || process.equals(Long.toString(ProcessHandle.current().pid()));
    }

    /// Files in memory are on no device of their own, so its major number is 0.
    private static boolean isOnDisk(Path file) throws IOException {
        long device = ((Number) Files.getAttribute(file, "unix:dev")).longValue();
        return (device >>> 8 & 0xFFF) != 0;
    }

    /// Returns its size.
    public long bytes() {
        return memory.byteSize();
    }

    /// Keeps it mapped until a further [#release]. Returns false when it is unmapped already.
    public boolean retain() {
        return mapping.retain();
    }

    /// Ends the claim of [#open] or [#retain].
    public void release() {
        mapping.release();
    }

    /// Ends the claim of [#open], and waits for copies that are running, each of one object.
    public void close() {
        closing.writeLock().lock();
        try {
            close(channel);
        } finally {
            closing.writeLock().unlock();
        }
        release();
    }

    /// Copies spans of the region into memory, in order, and sums what arrived.
    ///
    /// @param spans within the region, together as large as the memory
    /// @return false when bytes of the region are gone; the memory is undefined then
    public boolean gather(List<Span> spans, List<MemorySegment> into, ChunkedCrc sum) {
        return copy(spans, into, (offset, part) -> {
            for (long at = 0; at < part.byteSize(); at += TILE_BYTES) {
                MemorySegment tile = part.asSlice(at, Math.min(TILE_BYTES, part.byteSize() - at));
                MemorySegment.copy(memory, offset + at, tile, 0, tile.byteSize());
                sum.update(tile);
            }
        });
    }

    /// Copies memory into spans of the region, in order.
    ///
    /// @param spans within the region, together as large as the memory
    /// @return false when bytes of the region are gone
    public boolean scatter(List<MemorySegment> from, List<Span> spans) {
        return copy(spans, from, (offset, part) -> MemorySegment.copy(part, 0, memory, offset, part.byteSize()));
    }

    /// Copies between a place in the region and a part of other memory.
    @FunctionalInterface
    private interface PartCopy {
        void copy(long offset, MemorySegment part);
    }

    private boolean copy(List<Span> spans, List<MemorySegment> pieces, PartCopy each) {
        closing.readLock().lock();
        try {
            if (!channel.isOpen()) {
                return false;
            }
            copyParts(spans, pieces, each);
            return channel.size() >= memory.byteSize();
        } catch (InternalError truncated) {
            return false;
        } catch (IOException closed) {
            return false;
        } finally {
            closing.readLock().unlock();
        }
    }

    private static void copyParts(List<Span> spans, List<MemorySegment> pieces, PartCopy each) {
        int piece = 0;
        long at = 0;
        for (Span span : spans) {
            long done = 0;
            while (done < span.bytes()) {
                MemorySegment whole = pieces.get(piece);
                long length = Math.min(span.bytes() - done, whole.byteSize() - at);
                each.copy(span.offset() + done, whole.asSlice(at, length));
                done += length;
                at += length;
                if (at == whole.byteSize()) {
                    piece++;
                    at = 0;
                }
            }
        }
    }

    private static void close(@Nullable FileChannel channel) {
        if (channel != null) {
            try {
                channel.close();
            } catch (IOException _) {
                // Nothing was written through it.
            }
        }
    }
}
