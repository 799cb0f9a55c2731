package io.kvcache.transport.endpoint;

import io.kvcache.transport.net.FrameSink;
import io.kvcache.transport.wire.BodyWriter;
import io.kvcache.transport.wire.FrameHeader;
import io.kvcache.transport.wire.MessageType;
import io.kvcache.transport.wire.OutboundFrame;
import io.kvcache.transport.wire.Status;

/// One request on its way to its reply, which may come later and from another thread.
///
/// @param type as in the header
/// @param number that the reply repeats; 0 when none is wanted
/// @param deadlineNanos how long the client waits, from when it asked; never 0
/// @param beganNanos when its header was read
record EndpointRequest(
        MessageType type,
        long number,
        long deadlineNanos,
        long beganNanos,
        FrameSink frameSink,
        EndpointStats.Counters counters) {

    static EndpointRequest of(
            MessageType type, FrameHeader header, FrameSink frameSink, EndpointStats.Counters counters) {
        long told = header.deadlineOrStatus();
        long deadline = told > 0 ? told : Long.MAX_VALUE;
        return new EndpointRequest(type, header.request(), deadline, System.nanoTime(), frameSink, counters);
    }

    /// As long as was asked for, but no longer than the client waits for the answer.
    long boundedTimeout(long timeoutNanos) {
        return Math.min(timeoutNanos, deadlineNanos);
    }

    /// Returns false when the client cannot hear it any more.
    boolean reply(BodyWriter body) {
        if (number == 0) {
            return true;
        }
        counters.onAnswered(type, beganNanos);
        return frameSink.send(body.reply(type, number));
    }

    /// Makes the frames of bytes that belong to the reply.
    OutboundFrame.DataFrames dataFrames() {
        return new OutboundFrame.DataFrames(number);
    }

    /// Sends such a frame. Its bytes are counted first: a client that has them may ask how many there were.
    boolean send(OutboundFrame data) {
        long bytes = data.payload().bytes();
        counters.bytesOut.add(bytes);
        boolean sent = frameSink.send(data);
        if (!sent) {
            counters.bytesOut.add(-bytes);
        }
        return sent;
    }

    /// Sends a block that is coded.
    ///
    /// @param plainBytes of the block
    boolean sendCoded(OutboundFrame data, long plainBytes) {
        long saved = plainBytes - data.payload().bytes();
        counters.bytesSaved.add(saved);
        boolean sent = send(data);
        if (!sent) {
            counters.bytesSaved.add(-saved);
        }
        return sent;
    }

    void reject(RequestException why) {
        reject(why.status(), String.valueOf(why.getMessage()), why.concernsChain());
    }

    void reject(Status status, String text) {
        reject(status, text, false);
    }

    private void reject(Status status, String text, boolean ofChain) {
        counters.refusals.increment();
        if (number != 0) {
            counters.onAnswered(type, beganNanos);
            frameSink.send(BodyWriter.errorReply(type.code(), number, status, text, ofChain));
        }
    }

    /// A request that cannot be done, and why. The connection goes on.
    static final class RequestException extends Exception {

        private static final long serialVersionUID = 1L;

        private final Status status;
        private final boolean concernsChain;

        RequestException(Status status, String text) {
            this(status, text, false);
        }

        private RequestException(Status status, String text, boolean ofChain) {
            super(text, null, false, false);
            this.status = status;
            this.concernsChain = ofChain;
        }

        /// One whose chain has not been taken, or not kept: it may help to tell it again.
        static RequestException forChain(Status status, String text) {
            return new RequestException(status, text, true);
        }

        /// Returns whether the refusal is about the chain, and not about the operation on it.
        boolean concernsChain() {
            return concernsChain;
        }

        Status status() {
            return status;
        }
    }
}
