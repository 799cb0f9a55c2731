package io.kvcache.engines.generator;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import java.util.Arrays;
import org.junit.jupiter.api.Test;

final class Utf8StreamDecoderTest {

    private final Utf8StreamDecoder decoder = new Utf8StreamDecoder();

    @Test
    void givenACharacterInPieces_whenAdded_thenItComesWithItsLastByte() {
        StringBuilder pieces = new StringBuilder();
        for (byte each : "aé€😀".getBytes(UTF_8)) {
            String piece = decoder.add(each);
            pieces.append(piece.isEmpty() ? "." : piece);
        }
        assertThat(pieces.toString()).isEqualTo("a.é..€...😀");
        assertThat(decoder.flush()).isEmpty();
    }

    @Test
    void givenAPieceThatEndsWithinACharacter_whenAdded_thenWhatIsCompleteComesAtOnce() {
        byte[] bytes = "x€y😀z".getBytes(UTF_8);
        for (int cut = 0; cut <= bytes.length; cut++) {
            String first = decoder.add(Arrays.copyOf(bytes, cut));
            String second = decoder.add(Arrays.copyOfRange(bytes, cut, bytes.length));
            assertThat(first + second + decoder.flush()).isEqualTo("x€y😀z");
        }
    }

    @Test
    void givenMalformedBytes_whenAdded_thenTheyAreReplacedAndTheRestIsKept() {
        assertThat(decoder.add((byte) 0xff, (byte) 'a')).isEqualTo("\ufffda");
        assertThat(decoder.add((byte) 0xc3)).isEmpty();
        assertThat(decoder.add((byte) 'b')).isEqualTo("\ufffdb");
    }

    @Test
    void givenAnIncompleteCharacter_whenFlushed_thenItIsReplacedAndAnotherTextBegins() {
        assertThat(decoder.add((byte) 0xe2, (byte) 0x82)).isEmpty();
        assertThat(decoder.flush()).isEqualTo("\ufffd");
        assertThat(decoder.add("é".getBytes(UTF_8))).isEqualTo("é");
    }
}
