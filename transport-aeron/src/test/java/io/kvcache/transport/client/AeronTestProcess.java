package io.kvcache.transport.client;

import io.kvcache.core.LocalKvCache;
import io.kvcache.tiers.TieredKvCache;
import io.kvcache.transport.aeron.AeronEndpoint;
import io.kvcache.transport.endpoint.EndpointOptions;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;

/// Another JVM of a test that speaks Aeron: a server, or a client of another carrier that tries it.
final class AeronTestProcess {

    private AeronTestProcess() {}

    /// `serve aeron:…`, or `plain ADDRESS aeron:…`
    public static void main(String[] arguments) throws IOException {
        BufferedReader told = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        if (arguments[0].equals("serve")) {
            serve(arguments[1], told);
        } else {
            plain(arguments[1], arguments[2], told);
        }
    }

    @SuppressWarnings("SystemOut")
    private static void serve(String address, BufferedReader told) throws IOException {
        try (LocalKvCache store = TieredKvCache.builder()
                        .hostBytes(128 << 20)
                        .prefaultInBackground(false)
                        .build();
                AeronEndpoint endpoint = AeronEndpoint.open(store, address, EndpointOptions.DEFAULTS)) {
            System.out.println(endpoint.address());
            told.readLine();
        }
    }

    /// Uses one address, and when it is told to, says what becomes of the other two ways to use Aeron.
    @SuppressWarnings("SystemOut")
    private static void plain(String address, String aeron, BufferedReader told) throws IOException {
        try (RemoteKvCache cache = RemoteKvCache.connect(address)) {
            cache.register(TestBlocks.SPACE);
            System.out.println("verified " + TestBlocks.verified(cache, TestBlocks.chain(1, 10)));
            told.readLine();
            try {
                RemoteKvCache.connect(aeron).close();
            } catch (IllegalStateException refused) {
                System.out.println("connect: " + refused.getMessage());
            }
            try {
                AeronEndpoint.open(cache, aeron, EndpointOptions.DEFAULTS).close();
            } catch (IllegalStateException refused) {
                System.out.println("open: " + refused.getMessage());
            }
            System.out.println("verified " + TestBlocks.verified(cache, TestBlocks.chain(1, 10)));
        }
    }
}
