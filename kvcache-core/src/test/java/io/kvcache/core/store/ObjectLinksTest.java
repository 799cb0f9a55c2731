package io.kvcache.core.store;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.PutOutcome;
import io.kvcache.core.SealOutcome;
import io.kvcache.core.identity.BlockKey;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.memory.ArenaMemory;
import io.kvcache.core.memory.SlabPool;
import io.kvcache.core.policy.PolicyKind;
import io.kvcache.core.store.HostStore.HostStoreConfig;
import io.kvcache.core.store.HostStore.ObjectSpec;
import io.kvcache.core.store.HostStore.PutReservation;
import io.kvcache.core.store.NamespaceRegistry.NamespaceEntry;
import io.kvcache.core.tree.RecordHandle;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/// Objects that are read one after another, in a store with room for as many as it has slots.
final class ObjectLinksTest {

    private static final Namespace SPACE = Namespace.objects("objects", "t");
    private static final int BYTES = 1 << 20;
    private static final int SLOTS = (int) (SlabPool.MIN_BYTES / BYTES);

    private static BlockKey key(int number) {
        return BlockKey.ofObject(SPACE, new byte[] {(byte) (number >> 8), (byte) number});
    }

    /// A store and the objects in it.
    private static final class Shelf implements AutoCloseable {

        private final HostStore store;
        private final NamespaceEntry entry;

        Shelf(PolicyKind policy) {
            store = new HostStore(new HostStoreConfig(SlabPool.MIN_BYTES, 1000, policy, 64), ArenaMemory.source());
            entry = store.register(SPACE);
        }

        void put(int number, @Nullable Integer after) {
            BlockKey before = after == null ? null : key(after);
            PutReservation putReservation =
                    store.reserveObject(entry, new ObjectSpec(key(number), before, BYTES), false);
            assertThat(putReservation.outcome()).isEqualTo(PutOutcome.RESERVED);
            assertThat(store.seal(putReservation.record(), 0)).isEqualTo(SealOutcome.SEALED);
            store.validate();
        }

        boolean has(int number) {
            return RecordHandle.isFound(
                    store.lookup().find(key(number).hi(), key(number).lo()));
        }

        void use(int number) {
            long handle = store.lookup().pinKey(key(number).hi(), key(number).lo());
            store.lookup().unpin(RecordHandle.record(handle));
        }

        boolean follow(int number, @Nullable Integer after) {
            boolean follows = store.linkObject(key(number), after == null ? null : key(after));
            store.validate();
            return follows;
        }

        @Override
        public void close() {
            store.validate();
            store.close();
        }
    }

    @ParameterizedTest
    @EnumSource(PolicyKind.class)
    void givenASequenceOfObjects_whenOthersWantRoom_thenNoneGoesBeforeThoseBehindIt(PolicyKind policy) {
        try (Shelf shelf = new Shelf(policy)) {
            for (int i = 0; i < SLOTS; i++) {
                shelf.put(i, i % 8 == 0 ? null : i - 1);
            }
            for (int other = 0; other < 3 * SLOTS; other++) {
                shelf.put(1000 + other, null);
                for (int i = 1; i < SLOTS; i++) {
                    assertThat(i % 8 == 0 || !shelf.has(i) || shelf.has(i - 1))
                            .as("%d is here and %d is not", i, i - 1)
                            .isTrue();
                }
            }
        }
    }

    @ParameterizedTest
    @EnumSource(
            value = PolicyKind.class,
            names = {"LRU", "IMPORTANCE"})
    void givenASequence_whenItsLastIsUsed_thenAllOfItOutlivesAnother(PolicyKind policy) {
        try (Shelf shelf = new Shelf(policy)) {
            for (int i = 0; i < SLOTS; i++) {
                shelf.put(i, i % 16 == 0 ? null : i - 1);
            }
            for (int i = 0; i < 16; i++) {
                shelf.use(i);
            }
            for (int other = 0; other < 16; other++) {
                shelf.put(1000 + other, other == 0 ? null : 999 + other);
            }
            assertThat(shelf.has(16)).isFalse();
            for (int i = 0; i < 16; i++) {
                assertThat(shelf.has(i)).as("%d", i).isTrue();
            }
        }
    }

    @ParameterizedTest
    @EnumSource(
            value = PolicyKind.class,
            names = {"LRU", "IMPORTANCE"})
    void givenObjectsInACircle_whenLinked_thenTheCircleStaysOpenAndAllCanGo(PolicyKind policy) {
        try (Shelf shelf = new Shelf(policy)) {
            for (int i = 0; i < 4; i++) {
                shelf.put(i, null);
            }
            assertThat(shelf.follow(1, 0)).isTrue();
            assertThat(shelf.follow(2, 1)).isTrue();
            assertThat(shelf.follow(0, 2)).isFalse();
            assertThat(shelf.follow(3, 3)).isFalse();
            assertThat(shelf.follow(3, 77)).isFalse();
            for (int other = 0; other < 6 * SLOTS; other++) {
                shelf.put(1000 + other, null);
            }
            assertThat(shelf.has(0) || shelf.has(1) || shelf.has(2)).isFalse();
        }
    }

    @ParameterizedTest
    @EnumSource(
            value = PolicyKind.class,
            names = {"LRU", "IMPORTANCE"})
    void givenASequence_whenItsFirstIsDroppedOrReplaced_thenTheOthersStayAndGoOneByOne(PolicyKind policy) {
        try (Shelf shelf = new Shelf(policy)) {
            for (int i = 0; i < 6; i++) {
                shelf.put(i, i % 3 == 0 ? null : i - 1);
            }
            assertThat(shelf.store.drop(key(0).hi(), key(0).lo())).isEqualTo(1);
            shelf.put(3, null);
            shelf.store.validate();
            for (int i = 1; i < 6; i++) {
                assertThat(shelf.has(i)).as("%d", i).isTrue();
            }
            assertThat(shelf.follow(4, null)).isTrue();
            for (int other = 0; other < 6 * SLOTS; other++) {
                shelf.put(1000 + other, null);
            }
            assertThat(shelf.has(1) || shelf.has(5)).isFalse();
        }
    }
}
