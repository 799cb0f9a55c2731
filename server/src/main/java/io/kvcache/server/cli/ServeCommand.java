package io.kvcache.server.cli;

import io.kvcache.core.stats.TierTransferStats;
import io.kvcache.server.CacheServer;
import io.kvcache.server.CacheServer.ShutdownResult;
import io.kvcache.server.ServerPreflight;
import io.kvcache.server.cli.CommandLineBuilder.LongRunningCommand;
import io.kvcache.server.config.ConfigException;
import io.kvcache.server.config.DiskTierConfig.DiskConfig;
import io.kvcache.server.config.ListenerConfig;
import io.kvcache.server.config.ListenerConfig.ListenProtocol;
import io.kvcache.server.config.MemoryBudget;
import io.kvcache.server.config.MemoryBudget.CgroupMemoryLimit;
import io.kvcache.server.config.ServerConfig;
import io.kvcache.server.config.ServerConfig.LogConfig;
import io.kvcache.server.log.LogLineFormatter;
import io.kvcache.server.log.LogLineFormatter.LogFormat;
import io.kvcache.tiers.directory.DiskDirectoryException;
import java.io.IOException;
import java.io.ObjectInputFilter;
import java.io.PrintWriter;
import java.lang.management.ManagementFactory;
import java.net.BindException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.time.Duration;
import java.util.List;
import java.util.ListIterator;
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
/// SIGTERM and Ctrl-C drain it: for `shutdown.delay` it is not ready and serves on; then it accepts no more,
/// answers the requests that have begun, flushes memory to disk, and exits with 0.
@Command(
        name = "serve",
        description = "Serve the store to Redis clients and LMCache, until stopped.",
        mixinStandardHelpOptions = true,
        sortOptions = false)
final class ServeCommand implements Callable<Integer>, LongRunningCommand {

    /// This fraction of the shutdown time is for closing what is open.
    private static final int CLOSE_TIME_FRACTION = 10;

    /// A stop could not bring all values to disk. Errors end with 1, wrong settings with 2, a full heap with 3.
    private static final int EXIT_UNSAVED = 4;

    private static final String DRAIN_TIMEOUT_MESSAGE = "timeout: some requests took too long and were cut off";

    private static final System.Logger LOG = System.getLogger(ServeCommand.class.getName());

    private static final Duration MIN_CLOSE_TIME = Duration.ofSeconds(1);

    private LogConfig log = LogConfig.defaults();

    @Spec
    private CommandSpec spec = CommandSpec.create();

    @Mixin
    private ServeOptions settings = new ServeOptions();

    @Override
    public Integer call() throws IOException, InterruptedException {
        ServerConfig config;
        try {
            config = settings.read();
        } catch (ConfigException wrong) {
            log = wrong.log();
            LogLineFormatter.install(log.format(), log.level());
            wrong.problems().forEach(this::printProblem);
            return 2;
        }
        log = config.log();
        LogLineFormatter.install(log.format(), log.level());
        try {
            return serve(config);
        } catch (IOException failed) {
            if (log.format() != LogFormat.JSON) {
                throw failed;
            }
            LOG.log(System.Logger.Level.ERROR, failed.getMessage(), failed);
            return 1;
        }
    }

