package io.kvcache.planner.lab;

import io.kvcache.core.cost.PrefillCost;
import io.kvcache.core.policy.PolicyKind;
import io.kvcache.planner.lab.CapacityPlanner.SizingResult.TierMoney;
import io.kvcache.planner.lab.EngineSimulator.EngineFeed;
import io.kvcache.planner.lab.RequestRouter.RoutingPolicy;
import io.kvcache.planner.model.GpuProfile;
import io.kvcache.planner.model.ModelProfile;
import io.kvcache.planner.replay.BlockCountingRule;
import io.kvcache.planner.replay.HitCounter;
import io.kvcache.planner.replay.HitCounter.HitTotals;
import io.kvcache.planner.replay.HitCounter.ReplayListener;
import io.kvcache.planner.replay.PolicyReplay;
import io.kvcache.planner.replay.PrefixForest;
import io.kvcache.planner.trace.Trace;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.function.IntToDoubleFunction;
import org.jspecify.annotations.Nullable;

/// Finds how much memory a hit ratio takes, under LRU and under importance, and spreads it over the tiers
/// of an engine: what the weights leave of the GPUs' memory, then host memory, then disk.
public final class CapacityPlanner {

    /// Importance's capacity is found to within one in so many.
    private static final int PRECISION = 64;

    /// When later requests find so much more than all, an even longer trace would show more yet.
    private static final double MIN_TRUNCATED_SHARE = 0.02;

    private final Trace trace;
    private final EngineConfig engineConfig;
    private final PrefixForest forest;
    private final LruCurve curve;

    /// The engine that serves the requests.
    ///
    /// @param gpus that serve together, 1 and up, for the price of their hours
    /// @param deviceBytes of the engine's own memory for KV, 0 and up
    /// @param hostBytes host memory that may be taken, 0 and up
    /// @param prices of the tiers, where money is to be computed
    public record EngineConfig(
            ModelProfile model,
            EngineHardware hardware,
            int gpus,
            long deviceBytes,
            long hostBytes,
            Optional<TierPrices> prices) {}

    /// Bytes of KV that the weights leave of the GPUs' memory.
    ///
    /// @throws IllegalArgumentException when the weights do not fit
    public static long deviceBytes(ModelProfile model, GpuProfile gpu, int gpus) {
        if (gpu.kvBytes(model, gpus) <= 0) {
            throw new IllegalArgumentException("--gpus is '" + gpus + "', must be: " + minCapacity(model, gpu)
                    + " and up, for the weights of " + model.label() + " do not fit so many " + gpu.label());
        }
        return gpu.kvBytes(model, gpus);
    }

