package io.kvcache.server.cli;

import io.kvcache.server.client.HttpApiClient;
import io.kvcache.server.client.HttpApiClient.HttpStatusException;
import java.io.IOException;
import java.io.PrintWriter;
import java.time.Duration;
import java.util.List;
import java.util.Locale;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;
import tools.jackson.databind.JsonNode;

/// `kvcache cluster status` and `kvcache cluster drain`.
@Command(
        name = "cluster",
        description = "Show the cluster that a server is in, or drain the server.",
        mixinStandardHelpOptions = true)
final class ClusterCommand implements Runnable {

    private static final String VIEW_PATH = "/v1/cluster";
    private static final String DRAIN_PATH = "/v1/cluster/drain";

    private static final long POLL_MILLIS = 500;

    @Spec
    private CommandSpec spec = CommandSpec.create();

    @Override
    public void run() {
        throw new ParameterException(spec.commandLine(), "kvcache cluster takes a subcommand: status or drain");
    }

    @Command(
            name = "status",
            description = {
                "Show the servers of the cluster with states and shares, as one of them sees it.",
                "Exits with 1 while that one joins."
            },
            mixinStandardHelpOptions = true)
    int status(
            @Mixin ConnectionOptions server,
            @Option(names = "--json", description = "Print the server's JSON.") boolean json,
            @Option(names = "--wait", paramLabel = "N", description = "Wait until N servers serve.") @Nullable
                    Integer wait,
            @Option(
                            names = "--timeout",
                            paramLabel = "SECONDS",
                            defaultValue = "60",
                            description = "Longest time to wait. Default: ${DEFAULT-VALUE}.")
                    int timeout)
            throws IOException, InterruptedException {
        if (wait != null && wait < 1) {
            throw server.usageError("--wait is " + wait + "; it takes the number of servers, from 1 on");
        }
        if (timeout < 0) {
            throw server.usageError("--timeout is " + timeout + "; it takes seconds, from 0 on");
        }
        try (HttpApiClient client = server.httpClient()) {
            ClusterTable cluster = wait == null
                    ? new ClusterTable(client.get(VIEW_PATH))
                    : awaitServing(client, wait, Duration.ofSeconds(timeout));
            show(cluster, json);
            if (wait != null && !cluster.hasServing(wait)) {
                printError(cluster.describeMissing(wait) + "; waited for " + timeout + " s");
                return 1;
            }
            if (cluster.isJoining()) {
                printError(cluster.describeJoining());
                return 1;
            }
            return 0;
        }
    }

    /// Prints a cluster. An empty view has no table.
    private void show(ClusterTable cluster, boolean json) {
        PrintWriter out = spec.commandLine().getOut();
        if (json) {
            out.println(cluster.cluster().toPrettyString());
        } else if (!cluster.isEmpty()) {
            out.print(cluster.format());
        }
        out.flush();
    }

    /// Asks until enough servers serve, or the time is over. A server that is not there yet may still start.
    ///
    /// @return the last reply
    /// @throws IOException when there was none
    private static ClusterTable awaitServing(HttpApiClient client, int count, Duration timeout)
            throws IOException, InterruptedException {
        long start = System.nanoTime();
        while (true) {
            boolean over = System.nanoTime() - start >= timeout.toNanos();
            try {
                ClusterTable cluster = new ClusterTable(client.get(VIEW_PATH));
                if (over || cluster.hasServing(count)) {
                    return cluster;
                }
            } catch (HttpStatusException refused) {
                throw refused;
            } catch (IOException notYet) {
                if (over) {
                    throw new IOException(
                            notYet.getMessage() + "; waited for " + timeout.toSeconds() + " s for " + count
                                    + (count == 1 ? " server" : " servers") + " that serve",
                            notYet);
                }
            }
            Thread.sleep(POLL_MILLIS);
        }
    }