    private Integer serve(ServerConfig asRead) throws IOException, InterruptedException {
        ServerConfig config = asRead.withAutoResolved(ServeCommand::isFree);
        CgroupMemoryLimit limit = CgroupMemoryLimit.detect();
        MemoryBudget budget = ServerPreflight.memoryBudget(config);
        if (config.cluster() != null) {
            readNoObjects();
        }
        CacheServer server;
        try {
            budget.requireWithin(limit);
            server = start(config, asRead.withAutoResolved(port -> false));
        } catch (DiskDirectoryException refused) {
            List<String> all = ServerPreflight.findStorageProblems(config);
            throw new IOException(all.size() > 1 ? String.join("\n", all) : refused.getMessage(), refused);
        } catch (IllegalStateException refused) {
            throw new IOException(refused.getMessage(), refused);
        }
        server.showSettings(settings.inForce());
        stopOnSignal(server, config);
        ServerConfig usual = asRead.withAutoResolved(port -> true);
        if (!config.equals(usual)) {
            LOG.log(
                    System.Logger.Level.INFO,
                    usual.transport().listen() + ", where other JVMs would connect, is taken; transport.listen names"
                            + " another");
        }
        String serves = String.format(
                Locale.ROOT,
                "KVCache %s serves at %s: %s of host memory",
                Version.text(),
                server.addresses().stream().map(ServeCommand::hostAndPort).collect(Collectors.joining(", ")),
                new ByteSizeText(config.memory().hostBytes()));
        String loops = String.format(
                Locale.ROOT,
                "%s, %d loops, ready %.1f s after start",
                server.transportKind().name().toLowerCase(Locale.ROOT),
                config.network().loops(),
                (System.currentTimeMillis()
                                - ManagementFactory.getRuntimeMXBean().getStartTime())
                        / 1000.0);
        if (log.format() != LogFormat.JSON) {
            printLine(serves);
            printLine("  " + loops);
        }
        LOG.log(System.Logger.Level.INFO, serves + ", " + loops);
        ListIterator<ListenerConfig> listeners = config.access().listeners().listIterator();
        while (listeners.hasNext()) {
            InetSocketAddress bound = server.addresses().get(listeners.nextIndex());
            String console = consoleAt(listeners.next(), bound);
            if (!console.isEmpty()) {
                printLine("  console at " + console);
            }
        }
        String asks = config.transport().requiresSecret(config.access().tenants())
                ? ", secret required"
                : ", no authentication";
        InetSocketAddress remote = server.remoteAddress();
        if (remote != null) {
            printLine("  engines at " + (config.transport().tls() == null ? "" : "tls:")
                    + remote.getAddress().getHostAddress() + ":" + remote.getPort() + asks);
        }
        if (server.aeronAddress() != null) {
            printLine("  other JVMs at " + server.aeronAddress() + asks);
        }
        if (config.cluster() != null) {
            printLine("  " + config.cluster().describe());
        }
        ConfigSummary.describeDomains(config).forEach(line -> printLine("  " + line));
        List<TierTransferStats> disks = server.cache().diskStats();
        List<DiskConfig> configured = config.disks().disks();
        for (int number = 0; number < configured.size(); number++) {
            printLine("  " + disks.get(number).name() + ": " + ConfigSummary.describeDisk(configured.get(number)) + ", "
                    + disks.get(number).tier().path());
        }
        ConfigSummary.describeGpus(config).forEach(line -> printLine("  " + line));
        printLine("  " + budget.describe(limit));
        new CountDownLatch(1).await();
        return 0;
    }

    /// Servers of a cluster tell each other bytes, but JGroups would make any Java object that a message holds. A
    /// stranger at its port could have this process run what its libraries do when they are read.
    private static void readNoObjects() {
        if (ObjectInputFilter.Config.getSerialFilter() == null) { // else the operator has set one
            ObjectInputFilter.Config.setSerialFilter(_ -> ObjectInputFilter.Status.REJECTED);
        }
    }

    /// Starts a server. When another one took the usual port for other JVMs since [#isFree] saw it free, starts
    /// without that port: it is only there by default.
    ///
    /// @param withoutUsualPort the same settings, if the usual port is taken
    static CacheServer start(ServerConfig config, ServerConfig withoutUsualPort) throws IOException {
        try {
            return CacheServer.start(config);
        } catch (IOException failed) {
            if (config.equals(withoutUsualPort) || !(failed.getCause() instanceof BindException)) {
                throw failed;
            }
            LOG.log(System.Logger.Level.INFO, failed.getMessage() + "; starts without it");
            return CacheServer.start(withoutUsualPort);
        }
    }

    /// Returns whether a loopback port is free, so that a second server on this machine can start.
    private static boolean isFree(int port) {
        try (ServerSocket probe = new ServerSocket(port, 1, InetAddress.getLoopbackAddress())) {
            return probe.isBound();
        } catch (IOException taken) {
            return false;
        }
    }

