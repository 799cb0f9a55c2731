package io.kvcache.tiers.disk;

import io.kvcache.core.contract.DurableTierUnderTest;
import io.kvcache.core.memory.ArenaMemory;
import io.kvcache.core.tier.Tier;
import io.kvcache.core.tier.TierListener;
import io.kvcache.tiers.device.BlockDevice;
import io.kvcache.tiers.device.MemoryDevice;
import io.kvcache.tiers.disk.DiskLogConfig.ReclaimConfig;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.zip.CRC32C;

/// A disk tier's storage as bytes in memory.
public final class InMemoryDiskTier implements DurableTierUnderTest {

    static final long BYTES = 8L << 20;

    private static final DiskLogConfig CONFIG =
            DiskLogConfig.of(DiskGeometry.of(BYTES), 0xABCDEF).withReclaim(new ReclaimConfig(2, 50, 1 << 20, false));

    private final Arena arena = Arena.ofShared();
    private final MemorySegment storage = arena.allocate(BYTES, DiskGeometry.PAGE_BYTES);

    static Tier open(BlockDevice device, TierListener listener) {
        DiskLog.Resources resources = new DiskLog.Resources(device, device, ArenaMemory.source());
        return new DiskLog("disk", resources, CONFIG, listener);
    }

    /// Changes a byte wherever the bytes are found; they begin at whole pages.
    static int damage(MemorySegment storage, byte[] found) {
        MemorySegment wanted = MemorySegment.ofArray(found);
        int places = 0;
        for (long at = 0; at < storage.byteSize(); at += DiskGeometry.PAGE_BYTES) {
            if (storage.asSlice(at, found.length).mismatch(wanted) < 0) {
                storage.set(ValueLayout.JAVA_BYTE, at + 1, (byte) ~found[1]);
                places++;
            }
        }
        return places;
    }

    static long checksum(MemorySegment storage) {
        CRC32C crc = new CRC32C();
        crc.update(storage.asByteBuffer());
        return crc.getValue();
    }

    static void estrange(MemorySegment storage) {
        storage.asSlice(0, 2L * DiskGeometry.SUPERBLOCK_BYTES).fill((byte) 'x');
    }

    @Override
    public Tier open(TierListener listener) {
        return open(MemoryDevice.create(storage, 16), listener);
    }

    @Override
    public int damage(byte[] found) {
        return damage(storage, found);
    }

    @Override
    public void estrange() {
        estrange(storage);
    }

    @Override
    public long checksum() {
        return checksum(storage);
    }

    @Override
    public long waitNanos() {
        return 0;
    }

    @Override
    public void close() {
        arena.close();
    }
}
