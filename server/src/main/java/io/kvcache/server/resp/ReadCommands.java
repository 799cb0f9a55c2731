package io.kvcache.server.resp;

import io.kvcache.server.keyspace.ChunkKey;
import io.kvcache.server.keyspace.Keyspace;
import io.kvcache.server.keyspace.Keyspace.KeyInfo;
import io.kvcache.server.keyspace.Keyspace.ReadResult;
import io.kvcache.server.keyspace.KeyspaceRouter;
import io.kvcache.server.keyspace.PinnedValue;
import io.kvcache.server.quota.PartRead;
import io.kvcache.server.resp.ExpiryCommands.ExpiryParser;
import io.kvcache.server.resp.RespProtocol.RespStats;
import java.util.List;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/// GET, MGET, GETRANGE, STRLEN.
final class ReadCommands {

    private final KeyspaceRouter keyspaceRouter;

    ReadCommands(KeyspaceRouter keyspaceRouter) {
        this.keyspaceRouter = keyspaceRouter;
    }

    List<CommandSpec> commands() {
        return List.of(
                CommandSpec.of("GET", 2, "readonly fast", CommandSpec.ArgumentPositions.FIRST, this::get),
                CommandSpec.of("MGET", -2, "readonly fast", CommandSpec.ArgumentPositions.ALL, this::mget),
                CommandSpec.of("GETRANGE", 4, "readonly", CommandSpec.ArgumentPositions.FIRST, this::getRange),
                CommandSpec.of("SUBSTR", 4, "readonly", CommandSpec.ArgumentPositions.FIRST, this::getRange),
                CommandSpec.of("STRLEN", 2, "readonly fast", CommandSpec.ArgumentPositions.FIRST, this::strlen));
    }

    private void get(RespSession session, RespRequest request, RespEncoder out) {
        byte[] key = request.argument(1);
        ReadResult readResult = read(session, key);
        if (readResult.outcome() == ReadResult.Outcome.ON_DISK) {
            session.awaitValue(keyspaceRouter.of(key), key, come -> reply(come.value(), out));
        } else {
            reply(readResult.value(), out);
        }
    }

    private ReadResult read(RespSession session, byte[] key) {
        if (!Keyspace.isValidKey(key)) {
            return ReadResult.MISS;
        }
        Keyspace keyspace = keyspaceRouter.of(key);
        ReadResult readResult = keyspace.read(key);
        ChunkKey chunk = ChunkKey.of(key);
        if (chunk != null) {
            session.sequenceTracker(keyspace).onRead(chunk, readResult.outcome() != ReadResult.Outcome.MISS);
        }
        return readResult;
    }

    /// Goes on with what came of a read, now or when the value has come from disk.
    void withReadResult(RespSession session, byte[] key, Consumer<ReadResult> next) {
        ReadResult readResult = read(session, key);
        if (readResult.outcome() == ReadResult.Outcome.ON_DISK) {
            session.awaitValue(keyspaceRouter.of(key), key, next);
        } else {
            next.accept(readResult);
        }
    }

    private static void reply(@Nullable PinnedValue value, RespEncoder out) {
        if (value == null) {
            out.writeNull();
        } else {
            out.writeValue(value, 0, value.bytes());
        }
    }

    private void mget(RespSession session, RespRequest request, RespEncoder out) {
        out.beginArray(request.count() - 1);
        mget(session, request, out, 1);
    }

    /// Takes values one by one as the client reads them, so that it holds no more than it can take.
    private void mget(RespSession session, RespRequest request, RespEncoder out, int from) {
        for (int i = from; i < request.count(); i++) {
            if (!session.connection().channel().isWritable()) {
                int next = i;
                session.handler().awaitWritable(() -> mget(session, request, out, next));
                return;
            }
            byte[] key = request.argument(i);
            ReadResult readResult = read(session, key);
            if (readResult.outcome() == ReadResult.Outcome.ON_DISK) {
                int next = i + 1;
                session.awaitValue(keyspaceRouter.of(key), key, come -> {
                    reply(come.value(), out);
                    mget(session, request, out, next);
                });
                return;
            }
            reply(readResult.value(), out);
        }
    }

    private void getRange(RespSession session, RespRequest request, RespEncoder out) throws CommandException {
        long start = request.argumentLong(2);
        long end = request.argumentLong(3);
        byte[] key = request.argument(1);
        ReadResult readResult = read(session, key);
        if (readResult.outcome() != ReadResult.Outcome.ON_DISK) {
            range(readResult.value(), start, end, out);
        } else if (!readPart(session, key, start, end, out)) {
            awaitRange(session, key, start, end, out);
        }
    }

    private void awaitRange(RespSession session, byte[] key, long start, long end, RespEncoder out) {
        session.awaitValue(keyspaceRouter.of(key), key, come -> range(come.value(), start, end, out));
    }

