package io.kvcache.tiers;

import io.kvcache.core.AccessListener;
import io.kvcache.core.KvCache;
import io.kvcache.core.ObjectCatalog;
import io.kvcache.core.ObjectView;
import io.kvcache.core.ObjectWriter;
import io.kvcache.core.PutOutcome;
import io.kvcache.core.SealOutcome;
import io.kvcache.core.SegmentVisitor;
import io.kvcache.core.engine.EngineValueKey;
import io.kvcache.core.identity.BlockKey;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.memory.ChunkedCrc;
import io.kvcache.core.memory.SlotClass;
import io.kvcache.core.store.HostStore;
import io.kvcache.core.store.HostStore.ObjectSpec;
import io.kvcache.core.store.HostStore.PutReservation;
import io.kvcache.core.store.NamespaceRegistry.NamespaceEntry;
import io.kvcache.core.store.RecordLookup;
import io.kvcache.core.tree.RecordHandle;
import io.kvcache.core.tree.RecordPool;
import io.kvcache.tiers.SlotWriter.RoomWaiter;
import io.kvcache.tiers.StoreContext.AccessListeners;
import io.kvcache.tiers.StoreContext.OpenHandles.OpenHandle;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Executor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import org.jspecify.annotations.Nullable;

/// Opaque objects by byte-string key, over the store's records.
final class ObjectOperations {

    /// Between two times that uses of objects are told to the policies for no other reason than their number.
    private static final long DRAIN_INTERVAL_NANOS = TimeUnit.MILLISECONDS.toNanos(2);

    private static final int UNLIKELY_SUM = 0x5eed_1e55;

    private final StoreContext storeContext;
    private final HostStore store;
    private final RecordLookup lookup;
    private final RoomWaiter roomWaiter;
    private final DiskLoader diskLoader;
    private final Hints hints;
    private final AccessListeners listeners;
    private volatile long lastDrain;

    ObjectOperations(StoreContext storeContext, RoomWaiter roomWaiter, DiskLoader diskLoader, Hints hints) {
        listeners = storeContext.listeners();
        this.hints = hints;
        this.diskLoader = diskLoader;
        this.storeContext = storeContext;
        this.store = storeContext.store();
        lookup = store.lookup();
        this.roomWaiter = roomWaiter;
    }

    /// @param after the key of the object before it, or null
    ObjectWriter put(Namespace namespace, byte[] key, byte @Nullable [] after, long bytes, long timeoutNanos) {
        if (bytes < 1 || bytes > KvCache.MAX_OBJECT_BYTES) {
            throw new IllegalArgumentException(
                    "an object of " + bytes + " bytes; it takes 1 to " + KvCache.MAX_OBJECT_BYTES);
        }
        NamespaceEntry entry = lookup.require(namespace);
        ObjectSpec object = new ObjectSpec(
                BlockKey.ofObject(namespace, key),
                after == null ? null : BlockKey.ofObject(namespace, after),
                Math.toIntExact(bytes + key.length),
                EngineValueKey.hashIn(namespace, key));
        OpenHandle openHandle = storeContext.openHandles().acquire(namespace);
        try {
            RoomWaiter.Wait wait = roomWaiter.begin(timeoutNanos);
            PutReservation putReservation;
            do {
                putReservation = store.reserveObject(entry, object, wait.isSparing());
            } while (wait.repeats(putReservation));
            if (putReservation.outcome() == PutOutcome.RESERVED) {
                listeners.onPut(namespace, object.key(), object.after(), object.bytes(), putReservation.replaces());
            }
            return new HostObjectWriter(new SlotWriter(storeContext, openHandle, putReservation), key, bytes);
        } catch (RuntimeException failed) {
            storeContext.openHandles().release(openHandle);
            throw failed;
        }
    }

    /// Returns whether an object is stored faster at once than through a writer.
    boolean isStoredAtOnce(byte[] key, long bytes) {
        return bytes > 0
                && bytes + key.length <= SlotClass.OBJECT_SMALL_BYTES
                && !store.tierPort().hasDisks();
    }

