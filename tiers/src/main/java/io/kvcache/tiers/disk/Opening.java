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
/// blank device its first, of a known one the next. The sequence of that superblock is the number of this
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
        copies[copy] = outcome.done() ? Superblock.read(buffers.get(copy)) : Found.nothing(Kind.UNREADABLE);
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
            format();
        } else {
            Refusal why = refusal(found);
            if (config.onIncompatible() == OnIncompatible.DISCARD && why.reason() != Reason.UNREADABLE) {
                format();
            } else {
                refusal = why;
                io.condition().refuse(why.message());
            }
        }
    }

    private Refusal refusal(Found found) {
        long bytes = config.geometry().deviceBytes();
        String expected = "a blank device, or a disk tier of format version %d on %d bytes"
                .formatted(Superblock.FORMAT_VERSION, bytes);
        return switch (found.kind()) {
            case SOUND ->
                new Refusal(Reason.OTHER_SIZE, "a disk tier of another size: " + found.superblock(), expected);
            case UNREADABLE -> new Refusal(Reason.UNREADABLE, "a superblock that cannot be read", expected);
            case OTHER_VERSION ->
                new Refusal(Reason.OTHER_VERSION, "a disk tier of format version " + found.version(), expected);
            case DAMAGED -> new Refusal(Reason.DAMAGED, "a disk tier whose superblock is damaged", expected);
            case FOREIGN, BLANK -> new Refusal(Reason.FOREIGN, "something that no disk tier wrote", expected);
        };
    }

    private void format() {
        mount(new Superblock(config.deviceId(), 0, config.geometry(), List.of()), 0);
    }

    private void mount(Superblock superblock, int older) {
        Superblocks superblocks = new Superblocks(io, buffers.get(0), superblock, older);
        superblocks.replace(superblock.next(), () -> then.accept(superblocks));
    }
}
