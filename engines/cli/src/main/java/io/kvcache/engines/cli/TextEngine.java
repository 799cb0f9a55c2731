package io.kvcache.engines.cli;

import io.kvcache.engines.generator.EngineModel;
import java.io.IOException;

/// An engine with a loaded model that takes text, for the demo and for measurements.
///
/// **Ownership.** Closing it closes the model and removes what was made for it.
interface TextEngine extends AutoCloseable {

    /// The model.
    EngineModel model();

    /// The tokens of a text.
    int[] encode(String text);

    /// The tokens of a text that goes on from another one.
    int[] encodeContinuation(String text);

    /// The model's name, and what computes it.
    String describe();

    @Override
    void close() throws IOException;
}
