package io.kvcache.bench.transport;

import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;

/// Moves the same blocks through the remote cache and to a bare responder in turn, round by round, so
/// that what else the machine does meets both.
public final class TransportComparison {

    private static final List<Integer> SIZES = List.of(64 << 10, 1 << 20, 4 << 20);
    private static final List<Integer> IN_FLIGHT = List.of(1, 4);
    private static final int CONNECTIONS = 2;

    private final int rounds;
    private final Duration time;
    private final Consumer<String> progress;

    /// How long to measure.
    ///
    /// @param rounds times that each cargo is moved by each
    /// @param time of each round
    /// @param progress told what is about to run
    public TransportComparison(int rounds, Duration time, Consumer<String> progress) {
        this.rounds = rounds;
        this.time = time;
        this.progress = progress;
    }

    /// All cells: four operations, three sizes, two numbers in flight.
    public List<TransportCell> run() throws IOException, InterruptedException {
        try (TransportServer server = TransportServer.start();
                RemoteClient ours = new RemoteClient("127.0.0.1:" + server.port(), CONNECTIONS);
                BareClient bare = new BareClient(server.barePort(), CONNECTIONS, SIZES.getLast())) {
            List<TransportCell> cells = new ArrayList<>();
            for (int bytes : SIZES) {
                ours.fill(bytes);
                for (Operation operation : Operation.values()) {
                    warm(ours, bare, new Cargo(operation, bytes, 2));
                    for (int inFlight : IN_FLIGHT) {
                        cells.add(cell(ours, bare, new Cargo(operation, bytes, inFlight)));
                    }
                }
                ours.empty(bytes);
            }
            return cells;
        }
    }

    private void warm(Contestant ours, Contestant bare, Cargo cargo) throws InterruptedException {
        progress.accept("warming " + cargo.operation().text() + " of " + (cargo.bytes() >> 10) + " KiB");
        Meter.move(ours, cargo, time.multipliedBy(2));
        Meter.move(bare, cargo, time.multipliedBy(2));
    }

    private TransportCell cell(Contestant ours, Contestant bare, Cargo cargo) throws InterruptedException {
        progress.accept(
                cargo.operation().text() + " " + (cargo.bytes() >> 10) + " KiB, " + cargo.inFlight() + " in flight");
        List<Moves> own = new ArrayList<>();
        List<Moves> other = new ArrayList<>();
        List<Double> ratios = new ArrayList<>();
        for (int round = 0; round < rounds; round++) {
            own.add(Meter.move(ours, cargo, time));
            other.add(Meter.move(bare, cargo, time));
            ratios.add(own.getLast().gigabytes() / other.getLast().gigabytes());
        }
        return new TransportCell(cargo, Meter.median(own), Meter.median(other), Meter.median(ratios, ratio -> ratio));
    }
}
