package io.kvcache.core.identity;

import io.kvcache.core.hash.Sha256;
import io.kvcache.core.hash.Utf8;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/// Everything that must match for KV to be reusable: model, revision, dtype, layout, adapter, tenant, salt and
/// the parts a block consists of.
///
/// Its digest is where every chain of keys starts, so blocks of two namespaces never meet. Two namespaces that
/// differ in any field have different digests; moving a character from one field to the next is a difference.
///
/// **Parts.** A block's part number is its index in [#parts()], so their order counts. All [PartKind#FULL] parts
/// together are the block. Windows and states have entries of their own ([#groups()]). A namespace without parts
/// holds opaque objects only.
///
/// **Salt.** Secret: it appears in no message and not in [#toString()].
///
/// Immutable. Equal when all fields are equal, which is the same as equal digests.
public final class Namespace {

    /// The tenant that owns what names none.
    public static final String DEFAULT_TENANT = "default";

    /// More than any parallel layout of today has: 8 layer groups on 128 ranks.
    public static final int MAX_PARTS = 1024;

    private static final NamespaceField MODEL = NamespaceField.required("model");
    private static final NamespaceField REVISION = NamespaceField.optional("revision");
    private static final NamespaceField DTYPE = NamespaceField.optional("dtype");
    private static final NamespaceField LAYOUT = NamespaceField.optional("layout");
    private static final NamespaceField ADAPTER = NamespaceField.optional("adapter");
    private static final NamespaceField TENANT = NamespaceField.optional("tenant");
    private static final NamespaceField SALT = NamespaceField.secret("salt");
    private static final ValueRange PARTS = new ValueRange("number of parts", 0, MAX_PARTS);

    private final String model;
    private final String revision;
    private final String dtype;
    private final String layout;
    private final String adapter;
    private final String tenant;
    private final String salt;
    private final List<Part> parts;
    private final boolean isOfGroup;
    /// 0 without parts.
    private final int blockTokens;
    private final long blockBytes;
    private final byte[] digest;
    private final List<PartGroup> groups;

    private Namespace(Builder from) {
        model = MODEL.check(from.model);
        revision = REVISION.check(from.revision);
        dtype = DTYPE.check(from.dtype);
        layout = LAYOUT.check(from.layout);
        adapter = ADAPTER.check(from.adapter);
        tenant = TENANT.check(from.tenant);
        salt = SALT.check(from.salt);
        isOfGroup = layout.startsWith(PartGroup.MARK);
        parts = checkedParts(from.parts, isOfGroup);
        blockTokens = parts.isEmpty() ? 0 : blockTokens(parts);
        blockBytes = computeBlockBytes();
        digest = computeDigest();
        groups = isOfGroup ? List.of() : computeGroups();
    }

    /// Starts a namespace of which all but the model is empty.
    public static Builder builder(String model) {
        return new Builder(model);
    }

    /// The namespace of a model that is not split: one full-attention part, the dtype that of the shape.
    public static Namespace of(String model, BlockShape shape) {
        return builder(model)
                .dtype(shape.dtype().name().toLowerCase(Locale.ROOT))
                .part(Part.full(shape))
                .build();
    }

    /// A namespace of opaque objects: it has no parts and no blocks.
    public static Namespace objects(String name, String tenant) {
        return builder(name).tenant(tenant).build();
    }

    /// A builder that starts with all fields of this namespace.
    public Builder toBuilder() {
        return builder(model)
                .revision(revision)
                .dtype(dtype)
                .layout(layout)
                .adapter(adapter)
                .tenant(tenant)
                .salt(salt)
                .parts(parts);
    }

    /// Name of the model, or of the collection of objects; never blank.
    public String model() {
        return model;
    }

    /// Revision of the weights; may be empty.
    public String revision() {
        return revision;
    }

    /// Type or codec of the stored bytes, as the engine names it; may be empty.
    public String dtype() {
        return dtype;
    }

    /// Fingerprint of whatever else the engine's layout depends on; may be empty.
    public String layout() {
        return layout;
    }

    /// Adapter (LoRA) with its version; may be empty.
    public String adapter() {
        return adapter;
    }

    /// Tenant that the digest covers; may be empty.
    public String tenant() {
        return tenant;
    }

    /// Tenant that owns what is stored here, for all that is permitted, counted and shown: [#DEFAULT_TENANT] where
    /// none is named. Namespaces of one owner have different digests where one names it and the other does not.
    public String owner() {
        return ownerOf(tenant);
    }

    /// The owner that a client's tenant stands for.
    ///
    /// @param tenant may be empty
    public static String ownerOf(String tenant) {
        return tenant.isEmpty() ? DEFAULT_TENANT : tenant;
    }

