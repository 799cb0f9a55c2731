package io.kvcache.spring;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Objects;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.assertj.core.api.SoftAssertions;
import org.junit.jupiter.api.Test;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

/// Compares docs/spring.md with the metadata that an editor shows.
final class DocumentationTest {

    @Test
    void givenTheMetadata_whenComparedWithThePage_thenEachPropertyHasItsDefaultAndMeaningThere() throws IOException {
        String page = Files.readString(Path.of("../docs/spring.md"));
        JsonNode metadata;
        try (InputStream json =
                KvCacheProperties.class.getResourceAsStream("/META-INF/spring-configuration-metadata.json")) {
            metadata = JsonMapper.builder().build().readTree(Objects.requireNonNull(json));
        }
        SoftAssertions all = new SoftAssertions();
        int properties = 0;
        for (JsonNode each : metadata.path("properties")) {
            String name = each.path("name").asString();
            if (name.startsWith("kvcache.")) {
                properties++;
                all.assertThat(each.path("description").asString()).as(name).isNotBlank();
                String row = "| `%s` | %s | %s |"
                        .formatted(
                                name,
                                each.path("defaultValue").asString(),
                                each.path("description").asString());
                all.assertThat(page).as("docs/spring.md").contains(row);
            }
        }
        all.assertAll();
        Matcher version = Pattern.compile("<springboot.version>([^<]+)</springboot.version>")
                .matcher(Files.readString(Path.of("../pom.xml")));
        assertThat(version.find()).isTrue();
        assertThat(page).as("the pom of docs/spring.md").contains("<version>" + version.group(1) + "</version>");
        assertThat(properties).isEqualTo(KvCacheProperties.class.getRecordComponents().length);
    }
}
