package io.kvcache.tiers.device;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import io.kvcache.tiers.os.Errno;
import io.kvcache.tiers.os.Libc;
import io.kvcache.tiers.os.LibcFunction;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/// What another thread rings to end a wait in a [IoUring]: an eventfd, of which the ring has one read on its way
/// whenever it waits.
///
/// **Threads.** [#signal] any, for as long as it is open; the rest the owner of the ring.
final class EventFd {

    /// The number of its submission, beyond those of requests.
    static final long SUBMISSION_ID = BlockDevice.MAX_DEPTH;

    /// Submissions it has on their way at most.
    static final int ENTRIES = 1;

    private static final int EFD_CLOEXEC = 0x80000;

    private final Libc libc;
    private final int descriptor;

    /// Where the kernel writes the count of rings. It does so only when somebody rings, so never once the
    /// doorbell was closed; the arena may end with this object.
    private final MemorySegment count = Arena.ofAuto().allocate(JAVA_LONG);

    private boolean readPending;

    private EventFd(Libc libc, int descriptor) {
        this.libc = libc;
        this.descriptor = descriptor;
    }

    static EventFd open(Libc libc) throws IOException {
        long descriptor = libc.call(LibcFunction.EVENTFD, 0, EFD_CLOEXEC);
        if (descriptor < 0) {
            throw new IOException("Cannot make an eventfd: " + Errno.explain(descriptor));
        }
        return new EventFd(libc, (int) descriptor);
    }

    /// Has the ring listen from the next time it is entered.
    void submitRead(IoUring ioUring) {
        if (readPending) {
            return;
        }
        MemorySegment entry = ioUring.nextSubmission();
        entry.set(JAVA_BYTE, IoUringBackend.OPCODE, IoUringBackend.OP_READ);
        entry.set(JAVA_INT, IoUringBackend.DESCRIPTOR, descriptor);
        entry.set(JAVA_LONG, IoUringBackend.ADDRESS, count.address());
        entry.set(JAVA_INT, IoUringBackend.LENGTH, Long.BYTES);
        entry.set(JAVA_LONG, IoUringBackend.USER_DATA, SUBMISSION_ID);
        readPending = true;
    }

    /// Its submission has come back.
    void onReadComplete() {
        readPending = false;
    }

    void signal() {
        libc.call(LibcFunction.EVENTFD_WRITE, descriptor, 1L);
    }

    void close() {
        libc.call(LibcFunction.CLOSE, descriptor);
    }
}
