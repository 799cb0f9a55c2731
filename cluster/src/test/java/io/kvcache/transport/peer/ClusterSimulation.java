package io.kvcache.transport.peer;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.cluster.SimulatedMembership;
import io.kvcache.cluster.SimulatedNetwork;
import io.kvcache.core.BlockTable;
import io.kvcache.core.KvCache;
import io.kvcache.core.PutSummary;
import io.kvcache.core.check.BlockContent;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.Dtype;
import io.kvcache.core.identity.Namespace;
import io.kvcache.tiers.TieredKvCache;
import io.kvcache.transport.cluster.BlockGroup;
import io.kvcache.transport.cluster.NodeState;
import io.kvcache.transport.cluster.ReplicaPolicy;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.SplittableRandom;
import java.util.TreeSet;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import java.util.stream.IntStream;

/// One seed: eight servers of one cluster and three clients of it, with bad weather for a while, all on a
/// [TurnScheduler]: joins, leaves, crashes, restarts with and without what was kept, stopped processes, partitions,
/// false suspicion, lost and late messages.
///
/// What runs is the code of production from [ClusteredKvCache] over the view ([io.kvcache.cluster.ViewKeeper]) to the
/// handover and the copies ([FormerOwners], [GroupCopies]) and the stores. Only membership, connections and time
/// are simulated.
///
/// All the while every byte that is handed out is its key's, what is handed out is a prefix, and no get, match or put
/// fails. When the weather is over, all servers and clients have one view, what one client puts the others find, and
/// what is dropped is gone everywhere.
public final class ClusterSimulation {

    static final String CLUSTER = "simulated";
    static final Duration FAILURE_AFTER = Duration.ofSeconds(3);
    static final Namespace SPACE = Namespace.of("clustered", BlockShape.kv(1, 1, 64, 16, Dtype.BF16));

    private static final int NODES = 8;
    private static final List<String> CLIENTS = List.of("one", "two", "three");
    private static final int OPERATIONS = 30;
    private static final int CHAINS = 4;
    private static final int BLOCKS = 150;
    /// So many reads of a group make copies of it.
    private static final int MIN_READS = 2;

    private static final long STEP = TimeUnit.MILLISECONDS.toNanos(10);
    private static final long QUIET_STEP = TimeUnit.MILLISECONDS.toNanos(250);
    private static final long QUIET = TimeUnit.SECONDS.toNanos(60);
    private static final int TRIES = 20;

    /// A get takes no longer than its timeout, the connecting to servers, and answers that do not come.
    private static final long SLACK = TimeUnit.SECONDS.toNanos(4);

    /// Of the clock on the wall at the beginning, in milliseconds.
    private static final long EPOCH = 1_700_000_000_000L;

    private final SplittableRandom random;
    private final TurnScheduler turnScheduler;
    private final SimulatedNetwork network;
    private final List<SimNode> nodes = new ArrayList<>();
    private final List<ClusteredKvCache> clients = new ArrayList<>();
    private final Set<String> otherSide = new HashSet<>();
    private final EventCounts counts;
    private final ReplicaPolicy replicas;
    private boolean partitioned;
    private boolean fair;
    private boolean over;
    private int working;

    /// What has happened, over all seeds.
    public static final class EventCounts {
        long found;
        long shorter;
        long handedOver;
        long copied;
        long readAtCopies;
        long missingCopies;
        long crashes;
        long partitions;
        long joins;
        long drains;

        /// Returns whether each of them has happened.
        boolean all() {
            return found > 0
                    && shorter > 0
                    && handedOver > 0
                    && copied > 0
                    && readAtCopies > 0
                    && missingCopies > 0
                    && crashes > 0
                    && partitions > 0
                    && joins > 0
                    && drains > 0;
        }

