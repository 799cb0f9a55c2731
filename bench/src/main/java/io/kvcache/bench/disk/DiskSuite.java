package io.kvcache.bench.disk;

import io.kvcache.bench.figure.Figure;
import io.kvcache.bench.figure.Suite;
import io.kvcache.core.BlockTable;
import io.kvcache.core.BlockWriter;
import io.kvcache.core.check.BlockContent;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.tier.AdmissionKind;
import io.kvcache.planner.store.TraceChains;
import io.kvcache.tiers.DiskOptions;
import io.kvcache.tiers.TieredKvCache;
import io.kvcache.tiers.device.FileDevice;
import io.kvcache.tiers.memory.MappedMemory;
import io.kvcache.tiers.memory.MappedMemorySource;
import io.kvcache.tiers.options.MemoryOptions;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.logging.Level;
import java.util.logging.Logger;
import java.util.stream.IntStream;

/// The speed of the block device, and of a store that brings blocks from a disk tier beside raw reads.
///
/// A file in memory lacks the variance of a disk, so that the cost of the software shows: a disk may change
/// threefold within a run. `fio` shows what a disk can do.
public final class DiskSuite implements AutoCloseable {

    private static final long FILE_BYTES = 1L << 30;

    /// Free bytes that the benchmark leaves to other processes.
    private static final long MIN_FREE_BYTES = 1L << 30;

    /// The file, and a tier of small and one of large blocks.
    private static final long MEMORY_BYTES = FILE_BYTES + 2 * StoreLoadRunner.TIER_BYTES;

    private static final Path SHARED_MEMORY = Path.of("/dev/shm");
    private static final int MAX_PIECE_BYTES = 4 << 20;
    private static final int SMALL_PIECE_BYTES = 256 << 10;
    private static final int PAGE_BYTES = 4096;

    /// A trial is repeated until its median is steady: a file in memory more often, as it takes less.
    private static final int MEMORY_ROUNDS = 15;

    private static final int DISK_ROUNDS = 5;
    private static final List<Trial> TRIALS = trials();

    private final Map<Medium, Path> media = new EnumMap<>(Medium.class);
    private final Map<Medium, TestFile> files = new EnumMap<>(Medium.class);
    private final Map<Trial, StoreLoadRunner> stores = new HashMap<>();
    private final MappedMemory memory;

    /// The device says what path it takes at every opening, which would be once a trial.
    private final Logger deviceLog = Logger.getLogger(FileDevice.class.getPackageName());

    private DiskSuite(Map<Medium, Path> media) {
        this.media.putAll(media);
        memory = new MappedMemorySource(MemoryOptions.defaults()).reserve("bench-disk", StoreLoadRunner.HOST_BYTES);
        byte[] page = new byte[PAGE_BYTES];
        new Random(42).nextBytes(page);
        for (long at = 0; at < memory.segment().byteSize(); at += PAGE_BYTES) {
            MemorySegment.copy(MemorySegment.ofArray(page), 0, memory.segment(), at, PAGE_BYTES);
        }
        deviceLog.setLevel(Level.SEVERE);
    }

    /// What the file that is read and written lies on.
    private enum Medium {
        MEMORY,
        DISK
    }

    /// What moves the bytes.
    private enum Engine {
        /// Our block device, on the best path available.
        DEVICE,
        /// The same in a thread to which the kernel denies io_uring.
        WITHOUT_URING,
        /// A store that brings blocks from a disk tier into host memory, verified and pinned, beside the device
        /// that reads into as much memory. Memory outside the processor's caches costs more to fill than a few
        /// buffers that stay there.
        STORE
    }

    /// A figure.
    private record Trial(String name, Engine engine, Medium medium, boolean write, int bytes) {

        /// Bytes that a round moves: of small pieces less, as their number costs the time.
        long roundBytes(boolean quick) {
            long bytes = quick ? medium == Medium.MEMORY ? 1L << 30 : 1L << 28 : 4L << 30;
            return this.bytes < SMALL_PIECE_BYTES ? bytes / (SMALL_PIECE_BYTES / this.bytes) : bytes;
        }

