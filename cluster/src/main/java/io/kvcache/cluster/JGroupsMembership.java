package io.kvcache.cluster;

import io.kvcache.cluster.JGroupsStack.SystemLog;
import io.kvcache.cluster.MemberHello.HelloCodec;
import io.kvcache.transport.cluster.NodeInfo;
import io.kvcache.transport.wire.BodyReader;
import io.kvcache.transport.wire.BodyWriter;
import io.kvcache.transport.wire.ProtocolException;
import java.io.IOException;
import java.lang.System.Logger.Level;
import java.net.BindException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.UnknownHostException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.SecureRandom;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Queue;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import org.jgroups.Address;
import org.jgroups.BytesMessage;
import org.jgroups.JChannel;
import org.jgroups.MergeView;
import org.jgroups.Message;
import org.jgroups.Receiver;
import org.jgroups.View;
import org.jgroups.util.UUID;
import org.jspecify.annotations.Nullable;

/// Membership by JGroups over TCP, with TLS and certificates on both sides, or on loopback with a secret on
/// both sides.
///
/// Each member tells the others about its server in a hello: to a new member, when something has changed, and
/// now and then in case one was lost. A member that nothing is known about is in no list.
///
/// **Failures.** A server whose connection breaks is out after a fraction of a second, a silent one after the
/// failure timeout and about two seconds more. Sides of a partition find each other within twice the failure
/// timeout.
///
/// **Ownership.** Of its port and threads, from [#start] to [#close].
///
/// **Threads.** Any.
public final class JGroupsMembership implements Membership {

    private static final System.Logger LOG = System.getLogger(JGroupsMembership.class.getName());

    /// First byte of a message.
    private static final byte HELLO = 1;

    private static final byte BROADCAST = 2;

    /// What a server waits longer than the failure timeout for an earlier one of its name to be out.
    private static final Duration NAME_GRACE = Duration.ofSeconds(2);

    private static final int SECRET_BYTES = 32;

    /// Failure timeouts between two hellos without a reason.
    private static final int HELLO_PERIOD = 10;

    private final Settings settings;
    private final InetSocketAddress listen;
    private final HelloCodec codec;
    private final String secret = randomSecret();
    private final OrderedDelivery delivery = new OrderedDelivery();
    private final CountDownLatch firstList = new CountDownLatch(1);
    private final Set<Address> distrusted = ConcurrentHashMap.newKeySet();

    /// Guards the fields below it and is notified when they change. No message is sent and no listener called
    /// under it.
    private final Object lock = new Object();

    private @Nullable Group group;
    private boolean started;
    private boolean closed;

    /// How a server finds its cluster, and what protects it.
    ///
    /// @param cluster name, 1 to 255 bytes of UTF-8 without NUL; members of another name do not get in
    /// @param listen `host:port` of the one port for other members, at which they reach it
    /// @param seeds `host:port` of some members; this server may be among them. The order should be the same at
    ///     all
    /// @param dns `name:port` whose addresses are the members', in place of seeds; empty if there are seeds
    /// @param proof the server's certificate, or the secret of a cluster on loopback
    /// @param failureAfter a silent server is out after about this time, 1 to 60 seconds
    public record Settings(
            String cluster, String listen, List<String> seeds, String dns, ClusterProof proof, Duration failureAfter) {

        /// Failure timeout without a setting.
        public static final Duration DEFAULT_FAILURE_AFTER = Duration.ofSeconds(3);

        private static final Duration MIN_FAILURE_AFTER = Duration.ofSeconds(1);
        private static final Duration MAX_FAILURE_AFTER = Duration.ofSeconds(60);
        private static final int MAX_NAME_BYTES = 255;

        /// @throws IllegalArgumentException for a value out of range; the message names it and what is allowed
        public Settings {
            seeds = List.copyOf(seeds);
            int bytes = cluster.getBytes(StandardCharsets.UTF_8).length;
            if (bytes < 1 || bytes > MAX_NAME_BYTES || cluster.indexOf('\0') >= 0) {
                throw new IllegalArgumentException(
                        "cluster name '%s' has %s bytes; allowed: 1 to %s bytes of UTF-8 without NUL"
                                .formatted(cluster, bytes, MAX_NAME_BYTES));
            }
            if (failureAfter.compareTo(MIN_FAILURE_AFTER) < 0 || failureAfter.compareTo(MAX_FAILURE_AFTER) > 0) {
                throw new IllegalArgumentException(
                        "failure_after = %s ms is out of range; allowed: 1s to 60s".formatted(failureAfter.toMillis()));
            }
            if (!seeds.isEmpty() && !dns.isEmpty()) {
                throw new IllegalArgumentException("both seeds and dns are given; allowed: one of them");
            }
            HostPort.parse("listen", listen);
            seeds.forEach(seed -> HostPort.parse("seed", seed));
            if (!dns.isEmpty()) {
                HostPort.parse("dns", dns);
            }
        }

        private @Nullable ClusterTls tls() {
            return proof instanceof ClusterTls tls ? tls : null;
        }

        private List<HostPort> sources() {
            return dns.isEmpty()
                    ? seeds.stream().map(seed -> HostPort.parse("seed", seed)).toList()
                    : List.of(HostPort.parse("dns", dns));
        }
    }

