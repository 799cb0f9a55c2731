package io.kvcache.tiers.disk;

import static io.kvcache.tiers.disk.DiskEntry.INT32;
import static io.kvcache.tiers.disk.DiskEntry.INT64;

import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// A set of disks that one store had, from the moment when a disk came or went until the next one did.
///
/// ```
///  0  int64  number            8  int32  length of the line      12  int32  members
/// 16  the line: an int64 each; then the members: device id (int64) and sufficient id (int64)
/// ```
///
/// @param number counts the generations of a line, from 1; 0 of a disk that was in none
/// @param line random ids of this generation and of those before it, newest first. Two stores that took disks of one
///     set apart go on under different ids, so neither mistakes the other's generations for its own
/// @param members the disks of the set
record DiskGeneration(long number, List<Long> line, List<Member> members) {

    /// Ids that a line keeps. A disk that missed more is as one of another set.
    static final int MAX_LINE = 64;

    /// That of a disk which was formatted and in no set yet.
    static final DiskGeneration NONE = new DiskGeneration(0, List.of(), List.of());

    private static final int HEADER_BYTES = 16;
    private static final int MAX_MEMBERS = 64;

    /// Room for the longest.
    static final int MAX_BYTES = HEADER_BYTES + MAX_LINE * Long.BYTES + MAX_MEMBERS * Member.BYTES;

    DiskGeneration {
        line = List.copyOf(line);
        members = List.copyOf(members);
    }

    /// A disk of the set.
    ///
    /// @param sufficient id of the generation that the disk was in when this one began, if it had missed nothing.
    ///     Nothing is written in a generation before all its disks are in it. So a disk that got no further has
    ///     still missed nothing. 0 of a disk that has missed something unless it is in this generation itself
    record Member(long deviceId, long sufficient) {
        static final int BYTES = 2 * Long.BYTES;
    }

    boolean isNone() {
        return line.isEmpty();
    }

    long id() {
        return line.getFirst();
    }

    /// Returns whether a disk that is in another generation, or in none, has missed nothing of this one.
    boolean includes(long deviceId, DiskGeneration other) {
        return !other.isNone()
                && (other.id() == id()
                        || members.stream()
                                .anyMatch(each -> each.deviceId == deviceId && each.sufficient == other.id()));
    }

    /// Returns the number of the last generation that this line and another have in common; 0 when there is none.
    long lastShared(DiskGeneration other) {
        for (int i = 0; i < line.size(); i++) {
            if (other.line.contains(line.get(i))) {
                return number - i;
            }
        }
        return 0;
    }

    /// The one that follows.
    DiskGeneration next(long id, List<Member> disks) {
        List<Long> ids = new ArrayList<>(MAX_LINE);
        ids.add(id);
        ids.addAll(line.subList(0, Math.min(line.size(), MAX_LINE - 1)));
        return new DiskGeneration(number + 1, ids, disks);
    }

    void write(MemorySegment target, long offset) {
        target.set(INT64, offset, number);
        target.set(INT32, offset + 8, line.size());
        target.set(INT32, offset + 12, members.size());
        long at = offset + HEADER_BYTES;
        for (long id : line) {
            target.set(INT64, at, id);
            at += Long.BYTES;
        }
        for (Member each : members) {
            target.set(INT64, at, each.deviceId);
            target.set(INT64, at + Long.BYTES, each.sufficient);
            at += Member.BYTES;
        }
    }

    /// Returns null when the bytes are none of ours.
    static @Nullable DiskGeneration read(MemorySegment source, long offset) {
        int ids = source.get(INT32, offset + 8);
        int disks = source.get(INT32, offset + 12);
        if (ids < 0 || ids > MAX_LINE || disks < 0 || disks > MAX_MEMBERS) {
            return null;
        }
        long at = offset + HEADER_BYTES;
        List<Long> line = new ArrayList<>(ids);
        for (int i = 0; i < ids; i++, at += Long.BYTES) {
            line.add(source.get(INT64, at));
        }
        List<Member> members = new ArrayList<>(disks);
        for (int i = 0; i < disks; i++, at += Member.BYTES) {
            members.add(new Member(source.get(INT64, at), source.get(INT64, at + Long.BYTES)));
        }
        return new DiskGeneration(source.get(INT64, offset), line, members);
    }
}
