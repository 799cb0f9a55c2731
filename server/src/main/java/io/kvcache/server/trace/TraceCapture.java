package io.kvcache.server.trace;

import io.kvcache.core.AccessListener;
import io.kvcache.core.AccessListener.LookupKind;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockKey;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.spi.Clock;
import io.kvcache.server.config.ServerConfig.TraceConfig;
import io.kvcache.tiers.directory.FileErrorMessage;
import io.kvcache.tiers.use.AccessQueue;
import io.kvcache.tiers.use.AccessQueue.Access;
import java.io.BufferedOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.AccessDeniedException;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.PosixFilePermissions;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.security.SecureRandom;
import java.time.Instant;
import java.util.HashMap;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;
import org.jspecify.annotations.Nullable;

/// Writes down what a server is used for, until a file is full.
///
/// A request leaves a note in a queue of limited size; a thread turns notes into [TraceEncoder] and writes them.
/// When the queue is full, because the file is slow, notes are dropped and counted. A full file, and one that
/// cannot be written any more, ends the capture and nothing else.
///
/// **Threads.** Any.
public final class TraceCapture implements AccessListener, AutoCloseable {

    private static final Logger LOG = System.getLogger(TraceCapture.class.getName());

    /// Some 100 bytes each at the worst.
    private static final int MAX_QUEUED = 1 << 18;

    private static final int BUFFER_BYTES = 1 << 16;
    /// Within which the first use of a trace begins.
    private static final int HEADER_BYTES = 4096;

    /// Kept free for the last line.
    private static final int FOOTER_BYTES = 128;

    private static final long PAUSE_NANOS = TimeUnit.MILLISECONDS.toNanos(20);

    private final Clock clock;
    private final Path file;
    private final long limit;
    private final OutputStream out;
    private final TraceEncoder lines;
    private final AccessQueue queue = new AccessQueue(MAX_QUEUED);
    private final Thread writer;
    private final AtomicLong written = new AtomicLong();
    private final AtomicLong uses = new AtomicLong();
    private volatile boolean capturing = true;
    private volatile boolean closing;

    private TraceCapture(Clock clock, TraceConfig config, long hostBytes) throws IOException {
        this.clock = clock;
        file = Objects.requireNonNull(config.file(), "a trace that is on has a file");
        limit = config.bytes();
        out = open(file);
        lines = new TraceEncoder(clock.nanos());
        write(lines.header(Instant.now(), hostBytes));
        writer = Thread.ofPlatform().daemon().name("kvcache-trace").start(this::run);
    }

    /// Begins a file. The trace of the run before is kept beside it, with `.1` behind its name, in place of the
    /// one before that, as a restart must not lose a trace. A trace without uses is replaced.
    ///
    /// @param hostBytes of the server, for the first line
    /// @throws IOException that names the file when it cannot be written, or is there and no trace,
    ///     or the file that the one before is kept in
    public static TraceCapture start(Clock clock, TraceConfig config, long hostBytes) throws IOException {
        TraceCapture capture = new TraceCapture(clock, config, hostBytes);
        LOG.log(
                Level.INFO,
                "what clients use is written to " + capture.file + ", as salted hashes, up to " + config.bytes()
                        + " bytes");
        return capture;
    }

    /// How it goes.
    ///
    /// @param capturing whether uses are still written
    /// @param uses that were
    /// @param bytes of the file
    /// @param dropped uses that came faster than they could be written
    public record Stats(boolean capturing, long uses, long bytes, long dropped) {}

    /// How it goes.
    public Stats stats() {
        return new Stats(capturing, uses.get(), written.get(), queue.dropped());
    }

    @Override
    public void onAccess(BlockChain chain, int from, int found, int blockBytes) {
        if (capturing) {
            queue.offer(new Access.ChainLookup(clock.nanos(), chain, from, found, blockBytes));
        }
    }

    @Override
    public void onAccess(LookupKind lookupKind, Namespace namespace, BlockKey key, long bytes) {
        if (capturing) {
            queue.offer(new Access.KeyLookup(clock.nanos(), lookupKind, namespace, key, bytes));
        }
    }

    @Override
    public void onPut(Namespace namespace, BlockKey key, @Nullable BlockKey after, long bytes, boolean replaces) {
        if (capturing) {
            queue.offer(new Access.Put(clock.nanos(), namespace, key, after, bytes, replaces));
        }
    }

    /// Checks that a trace can be written to a file, as far as that shows without changing anything.
    ///
    /// @throws IOException that names the setting and the file
    public static void checkUsable(Path file) throws IOException {
        Path folder = file.toAbsolutePath().getParent();
        try {
            if (folder == null || !Files.isDirectory(folder)) {
                throw new NoSuchFileException(String.valueOf(folder));
            }
            if (!Files.isWritable(folder)) {
                throw new AccessDeniedException(folder.toString());
            }
            var _ = existsTrace(file);
        } catch (IOException refused) {
            throw unusable(file, refused);
        }
    }

