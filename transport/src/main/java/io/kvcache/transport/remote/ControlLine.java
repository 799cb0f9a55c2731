package io.kvcache.transport.remote;

import io.kvcache.core.identity.BlockChain;
import io.kvcache.transport.link.DisconnectReason;
import io.kvcache.transport.link.FrameConnection;
import io.kvcache.transport.link.FrameHandler;
import io.kvcache.transport.link.PayloadSink;
import io.kvcache.transport.wire.BodyReader;
import io.kvcache.transport.wire.BodyWriter;
import io.kvcache.transport.wire.Frame;
import io.kvcache.transport.wire.FrameHeader;
import io.kvcache.transport.wire.MessageType;
import io.kvcache.transport.wire.Status;
import io.kvcache.transport.wire.Violation;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Consumer;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/// The connection that carries many requests at a time. A thread of its own reads it.
final class ControlLine implements FrameHandler {

    private final FrameConnection line;
    private final Consumer<Progress> progress;
    private final Runnable ended;
    private final Releases releases;
    private final ToldChains chains = new ToldChains();
    private final Map<Long, Call<?>> calls = new ConcurrentHashMap<>();
    private final AtomicLong numbers = new AtomicLong();
    private volatile boolean closed;

    /// News of a lease.
    ///
    /// @param ready blocks of its table
    /// @param end block of the chain after the last that is expected
    record Progress(long lease, int ready, int end) {}

    /// Reads the body of a reply, on the reading thread.
    @FunctionalInterface
    interface Parser<T> {
        T parse(BodyReader body) throws Violation;
    }

    /// @param chain whether it is about one
    private record Call<T>(Parser<T> parser, CompletableFuture<T> result, boolean chain) {

        void complete(BodyReader body) throws Violation {
            result.complete(parser.parse(body));
        }
    }

    /// What to ask for, and how to read the answer.
    record Question<T>(MessageType type, BodyWriter body, Parser<T> parser, long patienceNanos) {}

    /// @param progress hears news, on the reading thread
    /// @param ended hears that the connection is over
    ControlLine(Handshake.Opened opened, Releases releases, Consumer<Progress> progress, Runnable ended) {
        line = opened.line();
        this.releases = releases;
        this.progress = progress;
        this.ended = ended;
        opened.to(this);
    }

    /// Reads until the connection is over.
    void read() {
        boolean open = true;
        while (open) {
            open = line.pump();
        }
    }

    /// Asks, and answers what the reply will say.
    <T> CompletableFuture<T> ask(Question<T> question) {
        long number = numbers.incrementAndGet();
        Call<T> call = begin(number, question, false);
        send(number, question);
        return call.result;
    }

    private synchronized <T> void send(long number, Question<T> question) {
        Frame request = question.body.request(question.type, number, question.patienceNanos);
        line.send(Releases.before(request, releases.take()));
    }

    /// Asks about a chain.
    ///
    /// @param question is given the chain's slot
    <T> CompletableFuture<T> ask(BlockChain chain, int namespace, Function<BodyWriter, Question<T>> question) {
        long number = numbers.incrementAndGet();
        synchronized (this) {
            ToldChains.Telling telling = chains.tell(chain, namespace);
            BodyWriter body = new BodyWriter().u8(telling.slot()).u8(0).u16(0).i32(chain.length());
            Question<T> asked = question.apply(body);
            Call<T> call = begin(number, asked, true);
            Frame request = asked.body.request(asked.type, number, asked.patienceNanos);
            line.send(Releases.before(telling.then(request), releases.take()));
            return call.result;
        }
    }

    private <T> Call<T> begin(long number, Question<T> question, boolean chain) {
        Call<T> call = new Call<>(question.parser, new CompletableFuture<>(), chain);
        calls.put(number, call);
        if (closed) {
            fail(number);
        }
        return call;
    }

    /// Waits for an answer.
    ///
    /// @param late what becomes of one that comes when nobody waits any more
    static <T> T await(CompletableFuture<T> answer, long nanos, Consumer<T> late) throws CallFailed {
        try {
            return answer.get(nanos, TimeUnit.NANOSECONDS);
        } catch (ExecutionException failed) {
            throw failed.getCause() instanceof CallFailed known
                    ? known
                    : CallFailed.unanswered(String.valueOf(failed.getCause()));
        } catch (TimeoutException slow) {
            dispose(answer, late);
            throw CallFailed.unanswered("no answer in time");
        } catch (InterruptedException stopped) {
            dispose(answer, late);
            Thread.currentThread().interrupt();
            throw CallFailed.unanswered("interrupted");
        }
    }

    private static <T> void dispose(CompletableFuture<T> answer, Consumer<T> late) {
        var _ = answer.thenAccept(late);
    }

    /// Tells something that has no answer.
    synchronized void tell(MessageType type, BodyWriter body) {
        line.send(Releases.before(body.request(type, 0, 0), releases.take()));
    }

    /// Gives back what nothing else has taken along.
    synchronized void flush() {
        if (!releases.none()) {
            line.send(Releases.body(releases.take()).request(MessageType.RELEASE, 0, 0));
        }
    }

    FrameConnection line() {
        return line;
    }

    @Override
    public void message(FrameHeader header, BodyReader body) throws Violation {
        if (header.type() == MessageType.PROGRESS.code()) {
            progress.accept(new Progress(body.i64("lease"), body.count("ready"), body.count("end")));
            return;
        }
        Call<?> call = header.reply() ? calls.remove(header.request()) : null;
        if (call != null && header.status() == Status.OK) {
            answer(call, body);
        } else if (call != null) {
            refused(call, CallFailed.refused(header.status(), body));
        }
    }

    private void refused(Call<?> call, CallFailed refusal) {
        if (call.chain) {
            chains.doubt(refusal);
        }
        call.result.completeExceptionally(refusal);
    }

    private static void answer(Call<?> call, BodyReader body) throws Violation {
        try {
            call.complete(body);
        } catch (Violation malformed) {
            call.result.completeExceptionally(CallFailed.unanswered(String.valueOf(malformed.getMessage())));
            throw malformed;
        }
    }

    @Override
    public PayloadSink payload(FrameHeader header, BodyReader body) throws Violation {
        throw new Violation("a payload of type " + header.type() + " that nobody asked for; allowed: none");
    }

    @Override
    public void closed(DisconnectReason reason) {
        closed = true;
        calls.keySet().forEach(this::fail);
        ended.run();
    }

    private void fail(long number) {
        @Nullable Call<?> call = calls.remove(number);
        if (call != null) {
            call.result.completeExceptionally(CallFailed.unanswered("the connection is over"));
        }
    }
}
