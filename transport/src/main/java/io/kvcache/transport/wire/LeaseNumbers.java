package io.kvcache.transport.wire;

import io.kvcache.core.identity.Namespace;
import io.kvcache.core.identity.PartGroup;
import java.util.List;

/// How a lease numbers what a match has: its blocks as in the chain, and behind the last of them the entries of
/// windows and states that it needs, group after group. Without groups there are blocks alone.
///
/// Immutable; any thread.
///
/// @param end block after the last one of the match
public record LeaseNumbers(Namespace namespace, int end) {

    /// The numbers that go up to `total`, which a server has sent.
    ///
    /// @throws ProtocolException when there is no such match
    public static LeaseNumbers ofTotal(Namespace namespace, int total) throws ProtocolException {
        LeaseNumbers numbers = new LeaseNumbers(namespace, total);
        while (numbers.total() > total) {
            numbers = new LeaseNumbers(namespace, numbers.end - 1);
        }
        if (numbers.total() < total) {
            throw new ProtocolException(
                    "a match up to number " + total + "; allowed: " + numbers.total() + " and others");
        }
        return numbers;
    }

    /// Number after the last one.
    public int total() {
        return first(groups().size());
    }

    private List<PartGroup> groups() {
        return namespace.groups();
    }

    /// Number of the first entry of a group; for the number of groups, what is behind all.
    public int first(int group) {
        int number = end;
        for (PartGroup each : groups().subList(0, group)) {
            number += each.entries(end) - each.firstNeeded(end);
        }
        return number;
    }

    /// The group that a number is in, or -1 when it is that of a block.
    public int groupOf(int number) {
        int group = -1;
        while (number >= end && group + 1 < groups().size() && number >= first(group + 1)) {
            group++;
        }
        return group;
    }

    /// The entry of a group that has a number.
    public int entry(int group, int number) {
        return groups().get(group).firstNeeded(end) + number - first(group);
    }

    /// Bytes of a block or entry.
    public long bytes(int number) {
        int group = groupOf(number);
        return group < 0
                ? namespace.blockBytes()
                : groups().get(group).namespace().blockBytes();
    }
}
