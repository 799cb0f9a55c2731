/// Tests of the extension for JUnit.
@NullMarked
package io.kvcache.junit;

import org.jspecify.annotations.NullMarked;
