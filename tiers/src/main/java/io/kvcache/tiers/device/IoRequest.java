package io.kvcache.tiers.device;

import io.kvcache.tiers.device.BlockDevice.IoOperation;
import io.kvcache.tiers.os.Errno;
import java.lang.foreign.MemorySegment;
import java.util.Objects;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/// One operation on its way. There are as many as the device is deep, used again and again.
///
/// It knows how far it got, and whether the kernel has to be asked again: the kernel may move less than it was
/// asked to, and may be interrupted or out of breath.
final class IoRequest {

    /// Attempts without progress until it is called a failure. EAGAIN comes with a wait in the kernel's
    /// workers, EINTR once a signal: more than a few in a row is a device that will never.
    static final int MAX_ATTEMPTS = 100;

    final int number;

    private IoOperation operation = IoOperation.SYNC;
    private long tag;
    private long address;
    private long offset;
    private long remaining;
    private int attempts;
    private IoOutcome outcome = IoOutcome.DONE;
    private @Nullable MemorySegment heldSegment;

    /// @param number its place among the requests of the device
    IoRequest(int number) {
        this.number = number;
    }

    /// @param segment kept reachable until [#clear]
    IoRequest prepareTransfer(IoOperation direction, MemorySegment segment, long from, long newTag) {
        start(direction, newTag);
        heldSegment = segment;
        address = segment.address();
        offset = from;
        remaining = segment.byteSize();
        return this;
    }

    IoRequest prepareSync(long newTag) {
        start(IoOperation.SYNC, newTag);
        return this;
    }

    IoRequest prepareDiscard(long from, long length, long newTag) {
        start(IoOperation.DISCARD, newTag);
        offset = from;
        remaining = length;
        return this;
    }

    private void start(IoOperation newOperation, long newTag) {
        operation = newOperation;
        tag = newTag;
        attempts = 0;
    }

    /// Takes what the kernel returned: bytes moved, or a negated errno.
    ///
    /// @return whether the request has ended; otherwise what remains is to be issued again
    boolean completeWith(long result) {
        boolean moves = operation == IoOperation.READ || operation == IoOperation.WRITE;
        if (result == remaining || (result >= 0 && !moves)) {
            return complete(IoOutcome.DONE);
        }
        if (result < 0) {
            boolean again = Errno.EINTR.isResult(result) || Errno.EAGAIN.isResult(result);
            return !(again && ++attempts < MAX_ATTEMPTS) && complete(IoOutcome.ofResult(result));
        }
        // The rest must stay aligned, so a piece of a page counts as nothing.
        long moved = result - result % BlockDevice.ALIGNMENT;
        if (moved == 0) {
            return operation == IoOperation.READ
                    ? complete(IoOutcome.END_OF_FILE)
                    : ++attempts >= MAX_ATTEMPTS && complete(new IoOutcome(IoOutcome.Kind.FAILED, "no progress"));
        }
        attempts = 0;
        address += moved;
        offset += moved;
        remaining -= moved;
        return false;
    }

    private boolean complete(IoOutcome reached) {
        outcome = reached;
        return true;
    }

    /// Lets go of the segment.
    void clear() {
        heldSegment = null;
    }

    IoOperation operation() {
        return operation;
    }

    long tag() {
        return tag;
    }

    /// The whole segment of a read or a write.
    MemorySegment segment() {
        return Objects.requireNonNull(heldSegment, "no segment");
    }

    /// Returns the address of the rest of the segment.
    long address() {
        return address;
    }

    /// Returns the offset of the rest of the span on the device.
    long offset() {
        return offset;
    }

    long remaining() {
        return remaining;
    }

    IoOutcome outcome() {
        return outcome;
    }

    /// The requests of a device, of which some are on their way.
    static final class IoRequestPool {

        private final IoRequest[] all;
        private final int[] free;
        private int freeCount;

        /// @param depth how many
        IoRequestPool(int depth) {
            requireDepth(depth);
            all = IntStream.range(0, depth).mapToObj(IoRequest::new).toArray(IoRequest[]::new);
            free = IntStream.range(0, depth).toArray();
            freeCount = depth;
        }

        static void requireDepth(int depth) {
            if (depth < 1 || depth > BlockDevice.MAX_DEPTH) {
                throw new IllegalArgumentException(
                        "depth must be from 1 to %s, is %s".formatted(BlockDevice.MAX_DEPTH, depth));
            }
        }

        int depth() {
            return all.length;
        }

        int inFlight() {
            return all.length - freeCount;
        }

        /// A request to fill in, or null when all are on their way.
        @Nullable
        IoRequest acquire() {
            return freeCount == 0 ? null : all[free[--freeCount]];
        }

        void release(IoRequest request) {
            assert freeCount < all.length : "a request came back twice";
            request.clear();
            free[freeCount++] = request.number;
        }

        IoRequest get(int number) {
            return all[number];
        }
    }
}
