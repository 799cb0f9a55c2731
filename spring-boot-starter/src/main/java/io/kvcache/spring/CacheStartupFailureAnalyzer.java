package io.kvcache.spring;

import org.springframework.boot.diagnostics.AbstractFailureAnalyzer;
import org.springframework.boot.diagnostics.FailureAnalysis;

/// Shows a [CacheStartupException] as a description and an action, in place of a stack trace.
final class CacheStartupFailureAnalyzer extends AbstractFailureAnalyzer<CacheStartupException> {

    @Override
    protected FailureAnalysis analyze(Throwable rootFailure, CacheStartupException cause) {
        return new FailureAnalysis(cause.getMessage(), cause.action(), cause);
    }
}
