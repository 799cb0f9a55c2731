package io.kvcache.bench.cli;

import io.kvcache.bench.client.WebClient;
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
import picocli.CommandLine.Spec;

/// `kvcache events`: one line an event, its id, its name and its data.
@Command(
        name = "events",
        description = "Print what a server stores and removes, as it happens.",
        mixinStandardHelpOptions = true)
final class EventsCommand implements Callable<Integer> {

    @Spec
    private CommandSpec spec = CommandSpec.create();

    @Mixin
    private ServerAddress server = new ServerAddress();

    @Option(names = "--after", paramLabel = "ID", description = "Go on after an event that was printed before.")
    private @Nullable String after;

    @Option(names = "--from-oldest", description = "Begin with the oldest event that the server has.")
    private boolean fromOldest;

    @Option(names = "--namespace", paramLabel = "NAME", description = "Only this one's. Default: all.")
    private @Nullable String namespace;

    @Option(names = "--count", paramLabel = "N", description = "Stop after so many. Default: never.")
    private long count = Long.MAX_VALUE;

    @Override
    public Integer call() throws IOException {
        PrintWriter out = spec.commandLine().getOut();
        try (WebClient client = server.web();
                BufferedReader lines = client.lines("/v1/events" + query())) {
            String id = "";
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
            all.add("after=" + encoded(after));
        }
        if (fromOldest) {
            all.add("from=oldest");
        }
        if (namespace != null) {
            all.add("namespace=" + encoded(namespace));
        }
        return all.isEmpty() ? "" : "?" + String.join("&", all);
    }

    private static String encoded(String text) {
        return URLEncoder.encode(text, StandardCharsets.UTF_8);
    }
}
