package io.kvcache.transport.remote;

import io.kvcache.core.BlockTable;
import io.kvcache.core.ObjectView;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.Namespace;
import io.kvcache.transport.shm.SharedStore;
import io.kvcache.transport.ucx.UcxReader;
import io.kvcache.transport.wire.BodyReader;
import io.kvcache.transport.wire.BodyWriter;
import io.kvcache.transport.wire.MessageType;
import io.kvcache.transport.wire.Violation;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Executor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.jspecify.annotations.Nullable;

/// Brings blocks and objects here. Whatever fails, it is a shorter prefix or a miss.
final class Getting {

    private final Wiring wiring;
    private final Asking asking;

    Getting(Wiring wiring, Asking asking) {
        this.wiring = wiring;
        this.asking = asking;
    }

    /// What is resident, all of it here.
    BlockTable resident(BlockChain chain, int from) {
        BlockArrivals.Wanted wanted = new BlockArrivals.Wanted(chain, from);
        Optional<BlockTable> table =
                asking.or(Optional.empty(), attachment -> Optional.ofNullable(resident(attachment, wanted)));
        return table.orElseGet(() -> wiring.miss(from));
    }

    private @Nullable BlockTable resident(Attachment attachment, BlockArrivals.Wanted wanted) throws CallFailed {
        SharedStore store = attachment.shared();
        if (store != null) {
            return PlacedBlocks.acquire(wiring, attachment, store, wanted);
        }
        UcxReader fabric = attachment.fabric();
        return fabric == null
                ? BlockArrivals.acquire(wiring, attachment, wanted)
                : FabricBlocks.acquire(wiring, attachment, fabric, wanted);
    }

    /// What is resident and what arrives in time; on its way here.
    BlockTable arriving(BlockChain chain, int from, long timeoutNanos) {
        Optional<BlockTable> table =
                asking.or(Optional.empty(), attachment -> Optional.of(begin(attachment, chain, from, timeoutNanos)));
        return table.orElseGet(() -> wiring.miss(from));
    }

    private RemoteTable begin(Attachment attachment, BlockChain chain, int from, long timeoutNanos) throws CallFailed {
        Asking.Question<RemoteTable> question = asking.about(
                chain,
                timeoutNanos,
                body -> {
                    body.i32(from).i32(0).i64(timeoutNanos);
                    return new Asking.Asked<>(
                            MessageType.ACQUIRE, reply -> opened(attachment, chain, from, timeoutNanos, reply));
                },
                RemoteTable::close);
        return question.ask(attachment);
    }

    /// Runs before any news of the lease is read.
    private RemoteTable opened(Attachment attachment, BlockChain chain, int from, long timeoutNanos, BodyReader reply)
            throws Violation {
        long lease = reply.i64("lease");
        int ready = reply.count("ready");
        int end = reply.count("end");
        long until = System.nanoTime() + wiring.options().patienceNanos(timeoutNanos);
        long blockBytes = chain.namespace().parts().getFirst().bytes();
        RemoteTable table =
                new RemoteTable(wiring, attachment, new RemoteTable.Span(lease, from, end, blockBytes, until));
        if (lease == 0) {
            table.end();
        } else {
            attachment.expect(lease, table);
            table.progress(ready, end);
        }
        return table;
    }

    @Nullable
    ObjectView object(Namespace namespace, byte[] key, long timeoutNanos) {
        Optional<ObjectView> view = asking.or(
                Optional.empty(), attachment -> Optional.ofNullable(ask(attachment, namespace, key, timeoutNanos)));
        return view.orElse(null);
    }

    private @Nullable ObjectView ask(Attachment attachment, Namespace namespace, byte[] key, long timeoutNanos)
            throws CallFailed {
        long patience = wiring.options().patienceNanos(timeoutNanos);
        ObjectArrival.Wanted wanted = new ObjectArrival.Wanted(key, System.nanoTime() + patience);
        BodyWriter body = body(attachment, namespace, key, timeoutNanos);
        if (timeoutNanos == 0 && attachment.shared() == null) {
            return ObjectArrival.get(wiring, attachment, wanted, body);
        }
        if (timeoutNanos == 0) {
            return open(attachment, wanted, ObjectLookup.ask(attachment, wanted.untilNanos(), body));
        }
        ObjectArrival.Found found =
                ControlLine.await(ask(attachment, body, patience), patience, late -> attachment.release(late.lease()));
        return open(attachment, wanted, found);
    }

