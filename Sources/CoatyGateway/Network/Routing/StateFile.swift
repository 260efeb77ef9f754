import Glibc

/// Two files of one state, the current one and the one before it, each with a checksum that tells whether it is whole.
///
/// A text is written to a third file, which then takes the place of the current one, so that at any moment a whole file is
/// there. All calls block.
struct StateFile: Sendable {
    /// A larger text is refused: two of the largest request bodies fit.
    static let maximumSize = 32 << 20

    let path: String

    var previousPath: String { path + ".previous" }
    var temporaryPath: String { path + ".new" }

    /// Why a file can't be used.
    enum Flaw: Error, CustomStringConvertible {
        case missing
        case damaged
        case unreadable(SystemCallError)

        var description: String {
            switch self {
            case .missing: "is missing"
            case .damaged: "is torn or was altered"
            case .unreadable(let error): "cannot be read: \(error)"
            }
        }
    }

    /// The text of one of the two files.
    static func read(_ path: String) throws(Flaw) -> [UInt8] {
        let bytes: [UInt8]
        do throws(SystemCallError) {
            bytes = try contents(path)
        } catch {
            throw error.code == ENOENT ? .missing : .unreadable(error)
        }
        guard let lineEnd = bytes.firstIndex(of: UInt8(ascii: "\n")) else { throw .damaged }
        let text = Array(bytes[(lineEnd + 1)...])
        guard bytes[...lineEnd].elementsEqual(header(text).utf8) else { throw .damaged }
        return text
    }

    /// Makes a text the current one.
    ///
    /// - Parameter keepingCurrent: whether the current file becomes the previous one; false where it is not whole, so that the
    ///   previous one stays.
    func write(_ text: [UInt8], keepingCurrent: Bool) throws(SystemCallError) {
        guard text.count <= Self.maximumSize else { throw SystemCallError(call: "write", code: EFBIG) }
        unlink(temporaryPath)
        let descriptor = open(temporaryPath, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else { throw SystemCallError(call: "open", code: errno) }
        do {
            defer { close(descriptor) }
            var rest = (Array(Self.header(text).utf8) + text)[...]
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

    private static func header(_ text: [UInt8]) -> String { "coaty-gateway state 1 \(Fingerprint.of(text))\n" }

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
