package io.kvcache.tiers.disk;

import io.kvcache.tiers.device.IoOutcome;
import io.kvcache.tiers.disk.DiskLogStats.WriteKind;
import io.kvcache.tiers.disk.DiskSet.Membership;
import io.kvcache.tiers.disk.DiskSet.SetMember;
import io.kvcache.tiers.disk.LogHeader.FormatError;
import io.kvcache.tiers.disk.LogHeader.FormatError.Reason;
import io.kvcache.tiers.disk.Superblock.Kind;
import io.kvcache.tiers.disk.Superblock.SuperblockCopy;
import io.kvcache.tiers.options.OnIncompatible;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/// Looks at both copies of the superblock, decides what the device is, and writes a new superblock: of a
/// blank device its first, of a known one the next. A device whose superblocks are blank and whose regions are not
/// is no blank one. The sequence of that superblock is the number of this
/// opening.
final class LogMount {

    private final LogIo io;
    private final DiskLogConfig config;
    private final List<MemorySegment> buffers;
    private final @Nullable SuperblockCopy[] copies = new SuperblockCopy[2];
    private final SetMember member;
    private final Consumer<SuperblockWriter> callback;
    private @Nullable FormatError formatError;

    /// @param memory of two superblocks' size
    /// @param member the disk in its set
    /// @param then what follows when the superblock is durable
    LogMount(LogIo io, DiskLogConfig config, MemorySegment memory, SetMember member, Consumer<SuperblockWriter> then) {
        this.io = io;
        this.config = config;
        long bytes = DiskGeometry.SUPERBLOCK_BYTES;
        this.buffers = List.of(memory.asSlice(0, bytes), memory.asSlice(bytes, bytes));
        this.member = member;
        this.callback = then;
        for (int copy = 0; copy < copies.length; copy++) {
            int which = copy;
            long offset = config.geometry().superblockOffset(copy);
            io.read(buffers.get(copy), offset, outcome -> read(which, outcome));
        }
    }

    @Nullable
    FormatError formatError() {
        return formatError;
    }

    private void read(int copy, IoOutcome outcome) {
        copies[copy] = outcome.isDone() ? Superblock.read(buffers.get(copy)) : SuperblockCopy.invalid(Kind.UNREADABLE);
        SuperblockCopy first = copies[0];
        SuperblockCopy second = copies[1];
        if (first != null && second != null) {
            SuperblockCopy better = Superblock.selectNewer(first, second);
            decide(better, better.equals(first) ? 1 : 0);
        }
    }

    private void decide(SuperblockCopy superblockCopy, int other) {
        Superblock superblock = superblockCopy.superblock();
        if (superblock != null
                && superblock.geometry().deviceBytes() == config.geometry().deviceBytes()) {
            mount(superblock, other);
        } else if (superblockCopy.kind() == Kind.BLANK) {
            new SignatureProbe().start();
        } else {
            refuse(FormatError.of(superblockCopy, config.geometry().deviceBytes()));
        }
    }

    private void refuse(FormatError why) {
        if (config.onIncompatible() == OnIncompatible.DISCARD && why.reason() != Reason.UNREADABLE) {
            format();
        } else {
            formatError = why;
            io.markRefused(why.message());
        }
    }

    /// Looks whether a device without a superblock holds a log all the same.
    private final class SignatureProbe {

        private int left;
        private boolean foundLog;

        void start() {
            DiskGeometry geometry = config.geometry();
            int regions = LogHeader.LogDetector.regionsToProbe(geometry);
            left = 2 * regions;
            for (int region = 0; region < regions; region++) {
                look(0, region, LogHeader.LogDetector.headOffset(geometry, region));
                look(1, region, LogHeader.LogDetector.footerOffset(geometry, region));
            }
        }

        private void look(int buffer, int slot, long offset) {
            MemorySegment page =
                    buffers.get(buffer).asSlice((long) slot * DiskGeometry.PAGE_BYTES, DiskGeometry.PAGE_BYTES);
            io.read(page, offset, outcome -> {
                foundLog |= outcome.isDone() && LogHeader.LogDetector.isLogPage(page, config.geometry());
                if (--left == 0) {
                    decide();
                }
            });
        }

        private void decide() {
            if (foundLog) {
                refuse(FormatError.blankOverLog(config.geometry().deviceBytes()));
            } else {
                format();
            }
        }
    }

    private void format() {
        mount(new Superblock(config.deviceId(), 0, config.geometry(), List.of(), Membership.NONE), 0);
    }

    private void mount(Superblock superblock, int older) {
        SuperblockWriter superblockWriter = new SuperblockWriter(io, buffers.get(0), superblock, older);
        Superblock next = superblock.withNextSequence();
        member.onMounted(next.deviceId(), next.membership(), next.sequence());
        Membership wanted = member.wanted();
        Membership written = wanted == null ? next.membership() : wanted;
        superblockWriter.replace(superblock.withMembership(written), () -> {
            member.onDurable(written);
            callback.accept(superblockWriter);
        });
    }

    /// The superblock of an open device, and how it is replaced: one copy, sync, the other copy, sync. The copy
    /// that is written first is the older one, which nothing depends on.
    static final class SuperblockWriter {

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

        /// Returns whether one is being written.
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
                    io.stopWriting("the superblock cannot be written");
                }
            });
        }
    }
}
