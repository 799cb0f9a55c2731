package io.kvcache.bench.transport;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/// Copies blocks within this process: what a copy costs at least, from memory that no cache holds to such
/// memory.
final class BaselineCopy implements TransferClient {

    private static final long MEMORY = 512L << 20;

    private final MemorySegment memory = Arena.ofAuto().allocate(MEMORY, 4096);

    BaselineCopy() {
        memory.fill((byte) 3);
    }

    @Override
    public boolean transfer(TransferSpec transferSpec, long number) {
        int bytes = transferSpec.bytes();
        long block = number * 7919 & (MEMORY / bytes - 1);
        CopyTargetRing copyTargets = CopyTargetRing.borrow();
        MemorySegment.copy(memory, block * bytes, copyTargets.nextSlice(bytes), 0, bytes);
        copyTargets.giveBack();
        return true;
    }

    @Override
    public void close() {
        // The memory goes with whoever has it.
    }
}
