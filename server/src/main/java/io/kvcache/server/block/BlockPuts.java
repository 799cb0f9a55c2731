package io.kvcache.server.block;

import io.kvcache.core.BlockWriter;
import io.kvcache.core.KvCache;
import io.kvcache.core.PutOutcome;
import io.kvcache.core.identity.BlockKey;
import io.kvcache.core.identity.EngineKey;
import io.kvcache.core.identity.Namespace;
import io.kvcache.server.block.BlockQuotaTracker.BlockReservation;
import io.kvcache.server.http.ProblemDetails;
import io.kvcache.server.quota.ByteBudget;
import io.kvcache.tiers.TieredKvCache;
import io.netty.handler.codec.http.HttpResponseStatus;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/// Begins puts of blocks. A block takes room in the store; it has to be within what may be on its way, and a tenant
/// with a quota takes room in that too, by giving up other blocks or values.
///
/// @param incoming the limits on each tenant's bytes on their way in, by tenant name
record BlockPuts(TieredKvCache cache, BlockQuotaTrackers stocks, Function<String, ByteBudget> incoming) {

    /// What no other try changes. The server does not know whether it is so: others' blocks may be in use too.
    static final String LONG_CHAIN = "unless the chain is as long as host memory (memory.host_bytes): a block needs"
            + " all blocks before it there";

    /// As many as a SHA-256 digest has.
    private static final int MAX_SHOWN_DIGITS = 64;

    /// What becomes of a put.
    sealed interface PutStart {

        /// The block is to be written.
        ///
        /// @param block takes its bytes; the receiver closes it
        record Ready(PutBlockHandler block) implements PutStart {}

        /// The block is here, or another client is writing it.
        record Unneeded(HttpResponseStatus status) implements PutStart {}

        /// The block cannot be stored.
        record Rejected(ProblemDetails problem) implements PutStart {}
    }

    /// Begins a put of one block.
    ///
    /// @param parent the block before it, null for a first one
    PutStart start(Namespace namespace, EngineKey key, @Nullable EngineKey parent) {
        BlockWriter writer = cache.put(namespace, key, parent, KvCache.NO_WAIT);
        PutOutcome outcome = writer.outcome();
        BlockKey above = parent == null ? null : parent.toBlockKey(namespace);
        boolean elsewhere =
                outcome.allowsNextBlock() && cache.blocks(namespace).hasOtherParent(key.toBlockKey(namespace), above);
        if (outcome != PutOutcome.RESERVED || elsewhere) {
            writer.close();
        }
        if (elsewhere) {
            return rejected(
                    HttpResponseStatus.CONFLICT,
                    "other-parent",
                    "block " + abbreviate(key) + " is stored already, but not "
                            + (parent == null
                                    ? "as the first of a chain; name its parent"
                                    : "as the child of " + abbreviate(parent)));
        }
        return switch (outcome) {
            case RESERVED -> charge(writer, namespace, key, parent);
            case PRESENT -> new PutStart.Unneeded(HttpResponseStatus.NO_CONTENT);
            case BUSY -> new PutStart.Unneeded(HttpResponseStatus.ACCEPTED);
            case FOREIGN ->
                rejected(
                        HttpResponseStatus.CONFLICT,
                        "foreign-key",
                        "another namespace has this block's key already, so the block cannot be stored");
            case NO_PARENT ->
                rejected(
                        HttpResponseStatus.CONFLICT,
                        "unknown-parent",
                        "the parent block is not stored; put it first, and name it by " + BlockEndpoint.PARENT_HEADER);
            case NO_ROOM ->
                new PutStart.Rejected(new ProblemDetails(
                        HttpResponseStatus.INSUFFICIENT_STORAGE,
                        "no room: everything that could be evicted is in use; try again, " + LONG_CHAIN));
            case DECLINED ->
                rejected(
                        HttpResponseStatus.INSUFFICIENT_STORAGE,
                        "declined",
                        "other blocks are expected to be read sooner than this one; put it again when it is"
                                + " computed the next time");
        };
    }

    /// The first digits, as a key may have thousands.
    private static String abbreviate(EngineKey key) {
        String digits = key.toString();
        return digits.length() <= MAX_SHOWN_DIGITS ? digits : digits.substring(0, MAX_SHOWN_DIGITS) + "…";
    }

    private static PutStart rejected(HttpResponseStatus status, String type, String detail) {
        return new PutStart.Rejected(ProblemDetails.withType(status, type, detail));
    }

    private PutStart charge(BlockWriter writer, Namespace namespace, EngineKey key, @Nullable EngineKey parent) {
        long bytes = NamespaceJson.shapeOf(namespace).bytes();
        ByteBudget arriving = incoming.apply(namespace.tenant());
        if (!arriving.tryAcquire(bytes)) {
            writer.close();
            return new PutStart.Rejected(ProblemDetails.transferLimitReached("limits.in_flight", arriving));
        }
        BlockQuotaTracker stock = stocks.forTenant(namespace.tenant());
        if (stock == null) {
            return new PutStart.Ready(new PutBlockHandler(
                    namespace, writer, PutBlockHandler.withoutQuota(() -> arriving.release(bytes))));
        }
        BlockReservation reservation = stock.reserve(parent == null ? null : parent.toBlockKey(namespace), bytes);
        if (reservation == null) {
            writer.close();
            arriving.release(bytes);
            return rejected(
                    HttpResponseStatus.INSUFFICIENT_STORAGE,
                    "quota",
                    "the quota of tenant " + namespace.tenant() + " is used up, and its blocks are being written, or"
                            + " are this block's ancestors");
        }
        BlockKey stored = key.toBlockKey(namespace);
        return new PutStart.Ready(new PutBlockHandler(namespace, writer, new PutBlockHandler.QuotaCharge() {
            @Override
            public void commit() {
                reservation.commit(cache.blocks(namespace), stored, bytes);
            }

            @Override
            public void close() {
                reservation.close();
                arriving.release(bytes);
            }
        }));
    }
}
