package io.kvcache.tiers.memory;

import io.kvcache.core.shm.StagingArea;
import io.kvcache.core.shm.StagingHeader;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Objects;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Consumer;

/// A file that one client writes into.
///
/// It is read by calls, not through a mapping: of a file that a client has cut short a call returns less,
/// where the touch of a mapped page would kill this process.
final class StagingFile implements StagingArea {

    private final SharedMemoryFile file;
    private final FileChannel channel;
    private final StagingHeader head;
    private final long bytes;
    private final Consumer<StagingFile> onClose;
    private final AtomicBoolean closed = new AtomicBoolean();

    private StagingFile(
            SharedMemoryFile file, FileChannel channel, StagingHeader head, long bytes, Consumer<StagingFile> closing) {
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