    /// Reads only what is wanted of a value that is on disk alone.
    ///
    /// @return false when all of it is to be read
    private boolean readPart(RespSession session, byte[] key, long start, long end, RespEncoder out) {
        Keyspace keyspace = keyspaceRouter.of(key);
        long bytes = keyspace.onDiskBytes(key);
        Bounds bounds = Bounds.of(start, end, bytes);
        PartRead part = bounds.isEmpty() ? null : keyspace.readPart(key, bytes, bounds.from, bounds.length());
        if (part == null) {
            return false;
        }
        session.awaitPart(part, there -> {
            if (there) {
                keyspace.onPartRead(key, part.bytes().length);
                out.writeBulk(part.bytes());
            } else {
                awaitRange(session, key, start, end, out);
            }
        });
        return true;
    }

    /// The bytes of a value that GETRANGE means: negative numbers count from the end.
    private record Bounds(long from, long to) {

        static Bounds of(long start, long end, long bytes) {
            long from = start < 0 ? Math.max(0, bytes + start) : start;
            long to = Math.min(bytes - 1, end < 0 ? bytes + end : end);
            boolean none = (start < 0 && end < 0 && start > end) || from > to;
            return none ? new Bounds(0, -1) : new Bounds(from, to);
        }

        boolean isEmpty() {
            return to < from;
        }

        long length() {
            return to - from + 1;
        }
    }

    private static void range(@Nullable PinnedValue value, long start, long end, RespEncoder out) {
        if (value == null) {
            out.writeBulk(new byte[0]);
            return;
        }
        Bounds bounds = Bounds.of(start, end, value.bytes());
        if (bounds.isEmpty()) {
            value.close();
            out.writeBulk(new byte[0]);
        } else {
            out.writeValue(value, bounds.from, bounds.length());
        }
    }

    private void strlen(RespSession session, RespRequest request, RespEncoder out) {
        byte[] key = request.argument(1);
        KeyInfo info = Keyspace.isValidKey(key) ? keyspaceRouter.of(key).info(key) : null;
        out.writeInteger(info == null ? 0 : info.bytes());
    }

    /// GETDEL and GETEX: reads that change the very value that they have read, and not one that came
    /// after it.
    static final class GetAndModifyCommands {

        /// Successors of a value that are stored while it is being taken.
        private static final int MAX_TRIES = 8;

        private final KeyspaceRouter keyspaceRouter;
        private final ReadCommands reads;
        private final RespStats stats;

        GetAndModifyCommands(KeyspaceRouter keyspaceRouter, ReadCommands reads, RespStats stats) {
            this.keyspaceRouter = keyspaceRouter;
            this.reads = reads;
            this.stats = stats;
        }

        List<CommandSpec> commands() {
            CommandSpec.ArgumentPositions key = CommandSpec.ArgumentPositions.FIRST;
            return List.of(
                    CommandSpec.of("GETDEL", 2, "write fast", key, (session, request, out) -> {
                        getAndDelete(session, request.argument(1), out, MAX_TRIES);
                    }),
                    CommandSpec.of("GETEX", -2, "write fast", key, this::getEx));
        }

        /// If several clients take a key at one time, one gets its value.
        private void getAndDelete(RespSession session, byte[] key, RespEncoder out, int tries) {
            reads.withReadResult(session, key, readResult -> {
                PinnedValue value = valueOrReply(readResult, out);
                if (value == null) {
                    return;
                }
                if (keyspaceRouter.of(key).delete(key, value)) {
                    out.writeValue(value, 0, value.bytes());
                    return;
                }
                value.close();
                if (tries > 1) {
                    getAndDelete(session, key, out, tries - 1);
                } else {
                    reject(CommandException.CONTENDED, out);
                }
            });
        }

        private void getEx(RespSession session, RespRequest request, RespEncoder out) throws CommandException {
            boolean changes = request.count() > 2;
            long now = keyspaceRouter.ownKeyspace().nowMillis();
            long expiry = changes ? expiry(request, now) : 0;
            byte[] key = request.argument(1);
            reads.withReadResult(session, key, readResult -> {
                PinnedValue value = valueOrReply(readResult, out);
                if (value == null) {
                    return;
                }
                Keyspace keyspace = keyspaceRouter.of(key);
                if (changes && expiry != 0 && expiry <= now) {
                    keyspace.delete(key, value);
                } else if (changes) {
                    keyspace.expireAt(key, expiry, value);
                }
                out.writeValue(value, 0, value.bytes());
            });
        }

        private static long expiry(RespRequest request, long now) throws CommandException {
            String word = request.argumentUpperCase(2);
            if (word.equals("PERSIST") && request.count() == 3) {
                return 0;
            }
            if (!List.of("EX", "PX", "EXAT", "PXAT").contains(word) || request.count() != 4) {
                throw new CommandException(CommandException.SYNTAX);
            }
            return ExpiryParser.parse(word, request.argumentLong(3), now, "getex");
        }

        /// The value, or null when the reply has been that there is none, or none now.
        private @Nullable PinnedValue valueOrReply(ReadResult readResult, RespEncoder out) {
            switch (readResult.outcome()) {
                case HIT -> {}
                case MISS -> out.writeNull();
                case THROTTLED -> reject(CommandException.THROTTLED, out);
                case ON_DISK, TIMED_OUT -> reject(CommandException.TIMED_OUT, out);
            }
            return readResult.value();
        }

        private void reject(String reply, RespEncoder out) {
            stats.errors.increment();
            out.writeError(reply);
        }
    }
}
