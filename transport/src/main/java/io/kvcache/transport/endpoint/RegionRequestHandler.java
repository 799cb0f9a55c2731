package io.kvcache.transport.endpoint;

import io.kvcache.core.KvCache;
import io.kvcache.core.LocalKvCache;
import io.kvcache.core.ObjectView;
import io.kvcache.core.ObjectWriter;
import io.kvcache.core.PutOutcome;
import io.kvcache.core.SealOutcome;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.memory.ChunkedCrc;
import io.kvcache.core.shm.SharedMemory;
import io.kvcache.transport.endpoint.EndpointRequest.RequestException;
import io.kvcache.transport.shm.HostRegion;
import io.kvcache.transport.wire.BodyReader;
import io.kvcache.transport.wire.BodyWriter;
import io.kvcache.transport.wire.CopyRequest;
import io.kvcache.transport.wire.CopyRequest.Direction;
import io.kvcache.transport.wire.CopyRequest.Item;
import io.kvcache.transport.wire.CopyRequest.Result;
import io.kvcache.transport.wire.CopyRequest.Span;
import io.kvcache.transport.wire.ProtocolException;
import io.kvcache.transport.wire.Status;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.file.FileSystemException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import org.jspecify.annotations.Nullable;

/// Requests of one connection about the client's own memory: the server maps it and copies between it and objects,
/// so that no bytes cross the connection.
///
/// Objects in memory are copied on the connection's thread, those that come from a disk when they are there.
final class RegionRequestHandler {

    private final EndpointContext context;
    private final ClientSession session;

    RegionRequestHandler(EndpointContext context, ClientSession session) {
        this.context = context;
        this.session = session;
    }

    /// `16 bytes proof, u64 0, text path` → `u32 region, u32 0, u64 bytes`
    void register(EndpointRequest request, BodyReader body) throws ProtocolException, RequestException {
        UUID proof = new UUID(body.i64("proof"), body.i64("proof"));
        String path = body.skip(Long.BYTES).text("path");
        context.requireNotDraining();
        SharedMemory memory = context.requireSharedMemory(session);
        if (!proof.equals(memory.proof())) {
            throw new RequestException(
                    Status.FORBIDDEN,
                    "the proof is wrong; allowed: the one in the records of SHARE, which the server's user can read");
        }
        HostRegion region;
        try {
            region = HostRegion.open(path);
        } catch (HostRegion.TooManyRegionsException full) {
            throw new RequestException(Status.BUSY, String.valueOf(full.getMessage()));
        } catch (IOException refused) {
            throw new RequestException(Status.INVALID, "no region: " + reason(refused));
        }
        int number = session.regions().add(region);
        request.reply(new BodyWriter().i32(number).i32(0).i64(region.bytes()));
    }

    private static String reason(IOException refused) {
        boolean bare = refused instanceof FileSystemException; // its message is the path alone
        return bare ? refused.toString() : String.valueOf(refused.getMessage());
    }

    /// `u32 region` → empty
    void drop(EndpointRequest request, BodyReader body) throws ProtocolException, RequestException {
        int number = body.count("region");
        if (!session.regions().remove(number)) {
            throw noRegion(number);
        }
        request.reply(new BodyWriter());
    }

    private static RequestException noRegion(int number) {
        return new RequestException(Status.GONE, "region " + number + " is none of this session");
    }

    /// [CopyRequest] → its reply
    void copy(EndpointRequest request, BodyReader body) throws ProtocolException, RequestException {
        CopyRequest copy = CopyRequest.read(body);
        Namespace namespace = session.requireNamespace(copy.namespace());
        context.requireNotDraining();
        HostRegion region = session.regions().retain(copy.region());
        if (region == null) {
            throw noRegion(copy.region());
        }
        boolean waits = false;
        try {
            requireWithin(copy, region);
            Copying copying = new Copying(region, copy, namespace);
            if (copy.direction() == Direction.STORE) {
                copying.store();
            } else {
                copying.loadResident();
            }
            if (copying.late.isEmpty()) {
                request.reply(copying.reply());
            } else {
                long timeout = request.boundedTimeout(copy.timeoutNanos());
                context.later(session, request, () -> copying.loadLate(timeout), _ -> request.reply(copying.reply()));
                waits = true; // and releases the region at its end
            }
        } finally {
            if (!waits) {
                region.release();
            }
        }
    }

    private static void requireWithin(CopyRequest copy, HostRegion region) throws RequestException {
        for (int i = 0; i < copy.items().size(); i++) {
            Item item = copy.items().get(i);
            if (item.bytes() < 1 || item.bytes() > KvCache.MAX_OBJECT_BYTES) {
                throw new RequestException(
                        Status.INVALID,
                        "object %s has %s bytes; allowed: 1 to %s"
                                .formatted(i, item.bytes(), KvCache.MAX_OBJECT_BYTES));
            }
            for (Span span : item.spans()) {
                if (span.bytes() > region.bytes() || span.offset() > region.bytes() - span.bytes()) {
                    throw new RequestException(
                            Status.INVALID,
                            "object %s has %s bytes from %s on; allowed: up to %s"
                                    .formatted(i, span.bytes(), span.offset(), region.bytes()));
                }
            }
        }
    }

