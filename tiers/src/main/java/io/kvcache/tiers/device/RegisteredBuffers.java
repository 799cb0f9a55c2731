package io.kvcache.tiers.device;

import static java.lang.foreign.ValueLayout.JAVA_LONG;

import io.kvcache.tiers.os.Errno;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;

/// The memory that a ring knows: its pages are pinned once, and not at each request.
///
/// The kernel takes buffers of at most 1 GiB, so a pool becomes several; a span that lies in two of them
/// travels unregistered. It counts them against RLIMIT_MEMLOCK unless the process has CAP_IPC_LOCK; what it
/// refuses is used unregistered, and the log says so.
final class RegisteredBuffers {

    private static final Logger LOG = System.getLogger(RegisteredBuffers.class.getName());

    /// What [#indexOf] answers for memory that the ring does not know.
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

    /// What most of the memory is to the kernel, in words that end with a comma; nothing before it was told of any.
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
            LOG.log(Level.WARNING, "{0} bytes stay unregistered: io_uring gave {1}", memory.byteSize(), advice(result));
            if (!pools.isEmpty() && replaceTable() < 0) {
                pools.clear();
            }
        }
    }

    private static String advice(long result) {
        return Errno.ENOMEM.isResult(result) ? "ENOMEM: raise ulimit -l, or give CAP_IPC_LOCK" : Errno.explain(result);
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
