package io.kvcache.tiers.disk;

import java.lang.foreign.MemorySegment;

/// The superblock of an open device, and how it is replaced: one copy, sync, the other copy, sync. The copy
/// that is written first is the older one, which nothing depends on.
final class SuperblockWriter {

    private final LogIo io;
    private final MemorySegment buffer;
    private Superblock current;
    private int olderCopy;
    private boolean busy;

    /// @param buffer of a superblock's size
    /// @param older copy that the current one is not in, or not for sure
    SuperblockWriter(LogIo io, MemorySegment buffer, Superblock current, int older) {
        this.io = io;
        this.buffer = buffer;
        this.current = current;
        this.olderCopy = older;
    }

    /// The last that is durable in both copies.
    Superblock current() {
        return current;
    }

    /// Whether one is being written.
    boolean isBusy() {
        return busy;
    }

    /// Replaces the current one. What follows does so when both copies are durable; if that fails, never.
    void replace(Superblock next, Runnable then) {
        assert !busy : "one at a time";
        busy = true;
        next.write(buffer);
        write(
                olderCopy,
                next,
                () -> write(1 - olderCopy, next, () -> {
                    busy = false;
                    current = next;
                    then.run();
                }));
    }

    private void write(int copy, Superblock next, Runnable then) {
        long offset = next.geometry().superblockOffset(copy);
        io.write(WriteKind.SUPERBLOCK, buffer, offset, done -> {
            if (done) {
                io.sync(durable -> {
                    if (durable) {
                        then.run();
                    }
                });
            } else {
                io.logHealth().stopWriting("the superblock cannot be written");
            }
        });
    }
}