        @Override
        public String toString() {
            return ("%d blocks found, %d prefixes cut short, %d blocks handed over, %d copied, %d reads at copies, "
                            + "%d copies missing, %d crashes, %d partitions, %d joins, %d drains")
                    .formatted(
                            found,
                            shorter,
                            handedOver,
                            copied,
                            readAtCopies,
                            missingCopies,
                            crashes,
                            partitions,
                            joins,
                            drains);
        }
    }

    public ClusterSimulation(long seed, EventCounts counts) {
        this.counts = counts;
        random = new SplittableRandom(seed);
        turnScheduler = new TurnScheduler(random.split());
        network = new SimulatedNetwork(random.nextLong(), FAILURE_AFTER);
        replicas = any(List.of(ReplicaPolicy.values()));
    }

    /// Answers what tells this run from another one.
    public long run() throws InterruptedException {
        turnScheduler.run("seed", this::runAll);
        return turnScheduler.trace();
    }

    private void runAll() {
        turnScheduler.start("network", this::runNetwork);
        for (int i = 0; i < NODES; i++) {
            nodes.add(new SimNode("kv-" + i, NearSimulation.store(BlockGroup.namespace(SPACE))));
        }
        for (SimNode node : nodes.subList(0, 5)) {
            start(node);
        }
        turnScheduler.sleep(TimeUnit.SECONDS.toNanos(2));
        CLIENTS.forEach(client -> clients.add(open(client)));
        for (int i = 0; i < CLIENTS.size(); i++) {
            SplittableRandom own = random.split();
            ClusteredKvCache cache = clients.get(i);
            working++;
            turnScheduler.start(CLIENTS.get(i), () -> work(cache, own));
        }
        while (working > 0) {
            disturb();
        }
        settle();
        close();
    }

    private void runNetwork() {
        network.loseMessages(0.1);
        while (!over) {
            turnScheduler.sleep(fair ? QUIET_STEP : STEP);
            network.advance(turnScheduler.now() - network.nanos());
        }
    }

    private void start(SimNode node) {
        turnScheduler.note(node.name + " starts");
        counts.joins++;
        node.start(this);
        turnScheduler.sleep(random.nextLong(50_000_000));
        SimNode.Run process = node.process();
        if (process != null) {
            process.keeper.setState(NodeState.SERVING);
        }
    }

    private ClusteredKvCache open(String client) {
        ClusteredKvCache cache = ClusteredKvCache.connect(
                nodes.stream().map(node -> node.name).toList(),
                new ClusteredKvCache.Dependencies(
                        address -> connectClient(client, address),
                        executor(client + " fetches"),
                        executor(client + " connects"),
                        turnScheduler,
                        new GroupCopies.Options(MIN_READS, random.split()::nextInt)));
        cache.register(SPACE);
        return cache;
    }

    PeeredKvCache.Dependencies dependencies(String server) {
        return new PeeredKvCache.Dependencies(
                address -> connect(server, address, true),
                executor(server + " fetches"),
                executor(server + " connects"),
                turnScheduler);
    }

    private TurnExecutor executor(String name) {
        return new TurnExecutor(turnScheduler, name, Integer.MAX_VALUE);
    }

    private ClusterConnection connectClient(String client, String address) {
        return connect(client, address, false);
    }

    private SimConnection connect(String from, String address, boolean localOnly) {
        SimNode node = nodes.stream()
                .filter(each -> each.name.equals(address))
                .findFirst()
                .orElseThrow();
        turnScheduler.sleep(fair ? 50_000 : random.nextLong(40_000_000));
        if (node.answering() == null || !reaches(from, node)) {
            throw new UncheckedIOException(new IOException("no server at " + address));
        }
        return new SimConnection(this, from, node, localOnly);
    }

    boolean reaches(String from, SimNode node) {
        return !partitioned || otherSide.contains(from) == otherSide.contains(node.name);
    }

    SimulatedNetwork network() {
        return network;
    }

    TurnScheduler scheduler() {
        return turnScheduler;
    }

