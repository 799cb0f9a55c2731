package io.kvcache.transport.endpoint;

import io.kvcache.transport.link.Outlet;
import io.kvcache.transport.wire.BodyWriter;
import io.kvcache.transport.wire.DataFrames;
import io.kvcache.transport.wire.Frame;
import io.kvcache.transport.wire.FrameHeader;
import io.kvcache.transport.wire.MessageType;
import io.kvcache.transport.wire.Status;

/// One request on its way to its reply, which may come later and from another thread.
///
/// @param type as in the header
/// @param number that the reply repeats; 0 when none is wanted
/// @param deadlineNanos how long the client waits, from when it asked; never 0
record Request(MessageType type, long number, long deadlineNanos, Outlet outlet, Counters counters) {

    static Request of(MessageType type, FrameHeader header, Outlet outlet, Counters counters) {
        long told = header.word();
        return new Request(type, header.request(), told > 0 ? told : Long.MAX_VALUE, outlet, counters);
    }

    /// As long as was asked for, but no longer than anybody waits for the answer.
    long bounded(long timeoutNanos) {
        return Math.min(timeoutNanos, deadlineNanos);
    }

    /// Answers false when nobody can hear it any more.
    boolean reply(BodyWriter body) {
        return number == 0 || outlet.send(body.reply(type, number));
    }

    /// Makes the frames of bytes that belong to the reply.
    DataFrames data() {
        return new DataFrames(number);
    }

    /// Sends such a frame. Its bytes are counted first: who has them may ask how many there were.
    boolean send(Frame data) {
        long bytes = data.payload().bytes();
        counters.bytesOut.add(bytes);
        boolean sent = outlet.send(data);
        if (!sent) {
            counters.bytesOut.add(-bytes);
        }
        return sent;
    }

    void refuse(Refused why) {
        refuse(why.status(), String.valueOf(why.getMessage()), why.isOfChain());
    }

    void refuse(Status status, String text) {
        refuse(status, text, false);
    }

    private void refuse(Status status, String text, boolean ofChain) {
        counters.refusals.increment();
        if (number != 0) {
            outlet.send(BodyWriter.refusal(type.code(), number, status, text, ofChain));
        }
    }
}
