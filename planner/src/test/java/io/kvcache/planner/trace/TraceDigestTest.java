package io.kvcache.planner.trace;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.planner.trace.TraceReader.MalformedLine;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

final class TraceDigestTest {

    private static String digest(String name) throws IOException {
        TraceSource source = TraceSource.parse(name);
        return TraceDigest.of(source, source.load(new TraceReader(MalformedLine.Handling.REFUSE, _ -> {})));
    }

    @Test
    void givenAFile_whenDigested_thenThatOfItsBytes(@TempDir Path folder) throws IOException {
        Path file = Files.writeString(folder.resolve("mine.jsonl"), "{\"tokens\": [1, 2, 3]}\n");
        assertThat(digest(file.toString()))
                .isEqualTo("877cccd265363c6a859518f5c6b2a9c58cbee2cee7d247f55d96e2adbb4505ab")
                .isEqualTo(TraceDigest.ofFile(file));
    }

    @Test
    void givenGeneratedTraces_whenDigested_thenTheSameForTheSameRequestsAndOthersForOtherSeeds() throws IOException {
        String name = "agents:1:requests=50";
        assertThat(digest(name)).matches("[0-9a-f]{64}").isEqualTo(digest(name));
        assertThat(digest("agents:requests=50"))
                .as("another name of the same trace")
                .isEqualTo(digest(name));
        assertThat(digest("agents:2:requests=50")).isNotEqualTo(digest(name));
    }
}
