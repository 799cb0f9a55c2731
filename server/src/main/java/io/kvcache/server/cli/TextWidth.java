package io.kvcache.server.cli;

import static java.nio.charset.StandardCharsets.US_ASCII;

import java.io.IOException;
import java.io.OutputStream;
import java.io.PrintWriter;
import java.util.Arrays;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/// Fits text for people into the terminal, and into 80 columns where output is piped. A row of a table is not text.
public final class TextWidth {

    private static final int PIPED = 80;

    /// What picocli needs for two columns of options.
    private static final int MIN = 55;

    /// Longer lines are hard to read, however wide the terminal.
    private static final int MAX = 110;

    private TextWidth() {}

    /// Returns the columns that text gets. `COLUMNS` takes the place of what the terminal says.
    public static int columns() {
        return columns(System.getenv("COLUMNS"), ProgressLine.isOnTerminal());
    }

    static int columns(@Nullable String given, boolean terminal) {
        int said = given != null && given.matches("[1-9]\\d{0,4}")
                ? Integer.parseInt(given)
                : terminal ? terminalColumns() : PIPED;
        return Math.clamp(said, MIN, MAX);
    }

    /// Asks the terminal by `stty`, as the JDK cannot; 80 where that does not answer.
    private static int terminalColumns() {
        try {
            Process asked = new ProcessBuilder("stty", "size")
                    .redirectInput(ProcessBuilder.Redirect.INHERIT)
                    .redirectError(ProcessBuilder.Redirect.DISCARD)
                    .start();
            String[] answer = new String(asked.getInputStream().readAllBytes(), US_ASCII)
                    .strip()
                    .split(" ", -1);
            boolean said = asked.waitFor(1, TimeUnit.SECONDS) && answer.length == 2 && answer[1].matches("[1-9]\\d*");
            return said ? Integer.parseInt(answer[1]) : PIPED;
        } catch (IOException absent) {
            return PIPED;
        } catch (InterruptedException stopped) {
            Thread.currentThread().interrupt();
            return PIPED;
        }
    }

    /// Breaks lines at blanks. What follows a break is indented as its line is, and by two more.
    public static String wrap(String text, int columns) {
        return text.lines()
                .map(line -> wrap(line, line.length() - line.stripLeading().length() + 2, columns))
                .collect(Collectors.joining("\n"));
    }

    /// Breaks a line at blanks. A word that is longer than a line stays whole, so that it can be copied.
    ///
    /// @param hanging blanks before what follows a break
    public static String wrap(String line, int hanging, int columns) {
        if (line.length() <= columns) {
            return line;
        }
        int indent = line.length() - line.stripLeading().length();
        StringBuilder text = new StringBuilder();
        StringBuilder row = new StringBuilder(" ".repeat(indent));
        boolean first = true;
        for (String word : Arrays.asList(line.strip().split(" ", -1))) {
            if (!first && row.length() + 1 + word.length() > columns) {
                text.append(row.toString().stripTrailing()).append('\n');
                row = new StringBuilder(" ".repeat(hanging));
                first = true;
            }
            row.append(first ? "" : " ").append(word);
            first = false;
        }
        return text.append(row).toString();
    }

    /// Standard error of the commands: each line that is printed is text. Stack traces and progress pass as they are.
    static PrintWriter wrapping(OutputStream out, int columns) {
        return new PrintWriter(out, true) {
            @Override
            public void println(String line) {
                super.println(wrap(line, columns));
            }
        };
    }
}