    private static IOException unusable(Path file, IOException refused) {
        String why = refused instanceof FileAlreadyExistsException exists
                ? String.valueOf(exists.getMessage())
                : FileErrorMessage.of(refused, "")
                        + "; name a file in a directory that exists and that this user can write to";
        return new IOException("trace.out is " + file + ", which cannot be written: " + why, refused);
    }

    /// Only the owner may read the file: ids are hashes, but the times of requests are private.
    private static OutputStream open(Path file) throws IOException {
        try {
            rotatePrevious(file);
            Files.createFile(file, PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rw-------")));
            return new BufferedOutputStream(Files.newOutputStream(file, StandardOpenOption.WRITE), BUFFER_BYTES);
        } catch (IOException refused) {
            throw unusable(file, refused);
        }
    }

    private static void rotatePrevious(Path file) throws IOException {
        if (!existsTrace(file)) {
            return;
        }
        if (!hasAccesses(file)) {
            Files.delete(file);
            return;
        }
        Path earlier = file.resolveSibling(file.getFileName() + ".1");
        if (existsTrace(earlier)) {
            Files.delete(earlier);
        }
        Files.move(file, earlier);
    }

    /// @throws FileAlreadyExistsException when something else is there
    private static boolean existsTrace(Path file) throws IOException {
        if (!Files.exists(file, LinkOption.NOFOLLOW_LINKS)) {
            return false;
        }
        if (!Files.isRegularFile(file, LinkOption.NOFOLLOW_LINKS) || !isTrace(file)) {
            throw new FileAlreadyExistsException(file.toString(), null, "it is there, and no trace; name another file");
        }
        return true;
    }

    /// Returns whether a file is a trace. An empty file is one too: a killed server may leave it.
    private static boolean isTrace(Path file) throws IOException {
        try (InputStream in = Files.newInputStream(file)) {
            byte[] begin = in.readNBytes(TraceEncoder.TRACE_PREFIX.length());
            return begin.length == 0 || new String(begin, StandardCharsets.US_ASCII).equals(TraceEncoder.TRACE_PREFIX);
        }
    }

    /// A server that served no request, as when its port was taken, left the first line at most, and the last.
    private static boolean hasAccesses(Path file) throws IOException {
        try (InputStream in = Files.newInputStream(file)) {
            return new String(in.readNBytes(HEADER_BYTES), StandardCharsets.US_ASCII)
                    .contains(TraceEncoder.FIRST_ACCESS);
        }
    }

    private void run() {
        try (out) {
            boolean room = true;
            while (room) {
                boolean last = closing; // read before the queue, so that what came before it is written
                Access access = queue.poll();
                if (access != null) {
                    String line = lines.encodeAccess(access);
                    room = written.get() + line.length() + FOOTER_BYTES <= limit;
                    uses.addAndGet(room ? 1 : 0);
                    write(room ? line : "");
                } else if (last) {
                    break;
                } else {
                    out.flush();
                    LockSupport.parkNanos(this, PAUSE_NANOS);
                }
            }
            capturing = false;
            write(lines.footer(room ? "closed" : "full", queue.dropped()));
            out.flush();
            if (!room) {
                LOG.log(
                        Level.WARNING,
                        file + " has " + written + " of " + limit + " bytes (trace limit); tracing stops");
            }
        } catch (IOException failed) {
            LOG.log(
                    Level.WARNING,
                    file + " cannot be written any more; tracing stops at " + written + " bytes: " + failed);
        } finally {
            capturing = false;
        }
    }

    /// Lines are ASCII.
    private void write(String line) throws IOException {
        out.write(line.getBytes(StandardCharsets.US_ASCII));
        written.addAndGet(line.length());
    }

    /// Writes what waits, and the last line.
    @Override
    public void close() {
        closing = true;
        LockSupport.unpark(writer);
        try {
            writer.join(TimeUnit.SECONDS.toMillis(10));
        } catch (InterruptedException _) {
            Thread.currentThread().interrupt();
        }
    }

    /// The lines of a trace of a server, one JSON object each.
    ///
    /// | line | members |
    /// |---|---|
    /// | first | `kvcache_trace` 1, `vantage` in words, `started`, `host_bytes` |
    /// | `"ns"` alone with `blocks` | a namespace: its number, whether it has blocks, and their `block_tokens` |
    /// | `"op":"chain"` | blocks were asked for: `at` ms, `ns`, `ids`, `from`, `found`, `bytes` of each |
    /// | `"op":"get"`, `"look"` | one key was asked for, or whether it is there: the same members |
    /// | `"op":"put"` | `at`, `ns`, `ids` of the one, `after` or null, `bytes`, `replaces` |
    /// | last | `end`, `dropped` |
    ///
    /// Bytes of an object are those of value and key; -1 where they are not known.
    static final class TraceEncoder {

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
        /// kept, and the key. So equal keys have equal ids in one trace, and a reader cannot test whether a
        /// known
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
}
