package io.kvcache.server.block;

import io.kvcache.core.BlockTable;
import io.kvcache.core.identity.BlockKey;
import io.kvcache.core.identity.EngineKey;
import io.kvcache.core.identity.Namespace;
import io.kvcache.server.http.HeldBytes;
import io.kvcache.server.http.HttpReplies;
import io.kvcache.server.http.Problem;
import io.kvcache.server.quota.InFlight;
import io.kvcache.tiers.TieredKvCache;
import io.netty.handler.codec.http.HttpResponseStatus;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import org.jspecify.annotations.Nullable;

/// GET and HEAD of a block: at once when it is in host memory, once it has come when it is on disk.
///
/// @param leaving what the tenant may have on its way out
/// @param counts of the tenant
record BlockRead(
        TieredKvCache cache,
        Namespace namespace,
        EngineKey key,
        Duration arrival,
        InFlight leaving,
        BlockReads.Counts counts) {

    private static final int ONE = 1;

    void answer(HttpReplies out, @Nullable String range, boolean withBody) {
        BlockTable table = cache.acquire(namespace, key, arrival.toNanos());
        if (table.blocks() == 0 || table.readyBlocks() >= ONE) {
            reply(table, out, range, withBody);
            return;
        }
        // The store completes this on its own thread, where the table can be given back if there is no loop any more.
        table.onReady(ONE, Runnable::run)
                .whenComplete((_, _) -> out.later(() -> reply(table, out, range, withBody), table::close));
    }

    private void reply(BlockTable table, HttpReplies out, @Nullable String range, boolean withBody) {
        if (table.readyBlocks() < ONE) {
            table.close();
            out.problem(missed(key.toBlockKey(namespace)));
            return;
        }
        MemorySegment block = table.segment(table.firstBlock());
        if (leaving.begin(block.byteSize())) {
            counts.found();
            out.held(HeldBytes.of(block, () -> sent(table, block.byteSize())), range, withBody);
        } else {
            table.close();
            counts.busy();
            out.problem(Problem.sending(leaving));
        }
    }

    /// A block that the store knows and that could not be had was not brought from disk in time.
    private Problem missed(BlockKey wanted) {
        if (arrival.isPositive() && cache.blocks(namespace).contains(wanted)) {
            counts.late();
            return Problem.late(HttpResponseStatus.SERVICE_UNAVAILABLE);
        }
        counts.missed(wanted);
        return new Problem(HttpResponseStatus.NOT_FOUND, "there is no such block");
    }

    private void sent(BlockTable table, long bytes) {
        leaving.end(bytes);
        table.close();
    }
}
