package io.kvcache.server.config;

import java.net.InetAddress;
import java.net.UnknownHostException;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/// Events over ZeroMQ, which has no authentication.
///
/// @param publish where live events are published, `tcp://ADDRESS:PORT`; empty for nowhere
/// @param replay where past ones and snapshots can be asked for; empty for nowhere
/// @param topic first frame of each message; `{namespace}` in it stands for the model
/// @param replayTopic whether replies to a replay have the topic too, as from vLLM 0.26 on
/// @param replayBatches messages kept for a replay
/// @param tenant whose blocks are told of
/// @param allowUnauthenticated whether others than this machine may connect
public record EventsConfig(
        String publish,
        String replay,
        String topic,
        EventEncoding encoding,
        EventHashes hashes,
        EventMedia media,
        boolean replayTopic,
        int replayBatches,
        String tenant,
        boolean allowUnauthenticated) {

    static final int MAX_REPLAY_BATCHES = 1_000_000;
    private static final Pattern ENDPOINT = Pattern.compile("tcp://(\\[[^]]+]|[^:\\[\\]]+):(\\d{1,5}|\\*)");

    public EventsConfig {
        validateEndpoint("events.publish", publish, allowUnauthenticated);
        validateEndpoint("events.replay", replay, allowUnauthenticated);
        if (publish.isEmpty() && !replay.isEmpty()) {
            throw new IllegalArgumentException("events.replay is " + replay + "; it takes events.publish beside it");
        }
        if (replayBatches < 1 || replayBatches > MAX_REPLAY_BATCHES) {
            throw new IllegalArgumentException(
                    "events.replay_batches is " + replayBatches + "; it takes 1 to " + MAX_REPLAY_BATCHES);
        }
    }

    /// Off; where it is on, what vLLM does now.
    public static EventsConfig defaults() {
        return new EventsConfig(
                "",
                "",
                "",
                EventEncoding.MAP,
                EventHashes.ENGINE,
                EventMedia.VLLM,
                true,
                10_000,
                TenantConfig.DEFAULT,
                false);
    }

    /// Returns whether events are published.
    public boolean isEnabled() {
        return !publish.isEmpty();
    }

    static EventsConfig read(Settings from, EventsConfig usual) {
        return from.getValid(
                usual,
                () -> new EventsConfig(
                        from.text("events.publish", usual.publish),
                        from.text("events.replay", usual.replay),
                        from.get("events.topic", usual.topic, text -> text),
                        from.constant("events.encoding", usual.encoding),
                        from.constant("events.hashes", usual.hashes),
                        from.constant("events.media", usual.media),
                        from.flag("events.replay_topic", usual.replayTopic),
                        from.integer("events.replay_batches", usual.replayBatches, 1, MAX_REPLAY_BATCHES),
                        from.text("events.tenant", usual.tenant),
                        from.flag("events.without_auth", usual.allowUnauthenticated)));
    }

    private static void validateEndpoint(String name, String endpoint, boolean withoutAuth) {
        if (endpoint.isEmpty()) {
            return;
        }
        Matcher form = ENDPOINT.matcher(endpoint);
        if (!form.matches()) {
            throw new IllegalArgumentException(
                    name + " is " + endpoint + "; it takes tcp://ADDRESS:PORT, as in tcp://127.0.0.1:5557");
        }
        if (!withoutAuth && !isLoopback(form.group(1))) {
            throw new IllegalArgumentException(name + " is " + endpoint
                    + ", which other machines can reach, and ZeroMQ has no authentication; it takes a loopback address,"
                    + " or events.without_auth: true beside it");
        }
    }

    private static boolean isLoopback(String address) {
        try {
            return !address.equals("*") && InetAddress.getByName(address).isLoopbackAddress();
        } catch (UnknownHostException _) {
            return false;
        }
    }

    /// How an event names a block.
    public enum EventHashes {
        /// The low 64 bits of the engine's own hash as an unsigned number, as vLLM names its blocks; of a
        /// block whose tokens were hashed here, those of its key.
        ENGINE,
        /// All 16 bytes of the key.
        KEY
    }

    /// Whose names an event gives to host memory and disks. Dynamo knows both.
    public enum EventMedia {
        /// `CPU` and `STORAGE`: vLLM from 0.27 on, llm-d.
        VLLM,
        /// `CPU_PINNED` and `DISK`: SGLang.
        SGLANG
    }

    /// How an event is written in MessagePack.
    public enum EventEncoding {
        /// A map with a member `type`: vLLM from 0.24 on (its pull request 42892, June 2026), SGLang from September
        /// 2026 on.
        MAP,
        /// An array that begins with its type: vLLM up to 0.23, SGLang before.
        ARRAY
    }
}
