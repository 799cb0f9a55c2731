package io.kvcache.tiers.device;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;
import static java.lang.foreign.ValueLayout.JAVA_SHORT;

import io.kvcache.tiers.device.BlockDevice.IoOperation;
import io.kvcache.tiers.device.IoRequest.IoRequestPool;
import io.kvcache.tiers.os.Errno;
import io.kvcache.tiers.os.Libc;
import io.kvcache.tiers.os.Libc.LibcFunction;
import java.io.IOException;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// Requests carried out by io_uring, with a registered file.
final class IoUringBackend implements IoBackend {

    private static final byte OP_FSYNC = 3;
    private static final byte OP_READ_FIXED = 4;
    private static final byte OP_WRITE_FIXED = 5;
    private static final byte OP_FALLOCATE = 17;
    static final byte OP_READ = 22;
    private static final byte OP_WRITE = 23;

    private static final byte FIXED_FILE = 1;
    private static final int FSYNC_DATASYNC = 1;

    // struct io_uring_sqe
    static final long OPCODE = 0;
    private static final long FLAGS = 1;
    static final long DESCRIPTOR = 4;
    private static final long OFFSET = 8;
    static final long ADDRESS = 16;
    static final long LENGTH = 24;
    private static final long OPERATION_FLAGS = 28;
    static final long USER_DATA = 32;
    private static final long BUFFER_INDEX = 40;

    private final IoUring ioUring;
    private final IoRequestPool requests;
    private final EventFd eventFd;
    private final RegisteredBuffers buffers;
    private final boolean direct;
    private final boolean fixedFile;

    /// The file's descriptor, or its number in the kernel's table, where it is the only one.
    private final int target;

    private volatile String description;

    /// @param eventFd closed with the engine
    IoUringBackend(IoUring ioUring, EventFd eventFd, DeviceFile file, IoRequestPool requests) {
        this.ioUring = ioUring;
        this.eventFd = eventFd;
        this.requests = requests;
        this.buffers = new RegisteredBuffers(ioUring);
        this.direct = file.direct();
        this.fixedFile = registerFile(file);
        this.target = fixedFile ? 0 : file.descriptor();
        this.description = describeBuffers();
    }

    private boolean registerFile(DeviceFile file) {
        try (Arena arena = Arena.ofConfined()) {
            return ioUring.register(IoUring.REGISTER_FILES, arena.allocateFrom(JAVA_INT, file.descriptor()), 1) >= 0;
        }
    }

    @Override
    public IoRequestPool requests() {
        return requests;
    }

    @Override
    public void attachOwner() {
        ioUring.enableForCurrentThread();
    }

    @Override
    public void enqueue(IoRequest request) {
        MemorySegment entry = ioUring.nextSubmission();
        entry.set(JAVA_BYTE, FLAGS, fixedFile ? FIXED_FILE : 0);
        entry.set(JAVA_INT, DESCRIPTOR, target);
        entry.set(JAVA_LONG, USER_DATA, request.number);
        switch (request.operation()) {
            case READ, WRITE -> transfer(entry, request);
            case SYNC -> {
                entry.set(JAVA_BYTE, OPCODE, OP_FSYNC);
                entry.set(JAVA_INT, OPERATION_FLAGS, FSYNC_DATASYNC);
            }
            case DISCARD -> {
                entry.set(JAVA_BYTE, OPCODE, OP_FALLOCATE);
                entry.set(JAVA_LONG, OFFSET, request.offset());
                entry.set(JAVA_LONG, ADDRESS, request.remaining()); // sic: fallocate's length travels here
                entry.set(JAVA_INT, LENGTH, DeviceFile.PUNCH_HOLE);
            }
        }
    }

    private void transfer(MemorySegment entry, IoRequest request) {
        boolean reads = request.operation() == IoOperation.READ;
        int buffer = buffers.indexOf(request.address(), request.remaining());
        if (buffer == RegisteredBuffers.NONE) {
            entry.set(JAVA_BYTE, OPCODE, reads ? OP_READ : OP_WRITE);
        } else {
            entry.set(JAVA_BYTE, OPCODE, reads ? OP_READ_FIXED : OP_WRITE_FIXED);
            entry.set(JAVA_SHORT, BUFFER_INDEX, (short) buffer);
        }
        entry.set(JAVA_LONG, OFFSET, request.offset());
        entry.set(JAVA_LONG, ADDRESS, request.address());
        entry.set(JAVA_INT, LENGTH, (int) request.remaining());
    }

    @Override
    public void submit() {
        if (ioUring.needsEnter()) {
            ioUring.enter(0);
        }
    }

    @Override
    public void awaitCompletions(long timeoutNanos) {
        if (timeoutNanos > 0 && ioUring.peekCompletion() == IoUring.NONE) {
            eventFd.submitRead(ioUring);
            ioUring.enter(timeoutNanos);
        } else {
            submit();
        }
    }

    @Override
    public void wake() {
        eventFd.signal();
    }

    @Override
    public @Nullable IoRequest pollCompleted() {
        long completion;
        while ((completion = ioUring.peekCompletion()) != IoUring.NONE) {
            long number = ioUring.userData(completion);
            int result = ioUring.result(completion);
            ioUring.consumeCompletion();
            if (number == EventFd.SUBMISSION_ID) {
                eventFd.onReadComplete();
            } else if (onCompletion(requests.get((int) number), result)) {
                return requests.get((int) number);
            }
        }
        return null;
    }

