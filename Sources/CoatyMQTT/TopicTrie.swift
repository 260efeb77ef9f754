import Coaty

/// An index of topic filters with wildcards by the topics that they match (MQTT 3.1.1, section 4.7). Levels are
/// compared byte by byte.
///
/// The cost of a look-up depends on the levels of the topic and on the matching filters, but not on the other filters.
struct TopicTrie {
    typealias Key = WireName

    private static let one = WireName("+")
    private static let all = WireName("#")

    /// One or several levels that filters have in common.
    private struct Node {
        var levels: [WireName] = []
        /// The filter that ends here; nil if none does.
        var filter: Key?
        /// The following nodes, by the first of their levels.
        var children: [WireName: Node] = [:]

        var isEmpty: Bool { filter == nil && children.isEmpty }

        mutating func insert(_ inserted: ArraySlice<WireName>, _ filter: Key) {
            let common = zip(levels, inserted).prefix { $0 == $1 }.count
            if common < levels.count {
                var lower = self
                lower.levels = Array(levels[common...])
                self = Node(levels: Array(levels[..<common]), children: [levels[common]: lower])
            }
            let rest = inserted.dropFirst(common)
            guard let next = rest.first else {
                self.filter = filter
                return
            }
            children[next, default: Node(levels: Array(rest))].insert(rest, filter)
        }

        mutating func remove(_ removed: ArraySlice<WireName>) {
            guard removed.starts(with: levels) else { return }
            let rest = removed.dropFirst(levels.count)
            if let next = rest.first {
                children[next]?.remove(rest)
                if children[next]?.isEmpty ?? false { children[next] = nil }
            } else {
                filter = nil
            }
            if filter == nil, children.count == 1, var child = children.values.first {
                child.levels = levels + child.levels
                self = child
            }
        }

        /// Collects the filters that match a topic from one of its levels on.
        func find(_ topic: [WireName], from first: Int, _ found: inout [Key]) {
            var index = first
            for level in levels {
                // Wildcards don't match a first level that is reserved for the broker.
                let mayStand = index > 0 || topic[0].text.utf8.first != UInt8(ascii: "$")
                if level == TopicTrie.all {
                    if let filter, mayStand { found.append(filter) }
                    return
                }
                guard index < topic.count, level == TopicTrie.one && mayStand || level == topic[index] else { return }
                index += 1
            }
            // `a/#` also matches `a`.
            children[TopicTrie.all]?.find(topic, from: index, &found)
            guard index < topic.count else {
                if let filter { found.append(filter) }
                return
            }
            children[topic[index]]?.find(topic, from: index, &found)
            children[TopicTrie.one]?.find(topic, from: index, &found)
        }
    }

    private var root = Node()

    /// Whether there are no filters.
    var isEmpty: Bool { root.isEmpty }

    /// Returns whether a filter has wildcards.
    static func hasWildcards(_ filter: Key) -> Bool {
        levels(filter).contains { $0 == one || $0 == all }
    }

    mutating func insert(_ filter: Key) { root.insert(Self.levels(filter)[...], filter) }

    mutating func remove(_ filter: Key) {
        root.remove(Self.levels(filter)[...])
        if root.isEmpty { root = Node() }
    }

    /// Returns the filters that match a topic, in no particular order.
    func filters(matching topic: Key) -> [Key] {
        guard !isEmpty else { return [] }
        var found: [Key] = []
        root.find(Self.levels(topic), from: 0, &found)
        return found
    }

    private static func levels(_ topic: Key) -> [WireName] {
        topic.text.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
            .map { WireName(String(Substring($0))) }
    }
}
