package io.kvcache.server.resp;

import io.kvcache.server.keyspace.ChunkSequenceTrackers;
import io.kvcache.server.keyspace.Keyspace;
import io.kvcache.server.keyspace.PinnedValue;
import io.kvcache.server.keyspace.ReadResult;
import io.kvcache.server.net.ClientInfo;
import io.kvcache.server.net.CloseReason;
import io.kvcache.server.net.Connection;
import io.netty.channel.EventLoop;
import java.util.Set;
import java.util.function.Consumer;
import java.util.function.LongConsumer;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;

/// What a connection is between two requests.
///
/// **Threads.** The connection's loop.
final class RespSession {

    /// All that LMCache's native client ever sends.
    private static final Set<String> NATIVE = Set.of("AUTH", "GET", "SET", "EXISTS", "DEL");

    private final Connection connection;
    private final Entrance entrance;
    private final EventLoop loop;
    private final Runnable goOn;
    private CommandTable commands;
    private boolean onlyNative = true;
    private boolean awaiting;
    private boolean asking;
    private @Nullable CloseReason ending;
    private boolean closed;
    private Runnable whenClosed = () -> {};
    private @Nullable Runnable whenWritable;
    private final ChunkSequenceTrackers runs = new ChunkSequenceTrackers();
    private final Transaction transaction;

    /// @param transaction what the client says between MULTI and EXEC
    /// @param goOn takes the next request once this session no longer waits
    RespSession(Connection connection, Entrance entrance, EventLoop loop, Transaction transaction, Runnable goOn) {
        this.transaction = transaction;
        this.entrance = entrance;
        this.connection = connection;
        commands = entrance.first();
        enter(commands);
        this.loop = loop;
        this.goOn = goOn;
    }

    Connection connection() {
        return connection;
    }

    /// What it may ask now.
    CommandTable commands() {
        return commands;
    }

    /// From now on it is a tenant.
    void enter(CommandTable own) {
        commands = own;
        if (!entrance.isBefore(own)) {
            connection.markAuthenticated();
        }
        introduce(connection.clientInfo().withTenant(own.tenant()));
    }

    /// It is again who it was in the beginning.
    void leave() {
        enter(entrance.first());
    }

    /// The client says something of itself.
    void introduce(ClientInfo told) {
        connection.clientInfo(told);
    }

    /// As set by the client; empty when it was not.
    String name() {
        return connection.clientInfo().name();
    }

    void name(String chosen) {
        introduce(connection.clientInfo().withName(chosen));
    }

    /// Takes note of a request before it runs.
    void heard(Request request) {
        onlyNative = onlyNative && NATIVE.contains(request.name());
    }

    /// Whether this may be LMCache's native client. It reads replies of a fixed length, so an error where it expects
    /// `+OK` would be taken for the next replies, and values for other keys' values.
    boolean maybeNative() {
        return onlyNative;
    }

    /// The order in which this client asks for keys.
    ChunkSequenceTrackers runs() {
        return runs;
    }

    /// What it says between MULTI and EXEC.
    Transaction transaction() {
        return transaction;
    }

    /// The connection ends once this request is answered.
    void end(CloseReason why) {
        ending = why;
    }

    /// Why it ends, or null when it does not.
    @Nullable
    CloseReason ending() {
        return ending;
    }

    /// Whether the next request has to wait.
    boolean suspended() {
        return awaiting || whenWritable != null;
    }

    boolean awaiting() {
        return awaiting;
    }

    /// Goes on when a value has come from disk, or is known not to come. If the connection has ended meanwhile the
    /// value is given back.
    void awaitValue(Keyspace keyspace, byte[] key, Consumer<ReadResult> next) {
        awaitValue(keyspace, key, next, () -> {});
    }

    /// The same for a command that holds something meanwhile.
    ///
    /// @param abandon run instead of `next` when the connection ends before
    void awaitValue(Keyspace keyspace, byte[] key, Consumer<ReadResult> next, Runnable abandon) {
        awaiting = true;
        whenClosed = abandon;
        connection.setServerWaiting(true);
        keyspace.fetch(key, loop, reading -> {
            PinnedValue value = reading.value();
            if (!closed) {
                whenClosed = () -> {};
                resume(() -> next.accept(reading));
            } else if (value != null) {
                value.close();
            }
        });
    }

    /// Goes on when others of the same loop have had their turn.
    void awaitTurn() {
        awaitTurn(() -> {}, () -> {});
    }

    /// The same for a command that goes on then.
    ///
    /// @param abandon run instead of `next` when the connection ends before
    void awaitTurn(Runnable next, Runnable abandon) {
        awaiting = true;
        connection.setServerWaiting(true);
        loop.execute(() -> {
            if (closed) {
                abandon.run();
            } else {
                resume(next);
            }
        });
    }

    /// Goes on when something is done that waits, which it does on a thread of its own.
    void awaitSlow(LongSupplier slow, LongConsumer next) {
        awaiting = true;
        connection.setServerWaiting(true);
        Thread.ofVirtual().start(() -> {
            long outcome = slow.getAsLong();
            loop.execute(() -> {
                if (!closed) {
                    resume(() -> next.accept(outcome));
                }
            });
        });
    }

    /// Nothing is gone on with any more.
    void close() {
        closed = true;
        whenClosed.run();
        whenClosed = () -> {};
        transaction.end();
    }

    /// Goes on when somebody on another thread has found out something, which may also be at once.
    ///
    /// @param question is told where to bring the answer
    /// @param answered run on the connection's loop
    <T> void awaitAnswer(Consumer<Consumer<T>> question, Consumer<T> answered) {
        awaiting = true;
        asking = true;
        question.accept(answer -> {
            if (loop.inEventLoop() && asking) {
                awaiting = false;
                answered.accept(answer);
            } else {
                loop.execute(() -> {
                    if (!closed) {
                        resume(() -> answered.accept(answer));
                    }
                });
            }
        });
        asking = false;
        if (awaiting) {
            connection.setServerWaiting(true);
        }
    }

    private void resume(Runnable next) {
        awaiting = false;
        connection.setServerWaiting(false);
        next.run();
        goOn.run();
    }

    /// Goes on when the client has read some more of what was sent to it.
    void whenWritable(Runnable next) {
        whenWritable = next;
    }

    boolean hasContinuation() {
        return whenWritable != null;
    }

    /// What to go on with, if anything; it is then forgotten.
    @Nullable
    Runnable takeContinuation() {
        Runnable next = whenWritable;
        whenWritable = null;
        return next;
    }
}
