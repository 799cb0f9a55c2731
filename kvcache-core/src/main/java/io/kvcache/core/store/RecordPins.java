package io.kvcache.core.store;

import io.kvcache.core.tree.ControlWord;
import io.kvcache.core.tree.RecordPool;

/// Claims on records: pins, and the claim that ends them all, eviction. By anyone, without the lock.
final class RecordPins {

    private final RecordPool pool;

    RecordPins(RecordPool pool) {
        this.pool = pool;
    }

    /// Pins a sealed record of this generation.
    ///
    /// @throws IllegalStateException when the record has as many pins as fit its control word: tables leak
    boolean pin(int record, int generation) {
        while (true) {
            long control = pool.control(record);
            if (ControlWord.generation(control) != generation || ControlWord.state(control) != ControlWord.SEALED) {
                return false;
            }
            if (ControlWord.pins(control) == ControlWord.MAX_PINS) {
                throw new IllegalStateException("record " + record + " has " + ControlWord.MAX_PINS
                        + " pins and takes no more: tables are leaking");
            }
            if (pool.casControl(record, control, control + 1)) {
                return true;
            }
        }
    }

    /// Takes a pin away.
    ///
    /// @return whether that was the last pin on a deleted record, which [RecordStates#reap] may now free
    /// @throws IllegalStateException when the record has no pin
    boolean unpin(int record) {
        while (true) {
            long control = pool.control(record);
            if (ControlWord.pins(control) == 0) {
                throw new IllegalStateException("record " + record + " is released and holds no pin");
            }
            if (pool.casControl(record, control, control - 1)) {
                return ControlWord.state(control) == ControlWord.DELETED && ControlWord.pins(control) == 1;
            }
        }
    }

    /// Claims an unpinned record in a state for eviction.
    boolean claim(int record, int state) {
        long control = pool.control(record);
        return ControlWord.state(control) == state
                && ControlWord.pins(control) == 0
                && pool.casControl(record, control, control + ((long) (ControlWord.EVICTING - state) << 24));
    }
}
