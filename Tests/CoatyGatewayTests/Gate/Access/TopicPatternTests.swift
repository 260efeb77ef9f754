import CoatyMQTT
import TestSupport
import Testing

@testable import Access
@testable import Base

/// The topics and topic filters that a filter of a grant covers.
@Suite(.exclusive) struct TopicPatternTests {
    private func covers(_ grant: String, _ filter: String, _ dialect: TopicDialect = .plain) -> Bool {
        TopicPattern(grant, dialect).covers(filter: filter, dialect)
    }

    private func matches(_ filter: String, _ topic: String, _ dialect: TopicDialect = .plain) -> Bool {
        TopicPattern(filter, dialect).covers(topic: topic, dialect)
    }

    @Test(arguments: [
        ("a/b", "a/b"), ("a/+", "a/b"), ("a/+", "a/+"), ("a/+", "a/"), ("a/#", "a"), ("a/#", "a/#"), ("a/#", "a/+/#"),
        ("a/#", "a/b/c"), ("#", "#"), ("#", "a/+"), ("#", "/"), ("+/#", "#"), ("+/#", "+"), ("+/+", "/x"), ("+", "+"),
        ("$SYS/#", "$SYS/broker/+"), ("$SYS/#", "$SYS"), ("+/+/#", "a/b"), ("/+", "/a"),
    ])
    func filterIsCovered(_ grant: String, _ filter: String) {
        #expect(covers(grant, filter))
    }

    @Test(arguments: [
        ("a/b", "a/c"), ("a/b", "a/+"), ("a/b", "a"), ("a/b", "a/b/c"), ("a/+", "a"), ("a/+", "a/#"), ("a/+", "a/b/c"),
        ("a/+", "#"), ("a/+/#", "a/#"), ("a/#", "ab"), ("a/#", "+/b"), ("+", "#"), ("+/+", "#"), ("+/+/#", "#"),
        ("#", "$SYS/#"), ("#", "$SYS"), ("+/b", "$SYS/b"), ("+/#", "$SYS/x"), ("$SYS/+", "$SYS/#"), ("a/b", "A/b"),
        ("a.+", "a.b"), ("a/+", "a.b"), ("a", "a/"), ("/a", "a"), ("caf\u{e9}", "cafe\u{301}"),
    ])
    func filterIsNotCovered(_ grant: String, _ filter: String) {
        #expect(!covers(grant, filter))
    }

    @Test(arguments: [
        ("a/+", "a.b", true), ("a.b", "a/b", true), ("a.#", "a/b/c", true), ("a.+", "a.b.c", false),
        ("a/b", "a.+", false),
        ("#", "$SYS.a", false), ("a.+", "a/+", true), ("a/+", "a.#", false),
    ])
    func dotsAreSlashesInTheirDialect(_ grant: String, _ filter: String, _ isCovered: Bool) {
        #expect(covers(grant, filter, .slashes) == isCovered)
    }

    /// Wildcard characters in a topic are literal.
    @Test func wildcardsOfTopicsAreLiteral() {
        #expect(matches("a/+", "a/+") && matches("a/#", "a/#"))
        #expect(!matches("a/+", "a/b/#"))
        #expect(TopicPattern("a/+", .plain).covers(topic: "a/#", .plain))
        #expect(!matches("a/b", "a/+"))
    }

    /// If a grant covers a filter, it matches every topic that the filter matches. If it does not, some topic matches
    /// only the filter.
    @Test(arguments: [TopicDialect.plain, .slashes])
    func coveredFilterMatchesNoMore(dialect: TopicDialect) {
        var random = SeededGenerator(seed: 10)
        let separators = dialect == .plain ? ["/"] : ["/", "."]
        func text(_ levels: [String]) -> String {
            levels.enumerated().reduce("") {
                let separator = separators.randomElement(using: &random) ?? "/"
                return $0 + ($1.offset == 0 ? "" : separator) + $1.element
            }
        }
        func levels(_ alphabet: [String]) -> [String] {
            (0..<Int.random(in: 1...4, using: &random)).map { _ in alphabet.randomElement(using: &random) ?? "a" }
        }
        func filter() -> String {
            var levels = levels(["a", "b", "", "$s", "+", "+"])
            if Bool.random(using: &random) { levels[levels.count - 1] = "#" }
            return levels == [""] ? "+" : text(levels)
        }
        let topics = Set((0..<1_000).map { _ in text(levels(["a", "b", "", "$s", "z"])) }.filter { !$0.isEmpty })
            .sorted()
        var (covered, wronglyRefused) = (0, 0)
        for _ in 0..<1_000 {
            let (grant, request) = (filter(), filter())
            let (own, other) = (TopicPattern(grant, dialect), TopicPattern(request, dialect))
            let requested = topics.filter { other.covers(topic: $0, dialect) }
            let isSubset = requested.allSatisfy { own.covers(topic: $0, dialect) }
            if covers(grant, request, dialect) {
                covered += 1
                #expect(isSubset, "\(grant) \(request)")
            } else if isSubset, !requested.isEmpty {
                wronglyRefused += 1
                // The topic above /# would be empty, but topics are not empty.
                #expect(request.hasPrefix("/") || request.hasPrefix("."), "\(grant) \(request)")
            }
        }
        #expect(covered > 75 && wronglyRefused < 25, "\(covered) \(wronglyRefused)")
    }
}
