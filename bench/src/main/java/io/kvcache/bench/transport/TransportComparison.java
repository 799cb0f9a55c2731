package io.kvcache.bench.transport;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;
import java.util.function.IntConsumer;

/// Moves the same blocks through the remote cache and to a bare responder in turn, round by round, so
/// that what else the machine does meets both.
public final class TransportComparison {

    private static final List<Integer> SIZES = List.of(64 << 10, 1 << 20, 4 << 20);
    private static final List<Integer> IN_FLIGHT = List.of(1, 4);
    static final int CONNECTIONS = 2;
    private static final int SECOND_PUTS = 1 << 24;
    private static final Path MEMORY = Path.of("/dev/shm");
    private static final Path TEMPORARY = Path.of(System.getProperty("java.io.tmpdir"));

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

    /// All cells: four operations, three sizes, two numbers in flight.
    public List<TransportCell> run() throws IOException, InterruptedException {
        try (TransportServer server = TransportServer.start();
                RemoteClient ours = new RemoteClient("127.0.0.1:" + server.port(), CONNECTIONS);
                BareClient bare = new BareClient(server.barePort(), CONNECTIONS, SIZES.getLast())) {
            return run(ours, bare, bytes -> {});
        }
    }

    /// The same over Aeron on this host, where the other is the remote cache over TCP.
    ///
    /// @param termBytes of the terms of all streams
    public List<TransportCell> runAeron(int termBytes) throws IOException, InterruptedException {
        return runAeron(termBytes, (address, server) -> {
            try (RemoteClient ours = new RemoteClient(address, CONNECTIONS);
                    RemoteClient tcp = new RemoteClient("127.0.0.1:" + server.port(), CONNECTIONS, SECOND_PUTS)) {
                return run(ours, tcp, tcp::know);
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
                return run(ours, bare, bytes -> {}, List.of(Operation.ACQUIRE));
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
        Path folder = Files.createTempDirectory(SharedComparison.possible() ? MEMORY : TEMPORARY, "kvcache-bench-");
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
        Path folder = Files.createTempDirectory(MEMORY, "kvcache-bench-");
        try (TransportServer server = TransportServer.ucx(folder, transports);
                RemoteClient ours =
                        new RemoteClient("ucx:127.0.0.1:" + server.port() + "?tls=" + transports, CONNECTIONS);
                RemoteClient tcp = new RemoteClient("127.0.0.1:" + server.port(), CONNECTIONS, SECOND_PUTS)) {
            List<TransportCell> cells = run(ours, tcp, tcp::know, List.of(Operation.ACQUIRE));
            ours.requireFetched();
            return cells;
        } finally {
            SharedComparison.remove(folder);
        }
    }

    private List<TransportCell> run(RemoteClient ours, Contestant other, IntConsumer size) throws InterruptedException {
        return run(ours, other, size, List.of(Operation.values()));
    }

    private List<TransportCell> run(RemoteClient ours, Contestant other, IntConsumer size, List<Operation> operations)
            throws InterruptedException {
        List<TransportCell> cells = new ArrayList<>();
        for (int bytes : SIZES) {
            ours.fill(bytes);
            size.accept(bytes);
            for (Operation operation : operations) {
                warm(ours, other, new Cargo(operation, bytes, 2));
                for (int inFlight : IN_FLIGHT) {
                    cells.add(cell(ours, other, new Cargo(operation, bytes, inFlight)));
                }
            }
            ours.empty(bytes);
        }
        return cells;
    }

    private void warm(Contestant ours, Contestant bare, Cargo cargo) throws InterruptedException {
        progress.accept("warming " + cargo.operation().text() + " of " + (cargo.bytes() >> 10) + " KiB");
        Meter.move(ours, cargo, time.multipliedBy(2));
        Meter.move(bare, cargo, time.multipliedBy(2));
    }

    private TransportCell cell(Contestant ours, Contestant bare, Cargo cargo) throws InterruptedException {
        progress.accept(
                cargo.operation().text() + " " + (cargo.bytes() >> 10) + " KiB, " + cargo.inFlight() + " in flight");
        List<Moves> own = new ArrayList<>();
        List<Moves> other = new ArrayList<>();
        List<Double> ratios = new ArrayList<>();
        for (int round = 0; round < rounds; round++) {
            own.add(Meter.move(ours, cargo, time));
            other.add(Meter.move(bare, cargo, time));
            ratios.add(own.getLast().gigabytes() / other.getLast().gigabytes());
        }
        return new TransportCell(cargo, Meter.median(own), Meter.median(other), Meter.median(ratios, ratio -> ratio));
    }
}