        int rounds(Suite.Run run) {
            return run.rounds(medium == Medium.MEMORY ? MEMORY_ROUNDS : DISK_ROUNDS);
        }
    }

    private static List<Trial> trials() {
        List<Trial> trials = new ArrayList<>();
        for (Medium medium : Medium.values()) {
            String place = medium == Medium.MEMORY ? "memory-" : "disk-";
            for (int bytes : List.of(4 << 10, 16 << 10, 64 << 10, 1 << 20, 4 << 20)) {
                String size = bytes < 1 << 20 ? (bytes >> 10) + "k" : (bytes >> 20) + "m";
                trials.add(new Trial(place + "read-" + size, Engine.DEVICE, medium, false, bytes));
                if (bytes < 1 << 20) {
                    continue;
                }
                trials.add(new Trial(place + "write-" + size, Engine.DEVICE, medium, true, bytes));
                String onboard = "onboard-" + (medium == Medium.MEMORY ? "read-" : "disk-") + size;
                trials.add(new Trial(onboard, Engine.STORE, medium, false, bytes));
                if (medium == Medium.MEMORY) {
                    trials.add(new Trial("denied-read-" + size, Engine.WITHOUT_URING, medium, false, bytes));
                    trials.add(new Trial("denied-write-" + size, Engine.WITHOUT_URING, medium, true, bytes));
                }
            }
        }
        return trials;
    }

    public static Suite suite() {
        return new Suite(
                "disk",
                "the block device, 8 requests deep, and a store over it",
                TRIALS.stream().map(Trial::name).toList(),
                List.of(),
                DiskSuite::measure);
    }

    private static List<Figure> measure(Suite.Run run) throws IOException {
        List<Trial> wanted =
                TRIALS.stream().filter(trial -> run.wants(trial.name)).toList();
        Map<Medium, Path> media = new EnumMap<>(Medium.class);
        for (Medium medium : Medium.values()) {
            if (wanted.stream().anyMatch(trial -> trial.medium == medium)) {
                media.put(medium, medium == Medium.MEMORY ? SHARED_MEMORY : run.folder());
            }
        }
        if (media.containsKey(Medium.MEMORY) && (!isInMemory(SHARED_MEMORY) || !hasRoom(SHARED_MEMORY, MEMORY_BYTES))) {
            run.progress().accept(SHARED_MEMORY + " is not a tmpfs with 5 GiB free: skips the runs that need one");
            media.remove(Medium.MEMORY);
        }
        requireFolder(run.folder());
        if (media.containsKey(Medium.DISK) && isInMemory(run.folder())) {
            run.progress().accept(run.folder() + " is in memory: name a directory on a disk to measure one");
        }
        try (DiskSuite suite = new DiskSuite(media)) {
            return suite.run(run, wanted);
        }
    }

    /// @throws IOException that names the folder and what it lacks
    private static void requireFolder(Path folder) throws IOException {
        if (!Files.isDirectory(folder) || !Files.isWritable(folder)) {
            throw new IOException(folder + " is not a directory that can be written to");
        }
        if (!hasRoom(folder, FILE_BYTES)) {
            throw new IOException(folder + " has less than 2 GiB free");
        }
    }

    private static boolean hasRoom(Path folder, long bytes) throws IOException {
        return Files.getFileStore(folder).getUsableSpace() >= bytes + MIN_FREE_BYTES;
    }

    private static boolean isInMemory(Path folder) throws IOException {
        return Files.isDirectory(folder) && Files.getFileStore(folder).type().equals("tmpfs");
    }

