package io.kvcache.server.zmq;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.kvcache.server.zmq.ZmqSubscriber.MsgPackDecoder;
import java.math.BigInteger;
import java.util.Arrays;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.msgpack.core.MessageBufferPacker;
import org.msgpack.core.MessagePack;

final class MsgPackDecoderTest {

    @ParameterizedTest
    @ValueSource(
            longs = {
                0,
                1,
                127,
                128,
                255,
                256,
                65_535,
                65_536,
                4_294_967_295L,
                4_294_967_296L,
                Long.MAX_VALUE,
                -1,
                -32,
                -33,
                -128,
                -129,
                -32_768,
                -32_769,
                Integer.MIN_VALUE,
                Integer.MIN_VALUE - 1L,
                Long.MIN_VALUE
            })
    void givenANumber_whenWrittenByAnother_thenItIsRead(long number) throws Exception {
        MessageBufferPacker packer = MessagePack.newDefaultBufferPacker();
        packer.packLong(number);
        assertThat(MsgPackDecoder.decode(packer.toByteArray())).isEqualTo(number);
    }

    @ParameterizedTest
    @ValueSource(ints = {0, 15, 16, 31, 32, 255, 256, 65_535, 65_536})
    void givenASize_whenWrittenByAnother_thenTextsBinariesListsAndMapsAreRead(int size) throws Exception {
        MessageBufferPacker packer = MessagePack.newDefaultBufferPacker();
        packer.packArrayHeader(4).packString("x".repeat(size));
        packer.packBinaryHeader(size).writePayload(new byte[size]);
        packer.packArrayHeader(size);
        for (int i = 0; i < size; i++) {
            packer.packInt(i);
        }
        packer.packMapHeader(size);
        for (int i = 0; i < size; i++) {
            packer.packString("k" + i).packBoolean(i % 2 == 0);
        }
        Object read = MsgPackDecoder.decode(packer.toByteArray());
        assertThat(read)
                .asInstanceOf(org.assertj.core.api.InstanceOfAssertFactories.LIST)
                .satisfies(list -> {
                    assertThat(list.get(0)).isEqualTo("x".repeat(size));
                    assertThat(list.get(1)).isEqualTo("00".repeat(size));
                    assertThat((java.util.List<?>) list.get(2)).hasSize(size);
                    assertThat((java.util.Map<?, ?>) list.get(3)).hasSize(size);
                });
    }

    @Test
    void givenOtherKindsOfValues_whenRead_thenTheyAreWhatTheyWere() throws Exception {
        MessageBufferPacker packer = MessagePack.newDefaultBufferPacker();
        packer.packArrayHeader(4);
        packer.packBigInteger(new BigInteger("18446744073709551615"));
        packer.packNil().packDouble(1.5).packFloat(-2.5f);
        assertThat(MsgPackDecoder.decode(packer.toByteArray()))
                .isEqualTo(Arrays.asList(new BigInteger("18446744073709551615"), null, 1.5, -2.5));
    }

    @Test
    void givenBytesThatNobodyMeant_whenRead_thenTheyAreAValueOrRefused() {
        long seed = 20261122;
        Random random = new Random(seed);
        int refused = 0;
        for (int i = 0; i < 20_000; i++) {
            byte[] bytes = new byte[random.nextInt(40)];
            random.nextBytes(bytes);
            try {
                MsgPackDecoder.decode(bytes);
            } catch (IllegalArgumentException none) {
                refused++;
            }
        }
        assertThat(refused).as("seed %d", seed).isPositive();
        byte[] deep = new byte[1000];
        Arrays.fill(deep, (byte) 0x91);
        assertThatThrownBy(() -> MsgPackDecoder.decode(deep)).hasMessageContaining("nested deeper than 32");
        byte[] large = {(byte) 0xdd, 0x7f, 0, 0, 0};
        assertThatThrownBy(() -> MsgPackDecoder.decode(large)).hasMessageContaining("where 0 bytes are");
        byte[] binary = {(byte) 0xc6, 0x7f, 0, 0, 0, 1};
        assertThatThrownBy(() -> MsgPackDecoder.decode(binary)).hasMessageContaining("where 1 bytes are");
        byte[] own = {(byte) 0xc9, 0x7f, 0, 0, 0, 1};
        assertThatThrownBy(() -> MsgPackDecoder.decode(own)).hasMessageContaining("a value of an extension type");
        byte[] text = {(byte) 0xdb, 0x7f, 0, 0, 0, 'x'};
        assertThatThrownBy(() -> MsgPackDecoder.decode(text)).hasMessageContaining("ends within a value");
        byte[] never = {(byte) 0xc1};
        assertThatThrownBy(() -> MsgPackDecoder.decode(never)).hasMessageContaining("not MessagePack");
        assertThatThrownBy(() -> MsgPackDecoder.decode(new byte[0])).hasMessageContaining("ends within a value");
    }
}