    private static int minCapacity(ModelProfile model, GpuProfile gpu) {
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
    public record FleetConfig(int count, RoutingPolicy route, long seed) {

        /// @throws IllegalArgumentException when there are too many
        public FleetConfig {
            if (count < 1 || count > RequestRouter.MAX_INSTANCES) {
                throw new IllegalArgumentException(
                        "--instances is '" + count + "', must be: 1 to " + RequestRouter.MAX_INSTANCES);
            }
        }
    }

    /// Reads the trace once; full blocks count, as in the store.
    ///
    /// @throws IllegalArgumentException when there are prices, and the trace has no timestamps
    public CapacityPlanner(Trace trace, EngineConfig engineConfig) {
        engineConfig.prices.ifPresent(_ -> TierPrices.requireTimestamps(trace));
        this.trace = trace;
        this.engineConfig = engineConfig;
        forest = new PrefixForest(trace, BlockCountingRule.FULL_BLOCKS);
        curve = new LruCurve(forest, 0);
    }

    /// Finds it.
    ///
    /// @param target block hit ratio, above 0 to 1
    /// @param instances at most one comparison
    public SizingResult plan(double target, List<FleetConfig> instances) {
        int lru = curve.blocksFor(target);
        List<SizingResult.Row> rows = new ArrayList<>();
        List<SizingResult.FleetRow> fleets = new ArrayList<>();
        if (lru >= 0) {
            rows.add(row(PolicyKind.LRU, lru, curve::hitRatio));
            rows.add(row(PolicyKind.IMPORTANCE, importance(target), this::importanceHits));
            instances.forEach(each -> fleets.add(fleet(each, target, lru)));
        }
        double later = new LruCurve(forest, forest.requestCount() / 2).ceiling();
        return new SizingResult(
                trace.name(),
                engineConfig.model.label(),
                trace.blockTokens(),
                target,
                curve.ceiling(),
                later,
                trace.spanMinutes(),
                later > curve.ceiling() + MIN_TRUNCATED_SHARE,
                rows,
                fleets);
    }

    private int importance(double target) {
        int low = 0;
        int high = forest.nodeCount();
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

    /// GPU-seconds of prefill that a cache of so many blocks saves.
    private double gpuSecondsSaved(PolicyKind policy, int blocks) {
        if (blocks == 0) {
            return 0;
        }
        HitTotals found = new PolicyReplay(policy).run(forest, blocks, 0);
        PrefillCost cost = engineConfig.hardware.prefill();
        return engineConfig.gpus
                * (cost.secondsPerToken() * found.tokenHits() + cost.secondsPerPair() * found.squaredTokenHits() / 2);
    }

    private SizingResult.Row row(PolicyKind policy, int blocks, IntToDoubleFunction hits) {
        long blockBytes = trace.blockBytes(engineConfig.model.kvBytesPerToken());
        EngineHardware hardware = engineConfig.hardware;
        long[] most = {engineConfig.deviceBytes / blockBytes, engineConfig.hostBytes / blockBytes, Long.MAX_VALUE};
        String[] names = {"device", "host", "disk"};
        double toDevice = blockBytes / hardware.hostBytesPerSecond();
        double[] seconds = {
            0, toDevice, toDevice + blockBytes / hardware.diskBytesPerSecond() + hardware.diskLatencySeconds()
        };
        List<SizingResult.Tier> tiers = new ArrayList<>();
        int[] capacities = new int[most.length];
        int placed = 0;
        double found = 0;
        double saved = 0;
        for (int i = 0; i < most.length; i++) {
            int here = (int) Math.min(most[i], blocks - placed);
            placed += here;
            capacities[i] = placed;
            double all = here == 0 ? found : hits.applyAsDouble(placed);
            double allSaved = engineConfig.prices.isEmpty() || here == 0 ? saved : gpuSecondsSaved(policy, placed);
            tiers.add(new SizingResult.Tier(
                    names[i],
                    here * blockBytes,
                    all - found,
                    1e3 * seconds[i],
                    money(names[i], here * blockBytes, allSaved - saved)));
            found = all;
            saved = allSaved;
        }
        return new SizingResult.Row(
                policy.commandName(), blocks, blocks * blockBytes, firstTokens(policy, capacities), tiers);
    }

    /// Times to the first token, where the trace says when requests came.
    ///
    /// @param capacities of the engine's memory, of that with host memory, and of all
    private SizingResult.@Nullable FirstTokens firstTokens(PolicyKind policy, int[] capacities) {
        if (trace.spanMinutes() == 0) {
            return null;
        }
        int[][] found = new int[capacities.length][];
        for (int i = 0; i < capacities.length; i++) {
            found[i] = i > 0 && capacities[i] == capacities[i - 1] ? found[i - 1] : found(policy, capacities[i]);
        }
        EngineFeed engine = new EngineFeed(trace, engineConfig.hardware, 0);
        for (int request = 0; request < forest.requestCount(); request++) {
            // Under importance, a larger cache may find less of a single request.
            int device = found[0][request];
            int host = Math.max(device, found[1][request]);
            engine.serve(request, device, host, Math.max(host, found[2][request]));
        }
        EngineSimulator.Summary summary = engine.summary();
        return new SizingResult.FirstTokens(
                summary.p50Seconds(), summary.p99Seconds(), summary.busySeconds() / (60 * trace.spanMinutes()));
    }

    /// Leading blocks that each request finds.
    private int[] found(PolicyKind policy, int blocks) {
        int[] found = new int[forest.requestCount()];
        if (blocks > 0) {
            ReplayListener listener = new ReplayListener() {
                @Override
                public void onFound(int request, int resident) {
                    found[request] = Math.min(resident, forest.lookupBlocks(request));
                }
            };
            new PolicyReplay(policy).run(forest, blocks, new HitCounter(forest, 0, listener));
        }
        return found;
    }

    private @Nullable TierMoney money(String tier, long bytes, double gpuSeconds) {
        return engineConfig
                .prices
                .map(prices -> prices.money(
                        tier.equals("host") ? bytes : 0,
                        tier.equals("disk") ? bytes : 0,
                        gpuSeconds,
                        trace.spanMinutes()))
                .orElse(null);
    }

    /// Milliseconds that computing one block takes, in the middle of a prompt of mean length.
    public double computeMillis() {
        long middle = trace.totals().inputTokens() / trace.requests().size() / 2;
        return 1e3 * engineConfig.hardware.prefill().seconds(middle, middle + trace.blockTokens());
    }

    private SizingResult.FleetRow fleet(FleetConfig asked, double target, int sharedBlocks) {
        CacheFleet fleet = new CacheFleet(trace, asked.count, asked.route, asked.seed);
        int each = fleet.blocksPerInstanceFor(target);
        long blocks = each < 0 ? -1 : (long) each * asked.count;
        return new SizingResult.FleetRow(
                asked.count,
                asked.route.commandName(),
                fleet.hitRatio(sharedBlocks / asked.count),
                fleet.ceiling(),
                blocks,
                each < 0 ? -1 : blocks * trace.blockBytes(engineConfig.model.kvBytesPerToken()),
                fleet.maxLoadRatio());
    }

    /// How much memory a hit ratio takes. The fields' names are what programs rely on.
    ///
    /// @param targetHitRatio in full blocks
    /// @param ceiling what is found with memory for everything
    /// @param laterCeiling the same of the second half of the requests, after the first
    /// @param spanMinutes from the first request to the last
    /// @param truncated whether the trace is too short to show all reuse
    /// @param rows one a policy; none when the target cannot be reached
    /// @param fleets private caches, when they were asked for
    public record SizingResult(
            String trace,
            String model,
            int blockTokens,
            double targetHitRatio,
            double ceiling,
            double laterCeiling,
            double spanMinutes,
            boolean truncated,
            List<Row> rows,
            List<FleetRow> fleets) {

        /// Copies the lists.
        public SizingResult {
            rows = List.copyOf(rows);
            fleets = List.copyOf(fleets);
        }

        /// Returns whether there is a capacity that reaches the target.
        public boolean reachable() {
            return targetHitRatio <= ceiling;
        }

        /// One policy.
        ///
        /// @param firstTokens null where the trace does not say when requests came
        /// @param tiers how the capacity is spread, the fastest first; capacities add up
        public record Row(
                String policy,
                int blocks,
                long bytes,
                @Nullable FirstTokens firstTokens,
                List<Tier> tiers) {

            /// Copies the list.
            public Row {
                tiers = List.copyOf(tiers);
            }
        }

        /// Times to the first token, in the tiers as they are spread.
        ///
        /// @param ttftP50Seconds half of the requests take no longer
        /// @param busyShare of the trace's time, in which the engine works; above 1 it cannot keep up
        public record FirstTokens(double ttftP50Seconds, double ttftP99Seconds, double busyShare) {}

        /// A tier's part.
        ///
        /// @param tier device, host or disk
        /// @param hitRatio of all blocks looked up, those found in this tier
        /// @param millisABlock to bring one block to the device
        /// @param money null where no prices were given
        public record Tier(
                String tier,
                long bytes,
                double hitRatio,
                double millisABlock,
                @Nullable TierMoney money) {}

        /// A tier's part in money, a month of 730 hours with the trace's load.
        ///
        /// @param cost of the memory
        /// @param gpuHoursSaved of prefill
        /// @param saved what these cost
        /// @param net what is saved less the cost
        public record TierMoney(double cost, double gpuHoursSaved, double saved, double net) {

            /// `costs 1.00, saves 2.0 GPU-hours (5.00): gains 4.00`.
            public String text() {
                return String.format(
                        Locale.ROOT,
                        "costs %,.2f, saves %,.1f GPU-hours (%,.2f): %s %,.2f",
                        cost,
                        gpuHoursSaved,
                        saved,
                        net < 0 ? "loses" : "gains",
                        Math.abs(net));
            }
        }

        /// Instances with private LRU caches.
        ///
        /// @param sameMemoryHitRatio with the bytes together that one shared LRU cache needs
        /// @param ceiling with memory for everything
        /// @param blocks that they need together for the target, -1 when nothing would do
        /// @param bytes likewise
        /// @param busiest prompt tokens of the instance that gets the most, over the mean
        public record FleetRow(
                int instances,
                String route,
                double sameMemoryHitRatio,
                double ceiling,
                long blocks,
                long bytes,
                double busiest) {}
    }

    /// Instances with a private LRU cache each, all of one size, and a route by which requests come to them.
    static final class CacheFleet {

        private final List<Trace> parts;
        private final List<LruCurve> curves;
        private final long accesses;

        CacheFleet(Trace trace, int instances, RoutingPolicy routingPolicy, long seed) {
            parts = new RequestRouter(trace, instances).split(routingPolicy, seed);
            curves = parts.stream()
                    .map(part -> new LruCurve(new PrefixForest(part, BlockCountingRule.FULL_BLOCKS), 0))
                    .toList();
            accesses = curves.stream().mapToLong(LruCurve::accesses).sum();
        }

        /// Returns the share of full blocks found, when each instance has room for this many.
        double hitRatio(int blocksEach) {
            long hits =
                    curves.stream().mapToLong(curve -> curve.hits(blocksEach)).sum();
            return accesses == 0 ? 0 : (double) hits / accesses;
        }

        /// Returns the hit ratio with memory for everything.
        double ceiling() {
            return hitRatio(Integer.MAX_VALUE);
        }

        /// The least capacity of each in blocks with at least this hit ratio, or -1 when there is none.
        int blocksPerInstanceFor(double hitRatio) {
            if (hitRatio > ceiling()) {
                return -1;
            }
            long low = 0;
            long high = Integer.MAX_VALUE;
            while (low < high) {
                long middle = (low + high) / 2;
                if (hitRatio((int) middle) >= hitRatio) {
                    high = middle;
                } else {
                    low = middle + 1;
                }
            }
            return (int) low;
        }

        /// Prompt tokens of the instance that gets the most, over the mean.
        double maxLoadRatio() {
            long[] tokens = parts.stream()
                    .mapToLong(part -> part.totals().inputTokens())
                    .toArray();
            long most = 0;
            double sum = 0;
            for (long each : tokens) {
                most = Math.max(most, each);
                sum += (double) each;
            }
            return sum == 0 ? 1 : most * tokens.length / sum;
        }
    }
}
