import Base
import Glibc

/// The lock of a state directory, so that only one process writes the files. The kernel releases it when the object is
/// released or the process ends in any way.
package final class StateLock: Sendable {
    private let descriptor: Int32

    /// Takes the lock. Creates the directory, accessible only to its owner, if it does not exist.
    ///
    /// - Throws: ``RoutingStoreError`` with the other process's id if it has the lock.
    package init(directory: String) throws(RoutingStoreError) {
        func error(_ reason: String) -> RoutingStoreError { RoutingStoreError(directory: directory, reason: reason) }
        if mkdir(directory, 0o700) != 0, errno != EEXIST { throw error("cannot be made: \(errorText(errno))") }
        // The file is kept: if the holder removed it, two processes could lock two files with this name.
        let descriptor = open(directory + "/.lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else { throw error("cannot be locked: \(errorText(errno))") }
        guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
            let code = errno
            let holder = Self.text(descriptor)
            close(descriptor)
            guard code == EWOULDBLOCK else { throw error("cannot be locked: \(errorText(code))") }
            throw error(
                "is used by process \(holder.isEmpty ? "(unknown)" : holder): stop it first, or set another directory"
            )
        }
        // For the error message of a second process; the lock itself is what prevents access.
        let identifier = Array("\(getpid())\n".utf8)
        _ = ftruncate(descriptor, 0)
        _ = pwrite(descriptor, identifier, identifier.count, 0)
        self.descriptor = descriptor
    }

    /// Checks that the file of the lock, which another user may have created, can be opened.
    ///
    /// - Throws: ``RoutingStoreError`` with the reason. That a process has the lock is no reason.
    static func check(directory: String) throws(RoutingStoreError) {
        let descriptor = open(directory + "/.lock", O_RDWR | O_CLOEXEC | O_NOFOLLOW)
        guard descriptor >= 0 || errno == ENOENT else {
            throw RoutingStoreError(directory: directory, reason: "cannot be locked: \(errorText(errno))")
        }
        close(descriptor)
    }

    deinit { close(descriptor) }

    /// Returns the process id that the holder has written; empty if there is none.
    private static func text(_ descriptor: Int32) -> String {
        var buffer = [UInt8](repeating: 0, count: 20)
        let count = pread(descriptor, &buffer, buffer.count, 0)
        guard count > 0 else { return "" }
        return String(decoding: buffer[..<count].prefix { (0x30...0x39).contains($0) }, as: UTF8.self)
    }
}
