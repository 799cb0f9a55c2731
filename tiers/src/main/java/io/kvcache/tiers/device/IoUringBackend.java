package io.kvcache.tiers.device;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;
import static java.lang.foreign.ValueLayout.JAVA_SHORT;

import io.kvcache.tiers.device.BlockDevice.IoOperation;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
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
    /// buffers, which are let go of at once, nobody notices.
    @Override
    public void close() {
        ioUring.register(IoUring.UNREGISTER_BUFFERS, MemorySegment.NULL, 0);
        ioUring.register(IoUring.UNREGISTER_FILES, MemorySegment.NULL, 0);
        ioUring.close();
        eventFd.close();
    }
}
