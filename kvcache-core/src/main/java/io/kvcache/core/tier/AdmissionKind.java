package io.kvcache.core.tier;

import java.util.Arrays;
import java.util.Optional;
import java.util.stream.Collectors;

/// Choice of the blocks that are worth a write to disk.
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

    /// Default gain: the saving by one use of a block, in units of the cost of its write. A GPU at 2.50 dollars an
    /// hour that prefills 10,000 tokens of 128 KiB a second makes a terabyte of KV for 0.53 dollars. A drive of
    /// 400 dollars that takes 5 PB in its life writes a terabyte for 0.08.
    public static final double DEFAULT_GAIN = 6.6;

    /// Share of all bytes put that [#VALUE] writes on average, without the extra writes of a flush. It is a little
    /// below two fifths, because more is put than where everything is written, and more of it is written again.
    /// All in, two fifths of the bytes that would reach the disk there.
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
