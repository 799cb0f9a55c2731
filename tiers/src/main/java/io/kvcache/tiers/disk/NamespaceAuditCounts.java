package io.kvcache.tiers.disk;

import io.kvcache.core.identity.Namespace;
import io.kvcache.core.tier.TierRead;
import io.kvcache.tiers.disk.AuditReport.NamespaceReport;

/// Counts what an audit finds of one namespace.
final class NamespaceAuditCounts {

    private long blocks;
    private long objects;
    private long bytes;
    private long replaced;
    private long orphans;
    private long tombstones;
    private long badChecksums;
    private long unreadable;

    void addCurrent(DiskEntry entry) {
        count(entry, 1);
    }

    private void count(DiskEntry entry, int by) {
        if (entry.isObject()) {
            objects += by;
        } else {
            blocks += by;
        }
        bytes += (long) by * entry.bytes();
    }

    void addReplaced() {
        replaced++;
    }

    void addOrphan() {
        orphans++;
    }

    void addTombstone() {
        tombstones++;
    }

    /// Reading one had this outcome.
    ///
    /// @param counted whether it was counted as one that counts
    void addReadOutcome(DiskEntry entry, boolean counted, TierRead.Outcome outcome) {
        switch (outcome) {
            case SUCCESS -> {}
            case UNREADABLE -> unreadable++;
            case CORRUPT -> badChecksums++;
        }
        if (outcome != TierRead.Outcome.SUCCESS && counted) {
            count(entry, -1);
        }
    }

    NamespaceReport report(Namespace namespace) {
        return new NamespaceReport(
                namespace, blocks, objects, bytes, orphans, replaced, tombstones, badChecksums, unreadable);
    }
}
