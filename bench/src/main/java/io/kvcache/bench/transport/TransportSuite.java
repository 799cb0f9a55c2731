package io.kvcache.bench.transport;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;

import com.sun.management.OperatingSystemMXBean;
import com.sun.management.ThreadMXBean;
import io.kvcache.bench.figure.Figure;
import io.kvcache.bench.figure.Suite;
import io.kvcache.bench.transport.RemoteBlocks.Operation;
import io.kvcache.bench.transport.TransferClient.Transfers;
import io.kvcache.core.BlockTable;
import io.kvcache.core.KvCache;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.Dtype;
import io.kvcache.core.identity.Namespace;
import io.kvcache.transport.client.RemoteKvCache;
import io.kvcache.transport.client.SharedMemoryMode;
import io.kvcache.transport.ucx.UcxMemory;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.management.ManagementFactory;
import java.net.DatagramSocket;
import java.net.InetAddress;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Locale;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.IntStream;

/// The remote cache from another process: bytes a second, median and 99th percentile, and what they cost.
///
/// - `tcp`, `aeron` (IPC), `udp` (Aeron on loopback), `ucx`: blocks of four sizes, one and four in flight.
/// - `staged`: blocks put through memory that client and server share.
/// - `shared`: blocks copied and looked at in the server's memory, beside a copy within this process.
/// - `match`: how much of a chain of 1,024 blocks is there, of chains that the server knows and of others.
public final class TransportSuite {

    private static final List<String> PARTS = List.of("tcp", "aeron", "udp", "ucx", "shared", "staged", "match");
    private static final List<Integer> SIZES = List.of(64 << 10, 1 << 20, 2 << 20, 4 << 20);
    private static final List<Integer> IN_FLIGHT = List.of(1, 4);
    private static final int CONNECTIONS = 2;
    private static final int ROUNDS = 5;
    private static final String AERON_TERM = "|term-length=1048576";
    private static final List<String> UCX_TRANSPORTS = List.of("tcp", "shm");
    private static final Path MEMORY = Path.of("/dev/shm");

