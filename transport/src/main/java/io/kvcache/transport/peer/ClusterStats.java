package io.kvcache.transport.peer;

import io.kvcache.core.CacheStats;
import io.kvcache.core.CacheStats.Memory;
import io.kvcache.core.CacheStats.Puts;
import io.kvcache.core.CacheStats.Records;
import io.kvcache.core.CacheStats.Removals;
import io.kvcache.core.NamespaceStats;
import io.kvcache.core.identity.Namespace;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.UnaryOperator;

/// Statistics of several stores as those of one.
final class ClusterStats {

    private ClusterStats() {}

    /// Adds up statistics.
    ///
    /// @param each at least one
    /// @param names the namespace that a server's namespace stands for
    static CacheStats sum(List<CacheStats> each, UnaryOperator<Namespace> names) {
        Map<Namespace, NamespaceStats> namespaces = new LinkedHashMap<>();
        each.stream()
                .flatMap(stats -> stats.namespaces().stream())
                .map(stats -> renamed(stats, names.apply(stats.namespace())))
                .forEach(stats -> namespaces.merge(stats.namespace(), stats, ClusterStats::plus));
        CacheStats all = each.stream().reduce(ClusterStats::plus).orElseThrow();
        return new CacheStats(
                all.host(),
                all.records(),
                all.puts(),
                all.removals(),
                all.openTables(),
                all.droppedAccesses(),
                new ArrayList<>(namespaces.values()));
    }

    private static CacheStats plus(CacheStats one, CacheStats other) {
        return new CacheStats(
                plus(one.host(), other.host()),
                plus(one.records(), other.records()),
                plus(one.puts(), other.puts()),
                plus(one.removals(), other.removals()),
                one.openTables() + other.openTables(),
                one.droppedAccesses() + other.droppedAccesses(),
                List.of());
    }

    private static Memory plus(Memory one, Memory other) {
        return new Memory(
                one.capacityBytes() + other.capacityBytes(),
                one.heldBytes() + other.heldBytes(),
                one.slabs() + other.slabs(),
                one.unusedSlabs() + other.unusedSlabs(),
                one.slabMoves() + other.slabMoves());
    }

    private static Records plus(Records one, Records other) {
        return new Records(
                Math.addExact(one.capacity(), other.capacity()),
                one.live() + other.live(),
                Math.max(one.bytesEach(), other.bytesEach()));
    }

    private static Puts plus(Puts one, Puts other) {
        return new Puts(
                one.reserved() + other.reserved(),
                one.present() + other.present(),
                one.busy() + other.busy(),
                one.noParent() + other.noParent(),
                one.noRoom() + other.noRoom(),
                one.abandoned() + other.abandoned(),
                one.foreign() + other.foreign(),
                one.attemptsWithoutRoom() + other.attemptsWithoutRoom(),
                one.declined() + other.declined());
    }

    private static Removals plus(Removals one, Removals other) {
        return new Removals(
                one.evicted() + other.evicted(),
                one.dropped() + other.dropped(),
                one.replaced() + other.replaced(),
                one.quota() + other.quota());
    }

    private static NamespaceStats plus(NamespaceStats one, NamespaceStats other) {
        return new NamespaceStats(
                one.namespace(),
                one.blocksRequested() + other.blocksRequested(),
                one.blocksFound() + other.blocksFound(),
                one.blocksLoaded() + other.blocksLoaded(),
                one.objectsRequested() + other.objectsRequested(),
                one.objectsFound() + other.objectsFound(),
                one.live() + other.live(),
                one.liveBytes() + other.liveBytes());
    }

    private static NamespaceStats renamed(NamespaceStats stats, Namespace name) {
        return new NamespaceStats(
                name,
                stats.blocksRequested(),
                stats.blocksFound(),
                stats.blocksLoaded(),
                stats.objectsRequested(),
                stats.objectsFound(),
                stats.live(),
                stats.liveBytes());
    }
}
