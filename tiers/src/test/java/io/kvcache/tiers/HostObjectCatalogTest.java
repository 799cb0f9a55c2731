package io.kvcache.tiers;

import static java.nio.charset.StandardCharsets.US_ASCII;
import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.KvCache;
import io.kvcache.core.ObjectCatalog;
import io.kvcache.core.ObjectWriter;
import io.kvcache.core.identity.BlockKey;
import io.kvcache.core.identity.Namespace;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import org.junit.jupiter.api.Test;

final class HostObjectCatalogTest {

    private static final Namespace MINE = Namespace.objects("objects", "mine");
    private static final Namespace OTHER = Namespace.objects("objects", "other");

    private final TieredKvCache cache = TieredKvCache.builder()
            .hostBytes(64L << 20)
            .prefaultInBackground(false)
            .failOnLeak(true)
            .closeWait(Duration.ZERO)
            .build();

    private void put(Namespace namespace, String key, int bytes) {
        try (ObjectWriter writer = cache.putObject(namespace, key.getBytes(US_ASCII), bytes, KvCache.NO_WAIT)) {
            writer.segments().forEach(piece -> piece.fill((byte) 7));
            writer.seal();
        }
    }

    private static BlockKey digest(Namespace namespace, String key) {
        return BlockKey.ofObject(namespace, key.getBytes(US_ASCII));
    }

    @Test
    void givenObjectsOfTwoNamespaces_whenListed_thenOnlyItsOwnThatAreSealedAreThere() {
        cache.register(MINE);
        cache.register(OTHER);
        put(MINE, "a", 10_000);
        put(MINE, "bb", 1);
        put(OTHER, "a", 5);
        try (ObjectWriter open = cache.putObject(MINE, "open".getBytes(US_ASCII), 1, KvCache.NO_WAIT)) {
            assertThat(open.segments()).map(MemorySegment::byteSize).isNotEmpty();
            assertThat(cache.objects(MINE).list())
                    .containsExactlyInAnyOrder(
                            new ObjectCatalog.Entry(digest(MINE, "a"), 10_001),
                            new ObjectCatalog.Entry(digest(MINE, "bb"), 3));
        }
        assertThat(cache.objects(OTHER).list()).containsExactly(new ObjectCatalog.Entry(digest(OTHER, "a"), 6));
        cache.close();
    }

    @Test
    void givenAnObject_whenDroppedByDigest_thenItIsGone() {
        cache.register(MINE);
        put(MINE, "a", 10);
        ObjectCatalog objects = cache.objects(MINE);
        assertThat(objects.contains(digest(MINE, "a"))).isTrue();
        assertThat(objects.drop(digest(MINE, "a"))).isTrue();
        assertThat(objects.drop(digest(MINE, "a"))).isFalse();
        assertThat(objects.contains(digest(MINE, "a"))).isFalse();
        assertThat(cache.containsObject(MINE, "a".getBytes(US_ASCII))).isFalse();
        cache.validate();
        cache.close();
    }
}
