public struct ObjectFilter: Codable, Sendable { public init() {}; init(_ v: JSONView) throws(PayloadError) {} }
public struct ContextFilter: Codable, Sendable {
    init(_ v: JSONView) throws(PayloadError) {}; func matches(_ v: JSONView) -> Bool { true }
}
public struct ObjectJoinCondition: Codable, Sendable {
    static func list(_ v: JSONView) throws(PayloadError) -> [ObjectJoinCondition] { [] }
}
