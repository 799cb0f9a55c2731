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
import io.kvcache.transport.wire.Payload;
import io.kvcache.transport.wire.Status;
import io.kvcache.transport.wire.Violation;
import java.util.List;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/// A connection that carries blocks. It is lent to one thread at a time, which asks and then reads the
/// answer itself: nobody else has to be woken.
final class DataLine implements FrameHandler {

    private final FrameConnection line;
    private final Deadlines deadlines;
    private final Releases releases;
    private final ToldChains chains = new ToldChains();
    private long number;
    private long answered;
    private @Nullable Exchange exchange;
    private boolean replied;
    private @Nullable Series series;
    private @Nullable CallFailed refusal;

    /// One request and all that belongs to its answer.
    interface Exchange {

        /// The reply is there.
        void reply(BodyReader body) throws Violation;

        /// Bytes are coming: says where they go.
        default PayloadSink data(FrameHeader header, BodyReader body) throws Violation {
            throw new Violation("a payload of type " + header.type() + "; allowed: none");
        }

        /// Whether all has come.
        boolean done();
    }

    /// Requests of which several are on their way at a time. Their answers come in order.
    interface Series {

        /// The next request, or null when no more is asked.
        @Nullable
        Frame next(long number);

        /// The next answer is there.
        void reply(BodyReader body) throws Violation;

        /// It is a refusal.
        void refused(CallFailed refusal);
    }

    DataLine(Handshake.Opened opened, Deadlines deadlines, Releases releases) {
        line = opened.line();
        this.deadlines = deadlines;
        this.releases = releases;
        opened.to(this);
    }

    boolean open() {
        return line.isOpen();
    }

    void close() {
        line.close(DisconnectReason.SHUTDOWN);
    }

    /// A request about a chain.
    ///
    /// @param number of its namespace in this session
    /// @param rest writes what comes after the chain
    record About(MessageType type, BlockChain chain, int number, Consumer<BodyWriter> rest) {}

    /// Makes a chain known, with what has to be sent before it is spoken of.
    ToldChains.Telling tell(BlockChain chain, int namespace) {
        return chains.tell(chain, namespace);
    }

    /// Something about a chain was refused; answers whether it may help to tell it again and ask
    /// once more.
    boolean doubt(CallFailed refusal) {
        return chains.doubt(refusal);
    }

    /// Asks about a chain, once more if the server has given it up, and waits for all of the
    /// answer.
    void run(About about, long patienceNanos, Exchange with) throws CallFailed {
        Exchange _ = OnceMore.ask(patienceNanos, this::doubt, left -> {
            ask(about, left, with);
            return with;
        });
    }

    private void ask(About about, long patienceNanos, Exchange with) throws CallFailed {
        ToldChains.Telling telling = tell(about.chain, about.number);
        BodyWriter body = new BodyWriter().u8(telling.slot()).u8(0).u16(0).i32(about.chain.length());
        about.rest.accept(body);
        run(telling.then(body.request(about.type, ++number, patienceNanos)), patienceNanos, with);
    }

    /// Asks, and waits for all of the answer.
    void run(MessageType type, BodyWriter body, long patienceNanos, Exchange with) throws CallFailed {
        number++;
        run(body.request(type, number, patienceNanos), patienceNanos, with);
    }

    /// Sends bytes, and waits for the answer.
    void run(MessageType type, BodyWriter body, Payload payload, long patienceNanos, Exchange with) throws CallFailed {
        number++;
        run(body.request(type, number, patienceNanos, payload), patienceNanos, with);
    }

    private void run(Frame frame, long patienceNanos, Exchange with) throws CallFailed {
        exchange = with;
        replied = false;
        refusal = null;
        List<Long> back = releases.take();
        deadlines.begin(line, patienceNanos);
        try {
            boolean open = line.send(Releases.before(frame, back));
            while (open && !with.done() && refusal == null) {
                open = line.pump();
            }
        } finally {
            deadlines.end(line);
            exchange = null;
        }
        if (refusal != null) {
            throw refusal;
        }
        if (!with.done()) {
            releases.again(back);
            throw CallFailed.unanswered("the connection broke");
        }
    }

    /// Asks one after the other, and waits for all answers.
    ///
    /// @param ahead requests without an answer at a time; so few that their answers fit the connection
    ///     while nobody reads
    /// @param patienceNanos for each
    void run(Series asking, int ahead, long patienceNanos) throws CallFailed {
        series = asking;
        answered = number;
        List<Long> back = releases.take();
        List<Long> told = back;
        boolean open = true;
        boolean more = true;
        try {
            while (open && (more || answered < number)) {
                deadlines.begin(line, patienceNanos);
                if (!more || number - answered == ahead) {
                    open = line.pump();
                    continue;
                }
                Frame next = asking.next(number + 1);
                more = next != null;
                if (next != null) {
                    number++;
                    open = line.send(Releases.before(next, told));
                    told = List.of();
                }
            }
        } finally {
            deadlines.end(line);
            series = null;
        }
        if (!told.isEmpty() || answered < number) {
            releases.again(back);
        }
        if (answered < number) {
            throw CallFailed.unanswered("the connection broke");
        }
    }

    @Override
    public void message(FrameHeader header, BodyReader body) throws Violation {
        if (header.type() == MessageType.ERROR.code()) {
            return;
        }
        Series asking = series;
        if (asking != null) {
            message(header, body, asking);
            return;
        }
        Exchange with = expected(header);
        if (replied) {
            throw new Violation("a second answer to request %d; allowed: one".formatted(number));
        }
        replied = true;
        if (header.status() == Status.OK) {
            with.reply(body);
        } else {
            refusal = CallFailed.refused(header.status(), body);
        }
    }

    private void message(FrameHeader header, BodyReader body, Series asking) throws Violation {
        if (header.request() != answered + 1 || !header.reply()) {
            throw new Violation("an answer to request %d; allowed: to %d".formatted(header.request(), answered + 1));
        }
        answered++;
        if (header.status() == Status.OK) {
            asking.reply(body);
        } else {
            asking.refused(CallFailed.refused(header.status(), body));
        }
    }

    @Override
    public PayloadSink payload(FrameHeader header, BodyReader body) throws Violation {
        return expected(header).data(header, body);
    }

    private Exchange expected(FrameHeader header) throws Violation {
        Exchange with = exchange;
        if (with == null || header.request() != number || !header.reply()) {
            throw new Violation("an answer to request %d; allowed: to %d".formatted(header.request(), number));
        }
        return with;
    }

    @Override
    public void closed(DisconnectReason reason) {
        // Whoever it is lent to sees it, or the next one.
    }
}
