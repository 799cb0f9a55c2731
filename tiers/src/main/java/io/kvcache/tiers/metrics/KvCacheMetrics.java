package io.kvcache.tiers.metrics;

import io.kvcache.core.CacheAdmin;
import io.kvcache.core.CacheStats;
import io.kvcache.core.NamespaceStats;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.policy.LruFallback;
import io.kvcache.core.stats.DiskTierStats;
import io.kvcache.core.stats.PrefetchStats;
import io.kvcache.core.stats.TierTransferStats;
import io.kvcache.core.stats.TierTransferStats.Latency;
import io.kvcache.core.tier.TierState;
import io.kvcache.core.tier.TierStats;
import io.kvcache.tiers.HintStats;
import io.kvcache.tiers.TieredKvCache;
import io.kvcache.tiers.use.LruHitRatioEstimator;
import io.micrometer.core.instrument.FunctionTimer;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.Tags;
import io.micrometer.core.instrument.binder.MeterBinder;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;
import java.util.function.Supplier;
import java.util.function.ToDoubleFunction;

/// Binds a store's statistics to a registry, under the usual `cache.*` names and `kv.*` for what only this store
/// has. A store in this process also has meters of its disks, hints and policy.
///
/// ```java
/// new KvCacheMetrics(cache, "kv").bindTo(registry);
/// ```
///
/// At most [CardinalityLimit#MAX_LABELS] pairs of namespace and tenant get a series of their own, in order of
/// registration; the rest add up under `other`. A namespace that is registered later appears after the next
/// reading of any meter.
///
/// **Ownership.** The registry keeps the cache reachable.
///
/// **Threads.** Any; every reading takes the store's lock for some microseconds.
@SuppressWarnings("exports") // Micrometer is optional, and what the server adds is its own.
public final class KvCacheMetrics implements MeterBinder {

    /// The meter of reads' and writes' time, which a registry that takes histograms may want as one.
    public static final String DISK_LATENCY = "kv.disk.latency";

    private static final String BYTES = "bytes";
    private static final String SECONDS = "seconds";
    private static final double MICROS = 1e6;
    private static final double NANOS = 1e9;

    private final CacheAdmin cache;
    private final Tags tags;
    private final CardinalityLimit labels = new CardinalityLimit();

    /// @param cache asked for its statistics at each reading
    /// @param name value of the tag `cache`
    public KvCacheMetrics(CacheAdmin cache, String name) {
        this.cache = cache;
        this.tags = Tags.of("cache", name);
    }

    /// Returns the meters of what other sizes of memory would find.
    ///
    /// @param memory asked at each reading
    public static MeterBinder ofOtherSizes(Supplier<LruHitRatioEstimator.Report> memory) {
        return registry -> {
            Meters<LruHitRatioEstimator.Report> meters = new Meters<>(registry, Tags.empty(), memory);
            List<LruHitRatioEstimator.Size> sizes = memory.get().sizes();
            for (int i = 0; i < sizes.size(); i++) {
                int index = i;
                meters.with("factor", String.valueOf(sizes.get(i).factor()))
                        .gauge(
                                "kv.memory.lru.hit.ratio",
                                "What LRU would find in this multiple of the memory; an estimate.",
                                report -> report.sizes().get(index).lruHitRatio());
            }
            meters.count(
                    "kv.memory.lru.dropped",
                    "Uses that came too fast for the estimate of kv_memory_lru_hit_ratio.",
                    LruHitRatioEstimator.Report::dropped);
        };
    }

    @Override
    public void bindTo(MeterRegistry registry) {
        Meters<CacheStats> meters = new Meters<>(registry, tags, cache::stats);
        Meters<CacheStats> host = meters.with("tier", "host");
        host.gauge(
                "kv.memory.capacity",
                BYTES,
                "Bytes of host memory for values and blocks.",
                stats -> stats.host().capacityBytes());
        host.gauge(
                "kv.memory.held",
                BYTES,
                "Bytes of host memory that values and blocks take; full is as it should be.",
                stats -> {
                    bindNamespaces(meters, stats);
                    return stats.host().heldBytes();
                });
        bindChanges(meters);
        meters.count(
                "kv.slabs.moved",
                "Slabs of host memory that went from one size of slots to another.",
                stats -> stats.host().slabMoves());
        meters.count("kv.touches.lost", "Uses that the order of eviction has not seen.", CacheStats::droppedAccesses);
        meters.gauge(
                "kv.tables.open", "Tables and views that hold blocks and objects in memory.", CacheStats::openTables);
        bindNamespaces(meters, cache.stats());
        if (cache instanceof TieredKvCache embedded) {
            bindEmbedded(new Meters<>(registry, tags, () -> embedded));
        }
    }

