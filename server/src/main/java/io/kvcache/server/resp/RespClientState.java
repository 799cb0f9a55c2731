package io.kvcache.server.resp;

import io.kvcache.server.keyspace.ChunkSequenceTrackers;
import io.kvcache.server.keyspace.Keyspace;
import io.kvcache.server.keyspace.PinnedValue;
import io.kvcache.server.keyspace.Keyspace.ReadResult;
import io.kvcache.server.net.Connection.ClientInfo;
import io.kvcache.server.net.Connection.CloseReason;
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
final class RespClientState {

    /// All that LMCache's native client ever sends.
    private static final Set<String> NATIVE_CLIENT_COMMANDS = Set.of("AUTH", "GET", "SET", "EXISTS", "DEL");

    private final Connection connection;
    private final CommandTables commandTables;
    private final EventLoop loop;
    private final Runnable resumption;
    private CommandTable commands;
    private boolean nativeCommandsOnly = true;
    private boolean awaiting;
    private boolean authenticating;
    private @Nullable CloseReason closeReason;
    private boolean closed;
    private Runnable abandonment = () -> {};
    private @Nullable Runnable writableContinuation;
    private final ChunkSequenceTrackers sequenceTrackers = new ChunkSequenceTrackers();
    private final Transaction transaction;

    /// @param transaction what the client says between MULTI and EXEC
    /// @param resumption takes the next request once this session no longer waits
    RespClientState(
            Connection connection,
            CommandTables commandTables,
            EventLoop loop,
            Transaction transaction,
            Runnable resumption) {
        this.transaction = transaction;
        this.commandTables = commandTables;
        this.connection = connection;
        commands = commandTables.initialTable();
        enterTenant(commands);
        this.loop = loop;
        this.resumption = resumption;
    }

    Connection connection() {
        return connection;
    }

    /// What it may ask now.
    CommandTable commands() {
        return commands;
    }

    /// From now on it is a tenant.
    void enterTenant(CommandTable own) {
        commands = own;
        if (!commandTables.isPreAuth(own)) {
            connection.markAuthenticated();
        }
        setClientInfo(connection.clientInfo().withTenant(own.tenant()));
    }

    /// It is again who it was in the beginning.
    void resetTenant() {
        enterTenant(commandTables.initialTable());
    }

    /// The client says something of itself.
    void setClientInfo(ClientInfo told) {
        connection.clientInfo(told);
    }

    /// As set by the client; empty when it was not.
    String name() {
        return connection.clientInfo().name();
    }

    void name(String chosen) {
        setClientInfo(connection.clientInfo().withName(chosen));
    }

    /// Takes note of a request before it runs.
    void onCommand(RespRequest request) {
        nativeCommandsOnly = nativeCommandsOnly && NATIVE_CLIENT_COMMANDS.contains(request.name());
    }

    /// Whether this may be LMCache's native client. It reads replies of a fixed length, so an error where it expects
    /// `+OK` would be taken for the next replies, and values for other keys' values.
    boolean isMaybeNativeClient() {
        return nativeCommandsOnly;
    }

    /// The order in which this client asks for keys.
    ChunkSequenceTrackers sequenceTrackers() {
        return sequenceTrackers;
    }

    /// What it says between MULTI and EXEC.
    Transaction transaction() {
        return transaction;
    }

    /// The connection ends once this request is answered.
    void closeAfterReply(CloseReason why) {
        closeReason = why;
    }

    /// Why it ends, or null when it does not.
    @Nullable
    CloseReason closeReason() {
        return closeReason;
    }

    /// Whether the next request has to wait.
    boolean isSuspended() {
        return awaiting || writableContinuation != null;
    }

    boolean isAwaiting() {
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
        abandonment = abandon;
        connection.setServerWaiting(true);
        keyspace.fetch(key, loop, readResult -> {
            PinnedValue value = readResult.value();
            if (!closed) {
                abandonment = () -> {};
                resume(() -> next.accept(readResult));
            } else if (value != null) {
                value.close();
            }
        });
    }

    /// Goes on when others of the same loop have had their turn.
    void yieldLoop() {
        yieldLoop(() -> {}, () -> {});
    }

    /// The same for a command that goes on then.
    ///
    /// @param abandon run instead of `next` when the connection ends before
    void yieldLoop(Runnable next, Runnable abandon) {
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
    void awaitBlocking(LongSupplier slow, LongConsumer next) {
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
        abandonment.run();
        abandonment = () -> {};
        transaction.end();
    }

    /// Goes on when somebody on another thread has found out something, which may also be at once.
    ///
    /// @param question is told where to bring the answer
    /// @param answered run on the connection's loop
    <T> void awaitCallback(Consumer<Consumer<T>> question, Consumer<T> answered) {
        awaiting = true;
        authenticating = true;
        question.accept(answer -> {
            if (loop.inEventLoop() && authenticating) {
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
        authenticating = false;
        if (awaiting) {
            connection.setServerWaiting(true);
        }
    }

    private void resume(Runnable next) {
        awaiting = false;
        connection.setServerWaiting(false);
        next.run();
        resumption.run();
    }

    /// Goes on when the client has read some more of what was sent to it.
    void awaitWritable(Runnable next) {
        writableContinuation = next;
    }

    boolean hasContinuation() {
        return writableContinuation != null;
    }

    /// What to go on with, if anything; it is then forgotten.
    @Nullable
    Runnable takeContinuation() {
        Runnable next = writableContinuation;
        writableContinuation = null;
        return next;
    }
}
