package io.kvcache.engines.generator;

import io.micrometer.core.instrument.FunctionCounter;
import io.micrometer.core.instrument.FunctionTimer;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.Tags;
import io.micrometer.core.instrument.binder.MeterBinder;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;
import java.util.function.ToLongFunction;

/// Binds what a generator counts to a registry.
///
/// | meter | tags | unit |
/// |---|---|---|
/// | `kv.engine.ttft` | `result` hit or miss | time to the first token |
/// | `kv.engine.tokens` | `kind` prompt, saved (of the prompt, not computed) or generated | tokens |
/// | `kv.engine.time` | `step` lookup, import, prefill or store | seconds |
/// | `kv.engine.blocks` | `outcome` stored or refused | blocks |
/// | `kv.engine.stores` | `outcome` skipped or failed | sequences |
/// | `kv.engine.verified` | `result` same or different | hits |
///
/// **Threads.** Any.
@SuppressWarnings("exports") // Micrometer is optional.
public final class GeneratorMetrics implements MeterBinder {

    private static final double NANOS = 1e9;

    private final PrefixCachedGenerator<?> generator;
    private final Tags tags;

    /// @param name value of the tag `engine`
    public GeneratorMetrics(PrefixCachedGenerator<?> generator, String name) {
        this.generator = generator;
        this.tags = Tags.of("engine", name);
    }

    @Override
    public void bindTo(MeterRegistry registry) {
        timer(registry, "hit", GeneratorStats::hits);
        timer(registry, "miss", GeneratorStats::misses);
        TaggedCounters tokens = new TaggedCounters(
                registry, "kv.engine.tokens", "kind", 1, "Tokens of prompts, saved of those, and generated.");
        tokens.register("prompt", stats -> stats.tokens().prompt());
        tokens.register("saved", stats -> stats.tokens().saved());
        tokens.register("generated", stats -> stats.tokens().generated());
        TaggedCounters time =
                new TaggedCounters(registry, "kv.engine.time", "step", NANOS, "Seconds that requests took, by step.");
        time.register("lookup", stats -> stats.nanos().lookup());
        time.register("import", stats -> stats.nanos().imports());
        time.register("prefill", stats -> stats.nanos().prefill());
        time.register("store", stats -> stats.nanos().store());
        TaggedCounters blocks =
                new TaggedCounters(registry, "kv.engine.blocks", "outcome", 1, "Computed blocks, stored or refused.");
        blocks.register("stored", stats -> stats.stores().blocks());
        blocks.register("refused", stats -> stats.stores().refused());
        TaggedCounters stores = new TaggedCounters(
                registry, "kv.engine.stores", "outcome", 1, "Sequences that were not stored, by cause.");
        stores.register("skipped", stats -> stats.stores().skipped());
        stores.register("failed", stats -> stats.stores().failed());
        TaggedCounters verified = new TaggedCounters(
                registry, "kv.engine.verified", "result", 1, "Hits that were computed all the same, by result.");
        verified.register(
                "same", stats -> stats.verified().count() - stats.verified().mismatches());
        verified.register("different", stats -> stats.verified().mismatches());
    }

    private void timer(MeterRegistry registry, String result, Function<GeneratorStats, GeneratorStats.Requests> of) {
        FunctionTimer.builder(
                        "kv.engine.ttft",
                        generator,
                        made -> of.apply(made.stats()).count(),
                        made -> (double) of.apply(made.stats()).firstTokenNanos(),
                        TimeUnit.NANOSECONDS)
                .description("Time from the model's turn to the first token, by what the store gave.")
                .tags(tags.and("result", result))
                .register(registry);
    }

    /// Counters of one name that differ in one tag.
    private final class TaggedCounters {

        private final MeterRegistry registry;
        private final String name;
        private final String tag;
        private final double unit;
        private final String description;

        TaggedCounters(MeterRegistry registry, String name, String tag, double unit, String description) {
            this.registry = registry;
            this.name = name;
            this.tag = tag;
            this.unit = unit;
            this.description = description;
        }

        void register(String value, ToLongFunction<GeneratorStats> count) {
            FunctionCounter.builder(name, generator, made -> count.applyAsLong(made.stats()) / unit)
                    .description(description)
                    .tags(tags.and(tag, value))
                    .register(registry);
        }
    }
}
