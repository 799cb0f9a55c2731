package io.kvcache.gpu.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;
import static org.assertj.core.api.Assumptions.assumeThat;

import io.kvcache.core.check.BlockContent;
import io.kvcache.gpu.driver.CopyBatch;
import io.kvcache.gpu.driver.DeviceDriver;
import io.kvcache.gpu.driver.DeviceDriverContract;
import io.kvcache.gpu.driver.DeviceError;
import io.kvcache.gpu.driver.DeviceEvent;
import io.kvcache.gpu.driver.DeviceSpan;
import io.kvcache.gpu.driver.DeviceStream;
import io.kvcache.gpu.driver.DeviceUnderTest;
import java.io.IOException;
import java.io.InputStream;
import java.lang.foreign.MemorySegment;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.logging.Handler;
import java.util.logging.Logger;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/// NVIDIA's driver keeps the contract of all devices, through the real JCuda and the real foreign
/// functions.
final class CudaDriverTest {

    @Test
    void givenTheLibraryOfJcuda_whenItIsShipped_thenItsLicenceIsToo() throws IOException {
        ClassLoader shipped = CudaDriver.class.getClassLoader();
        assertThat(shipped.getResource("lib/libJCudaDriver-12.6.0-linux-x86_64.so"))
                .isNotNull();
        try (InputStream licence = Objects.requireNonNull(shipped.getResourceAsStream("META-INF/licenses/jcuda.txt"))) {
            assertThat(new String(licence.readAllBytes(), StandardCharsets.US_ASCII))
                    .contains("Marco Hutter")
                    .contains("this permission notice shall be");
        }
    }

    private static final int PIECE = 4096;
    private static final int PIECES = 4096;

    @Nested
    final class CurrentDriver extends DeviceDriverContract {

        CurrentDriver() {
            super(FakeCuda.reset());
        }
    }

    @Nested
    final class SlowDriver extends DeviceDriverContract {

        SlowDriver() {
            super(FakeCuda.reset());
        }

        @BeforeEach
        void delay() {
            assumeThat(subject.canHold())
                    .as("a driver whose copies can be held back")
                    .isTrue();
            ((FakeCuda) subject).delay(300);
        }
    }

    /// A driver of version 12.8 or 12.9.
    @Nested
    final class Cuda128Driver extends DeviceDriverContract {

        Cuda128Driver() {
            super(new ReducedDriver(FakeCuda.reset(), Set.of(CudaMemcpyBatch.CUDA_13_FUNCTION)));
        }

        @Test
        void givenScatteredPieces_whenCopied_thenByTheOlderCall() {
            assumeThat(subject.canHold()).as("a driver that counts calls").isTrue();
            DeviceSpan slab = slab(4L * PIECE);
            DeviceStream stream = stream();
            MemorySegment source = filled(4L * PIECE, 1);
            CopyBatch batch = CopyBatch.toDevice();
            batch.add(source.asSlice(0, PIECE), slab.address());
            batch.add(source.asSlice(PIECE, PIECE), slab.address().plus(2L * PIECE));
            stream.copy(batch);
            MemorySegment back = memory(PIECE);
            stream.copyToHost(slab.address().plus(2L * PIECE), back);
            finish(stream);
            new BlockContent(1).requireEqual(PIECE, back);
            assertThat(((CudaDriver) driver).describeBatching()).isEqualTo("cuMemcpyBatchAsync, 1 taken, 0 declined");
            assertThat(((ReducedDriver) subject).fakeCuda().calls("cuMemcpyBatchAsync"))
                    .isEqualTo(1);
        }
    }

    /// A driver from before that.
    @Nested
    final class LegacyDriver extends DeviceDriverContract {

        LegacyDriver() {
            super(new ReducedDriver(
                    FakeCuda.reset(), Set.of(CudaMemcpyBatch.CUDA_13_FUNCTION, CudaMemcpyBatch.CUDA_12_8_FUNCTION)));
        }
    }

    /// A driver that lacks some functions.
    private record ReducedDriver(FakeCuda fakeCuda, Set<String> names) implements DeviceUnderTest {

        @Override
        public DeviceDriver open() {
            return fakeCuda.openWithout(names);
        }

        @Override
        public boolean canHold() {
            return fakeCuda.canHold();
        }