    /// What was found: in place, or brought here.
    private @Nullable ObjectView open(Attachment attachment, ObjectArrival.Wanted wanted, ObjectArrival.Found found)
            throws CallFailed {
        if (found.lease() == 0) {
            return null;
        }
        ObjectView inPlace = PlacedObjectView.of(wiring, attachment, found);
        return inPlace == null ? ObjectArrival.read(wiring, attachment, wanted, found) : inPlace;
    }

    CompletionStage<@Nullable ObjectView> fetch(Namespace namespace, byte[] key, long timeoutNanos, Executor executor) {
        CompletableFuture<Where> asked = asking.or(CompletableFuture.completedFuture(Where.NOWHERE), attachment -> {
            BodyWriter body = body(attachment, namespace, key, Math.max(1, timeoutNanos));
            attachment.users().stay();
            return inTime(attachment, body, wiring.options().patienceNanos(timeoutNanos))
                    .handle((found, failed) ->
                            new Where(attachment, failed == null ? found : ObjectArrival.Found.NOTHING));
        });
        return asked.thenCompose(where -> CompletableFuture.completedFuture(where)
                .thenApplyAsync(found -> read(found, key), executor)
                .whenComplete((view, failed) -> where.leave(failed)));
    }

    /// A server that never answers keeps nobody waiting; what it finds later is given back.
    private static CompletableFuture<ObjectArrival.Found> inTime(
            Attachment attachment, BodyWriter body, long patienceNanos) {
        CompletableFuture<ObjectArrival.Found> answer = ask(attachment, body, patienceNanos);
        return answer.copy().orTimeout(patienceNanos, TimeUnit.NANOSECONDS).whenComplete((found, failed) -> {
            if (failed instanceof TimeoutException) {
                var _ = answer.thenAccept(late -> attachment.release(late.lease()));
            }
        });
    }

    /// An object that was found, and in which session.
    private record Where(@Nullable Attachment attachment, ObjectArrival.Found found) {

        static final Where NOWHERE = new Where(null, ObjectArrival.Found.NOTHING);

        /// Nobody uses it any more.
        ///
        /// @param failed why nobody has, or null
        void leave(@Nullable Throwable failed) {
            if (attachment != null) {
                if (failed != null) {
                    attachment.release(found.lease());
                }
                attachment.users().leave();
            }
        }
    }

    private @Nullable ObjectView read(Where where, byte[] key) {
        Attachment attachment = where.attachment;
        if (attachment == null || where.found.lease() == 0) {
            return null;
        }
        long until = System.nanoTime() + wiring.options().requestNanos();
        ObjectArrival.Wanted wanted = new ObjectArrival.Wanted(key, until);
        Optional<ObjectView> view =
                asking.or(Optional.empty(), current -> Optional.ofNullable(open(attachment, wanted, where.found)));
        return view.orElse(null);
    }

    private static BodyWriter body(Attachment attachment, Namespace namespace, byte[] key, long timeoutNanos)
            throws CallFailed {
        BodyWriter body = new BodyWriter(64 + key.length);
        body.i32(attachment.number(namespace)).i32(key.length);
        boolean places = attachment.shared() != null;
        return body.u8(timeoutNanos == 0 && !places ? 1 : 0)
                .u8(places ? 1 : 0)
                .u16(0)
                .i32(0)
                .i64(timeoutNanos)
                .bytes(key);
    }

    private static CompletableFuture<ObjectArrival.Found> ask(
            Attachment attachment, BodyWriter body, long patienceNanos) {
        return attachment
                .control()
                .ask(new ControlLine.Question<>(
                        MessageType.GET_OBJECT, body, ObjectArrival.Found::read, patienceNanos));
    }
}
