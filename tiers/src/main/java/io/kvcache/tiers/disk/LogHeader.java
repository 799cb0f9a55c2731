package io.kvcache.tiers.disk;

import io.kvcache.core.identity.Namespace;
import io.kvcache.tiers.disk.Superblock.Found;
import io.kvcache.tiers.disk.Superblock.Kind;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// What a file says of the disk tier in it, read without opening it as a log and without changing it.
///
/// @param refusal why no log would open it; null when one would
/// @param tier what its superblock says, even when it is refused for its size; null when there is none
/// @param soundCopies of the superblock, 0 to 2; one is enough
public record LogHeader(@Nullable Refusal refusal, @Nullable Tier tier, int soundCopies) {

    /// The version of the format that this program reads and writes.
    public static final int FORMAT_VERSION = Superblock.FORMAT_VERSION;

    /// What the superblock says.
    ///
    /// @param superblocks how often one was written: at each opening and for each namespace
    /// @param namespaces by number
    public record Tier(Geometry geometry, long superblocks, List<Namespace> namespaces) {

        public Tier {
            namespaces = List.copyOf(namespaces);
        }
    }

    /// Reads both copies of the superblock.
    ///
    /// @throws IOException when the file cannot be read
    public static LogHeader read(Path file) throws IOException {
        try (FileChannel channel = FileChannel.open(file, StandardOpenOption.READ)) {
            LogHeader header = of(copy(channel, 0), copy(channel, 1), channel.size());
            boolean blank = header.refusal == null && header.tier == null;
            return blank && hasTraces(channel) ? new LogHeader(Refusal.blankOverLog(channel.size()), null, 0) : header;
        }
    }

    private static boolean hasTraces(FileChannel channel) throws IOException {
        if (channel.size() < Geometry.MIN_DEVICE_BYTES) {
            return false;
        }
        Geometry geometry = Geometry.of(channel.size());
        for (int region = 0; region < Traces.regions(geometry); region++) {
            if (Traces.in(page(channel, Traces.head(geometry, region)), geometry)
                    || Traces.in(page(channel, Traces.footer(geometry, region)), geometry)) {
                return true;
            }
        }
        return false;
    }

    private static MemorySegment page(FileChannel channel, long start) throws IOException {
        return span(channel, start, Geometry.PAGE_BYTES);
    }

    static LogHeader of(Found first, Found second, long fileBytes) {
        int sound = (first.kind() == Kind.SOUND ? 1 : 0) + (second.kind() == Kind.SOUND ? 1 : 0);
        Found found = Superblock.newer(first, second);
        Superblock superblock = found.superblock();
        if (superblock != null) {
            Tier tier = new Tier(superblock.geometry(), superblock.sequence(), superblock.namespaces());
            boolean fits = superblock.geometry().deviceBytes() == fileBytes;
            return new LogHeader(fits ? null : Refusal.of(found, fileBytes), tier, sound);
        }
        return new LogHeader(found.kind() == Kind.BLANK ? null : Refusal.of(found, fileBytes), null, sound);
    }

    private static Found copy(FileChannel channel, int copy) throws IOException {
        return Superblock.read(span(channel, (long) copy * Geometry.SUPERBLOCK_BYTES, Geometry.SUPERBLOCK_BYTES));
    }

    private static MemorySegment span(FileChannel channel, long start, int length) throws IOException {
        ByteBuffer bytes = ByteBuffer.allocate(length);
        int read = 0;
        while (read >= 0 && bytes.hasRemaining()) {
            read = channel.read(bytes, start + bytes.position());
        }
        return MemorySegment.ofArray(bytes.array());
    }
}
