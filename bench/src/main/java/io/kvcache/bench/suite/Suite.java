package io.kvcache.bench.suite;

import java.util.List;
import java.util.Locale;

/// Questions that belong together.
///
/// @param name as on the command line
public record Suite(String name, String title, List<Question> questions) {

    public Suite {
        questions = List.copyOf(questions);
    }

    /// The questions whose name contains `filter`, in any case.
    public Suite filtered(String filter) {
        String wanted = filter.toLowerCase(Locale.ROOT);
        return new Suite(
                name,
                title,
                questions.stream()
                        .filter(question -> question.name().contains(wanted))
                        .toList());
    }
}
