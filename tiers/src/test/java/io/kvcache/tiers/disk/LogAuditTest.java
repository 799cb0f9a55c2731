package io.kvcache.tiers.disk;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import io.kvcache.core.codec.StoredLayout;
import io.kvcache.tiers.device.BlockDevice;
import io.kvcache.tiers.device.MemoryDevice;
import io.kvcache.tiers.disk.AuditReport.NamespaceReport;
import io.kvcache.tiers.disk.AuditReport.RegionState;
import io.kvcache.tiers.disk.LogAudit.FingerprintSet;
import io.kvcache.tiers.disk.LogAudit.Scope;
import io.kvcache.tiers.disk.ScriptedDevice.Fate;
import io.kvcache.tiers.disk.ScriptedDevice.Operation;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/// An audit finds what an opening would tell, and what is wrong with it.
final class LogAuditTest {

    private static final long BYTES = 9L << 20;
    private static final DiskGeometry GEOMETRY = DiskGeometry.of(BYTES);
    private static final DiskLogConfig CONFIG = DiskLogConfig.of(GEOMETRY, 0xABCDEF);
    private static final int BLOCK_BYTES = 10_000;

    private final DiskLogSilencer quiet = new DiskLogSilencer();
    private final Arena arena = Arena.ofShared();
    private final MemorySegment storage = arena.allocate(BYTES, DiskGeometry.PAGE_BYTES);

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

    private DiskLogFixture open() {
        return new DiskLogFixture(device(), CONFIG);
    }

    /// Appends objects, each the child of the one before.
    private void fill(int objects) {
        try (DiskLogFixture log = open()) {
            for (int key = 1; key <= objects; key++) {
                log.append(key, key - 1, BLOCK_BYTES);
            }
            log.flush();
        }
    }

    private AuditReport audit(Scope scope) {
        return LogAudit.run(device(), scope, (_, _) -> {});
    }

    private NamespaceReport namespace(Scope scope) {
        return audit(scope).namespaces().getFirst();
    }

    /// Damages the first byte of an object that a fresh log has put at this position of region 0.
    private void damage(int object) {
        int batch = 63;
        long page = object + object / batch + 1 + object * 2L;
        long at = GEOMETRY.regionOffset(0) + page * DiskGeometry.PAGE_BYTES;
        storage.set(JAVA_BYTE, at, (byte) ~storage.get(JAVA_BYTE, at));
    }

    @Test
    void givenASoundTier_whenAudited_thenEverythingIsCountedAndNothingChanges() {
        fill(200);
        byte[] before = storage.toArray(JAVA_BYTE);
        AuditReport report = audit(Scope.BLOCKS);
        NamespaceReport namespace = report.namespaces().getFirst();
        assertThat(namespace)
                .isEqualTo(new NamespaceReport(
                        DiskLogFixture.OBJECTS, 0, 200, 200L * BLOCK_BYTES, 200L * 12_288, 0, 0, 0, 0, 0));
        assertThat(report.corruptEntries()).isZero();
        assertThat(report.intactCopies()).isEqualTo(2);
        assertThat(report.count(RegionState.CLOSED)).isEqualTo(2);
        assertThat(report.count(RegionState.OPEN)).isEqualTo(1);
        assertThat(report.count(RegionState.FREE)).isEqualTo(4);
        assertThat(storage.toArray(JAVA_BYTE)).isEqualTo(before);
    }

    @Test
    void givenProgress_whenAudited_thenItComesToItsEnd() {
        fill(200);
        List<String> seen = new ArrayList<>();
        LogAudit.run(device(), Scope.TABLES, (done, all) -> seen.add(done + " of " + all));
        assertThat(seen).containsExactly("1 of 3", "2 of 3", "3 of 3");
    }

    @Test
    void givenBuriedAndReplacedObjects_whenAudited_thenTheyDoNotCountAndTheirChildrenAreOrphans() {
        fill(100);
        try (DiskLogFixture log = open()) {
            log.appendTombstone(50);
            log.append(70, 69, 5000);
        }
        NamespaceReport namespace = namespace(Scope.BLOCKS);
        assertThat(namespace.objects()).isEqualTo(99);
        assertThat(namespace.bytes()).isEqualTo(98L * BLOCK_BYTES + 5000);
        assertThat(namespace.replaced()).isEqualTo(2);
        assertThat(namespace.tombstones()).isEqualTo(1);
        assertThat(namespace.orphans()).as("the child of 50").isEqualTo(1);
    }

    @Test
    void givenBadObjects_whenAudited_thenTheyAreCountedWithTheirChildren() {
        fill(200);
        damage(0);
        damage(10);
        assertThat(namespace(Scope.TABLES).corruptEntries())
                .as("not looked for")
                .isZero();
        NamespaceReport namespace = namespace(Scope.BLOCKS);
        assertThat(namespace.badChecksums()).isEqualTo(2);
        assertThat(namespace.unreadable()).isZero();
        assertThat(namespace.objects()).isEqualTo(198);
        assertThat(namespace.orphans()).isEqualTo(2);
    }

    @Test
    void givenADeviceThatCannotReadABlock_whenAudited_thenItIsUnreadable() {
        fill(200);
        long at = GEOMETRY.regionOffset(0) + DiskGeometry.PAGE_BYTES;
        ScriptedDevice picky = new ScriptedDevice(device());
        picky.setPicker((operation, offset) -> operation == Operation.READ && offset == at ? Fate.FAILED : Fate.DONE);
        AuditReport report = LogAudit.run(picky, Scope.BLOCKS, (_, _) -> {});
        assertThat(report.namespaces().getFirst().unreadable()).isEqualTo(1);
        assertThat(report.corruptEntries()).isEqualTo(1);
    }

