package io.kvcache.transport.sim;

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
import io.kvcache.transport.client.ConnectorClients;
import io.kvcache.transport.client.RemoteKvCache;
import io.kvcache.transport.endpoint.Endpoint;
import io.kvcache.transport.endpoint.EndpointOptions;
import io.kvcache.transport.peer.NearKvCache;
import java.io.UncheckedIOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.SplittableRandom;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.atomic.LongAdder;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import java.util.function.Supplier;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/// One seed: two embedded stores over one server, bad weather for a while, and what must hold then.
///
/// Every get ends by its deadline with a correct prefix, perhaps a shorter one. When the weather is over,
/// what one store is given the other finds, and nothing is held that nobody holds.
final class NearNetworkSimulation {

    private static final Namespace SPACE = Namespace.of("near", BlockShape.kv(1, 1, 64, 16, Dtype.BF16));
    private static final List<String> SERVERS = List.of("a");
    private static final List<String> CLIENTS = List.of("one", "two");
    private static final EndpointOptions OPTIONS = EndpointOptions.DEFAULTS
            .withMaxLease(Duration.ofMillis(600))
            .withStallTimeout(Duration.ofMillis(300))
            .withHandshakeTimeout(Duration.ofMillis(300));
    private static final Duration PATIENCE = Duration.ofSeconds(60);
    private static final int OPERATIONS = 6;
    private static final int CHAINS = 4;
    private static final int BLOCKS = 100;

    /// A get waits for its store's own answer and for its time-out; what is beyond is the machine's.
    private static final long SLACK_NANOS = TimeUnit.SECONDS.toNanos(30);

    private final long seed;
    private final SplittableRandom random;
    private final NetworkFaults networkFaults;
    private final SimNetwork network;
    private final Map<String, TieredKvCache> stores = new LinkedHashMap<>();
    private final List<NearKvCache> caches = new ArrayList<>();
    private final LongAdder found = new LongAdder();
    private final Map<String, RemoteKvCache> connections = new ConcurrentSkipListMap<>();
    private final AtomicInteger opened = new AtomicInteger();

    NearNetworkSimulation(long seed, NetworkFaults.FaultCounts faultCounts) {
        this.seed = seed;
        random = new SplittableRandom(~seed);
        networkFaults = new NetworkFaults(~seed, faultCounts);
        network = new SimNetwork(networkFaults);
    }

    private static TieredKvCache store() {
        return TieredKvCache.builder()
                .hostBytes(32 << 20)
                .checkSegments(true)
                .failOnLeak(true)
                .prefaultInBackground(false)
                .build();
    }

    /// Answers blocks that came from the server.
    long run() throws Exception {
        ExecutorService threads = Executors.newFixedThreadPool(
                CLIENTS.size(), Thread.ofPlatform().daemon().name("store-", 0).factory());
        try {
            for (String server : SERVERS) {
                stores.put(server, store());
                serve(server);
            }
            CLIENTS.forEach(client -> caches.add(open(client)));
            networkFaults.begin();
            List<Future<?>> running = new ArrayList<>();
            for (NearKvCache cache : caches) {
                SplittableRandom own = random.split();
                running.add(threads.submit(() -> work(cache, own)));
            }
            FaultInjector faultInjector =
                    new FaultInjector(network, networkFaults, random.split(), CLIENTS, SERVERS, this::serve);
            faultInjector.injectUntilDone(running, PATIENCE.multipliedBy(3).toNanos());
            settle();
            return caches.stream().mapToLong(NearKvCache::fetchedCount).sum();
        } catch (Exception | AssertionError failed) {
            FailureReport.print("near, seed " + seed, failed, states(), networkFaults.journal());
            throw failed;
        } finally {
            threads.shutdownNow();
            caches.forEach(NearKvCache::close);
            network.close();
            stores.values().forEach(TieredKvCache::close);
        }
    }

    private void serve(String server) {
        KvCache store = stores.get(server);
        if (store != null) {
            network.serve(
                    server,
                    new Endpoint(store, OPTIONS, System::nanoTime),
                    OPTIONS.timeouts().stall().toNanos());
        }
    }

    private NearKvCache open(String client) {
        NearKvCache cache = NearKvCache.over(store(), connect(client, SERVERS.getFirst()));
        cache.register(SPACE);
        return cache;
    }

    /// Tried again until it is connected, as in [NetworkSimulation].
    private RemoteKvCache connect(String client, String server) {
        AtomicReference<@Nullable RemoteKvCache> connected = new AtomicReference<>();
        await("a client connects", () -> {
            try {
                connected.set(connectNow(client, server));
            } catch (UncheckedIOException notYet) {
                networkFaults.journal().note(client + " does not connect: " + notYet);
            }
            return connected.get() != null;
        });
        RemoteKvCache cache = Objects.requireNonNull(connected.get());
        connections.put(client + " to " + server + ", " + opened.incrementAndGet(), cache);
        return cache;
    }

