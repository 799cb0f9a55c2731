package io.kvcache.server.keyspace;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.identity.BlockKey;
import io.kvcache.server.keyspace.KeyIndex.KeyEntry;
import io.kvcache.server.keyspace.KeyIndex.KeyShard;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.NavigableMap;
import java.util.SplittableRandom;
import java.util.TreeMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

final class KeyIndexTest {

    private final KeyIndex index = new KeyIndex(new AtomicInteger());

    private static KeyEntry entry(long hi, long lo) {
        byte[] name = (hi + "/" + lo).getBytes(StandardCharsets.US_ASCII);
        return new KeyEntry(new ObjectKey(name, new BlockKey(hi, lo)), 64, 0, 0);
    }

    /// What the index is held against: all entries by digest, unsigned.
    private final NavigableMap<BlockKey, KeyEntry> model = new TreeMap<>(KeyShard.ORDER);

    @ParameterizedTest
    @ValueSource(longs = {1, 2, 3})
    void givenEntriesThatComeAndGo_whenLookedForAndListed_thenAsInASortedMap(long seed) {
        SplittableRandom random = new SplittableRandom(seed);
        List<BlockKey> digests = new ArrayList<>();
        for (int i = 0; i < 3000; i++) {
            long hi = i % 4 == 0 ? 0x7f00000000000000L + i : random.nextLong(); // a quarter in one part
            digests.add(new BlockKey(hi, random.nextLong()));
            if (i % 5 == 0) {
                digests.add(new BlockKey(hi, random.nextLong())); // the same place, another digest
            }
        }
        for (int step = 0; step < 20_000; step++) {
            BlockKey digest = digests.get(random.nextInt(digests.size()));
            if (random.nextInt(3) > 0) {
                KeyEntry entry = entry(digest.hi(), digest.lo());
                index.put(entry);
                model.put(digest, entry);
            } else if (model.containsKey(digest)) {
                index.remove(entry(digest.hi(), digest.lo())); // not this one: nothing happens
                assertThat(index.find(digest)).isSameAs(model.get(digest));
                index.remove(model.remove(digest));
            }
            assertThat(index.find(digest)).isSameAs(model.get(digest));
            assertThat(index.count()).isEqualTo(model.size());
        }
        for (int max : new int[] {1, 7, 1000, 100_000}) {
            assertThat(listed(max)).containsExactlyElementsOf(model.values());
        }
    }

    /// All entries by runs of at most so many. Two digests may begin alike, and then a run begins
    /// with one again.
    private List<KeyEntry> listed(int max) {
        List<KeyEntry> all = new ArrayList<>();
        long cursor = 0;
        int most = Math.max(2, max);
        do {
            KeyIndex.IndexPage indexPage = index.page(cursor, most);
            assertThat(indexPage.entries().size()).isLessThanOrEqualTo(most);
            for (KeyEntry each : indexPage.entries()) {
                if (all.isEmpty() || KeyShard.ORDER.compare(all.getLast().hash(), each.hash()) < 0) {
                    all.add(each);
                }
            }
            cursor = indexPage.next();
        } while (cursor != 0);
        return all;
    }

    @Test
    void givenNothing_whenListed_thenNothingAndTheEnd() {
        assertThat(index.page(0, 10).entries()).isEmpty();
        assertThat(index.page(0, 10).next()).isZero();
        assertThat(index.page(Long.MAX_VALUE, 10).next()).isZero();
    }

    @Test
    void givenWritersOfDifferentKeys_whenAllArePut_thenAllAreFound() throws Exception {
        int writers = 4;
        int each = 20_000;
        try (ExecutorService threads = Executors.newFixedThreadPool(writers)) {
            List<Future<?>> running = new ArrayList<>();
            for (int writer = 0; writer < writers; writer++) {
                long seed = writer;
                running.add(threads.submit(() -> {
                    SplittableRandom random = new SplittableRandom(seed);
                    for (int i = 0; i < each; i++) {
                        index.put(entry(random.nextLong(), seed));
                    }
                }));
            }
            for (Future<?> one : running) {
                one.get();
            }
        }
        for (int writer = 0; writer < writers; writer++) {
            SplittableRandom random = new SplittableRandom(writer);
            for (int i = 0; i < each; i++) {
                assertThat(index.find(new BlockKey(random.nextLong(), writer))).isNotNull();
            }
        }
        assertThat(index.count()).isEqualTo(writers * each);
        assertThat(index.page(0, Integer.MAX_VALUE).entries()).hasSize(writers * each);
    }
}
