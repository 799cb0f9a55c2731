package io.kvcache.bench.transport;

import io.kvcache.transport.remote.RemoteKvCache;
import java.io.IOException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;

/// Reads blocks out of the memory of a server on this host and copies as many bytes within this process in
/// turn, round by round.
public final class SharedComparison {

    private static final List<Integer> SIZES = List.of(64 << 10, 1 << 20, 2 << 20, 4 << 20);
    private static final List<Integer> IN_FLIGHT = List.of(1, 4);
    private static final Path MEMORY = Path.of("/dev/shm");
    private static final Path TEMPORARY = Path.of(System.getProperty("java.io.tmpdir"));

    private final int rounds;
    private final Duration time;
    private final Consumer<String> progress;

    /// How long to measure.
    ///
    /// @param rounds times that each use is measured
    /// @param time of each round
    /// @param progress told what is about to run
    public SharedComparison(int rounds, Duration time, Consumer<String> progress) {
        this.rounds = rounds;
        this.time = time;
        this.progress = progress;
    }

    /// Whether this machine has a file system in memory.
    public static boolean possible() {
        return Files.isDirectory(MEMORY);
    }

    /// A new folder, there if it has one.
    static Path folder() throws IOException {
        return Files.createTempDirectory(possible() ? MEMORY : TEMPORARY, "kvcache-bench-");
    }

    /// All cells: three uses, four sizes, two numbers in flight; the one after idleness with one in
    /// flight.
    public List<SharedCell> run() throws IOException, InterruptedException {
        Path folder = folder();
        try (TransportServer server = TransportServer.sharing(folder);
                RemoteClient filling = new RemoteClient("127.0.0.1:" + server.port(), 1);
                RemoteKvCache cache = RemoteKvCache.connect("shm:127.0.0.1:" + server.port());
                BareCopy bare = new BareCopy()) {
            List<SharedCell> cells = new ArrayList<>();
            for (int bytes : SIZES) {
                filling.fill(bytes);
                for (SharedUse use : SharedUse.values()) {
                    SharedClient ours = new SharedClient(cache, use, bytes);
                    Cargo warming = new Cargo(Operation.ACQUIRE, bytes, IN_FLIGHT.getLast());
                    progress.accept("warming " + use + " of " + (bytes >> 10) + " KiB");
                    Meter.move(ours, warming, time.multipliedBy(2));
                    Meter.move(bare, warming, time);
                    for (int inFlight : use == SharedUse.VIEW_IDLE ? List.of(1) : IN_FLIGHT) {
                        cells.add(cell(
                                server,
                                ours,
                                bare,
                                new SharedCargo(use, new Cargo(Operation.ACQUIRE, bytes, inFlight))));
                    }
                }
                filling.empty(bytes);
            }
            return cells;
        } finally {
            remove(folder);
        }
    }

    /// With what a server leaves there that had to be killed.
    static void remove(Path folder) throws IOException {
        try (DirectoryStream<Path> all = Files.newDirectoryStream(folder)) {
            for (Path each : all) {
                Files.deleteIfExists(each);
            }
        }
        Files.deleteIfExists(folder);
    }

    private record SharedCargo(SharedUse use, Cargo cargo) {}

    private SharedCell cell(TransportServer server, Contestant ours, Contestant bare, SharedCargo what)
            throws InterruptedException {
        Cargo cargo = what.cargo;
        progress.accept(what.use + " " + (cargo.bytes() >> 10) + " KiB, " + cargo.inFlight() + " in flight");
        List<Moves> own = new ArrayList<>();
        List<Moves> other = new ArrayList<>();
        List<Double> ratios = new ArrayList<>();
        List<Double> micros = new ArrayList<>();
        for (int round = 0; round < rounds; round++) {
            Duration before = server.processorTime();
            own.add(Meter.move(ours, cargo, time));
            micros.add(server.processorTime().minus(before).toNanos()
                    / 1e3
                    / own.getLast().count());
            other.add(Meter.move(bare, cargo, time));
            ratios.add(own.getLast().gigabytes() / other.getLast().gigabytes());
        }
        return new SharedCell(
                what.use,
                cargo,
                Meter.median(own),
                Meter.median(other),
                Meter.median(ratios, ratio -> ratio),
                Meter.median(micros, each -> each));
    }
}
