package io.kvcache.bench.crash;

import io.kvcache.core.tier.AdmissionKind;
import io.kvcache.planner.replay.PrefixForest;
import io.kvcache.planner.store.TierReplay;
import io.kvcache.planner.store.TierReplay.TierReplayResult;
import java.io.IOException;
import java.nio.file.Path;
import java.util.concurrent.atomic.AtomicInteger;

/// The hits that a replay loses when its process is killed without a flush, and another continues with
/// the same disk.
///
/// @param killedAfter the last request that the process had served
/// @param uninterrupted hits of the requests after that, in a process that had served all before
/// @param interrupted hits of the same requests in the process that goes on
public record CrashCost(int killedAfter, TierReplayResult uninterrupted, TierReplayResult interrupted) {

    private static final int HOST_BLOCKS = 2_000;
    private static final int DISK_BLOCKS = 20_000;
    private static final int BLOCK_BYTES = 16 << 10;
    private static final double MIN_KEPT_SHARE = .8;

    /// The share of the hits that is left.
    public double keptShare() {
        double whole = uninterrupted.totals().blockHitRatio();
        return whole == 0 ? 1 : interrupted.totals().blockHitRatio() / whole;
    }

    /// Returns whether enough of the hits are left, and every byte was right.
    public boolean passed() {
        return keptShare() >= MIN_KEPT_SHARE
                && interrupted.check().passed()
                && uninterrupted.check().passed();
    }

    /// Replays twice.
    ///
    /// @param directory empty or not there; it is removed in the end
    /// @param trace as `--trace` takes it
    /// @param forest of that trace
    /// @param killAt request at which the process is killed
    /// @param end after the last request
    public static CrashCost of(Path directory, String trace, PrefixForest forest, int killAt, int end)
            throws IOException {
        TierReplay.silenceTiers();
        ReplayCrashProcess.ReplayScript script = new ReplayCrashProcess.ReplayScript(
                directory, trace, HOST_BLOCKS, DISK_BLOCKS, BLOCK_BYTES, AdmissionKind.ALWAYS, -1);
        TierReplay.requireEmpty(directory);
        try {
            int killedAfter = kill(script, killAt);
            TierReplayResult interrupted = run(script, forest, killedAfter + 1, killedAfter + 1, end);
            TierReplay.deleteTier(directory);
            TierReplayResult uninterrupted = run(script, forest, 0, killedAfter + 1, end);
            return new CrashCost(killedAfter, uninterrupted, interrupted);
        } finally {
            TierReplay.deleteTier(directory);
        }
    }

    private static int kill(ReplayCrashProcess.ReplayScript script, int killAt) throws IOException {
        AtomicInteger last = new AtomicInteger();
        try (CrashProcess crashProcess = CrashProcess.start(ReplayCrashProcess.class, script.arguments())) {
            crashProcess.awaitLine(_ -> last.get() >= killAt, line -> last.set(request(line)));
            crashProcess.kill(line -> {});
        }
        return last.get();
    }

    private static int request(String line) {
        return Integer.parseInt(line.split(" ", -1)[1]);
    }

    private static TierReplayResult run(
            ReplayCrashProcess.ReplayScript script, PrefixForest forest, int first, int counted, int end) {
        TierReplay.RequestRange requestRange = new TierReplay.RequestRange(first, end, counted);
        return TierReplay.run(forest, script.settings(), requestRange, (_, _, _) -> {});
    }
}
