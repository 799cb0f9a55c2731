/// Measures a server of OpenAI's protocol, so that predictions can be made with its own times, and compares
/// these predictions with what it then does.
@NullMarked
package io.kvcache.planner.serving;

import org.jspecify.annotations.NullMarked;
