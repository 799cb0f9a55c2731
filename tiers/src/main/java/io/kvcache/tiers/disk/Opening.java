package io.kvcache.tiers.disk;

import io.kvcache.tiers.device.IoOutcome;
import io.kvcache.tiers.disk.DiskLogConfig.OnIncompatible;
import io.kvcache.tiers.disk.Refusal.Reason;
import io.kvcache.tiers.disk.Superblock.Found;
import io.kvcache.tiers.disk.Superblock.Kind;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/// Looks at both copies of the superblock, decides what the device is, and writes a new superblock: of a
/// blank device its first, of a known one the next. A device whose superblocks are blank and whose regions are not is
/// no blank one. The sequence of that superblock is the number of this
/// opening.
final class Opening {

    private final Io io;
    private final DiskLogConfig config;
    private final List<MemorySegment> buffers;
    private final @Nullable Found[] copies = new Found[2];
    private final Consumer<Superblocks> then;
    private @Nullable Refusal refusal;

    /// @param memory of two superblocks' size
    /// @param then what follows when the superblock is durable
    Opening(Io io, DiskLogConfig config, MemorySegment memory, Consumer<Superblocks> then) {
        this.io = io;
        this.config = config;
        long bytes = Geometry.SUPERBLOCK_BYTES;
        this.buffers = List.of(memory.asSlice(0, bytes), memory.asSlice(bytes, bytes));
        this.then = then;
        for (int copy = 0; copy < copies.length; copy++) {
            int which = copy;
            long offset = config.geometry().superblockOffset(copy);
            io.transfers().add(Transfer.read(buffers.get(copy), offset, outcome -> read(which, outcome)));
        }
    }

    @Nullable
    Refusal refusal() {
        return refusal;
    }

    private void read(int copy, IoOutcome outcome) {
        copies[copy] = outcome.isDone() ? Superblock.read(buffers.get(copy)) : Found.nothing(Kind.UNREADABLE);
        Found first = copies[0];
        Found second = copies[1];
        if (first != null && second != null) {
            Found better = Superblock.newer(first, second);
            decide(better, better.equals(first) ? 1 : 0);
        }
    }

    private void decide(Found found, int other) {
        Superblock superblock = found.superblock();
        if (superblock != null
                && superblock.geometry().deviceBytes() == config.geometry().deviceBytes()) {
            mount(superblock, other);
        } else if (found.kind() == Kind.BLANK) {
            new Probe().start();
        } else {
            refuse(Refusal.of(found, config.geometry().deviceBytes()));
        }
    }

    private void refuse(Refusal why) {
        if (config.onIncompatible() == OnIncompatible.DISCARD && why.reason() != Reason.UNREADABLE) {
            format();
        } else {
            refusal = why;
            io.condition().refuse(why.message());
        }
    }

    /// Looks whether a device without a superblock holds a log all the same.
    private final class Probe {

        private int left;
        private boolean traces;

        void start() {
            Geometry geometry = config.geometry();
            int regions = Traces.regions(geometry);
            left = 2 * regions;
            for (int region = 0; region < regions; region++) {
                look(0, region, Traces.head(geometry, region));
                look(1, region, Traces.footer(geometry, region));
            }
        }

        private void look(int buffer, int slot, long offset) {
            MemorySegment page = buffers.get(buffer).asSlice((long) slot * Geometry.PAGE_BYTES, Geometry.PAGE_BYTES);
            io.transfers().add(Transfer.read(page, offset, outcome -> {
                traces |= outcome.isDone() && Traces.in(page, config.geometry());
                if (--left == 0) {
                    decide();
                }
            }));
        }

        private void decide() {
            if (traces) {
                refuse(Refusal.blankOverLog(config.geometry().deviceBytes()));
            } else {
                format();
            }
        }
    }

    private void format() {
        mount(new Superblock(config.deviceId(), 0, config.geometry(), List.of()), 0);
    }

    private void mount(Superblock superblock, int older) {
        Superblocks superblocks = new Superblocks(io, buffers.get(0), superblock, older);
        superblocks.replace(superblock.next(), () -> then.accept(superblocks));
    }
}
