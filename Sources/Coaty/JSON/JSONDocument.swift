/// A checked JSON text and an index of its values.
///
/// Values are not decoded: a value is a place in the bytes. A value is forwarded as the received bytes, with all
/// digits. Duplicate keys are allowed and the last one wins, as in ECMAScript.
public struct JSONDocument: Sendable {
    /// Maximum nesting depth of arrays and objects.
    public static let maximumDepth = 512

    /// The kinds of JSON value.
    public enum Kind: UInt8, Sendable {
        case null, bool, number, string, array, object
    }

    struct Node {
        /// Offset of the value's first byte.
        var start: UInt32
        /// Offset after the value's last byte.
        var end: UInt32
        /// Index of the first node after this value and all nested values.
        var next: UInt32
        var kind: Kind
        /// Whether a string contains escapes, and therefore cannot be compared byte by byte.
        var isEscaped: Bool
        /// Whether an object or array has so many parts that a ``MemberIndex`` is used to find them.
        var isWide = false
    }

    /// The document's data in one object: a view of each value is retained and released many times.
    final class Storage: Sendable {
        let bytes: [UInt8]
        /// In the order of the text. An object's keys come before their values.
        let nodes: ContiguousArray<Node>
        /// The index of the parts of wide values; nil if there are none.
        let wide: MemberIndex?

        init(_ bytes: [UInt8], _ nodes: ContiguousArray<Node>, wideBytes: Int) {
            self.bytes = bytes
            self.nodes = nodes
            wide = wideBytes > 0 ? MemberIndex(reservedBytes: wideBytes) : nil
        }
    }

    let storage: Storage

    /// The JSON text as received.
    public var bytes: [UInt8] { storage.bytes }
    var nodes: ContiguousArray<Node> { storage.nodes }
    var wide: MemberIndex? { storage.wide }

    /// Checks a text against RFC 8259 and indexes it.
    ///
    /// - Throws: ``JSONSyntaxError`` if the text is not JSON, not UTF-8, or nested deeper than ``maximumDepth``.
    public init(_ bytes: [UInt8]) throws(JSONSyntaxError) {
        try self.init(bytes, maximumValues: .max)
    }

    /// Checks and indexes a text with a maximum number of values, including member names. Each value takes 16 bytes of
    /// memory, or 24 in a wide object, whatever its size in the text.
    ///
    /// - Throws: ``JSONSyntaxError``
    init(_ bytes: [UInt8], maximumValues: Int) throws(JSONSyntaxError) {
        guard bytes.count < Int(UInt32.max) else { throw JSONSyntaxError(offset: 0, reason: "the text is too long") }
        var scanner = JSONScanner(capacity: min(bytes.count / 8, maximumValues) + 4, maximumValues: maximumValues)
        try scanner.scan(bytes.span)
        storage = Storage(bytes, scanner.nodes, wideBytes: scanner.wideBytes)
    }

    /// The value of the whole text.
    public var root: JSONView { JSONView(document: self, index: 0) }

    /// The approximate number of bytes that the document uses in memory, including an index of its wide values, which
    /// may be built later. Memory that is reserved for more values than there are is never written, so it takes no
    /// physical memory; it also varies.
    var footprint: Int {
        bytes.count + nodes.count * MemoryLayout<Node>.stride + (wide?.reservedBytes ?? 0)
    }
}

extension JSONDocument {
    /// Returns the index of an object's member; of several members with the same name, that of the last.
    func member(named name: String, of object: Int) -> Int? {
        var name = name
        return name.withUTF8 { member(named: $0, of: object) }
    }

    fileprivate func member(named name: UnsafeBufferPointer<UInt8>, of object: Int) -> Int? {
        let node = storage.nodes[object]
        guard node.kind == .object else { return nil }
        if node.isWide, let wide = storage.wide { return wide.member(named: name, of: object, in: self) }
        // Buffers, because spans check each access: this is most of the work of decoding and of filters.
        return storage.nodes.withUnsafeBufferPointer { nodes in
            storage.bytes.withUnsafeBufferPointer { bytes in
                var found: Int?
                var key = object + 1
                while key < Int(node.next) {
                    if Self.isString(nodes[key], in: bytes, equalTo: name) { found = key + 1 }
                    key = Int(nodes[key + 1].next)
                }
                return found
            }
        }
    }

    /// Returns the index of the first member, within a value, whose object has an earlier member with the same name;
    /// nil if there is none.
    fileprivate func duplicateMember(within value: Int) -> Int? {
        let storedNodes = storage.nodes
        let nodes = storedNodes.span
        for object in value..<Int(nodes[value].next) where nodes[object].kind == .object {
            if let member = duplicateMember(of: object) { return member }
        }
        return nil
    }

