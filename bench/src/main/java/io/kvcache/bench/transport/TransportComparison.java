package io.kvcache.bench.transport;

import io.kvcache.bench.server.ServerProcess;
import io.kvcache.transport.remote.SharedMemoryMode;
import java.io.IOException;
import java.net.DatagramSocket;
import java.net.InetAddress;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.function.Consumer;

/// Moves the same blocks through the remote cache and to a bare responder in turn, round by round, so
/// that what else the machine does meets both.
public final class TransportComparison {

    private static final List<Integer> SIZES = List.of(64 << 10, 1 << 20, 2 << 20, 4 << 20);
    private static final List<Integer> IN_FLIGHT = List.of(1, 4);
    static final int CONNECTIONS = 2;
    private static final int SECOND_PUTS = 1 << 24;
    private static final long REDIS_BYTES = 1L << 30;

    private final int rounds;
    private final Duration time;
    private final Consumer<String> progress;

    /// How long to measure.
    ///
    /// @param rounds times that each cargo is moved by each
    /// @param time of each round
    /// @param progress told what is about to run
    public TransportComparison(int rounds, Duration time, Consumer<String> progress) {
        this.rounds = rounds;
        this.time = time;
        this.progress = progress;
    }

    /// All cells: four operations, four sizes, two numbers in flight.
    public List<TransportCell> run() throws IOException, InterruptedException {
        try (TransportServer server = TransportServer.start();
                RemoteClient ours = new RemoteClient("127.0.0.1:" + server.port(), CONNECTIONS);
                BareClient bare = new BareClient(server.barePort(), CONNECTIONS, SIZES.getLast())) {
            return run(new Pair(server, ours, bare), bytes -> {}, List.of(Operation.values()));
        }
    }

    /// What is got from and put to a Redis of this machine with as many connections, beside the remote cache.
    ///
    /// @throws IOException also when there is no Redis
    public List<TransportCell> runRedis() throws IOException, InterruptedException {
        try (ServerProcess redis = ServerProcess.startRedis(REDIS_BYTES);
                RedisClient client = new RedisClient(redis.port(), CONNECTIONS, SIZES.getLast());
                TransportServer server = TransportServer.start();
                RemoteClient ours = new RemoteClient("127.0.0.1:" + server.port(), CONNECTIONS)) {
            ProcessHandle process = ProcessHandle.of(redis.processId()).orElseThrow();
            Pair pair = new Pair(ours, new Side(ours, server), new Side(client, OtherSide.of(process)));
            return run(pair, client::fill, List.of(Operation.ACQUIRE, Operation.STORE));
        }
    }

    /// What is got and put over Aeron's UDP on this host, in datagrams as long as they may be, where the other is the
    /// remote cache over TCP.
    ///
    /// @param termBytes of the terms of all streams
    public List<TransportCell> runAeronUdp(int termBytes) throws IOException, InterruptedException {
        String address = "aeron:udp?endpoint=127.0.0.1:" + freePort() + "|mtu=65504|term-length=" + termBytes;
        try (TransportServer server = TransportServer.aeron(address);
                RemoteClient ours = new RemoteClient(address, CONNECTIONS);
                RemoteClient tcp = new RemoteClient("127.0.0.1:" + server.port(), CONNECTIONS, SECOND_PUTS)) {
            return run(new Pair(server, ours, tcp), tcp::know, List.of(Operation.ACQUIRE, Operation.STORE));
        }
    }

    private static int freePort() throws IOException {
        try (DatagramSocket any = new DatagramSocket(0, InetAddress.getLoopbackAddress())) {
            return any.getLocalPort();
        }
    }

    /// The same over Aeron on this host, where the other is the remote cache over TCP.
    ///
    /// @param termBytes of the terms of all streams
    public List<TransportCell> runAeron(int termBytes) throws IOException, InterruptedException {
        return runAeron(termBytes, (address, server) -> {
            try (RemoteClient ours = new RemoteClient(address, CONNECTIONS);
                    RemoteClient tcp = new RemoteClient("127.0.0.1:" + server.port(), CONNECTIONS, SECOND_PUTS)) {
                return run(new Pair(server, ours, tcp), tcp::know, List.of(Operation.values()));
            }
        });
    }

    /// What is got over Aeron on this host, where the other is Aeron with the same settings and nothing above it.
    ///
    /// @param termBytes of the terms of all streams
    public List<TransportCell> runBareAeron(int termBytes) throws IOException, InterruptedException {
        return runAeron(termBytes, (address, server) -> {
            try (RemoteClient ours = new RemoteClient(address, CONNECTIONS);
                    BareAeronClient bare =
                            new BareAeronClient(driver(address), channel(termBytes), CONNECTIONS, SIZES.getLast())) {
                return run(new Pair(server, ours, bare), bytes -> {}, List.of(Operation.ACQUIRE));
            }
        });
    }

    /// Runs beside a server over Aeron.
    @FunctionalInterface
    private interface Beside {

        /// Measures.
        List<TransportCell> run(String address, TransportServer server) throws IOException, InterruptedException;
    }