    /// Checks the settings; opens nothing.
    ///
    /// @throws IllegalArgumentException when the address to listen at is unknown, is not a single one, or needs
    ///     tls
    public JGroupsMembership(Settings settings) {
        this.settings = settings;
        listen = resolve(settings);
        codec = new HelloCodec(settings.cluster(), settings.tls());
    }

    private static InetSocketAddress resolve(Settings settings) {
        HostPort listen = HostPort.parse("listen", settings.listen());
        InetAddress address;
        try {
            address = InetAddress.getByName(listen.host());
        } catch (UnknownHostException unknown) {
            throw new IllegalArgumentException(
                    "listen = %s: the host has no address; allowed: an address of this machine, or its name"
                            .formatted(settings.listen()),
                    unknown);
        }
        if (address.isAnyLocalAddress()) {
            throw new IllegalArgumentException(
                    "listen = %s stands for all addresses; allowed: the one that the other servers reach this one at"
                            .formatted(settings.listen()));
        }
        if (settings.tls() == null && !address.isLoopbackAddress()) {
            throw new IllegalArgumentException(
                    "listen = %s is reachable from other machines and the cluster has no tls; allowed: 127.0.0.0/8 and ::1, or any address with tls"
                            .formatted(settings.listen()));
        }
        return new InetSocketAddress(address, listen.port());
    }

    /// Joins. Alone, that takes the time of a join, 1 to 3 seconds; an existing cluster answers at once.
    ///
    /// A server that takes the place of one which has just died waits until that one is out. If one of its name is
    /// alive, it is refused after the failure timeout and two seconds.
    ///
    /// @throws IllegalStateException when another live server has this name, the certificate is for another
    ///     one, or the port cannot be opened; the membership is closed then
    @Override
    public void start(NodeInfo self, Listener listener) {
        checkCertificate(self.name());
        Group joined = open(self, listener);
        try {
            joined.channel.connect(settings.cluster());
            joined.settle();
        } catch (InterruptedException interrupted) {
            close();
            Thread.currentThread().interrupt();
            throw new IllegalStateException(
                    "joining cluster '" + settings.cluster() + "' was interrupted", interrupted);
        } catch (IllegalStateException refused) {
            close();
            throw refused;
        } catch (BindException taken) {
            close();
            throw new IllegalStateException(
                    "cannot listen at %s: the port is taken, or the address is not of this machine"
                            .formatted(settings.listen()),
                    taken);
        } catch (Exception failed) {
            close();
            throw new IllegalStateException(
                    "cannot join cluster '%s' at %s: %s"
                            .formatted(settings.cluster(), settings.listen(), failed.getMessage()),
                    failed);
        }
    }

    private void checkCertificate(String name) {
        ClusterTls tls = settings.tls();
        try {
            if (tls != null) {
                tls.requireName(name);
            }
        } catch (IOException other) {
            throw new IllegalStateException(other.getMessage(), other);
        }
    }

    private Group open(NodeInfo self, Listener listener) {
        synchronized (lock) {
            if (started || closed) {
                throw new IllegalStateException(
                        "the membership of node '" + self.name() + "' was started before; make another one");
            }
            started = true;
        }
        try {
            Group opened = new Group(self, listener);
            synchronized (lock) {
                group = opened;
            }
            return opened;
        } catch (Exception broken) {
            throw new IllegalStateException("cannot build the membership at " + settings.listen(), broken);
        }
    }

    private Group group() {
        synchronized (lock) {
            if (group == null) {
                throw new IllegalStateException("the membership has not been started");
            }
            return group;
        }
    }

