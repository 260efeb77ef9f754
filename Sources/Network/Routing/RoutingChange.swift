import Base
import Coaty
import ProblemDetails

/// A change of a hosted context by a client of any gateway of a cluster.
struct RoutingChange: Sendable {
    enum Content: Sendable {
        case context(RoutingAdmin.ContextChange)
        case rules([IoAssociationRule])
    }

    /// The outcome: the JSON text of the context or the rules, and the changes of associations.
    struct Outcome: Sendable {
        /// Maximum number of changes that are sent to another gateway. If there are more, it reports its own, which
        /// are the same unless it knows other nodes.
        static let maximumSentChanges = 2_000

        let text: [UInt8]
        /// Nil if there are too many to send.
        let changes: IoAssociationChanges?
        let version: RoutingVersion
    }

    let id: CoatyUUID
    let content: Content
    let ifMatch: IfMatch?
    /// How long to look for a gateway that speaks for the context, and to wait for it, in milliseconds.
    let timeout: Int
}

// MARK: - Between gateways

extension RoutingChange {
    /// The question that asks the gateway that speaks to make the change.
    var json: [UInt8] {
        get throws {
            let (kind, body): (String, [UInt8])
            switch content {
            case .context(.put(let view)): (kind, body) = ("put", Array(view.bytes))
            case .context(.patch(let view)): (kind, body) = ("patch", Array(view.bytes))
            case .rules(let rules): (kind, body) = ("rules", try RoutingAdmin.json(rules))
            }
            let tags: [String]?
            switch ifMatch {
            case nil: tags = nil
            case .any: tags = ["*"]
            case .oneOf(let list): tags = list
            }
            let ifMatch = try tags.map { #","ifMatch":\#(try PayloadCoder.encode($0))"# } ?? ""
            let head = #"{"change":{"id":"\#(id)","kind":"\#(kind)","timeout":\#(timeout)\#(ifMatch),"body":"#
            return Array(head.utf8) + body + Array("}}".utf8)
        }
    }

    /// Reads a question.
    package init?(_ view: JSONView) {
        guard let id = view["id"]?.string, let body = view["body"], let timeout = view["timeout"]?.number else {
            return nil
        }
        switch view["kind"]?.string {
        case "put": content = .context(.put(body))
        case "patch": content = .context(.patch(body))
        case "rules":
            guard let rules = try? IoAssociationRule.rules(body) else { return nil }
            content = .rules(rules)
        default: return nil
        }
        self.id = CoatyUUID(wire: id)
        self.timeout = Int(timeout)
        let tags = view["ifMatch"].map { $0.elements.compactMap(\.string) }
        ifMatch = tags.map { $0 == ["*"] ? .any : .oneOf($0) }
    }
}

extension RoutingChange.Outcome {
    var json: [UInt8] {
        get throws {
            var json = Array(#"{"version":\#(try PayloadCoder.encode(version)),"result":"#.utf8) + text
            if let changes, changes.count <= Self.maximumSentChanges {
                json += #","changes":\#(try PayloadCoder.encode(changes))"#.utf8
            }
            return json + Array("}".utf8)
        }
    }

    init?(_ view: JSONView) {
        guard let result = view["result"],
            let version = view["version"].flatMap({ try? PayloadCoder.decode(RoutingVersion.self, from: $0) })
        else { return nil }
        text = Array(result.bytes)
        self.version = version
        changes = view["changes"].map { view in
            func list(_ view: JSONView?) -> [IoAssociation] {
                view?.elements.map { association in
                    IoAssociation(
                        ioSourceId: CoatyUUID(wire: association["ioSourceId"]?.string ?? ""),
                        ioActorId: CoatyUUID(wire: association["ioActorId"]?.string ?? ""),
                        updateRate: association["updateRate"]?.number.map { Int($0) }
                    )
                } ?? []
            }
            var changes = IoAssociationChanges()
            changes.added = list(view["added"])
            changes.removed = list(view["removed"])
            changes.changed = list(view["changed"])
            return changes
        }
    }
}

extension Problem {
    /// The problem as an answer to another gateway, whose client gets it.
    fileprivate struct Message: Codable {
        struct Field: Codable {
            let name, value: String
        }

        let type, title: String
        let status: Int
        let detail, pointer: String?
        let headers: [Field]
    }

    var json: [UInt8] {
        get throws {
            let pointer = members.lazy.compactMap { name, value -> String? in
                if name == "pointer", case .string(let text) = value { text } else { nil }
            }.first
            let message = Message(
                type: type,
                title: title,
                status: status,
                detail: detail,
                pointer: pointer,
                headers: headers.map { Message.Field(name: $0.name, value: $0.value) }
            )
            return Array(#"{"problem":\#(try PayloadCoder.encode(message))}"#.utf8)
        }
    }

    init?(_ view: JSONView) {
        guard let message = try? PayloadCoder.decode(Message.self, from: view) else { return nil }
        self.init(
            type: message.type,
            title: message.title,
            status: message.status,
            detail: message.detail,
            members: message.pointer.map { [("pointer", .string($0))] } ?? [],
            headers: message.headers.map { ($0.name, $0.value) }
        )
    }
}
