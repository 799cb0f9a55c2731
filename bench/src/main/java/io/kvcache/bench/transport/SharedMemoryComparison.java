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
public final class SharedMemoryComparison {

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
    public SharedMemoryComparison(int rounds, Duration time, Consumer<String> progress) {
        this.rounds = rounds;
        this.time = time;
        this.progress = progress;
    }

    /// Whether this machine has a file system in memory.
    public static boolean isSupported() {
        return Files.isDirectory(MEMORY);
    }

    /// A new folder, there if it has one.
    static Path createFolder() throws IOException {
        return Files.createTempDirectory(isSupported() ? MEMORY : TEMPORARY, "kvcache-bench-");
    }

    /// All cells: three uses, four sizes, two numbers in flight; the one after idleness with one in
    /// flight.
    public List<SharedMemoryResult> run() throws IOException, InterruptedException {
        Path folder = createFolder();
        try (TransportServerProcess server = TransportServerProcess.startShared(folder);
                RemoteTransferClient filling = new RemoteTransferClient("127.0.0.1:" + server.port(), 1);
                RemoteKvCache cache = RemoteKvCache.connect("shm:127.0.0.1:" + server.port());
                BaselineCopy bare = new BaselineCopy()) {
            List<SharedMemoryResult> cells = new ArrayList<>();
            for (int bytes : SIZES) {
                filling.putBlocks(bytes);
                for (SharedMemoryAccess use : SharedMemoryAccess.values()) {
                    SharedMemoryClient ours = new SharedMemoryClient(cache, use, bytes);
                    TransferSpec warming = new TransferSpec(TransferOperation.ACQUIRE, bytes, IN_FLIGHT.getLast());
                    progress.accept("warming " + use + " of " + (bytes >> 10) + " KiB");
                    TransferMeter.measure(ours, warming, time.multipliedBy(2));
                    TransferMeter.measure(bare, warming, time);
                    for (int inFlight : use == SharedMemoryAccess.VIEW_IDLE ? List.of(1) : IN_FLIGHT) {
                        cells.add(cell(
                                server,
                                ours,
                                bare,
                                new SharedTransfer(use, new TransferSpec(TransferOperation.ACQUIRE, bytes, inFlight))));
                    }
                }
                filling.dropBlocks(bytes);
            }
            return cells;
        } finally {
            deleteFolder(folder);
        }
    }

    /// With what a server leaves there that had to be killed.
    static void deleteFolder(Path folder) throws IOException {
        try (DirectoryStream<Path> all = Files.newDirectoryStream(folder)) {
            for (Path each : all) {
                Files.deleteIfExists(each);
            }
        }
        Files.deleteIfExists(folder);
    }

    private record SharedTransfer(SharedMemoryAccess use, TransferSpec cargo) {}

    private SharedMemoryResult cell(
            TransportServerProcess server, TransferClient ours, TransferClient bare, SharedTransfer what)
            throws InterruptedException {
        TransferSpec transferSpec = what.cargo;
        progress.accept(
                what.use + " " + (transferSpec.bytes() >> 10) + " KiB, " + transferSpec.inFlight() + " in flight");
        List<TransferStats> own = new ArrayList<>();
        List<TransferStats> other = new ArrayList<>();
        List<Double> ratios = new ArrayList<>();
        List<Double> micros = new ArrayList<>();
        for (int round = 0; round < rounds; round++) {
            Duration before = server.processorTime();
            own.add(TransferMeter.measure(ours, transferSpec, time));
            micros.add(server.processorTime().minus(before).toNanos()
                    / 1e3
                    / own.getLast().count());
            other.add(TransferMeter.measure(bare, transferSpec, time));
            ratios.add(own.getLast().gigabytes() / other.getLast().gigabytes());
        }
        return new SharedMemoryResult(
                what.use,
                transferSpec,
                TransferMeter.median(own),
                TransferMeter.median(other),
                TransferMeter.median(ratios, ratio -> ratio),
                TransferMeter.median(micros, each -> each));
    }
}
