package io.kvcache.server.net;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.UnpooledByteBufAllocator;
import org.junit.jupiter.api.Test;

final class NettyLeakCheckTest {

    @Test
    void givenABufferThatIsNotReleased_whenTheWatchEnds_thenItFails() {
        NettyLeakCheck watch = new NettyLeakCheck();
        lose();
        assertThat(watch.leaks()).singleElement().asString().contains("by a mistake");
        assertThatThrownBy(watch::close).hasMessageContaining("by a mistake");
    }

    @SuppressWarnings("CheckReturnValue") // the mistake
    private static void lose() {
        new UnpooledByteBufAllocator(false).directBuffer(1).touch("by a mistake");
    }

    @Test
    void givenBuffersThatAreReleased_whenTheWatchEnds_thenItIsContent() {
        try (NettyLeakCheck _ = new NettyLeakCheck()) {
            ByteBuf bytes = new UnpooledByteBufAllocator(false).directBuffer(1);
            assertThat(bytes.release()).isTrue();
        }
    }
}
