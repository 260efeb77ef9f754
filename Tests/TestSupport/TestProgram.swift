import Foundation
public import Testing

/// A program that tests start, possibly with Python modules. `make deps-test` installs all of them.
///
/// A test is skipped if it starts a program that is missing. In `make test`, which sets `COATY_REQUIRE_PROGRAMS`, it
/// fails instead.
public enum TestProgram: Sendable, CaseIterable {
    case curl, ip, mosquitto, mosquittoClients, openssl, setpriv
    case pythonWithHTTPClients, pythonWithJSONSchema, pythonWithJWT, pythonWithZeroconf

    /// Determined once, because starting Python takes time.
    private static let missing = Set(allCases.filter { !$0.isInstalled })
    private static let areRequired = ProcessInfo.processInfo.environment["COATY_REQUIRE_PROGRAMS"] != nil

    private var file: String {
        switch self {
        case .curl: "/usr/bin/curl"
        case .ip: "/usr/sbin/ip"
        case .mosquitto: "/usr/sbin/mosquitto"
        case .mosquittoClients: "/usr/bin/mosquitto_pub"
        case .openssl: "/usr/bin/openssl"
        case .setpriv: "/usr/bin/setpriv"
        case .pythonWithHTTPClients, .pythonWithJSONSchema, .pythonWithJWT, .pythonWithZeroconf: "/usr/bin/python3"
        }
    }

    private var modules: String? {
        switch self {
        case .pythonWithHTTPClients: "httpx, requests"
        case .pythonWithJSONSchema: "jsonschema"
        case .pythonWithJWT: "jwt, cryptography"
        case .pythonWithZeroconf: "zeroconf"
        default: nil
        }
    }

    private var isInstalled: Bool {
        guard FileManager.default.isExecutableFile(atPath: file) else { return false }
        guard let modules else { return true }
        let process = Process()
        process.executableURL = URL(filePath: file)
        process.arguments = ["-c", "import \(modules)"]
        process.standardError = FileHandle.nullDevice
        guard (try? process.run()) != nil else { return false }
        process.waitUntilExit()
        return process.terminationStatus == 0
    }

    fileprivate var comment: Comment { "needs \(file)\(modules.map { " with \($0)" } ?? ""): run make deps-test" }

    /// Whether tests that need the program are skipped.
    fileprivate var isSkipped: Bool { Self.missing.contains(self) && !Self.areRequired }

    /// Returns the path of the program. If it is missing, the current test is skipped, or fails if it is required.
    ///
    /// - Throws: the error that ends the test.
    public func path() throws -> String {
        guard Self.missing.contains(self) else { return file }
        #if compiler(>=6.3)
            if isSkipped { try Test.cancel(comment) }
        #endif
        throw TestSupportError("\(comment)")
    }
}

extension Trait where Self == ConditionTrait {
    /// Skips tests that need a program without getting its ``TestProgram/path()``.
    public static func needs(_ program: TestProgram) -> Self { .enabled(if: !program.isSkipped, program.comment) }
}
