package io.kvcache.server.net;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.contract.Repetitions;
import io.kvcache.server.net.Connection.CloseReason;
import java.util.Arrays;
import java.util.EnumSet;
import java.util.Random;
import java.util.Set;
import java.util.function.Supplier;

/// A run of random frames, as long and from the seed that the command says: `-Dkvcache.fuzz.frames=1000000` takes
/// longer, `-Dkvcache.fuzz.seed=N` sends others. Without that word it is the same run each time, so that a change
/// is told of its own mistakes and not of what another seed has found.
public final class FuzzRunner {

    private static final int FRAMES = Repetitions.of("kvcache.fuzz.frames", 2_000, 50_000);
    private static final long SEED = Long.getLong("kvcache.fuzz.seed", 20_261_122);

    /// Why connections end that have nothing to do with what is sent.
    private static final Set<CloseReason> NO_FRAMES = EnumSet.of(
            CloseReason.BUG,
            CloseReason.IO_ERROR,
            CloseReason.DRAIN,
            CloseReason.IDLE,
            CloseReason.STALLED_REQUEST,
            CloseReason.SLOW_READER,
            CloseReason.TOO_MANY,
            CloseReason.FOREIGN_NETWORK,
            CloseReason.TLS_FAILED);

    private final String what;
    private final Random random = new Random(SEED);

    /// @param what is sent, for the line that tells how to repeat it
    public FuzzRunner(String what) {
        this.what = what;
        System.out.println("fuzz: " + what + ", -Dkvcache.fuzz.seed=" + SEED + " -Dkvcache.fuzz.frames=" + FRAMES);
    }

    /// The source of all randomness in the run.
    public Random random() {
        return random;
    }

    /// Sends frames over connections, each in two parts, a few a connection or until the server closes it. Counts
    /// those that were sent while it was open.
    ///
    /// @param each how many over one connection; the fewer, the fewer are taken for the rest of another
    /// @return how many frames were sent
    public int run(int each, Supplier<EmbeddedConnection> connect, Supplier<byte[]> frames) {
        int sent = 0;
        int connections = 0;
        while (sent < FRAMES) {
            try (EmbeddedConnection embeddedConnection = connect.get()) {
                for (int i = 0; i < each && embeddedConnection.isOpen(); i++, sent++) {
                    byte[] frame = frames.get();
                    int cut = random.nextInt(frame.length + 1);
                    embeddedConnection
                            .send(Arrays.copyOf(frame, cut))
                            .send(Arrays.copyOfRange(frame, cut, frame.length));
                }
                embeddedConnection.bytes();
            }
            connections++;
        }
        System.out.println("fuzz: " + what + ", " + sent + " frames over " + connections + " connections");
        return sent;
    }

    /// Fails when a connection has ended for a reason that no frame can give.
    public static void requireCleanCloses(ConnectionRegistry connectionRegistry) {
        for (CloseReason reason : NO_FRAMES) {
            assertThat(connectionRegistry.closedCount(reason)).as("%s", reason).isZero();
        }
    }
}