    /// Stores a small object whose bytes are at hand.
    ///
    /// @param value such as [#isStoredAtOnce] asks for
    /// @return whether it is stored
    boolean storeAtOnce(Namespace namespace, byte[] key, MemorySegment value, long timeoutNanos) {
        NamespaceEntry entry = lookup.require(namespace);
        BlockKey name = BlockKey.ofObject(namespace, key);
        int valueBytes = (int) value.byteSize();
        byte[] object = new byte[valueBytes + key.length];
        MemorySegment.copy(value, ValueLayout.JAVA_BYTE, 0, object, 0, valueBytes);
        System.arraycopy(key, 0, object, valueBytes, key.length);
        long engineHash = EngineValueKey.hashIn(namespace, key);
        OpenHandle openHandle = storeContext.openHandles().acquire(namespace);
        try {
            RoomWaiter.Wait wait = roomWaiter.begin(timeoutNanos);
            PutReservation stored;
            do {
                stored = store.storeObject(entry, name, object, engineHash);
            } while (wait.repeats(stored));
            if (stored.outcome() != PutOutcome.RESERVED) {
                return false;
            }
            if (stored.replaces()) {
                noteUse(lookup.records().handle(stored.record()));
            }
            listeners.onPut(namespace, name, null, object.length, stored.replaces());
            return true;
        } finally {
            storeContext.openHandles().release(openHandle);
        }
    }

    /// Reads what the next look-ups need.
    void warm(Namespace namespace, List<byte[]> keys) {
        OpenHandle openHandle = storeContext.openHandles().acquire(namespace);
        try {
            if (lookup.warm(BlockKey.ofObjectsAhead(namespace, keys)) == UNLIKELY_SUM) {
                Thread.onSpinWait(); // so that the reads are asked for
            }
        } finally {
            storeContext.openHandles().release(openHandle);
        }
    }

    boolean linkAfter(Namespace namespace, byte[] key, byte @Nullable [] after) {
        lookup.require(namespace);
        return store.linkObject(
                BlockKey.ofObject(namespace, key), after == null ? null : BlockKey.ofObject(namespace, after));
    }

    /// Pins a resident object, without counting a use.
    @Nullable
    ObjectView getResident(Namespace namespace, byte[] key) {
        NamespaceEntry entry = lookup.require(namespace);
        BlockKey record = BlockKey.ofObject(namespace, key);
        OpenHandle openHandle = storeContext.openHandles().acquire(namespace);
        StoredObject stored = storedIfMatching(entry, lookup.peekKey(record.hi(), record.lo()), key);
        if (stored == null) {
            storeContext.openHandles().release(openHandle);
            return null;
        }
        return new HostObjectView(storeContext, openHandle, stored);
    }

    @Nullable
    ObjectView get(Namespace namespace, byte[] key, long timeoutNanos) {
        ObjectRequest objectRequest = newRequest(namespace, key);
        long handle = find(objectRequest);
        if (!RecordHandle.isFound(handle) && timeoutNanos > 0) {
            handle = diskLoader.startObjectLoad(objectRequest.key);
            boolean comes =
                    RecordHandle.isFound(handle) && diskLoader.awaitObject(RecordHandle.record(handle), timeoutNanos);
            handle = comes ? handle : RecordHandle.MISS;
        }
        return view(objectRequest, handle);
    }

    CompletionStage<@Nullable ObjectView> fetch(Namespace namespace, byte[] key, long timeoutNanos, Executor executor) {
        ObjectRequest objectRequest = newRequest(namespace, key);
        long handle = find(objectRequest);
        long begun = RecordHandle.isFound(handle) ? RecordHandle.MISS : diskLoader.startObjectLoad(objectRequest.key);
        if (!RecordHandle.isFound(begun)) {
            return view(objectRequest, CompletableFuture.completedFuture(handle), executor);
        }
        CompletionStage<Long> arrival = diskLoader
                .awaitObjectAsync(RecordHandle.record(begun), timeoutNanos)
                .thenApply(here -> here ? begun : RecordHandle.MISS);
        return view(objectRequest, arrival, executor);
    }

