package io.kvcache.core.store;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.PutOutcome;
import io.kvcache.core.check.BlockContent;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockKey;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.memory.SlotClass;
import io.kvcache.core.store.HostStore.PutReservation;
import io.kvcache.core.store.NamespaceRegistry.NamespaceEntry;
import io.kvcache.core.tree.RecordHandle;
import io.kvcache.core.tree.RecordPool;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.SplittableRandom;

/// One thread of many on a store: puts, gets and drops at random, and checks every byte that it pins.
final class StoreWorker {

    private static final int KEYS = 12;
    private static final int MAX_OBJECT_BYTES = 3 << 20;

    /// State shared by all threads.
    record WorkerContext(HostStore store, List<TestNamespace> spaces, NamespaceEntry objects) {

        static WorkerContext open(HostStore store) {
            List<TestNamespace> spaces = List.of(
                    TestNamespace.register(store, TestNamespace.SIZES.get(0), 3),
                    TestNamespace.register(store, TestNamespace.SIZES.get(1), 3),
                    TestNamespace.register(store, TestNamespace.SIZES.get(2), 6));
            return new WorkerContext(store, spaces, store.register(Namespace.objects("objects", "t")));
        }
    }

    private final HostStore store;
    private final WorkerContext workerContext;
    private final long seed;
    private final SplittableRandom random;
    private long blocksRead;
    private long objectsRead;

    StoreWorker(WorkerContext workerContext, long seed) {
        this.workerContext = workerContext;
        this.seed = seed;
        store = workerContext.store();
        random = new SplittableRandom(seed);
    }

    long blocksRead() {
        return blocksRead;
    }

    long objectsRead() {
        return objectsRead;
    }

    void run(int operations) {
        for (int i = 0; i < operations; i++) {
            try {
                step();
            } catch (AssertionError | RuntimeException failed) {
                throw new AssertionError("seed " + seed + ", operation " + i, failed);
            }
        }
    }

    private void step() {
        TestNamespace testNamespace = workerContext.spaces().get(random.nextInt(3));
        BlockChain chain =
                testNamespace.chains().get(random.nextInt(testNamespace.chains().size()));
        int dice = random.nextInt(100);
        if (dice < 40) {
            get(testNamespace, chain);
        } else if (dice < 75) {
            put(testNamespace, chain);
        } else if (dice < 77) {
            int from = random.nextInt(chain.length());
            store.drop(chain.keyHi(from), chain.keyLo(from));
        } else if (dice < 78 && random.nextInt(20) == 0) {
            store.dropAll(random.nextInt(4) == 0 ? workerContext.objects() : testNamespace.entry());
        } else {
            object(BlockKey.ofObject(workerContext.objects().namespace(), new byte[] {(byte) random.nextInt(KEYS)}));
        }
    }

    /// Puts the next few blocks of a chain, as a request that computed them would.
    private void put(TestNamespace testNamespace, BlockChain chain) {
        int from = store.lookup().match(chain, chain.length());
        int to = Math.min(chain.length(), from + 1 + random.nextInt(4));
        for (int index = from; index < to; index++) {
            PutReservation putReservation = store.reserve(testNamespace.entry(), chain, index);
            if (putReservation.outcome() == PutOutcome.RESERVED) {
                finish(
                        putReservation.record(),
                        BlockContent.of(chain.key(index)),
                        List.of(bytes(putReservation.record(), testNamespace)));
            } else if (!putReservation.outcome().allowsNextBlock()) {
                return;
            }
        }
    }

    private void finish(int record, BlockContent content, List<MemorySegment> pieces) {
        if (random.nextInt(16) == 0) {
            store.abandon(record);
            return;
        }
        long at = 0;
        for (MemorySegment piece : pieces) {
            content.fill(at, piece);
            at += piece.byteSize();
        }
        store.seal(record, 0);
    }

    private void get(TestNamespace testNamespace, BlockChain chain) {
        long handle = store.lookup().pinDeepest(chain);
        if (!RecordHandle.isFound(handle)) {
            return;
        }
        RecordPool records = store.records();
        int deepest = RecordHandle.record(handle);
        int record = deepest;
        for (int index = records.depth(deepest); index >= 0; index--) {
            assertThat(records.keyHi(record)).isEqualTo(chain.keyHi(index));
            assertThat(records.keyLo(record)).isEqualTo(chain.keyLo(index));
            BlockContent.of(chain.key(index)).requireEqual(bytes(record, testNamespace));
            record = records.parent(record);
            blocksRead++;
        }
        assertThat(record).isEqualTo(RecordPool.NONE);
        store.lookup().unpin(deepest);
    }

    private MemorySegment bytes(int record, TestNamespace testNamespace) {
        return store.slotSegment(store.records().hostPage(record), testNamespace.blockBytes());
    }

    private void object(BlockKey key) {
        if (!store.tierPort().hasDisks() && random.nextInt(4) == 0) {
            int bytes = 1 + random.nextInt((int) SlotClass.OBJECT_SMALL_BYTES);
            byte[] object = new byte[bytes];
            BlockContent.of(key).withVersion(bytes).fill(0, MemorySegment.ofArray(object));
            store.storeObject(workerContext.objects(), key, object, 0);
            return;
        }
        if (random.nextBoolean()) {
            // The size is part of the content: a reader that knows it can tell one version from another.
            int bytes = 1 + random.nextInt(MAX_OBJECT_BYTES >> random.nextInt(10));
            PutReservation putReservation = store.reserveObject(workerContext.objects(), key, bytes);
            if (putReservation.outcome() == PutOutcome.RESERVED) {
                finish(
                        putReservation.record(),
                        BlockContent.of(key).withVersion(bytes),
                        store.segments(putReservation.record()));
            }
            return;
        }
        long handle = store.lookup().pinKey(key.hi(), key.lo());
        if (RecordHandle.isFound(handle)) {
            int record = RecordHandle.record(handle);
            BlockContent content =
                    BlockContent.of(key).withVersion(store.records().bytes(record));
            long at = 0;
            for (MemorySegment piece : store.segments(record)) {
                content.requireEqual(at, piece);
                at += piece.byteSize();
            }
            objectsRead++;
            store.lookup().unpin(record);
        }
    }
}