    @Override
    public void update(NodeInfo self) {
        group().update(self);
    }

    /// Does nothing while this server joins or after it has left. May wait for receivers that are behind by a
    /// megabyte.
    @Override
    public void broadcast(byte[] message) {
        if (message.length > MAX_MESSAGE_BYTES) {
            throw new IllegalArgumentException(
                    "a message has %s bytes; allowed: 0 to %s".formatted(message.length, MAX_MESSAGE_BYTES));
        }
        group().send(
                        null,
                        new BodyWriter(1 + message.length)
                                .u8(BROADCAST)
                                .bytes(message)
                                .toBytes());
    }

    private static String randomSecret() {
        byte[] bytes = new byte[SECRET_BYTES];
        new SecureRandom().nextBytes(bytes);
        return HexFormat.of().formatHex(bytes);
    }

    @Override
    public String ownSecret() {
        return secret;
    }

    @Override
    public @Nullable String secretOf(String node) {
        synchronized (lock) {
            return group == null ? null : group.table.secretOf(node);
        }
    }

    /// Leaves; the others know at once. Takes up to a second if one of them does not answer.
    @Override
    public void close() {
        Group left;
        synchronized (lock) {
            closed = true;
            left = group;
            lock.notifyAll();
        }
        firstList.countDown();
        if (left != null) {
            left.close();
        }
    }

    /// This server in its group, once it has been started.
    private final class Group implements Receiver {

        private final Listener listener;
        private final JChannel channel;
        private final byte[] address;
        private final MemberTable<Address> table;
        private List<NodeInfo> told = List.of();
        private boolean merged;
        private @Nullable NodeInfo reportedRival;
        private volatile @Nullable Future<?> helloTask;

        Group(NodeInfo self, Listener listener) throws Exception {
            this.listener = listener;
            SystemLog.install();
            SeedDiscovery seeds = new SeedDiscovery(settings.sources(), settings.tls() == null);
            Address own = JGroupsStack.address(seeds.indexOf(listen));
            address = bytesOf(own);
            table = new MemberTable<>(own, new MemberHello(self, false, 0, secret));
            channel = new JChannel(JGroupsStack.protocols(settings, listen, seeds));
            channel.addAddressGenerator(() -> own);
            channel.name(self.name()).setDiscardOwnMessages(true).setReceiver(this);
        }

        /// Waits until no other server has this one's name, and is in its own list then.
        void settle() throws InterruptedException {
            long failure = settings.failureAfter().toNanos();
            helloTask = channel.getProtocolStack()
                    .getTransport()
                    .getTimer()
                    .scheduleWithFixedDelay(
                            this::sayHello,
                            HELLO_PERIOD * failure,
                            HELLO_PERIOD * failure,
                            TimeUnit.NANOSECONDS,
                            false);
            await(table::isComplete, failure);
            boolean alone = await(() -> table.rival() == null, failure + NAME_GRACE.toNanos());
            synchronized (lock) {
                NodeInfo rival = table.rival();
                if (closed) {
                    throw new IllegalStateException("the membership was closed while it joined");
                }
                if (!alone && rival != null) {
                    throw new IllegalStateException(
                            "node '%s' is in cluster '%s' already, with address %s; give this one another name, or stop that one"
                                    .formatted(rival.name(), settings.cluster(), rival.address()));
                }
                table.tell(table.ownHello().node(), true);
            }
            sayHello();
            tellMembers();
            firstList.await();
        }

        private boolean await(BooleanSupplier condition, long nanos) throws InterruptedException {
            long deadline = System.nanoTime() + nanos;
            synchronized (lock) {
                while (!condition.getAsBoolean() && !closed) {
                    long left = TimeUnit.NANOSECONDS.toMillis(deadline - System.nanoTime());
                    if (left <= 0) {
                        return false;
                    }
                    lock.wait(left);
                }
            }
            return true;
        }

        void update(NodeInfo self) {
            synchronized (lock) {
                table.tell(self, table.ownHello().settled());
            }
            sayHello();
            tellMembers();
        }

        private void sayHello() {
            send(null, hello());
        }

        private byte[] hello() {
            MemberHello hello;
            synchronized (lock) {
                hello = table.ownHello();
            }
            BodyWriter body = new BodyWriter(1024).u8(HELLO);
            codec.write(hello, address, body);
            return body.toBytes();
        }

