package io.kvcache.tiers.disk;

import io.kvcache.tiers.device.IoOutcome;
import java.util.ArrayList;
import java.util.List;

/// Syncs shared by all who need one: at most one is on its way, and who asks meanwhile shares the next, since
/// a sync covers only what was done before it began.
final class Syncs {

    /// What follows a sync.
    @FunctionalInterface
    interface Done {
        void done(boolean durable);
    }

    private final Transfers transfers;
    private final Condition condition;
    private List<Done> waiting = new ArrayList<>();
    private List<Done> covered = new ArrayList<>();
    private boolean flying;

    Syncs(Transfers transfers, Condition condition) {
        this.transfers = transfers;
        this.condition = condition;
    }

    /// Makes durable all writes that have ended by now.
    void request(Done done) {
        waiting.add(done);
    }

    void pump() {
        if (flying || waiting.isEmpty()) {
            return;
        }
        covered = waiting;
        waiting = new ArrayList<>();
        if (condition.halted()) {
            tell(false);
        } else {
            flying = true;
            transfers.add(Transfer.sync(this::ended));
        }
    }

    private void ended(IoOutcome outcome) {
        flying = false;
        tell(outcome.isDone());
    }

    private void tell(boolean durable) {
        for (Done each : covered) {
            each.done(durable);
        }
    }

    boolean idle() {
        return !flying && waiting.isEmpty();
    }
}