        @Override
        public void hold() {
            fakeCuda.hold();
        }

        @Override
        public void release() {
            fakeCuda.release();
        }

        @Override
        public String left() {
            return fakeCuda.left();
        }
    }

    /// What only the stand-in can show.
    @Nested
    final class CallCounting extends DeviceDriverContract {

        private final FakeCuda fakeCuda = FakeCuda.reset();

        CallCounting() {
            super(FakeCuda.reset());
            assumeThat(fakeCuda.canHold())
                    .as("a driver whose copies can be held back")
                    .isTrue();
        }

        @Test
        void givenAdjacentPieces_whenCopied_thenOneCallForAllOfThem() {
            DeviceSpan slab = slab((long) PIECES * PIECE);
            DeviceStream stream = stream();
            MemorySegment source = filled((long) PIECES * PIECE, 1);
            CopyBatch batch = CopyBatch.toDevice();
            for (int i = PIECES - 1; i >= 0; i--) {
                batch.add(
                        source.asSlice((long) i * PIECE, PIECE), slab.address().plus((long) i * PIECE));
            }
            stream.copy(batch);
            finish(stream);
            assertThat(fakeCuda.calls("cuMemcpyHtoDAsync_v2")).isEqualTo(1);
            assertThat(fakeCuda.calls("cuMemcpyBatchAsync_v2")).isZero();
        }

        @Test
        void givenScatteredPieces_whenCopied_thenInBatchesAndNoSingleCopies() {
            DeviceSpan slab = slab((long) PIECES * PIECE);
            DeviceStream stream = stream();
            MemorySegment source = filled((long) PIECES * PIECE, 2);
            CopyBatch there = CopyBatch.toDevice();
            for (int i = 0; i < PIECES; i++) {
                int place = (i * 1023) % PIECES; // odd, so each place once
                there.add(
                        source.asSlice((long) i * PIECE, PIECE), slab.address().plus((long) place * PIECE));
            }
            stream.copy(there);
            MemorySegment back = memory((long) PIECES * PIECE);
            CopyBatch home = CopyBatch.toHost();
            for (int i = 0; i < PIECES; i++) {
                int place = (i * 1023) % PIECES;
                home.add(back.asSlice((long) i * PIECE, PIECE), slab.address().plus((long) place * PIECE));
            }
            stream.copy(home);
            finish(stream);
            new BlockContent(2).requireEqual(back);
            assertThat(fakeCuda.calls("cuMemcpyBatchAsync_v2")).isEqualTo(2 * FakeCuda.batches(PIECES));
            assertThat(fakeCuda.calls("cuMemcpyHtoDAsync_v2") + fakeCuda.calls("cuMemcpyDtoHAsync_v2"))
                    .isZero();
        }

        @ParameterizedTest
        @ValueSource(ints = {CudaResult.NOT_SUPPORTED, CudaResult.INVALID_VALUE})
        void givenADriverThatCannotBatch_whenCopied_thenPieceByPiece(int answer) {
            DeviceSpan slab = slab(10L * PIECE);
            DeviceStream stream = stream();
            MemorySegment source = filled(10L * PIECE, 3);
            CopyBatch batch = CopyBatch.toDevice();
            for (int i = 0; i < 5; i++) {
                batch.add(source.asSlice(2L * i * PIECE, PIECE), slab.address().plus(2L * i * PIECE));
            }
            List<String> said = new ArrayList<>();
            Handler hears = LogRecorder.capturingTo(said);
            Logger log = Logger.getLogger(CudaMemcpyBatch.class.getName());
            log.addHandler(hears);
            for (int i = 0; i < 2; i++) {
                fakeCuda.failCall("cuMemcpyBatchAsync_v2", 1, answer);
                stream.copy(batch);
            }
            log.removeHandler(hears);
            assertThat(said).hasSize(1);
            assertThat(said.getFirst()).contains("cuMemcpyBatchAsync_v2", String.valueOf(answer));
            assertThat(((CudaDriver) driver).describeBatching())
                    .isEqualTo("cuMemcpyBatchAsync_v2, 0 taken, 2 declined");
            MemorySegment back = memory(PIECE);
            stream.copyToHost(slab.address().plus(8L * PIECE), back);
            finish(stream);
            new BlockContent(3).requireEqual(8L * PIECE, back);
            assertThat(fakeCuda.calls("cuMemcpyHtoDAsync_v2")).isEqualTo(10);
        }