    private func duplicateMember(of object: Int) -> Int? {
        let (storedNodes, storedBytes) = (storage.nodes, storage.bytes)
        let nodes = storedNodes.span
        let bytes = storedBytes.span
        var count = 0
        // One bit for each length and last character of the keys so far. A key whose bit is not set differs from all of
        // them.
        var seen: UInt64 = 0
        var key = object + 1
        let end = Int(nodes[object].next)
        while key < end {
            let node = nodes[key]
            // Most objects have few members, for which comparing in pairs is faster than hashing.
            guard !node.isEscaped, count < Self.maximumCompared else { return hashedDuplicateMember(of: object) }
            let bit = UInt64(1) << ((UInt64(bytes[Int(node.end) - 2]) + UInt64(node.end - node.start) * 7) & 63)
            var earlier = seen & bit == 0 ? key : object + 1
            seen |= bit
            while earlier < key {
                let other = nodes[earlier]
                earlier = Int(nodes[earlier + 1].next)
                guard other.end - other.start == node.end - node.start else { continue }
                var offset = 0
                let length = Int(node.end - node.start)
                while offset < length, bytes[Int(other.start) + offset] == bytes[Int(node.start) + offset] {
                    offset += 1
                }
                if offset == length { return key + 1 }
            }
            count += 1
            key = Int(nodes[key + 1].next)
        }
        return nil
    }

    private func hashedDuplicateMember(of object: Int) -> Int? {
        var keys: Set<WireName> = []
        return JSONView(document: self, index: object).members.first { key, _ in
            !keys.insert(WireName(key.string ?? "")).inserted
        }?.value.index
    }

    /// Maximum number of keys that are compared in pairs.
    private static let maximumCompared = 16

    @inline(__always)
    static func isString(
        _ node: Node,
        in bytes: UnsafeBufferPointer<UInt8>,
        equalTo text: UnsafeBufferPointer<UInt8>
    ) -> Bool {
        let start = Int(node.start) + 1
        let end = Int(node.end) - 1
        if node.isEscaped { return JSONEscapes.isEqual(UnsafeBufferPointer(rebasing: bytes[start..<end]), to: text) }
        guard end - start == text.count else { return false }
        for offset in 0..<text.count where bytes[start + offset] != text[offset] { return false }
        return true
    }
}

/// The place and reason of a JSON syntax error.
public struct JSONSyntaxError: Error, Sendable, Equatable, CustomStringConvertible {
    /// Offset of the offending byte.
    public let offset: Int
    /// The error at this offset.
    public let reason: String
    /// Whether the text may be valid JSON but has too many values.
    var hasTooManyValues = false

    /// The reason with its place.
    public var description: String { "\(reason) at byte \(offset)" }

    static func tooDeep(at offset: Int) -> JSONSyntaxError {
        JSONSyntaxError(offset: offset, reason: "nested deeper than \(JSONDocument.maximumDepth) levels")
    }
}

/// One value of a ``JSONDocument``.
public struct JSONView: Sendable {
    let document: JSONDocument
    var index: Int

    /// The kind of the value.
    public var kind: JSONDocument.Kind { node.kind }

    /// The size of the whole text, which stays in memory as long as a part of it.
    public var retainedBytes: Int { document.bytes.count }

    /// The bytes of the value as received.
    public var bytes: ArraySlice<UInt8> { document.bytes[Int(node.start)..<Int(node.end)] }

    /// The string with resolved escapes; nil if this is not a string. A lone surrogate becomes U+FFFD.
    public var string: String? {
        let node = node
        guard node.kind == .string else { return nil }
        return document.storage.bytes.withUnsafeBufferPointer { bytes in
            let content = UnsafeBufferPointer(rebasing: bytes[(Int(node.start) + 1)..<(Int(node.end) - 1)])
            return node.isEscaped ? JSONEscapes.resolve(content) : String(decoding: content, as: UTF8.self)
        }
    }

    /// The bytes of a string without escapes; nil for other strings and values.
    var plainBytes: ArraySlice<UInt8>? {
        guard kind == .string, !node.isEscaped else { return nil }
        return document.bytes[(Int(node.start) + 1)..<(Int(node.end) - 1)]
    }

    /// Returns whether this is a string that, with resolved escapes, has the same bytes.
    func isString(_ text: String) -> Bool {
        guard kind == .string else { return false }
        var text = text
        return text.withUTF8 { text in
            document.storage.bytes.withUnsafeBufferPointer { JSONDocument.isString(node, in: $0, equalTo: text) }
        }
    }

    /// The number; nil if this is not a number.
    public var number: Double? {
        kind == .number ? withBytes(JSONNumber.double) : nil
    }

