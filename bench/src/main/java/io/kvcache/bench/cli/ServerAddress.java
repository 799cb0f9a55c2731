package io.kvcache.bench.cli;

import io.kvcache.bench.client.StoreClient;
import io.kvcache.bench.client.WebClient;
import java.io.IOException;
import picocli.CommandLine.Option;

/// Which server a command asks.
final class ServerAddress {

    @Option(names = "--host", paramLabel = "HOST", description = "Where the server is. Default: ${DEFAULT-VALUE}.")
    private String host = "127.0.0.1";

    @Option(names = "--port", paramLabel = "PORT", description = "Its port. Default: ${DEFAULT-VALUE}.")
    private int port = 7379;

    WebClient web() {
        return new WebClient(host, port);
    }

    StoreClient connect() throws IOException {
        return new StoreClient(host, port);
    }
}
