import Base
import Glibc

/// Two files of one state, the current one and the previous one, each with a header that contains the version of the
/// format and a checksum.
///
/// A text is written to a third file, which then replaces the current one, so that there is a complete file at any
/// moment. All calls block.
///
/// The header is `coaty-gateway state <version> <checksum>`, since version 2 followed by the version of the gateway
/// that wrote it.
struct StateFile: Sendable {
    /// The written version of the format. Older versions are upgraded when they are read.
    static let version = 3
    /// Maximum size of a text, in bytes; a larger one is refused. Two of the largest request bodies fit.
    static let maximumSize = 32 << 20

    let path: String

    var previousPath: String { path + ".previous" }
    var temporaryPath: String { path + ".new" }

    /// The reason why a file can't be used.
    enum Flaw: Error, CustomStringConvertible {
        case missing
        case damaged
        /// It has a version that only a newer gateway can read.
        case newer(version: Int)
        case unreadable(SystemCallError)

        var description: String {
            switch self {
            case .missing: "is missing"
            case .damaged: "is incomplete or was altered"
            case .newer(let version):
                "has version \(version), but this gateway reads versions up to \(StateFile.version): start the gateway that "
                    + "wrote it, or move the file away"
            case .unreadable(let error): "cannot be read: \(error)"
            }
        }
    }

    /// The content of one of the two files.
    struct Content {
        /// The text in the current version.
        let text: [UInt8]
        /// The version of the file.
        let version: Int
    }

    /// Returns the content of one of the two files.
    static func read(_ path: String) throws(Flaw) -> Content {
        let bytes: [UInt8]
        do throws(SystemCallError) {
            bytes = try contents(path)
        } catch {
            throw error.code == ENOENT ? .missing : .unreadable(error)
        }
        guard let lineEnd = bytes.firstIndex(of: UInt8(ascii: "\n")) else { throw .damaged }
        let text = Array(bytes[(lineEnd + 1)...])
        let header = String(decoding: bytes[..<lineEnd], as: UTF8.self)
        guard header.hasPrefix(prefix) else { throw .damaged }
        let fields = header.dropFirst(prefix.count).split(separator: " ", omittingEmptySubsequences: false)
        guard let field = fields.first, let version = Int(field), version >= 1, field == "\(version)" else {
            throw .damaged
        }
        // The format of the rest is unknown, so even the checksum can't be checked.
        guard version <= Self.version else { throw .newer(version: version) }
        let writer = version == 1 ? nil : fields.last.map(String.init)
        guard header == Self.header(text, version: version, writer: writer) else { throw .damaged }
        return Content(text: upgraded(text, from: version), version: version)
    }

    /// Converts a text of an older version to the current version.
    private static func upgraded(_ text: [UInt8], from version: Int) -> [UInt8] {
        // Version 1 differs only in its header, which has no writer. Version 2 has no version of the state in a cluster.
        text
    }

    /// Makes a text the current one.
    ///
    /// - Parameters:
    ///   - writer: the version of the gateway.
    ///   - keepingCurrent: whether the current file becomes the previous one; false if it is damaged, so that the
    ///     previous one is kept.
    func write(_ text: [UInt8], writer: String, keepingCurrent: Bool) throws(SystemCallError) {
        guard text.count <= Self.maximumSize else { throw SystemCallError(call: "write", code: EFBIG) }
        unlink(temporaryPath)
        let descriptor = open(temporaryPath, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else { throw SystemCallError(call: "open", code: errno) }
        do {
            defer { close(descriptor) }
            let header = Self.header(text, version: Self.version, writer: writer)
            var rest = (Array((header + "\n").utf8) + text)[...]
            while !rest.isEmpty {
                let count = rest.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
                if count < 0, errno == EINTR { continue }
                guard count > 0 else { throw SystemCallError(call: "write", code: errno) }
                rest = rest.dropFirst(count)
            }
            guard fsync(descriptor) == 0 else { throw SystemCallError(call: "fsync", code: errno) }
        }
        if keepingCurrent, rename(path, previousPath) != 0, errno != ENOENT {
            throw SystemCallError(call: "rename", code: errno)
        }
        guard rename(temporaryPath, path) == 0 else { throw SystemCallError(call: "rename", code: errno) }
        try Self.syncFolder(of: path)
    }

    private static let prefix = "coaty-gateway state "

    /// - Parameter writer: the version of the gateway that writes; nil in version 1.
    static func header(_ text: [UInt8], version: Int, writer: String?) -> String {
        guard let writer else { return "\(prefix)\(version) \(Fingerprint.of(text))" }
        return "\(prefix)\(version) \(Fingerprint.of(Array(writer.utf8) + [UInt8(ascii: "\n")] + text)) \(writer)"
    }

    private static func syncFolder(of path: String) throws(SystemCallError) {
        let folder = path.lastIndex(of: "/").map { String(path[...$0]) } ?? "."
        let descriptor = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { throw SystemCallError(call: "open", code: errno) }
        defer { close(descriptor) }
        guard fsync(descriptor) == 0 else { throw SystemCallError(call: "fsync", code: errno) }
    }

    private static func contents(_ path: String) throws(SystemCallError) -> [UInt8] {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
        guard descriptor >= 0 else { throw SystemCallError(call: "open", code: errno) }
        defer { close(descriptor) }
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 64 << 10)
        while true {
            let count = Glibc.read(descriptor, &buffer, buffer.count)
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { throw SystemCallError(call: "read", code: errno) }
            if count == 0 { return bytes }
            bytes += buffer[..<count]
            guard bytes.count <= maximumSize + buffer.count else { throw SystemCallError(call: "read", code: EFBIG) }
        }
    }
}
