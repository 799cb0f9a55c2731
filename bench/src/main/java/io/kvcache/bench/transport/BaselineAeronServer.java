package io.kvcache.bench.transport;

import io.aeron.Aeron;
import io.aeron.ExclusivePublication;
import io.aeron.Subscription;
import io.aeron.logbuffer.BufferClaim;
import io.aeron.logbuffer.FragmentHandler;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.util.SplittableRandom;
import org.agrona.concurrent.IdleStrategy;

/// The least that a server can do over Aeron: a thread for each pair of streams, no index, no lease, no sum. A
/// request is `u32 bytes`, and what comes back is as many bytes, in messages as long as they may be.
final class BaselineAeronServer implements AutoCloseable {

    /// As much as no cache of a processor holds.
    private static final long MEMORY = 512L << 20;

    private final Aeron aeron;
    private final MemorySegment memory = Arena.global().allocate(MEMORY, 4096);
    private volatile boolean closed;

    /// @param driver directory of the media driver that our own endpoint embeds
    BaselineAeronServer(String driver, String channel, int connections) {
        aeron = BaselineAeron.connect(driver);
        memory.fill((byte) 3);
        for (int i = 0; i < connections; i++) {
            Subscription in = aeron.addSubscription(channel, BaselineAeron.requestStream(i));
            ExclusivePublication out = aeron.addExclusivePublication(channel, BaselineAeron.replyStream(i));
            Thread.ofPlatform().daemon().start(() -> serve(in, out));
        }
    }

    private void serve(Subscription in, ExclusivePublication out) {
        SplittableRandom random = new SplittableRandom(1);
        IdleStrategy idle = BaselineAeron.idleStrategy();
        BufferClaim claim = new BufferClaim();
        FragmentHandler answer = (buffer, offset, length, header) -> {
            int bytes = buffer.getInt(offset);
            long slot = random.nextLong(MEMORY / bytes);
            send(out, claim, memory.asSlice(slot * bytes, bytes).asByteBuffer());
        };
        while (!closed) {
            idle.idle(in.poll(answer, 1));
        }
    }

    private void send(ExclusivePublication out, BufferClaim claim, ByteBuffer block) {
        IdleStrategy idle = BaselineAeron.idleStrategy();
        int sent = 0;
        while (sent < block.capacity() && !closed) {
            int some = Math.min(block.capacity() - sent, out.maxPayloadLength());
            if (out.tryClaim(some, claim) > 0) {
                claim.buffer().putBytes(claim.offset(), block, sent, some);
                claim.commit();
                sent += some;
                idle.reset();
            } else {
                idle.idle();
            }
        }
    }

    @Override
    public void close() {
        closed = true;
        aeron.close();
    }
}
