package io.kvcache.server.config;

import io.kvcache.tiers.os.ByteSizeFormat;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;

/// A GPU that the server uses: engines of this host copy blocks to and from their memory on it, and a part of its
/// memory may hold blocks.
///
/// @param name as messages call it, `gpu.0`
/// @param device in the driver's order, from 0 on
/// @param bytes of its memory for blocks at first; 0 for none
/// @param maxBytes that they may be later; as many as `bytes` for a fixed size
public record GpuConfig(String name, int device, long bytes, long maxBytes) {

    /// The list of GPUs, and the beginning of its members' names.
    static final String LIST = "gpu";

    private static final int MAX_DEVICE = 63;
    private static final long MIN_BYTES = 1L << 20;

    public GpuConfig {
        if (device < 0 || device > MAX_DEVICE) {
            throw new IllegalArgumentException(name + ".device is " + device + "; it takes 0 to " + MAX_DEVICE);
        }
        if (bytes != 0 && bytes < MIN_BYTES) {
            throw new IllegalArgumentException("%s.bytes is %s; it takes 1MiB and up, or 0 for none"
                    .formatted(name, ByteSizeFormat.format(bytes)));
        }
        if (maxBytes < bytes || (bytes == 0 && maxBytes > 0)) {
            throw new IllegalArgumentException("%s.max_bytes is %s; it takes %s"
                    .formatted(
                            name,
                            ByteSizeFormat.format(maxBytes),
                            bytes == 0
                                    ? "a size beside bytes only"
                                    : "bytes, which is " + ByteSizeFormat.format(bytes) + ", and up"));
        }
    }

    /// Returns whether its tier may have another size later.
    public boolean canResize() {
        return maxBytes > bytes;
    }

    /// Returns whether blocks are kept in its memory.
    public boolean isTier() {
        return bytes > 0;
    }

    /// Reads `gpu.0.device`, `gpu.0.bytes` and so on, or all at once as `gpu.0`, `DEVICE`, `DEVICE:SIZE` or
    /// `DEVICE:SIZE:MAX`.
    static List<GpuConfig> readAll(Settings from) {
        List<GpuConfig> gpus = new ArrayList<>();
        Set<Integer> devices = new HashSet<>();
        for (int number : from.memberIndexes(LIST)) {
            read(from, LIST + "." + number).ifPresent(gpu -> {
                if (!devices.add(gpu.device)) {
                    from.addProblem(
                            gpu.name + ".device is " + gpu.device + ", as another's is; each GPU may be named once");
                }
                gpus.add(gpu);
            });
        }
        return gpus;
    }

    private static Optional<GpuConfig> read(Settings from, String path) {
        SizedDevice both = from.get(path, SizedDevice.UNSET, SizedDevice::parse);
        from.notePart(path + ".device", path);
        from.notePart(path + ".bytes", path);
        from.notePart(path + ".max_bytes", path);
        Optional<Integer> number = from.get(
                path + ".device",
                both.device,
                text -> Optional.of(SettingParsers.integerParser(0, MAX_DEVICE).apply(text)));
        long bytes = from.bytes(path + ".bytes", both.bytes);
        long maxBytes = from.bytes(path + ".max_bytes", both.maxBytes);
        boolean reported = number.isEmpty() && (from.isSet(path) || from.isSet(path + ".device"));
        if (reported) {
            return Optional.empty();
        }
        return from.getValid(Optional.empty(), () -> {
            int device = number.orElseThrow(
                    () -> new IllegalArgumentException(path + ".device is not set; it takes 0 to " + MAX_DEVICE));
            return Optional.of(new GpuConfig(path, device, bytes, maxBytes == 0 ? bytes : maxBytes));
        });
    }

    /// `DEVICE`, `DEVICE:SIZE` or `DEVICE:SIZE:MAX`.
    ///
    /// @param maxBytes 0 where there is no third part
    private record SizedDevice(Optional<Integer> device, long bytes, long maxBytes) {

        static final SizedDevice UNSET = new SizedDevice(Optional.empty(), 0, 0);

        static SizedDevice parse(String text) {
            String[] parts = text.strip().split(":", 3);
            if (!parts[0].matches("\\d{1,2}") || Integer.parseInt(parts[0]) > MAX_DEVICE) {
                throw new IllegalArgumentException(
                        "it takes DEVICE:SIZE, for example 0:40GiB, DEVICE:SIZE:MAX or DEVICE, which is 0 to "
                                + MAX_DEVICE);
            }
            return new SizedDevice(
                    Optional.of(Integer.parseInt(parts[0])),
                    parts.length == 1 ? 0 : SettingParsers.parseBytes(parts[1]),
                    parts.length < 3 ? 0 : SettingParsers.parseBytes(parts[2]));
        }
    }
}
