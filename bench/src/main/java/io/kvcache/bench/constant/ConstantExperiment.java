package io.kvcache.bench.constant;

import io.kvcache.bench.lab.EngineHardware;
import io.kvcache.bench.lab.TierComparison;
import io.kvcache.bench.lab.TierRow;
import io.kvcache.bench.replay.BlockCountingRule;
import io.kvcache.bench.replay.PolicyReplay;
import io.kvcache.bench.replay.PrefixForest;
import io.kvcache.bench.trace.MalformedLine;
import io.kvcache.bench.trace.Trace;
import io.kvcache.bench.trace.TraceReader;
import io.kvcache.bench.trace.TraceSource;
import io.kvcache.core.identity.ModelPreset;
import io.kvcache.core.policy.PolicyKind;
import io.kvcache.core.tier.AdmissionKind;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;

/// What is measured with a constant as it is and with another: by numbers and texts alone, so that
/// it can be asked of a core that is not this one.
public final class ConstantExperiment {

    /// Shares of the distinct blocks in host memory and on disk.
    private static final TierComparison.TierShares TIERS = new TierComparison.TierShares(0.02, 0.1);

    private static final int GPUS = 4;

    private ConstantExperiment() {}

    /// The block hit ratios of importance at shares of the distinct blocks.
    ///
    /// @param trace as `--trace` names it
    /// @param first so many of its requests
    /// @param lookAhead requests that it knows before they come
    public static double[] hits(String trace, int first, int lookAhead, double[] shares) throws IOException {
        PrefixForest forest = new PrefixForest(load(trace, first), BlockCountingRule.REFERENCE);
        PolicyReplay importance = new PolicyReplay(PolicyKind.IMPORTANCE, lookAhead);
        double[] hits = new double[shares.length];
        for (int i = 0; i < shares.length; i++) {
            int blocks = (int) Math.max(1, Math.round(shares[i] * forest.nodeCount()));
            hits[i] = importance.run(forest, blocks, 0).blockHitRatio();
        }
        return hits;
    }

    /// Importance with admission by value, in the store: the block hit ratio, the seconds of
    /// prefill that it saves, and the blocks written of those that were put.
    public static double[] writing(String trace, int first) throws IOException {
        Path folder = Files.createTempDirectory("kvcache-trial");
        try {
            EngineHardware hardware = EngineHardware.h100(ModelPreset.LLAMA_3_8B, GPUS);
            TierRow row = new TierComparison(load(trace, first), ModelPreset.LLAMA_3_8B, hardware, folder)
                    .run(PolicyKind.IMPORTANCE, AdmissionKind.VALUE, TIERS);
            return new double[] {row.blockHitRatio(), row.prefillSecondsSaved(), row.writtenOfPut()};
        } finally {
            Files.deleteIfExists(folder);
        }
    }

    private static Trace load(String trace, int first) throws IOException {
        return TraceSource.parse(trace)
                .load(new TraceReader(MalformedLine.Handling.REFUSE, _ -> {}))
                .firstRequests(first);
    }
}
