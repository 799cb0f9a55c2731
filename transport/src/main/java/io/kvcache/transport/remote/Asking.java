package io.kvcache.transport.remote;

import io.kvcache.core.identity.BlockChain;
import io.kvcache.transport.wire.BodyWriter;
import io.kvcache.transport.wire.MessageType;
import io.kvcache.transport.wire.Status;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.function.Consumer;
import java.util.function.Function;

/// Small questions over the connection that carries many.
final class Asking {

    private final Wiring wiring;

    Asking(Wiring wiring) {
        this.wiring = wiring;
    }

    /// Asks; a failure is counted and answered by a value.
    ///
    /// @throws IllegalArgumentException when the server finds the question wrong
    <T> T or(T otherwise, Question<T> question) {
        try {
            return wiring.uplink().ask(question);
        } catch (CallFailed failed) {
            wiring.counters().failed.increment();
            if (failed.answered() && failed.status() == Status.INVALID) {
                throw new IllegalArgumentException(failed.getMessage());
            }
            return otherwise;
        }
    }

    /// One question to one session.
    @FunctionalInterface
    interface Question<T> {
        T ask(Attachment attachment) throws CallFailed;
    }

    /// Asks what has no answer without the server.
    ///
    /// @throws UncheckedIOException when there is none
    <T> T must(Question<T> question) {
        try {
            return wiring.uplink().ask(question);
        } catch (CallFailed failed) {
            wiring.counters().failed.increment();
            if (failed.answered() && failed.status() == Status.INVALID) {
                throw new IllegalArgumentException(failed.getMessage());
            }
            throw new UncheckedIOException(new IOException(failed.getMessage()));
        }
    }

    /// Asks about a chain.
    ///
    /// @param timeoutNanos how long the server itself may wait
    /// @param late what becomes of an answer that nobody waits for any more
    <T> Question<T> about(BlockChain chain, long timeoutNanos, Function<BodyWriter, Asked<T>> asked, Consumer<T> late) {
        long patience = wiring.options().patienceNanos(timeoutNanos);
        return attachment -> {
            int number = attachment.number(chain.namespace());
            // If there was no room, the server may have given up the chain: it is told again then.
            return OnceMore.ask(
                    patience,
                    failed -> failed.busy() && failed.perhapsOfChain(),
                    left -> ControlLine.await(
                            attachment.control().ask(chain, number, body -> {
                                Asked<T> rest = asked.apply(body);
                                return new ControlLine.Question<>(rest.type, body, rest.parser, left);
                            }),
                            left,
                            late));
        };
    }

    /// What is asked, and how to read the answer.
    record Asked<T>(MessageType type, ControlLine.Parser<T> parser) {}

    /// How long a request may take.
    long requestNanos() {
        return wiring.options().requestNanos();
    }
}
