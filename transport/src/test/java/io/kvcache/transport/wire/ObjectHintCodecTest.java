package io.kvcache.transport.wire;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.kvcache.core.ObjectHint;
import io.kvcache.core.RequestKind;
import io.kvcache.core.RequestLabel;
import io.kvcache.transport.net.RecordingSink;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.Test;

final class ObjectHintCodecTest {

    private static final List<byte[]> KEYS = List.of(new byte[] {1}, new byte[4096]);

    private static BodyReader reader(BodyWriter written) throws ProtocolException {
        byte[] frame = RecordingSink.bytes(written.request(MessageType.HINT_OBJECTS, 1, 0));
        return RecordingSink.frames(frame).getFirst().reader();
    }

    @Test
    void givenEachHint_whenWrittenAndRead_thenItIsTheSame() throws ProtocolException {
        List<ObjectHint> hints = List.of(
                new ObjectHint.Expect(Duration.ofNanos(5)),
                new ObjectHint.Pin(Duration.ofNanos(Long.MAX_VALUE)),
                new ObjectHint.Forget(),
                new ObjectHint.Label(new RequestLabel(RequestKind.BATCH, 7, 2, false)),
                new ObjectHint.Weigh(51 / 255f),
                new ObjectHint.Expire(Duration.ofNanos(9)));
        for (ObjectHint hint : hints) {
            BodyWriter to = new BodyWriter();
            HintCodec.write(hint, KEYS, to);
            HintCodec.DecodedObjectHint decodedObjectHint = HintCodec.readObjects(reader(to));
            assertThat(decodedObjectHint.hint()).isEqualTo(hint);
            assertThat(decodedObjectHint.keys()).containsExactlyElementsOf(KEYS);
        }
    }

    @Test
    void givenAKindOfALaterVersion_whenRead_thenItIsNoneAndItsKeysAreNotLookedFor() throws ProtocolException {
        HintCodec.DecodedObjectHint decodedObjectHint = HintCodec.readObjects(
                reader(new BodyWriter().i32(3).i32(9).i32(0).i64(0).i32(1)));
        assertThat(decodedObjectHint.hint()).isNull();
        assertThat(decodedObjectHint.keys()).isEmpty();
    }

    @Test
    void givenKeysThatCannotBe_whenRead_thenTheyAreRefusedWithWhatMay() {
        assertThatThrownBy(() -> HintCodec.readObjects(
                        reader(new BodyWriter().i32(8193).i32(2).i32(0).i64(0))))
                .isInstanceOf(ProtocolException.class)
                .hasMessage("keys = 8193; allowed: 0 to 8192");
        assertThatThrownBy(() -> HintCodec.readObjects(
                        reader(new BodyWriter().i32(1).i32(2).i32(0).i64(0).i32(0))))
                .isInstanceOf(ProtocolException.class)
                .hasMessage("key bytes = 0; allowed: 1 to 4096");
        assertThatThrownBy(() -> HintCodec.readObjects(
                        reader(new BodyWriter().i32(2).i32(2).i32(0).i64(0).i32(4097))))
                .isInstanceOf(ProtocolException.class)
                .hasMessage("key bytes = 4097; allowed: 1 to 4096");
    }
}
