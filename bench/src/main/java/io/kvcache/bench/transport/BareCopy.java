package io.kvcache.bench.transport;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/// Copies blocks within this process: what a copy costs at least, from memory that no cache holds to such
/// memory.
final class BareCopy implements Contestant {

    private static final long MEMORY = 512L << 20;

    private final MemorySegment memory = Arena.ofAuto().allocate(MEMORY, 4096);

    BareCopy() {
        memory.fill((byte) 3);
    }

    @Override
    public boolean move(Cargo cargo, long number) {
        int bytes = cargo.bytes();
        long block = number * 7919 & (MEMORY / bytes - 1);
        Ring ring = Ring.take();
        MemorySegment.copy(memory, block * bytes, ring.next(bytes), 0, bytes);
        ring.give();
        return true;
    }

    @Override
    public void close() {
        // The memory goes with whoever has it.
    }
}
