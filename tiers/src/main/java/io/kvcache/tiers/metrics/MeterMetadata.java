package io.kvcache.tiers.metrics;

import static java.util.Map.entry;

import io.micrometer.core.instrument.FunctionCounter;
import io.micrometer.core.instrument.Gauge;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.Tags;
import java.util.Map;
import java.util.function.ToDoubleFunction;
import org.jspecify.annotations.Nullable;

/// Registration of a store's meters, with their help texts and units. A help text is one line, the one after `# HELP`.
final class MeterMetadata {

    private static final Map<String, String> DESCRIPTIONS = Map.ofEntries(
            entry(
                    "cache.evictions",
                    "Blocks and objects that left host memory, by cause; quota: their owner's quota was full."),
            entry("cache.gets", "Blocks and objects that were read, by namespace and result."),
            entry(
                    "cache.puts",
                    "Blocks and objects that callers wanted to put, by what became of it; no_room: one for each that was refused."),
            entry("cache.size", "Blocks and objects that are in the store, in memory or on disk."),
            entry("kv.blocks.arrived", "Blocks that came from a slower tier for a request, in whole or in part."),
            entry("kv.blocks.left.to.compute", "Blocks that were left on disk, as they are computed sooner than read."),
            entry("kv.disk.alive", "Bytes of blocks and objects on the disk that can be found."),
            entry(
                    "kv.disk.budget",
                    "Share of the day's write budget that is spent; 1 is all of it, 0 also where there is none."),
            entry(
                    "kv.disk.coded",
                    "Bytes of blocks and objects that were written coded: plain ones, and those that they take on disk."),
            entry(
                    "kv.disk.coded.blocks",
                    "Blocks and objects that were coded, or left plain as coding gained nothing."),
            entry("kv.disk.coder", "Plain bytes that were coded for the disk, and decoded."),
            entry("kv.disk.coder.time", "Processor time of coding and decoding."),
            entry("kv.disk.failures", "Reads and writes of the disk that failed, by cause; each is a miss."),
            entry("kv.disk.latency", "Time from the request to its outcome, of reads and writes of the disk."),
            entry(
                    "kv.disk.latency.p50",
                    "Time that half of all reads or writes took at most, since the disk was configured."),
            entry(
                    "kv.disk.latency.p99",
                    "Time that 99 % of all reads or writes took at most, since the disk was configured."),
            entry("kv.disk.limit", "Bytes of blocks and objects that may be alive on the disk."),
            entry("kv.disk.load.bytes", "Bytes of blocks and objects that were read from the disk."),
            entry("kv.disk.loads", "Blocks and objects that were read from the disk."),
            entry("kv.disk.part.bytes", "Bytes of parts of blocks that were read where they lie."),
            entry("kv.disk.parts", "Parts of blocks that were read where they lie, without the rest."),
            entry("kv.disk.serving", "1 while the disk reads and writes, 0 while it is out; /health/ready says why."),
            entry("kv.disk.underway", "Reads and writes of the disk that are on their way."),
            entry("kv.disk.waiting", "Reads that wait for the disk."),
            entry("kv.disk.written", "Bytes written to the disk: of blocks and objects, and all."),
            entry("kv.hints", "Hints, by whether they were taken."),
            entry("kv.hints.pinned", "Bytes of blocks and values that hints pin in host memory."),
            entry(
                    "kv.hints.released",
                    "Blocks and values that became next victims, by what ended: their time, or their session."),
            entry("kv.hints.said", "Blocks and values that were labelled, or given a weight."),
            entry("kv.hints.sessions", "Sessions whose last turn is known from labels."),
            entry("kv.hints.waiting", "Blocks and values that wait for the end of the time that a hint gave them."),
            entry("kv.memory.capacity", "Bytes of host memory for values and blocks."),
            entry("kv.memory.held", "Bytes of host memory that values and blocks take; full is as it should be."),
            entry("kv.memory.lru.dropped", "Uses that came too fast for the estimate of kv_memory_lru_hit_ratio."),
            entry("kv.memory.lru.hit.ratio", "What LRU would find in so many times the memory; an estimate."),
            entry(
                    "kv.offload",
                    "Blocks and objects that might have been written to disk, by what became of them; those that are too_large for one stay in memory alone."),
            entry("kv.policy.follows.lru", "1 while a policy that learns goes by last use, as LRU finds more."),
            entry("kv.policy.hits", "Uses in the sample of a policy that learns which it, or LRU, would have found."),
            entry("kv.policy.sampled", "Uses in the sample of a policy that learns."),
            entry("kv.policy.switches", "Times that a policy that learns was made to go by last use."),
            entry("kv.policy.uses", "Uses of blocks under a policy that learns, by the order that it went by."),
            entry("kv.prefetch", "Blocks and objects read from disk ahead of requests; wasted: none came in time."),
            entry(
                    "kv.prompt.tokens",
                    "Tokens of prompts whose chain was asked for, by whether their hashes were found or had to be made."),
            entry(
                    "kv.room.attempts.failed",
                    "Attempts to make room that found none; a put that waits makes many and may succeed."),
            entry("kv.slabs.moved", "Slabs of host memory that went from one size of slots to another."),
            entry("kv.tables.open", "Tables and views that hold blocks and objects in memory."),
            entry("kv.touches.lost", "Uses that the order of eviction has not seen."));

    private static final Map<String, String> UNITS = Map.ofEntries(
            entry("kv.memory.held", "bytes"),
            entry("kv.memory.capacity", "bytes"),
            entry("kv.disk.alive", "bytes"),
            entry("kv.disk.limit", "bytes"),
            entry("kv.disk.written", "bytes"),
            entry("kv.disk.coded", "bytes"),
            entry("kv.disk.coder", "bytes"),
            entry("kv.disk.coder.time", "seconds"),
            entry("kv.disk.latency.p50", "seconds"),
            entry("kv.disk.latency.p99", "seconds"),
            entry("kv.disk.budget", "ratio"),
            entry("kv.hints.pinned", "bytes"));

    private MeterMetadata() {}

    /// Registers a counter of a store with its help text and unit.
    static <T> void counter(MeterRegistry registry, T cache, String name, Tags tags, ToDoubleFunction<T> value) {
        FunctionCounter.builder(name, cache, value)
                .tags(tags)
                .description(description(name))
                .baseUnit(unit(name))
                .register(registry);
    }

    /// Registers a gauge of a store with its help text and unit.
    static <T> void gauge(MeterRegistry registry, T cache, String name, Tags tags, ToDoubleFunction<T> value) {
        Gauge.builder(name, cache, value)
                .tags(tags)
                .description(description(name))
                .baseUnit(unit(name))
                .register(registry);
    }

    /// The unit of a meter, which becomes a part of its name; null for a mere count.
    static @Nullable String unit(String meter) {
        return UNITS.get(meter);
    }

    /// The text of a meter.
    ///
    /// @throws IllegalArgumentException when it has none
    static String description(String meter) {
        String text = DESCRIPTIONS.get(meter);
        if (text == null) {
            throw new IllegalArgumentException("meter " + meter + " has no text");
        }
        return text;
    }
}