    /// The JVM would exit with 143 on SIGTERM. A server that lost nothing exits with 0.
    private void stopOnSignal(CacheServer server, ServerConfig config) {
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            Duration delay = config.shutdown().delay();
            Duration drain = config.shutdown().drain();
            if (delay.isPositive()) {
                logDuringShutdown(
                        Level.INFO,
                        "KVCache stops: reports not ready, and serves for " + delay.toSeconds()
                                + " s more (shutdown.delay)");
                server.announceShutdown(delay);
            }
            if (config.cluster() != null) {
                logDuringShutdown(
                        Level.INFO,
                        "KVCache stops: hands its blocks over to the other servers of the cluster, for "
                                + drain.toSeconds() + " s at most");
                logDuringShutdown(Level.INFO, server.handOver(drain));
            }
            logDuringShutdown(
                    Level.INFO,
                    "KVCache stops: finishes requests that have begun, for " + drain.toSeconds() + " s at most");
            ShutdownResult shutdownResult = server.stop(drain.minus(drain.dividedBy(CLOSE_TIME_FRACTION)));
            server.newProblems().forEach(line -> writeDuringShutdown(Level.WARNING, "In the last minute " + line));
            if (!shutdownResult.requestsCompleted()) {
                logDuringShutdown(Level.WARNING, "KVCache: " + DRAIN_TIMEOUT_MESSAGE);
            }
            if (!shutdownResult.valuesFlushed()) {
                String left = "shutdown: " + shutdownResult.unsavedBytes()
                        + " bytes not flushed to disk and lost (shutdown.drain timeout, disk failed or full, or value"
                        + " too large)";
                logDuringShutdown(Level.SEVERE, "KVCache: " + left);
            }
            close(server, drain.dividedBy(CLOSE_TIME_FRACTION));
            logDuringShutdown(Level.INFO, "KVCache stopped");
            Runtime.getRuntime().halt(shutdownResult.valuesFlushed() ? 0 : EXIT_UNSAVED);
        }));
    }

    /// Closes the server with a timeout, as a disk may not answer. Durable values are safe without it.
    private void close(CacheServer server, Duration timeout) {
        Thread closing = Thread.ofPlatform().daemon(true).name("kvcache-close").start(server::close);
        try {
            if (!closing.join(timeout.compareTo(MIN_CLOSE_TIME) < 0 ? MIN_CLOSE_TIME : timeout)) {
                logDuringShutdown(Level.WARNING, "KVCache: timeout: closing took too long and was cut off");
            }
        } catch (InterruptedException stopped) {
            Thread.currentThread().interrupt();
        }
    }

    /// Returns where a browser on this machine sees the console; empty for a listener that does not show it.
    static String consoleAt(ListenerConfig listener, InetSocketAddress bound) {
        if (!listener.protocols().contains(ListenProtocol.PAGES)) {
            return "";
        }
        InetAddress address = bound.getAddress();
        InetAddress reached = address.isAnyLocalAddress() ? InetAddress.getLoopbackAddress() : address;
        return (listener.tls() == null ? "http" : "https") + "://"
                + hostAndPort(new InetSocketAddress(reached, bound.getPort())) + "/";
    }

    private static String hostAndPort(InetSocketAddress address) {
        String host = address.getAddress().getHostAddress();
        if (address.getAddress().isAnyLocalAddress()) {
            return "*:" + address.getPort();
        }
        return (host.indexOf(':') < 0 ? host : "[" + host + "]") + ":" + address.getPort();
    }

    /// Logs during shutdown.
    private void logDuringShutdown(Level level, String line) {
        if (log.format() != LogFormat.JSON) {
            printLine(line);
        }
        writeDuringShutdown(level, line);
    }

    private void writeDuringShutdown(Level level, String line) {
        LogLineFormatter.writeDirectly(log.format(), log.level(), level, ServeCommand.class, line);
    }

    private void printProblem(String problem) {
        if (log.format() == LogFormat.JSON) {
            LOG.log(System.Logger.Level.ERROR, problem);
        } else {
            spec.commandLine().getErr().println("kvcache serve: " + problem);
        }
    }

    /// Prints a line to standard output. Where the log is JSON it is an event, as there is nothing else then.
    private void printLine(String line) {
        if (log.format() == LogFormat.JSON) {
            LOG.log(System.Logger.Level.INFO, line.strip());
            return;
        }
        PrintWriter out = spec.commandLine().getOut();
        out.println(TextWidth.wrap(line, spec.commandLine().getUsageHelpWidth()));
        out.flush();
    }
}
