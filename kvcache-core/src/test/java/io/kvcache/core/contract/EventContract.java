package io.kvcache.core.contract;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.BlockTable;
import io.kvcache.core.BlockWriter;
import io.kvcache.core.KvCache;
import io.kvcache.core.PutOutcome;
import io.kvcache.core.event.CacheEvent;
import io.kvcache.core.event.EventBatch;
import io.kvcache.core.event.EventKind;
import io.kvcache.core.event.EventStream;
import io.kvcache.core.event.StoreSnapshot;
import io.kvcache.core.event.TierKind;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockKey;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/// Events as a router or an indexer receives them.
public abstract class EventContract extends KvCacheContract {

    private static final byte[] KEY = {1};
    private static final int ALL = 1 << 16;

    protected EventContract(CacheUnderTest.Factory factory) {
        super(factory);
    }

    private List<CacheEvent> events() {
        return cache().events().since(0, ALL).events();
    }

    @Test
    @Tag(ESSENTIAL)
    void givenStoredBlocks_whenEventsAreRead_thenOneEachParentsFirst() {
        BlockChain chain = stored(chain(1, 3));
        List<CacheEvent> events = events();
        assertThat(events).hasSize(3);
        for (int index = 0; index < 3; index++) {
            CacheEvent event = events.get(index);
            BlockKey parent = index == 0 ? new BlockKey(0, 0) : chain.key(index - 1);
            assertThat(event.sequence()).isEqualTo(index);
            assertThat(event.kind()).isEqualTo(EventKind.STORED);
            assertThat(event.tier()).isEqualTo(TierKind.HOST);
            assertThat(event.depth()).isEqualTo(index);
            assertThat(event.engineHash()).isZero();
            assertThat(new BlockKey(event.keyHi(), event.keyLo())).isEqualTo(chain.key(index));
            assertThat(new BlockKey(event.parentHi(), event.parentLo())).isEqualTo(parent);
            assertThat(cache().events().snapshot().namespaces()).containsEntry(event.namespaceId(), MIB);
        }
        assertThat(cache().events().nextSequence()).isEqualTo(3);
    }

    @Test
    void givenKeysOfAnEngine_whenStored_thenEventsCarryItsHashes() {
        List<byte[]> keys = List.of(new byte[] {0, 0, 0, 0, 0, 0, 1, 2}, new byte[] {9, 0, 0, 0, 0, 0, 0, 0, 7});
        stored(BlockChain.ofEngineKeys(MIB, keys));
        assertThat(events()).extracting(CacheEvent::engineHash).containsExactly(258L, 7L);
        assertThat(events()).extracting(CacheEvent::parentEngineHash).containsExactly(0L, 258L);
    }

    @Test
    void givenReservedAbandonedAndPendingBlocks_whenEventsAreRead_thenOnlyWhatCanBeFound() {
        BlockChain chain = chain(1, 2);
        reserve(chain, 0).close();
        try (BlockWriter first = reserve(chain, 0);
                BlockWriter second = reserve(chain, 1)) {
            second.seal();
            assertThat(events()).isEmpty();
            first.seal();
        }
        assertThat(events()).extracting(CacheEvent::depth).containsExactly(0, 1);
    }

    @Test
    void givenADrop_whenEventsAreRead_thenDroppedChildrenFirst() {
        BlockChain chain = stored(chain(1, 4));
        cache().drop(chain, 1);
        assertThat(events().subList(4, 7)).allMatch(event -> event.kind() == EventKind.DROPPED);
        assertThat(events().subList(4, 7)).extracting(CacheEvent::depth).containsExactly(3, 2, 1);
    }

