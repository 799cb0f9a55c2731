package io.kvcache.server;

import io.kvcache.core.stats.TierTransferStats;
import io.kvcache.server.keyspace.Keyspace;
import io.kvcache.server.miss.MissLog.Reason;
import io.kvcache.server.net.Connection.CloseReason;
import io.kvcache.server.net.ConnectionRegistry;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.util.ArrayList;
import java.util.List;
import java.util.function.LongSupplier;
import java.util.function.Supplier;

/// Logs once a minute what went wrong in that minute, a line each.
///
/// The same counts are metrics, but an operator reads the log first.
///
/// **Threads.** Any, after all was added.
final class ProblemDigest implements Runnable {

    static final long INTERVAL_MILLIS = 60_000;

    private static final Logger LOG = System.getLogger(ProblemDigest.class.getName());

    private final List<WatchedCounter> all = new ArrayList<>();

    private static final class WatchedCounter {
        private final String description;
        private final Supplier<String> detail;
        private final LongSupplier count;
        private long previousCount;

        WatchedCounter(String description, Supplier<String> detail, LongSupplier count) {
            this.description = description;
            this.detail = detail;
            this.count = count;
            previousCount = count.getAsLong();
        }
    }

    /// The warnings of a server, each with its likely cause.
    static ProblemDigest of(ServedStore store, FrontEnds fronts) {
        ProblemDigest report = new ProblemDigest();
        report.watchConnections(fronts.connections());
        report.watch("log-ins had a wrong user or password", fronts.passwords()::deniedCount);
        report.watch(
                "log-ins were rejected unchecked, after too many wrong ones from their address",
                fronts.passwords()::throttledCount);
        store.tenants().keyspaces().forEach(report::watchTenant);
        report.watchDisks(store.cache()::diskStats);
        return report;
    }

    private void watchConnections(ConnectionRegistry connections) {
        String most = Integer.toString(connections.limits().connections());
        String stall = connections.limits().stallTimeout().toSeconds() + "s";
        watchClosed(connections, CloseReason.TOO_MANY, "were rejected: limits.connections is " + most);
        watchClosed(
                connections,
                CloseReason.SLOW_READER,
                "were closed: the client did not read replies; limits.stall is " + stall);
        watchClosed(
                connections,
                CloseReason.STALLED_REQUEST,
                "were closed: a request arrived slower than 64 KiB/s for limits.stall, which is " + stall);
        watchClosed(
                connections, CloseReason.FOREIGN_NETWORK, "were rejected: they came from outside the listener's cidrs");
        watch(
                "connections ended in the TLS handshake, the last at ",
                connections::lastTlsFailure,
                () -> connections.closedCount(CloseReason.TLS_FAILED));
        watchClosed(
                connections, CloseReason.UNKNOWN_PROTOCOL, "were closed: the listener does not speak their protocol");
        watchClosed(connections, CloseReason.PROTOCOL_ERROR, "were closed: protocol error of the client");
        watchClosed(connections, CloseReason.BUG, "were closed by a bug of this server; the log has the stack traces");
    }

    private void watchClosed(ConnectionRegistry connections, CloseReason reason, String what) {
        watch("connections " + what, () -> connections.closedCount(reason));
    }

    /// Reports failed reads and writes of each disk. A disk goes on serving after them, so its state does not show
    /// them.
    void watchDisks(Supplier<List<TierTransferStats>> disks) {
        int count = disks.get().size();
        for (int i = 0; i < count; i++) {
            int number = i;
            String name = disks.get().get(number).name();
            watch(
                    "reads failed at " + name,
                    () -> disks.get().get(number).tier().readErrors());
            watch(
                    "reads with a wrong checksum from " + name,
                    () -> disks.get().get(number).tier().checksumErrors());
            watch(
                    "writes failed at " + name,
                    () -> disks.get().get(number).tier().writesFailed());
        }
    }

    private void watchTenant(String tenant, Keyspace keyspace) {
        String of = " of tenant " + tenant + " ";
        watch(
                "values" + of + "found no room: all memory is in use, or the quota, share or limits.in_flight is full",
                () -> keyspace.stats().writes().refused());
        watch(
                "reads" + of + "missed: slow clients fill the tenant's part of limits.sending",
                () -> keyspace.stats().reads().of(Reason.BUSY));
        watch(
                "reads" + of + "missed: the disk read took longer than disk_read_timeout, or found no"
                        + " room in memory",
                () -> keyspace.stats().reads().of(Reason.LATE));
        watch(
                "values" + of + "were evicted although EXISTS had promised them: the memory is too small for the load",
                () -> keyspace.stats().promises().broken());
        watch(
                "values" + of
                        + "were reported missing: clients hold promises for promise.percent of the memory without"
                        + " fetching the values, and the store evicts: add memory or raise promise.percent",
                () -> keyspace.stats().promises().declined());
    }

    /// Adds something to be told of.
    ///
    /// @param description goes on after a number: `values of tenant blue found no room`
    /// @param count of all since the start
    void watch(String description, LongSupplier count) {
        watch(description, () -> "", count);
    }

    /// Adds something whose line ends with a text of its time, such as the last reason.
    void watch(String description, Supplier<String> detail, LongSupplier count) {
        all.add(new WatchedCounter(description, detail, count));
    }

    /// Returns a line for each problem that appeared since the last call.
    synchronized List<String> newProblems() {
        List<String> lines = new ArrayList<>();
        for (WatchedCounter each : all) {
            long now = each.count.getAsLong();
            if (now > each.previousCount) {
                lines.add(now - each.previousCount + " " + each.description + each.detail.get());
            }
            each.previousCount = now;
        }
        return lines;
    }

    @Override
    public void run() {
        newProblems().forEach(line -> LOG.log(Level.WARNING, "In the last minute " + line));
    }
}
