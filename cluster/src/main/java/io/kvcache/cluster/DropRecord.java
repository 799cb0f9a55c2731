package io.kvcache.cluster;

import io.kvcache.core.identity.BlockKey;
import io.kvcache.core.identity.Namespace;
import io.kvcache.transport.wire.BodyReader;
import io.kvcache.transport.wire.BodyWriter;
import io.kvcache.transport.wire.ProtocolException;
import java.nio.ByteBuffer;
import java.util.Comparator;
import java.util.List;

/// A drop of groups that all servers of a cluster have to apply.
///
/// As bytes, [#BYTES] of them: 32 bytes digest of the namespace, `u8 kind (0 namespace, 1 chain, 2 floor)`, 16
/// bytes key (0 unless a chain), `u64 millis, u64 id`.
///
/// @param namespace whose blocks go
/// @param key of the first block that goes, with all below it; zeros unless it is a chain
/// @param millis orders the drops of one namespace: milliseconds since 1970, above those of all that were known to
///     the server which has made it
/// @param id the same for all records that servers make of one drop of a client. Of a floor, what it stands for
public record DropRecord(NamespaceDigest namespace, Kind kind, BlockKey key, long millis, long id) {

    /// Bytes of a record.
    public static final int BYTES = 32 + 1 + BlockKey.BYTES + 2 * Long.BYTES;

    private static final BlockKey NO_KEY = new BlockKey(0, 0);
    private static final List<Kind> KINDS = List.of(Kind.values());

    /// Later ones last.
    static final Comparator<DropRecord> ORDER = Comparator.comparingLong(DropRecord::millis)
            .thenComparing(DropRecord::kind)
            .thenComparingLong(DropRecord::id)
            .thenComparingLong(drop -> drop.key().hi())
            .thenComparingLong(drop -> drop.key().lo());

    /// What goes.
    public enum Kind {
        /// All of a namespace.
        NAMESPACE,
        /// A block and all below it.
        CHAIN,
        /// Drops of chains up to a time, which the log has forgotten. A server that has applied the same ones has
        /// nothing to do. Another one drops the whole namespace, as it cannot know what it lacks.
        FLOOR
    }

    /// A drop of a whole namespace.
    static DropRecord ofNamespace(NamespaceDigest namespace, long millis, long id) {
        return new DropRecord(namespace, Kind.NAMESPACE, NO_KEY, millis, id);
    }

    /// A drop of a block and all below it.
    static DropRecord ofChain(NamespaceDigest namespace, BlockKey key, long millis, long id) {
        return new DropRecord(namespace, Kind.CHAIN, key, millis, id);
    }

    /// @param drops [DropLog]'s sum of what it stands for
    static DropRecord ofFloor(NamespaceDigest namespace, long millis, long drops) {
        return new DropRecord(namespace, Kind.FLOOR, NO_KEY, millis, drops);
    }

    /// Returns whether the whole namespace goes.
    public boolean isWhole() {
        return kind != Kind.CHAIN;
    }

    /// Returns a number that stands for this drop at all servers, whatever time they have given it.
    public long identity() {
        long hash = mix(namespace.first ^ KINDS.indexOf(kind));
        hash = mix(hash ^ key.hi());
        hash = mix(hash ^ key.lo());
        return mix(hash ^ id);
    }

    /// Returns a number that stands for this record.
    long hash() {
        return mix(identity() ^ mix(millis));
    }

    private static long mix(long value) {
        long mixed = (value ^ value >>> 30) * 0xbf58476d1ce4e5b9L + 0x9e3779b97f4a7c15L;
        mixed = (mixed ^ mixed >>> 27) * 0x94d049bb133111ebL;
        return mixed ^ mixed >>> 31;
    }

    /// Writes the record.
    public void write(BodyWriter body) {
        body.bigEndian(namespace.first)
                .bigEndian(namespace.second)
                .bigEndian(namespace.third)
                .bigEndian(namespace.fourth)
                .oneOf(kind, KINDS)
                .bigEndian(key.hi())
                .bigEndian(key.lo())
                .i64(millis)
                .i64(id);
    }

    /// Reads a record.
    ///
    /// @throws ProtocolException when a field is out of range
    public static DropRecord read(BodyReader body) throws ProtocolException {
        NamespaceDigest namespace = NamespaceDigest.of(body.bytes("digest", NamespaceDigest.BYTES));
        Kind kind = body.oneOf("kind", KINDS);
        BlockKey key = BlockKey.ofDigest(body.bytes("key", BlockKey.BYTES));
        return new DropRecord(namespace, kind, key, body.nonNegativeLong("millis"), body.i64("id"));
    }

    /// The digest of a namespace, which is the same at all servers.
    public record NamespaceDigest(long first, long second, long third, long fourth) {

        static final int BYTES = 32;

        /// The digest of a namespace.
        public static NamespaceDigest of(Namespace namespace) {
            return of(namespace.digest());
        }

        /// @param digest 32 bytes
        static NamespaceDigest of(byte[] digest) {
            ByteBuffer bytes = ByteBuffer.wrap(digest);
            return new NamespaceDigest(bytes.getLong(), bytes.getLong(), bytes.getLong(), bytes.getLong());
        }
    }
}
