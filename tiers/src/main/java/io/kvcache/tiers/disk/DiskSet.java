package io.kvcache.tiers.disk;

import io.kvcache.tiers.disk.DiskGeneration.Member;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.security.SecureRandom;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.function.LongSupplier;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/// The disks of one store, and which of them have missed something.
///
/// What a store replaces or deletes is written to the disks that it has then. A disk that was left out, has failed, or
/// comes from another store does not know of it, and would bring the old values back. So each superblock names the
/// [DiskGeneration] that its disk is in. Another begins whenever a disk comes or goes, and nothing is written before
/// all disks are in it. A disk that is in an older one gives up its values. It gives up its blocks too if any were
/// dropped since; otherwise they stay, as a block's key always names the same bytes.
///
/// Where disks of several sets meet, the set counts that most of them come from, and among equals that of the first
/// disk.
///
/// **Threads.** Any.
public final class DiskSet {

    private static final Logger LOG = System.getLogger(DiskLog.class.getName());

    private final LongSupplier ids;
    private final List<SetMember> all = new ArrayList<>();
    private @Nullable DiskGeneration current;
    private long lastBlockDrop;
    private volatile boolean settled;

    /// The set of a store that is about to be opened.
    public DiskSet() {
        this(new SecureRandom()::nextLong);
    }

    /// @param ids random numbers, never the same twice
    public DiskSet(LongSupplier ids) {
        this.ids = ids;
    }

    /// Adds a disk, before any is opened. The set is complete when all of them are.
    ///
    /// @param name in the log
    public synchronized SetMember add(String name) {
        SetMember member = new SetMember(this, name);
        all.add(member);
        return member;
    }

    /// What a superblock says of the sets that its disk was in.
    ///
    /// @param generation the last one
    /// @param valuesFrom the first opening whose values count; earlier ones may have been replaced or deleted
    /// @param blocksFrom the first opening whose blocks count; earlier ones may have been dropped
    /// @param lastBlockDrop number of the last generation in which a block was dropped; 0 when there is none
    record Membership(DiskGeneration generation, long valuesFrom, long blocksFrom, long lastBlockDrop) {

        static final Membership NONE = new Membership(DiskGeneration.NONE, 0, 0, 0);

        /// Returns whether an entry counts that was written in an opening.
        boolean counts(DiskEntry entry, long opening) {
            return opening >= (entry.isObject() ? valuesFrom : blocksFrom);
        }

        Membership in(DiskGeneration next) {
            return new Membership(next, valuesFrom, blocksFrom, lastBlockDrop);
        }

        Membership withLastBlockDrop(long number) {
            return new Membership(generation, valuesFrom, blocksFrom, number);
        }
    }

    /// One disk of the set, through all its openings in this process.
    public static final class SetMember {

        private final DiskSet set;
        private final String name;
        private boolean present;
        private boolean readOnly;
        private long deviceId;
        private long knownDeviceId;
        private long opening;
        private Membership durable = Membership.NONE;
        private volatile @Nullable Membership wanted;

        private SetMember(DiskSet set, String name) {
            this.set = set;
            this.name = name;
        }

        /// The disk's superblock was read.
        ///
        /// @param found what it says
        /// @param number of this opening of the disk
        void onMounted(long id, Membership found, long number) {
            synchronized (set) {
                set.leave(this);
                deviceId = id;
                durable = found;
                opening = number;
                present = true;
                readOnly = false;
                set.join(this);
            }
        }

        /// Returns what its superblock is to say; null while other disks of the set are still to be opened, so that
        /// nothing is known yet.
        @Nullable
        Membership wanted() {
            return wanted;
        }

        /// Its superblock says so durably.
        void onDurable(Membership written) {
            synchronized (set) {
                durable = written;
                set.settle();
            }
        }

        /// Its superblock cannot say anything new. It is still a disk of the set, but not one to wait for: while it is
        /// as it is, no flush of the store ends with true.
        void onReadOnly() {
            synchronized (set) {
                readOnly = true;
                set.settle();
            }
        }

        /// Returns whether it may be written to: all disks are in the same generation, and their superblocks say so.
        boolean canWrite() {
            return set.settled;
        }

        /// A block is about to be dropped.
        ///
        /// @return whether its superblock says durably that blocks were dropped in this generation
        boolean recordBlockDrop() {
            synchronized (set) {
                Membership present = Objects.requireNonNull(wanted, "nothing is dropped before the set is complete");
                set.lastBlockDrop = present.generation.number();
                wanted = present.withLastBlockDrop(set.lastBlockDrop);
                return durable.lastBlockDrop == set.lastBlockDrop;
            }
        }