    private RemoteKvCache connectNow(String client, String server) {
        networkFaults.journal().note(client + " connects to " + server);
        return ConnectorClients.builder(network.connector(client, server))
                .connections(2)
                .requestTimeout(Duration.ofMillis(300))
                .lease(Duration.ofMillis(600))
                .memoryBytes(16 << 20)
                .checked(true)
                .strict(true)
                .connect();
    }

    private void work(NearKvCache cache, SplittableRandom own) {
        for (int i = 0; i < OPERATIONS; i++) {
            int chain = own.nextInt(CHAINS);
            int blocks = 1 + own.nextInt(BLOCKS);
            int kind = own.nextInt(8);
            networkFaults.journal().note("operation of kind %d, chain %d, %d blocks".formatted(kind, chain, blocks));
            switch (kind) {
                case 0, 1, 2 -> put(cache, chain(chain, blocks));
                case 3 -> drop(cache, chain(chain, blocks), own.nextInt(blocks));
                default -> found.add(get(cache, chain(chain, blocks), TimeUnit.MILLISECONDS.toNanos(own.nextInt(200))));
            }
            networkFaults.journal().note("operation " + i + " has ended");
        }
    }

    private static BlockChain chain(int seed, int blocks) {
        return BlockChain.of(
                SPACE,
                IntStream.range(0, 16 * blocks).map(i -> seed * 1_000_000 + i).toArray());
    }

    private static void put(KvCache cache, BlockChain chain) {
        for (int index = 0; index < chain.length(); index++) {
            try (BlockWriter writer = cache.put(chain, index, 0, KvCache.NO_WAIT)) {
                if (writer.outcome() == PutOutcome.RESERVED) {
                    BlockContent.of(chain.key(index)).fill(writer.segment());
                    writer.seal();
                } else if (!writer.outcome().allowsNextBlock()) {
                    return;
                }
            }
        }
    }

    /// It is dropped here; elsewhere perhaps not, as it says.
    private static void drop(KvCache cache, BlockChain chain, int from) {
        try {
            cache.drop(chain, from);
        } catch (UncheckedIOException unreached) {
            assertThat(unreached).hasMessageNotContaining("null");
        }
    }

    private static int get(KvCache cache, BlockChain chain, long timeoutNanos) {
        long start = System.nanoTime();
        try (BlockTable table = cache.acquire(chain, 0, Duration.ofNanos(timeoutNanos))) {
            int ready = table.await(chain.length(), Duration.ofNanos(timeoutNanos));
            assertThat(System.nanoTime() - start).as("time of a get").isLessThan(timeoutNanos + SLACK_NANOS);
            assertThat(ready).isBetween(0, chain.length());
            for (int index = 0; index < ready; index++) {
                BlockContent.of(chain.key(index)).requireEqual(table.segment(index));
            }
            return ready;
        }
    }

    /// The weather is over.
    private void settle() {
        networkFaults.end();
        assertThat(network.bugs()).as("seed %d", seed).isEmpty();
        BlockChain fresh = chain(77, 70);
        BooleanSupplier travels = () -> {
            put(caches.getFirst(), fresh);
            caches.getFirst().awaitReplication();
            return get(caches.getLast(), fresh, TimeUnit.SECONDS.toNanos(5)) == fresh.length();
        };
        await("what one is given the other finds", () -> {
            boolean came = travels.getAsBoolean();
            if (!came) {
                drop(caches.getFirst(), fresh, 0);
            }
            return came;
        });
        caches.forEach(NearKvCache::awaitReplication);
        await(
                "nothing is held here",
                () -> caches.stream().allMatch(cache -> cache.stats().openTables() == 0));
        await(
                "nothing is held there",
                () -> stores.values().stream().allMatch(store -> store.stats().openTables() == 0));
        stores.values().forEach(TieredKvCache::validate);
        assertThat(caches).allSatisfy(cache -> assertThat(cache.corruptCount()).isZero());
    }

    /// Where all of it stands.
    private Map<String, Supplier<Object>> states() {
        Map<String, Supplier<Object>> states = new LinkedHashMap<>();
        caches.forEach(cache -> states.put(
                "store " + CLIENTS.get(states.size()),
                () -> "not replicated " + cache.notReplicatedCount() + ", corrupt " + cache.corruptCount() + ", "
                        + cache.stats()));
        connections.forEach((name, cache) -> states.put(name, cache::remoteStats));
        stores.forEach((name, store) -> states.put("server " + name, () -> {
            Endpoint endpoint = network.endpoint(name);
            return (endpoint == null ? "no endpoint" : endpoint.stats()) + ", " + store.stats();
        }));
        states.put("network", () -> network);
        return states;
    }

    private void await(String what, BooleanSupplier holds) {
        long start = System.nanoTime();
        while (!holds.getAsBoolean()) {
            assertThat(System.nanoTime() - start).as("seed %d: %s", seed, what).isLessThan(PATIENCE.toNanos());
            LockSupport.parkNanos(2_000_000);
        }
    }
}
