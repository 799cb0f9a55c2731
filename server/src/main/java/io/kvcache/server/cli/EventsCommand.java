package io.kvcache.server.cli;

import io.kvcache.server.client.HttpApiClient;
import io.kvcache.server.zmq.ZmqSubscriber;
import io.kvcache.server.zmq.ZmqSubscriber.Batch;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.PrintWriter;
import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;

/// `kvcache events`: one line an event, its id (`-` of one that a snapshot has), its name and its data.
@Command(
        name = "events",
        description = "Print what a server stores and removes, as it happens.",
        mixinStandardHelpOptions = true)
final class EventsCommand implements Callable<Integer> {

    @Spec
    private CommandSpec spec = CommandSpec.create();

    @Mixin
    private ConnectionOptions server = new ConnectionOptions();

    @Option(names = "--after", paramLabel = "ID", description = "Continue after the event with this id.")
    private @Nullable String after;

    @Option(names = "--from-oldest", description = "Begin with the oldest event that the server still has.")
    private boolean fromOldest;

    @Option(
            names = "--namespace",
            paramLabel = "NAME",
            description = "Print only this namespace's events. Default: all.")
    private @Nullable String namespace;

    @Option(names = "--count", paramLabel = "N", description = "Stop after this many events. Default: never.")
    private long count = Long.MAX_VALUE;

    @Option(names = "--snapshot", description = "Begin with everything stored now.")
    private boolean snapshot;

    @Option(
            names = "--zmq",
            paramLabel = "ENDPOINT",
            arity = "0..1",
            fallbackValue = "tcp://127.0.0.1:5557",
            description = "Follow what is published over ZeroMQ there, by a server or an engine that speaks vLLM's"
                    + " schema. Default: ${FALLBACK-VALUE}.")
    private @Nullable String zmq;

    @Option(
            names = "--replay",
            paramLabel = "ENDPOINT",
            arity = "0..1",
            fallbackValue = "tcp://127.0.0.1:5558",
            description = "With --zmq: endpoint to ask for earlier and missed events." + " Default: ${FALLBACK-VALUE}.")
    private @Nullable String replay;

    @Override
    public Integer call() throws IOException {
        if (zmq != null) {
            return new ZmqEventPrinter(spec.commandLine(), zmq, replay, startPosition()).print(count);
        }
        if (replay != null) {
            throw new ParameterException(spec.commandLine(), "--replay is for --zmq");
        }
        return followHttp();
    }

    /// Returns the position from which to follow events over ZeroMQ.
    private ZmqEventPrinter.StartPosition startPosition() {
        if (namespace != null) {
            throw new ParameterException(
                    spec.commandLine(), "--namespace is not for --zmq, whose messages have topics");
        }
        if (replay == null && (snapshot || fromOldest || after != null)) {
            throw new ParameterException(
                    spec.commandLine(), "--snapshot, --from-oldest and --after take --replay beside --zmq");
        }
        try {
            long from = after == null ? 0 : Long.parseLong(after) + 1;
            return new ZmqEventPrinter.StartPosition(snapshot, fromOldest || after != null ? from : -1);
        } catch (NumberFormatException other) {
            throw new ParameterException(
                    spec.commandLine(),
                    "--after is '" + after + "'; with --zmq it takes the number of a message",
                    other);
        }
    }

    private Integer followHttp() throws IOException {
        PrintWriter out = spec.commandLine().getOut();
        try (HttpApiClient client = server.httpClient();
                BufferedReader lines = client.openLines("/v1/events" + query())) {
            String id = "-";
            String name = "";
            long left = count;
            for (String line = left > 0 ? lines.readLine() : null; line != null; line = lines.readLine()) {
                if (line.startsWith("id: ")) {
                    id = line.substring(4);
                } else if (line.startsWith("event: ")) {
                    name = line.substring(7);
                } else if (line.startsWith("data: ")) {
                    out.println(id + " " + name + " " + line.substring(6));
                    out.flush();
                    if (--left == 0) {
                        return 0;
                    }
                }
            }
            return 0;
        }
    }

    private String query() {
        List<String> all = new ArrayList<>();
        if (after != null) {
            all.add("after=" + urlEncode(after));
        }
        if (fromOldest || snapshot) {
            all.add(snapshot ? "from=snapshot" : "from=oldest");
        }
        if (namespace != null) {
            all.add("namespace=" + urlEncode(namespace));
        }
        return all.isEmpty() ? "" : "?" + String.join("&", all);
    }

    private static String urlEncode(String text) {
        return URLEncoder.encode(text, StandardCharsets.UTF_8);
    }

    /// Prints what is published over ZeroMQ: one line an event, the number of its message, its name, and all of it.
    private static final class ZmqEventPrinter {

        private static final int WAIT_MILLIS = 1000;

        private final PrintWriter out;
        private final PrintWriter errors;
        private final String publish;
        private final @Nullable String replay;
        private final StartPosition startPosition;
        private long left;
        private long next = -1;

        /// The position from which to follow events.
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
            try (ZmqSubscriber subscriber =
                    ZmqSubscriber.connect(publish, replay == null ? "" : replay, "", this::sayThatItWaits)) {
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

        private void sayThatItWaits() {
            errors.println("waiting for a publisher at " + publish);
            errors.flush();
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
}
