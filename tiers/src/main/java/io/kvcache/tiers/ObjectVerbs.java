package io.kvcache.tiers;

import io.kvcache.core.AccessListener;
import io.kvcache.core.KvCache;
import io.kvcache.core.ObjectView;
import io.kvcache.core.ObjectWriter;
import io.kvcache.core.PutOutcome;
import io.kvcache.core.identity.BlockKey;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.store.HostStore;
import io.kvcache.core.store.NamespaceEntry;
import io.kvcache.core.store.ObjectSpec;
import io.kvcache.core.store.PutReservation;
import io.kvcache.core.tree.RecordHandle;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Executor;
import org.jspecify.annotations.Nullable;

/// Opaque objects by byte-string key, over the store's records.
final class ObjectVerbs {

    private final HostTable.Source source;
    private final HostStore store;
    private final Waiting waiting;
    private final Onboarding onboarding;
    private final Hints hints;
    private final UseListeners listeners;

    ObjectVerbs(HostTable.Source source, Waiting waiting, Onboarding onboarding, Hints hints, UseListeners listeners) {
        this.listeners = listeners;
        this.hints = hints;
        this.onboarding = onboarding;
        this.source = source;
        this.store = source.store();
        this.waiting = waiting;
    }

    /// @param after the key of the object before it, or null
    ObjectWriter put(Namespace namespace, byte[] key, byte @Nullable [] after, long bytes, long timeoutNanos) {
        if (bytes < 1 || bytes > KvCache.MAX_OBJECT_BYTES) {
            throw new IllegalArgumentException(
                    "an object of " + bytes + " bytes; it takes 1 to " + KvCache.MAX_OBJECT_BYTES);
        }
        NamespaceEntry entry = store.require(namespace);
        ObjectSpec object = new ObjectSpec(
                BlockKey.ofObject(namespace, key),
                after == null ? null : BlockKey.ofObject(namespace, after),
                Math.toIntExact(bytes + key.length));
        Hold hold = source.holders().enter(namespace);
        try {
            PutReservation reserved = waiting.reserve(
                    timeoutNanos, sparing -> hints.room(() -> store.reserveObject(entry, object, sparing)));
            if (reserved.outcome() == PutOutcome.RESERVED) {
                listeners.put(namespace, object.key(), object.after(), object.bytes(), reserved.replaces());
            }
            return new HostObjectWriter(new Filling(source, hold, reserved), key, bytes);
        } catch (RuntimeException failed) {
            source.holders().leave(hold);
            throw failed;
        }
    }

    boolean follow(Namespace namespace, byte[] key, byte @Nullable [] after) {
        store.require(namespace);
        return store.linkObject(
                BlockKey.ofObject(namespace, key), after == null ? null : BlockKey.ofObject(namespace, after));
    }

    /// Pins what is resident, which is no use of it.
    @Nullable
    ObjectView hold(Namespace namespace, byte[] key) {
        NamespaceEntry entry = store.require(namespace);
        BlockKey record = BlockKey.ofObject(namespace, key);
        Hold hold = source.holders().enter(namespace);
        StoredObject stored = stored(entry, store.lookup().peekKey(record.hi(), record.lo()), key);
        if (stored == null) {
            source.holders().leave(hold);
            return null;
        }
        return new HostObjectView(source, hold, stored);
    }

    @Nullable
    ObjectView get(Namespace namespace, byte[] key, long timeoutNanos) {
        Wanted wanted = wanted(namespace, key);
        long handle = find(wanted);
        if (!RecordHandle.isFound(handle) && timeoutNanos > 0) {
            handle = onboarding.beginObject(wanted.key);
            boolean comes =
                    RecordHandle.isFound(handle) && onboarding.arrives(RecordHandle.record(handle), timeoutNanos);
            handle = comes ? handle : RecordHandle.MISS;
        }
        return view(wanted, handle);
    }

    CompletionStage<@Nullable ObjectView> fetch(Namespace namespace, byte[] key, long timeoutNanos, Executor executor) {
        Wanted wanted = wanted(namespace, key);
        long handle = find(wanted);
        long begun = RecordHandle.isFound(handle) ? RecordHandle.MISS : onboarding.beginObject(wanted.key);
        if (!RecordHandle.isFound(begun)) {
            return view(wanted, CompletableFuture.completedFuture(handle), executor);
        }
        CompletionStage<Long> arrival = onboarding
                .arrival(RecordHandle.record(begun), timeoutNanos)
                .thenApply(here -> here ? begun : RecordHandle.MISS);
        return view(wanted, arrival, executor);
    }