    /// What came into host memory, and what left it.
    private static void bindChanges(Meters<CacheStats> meters) {
        meters.of(CacheStats::puts)
                .counts(
                        "cache.puts",
                        null,
                        "Blocks and objects that callers wanted to put, by what became of it; no_room: one for each that was refused.",
                        "outcome")
                .add("reserved", CacheStats.Puts::reserved)
                .add("present", CacheStats.Puts::present)
                .add("busy", CacheStats.Puts::busy)
                .add("no_parent", CacheStats.Puts::noParent)
                .add("no_room", CacheStats.Puts::noRoom)
                .add("foreign", CacheStats.Puts::foreign)
                .add("declined", CacheStats.Puts::declined);
        meters.count(
                "kv.room.attempts.failed",
                "Attempts to make room that found none; a put that waits makes many and may succeed.",
                stats -> stats.puts().attemptsWithoutRoom());
        meters.of(CacheStats::removals)
                .counts(
                        "cache.evictions",
                        null,
                        "Blocks and objects that left host memory, by cause; quota: their owner's quota was full.",
                        "cause")
                .add("evicted", CacheStats.Removals::evicted)
                .add("dropped", CacheStats.Removals::dropped)
                .add("replaced", CacheStats.Removals::replaced)
                .add("quota", CacheStats.Removals::quota);
    }

    private void bindNamespaces(Meters<CacheStats> meters, CacheStats now) {
        for (NamespaceStats each : now.namespaces()) {
            CardinalityLimit.Label label = labels.of(each.namespace());
            if (labels.markBound(label)) {
                Meters<CacheStats> own = meters.with("namespace", label.namespace(), "tenant", label.tenant());
                own.counts("cache.gets", null, "Blocks and objects that were read, by namespace and result.", "result")
                        .add("hit", sum(label, KvCacheMetrics::hits))
                        .add("miss", sum(label, KvCacheMetrics::misses));
                own.count(
                        "kv.blocks.arrived",
                        "Blocks that came from a slower tier for a request, in whole or in part.",
                        sum(label, NamespaceStats::blocksLoaded));
                own.count(
                        "kv.blocks.device",
                        "Blocks that engines took from the memory of their own GPU.",
                        sum(label, NamespaceStats::blocksFromDevice));
                own.gauge(
                        "cache.size",
                        "Blocks and objects that are in the store, in memory or on disk.",
                        sum(label, NamespaceStats::live));
            }
        }
    }

    private ToDoubleFunction<CacheStats> sum(CardinalityLimit.Label label, ToDoubleFunction<NamespaceStats> value) {
        return stats -> stats.namespaces().stream()
                .filter(each -> labels.of(each.namespace()).equals(label))
                .mapToDouble(value)
                .sum();
    }

    private static double hits(NamespaceStats stats) {
        return stats.blocksFound() + stats.objectsFound();
    }

    private static double misses(NamespaceStats stats) {
        return stats.blocksRequested() + stats.objectsRequested() - hits(stats);
    }

    private static void bindEmbedded(Meters<TieredKvCache> meters) {
        meters.counts(
                        "kv.prompt.tokens",
                        null,
                        "Tokens of prompts whose chain was asked for, by whether their hashes were found or had to be made.",
                        "result")
                .add("found", store -> store.promptTokens().found())
                .add("hashed", store -> store.promptTokens().hashed());
        bindPolicy(meters.of(TieredKvCache::lruFallbackReport));
        bindHints(meters.of(TieredKvCache::hintStats));
        int disks = meters.source().get().diskStats().size();
        for (int disk = 0; disk < disks; disk++) {
            int index = disk;
            Meters<TieredKvCache> own = meters.with("disk", Integer.toString(disk));
            bindDisk(own.of(store -> store.diskStats().get(index)));
            Meters<DiskTierStats.LiveUsage> usage =
                    own.of(store -> store.offloadStats().disks().get(index));
            usage.gauge(
                    "kv.disk.alive",
                    BYTES,
                    "Bytes of blocks and objects on the disk that can be found.",
                    DiskTierStats.LiveUsage::bytes);
            usage.gauge(
                    "kv.disk.limit",
                    BYTES,
                    "Bytes of blocks and objects that may be alive on the disk.",
                    DiskTierStats.LiveUsage::limitBytes);
        }
        if (disks > 0) {
            bindMovement(meters);
        }
    }

