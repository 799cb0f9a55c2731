package io.kvcache.transport.wire;

import io.kvcache.core.CacheStats;
import io.kvcache.core.NamespaceStats;
import io.kvcache.core.identity.Namespace;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/// Statistics: 176 bytes, of which the last four are the number of namespaces, then 64 bytes for each of
/// those that the session has registered. Others are not told.
public final class StatsCodec {

    private StatsCodec() {}

    /// Writes statistics.
    ///
    /// @param ids the session's numbers of the namespaces to tell of
    public static void write(CacheStats stats, Map<Namespace, Integer> ids, BodyWriter to) {
        CacheStats.Memory host = stats.host();
        to.i64(host.capacityBytes()).i64(host.heldBytes()).i64(host.slabs()).i64(host.unusedSlabs());
        to.i64(host.slabMoves());
        CacheStats.Records records = stats.records();
        to.i64(records.capacity()).i64(records.live()).i64(records.bytesEach());
        CacheStats.Puts puts = stats.puts();
        to.i64(puts.reserved())
                .i64(puts.present())
                .i64(puts.busy() + puts.foreign())
                .i64(puts.noParent());
        to.i64(puts.noRoom()).i64(puts.abandoned());
        CacheStats.Removals removals = stats.removals();
        to.i64(removals.evicted()).i64(removals.dropped()).i64(removals.replaced());
        to.i64(stats.openTables()).i64(stats.droppedAccesses());
        List<NamespaceStats> told = stats.namespaces().stream()
                .filter(each -> ids.containsKey(each.namespace()))
                .toList();
        to.i64(removals.quota()).i64(puts.attemptsWithoutRoom());
        to.i32((int) Math.min(Integer.MAX_VALUE, puts.declined())).i32(told.size());
        told.forEach(each -> write(each, ids.getOrDefault(each.namespace(), 0), to));
    }

    private static void write(NamespaceStats each, int id, BodyWriter to) {
        to.i32(id).i32(0).i64(each.blocksRequested()).i64(each.blocksFound()).i64(each.blocksLoaded());
        to.i64(each.blocksFromDevice())
                .i64(each.objectsRequested())
                .i64(each.objectsFound())
                .i64(each.live())
                .i64(each.liveBytes());
    }

    /// Reads statistics.
    ///
    /// @param names the namespaces by the session's numbers
    public static CacheStats read(BodyReader from, Map<Integer, Namespace> names) throws ProtocolException {
        CacheStats.Memory host =
                new CacheStats.Memory(count(from), count(from), (int) count(from), (int) count(from), count(from));
        CacheStats.Records records = new CacheStats.Records((int) count(from), (int) count(from), count(from));
        long[] puts = counts(from, 6);
        long[] removals = counts(from, 3);
        long open = count(from);
        long lost = count(from);
        long quota = count(from);
        long attempts = count(from);
        int declined = from.count("declined puts");
        int told = from.count("namespaces");
        List<NamespaceStats> namespaces = new ArrayList<>();
        for (int i = 0; i < told; i++) {
            namespace(from, names, namespaces);
        }
        return new CacheStats(
                host,
                records,
                new CacheStats.Puts(puts[0], puts[1], puts[2], puts[3], puts[4], puts[5], 0, attempts, declined),
                new CacheStats.Removals(removals[0], removals[1], removals[2], quota),
                open,
                lost,
                namespaces);
    }

    private static long[] counts(BodyReader from, int count) throws ProtocolException {
        long[] counts = new long[count];
        for (int i = 0; i < count; i++) {
            counts[i] = count(from);
        }
        return counts;
    }

    private static void namespace(BodyReader from, Map<Integer, Namespace> names, List<NamespaceStats> to)
            throws ProtocolException {
        Namespace name = names.get(from.count("namespace"));
        from.skip(Integer.BYTES);
        long[] numbers = new long[8];
        for (int i = 0; i < numbers.length; i++) {
            numbers[i] = count(from);
        }
        if (name != null) {
            to.add(new NamespaceStats(
                    name,
                    numbers[0],
                    numbers[1],
                    numbers[2],
                    numbers[3],
                    numbers[4],
                    numbers[5],
                    numbers[6],
                    numbers[7]));
        }
    }

    private static long count(BodyReader from) throws ProtocolException {
        return from.i64("count");
    }
}