        /// It is out: its contents are forgotten, and it misses what the others are told from here on.
        void leave() {
            synchronized (set) {
                set.leave(this);
            }
        }

        private Member in(DiskGeneration before) {
            return new Member(deviceId, before.includes(deviceId, durable.generation) ? durable.generation.id() : 0);
        }
    }

    private List<SetMember> present() {
        return all.stream().filter(each -> each.present).toList();
    }

    private void join(SetMember member) {
        DiskGeneration before = current;
        if (before != null) {
            List<SetMember> others =
                    present().stream().filter(each -> each != member).toList();
            List<Member> disks =
                    new ArrayList<>(others.stream().map(each -> each.in(before)).toList());
            disks.add(new Member(member.deviceId, 0));
            // Drops while it was out wait for it in the store, as tombstones.
            boolean tellsDrops = member.knownDeviceId == member.deviceId;
            begin(before.next(ids.getAsLong(), disks), others);
            member.wanted = giveUp(member, before, !tellsDrops);
        } else if (all.stream().allMatch(each -> each.present)) {
            beginFirst();
        }
        settle();
    }

    private void leave(SetMember member) {
        if (!member.present) {
            return;
        }
        member.present = false;
        member.wanted = null;
        DiskGeneration before = current;
        List<SetMember> others = present();
        if (before != null) {
            member.knownDeviceId = member.deviceId;
            if (!others.isEmpty()) {
                begin(
                        before.next(
                                ids.getAsLong(),
                                others.stream().map(each -> each.in(before)).toList()),
                        others);
            }
        }
        settle();
    }

    private void begin(DiskGeneration next, List<SetMember> members) {
        current = next;
        for (SetMember each : members) {
            each.wanted = Objects.requireNonNull(each.wanted).in(next).withLastBlockDrop(lastBlockDrop);
        }
    }

    /// All disks were found.
    private void beginFirst() {
        DiskGeneration newest = newest();
        List<SetMember> knowing = all.stream()
                .filter(each -> newest.includes(each.deviceId, each.durable.generation))
                .toList();
        lastBlockDrop = knowing.stream()
                .mapToLong(each -> each.durable.lastBlockDrop)
                .max()
                .orElse(0);
        Set<Long> before = newest.members().stream().map(Member::deviceId).collect(Collectors.toSet());
        Set<Long> now = all.stream().map(each -> each.deviceId).collect(Collectors.toSet());
        boolean same = knowing.size() == all.size() && before.equals(now);
        DiskGeneration next = same
                ? newest
                : newest.next(
                        ids.getAsLong(),
                        all.stream().map(each -> each.in(newest)).toList());
        current = next;
        for (SetMember each : all) {
            each.wanted = knowing.contains(each)
                    ? each.durable.in(next).withLastBlockDrop(lastBlockDrop)
                    : giveUp(each, newest, true);
        }
    }

    /// Returns the newest generation of the set that most disks come from.
    private DiskGeneration newest() {
        DiskGeneration newest = DiskGeneration.NONE;
        long most = 0;
        Set<Long> seen = new HashSet<>();
        for (SetMember each : all) {
            DiskGeneration generation = each.durable.generation;
            if (generation.isNone() || !seen.add(generation.id())) {
                continue;
            }
            long disks = all.stream()
                    .filter(other -> !other.durable.generation.isNone()
                            && generation.line().contains(other.durable.generation.id()))
                    .count();
            if (disks > most) {
                most = disks;
                newest = generation;
            }
        }
        return newest;
    }

    /// Returns what a disk says from now on that was not in a generation of the set, or not in all of them.
    ///
    /// @param before the newest of the set
    /// @param dropsMissed whether blocks that were dropped without it may be there
    private Membership giveUp(SetMember member, DiskGeneration before, boolean dropsMissed) {
        DiskGeneration next = Objects.requireNonNull(current);
        Membership found = member.durable;
        if (found.generation.isNone()) {
            return new Membership(next, found.valuesFrom, found.blocksFrom, lastBlockDrop);
        }
        boolean blocks = dropsMissed && lastBlockDrop > before.lastShared(found.generation);
        LOG.log(
                Level.WARNING,
                "{0} was away while its store was used{1}: its values{2} are given up, as they may have been replaced"
                        + " or deleted meanwhile",
                member.name,
                before.lastShared(found.generation) == 0 ? ", or comes from another store" : "",
                blocks ? " and blocks" : "");
        return new Membership(next, member.opening, blocks ? member.opening : found.blocksFrom, lastBlockDrop);
    }

    private void settle() {
        DiskGeneration now = current;
        settled = now != null
                && present().stream()
                        .allMatch(each -> each.readOnly
                                || (!each.durable.generation.isNone() && each.durable.generation.id() == now.id()));
    }
}
