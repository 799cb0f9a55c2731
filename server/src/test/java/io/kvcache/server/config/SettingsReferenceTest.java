package io.kvcache.server.config;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;

/// The reference has every setting, and the document is the reference.
final class SettingsReferenceTest {

    @Test
    void givenTheDocument_whenCompared_thenItIsWhatTheCommandPrints() throws IOException {
        assertThat(Files.readString(Path.of("../docs/configuration.md")))
                .as("docs/configuration.md: write it anew by ./kvcache config settings > docs/configuration.md")
                .isEqualTo(SettingsReference.toMarkdown());
    }

    @Test
    void givenTheRows_whenRead_thenTypeAndDefaultAreTheCodes() {
        assertThat(SettingsReference.rows())
                .contains(row("memory.host_bytes", "size", "`8GiB`"))
                .contains(row("network.loops", "a whole number, 1 to 1024", "`8`"))
                .contains(row("admission", "always, second-hit, value", "`second-hit`"))
                .contains(row("tenants[].prefixes", "list of text", "none"))
                .contains(row("shutdown.drain", "time", "`25s`"));
    }

    private static SettingsReference.Row row(String name, String takes, String defaultText) {
        return new SettingsReference.Row(
                name,
                takes,
                defaultText,
                SettingsReference.rows().stream()
                        .filter(each -> each.name().equals(name))
                        .findFirst()
                        .orElseThrow()
                        .meaning());
    }
}
