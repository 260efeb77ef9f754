/// The values that are encoded, before they are written as a text.
///
/// Encodable types may write into several containers in turn, so that the order of the text is known only at the end.
/// All values are in one array and their texts in another, so that no value needs a separate allocation.
struct JSONTree {
    enum Kind: UInt8 {
        /// Nothing has been encoded yet.
        case unset
        /// A part that could not be encoded, although its array or object may be. It is not written.
        case discarded
        case null, bool, number, string
        case array, object
    }

    /// A place in ``text``.
    struct Range {
        var start = 0
        var end = 0
        /// Whether the content of a string has escapes.
        var isEscaped = false
    }

    struct Value {
        var kind = Kind.unset
        /// Whether a nested container encodes the value, which a second one for the same key continues.
        var isNested = false
        /// The text of the value, with the quotation marks of a string.
        var text = Range()
        /// The name in its object, with quotation marks; empty for elements.
        var name = Range()
        /// The array or object that contains the value; -1 for the root.
        var parent: Int32
        /// The first and last part, and the next part of the same array or object; -1 if there is none.
        var first: Int32 = -1
        var last: Int32 = -1
        var next: Int32 = -1
        /// The position in an array; in an array or object, the number of parts.
        var position: UInt32 = 0
        var count: UInt32 = 0
    }

    private(set) var values: ContiguousArray<Value> = [Value(parent: -1)]
    /// The first value that was encoded as two kinds. Such types can't be encoded; Foundation ends the process.
    private(set) var conflict: (index: Int, first: Kind, second: Kind)?
    /// The names, and the values without parts, in the order in which they are encoded.
    private(set) var text: [UInt8] = []

    init() {
        values.reserveCapacity(32)
        text.reserveCapacity(512)
    }

    /// Appends a part to an array.
    mutating func appendElement(to array: Int) -> Int { append(Value(parent: Int32(array)), to: array) }

    /// Appends a member to an object. Of several members with the same name, only the last one is written.
    mutating func appendMember(_ name: String, to object: Int) -> Int {
        var value = Value(parent: Int32(object))
        value.name = writeString(name)
        return append(value, to: object)
    }

    private mutating func append(_ part: consuming Value, to parent: Int) -> Int {
        let index = values.count
        part.position = values[parent].count
        values[parent].count += 1
        let last = Int(values[parent].last)
        if last < 0 { values[parent].first = Int32(index) } else { values[last].next = Int32(index) }
        values[parent].last = Int32(index)
        values.append(part)
        return index
    }

    /// Removes a part that could not be encoded.
    mutating func discard(_ index: Int) {
        values[index].kind = .discarded
        values[Int(values[index].parent)].count -= 1
    }

    /// Removes what has been encoded of a value since it was as given.
    mutating func restore(_ value: Value, at index: Int) { values[index] = value }

    /// Begins an array or object, or continues one that has begun.
    mutating func open(_ kind: Kind, at index: Int) {
        if values[index].kind != kind { set(kind, at: index) }
    }

    private mutating func set(_ kind: Kind, at index: Int) {
        if values[index].kind != .unset, conflict == nil { conflict = (index, values[index].kind, kind) }
        values[index].kind = kind
    }

    mutating func markNested(_ index: Int) { values[index].isNested = true }

    mutating func setNull(at index: Int) { set(.null, "null", at: index) }

    mutating func set(_ bool: Bool, at index: Int) { set(.bool, bool ? "true" : "false", at: index) }

    mutating func set(_ string: String, at index: Int) {
        values[index].text = writeString(string)
        set(.string, at: index)
    }

    mutating func set(number: some CustomStringConvertible, at index: Int) {
        let start = text.count
        text.append(contentsOf: number.description.utf8)
        values[index].text = Range(start: start, end: text.count)
        set(.number, at: index)
    }

    /// - Throws: `EncodingError` if the number is not finite.
    mutating func set<Number: BinaryFloatingPoint & CustomStringConvertible>(
        floatingPoint number: Number,
        at index: Int
    ) throws {
        guard number.isFinite else { throw notFinite(number, at: index) }
        set(number: number, at: index)
        guard text.count > 2, text[text.count - 2] == UInt8(ascii: "."), text[text.count - 1] == UInt8(ascii: "0")
        else {
            return
        }
        text.removeLast(2)
        values[index].text.end -= 2
    }

