package io.kvcache.server.config;

import io.kvcache.core.tier.AdmissionKind;
import io.kvcache.tiers.disk.DiskLogConfig.OnIncompatible;
import java.nio.file.InvalidPathException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/// Reads what is set of the disks: `disks.0.directory`, `disks.0.bytes` and so on, or both at once as
/// `disks.0`, `DIR:SIZE`.
final class DiskTierConfigReader {

    /// The list, and the beginning of its members' names.
    static final String LIST = "disks";

    private static final Path NO_DIRECTORY = Path.of("");

    private DiskTierConfigReader() {}

    static DiskTierConfig read(Settings from, DiskTierConfig defaultValue) {
        List<DiskConfig> disks = new ArrayList<>();
        for (int number : from.memberIndexes(LIST)) {
            disk(from, LIST + "." + number).ifPresent(disks::add);
        }
        AdmissionKind admission = from.get(
                "admission", defaultValue.admission(), text -> SettingParsers.parseEnum(AdmissionKind.class, text));
        Duration timeout = from.get("disk_read_timeout", defaultValue.readTimeout(), SettingParsers::parseDuration);
        boolean prefetch = from.get("prefetch", defaultValue.prefetch(), SettingParsers::parseBoolean);
        RecomputeConfig prefill = RecomputeConfig.read(from, defaultValue.recompute());
        return from.getValid(defaultValue, () -> new DiskTierConfig(disks, admission, timeout, prefetch, prefill));
    }

    private static Optional<DiskConfig> disk(Settings from, String path) {
        SizedDirectory sizedDirectory = from.get(path, SizedDirectory.UNSET, SizedDirectory::parse);
        Path directory = from.get(path + ".directory", sizedDirectory.directory(), SizedDirectory::directory);
        long bytes = from.get(path + ".bytes", sizedDirectory.bytes(), SettingParsers::parseBytes);
        long perSecond = from.get(path + ".bytes_per_second", 0L, SettingParsers::parseBytes);
        long perDay = from.get(path + ".bytes_per_day", 0L, SettingParsers::parseBytes);
        OnIncompatible change = from.get(
                path + ".on_incompatible",
                OnIncompatible.REFUSE,
                text -> SettingParsers.parseEnum(OnIncompatible.class, text));
        Optional<DiskConfig> none = Optional.empty();
        if (from.isSet(path) && sizedDirectory.equals(SizedDirectory.UNSET)) {
            return none; // said already
        }
        return from.getValid(none, () -> {
            if (directory.equals(NO_DIRECTORY)) {
                throw new IllegalArgumentException(path + ".directory is not set; it takes the name of a directory");
            }
            return Optional.of(new DiskConfig(path, directory, bytes, perSecond, perDay, change));
        });
    }

    /// `DIR:SIZE`.
    private record SizedDirectory(Path directory, long bytes) {

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
