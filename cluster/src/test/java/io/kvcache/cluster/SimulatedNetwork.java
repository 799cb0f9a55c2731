package io.kvcache.cluster;

import io.kvcache.transport.cluster.NodeInfo;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.PriorityQueue;
import java.util.Set;
import java.util.SplittableRandom;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;

/// Members of a cluster in virtual time, for simulations and tests. A seed decides all delays; a test decides what
/// happens, and when time passes.
///
/// Members hear of changes at different times, as those of a real group do: of a crash after a broken connection, of
/// silence after the failure timeout, of other sides of a partition after a search. What one tells may be lost, and is
/// told again later. Two runs with one seed and the same calls are equal.
///
/// **Threads.** One. Listeners are called by [#advance], and by the member's own calls.
public final class SimulatedNetwork {

    private static final long MILLI = TimeUnit.MILLISECONDS.toNanos(1);

    private final SplittableRandom random;
    private final long failureNanos;
    private final PriorityQueue<Event> events = new PriorityQueue<>();
    private final List<SimulatedMembership> members = new ArrayList<>();
    private final Set<Cut> cuts = new HashSet<>();
    private double lossRate;
    private long now;
    private long scheduled;

    /// @param seed of all delays
    /// @param failureAfter a silent member is out after this and up to two seconds more
    public SimulatedNetwork(long seed, Duration failureAfter) {
        random = new SplittableRandom(seed);
        failureNanos = failureAfter.toNanos();
    }

    /// Two members that do not reach each other.
    private record Cut(SimulatedMembership one, SimulatedMembership other) {}

    private record Event(long nanos, long number, Runnable action) implements Comparable<Event> {

        @Override
        public int compareTo(Event other) {
            return nanos != other.nanos ? Long.compare(nanos, other.nanos) : Long.compare(number, other.number);
        }
    }

    /// Returns a member that has not started. A process that restarts needs another one.
    public SimulatedMembership member() {
        return new SimulatedMembership(this);
    }

    /// Nanoseconds since the beginning.
    public long nanos() {
        return now;
    }

    /// Lets time pass, with all that happens meanwhile.
    public void advance(long nanos) {
        long end = now + nanos;
        while (!events.isEmpty() && events.peek().nanos() <= end) {
            Event next = events.remove();
            now = next.nanos();
            next.action().run();
        }
        now = end;
    }

    /// Loses a share of what members tell. What they tell about themselves is told again.
    ///
    /// @param rate 0 to 1
    public void loseMessages(double rate) {
        lossRate = rate;
    }

    /// The process of a member ends without a word. Its connections break.
    public void crash(SimulatedMembership member) {
        member.end();
        members.remove(member);
        forOthers(member, other -> look(other, crashDelay()));
    }

    /// The process of a member stands still, and its connections do not break.
    public void stop(SimulatedMembership member) {
        member.setStopped(true);
        forOthers(member, other -> look(other, silenceDelay()));
    }

    /// A stopped process goes on.
    public void resume(SimulatedMembership member) {
        member.setStopped(false);
        look(member, delay(0, 500));
        meetAgain(member);
    }

    /// Cuts a side off from all other members.
    public void partition(Set<SimulatedMembership> side) {
        for (SimulatedMembership one : members) {
            for (SimulatedMembership other : members) {
                if (side.contains(one) && !side.contains(other)) {
                    cuts.add(new Cut(one, other));
                    look(one, silenceDelay());
                    look(other, silenceDelay());
                }
            }
        }
    }

    /// Joins all sides again.
    public void heal() {
        cuts.clear();
        List.copyOf(members).forEach(this::meetAgain);
    }

    /// All others take a live member for failed; it comes back by a merge.
    public void suspectFalsely(SimulatedMembership member) {
        forOthers(member, other -> {
            Cut cut = new Cut(member, other);
            if (cuts.add(cut)) {
                look(other, delay(0, 100));
                look(member, delay(0, 100));
                at(mergeDelay(), () -> {
                    cuts.remove(cut);
                    meet(member, other, delay(1, 200));
                });
            }
        });
    }

    void join(SimulatedMembership member, String name) {
        for (SimulatedMembership other : members) {
            if (!other.isStopped() && other.self().name().equals(name)) {
                throw new IllegalStateException("node '%s' is in the cluster already, with address %s"
                        .formatted(name, other.self().address()));
            }
        }
        members.add(member);
    }

    void meetAll(SimulatedMembership member) {
        forOthers(member, other -> meet(member, other, delay(1, 500)));
    }

    void leave(SimulatedMembership member) {
        members.remove(member);
        forOthers(member, other -> look(other, delay(1, 50)));
    }

    /// Returns the members that a member reaches.
    List<SimulatedMembership> reachable(SimulatedMembership from) {
        return members.stream().filter(other -> reaches(from, other)).toList();
    }

    private boolean reaches(SimulatedMembership from, SimulatedMembership to) {
        return from == to
                || (members.contains(from)
                        && members.contains(to)
                        && !from.isStopped()
                        && !to.isStopped()
                        && !cuts.contains(new Cut(from, to))
                        && !cuts.contains(new Cut(to, from)));
    }

    /// A member tells the others what it is now. In order: a later one never arrives before an earlier one.
    void tell(SimulatedMembership from) {
        forOthers(from, other -> tell(from, other));
    }

    private void tell(SimulatedMembership from, SimulatedMembership to) {
        long revision = from.revision();
        if (random.nextDouble() < lossRate) {
            at(10 * failureNanos, () -> tell(from, to));
            return;
        }
        NodeInfo info = from.self();
        at(from.inOrder(to, now + delay(0, 50)) - now, () -> {
            if (reaches(to, from)) {
                to.hear(from, info, revision);
            }
        });
    }

    void broadcast(SimulatedMembership from, byte[] message) {
        forOthers(from, other -> {
            if (random.nextDouble() >= lossRate) {
                at(from.inOrder(other, now + delay(0, 50)) - now, () -> {
                    if (reaches(other, from)) {
                        other.receive(from, message);
                    }
                });
            }
        });
    }

    private void meetAgain(SimulatedMembership member) {
        long wait = mergeDelay();
        forOthers(member, other -> at(wait, () -> meet(member, other, delay(1, 200))));
    }

    private void meet(SimulatedMembership one, SimulatedMembership other, long wait) {
        if (reaches(one, other)) {
            tell(one, other);
            tell(other, one);
            look(one, wait);
            look(other, wait);
        }
    }

    private void look(SimulatedMembership member, long wait) {
        at(wait, member::look);
    }

    private void forOthers(SimulatedMembership member, Consumer<SimulatedMembership> action) {
        List.copyOf(members).stream().filter(other -> other != member).forEach(action);
    }

    private void at(long wait, Runnable action) {
        events.add(new Event(now + Math.max(0, wait), scheduled++, action));
    }

    private long delay(long minMillis, long maxMillis) {
        return random.nextLong(minMillis * MILLI, maxMillis * MILLI + 1);
    }

    private long crashDelay() {
        return delay(200, 2000);
    }

    private long silenceDelay() {
        return failureNanos + delay(0, 2000);
    }

    private long mergeDelay() {
        return random.nextLong(failureNanos * 7 / 10, 2 * failureNanos + 1);
    }
}
