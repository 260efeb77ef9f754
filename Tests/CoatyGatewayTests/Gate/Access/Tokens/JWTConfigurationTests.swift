import Coaty
import Foundation
import TestSupport
import Testing

@testable import Access
@testable import Base
@testable import CoatyGateway

@Suite(.exclusive) struct JWTConfigurationTests {
    private static let good = #""issuer":"https://idp.example","audience":"gateway","keys":"keys.pem""#

    private static func configuration(_ members: String) throws -> JWTConfiguration {
        try JWTConfiguration(JSONView(text: "{\(members)}"))
    }

    @Test func defaultsAreStrict() throws {
        let configuration = try Self.configuration(Self.good)
        #expect(configuration.issuer == "https://idp.example" && configuration.audiences == ["gateway"])
        #expect(configuration.keys == .file("keys.pem"))
        #expect(configuration.algorithms == [.rs256, .es256, .edDSA])
        #expect(configuration.roles == nil && configuration.attributes == nil && configuration.admin == nil)
    }

    @Test(
        arguments: [
            (#""https://idp.example/jwks""#, true), (#""HTTPS://idp.example:8443/a?b=c""#, true),
            (#""http://127.0.0.1:8080/jwks""#, true), (#""http://localhost/jwks""#, true),
            (#""http://[::1]/jwks""#, true),
            (#""http://idp.example/jwks""#, false), (#""http://localhost.evil.example/""#, false),
            (#""http://127.0.0.1@evil.example/""#, false), (#""https://user:secret@idp.example/""#, false),
            (#""ftp://127.0.0.1/keys""#, false), (#""file:///etc/keys""#, false), (#""https:///keys""#, false),
            (#""https://a b/""#, false), (#""http://127.0.0.1\\@evil.example/""#, false), (#""""#, false), ("7", false),
        ]
    )
    func keysAreAFileOrASafeURL(keys: String, isGood: Bool) throws {
        let members = #""issuer":"i","audience":"a","keys":\#(keys)"#
        if isGood {
            guard case .url = try Self.configuration(members).keys else {
                Issue.record("\(keys)")
                return
            }
        } else {
            #expect(throws: PayloadError.self, "\(keys)") { try Self.configuration(members) }
        }
    }

    @Test(
        arguments: [
            ("", "issuer"), (#""issuer":"i","keys":"k""#, "audience"), (#""issuer":"i","audience":"a""#, "keys"),
            (#""issuer":"i","audience":[],"keys":"k""#, "audience"),
            (good + #","algorithms":["none"]"#, "algorithms/0"),
            (good + #","algorithms":[]"#, "algorithms"), (good + #","algorithms":["RS256","rs256"]"#, "algorithms/1"),
            (good + #","roles":"realm_access.roles""#, "roles"), (good + #","roles":"claims""#, "roles"),
            (good + #","roles":"claims..a""#, "roles"), (good + #","roles":[]"#, "roles"),
            (good + #","admin":"a""#, "admin"), (good + #","attributes":[""]"#, "attributes/0"),
            (good + #","key":"k""#, "key"), (good + #","keys-ca-file":"ca.pem""#, "keys-ca-file"),
            (#""issuer":"i","audience":"a","keys":"https://i/k","algorithms":["HS256"]"#, "algorithms"),
            (#""issuer":"i","issuer":"j","audience":"a","keys":"k""#, "issuer"),
        ]
    )
    func mistakesAreNamed(members: String, pointer: String) throws {
        let error = #expect(throws: PayloadError.self, "\(members)") { try Self.configuration(members) }
        guard case .invalid(let found, _) = error else {
            Issue.record("\(members): \(String(describing: error))")
            return
        }
        #expect(found == "/" + pointer)
    }

    /// Errors have the line number in the file, as in the rest of `access`.
    @Test func theFileNamesTheLine() throws {
        let path = FileManager.default.temporaryDirectory.appending(path: "jwt-\(UUID()).yaml").path
        defer { try? FileManager.default.removeItem(atPath: path) }
        let yaml = """
            access:
              jwt:
                issuer: https://idp.example
                audience: gateway
                keys: http://idp.example/jwks
            """
        try yaml.write(toFile: path, atomically: false, encoding: .utf8)
        let error = #expect(throws: InvalidConfiguration.self) {
            try GatewaySettings(flags: [:], environment: [:], file: path)
        }
        #expect(
            error?.description.contains("\(path):5: access/jwt/keys: must be a file, an https URL") == true,
            "\(String(describing: error))"
        )
        try yaml.replacing("http:", with: "https:").write(toFile: path, atomically: false, encoding: .utf8)
        let settings = try GatewaySettings(flags: [:], environment: [:], file: path)
        #expect(settings.accessConfiguration?.jwt?.keys == .url("https://idp.example/jwks", authorities: nil))
    }
}
