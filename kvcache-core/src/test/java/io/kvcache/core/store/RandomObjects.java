package io.kvcache.core.store;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.PutOutcome;
import io.kvcache.core.identity.BlockKey;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.memory.SlotClass;
import io.kvcache.core.store.HostStore.ObjectSpec;
import io.kvcache.core.store.HostStore.PutReservation;
import io.kvcache.core.store.NamespaceRegistry.NamespaceEntry;
import io.kvcache.core.tree.RecordHandle;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.Objects;
import java.util.Random;

/// The operations on objects of a [RandomStoreRun].
final class RandomObjects {

    /// In the model the space of objects: their slots are pieces.
    private static final int SPACE = -1;

    private static final int KEYS = 16;
    private static final long[] EDGES = {1, 4095, 4096, 4097, 65_535, 65_536, 65_537, 1 << 20, (1 << 20) + 1};

    private final RandomStoreRun run;
    private final HostStore store;
    private final NamespaceEntry entry;
    private final long maxBytes;
    /// Says which object comes after which; that changes nothing that the model knows.
    private final Random order = new Random(1);

    RandomObjects(RandomStoreRun run) {
        this.run = run;
        store = run.store;
        entry = store.register(Namespace.objects("objects", "t"));
        maxBytes = Math.min(store.capacityBytes() / 2, 24 << 20);
    }

    private BlockKey anyKey() {
        return BlockKey.ofObject(entry.namespace(), new byte[] {(byte) run.random.nextInt(KEYS)});
    }

    private BlockKey someKey() {
        return BlockKey.ofObject(entry.namespace(), new byte[] {(byte) order.nextInt(KEYS)});
    }

    private int anySize() {
        int scale = run.random.nextInt(4);
        long bytes = scale == 0
                ? EDGES[run.random.nextInt(EDGES.length)]
                : run.random.nextLong(1, 1 + (maxBytes >> (8 * (scale - 1))));
        return (int) bytes;
    }

    void step() {
        if (order.nextInt(8) == 0) {
            store.linkObject(someKey(), order.nextInt(4) == 0 ? null : someKey());
        }
        if (order.nextInt(8) == 0) {
            var _ = store.hints().demote(entry, List.of(someKey(), someKey()));
        }
        int dice = run.random.nextInt(10);
        if (dice < 2) {
            store(anyKey(), run.random.nextInt(1, 1 + (int) SlotClass.OBJECT_SMALL_BYTES));
        } else if (dice < 5) {
            put(anyKey(), anySize());
        } else if (dice < 8) {
            get(anyKey());
        } else {
            drop(anyKey());
        }
    }

    private void put(BlockKey key, int bytes) {
        BlockKey after = order.nextBoolean() ? someKey() : null;
        PutReservation answer = run.counted(store.reserveObject(entry, new ObjectSpec(key, after, bytes), false));
        if (answer.outcome() == PutOutcome.NO_ROOM) {
            assertThat(run.idle())
                    .as("room for %d bytes in an idle store", bytes)
                    .isFalse();
        } else {
            assertThat(answer.outcome()).isEqualTo(PutOutcome.RESERVED);
            if (!run.has(key)) {
                run.model.evicted(key);
            }
            run.opened(new RandomStoreRun.Writer(answer.record(), run.model.open(key, null, SPACE, bytes)));
        }
    }

    /// In one turn: over the older one, where that is free, or in a slot of its own.
    private void store(BlockKey key, int bytes) {
        StoreModel.Entry written = run.model.open(key, null, SPACE, bytes);
        byte[] object = new byte[bytes];
        ContentStamps.write(written.content(), List.of(MemorySegment.ofArray(object)));
        PutReservation answer = run.counted(store.storeObject(entry, key, object, 0));
        if (answer.outcome() == PutOutcome.NO_ROOM) {
            run.model.abandon(written);
            assertThat(run.idle()).as("room for a page in an idle store").isFalse();
        } else {
            assertThat(answer.outcome()).isEqualTo(PutOutcome.RESERVED);
            assertThat(run.model.seal(written)).isTrue();
            assertThat(run.has(key)).isTrue();
        }
    }

    private void get(BlockKey key) {
        boolean found = run.has(key);
        long handle = store.lookup().pinKey(key.hi(), key.lo());
        assertThat(RecordHandle.isFound(handle)).isEqualTo(found);
        if (found) {
            StoreModel.Entry known = Objects.requireNonNull(run.model.get(key));
            assertThat(known.stage).isEqualTo(StoreModel.Stage.SEALED);
            assertThat(store.records().bytes(RecordHandle.record(handle))).isEqualTo(known.bytes);
            run.pinned(new RandomStoreRun.Pinned(RecordHandle.record(handle), List.of(known)));
        }
    }

    private void drop(BlockKey key) {
        boolean found = run.has(key);
        run.model.forget(key);
        assertThat(store.drop(key.hi(), key.lo())).isEqualTo(found ? 1 : 0);
        assertThat(run.has(key)).isFalse();
    }

    void dropSpace() {
        for (int number = 0; number < KEYS; number++) {
            run.model.forget(BlockKey.ofObject(entry.namespace(), new byte[] {(byte) number}));
        }
        store.dropAll(entry);
    }
}
