import TestSupport
import Testing

@testable import Coaty
@testable import CoatyMQTT
@testable import CoatyTestSupport

@Suite(.exclusive) struct TopicTrieTests {
    private static let levels = ["a", "b", "", "$x", "ä"]

    private func matches(_ trie: TopicTrie, _ topic: String) -> Set<String> {
        let found = trie.filters(matching: WireName(topic)).map(\.text)
        #expect(Set(found).count == found.count)
        return Set(found)
    }

    /// Compares the trie with a linear search while filters are added and removed.
    @Test(arguments: 0..<40) func findsWhatEachFilterMatches(_ seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        func text(wildcards: Bool) -> String {
            var levels = (0..<Int.random(in: 1...5, using: &generator)).map { _ in
                wildcards && Bool.random(using: &generator)
                    ? "+" : Self.levels.randomElement(using: &generator) ?? ""
            }
            if wildcards, Int.random(in: 0..<3, using: &generator) == 0 { levels[levels.count - 1] = "#" }
            return levels.joined(separator: "/")
        }
        var trie = TopicTrie()
        var filters: [String: MQTTTopicFilter] = [:]
        for _ in 0..<300 {
            let filter = text(wildcards: true)
            if let matcher = MQTTTopicFilter(filter) {
                #expect(TopicTrie.hasWildcards(WireName(filter)))
                filters[filter] = matcher
                trie.insert(WireName(filter))
            }
            if Bool.random(using: &generator), let gone = filters.keys.sorted().randomElement(using: &generator) {
                filters[gone] = nil
                trie.remove(WireName(gone))
            }
            let topic = text(wildcards: false)
            #expect(matches(trie, topic) == Set(filters.filter { $0.value.matches(topic) }.keys), "\(topic)")
        }
        for filter in filters.keys { trie.remove(WireName(filter)) }
        #expect(trie.isEmpty)
    }

    @Test func longFiltersAreFound() {
        var trie = TopicTrie()
        let long = Array(repeating: "+", count: 199).joined(separator: "/")
        for filter in [long + "/#", long + "/a", "#"] { trie.insert(WireName(filter)) }
        let topic = Array(repeating: "x", count: 199).joined(separator: "/")
        #expect(matches(trie, topic) == ["#", long + "/#"])
        #expect(matches(trie, topic + "/a") == ["#", long + "/#", long + "/a"])
        #expect(!TopicTrie.hasWildcards(WireName("a/b+/c#")))
    }
}
