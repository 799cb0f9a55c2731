package io.kvcache.transport.shm;

import io.kvcache.core.BlockWriter;
import io.kvcache.core.KvCache;
import io.kvcache.core.PutOutcome;
import io.kvcache.core.check.BlockContent;
import io.kvcache.core.contract.Repetitions;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.Dtype;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.shm.SharedMemory.SharedMemoryFiles;
import io.kvcache.core.tree.RecordHandle;
import io.kvcache.tiers.TieredKvCache;
import io.kvcache.transport.shm.SharedStore.OneSidedCounters;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.SplittableRandom;
import java.util.concurrent.TimeUnit;

/// Other JVMs of the torture test: one that puts and evicts without a pause, and some that read its memory
/// and check every byte.
final class TortureProcess implements AutoCloseable {

    /// Blocks of 1 MiB: copying one takes long enough to be overtaken.
    private static final Namespace SPACE = Namespace.of("torture", BlockShape.kv(16, 1, 1024, 16, Dtype.BF16));

    private static final int BLOCK_BYTES = 1 << 20;
    private static final long HOST_BYTES = 32 << 20;

    /// Half as many again as fit: of those that are asked for a third is not here.
    static final int BLOCKS = 48;

    private static final int LEAST_HITS = Repetitions.usualOrFull(300, 1000);
    private static final long PATIENCE_NANOS = TimeUnit.SECONDS.toNanos(120);

    private final Process process;
    private final BufferedReader said;

