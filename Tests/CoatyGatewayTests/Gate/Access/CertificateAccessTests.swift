import Coaty
import TestSupport
import Testing

@testable import Access
@testable import Base
@testable import CoatyGateway
@testable import Edge

/// Roles of client certificates, by the certificates' names.
@Suite(.exclusive) struct CertificateAccessTests {
    private static let roles = """
        "roles":{"a":[{"read":["info"]}],"b":[{"read":["status"]}],"named":[{"read":["objects"],"types":["*"],\
        "where":["principal.name",["Equals","x"]]}]}
        """

    private static func configuration(_ certificates: String) throws -> AccessConfiguration {
        try AccessConfiguration(JSONView(text: #"{"certificates":\#(certificates),\#(roles)}"#))
    }

    private static func policy(_ certificates: String) throws -> Policy {
        Policy(try configuration(certificates), dialect: .plain)
    }

    private static func permissions(_ name: String, _ policy: Policy) -> Permissions? {
        policy.permissions(of: Principal.Authenticated(subject: .certificate(name)))
    }

    @Test func longestMatchingNameApplies() throws {
        let entries = [
            #"{"name":"*","roles":["a"]}"#, #"{"name":"device-*","roles":["b"]}"#,
            #"{"name":"device-1","roles":["named"],"attributes":{"site":"hall-1"}}"#,
            #"{"name":"device-1*","roles":["admin"]}"#, #"{"name":"star\\*","roles":["b","a"]}"#,
        ]
        let expected = [
            "other": ["a"], "device-2": ["b"], "device-1": ["named"], "device-12": ["admin"], "star*": ["b", "a"],
            "star": ["a"], "Device-1": ["a"],
        ]
        for order in [entries, entries.reversed()] {
            let policy = try Self.policy("[\(order.joined(separator: ","))]")
            for (name, roles) in expected { #expect(Self.permissions(name, policy)?.roles == roles, "\(name)") }
        }
    }

    @Test func aNameWithoutAnEntryHasNoAccess() throws {
        let policy = try Self.policy(#"[{"name":"device-*","roles":["a"]}]"#)
        #expect(Self.permissions("other", policy) == nil)
        // A token or user with the same name is another principal.
        #expect(policy.permissions(of: .token("device-1")) == nil)
        #expect(Self.permissions("device-1", .open)?.isUnrestricted == true)
    }

    @Test func equalPermissionsAreTheSameObject() throws {
        let policy = try Self.policy(#"[{"name":"device-*","roles":["a"]},{"name":"x*","roles":["named"]}]"#)
        let one = try #require(Self.permissions("device-1", policy))
        #expect(Self.permissions("device-2", policy) === one)
        // A condition tests the name, so permissions are not shared.
        let x = try #require(Self.permissions("x", policy))
        #expect(Self.permissions("xx", policy) !== x)
    }

    @Test(arguments: [
        (#"[]"#, "/certificates", "must not be empty"),
        (#"[{"name":"a*b","roles":["a"]}]"#, "/certificates/0/name", "may have * as the last character only"),
        (#"[{"name":"","roles":["a"]}]"#, "/certificates/0/name", "must have a name of 1 to 256 bytes"),
        (#"[{"name":"a\u0000","roles":["a"]}]"#, "/certificates/0/name", "must have a name of 1 to 256 bytes"),
        (#"[{"name":1,"roles":["a"]}]"#, "/certificates/0/name", "must be a string"),
        (#"[{"name":"a","roles":["c"]}]"#, "/certificates/0/roles/0", "is not a role"),
        (
            #"[{"name":"a","roles":["a"]},{"name":"a","roles":["b"]}]"#, "/certificates/1/name",
            "is the name of another entry"
        ),
        (#"[{"name":"a","roles":["a"],"sha256":"00"}]"#, "/certificates/0/sha256", "is unknown"),
        (#"[{"name":"a","roles":["a"],"attributes":[]}]"#, "/certificates/0/attributes", "must be an object"),
    ]) func flawsAreNamed(certificates: String, place: String, reason: String) throws {
        let error = try #require(throws: PayloadError.self) { try Self.configuration(certificates) }
        #expect("\(error)".contains(reason) && "\(error)".hasSuffix(#" at "\#(place)""#), "\(error)")
    }

    @Test func entriesRequireAClientAuthoritiesFile() throws {
        var settings = try GatewaySettings(flags: [:], environment: [:], file: nil)
        settings.accessConfiguration = try Self.configuration(#"[{"name":"*","roles":["a"]}]"#)
        do {
            _ = try AccessMode(settings) { "" }
            Issue.record("the gateway asks for no certificates")
        } catch {
            #expect(error.description == "access.certificates: only with tls-client-ca-file")
        }
        settings.transport.clientAuthoritiesFile = "ca.pem"
        _ = try AccessMode(settings) { "" }
    }
}
