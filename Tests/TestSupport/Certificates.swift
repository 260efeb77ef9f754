public import Foundation

/// Two authorities, `ca` and `other-ca`, and certificates that they sign, made by openssl for one test. Each has the
/// files `NAME.pem` and `NAME.key`, which are deleted with the object.
public final class Certificates: Sendable {
    /// The folder that contains the files.
    public let directory: URL

    /// Makes the authorities, a certificate `server` for 127.0.0.1 and localhost, and a certificate `client`.
    public init() throws {
        directory = FileManager.default.temporaryDirectory.appending(path: "certificates-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        for authority in ["ca", "other-ca"] {
            try openssl(
                "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=\(authority)"
                    + " -keyout \(authority).key -out \(authority).pem"
            )
        }
        try make("server", "subjectAltName=IP:127.0.0.1,DNS:localhost")
        try make("client", "subjectAltName=DNS:client.example,URI:urn:client:1,email:client@example.com")
    }

    deinit { try? FileManager.default.removeItem(at: directory) }

    /// Returns the path of a file.
    public func path(_ file: String) -> String { directory.appending(path: file).path }

    private func makeRequest(_ name: String) throws {
        try openssl(
            "req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=\(name) -keyout \(name).key -out \(name).csr"
        )
    }

    /// Makes a certificate and its key.
    ///
    /// - Parameters:
    ///   - name: the common name, and the name of the files.
    ///   - extensions: a line of openssl's configuration, such as `subjectAltName=DNS:localhost`.
    public func make(_ name: String, _ extensions: String, authority: String = "ca") throws {
        try makeRequest(name)
        try extensions.write(to: directory.appending(path: "\(name).ext"), atomically: true, encoding: .utf8)
        try openssl(
            "x509 -req -days 2 -in \(name).csr -CA \(authority).pem -CAkey \(authority).key -CAcreateserial"
                + " -extfile \(name).ext -out \(name).pem"
        )
    }

    /// Makes a certificate that is valid between two times, and its key.
    ///
    /// - Parameter beginning: the start of the validity; nil for the year 2020.
    public func make(_ name: String, from beginning: Date? = nil, until end: Date) throws {
        let format = DateFormatter()
        format.locale = Locale(identifier: "en_US_POSIX")
        format.timeZone = TimeZone(identifier: "UTC")
        format.dateFormat = "yyyyMMddHHmmss'Z'"
        let configuration = """
            [ca]
            default_ca = own
            [own]
            new_certs_dir = .
            database = \(name).database
            rand_serial = yes
            default_md = sha256
            policy = names
            [names]
            commonName = supplied

            """
        for (file, text) in [("ca", configuration), ("database", "")] {
            try text.write(to: directory.appending(path: "\(name).\(file)"), atomically: true, encoding: .utf8)
        }
        try makeRequest(name)
        try openssl(
            "ca -batch -config \(name).ca -cert ca.pem -keyfile ca.key -startdate "
                + (beginning.map(format.string) ?? "20200101000000Z")
                + " -enddate \(format.string(from: end)) -in \(name).csr -out \(name).pem"
        )
    }

    /// Replaces a file atomically.
    public func replace(_ file: String, with other: String) throws {
        try Data(contentsOf: directory.appending(path: other)).write(
            to: directory.appending(path: file),
            options: .atomic
        )
    }

    private struct Failed: Error { let arguments: String }

    private func openssl(_ arguments: String) throws {
        let process = Process()
        process.executableURL = try URL(filePath: TestProgram.openssl.path())
        process.arguments = arguments.split(separator: " ").map(String.init)
        process.currentDirectoryURL = directory
        process.standardError = FileHandle.nullDevice
        process.standardOutput = FileHandle.nullDevice
        try process.run()
        process.waitUntilExit()
        guard process.terminationStatus == 0 else { throw Failed(arguments: arguments) }
    }
}
