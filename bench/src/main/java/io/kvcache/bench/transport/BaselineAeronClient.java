package io.kvcache.bench.transport;

import io.aeron.Aeron;
import io.aeron.ExclusivePublication;
import io.aeron.Subscription;
import io.aeron.logbuffer.BufferClaim;
import io.aeron.logbuffer.FragmentHandler;
import java.nio.ByteBuffer;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import org.agrona.concurrent.IdleStrategy;

/// Gets blocks of a [BaselineAeronServer] over as many pairs of streams as the remote cache has connections, each by
/// one thread at a time, and copies what comes.
final class BaselineAeronClient implements TransferClient {

    private static final int FRAGMENTS = 16;

    private final Aeron aeron;
    private final BlockingQueue<Connection> idle;

    BaselineAeronClient(String driver, String channel, int connections, int maxBytes) {
        aeron = BaselineAeron.connect(driver);
        idle = new ArrayBlockingQueue<>(connections);
        for (int i = 0; i < connections; i++) {
            idle.add(new Connection(
                    aeron.addExclusivePublication(channel, BaselineAeron.requestStream(i)),
                    aeron.addSubscription(channel, BaselineAeron.replyStream(i)),
                    ByteBuffer.allocateDirect(maxBytes)));
        }
    }

    private static final class Connection {

        private final ExclusivePublication out;
        private final Subscription in;
        private final ByteBuffer block;
        private final BufferClaim claim = new BufferClaim();
        private final IdleStrategy waiting = BaselineAeron.idleStrategy();
        private final FragmentHandler taking;
        private int taken;

        private Connection(ExclusivePublication out, Subscription in, ByteBuffer block) {
            this.out = out;
            this.in = in;
            this.block = block;
            taking = (buffer, offset, length, header) -> {
                buffer.getBytes(offset, this.block, taken, length);
                taken += length;
            };
        }

        private boolean get(int bytes) {
            taken = 0;
            while (out.tryClaim(Integer.BYTES, claim) < 0) {
                waiting.idle();
            }
            claim.buffer().putInt(claim.offset(), bytes);
            claim.commit();
            waiting.reset();
            while (taken < bytes) {
                waiting.idle(in.poll(taking, FRAGMENTS));
            }
            return taken == bytes;
        }
    }

    @Override
    public boolean transfer(TransferSpec transferSpec, long number) throws InterruptedException {
        Connection connection = idle.take();
        try {
            return connection.get(transferSpec.bytes());
        } finally {
            idle.add(connection);
        }
    }

    @Override
    public void close() {
        aeron.close();
    }
}
