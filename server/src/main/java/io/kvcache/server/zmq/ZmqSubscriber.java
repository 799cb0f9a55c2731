package io.kvcache.server.zmq;

import java.io.IOException;
import java.math.BigInteger;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.atomic.AtomicBoolean;
import org.jspecify.annotations.Nullable;
import org.msgpack.core.MessageInsufficientBufferException;
import org.msgpack.core.MessagePack;
import org.msgpack.core.MessagePackException;
import org.msgpack.core.MessageUnpacker;
import org.zeromq.SocketType;
import org.zeromq.ZContext;
import org.zeromq.ZEvent;
import org.zeromq.ZMQ;
import org.zeromq.ZMQException;
import org.zeromq.ZMonitor;
import org.zeromq.ZMsg;
import tools.jackson.databind.json.JsonMapper;

/// Follows what a server, or an engine that speaks vLLM's schema, publishes over ZeroMQ.
///
/// **Ownership.** [#close] frees the sockets.
///
/// **Threads.** One.
public final class ZmqSubscriber implements AutoCloseable {

    /// The first is short, as what is missed is missed for ever, and each is twice as long as the one before, as a
    /// machine may be slow: sixteen seconds in all.
    private static final int CONNECT_TRIES = 5;

    private static final int INITIAL_CONNECT_MILLIS = 500;

    /// JeroMQ tries again ten times a second. A publisher binds this endpoint after the other.
    private static final int MAX_REFUSALS_OF_REPLAY = 20;

    private static final int REPLY_MILLIS = 30_000;
    private static final String MONITOR = "inproc://kvcache-monitor";

    private final String replay;
    private final ZContext context;
    private final ZMQ.Socket live;

    private ZmqSubscriber(String replay, ZContext context, ZMQ.Socket live) {
        this.replay = replay;
        this.context = context;
        this.live = live;
    }

    /// One event of a message.
    ///
    /// @param name of its kind, `BlockStored` and others
    /// @param json all of it, in one line
    public record Event(String name, String json) {}

    /// A message.
    ///
    /// @param sequence counts the publisher's messages from 0
    public record Batch(long sequence, String topic, List<Event> events) {}

    /// Begins to follow. Waits for a publisher that is not up yet.
    ///
    /// @param publish where events are published, as `tcp://127.0.0.1:5557`
    /// @param replay where older ones are asked for; empty for nowhere
    /// @param topic only what begins with this
    /// @param onWait called when it begins to wait
    /// @throws IOException when the endpoint is none, or what is there does not speak ZeroMQ
    public static ZmqSubscriber connect(String publish, String replay, String topic, Runnable onWait)
            throws IOException {
        AtomicBoolean waits = new AtomicBoolean();
        Connected connected = connectSocket(SocketType.SUB, publish, topic, _ -> {
            if (waits.compareAndSet(false, true)) {
                onWait.run();
            }
        });
        return new ZmqSubscriber(replay, connected.context, connected.socket);
    }

    private record Connected(ZContext context, ZMQ.Socket socket) {}

    /// JeroMQ's connecting side misses the greeting now and then; all of it is made anew then.
    private static Connected connectSocket(SocketType type, String endpoint, String topic, RefusalListener refusals)
            throws IOException {
        for (int attempt = 0; attempt < CONNECT_TRIES; attempt++) {
            ZContext context = new ZContext();
            ZMQ.Socket socket = context.createSocket(type);
            if (type == SocketType.SUB) {
                socket.subscribe(topic.getBytes(StandardCharsets.UTF_8));
            }
            socket.monitor(MONITOR, ZMQ.EVENT_HANDSHAKE_PROTOCOL | ZMQ.EVENT_CONNECT_RETRIED);
            ZMQ.Socket monitor = context.createSocket(SocketType.PAIR);
            monitor.setReceiveTimeOut(INITIAL_CONNECT_MILLIS << attempt);
            monitor.connect(MONITOR);
            try {
                socket.connect(endpoint);
                if (isGreeted(monitor, refusals)) {
                    return new Connected(context, socket);
                }
            } catch (ZMQException | IllegalArgumentException refused) {
                context.close();
                throw new IOException(endpoint + " is not a ZeroMQ endpoint; it takes tcp://HOST:PORT", refused);
            } catch (IOException gone) {
                context.close();
                throw gone;
            }
            context.close();
        }
        throw new IOException("no ZeroMQ server at " + endpoint);
    }

    /// Waits for a greeting, for no longer than the monitor's time once something is there.
    private static boolean isGreeted(ZMQ.Socket monitor, RefusalListener refusals) throws IOException {
        int refused = 0;
        for (ZEvent event = ZEvent.recv(monitor); event != null; event = ZEvent.recv(monitor)) {
            if (event.getEvent() == ZMonitor.Event.HANDSHAKE_PROTOCOL) {
                return true;
            }
            refusals.onRefused(++refused);
        }
        return false;
    }

    private interface RefusalListener {

        /// There is nothing at the endpoint; it is tried again.
        ///
        /// @throws IOException to end that
        void onRefused(int times) throws IOException;
    }

    /// The next message, or null when none came in time.
    ///
    /// @throws IOException when it is not in vLLM's schema
    public @Nullable Batch next(int millis) throws IOException {
        live.setReceiveTimeOut(millis);
        ZMsg message = ZMsg.recvMsg(live);
        return message == null ? null : batch(message);
    }

    /// Messages from a number on that the publisher still has.
    ///
    /// @throws IOException when there is no answer
    public List<Batch> replay(long from) throws IOException {
        return request(ByteBuffer.allocate(Long.BYTES).putLong(from).array());
    }

