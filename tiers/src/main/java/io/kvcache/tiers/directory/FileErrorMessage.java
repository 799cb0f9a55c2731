package io.kvcache.tiers.directory;

import java.io.EOFException;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.CharacterCodingException;
import java.nio.file.AccessDeniedException;
import java.nio.file.DirectoryNotEmptyException;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.FileSystemException;
import java.nio.file.NoSuchFileException;
import java.nio.file.NotDirectoryException;

/// Reason why a file or folder cannot be used, for operators: without the names of Java's classes.
public final class FileErrorMessage {

    private FileErrorMessage() {}

    /// Returns the reason, with the name of the file unless it is the one that was asked for.
    ///
    /// @param asked the file that the rest of the message names; empty when it names none
    public static String of(Throwable failure, String asked) {
        if (failure instanceof UncheckedIOException && failure.getCause() instanceof IOException cause) {
            return of(cause, asked);
        }
        if (failure instanceof CharacterCodingException) {
            return "it is not UTF-8 text";
        }
        if (failure instanceof EOFException) {
            return "it is truncated";
        }
        if (!(failure instanceof FileSystemException of)) {
            String message = failure.getMessage();
            return failure instanceof IOException && message != null ? message : failure.toString();
        }
        String file = of.getFile();
        return (file == null || file.equals(asked) ? "it" : file) + " " + describe(of);
    }

    private static String describe(FileSystemException failure) {
        return switch (failure) {
            case NoSuchFileException _ -> "does not exist";
            case AccessDeniedException _ -> "cannot be accessed by this user: permission denied";
            case FileAlreadyExistsException _ -> "already exists and is not a directory";
            case NotDirectoryException _ -> "is not a directory";
            case DirectoryNotEmptyException _ -> "is not empty";
            default ->
                "cannot be used: " + (failure.getReason() == null ? "the system gave no reason" : failure.getReason());
        };
    }
}