    /// Once a handle is known, on an executor; of one that takes nothing any more everything is given back.
    private CompletionStage<@Nullable ObjectView> view(
            ObjectRequest objectRequest, CompletionStage<Long> arrival, Executor executor) {
        CompletableFuture<@Nullable ObjectView> answer = new CompletableFuture<>();
        arrival.whenComplete((handle, failed) -> {
            long known = failed == null ? handle : RecordHandle.MISS;
            try {
                executor.execute(() -> view(objectRequest, known, answer));
            } catch (RuntimeException | Error refused) {
                release(objectRequest, known);
                // Not here: this may be a disk's thread, and what hangs on the answer is the caller's.
                var _ = CompletableFuture.runAsync(() -> answer.completeExceptionally(refused));
            }
        });
        return answer;
    }

    private void view(ObjectRequest objectRequest, long handle, CompletableFuture<@Nullable ObjectView> answer) {
        try {
            ObjectView view = view(objectRequest, handle);
            if (!answer.complete(view) && view != null) {
                view.close(); // the caller has given up meanwhile
            }
        } catch (RuntimeException | Error failed) {
            answer.completeExceptionally(failed);
        }
    }

    private void release(ObjectRequest objectRequest, long handle) {
        if (RecordHandle.isFound(handle)) {
            lookup.unpin(RecordHandle.record(handle));
        }
        storeContext.openHandles().release(objectRequest.openHandle);
    }

    /// An object that a caller asks for; the request holds the store open.
    private static final class ObjectRequest {
        private final NamespaceEntry entry;
        private final BlockKey key;
        private final byte[] bytes;
        private final OpenHandle openHandle;

        ObjectRequest(NamespaceEntry entry, BlockKey key, byte[] bytes, OpenHandle openHandle) {
            this.entry = entry;
            this.key = key;
            this.bytes = bytes;
            this.openHandle = openHandle;
        }
    }

    private ObjectRequest newRequest(Namespace namespace, byte[] key) {
        NamespaceEntry entry = lookup.require(namespace);
        BlockKey record = BlockKey.ofObject(namespace, key);
        return new ObjectRequest(entry, record, key, storeContext.openHandles().acquire(namespace));
    }

    private long find(ObjectRequest objectRequest) {
        long handle = lookup.peekKey(objectRequest.key.hi(), objectRequest.key.lo());
        if (RecordHandle.isFound(handle)) {
            noteUse(handle);
        }
        return handle;
    }

    /// An object is used. The policies hear of it soon; of more than some hundred thousand a second a thread, a part
    /// is lost, as the order would take a fourth of the time of small reads.
    private void noteUse(long handle) {
        if (!lookup.noteUse(handle)) {
            return;
        }
        long now = storeContext.clock().nanos();
        if (now - lastDrain >= DRAIN_INTERVAL_NANOS) {
            lastDrain = now;
            lookup.tryDrainUses();
        }
    }

    /// Takes over the pin of a handle, if there is one, and the hold.
    private @Nullable ObjectView view(ObjectRequest objectRequest, long handle) {
        StoredObject stored = storedIfMatching(objectRequest.entry, handle, objectRequest.bytes);
        objectRequest.entry.countObjectRequest(stored != null);
        listeners.onAccess(
                AccessListener.LookupKind.GET,
                objectRequest.entry.namespace(),
                objectRequest.key,
                stored == null ? -1 : stored.bytes());
        if (stored == null) {
            storeContext.openHandles().release(objectRequest.openHandle);
            return null;
        }
        return new HostObjectView(storeContext, objectRequest.openHandle, stored);
    }

    /// What a handle's record holds, if that has this very key; else its pin is given back.
    private @Nullable StoredObject storedIfMatching(NamespaceEntry entry, long handle, byte[] key) {
        if (!RecordHandle.isFound(handle)) {
            return null;
        }
        int record = RecordHandle.record(handle);
        long bytes = lookup.records().bytes(record) - key.length;
        StoredObject stored = new StoredObject(lookup, record, bytes);
        if (bytes > 0 && lookup.isObjectOf(entry, record) && stored.hasKey(key)) {
            return stored;
        }
        lookup.unpin(record);
        return null;
    }

    boolean contains(Namespace namespace, byte[] key) {
        lookup.require(namespace);
        BlockKey wanted = BlockKey.ofObject(namespace, key);
        boolean here = isKnown(wanted);
        listeners.onAccess(AccessListener.LookupKind.LOOK, namespace, wanted, here ? 0 : -1);
        return here;
    }