    @Command(
            name = "drain",
            description = {
                "Take the server at --host and --port out of service: the other servers own everything from then on,"
                        + " and get its blocks in memory and its values that never change.",
                "Values that may change are lost to clients at once, and --undo does not bring them back.",
                "The server goes on running until it is stopped."
            },
            mixinStandardHelpOptions = true)
    int drain(
            @Mixin ConnectionOptions server,
            @Option(names = "--wait", description = "Show the handover until it is over.") boolean wait,
            @Option(names = "--force", description = "Drain even the only server that serves.") boolean force,
            @Option(names = "--undo", description = "Let the server serve again.") boolean undo,
            @Parameters(arity = "0..*", hidden = true) @Nullable List<String> names)
            throws IOException, InterruptedException {
        if (names != null && !names.isEmpty()) {
            throw server.usageError("kvcache cluster drain takes no node's name, such as '" + names.getFirst()
                    + "': it acts on the server at --host and --port, here " + server.hostAndPort());
        }
        if (undo && (wait || force)) {
            throw server.usageError("--undo takes neither --wait nor --force");
        }
        try (HttpApiClient client = server.httpClient()) {
            if (undo) {
                return undoDrain(client);
            }
            JsonNode drain = client.post(DRAIN_PATH + (force ? "?force=true" : ""));
            print(text(drain, "node") + " drains: it owns nothing any more, and hands over its blocks in memory and its"
                    + " values that never change.");
            print("Values that may change are lost to clients from now on; --undo does not bring them back.");
            String again = "`kvcache cluster drain" + server.repeated();
            if (!wait) {
                print(again + " --wait` shows how far it is; " + again + " --undo` ends the drain");
                return 0;
            }
            followHandover(client, drain);
            print("Next: stop the server by SIGTERM, or let it serve again by " + again + " --undo`");
            return 0;
        }
    }

    private int undoDrain(HttpApiClient client) throws IOException {
        boolean wasServing = text(client.get(DRAIN_PATH), "state").equals("serving");
        JsonNode drain = client.delete(DRAIN_PATH);
        print(text(drain, "node") + (wasServing ? " was not drained: it serves" : " serves again"));
        return 0;
    }

    private void followHandover(HttpApiClient client, JsonNode begun) throws IOException, InterruptedException {
        JsonNode drain = begun;
        String shown = formatGiven(drain.get("handover"));
        while (isHandingOver(drain)) {
            Thread.sleep(POLL_MILLIS);
            drain = client.get(DRAIN_PATH);
            String given = formatGiven(drain.get("handover"));
            if (isHandingOver(drain) && !given.equals(shown)) {
                print("  " + given + " given");
                shown = given;
            }
        }
        if (!text(drain, "state").equals("draining")) {
            throw new IOException(text(drain, "node") + " is " + text(drain, "state") + ": the drain was undone");
        }
        print(formatHandover(drain));
    }

    private static boolean isHandingOver(JsonNode drain) {
        return text(drain, "state").equals("draining")
                && drain.at("/handover/running").booleanValue();
    }

    /// The result of a handover.
    static String formatHandover(JsonNode drain) {
        if (drain.get("othersServing").longValue() == 0) {
            return "no other server serves, so nothing could be given";
        }
        JsonNode handover = drain.get("handover");
        int left = handover.get("left").intValue();
        long valuesLeft = handover.get("valuesLeft").longValue();
        return String.format(
                Locale.ROOT,
                "handed over %d chains, %s; %s",
                handover.get("chains").intValue(),
                formatGiven(handover),
                left + valuesLeft == 0
                        ? "none are left"
                        : left + " chains and " + valuesLeft + " values are left, as shutdown.drain is over or their"
                                + " owners took no more; a stop tries them again");
    }

    private static String formatGiven(JsonNode handover) {
        return handover.get("blocks").longValue() + " blocks, "
                + handover.get("values").longValue() + " values";
    }

    private void print(String line) {
        PrintWriter out = spec.commandLine().getOut();
        out.println(line);
        out.flush();
    }

    private void printError(String line) {
        PrintWriter errors = spec.commandLine().getErr();
        errors.println("kvcache: " + line);
        errors.flush();
    }

    private static String text(JsonNode from, String field) {
        return from.get(field).stringValue();
    }
}