    long millis() {
        return EPOCH + TimeUnit.NANOSECONDS.toMillis(turnScheduler.now());
    }

    ReplicaPolicy replicas() {
        return replicas;
    }

    SplittableRandom split() {
        return random.split();
    }

    boolean isFaultFree() {
        return fair;
    }

    private List<SimNode> running() {
        return nodes.stream().filter(node -> node.process() != null).toList();
    }

    private <T> T any(List<T> of) {
        return of.get(random.nextInt(of.size()));
    }

    /// Something happens to a server or to the network.
    private void disturb() {
        turnScheduler.sleep(random.nextLong(1_500_000_000));
        List<SimNode> running = running();
        List<SimNode> idle =
                nodes.stream().filter(node -> node.process() == null).toList();
        switch (random.nextInt(8)) {
            case 0, 1 -> {
                if (!idle.isEmpty()) {
                    start(any(idle));
                }
            }
            case 2 -> {
                if (running.size() > 2) {
                    crash(any(running));
                }
            }
            case 3 -> {
                if (running.size() > 2) {
                    drain(any(running));
                }
            }
            case 4 -> stopAWhile(any(running));
            case 5 -> partitionAWhile();
            case 6 -> {
                SimNode node = any(running);
                turnScheduler.note(node.name + " is suspected");
                network.suspectFalsely(membership(node));
            }
            default -> restart(any(running));
        }
    }

    private static SimulatedMembership membership(SimNode node) {
        return Objects.requireNonNull(node.process()).membership;
    }

    private void crash(SimNode node) {
        turnScheduler.note(node.name + " crashes");
        counts.crashes++;
        node.crash(this);
        if (random.nextBoolean()) {
            node.lose();
        }
    }

    private void restart(SimNode node) {
        crash(node);
        turnScheduler.sleep(random.nextLong(2_000_000_000));
        start(node);
    }

    private void drain(SimNode node) {
        turnScheduler.note(node.name + " drains");
        counts.drains++;
        Objects.requireNonNull(node.process()).keeper.setState(NodeState.DRAINING);
        turnScheduler.sleep(random.nextLong(1_000_000_000));
        node.leave();
    }

    private void stopAWhile(SimNode node) {
        SimNode.Run process = Objects.requireNonNull(node.process());
        turnScheduler.note(node.name + " stands still");
        process.stopped = true;
        network.stop(process.membership);
        turnScheduler.sleep(random.nextLong(8_000_000_000L));
        turnScheduler.note(node.name + " goes on");
        network.resume(process.membership);
        process.stopped = false;
    }

    private void partitionAWhile() {
        counts.partitions++;
        Set<SimulatedMembership> side = new HashSet<>();
        for (SimNode node : nodes) {
            if (random.nextBoolean()) {
                otherSide.add(node.name);
                if (node.process() != null) {
                    side.add(membership(node));
                }
            }
        }
        CLIENTS.stream().filter(_ -> random.nextBoolean()).forEach(otherSide::add);
        turnScheduler.note("cut off: " + new TreeSet<>(otherSide));
        partitioned = true;
        network.partition(side);
        turnScheduler.sleep(random.nextLong(10_000_000_000L));
        heal();
    }

    private void heal() {
        turnScheduler.note("no partition");
        partitioned = false;
        otherSide.clear();
        network.heal();
    }

