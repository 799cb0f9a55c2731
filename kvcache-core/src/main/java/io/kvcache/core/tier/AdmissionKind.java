package io.kvcache.core.tier;

import java.util.Arrays;
import java.util.Optional;
import java.util.stream.Collectors;

/// Which blocks are worth a write to disk.
public enum AdmissionKind {
    /// Every block, as soon as it is sealed: most hits, most wear.
    ALWAYS("always"),
    /// A block that was used again, or put again after it had been evicted: most of the hits for a fraction
    /// of the writes, since most blocks are never used again.
    SECOND_HIT("second-hit"),
    /// As far as [#WRITTEN_SHARE] goes, the blocks that promise to save most: by the odds that they
    /// are used again, as observed in this store of blocks that were put with as much of a prompt
    /// behind as much of it, times the root of what computing them takes, if that is worth the cost
    /// of their write, see [#DEFAULT_GAIN]. What was used again is taken to be so once more. What is
    /// on disk is written again, when its region is reclaimed, only if it was used there.
    VALUE("value");

    /// What one use of a block saves in units of what its write costs. A GPU at 2.50 dollars an
    /// hour that prefills 10,000 tokens of 128 KiB a second makes a terabyte of KV for 0.53
    /// dollars; a drive of 400 dollars that takes 5 PB in its life has a terabyte written for 0.08.
    public static final double DEFAULT_GAIN = 6.6;

    /// Of the bytes that are put, those that [#VALUE] writes, on the whole: no more, but for what a
    /// flush wants. A little below two fifths, as more is put than where everything is written, and
    /// a little more of it is written again: all in, two fifths of what reaches the disk there.
    public static final double WRITTEN_SHARE = 0.39;

    private final String commandName;

    AdmissionKind(String commandName) {
        this.commandName = commandName;
    }

    /// [#DEFAULT_GAIN] for other packages: a constant is compiled into the class that names it, and this can
    /// be changed without compiling them anew.
    public static double defaultGain() {
        return DEFAULT_GAIN;
    }

    /// Name in configuration and on command lines.
    public String commandName() {
        return commandName;
    }

    /// The kind with this name, if any.
    public static Optional<AdmissionKind> fromName(String name) {
        return Arrays.stream(values())
                .filter(kind -> kind.commandName.equals(name))
                .findFirst();
    }

    /// All names, for messages.
    public static String names() {
        return Arrays.stream(values()).map(AdmissionKind::commandName).collect(Collectors.joining(", "));
    }
}
