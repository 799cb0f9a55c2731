package io.kvcache.server.lm;

import java.util.List;
import java.util.Random;

/// Random requests of `lm://`, some of them malformed.
public final class LmRequestGenerator {

    private static final List<LmTestClient> CLIENTS =
            List.of(new LmTestClient("v0"), new LmTestClient("v1a"), new LmTestClient("v1b"));

    /// Changes only these first bytes of a head; the rest is the key's padding.
    private static final int CHANGED_BYTES = 40;

    private LmRequestGenerator() {}

    /// A client of one of the three times.
    static LmTestClient client(Random random) {
        return CLIENTS.get(random.nextInt(CLIENTS.size()));
    }

    /// One of a client's, now and then with a byte changed.
    static byte[] randomFrame(LmTestClient client, Random random) {
        byte[] frame = request(client, random);
        if (random.nextInt(4) == 0) {
            frame[random.nextInt(CHANGED_BYTES)] = (byte) random.nextInt(256);
        }
        return frame;
    }

    /// One of any client's, now and then with a byte changed.
    public static byte[] randomFrame(Random random) {
        return randomFrame(client(random), random);
    }

    /// A request as it should be.
    public static byte[] request(Random random) {
        return request(client(random), random);
    }

    private static byte[] request(LmTestClient client, Random random) {
        String key = "k" + random.nextInt(10);
        return random.nextBoolean()
                ? client.put(key, LmTestClient.META, new byte[random.nextInt(3000)])
                : client.ask(random.nextInt(5) + 1, key);
    }
}
