package io.kvcache.transport.client;

import io.kvcache.core.LocalKvCache;
import io.kvcache.tiers.TieredKvCache;
import java.io.IOException;
import java.nio.file.Path;

/// Another JVM of a test: a server whose memory is on a fabric. It says its address, and ends with its input.
final class UcxTestProcess {

    private UcxTestProcess() {}

    /// @param arguments the transports of UCX, and a folder for shared memory
    @SuppressWarnings("SystemOut") // that is how a child speaks
    public static void main(String[] arguments) throws IOException {
        try (LocalKvCache store = TieredKvCache.builder()
                        .hostBytes(128 << 20)
                        .prefaultInBackground(false)
                        .shareMemory(Path.of(arguments[1]))
                        .build();
                UcxServer server = UcxServer.open(store, arguments[0])) {
            System.out.println(server.address());
            System.in.read();
        }
    }
}