    /// Makes a file on each medium, and reads it once to warm up; then runs each trial once a round.
    private List<Figure> run(Suite.Run run, List<Trial> wanted) throws IOException {
        run.progress().accept("writing the files");
        for (Map.Entry<Medium, Path> medium : media.entrySet()) {
            TestFile file = TestFile.in(medium.getValue());
            files.put(medium.getKey(), file);
            load(new Trial("fill", Engine.DEVICE, medium.getKey(), true, MAX_PIECE_BYTES), DeviceLoad.DEPTH)
                    .run(FILE_BYTES);
            load(new Trial("warm", Engine.DEVICE, medium.getKey(), false, 1 << 20), DeviceLoad.DEPTH)
                    .run(FILE_BYTES);
        }
        Map<Trial, List<Sample>> samples = new HashMap<>();
        for (int round = 1; round <= run.rounds(MEMORY_ROUNDS); round++) {
            for (Trial trial : wanted) {
                if (round <= trial.rounds(run) && files.containsKey(trial.medium)) {
                    run.progress().accept("round " + round + " of " + trial.rounds(run) + ": " + trial.name);
                    samples.computeIfAbsent(trial, _ -> new ArrayList<>())
                            .add(sample(trial, trial.roundBytes(run.quick())));
                }
            }
        }
        List<Figure> figures = new ArrayList<>();
        for (Trial trial : wanted) {
            List<Sample> of = samples.get(trial);
            if (of != null) {
                figures.add(
                        trial.engine == Engine.STORE
                                ? Figure.of(trial.name, "GB/s", of, Sample::speed, "raw reads", Sample::rawSpeed)
                                : Figure.of(trial.name, "GB/s", of, Sample::speed));
                run.progress().accept(trial.name + " by " + of.getLast().path);
            }
        }
        return figures;
    }

    /// Speeds of a round, in GB/s.
    private record Sample(double speed, double rawSpeed, String path) {}

    private Sample sample(Trial trial, long bytes) throws IOException {
        if (trial.engine == Engine.STORE) {
            double raw = load(trial, memory.segment().byteSize() / trial.bytes)
                    .run(bytes)
                    .gigabytesPerSecond();
            StoreLoadRunner store = store(trial);
            return new Sample(store.acquireBytes(bytes), raw, store.path());
        }
        DeviceLoad load = load(trial, DeviceLoad.DEPTH);
        DeviceLoad.Result result = trial.engine == Engine.DEVICE ? load.run(bytes) : load.runWithoutUring(bytes);
        return new Sample(result.gigabytesPerSecond(), 0, result.path());
    }

    private DeviceLoad load(Trial trial, long slots) {
        TestFile file = files.get(trial.medium);
        if (file == null) {
            throw new IllegalStateException("there is no file for " + trial.name);
        }
        MemorySegment pool = slots == DeviceLoad.DEPTH
                ? memory.segment().asSlice(0, (long) DeviceLoad.DEPTH * MAX_PIECE_BYTES)
                : memory.segment();
        return new DeviceLoad(file.path(), FILE_BYTES, trial.write, trial.bytes, pool, slots);
    }

    /// Filled by the first round that needs it.
    private StoreLoadRunner store(Trial trial) throws IOException {
        StoreLoadRunner store = stores.get(trial);
        if (store == null) {
            Path folder = media.get(trial.medium);
            if (folder == null) {
                throw new IllegalStateException("there is no folder for " + trial.name);
            }
            store = StoreLoadRunner.open(folder, trial.bytes);
            stores.put(trial, store);
        }
        return store;
    }

    @Override
    public void close() throws IOException {
        deviceLog.setLevel(null);
        try {
            for (StoreLoadRunner store : stores.values()) {
                store.close();
            }
            for (TestFile file : files.values()) {
                file.close();
            }
        } finally {
            memory.close();
        }
    }

    /// A file in a folder of its own. Closing it deletes both; otherwise they are deleted when the JVM ends.
    private record TestFile(Path folder, Path path) implements AutoCloseable {

        static TestFile in(Path parent) throws IOException {
            Path folder = Files.createTempDirectory(parent, "kvcache-bench-");
            folder.toFile().deleteOnExit(); // Last, as they go in reverse order.
            Path path = folder.resolve("file");
            path.toFile().deleteOnExit();
            return new TestFile(folder, path);
        }

        @Override
        public void close() throws IOException {
            Files.deleteIfExists(path);
            Files.deleteIfExists(folder);
        }
    }

    /// Brings blocks from a disk tier into host memory as a request does: by acquiring a chain and waiting
    /// for it.
    ///
    /// The chains take turns, and together are three times what host memory holds; so none is there when its
    /// turn comes. Two requesters take turns as well, as a server has more than one request: while one lets
    /// go and asks anew, the disk has something to do.
    ///
    /// **Ownership.** Closing it removes the tier.
    static final class StoreLoadRunner implements AutoCloseable {

