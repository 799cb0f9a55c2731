package io.kvcache.bench.disk;

import java.io.IOException;

/// A program that has to be installed first; the message says how.
public final class MissingToolException extends IOException {

    private static final long serialVersionUID = 1;

    MissingToolException(String advice) {
        super(advice);
    }
}
