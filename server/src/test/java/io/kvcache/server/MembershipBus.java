package io.kvcache.server;

import io.kvcache.cluster.Membership;
import io.kvcache.transport.cluster.NodeInfo;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.UUID;
import org.jspecify.annotations.Nullable;

/// Servers of one process as members of a cluster, which a test may part.
///
/// **Threads.** Any. Listeners are called under one lock, in the order of what happens.
final class MembershipBus {

    private final List<Member> members = new ArrayList<>();
    private final Set<String> cut = new HashSet<>();

    /// Returns a member that has not started.
    Membership member() {
        return new Member();
    }

    /// Parts some from all others, until [#heal].
    synchronized void part(String... names) {
        cut.addAll(List.of(names));
        show();
    }

    /// Joins all again.
    synchronized void heal() {
        cut.clear();
        show();
    }

    private void show() {
        List.copyOf(members).forEach(Member::look);
    }

    private final class Member implements Membership {

        private final String secret = UUID.randomUUID().toString();
        private @Nullable NodeInfo self;
        private @Nullable Listener listener;
        private List<NodeInfo> seen = List.of();

        private NodeInfo info() {
            return Objects.requireNonNull(self);
        }

        @Override
        public void start(NodeInfo own, Listener ownListener) {
            synchronized (MembershipBus.this) {
                self = own;
                listener = ownListener;
                members.add(this);
                show();
            }
        }

        @Override
        public void update(NodeInfo changed) {
            synchronized (MembershipBus.this) {
                self = changed;
                show();
            }
        }

        private boolean reaches(Member other) {
            return cut.contains(info().name()) == cut.contains(other.info().name());
        }

        void look() {
            List<NodeInfo> now =
                    members.stream().filter(this::reaches).map(Member::info).toList();
            if (!now.equals(seen)) {
                seen = now;
                Objects.requireNonNull(listener).onMembers(now, false);
            }
        }

        @Override
        public String ownSecret() {
            return secret;
        }

        @Override
        public @Nullable String secretOf(String node) {
            synchronized (MembershipBus.this) {
                return members.stream()
                        .filter(other -> other.info().name().equals(node))
                        .map(other -> other.secret)
                        .findFirst()
                        .orElse(null);
            }
        }

        @Override
        public void broadcast(byte[] message) {
            synchronized (MembershipBus.this) {
                members.stream()
                        .filter(other -> !other.equals(this) && reaches(other))
                        .forEach(other -> Objects.requireNonNull(other.listener).onMessage(info().name(), message));
            }
        }

        @Override
        public void close() {
            synchronized (MembershipBus.this) {
                members.remove(this);
                show();
            }
        }
    }
}
