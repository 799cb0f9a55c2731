package io.kvcache.bench.transport;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;

import io.kvcache.bench.Median;
import io.kvcache.bench.transport.SharedMemoryComparison.SharedMemoryAccess;
import io.kvcache.bench.transport.TransferEndpoint.TransferClient;
import io.kvcache.bench.transport.TransferMeter.TransferStats;
import io.kvcache.bench.transport.TransferSpec.TransferOperation;
import io.kvcache.core.BlockTable;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.transport.client.RemoteKvCache;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Consumer;
import java.util.stream.IntStream;

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

    /// Returns whether this machine has a file system in memory.
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
                Median.of(ratios),
                Median.of(micros));
    }

    /// One use of shared memory, beside a bare copy of as many bytes.
    ///
    /// @param ratio median of the rounds' ratios of bytes a second
    /// @param serverMicros processor time of the server's process for each block
    public record SharedMemoryResult(
            SharedMemoryAccess use,
            TransferSpec cargo,
            TransferStats ours,
            TransferStats bare,
            double ratio,
            double serverMicros) {}

    /// How a block of a server on this host is read.
    public enum SharedMemoryAccess {
        /// Looked up and copied without a message.
        COPY,
        /// Leased, looked at in place, and given back.
        VIEW,
        /// The same after a millisecond without requests, so that the server's thread sleeps.
        VIEW_IDLE
    }

    /// Reads blocks of a server on this host out of its memory.
    private static final class SharedMemoryClient implements TransferClient {

        private static final long IDLE_NANOS = TimeUnit.MILLISECONDS.toNanos(1);

        private final RemoteKvCache cache;
        private final SharedMemoryAccess use;
        private final List<BlockChain> chains;

        /// @param cache with the server's memory mapped; its caller's
        SharedMemoryClient(RemoteKvCache cache, SharedMemoryAccess use, int bytes) {
            this.cache = cache;
            this.use = use;
            cache.register(RemoteTransferClient.space(bytes));
            chains = IntStream.range(0, RemoteTransferClient.blocks(bytes))
                    .mapToObj(seed -> RemoteTransferClient.chain(bytes, seed))
                    .toList();
        }

        @Override
        public void beforeTransfer() {
            if (use == SharedMemoryAccess.VIEW_IDLE) {
                LockSupport.parkNanos(IDLE_NANOS);
            }
        }

        @Override
        public boolean transfer(TransferSpec transferSpec, long number) {
            BlockChain chain = chains.get((int) (number * 7919 & (chains.size() - 1)));
            return switch (use) {
                case COPY -> copy(chain, transferSpec.bytes());
                case VIEW, VIEW_IDLE -> view(chain);
            };
        }

        private boolean copy(BlockChain chain, int bytes) {
            CopyTargetRing copyTargets = CopyTargetRing.borrow();
            int copied = cache.getAll(chain, 0, List.of(copyTargets.nextSlice(bytes)));
            copyTargets.giveBack();
            return copied == 1;
        }

        private boolean view(BlockChain chain) {
            try (BlockTable table = cache.acquire(chain)) {
                return table.readyBlocks() == 1 && table.segment(0).get(JAVA_BYTE, 0) == 0 && table.isValid();
            }
        }

        @Override
        public void close() {
            // The cache is its caller's.
        }
    }

    /// Copies blocks within this process: what a copy costs at least, from memory that no cache holds to such
    /// memory.
    private static final class BaselineCopy implements TransferClient {

        private static final long MEMORY = 512L << 20;

        private final MemorySegment memory = Arena.ofAuto().allocate(MEMORY, 4096);

        BaselineCopy() {
            memory.fill((byte) 3);
        }

        @Override
        public boolean transfer(TransferSpec transferSpec, long number) {
            int bytes = transferSpec.bytes();
            long block = number * 7919 & (MEMORY / bytes - 1);
            CopyTargetRing copyTargets = CopyTargetRing.borrow();
            MemorySegment.copy(memory, block * bytes, copyTargets.nextSlice(bytes), 0, bytes);
            copyTargets.giveBack();
            return true;
        }

        @Override
        public void close() {
            // The garbage collector frees the memory.
        }
    }

    /// The targets of one thread's copies, in turn: more than the caches of a processor hold. A thread borrows it
    /// for one copy at a time, so that short-lived threads do not each make one.
    private static final class CopyTargetRing {

        private static final long BUFFER_BYTES = 64L << 20;
        private static final Queue<CopyTargetRing> IDLE = new ConcurrentLinkedQueue<>();

        private final MemorySegment memory = Arena.ofAuto().allocate(BUFFER_BYTES, 4096);
        private long next;

        /// Lends one.
        static CopyTargetRing borrow() {
            CopyTargetRing idle = IDLE.poll();
            return idle == null ? new CopyTargetRing() : idle;
        }

        /// Gives it back.
        void giveBack() {
            IDLE.add(this);
        }

        /// The next piece of it.
        MemorySegment nextSlice(int bytes) {
            next = next + bytes > BUFFER_BYTES ? 0 : next;
            MemorySegment piece = memory.asSlice(next, bytes);
            next += bytes;
            return piece;
        }
    }
}
