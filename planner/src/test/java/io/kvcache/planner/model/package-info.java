/// Tests of what planning knows of models and GPUs.
@NullMarked
package io.kvcache.planner.model;

import org.jspecify.annotations.NullMarked;
