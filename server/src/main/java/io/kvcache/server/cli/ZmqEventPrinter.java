package io.kvcache.server.cli;

import io.kvcache.server.zmq.ZmqSubscriber;
import io.kvcache.server.zmq.ZmqSubscriber.Batch;
import java.io.IOException;
import java.io.PrintWriter;
import java.util.List;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine;

/// Prints what is published over ZeroMQ: one line an event, the number of its message, its name, and all of it.
final class ZmqEventPrinter {

    private static final int WAIT_MILLIS = 1000;

    private final PrintWriter out;
    private final PrintWriter errors;
    private final String publish;
    private final @Nullable String replay;
    private final StartPosition startPosition;
    private long left;
    private long next = -1;

    /// Where to begin.
    ///
    /// @param snapshot with all that is stored
    /// @param from else the first message wanted; -1 for the next one
    record StartPosition(boolean snapshot, long from) {}

    ZmqEventPrinter(CommandLine command, String publish, @Nullable String replay, StartPosition startPosition) {
        out = command.getOut();
        errors = command.getErr();
        this.publish = publish;
        this.replay = replay;
        this.startPosition = startPosition;
    }

    /// Prints so many events, for ever if need be.
    int print(long count) throws IOException {
        left = count;
        try (ZmqSubscriber subscriber = ZmqSubscriber.connect(publish, replay == null ? "" : replay, "")) {
            printSnapshotOrReplay(subscriber);
            while (left > 0) {
                Batch batch = subscriber.next(WAIT_MILLIS);
                if (batch != null && batch.sequence() >= next) {
                    fillGap(subscriber, batch.sequence());
                    print(batch);
                    next = batch.sequence() + 1;
                }
            }
        }
        return 0;
    }

    /// The live messages are followed already, so nothing falls between.
    private void printSnapshotOrReplay(ZmqSubscriber subscriber) throws IOException {
        if (startPosition.snapshot) {
            for (Batch batch : subscriber.snapshot()) {
                print(batch);
                next = batch.sequence(); // the first live one that is not in it
            }
        } else if (startPosition.from >= 0) {
            print(subscriber.replay(startPosition.from), Long.MAX_VALUE);
        }
    }

    private void fillGap(ZmqSubscriber subscriber, long sequence) throws IOException {
        if (next >= 0 && sequence > next && replay != null) {
            print(subscriber.replay(next), sequence);
        }
        if (next >= 0 && sequence > next) {
            errors.println((sequence - next) + " messages are missing before " + sequence);
            errors.flush();
        }
    }

    private void print(List<Batch> batches, long before) {
        for (Batch batch : batches) {
            if (batch.sequence() < before) {
                print(batch);
                next = batch.sequence() + 1;
            }
        }
    }

    private void print(Batch batch) {
        for (ZmqSubscriber.Event event : batch.events()) {
            if (left > 0) {
                out.println(batch.sequence() + " " + event.name() + " " + event.json());
                left--;
            }
        }
        out.flush();
    }
}
