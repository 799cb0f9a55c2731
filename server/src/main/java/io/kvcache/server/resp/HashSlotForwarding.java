package io.kvcache.server.resp;

import io.kvcache.server.forward.InProcessCommands.Dialect;
import io.kvcache.server.forward.RequestBytes;
import io.kvcache.server.forward.RequestBytes.PassedValue;
import io.kvcache.server.forward.RequestForwarder;
import io.kvcache.server.forward.RequestForwarder.Kind;
import io.kvcache.server.forward.RequestForwarder.Reply;
import io.kvcache.server.forward.RequestForwarder.Request;
import io.kvcache.server.keyspace.Keyspace;
import io.kvcache.server.keyspace.KeyspaceRouter;
import io.kvcache.server.resp.RespProtocol.RespStats;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/// Passes commands about keys of other servers of the cluster on to those, for clients that know one server only.
///
/// A command about keys of one slot is passed on as it is. Of one about several, those that can be are cut: each
/// key is asked for by itself, some at a time.
///
/// **Threads.** Any.
final class HashSlotForwarding {

    /// Of one command that are passed on at the same time. Their replies wait in memory.
    private static final int KEYS_AT_A_TIME = 16;

    private static final Set<String> COUNTING = Set.of("EXISTS", "TOUCH", "DEL", "UNLINK");

    private static final String PREFIX = "KV.PREFIX";

    private final RequestForwarder forwarder;
    private final KeyspaceRouter keyspaceRouter;
    private final String tenant;
    private final RespStats stats;

    HashSlotForwarding(RequestForwarder forwarder, KeyspaceRouter keyspaceRouter, String tenant, RespStats stats) {
        this.forwarder = forwarder;
        this.keyspaceRouter = keyspaceRouter;
        this.tenant = tenant;
        this.stats = stats;
    }

    /// Returns whether the value of a key is to be passed on, and so takes no room in the store.
    ///
    /// @param command a cut one passes all values on
    boolean isPassedOn(CommandSpec command, byte[] key) {
        return command.values().step() > 1 || forwarder.isElsewhere(keyspaceRouter.slotOf(key));
    }

    /// Begins to receive a value that is to be passed on.
    static ValueUpload upload(Keyspace keyspace, long bytes) {
        PassedValue value = PassedValue.begin(keyspace.keyspaceLimits().incoming(), bytes);
        return value == null ? ValueUpload.rejected(CommandException.OUT_OF_MEMORY) : ValueUpload.toPassOn(value);
    }

    /// Runs a command if another server has to, or parts of it.
    ///
    /// @return whether it is run here
    boolean run(RespSession session, CommandSpec spec, RespRequest request, RespEncoder out) throws CommandException {
        CommandSpec.ArgumentPositions keys = spec.keys();
        int first = keys.first();
        if (first == 0 || first >= request.count() || isRejected(request)) {
            return false;
        }
        int slot = keyspaceRouter.slotOf(request.argument(first));
        boolean one = true;
        boolean elsewhere = forwarder.isElsewhere(slot);
        for (int place = first + keys.step();
                place < request.count() && keys.has(place, request.count());
                place += keys.step()) {
            int next = keyspaceRouter.slotOf(request.argument(place));
            one &= next == slot;
            elsewhere |= next != slot && forwarder.isElsewhere(next);
        }
        boolean passedOn = request.values().stream().anyMatch(ValueUpload::isPassedOn);
        if (!elsewhere && !passedOn) {
            return false;
        }
        if (spec.name().equals(PREFIX)) {
            runPrefix(session, request, out, first, 0);
        } else if (one && (passedOn || request.values().isEmpty())) {
            runWhole(session, spec, request, out);
        } else if (spec.name().equals("MGET")) {
            runMget(session, request, out, 1);
        } else if (COUNTING.contains(spec.name())) {
            runCounting(session, spec, request, out, 1, 0);
        } else if (spec.name().equals("MSET") && request.count() % 2 == 1) {
            request.values().forEach(ValueUpload::transfer);
            runMset(session, request, out, 0);
        } else if (request.values().isEmpty()) {
            throw new CommandException("CROSSSLOT Keys in request belong to several servers of the cluster");
        } else if (isContent(request.argument(first))) {
            return false; // it was this server's when its value came, and may stay here
        } else {
            throw new CommandException(
                    "TRYAGAIN the key has just become node " + forwarder.ownerName(slot) + "'s of the cluster");
        }
        return true;
    }

    private static boolean isRejected(RespRequest request) {
        return request.values().stream().anyMatch(value -> value.rejection() != null);
    }

    private boolean isContent(byte[] key) {
        return keyspaceRouter.of(key).isContent(key);
    }

