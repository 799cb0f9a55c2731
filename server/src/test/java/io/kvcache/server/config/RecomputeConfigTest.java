package io.kvcache.server.config;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.kvcache.core.cost.PrefillCost;
import io.kvcache.core.identity.ModelPreset;
import java.time.Duration;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/// The settings of engines, and the rejected ones.
final class RecomputeConfigTest {

    private static RecomputeConfig read(String yaml) throws ConfigException {
        return new ConfigReader(HostResources.detect(), Map.of())
                .read(new ConfigReader.Source("f", yaml), Map.of())
                .disks()
                .recompute();
    }

    @Test
    void givenNothing_whenRead_thenClientsAreToldOfEverything() throws ConfigException {
        assertThat(read("")).isEqualTo(RecomputeConfig.defaults());
        assertThat(RecomputeConfig.defaults().cost()).isNull();
    }

    @Test
    void givenARate_whenRead_thenAllTokensCostTheSame() throws ConfigException {
        assertThat(read("prefill: { tokens_per_second: 20000, chunk_tokens: 512, deadline: 700ms }"))
                .isEqualTo(new RecomputeConfig(PrefillCost.ofTokenRate(20_000), 512, Duration.ofMillis(700)));
    }

    @Test
    void givenAModel_whenRead_thenItsCost() throws ConfigException {
        assertThat(read("prefill: { model: llama-3-8b, flops: 5e14 }").cost())
                .isEqualTo(PrefillCost.of(ModelPreset.LLAMA_3_8B, 5e14));
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "prefill: { tokens_per_second: 0 } | above 0",
                "prefill: { tokens_per_second: fast } | above 0",
                "prefill: { model: gpt } | llama-3-8b",
                "prefill: { model: llama-3-8b } | prefill takes",
                "prefill: { flops: 1e15 } | prefill takes",
                "prefill: { tokens_per_second: 1, model: llama-3-8b, flops: 1e15 } | prefill takes",
                "prefill: { chunk_tokens: 512 } | does nothing without prefill.tokens_per_second",
                "prefill: { deadline: 1s } | prefill.deadline does nothing without",
                "prefill: { tokens_per_second: 1, chunk_tokens: 0 } | prefill.chunk_tokens is 0",
                "prefill: { tokens_per_second: 1, deadline: 2h } | prefill.deadline",
            })
    void givenWhatIsNotTaken_whenRead_thenItIsNamed(String yaml, String message) {
        assertThatExceptionOfType(ConfigException.class)
                .isThrownBy(() -> read(yaml))
                .satisfies(
                        wrong -> assertThat(String.join("; ", wrong.problems())).contains(message));
    }
}
