package io.kvcache.transport.peer;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.BlockTable;
import io.kvcache.core.BlockWriter;
import io.kvcache.core.KvCache;
import io.kvcache.core.PutOutcome;
import io.kvcache.core.check.BlockContent;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.Dtype;
import io.kvcache.core.identity.Namespace;
import io.kvcache.tiers.TieredKvCache;
import java.io.UncheckedIOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.SplittableRandom;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import java.util.stream.IntStream;

/// One seed: two stores over one shared cache, two callers of each store, and weather for a while, all on a
/// [TurnScheduler].
///
/// All the while every byte that is handed out is its key's, what is handed out is a prefix, and every get ends
/// within its time-out to the nanosecond. When the weather is over, what one store is given the other finds,
/// what is dropped is gone everywhere, and nothing is held by anybody.
final class NearSimulation {

    static final Namespace SPACE = Namespace.of("near", BlockShape.kv(1, 1, 64, 16, Dtype.BF16));
    private static final List<String> CLIENTS = List.of("one", "two");
    private static final int CALLERS = 2;
    private static final int OPERATIONS = 8;
    private static final int CHAINS = 3;
    private static final int BLOCKS = 150;

    /// Of fair weather, after which all has to work: longer than any pause.
    private static final long SETTLES = TimeUnit.SECONDS.toNanos(2);

    private static final int TRIES = 20;

    private final SplittableRandom random;
    private final TurnScheduler turnScheduler;
    private final TieredKvCache shared = store(SPACE);
    private final Set<String> cut = new HashSet<>();
    private final List<Client> clients = new ArrayList<>();
    private final EventCounts counts;
    private boolean down;
    private boolean fair;
    private int working;
    private long tampered;

    /// What has happened, over all seeds.
    static final class EventCounts {
        long found;
        long lost;
        long tampered;
        long outages;
        long shorter;
        long notReached;
    }

    NearSimulation(long seed, EventCounts counts) {
        this.counts = counts;
        random = new SplittableRandom(seed);
        turnScheduler = new TurnScheduler(random.split());
    }

    /// One that knows a namespace.
    static TieredKvCache store(Namespace namespace) {
        TieredKvCache store = TieredKvCache.builder()
                .hostBytes(32 << 20)
                .checkSegments(true)
                .failOnLeak(true)
                .prefaultInBackground(false)
                .build();
        store.register(namespace);
        return store;
    }

    /// A store over the shared cache, and the store alone.
    private record Client(String name, NearKvCache cache, TieredKvCache store) {}

    /// Answers what tells this run from another one.
    long run() throws InterruptedException {
        turnScheduler.run("seed", this::runAll);
        return turnScheduler.trace();
    }

    private void runAll() {
        CLIENTS.forEach(client -> clients.add(open(client)));
        for (Client client : clients) {
            for (int caller = 0; caller < CALLERS; caller++) {
                SplittableRandom own = random.split();
                working++;
                turnScheduler.start(client.name, () -> work(client, own));
            }
        }
        while (working > 0) {
            disturb();
        }
        fair = true;
        cut.clear();
        turnScheduler.note("the weather is over");
        turnScheduler.sleep(SETTLES);
        settle();
        close();
    }

    private Client open(String client) {
        TieredKvCache store = store(SPACE);
        NearKvCache cache = NearKvCache.over(
                store,
                new SimSharedCache(shared, client, this),
                new NearKvCache.Dependencies(
                        new TurnExecutor(turnScheduler, client + " fetches", BlockFetcher.THREADS),
                        new TurnExecutor(turnScheduler, client + " gives", 1),
                        turnScheduler,
                        Duration.ofMillis(5)));
        cache.register(SPACE);
        return new Client(client, cache, store);
    }

    boolean isReachableFrom(String client) {
        return !down && !cut.contains(client);
    }

    TurnScheduler scheduler() {
        return turnScheduler;
    }

    SplittableRandom split() {
        return random.split();
    }

    boolean isFaultFree() {
        return fair;
    }

    void tampered() {
        tampered++;
        counts.tampered++;
    }

    /// Something happens to the network, and is over after a while.
    private void disturb() {
        turnScheduler.sleep(random.nextLong(60_000_000));
        String client = CLIENTS.get(random.nextInt(CLIENTS.size()));
        long lasts = random.nextLong(random.nextInt(4) == 0 ? 600_000_000 : 100_000_000);
        counts.outages++;
        switch (random.nextInt(4)) {
            case 0 -> {
                turnScheduler.note("the shared cache is down");
                down = true;
                turnScheduler.sleep(lasts);
                down = false;
                turnScheduler.note("the shared cache is up");
            }
            case 1 -> {
                turnScheduler.note("the shared cache has lost all it had");
                shared.drop(SPACE);
            }
            default -> {
                turnScheduler.note(client + " cannot reach the shared cache");
                cut.add(client);
                turnScheduler.sleep(lasts);
                cut.clear();
                turnScheduler.note("all can reach the shared cache");
            }
        }
    }

