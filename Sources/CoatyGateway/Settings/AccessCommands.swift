import Access
import Base
import Coaty
import CoatyMQTT
import Foundation

/// A new token, for `coaty-gateway token create`.
public struct NewToken: Sendable {
    /// The token, which is not stored anywhere.
    public let token: String
    /// The YAML of its element of `access.tokens`.
    public let line: String

    /// Creates a token.
    ///
    /// - Parameters:
    ///   - name: the token's name in the audit log.
    ///   - roles: the names of the token's roles.
    public init(name: String, roles: [String]) {
        token = RandomSecret.token()
        func quoted(_ text: String) -> String {
            var json: [UInt8] = []
            JSONText.append(text, to: &json)
            return String(decoding: json, as: UTF8.self)
        }
        let roles = roles.map(quoted).joined(separator: ", ")
        line = "- { name: \(quoted(name)), sha256: \"\(TokenDigest(of: token).hex)\", roles: [\(roles)] }"
    }
}

/// Explains decisions without a server, for `coaty-gateway access explain`.
public enum AccessExplainer {
    /// Returns the grant that allows an operation, or the one that is missing.
    ///
    /// - Parameters:
    ///   - file: the path of the configuration file.
    ///   - subject: names of roles separated by commas, `token:NAME`, `certificate:NAME` or `anonymous`.
    ///   - operation: the operation as JSON, as in `POST /v1/access/check`.
    /// - Throws: ``InvalidConfiguration``, or an error that describes what is wrong with the operation.
    public static func explanation(file: String, subject: String, operation: String) throws -> String {
        let settings = try GatewaySettings(flags: [:], environment: [:], file: file)
        let question = try AccessQuestion(Payload(Array(operation.utf8)).json)
        guard let configuration = settings.accessConfiguration else {
            throw InvalidConfiguration(description: "\(file): has no access mapping")
        }
        let asked: Principal.Subject
        var roles: [String] = []
        if subject == "anonymous" {
            asked = .anonymous
        } else if subject.hasPrefix("token:") {
            asked = .token(String(subject.dropFirst("token:".count)))
        } else if subject.hasPrefix("certificate:") {
            asked = .certificate(String(subject.dropFirst("certificate:".count)))
        } else {
            // A subject that no token can have: token names are not empty.
            asked = .token("")
            roles = subject.split(separator: ",").map(String.init)
            if let unknown = roles.first(where: { !configuration.hasRole($0) }) {
                throw InvalidConfiguration(description: "\(file): there is no role \(unknown)")
            }
        }
        let policy = Policy(
            configuration.adding(roles: roles),
            dialect: settings.topicDialect,
            maximumSteps: settings.limits.filterSteps
        )
        guard let permissions = policy.permissions(of: Principal.Authenticated(subject: asked)) else {
            throw InvalidConfiguration(description: "\(file): no client has the subject \(subject)")
        }
        return AccessExplanation(permissions, question.request).text
    }
}

extension AccessConfiguration {
    fileprivate func hasRole(_ name: String) -> Bool { name == Self.admin || roles[name] != nil }
}
