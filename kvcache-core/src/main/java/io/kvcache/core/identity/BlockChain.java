package io.kvcache.core.identity;

import io.kvcache.core.hash.Sha256;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.security.MessageDigest;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;

/// The keys of a sequence's full blocks, in order.
///
/// `digest[i] = SHA-256(digest[i-1] ‖ tokens[i] as int32 little-endian)`, where `digest[-1]` is the namespace's
/// digest. All 32 bytes are chained; the first 16 are the key. So a key names a block's tokens and everything
/// before them. A partial last block has no key; its tokens are remembered for [#extend].
///
/// Keys that an engine already has enter by [#ofEngineKeys]: the key is then the first 16 bytes of
/// `SHA-256(namespace digest ‖ engine key)`, a block's parent is the one before it in the list, and the
/// engine's own hash is kept for events. An engine key must itself name everything before its block, as those
/// of vLLM and SGLang do. A namespace should be fed by tokens or by engine keys, not both: the two name one
/// block differently.
///
/// A [#section] is adjacent blocks of a chain as a chain of their own, in another namespace.
///
/// **Threads.** Immutable; any thread. A longer chain shares memory with the one it was grown from.
public final class BlockChain {

    /// Bytes that name one block in [#ofKeysAndHashes]: 16 of its key, 8 of the engine's hash.
    public static final int KEY_AND_HASH_BYTES = BlockKey.BYTES + Long.BYTES;

    private static final int[] NO_TOKENS = {};
    private static final byte[][] NO_ENGINE_KEYS = {};
    private static final ValueRange TOKENS = new ValueRange("tokens of a chain", 0, Integer.MAX_VALUE);
    private static final ValueRange ENGINE_KEY_BYTES = new ValueRange("engine key bytes", 1, 4096);

    private final Namespace namespace;
    private final DigestArray digests;
    private final int length;
    private final int[] tail;
    private final byte @Nullable [][] engineKeys;

    /// True if only keys and hashes are known. Then the hash follows the key, where digests have their second
    /// half.
    private final boolean hasKeysOnly;

    /// Where a section begins in the digests, and what its keys differ by.
    private final Section section;

    private BlockChain(
            Namespace namespace, DigestArray digests, int length, int[] tail, byte @Nullable [][] engineKeys) {
        this(namespace, digests, length, tail, engineKeys, false, Section.WHOLE);
    }

    private BlockChain(
            Namespace namespace,
            DigestArray digests,
            int length,
            int[] tail,
            byte @Nullable [][] engineKeys,
            boolean bare,
            Section section) {
        this.namespace = namespace;
        this.digests = digests;
        this.length = length;
        this.tail = tail;
        this.engineKeys = engineKeys;
        this.hasKeysOnly = bare;
        this.section = section;
    }

    /// The chain of a sequence.
    ///
    /// @param tokens any int32 is a token; not kept
    /// @throws IllegalStateException when the namespace has no parts
    public static BlockChain of(Namespace namespace, int[] tokens) {
        namespace.blockTokens();
        return new BlockChain(namespace, DigestArray.EMPTY, 0, NO_TOKENS, null).extend(tokens);
    }

    /// The chain of a sequence whose full blocks an engine has named already.
    ///
    /// @param keys 1 to 4,096 bytes each, from the first block on; copied
    /// @throws IllegalStateException when the namespace has no parts
    public static BlockChain ofEngineKeys(Namespace namespace, List<byte[]> keys) {
        TOKENS.check((long) keys.size() * namespace.blockTokens());
        byte[][] kept = new byte[keys.size()][];
        DigestArray digests = DigestArray.EMPTY.reserve(0, kept.length);
        MessageDigest sha = Sha256.newDigest();
        for (int i = 0; i < kept.length; i++) {
            kept[i] = keys.get(i).clone();
            ENGINE_KEY_BYTES.check(kept[i].length);
            sha.update(namespace.rawDigest());
            sha.update(kept[i]);
            digests.finish(sha, i);
        }
        return new BlockChain(namespace, digests, kept.length, NO_TOKENS, kept);
    }

