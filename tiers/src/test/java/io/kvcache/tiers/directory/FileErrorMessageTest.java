package io.kvcache.tiers.directory;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.charset.MalformedInputException;
import java.nio.file.AccessDeniedException;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.FileSystemException;
import java.nio.file.NoSuchFileException;
import org.junit.jupiter.api.Test;

/// Messages on files that cannot be used.
final class FileErrorMessageTest {

    @Test
    void givenWhatJavaThrows_whenSaid_thenNoClassIsNamed() {
        assertThat(FileErrorMessage.of(new NoSuchFileException("/a"), "/a")).isEqualTo("it does not exist");
        assertThat(FileErrorMessage.of(new NoSuchFileException("/a"), "/a/b")).isEqualTo("/a does not exist");
        assertThat(FileErrorMessage.of(new AccessDeniedException("/a"), "/a")).endsWith("permission denied");
        assertThat(FileErrorMessage.of(new FileAlreadyExistsException("/a"), "/a/b"))
                .startsWith("/a already exists");
        assertThat(FileErrorMessage.of(new FileSystemException("/a", null, "Read-only file system"), "/a"))
                .isEqualTo("it cannot be used: Read-only file system");
        assertThat(FileErrorMessage.of(new MalformedInputException(1), "/a")).isEqualTo("it is not UTF-8 text");
        assertThat(FileErrorMessage.of(new IOException("Is a directory"), "/a")).isEqualTo("Is a directory");
    }
}
