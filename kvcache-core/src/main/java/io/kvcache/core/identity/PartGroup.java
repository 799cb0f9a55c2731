package io.kvcache.core.identity;

import java.util.HexFormat;
import java.util.List;
import java.util.function.IntPredicate;

/// Parts of a namespace that are not needed for every block of a match: sliding windows or recurrent states of one
/// kind, window and spacing. One entry of all of them together lies in one slot.
///
/// An entry belongs to `every` adjacent blocks, and has its place behind the last of them: a window's rows of
/// their tokens, or the state after them. A store keeps entries as blocks of a namespace of their own,
/// [#namespace()], each a chain of one block ([BlockChain#entry]), whose key is that of the last of its blocks XOR
/// the first 16 bytes of that namespace's digest.
///
/// Immutable; any thread.
///
/// @param parts of one kind, window and spacing; in this order in a slot
/// @param every blocks that an entry belongs to, 1 and up
/// @param namespace in which stores keep the entries
public record PartGroup(List<Part> parts, int every, Namespace namespace) {

    /// What layouts of [#namespace()] begin with.
    static final String MARK = "kvcache part ";

    /// The group of some parts.
    ///
    /// @param number of the first of them in the namespace
    static PartGroup of(Namespace of, int number, List<Part> parts) {
        int every = parts.getFirst().shape().blockTokens() / of.blockTokens();
        Namespace own = of.toBuilder()
                .layout(MARK + number + " of " + HexFormat.of().formatHex(of.rawDigest()))
                .parts(parts)
                .build();
        return new PartGroup(List.copyOf(parts), every, own);
    }

    /// What keys of entries differ by from those of their last blocks.
    public BlockKey keyMask() {
        return BlockKey.ofDigest(namespace.rawDigest());
    }

    /// What a match needs of these parts: [PartKind#WINDOW] or [PartKind#STATE].
    public PartKind kind() {
        return parts.getFirst().kind();
    }

    /// Returns whether an entry has its place behind block `index`.
    public boolean isBehind(int index) {
        return (index + 1) % every == 0;
    }

    /// The entry whose place is behind block `index`.
    ///
    /// @throws IllegalArgumentException when no entry has its place there
    public int entryBehind(int index) {
        if (!isBehind(index)) {
            throw new IllegalArgumentException(
                    "block " + index + " has no entry of " + parts.getFirst().kind()
                            + " parts behind it; allowed: block " + (every - 1) + " and each " + every + "th after it");
        }
        return index / every;
    }

    /// First entry that a match of `blocks` blocks needs; the last one is [#entries] less 1.
    ///
    /// @param blocks a multiple of [#every]
    public int firstNeeded(int blocks) {
        int tokens = parts.getFirst().shape().blockTokens();
        return switch (kind()) {
            case STATE -> Math.max(0, entries(blocks) - 1);
            default -> (int) (Math.max(0, (long) entries(blocks) * tokens - (window() - 1)) / tokens);
        };
    }

    /// Entries that `blocks` blocks have room for.
    public int entries(int blocks) {
        return blocks / every;
    }

    private int window() {
        return parts.getFirst().window();
    }

    /// Which entries are here.
    @FunctionalInterface
    public interface Presence {

        /// Returns whether an entry is here.
        ///
        /// @param group number among the namespace's groups
        boolean has(int group, int entry);
    }

    /// Most blocks of which all is here that a match needs: the fixed point of all groups' wishes.
    ///
    /// @param fullBlocks leading blocks that are here
    public static int matchEnd(List<PartGroup> groups, int fullBlocks, Presence presence) {
        int end = fullBlocks;
        int before;
        do {
            before = end;
            for (int group = 0; group < groups.size(); group++) {
                int number = group;
                end = groups.get(group).end(end, entry -> presence.has(number, entry));
            }
        } while (end < before);
        return end;
    }

    /// Most blocks, `limit` at most, of which the entries that a match needs are here. From a missing entry on, all
    /// longer matches up to the one that was looked at need it too.
    private int end(int limit, IntPredicate isHere) {
        int end = entries(limit) * every;
        for (int entry = entries(end) - 1; entry >= firstNeeded(end); entry--) {
            if (!isHere.test(entry)) {
                end = entry * every;
            }
        }
        return end;
    }
}
