/// Tests of the chat model.
@NullMarked
package io.kvcache.engines.langchain4j;

import org.jspecify.annotations.NullMarked;