    private void work(Client client, SplittableRandom own) {
        NearKvCache cache = client.cache;
        try {
            for (int i = 0; i < OPERATIONS; i++) {
                turnScheduler.sleep(own.nextLong(40_000_000));
                BlockChain chain = chain(own.nextInt(CHAINS), 1 + own.nextInt(BLOCKS));
                switch (own.nextInt(8)) {
                    case 0, 1, 2 -> put(cache, chain);
                    case 3 -> drop(cache, chain, own.nextInt(chain.length()));
                    case 4 -> turnScheduler.note("evicted " + client.store.drop(chain, own.nextInt(chain.length())));
                    default -> get(cache, chain, own.nextLong(200_000_000));
                }
            }
        } finally {
            working--;
        }
    }

    private static BlockChain chain(int number, int blocks) {
        return BlockChain.of(
                SPACE,
                IntStream.range(0, 16 * blocks).map(i -> number * 1_000_000 + i).toArray());
    }

    private void put(KvCache cache, BlockChain chain) {
        int stored = 0;
        PutOutcome last = PutOutcome.PRESENT;
        for (int index = 0; index < chain.length() && last.allowsNextBlock(); index++) {
            try (BlockWriter writer = cache.put(chain, index, 0, KvCache.NO_WAIT)) {
                last = writer.outcome();
                if (last == PutOutcome.RESERVED) {
                    BlockContent.of(chain.key(index)).fill(writer.segment());
                    turnScheduler.maybeYield();
                    writer.seal();
                    stored++;
                }
            }
        }
        turnScheduler.note("put " + stored + " of " + chain.length() + ", " + last);
    }

    /// It is dropped here; elsewhere perhaps not, as it says.
    private boolean drop(KvCache cache, BlockChain chain, int from) {
        try {
            int dropped = cache.drop(chain, from);
            turnScheduler.note("dropped " + dropped);
            return true;
        } catch (UncheckedIOException unreached) {
            counts.notReached++;
            turnScheduler.note("dropped here: " + unreached.getMessage());
            return false;
        }
    }

    private int get(KvCache cache, BlockChain chain, long timeoutNanos) {
        long start = turnScheduler.now() - turnScheduler.randomDelayNanos();
        try (BlockTable table = cache.acquire(chain, 0, Duration.ofNanos(timeoutNanos))) {
            int first = table.readyBlocks();
            int ready = table.await(chain.length(), Duration.ofNanos(timeoutNanos));
            long took = turnScheduler.now() - turnScheduler.randomDelayNanos() - start;
            assertThat(took).as("time of a get").isBetween(0L, timeoutNanos);
            assertThat(ready).as("a prefix").isBetween(first, chain.length());
            for (int index = 0; index < ready; index++) {
                BlockContent.of(chain.key(index)).requireEqual(table.segment(index));
            }
            counts.found += ready - first;
            counts.shorter += ready < chain.length() ? 1 : 0;
            turnScheduler.note("got " + first + ", then " + ready + " of " + chain.length());
            return ready;
        }
    }

    private void settle() {
        clients.forEach(client -> client.cache.awaitReplication());
        NearKvCache one = clients.getFirst().cache;
        NearKvCache two = clients.getLast().cache;
        BlockChain fresh = chain(77, 130);
        retry("what one is given the other finds", () -> {
            drop(one, fresh, 0);
            put(one, fresh);
            one.awaitReplication();
            return get(two, fresh, TimeUnit.SECONDS.toNanos(5)) == fresh.length();
        });
        retry("a drop reaches all", () -> drop(one, fresh, 70));
        assertThat(shared.match(fresh).blocks()).isLessThanOrEqualTo(70);
        assertThat(one.match(fresh).blocks()).isEqualTo(70);
        turnScheduler.sleep(SETTLES); // questions that nobody waits for any more end
        List<NearKvCache> caches = clients.stream().map(Client::cache).toList();
        assertThat(caches.stream().mapToLong(NearKvCache::corruptCount).sum())
                .as("blocks that came wrong and were thrown away")
                .isEqualTo(tampered);
        caches.forEach(cache -> {
            assertThat(cache.stats().openTables()).isZero();
            counts.lost += cache.notReplicatedCount();
        });
        assertThat(shared.stats().openTables()).isZero();
        shared.validate();
    }

    /// Has it tried once more after a moment, as a miss is remembered for that long.
    private void retry(String what, BooleanSupplier works) {
        for (int i = 0; !works.getAsBoolean(); i++) {
            assertThat(i).as(what).isLessThan(TRIES);
            turnScheduler.sleep(TimeUnit.MILLISECONDS.toNanos(100));
        }
    }

    private void close() {
        clients.forEach(client -> client.cache.close());
        shared.close();
    }
}