    /// The chain of blocks whose keys are known and nothing else of them, as the store's own records know them.
    ///
    /// It can be matched and acquired, not extended by tokens; [#engineHash] and [#engineHash64] answer null and 0.
    ///
    /// @param keys from the first block on
    /// @throws IllegalStateException when the namespace has no parts
    public static BlockChain ofKeys(Namespace namespace, List<BlockKey> keys) {
        TOKENS.check((long) keys.size() * namespace.blockTokens());
        ByteBuffer named = ByteBuffer.allocate(keys.size() * KEY_AND_HASH_BYTES);
        keys.forEach(key -> named.putLong(key.hi()).putLong(key.lo()).putLong(0));
        return ofKeysAndHashes(namespace, named.flip());
    }

    /// The chain of blocks whose keys a peer has sent, each with the low 64 bits of the engine's own hash.
    ///
    /// It can be matched, acquired, put and [extended by such blocks][#extendKeysAndHashes], not by tokens;
    /// [#engineHash] answers null, [#engineHash64] what was sent.
    ///
    /// @param named for each block from the first on 24 bytes: the key, and the engine's hash (0 for none), all
    ///     big-endian; read from the position to the limit, which must be whole blocks
    /// @throws IllegalStateException when the namespace has no parts
    public static BlockChain ofKeysAndHashes(Namespace namespace, ByteBuffer named) {
        namespace.blockTokens();
        return new BlockChain(namespace, DigestArray.EMPTY, 0, NO_TOKENS, NO_ENGINE_KEYS, true, Section.WHOLE)
                .extendKeysAndHashes(named);
    }

    /// This chain of named blocks with more of them at its end. What is here already is shared, not copied, if
    /// this chain is the first to grow from here.
    ///
    /// @param named as in [#ofKeysAndHashes]
    /// @throws IllegalStateException when this is not a chain of named blocks
    public BlockChain extendKeysAndHashes(ByteBuffer named) {
        requireWhole();
        if (!hasKeysOnly) {
            throw new IllegalStateException("only a chain of named blocks can be extended by named blocks");
        }
        int more = named.remaining() / KEY_AND_HASH_BYTES;
        if (more * KEY_AND_HASH_BYTES != named.remaining()) {
            throw new IllegalArgumentException(
                    named.remaining() + " bytes of named blocks; allowed: a multiple of " + KEY_AND_HASH_BYTES);
        }
        TOKENS.check(((long) length + more) * blockTokens());
        DigestArray grown = digests.reserve(length, more);
        for (int i = length; i < length + more; i++) {
            grown.read(named, KEY_AND_HASH_BYTES, i);
        }
        return new BlockChain(namespace, grown, length + more, NO_TOKENS, NO_ENGINE_KEYS, true, Section.WHOLE);
    }

    /// The chain of this sequence with tokens added at its end; equal to hashing all of it, without hashing
    /// again what is in full blocks already.
    ///
    /// @throws IllegalStateException when this chain is one of engine keys, or a section
    public BlockChain extend(int... appended) {
        requireWhole();
        if (engineKeys != null) {
            throw new IllegalStateException("a chain of engine keys cannot be extended by tokens");
        }
        TOKENS.check((long) tokens() + appended.length);
        int blockTokens = blockTokens();
        int more = (tail.length + appended.length) / blockTokens;
        if (more == 0) {
            return new BlockChain(namespace, digests, length, concat(tail, appended), null);
        }
        int rest = (tail.length + appended.length) % blockTokens;
        DigestArray grown = digests.reserve(length, more);
        ChainHasher hasher = new ChainHasher(namespace, grown, length);
        hasher.append(tail, tail.length);
        hasher.append(appended, appended.length - rest);
        int[] newTail = Arrays.copyOfRange(appended, appended.length - rest, appended.length);
        return new BlockChain(namespace, grown, length + more, newTail, null);
    }

    /// The first `blocks` blocks, 0 to [#length()], without a partial block after them.
    public BlockChain prefix(int blocks) {
        new ValueRange("blocks", 0, length).check(blocks);
        return new BlockChain(namespace, digests, blocks, NO_TOKENS, engineKeys, hasKeysOnly, section);
    }

    /// As [#prefix], without a reference to the digests of later blocks, but for those beside its last one.
    BlockChain compactPrefix(int blocks) {
        DigestArray kept = prefix(blocks).digests.prefix(blocks);
        return new BlockChain(namespace, kept, blocks, NO_TOKENS, engineKeys, hasKeysOnly, section);
    }