    private TortureProcess(Process process) {
        this.process = process;
        said = new BufferedReader(new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8));
    }

    /// @param arguments `write FOLDER`, or `read SEED` and the files
    static TortureProcess start(List<String> arguments) throws IOException {
        List<String> command = new ArrayList<>(List.of(
                ProcessHandle.current().info().command().orElse("java"),
                "-ea",
                "-Xmx128m",
                "--enable-native-access=ALL-UNNAMED",
                "-cp",
                System.getProperty("java.class.path"),
                TortureProcess.class.getName()));
        command.addAll(arguments);
        return new TortureProcess(new ProcessBuilder(command)
                .redirectError(ProcessBuilder.Redirect.INHERIT)
                .start());
    }

    static TortureProcess reader(int seed, SharedMemoryFiles files) throws IOException {
        return start(List.of(
                "read",
                Integer.toString(seed),
                files.directory(),
                files.slots(),
                files.records(),
                Long.toString(files.epoch())));
    }

    String line() throws IOException {
        return Objects.requireNonNull(said.readLine(), "the child has ended");
    }

    SharedMemoryFiles files() throws IOException {
        String[] words = line().split(" ", 4);
        return new SharedMemoryFiles(words[0], words[1], words[2], Long.parseLong(words[3]));
    }

    /// Kills it without a word, and returns when it is gone.
    void kill() throws InterruptedException {
        process.destroyForcibly().waitFor();
    }

    @Override
    public void close() {
        process.destroyForcibly();
    }

    static BlockChain chain(int seed) {
        int[] tokens = new int[16];
        tokens[0] = seed;
        return BlockChain.of(SPACE, tokens);
    }

    /// What a reader has seen.
    ///
    /// @param hits blocks that were copied whole, or looked at in place, and were right in every byte
    /// @param misses blocks that were not here
    /// @param torn reads that were thrown away
    /// @param wrong of these, reads that had a byte of another block: had they been believed, it would have
    ///     been a lie
    record ReadCounts(long hits, long misses, long torn, long wrong) {

        boolean all() {
            return hits >= LEAST_HITS && misses > 0 && torn > 0 && wrong > 0;
        }

        static ReadCounts parse(String line) {
            String[] words = line.split(" ", 4);
            return new ReadCounts(
                    Long.parseLong(words[0]),
                    Long.parseLong(words[1]),
                    Long.parseLong(words[2]),
                    Long.parseLong(words[3]));
        }
    }

    /// Reads until it has seen all that there is to see, or time is up.
    ///
    /// @throws AssertionError when it has read a wrong byte
    static ReadCounts read(SharedStore store, OneSidedCounters counters, int seed) {
        SplittableRandom random = new SplittableRandom(seed);
        long end = System.nanoTime() + PATIENCE_NANOS;
        ReadCounts readCounts = new ReadCounts(0, 0, 0, 0);
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment into = arena.allocate(BLOCK_BYTES, 4096);
            long hits = 0;
            long tornInPlace = 0;
            long wrong = 0;
            while (!readCounts.all() && System.nanoTime() < end) {
                BlockChain chain = chain(random.nextInt(BLOCKS));
                BlockContent content = BlockContent.of(chain.key(0));
                SharedStore.CopyResult copyResult = store.copy(
                        new SharedStore.ChainQuery(chain, SharedStore.ANY_NAMESPACE), 0, BLOCK_BYTES, List.of(into));
                if (RecordHandle.isFound(copyResult.lastHandle())) {
                    content.requireEqual(into);
                    hits++;
                    boolean right = matches(store, content, copyResult.lastHandle());
                    boolean held = store.isCurrent(copyResult.lastHandle());
                    if (held && !right) {
                        throw new AssertionError("a wrong byte that its record vouches for, seed " + seed);
                    }
                    tornInPlace += held ? 0 : 1;
                    wrong += right ? 0 : 1;
                }
                readCounts =
                        new ReadCounts(hits, counters.missed() - counters.torn(), counters.torn() + tornInPlace, wrong);
            }
        }
        return readCounts;
    }

    /// Whether a slot shows what belongs into it, while others may write to it.
    private static boolean matches(SharedStore store, BlockContent content, long handle) {
        int page = store.page(handle, BLOCK_BYTES);
        return page < 0 || content.mismatch(store.slot(page, BLOCK_BYTES)) < 0;
    }

    @SuppressWarnings("SystemOut") // that is how a child speaks
    public static void main(String[] arguments) throws IOException {
        if (arguments[0].equals("write")) {
            endWithParent();
            write(Path.of(arguments[1]));
        } else {
            SharedMemoryFiles files =
                    new SharedMemoryFiles(arguments[2], arguments[3], arguments[4], Long.parseLong(arguments[5]));
            OneSidedCounters counters = new OneSidedCounters();
            SharedStore store = SharedStore.open(files, counters);
            ReadCounts readCounts = read(store, counters, Integer.parseInt(arguments[1]));
            store.release();
            System.out.println(
                    readCounts.hits + " " + readCounts.misses + " " + readCounts.torn + " " + readCounts.wrong);
        }
    }

    /// A writer that outlived a test that was killed would take a processor from all that come after it.
    private static void endWithParent() {
        Thread.ofPlatform().daemon().start(() -> {
            try {
                while (System.in.read() >= 0) {
                    Thread.onSpinWait(); // nobody tells it anything
                }
            } catch (IOException gone) {
                // So is the parent.
            }
            Runtime.getRuntime().halt(1);
        });
    }

    @SuppressWarnings("SystemOut")
    private static void write(Path folder) {
        try (TieredKvCache store = TieredKvCache.builder()
                .hostBytes(HOST_BYTES)
                .shareMemory(folder)
                .checkSegments(false)
                .prefaultInBackground(false)
                .build()) {
            store.register(SPACE);
            SharedMemoryFiles files =
                    Objects.requireNonNull(store.sharedMemory()).files();
            System.out.println(files.directory() + " " + files.slots() + " " + files.records() + " " + files.epoch());
            // In turn, so that with LRU each put evicts, and the process is only ended from outside.
            for (int seed = 0; ; seed = (seed + 1) % BLOCKS) {
                BlockChain chain = chain(seed);
                try (BlockWriter writer = store.put(chain, 0, 0, KvCache.NO_WAIT)) {
                    if (writer.outcome() == PutOutcome.RESERVED) {
                        BlockContent.of(chain.key(0)).fill(writer.segment());
                        writer.seal();
                    }
                }
            }
        }
    }
}
