import Foundation
import TestSupport
import Testing

/// Reload of certificates without a restart.
@Suite(.exclusive) struct CertificateReloadTests {
    private let certificates: Certificates
    private let gateway: GatewayProcess

    init() throws {
        certificates = try Certificates()
        try certificates.make("next", "subjectAltName=IP:127.0.0.1")
        gateway = try GatewayProcess(["--embedded-broker-listen", "127.0.0.1:0"] + certificates.flags)
    }

    private func digest() throws -> [UInt8] { try TLSClient(port: gateway.port).peerDigest }

    private func replacePair() throws {
        try certificates.replace("server.key", with: "next.key")
        try certificates.replace("server.pem", with: "next.pem")
    }

    @Test func changedPairIsLoadedAndConnectionsStayOpen() throws {
        let running = try TLSClient(port: gateway.port)
        let old = running.peerDigest
        #expect(try running.request("GET /v1/info").contains("200 OK"))
        try replacePair()
        try waitUntil("new clients get the new certificate", within: 15) { try digest() != old }
        #expect(try running.request("GET /v1/info").contains("200 OK"))
        try waitUntil("it is logged") { gateway.log.contains("certificate loaded") }
    }

    @Test func signalReloadsTheCertificateAtOnce() throws {
        let old = try digest()
        try replacePair()
        gateway.signal(SIGHUP)
        // The periodic check of the files runs later.
        try waitUntil("new clients get the new certificate", within: 3) { try digest() != old }
    }

    @Test func incompletePairKeepsOldCertificateAndIsLoggedOnce() throws {
        let old = try digest()
        try certificates.replace("server.pem", with: "next.pem")
        try waitUntil("it is logged", within: 15) { gateway.log.contains("the loaded certificate stays in use") }
        #expect(try digest() == old)
        // Wait for two more checks.
        Thread.sleep(forTimeInterval: 11)
        #expect(gateway.log.components(separatedBy: "the loaded certificate stays in use").count == 2)
        try certificates.replace("server.key", with: "next.key")
        try waitUntil("the pair is complete", within: 15) { try digest() != old }
    }
}