    /// All that is stored; each message has the number of the first live one that is not in it.
    ///
    /// @throws IOException when there is no answer
    public List<Batch> snapshot() throws IOException {
        return request("snapshot".getBytes(StandardCharsets.US_ASCII));
    }

    private List<Batch> request(byte[] question) throws IOException {
        Connected asking = connectSocket(SocketType.DEALER, replay, "", times -> {
            if (times == MAX_REFUSALS_OF_REPLAY) {
                throw new IOException("no ZeroMQ server at " + replay);
            }
        });
        try (ZContext closed = asking.context) {
            assert !closed.isClosed();
            asking.socket.setReceiveTimeOut(REPLY_MILLIS);
            asking.socket.sendMore(new byte[0]);
            asking.socket.send(question);
            List<Batch> all = new ArrayList<>();
            while (true) {
                ZMsg message = ZMsg.recvMsg(asking.socket);
                if (message == null) {
                    throw new IOException("no answer from " + replay);
                }
                message.pop(); // the empty frame before a reply
                Batch batch = batch(message);
                if (batch == null) {
                    return all;
                }
                all.add(batch);
            }
        }
    }

    /// Reads `[topic,] number, payload`; null at the end of a reply, which has no payload.
    private static @Nullable Batch batch(ZMsg message) throws IOException {
        if (message.size() < 2 || message.size() > 3) {
            throw new IOException("a message of " + message.size() + " frames; vLLM's have 3");
        }
        String topic = message.size() == 3 ? message.popString() : "";
        byte[] number = message.pop().getData();
        byte[] payload = message.pop().getData();
        if (payload.length == 0) {
            return null;
        }
        try {
            return new Batch(ByteBuffer.wrap(number).getLong(), topic, events(payload));
        } catch (RuntimeException other) {
            throw new IOException("a message that is not in vLLM's schema: " + other.getMessage(), other);
        }
    }

    private static List<Event> events(byte[] payload) {
        List<?> batch = (List<?>) Objects.requireNonNull(MsgPackDecoder.decode(payload), "nil");
        List<Event> events = new ArrayList<>();
        for (Object event : (List<?>) Objects.requireNonNull(batch.get(1), "no events")) {
            events.add(event(Objects.requireNonNull(event, "nil")));
        }
        return events;
    }

    private static Event event(Object event) {
        Object name = event instanceof Map<?, ?> map ? map.get("type") : ((List<?>) event).getFirst();
        return new Event(String.valueOf(name), JsonMapper.shared().writeValueAsString(event));
    }

    @Override
    public void close() {
        context.close();
    }

    /// Decodes MessagePack of untrusted messages: null, truth values, numbers, texts, lists, maps by text, and
    /// binary as hexadecimal text.
    ///
    /// The library reads each value. Values that claim more bytes than there are, that are nested too deep, or
    /// that have an extension type are rejected before anything is made of them.
    ///
    /// Not safe for several threads.
    static final class MsgPackDecoder {

        private static final int MAX_DEPTH = 32;

        private final MessageUnpacker in;
        private final int length;
        private int depth;

        private MsgPackDecoder(byte[] bytes) {
            in = MessagePack.newDefaultUnpacker(bytes);
            length = bytes.length;
        }

        /// Decodes the first value of a message.
        ///
        /// @throws IllegalArgumentException if the message has no complete value
        static @Nullable Object decode(byte[] bytes) {
            try {
                return new MsgPackDecoder(bytes).readValue();
            } catch (MessageInsufficientBufferException cut) {
                throw new IllegalArgumentException("the message ends within a value", cut);
            } catch (MessagePackException | IOException other) {
                throw new IllegalArgumentException("the message is not MessagePack: " + other.getMessage(), other);
            }
        }

        private @Nullable Object readValue() throws IOException {
            return switch (in.getNextFormat().getValueType()) {
                case NIL -> {
                    in.unpackNil();
                    yield null;
                }
                case BOOLEAN -> in.unpackBoolean();
                case INTEGER -> toNumber(in.unpackBigInteger());
                case FLOAT -> in.unpackDouble();
                case STRING -> in.unpackString();
                case BINARY -> HexFormat.of().formatHex(in.readPayload(requireAvailable(in.unpackBinaryHeader())));
                case ARRAY -> readArray(requireAvailable(in.unpackArrayHeader()));
                case MAP -> readMap(requireAvailable(in.unpackMapHeader()));
                case EXTENSION -> throw new IllegalArgumentException("a value of an extension type");
            };
        }

        private static Object toNumber(BigInteger value) {
            return value.bitLength() < Long.SIZE ? (Object) value.longValue() : value;
        }

        /// Each value takes at least a byte, so there cannot be more of them than bytes.
        private int requireAvailable(int size) {
            long left = length - in.getTotalReadBytes();
            if (size > left) {
                throw new IllegalArgumentException("a value of " + size + " parts where " + left + " bytes are");
            }
            return size;
        }

        private List<@Nullable Object> readArray(int count) throws IOException {
            enterLevel();
            List<@Nullable Object> values = new ArrayList<>();
            for (int i = 0; i < count; i++) {
                values.add(readValue());
            }
            depth--;
            return values;
        }

        private Map<String, @Nullable Object> readMap(int count) throws IOException {
            enterLevel();
            Map<String, @Nullable Object> values = new LinkedHashMap<>();
            for (int i = 0; i < count; i++) {
                String name = String.valueOf(readValue());
                values.put(name, readValue());
            }
            depth--;
            return values;
        }

        private void enterLevel() {
            if (++depth > MAX_DEPTH) {
                throw new IllegalArgumentException("values are nested deeper than " + MAX_DEPTH);
            }
        }
    }
}
