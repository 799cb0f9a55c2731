/// What each constant that importance and admission by value were given does to their results: the
/// core's sources are compiled anew with one of them changed, and a trace is replayed over that.
@NullMarked
package io.kvcache.bench.constant;

import org.jspecify.annotations.NullMarked;
