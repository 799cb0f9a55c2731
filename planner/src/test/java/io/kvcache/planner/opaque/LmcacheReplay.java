package io.kvcache.planner.opaque;

import io.kvcache.core.policy.EvictionPolicyFactory;
import io.kvcache.planner.replay.HitCounter;
import io.kvcache.planner.replay.HitCounter.HitTotals;
import io.kvcache.planner.replay.PrefixForest;
import io.kvcache.server.CacheServer;
import io.kvcache.server.client.ClientConfig;
import io.kvcache.server.client.RespClient;
import io.kvcache.server.client.RespClient.RespReply;
import io.kvcache.server.config.ConfigException;
import io.kvcache.server.config.ConfigReader;
import io.kvcache.server.config.HostResources;
import java.io.BufferedInputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.net.InetAddress;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Map;

/// Replays a trace through a server of this process as LMCache would: looks a prompt up chunk by
/// chunk until one is not there, reads those that are, and writes the rest. The server sees keys
/// and values and nothing else.
///
/// Its promises are off: they last for two seconds, in which a trace of an hour passes by half.
///
/// **Ownership.** A run opens its own server and closes it.
public final class LmcacheReplay {

    /// Behind a value are 48 bytes of the server's and the key.
    private static final int VALUE_OVERHEAD = 48;

    private static final String KEY_PREFIX = "replay@1@0@";
    private static final int DIGITS = 16;
    private static final int KEY_BYTES = KEY_PREFIX.length() + DIGITS;

    private final PrefixForest forest;
    private final Settings settings;
    private final String traceOut;

    /// What to run.
    ///
    /// @param hostBytes for values
    /// @param slotBytes of each chunk with its key: 4 KiB, 64 KiB or 1 MiB, to fill a slot
    /// @param warmup leading requests that do not count
    public record Settings(EvictionPolicyFactory policy, long hostBytes, int slotBytes, int warmup) {

        /// Chunks that there is memory for.
        public int blocks() {
            return Math.toIntExact(hostBytes / slotBytes);
        }
    }

    /// How the server is spoken to.
    public enum ChunkProtocol {
        RESP,
        LM;

        private ChunkClient connect(int port, byte[] value) throws IOException {
            return switch (this) {
                case RESP -> new RespChunkClient(port, value);
                case LM -> new LmChunkClient(port, value);
            };
        }
    }

    public LmcacheReplay(PrefixForest forest, Settings settings) {
        this(forest, settings, "");
    }

    /// @param traceOut where the server writes what it is used for; empty for nowhere
    public LmcacheReplay(PrefixForest forest, Settings settings, String traceOut) {
        this.forest = forest;
        this.settings = settings;
        this.traceOut = traceOut;
    }

    /// Runs the whole trace.
    ///
    /// @throws IOException when the server cannot be started or talked to
    public HitTotals run(ChunkProtocol chunkProtocol) throws IOException {
        byte[] value = new byte[settings.slotBytes() - VALUE_OVERHEAD - KEY_BYTES];
        HitCounter counter = new HitCounter(forest, settings.warmup());
        try (CacheServer server = server();
                ChunkClient client = chunkProtocol.connect(server.address().getPort(), value)) {
            for (int request = 0; request < forest.requestCount(); request++) {
                counter.onRequest(request, serve(client, request));
            }
        }
        return counter.totals();
    }

    private CacheServer server() throws IOException {
        Map<String, ConfigReader.Option> options = Map.of(
                "listen.port", new ConfigReader.Option("port", "0"),
                "memory.host_bytes", new ConfigReader.Option("host bytes", Long.toString(settings.hostBytes())),
                "memory.policy",
                        new ConfigReader.Option("policy", settings.policy().commandName()),
                "memory.prefault", new ConfigReader.Option("prefault", "off"),
                "promise.time", new ConfigReader.Option("promise", "0s"),
                "trace.out", new ConfigReader.Option("trace", traceOut));
        try {
            return CacheServer.start(
                    new ConfigReader(HostResources.detect(), Map.of()).read(ConfigReader.Source.NONE, options));
        } catch (ConfigException refused) {
            throw new IOException(String.join("; ", refused.problems()), refused);
        }
    }

    /// Answers how many leading chunks were read.
    private int serve(ChunkClient client, int request) throws IOException {
        int length = forest.storedBlocks(request);
        int known = 0;
        while (known < length && client.exists(key(request, known))) {
            known++;
        }
        int read = 0;
        while (read < known && client.get(key(request, read))) {
            read++;
        }
        for (int i = read; i < length; i++) {
            client.put(key(request, i));
        }
        return read;
    }

