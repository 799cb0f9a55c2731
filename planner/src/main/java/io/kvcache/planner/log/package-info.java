/// Logs of requests to a model, made into traces: `LogImporter` reads lines as clients of OpenAI's
/// protocol send them, and keeps salted hashes of their tokens alone. Tokenizers come from a `TokenizerLoader`, a
/// service.
@NullMarked
package io.kvcache.planner.log;

import org.jspecify.annotations.NullMarked;
