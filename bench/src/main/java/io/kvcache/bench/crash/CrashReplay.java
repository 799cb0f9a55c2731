package io.kvcache.bench.crash;

import io.kvcache.core.BlockTable;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.tier.AdmissionKind;
import io.kvcache.planner.replay.PrefixForest;
import io.kvcache.planner.store.TierReplay;
import io.kvcache.planner.store.TraceChains;
import io.kvcache.tiers.TieredKvCache;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.BitSet;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;

/// The blocks that survive a replay that was killed after a flush.
///
/// @param reopenSeconds until the store knew again all that the disk holds
/// @param promisedBlocks that were flushed
/// @param presentBlocks of these, found with their bytes
/// @param wrongBlocks whose bytes were others
/// @param writtenBlocks by the process before it was killed
/// @param putBlocks by it, all of which a write-through store would have written
public record CrashReplay(
        double reopenSeconds,
        int promisedBlocks,
        int presentBlocks,
        int wrongBlocks,
        long writtenBlocks,
        long putBlocks) {

    private static final Duration TIMEOUT = Duration.ofSeconds(60);

    /// Requests until the flush: they turn host memory over a few times.
    private static final int REQUESTS_BEFORE = 1_200;

    /// How many requests the process goes on after the flush.
    private static final int REQUESTS_AFTER = 40;

    /// Small enough to be written in a second or two, on any disk.
    private static final int BLOCK_BYTES = 16 << 10;

    private static final int HOST_BLOCKS = 2_000;
    private static final int DISK_BLOCKS = 20_000;

    /// Returns whether all promised blocks are present and right.
    public boolean passed() {
        return wrongBlocks == 0 && presentBlocks == promisedBlocks;
    }

    /// The share of a write-through store's writes.
    public double writtenShare() {
        return putBlocks == 0 ? 0 : (double) writtenBlocks / putBlocks;
    }

    /// Has a process replay, flush and go on, kills it, and opens what it left.
    ///
    /// @param directory empty or not there
    /// @param trace as `--trace` takes it
    /// @param forest of that trace
    public static CrashReplay of(Path directory, String trace, PrefixForest forest) throws IOException {
        TierReplay.silenceTiers();
        int flushAfter = Math.min(REQUESTS_BEFORE, forest.requestCount() / 2);
        int killAfter = Math.min(flushAfter + REQUESTS_AFTER, forest.requestCount() - 1);
        ReplayCrashProcess.ReplayScript script = new ReplayCrashProcess.ReplayScript(
                directory, trace, HOST_BLOCKS, DISK_BLOCKS, BLOCK_BYTES, AdmissionKind.SECOND_HIT, flushAfter);
        ProcessOutput processOutput = new ProcessOutput();
        try (CrashProcess crashProcess = CrashProcess.start(ReplayCrashProcess.class, script.arguments())) {
            crashProcess.awaitLine(line -> line.equals("flushed"), processOutput::onLine);
            crashProcess.awaitLine(_ -> processOutput.request >= killAfter, processOutput::onLine);
            crashProcess.kill(processOutput::onLine);
        }
        return reopen(script, forest, processOutput);
    }

    /// The lines that the process printed.
    private static final class ProcessOutput {
        private final Map<Integer, Integer> promises = new HashMap<>();
        private int request;
        private long written;
        private long put;

        void onLine(String line) {
            String[] words = line.split(" ", -1);
            if (words[0].equals("promised")) {
                promises.put(Integer.parseInt(words[1]), Integer.parseInt(words[2]));
            } else if (words[0].equals("request") && words.length == 4) {
                request = Integer.parseInt(words[1]);
                written = Long.parseLong(words[2]);
                put = Long.parseLong(words[3]);
            }
        }
    }

    private static CrashReplay reopen(
            ReplayCrashProcess.ReplayScript script, PrefixForest forest, ProcessOutput processOutput) {
        TraceChains chains = new TraceChains(forest, script.blockBytes());
        long start = System.nanoTime();
        try (TieredKvCache cache = TierReplay.open(script.settings())) {
            cache.register(chains.namespace());
            while (cache.isRecovering()) {
                LockSupport.parkNanos(TimeUnit.MICROSECONDS.toNanos(100));
            }
            double seconds = (System.nanoTime() - start) / 1e9;
            BitSet promised = new BitSet();
            BitSet present = new BitSet();
            BitSet wrong = new BitSet();
            processOutput.promises.forEach((request, blocks) -> {
                BlockChain chain = chains.chainOf(request).prefix(blocks);
                try (BlockTable table = cache.acquire(chain, 0, TIMEOUT)) {
                    int ready = table.await(blocks, TIMEOUT);
                    for (int i = 0; i < blocks; i++) {
                        promised.set(forest.node(request, i));
                        boolean right = i < ready && TraceChains.matches(chain, i, table.segment(i));
                        present.set(forest.node(request, i), right);
                        wrong.set(forest.node(request, i), i < ready && !right);
                    }
                }
            });
            return new CrashReplay(
                    seconds,
                    promised.cardinality(),
                    present.cardinality(),
                    wrong.cardinality(),
                    processOutput.written,
                    processOutput.put);
        }
    }
}
