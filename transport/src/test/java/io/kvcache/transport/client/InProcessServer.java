package io.kvcache.transport.client;

import io.kvcache.transport.endpoint.Endpoint;
import io.kvcache.transport.net.Connector;
import io.kvcache.transport.net.DisconnectReason;
import io.kvcache.transport.net.FrameConnection;
import io.kvcache.transport.net.FrameHandler;
import io.kvcache.transport.net.FrameReader;
import io.kvcache.transport.net.FrameSink;
import io.kvcache.transport.net.RecordingSink;
import io.kvcache.transport.wire.OutboundFrame;
import io.kvcache.transport.wire.ProtocolException;
import java.util.ArrayDeque;
import java.util.Collection;
import java.util.Deque;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;

/// An endpoint without a network: it has done what a client asks when the client's `send` returns, and a test
/// may put other bytes in the place of what it answers.
final class InProcessServer implements Connector {

    private static final int MAX_CHUNK_BYTES = 1 << 20;

    private final Endpoint endpoint;
    private final FrameMutator frameMutator;
    private final Queue<Throwable> bugs = new ConcurrentLinkedQueue<>();
    private final Queue<InProcessConnection> wires = new ConcurrentLinkedQueue<>();

    /// What a client hears in place of a frame.
    @FunctionalInterface
    interface FrameMutator {

        /// Answers what is heard.
        ///
        /// @param wire number of the connection, from 0
        /// @param frame all bytes of it
        MutatedFrame mutate(int wire, byte[] frame);
    }

    /// Bytes, and whether the connection breaks behind what was said together with them.
    @SuppressWarnings("ArrayRecordComponent") // never compared
    record MutatedFrame(byte[] bytes, boolean last) {}

    InProcessServer(Endpoint endpoint, FrameMutator frameMutator) {
        this.endpoint = endpoint;
        this.frameMutator = frameMutator;
    }

    @Override
    public FrameConnection connect(FrameHandler client, long timeoutNanos) {
        InProcessConnection inProcessConnection = new InProcessConnection(client, wires.size());
        wires.add(inProcessConnection);
        return inProcessConnection;
    }

    /// What came out of the client that should not have.
    Collection<Throwable> bugs() {
        return bugs;
    }

    /// Breaks all connections that are open.
    void breakAll() {
        wires.forEach(inProcessConnection -> inProcessConnection.hear(new byte[0], true));
    }

    @Override
    public String toString() {
        return "an endpoint without a network";
    }

    private final class InProcessConnection implements FrameConnection {

        private final int number;
        private final FrameHandler client;
        private final FrameReader clientReader;
        private final FrameHandler server;
        private final FrameReader serverReader;
        private final ReentrantLock serving = new ReentrantLock();
        private final Deque<byte[]> coming = new ArrayDeque<>();
        private volatile @Nullable DisconnectReason ended;
        private boolean broken;
        private boolean last;
        private boolean told;
        private boolean serverTold;

        InProcessConnection(FrameHandler client, int number) {
            this.client = client;
            this.number = number;
            clientReader = new FrameReader(client, 512);
            server = endpoint.onConnected(new FrameSink() {
                @Override
                public boolean send(OutboundFrame frame) {
                    MutatedFrame mutatedFrame =
                            frameMutator.mutate(InProcessConnection.this.number, RecordingSink.bytes(frame));
                    hear(mutatedFrame.bytes, mutatedFrame.last && !serving.isHeldByCurrentThread());
                    last |= mutatedFrame.last;
                    return true;
                }

                @Override
                public void close(DisconnectReason why) {
                    hear(new byte[0], true);
                }
            });
            serverReader = new FrameReader(server, 512);
        }

        private synchronized void hear(byte[] bytes, boolean breaks) {
            if (!broken && bytes.length > 0) {
                coming.addLast(bytes);
            }
            broken |= breaks;
            notifyAll();
        }

        @Override
        public boolean send(OutboundFrame frame) {
            serving.lock();
            try {
                if (isOpen() && !serverTold) {
                    serve(RecordingSink.bytes(frame));
                }
                return isOpen();
            } finally {
                serving.unlock();
            }
        }

        private void serve(byte[] bytes) {
            try {
                RecordingSink.feed(serverReader, bytes, MAX_CHUNK_BYTES);
            } catch (ProtocolException malformed) {
                bugs.add(new AssertionError("the client has said what it must not", malformed));
                last = true;
            }
            if (last) {
                hear(new byte[0], true);
            }
        }

        private synchronized byte @Nullable [] next() throws InterruptedException {
            while (coming.isEmpty() && !broken && isOpen()) {
                wait();
            }
            return isOpen() ? coming.pollFirst() : null;
        }

        @Override
        public void share() {}

        @Override
        public boolean pump() {
            try {
                byte[] bytes = next();
                if (bytes == null) {
                    close(clientReader.isInFrame() ? DisconnectReason.BROKEN : DisconnectReason.PEER_CLOSED);
                } else {
                    RecordingSink.feed(clientReader, bytes, MAX_CHUNK_BYTES);
                }
            } catch (ProtocolException malformed) {
                close(DisconnectReason.MALFORMED);
            } catch (InterruptedException stopped) {
                Thread.currentThread().interrupt();
                close(DisconnectReason.BROKEN);
            } catch (RuntimeException | Error bug) {
                bugs.add(bug);
                close(DisconnectReason.INTERNAL);
            }
            DisconnectReason why = ended;
            if (why != null && !told) {
                told = true;
                client.onClosed(why);
            }
            return isOpen();
        }

        @Override
        public boolean isOpen() {
            return ended == null;
        }

        @Override
        public long stalledNanos() {
            return 0;
        }

        @Override
        public void close(DisconnectReason reason) {
            synchronized (this) {
                ended = ended == null ? reason : ended;
                notifyAll();
            }
            serving.lock();
            try {
                if (!serverTold) {
                    serverTold = true;
                    server.onClosed(DisconnectReason.PEER_CLOSED);
                }
            } finally {
                serving.unlock();
            }
        }
    }
}