    /// The state of one COPY.
    private final class Copying {

        private final HostRegion region;
        private final CopyRequest copy;
        private final Namespace namespace;
        private final Result[] results;
        private final List<Integer> late = new ArrayList<>();

        Copying(HostRegion region, CopyRequest copy, Namespace namespace) {
            this.region = region;
            this.copy = copy;
            this.namespace = namespace;
            results = new Result[copy.items().size()];
        }

        BodyWriter reply() {
            return CopyRequest.reply(Arrays.asList(results));
        }

        void store() throws RequestException {
            for (int i = 0; i < results.length; i++) {
                results[i] = store(copy.items().get(i));
            }
        }

        private Result store(Item item) throws RequestException {
            if (isPresent(item)) {
                return Result.PRESENT;
            }
            try (ObjectWriter writer =
                    context.cache().putObject(namespace, item.key(), item.bytes(), KvCache.NO_WAIT)) {
                if (writer.outcome() != PutOutcome.RESERVED) {
                    return Result.of(writer.outcome());
                }
                ChunkedCrc sum = new ChunkedCrc();
                if (!region.gather(item.spans(), writer.segments(), sum)) {
                    throw truncated();
                }
                requireInTime();
                context.counters().bytesStaged.add(item.bytes());
                sum.update(MemorySegment.ofArray(item.key()));
                SealOutcome sealed = writer.seal(sum.value());
                return sealed == SealOutcome.DROPPED ? Result.NO_ROOM : Result.COPIED;
            }
        }

        /// Returns whether an object of that size is here; if so, it counts as used, and one that is not counts as no
        /// look-up.
        private boolean isPresent(Item item) {
            if (context.cache() instanceof LocalKvCache local) {
                try (ObjectView there = local.holdObject(namespace, item.key())) {
                    if (there == null || there.bytes() != item.bytes()) {
                        return false;
                    }
                }
            }
            try (ObjectView there = context.cache().getObject(namespace, item.key())) {
                return there != null && there.bytes() == item.bytes();
            }
        }

        /// The client may have changed its memory after that time: nothing of it may be stored, or written to.
        ///
        /// Client and server are on one host, so they have one monotonic clock, which this is on Linux.
        private void requireInTime() throws RequestException {
            if (copy.untilNanos() != 0 && System.nanoTime() - copy.untilNanos() > 0) {
                throw new RequestException(Status.GONE, "the time that the client gave for the copy is over");
            }
        }

        private RequestException truncated() {
            return new RequestException(
                    Status.GONE, "region " + copy.region() + " is dropped, or its file was cut short");
        }

        /// Loads what is in memory, and leaves what is on a disk for later.
        void loadResident() throws RequestException {
            for (int i = 0; i < results.length; i++) {
                Item item = copy.items().get(i);
                boolean mayWait = copy.timeoutNanos() > 0;
                boolean away = mayWait && isOnDiskAlone(item); // whose one look-up is the one that waits
                ObjectView view = away ? null : context.cache().getObject(namespace, item.key());
                if (view == null && mayWait && (away || context.cache().containsObject(namespace, item.key()))) {
                    late.add(i);
                } else {
                    results[i] = loadOrAbsent(view, item);
                }
            }
        }

        private boolean isOnDiskAlone(Item item) {
            return context.cache() instanceof LocalKvCache local && local.diskObject(namespace, item.key()) != null;
        }

        private Result loadOrAbsent(@Nullable ObjectView view, Item item) throws RequestException {
            context.onRead(session, namespace, item.key(), view);
            return view == null ? Result.ABSENT : load(view, item);
        }

        private Result load(ObjectView found, Item item) throws RequestException {
            try (ObjectView view = found) {
                if (view.bytes() != item.bytes()) {
                    return Result.OTHER_SIZE;
                }
                requireInTime();
                if (!region.scatter(view.segments(), item.spans())) {
                    throw truncated();
                }
                context.counters().bytesOut.add(item.bytes());
                return Result.COPIED;
            }
        }

        /// Loads what is on a disk. The stage completes when all of it has been copied or given up, and the region
        /// is released.
        CompletionStage<@Nullable Object> loadLate(long timeoutNanos) {
            List<CompletableFuture<?>> loads = new ArrayList<>();
            Duration timeout = Duration.ofNanos(timeoutNanos);
            for (int i : late) {
                Item item = copy.items().get(i);
                results[i] = Result.ABSENT;
                loads.add(context.cache()
                        .fetchObject(namespace, item.key(), timeout, context.executor())
                        .thenAccept(view -> results[i] = loadOrMiss(view, item))
                        .toCompletableFuture());
            }
            return CompletableFuture.allOf(loads.toArray(CompletableFuture[]::new))
                    .<@Nullable Object>handle((_, _) -> {
                        region.release();
                        return null;
                    });
        }

        private Result loadOrMiss(@Nullable ObjectView view, Item item) {
            try {
                return loadOrAbsent(view, item);
            } catch (RequestException over) {
                return Result.ABSENT;
            }
        }
    }
}
