import Synchronization

/// Finds the members of wide objects by their names, and the elements of long arrays by their positions.
///
/// The table of a value is built on first use, outside the lock; its size and build time are bounded by the text. Names
/// are hashed with the process's random seed, after their escapes are resolved, so that a text cannot force collisions.
final class MemberIndex: Sendable {
    /// An object with more members is wide. With fewer members, comparing is faster than hashing.
    static let maximumMembers = 16
    /// An array with more elements is wide.
    static let maximumElements = 64

    /// Returns the maximum size of an object's table, in bytes.
    static func bytes(members count: Int) -> Int {
        bytesPerTable + places(members: count) * MemoryLayout<UInt32>.stride
    }

    /// Returns the maximum size of an array's table, in bytes.
    static func bytes(elements count: Int) -> Int { bytesPerTable + count * MemoryLayout<UInt32>.stride }

    /// The array header, and up to 8/3 slots in the dictionary of tables.
    private static let bytesPerTable = 32 + 8 * (MemoryLayout<Int>.stride + MemoryLayout<Table>.stride) / 3

    /// Returns the number of slots, of which between a quarter and a half are used.
    private static func places(members count: Int) -> Int { 1 << (Int.bitWidth - (2 * count - 1).leadingZeroBitCount) }

    /// The parts of one value.
    private struct Table: Sendable {
        /// An array's elements in order; or a hash table of an object's names, with 0 in empty slots. Of members with
        /// the same name, only the last one.
        var places: [UInt32]
        /// Number of parts.
        var count = 0
    }

    /// Number of bytes of all tables, whether they have been built or not.
    let reservedBytes: Int
    private let tables = Mutex<[Int: Table]>([:])

    init(reservedBytes: Int) {
        self.reservedBytes = reservedBytes
    }

    /// Returns the value of an object's member; of several with the same name, that of the last.
    func member(named name: UnsafeBufferPointer<UInt8>, of object: Int, in document: JSONDocument) -> Int? {
        let table = table(of: object, in: document)
        let key = Int(table.places[Self.place(of: name, in: table.places, document)])
        return key == 0 ? nil : key + 1
    }

    /// Returns the element of an array at a position.
    func element(at position: Int, of array: Int, in document: JSONDocument) -> Int? {
        let table = table(of: array, in: document)
        return table.places.indices.contains(position) ? Int(table.places[position]) : nil
    }

    /// Returns the number of members with different names, or of elements.
    func count(of value: Int, in document: JSONDocument) -> Int { table(of: value, in: document).count }

    private func table(of value: Int, in document: JSONDocument) -> Table {
        if let known = tables.withLock({ $0[value] }) { return known }
        let isObject = document.nodes[value].kind == .object
        let table = isObject ? Self.members(of: value, in: document) : Self.elements(of: value, in: document)
        return tables.withLock { tables in
            // Another thread may have built the table first.
            if let known = tables[value] { return known }
            tables[value] = table
            return table
        }
    }

    private static func elements(of array: Int, in document: JSONDocument) -> Table {
        let places = JSONView(document: document, index: array).elements.map { UInt32($0.index) }
        return Table(places: places, count: places.count)
    }

    private static func members(of object: Int, in document: JSONDocument) -> Table {
        let (storedNodes, storedBytes) = (document.nodes, document.bytes)
        let nodes = storedNodes.span
        let bytes = storedBytes.span
        let end = Int(nodes[object].next)
        var count = 0
        var key = object + 1
        while key < end {
            count += 1
            key = Int(nodes[key + 1].next)
        }
        var table = Table(places: Array(repeating: 0, count: places(members: count)))
        var resolved: [UInt8] = []
        key = object + 1
        while key < end {
            let node = nodes[key]
            let content = bytes.extracting(Int(node.start) + 1..<Int(node.end) - 1)
            let place = content.withUnsafeBufferPointer { content in
                guard node.isEscaped else { return Self.place(of: content, in: table.places, document) }
                resolved.removeAll(keepingCapacity: true)
                resolved.append(contentsOf: ResolvedString(content))
                return resolved.withUnsafeBufferPointer { Self.place(of: $0, in: table.places, document) }
            }
            if table.places[place] == 0 { table.count += 1 }
            table.places[place] = UInt32(key)
            key = Int(nodes[key + 1].next)
        }
        return table
    }

    /// Returns the slot of a name, or the empty slot for it.
    private static func place(
        of name: UnsafeBufferPointer<UInt8>,
        in places: [UInt32],
        _ document: JSONDocument
    ) -> Int {
        var hasher = Hasher()
        hasher.combine(bytes: UnsafeRawBufferPointer(name))
        let mask = places.count - 1
        var place = hasher.finalize() & mask
        let nodes = document.storage.nodes
        document.storage.bytes.withUnsafeBufferPointer { bytes in
            while places[place] != 0,
                !JSONDocument.isString(nodes[Int(places[place])], in: bytes, equalTo: name)
            {
                place = (place + 1) & mask
            }
        }
        return place
    }
}