    /// All zero under policies that do not learn.
    private static void bindPolicy(Meters<LruFallback.Report> meters) {
        meters.gauge(
                "kv.policy.follows.lru",
                "1 while a policy that learns goes by last use, as LRU finds more.",
                report -> report.followsLru() ? 1 : 0);
        meters.count(
                "kv.policy.switches",
                "Times that a policy that learns was made to go by last use.",
                LruFallback.Report::switches);
        meters.counts(
                        "kv.policy.uses",
                        null,
                        "Uses of blocks under a policy that learns, by the order that it went by.",
                        "order")
                .add("own", report -> report.uses() - report.usesAsLru())
                .add("lru", LruFallback.Report::usesAsLru);
        meters.count(
                "kv.policy.sampled", "Uses in the sample of a policy that learns.", LruFallback.Report::sampledUses);
        meters.counts(
                        "kv.policy.hits",
                        null,
                        "Uses in the sample of a policy that learns which it, or LRU, would have found.",
                        "of")
                .add("own", LruFallback.Report::hits)
                .add("lru", LruFallback.Report::lruHits);
    }

    private static void bindHints(Meters<HintStats> meters) {
        meters.counts("kv.hints", null, "Hints, by whether they were taken.", "taken")
                .add("yes", HintStats::taken)
                .add("no", HintStats::notTaken);
        meters.counts("kv.hints.said", null, "Blocks and values that were labelled, or given a weight.", "what")
                .add("label", HintStats::blocksLabelled)
                .add("weight", HintStats::blocksWeighed);
        meters.counts(
                        "kv.hints.released",
                        null,
                        "Blocks and values that became next victims, by what ended: their time, or their session.",
                        "by")
                .add("time", HintStats::blocksExpired)
                .add("session", HintStats::blocksLeft);
        meters.gauge(
                "kv.hints.pinned",
                BYTES,
                "Bytes of blocks and values that hints pin in host memory.",
                HintStats::pinnedBytes);
        meters.gauge(
                "kv.hints.waiting",
                "Blocks and values that wait for the end of the time that a hint gave them.",
                HintStats::blocksWaiting);
        meters.gauge("kv.hints.sessions", "Sessions whose last turn is known from labels.", HintStats::sessions);
    }

    private static void bindDisk(Meters<TierTransferStats> meters) {
        meters.gauge(
                "kv.disk.serving",
                "1 while the disk reads and writes, 0 while it is out; /health/ready says why.",
                stats -> stats.state() == TierState.SERVING ? 1 : 0);
        meters.gauge(
                "kv.disk.budget",
                "ratio",
                "Share of the day's write budget that is spent; 1 is all of it, 0 also where there is none.",
                TierTransferStats::budgetSpent);
        meters.with("what", "load")
                .gauge("kv.disk.waiting", "Reads that wait for the disk.", TierTransferStats::readsWaiting);
        String underWay = "Reads and writes of the disk that are on their way.";
        meters.with("what", "load").gauge("kv.disk.underway", underWay, TierTransferStats::readsUnderWay);
        meters.with("what", "write").gauge("kv.disk.underway", underWay, TierTransferStats::writesUnderWay);
        meters.count("kv.disk.loads", "Blocks and objects that were read from the disk.", TierTransferStats::loaded);
        meters.count(
                "kv.disk.load.bytes",
                "Bytes of blocks and objects that were read from the disk.",
                TierTransferStats::loadedBytes);
        meters.count(
                "kv.disk.parts",
                "Parts of blocks that were read where they lie, without the rest.",
                TierTransferStats::partsRead);
        meters.count(
                "kv.disk.part.bytes",
                "Bytes of parts of blocks that were read where they lie.",
                TierTransferStats::partBytes);
        Meters<TierStats> tier = meters.of(TierTransferStats::tier);
        tier.counts(
                        "kv.disk.failures",
                        null,
                        "Reads and writes of the disk that failed, by cause; each is a miss.",
                        "cause")
                .add("unreadable", TierStats::readErrors)
                .add("checksum", TierStats::checksumErrors)
                .add("write", TierStats::writesFailed);
        tier.counts("kv.disk.written", BYTES, "Bytes written to the disk: of blocks and objects, and all.", "what")
                .add("blocks", TierStats::blockBytesWritten)
                .add("all", TierStats::allBytesWritten);
        bindCoding(tier.of(TierStats::coding));
        bindLatency(meters.with("what", "load"), TierTransferStats::readLatency);
        bindLatency(meters.with("what", "write"), TierTransferStats::writeLatency);
    }

