package io.kvcache.server.resp;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import java.nio.charset.StandardCharsets;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class IntegerCodecTest {

    @ParameterizedTest
    @ValueSource(longs = {0, 1, -1, 9, 10, 99, 100, -100, 1_048_576, Long.MAX_VALUE, Long.MIN_VALUE, -987_654_321})
    void givenANumber_whenWritten_thenItsDecimalText(long number) {
        ByteBuf out = Unpooled.buffer();
        IntegerCodec.write(number, out);
        assertThat(out.toString(StandardCharsets.US_ASCII)).isEqualTo(Long.toString(number));
    }

    @ParameterizedTest
    @ValueSource(strings = {"01", "00", "-0", "-01", "+1", "", "-", " 1", "9223372036854775808"})
    void givenATextThatNoNumberIsWrittenAs_whenParsed_thenItIsRefused(String text) {
        assertThatThrownBy(() -> IntegerCodec.parse(text.getBytes(StandardCharsets.US_ASCII)))
                .isInstanceOf(CommandException.class);
    }
}
