package io.kvcache.bench.constant;

import java.util.Locale;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/// A number in the core's sources that somebody chose.
///
/// @param file below the core's package, without its ending: `policy/Guard`
/// @param name as the source has it
/// @param effect what it can change
/// @param chosen why it is what it is
public record TunableConstant(String file, String name, Effect effect, String chosen, Pattern place) {

    /// Where a constant shows.
    public enum Effect {
        /// In the order of eviction, of one tier.
        ORDER,
        /// In that order, when requests are known before they come.
        QUEUE,
        /// In what is written to disk under admission by value.
        WRITING
    }

    /// A field of a number's type.
    static TunableConstant field(String file, String name, Effect effect, String chosen) {
        Pattern place = Pattern.compile("(static final (int|long|double|float) " + name + "\\s*=\\s*)([^;]+)(;)");
        return new TunableConstant(file, name, effect, chosen, place);
    }

    /// One of the numbers that `ImportanceConfig.DEFAULT` is made of.
    ///
    /// @param index from 0
    static TunableConstant rule(int index, String name, String chosen) {
        Pattern place = Pattern.compile(
                "(DEFAULT\\s*=\\s*new (ImportanceConfig)\\((?:[^,;]+, *){" + index + "})([^,;)]+)([,)])");
        return new TunableConstant("policy/ImportanceConfig", name, Effect.ORDER, chosen, place);
    }

    /// The class and the name: `LruFallback.CHANCE`.
    public String label() {
        return file.substring(file.indexOf('/') + 1) + "." + name;
    }

    /// What stands for it in a source.
    ///
    /// @throws IllegalArgumentException when the source has no such constant
    public String valueIn(String source) {
        return found(source).group(3).strip();
    }

    /// A source in which it is so many times what it was.
    ///
    /// @throws IllegalArgumentException when the source has no such constant
    String withFactor(String source, double factor) {
        Matcher found = found(source);
        String type = found.group(2).equals("ImportanceConfig") ? "double" : found.group(2);
        String value = String.format(
                Locale.ROOT, "(%s) ((%s) * %s)", type, found.group(3).strip(), factor);
        return found.replaceFirst(Matcher.quoteReplacement(found.group(1) + value + found.group(4)));
    }

    private Matcher found(String source) {
        Matcher found = place.matcher(source);
        if (!found.find()) {
            throw new IllegalArgumentException("there is no constant " + name + " in " + file + ".java");
        }
        return found;
    }
}