    private static void bindCoding(Meters<TierStats.Coding> meters) {
        meters.counts(
                        "kv.disk.coded",
                        BYTES,
                        "Bytes of blocks and objects that were written coded: plain ones, and those that they take on disk.",
                        "what")
                .add("plain", TierStats.Coding::plainBytes)
                .add("stored", TierStats.Coding::storedBytes);
        meters.counts(
                        "kv.disk.coded.blocks",
                        null,
                        "Blocks and objects that were coded, or left plain as coding gained nothing.",
                        "outcome")
                .add("coded", TierStats.Coding::blocks)
                .add("plain", TierStats.Coding::leftPlain);
        meters.counts("kv.disk.coder", BYTES, "Plain bytes that were coded for the disk, and decoded.", "what")
                .add("encode", TierStats.Coding::encodedBytes)
                .add("decode", TierStats.Coding::decodedBytes);
        meters.counts("kv.disk.coder.time", SECONDS, "Processor time of coding and decoding.", "what")
                .add("encode", coding -> coding.encodeNanos() / NANOS)
                .add("decode", coding -> coding.decodeNanos() / NANOS);
    }

    private static void bindLatency(Meters<TierTransferStats> meters, Function<TierTransferStats, Latency> which) {
        Meters<Latency> latency = meters.of(which);
        FunctionTimer.builder(
                        DISK_LATENCY,
                        latency.registry(), // as in Meters
                        _ -> latency.source().get().count(),
                        _ -> latency.source().get().sumMicros(),
                        TimeUnit.MICROSECONDS)
                .tags(latency.tags())
                .description("Time from the request to its outcome, of reads and writes of the disk.")
                .register(latency.registry());
        latency.gauge(
                DISK_LATENCY + ".p50",
                SECONDS,
                "Time that half of all reads or writes took at most, since the disk was configured.",
                of -> of.p50Micros() / MICROS);
        latency.gauge(
                DISK_LATENCY + ".p99",
                SECONDS,
                "Time that 99 % of all reads or writes took at most, since the disk was configured.",
                of -> of.p99Micros() / MICROS);
    }

    private static void bindMovement(Meters<TieredKvCache> meters) {
        meters.of(TieredKvCache::offloadStats)
                .counts(
                        "kv.offload",
                        null,
                        "Blocks and objects that might have been written to disk, by what became of them; those that are too_large for one stay in memory alone.",
                        "outcome")
                .add("written", DiskTierStats::written)
                .add("failed", DiskTierStats::notWritten)
                .add("not_yet", DiskTierStats::notYet)
                .add("too_large", DiskTierStats::tooLarge)
                .add("queue_full", DiskTierStats::queueFull)
                .add("sacrificed", DiskTierStats::sacrificed)
                .add("evicted_unwritten", DiskTierStats::evictedUnwritten);
        meters.of(TieredKvCache::prefetchStats)
                .counts(
                        "kv.prefetch",
                        null,
                        "Blocks and objects read from disk ahead of requests; wasted: none came in time.",
                        "outcome")
                .add("begun", PrefetchStats::begun)
                .add("used", PrefetchStats::used)
                .add("wasted", PrefetchStats::wasted);
        meters.count(
                "kv.blocks.left.to.compute",
                "Blocks that were left on disk, as they are computed sooner than read.",
                TieredKvCache::blocksLeftOnDisk);
    }

    /// Keeps the number of time series bounded, however many namespaces and tenants come.
    ///
    /// **Threads.** Any.
    static final class CardinalityLimit {

        /// Pairs of namespace and tenant with series of their own. A tenant can make namespaces at will; a metrics
        /// store that pays for each series cannot.
        static final int MAX_LABELS = 50;

        private static final Label OTHER = new Label("other", "other");

        private final Map<Namespace, Label> labels = new HashMap<>();
        private final Set<Label> distinct = new HashSet<>();
        private final Set<Label> bound = new HashSet<>();

        record Label(String namespace, String tenant) {}

        /// The label that a namespace counts under.
        synchronized Label of(Namespace namespace) {
            return labels.computeIfAbsent(namespace, this::assign);
        }

        private Label assign(Namespace namespace) {
            Label own = new Label(namespace.model(), namespace.owner());
            return distinct.contains(own) || (distinct.size() < MAX_LABELS && distinct.add(own)) ? own : OTHER;
        }

        /// Returns whether this label is bound for the first time.
        synchronized boolean markBound(Label label) {
            return bound.add(label);
        }
    }
}
