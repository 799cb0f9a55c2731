package io.kvcache.transport.wire;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.sun.management.ThreadMXBean;
import io.kvcache.core.Hint;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.Dtype;
import io.kvcache.core.identity.Namespace;
import java.lang.management.ManagementFactory;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.List;
import org.junit.jupiter.api.Test;

final class HintCodecTest {

    private static final BlockChain CHAIN =
            BlockChain.of(Namespace.of("m", BlockShape.kv(1, 1, 8, 1, Dtype.BF16)), new int[] {1, 2});

    /// A hint about weights from a block on, all of them 0.
    private static BodyReader weights(int from, int count) {
        ByteBuffer body = ByteBuffer.allocate(24 + count).order(ByteOrder.LITTLE_ENDIAN);
        body.put((byte) 4)
                .put(new byte[3])
                .putInt(from)
                .putLong(0)
                .putInt(count)
                .putInt(0);
        return new BodyReader(body.rewind());
    }

    @Test
    void givenAsManyWeightsAsBlocks_whenRead_thenTheyAreThese() throws ProtocolException {
        assertThat(HintCodec.read(weights(0, 2)).forChain(CHAIN)).isEqualTo(new Hint.Weigh(CHAIN, 0, List.of(0f, 0f)));
        assertThat(HintCodec.read(weights(1, 1)).forChain(CHAIN)).isEqualTo(new Hint.Weigh(CHAIN, 1, List.of(0f)));
        assertThat(HintCodec.read(weights(2, 0)).forChain(CHAIN)).isEqualTo(new Hint.Weigh(CHAIN, 2, List.of()));
    }

    @Test
    void givenMoreWeightsThanBlocks_whenRead_thenTheyAreRefused() throws ProtocolException {
        HintCodec.DecodedHint decodedHint = HintCodec.read(weights(1, 2));
        assertThatThrownBy(() -> decodedHint.forChain(CHAIN))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessage("2 weights from block 1 on; the chain has 2 blocks");
        HintCodec.DecodedHint behind = HintCodec.read(weights(Integer.MAX_VALUE, 1));
        assertThatThrownBy(() -> behind.forChain(CHAIN)).isInstanceOf(IllegalArgumentException.class);
    }

    /// As objects they take twenty times as much as in the frame.
    @Test
    void givenAFrameFullOfWeights_whenReadForAShortChain_thenItTakesNoMoreHeapThanTheFrame() throws ProtocolException {
        BodyReader body = weights(0, FrameHeader.MAX_BODY_BYTES - 24);
        ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
        long before = threads.getCurrentThreadAllocatedBytes();
        HintCodec.DecodedHint decodedHint = HintCodec.read(body);
        assertThatThrownBy(() -> decodedHint.forChain(CHAIN)).isInstanceOf(IllegalArgumentException.class);
        assertThat(threads.getCurrentThreadAllocatedBytes() - before).isLessThan(4L * FrameHeader.MAX_BODY_BYTES);
    }
}
