package io.kvcache.transport.remote;

import io.kvcache.transport.link.PayloadSink;
import io.kvcache.transport.wire.BodyReader;
import io.kvcache.transport.wire.BodyWriter;
import io.kvcache.transport.wire.FrameHeader;
import io.kvcache.transport.wire.MessageType;
import io.kvcache.transport.wire.Payload;
import io.kvcache.transport.wire.ProtocolException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.concurrent.TimeUnit;

/// How fast bytes go over one connection: some there and as many back, again for a short time.
final class BandwidthProbe implements DataConnection.ReplyHandler {

    /// All that one connection is measured for. What has not come by then is not waited for, which
    /// [CallTimeouts] may notice 20 ms late.
    static final long MAX_PROBE_NANOS = TimeUnit.MILLISECONDS.toNanos(50);

    /// As long it goes on beginning; what is begun may take the rest.
    private static final long START_WINDOW_NANOS = TimeUnit.MILLISECONDS.toNanos(35);

    private static final int MAX_ROUNDS = 12;

    /// Of the first round, so that a slow way has been measured by something too.
    private static final int FIRST_BYTES = 16 << 10;

    private static final int BYTES = 256 << 10;

    private static final double NANOS = 1e9;

    private boolean replied;
    private int left;

    private BandwidthProbe(int bytes) {
        left = bytes;
    }

    /// Bytes a second, both ways together, of what came back in time; 0 of nothing. The connection
    /// may be broken afterwards.
    static double bytesPerSecond(DataConnection line) {
        long start = System.nanoTime();
        double best = 0;
        try (Arena arena = Arena.ofShared()) {
            MemorySegment bytes = arena.allocate(BYTES);
            for (int round = 0; round < MAX_ROUNDS; round++) {
                int size = round == 0 ? FIRST_BYTES : BYTES;
                long begun = System.nanoTime();
                long spent = begun - start;
                if (spent > START_WINDOW_NANOS) {
                    break;
                }
                Payload payload = Payload.of(bytes.asSlice(0, size));
                BodyWriter body = new BodyWriter().i32(size).i32(0);
                line.call(MessageType.PROBE, body, payload, MAX_PROBE_NANOS - spent, new BandwidthProbe(size));
                best = Math.max(best, 2.0 * size / Math.max(1, System.nanoTime() - begun) * NANOS);
            }
        } catch (RpcException tooSlow) {
            return best;
        }
        return best;
    }

    @Override
    public void onReply(BodyReader body) throws ProtocolException {
        body.count("count");
        replied = true;
    }

    @Override
    public PayloadSink onData(FrameHeader header, BodyReader body) throws ProtocolException {
        int bytes = header.payloadBytes();
        if (bytes > left) {
            throw new ProtocolException("a probe is answered by %d bytes; allowed: up to %d".formatted(bytes, left));
        }
        return PayloadSink.discard(bytes, sum -> left -= bytes);
    }

    @Override
    public boolean isComplete() {
        return replied && left == 0;
    }
}
