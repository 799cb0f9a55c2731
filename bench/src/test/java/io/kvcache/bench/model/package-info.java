/// Tests of what planning knows of models and GPUs.
@NullMarked
package io.kvcache.bench.model;

import org.jspecify.annotations.NullMarked;
