package io.kvcache.core.tree;

/// The word that decides what each thread may do with a record: `generation << 32 | state << 24 | pins`.
///
/// ```
///            reserve            seal                      evict: pins 0 → EVICTING
///   FREE ─────────────▶ RESERVED ─────▶ SEALED ────────────────────────▶ FREE, generation + 1
///                          │  parent not sealed yet         drop while pinned
///                          └─▶ FILLED ─▶ SEALED     SEALED ─▶ DELETED ─ last unpin ─▶ FREE, generation + 1
/// ```
///
/// With disks, a block whose copy lies there stays known when its slot goes:
///
/// ```
///   SEALED ─ evict ─▶ ON_DISK, generation + 1       ON_DISK ─ load or put ─▶ LOADING ─▶ LOADED ─▶ SEALED
///   LOADING ─ given up ─▶ ON_DISK                   (LOADED: its parent is not SEALED yet)
/// ```
///
/// An object whose slot no reader has pinned may be given other bytes where it lies. It keeps its record, and is
/// REPLACING, under the next generation, while they are copied:
///
/// ```
///   SEALED ─ overwrite: pins 0 ─▶ REPLACING, generation + 1 ─▶ SEALED
/// ```
///
/// At opening, blocks are found on disk in any order: PLACEHOLDER stands for a parent that was not found yet,
/// ORPHAN for a block that has one above it. Once the chain above is whole they become ON_DISK.
///
/// Only a SEALED record can be pinned by readers. State changes happen under the store's lock; pins are added
/// and taken away by anyone, by compare-and-set on the whole word, so that a pin and a change of state cannot
/// both win. The generation is raised before a slot is reused: a thread that copied without a pin reads it again
/// afterwards.
///
/// **Why this holds on ARM as on x86.** *With a pin:* seal is a release store and pin a compare-and-set,
/// which acquires, so a reader sees the bytes that the writer left. All changes of one word have one order,
/// on any processor; so of a pin and a claim that both expect the same word only one succeeds. Unpin is a
/// compare-and-set, which releases, and a claim, which acquires, reads the word that the last unpin wrote (or
/// one after it): what the reader read is read before the slot is written again.
///
/// *Without a pin:* freeing stores the new generation and then a store-store fence, and a thread that writes to
/// the slot next got it by the store's lock after that; an order of stores that passes through a lock holds
/// for a third thread too. The reader must load the generation, copy, put a **load-load fence**, and load the
/// generation again. An acquire load in place of the fence will not do: it keeps back what comes after it,
/// and the copy comes before. With the fence, a copy with a byte of the next owner in it sees the next
/// generation. The state has to be SEALED at the first look; at the second the generation alone counts, as a
/// slot is given back only after it has risen.
public final class ControlWord {

    public static final int FREE = 0;
    public static final int RESERVED = 1;
    public static final int FILLED = 2;
    public static final int SEALED = 3;
    public static final int EVICTING = 4;
    public static final int DELETED = 5;
    public static final int ON_DISK = 6;
    public static final int LOADING = 7;
    public static final int LOADED = 8;
    public static final int PLACEHOLDER = 9;
    public static final int ORPHAN = 10;
    public static final int REPLACING = 11;

    /// 16.7 million claims on one record; more is a leak and is refused as such.
    public static final int MAX_PINS = (1 << 24) - 1;

    private static final int STATE_SHIFT = 24;
    private static final int GENERATION_SHIFT = 32;

    private ControlWord() {}

    /// The states in which a key is known: its bytes are in host memory, on disk, or on their way from there.
    static final int KNOWN = 1 << SEALED | 1 << ON_DISK | 1 << LOADING | 1 << LOADED | 1 << REPLACING;

    /// The state in which readers may pin.
    static final int READABLE = 1 << SEALED;

    /// Returns whether a record in this state is known: a match counts it.
    public static boolean isKnown(int state) {
        return (KNOWN >>> state & 1) != 0;
    }

    /// Returns whether a key whose record is passed in this state may be found a moment later, here or in a newer
    /// record.
    static boolean isPassing(int state) {
        return state == DELETED || state == REPLACING;
    }

    static long withState(long control, int state, int pins) {
        int after = pins(control) + pins;
        assert after >= 0 && after <= MAX_PINS : "pins would be " + after;
        return pack(generation(control), state, after);
    }

    static long withNewGeneration(long control, int state, int pins) {
        return pack(generation(control) + 1, state, pins(control) + pins);
    }

    static long pack(int generation, int state, int pins) {
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
