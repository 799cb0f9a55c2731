package io.kvcache.server.lm;

import java.util.Random;

/// Random requests of `lm://`, some of them malformed.
public final class LmRequestGenerator {

    static final LmTestClient CLIENT = new LmTestClient();

    /// Changes only these first bytes of a head; the rest is the key's padding.
    private static final int CHANGED_BYTES = 40;

    private LmRequestGenerator() {}

    /// One that has a byte changed now and then.
    public static byte[] randomFrame(Random random) {
        byte[] frame = request(random);
        if (random.nextInt(4) == 0) {
            frame[random.nextInt(CHANGED_BYTES)] = (byte) random.nextInt(256);
        }
        return frame;
    }

    /// A request as it should be.
    public static byte[] request(Random random) {
        String key = "k" + random.nextInt(10);
        return random.nextBoolean()
                ? CLIENT.put(key, LmTestClient.META, new byte[random.nextInt(3000)])
                : CLIENT.ask(random.nextInt(5) + 1, key);
    }
}