        /// @param receiver null for all
        void send(@Nullable Address receiver, byte[] bytes) {
            try {
                channel.send(new BytesMessage(receiver, bytes));
            } catch (Exception notConnected) {
                LOG.log(Level.DEBUG, "a message is not sent", notConnected);
            }
        }

        @Override
        public void viewAccepted(View view) {
            List<Address> added;
            synchronized (lock) {
                added = table.onMembers(view.getMembers());
                merged |= view instanceof MergeView;
                lock.notifyAll();
            }
            distrusted.retainAll(view.getMembers());
            if (!added.isEmpty()) {
                byte[] hello = hello();
                added.forEach(member -> send(member, hello));
            }
            tellMembers();
        }

        @Override
        public void receive(Message message) {
            BodyReader body =
                    new BodyReader(ByteBuffer.wrap(message.getArray(), message.getOffset(), message.getLength()));
            try {
                switch (body.u8("kind")) {
                    case HELLO -> onHello(message.getSrc(), codec.read(body, bytesOf(message.getSrc())));
                    case BROADCAST -> onBroadcast(message.getSrc(), body.rest());
                    default -> throw new ProtocolException("kind; allowed: 1 for a hello, 2 for a broadcast");
                }
            } catch (ProtocolException | GeneralSecurityException untrue) {
                if (distrusted.add(message.getSrc())) {
                    LOG.log(
                            Level.WARNING,
                            "what a member of cluster '%s' tells is not taken, as it cannot be read or trusted: %s"
                                    .formatted(settings.cluster(), untrue.getMessage()));
                }
                listener.onUnreadable();
            }
        }

        private void onHello(Address from, MemberHello hello) {
            synchronized (lock) {
                table.onHello(from, hello);
                lock.notifyAll();
            }
            tellMembers();
        }

        private void onBroadcast(Address from, byte[] message) {
            NodeInfo sender;
            synchronized (lock) {
                sender = told.isEmpty() ? null : table.node(from);
            }
            if (sender != null) {
                delivery.add(() -> listener.onMessage(sender.name(), message));
                delivery.run();
            }
        }

        /// Tells the listener if there is something new.
        private void tellMembers() {
            synchronized (lock) {
                List<NodeInfo> present = table.present();
                if (!table.ownHello().settled() || closed || (present.equals(told) && !merged)) {
                    return;
                }
                boolean first = told.isEmpty();
                boolean afterMerge = merged && !first;
                told = present;
                merged = false;
                reportRival();
                delivery.add(() -> {
                    listener.onMembers(present, afterMerge);
                    firstList.countDown();
                });
            }
            delivery.run();
        }

        /// Two servers of one name that were on two sides of a partition: this one is in no view until that one
        /// is out.
        private void reportRival() {
            NodeInfo rival = table.rival();
            if (rival != null && !rival.equals(reportedRival)) {
                LOG.log(
                        Level.ERROR,
                        "another node '%s' was started later, with address %s; this one is out of cluster '%s' until that one stops"
                                .formatted(rival.name(), rival.address(), settings.cluster()));
            }
            reportedRival = rival;
        }

        void close() {
            Future<?> task = helloTask;
            if (task != null) {
                task.cancel(false);
            }
            channel.close();
        }
    }

    private static byte[] bytesOf(Address address) {
        UUID uuid = (UUID) address; // as JGroupsStack makes them
        return ByteBuffer.allocate(2 * Long.BYTES)
                .putLong(uuid.getMostSignificantBits())
                .putLong(uuid.getLeastSignificantBits())
                .array();
    }

    /// Runs tasks one after another, in the order in which they came, without a thread of its own.
    ///
    /// Tasks are added under a lock that decides their order, and run after it was released. While another
    /// thread runs them, [#run] returns at once. So a task may add further ones, and may wait for a lock that
    /// another caller holds.
    ///
    /// **Threads.** Any.
    static final class OrderedDelivery {

        private static final System.Logger LOG = System.getLogger(OrderedDelivery.class.getName());

        private final Queue<Runnable> tasks = new ArrayDeque<>();
        private boolean running;

        /// Puts a task behind all earlier ones, for the next [#run].
        void add(Runnable task) {
            synchronized (tasks) {
                tasks.add(task);
            }
        }

        /// Runs all tasks, unless another thread does. One that fails is logged, as a bug.
        void run() {
            synchronized (tasks) {
                if (running) {
                    return;
                }
                running = true;
            }
            for (Runnable next = next(); next != null; next = next()) {
                try {
                    next.run();
                } catch (RuntimeException bug) {
                    LOG.log(System.Logger.Level.ERROR, "a listener of the cluster's members failed", bug);
                }
            }
        }

