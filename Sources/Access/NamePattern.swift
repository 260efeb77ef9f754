import Coaty

/// An entry of a grant's list of names: a name, or a prefix of names.
///
/// In text, a prefix ends in `*`, and `*` matches every name. `\*` is an asterisk and `\\` a backslash. Compared byte
/// by byte.
enum NamePattern: Sendable, Equatable {
    case name(WireName)
    /// The names that begin with these bytes; the empty prefix matches every name.
    case prefix(WireName)

    /// The reason why the text of an entry is not valid.
    struct Malformed: Error {
        let reason: String
    }

    init(_ text: String) throws(Malformed) {
        let (name, asterisk) = try Self.unescape(text)
        switch asterisk {
        case nil: self = .name(WireName(name))
        case name.utf8.count: self = .prefix(WireName(name))
        default: throw Malformed(reason: "may have * as the last character only; write \\* for an asterisk")
        }
    }

    /// The text without the wildcard.
    var name: WireName {
        switch self {
        case .name(let name), .prefix(let name): name
        }
    }

    /// Whether the entry matches only one name.
    var isWhole: Bool {
        if case .name = self { true } else { false }
    }

    /// Returns whether the entry matches a name.
    func covers(_ name: WireName) -> Bool {
        switch self {
        case .name(let whole): name == whole
        case .prefix(let prefix): name.hasPrefix(prefix)
        }
    }

    /// Returns the text of an entry for one name.
    static func escape(_ name: String) -> String {
        var escaped: [UInt8] = []
        for byte in name.utf8 {
            if byte == UInt8(ascii: "*") || byte == UInt8(ascii: "\\") { escaped.append(UInt8(ascii: "\\")) }
            escaped.append(byte)
        }
        return String(decoding: escaped, as: UTF8.self)
    }

    /// Resolves the escapes of an entry.
    ///
    /// - Returns: the name without wildcards, and the offset of the first wildcard in it.
    static func unescape(_ text: String) throws(Malformed) -> (name: String, asterisk: Int?) {
        var name: [UInt8] = []
        var asterisk: Int?
        var bytes = text.utf8.makeIterator()
        while let byte = bytes.next() {
            switch byte {
            case UInt8(ascii: "\\"):
                guard let next = bytes.next(), next == UInt8(ascii: "*") || next == UInt8(ascii: "\\") else {
                    throw Malformed(reason: "has a backslash that is not followed by * or a backslash")
                }
                name.append(next)
            case UInt8(ascii: "*"):
                guard asterisk == nil else {
                    throw Malformed(reason: "may have * as the last character only; write \\* for an asterisk")
                }
                asterisk = name.count
            default: name.append(byte)
            }
        }
        return (String(decoding: name, as: UTF8.self), asterisk)
    }
}

/// The names of a grant in one dimension.
struct NameSet: Sendable {
    /// Whether one of the entries is `*`.
    let containsAll: Bool
    private let names: Set<WireName>
    private let prefixes: [WireName]
    /// The core types that are listed explicitly.
    private let coreTypes: Set<CoreType>

    init(_ patterns: [NamePattern]) {
        var names: Set<WireName> = []
        var prefixes: [WireName] = []
        for pattern in patterns {
            switch pattern {
            case .name(let name): names.insert(name)
            case .prefix(let prefix): prefixes.append(prefix)
            }
        }
        self.names = names
        self.prefixes = prefixes
        containsAll = prefixes.contains { $0.text.isEmpty }
        coreTypes = Set(CoreType.allCases.filter { names.contains(WireName($0.rawValue)) })
    }

    func contains(_ name: WireName) -> Bool {
        names.contains(name) || prefixes.contains(where: name.hasPrefix)
    }

    /// Returns whether a core type is listed explicitly.
    func contains(literally coreType: CoreType) -> Bool { coreTypes.contains(coreType) }
}
