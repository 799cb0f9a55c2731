package io.kvcache.server.trace;

import io.kvcache.core.AccessListener.LookupKind;
import io.kvcache.core.identity.BlockKey;
import io.kvcache.core.identity.Namespace;
import io.kvcache.tiers.use.AccessQueue.Access;
import java.nio.ByteBuffer;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.security.SecureRandom;
import java.time.Instant;
import java.util.HashMap;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.TimeUnit;

/// The lines of a trace of a server, one JSON object each.
///
/// | line | members |
/// |---|---|
/// | first | `kvcache_trace` 1, `vantage` in words, `started`, `host_bytes` |
/// | `"ns"` alone with `blocks` | a namespace is met: its number, whether it has blocks, and `block_tokens` of those |
/// | `"op":"chain"` | blocks were asked for: `at` ms, `ns`, `ids` from the first block on, `from`, `found`, `bytes` of
/// each |
/// | `"op":"get"`, `"look"` | one key was asked for, to have it or to know of it: `at`, `ns`, `ids`, `found`, `bytes` |
/// | `"op":"put"` | `at`, `ns`, `ids` of the one, `after` or null, `bytes`, `replaces` |
/// | last | `end`, `dropped` |
///
/// Bytes of an object are those of value and key; -1 where they are not known.
final class TraceEncoder {

    /// By which a trace is known.
    static final String TRACE_PREFIX = "{\"kvcache_trace\":1,";

    /// The text with which the first access begins, with its namespace.
    static final String FIRST_ACCESS = "\n{\"ns\":";

    private static final String VANTAGE =
            "behind a server's front ends, in front of host memory: what its clients asked"
                    + " of the store and put into it, over all protocols. Not in it: what a client found in a cache of its own"
                    + " or in shared memory, matches of chains, values that were refused, what was deleted or expired, and uses that were dropped when they"
                    + " came too fast, which the last line counts. ids are salted hashes; the salt was not kept";

    private final long startNanos;
    private final TraceIdHasher ids = new TraceIdHasher();

    /// @param startNanos by the store's clock: the time 0 of the lines
    TraceEncoder(long startNanos) {
        this.startNanos = startNanos;
    }

    String header(Instant started, long hostBytes) {
        return TRACE_PREFIX + "\"vantage\":\"" + VANTAGE + "\",\"started\":\"" + started + "\",\"host_bytes\":"
                + hostBytes + "}\n";
    }

    String footer(String why, long dropped) {
        return "{\"end\":\"" + why + "\",\"dropped\":" + dropped + "}\n";
    }

    /// A use, and before it the namespace where that is new.
    String encodeAccess(Access access) {
        StringBuilder line = new StringBuilder();
        switch (access) {
            case Access.ChainLookup asked -> {
                beginLine(line, "chain", access, asked.chain().namespace());
                line.append(",\"from\":")
                        .append(asked.from())
                        .append(",\"found\":")
                        .append(asked.found());
                line.append(",\"bytes\":").append(asked.blockBytes()).append(",\"ids\":[");
                for (int i = 0; i < asked.chain().length(); i++) {
                    line.append(i == 0 ? "" : ",")
                            .append(ids.idOf(
                                    asked.chain().keyHi(i), asked.chain().keyLo(i)));
                }
                line.append(']');
            }
            case Access.KeyLookup asked -> {
                beginLine(line, asked.kind().name().toLowerCase(Locale.ROOT), access, asked.namespace());
                line.append(",\"found\":").append(asked.bytes() < 0 ? 0 : 1);
                line.append(",\"bytes\":").append(asked.kind() == LookupKind.LOOK ? -1 : asked.bytes());
                line.append(",\"ids\":[")
                        .append(ids.idOf(asked.key().hi(), asked.key().lo()))
                        .append(']');
            }
            case Access.Put put -> {
                beginLine(line, "put", access, put.namespace());
                line.append(",\"bytes\":")
                        .append(put.bytes())
                        .append(",\"replaces\":")
                        .append(put.replaces());
                line.append(",\"after\":");
                if (put.after() == null) {
                    line.append("null");
                } else {
                    line.append(ids.idOf(put.after().hi(), put.after().lo()));
                }
                line.append(",\"ids\":[")
                        .append(ids.idOf(put.key().hi(), put.key().lo()))
                        .append(']');
            }
        }
        return line.append("}\n").toString();
    }

    private void beginLine(StringBuilder line, String verb, Access access, Namespace namespace) {
        boolean first = ids.isNew(namespace);
        int number = ids.idOf(namespace);
        if (first) {
            boolean blocks = !namespace.parts().isEmpty();
            line.append("{\"ns\":").append(number).append(",\"blocks\":").append(blocks);
            line.append(",\"block_tokens\":")
                    .append(blocks ? namespace.blockTokens() : 0)
                    .append("}\n");
        }
        long millis = TimeUnit.NANOSECONDS.toMillis(access.atNanos() - startNanos);
        line.append("{\"at\":").append(millis).append(",\"op\":\"").append(verb);
        line.append("\",\"ns\":").append(number);
    }

    /// Maps keys and namespaces to the ids of a trace.
    ///
    /// An id is the first 63 bits of a SHA-256 over 32 random bytes, which are made for this trace and not
    /// kept, and the key. So equal keys have equal ids in one trace, and a reader cannot test whether a known
    /// key is in it. Among a million keys two have the same id with a chance of one in 18 million.
    private static final class TraceIdHasher {

        private static final int SALT_BYTES = 32;

        private final MessageDigest salted;
        private final Map<Namespace, Integer> namespaces = new HashMap<>();

        TraceIdHasher() {
            byte[] salt = new byte[SALT_BYTES];
            new SecureRandom().nextBytes(salt);
            try {
                salted = MessageDigest.getInstance("SHA-256");
            } catch (NoSuchAlgorithmException impossible) {
                throw new IllegalStateException(impossible); // every JDK has it
            }
            salted.update(salt);
        }

        /// Returns the id of a key, 0 to 2^63 - 1.
        long idOf(long hi, long lo) {
            try {
                MessageDigest digest = (MessageDigest) salted.clone();
                digest.update(ByteBuffer.allocate(BlockKey.BYTES)
                        .putLong(hi)
                        .putLong(lo)
                        .flip());
                return ByteBuffer.wrap(digest.digest()).getLong() >>> 1;
            } catch (CloneNotSupportedException impossible) {
                throw new IllegalStateException(impossible); // the JDK's own can be cloned
            }
        }

        /// Returns whether a namespace has no number yet.
        boolean isNew(Namespace namespace) {
            return !namespaces.containsKey(namespace);
        }

        /// A namespace's number, in the order of their first uses.
        int idOf(Namespace namespace) {
            return namespaces.computeIfAbsent(namespace, _ -> namespaces.size());
        }
    }
}