    /// Secret that keeps users of one tenant apart; may be empty.
    public String salt() {
        return salt;
    }

    /// The parts of a block, by part number. Unmodifiable.
    public List<Part> parts() {
        return parts;
    }

    /// The 32 bytes that every chain of keys starts from. A copy.
    public byte[] digest() {
        return digest.clone();
    }

    /// Tokens in a block: those of [PartKind#FULL] parts, or where there are none, the fewest of any part.
    ///
    /// @throws IllegalStateException when the namespace has no parts, and so no blocks
    public int blockTokens() {
        if (parts.isEmpty()) {
            throw new IllegalStateException(this + " has no parts: it holds objects, not blocks of tokens");
        }
        return blockTokens;
    }

    /// Bytes of a block: its [PartKind#FULL] parts, one behind the other. Without such parts a block is one byte,
    /// which means nothing; without any part there are no blocks, and it is 0.
    public long blockBytes() {
        return blockBytes;
    }

    /// Returns whether blocks have a meaning: a model without full attention has windows or states alone.
    public boolean hasFullParts() {
        return parts.stream().anyMatch(part -> part.kind() == PartKind.FULL);
    }

    /// The windows and states of the namespace, in the order of their first parts. Unmodifiable.
    public List<PartGroup> groups() {
        return groups;
    }

    /// The group that a part is in, or null if it is in the block itself.
    ///
    /// @param part number of a part
    public @Nullable PartGroup groupOf(int part) {
        for (PartGroup group : groups) {
            if (group.parts().contains(parts.get(part))) {
                return group;
            }
        }
        return null;
    }

    /// Returns whether this is the namespace of the entries of another one's windows or states
    /// ([PartGroup#namespace()]).
    public boolean isOfGroup() {
        return isOfGroup;
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof Namespace that && Arrays.equals(digest, that.digest);
    }

    @Override
    public int hashCode() {
        return (int) BlockKey.longAt(digest, 0);
    }

    /// Model, tenant and the first digits of the digest.
    @Override
    public String toString() {
        String ofTenant = tenant.isEmpty() ? "" : ", tenant " + tenant;
        return "namespace %s%s (%s)".formatted(model, ofTenant, HexFormat.of().formatHex(digest, 0, 4));
    }

    /// The digest itself, for readers inside the package that promise not to write.
    byte[] rawDigest() {
        return digest;
    }

    private byte[] computeDigest() {
        NamespaceHasher feed = new NamespaceHasher()
                .text(MODEL.utf8(model))
                .text(REVISION.utf8(revision))
                .text(DTYPE.utf8(dtype))
                .text(LAYOUT.utf8(layout))
                .text(ADAPTER.utf8(adapter))
                .text(TENANT.utf8(tenant))
                .text(SALT.utf8(salt))
                .number(parts.size());
        parts.forEach(feed::part);
        return feed.finish();
    }

    private static List<Part> checkedParts(List<Part> given, boolean isOfGroup) {
        PARTS.check(given.size());
        List<Part> parts = List.copyOf(given);
        record Place(int group, int rank) {}
        Set<Place> seen = new HashSet<>();
        for (Part part : parts) {
            int expected = isOfGroup ? parts.getFirst().shape().blockTokens() : blockTokens(parts);
            int blockTokens = part.shape().blockTokens();
            boolean isEntry = !isOfGroup && part.kind() != PartKind.FULL;
            if (isEntry ? blockTokens % expected != 0 : blockTokens != expected) {
                throw new IllegalArgumentException(
                        "blockTokens = %s of %s part (group %s, rank %s) is out of range; allowed: %s"
                                .formatted(
                                        blockTokens,
                                        part.kind(),
                                        part.group(),
                                        part.rank(),
                                        isEntry ? "multiples of " + expected : expected + ", as in the first part"));
            }
            if (!seen.add(new Place(part.group(), part.rank()))) {
                throw new IllegalArgumentException(
                        "two parts have group = %s, rank = %s; allowed: one".formatted(part.group(), part.rank()));
            }
        }
        return parts;
    }

    private static int blockTokens(List<Part> parts) {
        return parts.stream()
                .filter(part -> part.kind() == PartKind.FULL)
                .findFirst()
                .map(part -> part.shape().blockTokens())
                .orElseGet(() -> parts.stream()
                        .mapToInt(part -> part.shape().blockTokens())
                        .min()
                        .orElseThrow());
    }

    private long computeBlockBytes() {
        long bytes = 0;
        for (Part part : parts) {
            bytes += isOfGroup || part.kind() == PartKind.FULL ? part.bytes() : 0;
        }
        return parts.isEmpty() ? 0 : Math.max(1, bytes);
    }

