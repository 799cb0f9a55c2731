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
final class DiskSettings {

    /// The list, and the beginning of its members' names.
    static final String LIST = "disks";

    private static final Path NOWHERE = Path.of("");

    private DiskSettings() {}

    static DisksConfig read(Settings from, DisksConfig otherwise) {
        List<DiskConfig> disks = new ArrayList<>();
        for (int number : from.members(LIST)) {
            disk(from, LIST + "." + number).ifPresent(disks::add);
        }
        AdmissionKind admission =
                from.get("admission", otherwise.admission(), text -> Values.choice(AdmissionKind.class, text));
        Duration timeout = from.get("disk_read_timeout", otherwise.readTimeout(), Values::duration);
        boolean prefetch = from.get("prefetch", otherwise.prefetch(), Values::truth);
        PrefillConfig prefill = PrefillConfig.read(from, otherwise.prefill());
        return from.checked(otherwise, () -> new DisksConfig(disks, admission, timeout, prefetch, prefill));
    }

    private static Optional<DiskConfig> disk(Settings from, String path) {
        Place place = from.get(path, Place.UNSET, Place::parse);
        Path directory = from.get(path + ".directory", place.directory(), Place::directory);
        long bytes = from.get(path + ".bytes", place.bytes(), Values::bytes);
        long perSecond = from.get(path + ".bytes_per_second", 0L, Values::bytes);
        long perDay = from.get(path + ".bytes_per_day", 0L, Values::bytes);
        OnIncompatible change = from.get(
                path + ".on_incompatible", OnIncompatible.REFUSE, text -> Values.choice(OnIncompatible.class, text));
        Optional<DiskConfig> none = Optional.empty();
        if (from.isSet(path) && place.equals(Place.UNSET)) {
            return none; // said already
        }
        return from.checked(none, () -> {
            if (directory.equals(NOWHERE)) {
                throw new IllegalArgumentException(path + ".directory is not set; it takes the name of a directory");
            }
            return Optional.of(new DiskConfig(path, directory, bytes, perSecond, perDay, change));
        });
    }

    /// `DIR:SIZE`.
    private record Place(Path directory, long bytes) {

        static final Place UNSET = new Place(NOWHERE, 0);

        static Place parse(String text) {
            int colon = text.lastIndexOf(':');
            if (colon < 1) {
                throw new IllegalArgumentException("it takes DIR:SIZE, for example /mnt/nvme0/kvcache:1TiB");
            }
            return new Place(directory(text.substring(0, colon)), Values.bytes(text.substring(colon + 1)));
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
