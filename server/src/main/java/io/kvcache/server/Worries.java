package io.kvcache.server;

import io.kvcache.server.access.Logins;
import io.kvcache.server.block.BlockStock;
import io.kvcache.server.block.BlockStocks;
import io.kvcache.server.keyspace.Keyspace;
import io.kvcache.server.net.CloseReason;
import io.kvcache.server.net.Connections;
import io.kvcache.tiers.TieredKvCache;
import io.kvcache.tiers.movement.TierTransferStats;
import java.util.List;
import java.util.function.Supplier;
import java.util.function.ToLongFunction;

/// What an operator is told of once a minute, when there was any, with what it may come from.
record Worries(TieredKvCache cache, Tenants tenants, Connections connections, Logins logins, BlockStocks blocks) {

    private static final BlockStock.Stats NO_BLOCKS = new BlockStock.Stats(0, 0, 0, 0);

    MinuteReport report() {
        MinuteReport report = new MinuteReport();
        connections(report);
        report.add("log-ins had a wrong user or password", logins::refusedCount);
        report.add("log-ins were not looked at, after too many wrong ones from their address", logins::delayedCount);
        tenants.keyspaces().forEach((tenant, keyspace) -> tenant(report, tenant, keyspace));
        disks(report, cache::diskStats);
        return report;
    }

    private void connections(MinuteReport report) {
        String most = Integer.toString(connections.limits().connections());
        String stall = connections.limits().stall().toSeconds() + "s";
        closed(report, CloseReason.TOO_MANY, "were refused: limits.connections is " + most);
        closed(report, CloseReason.SLOW_READER, "were cut: replies were not read; limits.stall is " + stall);
        closed(
                report,
                CloseReason.STALLED_REQUEST,
                "were cut: a request came slower than 64 KiB/s for limits.stall, which is " + stall);
        closed(report, CloseReason.FOREIGN_NETWORK, "were refused: they came from outside the listener's cidrs");
        closed(report, CloseReason.TLS_FAILED, "ended in the TLS handshake");
        closed(report, CloseReason.UNKNOWN_PROTOCOL, "were closed: they spoke nothing that the listener speaks");
        closed(report, CloseReason.PROTOCOL_ERROR, "were closed: what they sent is not in their protocol");
        closed(report, CloseReason.BUG, "were closed by a bug of this server; the log has the stacks");
    }

    private void closed(MinuteReport report, CloseReason reason, String what) {
        report.add("connections " + what, () -> connections.closedCount(reason));
    }

    /// What a disk could not do. It serves on with the rest, so its state alone says nothing of this.
    static void disks(MinuteReport report, Supplier<List<TierTransferStats>> disks) {
        List<TierTransferStats> now = disks.get();
        for (int number = 0; number < now.size(); number++) {
            String name = now.get(number).name();
            failures(
                    report,
                    disks,
                    number,
                    "reads failed at " + name,
                    each -> each.tier().readErrors());
            failures(
                    report,
                    disks,
                    number,
                    "reads came with wrong bytes from " + name + " and found nothing",
                    each -> each.tier().checksumErrors());
            failures(
                    report,
                    disks,
                    number,
                    "writes failed at " + name,
                    each -> each.tier().writesFailed());
        }
    }

    private static void failures(
            MinuteReport report,
            Supplier<List<TierTransferStats>> disks,
            int number,
            String what,
            ToLongFunction<TierTransferStats> count) {
        report.add(what, () -> count.applyAsLong(disks.get().get(number)));
    }

    private void tenant(MinuteReport report, String tenant, Keyspace keyspace) {
        String of = " of tenant " + tenant + " ";
        report.add(
                "values" + of + "found no room: all is in use, or its quota, its share or limits.in_flight is full",
                () -> keyspace.stats().writes().refused());
        report.add(
                "reads" + of + "found nothing, as clients read too slowly what fills its part of limits.sending",
                () -> keyspace.stats().reads().busy());
        report.add(
                "reads" + of + "found nothing, as what is on disk did not come in disk_read_timeout, or found no"
                        + " room in memory",
                () -> keyspace.stats().reads().late());
        report.add(
                "values" + of + "were gone that EXISTS had just promised: the memory is too small for the load",
                () -> keyspace.stats().promises().broken());
        report.add(
                "values" + of
                        + "were said not to be here, as clients had asked for promise.percent of the memory without"
                        + " fetching it, and the store evicted: more memory or a higher promise.percent keeps more",
                () -> keyspace.stats().promises().declined());
        report.add(
                "blocks" + of + "were refused: its quota is full of what is in use",
                () -> blocks.stats().getOrDefault(tenant, NO_BLOCKS).refused());
    }
}