    /// Takes the kernel's answer, and asks again where it is not the last.
    private boolean onCompletion(IoRequest request, int result) {
        boolean ended = request.completeWith(result);
        if (!ended) {
            enqueue(request);
        }
        return ended;
    }

    @Override
    public void register(MemorySegment pool) {
        buffers.register(pool);
        description = describeBuffers();
    }

    @Override
    public String describe() {
        return description;
    }

    private String describeBuffers() {
        return "io_uring, " + buffers.describe() + (direct ? "O_DIRECT" : "page cache");
    }

    /// The kernel takes a ring apart some time after its descriptor is closed. Without the file and the
    /// buffers, which are released at once, it does not matter.
    @Override
    public void close() {
        ioUring.register(IoUring.UNREGISTER_BUFFERS, MemorySegment.NULL, 0);
        ioUring.register(IoUring.UNREGISTER_FILES, MemorySegment.NULL, 0);
        ioUring.close();
        eventFd.close();
    }

    /// The memory that a ring knows: its pages are pinned once, and not at each request.
    ///
    /// The kernel takes buffers of at most 1 GiB, so a pool becomes several; a span that lies in two of them
    /// travels unregistered. It counts them against RLIMIT_MEMLOCK unless the process has CAP_IPC_LOCK; what it
    /// refuses is used unregistered, and the log says so.
    static final class RegisteredBuffers {

        private static final Logger LOG = System.getLogger(RegisteredBuffers.class.getName());

        /// Answer of [#indexOf] for memory that the ring does not know.
        static final int NONE = -1;

        private static final int BUFFER_SHIFT = 30;
        private static final long BUFFER_BYTES = 1L << BUFFER_SHIFT;

        /// struct iovec: address and length.
        private static final long IOVEC_BYTES = 16;

        private final IoUring ioUring;
        private final List<Pool> pools = new ArrayList<>();
        private long offeredBytes;

        /// @param first number of its first buffer
        private record Pool(MemorySegment memory, int first) {

            int buffers() {
                return (int) ((memory.byteSize() + BUFFER_BYTES - 1) >>> BUFFER_SHIFT);
            }
        }

        RegisteredBuffers(IoUring ioUring) {
            this.ioUring = ioUring;
        }

        /// Returns how the kernel sees most of the memory, in words that end with a comma; empty before any was
        /// registered.
        String describe() {
            if (offeredBytes == 0) {
                return "";
            }
            long here = pools.stream().mapToLong(pool -> pool.memory.byteSize()).sum();
            return here > offeredBytes / 2 ? "fixed buffers, " : "plain buffers, ";
        }

        /// Tells the ring of one more pool. The kernel's table is replaced as a whole, so nothing may be on its
        /// way.
        void register(MemorySegment memory) {
            offeredBytes += memory.byteSize();
            pools.add(new Pool(memory, bufferCount()));
            long result = replaceTable();
            if (result < 0) {
                pools.removeLast();
                LOG.log(
                        Level.WARNING,
                        "{0} bytes stay unregistered: io_uring gave {1}",
                        memory.byteSize(),
                        advice(result));
                if (!pools.isEmpty() && replaceTable() < 0) {
                    pools.clear();
                }
            }
        }

        private static String advice(long result) {
            return Errno.ENOMEM.isResult(result)
                    ? "ENOMEM: raise ulimit -l, or give CAP_IPC_LOCK"
                    : Errno.explain(result);
        }

        private long replaceTable() {
            ioUring.register(IoUring.UNREGISTER_BUFFERS, MemorySegment.NULL, 0);
            int count = bufferCount();
            try (Arena arena = Arena.ofConfined()) {
                MemorySegment table = arena.allocate(IOVEC_BYTES * count, Long.BYTES);
                for (Pool pool : pools) {
                    for (int i = 0; i < pool.buffers(); i++) {
                        long start = i * BUFFER_BYTES;
                        long at = (pool.first + i) * IOVEC_BYTES;
                        table.set(JAVA_LONG, at, pool.memory.address() + start);
                        table.set(JAVA_LONG, at + Long.BYTES, Math.min(BUFFER_BYTES, pool.memory.byteSize() - start));
                    }
                }
                return ioUring.register(IoUring.REGISTER_BUFFERS, table, count);
            }
        }

        private int bufferCount() {
            return pools.isEmpty() ? 0 : pools.getLast().first + pools.getLast().buffers();
        }

        /// The number of the buffer in which all of the span lies, or [#NONE].
        int indexOf(long address, long bytes) {
            for (int i = 0; i < pools.size(); i++) {
                Pool pool = pools.get(i);
                long start = address - pool.memory.address();
                long last = start + bytes - 1;
                if (start >= 0 && last < pool.memory.byteSize() && start >>> BUFFER_SHIFT == last >>> BUFFER_SHIFT) {
                    return pool.first + (int) (start >>> BUFFER_SHIFT);
                }
            }
            return NONE;
        }
    }

    /// Doorbell with which another thread ends a wait in an [IoUring]: an eventfd, of which the ring has one read
    /// in flight whenever it waits.
    ///
    /// **Threads.** [#signal] any, for as long as it is open; the rest the owner of the ring.
    static final class EventFd {

        /// The number of its submission, beyond those of requests.
        static final long SUBMISSION_ID = BlockDevice.MAX_DEPTH;

        /// Submissions it has on their way at most.
        static final int ENTRIES = 1;

        private static final int EFD_CLOEXEC = 0x80000;

        private final Libc libc;
        private final int descriptor;

        /// Memory into which the kernel writes the count of rings. It does so only when a thread rings, so never
        /// once the doorbell was closed; the arena may end with this object.
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
}
