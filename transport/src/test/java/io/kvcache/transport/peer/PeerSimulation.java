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
import io.kvcache.transport.cluster.BlockGroup;
import io.kvcache.transport.peer.PeeredKvCache.PeerThreads;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/// One seed: two stores over three servers, two callers of each store, and weather for a while, all on a
/// [TurnScheduler].
///
/// All the while every byte that is handed out is its key's, what is handed out is a prefix, every get ends
/// within its time-out to the nanosecond, and there is one connection to a peer and not two. When the
/// weather is over, what one store is given the other finds, what is dropped is gone everywhere, and
/// nothing is held by anybody.
final class PeerSimulation {

    static final Namespace SPACE = Namespace.of("peers", BlockShape.kv(1, 1, 64, 16, Dtype.BF16));
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
    private final List<SimPeerServer> servers;
    private final List<Client> clients = new ArrayList<>();
    private final Map<String, Integer> open = new HashMap<>();
    private final PeerEventCounts peerEventCounts;
    private boolean fair;
    private int working;
    private long tampered;

    /// What has happened, over all seeds.
    static final class PeerEventCounts {
        long found;
        long lost;
        long tampered;
        long outages;
        long shorter;
        long notReached;
    }

    PeerSimulation(long seed, PeerEventCounts peerEventCounts) {
        this.peerEventCounts = peerEventCounts;
        random = new SplittableRandom(seed);
        turnScheduler = new TurnScheduler(random.split());
        servers = Stream.of("a", "b", "c").map(SimPeerServer::new).toList();
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

    /// A store with peers, and the store alone.
    private record Client(String name, PeeredKvCache cache, TieredKvCache store) {}

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
        servers.forEach(server -> server.cut.clear());
        turnScheduler.note("the weather is over");
        turnScheduler.sleep(SETTLES);
        settle();
        close();
    }

    private Client open(String client) {
        PeerOptions options = PeerOptions.DEFAULTS
                .withReplicas(1 + random.nextInt(2))
                .withMissTtl(Duration.ofMillis(5))
                .withMaxBackoff(Duration.ofMillis(400));
        PeerThreads threads = new PeerThreads(
                new TurnExecutor(turnScheduler, client + " fetches", options.fetches()),
                new TurnExecutor(turnScheduler, client + " connects", Integer.MAX_VALUE),
                new TurnExecutor(turnScheduler, client + " gives", 1),
                turnScheduler);
        TieredKvCache store = store(SPACE);
        PeeredKvCache cache = PeeredKvCache.over(
                store,
                servers.stream().map(server -> server.name).toList(),
                options,
                new PeeredKvCache.Dependencies(name -> connect(client, name), threads));
        return new Client(client, cache, store);
    }

    private PeerCache connect(String client, String name) {
        SimPeerServer server = servers.stream()
                .filter(each -> each.name.equals(name))
                .findFirst()
                .orElseThrow();
        turnScheduler.sleep(fair ? 50_000 : random.nextLong(40_000_000));
        if (!server.isReachableFrom(client)) {
            turnScheduler.note(client + " cannot connect to " + name);
            throw new UncheckedIOException(new IOException("nobody at " + name));
        }
        turnScheduler.note(client + " connects to " + name);
        assertThat(open.merge(client + " to " + name, 1, Integer::sum))
                .as("connections of %s to %s", client, name)
                .isEqualTo(1);
        return new SimPeerCache(server, client, this);
    }

    void closed(String client, SimPeerServer server) {
        open.merge(client + " to " + server.name, -1, Integer::sum);
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
        peerEventCounts.tampered++;
    }

    /// Something happens to the network, and is over after a while.
    private void disturb() {
        turnScheduler.sleep(random.nextLong(60_000_000));
        SimPeerServer server = servers.get(random.nextInt(servers.size()));
        String client = CLIENTS.get(random.nextInt(CLIENTS.size()));
        long lasts = random.nextLong(random.nextInt(4) == 0 ? 600_000_000 : 100_000_000);
        peerEventCounts.outages++;
        switch (random.nextInt(4)) {
            case 0 -> {
                turnScheduler.note(server.name + " is down");
                server.down = true;
                turnScheduler.sleep(lasts);
                server.down = false;
                turnScheduler.note(server.name + " is up");
            }
            case 1 -> {
                turnScheduler.note(server.name + " has lost all it had");
                server.store.drop(BlockGroup.namespace(SPACE));
            }
            default -> {
                turnScheduler.note(client + " cannot reach " + server.name);
                server.cut.add(client);
                turnScheduler.sleep(lasts);
                server.cut.clear();
                turnScheduler.note("all can reach " + server.name);
            }
        }
    }

    private void work(Client client, SplittableRandom own) {
        PeeredKvCache cache = client.cache;
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
            peerEventCounts.notReached++;
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
            peerEventCounts.found += ready - first;
            peerEventCounts.shorter += ready < chain.length() ? 1 : 0;
            turnScheduler.note("got " + first + ", then " + ready + " of " + chain.length());
            return ready;
        }
    }

    private void settle() {
        clients.forEach(client -> client.cache.awaitReplication());
        PeeredKvCache one = clients.getFirst().cache;
        PeeredKvCache two = clients.getLast().cache;
        BlockChain fresh = chain(77, 130);
        retry("what one is given the other finds", () -> {
            drop(one, fresh, 0);
            put(one, fresh);
            one.awaitReplication();
            return get(two, fresh, TimeUnit.SECONDS.toNanos(5)) == fresh.length();
        });
        retry("a drop reaches all", () -> drop(one, fresh, 70));
        assertThat(servers)
                .allSatisfy(
                        server -> assertThat(server.residentBlocks(fresh, 70)).isZero());
        assertThat(one.match(fresh).blocks()).isEqualTo(70);
        turnScheduler.sleep(SETTLES); // questions that nobody waits for any more end
        List<PeeredKvCache> caches = clients.stream().map(Client::cache).toList();
        assertThat(caches.stream().mapToLong(PeeredKvCache::corruptCount).sum())
                .as("blocks that came wrong and were thrown away")
                .isEqualTo(tampered);
        caches.forEach(cache -> {
            assertThat(cache.stats().openTables()).isZero();
            peerEventCounts.lost += cache.notReplicatedCount();
        });
        servers.forEach(server -> {
            assertThat(server.store.stats().openTables()).isZero();
            server.store.validate();
        });
    }

    /// Has it tried once more after a moment, as a peer is connected to when it is first wanted.
    private void retry(String what, BooleanSupplier works) {
        for (int i = 0; !works.getAsBoolean(); i++) {
            assertThat(i).as(what).isLessThan(TRIES);
            turnScheduler.sleep(TimeUnit.MILLISECONDS.toNanos(100));
        }
    }

    private void close() {
        clients.forEach(client -> client.cache.close());
        assertThat(open.values())
                .as("connections left")
                .allSatisfy(count -> assertThat(count).isZero());
        servers.forEach(SimPeerServer::close);
    }
}
