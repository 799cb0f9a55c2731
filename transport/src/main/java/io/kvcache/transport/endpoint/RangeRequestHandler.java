package io.kvcache.transport.endpoint;

import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.ByteRange;
import io.kvcache.core.memory.ChunkedCrc;
import io.kvcache.transport.endpoint.EndpointRequest.RequestException;
import io.kvcache.transport.wire.BodyReader;
import io.kvcache.transport.wire.BodyWriter;
import io.kvcache.transport.wire.OutboundFrame;
import io.kvcache.transport.wire.OutboundFrame.Payload;
import io.kvcache.transport.wire.ProtocolException;
import io.kvcache.transport.wire.RangeRequest;
import io.kvcache.transport.wire.Status;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;

/// Requests of one connection for the same bytes of several blocks.
///
/// The bytes are copied, and then sent: a range may come from a disk, and its block has no slot then.
final class RangeRequestHandler {

    private static final long MIN_BUFFERED_BYTES = RangeRequest.MAX_BYTES;
    private static final long MAX_BUFFERED_BYTES = 4L * RangeRequest.MAX_BYTES;

    private final EndpointContext context;
    private final ClientSession session;
    private final ChainCache chains;
    private final ChainCache.ChainRetention retention;

    RangeRequestHandler(EndpointContext context, ClientSession session, ChainCache chains) {
        this.context = context;
        this.session = session;
        this.chains = chains;
        retention = new ChainCache.ChainRetention(context.chains());
    }

    /// Bytes of ranges that all connections of an endpoint may have in memory: a sixteenth of the heap's
    /// size, between one request of the largest size and four.
    static Semaphore newBuffers() {
        long bytes = Runtime.getRuntime().maxMemory() / 16;
        return new Semaphore((int) Math.clamp(bytes, MIN_BUFFERED_BYTES, MAX_BUFFERED_BYTES));
    }

    /// `chain`, then a [range][RangeRequest] → `u32 count` and as many DATA
    void read(EndpointRequest request, BodyReader body) throws ProtocolException, RequestException {
        ChainCache.ResolvedChain resolved = chains.resolve(body);
        RangeRequest wanted = RangeRequest.read(body);
        context.requireNotDraining();
        BlockChain chain = resolved.chain();
        if (wanted.from() > chain.length() - wanted.count()) {
            throw new RequestException(
                    Status.INVALID,
                    "blocks %s to %s; allowed: 0 to %s"
                            .formatted(wanted.from(), (long) wanted.from() + wanted.count(), chain.length()));
        }
        long timeoutNanos = request.boundedTimeout(wanted.timeoutNanos());
        if (timeoutNanos == 0) {
            read(request, chain, wanted, 0);
        } else {
            context.later(
                    session, request, retention.retain(resolved), () -> read(request, chain, wanted, timeoutNanos));
        }
    }

    private void read(EndpointRequest request, BlockChain chain, RangeRequest wanted, long timeoutNanos)
            throws RequestException {
        int bytes = wanted.count() * wanted.bytes();
        long start = System.nanoTime();
        acquireBuffers(bytes, timeoutNanos);
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment memory = arena.allocate(bytes);
            List<MemorySegment> into = IntStream.range(0, wanted.count())
                    .mapToObj(i -> memory.asSlice((long) i * wanted.bytes(), wanted.bytes()))
                    .toList();
            Duration timeout = Duration.ofNanos(Math.max(0, timeoutNanos - (System.nanoTime() - start)));
            ByteRange range = new ByteRange(wanted.offset(), wanted.bytes());
            int count = context.cache().getRange(chain, wanted.from(), range, into, timeout);
            if (request.reply(new BodyWriter().i32(count))) {
                send(request, wanted.from(), into.subList(0, count));
            }
        } finally {
            context.rangeBuffers().release(bytes);
        }
    }

    private void acquireBuffers(int bytes, long timeoutNanos) throws RequestException {
        boolean there = false;
        try {
            there = context.rangeBuffers().tryAcquire(bytes, timeoutNanos, TimeUnit.NANOSECONDS);
        } catch (InterruptedException ended) {
            Thread.currentThread().interrupt();
        }
        if (!there) {
            throw new RequestException(Status.BUSY, "ranges that are being sent take as much memory as they may");
        }
    }

    /// @param from block of the chain
    private static void send(EndpointRequest request, int from, List<MemorySegment> ranges) {
        OutboundFrame.DataFrames frames = request.dataFrames();
        boolean heard = true;
        for (int i = 0; heard && i < ranges.size(); i++) {
            MemorySegment range = ranges.get(i);
            heard = request.send(frames.next(from + i, ChunkedCrc.of(range), Payload.of(range)));
        }
    }
}