    private Kind kindOf(CommandSpec spec, RespRequest request, byte[] key) {
        if (isContent(key)) {
            return Kind.CONTENT;
        }
        if (spec.flags().contains("readonly")) {
            return Kind.READ;
        }
        return switch (spec.name()) {
            case "SET" -> request.count() == 3 || hasOnlyExpiry(request) ? Kind.REPEATABLE_WRITE : Kind.WRITE;
            case "SETEX", "PSETEX", "MSET", "DEL", "UNLINK", "EXPIRE", "PEXPIRE", "EXPIREAT", "PEXPIREAT", "PERSIST" ->
                Kind.REPEATABLE_WRITE;
            default -> Kind.WRITE;
        };
    }

    private static boolean hasOnlyExpiry(RespRequest request) {
        return request.count() == 5 && Set.of("EX", "PX", "EXAT", "PXAT").contains(request.argumentUpperCase(3));
    }

    private void runWhole(RespSession session, CommandSpec spec, RespRequest request, RespEncoder out) {
        byte[] key = request.argument(spec.keys().first());
        RequestBytes bytes = new RequestBytes().beginArray(request.count());
        Iterator<ValueUpload> values = request.values().iterator();
        for (int i = 0; i < request.count(); i++) {
            if (spec.values().has(i, request.count())) {
                bytes.bulk(values.next().passedBytes());
            } else {
                bytes.bulk(request.argument(i));
            }
        }
        request.values().forEach(ValueUpload::transfer);
        boolean storesContent = spec.name().equals("SET") && request.count() == 3 && isContent(key);
        forward(
                session,
                List.of(new Part(key, kindOf(spec, request, key), bytes, request.values())),
                out,
                replies -> write(session, storesContent, replies.getFirst(), out));
    }

    /// @param storesContent whether the command stores a value that is always the same under its key
    private void write(RespSession session, boolean storesContent, Reply reply, RespEncoder out) {
        if (!isError(reply)) {
            out.writeReply(reply.pieces(), reply::close);
            return;
        }
        if (storesContent && session.isMaybeNativeClient()) { // as WriteCommands does
            stats.droppedAfterOk.increment();
            out.writeOk();
        } else {
            stats.errors.increment();
            writeError(reply, out);
        }
        reply.close();
    }

    private static boolean isError(Reply reply) {
        return !reply.error().isEmpty() || reply.firstBytes(1).equals("-");
    }

    private static void writeError(Reply reply, RespEncoder out) {
        if (reply.error().isEmpty()) {
            out.writeReply(reply.pieces(), () -> {});
        } else {
            out.writeError("TRYAGAIN " + reply.error());
        }
    }

    private void runMget(RespSession session, RespRequest request, RespEncoder out, int from) {
        int to = Math.min(request.count(), from + KEYS_AT_A_TIME);
        List<Part> parts = new ArrayList<>();
        for (int i = from; i < to; i++) {
            parts.add(Part.of(readOf(request.argument(i)), "GET", request.argument(i)));
        }
        forward(session, parts, out, replies -> {
            if (from == 1) {
                Reply unanswered = firstUnanswered(replies);
                if (unanswered != null) {
                    fail(replies, unanswered, out);
                    return;
                }
                out.beginArray(request.count() - 1);
            }
            for (Reply reply : replies) {
                if (!reply.error().isEmpty()) { // the others of the command are on their way
                    writeError(reply, out);
                    reply.close();
                } else if (reply.firstBytes(1).equals("$")) {
                    out.writeReply(reply.pieces(), reply::close);
                } else {
                    reply.close();
                    out.writeNull();
                }
            }
            if (to < request.count()) {
                session.handler().awaitWritable(() -> runMget(session, request, out, to));
            }
        });
    }

    private Kind readOf(byte[] key) {
        return isContent(key) ? Kind.CONTENT : Kind.READ;
    }

    private static @Nullable Reply firstUnanswered(List<Reply> replies) {
        return replies.stream()
                .filter(reply -> !reply.error().isEmpty())
                .findFirst()
                .orElse(null);
    }