    @Test
    void givenOneWhoDoesNotAskForPuts_whenObjectsAndBlocksComeAndGo_thenNothingElseIsLeftOut() {
        EventStream others = cache().events().withoutObjectPuts();
        long from = others.nextSequence();
        putObject(KEY, content(OBJECTS, KEY), 10);
        putObject(KEY, content(OBJECTS, KEY), 20);
        BlockChain chain = stored(chain(1, 2));
        cache().dropObject(OBJECTS, KEY);
        cache().drop(chain, 1);
        List<CacheEvent> heard = others.since(from, ALL).events().stream()
                .filter(event -> event.tier() == TierKind.HOST && !isPut(event))
                .toList();
        assertThat(heard)
                .extracting(CacheEvent::kind)
                .containsExactly(EventKind.STORED, EventKind.STORED, EventKind.DROPPED, EventKind.DROPPED);
        assertThat(others.since(from, ALL).hasGap()).isFalse();
        assertThat(others.snapshot().stored())
                .allMatch(event -> event.keyHi() == chain.keyHi(0))
                .isNotEmpty();
        assertThat(others.snapshot().nextSequence()).isEqualTo(others.nextSequence());
    }

    private boolean isPut(CacheEvent event) {
        BlockKey object = BlockKey.ofObject(OBJECTS, KEY);
        return event.keyHi() == object.hi() && (event.kind() == EventKind.STORED || event.kind() == EventKind.REPLACED);
    }

    @Test
    void givenAPinnedBlock_whenDropped_thenItsEventComesAtOnceAndOnce() {
        BlockChain chain = stored(chain(1, 1));
        try (BlockTable table = cache().acquire(chain)) {
            cache().drop(chain, 0);
            assertThat(events()).extracting(CacheEvent::kind).containsExactly(EventKind.STORED, EventKind.DROPPED);
            requireContent(table, chain);
        }
        subject().settle();
        assertThat(cache().events().nextSequence()).isEqualTo(2);
    }

    @Test
    void givenEvictions_whenFollowed_thenTheFollowerKnowsWhatIsHere() {
        EventFollower follower = new EventFollower(cache().events());
        List<BlockChain> chains = new ArrayList<>();
        for (int seed = 1; seed <= 15; seed++) {
            chains.add(stored(chain(seed, 7)));
        }
        follower.follow();
        assertThat(follower.count(EventKind.EVICTED)).isPositive().isEqualTo((int)
                cache().stats().removals().evicted());
        for (BlockChain chain : chains) {
            requireTruth(follower, chain);
        }
    }

    private void requireTruth(EventFollower follower, BlockChain chain) {
        int blocks = match(chain);
        for (int index = 0; index < chain.length(); index++) {
            assertThat(follower.has(chain.key(index)))
                    .as("block %d of a match of %d", index, blocks)
                    .isEqualTo(index < blocks);
        }
    }

    @Test
    void givenAnObjectWrittenOver_whenFollowed_thenTheLastWordIsStored() {
        EventFollower follower = new EventFollower(cache().events());
        putObject(KEY, content(OBJECTS, KEY), 10);
        putObject(KEY, content(OBJECTS, KEY), 5000);
        follower.follow();
        assertThat(follower.has(BlockKey.ofObject(OBJECTS, KEY))).isTrue();
        assertThat(follower.count(EventKind.REPLACED)).isEqualTo(1);
        assertThat(follower.count(EventKind.STORED)).isEqualTo(2);
        cache().dropObject(OBJECTS, KEY);
        follower.follow();
        assertThat(follower.stored()).isEmpty();
    }

    @Test
    @Tag(ESSENTIAL)
    void givenManyEvents_whenReadInBatches_thenWithoutGapsAndAgainTheSame() {
        stored(chain(1, 30));
        EventStream stream = cache().events();
        for (int max : new int[] {1, 7, 30, 31}) {
            List<CacheEvent> read = new ArrayList<>();
            long next = 0;
            while (next < stream.nextSequence()) {
                EventBatch batch = stream.since(next, max);
                assertThat(batch.hasGap()).isFalse();
                assertThat(batch.events()).hasSizeBetween(1, max);
                read.addAll(batch.events());
                next = batch.nextSequence();
            }
            assertThat(read).isEqualTo(events());
        }
        EventBatch none = stream.since(stream.nextSequence(), 10);
        assertThat(none).isEqualTo(new EventBatch(List.of(), false, stream.nextSequence()));
    }