    /// Heap bytes of the digests that this chain keeps and `other` does not.
    int digestBytesBeyond(BlockChain other) {
        return digests.bytesBeyond(other.digests);
    }

    /// Blocks `from` to `to` (exclusive) as a chain of their own, in another namespace. Copies nothing.
    ///
    /// A section's keys are the keys of the same blocks here, each XOR the first 16 bytes of the other namespace's
    /// digest. So a store may hold a block in both chains: keys of one namespace are never those of another. The
    /// engine's hashes stay the same. A section cannot be extended, nor cut into sections again.
    ///
    /// @param in namespace of the section, with blocks of the same size
    public BlockChain section(Namespace in, int from, int to) {
        requireWhole();
        Objects.checkFromToIndex(from, to, length);
        if (in.blockTokens() != blockTokens()) {
            throw new IllegalArgumentException("blocks of a section have %s tokens; allowed: %s, as in its chain"
                    .formatted(in.blockTokens(), blockTokens()));
        }
        return new BlockChain(
                in, digests, to - from, NO_TOKENS, engineKeys, hasKeysOnly, Section.of(from, in.rawDigest()));
    }

    /// An entry of this chain's windows or states, as a chain of one block in the group's namespace. Copies
    /// nothing.
    ///
    /// @param group of this chain's namespace
    /// @param entry 0 and up; the blocks that it belongs to are in this chain
    public BlockChain entry(PartGroup group, int entry) {
        int last = Objects.checkIndex((entry + 1) * group.every() - 1, length);
        return new BlockChain(
                group.namespace(), digests, 1, NO_TOKENS, engineKeys, hasKeysOnly, section.within(group, last));
    }

    private void requireWhole() {
        if (!section.equals(Section.WHOLE)) {
            throw new IllegalStateException("a section cannot be extended or cut; allowed: its whole chain");
        }
    }

    /// Full blocks.
    public int length() {
        return length;
    }

    /// Tokens given, those of the partial last block included. For engine keys: the tokens of their blocks.
    public int tokens() {
        return length * blockTokens() + tail.length;
    }

    /// Tokens in a block.
    public int blockTokens() {
        return namespace.blockTokens();
    }

    /// The namespace that the chain starts from.
    public Namespace namespace() {
        return namespace;
    }

    /// Bytes 0 to 7 of the key of block `index`, big-endian. Allocates nothing.
    public long keyHi(int index) {
        return digests.keyHi(section.from + Objects.checkIndex(index, length)) ^ section.hi;
    }

    /// Bytes 8 to 15 of the key of block `index`, big-endian. Allocates nothing.
    public long keyLo(int index) {
        return digests.keyLo(section.from + Objects.checkIndex(index, length)) ^ section.lo;
    }

    /// The key of block `index`.
    public BlockKey key(int index) {
        return new BlockKey(keyHi(index), keyLo(index));
    }

    /// The engine's own key of block `index`, or null in a chain of tokens or of bare keys. A copy.
    public byte @Nullable [] engineHash(int index) {
        Objects.checkIndex(index, length);
        return engineKeys == null || hasKeysOnly ? null : engineKeys[section.from + index].clone();
    }

    /// The last 8 bytes of the engine's key of block `index`, big-endian (of a shorter key all of it); 0 in a
    /// chain of tokens. It is the unsigned integer of vLLM's events where the keys are vLLM's digests without a
    /// group index.
    public long engineHash64(int index) {
        Objects.checkIndex(index, length);
        if (hasKeysOnly) {
            return digests.engineHash(section.from + index);
        }
        if (engineKeys == null) {
            return 0;
        }
        byte[] key = engineKeys[section.from + index];
        return Sha256.low64(key, key.length);
    }

    /// Leading blocks that have the same keys and engine's hashes in both chains. Chains of tokens are searched, as a
    /// key names all before it; lists of keys are compared.
    public int commonPrefix(BlockChain other) {
        int most = Math.min(length, other.length);
        if (this == other) {
            return most;
        }
        return isOfTokens() && other.isOfTokens() ? searchPrefix(other, most) : comparePrefix(other, most);
    }

    private int searchPrefix(BlockChain other, int most) {
        int known = 0;
        int end = most;
        while (known < end) {
            int middle = (known + end) >>> 1;
            if (isSameBlock(other, middle)) {
                known = middle + 1;
            } else {
                end = middle;
            }
        }
        return known;
    }