    func withBytes<Result>(_ body: (Span<UInt8>) -> Result) -> Result {
        let node = node
        let stored = document.storage.bytes
        return body(stored.span.extracting(Int(node.start)..<Int(node.end)))
    }

    /// The Boolean value; nil if this is not a Boolean.
    public var bool: Bool? {
        kind == .bool ? document.bytes[Int(node.start)] == UInt8(ascii: "t") : nil
    }

    /// The elements of an array; empty if this is not an array.
    public var elements: Elements {
        Elements(document: document, index: index + 1, end: kind == .array ? Int(node.next) : index + 1)
    }

    /// The members of an object in the order of the text, including duplicates; empty if this is not an object.
    public var members: Members {
        Members(document: document, index: index + 1, end: kind == .object ? Int(node.next) : index + 1)
    }

    /// Returns the member of an object with a name; of several, the last.
    public subscript(name: StaticString) -> JSONView? {
        member(named: UnsafeBufferPointer(start: name.utf8Start, count: name.utf8CodeUnitCount))
    }

    /// Returns the member of an object with a name that is known only at run time; of several, the last.
    public func member(named name: String) -> JSONView? {
        document.member(named: name, of: index).map { JSONView(document: document, index: $0) }
    }

    /// The first member, on any level, whose object has an earlier member with the same name; nil if there is none.
    public var duplicateMember: JSONView? {
        document.duplicateMember(within: index).map { JSONView(document: document, index: $0) }
    }

    private func member(named name: UnsafeBufferPointer<UInt8>) -> JSONView? {
        document.member(named: name, of: index).map { JSONView(document: document, index: $0) }
    }

    private var node: JSONDocument.Node { document.storage.nodes[index] }

    /// The JSON Pointer (RFC 6901) of this value in its document; empty for the root.
    public var pointer: String {
        var pointer = ""
        var current = document.root
        // Only reached for errors: the path is searched here, so that checking need not keep track of it.
        search: while current.index != index {
            if current.kind == .array {
                for (position, element) in current.elements.enumerated() where element.encloses(index) {
                    pointer += "/\(position)"
                    current = element
                    continue search
                }
            } else {
                for (key, value) in current.members where value.encloses(index) {
                    pointer += "/" + JSONView.escaped(key.string ?? "")
                    current = value
                    continue search
                }
            }
            break
        }
        return pointer
    }

    /// Whether the value has members or elements.
    var hasParts: Bool { kind == .object || kind == .array }

    /// Number of members with different names, or of elements; 0 for other values.
    var childCount: Int {
        if node.isWide, let wide = document.storage.wide { return wide.count(of: index, in: document) }
        switch kind {
        case .array: return elements.reduce(0) { count, _ in count + 1 }
        case .object: return members.count { key, value in member(named: key.string ?? "")?.index == value.index }
        default: return 0
        }
    }

    /// Returns the element of an array at a position; nil if there is none.
    func element(at position: Int) -> JSONView? {
        guard kind == .array, position >= 0 else { return nil }
        guard node.isWide, let wide = document.storage.wide else {
            return elements.dropFirst(position).first { _ in true }
        }
        return wide.element(at: position, of: index, in: document).map { JSONView(document: document, index: $0) }
    }

    /// Number of values in the value, including itself and member names.
    var valueCount: Int { Int(node.next) - index }

    /// Returns whether both are the same place in the same text.
    func isSame(as other: JSONView) -> Bool {
        index == other.index && document.storage === other.document.storage
    }

    private func encloses(_ other: Int) -> Bool { index <= other && other < Int(node.next) }

    /// Returns one token of a JSON Pointer with `~` and `/` escaped (RFC 6901, section 3).
    static func escaped(_ token: String) -> String {
        token.replacing("~", with: "~0").replacing("/", with: "~1")
    }

    /// The elements of an array.
    public struct Elements: Sequence, IteratorProtocol, Sendable {
        let document: JSONDocument
        var index: Int
        let end: Int

        var isEmpty: Bool { index >= end }

        /// Returns the next element.
        public mutating func next() -> JSONView? {
            guard index < end else { return nil }
            defer { index = Int(document.storage.nodes[index].next) }
            return JSONView(document: document, index: index)
        }
    }

    /// The members of an object.
    public struct Members: Sequence, IteratorProtocol, Sendable {
        let document: JSONDocument
        var index: Int
        let end: Int

        /// Returns the next member.
        public mutating func next() -> (key: JSONView, value: JSONView)? {
            guard index < end else { return nil }
            let value = index + 1
            defer { index = Int(document.storage.nodes[value].next) }
            return (JSONView(document: document, index: index), JSONView(document: document, index: value))
        }
    }
}
