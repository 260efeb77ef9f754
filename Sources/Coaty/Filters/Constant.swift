/// A JSON value that properties are compared with. Unlike in `AnyCodable`, strings and names are compared byte by byte.
enum Constant: Sendable, Hashable {
    case scalar(Scalar)
    case array([Constant])
    /// The members by name, each name once, so that the number of comparison steps is constant.
    case object([Member])

    struct Member: Sendable, Hashable {
        let name: WireName
        let value: Constant
    }

    init(_ json: AnyCodable) {
        switch json {
        case .array(let elements): self = .array(elements.map(Constant.init))
        case .object(let members):
            self.init(members: members.map { Member(name: WireName($0), value: Constant($1)) })
        default: self = .scalar(Scalar(json) ?? .null)
        }
    }

    /// Creates the value of a view. Of members with the same name, the last one wins.
    init(_ view: JSONView) {
        switch view.kind {
        case .array: self = .array(view.elements.map { Constant($0) })
        case .object:
            var last: [WireName: Constant] = [:]
            for (key, value) in view.members { last[WireName(key.string ?? "")] = Constant(value) }
            self.init(members: last.map(Member.init))
        default: self = .scalar(Scalar(view) ?? .null)
        }
    }

    private init(members: [Member]) {
        self = .object(members.sorted { $0.name.text.utf8.lexicographicallyPrecedes($1.name.text.utf8) })
    }

    /// The approximate number of bytes that the value uses in memory.
    var footprint: Int {
        let own = MemoryLayout<Constant>.stride
        return switch self {
        case .scalar(let scalar): own + scalar.footprint
        case .array(let elements): elements.reduce(own + 32) { $0 + $1.footprint }
        case .object(let members): members.reduce(own + 32) { $0 + 16 + $1.name.text.utf8.count + $1.value.footprint }
        }
    }
}

extension Scalar {
    /// The number of bytes that the value references.
    var footprint: Int {
        if case .string(let text) = self { text.footprint } else { 0 }
    }
}

extension WireName {
    /// The number of bytes that the name references; Swift stores up to 15 bytes in the string itself.
    var footprint: Int { text.utf8.count > 15 ? 32 + text.utf8.count : 0 }
}