    private static List<TransportCell> runAeron(int termBytes, Beside beside) throws IOException, InterruptedException {
        Path folder = SharedComparison.folder();
        String address = "aeron:ipc?dir=" + folder + "|term-length=" + termBytes;
        try (TransportServer server = TransportServer.aeron(address, driver(address), channel(termBytes))) {
            return beside.run(address, server);
        } finally {
            SharedComparison.remove(folder);
        }
    }

    /// The directory of an embedded driver.
    private static String driver(String address) {
        return address.substring(address.indexOf('=') + 1, address.indexOf('|')) + "/driver";
    }

    private static String channel(int termBytes) {
        return "aeron:ipc?term-length=" + termBytes;
    }

    /// What is got over UCX on this host, where the other is the remote cache over TCP.
    ///
    /// @param transports of UCX
    public List<TransportCell> runUcx(String transports) throws IOException, InterruptedException {
        Path folder = SharedComparison.folder();
        try (TransportServer server = TransportServer.ucx(folder, transports);
                RemoteClient ours =
                        new RemoteClient("ucx:127.0.0.1:" + server.port() + "?tls=" + transports, CONNECTIONS);
                RemoteClient tcp = new RemoteClient("127.0.0.1:" + server.port(), CONNECTIONS, SECOND_PUTS)) {
            List<TransportCell> cells = run(new Pair(server, ours, tcp), tcp::know, List.of(Operation.ACQUIRE));
            ours.requireFetched();
            return cells;
        } finally {
            SharedComparison.remove(folder);
        }
    }

    /// What is put through memory that client and server share, where the other is the remote cache over TCP,
    /// to the same server.
    public List<TransportCell> runStaged() throws IOException, InterruptedException {
        Path folder = SharedComparison.folder();
        try (TransportServer server = TransportServer.sharing(folder);
                RemoteClient ours =
                        new RemoteClient("127.0.0.1:" + server.port(), CONNECTIONS, 0, SharedMemoryMode.REQUIRED);
                RemoteClient tcp = new RemoteClient("127.0.0.1:" + server.port(), CONNECTIONS, SECOND_PUTS)) {
            List<Operation> puts =
                    Arrays.stream(Operation.values()).filter(Operation::puts).toList();
            List<TransportCell> cells = run(new Pair(server, ours, tcp), tcp::know, puts);
            ours.requireStaged();
            return cells;
        } finally {
            SharedComparison.remove(folder);
        }
    }

    /// Ours and what it is held against.
    ///
    /// @param filling the same as `ours`
    private record Pair(RemoteClient filling, Side ours, Side other) {

        /// At one server.
        Pair(TransportServer server, RemoteClient ours, Contestant other) {
            this(ours, new Side(ours, server), new Side(other, server));
        }
    }

    /// Makes the other ready for blocks of a size.
    @FunctionalInterface
    private interface Filling {

        /// Once they are in ours.
        void fill(int bytes) throws IOException, InterruptedException;
    }

    private List<TransportCell> run(Pair pair, Filling other, List<Operation> operations)
            throws IOException, InterruptedException {
        List<TransportCell> cells = new ArrayList<>();
        for (int bytes : SIZES) {
            pair.filling.fill(bytes);
            other.fill(bytes);
            for (Operation operation : operations) {
                warm(pair, new Cargo(operation, bytes, 2));
                for (int inFlight : IN_FLIGHT) {
                    cells.add(cell(pair, new Cargo(operation, bytes, inFlight)));
                }
            }
            pair.filling.empty(bytes);
        }
        return cells;
    }

    private void warm(Pair pair, Cargo cargo) throws IOException, InterruptedException {
        progress.accept("warming " + cargo.operation().text() + " of " + (cargo.bytes() >> 10) + " KiB");
        pair.ours.move(cargo, time.multipliedBy(2));
        pair.other.move(cargo, time.multipliedBy(2));
    }

    private TransportCell cell(Pair pair, Cargo cargo) throws IOException, InterruptedException {
        progress.accept(
                cargo.operation().text() + " " + (cargo.bytes() >> 10) + " KiB, " + cargo.inFlight() + " in flight");
        List<Side.Round> own = new ArrayList<>();
        List<Side.Round> other = new ArrayList<>();
        List<Double> ratios = new ArrayList<>();
        for (int round = 0; round < rounds; round++) {
            own.add(pair.ours.move(cargo, time));
            other.add(pair.other.move(cargo, time));
            ratios.add(
                    own.getLast().moves().gigabytes() / other.getLast().moves().gigabytes());
        }
        return new TransportCell(
                cargo, moves(own), moves(other), Meter.median(ratios, ratio -> ratio), costs(own), costs(other));
    }

    private static Moves moves(List<Side.Round> rounds) {
        return Meter.median(rounds.stream().map(Side.Round::moves).toList());
    }

    private static Cost costs(List<Side.Round> rounds) {
        return Cost.median(rounds.stream().map(Side.Round::cost).toList());
    }
}
