/// Examples of applications: langchain4j over the starter's cache, and Spring AI against the chat server.
@NullMarked
package io.kvcache.spring.example;

import org.jspecify.annotations.NullMarked;
