package io.kvcache.tiers.disk;

import static io.kvcache.tiers.disk.EntryTable.INT32;
import static io.kvcache.tiers.disk.EntryTable.INT64;

import io.kvcache.core.identity.Namespace;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// What a device says of itself: format, geometry, and the namespaces by number.
///
/// There are two copies. A new one is written over the older, so that a crash in between leaves the other; the
/// one with the higher sequence counts.
///
/// ```
///  0  int64  magic                  8  int32  CRC32C of all that follows and of the magic
/// 12  int32  format version        16  int64  sequence           24  int64  device bytes
/// 32  int64  region bytes          40  int32  namespaces         44  int32  bytes of their table
/// 48  table: for each namespace its length (int32) and its text, see NamespaceText
/// ```
///
/// @param sequence counts how often it was written
/// @param namespaces by number; entries refer to them by it, so the order never changes
public record Superblock(long sequence, Geometry geometry, List<Namespace> namespaces) {

    /// The version of everything in this package. A device of another is refused or discarded, never guessed at.
    public static final int FORMAT_VERSION = 1;

    private static final long MAGIC = 0x3150_5553_4356_4b4bL; // "KKVCSUP1", little-endian
    private static final int HEADER_BYTES = 48;

    public Superblock {
        namespaces = List.copyOf(namespaces);
    }

    /// What a span that should be a superblock turned out to be.
    public enum Kind {
        /// Whole, and of this version.
        SOUND,
        /// Nothing of ours was ever written here.
        FOREIGN,
        /// Ours, and of another format version.
        OTHER_VERSION,
        /// Ours once; torn or damaged now.
        DAMAGED
    }

    /// What one copy turned out to be.
    ///
    /// @param superblock there when the kind is SOUND
    /// @param version format version that the span claims, 0 when it claims none
    public record Found(Kind kind, @Nullable Superblock superblock, int version) {}

    /// Writes one copy.
    ///
    /// @param target exactly [Geometry#SUPERBLOCK_BYTES]
    /// @throws IllegalStateException when the namespaces do not fit
    public void write(MemorySegment target) {
        target.fill((byte) 0);
        target.set(INT64, 0, MAGIC);
        target.set(INT32, 12, FORMAT_VERSION);
        target.set(INT64, 16, sequence);
        target.set(INT64, 24, geometry.deviceBytes());
        target.set(INT64, 32, geometry.regionBytes());
        target.set(INT32, 40, namespaces.size());
        int at = HEADER_BYTES;
        for (Namespace each : namespaces) {
            byte[] text = NamespaceText.write(each);
            if (at + Integer.BYTES + text.length > target.byteSize()) {
                throw new IllegalStateException(namespaces.size() + " namespaces take more than the "
                        + Geometry.SUPERBLOCK_BYTES + " bytes of a superblock");
            }
            target.set(INT32, at, text.length);
            MemorySegment.copy(MemorySegment.ofArray(text), 0, target, at + (long) Integer.BYTES, text.length);
            at += Integer.BYTES + text.length;
        }
        target.set(INT32, 44, at - HEADER_BYTES);
        Seal.close(target);
    }

    /// Reads one copy; damage is an answer, not an exception.
    ///
    /// @param span exactly [Geometry#SUPERBLOCK_BYTES]
    public static Found read(MemorySegment span) {
        if (span.get(INT64, 0) != MAGIC) {
            return new Found(Kind.FOREIGN, null, 0);
        }
        if (!Seal.holds(span)) {
            return new Found(Kind.DAMAGED, null, 0);
        }
        int version = span.get(INT32, 12);
        if (version != FORMAT_VERSION) {
            return new Found(Kind.OTHER_VERSION, null, version);
        }
        Geometry geometry = new Geometry(span.get(INT64, 24), span.get(INT64, 32));
        List<Namespace> namespaces = new ArrayList<>();
        int at = HEADER_BYTES;
        for (int i = 0; i < span.get(INT32, 40); i++) {
            byte[] text = new byte[span.get(INT32, at)];
            MemorySegment.copy(span, at + (long) Integer.BYTES, MemorySegment.ofArray(text), 0, text.length);
            namespaces.add(NamespaceText.read(text));
            at += Integer.BYTES + text.length;
        }
        return new Found(Kind.SOUND, new Superblock(span.get(INT64, 16), geometry, namespaces), version);
    }

    /// The copy that counts: of two sound ones the later, else the sound one, else whichever tells more.
    public static Found newer(Found first, Found second) {
        if (first.superblock != null && second.superblock != null) {
            return first.superblock.sequence >= second.superblock.sequence ? first : second;
        }
        return first.kind == Kind.SOUND || second.kind == Kind.FOREIGN ? first : second;
    }
}
