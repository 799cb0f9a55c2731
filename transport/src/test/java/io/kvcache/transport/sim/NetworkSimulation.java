package io.kvcache.transport.sim;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.Dtype;
import io.kvcache.core.identity.Namespace;
import io.kvcache.tiers.TieredKvCache;
import io.kvcache.transport.client.ConnectorClients;
import io.kvcache.transport.client.RemoteKvCache;
import io.kvcache.transport.endpoint.Endpoint;
import io.kvcache.transport.endpoint.EndpointOptions;
import java.io.UncheckedIOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.SplittableRandom;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/// One seed: a server, two clients, bad weather for a while, and what must hold then.
///
/// Every byte that is handed out is its key's, what is handed out is a prefix, and every call ends, all the
/// while. When the weather is over, nothing is held that nobody holds, and both clients store and find
/// again by themselves.
final class NetworkSimulation {

    static final Namespace SPACE = Namespace.of("sim", BlockShape.kv(1, 1, 1024, 16, Dtype.BF16));
    static final Namespace THINGS = Namespace.objects("things", "");

    private static final String SERVER = "server";
    private static final List<String> CLIENTS = List.of("one", "two");
    private static final Duration REQUEST = Duration.ofMillis(300);
    private static final EndpointOptions OPTIONS = EndpointOptions.DEFAULTS
            .withMaxLease(Duration.ofMillis(600))
            .withStallTimeout(Duration.ofMillis(300))
            .withHandshakeTimeout(Duration.ofMillis(300));

    /// For a machine that does other things too: what takes longer hangs.
    private static final Duration PATIENCE = Duration.ofSeconds(60);

    private static final int OPERATIONS = 20;

    private final long seed;
    private final SplittableRandom random;
    private final NetworkFaults networkFaults;
    private final SimNetwork network;
    private final TieredKvCache store = TieredKvCache.builder()
            .hostBytes(64 << 20)
            .checkSegments(true)
            .failOnLeak(true)
            .prefaultInBackground(false)
            .build();

    NetworkSimulation(long seed, NetworkFaults.FaultCounts faultCounts) {
        this.seed = seed;
        random = new SplittableRandom(seed);
        networkFaults = new NetworkFaults(seed, faultCounts);
        network = new SimNetwork(networkFaults);
    }

    /// Answers blocks that were found.
    long run() throws Exception {
        List<RemoteKvCache> caches = new ArrayList<>();
        long found = 0;
        ExecutorService threads = Executors.newFixedThreadPool(
                CLIENTS.size(), Thread.ofPlatform().daemon().name("client-", 0).factory());
        try {
            serve();
            CLIENTS.forEach(name -> caches.add(connect(name)));
            networkFaults.begin();
            List<NetworkTraffic> traffic = new ArrayList<>();
            List<Future<?>> running = new ArrayList<>();
            for (RemoteKvCache cache : caches) {
                NetworkTraffic each = new NetworkTraffic(cache, random.split(), OPERATIONS, networkFaults.journal());
                traffic.add(each);
                running.add(threads.submit(each::run));
            }
            FaultInjector faultInjector = new FaultInjector(
                    network, networkFaults, random.split(), CLIENTS, List.of(SERVER), server -> serve());
            faultInjector.injectUntilDone(running, PATIENCE.multipliedBy(3).toNanos());
            found = traffic.stream().mapToLong(NetworkTraffic::found).sum();
            settle(caches);
            return found;
        } catch (Exception | AssertionError failed) {
            FailureReport.print(name(), failed, states(caches), networkFaults.journal());
            throw failed;
        } finally {
            threads.shutdownNow();
            caches.forEach(RemoteKvCache::close);
            network.close();
            store.close();
        }
    }

    private void serve() {
        Endpoint endpoint = new Endpoint(store, OPTIONS, System::nanoTime);
        network.serve(SERVER, endpoint, OPTIONS.timeouts().stall().toNanos());
    }

    /// Tried again until it is connected: with so short a time-out a busy machine may be too late, even in fair
    /// weather.
    private RemoteKvCache connect(String name) {
        AtomicReference<@Nullable RemoteKvCache> connected = new AtomicReference<>();
        await("a client connects", () -> {
            try {
                connected.set(open(name));
            } catch (UncheckedIOException notYet) {
                networkFaults.journal().note(name + " does not connect: " + notYet);
            }
            return connected.get() != null;
        });
        RemoteKvCache cache = Objects.requireNonNull(connected.get());
        cache.register(SPACE);
        cache.register(THINGS);
        return cache;
    }

    private RemoteKvCache open(String name) {
        return ConnectorClients.builder(network.connector(name, SERVER))
                .connections(2)
                .requestTimeout(REQUEST)
                .lease(Duration.ofMillis(600))
                .memoryBytes(16 << 20)
                .checked(true)
                .strict(true)
                .connect();
    }

    private static void sleep(int millis) {
        LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(millis));
    }

    /// The weather is over.
    private void settle(List<RemoteKvCache> caches) {
        networkFaults.end();
        assertThat(network.bugs()).as(name()).isEmpty();
        for (RemoteKvCache cache : caches) {
            NetworkTraffic last = new NetworkTraffic(cache, random.split(), 0, networkFaults.journal());
            await("a client stores and finds again", () -> works(cache, last));
            assertThat(cache.remoteStats().open()).as(name()).isZero();
            assertThat(cache.remoteStats().memoryUsed()).as(name()).isZero();
        }
        await("nothing is held any more", () -> store.stats().openTables() == 0 && nothingReserved());
        store.validate();
    }

    private Map<String, Supplier<Object>> states(List<RemoteKvCache> caches) {
        Map<String, Supplier<Object>> states = new LinkedHashMap<>();
        caches.forEach(cache -> states.put("client " + CLIENTS.get(states.size()), cache::remoteStats));
        states.put("endpoint", () -> {
            Endpoint endpoint = network.endpoint(SERVER);
            return endpoint == null ? "none" : endpoint.stats();
        });
        states.put("store", store::stats);
        states.put("network", () -> network);
        return states;
    }

    private boolean nothingReserved() {
        Endpoint endpoint = network.endpoint(SERVER);
        return endpoint != null
                && endpoint.stats().leases().open() == 0
                && endpoint.stats().reservations().open() == 0
                && endpoint.stats().waiting() == 0;
    }

    private String last = "";

    private boolean works(RemoteKvCache cache, NetworkTraffic traffic) {
        try {
            int stored = traffic.stored(7_000, 3);
            int resident = traffic.resident(7_000, 3);
            last = "stored " + stored + " resident " + resident + " " + cache.remoteStats();
            return stored == 3 && resident == 3;
        } catch (UncheckedIOException notYet) {
            return cache.remoteStats().open() < 0;
        }
    }

    private void await(String what, BooleanSupplier holds) {
        long start = System.nanoTime();
        while (!holds.getAsBoolean()) {
            assertThat(System.nanoTime() - start)
                    .as(name() + ": " + what + "; " + last)
                    .isLessThan(PATIENCE.toNanos());
            sleep(2);
        }
    }

    private String name() {
        return "seed " + seed;
    }
}
