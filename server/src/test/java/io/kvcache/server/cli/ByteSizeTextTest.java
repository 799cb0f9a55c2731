package io.kvcache.server.cli;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

final class ByteSizeTextTest {

    @ParameterizedTest
    @CsvSource({
        "4096, 4096, 4 KiB",
        "1b, 1, 1 B",
        "64GiB, 68719476736, 64 GiB",
        "1.5 TiB, 1649267441664, 1.5 TiB",
        "2tb, 2000000000000, 1.8 TiB",
        "900MB, 900000000, 858 MiB",
    })
    void givenSize_whenParsed_thenBytesAndAShortForm(String text, long bytes, String shown) {
        assertThat(ByteSizeText.parse(text)).isEqualTo(new ByteSizeText(bytes)).hasToString(shown);
    }

    @ParameterizedTest
    @ValueSource(strings = {"", "GiB", "-5GiB", "0", "0.2B", "5 apples", "1e9", "9999999999TiB", "1,5GiB"})
    void givenSomethingElse_whenParsed_thenTheErrorNamesItAndTheForms(String text) {
        assertThatThrownBy(() -> ByteSizeText.parse(text))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("'" + text + "' is not a size")
                .hasMessageContaining("KiB, MiB, GiB, TiB");
    }
}
