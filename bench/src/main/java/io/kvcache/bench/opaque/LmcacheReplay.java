package io.kvcache.bench.opaque;

import io.kvcache.bench.replay.HitCounter;
import io.kvcache.bench.replay.HitTotals;
import io.kvcache.bench.replay.PrefixForest;
import io.kvcache.core.policy.EvictionPolicyFactory;
import io.kvcache.server.CacheServer;
import io.kvcache.server.config.ConfigException;
import io.kvcache.server.config.ConfigReader;
import io.kvcache.server.config.HostResources;
import java.io.IOException;
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
    /// @param hostBytes for values, in whole slabs
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
}
