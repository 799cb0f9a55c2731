package io.kvcache.bench.transport;

import io.aeron.Aeron;
import io.aeron.ExclusivePublication;
import io.aeron.Subscription;
import io.aeron.logbuffer.BufferClaim;
import io.aeron.logbuffer.FragmentHandler;
import io.kvcache.bench.transport.TransferEndpoint.TransferClient;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.util.SplittableRandom;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.TimeUnit;
import org.agrona.concurrent.BackoffIdleStrategy;
import org.agrona.concurrent.IdleStrategy;

/// The settings that both sides of bare Aeron share.
final class BaselineAeron {

    private static final int FIRST_STREAM = 9000;

    private BaselineAeron() {}

    /// Through a driver that runs.
    static Aeron connect(String driver) {
        return Aeron.connect(new Aeron.Context().aeronDirectoryName(driver));
    }

    /// The stream that a connection's requests go by.
    static int requestStream(int connection) {
        return FIRST_STREAM + 2 * connection;
    }

    /// The stream that a connection's answers come by.
    static int replyStream(int connection) {
        return FIRST_STREAM + 2 * connection + 1;
    }

    /// Spins as shortly and sleeps as shortly as our own connections do while they are busy.
    static IdleStrategy idleStrategy() {
        long sleep = TimeUnit.MICROSECONDS.toNanos(20);
        return new BackoffIdleStrategy(100, 0, sleep, sleep);
    }

    /// Gets blocks of a [BaselineAeronServer] over as many pairs of streams as the remote cache has connections, each
    /// by one thread at a time, and copies what comes.
    static final class BaselineAeronClient implements TransferClient {

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

    /// The least that a server can do over Aeron: a thread for each pair of streams, no index, no lease, no sum. A
    /// request is `u32 bytes`, and what comes back is as many bytes, in messages as long as they may be.
    static final class BaselineAeronServer implements AutoCloseable {

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
}