        private @Nullable Runnable next() {
            synchronized (tasks) {
                Runnable next = tasks.poll();
                running = next != null;
                return next;
            }
        }
    }

    /// The members of a group, what each has told about its server, and which of them hold their names.
    ///
    /// A member first tells its server as *unsettled*. It settles when it knows all others and none has its
    /// name. Of several members with one name, one holds it: a settled one before an unsettled one; of two
    /// settled ones, which happens when sides of a partition meet, the one with the higher incarnation; of two
    /// unsettled ones, the one that has been in the group for longer. All members see the same order and the
    /// same hellos, so they agree.
    ///
    /// **Threads.** One at a time.
    ///
    /// @param <A> address of a member, another one after each restart
    static final class MemberTable<A> {

        /// Members that have left and may come back, at the end of a partition; what they told then holds until
        /// they tell something newer. With 1 KiB each, this is 1 MiB.
        private static final int MAX_HELLOS = 1024;

        private final A own;
        private final Map<A, MemberHello> hellos = new LinkedHashMap<>();
        private List<A> members = List.of();

        MemberTable(A own, MemberHello hello) {
            this.own = own;
            hellos.put(own, hello);
        }

        /// Returns what this server tells.
        MemberHello ownHello() {
            return Objects.requireNonNull(hellos.get(own));
        }

        /// Changes what this server tells.
        void tell(NodeInfo node, boolean settled) {
            MemberHello before = ownHello();
            hellos.put(own, new MemberHello(node, settled, before.revision() + 1, before.secret()));
        }

        /// The group has other members.
        ///
        /// @param present in the order in which they joined
        /// @return those who have not been members before, this one excepted
        List<A> onMembers(List<A> present) {
            List<A> added = new ArrayList<>(present);
            added.removeAll(members);
            added.remove(own);
            members = List.copyOf(present);
            forgetOldest();
            return added;
        }

        private void forgetOldest() {
            List<A> absent = new ArrayList<>(hellos.keySet());
            absent.removeAll(members);
            absent.remove(own);
            int surplus = Math.min(absent.size(), hellos.size() - MAX_HELLOS);
            for (int i = 0; i < surplus; i++) {
                hellos.remove(absent.get(i));
            }
        }

        /// A member tells about its server.
        void onHello(A from, MemberHello hello) {
            MemberHello known = hellos.get(from);
            if (!from.equals(own) && (known == null || known.revision() < hello.revision())) {
                hellos.put(from, hello);
            }
        }

        /// Returns whether all members have told about their servers.
        boolean isComplete() {
            return hellos.keySet().containsAll(members);
        }

        /// Returns the server that a member has told about, or null if it has not.
        @Nullable
        NodeInfo node(A member) {
            MemberHello hello = hellos.get(member);
            return hello == null ? null : hello.node();
        }

        /// Returns the secret that the settled holder of a name has told, or null.
        @Nullable
        String secretOf(String name) {
            A holder = holders().get(name);
            MemberHello hello = holder == null ? null : hellos.get(holder);
            return hello == null || !hello.settled() ? null : hello.secret();
        }

        /// Returns the other server that holds this one's name, or null.
        @Nullable
        NodeInfo rival() {
            A holder = holders().get(ownHello().node().name());
            return holder == null || holder.equals(own) ? null : node(holder);
        }

        /// Returns the settled servers that hold their names, in the order in which they joined.
        List<NodeInfo> present() {
            return holders().values().stream()
                    .map(holder -> Objects.requireNonNull(hellos.get(holder)))
                    .filter(MemberHello::settled)
                    .map(MemberHello::node)
                    .toList();
        }

        private Map<String, A> holders() {
            Map<String, A> holders = new LinkedHashMap<>();
            for (A member : members) {
                MemberHello hello = hellos.get(member);
                if (hello != null) {
                    holders.merge(hello.node().name(), member, this::holder);
                }
            }
            return holders;
        }

        private A holder(A earlier, A later) {
            MemberHello one = Objects.requireNonNull(hellos.get(earlier));
            MemberHello other = Objects.requireNonNull(hellos.get(later));
            if (!other.settled()) {
                return earlier;
            }
            return !one.settled() || other.node().incarnation() > one.node().incarnation() ? later : earlier;
        }
    }
}