    private String key(int request, int block) {
        String digest = Long.toHexString(mixed(forest.node(request, block)));
        return KEY_PREFIX + "0".repeat(DIGITS - digest.length()) + digest;
    }

    /// Digests look random: so do these, and no two are the same.
    private static long mixed(int node) {
        long mixed = (node + 1) * 0x9E3779B97F4A7C15L;
        return mixed ^ (mixed >>> 32);
    }

    /// One connection of an engine that keeps chunks of KV in a server, each under a key of its own.
    private interface ChunkClient extends AutoCloseable {

        boolean exists(String key) throws IOException;

        /// Whether it was there, and had as many bytes as a chunk has.
        boolean get(String key) throws IOException;

        void put(String key) throws IOException;

        @Override
        void close() throws IOException;
    }

    /// Chunks by Redis' protocol, as LMCache's `resp://` asks for them.
    private static final class RespChunkClient implements ChunkClient {

        private final RespClient client;
        private final byte[] value;

        RespChunkClient(int port, byte[] value) throws IOException {
            client = new RespClient(ClientConfig.open("127.0.0.1", port));
            this.value = value;
        }

        @Override
        public boolean exists(String key) throws IOException {
            return client.call("EXISTS", key).asLong() == 1;
        }

        @Override
        public boolean get(String key) throws IOException {
            RespReply reply = client.call("GET", key);
            return reply.isPresent() && reply.bytes().length == value.length;
        }

        @Override
        public void put(String key) throws IOException {
            client.set(key, value);
        }

        @Override
        public void close() throws IOException {
            client.close();
        }
    }

    /// Chunks by `lm://` as it is today: numbers of 32 bits, little-endian, a key of 150 bytes; a PUT has no
    /// reply.
    private static final class LmChunkClient implements ChunkClient {

        private static final int PUT = 1;
        private static final int GET = 2;
        private static final int EXIST = 3;
        private static final int SUCCESS = 200;

        private static final int KEY_BYTES = 150;
        private static final int HEAD_BYTES = 36;
        private static final int REPLY_BYTES = 36;
        private static final int REPLY_TIMEOUT_MILLIS = 60_000;

        /// Format, dtype, location and shape of a tensor: any will do, as they come back as they came.
        private static final int[] TENSOR_HEADER = {1, 3, 1, 2, 32, 256, 1024};

        private final Socket socket;
        private final InputStream in;
        private final byte[] value;

        LmChunkClient(int port, byte[] value) throws IOException {
            socket = new Socket(InetAddress.getLoopbackAddress(), port);
            socket.setTcpNoDelay(true);
            socket.setSoTimeout(REPLY_TIMEOUT_MILLIS);
            in = new BufferedInputStream(socket.getInputStream(), 1 << 16);
            this.value = value;
        }

        @Override
        public boolean exists(String key) throws IOException {
            return sendRequest(EXIST, key).code() == SUCCESS;
        }

        @Override
        public boolean get(String key) throws IOException {
            ReplyHeader replyHeader = sendRequest(GET, key);
            in.skipNBytes(replyHeader.bytes());
            return replyHeader.code() == SUCCESS && replyHeader.bytes() == value.length;
        }

        @Override
        public void put(String key) throws IOException {
            byte[] head = head(PUT, value.length, key);
            byte[] all = Arrays.copyOf(head, head.length + value.length);
            System.arraycopy(value, 0, all, head.length, value.length);
            socket.getOutputStream().write(all);
        }

        private record ReplyHeader(int code, int bytes) {}

        private ReplyHeader sendRequest(int command, String key) throws IOException {
            socket.getOutputStream().write(head(command, 0, key));
            byte[] reply = in.readNBytes(REPLY_BYTES);
            if (reply.length < REPLY_BYTES) {
                throw new EOFException("the server closed the connection");
            }
            ByteBuffer numbers = ByteBuffer.wrap(reply).order(ByteOrder.LITTLE_ENDIAN);
            return new ReplyHeader(numbers.getInt(), numbers.getInt());
        }

        private static byte[] head(int command, int length, String key) {
            byte[] name = key.getBytes(StandardCharsets.ISO_8859_1);
            byte[] head = new byte[HEAD_BYTES + KEY_BYTES];
            Arrays.fill(head, HEAD_BYTES, head.length, (byte) ' ');
            System.arraycopy(name, 0, head, HEAD_BYTES, name.length);
            ByteBuffer numbers = ByteBuffer.wrap(head).order(ByteOrder.LITTLE_ENDIAN);
            numbers.putInt(command).putInt(length);
            for (int number : TENSOR_HEADER) {
                numbers.putInt(number);
            }
            return head;
        }

        @Override
        public void close() throws IOException {
            socket.close();
        }
    }
}
