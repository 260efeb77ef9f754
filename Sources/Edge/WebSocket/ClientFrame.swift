import Coaty

/// A frame from a client on `/v1/ws`: `{"op":…,"id":…,…}`.
struct ClientFrame {
    enum Op: String, CaseIterable {
        case authenticate, subscribe, unsubscribe, publish, request, cancel, respond, identify, ping
    }

    /// The names of the members that every frame has.
    static let members: Set = ["op", "id"]

    let op: Op
    let id: String
    let json: JSONView

    /// Parses a text message.
    ///
    /// - Parameter id: set as soon as it is known, so that an error reply can carry it even if the rest is invalid.
    /// - Throws: `PayloadError`
    init(_ text: [UInt8], id: inout String?) throws(PayloadError) {
        json = try Payload(text).json
        guard json.kind == .object else { throw json.invalid("must be an object") }
        guard let view = json["id"] else { throw .invalid(pointer: "/id", reason: "is missing") }
        guard let text = view.string, 1...SocketSession.maximumIdLength ~= text.utf8.count else {
            throw view.invalid("must be a string of 1 to \(SocketSession.maximumIdLength) bytes")
        }
        id = text
        self.id = text
        guard let op = json["op"]?.string.flatMap(Op.init) else {
            let names = Op.allCases.map(\.rawValue).joined(separator: ", ")
            throw .invalid(pointer: "/op", reason: "must be one of \(names)")
        }
        self.op = op
    }
}