    private boolean isKnown(BlockKey key) {
        return RecordHandle.isFound(lookup.findKnown(key.hi(), key.lo()));
    }

    boolean drop(Namespace namespace, byte[] key) {
        lookup.require(namespace);
        BlockKey wanted = BlockKey.ofObject(namespace, key);
        boolean dropped = store.drop(wanted.hi(), wanted.lo()) > 0;
        if (dropped) {
            hints.onObjectDropped(wanted);
        }
        return dropped;
    }

    /// The objects of one namespace of a store.
    record HostObjectCatalog(HostStore store, NamespaceEntry namespace, Hints hints) implements ObjectCatalog {

        @Override
        public List<Entry> list() {
            return store.objects(namespace);
        }

        @Override
        public boolean contains(BlockKey digest) {
            long handle = store.lookup().findKnown(digest.hi(), digest.lo());
            return RecordHandle.isFound(handle) && isOwn(handle);
        }

        @Override
        public boolean drop(BlockKey digest) {
            return !isForeign(digest) && unpinIfDropped(digest, store.drop(digest.hi(), digest.lo()) > 0);
        }

        @Override
        public boolean dropForQuota(BlockKey digest) {
            return !isForeign(digest) && unpinIfDropped(digest, store.dropForQuota(digest.hi(), digest.lo()) > 0);
        }

        private boolean isOwn(long handle) {
            return store.lookup().isObjectOf(namespace, RecordHandle.record(handle));
        }

        /// A caller that knows digests could name a block, or an object of another namespace. A record that
        /// changes hands during the check may give either answer.
        private boolean isForeign(BlockKey digest) {
            long handle = store.lookup().findKnown(digest.hi(), digest.lo());
            return RecordHandle.isFound(handle) && !isOwn(handle);
        }

        private boolean unpinIfDropped(BlockKey digest, boolean dropped) {
            if (dropped) {
                hints.onObjectDropped(digest);
            }
            return dropped;
        }
    }

    /// Writes one object into its slots, and its key behind it.
    ///
    /// The checksum protects what leaves memory. A store with a disk has it taken as the bytes arrive; one without
    /// leaves it until a caller asks for it ([StoredObject#checksum()]), as a client that writes over a fast link
    /// would wait for it.
    private static final class HostObjectWriter implements ObjectWriter {

        private final SlotWriter slotWriter;
        private final long valueBytes;
        private final StoredObject stored;
        private final boolean deferChecksum;
        private long checksummedBytes;

        HostObjectWriter(SlotWriter slotWriter, byte[] key, long valueBytes) {
            this.slotWriter = slotWriter;
            this.valueBytes = valueBytes;
            stored = new StoredObject(slotWriter.store().lookup(), slotWriter.record(), valueBytes);
            deferChecksum = !slotWriter.store().tierPort().hasDisks();
            if (slotWriter.outcome() == PutOutcome.RESERVED) {
                stored.writeKey(key);
            }
        }

        @Override
        public PutOutcome outcome() {
            return slotWriter.outcome();
        }

        @Override
        public List<MemorySegment> segments() {
            slotWriter.requireOpen();
            List<MemorySegment> pieces = stored.valueSegments();
            pieces.replaceAll(slotWriter::bind);
            return pieces;
        }

        @Override
        public void copyFrom(MemorySegment source) {
            slotWriter.requireOpen();
            if (source.byteSize() != valueBytes) {
                throw new IllegalArgumentException(
                        "the source has " + source.byteSize() + " bytes; the room is for " + valueBytes);
            }
            if (deferChecksum) {
                stored.lookup.copyFrom(stored.record, 0, source);
            } else {
                slotWriter.copyIn(source, stored.valueSegments());
            }
            checksummedBytes = valueBytes;
        }

        @Override
        public void advance(long bytes) {
            slotWriter.requireOpen();
            Objects.checkFromIndexSize(checksummedBytes, bytes, valueBytes);
            sum(bytes);
        }

        @Override
        public SealOutcome seal() {
            slotWriter.requireOpen();
            if (deferChecksum) {
                return slotWriter.seal(RecordPool.NO_CHECKSUM);
            }
            sum(stored.bytes() - checksummedBytes);
            return slotWriter.seal();
        }