    /// @param from place of the first key that is asked for
    private void runPrefix(RespSession session, RespRequest request, RespEncoder out, int from, int before) {
        int to = Math.min(request.count(), from + KEYS_AT_A_TIME);
        List<Part> parts = new ArrayList<>();
        for (int i = from; i < to; i++) {
            byte[] key = request.argument(i);
            RequestBytes bytes = new RequestBytes()
                    .beginArray(3)
                    .bulk(PREFIX)
                    .bulk(request.argument(1))
                    .bulk(key);
            parts.add(new Part(key, Kind.CONTENT, bytes, List.of())); // a shorter prefix is no wrong answer
        }
        forward(session, parts, out, replies -> {
            if (isError(replies.getFirst())) { // of the words, as all have the same
                fail(replies, replies.getFirst(), out);
                return;
            }
            int present = 0;
            while (present < replies.size()
                    && replies.get(present).firstBytes(2).equals(":1")) {
                present++;
            }
            replies.forEach(Reply::close);
            if (present == parts.size() && to < request.count()) {
                runPrefix(session, request, out, to, before + present);
            } else {
                out.writeInteger(before + present);
            }
        });
    }

    private void runCounting(
            RespSession session, CommandSpec spec, RespRequest request, RespEncoder out, int from, long before) {
        int to = Math.min(request.count(), from + KEYS_AT_A_TIME);
        List<Part> parts = new ArrayList<>();
        for (int i = from; i < to; i++) {
            byte[] key = request.argument(i);
            parts.add(Part.of(kindOf(spec, request, key), spec.name(), key));
        }
        forward(session, parts, out, replies -> {
            long count = before;
            for (Reply reply : replies) {
                String text = reply.firstBytes(24);
                if (!text.startsWith(":")) {
                    fail(replies, reply, out);
                    return;
                }
                count += Long.parseLong(text.substring(1).strip());
            }
            replies.forEach(Reply::close);
            if (to < request.count()) {
                runCounting(session, spec, request, out, to, count);
            } else {
                out.writeInteger(count);
            }
        });
    }

    /// @param from index of the first pair
    private void runMset(RespSession session, RespRequest request, RespEncoder out, int from) {
        int to = Math.min(request.values().size(), from + KEYS_AT_A_TIME);
        List<Part> parts = new ArrayList<>();
        for (int i = from; i < to; i++) {
            byte[] key = request.argument(1 + 2 * i);
            ValueUpload value = request.values().get(i);
            RequestBytes bytes =
                    new RequestBytes().beginArray(3).bulk("SET").bulk(key).bulk(value.passedBytes());
            Kind kind = isContent(key) ? Kind.CONTENT : Kind.REPEATABLE_WRITE;
            parts.add(new Part(key, kind, bytes, List.of(value)));
        }
        List<ValueUpload> rest = request.values().subList(to, request.values().size());
        forward(
                session,
                parts,
                out,
                replies -> {
                    for (Reply reply : replies) {
                        if (!reply.firstBytes(1).equals("+")) {
                            rest.forEach(ValueUpload::release);
                            fail(replies, reply, out);
                            return;
                        }
                    }
                    replies.forEach(Reply::close);
                    if (rest.isEmpty()) {
                        out.writeOk();
                    } else {
                        runMset(session, request, out, to);
                    }
                },
                () -> rest.forEach(ValueUpload::release));
    }

    private void fail(List<Reply> replies, Reply failed, RespEncoder out) {
        stats.errors.increment();
        writeError(failed, out);
        replies.forEach(Reply::close);
    }

    @FunctionalInterface
    private interface RepliesHandler {
        void accept(List<Reply> replies);
    }

    private void forward(RespSession session, List<Part> parts, RespEncoder out, RepliesHandler next) {
        forward(session, parts, out, next, () -> {});
    }

    /// @param abandon run in place of `next` when the connection has ended by then
    private void forward(
            RespSession session, List<Part> parts, RespEncoder out, RepliesHandler next, Runnable abandon) {
        Dialect dialect = out.protocolVersion() == 3 ? Dialect.RESP3 : Dialect.RESP2;
        List<Request> requests = parts.stream()
                .map(part -> part.request(tenant, dialect, keyspaceRouter.slotOf(part.key)))
                .toList();
        session.handler()
                .<List<Reply>>await(
                        then -> forwarder.forwardAll(requests, replies -> {
                            parts.forEach(Part::release);
                            then.accept(replies);
                        }),
                        next::accept,
                        replies -> {
                            replies.forEach(Reply::close);
                            abandon.run();
                        });
    }

    /// A command about one key.
    ///
    /// @param values that are in its bytes; taken over
    @SuppressWarnings("ArrayRecordComponent") // never compared
    private record Part(byte[] key, Kind kind, RequestBytes bytes, List<ValueUpload> values) {

        static Part of(Kind kind, String command, byte[] key) {
            return new Part(key, kind, RequestBytes.command(command, key), List.of());
        }

        Request request(String tenant, Dialect dialect, int slot) {
            return new Request(tenant, dialect, slot, kind, bytes.segments());
        }

        void release() {
            bytes.release();
            values.forEach(ValueUpload::release);
        }
    }
}