    private void work(ClusteredKvCache cache, SplittableRandom own) {
        try {
            for (int i = 0; i < OPERATIONS; i++) {
                turnScheduler.sleep(own.nextLong(300_000_000));
                BlockChain chain = chain(own.nextInt(CHAINS), 1 + own.nextInt(BLOCKS));
                switch (own.nextInt(8)) {
                    case 0, 1, 2 -> put(cache, chain);
                    case 3 ->
                        turnScheduler.note("matched "
                                + cache.match(chain, Duration.ofNanos(own.nextLong(200_000_000)))
                                        .blocks());
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

    private PutSummary put(KvCache cache, BlockChain chain) {
        try (Arena arena = Arena.ofShared()) {
            List<MemorySegment> blocks = IntStream.range(0, chain.length())
                    .mapToObj(index -> {
                        MemorySegment block = arena.allocate(SPACE.blockBytes());
                        BlockContent.of(chain.key(index)).fill(block);
                        return block;
                    })
                    .toList();
            PutSummary summary = cache.putAll(chain, 0, blocks, KvCache.NO_WAIT);
            turnScheduler.note("put " + summary);
            return summary;
        }
    }

    private int get(KvCache cache, BlockChain chain, long timeoutNanos) {
        long start = turnScheduler.now();
        try (BlockTable table = cache.acquire(chain, 0, Duration.ofNanos(timeoutNanos))) {
            int ready = table.await(chain.length(), Duration.ofNanos(timeoutNanos));
            long took = turnScheduler.now() - start;
            assertThat(took).as("time of a get").isBetween(0L, 2 * timeoutNanos + SLACK);
            assertThat(ready).as("a prefix").isBetween(0, chain.length());
            for (int index = 0; index < ready; index++) {
                BlockContent.of(chain.key(index)).requireEqual(table.segment(index));
            }
            counts.found += ready;
            counts.shorter += ready < chain.length() ? 1 : 0;
            turnScheduler.note("got " + ready + " of " + chain.length());
            return ready;
        }
    }

    private void settle() {
        turnScheduler.note("the weather is over");
        fair = true;
        heal();
        network.loseMessages(0);
        turnScheduler.sleep(QUIET);
        List<SimNode> running = running();
        long digest = Objects.requireNonNull(running.getFirst().process())
                .keeper
                .view()
                .digest();
        for (SimNode node : running) {
            assertThat(Objects.requireNonNull(node.process()).keeper.view())
                    .as("the view of %s", node.name)
                    .satisfies(view -> assertThat(view.serving()).hasSize(running.size()))
                    .satisfies(view -> assertThat(view.digest()).isEqualTo(digest));
        }
        for (ClusteredKvCache client : clients) {
            assertThat(client.view().digest()).as("a client's view").isEqualTo(digest);
        }
        BlockChain fresh = chain(77, BLOCKS);
        assertThat(put(clients.getFirst(), fresh).accepted()).isEqualTo(BLOCKS);
        clients.forEach(client -> assertThat(get(client, fresh, TimeUnit.SECONDS.toNanos(1)))
                .as("what one puts the others find")
                .isEqualTo(BLOCKS));
        retry("a drop reaches all", () -> clients.getLast().drop(fresh, 70) >= 0);
        for (ClusteredKvCache client : clients) {
            assertThat(client.match(fresh, Duration.ofSeconds(1)).blocks()).isEqualTo(70);
        }
        clients.forEach(client -> {
            counts.readAtCopies += client.copyStats().reads();
            counts.missingCopies += client.copyStats().missing();
        });
        running.forEach(node -> {
            SimNode.Run process = Objects.requireNonNull(node.process());
            counts.handedOver += process.served.fetchedCount() - process.served.copiedCount();
            counts.copied += process.served.copiedCount();
            assertThat(process.served.corruptCount()).isZero();
        });
    }

    private void retry(String what, BooleanSupplier works) {
        for (int i = 0; !works.getAsBoolean(); i++) {
            assertThat(i).as(what).isLessThan(TRIES);
            turnScheduler.sleep(TimeUnit.MILLISECONDS.toNanos(100));
        }
    }

    private void close() {
        clients.forEach(ClusteredKvCache::close);
        running().forEach(SimNode::leave);
        over = true;
        turnScheduler.sleep(TimeUnit.SECONDS.toNanos(10));
        for (SimNode node : nodes) {
            TieredKvCache store = node.store;
            assertThat(store.stats().openTables()).as("tables at %s", node.name).isZero();
            store.validate();
            store.close();
        }
    }
}
