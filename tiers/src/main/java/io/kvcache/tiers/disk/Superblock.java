package io.kvcache.tiers.disk;

import static io.kvcache.tiers.disk.DiskEntry.INT32;
import static io.kvcache.tiers.disk.DiskEntry.INT64;

import io.kvcache.core.identity.AxisOrder;
import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.Dtype;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.identity.Part;
import io.kvcache.core.identity.PartKind;
import io.kvcache.core.identity.RopeOrigin;
import io.kvcache.tiers.disk.DiskSet.Membership;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// Self-description of a device: format, geometry, and the namespaces by number.
///
/// There are two copies, and nothing depends on a new one before both have it. So a crash in between, or later
/// damage to either, leaves one that is whole and knows every namespace in use. The one with the higher sequence
/// counts.
///
/// ```
///  0  int64  magic                  8  int32  CRC32C of all that follows and of the magic
/// 12  int32  format version        16  int64  sequence           24  int64  device bytes
/// 32  int64  region bytes          40  int32  namespaces         44  int32  bytes of their table
/// 48  int64  device id             56  int64  first opening whose values count
/// 64  int64  ... whose blocks do   72  int64  last generation in which a block was dropped
/// 80  the generation of the set of disks, see DiskGeneration, in 2 KiB
/// 2128  table: for each namespace its length (int32) and its text, see NamespaceSerializer
/// ```
///
/// @param deviceId drawn when the device was formatted; pages of an earlier formatting have another. It is
///     hard to guess: a client that knew it could hide what looks like a page of metadata in a block
/// @param sequence counts how often it was written
/// @param namespaces by number; entries refer to them by it, so the order never changes
/// @param membership the sets of disks that it was in
record Superblock(
        long deviceId, long sequence, DiskGeometry geometry, List<Namespace> namespaces, Membership membership) {

    /// The version of everything in this package. A device of another is refused or discarded, never guessed
    /// at.
    static final int FORMAT_VERSION = 2;

    private static final long MAGIC = 0x3150_5553_4356_4b4bL; // "KKVCSUP1", little-endian
    private static final int GENERATION_OFFSET = 80;
    private static final int HEADER_BYTES = GENERATION_OFFSET + (2 << 10);

    Superblock {
        namespaces = List.copyOf(namespaces);
    }

    /// Kind of a span that should be a superblock; of two, the one that is named first here counts.
    enum Kind {
        /// Whole, and of this version.
        INTACT,
        /// The device could not read it.
        UNREADABLE,
        /// Ours, and of another format version.
        OTHER_VERSION,
        /// Ours once; torn or damaged now.
        DAMAGED,
        /// A superblock of another format.
        FOREIGN,
        /// All zeroes.
        BLANK
    }

    /// Result of reading one copy.
    ///
    /// @param superblock there when the kind is INTACT
    /// @param version format version that the span claims, 0 when it claims none
    record SuperblockCopy(Kind kind, @Nullable Superblock superblock, int version) {

        static SuperblockCopy invalid(Kind kind) {
            return new SuperblockCopy(kind, null, 0);
        }
    }

    /// The same, written once more.
    Superblock withNextSequence() {
        return new Superblock(deviceId, sequence + 1, geometry, namespaces, membership);
    }

    /// The same, in a generation of a set of disks.
    Superblock withMembership(Membership change) {
        return new Superblock(deviceId, sequence + 1, geometry, namespaces, change);
    }

    /// The same with one more namespace, or null when there is no room for it.
    @Nullable
    Superblock withNamespace(Namespace namespace) {
        List<Namespace> more = new ArrayList<>(namespaces);
        more.add(namespace);
        long bytes = HEADER_BYTES;
        for (Namespace each : more) {
            bytes += Integer.BYTES + NamespaceSerializer.write(each).length;
        }
        boolean fits = bytes <= DiskGeometry.SUPERBLOCK_BYTES && more.size() <= DiskEntry.MAX_NAMESPACES;
        return fits ? new Superblock(deviceId, sequence + 1, geometry, more, membership) : null;
    }

    /// Writes one copy.
    ///
    /// @param target exactly [DiskGeometry#SUPERBLOCK_BYTES]
    void write(MemorySegment target) {
        target.fill((byte) 0);
        target.set(INT64, 0, MAGIC);
        target.set(INT32, 12, FORMAT_VERSION);
        target.set(INT64, 16, sequence);
        target.set(INT64, 24, geometry.deviceBytes());
        target.set(INT64, 32, geometry.regionBytes());
        target.set(INT32, 40, namespaces.size());
        target.set(INT64, 48, deviceId);
        target.set(INT64, 56, membership.valuesFrom());
        target.set(INT64, 64, membership.blocksFrom());
        target.set(INT64, 72, membership.lastBlockDrop());
        membership.generation().write(target, GENERATION_OFFSET);
        int at = HEADER_BYTES;
        for (Namespace each : namespaces) {
            byte[] text = NamespaceSerializer.write(each);
            target.set(INT32, at, text.length);
            MemorySegment.copy(MemorySegment.ofArray(text), 0, target, at + (long) Integer.BYTES, text.length);
            at += Integer.BYTES + text.length;
        }
        target.set(INT32, 44, at - HEADER_BYTES);
        MetadataCrc.write(target);
    }

    /// Reads one copy; damage is an answer, not an exception.
    ///
    /// @param span exactly [DiskGeometry#SUPERBLOCK_BYTES]
    static SuperblockCopy read(MemorySegment span) {
        if (span.get(INT64, 0) != MAGIC) {
            return SuperblockCopy.invalid(MetadataCrc.isBlank(span) ? Kind.BLANK : Kind.FOREIGN);
        }
        if (!MetadataCrc.matches(span)) {
            return SuperblockCopy.invalid(Kind.DAMAGED);
        }
        int version = span.get(INT32, 12);
        if (version != FORMAT_VERSION) {
            return new SuperblockCopy(Kind.OTHER_VERSION, null, version);
        }
        List<Namespace> namespaces = readNamespaces(span);
        DiskGeneration generation = DiskGeneration.read(span, GENERATION_OFFSET);
        if (namespaces == null || generation == null) {
            return new SuperblockCopy(Kind.DAMAGED, null, version);
        }
        DiskGeometry geometry = new DiskGeometry(span.get(INT64, 24), span.get(INT64, 32));
        Membership membership =
                new Membership(generation, span.get(INT64, 56), span.get(INT64, 64), span.get(INT64, 72));
        Superblock superblock =
                new Superblock(span.get(INT64, 48), span.get(INT64, 16), geometry, namespaces, membership);
        return new SuperblockCopy(Kind.INTACT, superblock, version);
    }

    private static @Nullable List<Namespace> readNamespaces(MemorySegment span) {
        List<Namespace> namespaces = new ArrayList<>();
        int at = HEADER_BYTES;
        for (int i = 0; i < span.get(INT32, 40); i++) {
            byte[] text = new byte[span.get(INT32, at)];
            MemorySegment.copy(span, at + (long) Integer.BYTES, MemorySegment.ofArray(text), 0, text.length);
            Namespace namespace = NamespaceSerializer.read(text);
            if (namespace == null) {
                return null;
            }
            namespaces.add(namespace);
            at += Integer.BYTES + text.length;
        }
        return namespaces;
    }

    /// The copy that counts: of two sound ones the later, else the one that tells more.
    static SuperblockCopy selectNewer(SuperblockCopy first, SuperblockCopy second) {
        if (first.superblock != null && second.superblock != null) {
            return first.superblock.sequence >= second.superblock.sequence ? first : second;
        }
        return first.kind.compareTo(second.kind) <= 0 ? first : second;
    }

    /// A namespace as bytes: its seven texts, its parts, and its digest, by which a reader knows that it
    /// understood.
    private static final class NamespaceSerializer {

        private NamespaceSerializer() {}

        static byte[] write(Namespace namespace) {
            ByteArrayOutputStream bytes = new ByteArrayOutputStream();
            try (DataOutputStream out = new DataOutputStream(bytes)) {
                out.writeUTF(namespace.model());
                out.writeUTF(namespace.revision());
                out.writeUTF(namespace.dtype());
                out.writeUTF(namespace.layout());
                out.writeUTF(namespace.adapter());
                out.writeUTF(namespace.tenant());
                out.writeUTF(namespace.salt());
                out.writeInt(namespace.parts().size());
                for (Part part : namespace.parts()) {
                    write(part, out);
                }
                out.write(namespace.digest());
            } catch (IOException impossible) {
                throw new UncheckedIOException(impossible);
            }
            return bytes.toByteArray();
        }

        private static void write(Part part, DataOutputStream out) throws IOException {
            BlockShape shape = part.shape();
            out.writeUTF(part.kind().name());
            out.writeUTF(shape.dtype().name());
            out.writeUTF(shape.order().name());
            int[] numbers = {
                part.group(),
                part.rank(),
                part.window(),
                part.rotation().basePosition(),
                shape.layers(),
                shape.planes(),
                shape.kvHeads(),
                shape.headDim(),
                shape.blockTokens()
            };
            for (int number : numbers) {
                out.writeInt(number);
            }
        }

        /// Answers null when the text does not give a namespace of the digest it carries: another version of
        /// this class wrote it, under the same format version.
        static @Nullable Namespace read(byte[] text) {
            try (DataInputStream in = new DataInputStream(new ByteArrayInputStream(text))) {
                Namespace.Builder builder = Namespace.builder(in.readUTF())
                        .revision(in.readUTF())
                        .dtype(in.readUTF())
                        .layout(in.readUTF())
                        .adapter(in.readUTF())
                        .tenant(in.readUTF())
                        .salt(in.readUTF());
                int parts = in.readInt();
                for (int i = 0; i < parts; i++) {
                    builder.part(readPart(in));
                }
                Namespace namespace = builder.build();
                return Arrays.equals(namespace.digest(), in.readAllBytes()) ? namespace : null;
            } catch (IOException | IllegalArgumentException strange) {
                return null;
            }
        }

        private static Part readPart(DataInputStream in) throws IOException {
            PartKind kind = PartKind.valueOf(in.readUTF());
            Dtype dtype = Dtype.valueOf(in.readUTF());
            AxisOrder order = AxisOrder.valueOf(in.readUTF());
            int group = in.readInt();
            int rank = in.readInt();
            int window = in.readInt();
            RopeOrigin rotation = new RopeOrigin(in.readInt());
            BlockShape shape =
                    new BlockShape(in.readInt(), in.readInt(), in.readInt(), in.readInt(), in.readInt(), dtype, order);
            return new Part(group, rank, kind, window, shape, rotation);
        }
    }
}
