package io.kvcache.bench.disk;

import java.util.Locale;

/// One run of a mover over a file; what several questions ask for is run once a round.
///
/// @param pieceBytes of each read or write
/// @param repeat which one, where the same is run several times a round
public record DiskRun(IoEngine mover, StorageMedium place, AccessPattern pattern, int pieceBytes, int repeat) {

    public static DiskRun of(IoEngine ioEngine, StorageMedium storageMedium, AccessPattern pattern, int pieceBytes) {
        return new DiskRun(ioEngine, storageMedium, pattern, pieceBytes, 1);
    }

    /// The same once more, for a control.
    public DiskRun repeated() {
        return new DiskRun(mover, place, pattern, pieceBytes, repeat + 1);
    }

    /// For progress: `device random_read of 1 MiB, memory`.
    public String describe() {
        return String.format(
                Locale.ROOT,
                "%s %s of %d MiB, %s%s",
                mover.name().toLowerCase(Locale.ROOT),
                pattern.name().toLowerCase(Locale.ROOT),
                pieceBytes >> 20,
                place.name().toLowerCase(Locale.ROOT),
                repeat > 1 ? ", again" : "");
    }
}