    @Test
    void givenMoreEventsThanAreKept_whenAskedFromTheStart_thenLostIsSaid() {
        try (CacheUnderTest small = open(CacheSetup.SMALL.withEvents(16))) {
            small.cache().register(MIB);
            BlockChain chain = chain(1, 20);
            for (int index = 0; index < 20; index++) {
                try (BlockWriter writer = small.cache().put(chain, index, 0, KvCache.NO_WAIT)) {
                    writer.seal();
                }
            }
            EventBatch batch = small.cache().events().since(0, ALL);
            assertThat(batch.hasGap()).isTrue();
            assertThat(batch.events()).hasSize(16);
            assertThat(batch.events().getFirst().sequence()).isEqualTo(4);
            assertThat(small.cache().events().since(4, ALL).hasGap()).isFalse();
            assertThat(new EventFollower(small.cache().events()).stored()).hasSize(20);
        }
    }

    @Test
    @Tag(ESSENTIAL)
    void givenASnapshot_whenRead_thenAllThatIsStoredParentsFirst() {
        BlockChain chain = stored(chain(1, 10));
        putObject(KEY, content(OBJECTS, KEY), 10);
        cache().drop(chain, 8);
        StoreSnapshot snapshot = cache().events().snapshot();
        assertThat(snapshot.nextSequence()).isEqualTo(cache().events().nextSequence());
        assertThat(snapshot.stored())
                .hasSize(9)
                .allMatch(event -> event.kind() == EventKind.STORED && event.sequence() == -1)
                .isSortedAccordingTo((a, b) -> Integer.compare(a.depth(), b.depth()));
        assertThat(snapshot.namespaces().values()).contains(MIB, SMALL, OBJECTS);
    }

    /// Followers that start at any moment, from a snapshot, beside writers that put, write over and drop.
    @Test
    void givenConcurrentWriters_whenFollowedFromASnapshot_thenTheTruth() throws Exception {
        int writers = 3;
        try (ExecutorService threads = Executors.newFixedThreadPool(writers)) {
            List<Future<?>> running = new ArrayList<>();
            for (int writer = 0; writer < writers; writer++) {
                long seed = 40L + writer;
                running.add(threads.submit(() -> churn(seed)));
            }
            List<EventFollower> followers = new ArrayList<>();
            while (running.stream().anyMatch(future -> !future.isDone())) {
                if (followers.size() < 50) {
                    followers.add(new EventFollower(cache().events()));
                }
                followers.forEach(EventFollower::follow);
            }
            for (Future<?> each : running) {
                each.get();
            }
            followers.add(new EventFollower(cache().events()));
            for (EventFollower follower : followers) {
                follower.follow();
                assertThat(follower.stored().keySet())
                        .isEqualTo(followers.getLast().stored().keySet());
            }
            IntStream.range(0, 12).forEach(seed -> requireTruth(followers.getFirst(), chain(SMALL, seed, 10)));
        }
    }

    private void churn(long seed) {
        SplittableRandom random = new SplittableRandom(seed);
        for (int step = 0; step < 400; step++) {
            BlockChain chain = chain(SMALL, random.nextInt(12), 10);
            int index = Math.min(9, match(chain));
            switch (random.nextInt(6)) {
                case 0 -> cache().drop(chain, random.nextInt(10));
                case 1 -> overwrite(new byte[] {(byte) random.nextInt(4)}, 1 + random.nextInt(100_000));
                case 2 -> cache().dropObject(OBJECTS, new byte[] {(byte) random.nextInt(4)});
                default -> {
                    try (BlockWriter writer = reserve(chain, index)) {
                        if (writer.outcome() == PutOutcome.RESERVED) {
                            writer.seal();
                        }
                    }
                }
            }
        }
    }

    private void overwrite(byte[] key, int bytes) {
        try (var writer = cache().putObject(OBJECTS, key, bytes, KvCache.NO_WAIT)) {
            if (writer.outcome() == PutOutcome.RESERVED) {
                writer.seal();
            }
        }
    }
}
