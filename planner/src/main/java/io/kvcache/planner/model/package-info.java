/// What planning knows of models and GPUs: presets, and models by their `config.json`. Knows nothing of traces
/// and of the laboratory.
@NullMarked
package io.kvcache.planner.model;

import org.jspecify.annotations.NullMarked;
