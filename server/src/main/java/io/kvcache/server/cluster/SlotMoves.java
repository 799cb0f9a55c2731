package io.kvcache.server.cluster;

import io.kvcache.server.cluster.ValueHandover.Outcome;
import io.kvcache.server.cluster.ValueHandover.Run;
import io.kvcache.server.keyspace.SlotOwnership;
import io.kvcache.server.keyspace.SlotOwnership.SlotMap;
import io.kvcache.transport.cluster.ClusterNode;
import io.kvcache.transport.cluster.ClusterView;
import io.kvcache.transport.cluster.HashSlots;
import io.kvcache.transport.cluster.NodeInfo;
import io.kvcache.transport.cluster.NodeState;
import io.kvcache.transport.cluster.ViewSource;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.time.Duration;
import java.util.BitSet;
import java.util.List;
import java.util.stream.IntStream;

/// Gives values away whose slots another server owns since a change of the view: it has joined, or is back. After a
/// meeting of two sides of a partition, these are the values of all slots, as both sides have taken values of all.
///
/// It begins when the owners have stayed the same for a second, gives one value after the other, and begins anew when
/// the owners change again. Slots stay on its list until all their values are given, or the slot is this server's
/// again. A server that drains gives everything away by itself: see [DrainHandover].
///
/// **Threads.** One of its own, until [#close].
final class SlotMoves implements AutoCloseable {

    private static final Logger LOG = System.getLogger(SlotMoves.class.getName());

    private static final long SETTLE_MILLIS = 1000;
    private static final Duration END = Duration.ofSeconds(10);

    private final String node;
    private final SlotOwnership ownership;
    private final ValueHandover values;
    private final long limitNanos;
    private final Runnable endListening;
    private final Thread thread;

    /// Slots of which this server may have values.
    private final BitSet held = new BitSet(HashSlots.COUNT);

    private Owners owners;
    private volatile long changes;
    private volatile boolean closed;

    /// What decides who owns a slot.
    private record Owners(List<ClusterNode> serving, long meetings) {

        static Owners of(ClusterView view) {
            return new Owners(view.serving().stream().map(NodeInfo::node).toList(), view.meetings());
        }
    }

    /// @param ownership that listens to the views already
    /// @param limit how long it gives values after a change of the view
    SlotMoves(SlotOwnership ownership, ViewSource views, ValueHandover values, Duration limit) {
        node = ownership.node();
        this.ownership = ownership;
        this.values = values;
        limitNanos = limit.toNanos();
        owners = Owners.of(views.view());
        endListening = views.listen(this::onView);
        thread = Thread.ofPlatform().daemon().name("kvcache-cluster-values").start(this::follow);
    }

    private synchronized void onView(ClusterView view) {
        Owners next = Owners.of(view);
        if (next.equals(owners)) {
            return;
        }
        SlotMap map = ownership.map(); // which has heard of the view before
        if (next.meetings != owners.meetings) {
            held.set(0, HashSlots.COUNT);
        }
        IntStream.range(0, HashSlots.COUNT).filter(map::isOwn).forEach(held::set);
        owners = next;
        changes++;
        notifyAll();
    }

    private void follow() {
        long seen = 0;
        try {
            while (!closed) {
                seen = awaitChange(seen);
                BitSet moved = moved();
                if (!moved.isEmpty() && give(moved, seen)) {
                    forget(moved, seen);
                }
            }
        } catch (InterruptedException ended) {
            Thread.currentThread().interrupt();
        }
    }

    /// Waits for a change, and until none has followed for a while.
    private synchronized long awaitChange(long seen) throws InterruptedException {
        while (changes == seen) {
            wait();
        }
        long last;
        do {
            last = changes;
            wait(SETTLE_MILLIS);
        } while (changes != last);
        return last;
    }

    /// Returns slots of which this server may have values, and another one is the owner.
    private synchronized BitSet moved() {
        SlotMap now = ownership.map();
        NodeInfo self = now.view().node(node);
        BitSet moved = new BitSet(HashSlots.COUNT);
        if (self != null && self.state() == NodeState.SERVING) {
            held.stream().filter(slot -> !now.isOwn(slot)).forEach(moved::set);
        }
        return moved;
    }

    private synchronized void forget(BitSet given, long seen) {
        if (changes == seen) {
            held.andNot(given);
        }
    }

    /// Returns whether nothing was left.
    private boolean give(BitSet moved, long seen) {
        long until = System.nanoTime() + limitNanos;
        Run run = values.begin(moved::get, () -> !closed && changes == seen && until - System.nanoTime() > 0);
        run.give();
        Outcome outcome = run.outcome();
        if (outcome.given() > 0 || outcome.left() > 0) {
            LOG.log(
                    Level.INFO,
                    "Gave %s values to the servers that own them now; %s are left"
                            .formatted(outcome.given(), outcome.left()));
        }
        return outcome.left() == 0;
    }

    @Override
    public void close() {
        closed = true;
        endListening.run();
        thread.interrupt();
        try {
            thread.join(END);
        } catch (InterruptedException stopped) {
            Thread.currentThread().interrupt();
        }
    }
}
