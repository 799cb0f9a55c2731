package io.kvcache.core.store;

import static io.kvcache.core.policy.RecordView.NONE;

import io.kvcache.core.event.CacheEvent;
import io.kvcache.core.event.EventKind;
import io.kvcache.core.event.EventLog;
import io.kvcache.core.event.TierKind;
import io.kvcache.core.memory.SlabPool;
import io.kvcache.core.policy.EvictionPolicy;
import io.kvcache.core.tree.BlockTree;
import io.kvcache.core.tree.Control;
import io.kvcache.core.tree.RecordPool;
import java.util.ArrayDeque;

/// What a record goes through between being reserved and being freed, and everything that has to be told of it:
/// index, policy, events, slots, parent.
///
/// A record that is dropped while somebody holds a pin on it, or on a block below it, becomes DOOMED: out of
/// the index, so that nobody finds it again, but in its place until the last pin and the last child are
/// gone. A writer counts as one pin.
///
/// **Threads.** Owned by the store's lock, except [#pin] and [#unpin].
final class Lifecycle {

    private final RecordPool pool;
    private final BlockTree tree;
    private final SlabPool slabs;
    private final ClassPolicies policies;
    private final Namespaces namespaces;
    private final EventLog events;
    private final Tally<EventKind> removed = new Tally<>(EventKind.class);

    Lifecycle(StoreParts parts) {
        pool = parts.pool();
        tree = parts.tree();
        slabs = parts.slabs();
        policies = parts.policies();
        namespaces = parts.namespaces();
        events = parts.events();
    }

    /// Pins a sealed record of this generation; by anyone.
    ///
    /// @throws IllegalStateException when the record has as many pins as fit its control word: tables leak
    boolean pin(int record, int generation) {
        while (true) {
            long control = pool.control(record);
            if (Control.generation(control) != generation || Control.state(control) != Control.SEALED) {
                return false;
            }
            if (Control.pins(control) == Control.MAX_PINS) {
                throw new IllegalStateException("record " + record + " has " + Control.MAX_PINS
                        + " pins and takes no more: tables are leaking");
            }
            if (pool.casControl(record, control, control + 1)) {
                return true;
            }
        }
    }

    /// Takes a pin away; by anyone.
    ///
    /// @return whether that was the last pin on a doomed record, which [#bury] may now free
    /// @throws IllegalStateException when the record has no pin
    boolean unpin(int record) {
        while (true) {
            long control = pool.control(record);
            if (Control.pins(control) == 0) {
                throw new IllegalStateException("record " + record + " is released and holds no pin");
            }
            if (pool.casControl(record, control, control - 1)) {
                return Control.state(control) == Control.DOOMED && Control.pins(control) == 1;
            }
        }
    }

    /// Claims an unpinned sealed record for eviction.
    boolean claim(int record) {
        long control = pool.control(record);
        return Control.state(control) == Control.SEALED
                && Control.pins(control) == 0
                && pool.casControl(record, control, control + ((long) (Control.EVICTING - Control.SEALED) << 24));
    }

    /// A writer has finished: makes the record findable, or leaves that to its parent's writer.
    ///
    /// @param older the sealed record of the same key that this one replaces, or [#NONE]; readers find one or
    ///     the other at any moment
    boolean seal(int record, int older) {
        int parent = pool.parent(record);
        if (parent != NONE && state(parent) != Control.SEALED) {
            state(record, Control.FILLED, 0);
            return false;
        }
        ArrayDeque<Integer> ready = null;
        publish(record, older);
        for (int at = record; at != NONE; ) {
            if (pool.residentChildren(at) > 0) {
                ready = ready == null ? new ArrayDeque<>() : ready;
                publishFilledChildren(at, ready);
            }
            at = ready == null || ready.isEmpty() ? NONE : ready.poll();
        }
        return true;
    }

    private void publishFilledChildren(int record, ArrayDeque<Integer> ready) {
        tree.eachChild(record, child -> {
            if (state(child) == Control.FILLED) {
                publish(child, NONE);
                ready.add(child);
            }
        });
    }

