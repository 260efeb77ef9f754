import Foundation

/// An authority, a broker's and a client's certificate, made anew for a test by openssl.
struct Certificates {
    let directory: URL

    init() throws {
        directory = FileManager.default.temporaryDirectory.appending(path: "certificates-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        for authority in ["ca", "other-ca"] {
            try openssl(
                "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=\(authority) -keyout \(authority).key"
                    + " -out \(authority).pem"
            )
        }
        for (name, extensions) in [("broker", "subjectAltName=IP:127.0.0.1"), ("client", "subjectAltName=DNS:client")] {
            try openssl("req -newkey rsa:2048 -nodes -subj /CN=\(name) -keyout \(name).key -out \(name).csr")
            try extensions.write(to: directory.appending(path: "\(name).ext"), atomically: true, encoding: .utf8)
            try openssl(
                "x509 -req -days 2 -in \(name).csr -CA ca.pem -CAkey ca.key -CAcreateserial -extfile \(name).ext"
                    + " -out \(name).pem"
            )
        }
    }

    func path(_ file: String) -> String { directory.appending(path: file).path }

    func text(_ file: String) throws -> String {
        try String(contentsOf: directory.appending(path: file), encoding: .utf8)
    }

    func remove() { try? FileManager.default.removeItem(at: directory) }

    private struct Failed: Error { let arguments: String }

    private func openssl(_ arguments: String) throws {
        let process = Process()
        process.executableURL = URL(filePath: "/usr/bin/openssl")
        process.arguments = arguments.split(separator: " ").map(String.init)
        process.currentDirectoryURL = directory
        process.standardError = FileHandle.nullDevice
        process.standardOutput = FileHandle.nullDevice
        try process.run()
        process.waitUntilExit()
        guard process.terminationStatus == 0 else { throw Failed(arguments: arguments) }
    }
}
