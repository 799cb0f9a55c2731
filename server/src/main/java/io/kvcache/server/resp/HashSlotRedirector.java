package io.kvcache.server.resp;

import io.kvcache.server.keyspace.HashSlotOwnership;
import io.kvcache.server.keyspace.HashSlotOwnership.SlotMap;
import io.kvcache.transport.cluster.NodeInfo;
import java.util.Collection;
import java.util.function.Consumer;
import java.util.function.ToIntFunction;
import org.jspecify.annotations.Nullable;

/// Sends clients of Redis Cluster to the server that owns their keys.
///
/// Just after a view change, the owner may not know yet that it owns a slot and would send the client back. Clients
/// give up after some redirections, so the first one waits until the owner is likely to know.
///
/// **Threads.** Any.
final class HashSlotRedirector {

    /// In place of a slot.
    static final int NO_KEY = -1;

    private static final String CROSS_SLOT = "CROSSSLOT Keys in request don't hash to the same slot";

    private final HashSlotOwnership ownership;
    private final ToIntFunction<byte[]> slots;
    private final boolean ofWholeKeys;

    /// @param slots tells the slot of a key
    /// @param ofWholeKeys whether that follows from all its bytes
    HashSlotRedirector(HashSlotOwnership ownership, ToIntFunction<byte[]> slots, boolean ofWholeKeys) {
        this.ownership = ownership;
        this.slots = slots;
        this.ofWholeKeys = ofWholeKeys;
    }

    boolean isOfWholeKeys() {
        return ofWholeKeys;
    }

    /// Returns the slot of all keys of a request, or [#NO_KEY].
    ///
    /// @throws CommandException when keys have different slots
    int slotOf(CommandSpec spec, RespRequest request) throws CommandException {
        CommandSpec.ArgumentPositions keys = spec.keys();
        int slot = NO_KEY;
        if (keys.first() > 0) {
            for (int i = keys.first(); keys.has(i, request.count()) && i < request.count(); i += keys.step()) {
                slot = requireSame(slot, slots.applyAsInt(request.argument(i)));
            }
        }
        return slot;
    }

    private static int requireSame(int slot, int next) throws CommandException {
        if (slot != NO_KEY && slot != next) {
            throw new CommandException(CROSS_SLOT);
        }
        return next;
    }

    /// Looks at requests that are to run together.
    ///
    /// @throws CommandException unless all their keys are of one slot of this server
    void requireOwn(Collection<RespRequest> requests, CommandTable commands) throws CommandException {
        int slot = NO_KEY;
        for (RespRequest request : requests) {
            CommandSpec spec = request.command(commands);
            int next = spec == null ? NO_KEY : slotOf(spec, request);
            slot = next == NO_KEY ? slot : requireSame(slot, next);
        }
        String redirection = redirectionOf(slot);
        if (redirection != null) {
            throw new CommandException(redirection);
        }
    }

    /// Returns the error for a key that belongs elsewhere, or null.
    @Nullable
    String redirectionOf(byte[] key) {
        return redirectionOf(slots.applyAsInt(key));
    }

    /// Returns the error for a slot that belongs elsewhere, or null.
    ///
    /// @param slot 0 to 16,383, or [#NO_KEY]
    @Nullable
    String redirectionOf(int slot) {
        return slot == NO_KEY ? null : redirectionOf(slot, ownership.map());
    }

    private @Nullable String redirectionOf(int slot, SlotMap map) {
        NodeInfo owner = map.owner(slot);
        if (owner == null) {
            return "CLUSTERDOWN " + ownership.absenceReason();
        }
        if (map.isOwn(slot)) {
            return null;
        }
        return owner.valueAddress().isEmpty()
                ? "CLUSTERDOWN slot " + slot + " belongs to node " + owner.name()
                        + ", which has no listener with resp-cluster"
                : "MOVED " + slot + " " + ValueEndpoint.of(owner);
    }

    /// Answers a command for a slot that belongs elsewhere, perhaps after a moment.
    void redirect(RespSession session, int slot, Consumer<String> reply) {
        SlotMap map = ownership.map();
        long wait = map.settleNanos(slot);
        if (wait == 0) {
            reply.accept(answer(slot, map));
        } else {
            session.awaitTime(wait, () -> reply.accept(answer(slot, ownership.map())));
        }
    }

    /// The command cannot run any more, also when the slot has become this server's meanwhile.
    private String answer(int slot, SlotMap map) {
        String redirection = redirectionOf(slot, map);
        return redirection == null ? "TRYAGAIN slot " + slot + " has just become this server's" : redirection;
    }

    /// Where clients of Redis Cluster reach a server.
    ///
    /// @param host a name or an address, IPv6 without brackets
    record ValueEndpoint(String host, int port) {

        /// @param server with such an address
        static ValueEndpoint of(NodeInfo server) {
            String address = server.valueAddress();
            int colon = address.lastIndexOf(':');
            String host = address.substring(0, colon);
            return new ValueEndpoint(
                    host.startsWith("[") ? host.substring(1, host.length() - 1) : host,
                    Integer.parseInt(address.substring(colon + 1)));
        }

        /// As Redis writes it.
        @Override
        public String toString() {
            return host + ":" + port;
        }
    }
}
