import Coaty
import Foundation

extension MQTTClientOptions {
    /// Maximum size of a password, in bytes (MQTT 3.1.1, section 3.1.3.5).
    private static let maximumPasswordSize = 65_535

    /// Reads the password.
    ///
    /// - Returns: the first line of the file; nil if there is no file.
    func readPassword() throws(ConnectionError) -> String? {
        guard let passwordFile else { return nil }
        guard let file = FileHandle(forReadingAtPath: passwordFile),
            let data = try? file.read(upToCount: Self.maximumPasswordSize + 2)
        else {
            throw ConnectionError(
                .passwordFile,
                "the file \(passwordFile) with the password can't be read, or is empty"
            )
        }
        let line = data.prefix { $0 != UInt8(ascii: "\n") && $0 != UInt8(ascii: "\r") }
        // libmosquitto uses the text up to a NUL byte.
        guard (1...Self.maximumPasswordSize).contains(line.count), !line.contains(0),
            let password = String(validating: line, as: UTF8.self)
        else {
            let rule = "its first line must be UTF-8 of 1 to \(Self.maximumPasswordSize) bytes"
            throw ConnectionError(.passwordFile, "the file \(passwordFile) has no password: \(rule)")
        }
        return password
    }
}
