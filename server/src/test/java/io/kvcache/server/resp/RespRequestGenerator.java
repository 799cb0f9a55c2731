package io.kvcache.server.resp;

import java.io.ByteArrayOutputStream;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Random;

/// Commands of Redis that nobody means, some of them not even commands.
public final class RespRequestGenerator {

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
            "INCR",
            "DECRBY",
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
            "MULTI",
            "EXEC",
            "DISCARD",
            "WATCH",
            "GETDEL",
            "GETEX",
            "TIME",
            "ACL",
            "KV.HINT",
            "KV.PREFIX",
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
            "PIN",
            "EXPECT",
            "EXPIRE",
            "SETNAME",
            "INFO",
            "k",
            "xkv_bytes",
            "xmetadata",
            "",
            "\r\n",
            "\0\377");

    private static final List<String> HINTS = List.of(
            "EXPECT",
            "RETURN 5",
            "FORGET",
            "PIN 1000",
            "UNPIN",
            "LABEL chat later",
            "SESSION agent 3 1 more",
            "SESSION agent 3 2 last",
            "WEIGH 0.5",
            "EXPIRE 0");

    private RespRequestGenerator() {}

    /// One of them, now and then with a few bytes changed.
    public static byte[] randomFrame(Random random) {
        byte[] frame = frame(random);
        if (random.nextInt(5) == 0) {
            mutate(frame, random);
        }
        return frame;
    }

    /// A command in its usual form.
    public static byte[] command(Random random) {
        return EmbeddedRespServer.frame(words(random));
    }

    private static byte[] frame(Random random) {
        if (random.nextInt(10) == 0) {
            byte[] noise = new byte[1 + random.nextInt(200)];
            random.nextBytes(noise);
            return noise;
        }
        byte[][] words = words(random);
        return random.nextInt(10) == 0 ? line(words) : EmbeddedRespServer.frame(words);
    }

    private static byte[][] words(Random random) {
        int count = 1 + random.nextInt(6);
        byte[][] words = new byte[count][];
        words[0] = ascii(NAMES.get(random.nextInt(NAMES.size())));
        if (random.nextInt(40) == 0) {
            return hint(random);
        }
        for (int i = 1; i < count; i++) {
            words[i] = random.nextInt(4) == 0
                    ? new byte[random.nextInt(20_000)]
                    : ascii(WORDS.get(random.nextInt(WORDS.size())));
        }
        return words;
    }

    /// KV.HINT in a form that is taken, with one word in ten another one.
    private static byte[][] hint(Random random) {
        String[] words = ("KV.HINT " + HINTS.get(random.nextInt(HINTS.size())) + " k xkv_bytes").split(" ", -1);
        byte[][] hint = new byte[words.length][];
        for (int i = 0; i < words.length; i++) {
            hint[i] = ascii(random.nextInt(10) == 0 ? WORDS.get(random.nextInt(WORDS.size())) : words[i]);
        }
        return hint;
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
