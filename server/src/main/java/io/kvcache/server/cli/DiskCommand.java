package io.kvcache.server.cli;

import io.kvcache.server.client.HttpApiClient;
import java.io.IOException;
import java.io.PrintWriter;
import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;
import tools.jackson.databind.JsonNode;

/// `kvcache disk list` and `kvcache disk reopen`.
@Command(name = "disk", description = "Show a server's disks, or open one again.", mixinStandardHelpOptions = true)
final class DiskCommand implements Runnable {

    @Spec
    private CommandSpec spec = CommandSpec.create();

    @Override
    public void run() {
        throw new ParameterException(spec.commandLine(), "kvcache disk takes a subcommand: list or reopen");
    }

    @Command(name = "list", description = "Show the disks of a server.", mixinStandardHelpOptions = true)
    int list(@Mixin ConnectionOptions server) throws IOException {
        PrintWriter out = spec.commandLine().getOut();
        try (HttpApiClient client = server.httpClient()) {
            for (JsonNode disk : client.get("/v1/disks").get("disks")) {
                out.println(formatDisk(disk));
            }
        }
        out.flush();
        return 0;
    }

    @Command(
            name = "reopen",
            description = "Reopen a disk that was taken out, or that has become read-only.",
            mixinStandardHelpOptions = true)
    int reopen(
            @Mixin ConnectionOptions server,
            @Parameters(paramLabel = "DISK", description = "The disk's number or directory.") String disk)
            throws IOException {
        try (HttpApiClient client = server.httpClient()) {
            String name = URLEncoder.encode(disk, StandardCharsets.UTF_8).replace("+", "%20");
            PrintWriter out = spec.commandLine().getOut();
            out.println(formatDisk(client.post("/v1/disks/" + name + "/reopen")));
            out.flush();
            return 0;
        }
    }

    private static String formatDisk(JsonNode disk) {
        String cause = disk.get("cause").stringValue();
        return disk.get("number").intValue() + " " + disk.get("name").stringValue() + " is "
                + disk.get("state").stringValue().replace('_', ' ')
                + (cause.isEmpty() ? "" : ": " + cause);
    }
}
