package io.kvcache.server.forward;

import io.kvcache.server.forward.InProcessCommands.Dialect;
import io.kvcache.server.keyspace.HashSlotOwnership;
import io.kvcache.server.keyspace.HashSlotOwnership.SlotMap;
import io.kvcache.transport.client.CommandReply;
import io.kvcache.transport.cluster.NodeInfo;
import io.kvcache.transport.endpoint.CommandRunner.Command;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/// Passes requests on to the servers that own their keys, for clients that know one server only.
///
/// **When the owner does not answer**, a request about a value that never changes is run here at once: at worst it
/// is a miss. A read of a value that may change is not, as the client would take the miss for the value's end: the
/// client is to try again. A write of such a value waits until the view names an owner that answers, as only an
/// owner's value is found later. After four seconds the client is told to try again. While this server joins and
/// knows no other that serves, the client is told so at once.
///
/// **Ownership.** Of its connections and threads, until [#close].
///
/// **Threads.** Any.
public final class RequestForwarder implements AutoCloseable {

    /// How long a write waits for an owner that answers. Common clients wait for 5 s.
    private static final Duration PATIENCE = Duration.ofSeconds(4);

    /// How long an owner may take, and longer for large requests.
    private static final Duration ATTEMPT = Duration.ofSeconds(2);

    private static final long BYTES_PER_MILLI = 10_000;

    private static final Logger LOG = System.getLogger(RequestForwarder.class.getName());

    private static final long LOOK_MILLIS = 20;

    private static final List<String> NOT_OWNER = List.of("-MOVED ", "-CLUSTERDOWN ", "-TRYAGAIN ", "HTTP/1.1 421 ");

    private final HashSlotOwnership ownership;
    private final OwnerConnections connections;
    private final InProcessCommands own;
    private final ExecutorService executor = Executors.newVirtualThreadPerTaskExecutor();
    private final LongAdder forwarded = new LongAdder();
    private final LongAdder unanswered = new LongAdder();

    /// What may happen to a request whose owner does not answer.
    public enum Kind {
        /// Reads a value that may change.
        READ,
        /// Reads, stores or removes a value that is always the same under its key.
        CONTENT,
        /// May run twice.
        REPEATABLE_WRITE,
        /// May have another effect when it runs twice.
        WRITE;

        /// Returns whether it is run by an owner or not at all.
        boolean waitsForOwner() {
            return this == REPEATABLE_WRITE || this == WRITE;
        }
    }

    /// A request.
    ///
    /// @param tenant for whose client it is
    /// @param slot of all its keys
    /// @param bytes of the request, in native memory that stays as it is until the reply is there
    public record Request(String tenant, Dialect dialect, int slot, Kind kind, List<MemorySegment> bytes) {

        long byteCount() {
            return bytes.stream().mapToLong(MemorySegment::byteSize).sum();
        }
    }

    /// A reply, or why there is none.
    ///
    /// **Ownership.** The receiver closes it.
    public static final class Reply implements AutoCloseable {

        private final List<MemorySegment> pieces;
        private final String error;
        private final Runnable release;

        private Reply(List<MemorySegment> pieces, String error, Runnable release) {
            this.pieces = pieces;
            this.error = error;
            this.release = release;
        }

        static Reply of(CommandReply reply) {
            return new Reply(List.of(reply.bytes()), "", reply::close);
        }

        static Reply of(List<MemorySegment> pieces, Command command) {
            return new Reply(pieces, "", command::close);
        }

        static Reply none(String why) {
            return new Reply(List.of(), why, () -> {});
        }

        /// The bytes of the reply in native memory, until it is closed; none when there is an error.
        public List<MemorySegment> pieces() {
            return pieces;
        }

        /// All bytes together.
        public long byteCount() {
            return pieces.stream().mapToLong(MemorySegment::byteSize).sum();
        }

        /// Why there is no reply; empty when there is one.
        public String error() {
            return error;
        }

        /// The first bytes of the reply as text.
        public String firstBytes(int most) {
            MemorySegment first = pieces.isEmpty() ? MemorySegment.NULL : pieces.getFirst();
            byte[] bytes = first.asSlice(0, Math.min(most, first.byteSize())).toArray(ValueLayout.JAVA_BYTE);
            return new String(bytes, StandardCharsets.ISO_8859_1);
        }

        @Override
        public void close() {
            release.run();
        }
    }

    /// @param own runs what this server owns after all, or what no other server answers
    public RequestForwarder(HashSlotOwnership ownership, OwnerConnections connections, InProcessCommands own) {
        this.ownership = ownership;
        this.connections = connections;
        this.own = own;
    }

