package io.kvcache.server.resp;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.server.net.CloseReason;
import io.kvcache.server.net.Wire;
import java.io.ByteArrayOutputStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Arrays;
import java.util.EnumSet;
import java.util.List;
import java.util.Random;
import java.util.Set;
import org.junit.jupiter.api.Test;

/// Random and mutated frames: no bug is hit, no buffer and no slot is left behind, and every connection that ends has a
/// reason.
///
/// `-Dkvcache.fuzz.frames=1000000` takes longer, `-Dkvcache.fuzz.seed=N` repeats a run.
final class RespFuzzTest {

    private static final int FRAMES = Integer.getInteger("kvcache.fuzz.frames", 50_000);
    private static final long SEED = Long.getLong("kvcache.fuzz.seed", System.nanoTime());
    private static final int FRAMES_A_CONNECTION = 20;
    private static final Set<CloseReason> EXPECTED = EnumSet.of(
            CloseReason.CLIENT,
            CloseReason.CLIENT_MID_REQUEST,
            CloseReason.QUIT,
            CloseReason.KILLED,
            CloseReason.PROTOCOL_ERROR);
    private static final List<String> NAMES = List.of(
            "SET",
            "GET",
            "MSET",
            "MGET",
            "DEL",
            "EXISTS",
            "SETEX",
            "PSETEX",
            "GETRANGE",
            "EXPIRE",
            "TTL",
            "PERSIST",
            "SCAN",
            "KEYS",
            "HELLO",
            "AUTH",
            "CLIENT",
            "CONFIG",
            "INFO",
            "COMMAND",
            "MEMORY",
            "GETSET",
            "SETNX",
            "FLUSHDB",
            "TYPE",
            "STRLEN",
            "TOUCH",
            "ECHO",
            "PING",
            "SELECT",
            "QUIT",
            "RESET",
            "CLUSTER",
            "NOSUCH");
    private static final List<String> WORDS = List.of(
            "EX",
            "PX",
            "NX",
            "XX",
            "GET",
            "KEEPTTL",
            "MATCH",
            "COUNT",
            "*",
            "[a-",
            "0",
            "-1",
            "3",
            "9223372036854775807",
            "USAGE",
            "SETNAME",
            "INFO",
            "k",
            "xkv_bytes",
            "xmetadata",
            "",
            "\r\n",
            "\0\377");

    @Test
    void givenFramesThatNobodyMeant_whenSent_thenNothingBreaksAndNothingIsLeft() {
        System.out.println("fuzz: -Dkvcache.fuzz.seed=" + SEED + " -Dkvcache.fuzz.frames=" + FRAMES);
        try (RespWire resp = new RespWire()) {
            Random random = new Random(SEED);
            for (int sent = 0; sent < FRAMES; sent += FRAMES_A_CONNECTION) {
                talk(resp, random);
            }
            for (CloseReason reason : CloseReason.values()) {
                if (!EXPECTED.contains(reason)) {
                    assertThat(resp.connections().closedCount(reason))
                            .as("%s", reason)
                            .isZero();
                }
            }
            assertThat(resp.connections().closedCount(CloseReason.PROTOCOL_ERROR))
                    .isPositive();
            assertThat(resp.protocol().commandCount()).isGreaterThan(FRAMES / 10);
            assertThat(resp.connections().openCount()).isEqualTo(1);
            assertThat(resp.wire().ask("PING\r\n")).isEqualTo("+PONG\r\n");
            resp.test().time().pass(Duration.ofMinutes(1));
            resp.test().keyspace().tick();
            resp.test().keyspace().clear();
            assertThat(resp.test().cache().stats().host().heldBytes()).isZero();
            assertThat(resp.test().cache().stats().openTables()).isZero();
        }
    }

    private static void talk(RespWire resp, Random random) {
        try (Wire wire = resp.connect()) {
            for (int i = 0; i < FRAMES_A_CONNECTION && wire.isOpen(); i++) {
                byte[] frame = frame(random);
                if (random.nextInt(5) == 0) {
                    mutate(frame, random);
                }
                int cut = random.nextInt(frame.length + 1);
                wire.send(Arrays.copyOf(frame, cut));
                wire.send(Arrays.copyOfRange(frame, cut, frame.length));
            }
            wire.bytes();
        }
    }

    private static byte[] frame(Random random) {
        if (random.nextInt(10) == 0) {
            byte[] noise = new byte[1 + random.nextInt(200)];
            random.nextBytes(noise);
            return noise;
        }
        int count = 1 + random.nextInt(6);
        byte[][] words = new byte[count][];
        words[0] = ascii(NAMES.get(random.nextInt(NAMES.size())));
        for (int i = 1; i < count; i++) {
            words[i] = random.nextInt(4) == 0
                    ? new byte[random.nextInt(20_000)]
                    : ascii(WORDS.get(random.nextInt(WORDS.size())));
        }
        return random.nextInt(10) == 0 ? line(words) : RespWire.frame(words);
    }

    private static byte[] line(byte[][] words) {
        ByteArrayOutputStream line = new ByteArrayOutputStream();
        for (byte[] word : words) {
            line.writeBytes(word);
            line.write(' ');
        }
        line.write('\n');
        return line.toByteArray();
    }

    private static void mutate(byte[] frame, Random random) {
        for (int i = 1 + random.nextInt(3); i > 0; i--) {
            int at = random.nextInt(Math.min(frame.length, 60));
            frame[at] = random.nextBoolean() ? (byte) random.nextInt(256) : (byte) ('0' + random.nextInt(10));
        }
    }

    private static byte[] ascii(String text) {
        return text.getBytes(StandardCharsets.ISO_8859_1);
    }
}
