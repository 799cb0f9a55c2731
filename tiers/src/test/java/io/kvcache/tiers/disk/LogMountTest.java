package io.kvcache.tiers.disk;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import io.kvcache.core.codec.StoredLayout;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.tier.SubmitResult;
import io.kvcache.core.tier.TierState;
import io.kvcache.tiers.device.BlockDevice;
import io.kvcache.tiers.device.MemoryDevice;
import io.kvcache.tiers.disk.DiskSet.Membership;
import io.kvcache.tiers.disk.LogHeader.FormatError;
import io.kvcache.tiers.disk.LogHeader.FormatError.Reason;
import io.kvcache.tiers.disk.ScriptedDevice.Fate;
import io.kvcache.tiers.disk.ScriptedDevice.Operation;
import io.kvcache.tiers.options.OnIncompatible;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.Objects;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// Opening a log on devices of various contents.
final class LogMountTest {

    private static final long BYTES = 7L << 20;
    private static final long COPY = DiskGeometry.SUPERBLOCK_BYTES;
    private static final DiskLogConfig REFUSE = DiskLogConfig.of(DiskGeometry.of(BYTES), 0xABCDEF);
    private static final DiskLogConfig DISCARD =
            REFUSE.withOnIncompatible(OnIncompatible.DISCARD).withDeviceId(0xFEDCBA);

    private final DiskLogSilencer quiet = new DiskLogSilencer();
    private final Arena arena = Arena.ofConfined();
    private final MemorySegment storage = arena.allocate(BYTES, DiskGeometry.PAGE_BYTES);
    private final DiskLogHarness rig = new DiskLogHarness(arena);

    @BeforeEach
    void silence() {
        quiet.silence();
    }

    @AfterEach
    void close() {
        quiet.restore();
        arena.close();
    }

    private BlockDevice device() {
        return MemoryDevice.create(storage, 32);
    }

    private Superblock.SuperblockCopy copy(int copy) {
        return Superblock.read(storage.asSlice(copy * COPY, COPY));
    }

    private void flip(long at) {
        storage.set(JAVA_BYTE, at, (byte) ~storage.get(JAVA_BYTE, at));
    }

    private void appendAndFlush(int blocks) {
        for (int i = 0; i < blocks; i++) {
            assertThat(rig.append(10_000)).isPositive();
        }
        rig.flush();
        rig.settle();
    }

    private void requireRefused(Reason reason, String message) {
        byte[] before = storage.toArray(JAVA_BYTE);
        rig.open(device(), REFUSE);
        rig.settle();
        assertThat(rig.log().state()).isEqualTo(TierState.REFUSED);
        FormatError formatError = rig.log().formatError();
        assertThat(formatError).isNotNull();
        assertThat(formatError.reason()).isEqualTo(reason);
        assertThat(formatError.message()).contains(message).contains("format version 2 on " + BYTES);
        assertThat(rig.log().flush(1)).isEqualTo(SubmitResult.REJECTED);
        assertThat(storage.toArray(JAVA_BYTE)).as("touched").isEqualTo(before);
    }

    private void requireDiscarded() {
        rig.openAndSettle(device(), DISCARD);
        assertThat(rig.log().state()).isEqualTo(TierState.SERVING);
        assertThat(rig.known).isEmpty();
    }

    @Test
    void givenABlankDevice_whenOpened_thenBothCopiesOfItsSuperblockAreSound() {
        rig.open(device(), REFUSE);
        assertThat(rig.log().state()).isEqualTo(TierState.OPENING);
        rig.settle();
        assertThat(rig.log().state()).isEqualTo(TierState.SERVING);
        assertThat(copy(0)).isEqualTo(copy(1));
        Superblock superblock = Objects.requireNonNull(copy(0).superblock());
        DiskGeneration generation = superblock.membership().generation();
        assertThat(superblock)
                .isEqualTo(new Superblock(0xABCDEF, 1, REFUSE.geometry(), List.of(), Membership.NONE.in(generation)));
        assertThat(generation.number()).isEqualTo(1);
        assertThat(generation.members()).containsExactly(new DiskGeneration.Member(0xABCDEF, 0));
    }

    @Test
    void givenSomebodyElsesData_whenOpened_thenItIsRefusedOrDiscarded() {
        storage.set(JAVA_BYTE, 1_500_000, (byte) 1);
        requireRefused(Reason.FOREIGN, "no disk tier");
        requireDiscarded();
    }

    @Test
    void givenAnotherVersion_whenOpened_thenItIsRefusedOrDiscarded() {
        rig.openAndSettle(device(), REFUSE);
        for (int copy = 0; copy < 2; copy++) {
            MemorySegment span = storage.asSlice(copy * COPY, COPY);
            span.set(DiskEntry.INT32, 12, 9);
            MetadataCrc.write(span);
        }
        requireRefused(Reason.OTHER_VERSION, "version 9");
        requireDiscarded();
    }

    @Test
    void givenBothCopiesDamaged_whenOpened_thenItIsRefusedOrDiscarded() {
        rig.openAndSettle(device(), REFUSE);
        flip(20);
        flip(COPY + 30);
        requireRefused(Reason.DAMAGED, "damaged");
        requireDiscarded();
    }