    private List<PartGroup> computeGroups() {
        record Kind(PartKind kind, int window, int blockTokens) {}
        Map<Kind, List<Part>> ofKind = new LinkedHashMap<>();
        for (Part part : parts) {
            if (part.kind() != PartKind.FULL) {
                ofKind.computeIfAbsent(
                                new Kind(
                                        part.kind(), part.window(), part.shape().blockTokens()),
                                _ -> new ArrayList<>())
                        .add(part);
            }
        }
        return ofKind.values().stream()
                .map(each -> PartGroup.of(this, parts.indexOf(each.getFirst()), each))
                .toList();
    }

    /// Collects the fields of a [Namespace]. Not for use by several threads.
    public static final class Builder {

        private final String model;
        private final List<Part> parts = new ArrayList<>();
        private String revision = "";
        private String dtype = "";
        private String layout = "";
        private String adapter = "";
        private String tenant = "";
        private String salt = "";

        private Builder(String model) {
            this.model = model;
        }

        /// Sets [Namespace#revision()].
        public Builder revision(String value) {
            revision = value;
            return this;
        }

        /// Sets [Namespace#dtype()].
        public Builder dtype(String value) {
            dtype = value;
            return this;
        }

        /// Sets [Namespace#layout()].
        public Builder layout(String value) {
            layout = value;
            return this;
        }

        /// Sets [Namespace#adapter()].
        public Builder adapter(String value) {
            adapter = value;
            return this;
        }

        /// Sets [Namespace#tenant()].
        public Builder tenant(String value) {
            tenant = value;
            return this;
        }

        /// Sets [Namespace#salt()].
        public Builder salt(String value) {
            salt = value;
            return this;
        }

        /// Adds a part after those there are; its number is its place.
        public Builder part(Part part) {
            parts.add(part);
            return this;
        }

        /// Replaces all parts.
        public Builder parts(List<Part> all) {
            parts.clear();
            parts.addAll(all);
            return this;
        }

        /// The namespace.
        ///
        /// @throws IllegalArgumentException when a text is blank, longer than 512 bytes of UTF-8 or malformed,
        ///     or when parts disagree; names the field, its value and what is allowed
        public Namespace build() {
            return new Namespace(this);
        }
    }

    /// Feeds a namespace's fields to SHA-256 so that no two different namespaces feed the same bytes.
    ///
    /// Every text goes in as its length (int32, big-endian) and its UTF-8 bytes, every number as int32 big-endian,
    /// the parts after their count: the bytes can be read back in one way only. Constants go in by name, so that
    /// reordering them in the source changes nothing.
    private static final class NamespaceHasher {

        /// Changes with the encoding below, and with it every key of every store.
        private static final String TAG = "kvcache namespace v1";

        private final MessageDigest sha = Sha256.newDigest();
        private final ByteBuffer number = ByteBuffer.allocate(Integer.BYTES);

        NamespaceHasher() {
            text(TAG.getBytes(StandardCharsets.US_ASCII));
        }

        NamespaceHasher text(byte[] utf8) {
            number(utf8.length);
            sha.update(utf8);
            return this;
        }

        NamespaceHasher number(int value) {
            number.clear().putInt(value);
            sha.update(number.array());
            return this;
        }

        NamespaceHasher part(Part part) {
            BlockShape shape = part.shape();
            number(part.group()).number(part.rank()).constant(part.kind()).number(part.window());
            number(part.rotation().basePosition());
            number(shape.layers())
                    .number(shape.planes())
                    .number(shape.kvHeads())
                    .number(shape.headDim());
            return number(shape.blockTokens()).constant(shape.dtype()).constant(shape.order());
        }

        byte[] finish() {
            return sha.digest();
        }

        private NamespaceHasher constant(Enum<?> constant) {
            return text(constant.name().getBytes(StandardCharsets.US_ASCII));
        }
    }

    /// A named text of a namespace: what it may be, and its bytes.
    ///
    /// @param required whether it must not be empty
    /// @param secret whether its value is kept out of messages
    private record NamespaceField(String name, boolean required, boolean secret) {

        /// Long enough for any path of a model; short enough to register and log.
        static final int MAX_BYTES = 512;

        /// How much of a refused value a message shows.
        private static final int SHOWN_CHARS = 40;

        static NamespaceField required(String name) {
            return new NamespaceField(name, true, false);
        }

        static NamespaceField optional(String name) {
            return new NamespaceField(name, false, false);
        }

        static NamespaceField secret(String name) {
            return new NamespaceField(name, false, true);
        }

