package io.kvcache.server.resp;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

final class GlobTest {

    private static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.ISO_8859_1);
    }

    private static boolean matches(String pattern, String text) throws CommandException {
        return new Glob(bytes(pattern)).matches(bytes(text));
    }

    @ParameterizedTest
    @CsvSource(
            quoteCharacter = '"',
            value = {
                "*, anything, true",
                "*, \"\", true",
                "a*c, abbc, true",
                "a*c, abbd, false",
                "a?c, abc, true",
                "a?c, ac, false",
                "[a-c]x, bx, true",
                "[c-a]x, bx, true",
                "[^a-c]x, bx, false",
                "[^a-c]x, dx, true",
                "[]x, x, false",
                "[ab, b, true",
                "[a\\]]x, ]x, true",
                "\\*, *, true",
                "\\*, a, false",
                "a\\, a\\, true",
                "key*, ke, false",
                "\"\", \"\", true",
                "\"\", a, false",
            })
    void givenAPattern_whenATextIsHeldAgainstIt_thenItMatchesAsRedisDoes(String pattern, String text, boolean matches)
            throws CommandException {
        assertThat(matches(pattern, text)).isEqualTo(matches);
    }

    /// Matches literals, `?` and `*` by the rule as written.
    private static boolean naive(String pattern, int p, String text, int t) {
        if (p == pattern.length()) {
            return t == text.length();
        }
        if (pattern.charAt(p) == '*') {
            return naive(pattern, p + 1, text, t) || (t < text.length() && naive(pattern, p, text, t + 1));
        }
        return t < text.length()
                && (pattern.charAt(p) == '?' || pattern.charAt(p) == text.charAt(t))
                && naive(pattern, p + 1, text, t + 1);
    }

    private static String random(Random random, String of, int most) {
        StringBuilder text = new StringBuilder();
        for (int left = random.nextInt(most + 1); left > 0; left--) {
            text.append(of.charAt(random.nextInt(of.length())));
        }
        return text.toString();
    }

    @Test
    void givenRandomPatterns_whenMatched_thenAsTheRuleSays() throws CommandException {
        for (int seed = 0; seed < 20_000; seed++) {
            Random random = new Random(seed);
            String pattern = random(random, "ab?*", 9);
            String text = random(random, "ab", 12);
            assertThat(matches(pattern, text))
                    .as("seed %d: %s, %s", seed, pattern, text)
                    .isEqualTo(naive(pattern, 0, text, 0));
        }
    }

    @Test
    void givenTheLongestPattern_whenMatched_thenItEndsAndALongerOneIsRefused() throws CommandException {
        byte[] stars = bytes("*a".repeat(Glob.MAX_BYTES / 2));
        byte[] text = new byte[4096];
        Arrays.fill(text, (byte) 'a');

        assertThat(new Glob(stars).matches(text)).isTrue();
        assertThat(new Glob(bytes("*a".repeat(500) + "b")).matches(text)).isFalse();
        assertThat(new Glob(stars).size()).isEqualTo(Glob.MAX_BYTES);
        assertThatThrownBy(() -> new Glob(new byte[Glob.MAX_BYTES + 1]))
                .isInstanceOf(CommandException.class)
                .hasMessage("ERR the pattern has 1025 bytes; it takes up to 1024");
    }
}