    func notFinite(_ number: Any, at index: Int) -> EncodingError {
        .invalidValue(
            number,
            .init(codingPath: path(to: index), debugDescription: "JSON can't represent \(number)")
        )
    }

    private mutating func set(_ kind: Kind, _ literal: StaticString, at index: Int) {
        let start = text.count
        text.append(contentsOf: UnsafeBufferPointer(start: literal.utf8Start, count: literal.utf8CodeUnitCount))
        values[index].text = Range(start: start, end: text.count)
        set(kind, at: index)
    }

    private mutating func writeString(_ string: String) -> Range {
        var string = string
        var range = Range(start: text.count)
        text.append(UInt8(ascii: "\""))
        string.withUTF8 { bytes in
            var written = 0
            for index in bytes.indices where Self.isEscaped(bytes[index]) {
                text.append(contentsOf: UnsafeBufferPointer(rebasing: bytes[written..<index]))
                writeEscape(bytes[index])
                written = index + 1
                range.isEscaped = true
            }
            text.append(contentsOf: UnsafeBufferPointer(rebasing: bytes[written...]))
        }
        text.append(UInt8(ascii: "\""))
        range.end = text.count
        return range
    }

    @inline(__always)
    private static func isEscaped(_ byte: UInt8) -> Bool {
        byte < 0x20 || byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\")
    }

    private mutating func writeEscape(_ byte: UInt8) {
        text.append(UInt8(ascii: "\\"))
        switch byte {
        case 0x08: text.append(UInt8(ascii: "b"))
        case 0x09: text.append(UInt8(ascii: "t"))
        case 0x0A: text.append(UInt8(ascii: "n"))
        case 0x0C: text.append(UInt8(ascii: "f"))
        case 0x0D: text.append(UInt8(ascii: "r"))
        case 0x00..<0x20:
            let digits: StaticString = "0123456789abcdef"
            text.append(contentsOf: "u00".utf8)
            text.append(digits.utf8Start[Int(byte >> 4)])
            text.append(digits.utf8Start[Int(byte & 15)])
        default: text.append(byte)
        }
    }

    /// Returns the keys from the root to a value.
    func path(to index: Int) -> [any CodingKey] {
        var path: [any CodingKey] = []
        var value = values[index]
        while value.parent >= 0 {
            if value.name.end == 0 {
                path.append(JSONKey.index(Int(value.position)))
            } else {
                let content = text[value.name.start + 1..<value.name.end - 1]
                path.append(JSONKey.name(content.withUnsafeBufferPointer(JSONEscapes.resolve)))
            }
            value = values[Int(value.parent)]
        }
        return path.reversed()
    }

    /// Compares the names of two members: the result is less than, equal to, or greater than 0.
    func order(_ left: Int, _ right: Int) -> Int {
        let (left, right) = (values[left].name, values[right].name)
        return text.withUnsafeBufferPointer { text in
            // Without the quotation marks.
            let left = (text: UnsafeBufferPointer(rebasing: text[left.start + 1..<left.end - 1]), left.isEscaped)
            let right = (text: UnsafeBufferPointer(rebasing: text[right.start + 1..<right.end - 1]), right.isEscaped)
            guard !left.1, !right.1 else {
                return Self.order(ResolvedString(left.text), ResolvedString(right.text))
            }
            return Self.order(left.text.makeIterator(), right.text.makeIterator())
        }
    }

    private static func order(
        _ left: some IteratorProtocol<UInt8>,
        _ right: some IteratorProtocol<UInt8>
    ) -> Int {
        var (left, right) = (left, right)
        while true {
            switch (left.next(), right.next()) {
            case (nil, nil): return 0
            case (nil, _): return -1
            case (_, nil): return 1
            case (let left?, let right?): if left != right { return Int(left) - Int(right) }
            }
        }
    }

    /// Lets a part of a nested container that was opened twice for the same key go on with the parts of the first.
    mutating func continueParts(of earlier: Int, in later: Int) {
        guard values[earlier].first >= 0 else { return }
        values[Int(values[earlier].last)].next = values[later].first
        if values[later].first < 0 { values[later].last = values[earlier].last }
        values[later].first = values[earlier].first
        values[later].count += values[earlier].count
    }
}

/// A tree that several containers write to. Exclusive access is checked at run time once for each call of a mutating
/// method, and not for each of its accesses: a quarter of the time.
final class JSONTreeBox {
    var tree = JSONTree()
}
