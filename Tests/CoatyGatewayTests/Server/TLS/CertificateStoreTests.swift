import Foundation
import Logging
import TestSupport
import Testing

@testable import Edge

/// Certificates that are expired or not yet valid.
@Suite(.exclusive) struct CertificateStoreTests {
    private static let logger = Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() })
    private let certificates: Certificates
    private let store: CertificateStore

    init() throws {
        certificates = try Certificates()
        let files = TLSFiles(certificate: certificates.path("server.pem"), key: certificates.path("server.key"))
        store = try CertificateStore(files, interval: .milliseconds(20), logger: Self.logger)
    }

    private func replacePair(with name: String) throws {
        try certificates.replace("server.key", with: "\(name).key")
        try certificates.replace("server.pem", with: "\(name).pem")
    }

    @Test func anExpiredCertificateDoesNotReplaceAValidOne() throws {
        let valid = store.context
        try certificates.make("expired", until: Date(timeIntervalSinceNow: -60))
        try replacePair(with: "expired")
        let error = #expect(throws: CertificateError.self) { try store.reload() }
        #expect(error?.reason.contains("only valid from 2020-01-01T00:00:00Z to") == true)
        #expect(store.context === valid)
    }

    @Test func aCertificateIsLoadedWhenItBecomesValid() async throws {
        let valid = store.context
        var beginning = Date()
        var error: CertificateError?
        // Repeat, because creating a certificate takes time.
        while error == nil {
            beginning = Date(timeIntervalSinceNow: 3)
            try certificates.make("future", from: beginning, until: Date(timeIntervalSinceNow: 3600))
            try replacePair(with: "future")
            do { _ = try store.prepare() } catch let early { error = early }
        }
        #expect(error?.isEarly == true)
        await store.start()
        try waitUntil("it is loaded", within: 10) { store.context !== valid }
        // The times in a certificate are whole seconds.
        #expect(Date().timeIntervalSince(beginning) > -1)
        await store.stop()
    }

    /// If neither certificate is valid, the newer one is used.
    @Test func aCertificateReplacesAnInvalidOne() throws {
        for name in ["expired", "expired-too"] {
            try certificates.make(name, until: Date(timeIntervalSinceNow: -60))
        }
        let files = TLSFiles(certificate: certificates.path("expired.pem"), key: certificates.path("expired.key"))
        let store = try CertificateStore(files, logger: Self.logger)
        let first = store.context
        try certificates.replace("expired.key", with: "expired-too.key")
        try certificates.replace("expired.pem", with: "expired-too.pem")
        try store.reload()
        #expect(store.context !== first)
    }
}
