import Coaty
import CoatyMQTT
import Foundation
import TestSupport
import Testing

@testable import Access
@testable import Base
@testable import CoatyGateway

/// Access if no access is configured.
@Suite(.exclusive) struct AccessModeDecisionTests {
    private func mode(_ flags: [String: String]) throws -> AccessMode {
        try AccessMode(try GatewaySettings(flags: flags, environment: [:], file: nil)) { "generated" }
    }

    @Test(arguments: ["127.0.0.1", "127.1.2.3", "::1", "localhost"], [nil, "mqtt://192.0.2.1"])
    func loopbackIsOpen(_ host: String, _ broker: String?) throws {
        #expect(try mode(["host": host].merging(broker.map { ["broker": $0] } ?? [:]) { $1 }) == .open(warning: nil))
    }

    @Test(arguments: ["0.0.0.0", "::", "192.0.2.1", "gateway", "::ffff:127.0.0.1"])
    func privateEmbeddedBrokerIsOpenElsewhereWithWarning(_ host: String) throws {
        guard case .open(let warning?) = try mode(["host": host]) else {
            Issue.record("\(host)")
            return
        }
        #expect(warning.hasPrefix("open access"))
    }

    @Test(arguments: [
        ["broker": "mqtt://192.0.2.1"], ["broker": "mqtt://127.0.0.1"], ["broker-discovery": "true"],
        ["embedded-broker-listen": "0.0.0.0:1883"],
        ["embedded-broker-listen": "0.0.0.0:1883", "embedded-broker-announcement": "true"],
    ])
    func sharedBrokerRequiresATokenElsewhere(_ flags: [String: String]) throws {
        let flags = flags.merging(["host": "0.0.0.0"]) { $1 }
        #expect(try mode(flags) == .token("generated", isGenerated: true))
        let token = "0123456789abcdef"
        let settings = try GatewaySettings(flags: flags, environment: ["COATY_GATEWAY_TOKEN": token], file: nil)
        #expect(try AccessMode(settings) { "" } == .token(token, isGenerated: false))
        guard case .open(_?) = try mode(flags.merging(["access": "open"]) { $1 }) else {
            Issue.record("expected access without restrictions")
            return
        }
    }

    @Test func aTokenAppliesOnLoopbackToo() throws {
        let token = "0123456789abcdef"
        let settings = try GatewaySettings(flags: [:], environment: ["COATY_GATEWAY_TOKEN": token], file: nil)
        let policy = try AccessMode(settings) { "" }.policy(settings)
        #expect(!policy.isOpen)
        #expect(policy.permissions(of: .anonymous) == nil)
        #expect(policy.token(digest: TokenDigest(of: token))?.name == AccessMode.tokenName)
        #expect(policy.permissions(of: .token(AccessMode.tokenName))?.isUnrestricted == true)
    }

    @Test(arguments: [
        ["COATY_GATEWAY_TOKEN": "short"], ["COATY_GATEWAY_TOKEN": "0123456789abcde f"],
        ["COATY_GATEWAY_ACCESS": "shut"],
    ])
    func invalidValuesAreRejected(_ environment: [String: String]) {
        #expect(error([:], environment) != nil)
    }

    @Test func openAccessRefusesATokenWithoutShowingIt() throws {
        let found = try #require(error(["access": "open"], ["COATY_GATEWAY_TOKEN": "0123456789abcdef"]))
        #expect(!found.description.contains("0123"))
    }

    private func error(_ flags: [String: String], _ environment: [String: String]) -> InvalidConfiguration? {
        do throws(InvalidConfiguration) {
            _ = try GatewaySettings(flags: flags, environment: environment, file: nil)
            return nil
        } catch {
            return error
        }
    }
}