        private void sum(long bytes) {
            if (!deferChecksum) {
                stored.visit(
                        checksummedBytes,
                        bytes,
                        (memory, from, length) -> slotWriter.addToChecksum(memory.asSlice(from, length)));
            }
            checksummedBytes += bytes;
        }

        @Override
        public SealOutcome seal(int checksum) {
            return slotWriter.seal(checksum);
        }

        @Override
        public void close() {
            slotWriter.close();
        }
    }

    /// A pinned object in host memory.
    private static final class HostObjectView implements ObjectView {

        private final StoreContext storeContext;
        private final OpenHandle openHandle;
        private final StoredObject stored;
        private final @Nullable Arena scope;
        private final AtomicBoolean closed = new AtomicBoolean();

        /// Takes over a pin and a hold.
        HostObjectView(StoreContext storeContext, OpenHandle openHandle, StoredObject stored) {
            this.storeContext = storeContext;
            this.openHandle = openHandle;
            this.stored = stored;
            scope = storeContext.openScope();
        }

        @Override
        public long bytes() {
            return stored.valueBytes();
        }

        @Override
        public void visit(long offset, long bytes, SegmentVisitor each) {
            requireOpen();
            Objects.checkFromIndexSize(offset, bytes, stored.valueBytes());
            MemorySegment readable =
                    StoreContext.bind(scope, stored.lookup().memory()).asReadOnly();
            stored.visit(offset, bytes, (_, from, length) -> each.visitSegment(readable, from, length));
        }

        @Override
        public int checksum() {
            requireOpen();
            return stored.checksum();
        }

        @Override
        public long handle() {
            requireOpen();
            return stored.lookup().records().handle(stored.record());
        }

        @Override
        public void copyTo(long offset, long bytes, MemorySegment target) {
            requireOpen();
            Objects.checkFromIndexSize(offset, bytes, stored.valueBytes());
            Objects.checkFromIndexSize(0, bytes, target.byteSize());
            stored.lookup.copyTo(stored.record, offset, bytes, target);
        }

        private void requireOpen() {
            if (closed.get()) {
                throw new IllegalStateException("the view is closed");
            }
        }

        @Override
        public boolean isValid() {
            return true;
        }

        @Override
        public void close() {
            if (!closed.compareAndSet(false, true)) {
                return;
            }
            try {
                StoreContext.close(scope);
            } finally {
                stored.lookup().unpin(stored.record());
                storeContext.openHandles().release(openHandle);
            }
        }
    }

    /// How an object lies in its slots: the value, then the key.
    ///
    /// The key is kept so that a look-up can be sure of what it found, and so that keys can be listed.
    ///
    /// @param record pinned or reserved by the owner of this view
    /// @param valueBytes size of the value
    record StoredObject(RecordLookup lookup, int record, long valueBytes) {

        /// Shows where a range of value and key lies.
        void visit(long offset, long bytes, SegmentVisitor each) {
            lookup.visit(record, offset, bytes, each);
        }

        /// The value's memory, in order; a list of the caller's own.
        List<MemorySegment> valueSegments() {
            List<MemorySegment> pieces = new ArrayList<>(1);
            visit(0, valueBytes, (memory, from, length) -> pieces.add(memory.asSlice(from, length)));
            return pieces;
        }

        /// Size of value and key together.
        long bytes() {
            return lookup.records().bytes(record);
        }

        /// The checksum over value and key, computed now if it was not before. Several may do so at once; all find the
        /// same.
        int checksum() {
            int known = lookup.records().checksum(record);
            if (known != RecordPool.NO_CHECKSUM) {
                return known;
            }
            ChunkedCrc crc = new ChunkedCrc();
            visit(0, bytes(), (memory, from, length) -> crc.update(memory.asSlice(from, length)));
            int sum = crc.value();
            lookup.records().checksum(record, sum);
            return sum;
        }

        void writeKey(byte[] key) {
            lookup.copyFrom(record, valueBytes, MemorySegment.ofArray(key));
        }

        boolean hasKey(byte[] wanted) {
            return bytes() - valueBytes == wanted.length && lookup.hasBytes(record, valueBytes, wanted);
        }
    }
}