    /// Returns whether requests about a slot's keys are passed on: another server owns it, or none does yet.
    public boolean isElsewhere(int slot) {
        return !ownership.map().isOwn(slot);
    }

    /// Returns the owner's name, or an empty text without one.
    public String ownerName(int slot) {
        NodeInfo owner = ownership.map().owner(slot);
        return owner == null ? "" : owner.name();
    }

    /// Passes a request on.
    ///
    /// @param reply takes the reply, on another thread
    public void forward(Request request, Consumer<Reply> reply) {
        try {
            executor.execute(() -> reply.accept(runOrFail(request)));
        } catch (RejectedExecutionException closed) {
            reply.accept(Reply.none("the server goes down"));
        }
    }

    /// Passes several requests on at the same time.
    ///
    /// @param replies takes the replies in the order of the requests, on another thread
    public void forwardAll(List<Request> requests, Consumer<List<Reply>> replies) {
        Reply[] come = new Reply[requests.size()];
        AtomicInteger left = new AtomicInteger(come.length);
        for (int i = 0; i < come.length; i++) {
            int place = i;
            forward(requests.get(i), reply -> {
                come[place] = reply;
                if (left.decrementAndGet() == 0) {
                    replies.accept(List.of(come));
                }
            });
        }
    }

    private Reply runOrFail(Request request) {
        try {
            return run(request);
        } catch (RuntimeException bug) { // the client waits for a reply
            LOG.log(Level.ERROR, "a request was not passed on", bug);
            return unanswered("the request could not be passed on: " + bug.getMessage());
        }
    }

    private Reply run(Request request) {
        long until = System.nanoTime() + PATIENCE.toNanos();
        String problem;
        do {
            SlotMap map = ownership.map();
            NodeInfo owner = map.owner(request.slot);
            if (map.isOwn(request.slot)) {
                return runHere(request);
            }
            if (owner == null) {
                return request.kind == Kind.CONTENT ? runUnowned(request) : unanswered(ownership.absenceReason());
            }
            try {
                Reply reply = ask(owner, request);
                if (reply != null) {
                    return reply;
                }
                problem = owner.name() + " does not own it yet";
            } catch (IllegalStateException refused) {
                problem = owner.name() + " does not take it: " + refused.getMessage();
            } catch (UncheckedIOException unanswered) {
                problem = owner.name() + " does not answer: " + OwnerConnections.reason(unanswered);
                boolean mayHaveRun = !(unanswered instanceof OwnerConnections.NotConnectedException);
                if (request.kind == Kind.READ || (request.kind == Kind.WRITE && mayHaveRun)) {
                    return unanswered(problem);
                }
            }
            if (request.kind == Kind.CONTENT) {
                return runUnowned(request);
            }
            pause();
        } while (System.nanoTime() < until && !Thread.currentThread().isInterrupted());
        return unanswered(problem);
    }

    private Reply runUnowned(Request request) {
        unanswered.increment();
        return runHere(request);
    }

    private Reply unanswered(String problem) {
        unanswered.increment();
        return Reply.none(problem);
    }

    /// Returns null when the server says that it is not the owner.
    private @Nullable Reply ask(NodeInfo owner, Request request) {
        Reply reply = Reply.of(connections.execute(owner, request, attemptTime(request)));
        String begin = reply.firstBytes(16);
        if (NOT_OWNER.stream().anyMatch(begin::startsWith)) {
            reply.close();
            return null;
        }
        forwarded.increment();
        return reply;
    }

    private static Duration attemptTime(Request request) {
        return ATTEMPT.plusMillis(request.byteCount() / BYTES_PER_MILLI);
    }

    private Reply runHere(Request request) {
        Command command = own.beginOwn(request.tenant, request.dialect, Math.toIntExact(request.byteCount()));
        if (command == null) {
            return Reply.none("as much is being received as may be");
        }
        long at = 0;
        for (MemorySegment piece : request.bytes) {
            MemorySegment.copy(piece, 0, command.request(), at, piece.byteSize());
            at += piece.byteSize();
        }
        try {
            return Reply.of(command.run(attemptTime(request)), command);
        } catch (IOException none) {
            command.close();
            return Reply.none(String.valueOf(none.getMessage()));
        }
    }

    private static void pause() {
        try {
            TimeUnit.MILLISECONDS.sleep(LOOK_MILLIS);
        } catch (InterruptedException stopped) {
            Thread.currentThread().interrupt();
        }
    }

    /// Requests that another server has answered.
    public long forwardedCount() {
        return forwarded.sum();
    }

    /// Requests that no owner has answered.
    public long unansweredCount() {
        return unanswered.sum();
    }

    @Override
    public void close() {
        var _ = executor.shutdownNow();
        connections.close();
    }
}