        /// Room for all chains, in regions that take blocks of 4 MiB.
        static final long TIER_BYTES = 5L << 28;

        /// Memory for blocks.
        static final long HOST_BYTES = 128L << 20;

        private static final int CHAIN_BYTES = 32 << 20;
        private static final int CHAINS = 12;
        private static final Duration TIMEOUT = Duration.ofSeconds(30);

        private final Path folder;
        private final int blockBytes;
        private final TieredKvCache cache;
        private final List<BlockChain> chains;
        private int next;

        private StoreLoadRunner(Path folder, int blockBytes) {
            this.folder = folder;
            this.blockBytes = blockBytes;
            Namespace namespace = Namespace.of("onboard", TraceChains.shapeOf(blockBytes));
            chains = IntStream.range(0, CHAINS)
                    .mapToObj(chain -> chain(namespace, chain))
                    .toList();
            cache = TieredKvCache.builder()
                    .hostBytes(HOST_BYTES)
                    .checkSegments(false)
                    .admission(AdmissionKind.ALWAYS)
                    .disk(DiskOptions.of(folder, TIER_BYTES))
                    .flushOnClose(Duration.ZERO)
                    .build();
            cache.register(namespace);
        }

        /// Makes a store and fills its disk.
        ///
        /// @param place where the tier's directory is made
        static StoreLoadRunner open(Path place, int blockBytes) throws IOException {
            StoreLoadRunner mover =
                    new StoreLoadRunner(Files.createTempDirectory(place, "kvcache-onboard-"), blockBytes);
            try {
                mover.fill();
                return mover;
            } catch (IOException | RuntimeException failure) {
                mover.close();
                throw failure;
            }
        }

        private BlockChain chain(Namespace namespace, int number) {
            List<byte[]> keys = IntStream.range(0, CHAIN_BYTES / blockBytes)
                    .mapToObj(block -> (number + "/" + block).getBytes(StandardCharsets.US_ASCII))
                    .toList();
            return BlockChain.ofEngineKeys(namespace, keys);
        }

        /// Flushes after each chain: what is put faster than it is written may leave host memory unwritten.
        private void fill() throws IOException {
            for (BlockChain chain : chains) {
                for (int i = 0; i < chain.length(); i++) {
                    try (BlockWriter writer = cache.put(chain, i, 0, TIMEOUT)) {
                        BlockContent.of(chain.keyHi(i), chain.keyLo(i)).fill(writer.segment());
                        writer.seal();
                    }
                }
                if (!cache.flush(TIMEOUT)) {
                    throw new IOException("the tier in " + folder + " does not become durable");
                }
            }
        }

        /// Acquires so many bytes.
        ///
        /// @return GB/s
        /// @throws IOException when a block does not come
        double acquireBytes(long bytes) throws IOException {
            long start = System.nanoTime();
            BlockTable ahead = acquire();
            for (long moved = CHAIN_BYTES; moved < bytes; moved += CHAIN_BYTES) {
                BlockTable after = acquire();
                finish(ahead);
                ahead = after;
            }
            finish(ahead);
            return (double) bytes / (System.nanoTime() - start);
        }

        /// Returns how the bytes travel, in the words of the device.
        String path() {
            return cache.diskStats().getFirst().tier().path();
        }

        private BlockTable acquire() {
            return cache.acquire(chains.get(next++ % CHAINS), 0, TIMEOUT);
        }

        private void finish(BlockTable table) throws IOException {
            int blocks = CHAIN_BYTES / blockBytes;
            try (table) {
                if (table.await(blocks, TIMEOUT) != blocks) {
                    throw new IOException(table.readyBlocks() + " of " + blocks + " blocks came from " + folder);
                }
            }
        }

        @Override
        public void close() throws IOException {
            cache.close();
            Files.deleteIfExists(folder.resolve("tier"));
            Files.deleteIfExists(folder.resolve("lock"));
            Files.deleteIfExists(folder);
        }
    }
}
