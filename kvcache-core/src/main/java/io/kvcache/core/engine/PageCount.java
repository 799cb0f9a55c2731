package io.kvcache.core.engine;

/// How engines cut a sequence: full pages only.
final class PageCount {

    private PageCount() {}

    static int fullPages(int tokens, int pageTokens) {
        if (pageTokens < 1) {
            throw new IllegalArgumentException(
                    "tokens of a page = %s is out of range; allowed: 1 and more".formatted(pageTokens));
        }
        return tokens / pageTokens;
    }
}
