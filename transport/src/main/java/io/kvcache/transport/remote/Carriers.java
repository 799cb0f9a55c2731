package io.kvcache.transport.remote;

import io.kvcache.transport.aeron.AeronConnector;
import io.kvcache.transport.link.Connector;
import io.kvcache.transport.tcp.TcpConnector;
import io.kvcache.transport.wire.BodyReader;
import io.kvcache.transport.wire.BodyWriter;
import io.kvcache.transport.wire.MessageType;
import io.kvcache.transport.wire.Violation;
import java.io.IOException;
import java.util.Locale;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/// Chooses between TCP and Aeron's UDP to one server that may offer both: by which bytes go there
/// and back faster. It asks over TCP what there is, measures each way for 50 ms at most, and
/// believes that for ten minutes or until the way that it has taken fails.
///
/// Aeron is loaded when a server offers it, and not before. Opening it takes as long as that takes,
/// two seconds at most.
///
/// **Threads.** Any; one measures at a time.
final class Carriers {

    private static final System.Logger LOG = System.getLogger(Carriers.class.getName());

    private static final long LASTS_NANOS = TimeUnit.MINUTES.toNanos(10);
    private static final long LONGEST_OPENING_NANOS = TimeUnit.SECONDS.toNanos(2);
    private static final double MEGABYTE = 1e6;

    /// Of all addresses of Aeron's only this one leads to another host; where bytes are shared by
    /// files, a server that lies could name any.
    private static final Pattern UDP = Pattern.compile("aeron:udp\\?endpoint=([^|?\\s\\p{Cntrl}]{1,255}):(\\d{1,5})");

    /// Of an offer that is none, in logs and statistics.
    private static final int SHOWN = 300;

    private static final Pattern ANY_HOST = Pattern.compile("0\\.0\\.0\\.0|\\[[0:]*]");

    private final TcpConnector tcp;
    private final String host;
    private @Nullable Choice choice;
    private long chosenAt;

    /// What is taken.
    ///
    /// @param why in words
    record Choice(Connector connector, String why) {}

    Carriers(String host, int port) {
        tcp = new TcpConnector(host, port);
        this.host = host;
    }

    /// What to take now.
    ///
    /// @throws IOException when the server cannot be reached over TCP
    /// @throws CallFailed when it does not want this client
    synchronized Choice choose(RemoteOptions options, Deadlines deadlines) throws IOException, CallFailed {
        Choice chosen = choice;
        if (chosen != null && System.nanoTime() - chosenAt < LASTS_NANOS) {
            return chosen;
        }
        chosen = measured(new Opening(options, deadlines));
        LOG.log(System.Logger.Level.INFO, this + " goes by " + chosen.why);
        choice = chosen;
        chosenAt = System.nanoTime();
        return chosen;
    }

    /// What was taken does not lead there any more.
    synchronized void forget() {
        choice = null;
    }

    private Choice measured(Opening opening) throws IOException, CallFailed {
        DataLine line = opening.line(tcp, opening.options.requestNanos());
        try {
            String offered = offered(line, opening.options.requestNanos());
            if (offered.isEmpty()) {
                return overTcp("the server offers no other way");
            }
            Matcher udp = UDP.matcher(offered);
            if (!udp.matches()) {
                return overTcp("the server offers \"" + shown(offered) + "\"; allowed: aeron:udp?endpoint=host:port");
            }
            String at = ANY_HOST.matcher(udp.group(1)).matches() ? bracketed(host) : udp.group(1);
            return compared(opening, line, "aeron:udp?endpoint=" + at + ":" + udp.group(2));
        } finally {
            line.close();
        }
    }

    private static String shown(String offered) {
        return offered.substring(0, Math.min(SHOWN, offered.length())).replaceAll("\\p{Cntrl}", "?");
    }

    private static String bracketed(String host) {
        return host.contains(":") ? "[" + host + "]" : host;
    }

    private Choice overTcp(String why) {
        return new Choice(tcp, "TCP: " + why);
    }

    private static String offered(DataLine line, long patienceNanos) throws CallFailed {
        Offers offers = new Offers();
        try {
            line.run(MessageType.OFFERS, new BodyWriter(), patienceNanos, offers);
        } catch (CallFailed older) {
            if (!older.answered()) {
                throw older;
            }
        }
        return offers.aeron;
    }

    private Choice compared(Opening opening, DataLine line, String address) {
        DataLine other;
        Connector aeron;
        try {
            aeron = new AeronConnector(address);
            other = opening.line(aeron, Math.min(opening.options.requestNanos(), LONGEST_OPENING_NANOS));
        } catch (IOException | CallFailed | IllegalStateException | IllegalArgumentException no) {
            return overTcp("no way by " + address + ": " + no.getMessage());
        }
        try {
            double byTcp = Probe.bytesPerSecond(line);
            double byAeron = Probe.bytesPerSecond(other);
            String measured =
                    String.format(Locale.ROOT, "TCP %.0f MB/s, Aeron %.0f MB/s", byTcp / MEGABYTE, byAeron / MEGABYTE);
            return byAeron > byTcp ? new Choice(aeron, address + ": " + measured) : overTcp(measured);
        } finally {
            other.close();
        }
    }

    /// Opens connections to be measured; each is a session of its own, which ends with it.
    private record Opening(RemoteOptions options, Deadlines deadlines) {

        DataLine line(Connector connector, long patienceNanos) throws IOException, CallFailed {
            Handshake.Means means = new Handshake.Means(options, deadlines, null, patienceNanos);
            return new DataLine(Handshake.open(connector, means), deadlines, new Releases());
        }
    }

    /// The answer to OFFERS.
    private static final class Offers implements DataLine.Exchange {

        private String aeron = "";
        private boolean done;

        @Override
        public void reply(BodyReader body) throws Violation {
            aeron = body.text("aeron");
            done = true;
        }

        @Override
        public boolean done() {
            return done;
        }
    }

    @Override
    public String toString() {
        return "auto:" + tcp;
    }
}