    @Test
    void givenADeviceThatGrew_whenOpened_thenItIsRefusedOrDiscarded() {
        rig.openAndSettle(
                MemoryDevice.create(storage.asSlice(0, 6L << 20), 32), DiskLogConfig.of(DiskGeometry.of(6L << 20), 5));
        requireRefused(Reason.OTHER_SIZE, "a disk tier of " + (6L << 20));
        requireDiscarded();
    }

    @Test
    void givenADeviceThatCannotBeRead_whenOpened_thenItIsNeverDiscarded() {
        rig.openAndSettle(device(), REFUSE);
        ScriptedDevice picky = new ScriptedDevice(device());
        picky.setPicker((operation, _) -> operation == Operation.READ ? Fate.FAILED : Fate.DONE);
        rig.open(picky, DISCARD);
        rig.settle();
        assertThat(rig.log().formatError()).isNotNull();
        assertThat(rig.log().formatError().reason()).isEqualTo(Reason.UNREADABLE);
    }

    @Test
    void givenAGeometryOfAnotherSize_whenOpened_thenBothSizesAreNamed() {
        assertThatIllegalArgumentException()
                .isThrownBy(() -> rig.open(device(), DiskLogConfig.of(DiskGeometry.of(8L << 20), 1)))
                .withMessageContaining("8388608")
                .withMessageContaining("7340032");
    }

    @ParameterizedTest
    @ValueSource(ints = {0, 1})
    void givenOneCopyDamaged_whenOpened_thenNothingIsLostAndItIsRepaired(int copy) {
        rig.openAndSettle(device(), REFUSE);
        appendAndFlush(10);
        flip(copy * COPY + 100);
        rig.openAndSettle(device(), REFUSE);
        assertThat(rig.known).hasSize(10);
        assertThat(rig.log().namespaces()).containsExactly(DiskLogHarness.NAMESPACE);
        assertThat(copy(0)).isEqualTo(copy(1));
    }

    @Test
    void givenADeviceFormattedAnew_whenOpened_thenNothingOfBeforeIsBelieved() {
        rig.openAndSettle(device(), REFUSE);
        appendAndFlush(200);
        rig.forgetPromises();
        flip(20);
        flip(COPY + 20);
        requireDiscarded();
        appendAndFlush(10);
        rig.openAndSettle(device(), DISCARD);
        assertThat(rig.known).hasSize(10);
    }

    @Test
    void givenAFormatThatWasCutShort_whenOpenedAgain_thenItSucceeds() {
        ScriptedDevice picky = new ScriptedDevice(device());
        picky.setPicker((operation, offset) -> operation == Operation.WRITE && offset == COPY ? Fate.LATER : Fate.DONE);
        rig.open(picky, REFUSE);
        for (int i = 0; i < 20; i++) {
            rig.tick();
        }
        assertThat(rig.log().state()).isEqualTo(TierState.OPENING);
        rig.openAndSettle(device(), REFUSE);
        assertThat(rig.log().state()).isEqualTo(TierState.SERVING);
    }

    @Test
    void givenNamespaces_whenOpenedAgain_thenTheirNumbersAreTheSame() {
        rig.openAndSettle(device(), REFUSE);
        Namespace other = Namespace.objects("other", "tenant");
        rig.log().register(other);
        rig.log().register(other);
        assertThat(rig.log().namespaceId(other)).as("not durable yet").isEqualTo(-1);
        rig.settle();
        assertThat(rig.log().namespaceId(other)).isEqualTo(1);
        rig.openAndSettle(device(), REFUSE);
        assertThat(rig.log().namespaces()).containsExactly(DiskLogHarness.NAMESPACE, other);
    }

    @Test
    void givenAnEntryOfAnUnknownNamespace_whenAppended_thenThatIsABug() {
        rig.openAndSettle(device(), REFUSE);
        DiskEntry entry = new DiskEntry(1, 2, 0, 0, 7 << 16, 0, 0, 100, 0, StoredLayout.PLAIN, 0);
        MemorySegment page = arena.allocate(DiskGeometry.PAGE_BYTES, DiskGeometry.PAGE_BYTES);
        assertThatIllegalArgumentException()
                .isThrownBy(() -> rig.log().append(entry, List.of(page), 1))
                .withMessageContaining("namespace below 1");
    }

    @Test
    void givenEntriesOfANamespaceThatIsNotThere_whenOpened_thenTheyAreLeftOut() {
        rig.openAndSettle(device(), REFUSE);
        appendAndFlush(10);
        rig.forgetPromises();
        for (int copy = 0; copy < 2; copy++) {
            new Superblock(0xABCDEF, 9, REFUSE.geometry(), List.of(), Membership.NONE)
                    .write(storage.asSlice(copy * COPY, COPY));
        }
        rig.open(device(), REFUSE);
        rig.settle();
        assertThat(rig.known).isEmpty();
        assertThat(rig.log().logStats().recovered().invalid()).isEqualTo(10);
    }
}
