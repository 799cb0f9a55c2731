package io.kvcache.transport.endpoint;

import io.kvcache.transport.link.PayloadSink;
import io.kvcache.transport.wire.BodyReader;
import io.kvcache.transport.wire.BodyWriter;
import io.kvcache.transport.wire.FrameHeader;
import io.kvcache.transport.wire.Payload;
import io.kvcache.transport.wire.ProtocolException;
import io.kvcache.transport.wire.Status;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/// Requests of clients that look for the best way here.
final class DiscoveryHandler {

    /// Bytes each way in one PROBE: many enough that it is they that take the time, and few enough
    /// that whoever asks for them without end is no worse than one who reads blocks.
    static final int MAX_PROBE_BYTES = 1 << 20;

    /// What a probe is answered with. Nobody writes to it.
    private static final MemorySegment ZEROS = Arena.global().allocate(MAX_PROBE_BYTES);

    private final EndpointContext endpointContext;

    DiscoveryHandler(EndpointContext endpointContext) {
        this.endpointContext = endpointContext;
    }

    /// → `text aeron`, where the same store is served over UDP, or nothing
    RequestDispatcher.RequestAction listOffers(EndpointRequest request) {
        return () ->
                request.reply(new BodyWriter(128).text(endpointContext.options().aeron()));
    }

    /// `u32 bytes, u32 0`, payload that is thrown away → `u32 1`, then DATA with as many zeros
    PayloadSink probe(FrameHeader header, EndpointRequest request, BodyReader body) throws ProtocolException {
        int bytes = body.count("bytes");
        int told = header.payloadBytes();
        if (bytes < 1 || bytes > MAX_PROBE_BYTES || told > MAX_PROBE_BYTES) {
            String text =
                    "a probe of %d bytes there and %d back; allowed: 1 to %d".formatted(told, bytes, MAX_PROBE_BYTES);
            return PayloadSink.discard(told, sum -> request.reject(Status.INVALID, text));
        }
        return PayloadSink.discard(told, sum -> {
            request.reply(new BodyWriter().i32(1));
            request.frameSink().send(request.dataFrames().next(0, 0, Payload.of(ZEROS.asSlice(0, bytes))));
        });
    }
}
