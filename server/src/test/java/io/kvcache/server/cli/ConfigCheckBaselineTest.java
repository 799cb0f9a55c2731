package io.kvcache.server.cli;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.baseline.Baseline;
import io.kvcache.server.access.PasswordHash;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.SecureRandom;
import java.util.List;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// The output of `config check` for a file with most settings.
@Tag(Baseline.RECORDED_TAG)
final class ConfigCheckBaselineTest {

    private static final String SETTINGS = """
            tenants:
              - { name: default, password_hash: "HASH" }
              - { name: team, password_hash: "HASH", quota: 100MiB, weight: 2 }
            listeners:
              - { name: data, address: 127.0.0.1, port: 7379, protocols: [resp, http], auth: true }
              - { name: chunks, address: 127.0.0.1, port: 7380, protocols: [lm] }
              - { name: pages, address: 127.0.0.1, port: 9090, protocols: [pages], hosts: [kvcache] }
            allow_unauthenticated: [chunks, pages]
            memory: { host_bytes: 256MiB, policy: importance }
            disks: [{ directory: FOLDER/disk, bytes: 64MiB }]
            admission: value
            log: { format: json, slow: 1s, level: warning }
            shutdown: { delay: 5s, drain: 20s }
            events: { publish: "tcp://127.0.0.1:5557", without_auth: true }
            """;

    @Test
    void givenMostSettings_whenChecked_thenTheOutputIsAsRecorded(@TempDir Path folder) throws Exception {
        String hash = PasswordHash.of("secret", 1000, new SecureRandom()).toString();
        Path file = Files.writeString(
                folder.resolve("kvcache.yaml"), SETTINGS.replace("HASH", hash).replace("FOLDER", folder.toString()));
        CliRunner.CliResult cliResult = CliRunner.run("config", "check", "--config", file.toString());
        List<String> lines = (cliResult.out() + cliResult.err())
                .lines()
                .map(line -> line.replace(folder.toString(), "FOLDER"))
                .filter(line -> !line.startsWith("memory: ")) // the heap of this process, and the machine's memory
                .map(line -> line.replaceAll(", \\d+ loops$", "")) // as many as processors
                .toList();
        Baseline.compare(ConfigCheckBaselineTest.class, "config-check.txt", lines);
        assertThat(cliResult.exitCode()).isZero();
    }
}
