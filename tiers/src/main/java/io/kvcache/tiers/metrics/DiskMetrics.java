package io.kvcache.tiers.metrics;

import io.kvcache.core.store.HostStore.PrefetchStats;
import io.kvcache.core.store.TierPort.DiskTierStats;
import io.kvcache.core.tier.TierState;
import io.kvcache.core.tier.TierStats;
import io.kvcache.tiers.TieredKvCache;
import io.kvcache.tiers.movement.TierTransferStats;
import io.micrometer.core.instrument.FunctionTimer;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.Tags;
import io.micrometer.core.instrument.binder.MeterBinder;
import java.util.concurrent.TimeUnit;
import java.util.function.ToDoubleFunction;

/// Meters of a store's disks, beside those of [KvCacheMetrics]:
///
/// | meter | tags | what |
/// |---|---|---|
/// | `kv.disk.serving` | disk | 1 while it reads and writes, else 0 |
/// | `kv.disk.alive`, `kv.disk.limit` | disk | bytes of blocks that are alive, and that may be |
/// | `kv.disk.loads`, `kv.disk.load.bytes` | disk | blocks and objects read |
/// | `kv.disk.failures` | disk, cause | reads by cause, writes |
/// | `kv.disk.written` | disk, what | bytes of blocks, and of everything |
/// | `kv.disk.waiting`, `kv.disk.underway` | disk, what | loads that wait; loads and writes on their way |
/// | `kv.disk.latency` | disk, what | how many, and their time together |
/// | `kv.disk.latency.p50`, `kv.disk.latency.p99` | disk, what | seconds, of all since the store was opened |
/// | `kv.disk.budget` | disk | share of a day's write budget that is spent |
/// | `kv.offload` | outcome | records that might have been written, by what became of them |
/// | `kv.prefetch` | outcome | records that were read before a request for them |
/// | `kv.blocks.left.to.compute` | | blocks that were left on disk, as they are computed sooner |
///
/// **Threads.** Any.
public final class DiskMetrics implements MeterBinder {

    /// The meter of reads' and writes' time, which a registry that takes histograms may want as one.
    public static final String LATENCY = "kv.disk.latency";

    private static final double MICROS = 1e6;
    private static final double NANOS = 1e9;

    private final TieredKvCache cache;
    private final Tags tags;

    /// @param name value of the tag `cache`
    public DiskMetrics(TieredKvCache cache, String name) {
        this.cache = cache;
        tags = Tags.of("cache", name);
    }

    @Override
    public void bindTo(MeterRegistry registry) {
        int disks = cache.diskStats().size();
        for (int disk = 0; disk < disks; disk++) {
            bindDisk(registry, disk, tags.and("disk", Integer.toString(disk)));
        }
        if (disks > 0) {
            bindOffload(registry);
        }
    }

    private void bindDisk(MeterRegistry registry, int disk, Tags own) {
        gauge(registry, "kv.disk.serving", own, disk, stats -> stats.state() == TierState.SERVING ? 1 : 0);
        gauge(registry, "kv.disk.budget", own, disk, TierTransferStats::budgetSpent);
        gauge(registry, "kv.disk.waiting", own.and("what", "load"), disk, TierTransferStats::readsWaiting);
        gauge(registry, "kv.disk.underway", own.and("what", "load"), disk, TierTransferStats::readsUnderWay);
        gauge(registry, "kv.disk.underway", own.and("what", "write"), disk, TierTransferStats::writesUnderWay);
        counter(registry, "kv.disk.loads", own, disk, TierTransferStats::loaded);
        counter(registry, "kv.disk.load.bytes", own, disk, TierTransferStats::loadedBytes);
        counter(registry, "kv.disk.parts", own, disk, TierTransferStats::partsRead);
        counter(registry, "kv.disk.part.bytes", own, disk, TierTransferStats::partBytes);
        bindFailures(registry, disk, own);
        counter(
                registry,
                "kv.disk.written",
                own.and("what", "blocks"),
                disk,
                stats -> stats.tier().blockBytesWritten());
        counter(
                registry,
                "kv.disk.written",
                own.and("what", "all"),
                disk,
                stats -> stats.tier().allBytesWritten());
        bindCoding(registry, disk, own);
        bindLatency(registry, disk, own.and("what", "load"), TierTransferStats::readLatency);
        bindLatency(registry, disk, own.and("what", "write"), TierTransferStats::writeLatency);
        bindLiveBytes(registry, "kv.disk.alive", own, disk, DiskTierStats.LiveUsage::bytes);
        bindLiveBytes(registry, "kv.disk.limit", own, disk, DiskTierStats.LiveUsage::limitBytes);
    }

