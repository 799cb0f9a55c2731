package io.kvcache.bench.crash;

import io.kvcache.core.policy.PolicyKind;
import io.kvcache.core.tier.AdmissionKind;
import io.kvcache.planner.replay.BlockCountingRule;
import io.kvcache.planner.replay.PrefixForest;
import io.kvcache.planner.store.TierReplay;
import io.kvcache.planner.store.TraceChains;
import io.kvcache.planner.trace.TraceReader;
import io.kvcache.planner.trace.TraceReader.MalformedLine;
import io.kvcache.planner.trace.TraceSource;
import io.kvcache.tiers.TieredKvCache;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;

/// A process that replays a trace over two tiers until it is killed.
///
/// It prints `request N WRITTEN PUT`, in blocks, after each request. After one of them it flushes, and prints
/// `promised N M` for each request before, whose first M blocks the store has, and then `flushed`.
public final class ReplayCrashProcess {

    private static final Duration TIMEOUT = Duration.ofSeconds(60);

    private final ReplayScript script;
    private final TraceChains chains;

    private ReplayCrashProcess(ReplayScript script, PrefixForest forest) {
        this.script = script;
        chains = new TraceChains(forest, script.blockBytes);
    }

    /// The replay to run.
    ///
    /// @param trace as [TraceSource#parse] takes it
    /// @param flushAfter the request after which all is flushed, or -1
    record ReplayScript(
            Path directory,
            String trace,
            int hostBlocks,
            int diskBlocks,
            int blockBytes,
            AdmissionKind admission,
            int flushAfter) {

        TierReplay.Settings settings() {
            return new TierReplay.Settings(
                    PolicyKind.LRU,
                    hostBlocks,
                    blockBytes,
                    TierReplay.Settings.disk(directory, diskBlocks, blockBytes),
                    admission);
        }

        PrefixForest forest() throws IOException {
            TraceReader reader = new TraceReader(MalformedLine.Handling.SKIP, _ -> {});
            return new PrefixForest(TraceSource.parse(trace).load(reader), BlockCountingRule.REFERENCE);
        }

        List<String> arguments() {
            return List.of(
                    directory.toString(),
                    trace,
                    String.valueOf(hostBlocks),
                    String.valueOf(diskBlocks),
                    String.valueOf(blockBytes),
                    admission.name(),
                    String.valueOf(flushAfter));
        }

        static ReplayScript of(String... arguments) {
            return new ReplayScript(
                    Path.of(arguments[0]),
                    arguments[1],
                    Integer.parseInt(arguments[2]),
                    Integer.parseInt(arguments[3]),
                    Integer.parseInt(arguments[4]),
                    AdmissionKind.valueOf(arguments[5]),
                    Integer.parseInt(arguments[6]));
        }
    }

    /// Replays, and then waits for its end.
    public static void main(String... arguments) throws IOException {
        TierReplay.silenceTiers();
        ReplayScript script = ReplayScript.of(arguments);
        PrefixForest forest = script.forest();
        ReplayCrashProcess victim = new ReplayCrashProcess(script, forest);
        TierReplay.run(forest, script.settings(), TierReplay.RequestRange.of(forest, 0), victim::onServed);
        System.in.read();
    }

    private void onServed(int request, TieredKvCache cache, long putBytes) {
        if (request == script.flushAfter) {
            flush(request, cache);
        }
        printLine("request %s %s %s".formatted(request, cache.offloadStats().written(), putBytes / script.blockBytes));
    }

    private void flush(int last, TieredKvCache cache) {
        int[] known = new int[last + 1];
        for (int request = 0; request <= last; request++) {
            known[request] = cache.match(chains.chainOf(request)).blocks();
        }
        if (!cache.flush(TIMEOUT)) {
            throw new IllegalStateException("the disk did not become durable within a minute");
        }
        for (int request = 0; request <= last; request++) {
            if (known[request] > 0) {
                printLine("promised %s %s".formatted(request, known[request]));
            }
        }
        printLine("flushed");
    }

    private static void printLine(String line) {
        System.out.println(line);
        System.out.flush();
    }
}
