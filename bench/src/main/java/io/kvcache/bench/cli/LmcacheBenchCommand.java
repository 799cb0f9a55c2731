package io.kvcache.bench.cli;

import io.kvcache.bench.opaque.LmcacheReplay;
import io.kvcache.bench.replay.BlockCountingRule;
import io.kvcache.bench.replay.HitTotals;
import io.kvcache.bench.replay.PrefixForest;
import io.kvcache.bench.store.StoreReplay;
import io.kvcache.bench.trace.Trace;
import io.kvcache.bench.trace.TraceSource;
import io.kvcache.core.memory.SlabPool;
import io.kvcache.core.policy.EvictionPolicyFactory;
import java.io.IOException;
import java.io.PrintWriter;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;

/// `kvcache bench opaque`: a trace as LMCache would play it, through the server, beside the same
/// blocks in a store that knows their chains.
@Command(
        name = "opaque",
        description =
                "Hit ratios of a trace through the server as opaque objects, beside native blocks of the same memory.",
        mixinStandardHelpOptions = true,
        sortOptions = false)
final class LmcacheBenchCommand implements Callable<Integer> {

    private static final int SLOT_BYTES = 4096;

    /// Points that the server may lose, as a part of one.
    private static final double BUDGET = 0.02;

    @Spec
    private CommandSpec spec = CommandSpec.create();

    @Mixin
    private final TraceOption trace = new TraceOption();

    @Option(
            names = "--policy",
            paramLabel = "NAME",
            split = ",",
            defaultValue = "lru,importance",
            description = "Policies of the store. Default: ${DEFAULT-VALUE}.")
    private List<String> policies = new ArrayList<>();

    @Option(
            names = "--slabs",
            paramLabel = "N",
            split = ",",
            defaultValue = "1,2",
            description = "Capacities in slabs of 8,192 blocks. Default: ${DEFAULT-VALUE}.")
    private List<Integer> slabs = new ArrayList<>();

    @Option(names = "--strict", description = "Exit with 1 when objects lose more than two points beside blocks.")
    private boolean strict;

    @Override
    public Integer call() throws IOException {
        List<EvictionPolicyFactory> kinds = kinds();
        Trace read = TraceOption.loadTrace(source(), spec.commandLine().getErr());
        PrefixForest forest = new PrefixForest(read, BlockCountingRule.FULL_BLOCKS);
        print(read.name() + ", full blocks only");
        print("  policy              blocks    native      resp        lm");
        boolean within = true;
        for (EvictionPolicyFactory kind : kinds) {
            for (int count : slabs) {
                within &= compare(forest, kind, count);
            }
        }
        return within || !strict ? 0 : 1;
    }

    private boolean compare(PrefixForest forest, EvictionPolicyFactory kind, int count) throws IOException {
        LmcacheReplay.Settings settings = new LmcacheReplay.Settings(kind, count * SlabPool.SLAB_BYTES, SLOT_BYTES, 0);
        double blocks = new StoreReplay(forest, new StoreReplay.Settings(kind, settings.blocks(), SLOT_BYTES, 0))
                .run(requests -> {})
                .totals()
                .blockHitRatio();
        LmcacheReplay replay = new LmcacheReplay(forest, settings);
        HitTotals resp = replay.run(LmcacheReplay.ChunkProtocol.RESP);
        HitTotals lm = replay.run(LmcacheReplay.ChunkProtocol.LM);
        print(String.format(
                Locale.ROOT,
                "  %-16s  %,8d  %6.2f %%  %6.2f %%  %6.2f %%",
                kind.commandName(),
                settings.blocks(),
                100 * blocks,
                100 * resp.blockHitRatio(),
                100 * lm.blockHitRatio()));
        return Math.min(resp.blockHitRatio(), lm.blockHitRatio()) >= blocks - BUDGET;
    }

    private List<EvictionPolicyFactory> kinds() {
        try {
            for (int count : slabs) {
                if (count < 1 || count > 1024) {
                    throw ReplayOptions.invalidOption("--slabs", String.valueOf(count), "1 to 1024");
                }
            }
            return policies.stream().map(ReplayOptions::storePolicy).toList();
        } catch (IllegalArgumentException e) {
            throw new ParameterException(spec.commandLine(), "kvcache bench opaque: " + e.getMessage(), e);
        }
    }

    private TraceSource source() {
        try {
            return trace.traceSource();
        } catch (IllegalArgumentException e) {
            throw new ParameterException(spec.commandLine(), "kvcache bench opaque: " + e.getMessage(), e);
        }
    }

    private void print(String line) {
        PrintWriter out = spec.commandLine().getOut();
        out.println(line);
        out.flush();
    }
}
