package io.kvcache.tiers.device;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;
import static java.lang.foreign.ValueLayout.JAVA_SHORT;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;

/// Requests carried out by io_uring, with a registered file.
final class UringEngine implements Engine {

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

    private final Ring ring;
    private final RequestPool requests;
    private final Doorbell doorbell;
    private final FixedBuffers buffers;
    private final boolean direct;
    private final boolean fixedFile;

    /// The file's descriptor, or its number in the kernel's table, where it is the only one.
    private final int target;

    private volatile String description;

    /// @param doorbell closed with the engine
    UringEngine(Ring ring, Doorbell doorbell, DeviceFile file, RequestPool requests) {
        this.ring = ring;
        this.doorbell = doorbell;
        this.requests = requests;
        this.buffers = new FixedBuffers(ring);
        this.direct = file.direct();
        this.fixedFile = registerFile(file);
        this.target = fixedFile ? 0 : file.descriptor();
        this.description = words();
    }

    private boolean registerFile(DeviceFile file) {
        try (Arena arena = Arena.ofConfined()) {
            return ring.register(Ring.REGISTER_FILES, arena.allocateFrom(JAVA_INT, file.descriptor()), 1) >= 0;
        }
    }

    @Override
    public RequestPool requests() {
        return requests;
    }

    @Override
    public void own() {
        ring.own();
    }

    @Override
    public void start(Request request) {
        MemorySegment entry = ring.claim();
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

    private void transfer(MemorySegment entry, Request request) {
        boolean reads = request.operation() == IoOperation.READ;
        int buffer = buffers.index(request.address(), request.remaining());
        if (buffer == FixedBuffers.NONE) {
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
        if (ring.needsEntering()) {
            ring.enter(0);
        }
    }

    @Override
    public void gather(long timeoutNanos) {
        if (timeoutNanos > 0 && ring.completion() == Ring.NONE) {
            doorbell.listen(ring);
            ring.enter(timeoutNanos);
        } else {
            submit();
        }
    }

    @Override
    public void wake() {
        doorbell.ring();
    }

    @Override
    public @Nullable Request next() {
        long completion;
        while ((completion = ring.completion()) != Ring.NONE) {
            long number = ring.userData(completion);
            int result = ring.result(completion);
            ring.consume();
            if (number == Doorbell.NUMBER) {
                doorbell.heard();
            } else if (ended(requests.at((int) number), result)) {
                return requests.at((int) number);
            }
        }
        return null;
    }

    /// Takes the kernel's answer, and asks again where it is not the last.
    private boolean ended(Request request, int result) {
        boolean ended = request.endsWith(result);
        if (!ended) {
            start(request);
        }
        return ended;
    }

    @Override
    public void register(MemorySegment pool) {
        buffers.add(pool);
        description = words();
    }

    @Override
    public String describe() {
        return description;
    }

    private String words() {
        return "io_uring, " + buffers.words() + (direct ? "O_DIRECT" : "page cache");
    }

    /// The kernel takes a ring apart some time after its descriptor is closed. Without the file and the
    /// buffers, which are let go of at once, nobody notices.
    @Override
    public void close() {
        ring.register(Ring.UNREGISTER_BUFFERS, MemorySegment.NULL, 0);
        ring.register(Ring.UNREGISTER_FILES, MemorySegment.NULL, 0);
        ring.close();
        doorbell.close();
    }
}