    @Test
    void givenBadObjects_whenRepaired_thenNoOpeningTellsThemAndTheRestIsThere() {
        fill(200);
        damage(0);
        damage(10);
        AuditReport report = audit(Scope.REPAIR);
        assertThat(report.corruptEntries()).isEqualTo(2);
        assertThat(report.repairedRegions()).isEqualTo(1);
        assertThat(audit(Scope.BLOCKS).corruptEntries()).isZero();
        try (DiskLogFixture log = open()) {
            assertThat(log.keys()).hasSize(198).doesNotContain(1L, 11L);
            assertThat(log.readAll()).isEqualTo(198);
        }
    }

    @Test
    void givenAnOverwrittenObject_whenTheNewValueIsDamagedAndRepaired_thenTheOldOneStaysGone() {
        fill(1);
        overwrite(5000);
        damagePage(1, 1);
        assertThat(audit(Scope.REPAIR).corruptEntries()).isOne();
        NamespaceReport namespace = namespace(Scope.BLOCKS);
        assertThat(namespace.corruptEntries()).isZero();
        assertThat(namespace.objects()).isZero();
        assertThat(namespace.tombstones()).isOne();
        assertThat(namespace.replaced()).isOne();
        try (DiskLogFixture log = open()) {
            assertThat(log.keys()).isEmpty();
        }
        overwrite(6000);
        try (DiskLogFixture log = open()) {
            assertThat(log.keys()).as("a newer value counts").containsExactly(1L);
            assertThat(log.readAll()).isOne();
        }
    }

    @Test
    void givenAnOverwrittenObject_whenTheOldValueIsDamagedAndRepaired_thenTheNewOneCounts() {
        fill(1);
        overwrite(5000);
        damagePage(0, 1);
        assertThat(audit(Scope.REPAIR).repairedRegions()).isOne();
        assertThat(audit(Scope.BLOCKS).isIntact()).isTrue();
        try (DiskLogFixture log = open()) {
            assertThat(log.keys()).containsExactly(1L);
            assertThat(log.readAll()).isOne();
        }
    }

    @Test
    void givenTwoValuesInOneRegion_whenTheNewOneIsDamagedAndRepaired_thenTheOldOneStaysGone() {
        try (DiskLogFixture log = open()) {
            log.append(1, BLOCK_BYTES);
            log.append(2, BLOCK_BYTES);
            log.flush();
            log.append(1, 5000);
            log.flush();
        }
        damagePage(0, 8);
        assertThat(audit(Scope.REPAIR).corruptEntries()).isOne();
        try (DiskLogFixture log = open()) {
            assertThat(log.keys()).containsExactly(2L);
        }
    }

    /// Gives object 1 another value; a new opening writes into a new region.
    private void overwrite(int bytes) {
        try (DiskLogFixture log = open()) {
            log.append(1, bytes);
            log.flush();
        }
    }

    private void damagePage(int region, int page) {
        long at = GEOMETRY.regionOffset(region) + (long) page * DiskGeometry.PAGE_BYTES;
        storage.set(JAVA_BYTE, at, (byte) ~storage.get(JAVA_BYTE, at));
    }

    @Test
    void givenADamagedTrailer_whenRepaired_thenItIsWrittenAnew() {
        fill(200);
        long table = GEOMETRY.regionOffset(0) + GEOMETRY.regionBytes() - 2L * DiskGeometry.PAGE_BYTES;
        storage.set(JAVA_BYTE, table, (byte) ~storage.get(JAVA_BYTE, table));
        assertThat(audit(Scope.BLOCKS).count(RegionState.DAMAGED)).isEqualTo(1);
        assertThat(namespace(Scope.REPAIR).objects()).isEqualTo(200);
        assertThat(audit(Scope.BLOCKS).count(RegionState.DAMAGED)).isZero();
        assertThat(namespace(Scope.BLOCKS).objects()).isEqualTo(200);
    }

    @Test
    void givenNoTier_whenAudited_thenItIsRefused() {
        assertThatIllegalArgumentException().isThrownBy(() -> audit(Scope.TABLES));
        storage.fill((byte) 1);
        assertThatIllegalArgumentException()
                .isThrownBy(() -> audit(Scope.TABLES))
                .withMessageContaining("no disk tier wrote");
    }

    @Test
    void givenManyPrints_whenAdded_thenEachIsThereOnce() {
        SplittableRandom random = new SplittableRandom(3);
        FingerprintSet prints = new FingerprintSet();
        List<DiskEntry> entries = new ArrayList<>();
        for (int i = 0; i < 20_000; i++) {
            entries.add(new DiskEntry(random.nextLong(), i, 0, 0, i << 16, 0, 0, 1, 0, StoredLayout.PLAIN, 0));
        }
        entries.forEach(entry ->
                assertThat(prints.add(FingerprintSet.of(entry))).as("new").isTrue());
        entries.forEach(entry ->
                assertThat(prints.add(FingerprintSet.of(entry))).as("again").isFalse());
        assertThat(prints.contains(FingerprintSet.ofParent(entries.getFirst()))).isFalse();
    }
}
