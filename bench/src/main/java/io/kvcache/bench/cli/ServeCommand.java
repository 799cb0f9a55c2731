package io.kvcache.bench.cli;

import io.kvcache.server.CacheServer;
import io.kvcache.server.Stopped;
import io.kvcache.server.config.ConfigException;
import io.kvcache.server.config.ServerConfig;
import io.kvcache.server.log.LogLines;
import io.kvcache.server.memory.MemoryBudget;
import io.kvcache.server.memory.MemoryLimit;
import io.kvcache.tiers.directory.DiskRefusedException;
import io.kvcache.tiers.movement.MoverStats;
import java.io.IOException;
import java.io.PrintWriter;
import java.lang.management.ManagementFactory;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.time.Duration;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;
import java.util.logging.Level;
import java.util.stream.Collectors;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Spec;

/// `kvcache serve`: the cache server, until it is told to stop.
///
/// SIGTERM and Ctrl-C drain it: it accepts no more, answers what has begun, brings what is in memory alone to disk, and
/// exits with 0; or with 4 when not all of that got to disk.
@Command(
        name = "serve",
        description = "Serve the store to Redis clients and LMCache, until stopped.",
        mixinStandardHelpOptions = true,
        sortOptions = false)
final class ServeCommand implements Callable<Integer> {

    /// Of the time that a server has to go down: so much is for closing what is open.
    private static final int CLOSING_SHARE = 10;

    /// A stop could not bring all values to disk. Errors end with 1, wrong settings with 2, a full heap with 3.
    private static final int EXIT_UNSAVED = 4;

    private static final String CUT_OFF = "some requests took too long and were cut off";

    private static final System.Logger LOG = System.getLogger(ServeCommand.class.getName());

    private static final Duration LEAST_CLOSING = Duration.ofSeconds(1);

    @Spec
    private CommandSpec spec = CommandSpec.create();

    @Mixin
    private ServerSettings settings = new ServerSettings();

    @Override
    public Integer call() throws IOException, InterruptedException {
        ServerConfig config;
        try {
            config = settings.read();
        } catch (ConfigException wrong) {
            wrong.problems().forEach(problem -> spec.commandLine().getErr().println("kvcache serve: " + problem));
            return 2;
        }
        LogLines.install(config.log());
        config = config.settled(ServeCommand::isFree);
        MemoryLimit limit = MemoryLimit.here();
        MemoryBudget budget = CacheServer.budget(config);
        CacheServer server;
        try {
            budget.requireWithin(limit);
            server = CacheServer.start(config);
        } catch (IllegalStateException | DiskRefusedException refused) {
            throw new IOException(refused.getMessage(), refused);
        }
        stopOnSignal(server, config);
        String serves = String.format(
                Locale.ROOT,
                "KVCache %s serves at %s: %s of host memory, %s, %d loops, ready %.1f s after start",
                Kvcache.Version.text(),
                server.addresses().stream().map(ServeCommand::place).collect(Collectors.joining(", ")),
                new ByteSize(config.memory().hostBytes()),
                server.transport().name().toLowerCase(Locale.ROOT),
                config.network().loops(),
                (System.currentTimeMillis()
                                - ManagementFactory.getRuntimeMXBean().getStartTime())
                        / 1000.0);
        say(serves);
        LOG.log(System.Logger.Level.INFO, serves);
        String asks = config.transport().guarded(config.access().tenants())
                ? ", asks for a secret"
                : ", asks nobody who he is";
        InetSocketAddress remote = server.remoteAddress();
        if (remote != null) {
            say("  other JVMs at " + (config.transport().tls() == null ? "" : "tls:")
                    + remote.getAddress().getHostAddress() + ":" + remote.getPort() + asks);
        }
        if (server.aeronAddress() != null) {
            say("  other JVMs at " + server.aeronAddress() + asks);
        }
        ConfigText.domains(config).forEach(line -> say("  " + line));
        List<MoverStats> disks = server.cache().diskStats();
        for (int number = 0; number < disks.size(); number++) {
            say("  " + disks.get(number).name() + ": "
                    + ConfigText.size(config.disks().disks().get(number)) + ", "
                    + disks.get(number).tier().path());
        }
        say("  " + budget.line(limit));
        new CountDownLatch(1).await();
        return 0;
    }

    /// Whether a port of loopback can be had, so that the second server of a machine starts too.
    private static boolean isFree(int port) {
        try (ServerSocket probe = new ServerSocket(port, 1, InetAddress.getLoopbackAddress())) {
            return probe.isBound();
        } catch (IOException taken) {
            LOG.log(
                    System.Logger.Level.INFO,
                    "Port " + port + ", where other JVMs would connect, is taken; transport.listen names another");
            return false;
        }
    }

    /// The JVM would exit with 143 on SIGTERM. A server that lost nothing exits with 0.
    private void stopOnSignal(CacheServer server, ServerConfig config) {
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            String stops = "KVCache stops: answering what has begun, for "
                    + config.drain().toSeconds() + " s at most";
            say(stops);
            LogLines.last(config.log(), Level.INFO, ServeCommand.class, stops);
            Stopped stopped = server.stop(config.drain().minus(config.drain().dividedBy(CLOSING_SHARE)));
            if (!stopped.answered()) {
                say("KVCache: " + CUT_OFF);
                LogLines.last(config.log(), Level.WARNING, ServeCommand.class, CUT_OFF);
            }
            if (!stopped.saved()) {
                String left = "not all values got to disk: " + stopped.unsavedBytes()
                        + " bytes are in memory alone, and are lost, as shutdown.drain is over, a disk fails or is full,"
                        + " or they are larger than it takes";
                say("KVCache: " + left);
                LogLines.last(config.log(), Level.SEVERE, ServeCommand.class, left);
            }
            close(server, config.drain().dividedBy(CLOSING_SHARE));
            say("KVCache stopped");
            LogLines.last(config.log(), Level.INFO, ServeCommand.class, "KVCache stopped");
            Runtime.getRuntime().halt(stopped.saved() ? 0 : EXIT_UNSAVED);
        }));
    }

    /// Lets go of all, but does not wait for ever for a disk that does not answer: what is durable is so without that.
    private void close(CacheServer server, Duration longest) {
        Thread closing = Thread.ofPlatform().daemon(true).name("kvcache-close").start(server::close);
        try {
            if (!closing.join(longest.compareTo(LEAST_CLOSING) < 0 ? LEAST_CLOSING : longest)) {
                say("KVCache: closing took too long and was cut off");
            }
        } catch (InterruptedException stopped) {
            Thread.currentThread().interrupt();
        }
    }

    private static String place(InetSocketAddress address) {
        String host = address.getAddress().getHostAddress();
        if (address.getAddress().isAnyLocalAddress()) {
            return "*:" + address.getPort();
        }
        return (host.indexOf(':') < 0 ? host : "[" + host + "]") + ":" + address.getPort();
    }

    private void say(String line) {
        PrintWriter out = spec.commandLine().getOut();
        out.println(line);
        out.flush();
    }
}
