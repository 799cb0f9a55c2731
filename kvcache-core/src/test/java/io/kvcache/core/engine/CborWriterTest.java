package io.kvcache.core.engine;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.HexFormat;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/// Examples of RFC 8949, appendix A.
class CborWriterTest {

    @ParameterizedTest
    @CsvSource({
        "0, 00",
        "23, 17",
        "24, 1818",
        "255, 18ff",
        "256, 190100",
        "1000, 1903e8",
        "65535, 19ffff",
        "65536, 1a00010000",
        "1000000, 1a000f4240",
        "4294967295, 1affffffff",
        "1000000000000, 1b000000e8d4a51000",
        "9223372036854775807, 1b7fffffffffffffff",
        "-1, 20",
        "-24, 37",
        "-25, 3818",
        "-100, 3863",
        "-1000, 3903e7",
        "-9223372036854775808, 3b7fffffffffffffff"
    })
    void givenAnInteger_whenWritten_thenItTakesItsShortestForm(long value, String hex) {
        assertThat(hex(new CborWriter().integer(value))).isEqualTo(hex);
    }

    @Test
    void givenTextsBytesArraysAndNull_whenWritten_thenTheyFollowTheirHeads() {
        assertThat(hex(new CborWriter().text("text", ""))).isEqualTo("60");
        assertThat(hex(new CborWriter().text("text", "\u6c34"))).isEqualTo("63e6b0b4");
        assertThat(hex(new CborWriter().bytes(new byte[] {1, 2, 3, 4}))).isEqualTo("4401020304");
        assertThat(hex(new CborWriter().nullValue())).isEqualTo("f6");
        assertThat(hex(new CborWriter().array(2).integer(1).array(0))).isEqualTo("820180");
    }

    @Test
    void givenMoreThanTheBufferHolds_whenWritten_thenItGrows() {
        String hex = hex(new CborWriter().bytes(new byte[1000]).integer(7));
        assertThat(hex).isEqualTo("5903e8" + "00".repeat(1000) + "07");
    }

    private static String hex(CborWriter cbor) {
        return HexFormat.of().formatHex(cbor.toBytes());
    }
}
