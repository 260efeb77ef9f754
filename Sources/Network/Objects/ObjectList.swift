import DequeModule

/// Objects in the order in which they were listed.
///
/// Copies share their storage: copying takes constant time, and changing a copy costs at most the copy of one chunk and
/// of the list of chunks.
struct ObjectList: Sendable {
    fileprivate typealias Chunk = [AliveObject]

    /// Maximum number of objects in a chunk.
    static let chunkSize = 256

    /// In ascending order of the objects' positions. None is empty.
    fileprivate private(set) var chunks: [Chunk] = []

    /// Adds an object whose position is not taken. Takes constant time if its position is the highest.
    mutating func insert(_ object: AliveObject) {
        guard let last = chunks.last?.last, last.position > object.position else { return append(object) }
        let chunk = index(of: object.position)
        chunks[chunk].insert(object, at: Self.index(of: object.position, in: chunks[chunk]))
        guard chunks[chunk].count > Self.chunkSize else { return }
        let half = Self.chunkSize / 2
        let rest = Array(chunks[chunk][half...])
        chunks[chunk].removeSubrange(half...)
        chunks.insert(rest, at: chunk + 1)
    }

    private mutating func append(_ object: AliveObject) {
        if let last = chunks.indices.last, chunks[last].count < Self.chunkSize {
            chunks[last].append(object)
        } else {
            chunks.append([object])
        }
    }

    /// Replaces the object at the same position.
    mutating func replace(with object: AliveObject) {
        guard let (chunk, index) = find(object.position) else { return }
        chunks[chunk][index] = object
    }

    mutating func remove(_ object: AliveObject) {
        guard let (chunk, index) = find(object.position) else { return }
        chunks[chunk].remove(at: index)
        let next = chunk + 1
        if chunks[chunk].isEmpty {
            chunks.remove(at: chunk)
        } else if next < chunks.count, chunks[chunk].count + chunks[next].count <= Self.chunkSize / 2 {
            // Otherwise many chunks could be left with few objects each.
            chunks[chunk] += chunks.remove(at: next)
        }
    }

    private func find(_ position: UInt64) -> (chunk: Int, index: Int)? {
        let chunk = index(of: position)
        guard chunk < chunks.count else { return nil }
        let index = Self.index(of: position, in: chunks[chunk])
        return chunks[chunk][index].position == position ? (chunk, index) : nil
    }

    /// Returns the index of the first chunk whose last object is at a position or behind it.
    private func index(of position: UInt64) -> Int {
        chunks.firstSortedIndex { chunk in chunk.last.map { $0.position >= position } ?? false }
    }

    private static func index(of position: UInt64, in chunk: Chunk) -> Int {
        chunk.firstSortedIndex { $0.position >= position }
    }
}

extension ObjectList: Sequence {
    func makeIterator() -> some IteratorProtocol<AliveObject> { chunks.joined().makeIterator() }
}

extension Array {
    /// Returns the first index from which on a condition holds; the condition must not hold before that index.
    fileprivate func firstSortedIndex(where holds: (Element) -> Bool) -> Int {
        var (low, high) = (0, count)
        while low < high {
            let middle = (low + high) / 2
            if holds(self[middle]) { high = middle } else { low = middle + 1 }
        }
        return low
    }
}

/// The objects of a list that are not yet read. References to read objects are released chunk by chunk.
package struct UnreadObjects: Sendable {
    private var chunks: Deque<ObjectList.Chunk>
    /// The index of the next object in the first chunk.
    private var next = 0
    package private(set) var count: Int

    /// - Parameter count: the number of objects in the list.
    init(_ list: ObjectList, count: Int) {
        chunks = Deque(list.chunks)
        self.count = count
    }

    /// - Parameter objects: in the order in which they are read.
    package init(_ objects: [AliveObject]) {
        chunks = objects.isEmpty ? [] : [objects]
        count = objects.count
    }

    package var isEmpty: Bool { chunks.isEmpty }

    package mutating func popFirst() -> AliveObject? {
        guard let first = chunks.first else { return nil }
        let object = first[next]
        next += 1
        count -= 1
        if next == first.count {
            chunks.removeFirst()
            next = 0
        }
        return object
    }
}