    /// Once a handle is known, on an executor; of one that takes nothing any more everything is given back.
    private CompletionStage<@Nullable ObjectView> view(
            Wanted wanted, CompletionStage<Long> arrival, Executor executor) {
        CompletableFuture<@Nullable ObjectView> answer = new CompletableFuture<>();
        arrival.whenComplete((handle, failed) -> {
            long known = failed == null ? handle : RecordHandle.MISS;
            try {
                executor.execute(() -> view(wanted, known, answer));
            } catch (RuntimeException | Error refused) {
                letGo(wanted, known);
                // Not here: this may be a disk's thread, and what hangs on the answer is the caller's.
                var _ = CompletableFuture.runAsync(() -> answer.completeExceptionally(refused));
            }
        });
        return answer;
    }

    private void view(Wanted wanted, long handle, CompletableFuture<@Nullable ObjectView> answer) {
        try {
            ObjectView view = view(wanted, handle);
            if (!answer.complete(view) && view != null) {
                view.close(); // whoever asked has given up meanwhile
            }
        } catch (RuntimeException | Error failed) {
            answer.completeExceptionally(failed);
        }
    }

    private void letGo(Wanted wanted, long handle) {
        if (RecordHandle.isFound(handle)) {
            store.lookup().unpin(RecordHandle.record(handle));
        }
        source.holders().leave(wanted.hold);
    }

    /// An object that somebody asks for, and holds the store open for.
    private static final class Wanted {
        private final NamespaceEntry entry;
        private final BlockKey key;
        private final byte[] bytes;
        private final Hold hold;

        Wanted(NamespaceEntry entry, BlockKey key, byte[] bytes, Hold hold) {
            this.entry = entry;
            this.key = key;
            this.bytes = bytes;
            this.hold = hold;
        }
    }

    private Wanted wanted(Namespace namespace, byte[] key) {
        NamespaceEntry entry = store.require(namespace);
        BlockKey record = BlockKey.ofObject(namespace, key);
        return new Wanted(entry, record, key, source.holders().enter(namespace));
    }

    private long find(Wanted wanted) {
        return store.lookup().pinKey(wanted.key.hi(), wanted.key.lo());
    }

    /// Takes over the pin of a handle, if there is one, and the hold.
    private @Nullable ObjectView view(Wanted wanted, long handle) {
        StoredObject stored = stored(wanted.entry, handle, wanted.bytes);
        wanted.entry.countObjectRequest(stored != null);
        listeners.asked(
                AccessListener.LookupKind.GET,
                wanted.entry.namespace(),
                wanted.key,
                stored == null ? -1 : stored.bytes());
        if (stored == null) {
            source.holders().leave(wanted.hold);
            return null;
        }
        return new HostObjectView(source, wanted.hold, stored);
    }

    /// What a handle's record holds, if that has this very key; else its pin is given back.
    private @Nullable StoredObject stored(NamespaceEntry entry, long handle, byte[] key) {
        if (!RecordHandle.isFound(handle)) {
            return null;
        }
        int record = RecordHandle.record(handle);
        long bytes = store.records().bytes(record) - key.length;
        StoredObject stored = new StoredObject(store, record, bytes);
        if (bytes > 0 && store.lookup().isObjectOf(entry, record) && stored.hasKey(key)) {
            return stored;
        }
        store.lookup().unpin(record);
        return null;
    }

    boolean contains(Namespace namespace, byte[] key) {
        store.require(namespace);
        BlockKey wanted = BlockKey.ofObject(namespace, key);
        boolean here = isKnown(wanted);
        listeners.asked(AccessListener.LookupKind.CONTAINS, namespace, wanted, here ? 0 : -1);
        return here;
    }

    private boolean isKnown(BlockKey key) {
        return RecordHandle.isFound(store.lookup().findKnown(key.hi(), key.lo()));
    }

    boolean drop(Namespace namespace, byte[] key) {
        store.require(namespace);
        BlockKey wanted = BlockKey.ofObject(namespace, key);
        boolean dropped = store.drop(wanted.hi(), wanted.lo()) > 0;
        if (dropped) {
            hints.dropped(wanted);
        }
        return dropped;
    }
}