    private static final OperatingSystemMXBean PROCESS =
            (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
    private static final ThreadMXBean THREADS = (ThreadMXBean) ManagementFactory.getThreadMXBean();

    private final Suite.Run run;
    private final int rounds;
    private final Duration time;
    private final List<Figure> figures = new ArrayList<>();

    private TransportSuite(Suite.Run run) {
        this.run = run;
        rounds = run.rounds(ROUNDS);
        time = Duration.ofMillis(run.quick() ? 100 : 1000);
    }

    public static Suite suite() {
        return new Suite(
                "transport",
                "the remote cache over each transport",
                List.of(),
                PARTS,
                run -> new TransportSuite(run).measure());
    }

    private List<Figure> measure() throws IOException, InterruptedException {
        for (String part : PARTS) {
            if (run.wantsPart(part)) {
                measure(part);
            }
        }
        return figures;
    }

    private void measure(String part) throws IOException, InterruptedException {
        switch (part) {
            case "tcp" -> tcp();
            case "aeron" -> aeron();
            case "udp" -> udp();
            case "match" -> match();
            case "shared", "staged", "ucx" -> {
                if (!Files.isDirectory(MEMORY)) {
                    run.progress().accept("no /dev/shm here, so no " + part);
                } else if (part.equals("shared")) {
                    shared();
                } else if (part.equals("staged")) {
                    staged();
                } else if (UcxMemory.possible()) {
                    for (String transports : UCX_TRANSPORTS) {
                        ucx(transports);
                    }
                } else {
                    run.progress().accept("no UCX here (apt-get install libucx0)");
                }
            }
            default -> throw new IllegalArgumentException("there is no part " + part);
        }
    }

    private void tcp() throws IOException, InterruptedException {
        try (TransportServerProcess server = TransportServerProcess.start();
                RemoteBlocks blocks = new RemoteBlocks("127.0.0.1:" + server.port(), CONNECTIONS)) {
            blocks("tcp", server, blocks, List.of(Operation.values()));
        }
    }

    private void aeron() throws IOException, InterruptedException {
        try (Folder folder = new Folder()) {
            String address = "aeron:ipc?dir=" + folder.path + AERON_TERM;
            try (TransportServerProcess server = TransportServerProcess.start(address);
                    RemoteBlocks blocks = new RemoteBlocks(address, CONNECTIONS)) {
                blocks("aeron", server, blocks, List.of(Operation.values()));
            }
        }
    }

    /// In datagrams of the largest size.
    private void udp() throws IOException, InterruptedException {
        String address = "aeron:udp?endpoint=127.0.0.1:" + freePort() + "|mtu=65504" + AERON_TERM;
        try (TransportServerProcess server = TransportServerProcess.start(address);
                RemoteBlocks blocks = new RemoteBlocks(address, CONNECTIONS)) {
            blocks("aeron-udp", server, blocks, List.of(Operation.ACQUIRE, Operation.STORE));
        }
    }

    private static int freePort() throws IOException {
        try (DatagramSocket any = new DatagramSocket(0, InetAddress.getLoopbackAddress())) {
            return any.getLocalPort();
        }
    }

    private void ucx(String transports) throws IOException, InterruptedException {
        try (Folder folder = new Folder();
                TransportServerProcess server = TransportServerProcess.startUcx(folder.path, transports);
                RemoteBlocks blocks =
                        new RemoteBlocks("ucx:127.0.0.1:" + server.port() + "?tls=" + transports, CONNECTIONS)) {
            blocks("ucx-" + transports, server, blocks, List.of(Operation.ACQUIRE));
            blocks.requireOneSidedReads();
        }
    }

    private void staged() throws IOException, InterruptedException {
        try (Folder folder = new Folder();
                TransportServerProcess server = TransportServerProcess.start(folder.path.toString());
                RemoteBlocks blocks =
                        new RemoteBlocks("127.0.0.1:" + server.port(), CONNECTIONS, SharedMemoryMode.REQUIRED)) {
            List<Operation> puts =
                    Arrays.stream(Operation.values()).filter(Operation::isPut).toList();
            blocks("staged", server, blocks, puts);
            blocks.requireSharedMemoryPuts();
        }
    }

    /// Blocks of all sizes by these operations.
    private void blocks(String by, TransportServerProcess server, RemoteBlocks blocks, List<Operation> operations)
            throws IOException, InterruptedException {
        for (int bytes : SIZES) {
            blocks.put(bytes);
            for (Operation operation : operations) {
                TransferClient client = blocks.client(operation, bytes);
                String what = by + "-" + operation.label() + "-" + (bytes >> 10) + "k-";
                run.progress().accept(what);
                client.measure(2, time.multipliedBy(2));
                for (int inFlight : IN_FLIGHT) {
                    List<Cost> costs = new ArrayList<>();
                    for (int round = 0; round < rounds; round++) {
                        costs.add(cost(client, server, inFlight, operation.blockCount(), bytes));
                    }
                    add(what + inFlight, costs);
                }
            }
            blocks.drop(bytes);
        }
    }

    /// Transfers of a while, and what they took.
    ///
    /// @param gigabytes a second
    /// @param processorSeconds of both processes together, for each 10^9 bytes
    /// @param heapBytes that this process allocates for each block
    /// @param serverHeapBytes that the other one does
    /// @param serverMicros processor time of the server for each block
    private record Cost(
            Transfers moves,
            double gigabytes,
            double processorSeconds,
            double heapBytes,
            double serverHeapBytes,
            double serverMicros) {}

    private Cost cost(TransferClient client, TransportServerProcess server, int inFlight, int blocks, int bytes)
            throws IOException, InterruptedException {
        long processor = PROCESS.getProcessCpuTime();
        long serverProcessor = server.processorTime().toNanos();
        long heap = THREADS.getTotalThreadAllocatedBytes();
        long serverHeap = server.allocatedBytes();
        Transfers moves = client.measure(inFlight, time);
        double moved = (double) moves.count() * blocks;
        long serverNanos = server.processorTime().toNanos() - serverProcessor;
        return new Cost(
                moves,
                moves.gigabytesPerSecond((long) blocks * bytes),
                (PROCESS.getProcessCpuTime() - processor + serverNanos) / (moved * bytes),
                (THREADS.getTotalThreadAllocatedBytes() - heap) / moved,
                (server.allocatedBytes() - serverHeap) / moved,
                serverNanos / 1e3 / moved);
    }

    private void add(String name, List<Cost> costs) {
        figures.add(Figure.of(name, "GB/s", costs, Cost::gigabytes));
        addTimes(name, costs);
        figures.add(Figure.of(name + "-cpu", "s/GB", costs, Cost::processorSeconds));
        figures.add(Figure.of(name + "-heap", "B", costs, Cost::heapBytes));
        figures.add(Figure.of(name + "-server-heap", "B", costs, Cost::serverHeapBytes));
    }

    private void addTimes(String name, List<Cost> costs) {
        figures.add(Figure.of(name + "-p50", "us", costs, cost -> cost.moves.p50Micros()));
        figures.add(Figure.of(name + "-p99", "us", costs, cost -> cost.moves.p99Micros()));
    }

    /// How a block of a server on this host is read.
    private enum Access {
        /// Looked up and copied without a message.
        COPY,
        /// Leased, looked at in place, and given back.
        VIEW,
        /// The same after a millisecond without requests, so that the server's thread sleeps.
        VIEW_IDLE
    }

    private void shared() throws IOException, InterruptedException {
        try (Folder folder = new Folder();
                TransportServerProcess server = TransportServerProcess.start(folder.path.toString());
                RemoteBlocks filling = new RemoteBlocks("127.0.0.1:" + server.port(), 1);
                RemoteKvCache cache = RemoteKvCache.connect("shm:127.0.0.1:" + server.port());
                Arena arena = Arena.ofShared()) {
            MemorySegment memory = arena.allocate(RemoteBlocks.WORKING_SET_BYTES, 4096);
            memory.fill((byte) 3);
            for (int bytes : SIZES) {
                filling.put(bytes);
                cache.register(RemoteBlocks.space(bytes));
                TransferClient bare = copyWithin(memory, bytes);
                for (Access access : Access.values()) {
                    TransferClient reads = new SharedMemoryReads(cache, access, bytes, RemoteBlocks.chains(bytes));
                    String what = access.name().toLowerCase(Locale.ROOT).replace('_', '-');
                    run.progress().accept("shared " + what + " of " + (bytes >> 10) + " KiB");
                    reads.measure(IN_FLIGHT.getLast(), time.multipliedBy(2));
                    bare.measure(IN_FLIGHT.getLast(), time);
                    for (int inFlight : access == Access.VIEW_IDLE ? List.of(1) : IN_FLIGHT) {
                        addShared(
                                "shared-" + what + "-" + (bytes >> 10) + "k-" + inFlight,
                                server,
                                reads,
                                bare,
                                inFlight,
                                bytes);
                    }
                }
                filling.drop(bytes);
            }
        }
    }

    private void addShared(
            String name,
            TransportServerProcess server,
            TransferClient reads,
            TransferClient bare,
            int inFlight,
            int bytes)
            throws IOException, InterruptedException {
        List<Cost> costs = new ArrayList<>();
        double[] copies = new double[rounds];
        for (int round = 0; round < rounds; round++) {
            costs.add(cost(reads, server, inFlight, 1, bytes));
            copies[round] = bare.measure(inFlight, time).gigabytesPerSecond(bytes);
        }
        double[] speeds = costs.stream().mapToDouble(Cost::gigabytes).toArray();
        figures.add(Figure.of(name, "GB/s", speeds, "bare copy", copies));
        addTimes(name, costs);
        figures.add(Figure.of(name + "-server", "us", costs, Cost::serverMicros));
    }

    /// A copy within this process: what one costs at least, from memory that no cache holds to such memory.
    private static TransferClient copyWithin(MemorySegment memory, int bytes) {
        long blocks = memory.byteSize() / bytes;
        return number -> {
            long block = number * RemoteBlocks.STRIDE & (blocks - 1);
            CopyTargets targets = CopyTargets.borrow();
            MemorySegment.copy(memory, block * bytes, targets.next(bytes), 0, bytes);
            targets.giveBack();
            return true;
        };
    }

    /// Reads blocks of a server on this host out of its memory.
    private record SharedMemoryReads(KvCache cache, Access access, int bytes, List<BlockChain> chains)
            implements TransferClient {

        private static final long IDLE_NANOS = TimeUnit.MILLISECONDS.toNanos(1);

        @Override
        public void beforeTransfer() {
            if (access == Access.VIEW_IDLE) {
                LockSupport.parkNanos(IDLE_NANOS);
            }
        }

        @Override
        public boolean transfer(long number) {
            BlockChain chain = chains.get((int) (number * RemoteBlocks.STRIDE & (chains.size() - 1)));
            return access == Access.COPY ? copy(chain) : view(chain);
        }

        private boolean copy(BlockChain chain) {
            CopyTargets targets = CopyTargets.borrow();
            int copied = cache.getAll(chain, 0, List.of(targets.next(bytes)));
            targets.giveBack();
            return copied == 1;
        }

        private boolean view(BlockChain chain) {
            try (BlockTable table = cache.acquire(chain)) {
                return table.readyBlocks() == 1 && table.segment(0).get(JAVA_BYTE, 0) == 0 && table.isValid();
            }
        }
    }

    /// The targets of one thread's copies, in turn: more than the caches of a processor hold. A thread borrows
    /// them for one copy at a time, so that short-lived threads do not each make some.
    private static final class CopyTargets {

        private static final long BUFFER_BYTES = 64L << 20;
        private static final Queue<CopyTargets> IDLE = new ConcurrentLinkedQueue<>();

        private final MemorySegment memory = Arena.ofAuto().allocate(BUFFER_BYTES, 4096);
        private long next;

        static CopyTargets borrow() {
            CopyTargets idle = IDLE.poll();
            return idle == null ? new CopyTargets() : idle;
        }

        void giveBack() {
            IDLE.add(this);
        }

        MemorySegment next(int bytes) {
            next = next + bytes > BUFFER_BYTES ? 0 : next;
            MemorySegment piece = memory.asSlice(next, bytes);
            next += bytes;
            return piece;
        }
    }

    private void match() throws IOException, InterruptedException {
        try (TransportServerProcess server = TransportServerProcess.start()) {
            match("tcp", server, "127.0.0.1:" + server.port());
        }
        if (Files.isDirectory(MEMORY)) {
            try (Folder folder = new Folder();
                    TransportServerProcess server = TransportServerProcess.start(folder.path.toString())) {
                match("shared", server, "shm:127.0.0.1:" + server.port());
            }
        }
        try (Folder folder = new Folder()) {
            String address = "aeron:ipc?dir=" + folder.path + AERON_TERM;
            try (TransportServerProcess server = TransportServerProcess.start(address)) {
                match("aeron", server, address);
            }
        }
    }

    private void match(String by, TransportServerProcess server, String address)
            throws IOException, InterruptedException {
        run.progress().accept("match by " + by);
        SharedMemoryMode use = by.equals("shared") ? SharedMemoryMode.REQUIRED : SharedMemoryMode.OFF;
        try (RemoteKvCache cache =
                RemoteKvCache.builder(address).sharedMemory(use).connect()) {
            List<BlockChain> chains = MatchChains.put(cache);
            for (boolean told : new boolean[] {true, false}) {
                List<BlockChain> asked = told ? chains.subList(0, 1) : chains;
                TransferClient client = number ->
                        cache.match(asked.get((int) (number % asked.size()))).blocks() == MatchChains.BLOCKS;
                client.measure(1, time.multipliedBy(2));
                List<Cost> costs = new ArrayList<>();
                for (int round = 0; round < rounds; round++) {
                    costs.add(cost(client, server, 1, 1, MatchChains.BLOCK_BYTES));
                }
                String name = "match-1024-" + by + (told ? "-told" : "-new");
                addTimes(name, costs);
                figures.add(Figure.of(name + "-heap", "B", costs, Cost::heapBytes));
            }
        }
    }

    /// Chains of 1,024 blocks, all of which are stored.
    private static final class MatchChains {

        static final int BLOCKS = 1024;
        static final int BLOCK_BYTES = 4096;

        /// More than a connection remembers, and no two begin alike: so all keys of each have to be sent.
        private static final int CHAINS = 24;

        private static final int BLOCK_TOKENS = 16;
        private static final Namespace SPACE =
                Namespace.of("bench-match", BlockShape.kv(1, 1, 64, BLOCK_TOKENS, Dtype.BF16));

        private MatchChains() {}

        static List<BlockChain> put(KvCache cache) {
            cache.register(SPACE);
            MemorySegment block = Arena.ofAuto().allocate(BLOCK_BYTES, 4096);
            List<BlockChain> chains =
                    IntStream.range(0, CHAINS).mapToObj(MatchChains::chain).toList();
            for (BlockChain chain : chains) {
                int stored = cache.putAll(chain, 0, Collections.nCopies(BLOCKS, block), KvCache.NO_WAIT)
                        .stored();
                if (stored != BLOCKS) {
                    throw new IllegalStateException(stored + " of " + BLOCKS + " blocks were taken");
                }
            }
            return chains;
        }

        private static BlockChain chain(int seed) {
            int[] tokens = new int[BLOCKS * BLOCK_TOKENS];
            tokens[0] = seed;
            return BlockChain.of(SPACE, tokens);
        }
    }

    /// A new folder, in memory where there is a file system in memory. Closing it deletes it, with what a server
    /// leaves there that had to be killed.
    private static final class Folder implements AutoCloseable {

        private final Path path;

        Folder() throws IOException {
            Path parent = Files.isDirectory(MEMORY) ? MEMORY : Path.of(System.getProperty("java.io.tmpdir"));
            path = Files.createTempDirectory(parent, "kvcache-bench-");
        }

        @Override
        public void close() throws IOException {
            try (DirectoryStream<Path> all = Files.newDirectoryStream(path)) {
                for (Path each : all) {
                    Files.deleteIfExists(each);
                }
            }
            Files.deleteIfExists(path);
        }
    }
}
