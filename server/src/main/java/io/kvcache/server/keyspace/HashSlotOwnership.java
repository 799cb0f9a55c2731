package io.kvcache.server.keyspace;

import io.kvcache.core.spi.Clock;
import io.kvcache.transport.cluster.ClusterView;
import io.kvcache.transport.cluster.HashSlots;
import io.kvcache.transport.cluster.NodeInfo;
import io.kvcache.transport.cluster.NodeState;
import io.kvcache.transport.cluster.Placement;
import io.kvcache.transport.cluster.ViewSource;
import java.time.Duration;
import java.time.InstantSource;
import java.util.Arrays;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// Which server of a cluster owns which slot of values, and whether a value that this server has may still be served.
///
/// **Fence.** Another server may have taken writes of a slot while this one did not own it, so what this server has
/// from before may be older. Every view change has a number, and every value the number at which it was written. Each
/// slot has a *fence*, the number of the last change at which it became this server's, or ceased to be. Values with a
/// lower number count as absent.
///
/// A change also raises the fences of all slots when it shows that others may have owned this server's slots unseen;
/// see [ClusterView#meetings].
///
/// Numbers begin with the time of the start, so values of earlier processes are below all fences. A number above the
/// present one is of a process whose clock was ahead, and counts as lower.
///
/// **Threads.** Any. Views come one after another.
public final class HashSlotOwnership {

    /// How long servers may know different views after a change. Two servers could redirect a client to each other
    /// meanwhile.
    static final Duration SETTLE_TIME = Duration.ofMillis(100);

    /// Leaves 2^20 numbers for each millisecond of a process, and holds times until the year 2248.
    private static final int NUMBER_BITS = 20;

    private static final int RUNS = HashSlots.COUNT / HashSlots.RUN_SLOTS;

    private final String node;
    private final Clock clock;
    private final long firstNumber;
    private volatile SlotMap present;

    /// Follows the views of a server from now on.
    ///
    /// @param node name of this server
    /// @param wall time of the start of this process
    public HashSlotOwnership(String node, ViewSource views, Clock clock, InstantSource wall) {
        this.node = node;
        this.clock = clock;
        firstNumber = wall.millis() << NUMBER_BITS;
        long[] fences = new long[RUNS];
        Arrays.fill(fences, firstNumber);
        ClusterView none = new ClusterView(views.view().cluster(), 0, List.of());
        long settled = clock.nanos() - SETTLE_TIME.toNanos();
        present = new SlotMap(none, null, firstNumber, fences, firstNumber, settled);
        views.listen(this::onView);
        onView(views.view());
    }

    private synchronized void onView(ClusterView view) {
        SlotMap before = present;
        if (view.epoch() > before.view.epoch()) {
            present = next(before, view);
        }
    }

    private SlotMap next(SlotMap before, ClusterView view) {
        Placement placement = view.placement();
        HashSlots slots = placement == null ? null : new HashSlots(placement);
        long number = before.number + 1;
        long[] fences = before.fences.clone();
        boolean all = view.meetings() != before.view.meetings();
        for (int run = 0; run < RUNS; run++) {
            int slot = run * HashSlots.RUN_SLOTS;
            if (all || before.isOwn(slot) != isNode(ownerOf(view, slots, slot))) {
                fences[run] = number;
            }
        }
        long now = clock.nanos();
        boolean settled = now - before.changedNanos >= SETTLE_TIME.toNanos();
        return new SlotMap(view, slots, number, fences, settled ? number : before.unsettled, now);
    }

    private static @Nullable NodeInfo ownerOf(ClusterView view, @Nullable HashSlots slots, int slot) {
        return slots == null ? null : view.serving().get(slots.owner(slot));
    }

    private boolean isNode(@Nullable NodeInfo server) {
        return server != null && server.name().equals(node);
    }

    /// The owners at this moment.
    public SlotMap map() {
        return present;
    }

    /// Returns why no slot has an owner that this server knows, for the client: only a server that does not serve
    /// itself knows none.
    public String absenceReason() {
        NodeInfo self = present.view.node(node);
        return self != null && self.state() == NodeState.DRAINING
                ? "no server of the cluster serves any more"
                : node + " is joining the cluster and knows no server that serves yet";
    }

    /// Name of this server.
    public String node() {
        return node;
    }

    /// The number for a value that is written now.
    long writeNumber() {
        return present.number;
    }

    /// Returns whether no other server can have taken a later write of the key, by what this server knows.
    ///
    /// @param number at which the value was written, read before this is called; 0 for unknown
    boolean admits(byte[] key, long number) {
        SlotMap now = present;
        return number >= firstNumber
                && number <= now.number
                && number >= now.fences[HashSlots.of(key) / HashSlots.RUN_SLOTS];
    }

    /// The owners by one view.
    ///
    /// **Threads.** Immutable; any thread.
    public final class SlotMap {

        private final ClusterView view;
        private final @Nullable HashSlots slots;
        private final long number;
        private final long[] fences;

        /// The first of the numbers that other servers may not know yet.
        private final long unsettled;

        private final long changedNanos;

        private SlotMap(
                ClusterView view,
                @Nullable HashSlots slots,
                long number,
                long[] fences,
                long unsettled,
                long changedNanos) {
            this.view = view;
            this.slots = slots;
            this.number = number;
            this.fences = fences;
            this.unsettled = unsettled;
            this.changedNanos = changedNanos;
        }

        /// The view.
        public ClusterView view() {
            return view;
        }

        /// Returns the owner of a slot, or null when no server serves.
        ///
        /// @param slot 0 to 16,383
        public @Nullable NodeInfo owner(int slot) {
            return ownerOf(view, slots, slot);
        }

        /// Returns whether this server owns a slot.
        public boolean isOwn(int slot) {
            return isNode(owner(slot));
        }

        /// Returns how long to wait before a client is sent from here to a slot's owner, which may not know yet that
        /// it owns it: nanoseconds, 0 for not at all.
        public long settleNanos(int slot) {
            return fences[slot / HashSlots.RUN_SLOTS] < unsettled
                    ? 0
                    : Math.max(0, changedNanos + SETTLE_TIME.toNanos() - clock.nanos());
        }
    }
}
