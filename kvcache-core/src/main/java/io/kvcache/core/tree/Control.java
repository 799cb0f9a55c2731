package io.kvcache.core.tree;

/// The word that decides who may do what with a record: `generation << 32 | state << 24 | pins`.
///
/// ```
///            reserve            seal                      evict: pins 0 → EVICTING
///   FREE ─────────────▶ RESERVED ─────▶ SEALED ────────────────────────▶ FREE, generation + 1
///                          │  parent not sealed yet         drop while pinned
///                          └─▶ FILLED ─▶ SEALED     SEALED ─▶ DOOMED ─ last unpin ─▶ FREE, generation + 1
/// ```
///
/// Only a SEALED record can be found and pinned by readers. State changes happen under the store's lock; pins are
/// added and taken away by anyone, by compare-and-set on the whole word, so that a pin and a change of state cannot
/// both win. The generation is raised before a slot is reused: who copied without a pin reads it again afterwards.
public final class Control {

    public static final int FREE = 0;
    public static final int RESERVED = 1;
    public static final int FILLED = 2;
    public static final int SEALED = 3;
    public static final int EVICTING = 4;
    public static final int DOOMED = 5;

    /// 16.7 million claims on one record; more is a leak and is refused as such.
    public static final int MAX_PINS = (1 << 24) - 1;

    private static final int STATE_SHIFT = 24;
    private static final int GENERATION_SHIFT = 32;

    private Control() {}

    static long word(int generation, int state, int pins) {
        return (long) generation << GENERATION_SHIFT | (long) state << STATE_SHIFT | pins;
    }

    public static int generation(long control) {
        return (int) (control >>> GENERATION_SHIFT);
    }

    public static int state(long control) {
        return (int) (control >>> STATE_SHIFT) & 0xff;
    }

    public static int pins(long control) {
        return (int) control & MAX_PINS;
    }
}
