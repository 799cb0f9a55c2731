package io.kvcache.server.keyspace;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.identity.BlockKey;
import io.kvcache.server.keyspace.KeyIndex.KeyEntry;
import io.kvcache.server.keyspace.KeyIndex.KeyShard;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;

final class KeyShardTest {

    private static final BlockKey FIRST = new BlockKey(0, 0);

    private final KeyShard shard = new KeyShard(0);
    private final Random random = new Random(20);

    private KeyEntry entry() {
        BlockKey hash = new BlockKey(random.nextLong(), random.nextLong());
        return new KeyEntry(new ObjectKey(hash.toString().getBytes(UTF_8), hash), 64, 0, 0);
    }

    @Test
    void givenManyKeys_whenNearlyAllGo_thenTheTableIsSmallAgainAndTheRestIsFoundInOrder() {
        List<KeyEntry> entries = new ArrayList<>();
        for (int i = 0; i < 10_000; i++) {
            entries.add(entry());
            assertThat(shard.put(entries.getLast())).isNull();
        }
        assertThat(shard.bucketCount()).isEqualTo(1 << 14);
        List<KeyEntry> rest = new ArrayList<>(entries.subList(0, 10));
        for (KeyEntry gone : entries.subList(10, entries.size())) {
            assertThat(shard.remove(gone)).isTrue();
        }
        assertThat(shard.bucketCount()).isBetween(8, 128);
        rest.sort(Comparator.comparing(KeyEntry::hash, KeyShard.ORDER));
        List<KeyEntry> found = new ArrayList<>();
        assertThat(shard.scan(FIRST, 100, found)).isNull();
        assertThat(found).containsExactlyElementsOf(rest);
        for (KeyEntry entry : rest) {
            assertThat(shard.find(entry.hash())).isSameAs(entry);
        }
        for (KeyEntry entry : entries.subList(10, 20)) {
            assertThat(shard.find(entry.hash())).isNull();
        }
    }

    @Test
    void givenKeysThatComeAndGo_whenTheirNumberStays_thenSoDoesTheTable() {
        List<KeyEntry> entries = new ArrayList<>();
        for (int i = 0; i < 1000; i++) {
            entries.add(entry());
            shard.put(entries.getLast());
        }
        int buckets = shard.bucketCount();
        for (int i = 0; i < 1000; i++) {
            shard.remove(entries.get(i));
            shard.put(entry());
            assertThat(shard.bucketCount()).isEqualTo(buckets);
        }
    }
}
