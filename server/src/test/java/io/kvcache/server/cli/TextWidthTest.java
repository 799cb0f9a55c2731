package io.kvcache.server.cli;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import java.io.ByteArrayOutputStream;
import java.io.PrintWriter;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

final class TextWidthTest {

    @Test
    void givenALongLine_whenWrapped_thenItBreaksAtBlanksAndHangs() {
        assertThat(TextWidth.wrap("  one two three four five", 12))
                .isEqualTo("  one two\n    three\n    four\n    five");
        assertThat(TextWidth.wrap("short", 80)).isEqualTo("short");
        assertThat(TextWidth.wrap("kernel   6.1 or later is needed", 9, 20))
                .isEqualTo("kernel   6.1 or\n         later is\n         needed");
    }

    @Test
    void givenAWordLongerThanALine_whenWrapped_thenItStaysWhole() {
        String path = "/a/path/that/is/to/be/copied/as/it/is";

        assertThat(TextWidth.wrap("see " + path + " there", 20)).isEqualTo("see\n  " + path + "\n  there");
    }

    @Test
    void givenNoTerminal_whenAsked_thenEightyUnlessColumnsSaysOtherwise() {
        assertThat(TextWidth.columns(null, false)).isEqualTo(80);
        assertThat(TextWidth.columns("100", false)).isEqualTo(100);
        assertThat(TextWidth.columns("300", false)).isEqualTo(110);
        assertThat(TextWidth.columns("7", false)).isEqualTo(55);
        assertThat(TextWidth.columns("wide", false)).isEqualTo(80);
    }

    @Test
    void givenAnError_whenPrinted_thenItsLinesFitAndAStackTracePasses() {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        try (PrintWriter errors = TextWidth.wrapping(bytes, 80)) {
            errors.println("kvcache: " + "word ".repeat(40));
            new IllegalStateException("message of a bug ".repeat(10)).printStackTrace(errors);
        }

        String[] lines = bytes.toString(UTF_8).split("\n", -1);
        assertThat(lines[0]).hasSizeLessThanOrEqualTo(80).startsWith("kvcache: word");
        assertThat(lines[1]).startsWith("  word");
        assertThat(bytes.toString(UTF_8)).contains("message of a bug ".repeat(10));
    }

    @ParameterizedTest
    @ValueSource(strings = {"", "serve", "top", "doctor", "config", "fsck", "events", "put"})
    void givenACommand_whenHelpIsPiped_thenNoLineIsLongerThanEightyColumns(String command) {
        CliRunner.CliResult help = command.isEmpty() ? CliRunner.run("help") : CliRunner.run("help", command);

        assertThat(help.out().lines())
                .isNotEmpty()
                .allSatisfy(line -> assertThat(line).hasSizeLessThanOrEqualTo(80));
    }
}