    private void bindCoding(MeterRegistry registry, int disk, Tags own) {
        coding(registry, "kv.disk.coded", own.and("what", "plain"), disk, TierStats.Coding::plainBytes);
        coding(registry, "kv.disk.coded", own.and("what", "stored"), disk, TierStats.Coding::storedBytes);
        coding(registry, "kv.disk.coded.blocks", own.and("outcome", "coded"), disk, TierStats.Coding::blocks);
        coding(registry, "kv.disk.coded.blocks", own.and("outcome", "plain"), disk, TierStats.Coding::leftPlain);
        coding(registry, "kv.disk.coder", own.and("what", "encode"), disk, TierStats.Coding::encodedBytes);
        coding(registry, "kv.disk.coder", own.and("what", "decode"), disk, TierStats.Coding::decodedBytes);
        coding(registry, "kv.disk.coder.time", own.and("what", "encode"), disk, of -> of.encodeNanos() / NANOS);
        coding(registry, "kv.disk.coder.time", own.and("what", "decode"), disk, of -> of.decodeNanos() / NANOS);
    }

    private void coding(
            MeterRegistry registry, String name, Tags own, int disk, ToDoubleFunction<TierStats.Coding> value) {
        counter(
                registry,
                name,
                own,
                disk,
                stats -> value.applyAsDouble(stats.tier().coding()));
    }

    private void bindFailures(MeterRegistry registry, int disk, Tags own) {
        counter(
                registry,
                "kv.disk.failures",
                own.and("cause", "unreadable"),
                disk,
                stats -> stats.tier().readErrors());
        counter(
                registry,
                "kv.disk.failures",
                own.and("cause", "checksum"),
                disk,
                stats -> stats.tier().checksumErrors());
        counter(
                registry,
                "kv.disk.failures",
                own.and("cause", "write"),
                disk,
                stats -> stats.tier().writesFailed());
    }

    private interface LatencyOf {
        TierTransferStats.Latency in(TierTransferStats stats);
    }

    private void bindLatency(MeterRegistry registry, int disk, Tags own, LatencyOf latency) {
        FunctionTimer.builder(
                        LATENCY,
                        cache,
                        store -> latency.in(store.diskStats().get(disk)).count(),
                        store -> latency.in(store.diskStats().get(disk)).sumMicros(),
                        TimeUnit.MICROSECONDS)
                .tags(own)
                .description(MeterMetadata.description(LATENCY))
                .register(registry);
        gauge(registry, LATENCY + ".p50", own, disk, stats -> latency.in(stats).p50Micros() / MICROS);
        gauge(registry, LATENCY + ".p99", own, disk, stats -> latency.in(stats).p99Micros() / MICROS);
    }

    private void bindOffload(MeterRegistry registry) {
        offload(registry, "written", DiskTierStats::written);
        offload(registry, "failed", DiskTierStats::notWritten);
        offload(registry, "not_yet", DiskTierStats::notYet);
        offload(registry, "too_large", DiskTierStats::tooLarge);
        offload(registry, "queue_full", DiskTierStats::queueFull);
        offload(registry, "sacrificed", DiskTierStats::sacrificed);
        offload(registry, "evicted_unwritten", DiskTierStats::evictedUnwritten);
        prefetch(registry, "begun", PrefetchStats::begun);
        prefetch(registry, "used", PrefetchStats::used);
        prefetch(registry, "wasted", PrefetchStats::wasted);
        MeterMetadata.counter(registry, cache, "kv.blocks.left.to.compute", tags, TieredKvCache::blocksLeftOnDisk);
    }

    private void offload(MeterRegistry registry, String outcome, ToDoubleFunction<DiskTierStats> value) {
        Tags own = tags.and("outcome", outcome);
        MeterMetadata.counter(registry, cache, "kv.offload", own, store -> value.applyAsDouble(store.offloadStats()));
    }

    private void prefetch(MeterRegistry registry, String outcome, ToDoubleFunction<PrefetchStats> value) {
        Tags own = tags.and("outcome", outcome);
        MeterMetadata.counter(registry, cache, "kv.prefetch", own, store -> value.applyAsDouble(store.prefetchStats()));
    }

    private void bindLiveBytes(
            MeterRegistry registry, String name, Tags own, int disk, ToDoubleFunction<DiskTierStats.LiveUsage> value) {
        MeterMetadata.gauge(
                registry,
                cache,
                name,
                own,
                store -> value.applyAsDouble(store.offloadStats().disks().get(disk)));
    }

    private void counter(
            MeterRegistry registry, String name, Tags own, int disk, ToDoubleFunction<TierTransferStats> value) {
        MeterMetadata.counter(
                registry,
                cache,
                name,
                own,
                store -> value.applyAsDouble(store.diskStats().get(disk)));
    }

    private void gauge(
            MeterRegistry registry, String name, Tags own, int disk, ToDoubleFunction<TierTransferStats> value) {
        MeterMetadata.gauge(
                registry,
                cache,
                name,
                own,
                store -> value.applyAsDouble(store.diskStats().get(disk)));
    }
}