        @Test
        void givenAPartOfADevice_whenAskedForItsUuid_thenItIsThePartsOwn() {
            assertThat(driver.info().uuid()).isEqualTo("c5".repeat(16));
            DeviceDriver old = fakeCuda.openWithout(Set.of("cuDeviceGetUuid_v2"));
            assertThat(old.info().uuid()).isEqualTo("a0".repeat(16));
            old.close();
        }

        @Test
        void givenADeviceThatTakesNoHostAddresses_whenCopied_thenPieceByPieceButTogetherWithin() {
            fakeCuda.hostPointers(false);
            DeviceSpan slab = slab(8L * PIECE);
            DeviceStream stream = stream();
            MemorySegment source = filled(4L * PIECE, 10);
            driver.register(source);
            CopyBatch there = CopyBatch.toDevice();
            CopyBatch within = CopyBatch.within();
            for (int i = 0; i < 2; i++) {
                there.add(source.asSlice(2L * i * PIECE, PIECE), slab.address().plus(i * 3L * PIECE));
                within.add(slab.address().plus(i * 3L * PIECE), slab.address().plus((5 + 2L * i) * PIECE), PIECE);
            }
            stream.copy(there);
            stream.copy(within);
            MemorySegment back = memory(PIECE);
            stream.copyToHost(slab.address().plus(7L * PIECE), back);
            finish(stream);
            new BlockContent(10).requireEqual(2L * PIECE, back);
            assertThat(fakeCuda.calls("cuMemcpyHtoDAsync_v2")).isEqualTo(2);
            assertThat(fakeCuda.calls("cuMemcpyBatchAsync_v2")).isEqualTo(1);
            assertThat(driver.isReachable(source)).isFalse();
            driver.unregister(source);
        }

        @Test
        void givenMemoryAcrossTwoRegistrations_whenCopiedInOnePiece_thenItIsCutThere() {
            DeviceSpan slab = slab(10L * PIECE);
            DeviceStream stream = stream();
            MemorySegment source = filled(10L * PIECE, 4);
            driver.register(source.asSlice(0, 4L * PIECE));
            driver.register(source.asSlice(4L * PIECE));
            stream.copyToDevice(source, slab.address());
            MemorySegment back = memory(10L * PIECE);
            stream.copyToHost(slab.address(), back);
            finish(stream);
            new BlockContent(4).requireEqual(back);
            assertThat(driver.isReachable(source)).isTrue();
            assertThat(driver.isReachable(back)).isFalse();
            driver.unregister(source.asSlice(0, 4L * PIECE));
            driver.unregister(source.asSlice(4L * PIECE));
        }

        /// Parts of a tier and engines at a door, all of one store.
        @ParameterizedTest
        @ValueSource(booleans = {false, true})
        void givenTwoDriversThatRegisterTheSame_whenOneLetsGo_thenTheOthersCopiesGoOn(boolean closes) {
            DeviceSpan slab = slab(PIECE);
            DeviceStream stream = stream();
            MemorySegment memory = filled(PIECE, 9);
            DeviceDriver other = fakeCuda.open();
            other.register(memory);
            driver.register(memory);
            assertThat(fakeCuda.calls("cuMemHostRegister_v2")).isEqualTo(1);
            fakeCuda.hold();
            stream.copyToDevice(memory, slab.address());
            if (closes) {
                assertThatIllegalStateException().isThrownBy(other::close).withMessageContaining("registrations=1");
            } else {
                other.unregister(memory);
                other.close();
            }
            fakeCuda.release();
            MemorySegment back = memory(PIECE);
            stream.copyToHost(slab.address(), back);
            finish(stream);
            new BlockContent(9).requireEqual(back);
            assertThat(fakeCuda.calls("cuMemHostUnregister")).isZero();
            driver.unregister(memory);
            assertThat(fakeCuda.calls("cuMemHostUnregister")).isEqualTo(1);
        }

