/// The command line with inference engines: [io.kvcache.engines.cli.Kvcache] adds `chat-server`, `engines demo` and
/// `engines bench` to the commands of bench, and a tokenizer for `trace import`.
///
/// The models have random weights, unless the user names one. Everything that needs an engine is here, so bench and the
/// server run without any.
@NullMarked
package io.kvcache.engines.cli;

import org.jspecify.annotations.NullMarked;
