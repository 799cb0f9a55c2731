package io.kvcache.tiers.device;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.tiers.device.BlockDevice.IoOperation;
import io.kvcache.tiers.os.Errno;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

class IoRequestTest {

    private static final int SPAN = 4 * BlockDevice.ALIGNMENT;

    private final Arena arena = Arena.ofConfined();
    private final MemorySegment segment = arena.allocate(SPAN, BlockDevice.ALIGNMENT);

    @AfterEach
    void closeArena() {
        arena.close();
    }

    @Test
    void givenAllBytesMoved_whenTold_thenDone() {
        IoRequest request = request(IoOperation.READ);
        assertThat(request.completeWith(SPAN)).isTrue();
        assertThat(request.outcome()).isEqualTo(IoOutcome.DONE);
    }

    @Test
    void givenShortTransfer_whenTold_thenTheRestRemains() {
        IoRequest request = request(IoOperation.WRITE);
        assertThat(request.completeWith(BlockDevice.ALIGNMENT)).isFalse();
        assertThat(request.address()).isEqualTo(segment.address() + BlockDevice.ALIGNMENT);
        assertThat(request.offset()).isEqualTo(8192 + BlockDevice.ALIGNMENT);
        assertThat(request.remaining()).isEqualTo(3 * BlockDevice.ALIGNMENT);
        assertThat(request.completeWith(3 * BlockDevice.ALIGNMENT)).isTrue();
    }

    @Test
    void givenTransferThatEndsWithinAPage_whenTold_thenThatPageRemains() {
        IoRequest request = request(IoOperation.READ);
        assertThat(request.completeWith(2 * BlockDevice.ALIGNMENT + 512)).isFalse();
        assertThat(request.remaining()).isEqualTo(2 * BlockDevice.ALIGNMENT);
    }

    @Test
    void givenReadOfNothing_whenTold_thenEndOfFile() {
        IoRequest request = request(IoOperation.READ);
        assertThat(request.completeWith(0)).isTrue();
        assertThat(request.outcome()).isEqualTo(IoOutcome.END_OF_FILE);
    }

    @Test
    void givenErrno_whenTold_thenTheOutcomeNamesIt() {
        IoRequest request = request(IoOperation.WRITE);
        assertThat(request.completeWith(-Errno.ENOSPC.number())).isTrue();
        assertThat(request.outcome()).isEqualTo(new IoOutcome(IoOutcome.Kind.NO_SPACE, "ENOSPC"));
        assertThat(request(IoOperation.READ).completeWith(-Errno.EIO.number())).isTrue();
    }

    @Test
    void givenInterruptions_whenTold_thenItIsIssuedAgainUpToALimit() {
        IoRequest request = request(IoOperation.READ);
        int attempts = 1;
        while (!request.completeWith(-(attempts % 2 == 0 ? Errno.EINTR : Errno.EAGAIN).number())) {
            attempts++;
        }
        assertThat(attempts).isEqualTo(IoRequest.MAX_ATTEMPTS);
        assertThat(request.outcome().kind()).isEqualTo(IoOutcome.Kind.FAILED);
    }

    @Test
    void givenWritesWithoutProgress_whenTold_thenFailedAtTheLimit() {
        IoRequest request = request(IoOperation.WRITE);
        int attempts = 1;
        while (!request.completeWith(0)) {
            attempts++;
        }
        assertThat(attempts).isEqualTo(IoRequest.MAX_ATTEMPTS);
        assertThat(request.outcome().cause()).isEqualTo("no progress");
    }

    @Test
    void givenSyncOrDiscard_whenTheKernelAnswersZero_thenDone() {
        assertThat(new IoRequest(0).prepareSync(1).completeWith(0)).isTrue();
        assertThat(new IoRequest(0).prepareDiscard(0, SPAN, 1).completeWith(0)).isTrue();
        IoRequest unsupported = new IoRequest(0).prepareDiscard(0, SPAN, 1);
        assertThat(unsupported.completeWith(-Errno.EOPNOTSUPP.number())).isTrue();
        assertThat(unsupported.outcome().kind()).isEqualTo(IoOutcome.Kind.UNSUPPORTED);
    }

    private IoRequest request(IoOperation operation) {
        return new IoRequest(0).prepareTransfer(operation, segment, 8192, 1);
    }
}
