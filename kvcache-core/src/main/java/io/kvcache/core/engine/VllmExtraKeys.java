package io.kvcache.core.engine;

import io.kvcache.core.hash.Sha256;
import java.util.List;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/// Inputs other than tokens that vLLM folds into its block hashes.
///
/// Describes a request; [#forBlock] gives what concerns one block of it. Positions count from the first token
/// of what is described. Immutable.
public final class VllmExtraKeys {

    /// Nothing beside the tokens.
    public static final VllmExtraKeys NONE = new VllmExtraKeys(null, List.of(), "", List.of());

    private final @Nullable Lora lora;
    private final List<MultimodalItem> items;
    private final String cacheSalt;
    private final List<byte[]> embedsDigests;

    private VllmExtraKeys(
            @Nullable Lora lora, List<MultimodalItem> items, String cacheSalt, List<byte[]> embedsDigests) {
        this.lora = lora;
        this.items = items;
        this.cacheSalt = cacheSalt;
        this.embedsDigests = embedsDigests;
    }

    /// An adapter by its name and path. The path counts in the tagged encoding only.
    record Lora(String name, String path) {}

    /// An image or the like that stands for `length` tokens from `offset` on; the offset is negative in a block
    /// after the one in which it begins.
    record MultimodalItem(String identifier, int offset, int length) {

        MultimodalItem {
            if (length < 1 || (long) offset + length > Integer.MAX_VALUE) {
                throw new IllegalArgumentException(
                        "multimodal item %s spans %s tokens from %s; allowed: 1 token and more, up to position 2^31 - 1"
                                .formatted(identifier, length, offset));
            }
        }
    }

    /// These extras with an adapter.
    public VllmExtraKeys withLora(String name, String path) {
        return new VllmExtraKeys(new Lora(name, path), items, cacheSalt, embedsDigests);
    }

    /// These extras with one more multimodal item; items are given in the order of their offsets.
    public VllmExtraKeys withMultimodalItem(String identifier, int offset, int length) {
        MultimodalItem item = new MultimodalItem(identifier, offset, length);
        return new VllmExtraKeys(
                lora, Stream.concat(items.stream(), Stream.of(item)).toList(), cacheSalt, embedsDigests);
    }

    /// These extras with a salt, which counts in block 0 only; an empty one counts nowhere.
    public VllmExtraKeys withCacheSalt(String salt) {
        return new VllmExtraKeys(lora, items, salt, embedsDigests);
    }

    /// These extras with the SHA-256 digests of the prompt embeddings, one a block.
    public VllmExtraKeys withPromptEmbeds(List<byte[]> digestOfEachBlock) {
        for (byte[] digest : digestOfEachBlock) {
            if (digest.length != Sha256.BYTES) {
                throw new IllegalArgumentException("digest of prompt embeddings takes %s bytes; allowed: %s"
                        .formatted(digest.length, Sha256.BYTES));
            }
        }
        List<byte[]> copies = digestOfEachBlock.stream().map(byte[]::clone).toList();
        return new VllmExtraKeys(lora, items, cacheSalt, copies);
    }

    /// Returns the keys that concern block `index` of `blockTokens` tokens: the items that overlap it, with their
    /// offsets counted from its first token, and its own digest of embeddings.
    public VllmExtraKeys forBlock(int index, int blockTokens) {
        if (this == NONE) {
            return this;
        }
        int start = Math.multiplyExact(index, blockTokens);
        List<MultimodalItem> overlapping = items.stream()
                .filter(item -> item.offset() - start < blockTokens && item.offset() + item.length() > start)
                .map(item -> new MultimodalItem(item.identifier(), item.offset() - start, item.length()))
                .toList();
        List<byte[]> embeds = embedsDigests.isEmpty() ? List.of() : List.of(embedsDigests.get(index));
        return new VllmExtraKeys(lora, overlapping, index == 0 ? cacheSalt : "", embeds);
    }

    /// Writes the extras as vLLM does: in the order adapter, items, salt, embeddings; null when there are none.
    void write(CborWriter cbor, VllmBlockHash.ExtraEncoding encoding) {
        int salts = cacheSalt.isEmpty() ? 0 : 1;
        int count = (lora == null ? 0 : 1) + items.size() + salts + embedsDigests.size();
        if (count == 0) {
            cbor.nullValue();
            return;
        }
        cbor.array(count);
        switch (encoding) {
            case TAGGED -> writeTagged(cbor);
            case UNTAGGED -> writeUntagged(cbor);
        }
    }

    private void writeTagged(CborWriter cbor) {
        if (lora != null) {
            tag(cbor, 3, "lora").text("adapter name", lora.name()).text("adapter path", lora.path());
        }
        for (MultimodalItem item : items) {
            tag(cbor, 3, "mm").text("item identifier", item.identifier()).integer(item.offset());
        }
        if (!cacheSalt.isEmpty()) {
            tag(cbor, 2, "cache_salt").text("cache salt", cacheSalt);
        }
        for (byte[] digest : embedsDigests) {
            tag(cbor, 2, "prompt_embeds").bytes(digest);
        }
    }

    private void writeUntagged(CborWriter cbor) {
        if (lora != null) {
            cbor.text("adapter name", lora.name());
        }
        for (MultimodalItem item : items) {
            cbor.array(2).text("item identifier", item.identifier()).integer(item.offset());
        }
        if (!cacheSalt.isEmpty()) {
            cbor.text("cache salt", cacheSalt);
        }
        embedsDigests.forEach(cbor::bytes);
    }

    private static CborWriter tag(CborWriter cbor, int count, String tag) {
        return cbor.array(count).text("tag", tag);
    }
}
