package io.kvcache.server.cli;

import io.kvcache.server.client.HttpApiClient;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.PrintWriter;
import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import org.jspecify.annotations.Nullable;
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

    @Option(names = "--after", paramLabel = "ID", description = "Go on after an event that was printed before.")
    private @Nullable String after;

    @Option(names = "--from-oldest", description = "Begin with the oldest event that the server has.")
    private boolean fromOldest;

    @Option(names = "--namespace", paramLabel = "NAME", description = "Only this one's. Default: all.")
    private @Nullable String namespace;

    @Option(names = "--count", paramLabel = "N", description = "Stop after so many. Default: never.")
    private long count = Long.MAX_VALUE;

    @Option(names = "--snapshot", description = "Begin with all that is stored now.")
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
            description = "With --zmq: ask there for what came before, and for what was missed."
                    + " Default: ${FALLBACK-VALUE}.")
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

    /// Where following over ZeroMQ begins.
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
}
