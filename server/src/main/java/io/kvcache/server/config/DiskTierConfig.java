package io.kvcache.server.config;

import io.kvcache.core.tier.AdmissionKind;
import io.kvcache.core.tree.DiskAddress;
import io.kvcache.tiers.DiskOptions;
import io.kvcache.tiers.disk.DiskGeometry;
import io.kvcache.tiers.movement.WriteBudget;
import io.kvcache.tiers.options.OnIncompatible;
import io.kvcache.tiers.os.ByteSizeFormat;
import java.nio.file.InvalidPathException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;

/// The tiers below host memory, and what they are used for.
///
/// @param disks that take turns; none for a server that keeps everything in memory
/// @param gpus in front of the disks, or in their place; engines on this host connect to each
/// @param admission which values are written
/// @param readTimeout how long a request waits for a value that is on disk before it is told that there is none
/// @param prefetch whether chunks that a client is likely to read next are brought into memory
///     ahead of it
/// @param recompute when clients are told to compute what is there
public record DiskTierConfig(
        List<DiskConfig> disks,
        List<GpuConfig> gpus,
        AdmissionKind admission,
        Duration readTimeout,
        boolean prefetch,
        RecomputeConfig recompute) {

    /// The list of disks, and the beginning of its members' names.
    static final String LIST = "disks";

    private static final Duration MAX_READ_TIMEOUT = Duration.ofMinutes(1);
    private static final String READ_TIMEOUT_RANGE = "1ms to 60s";

    public DiskTierConfig {
        disks = List.copyOf(disks);
        gpus = List.copyOf(gpus);
        if (disks.size() > DiskAddress.MAX_DISKS) {
            throw new IllegalArgumentException("disks are " + disks.size() + "; there may be " + DiskAddress.MAX_DISKS);
        }
        Set<Path> directories = new HashSet<>();
        for (DiskConfig disk : disks) {
            if (!directories.add(disk.directory().toAbsolutePath().normalize())) {
                throw new IllegalArgumentException("disks name the directory " + disk.directory() + " twice");
            }
        }
        long fronts = gpus.stream().filter(GpuConfig::isTier).count();
        if (disks.size() + fronts > DiskAddress.MAX_DISKS) {
            throw new IllegalArgumentException("gpu names " + fronts + " GPUs with bytes beside " + disks.size()
                    + " disks; there may be " + DiskAddress.MAX_DISKS + " of both together");
        }
        if (readTimeout.isNegative() || readTimeout.isZero() || readTimeout.compareTo(MAX_READ_TIMEOUT) > 0) {
            throw new IllegalArgumentException(
                    "disk_read_timeout is " + readTimeout.toMillis() + "ms; it takes " + READ_TIMEOUT_RANGE);
        }
    }

    /// Returns whether values can lie below host memory.
    private boolean hasTier() {
        return !disks.isEmpty() || gpus.stream().anyMatch(GpuConfig::isTier);
    }

    /// Returns whether values can survive a restart.
    public boolean isDurable() {
        return !disks.isEmpty();
    }

    /// How long a value may take to arrive from a disk or a GPU; zero when there is none.
    public Duration fetchTimeout() {
        return hasTier() ? readTimeout : Duration.ZERO;
    }

    /// No disks; where there are some, chunks come ahead of their readers.
    public static DiskTierConfig defaults() {
        return new DiskTierConfig(
                List.of(),
                List.of(),
                AdmissionKind.SECOND_HIT,
                Duration.ofSeconds(5),
                true,
                RecomputeConfig.defaults());
    }

    /// Reads `disks.0.directory`, `disks.0.bytes` and so on, or both at once as `disks.0`, `DIR:SIZE`.
    static DiskTierConfig read(Settings from, DiskTierConfig usual) {
        List<DiskConfig> disks = new ArrayList<>();
        for (int number : from.memberIndexes(LIST)) {
            readDisk(from, LIST + "." + number).ifPresent(disks::add);
        }
        List<GpuConfig> gpus = GpuConfig.readAll(from);
        return from.getValid(
                usual,
                () -> new DiskTierConfig(
                        disks,
                        gpus,
                        from.constant("admission", usual.admission),
                        from.duration("disk_read_timeout", usual.readTimeout, READ_TIMEOUT_RANGE),
                        from.flag("prefetch", usual.prefetch),
                        RecomputeConfig.read(from, usual.recompute)));
    }

    private static Optional<DiskConfig> readDisk(Settings from, String path) {
        SizedDirectory both = from.get(path, SizedDirectory.UNSET, SizedDirectory::parse);
        from.notePart(path + ".directory", path);
        from.notePart(path + ".bytes", path);
        Path directory = from.get(path + ".directory", both.directory, SizedDirectory::directory);
        long bytes = from.bytes(path + ".bytes", both.bytes);
        long perSecond = from.bytes(path + ".bytes_per_second", 0);
        long perDay = from.bytes(path + ".bytes_per_day", 0);
        OnIncompatible change = from.constant(path + ".on_incompatible", OnIncompatible.REFUSE);
        boolean coding = from.flag(path + ".coding", true);
        Optional<DiskConfig> none = Optional.empty();
        if (from.isSet(path) && both.equals(SizedDirectory.UNSET)) {
            return none; // the parser reported it
        }
        return from.getValid(none, () -> {
            if (directory.equals(SizedDirectory.NO_DIRECTORY)) {
                throw new IllegalArgumentException(path + ".directory is not set; it takes the name of a directory");
            }
            if (bytes == 0 && !from.isSet(path + ".bytes") && !from.isSet(path)) {
                throw new IllegalArgumentException("%s.bytes is not set; it takes %s and up, as in 1TiB"
                        .formatted(path, ByteSizeFormat.format(DiskGeometry.MIN_DEVICE_BYTES)));
            }
            return Optional.of(new DiskConfig(path, directory, bytes, perSecond, perDay, change, coding));
        });
    }

    /// One disk below host memory.
    ///
    /// @param name as messages call it, `disks.0`
    /// @param directory holds its file; made when it is missing
    /// @param bytes of that file
    /// @param bytesPerSecond and `bytesPerDay`: written at most; 0 for no limit
    /// @param onIncompatible what becomes of a file there that is not a disk of this format and size
    /// @param coding whether bf16 values are written in fewer bytes
    public record DiskConfig(
            String name,
            Path directory,
            long bytes,
            long bytesPerSecond,
            long bytesPerDay,
            OnIncompatible onIncompatible,
            boolean coding) {

        public DiskConfig {
            if (bytes < DiskGeometry.MIN_DEVICE_BYTES) {
                throw new IllegalArgumentException("%s.bytes is %s; it takes %s and up"
                        .formatted(
                                name,
                                ByteSizeFormat.format(bytes),
                                ByteSizeFormat.format(DiskGeometry.MIN_DEVICE_BYTES)));
            }
        }

        /// Values of this size and more stay in memory alone: a little is kept beside what lies in a region.
        public long regionBytes() {
            return DiskGeometry.of(bytes).regionBytes();
        }

        /// As the store takes it.
        public DiskOptions toDiskOptions() {
            return DiskOptions.of(directory, bytes)
                    .withWriteBudget(limit(bytesPerSecond), limit(bytesPerDay))
                    .withOnIncompatible(onIncompatible)
                    .withCoding(coding);
        }

        private static long limit(long bytes) {
            return bytes == 0 ? WriteBudget.UNLIMITED : bytes;
        }
    }

    /// `DIR:SIZE`.
    private record SizedDirectory(Path directory, long bytes) {

        private static final Path NO_DIRECTORY = Path.of("");
        static final SizedDirectory UNSET = new SizedDirectory(NO_DIRECTORY, 0);

        static SizedDirectory parse(String text) {
            int colon = text.lastIndexOf(':');
            if (colon < 1) {
                throw new IllegalArgumentException("it takes DIR:SIZE, for example /mnt/nvme0/kvcache:1TiB");
            }
            return new SizedDirectory(
                    directory(text.substring(0, colon)), SettingParsers.parseBytes(text.substring(colon + 1)));
        }

        static Path directory(String text) {
            try {
                return Path.of(text);
            } catch (InvalidPathException not) {
                throw new IllegalArgumentException("it takes the name of a directory: " + not.getMessage(), not);
            }
        }
    }
}