        @Test
        void givenAllocationsSideBySide_whenABatchFillsBoth_thenEachByACopyOfItsOwn() {
            DeviceDriver engine = fakeCuda.open();
            DeviceSpan pool = engine.allocate(2L * PIECE);
            driver.adopt(pool.slice(0, PIECE));
            driver.adopt(pool.slice(PIECE, PIECE));
            DeviceStream stream = stream();
            MemorySegment source = filled(2L * PIECE, 8);
            CopyBatch batch = CopyBatch.toDevice();
            batch.add(source.asSlice(0, PIECE), pool.address());
            batch.add(source.asSlice(PIECE), pool.address().plus(PIECE));
            stream.copy(batch);
            MemorySegment back = memory(PIECE);
            stream.copyToHost(pool.address().plus(PIECE), back);
            finish(stream);
            new BlockContent(8).requireEqual(PIECE, back);
            driver.disown(pool.slice(0, PIECE));
            driver.disown(pool.slice(PIECE, PIECE));
            engine.free(pool);
            engine.close();
        }

        @Test
        void givenMemoryOfAnEngineInThisProcess_whenAdopted_thenItIsCopiedFromAndTo() {
            DeviceDriver engine = fakeCuda.open();
            DeviceSpan pool = engine.allocate(2L * PIECE);
            DeviceStream stream = stream();
            MemorySegment source = filled(2L * PIECE, 6);
            assertRefused(DeviceError.BAD_REQUEST, () -> stream.copyToDevice(source, pool.address()));
            driver.adopt(pool);
            stream.copyToDevice(source, pool.address());
            MemorySegment back = memory(2L * PIECE);
            stream.copyToHost(pool.address(), back);
            finish(stream);
            new BlockContent(6).requireEqual(back);
            assertRefused(DeviceError.BAD_REQUEST, () -> driver.free(pool));
            assertThat(driver.resourceCounts().slabs()).isZero();
            driver.disown(pool);
            assertRefused(DeviceError.BAD_REQUEST, () -> driver.disown(pool));
            assertRefused(DeviceError.BAD_REQUEST, () -> stream.copyToDevice(source, pool.address()));
            engine.free(pool);
            engine.close();
        }

        /// Of what is called in the name of others, and may be forbidden here.
        @ParameterizedTest
        @CsvSource({"304,NOT_PERMITTED", "999,REFUSED", "101,REFUSED", "800,NOT_PERMITTED"})
        void givenMemoryThatCannotBeRegistered_whenTried_thenTheDeviceGoesOn(int answer, DeviceError named) {
            MemorySegment memory = filled(PIECE, 7);
            fakeCuda.failCall("cuMemHostRegister_v2", 1, answer);
            assertRefused(named, () -> driver.register(memory));
            assertThat(named.isFatal()).isFalse();
            assertThat(driver.resourceCounts().registrations()).isZero();
            DeviceSpan slab = slab(PIECE);
            DeviceStream stream = stream();
            MemorySegment back = memory(PIECE);
            stream.copyToDevice(memory, slab.address());
            stream.copyToHost(slab.address(), back);
            finish(stream);
            new BlockContent(7).requireEqual(back);
        }

        @Test
        void givenASystemThatIsNotUp_whenOpened_thenItSaysWhatToStart() {
            fakeCuda.failCall("cuInit", 1, 802);
            assertRefused(DeviceError.NOT_UP, fakeCuda::open);
        }

        @Test
        void givenWorkThatFailsLater_whenAsked_thenEverythingSaysSoAndTheDeviceCloses() {
            DeviceSpan slab = slab(PIECE);
            DeviceStream stream = stream();
            DeviceEvent event = event();
            fakeCuda.failWork(1, 214);
            fakeCuda.hold();
            stream.copyToDevice(filled(PIECE, 5), slab.address());
            stream.record(event);
            fakeCuda.release();
            assertRefused(DeviceError.MEMORY_DAMAGED, () -> event.await(TimeUnit.SECONDS.toNanos(30)));
            assertRefused(DeviceError.MEMORY_DAMAGED, () -> driver.allocate(1));
        }

        @Test
        void givenALostDevice_whenUsed_thenItSaysSoAndCloses() {
            DeviceStream stream = stream();
            fakeCuda.loseDevice(46);
            assertRefused(DeviceError.DEVICE_LOST, stream::isIdle);
            assertRefused(DeviceError.DEVICE_LOST, () -> slab(PIECE));
        }
    }
}
