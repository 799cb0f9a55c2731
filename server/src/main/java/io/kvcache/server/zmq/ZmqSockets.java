package io.kvcache.server.zmq;

import io.kvcache.server.config.EventsConfig;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import org.jspecify.annotations.Nullable;
import org.zeromq.SocketType;
import org.zeromq.ZContext;
import org.zeromq.ZMQ;
import org.zeromq.ZMQException;
import org.zeromq.ZMsg;

/// The two sockets: one that publishes and one that answers.
///
/// A request has an empty frame and then 8 bytes, the number of the first message wanted, or the word
/// `snapshot`. No message ever gets the number that these 8 letters are.
///
/// **Threads.** One, after it was bound.
final class ZmqSockets implements AutoCloseable {

    /// Messages that may wait for one follower; what comes then is not sent to it. As with vLLM.
    private static final int HIGH_WATER_MARK = 100_000;

    /// How long the last messages may take at the end.
    private static final int LINGER_MILLIS = 200;

    private static final byte[] SNAPSHOT = "snapshot".getBytes(StandardCharsets.US_ASCII);
    private static final byte[] EMPTY = {};

    private final ZContext context;
    private final ZMQ.Socket publisher;
    private final ZMQ.@Nullable Socket router;
    private final ZMQ.Poller poller;
    private final boolean replayTopic;

    /// A follower's request.
    ///
    /// @param identity where the reply goes
    /// @param from first message wanted, of a replay
    @SuppressWarnings("ArrayRecordComponent") // never compared
    record ReplayRequest(byte[] identity, boolean snapshot, long from) {}

    private ZmqSockets(ZContext context, ZMQ.Socket publisher, ZMQ.@Nullable Socket router, boolean replayTopic) {
        this.context = context;
        this.publisher = publisher;
        this.router = router;
        this.replayTopic = replayTopic;
        poller = context.createPoller(1);
        if (router != null) {
            poller.register(router, ZMQ.Poller.POLLIN);
        }
    }

    static ZmqSockets bind(EventsConfig config) throws IOException {
        ZContext context = new ZContext();
        context.setLinger(LINGER_MILLIS);
        try {
            ZMQ.Socket publisher = bindSocket(context, SocketType.PUB, config.publish());
            ZMQ.Socket router =
                    config.replay().isEmpty() ? null : bindSocket(context, SocketType.ROUTER, config.replay());
            if (router != null) {
                router.setRouterMandatory(true); // notices subscribers that are gone or do not read
            }
            return new ZmqSockets(context, publisher, router, config.replayTopic());
        } catch (IOException failed) {
            context.close();
            throw failed;
        }
    }

    private static ZMQ.Socket bindSocket(ZContext context, SocketType type, String endpoint) throws IOException {
        ZMQ.Socket socket = context.createSocket(type);
        socket.setHWM(HIGH_WATER_MARK);
        try {
            if (!socket.bind(endpoint)) {
                throw new IOException("cannot publish events at " + endpoint);
            }
        } catch (ZMQException | IllegalArgumentException refused) {
            throw new IOException("cannot publish events at " + endpoint + ": " + refused.getMessage(), refused);
        }
        return socket;
    }

    String publishEndpoint() {
        return publisher.getLastEndpoint();
    }

    String replayEndpoint() {
        return router == null ? "" : router.getLastEndpoint();
    }

    void publish(ZmqMessage message) {
        publisher.sendMore(message.topic());
        publisher.sendMore(number(message.sequence()));
        publisher.send(message.payload());
    }

    /// The next request, or null when none came in time.
    @Nullable
    ReplayRequest awaitRequest(int millis) {
        ZMQ.Socket from = router;
        if (poller.poll(millis) <= 0 || from == null) {
            return null;
        }
        ZMsg message = ZMsg.recvMsg(from, ZMQ.DONTWAIT);
        if (message == null || message.size() < 2) {
            return null;
        }
        byte[] asker = message.pop().getData();
        byte[] asked = message.getLast().getData();
        if (asked.length != Long.BYTES) {
            return null;
        }
        boolean snapshot = Arrays.equals(asked, SNAPSHOT);
        return new ReplayRequest(asker, snapshot, ByteBuffer.wrap(asked).getLong());
    }

    /// Answers whether the asker is still there and reads.
    boolean reply(ReplayRequest replayRequest, ZmqMessage message) {
        ZMQ.Socket to = router;
        if (to == null) {
            return false;
        }
        try {
            if (!to.send(replayRequest.identity(), ZMQ.SNDMORE | ZMQ.DONTWAIT)) {
                return false;
            }
            to.sendMore(EMPTY);
            if (replayTopic) {
                to.sendMore(message.topic());
            }
            to.sendMore(number(message.sequence()));
            return to.send(message.payload());
        } catch (ZMQException gone) {
            return false;
        }
    }

    private static byte[] number(long value) {
        return ByteBuffer.allocate(Long.BYTES).putLong(value).array();
    }

    @Override
    public void close() {
        poller.close();
        context.close();
    }

    /// A batch as it was or will be sent.
    ///
    /// @param sequence counts messages from 0; all ones for the end of a reply
    @SuppressWarnings("ArrayRecordComponent") // sent, never compared
    record ZmqMessage(String topic, long sequence, byte[] payload) {

        private static final byte[] NOTHING = {};

        /// Ends what was asked for.
        static ZmqMessage end(String topic) {
            return new ZmqMessage(topic, -1, NOTHING);
        }
    }
}