        String check(String value) {
            utf8(value);
            return value;
        }

        /// The value's UTF-8 bytes.
        byte[] utf8(String value) {
            if (value.isBlank() && (required || !value.isEmpty())) {
                throw refusal(value, "is blank");
            }
            byte[] bytes = Utf8.encode(name, value);
            if (bytes.length > MAX_BYTES) {
                throw refusal(value, "takes " + bytes.length + " bytes");
            }
            return bytes;
        }

        private IllegalArgumentException refusal(String value, String what) {
            String allowed = required ? "1 to " + MAX_BYTES : "none, or 1 to " + MAX_BYTES;
            return new IllegalArgumentException(
                    "%s = %s %s; allowed: %s bytes of UTF-8, not blank".formatted(name, shown(value), what, allowed));
        }

        private String shown(String value) {
            if (secret) {
                return "(hidden)";
            }
            return value.length() <= SHOWN_CHARS ? "\"" + value + "\"" : "\"" + value.substring(0, SHOWN_CHARS) + "…\"";
        }
    }

    /// Makes the names of objects on one thread, and keeps the last one: a caller that puts or gets an object
    /// asks for its name in several places, one after another, and the digest costs ten times the
    /// comparison.
    ///
    /// What is digested is put together in one array, which then is also what the next key is compared
    /// with: a copy, so that an array that its owner has changed since is not taken for what it was.
    ///
    /// **Threads.** The one that it is of.
    static final class ObjectKeyHasher {

        private static final byte[] TAG = "kvcache object v1\0".getBytes(StandardCharsets.US_ASCII);
        private static final int KEY_AT = TAG.length + Sha256.BYTES;

        /// Enough for most keys; the array grows with the longest that comes.
        private static final int FIRST_KEY_BYTES = 128;

        private static final ThreadLocal<ObjectKeyHasher> OF_THREAD = ThreadLocal.withInitial(ObjectKeyHasher::new);

        private final MessageDigest sha = Sha256.newDigest();
        private final byte[] digest = new byte[Sha256.BYTES];
        private byte[] named = Arrays.copyOf(TAG, KEY_AT + FIRST_KEY_BYTES);
        private int end;
        private @Nullable Namespace namespace;
        private BlockKey name = new BlockKey(0, 0);

        private List<byte[]> keysAhead = List.of();
        private BlockKey[] namesAhead = {};
        private @Nullable Namespace namespaceAhead;
        private int ahead;

        static ObjectKeyHasher forCurrentThread() {
            return OF_THREAD.get();
        }

        /// The name of a key whose length was checked.
        BlockKey hash(Namespace of, byte[] key) {
            if (isSameAsLast(of, key)) {
                return name;
            }
            namespace = null; // until all of it is true of this key
            setKey(key);
            BlockKey known = nameAhead(of, key);
            name = known == null ? digest(of) : known;
            namespace = of;
            return name;
        }

        private void setKey(byte[] key) {
            end = KEY_AT + key.length;
            if (end > named.length) {
                named = Arrays.copyOf(TAG, end);
            }
            System.arraycopy(key, 0, named, KEY_AT, key.length);
        }

        private BlockKey digest(Namespace of) {
            System.arraycopy(of.rawDigest(), 0, named, TAG.length, Sha256.BYTES);
            sha.reset(); // should the last name have ended half way
            sha.update(named, 0, end);
            Sha256.finish(sha, digest, 0);
            return BlockKey.ofDigest(digest);
        }

        /// The names of keys that will be asked for next, in this order.
        BlockKey[] hashAhead(Namespace of, List<byte[]> keys) {
            namespace = null; // the last key makes way
            BlockKey[] names = new BlockKey[keys.size()];
            for (int i = 0; i < names.length; i++) {
                setKey(keys.get(i));
                names[i] = digest(of);
            }
            keysAhead = keys;
            namesAhead = names;
            namespaceAhead = of;
            ahead = 0;
            return names;
        }

        /// The name of a key if it was made ahead; those before it will not be asked for any more.
        @SuppressWarnings("ReferenceEquality") // as below
        private @Nullable BlockKey nameAhead(Namespace of, byte[] key) {
            for (int i = ahead; namespaceAhead == of && i < namesAhead.length; i++) {
                if (Arrays.equals(keysAhead.get(i), key)) {
                    ahead = i + 1;
                    return namesAhead[i];
                }
            }
            return null;
        }

        @SuppressWarnings("ReferenceEquality") // another one of the same content only costs the digest
        private boolean isSameAsLast(Namespace of, byte[] key) {
            return namespace == of && Arrays.equals(named, KEY_AT, end, key, 0, key.length);
        }
    }
}
