package io.kvcache.core.contract;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.KvCache;
import io.kvcache.core.LocalKvCache;
import io.kvcache.core.ObjectCatalog;
import io.kvcache.core.ObjectView;
import io.kvcache.core.ObjectWriter;
import io.kvcache.core.PutOutcome;
import io.kvcache.core.SealOutcome;
import io.kvcache.core.identity.BlockKey;
import io.kvcache.core.identity.Namespace;
import java.util.Objects;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/// Contract of every [LocalKvCache] for objects, beyond that of every cache: holds, sequences, look-ups by digest.
public abstract class LocalObjectContract extends KvCacheContract {

    /// With its key, an object fills one slot of 1 MiB, as a block does.
    private static final int BYTES = (1 << 20) - 100;

    protected LocalObjectContract(CacheUnderTest.Factory factory) {
        super(factory);
    }

    private LocalKvCache local() {
        return (LocalKvCache) cache();
    }

    private static byte[] key(int number) {
        return new byte[] {(byte) number, 1};
    }

    private void put(int number, @Nullable Integer after) {
        byte[] previous = after == null ? null : key(after);
        try (ObjectWriter writer = local().putObject(OBJECTS, key(number), previous, BYTES, KvCache.NO_WAIT)) {
            assertThat(writer.outcome()).isEqualTo(PutOutcome.RESERVED);
            writer.copyFrom(content(OBJECTS, key(number)).toHeapSegment(BYTES));
            assertThat(writer.seal()).isEqualTo(SealOutcome.SEALED);
        }
    }

    private boolean isHere(int number) {
        return cache().containsObject(OBJECTS, key(number));
    }

    private void fillWith(int firstSeed, int blocks) {
        for (int i = 0; i < blocks; i++) {
            stored(chain(firstSeed + i, 1));
        }
    }

    @Test
    @Tag(ESSENTIAL)
    void givenAResidentObject_whenHeld_thenItsBytesAndItIsPinned() {
        put(1, null);
        try (ObjectView held = Objects.requireNonNull(local().holdObject(OBJECTS, key(1)))) {
            requireContent(held, content(OBJECTS, key(1)), BYTES);
            fillWith(100, 100);
            assertThat(isHere(1)).as("pinned").isTrue();
            requireContent(held, content(OBJECTS, key(1)), BYTES);
        }
        fillWith(300, 100);
        assertThat(local().holdObject(OBJECTS, key(2))).as("never put").isNull();
    }

    @Test
    void givenAnOldObject_whenHeldOnly_thenItIsNotUsedAndGoesFirst() {
        put(1, null);
        put(2, null);
        fillWith(100, 40);
        Objects.requireNonNull(local().holdObject(OBJECTS, key(1))).close();
        Objects.requireNonNull(local().getObject(OBJECTS, key(2))).close();
        subject().settle();
        fillWith(200, 30);
        assertThat(isHere(1)).as("held, not used").isFalse();
        assertThat(isHere(2)).as("used").isTrue();
    }

    @Test
    void givenASequence_whenRoomIsNeeded_thenNoObjectGoesBeforeThoseReadAfterIt() {
        put(1, null);
        for (int number = 2; number <= 20; number++) {
            put(number, number - 1);
        }
        fillWith(100, 55);
        int alive = 0;
        for (int number = 1; number <= 20; number++) {
            boolean here = isHere(number);
            assertThat(here && alive < number - 1)
                    .as("object %d without the one before it", number)
                    .isFalse();
            alive += here ? 1 : 0;
        }
        assertThat(alive).as("some had to go").isBetween(1, 19);
    }

    @Test
    void givenTwoObjects_whenLinkedAfterwards_thenTheFirstStaysAsLongAsTheSecond() {
        put(1, null);
        put(2, null);
        assertThat(local().linkObject(OBJECTS, key(2), key(1))).isTrue();
        assertThat(local().linkObject(OBJECTS, key(3), key(1))).as("not here").isFalse();
        Objects.requireNonNull(local().getObject(OBJECTS, key(2))).close();
        subject().settle();
        for (int seed = 100; isHere(2) && seed < 300; seed++) {
            fillWith(seed, 1);
            assertThat(isHere(1) || !isHere(2))
                    .as("the first before the second")
                    .isTrue();
        }
        assertThat(isHere(2)).isFalse();
    }

    @Test
    void givenAResidentOrUnknownObject_whenPrefetched_thenNothingIsOnItsWay() {
        put(1, null);
        assertThat(local().prefetchObject(OBJECTS, key(1))).isFalse();
        assertThat(local().prefetchObject(OBJECTS, key(2))).isFalse();
    }

    @Test
    @Tag(ESSENTIAL)
    void givenObjectsOfTwoNamespaces_whenListed_thenEachHasItsOwnAndDropsByDigest() {
        Namespace other = Namespace.objects("objects", "another tenant");
        cache().register(other);
        put(1, null);
        put(2, null);
        ObjectCatalog catalog = local().objects(OBJECTS);
        BlockKey digest = BlockKey.ofObject(OBJECTS, key(1));
        assertThat(catalog.list())
                .hasSize(2)
                .anyMatch(entry -> entry.digest().equals(digest) && entry.bytes() == BYTES + key(1).length);
        assertThat(local().objects(other).list()).isEmpty();
        assertThat(catalog.contains(digest)).isTrue();
        assertThat(local().objects(other).drop(digest))
                .as("of another namespace")
                .isFalse();
        assertThat(catalog.drop(digest)).isTrue();
        assertThat(catalog.drop(digest)).isFalse();
        assertThat(isHere(1)).isFalse();
        assertThat(catalog.list()).hasSize(1);
    }

    @Test
    @Tag(ESSENTIAL)
    void givenALocalCache_whenAskedForItsMemory_thenTheBlocksLieInIt() {
        put(1, null);
        long first = local().hostMemory().address();
        long end = first + local().hostMemory().byteSize();
        assertThat(local().hostMemory().isReadOnly()).isTrue();
        try (ObjectView view = view(key(1))) {
            assertThat(view.segments().getFirst().address()).isBetween(first, end - 1);
        }
    }
}