    private int comparePrefix(BlockChain other, int most) {
        int index = 0;
        while (index < most && isSameBlock(other, index)) {
            index++;
        }
        return index;
    }

    private boolean isOfTokens() {
        return engineKeys == null && section.equals(Section.WHOLE);
    }

    private boolean isSameBlock(BlockChain other, int index) {
        return keyLo(index) == other.keyLo(index)
                && keyHi(index) == other.keyHi(index)
                && engineHash64(index) == other.engineHash64(index);
    }

    /// Blocks, tokens and the last key.
    @Override
    public String toString() {
        String last = length == 0 ? "" : ", last key " + key(length - 1);
        return "chain of %s blocks, %s tokens%s, %s".formatted(length, tokens(), last, namespace);
    }

    /// Blocks of a chain in another namespace.
    ///
    /// @param from the first of them
    /// @param hi the upper half of what keys differ by
    /// @param lo the lower half
    private record Section(int from, long hi, long lo) {

        static final Section WHOLE = new Section(0, 0, 0);

        static Section of(int from, byte[] digest) {
            return new Section(from, BlockKey.longAt(digest, 0), BlockKey.longAt(digest, Long.BYTES));
        }

        Section within(PartGroup group, int index) {
            BlockKey mask = group.keyMask();
            return new Section(from + index, hi ^ mask.hi(), lo ^ mask.lo());
        }
    }

    private static int[] concat(int[] first, int[] second) {
        int[] all = Arrays.copyOf(first, first.length + second.length);
        System.arraycopy(second, 0, all, first.length, second.length);
        return all;
    }

    /// The digests of a chain's blocks, 32 bytes each, in pieces that chains grown from one another share.
    ///
    /// A piece holds [#PIECE] digests, the last one maybe fewer. A digest once written never changes, and a
    /// chain reads only as many as it had when it was made. So a chain that grows may write right after its
    /// last digest, if it is the first to do so there; the second one to grow from the same place takes a
    /// copy of that piece, and shares those before. Readers need no fence: a chain reaches its pieces through
    /// final fields, set after the digests were written.
    private static final class DigestArray {

        private static final int PIECE_BITS = 8;

        /// Digests of a piece, 8 KiB: what a fork copies at most.
        private static final int PIECE = 1 << PIECE_BITS;

        static final DigestArray EMPTY = new DigestArray(new byte[0][], 0);

        private final byte[][] pieces;

        /// Digests up to the end of the last piece that some chain has written or will write.
        private final AtomicInteger claimed;

        private DigestArray(byte[][] pieces, int claimed) {
            this.pieces = pieces;
            this.claimed = new AtomicInteger(claimed);
        }

        /// An array with the first `held` digests of this one and `more` after them for the caller to write:
        /// in the last piece of this one when the place is free, else in a copy of that piece.
        DigestArray reserve(int held, int more) {
            if (more == 0) {
                return this;
            }
            int needed = held + more;
            int first = held / PIECE;
            int last = (needed - 1) / PIECE;
            boolean claims = claim(held, (int) Math.min(needed, (first + 1L) * PIECE));
            if (claims && first == last) {
                return this;
            }
            byte[][] grown = Arrays.copyOf(pieces, last + 1);
            for (int piece = claims ? first + 1 : first; piece <= last; piece++) {
                grown[piece] = new byte[pieceDigests(piece, held, needed) * Sha256.BYTES];
            }
            if (!claims && held % PIECE > 0) {
                System.arraycopy(pieces[first], 0, grown[first], 0, held % PIECE * Sha256.BYTES);
            }
            return new DigestArray(grown, needed);
        }

        /// Takes the place of digests `held` to `end` in the last piece, if it is free.
        private boolean claim(int held, int end) {
            int last = pieces.length - 1;
            return held / PIECE == last
                    && (end - last * PIECE) * Sha256.BYTES <= pieces[last].length
                    && claimed.compareAndSet(held, end);
        }

        /// The first chain of a sequence gets what it asks for; one that grows will probably grow again.
        private static int pieceDigests(int piece, int held, int needed) {
            long wanted = needed - (long) piece * PIECE;
            return (int) Math.min(PIECE, held == 0 ? wanted : 2 * wanted);
        }

