import Coaty
import CoatyMQTT
import Foundation
import TestSupport
import Testing

@testable import Access
@testable import Base

/// The policy, compared with a naive evaluation of the specification for random policies, principals, requests and
/// objects.
///
/// `COATY_ACCESS_CASES` sets the number of cases.
@Suite(.exclusive) struct RandomAccessTests {
    private static let cases = ProcessInfo.processInfo.environment["COATY_ACCESS_CASES"].flatMap(Int.init) ?? 100_000
    private static let casesPerPolicy = 50

    /// The number of cases with each result.
    private struct Tally: CustomStringConvertible {
        var decisions = ["allowed": 0, "allowed by where": 0, "denied by where": 0, "denied": 0]
        var admissions = ["everything": 0, "conditional": 0, "denied": 0]
        var total = 0

        var description: String {
            func shares(_ counts: [String: Int]) -> String {
                counts.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value * 1000 / max(1, total))‰" }
                    .joined(separator: ", ")
            }
            return "\(total) cases; decide: \(shares(decisions)); admit: \(shares(admissions))"
        }
    }

    @Test func policyEqualsReference() throws {
        var generator = AccessGenerator(seed: 14)
        var tally = Tally()
        while tally.total < Self.cases { try compare(using: &generator, &tally) }
        print("access: \(tally)")
        for (result, count) in tally.decisions.merging(tally.admissions, uniquingKeysWith: min) {
            #expect(count > tally.total / 30, "\(result): \(tally)")
        }
    }

    private func compare(using generator: inout AccessGenerator, _ tally: inout Tally) throws {
        let first = (0...Int.random(in: 0...3, using: &generator.random)).map { _ in generator.grant() }
        let second = generator.chance(0.3) ? [generator.grant()] : []
        let attributes = generator.attributes()
        let isAnonymous = generator.chance(0.2)
        let roles: [AnyCodable] = second.isEmpty ? ["r"] : ["r", "s"]
        let digest = AnyCodable.string(String(repeating: "a", count: 64))
        let token: AnyCodable = ["name": "t", "sha256": digest, "roles": .array(roles), "attributes": attributes]
        var definitions: [String: AnyCodable] = ["r": .array(first)]
        if !second.isEmpty { definitions["s"] = .array(second) }
        let access: AnyCodable = ["roles": .object(definitions), "anonymous": .array(roles), "tokens": [token]]
        let text = try PayloadCoder.encode(access)
        let configuration = try #require(try? AccessConfiguration(json: text), "\(text)")
        let policy = Policy(configuration, dialect: .plain)
        let permissions = try #require(policy.permissions(of: isAnonymous ? .anonymous : .token("t")))
        let principal: AnyCodable =
            isAnonymous
            ? ["roles": .array(roles), "attributes": [:]]
            : ["name": "t", "roles": .array(roles), "attributes": attributes]
        for _ in 0..<Self.casesPerPolicy {
            let asked = try generator.request(for: first + second, principal)
            let reference = ReferencePolicy(grants: first + second, roots: asked.roots)
            let covering = (first + second).filter { reference.covers($0, asked) }
            let isAllowed = covering.contains { $0["where"].map(reference.truth) ?? 1 == 1 }
            let isFree = covering.contains { $0["where"] == nil }
            let admission = covering.isEmpty ? "denied" : isFree ? "everything" : "conditional"
            let isEqual = permissions.decide(asked.request).isAllowed == isAllowed
            try #require(isEqual, "decide \(asked) should be \(isAllowed): \(text)")
            try #require(permissions.admit(asked.request).text == admission, "admit \(asked): \(text)")
            tally.total += 1
            tally.admissions[admission, default: 0] += 1
            let result =
                isAllowed ? isFree ? "allowed" : "allowed by where" : covering.isEmpty ? "denied" : "denied by where"
            tally.decisions[result, default: 0] += 1
        }
    }
}
