package io.kvcache.server.config;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.kvcache.tiers.options.StagingLimits;
import java.util.Map;
import org.junit.jupiter.api.Test;

final class StagingSettingsTest {

    private static StagingLimits read(String memory) throws ConfigException {
        return new ConfigReader(new HostResources(8L << 30, 2), Map.of())
                .read(new ConfigReader.Source("f", "memory: {" + memory + "}"), Map.of())
                .memory()
                .staging();
    }

    @Test
    void givenSizes_whenRead_thenTheLimitsOfOneClientAndOfAll() throws Exception {
        assertThat(read("")).isEqualTo(StagingLimits.DEFAULTS);
        assertThat(read("staging: 1GiB")).isEqualTo(new StagingLimits(64 << 20, 1 << 30));
        assertThat(read("staging: 32MiB"))
                .as("no client gets more than all")
                .isEqualTo(new StagingLimits(32 << 20, 32 << 20));
        assertThat(read("staging: 32MiB, client_staging: 8MiB")).isEqualTo(new StagingLimits(8 << 20, 32 << 20));
        assertThat(read("staging: 0")).isEqualTo(StagingLimits.NONE);
    }

    @Test
    void givenSizesThatDoNotGoTogether_whenRead_thenTheyAreNamed() {
        for (String wrong : new String[] {"client_staging: 1GiB", "client_staging: 1KiB", "client_staging: 0"}) {
            assertThatThrownBy(() -> read(wrong))
                    .isInstanceOf(ConfigException.class)
                    .hasMessageContaining("memory.client_staging is ")
                    .hasMessageContaining("allowed: 4096 to");
        }
    }
}
