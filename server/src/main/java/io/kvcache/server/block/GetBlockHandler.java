package io.kvcache.server.block;

import io.kvcache.core.BlockTable;
import io.kvcache.core.identity.BlockKey;
import io.kvcache.core.identity.EngineKey;
import io.kvcache.core.identity.Namespace;
import io.kvcache.server.http.HttpResponder;
import io.kvcache.server.http.PinnedBytes;
import io.kvcache.server.http.ProblemDetails;
import io.kvcache.server.quota.ByteBudget;
import io.kvcache.tiers.TieredKvCache;
import io.netty.handler.codec.http.HttpResponseStatus;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import org.jspecify.annotations.Nullable;

/// GET and HEAD of a block: at once when it is in host memory, once it has come when it is on disk.
///
/// @param outgoing what the tenant may have on its way out
/// @param tenantCounters of the tenant
record GetBlockHandler(
        TieredKvCache cache,
        Namespace namespace,
        EngineKey key,
        Duration diskTimeout,
        ByteBudget outgoing,
        BlockReadStats.TenantCounters tenantCounters) {

    void respond(HttpResponder out, @Nullable String range, boolean withBody) {
        BlockTable table = cache.acquire(namespace, key, diskTimeout);
        if (table.blocks() == 0 || table.readyBlocks() > 0) {
            reply(table, out, range, withBody);
            return;
        }
        // The store completes this on its own thread, where the table can be given back if there is no loop any more.
        table.onReady(table.firstBlock() + 1, Runnable::run)
                .whenComplete((_, _) -> out.sendLater(() -> reply(table, out, range, withBody), table::close));
    }

    private void reply(BlockTable table, HttpResponder out, @Nullable String range, boolean withBody) {
        if (table.readyBlocks() == 0) {
            table.close();
            out.sendProblem(missProblem(key.toBlockKey(namespace)));
            return;
        }
        MemorySegment block = table.segment(table.firstBlock());
        if (outgoing.tryAcquire(block.byteSize())) {
            tenantCounters.recordHit();
            out.sendPinned(PinnedBytes.of(block, () -> recordSent(table, block.byteSize())), range, withBody);
        } else {
            table.close();
            tenantCounters.recordThrottled();
            out.sendProblem(ProblemDetails.sendLimitReached(outgoing));
        }
    }

    /// A block that the store knows and that could not be had was not brought from disk in time.
    private ProblemDetails missProblem(BlockKey wanted) {
        if (diskTimeout.isPositive() && cache.blocks(namespace).contains(wanted)) {
            tenantCounters.recordTimeout();
            return ProblemDetails.timedOut(HttpResponseStatus.SERVICE_UNAVAILABLE);
        }
        tenantCounters.recordMiss(wanted);
        return new ProblemDetails(HttpResponseStatus.NOT_FOUND, "there is no such block");
    }

    private void recordSent(BlockTable table, long bytes) {
        outgoing.release(bytes);
        table.close();
    }
}