        /// The pieces of the first `count` digests; nothing is written behind them in the last one.
        DigestArray prefix(int count) {
            int kept = (count + PIECE - 1) / PIECE;
            return kept == pieces.length ? this : new DigestArray(Arrays.copyOf(pieces, kept), Integer.MAX_VALUE);
        }

        /// Bytes of the pieces that `other` does not have.
        @SuppressWarnings("ReferenceEquality") // the very arrays are counted
        int bytesBeyond(DigestArray other) {
            int bytes = 0;
            for (int piece = pieces.length - 1; piece >= 0; piece--) {
                if (piece < other.pieces.length && pieces[piece] == other.pieces[piece]) {
                    break; // chains that share a piece share all before it
                }
                bytes += pieces[piece].length;
            }
            return bytes;
        }

        /// Ends a digest of the caller's and writes it at a place that it reserved.
        void finish(MessageDigest sha, int index) {
            Sha256.finish(sha, pieces[index >>> PIECE_BITS], offset(index));
        }

        /// Writes digest `index`, at a place that the caller reserved, from the start of `from`.
        void write(int index, byte[] from) {
            System.arraycopy(from, 0, pieces[index >>> PIECE_BITS], offset(index), Sha256.BYTES);
        }

        /// Writes the next bytes of `from` in the place of a digest that the caller reserved.
        void read(ByteBuffer from, int count, int index) {
            from.get(pieces[index >>> PIECE_BITS], offset(index), count);
        }

        /// Copies digest `index` to the start of `to`.
        void copyTo(int index, byte[] to) {
            System.arraycopy(pieces[index >>> PIECE_BITS], offset(index), to, 0, Sha256.BYTES);
        }

        long keyHi(int index) {
            return BlockKey.longAt(pieces[index >>> PIECE_BITS], offset(index));
        }

        long keyLo(int index) {
            return BlockKey.longAt(pieces[index >>> PIECE_BITS], offset(index) + Long.BYTES);
        }

        /// The engine's hash behind a bare key.
        long engineHash(int index) {
            return BlockKey.longAt(pieces[index >>> PIECE_BITS], offset(index) + BlockKey.BYTES);
        }

        private static int offset(int index) {
            return (index & PIECE - 1) * Sha256.BYTES;
        }
    }

    /// Hashes tokens block by block: `digest[i] = SHA-256(digest[i-1] ‖ tokens[i] as int32 little-endian)`.
    ///
    /// One array holds the digest of the block before and the tokens of the block being filled, so a block is
    /// one update and one digest, and nothing is allocated per block.
    ///
    /// **Threads.** One.
    private static final class ChainHasher {

        private static final VarHandle INT_LE =
                MethodHandles.byteArrayViewVarHandle(int[].class, ByteOrder.LITTLE_ENDIAN);

        private final MessageDigest sha = Sha256.newDigest();
        private final byte[] input;
        private final DigestArray out;
        private int filled = Sha256.BYTES;
        private int block;

        /// @param out takes the digests of full blocks, from block `first` on, and has the one before
        ChainHasher(Namespace namespace, DigestArray out, int first) {
            input = new byte[Sha256.BYTES + namespace.blockTokens() * Integer.BYTES];
            if (first == 0) {
                System.arraycopy(namespace.rawDigest(), 0, input, 0, Sha256.BYTES);
            } else {
                out.copyTo(first - 1, input);
            }
            this.out = out;
            block = first;
        }

        /// Hashes `tokens[0, count)` after those given before; writes a digest for each block that becomes
        /// full.
        void append(int[] tokens, int count) {
            int next = 0;
            while (next < count) {
                int taken = Math.min(count - next, (input.length - filled) / Integer.BYTES);
                copy(tokens, next, taken);
                next += taken;
                if (filled == input.length) {
                    finishBlock();
                }
            }
        }

        private void copy(int[] tokens, int from, int count) {
            byte[] to = input;
            int at = filled;
            for (int i = from; i < from + count; i++, at += Integer.BYTES) {
                INT_LE.set(to, at, tokens[i]);
            }
            filled = at;
        }

        private void finishBlock() {
            sha.update(input, 0, input.length);
            Sha256.finish(sha, input, 0);
            out.write(block++, input);
            filled = Sha256.BYTES;
        }
    }
}
