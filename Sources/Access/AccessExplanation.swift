import Base
import Coaty

/// The reason why permissions allow or deny a request.
package struct AccessExplanation: Sendable, Equatable {
    package enum Decision: String, Sendable {
        case allowed
        /// The names are allowed. Whether the `where` of a grant is true depends on the payload, which the request does
        /// not have.
        case conditional
        case denied
    }

    let decision: Decision
    /// The grants that decide, such as `viewer#1`: the one that allows the request, or those whose `where` is not true.
    /// Empty if no grant covers the names, or if the permissions are unrestricted.
    let grants: [String]
    /// YAML of a role's grant that would allow the request; nil if it is not denied.
    let missing: String?

    package init(_ permissions: Permissions, _ request: AccessRequest) {
        switch permissions.decide(request) {
        case .allowed(let index):
            decision = .allowed
            grants = index.map { [permissions.grants[$0].name] } ?? []
            missing = nil
        case .denied(let denial):
            let isConditional = request.object == nil && request.request == nil && !denial.failed.isEmpty
            decision = isConditional ? .conditional : .denied
            grants = denial.failed
            missing = isConditional ? nil : denial.missing
        }
    }

    /// The explanation as lines for a terminal.
    package var text: String {
        let names = grants.joined(separator: ", ")
        switch decision {
        case .allowed: return grants.isEmpty ? "allowed: access is not restricted\n" : "allowed by \(names)\n"
        case .conditional: return "allowed where the condition is true: \(names)\n"
        case .denied:
            let failed = grants.isEmpty ? "denied: no grant\n" : "denied: the condition is not true: \(names)\n"
            return failed + "This grant would allow it:\n\(missing ?? "")"
        }
    }

    /// The JSON of `POST /v1/access/check`: `{"decision", "grants", "missing"?}`.
    package var json: [UInt8] {
        var bytes = Array("{\"decision\":\"\(decision.rawValue)\",\"grants\":".utf8)
        JSONText.appendArray(grants, to: &bytes) { JSONText.append($0, to: &$1) }
        if let missing {
            bytes += ",\"missing\":".utf8
            JSONText.append(missing, to: &bytes)
        }
        return bytes + "}".utf8
    }
}

extension Permissions {
    /// Returns the JSON of `GET /v1/access`: `{"name", "credentials"?, "expires"?, "roles", "attributes",
    /// "unrestricted", "grants"}`, each grant as configured and with its role.
    ///
    /// - Parameter principal: the principal with these permissions.
    package func json(of principal: Principal) -> [UInt8] {
        var bytes = Array("{\"name\":".utf8)
        if let name = principal.name { JSONText.append(name, to: &bytes) } else { bytes += "null".utf8 }
        if let credentials = principal.credentials { bytes += ",\"credentials\":\"\(credentials)\"".utf8 }
        if let expires = principal.validity?.expires { bytes += ",\"expires\":\(expires)".utf8 }
        bytes += ",\"roles\":".utf8
        JSONText.appendArray(roles, to: &bytes) { JSONText.append($0, to: &$1) }
        bytes += ",\"attributes\":".utf8 + attributes + ",\"unrestricted\":\(isUnrestricted),\"grants\":".utf8
        JSONText.appendArray(grants, to: &bytes) { grant, bytes in
            bytes += "{\"role\":".utf8
            JSONText.append(grant.role, to: &bytes)
            // A grant is an object with at least one member.
            bytes += ",".utf8 + grant.source.dropFirst()
        }
        return bytes + "}".utf8
    }
}