    /// Events say first that the older one has gone: they speak of keys, and of this one the last word is
    /// STORED.
    private void publish(int record, int older) {
        state(record, Control.SEALED, 0);
        if (older != NONE) {
            doom(older, EventKind.REPLACED);
        }
        NamespaceEntry entry = entryOf(record);
        entry.live++;
        entry.liveBytes += pool.bytes(record);
        policyOf(record).admit(record);
        emit(record, EventKind.STORED);
    }

    /// Frees a record that [#claim] has claimed and the policy has let go.
    void evicted(int record) {
        retire(record, EventKind.EVICTED);
        tree.unindex(record);
        free(record);
    }

    /// Drops a record and all below it.
    ///
    /// @return sealed records among them
    int doom(int root, EventKind cause) {
        int[] dropped = {0};
        tree.eachBelow(root, record -> dropped[0] += doomOne(record, cause) ? 1 : 0);
        return dropped[0];
    }

    private boolean doomOne(int record, EventKind cause) {
        int before = state(record);
        if (before == Control.DOOMED) {
            return false;
        }
        long control = pool.control(record);
        while (!pool.casControl(record, control, control + ((long) (Control.DOOMED - before) << 24))) {
            control = pool.control(record);
        }
        if (before == Control.SEALED) {
            policyOf(record).forget(record);
            retire(record, cause);
        }
        tree.unindex(record);
        bury(record);
        return before == Control.SEALED;
    }

    /// Frees a doomed record, and doomed parents after it, as far as neither pins nor children hold them.
    void bury(int record) {
        int at = record;
        while (at != NONE && dead(at)) {
            at = free(at);
        }
    }

    private boolean dead(int record) {
        long control = pool.control(record);
        return Control.state(control) == Control.DOOMED
                && Control.pins(control) == 0
                && pool.residentChildren(record) == 0;
    }

    private int free(int record) {
        int page = pool.hostPage(record);
        pool.hostPage(record, NONE);
        int parent = tree.remove(record);
        releaseSlots(page);
        expose(parent);
        return parent;
    }

    /// Takes back a record that was reserved and got no slot.
    void withdraw(int record) {
        tree.unindex(record);
        expose(tree.remove(record));
    }

    private void expose(int parent) {
        if (parent != NONE && pool.residentChildren(parent) == 0 && state(parent) == Control.SEALED) {
            policyOf(parent).exposed(parent);
        }
    }

    /// Gives back a list of slots.
    void releaseSlots(int first) {
        int page = first;
        while (page != SlabPool.NONE) {
            int next = slabs.next(page);
            slabs.release(page);
            page = next;
        }
    }

    private void retire(int record, EventKind cause) {
        NamespaceEntry entry = entryOf(record);
        entry.live--;
        entry.liveBytes -= pool.bytes(record);
        removed.add(cause);
        emit(record, cause);
    }

    private void emit(int record, EventKind kind) {
        events.record(describe(record, kind));
    }

    /// What an event says of a record.
    CacheEvent describe(int record, EventKind kind) {
        int parent = pool.parent(record);
        return new CacheEvent(
                -1,
                kind,
                TierKind.HOST,
                Identity.namespace(pool.identity(record)),
                pool.keyHi(record),
                pool.keyLo(record),
                parent == NONE ? 0 : pool.keyHi(parent),
                parent == NONE ? 0 : pool.keyLo(parent),
                pool.depth(record),
                pool.engineHash(record));
    }

    long removed(EventKind cause) {
        return removed.of(cause);
    }

    EvictionPolicy policyOf(int record) {
        return policies.of(slabs.classId(pool.hostPage(record)));
    }

    private NamespaceEntry entryOf(int record) {
        return namespaces.byId(Identity.namespace(pool.identity(record)));
    }

    int depth(int record) {
        return pool.depth(record);
    }

    int state(int record) {
        return Control.state(pool.control(record));
    }

    private void state(int record, int state, int pins) {
        pool.state(record, state, pins);
    }
}
