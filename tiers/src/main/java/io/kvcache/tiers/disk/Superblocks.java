package io.kvcache.tiers.disk;

import java.lang.foreign.MemorySegment;

/// The superblock of an open device, and how it is replaced: one copy, sync, the other copy, sync. The copy
/// that is written first is the older one, which nothing depends on.
final class Superblocks {

    private final Io io;
    private final MemorySegment buffer;
    private Superblock current;
    private int older;
    private boolean busy;

    /// @param buffer of a superblock's size
    /// @param older copy that the current one is not in, or not for sure
    Superblocks(Io io, MemorySegment buffer, Superblock current, int older) {
        this.io = io;
        this.buffer = buffer;
        this.current = current;
        this.older = older;
    }

    /// The last that is durable in both copies.
    Superblock current() {
        return current;
    }

    /// Whether one is being written.
    boolean busy() {
        return busy;
    }

    /// Replaces the current one. What follows does so when both copies are durable; if that fails, never.
    void replace(Superblock next, Runnable then) {
        assert !busy : "one at a time";
        busy = true;
        next.write(buffer);
        write(
                older,
                next,
                () -> write(1 - older, next, () -> {
                    busy = false;
                    current = next;
                    then.run();
                }));
    }

    private void write(int copy, Superblock next, Runnable then) {
        long offset = next.geometry().superblockOffset(copy);
        io.write(WriteKind.SUPERBLOCK, buffer, offset, done -> {
            if (done) {
                io.syncs().request(durable -> {
                    if (durable) {
                        then.run();
                    }
                });
            } else {
                io.condition().stopWriting("the superblock cannot be written");
            }
        });
    }
}
