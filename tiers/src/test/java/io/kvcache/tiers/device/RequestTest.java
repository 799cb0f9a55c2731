package io.kvcache.tiers.device;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.tiers.os.Errno;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

class RequestTest {

    private static final int SPAN = 4 * BlockDevice.ALIGNMENT;

    private final Arena arena = Arena.ofConfined();
    private final MemorySegment segment = arena.allocate(SPAN, BlockDevice.ALIGNMENT);

    @AfterEach
    void closeArena() {
        arena.close();
    }

    @Test
    void givenAllBytesMoved_whenTold_thenDone() {
        Request request = request(IoOperation.READ);
        assertThat(request.endsWith(SPAN)).isTrue();
        assertThat(request.outcome()).isEqualTo(IoOutcome.DONE);
    }

    @Test
    void givenShortTransfer_whenTold_thenTheRestRemains() {
        Request request = request(IoOperation.WRITE);
        assertThat(request.endsWith(BlockDevice.ALIGNMENT)).isFalse();
        assertThat(request.address()).isEqualTo(segment.address() + BlockDevice.ALIGNMENT);
        assertThat(request.offset()).isEqualTo(8192 + BlockDevice.ALIGNMENT);
        assertThat(request.remaining()).isEqualTo(3 * BlockDevice.ALIGNMENT);
        assertThat(request.endsWith(3 * BlockDevice.ALIGNMENT)).isTrue();
    }

    @Test
    void givenTransferThatEndsWithinAPage_whenTold_thenThatPageRemains() {
        Request request = request(IoOperation.READ);
        assertThat(request.endsWith(2 * BlockDevice.ALIGNMENT + 512)).isFalse();
        assertThat(request.remaining()).isEqualTo(2 * BlockDevice.ALIGNMENT);
    }

    @Test
    void givenReadOfNothing_whenTold_thenEndOfFile() {
        Request request = request(IoOperation.READ);
        assertThat(request.endsWith(0)).isTrue();
        assertThat(request.outcome()).isEqualTo(IoOutcome.END_OF_FILE);
    }

    @Test
    void givenErrno_whenTold_thenTheOutcomeNamesIt() {
        Request request = request(IoOperation.WRITE);
        assertThat(request.endsWith(-Errno.ENOSPC.number())).isTrue();
        assertThat(request.outcome()).isEqualTo(new IoOutcome(IoOutcome.Kind.NO_SPACE, "ENOSPC"));
        assertThat(request(IoOperation.READ).endsWith(-Errno.EIO.number())).isTrue();
    }

    @Test
    void givenInterruptions_whenTold_thenItIsIssuedAgainUpToALimit() {
        Request request = request(IoOperation.READ);
        int attempts = 1;
        while (!request.endsWith(-(attempts % 2 == 0 ? Errno.EINTR : Errno.EAGAIN).number())) {
            attempts++;
        }
        assertThat(attempts).isEqualTo(Request.MAX_ATTEMPTS);
        assertThat(request.outcome().kind()).isEqualTo(IoOutcome.Kind.FAILED);
    }

    @Test
    void givenWritesWithoutProgress_whenTold_thenFailedAtTheLimit() {
        Request request = request(IoOperation.WRITE);
        int attempts = 1;
        while (!request.endsWith(0)) {
            attempts++;
        }
        assertThat(attempts).isEqualTo(Request.MAX_ATTEMPTS);
        assertThat(request.outcome().cause()).isEqualTo("no progress");
    }

    @Test
    void givenSyncOrDiscard_whenTheKernelAnswersZero_thenDone() {
        assertThat(new Request(0).sync(1).endsWith(0)).isTrue();
        assertThat(new Request(0).discard(0, SPAN, 1).endsWith(0)).isTrue();
        Request unsupported = new Request(0).discard(0, SPAN, 1);
        assertThat(unsupported.endsWith(-Errno.EOPNOTSUPP.number())).isTrue();
        assertThat(unsupported.outcome().kind()).isEqualTo(IoOutcome.Kind.UNSUPPORTED);
    }

    private Request request(IoOperation operation) {
        return new Request(0).transfer(operation, segment, 8192, 1);
    }
}
