package io.kvcache.bench.lab;

import io.kvcache.bench.replay.PolicyReplay;
import io.kvcache.bench.replay.ReplayRule;
import io.kvcache.bench.replay.TraceForest;
import io.kvcache.bench.trace.Trace;
import io.kvcache.core.identity.ModelPreset;
import io.kvcache.core.policy.PolicyKind;
import java.util.ArrayList;
import java.util.List;
import java.util.function.IntToDoubleFunction;

/// Finds how much memory a hit ratio takes, under LRU and under importance, and spreads it over the tiers
/// of an engine: what the weights leave of the GPUs' memory, then host memory, then disk.
public final class Sizing {

    /// Importance's capacity is found to within one in so many.
    private static final int PRECISION = 64;

    /// When later requests find so much more than all, an even longer trace would show more yet.
    private static final double TRUNCATED = 0.02;

    private final Trace trace;
    private final Engine engine;
    private final TraceForest forest;
    private final LruCurve curve;

    /// What serves the requests.
    ///
    /// @param gpus that serve together, 1 and up
    /// @param hostBytes host memory that may be taken, 0 and up
    public record Engine(ModelPreset model, GpuPreset gpu, int gpus, long hostBytes) {

        /// @throws IllegalArgumentException when the weights do not fit
        public Engine {
            if (gpu.kvBytes(model, gpus) <= 0) {
                throw new IllegalArgumentException("--gpus is '" + gpus + "', must be: " + least(model, gpu)
                        + " and up, for the weights of " + model.label() + " do not fit so many " + gpu.label());
            }
        }
    }

    private static int least(ModelPreset model, GpuPreset gpu) {
        int gpus = 1;
        while (gpu.kvBytes(model, gpus) <= 0) {
            gpus++;
        }
        return gpus;
    }

    /// Private caches that are to be compared.
    ///
    /// @param count 1 to 64
    /// @param seed of what is random about the route
    public record Instances(int count, Route route, long seed) {

        /// @throws IllegalArgumentException when there are too many
        public Instances {
            if (count < 1 || count > Routing.MOST) {
                throw new IllegalArgumentException("--instances is '" + count + "', must be: 1 to " + Routing.MOST);
            }
        }
    }

    /// Reads the trace once; full blocks count, as in the store.
    public Sizing(Trace trace, Engine engine) {
        this.trace = trace;
        this.engine = engine;
        forest = new TraceForest(trace, ReplayRule.FULL_BLOCKS);
        curve = new LruCurve(forest, 0);
    }

    /// Finds it.
    ///
    /// @param target block hit ratio, above 0 to 1
    /// @param instances at most one comparison
    public SizeAnswer answer(double target, List<Instances> instances) {
        int lru = curve.blocksFor(target);
        List<SizeAnswer.Row> rows = new ArrayList<>();
        List<SizeAnswer.FleetRow> fleets = new ArrayList<>();
        if (lru >= 0) {
            rows.add(row("lru", lru, curve::hitRatio));
            rows.add(row("importance", importance(target), this::importanceHits));
            instances.forEach(each -> fleets.add(fleet(each, target, lru)));
        }
        double later = new LruCurve(forest, forest.requests() / 2).ceiling();
        return new SizeAnswer(
                trace.name(),
                engine.model.label(),
                trace.blockTokens(),
                target,
                curve.ceiling(),
                later,
                spanMinutes(),
                later > curve.ceiling() + TRUNCATED,
                rows,
                fleets);
    }

    private double spanMinutes() {
        long first = trace.requests().getFirst().timestampMillis();
        return (trace.requests().getLast().timestampMillis() - first) / 60e3;
    }

    private int importance(double target) {
        int low = 0;
        int high = forest.nodes();
        while (high - low > Math.max(1, high / PRECISION)) {
            int middle = (low + high) >>> 1;
            if (importanceHits(middle) >= target) {
                high = middle;
            } else {
                low = middle;
            }
        }
        return high;
    }

    private double importanceHits(int blocks) {
        return blocks == 0
                ? 0
                : new PolicyReplay(PolicyKind.IMPORTANCE).run(forest, blocks, 0).blockHitRatio();
    }

    private SizeAnswer.Row row(String policy, int blocks, IntToDoubleFunction hits) {
        long blockBytes = trace.blockBytes(engine.model);
        EngineHardware hardware = EngineHardware.of(engine.gpu, engine.model, engine.gpus);
        long[] most = {
            engine.gpu.kvBytes(engine.model, engine.gpus) / blockBytes, engine.hostBytes / blockBytes, Long.MAX_VALUE
        };
        String[] names = {"device", "host", "disk"};
        double toDevice = blockBytes / hardware.hostBytesPerSecond();
        double[] seconds = {
            0, toDevice, toDevice + blockBytes / hardware.diskBytesPerSecond() + hardware.diskLatencySeconds()
        };
        List<SizeAnswer.Tier> tiers = new ArrayList<>();
        int placed = 0;
        double found = 0;
        for (int i = 0; i < most.length; i++) {
            int here = (int) Math.min(most[i], blocks - placed);
            placed += here;
            double all = here == 0 ? found : hits.applyAsDouble(placed);
            tiers.add(new SizeAnswer.Tier(names[i], here * blockBytes, all - found, 1e3 * seconds[i]));
            found = all;
        }
        return new SizeAnswer.Row(policy, blocks, blocks * blockBytes, tiers);
    }

    /// Milliseconds that computing one block takes, in the middle of a prompt of mean length.
    public double computeMillis() {
        long middle = trace.totals().inputTokens() / trace.requests().size() / 2;
        return 1e3
                * EngineHardware.of(engine.gpu, engine.model, engine.gpus)
                        .prefill()
                        .seconds(middle, middle + trace.blockTokens());
    }

    private SizeAnswer.FleetRow fleet(Instances asked, double target, int sharedBlocks) {
        Fleet fleet = new Fleet(trace, asked.count, asked.route, asked.seed);
        int each = fleet.blocksEachFor(target);
        long blocks = each < 0 ? -1 : (long) each * asked.count;
        return new SizeAnswer.FleetRow(
                asked.count,
                asked.route.commandName(),
                fleet.hitRatio(sharedBlocks / asked.count),
                fleet.ceiling(),
                blocks,
                each < 0 ? -1 : blocks * trace.blockBytes(engine.model),
                fleet.busiest());
    }
}
