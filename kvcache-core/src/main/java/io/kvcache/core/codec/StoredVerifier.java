package io.kvcache.core.codec;

import io.kvcache.core.codec.BlockCodec.ChunkDirectory;
import io.kvcache.core.memory.ChunkedCrc;
import io.kvcache.core.memory.Pages;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;

/// Proves stored bytes without keeping the plain ones, piece by piece.
///
/// **Threads.** One at a time.
public final class StoredVerifier {

    private final ChunkedCrc crc = new ChunkedCrc();
    private StoredLayout layout = StoredLayout.PLAIN;
    private int plainBytes;
    private int checksum;
    private MemorySegment head = MemorySegment.NULL;
    private long headBytes;
    private long headFilled;
    private @Nullable ChunkMemory memory;
    private @Nullable ChunkDirectory directory;
    private int bodyFilled;
    private int chunksLeft;
    private long plainLeft;
    private boolean isBad;

    /// Begins with another block or object.
    ///
    /// @param bytes plain ones
    /// @param plainChecksum that these must have
    public void begin(StoredLayout storedLayout, int bytes, int plainChecksum) {
        layout = storedLayout;
        plainBytes = bytes;
        checksum = plainChecksum;
        headBytes = Pages.offset(layout.headPages());
        headFilled = 0;
        if (head.byteSize() < headBytes) {
            head = Arena.ofAuto().allocate(headBytes, Long.BYTES);
        }
        chunksLeft = layout.isCoded() ? StoredLayout.chunks(bytes) : 0;
        plainLeft = bytes - (long) chunksLeft * ChunkCoder.CHUNK_BYTES;
        directory = null;
        bodyFilled = 0;
        crc.reset();
        isBad = false;
    }

    /// Adds the next bytes as they are stored, in native memory; more than there are do no harm.
    public void add(MemorySegment stored) {
        long at = 0;
        while (at < stored.byteSize() && !isBad) {
            long left = stored.byteSize() - at;
            long taken;
            if (headFilled < headBytes) {
                taken = Math.min(left, headBytes - headFilled);
                MemorySegment.copy(stored, at, head, headFilled, taken);
                headFilled += taken;
            } else if (chunksLeft > 0) {
                taken = addBody(stored, at, left);
            } else {
                taken = Math.min(left, plainLeft);
                crc.update(stored.asSlice(at, taken));
                plainLeft -= taken;
                if (plainLeft == 0) {
                    return;
                }
            }
            at += taken;
        }
    }

    private long addBody(MemorySegment stored, long at, long left) {
        ChunkMemory chunk = memory == null ? new ChunkMemory() : memory;
        memory = chunk;
        long taken = Math.min(left, (long) ChunkCoder.BODY_BYTES - bodyFilled);
        MemorySegment.copy(stored, at, chunk.body, bodyFilled, taken);
        bodyFilled += (int) taken;
        if (bodyFilled == ChunkCoder.BODY_BYTES) {
            checkChunk(chunk);
            bodyFilled = 0;
            chunksLeft--;
        }
        return taken;
    }

    private void checkChunk(ChunkMemory chunk) {
        ChunkDirectory entries = directory == null ? new ChunkDirectory(head, headBytes, plainBytes) : directory;
        directory = entries;
        if (entries.next()) {
            chunk.coder.decode(entries.chunkHead(), chunk.body, 0, head, entries.escapes(), chunk.plain, 0);
            isBad = crc.addChunk(chunk.plain) != entries.chunkSum();
        } else {
            isBad = true;
        }
    }

    /// Returns whether all bytes were added, and are those of the checksum.
    public boolean isGood() {
        boolean complete = !isBad && headFilled == headBytes && chunksLeft == 0 && plainLeft == 0;
        return complete
                && crc.value() == checksum
                && (layout.isCoded() || headBytes == 0 || PageSums.prove(head, plainBytes, checksum));
    }

    /// What only coded blocks need.
    private static final class ChunkMemory {
        final ChunkCoder coder = new ChunkCoder();
        final MemorySegment body = Arena.ofAuto().allocate(ChunkCoder.BODY_BYTES, Long.BYTES);
        final MemorySegment plain = Arena.ofAuto().allocate(ChunkCoder.CHUNK_BYTES, Long.BYTES);
    }
}
